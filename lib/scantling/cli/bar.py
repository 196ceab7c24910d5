"""Progress of a search on a terminal, and how it is stopped."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Self


class Bar:
    """Progress on stderr; the first Ctrl-C ends the search with what it has, the second ends the
    program."""

    def __init__(self, visible: bool) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self.stopped, out = False, Console(stderr=True)
        self.visible = visible and out.is_terminal
        self.bar = Progress(console=out, disable=not self.visible)
        self.task = self.bar.add_task("searching")

    def __call__(self, done: int, of: int) -> bool:
        self.bar.update(self.task, completed=done, total=of)
        return not self.stopped

    def shown(self) -> contextlib.AbstractContextManager[object]:
        """Inside, the bar is on the screen, where it is visible: one that is disabled ends with an
        empty line under rich before 14.2."""
        return self.bar if self.visible else contextlib.nullcontext()

    @contextlib.contextmanager
    def watching(self) -> Iterator[Self]:
        """Inside, an interrupt only asks the search to end."""

        def ask(number: int, frame: FrameType | None) -> None:
            if self.stopped:
                raise KeyboardInterrupt
            self.stopped = True
            self.bar.console.print("stopping after this chunk; once more to quit")

        try:
            before = signal.signal(signal.SIGINT, ask)
        except ValueError:  # not the main thread
            before = None
        try:
            with self.shown():
                yield self
        finally:
            if before is not None:
                signal.signal(signal.SIGINT, before)
