"""Limits of the page: a kernel for each visitor, at most as many as the machine has memory for, and
so many requests a second."""

from time import monotonic
from typing import Any

from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.httputil import HTTPServerRequest
from tornado.routing import Matcher, Rule
from tornado.web import ErrorHandler, HTTPError
from traitlets import Set
from voila.app import Voila

MOST = 16  # visitors at a time, some 300 MB each: judgement
PER_S = 10.0  # requests a second that are answered for long: judgement
BURST = 800.0  # and at once: first pages, some tens of files each: judgement


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


class TooMany(Matcher):
    """A bucket of BURST requests that fills by PER_S a second, of all visitors together, whom a
    proxy shows under one address; it matches what comes when it is empty."""

    left = BURST
    last = 0.0

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """{} for a request too many, None for any other."""
        now = monotonic()
        self.left = min(BURST, self.left + (now - self.last) * PER_S)
        self.last = now
        if self.left < 1:
            return {}
        self.left -= 1
        return None


class Page(Voila):  # type: ignore[misc]  # Voilà has no types
    """Voilà that answers 429 to requests too many."""

    def init_handlers(self) -> list[Any]:
        """Voilà's handlers, behind the limit."""
        return [Rule(TooMany(), ErrorHandler, {"status_code": 429}), *super().init_handlers()]


if __name__ == "__main__":
    Page.launch_instance()
