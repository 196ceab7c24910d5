"""Work that takes longer than a slider may wait: a button, a count, a way to stop it, and the desk
stays live meanwhile. In a thread; where there are none, in a browser, between two messages."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from functools import partial
from time import monotonic
from typing import Any, Protocol

from ..charts.page_parts import Box, Button, Part
from ..shipped_files import in_a_page

Step = Callable[[Any], None]  # of what the work yields


class Waiting(Protocol):
    """Work that may not have begun."""

    def cancel(self) -> None:
        """Take it back."""


_DRAWN_S = 0.3  # until work begins: what the press itself draws goes out first


def in_background(steps: Iterator[Any], wait_s: float = 0.0) -> Waiting:
    """Take all `steps` beside what else goes on, after `wait_s`; `.cancel()` of what is returned
    takes that back while it waits."""
    if in_a_page():
        return asyncio.get_event_loop().call_later(wait_s, partial(_step, steps))
    thread = threading.Timer(wait_s, deque, [steps, 0])
    thread.daemon = True
    thread.start()
    return thread


def _step(steps: Iterator[Any]) -> None:
    for _ in steps:
        in_background(steps, 0.02)  # a message that waits is heard first
        break


class Job(Box):
    """Runs a generator in a thread; each item it yields is a step done.

    start() -> (number of steps, generator)     read at the press of the button
    on_step(item), on_end(error or None)        called in that thread
    waits: the steps are ticks of a clock, so that seconds are told; None is a tick without news
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], tuple[int, Iterator[Any]]],
        on_step: Step,
        on_end: Callable[[Exception | None], None],
        waits: bool = False,
    ) -> None:
        super().__init__(cls="sd-line-of")
        self._cancelled = threading.Event()
        self.button, self.stop = Button(name, self.run), Button("Cancel", self._cancelled.set)
        self.count = Part(cls="sd-count", role="status")
        self.stop.hidden = True
        self.children = (self.button, self.count, self.stop)
        self._start, self._on_step, self._on_end, self.waits = start, on_step, on_end, waits
        self.thread: Waiting | None = None

    def run(self) -> None:
        """Begin, unless it is running already."""
        if self.button.disabled:
            return
        self._cancelled.clear()
        self.button.disabled = True
        self.thread = in_background(self._work(), _DRAWN_S)

    def _work(self) -> Iterator[Any]:
        error: Exception | None = None
        items: Iterator[Any] = iter(())
        try:
            steps, items = self._start()
            self.count.value, self.stop.hidden = "", False
            began = monotonic()
            for done, item in enumerate(items, 1):
                self._on_step(item)
                self.count.value = (
                    f"{monotonic() - began:.0f} s" if self.waits else f"{done} of {steps}"
                )
                if self._cancelled.is_set():
                    self.count.value += ", cancelled"
                    break
                yield item
        except Exception as caught:
            error = caught
        finally:
            if isinstance(items, Generator):
                items.close()
            self.stop.hidden = True
            self.button.disabled = False
            self._on_end(error)
