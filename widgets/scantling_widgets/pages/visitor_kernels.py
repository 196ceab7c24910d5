"""Limits of the page: a kernel for each visitor, at most as many as the machine has memory for, and
so many requests a second."""

import hmac
import resource
from collections.abc import Callable
from time import monotonic
from typing import Any

from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.httputil import HTTPServerRequest
from tornado.routing import Matcher, Rule
from tornado.web import ErrorHandler, HTTPError, decode_signed_value
from traitlets import Set
from voila.app import Voila

MOST = 16  # visitors at a time, some 300 MB each: judgement
PER_S = 10.0  # requests a second that are answered for long: judgement
BURST = 800.0  # and at once: first pages, some tens of files each: judgement
MOST_BYTES = 2_000_000_000  # of data of a desk, and of the server: judgement
LOGIN_COOKIE = "username-"  # how the name of Jupyter's login cookie begins


class Visitors(AsyncMappingKernelManager):
    """At most MOST kernels; who comes after that is told to come back. A kernel whose page is
    closed ends within a minute (`cull_idle_timeout` of voila.json); one that is warmed up ahead and
    waits for its first page stays."""

    visited = Set()  # ids of the kernels that had a page

    def notify_connect(self, kernel_id: str) -> None:
        """A page opens a connection to its kernel."""
        self.visited.add(kernel_id)
        super().notify_connect(kernel_id)  # type: ignore[no-untyped-call]  # Jupyter's, untyped

    async def cull_kernel_if_idle(self, kernel_id: str) -> None:
        """End a kernel that had a page and has none any more."""
        if kernel_id in self.visited:
            await super().cull_kernel_if_idle(kernel_id)  # type: ignore[no-untyped-call]  # same

    async def start_kernel(self, **kwargs: Any) -> str:  # type: ignore[override]  # as its base does
        """A kernel's id. Raises HTTPError 503 where all are taken."""
        if len(self) >= MOST:
            raise HTTPError(503, "all %d desks are taken: try again in half an hour", MOST)
        kernel: str = await super().start_kernel(**kwargs)
        return kernel


class Bucket:
    """BURST requests, and PER_S more a second."""

    left = BURST
    last = 0.0

    def take(self) -> bool:
        """One request out of the bucket; False where it is empty."""
        now = monotonic()
        self.left = min(BURST, self.left + (now - self.last) * PER_S)
        self.last = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class TooMany(Matcher):
    """Matches requests too many. Who has logged in and who has not take from two buckets, so that
    nobody without the token can shut the page; all visitors share one, as a proxy shows them under
    one address."""

    def __init__(self, is_visitor: Callable[[HTTPServerRequest], bool]) -> None:
        self.is_visitor = is_visitor
        self.visitors = Bucket()
        self.strangers = Bucket()

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """{} for a request too many, None for any other."""
        bucket = self.visitors if self.is_visitor(request) else self.strangers
        return None if bucket.take() else {}


class Page(Voila):  # type: ignore[misc]  # Voilà has no types
    """Voilà that answers 429 to requests too many."""

    def init_handlers(self) -> list[Any]:
        """Voilà's handlers, behind the limit."""
        limit = TooMany(self.is_visitor)
        return [Rule(limit, ErrorHandler, {"status_code": 429}), *super().init_handlers()]

    def is_visitor(self, request: HTTPServerRequest) -> bool:
        """Whether a request brings the token, or a cookie that this server has signed."""
        token = self.identity_provider.token.encode()
        if any(hmac.compare_digest(value, token) for value in request.arguments.get("token", ())):
            return True
        return any(
            decode_signed_value(self.cookie_secret, name, morsel.value) is not None
            for name, morsel in request.cookies.items()
            if name.startswith(LOGIN_COOKIE)
        )


if __name__ == "__main__":
    # kernels inherit it: a design too large for a desk ends in its own MemoryError, said there
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    Page.launch_instance()
