"""What every part of a desk has in common, on the desk or alone in the cell of a notebook."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from scantling.base.errors import DesignError

from ..charts.page_parts import Message, Page, Part
from .session import Session

Act = Callable[[], Any]


class Pane:
    """A part of a desk: `root` is what stands on the page, `show` brings it up to date with the
    session. Whoever holds a pane calls `show`; one that stands alone is opened, and then follows
    the session by itself."""

    root: Part
    page: Page | None = None  # of a pane that is open

    def __init__(self, session: Session) -> None:
        self.session = session

    def show(self) -> None:
        """Put the design of the session into the parts."""
        raise NotImplementedError

    def greeted(self, message: Message) -> None:
        """Somebody looks at the page from now on."""

    def act(self, action: Act) -> None:
        """Do what the user asked for; whatever goes wrong is shown."""
        try:
            with self.session.lock:
                action()
        except DesignError as error:
            self.session.refuse(error)
        except Exception as error:
            self.session.report(error)
            self.session.notify()

    # ------------------------------------------------------------ alone on a page
    def open(self) -> Page:
        """The pane as a page of its own, which follows the session until it is closed."""
        if self.page is None:
            self.page = Page(self.root, self.greeted)
            self.session.watch(self._redraw)
            self.session.observe(self._compute, "computing")
            self._redraw()
        return self.page

    def close(self) -> None:
        """Follow the session no longer."""
        self.session.unwatch(self._redraw)
        with suppress(ValueError):  # where it never did
            self.session.unobserve(self._compute, "computing")

    def _redraw(self) -> None:
        assert self.page is not None, "only an open pane follows the session"
        with self.page.batch():
            self.show()

    def _compute(self, change: Any) -> None:
        """Say at once that what stands on the page is of an earlier design, or no longer."""
        if self.page is not None and self.page.tell is not None:
            self.page.tell({"computing": change["new"]})
