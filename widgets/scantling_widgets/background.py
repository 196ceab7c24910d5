"""Work that takes longer than a slider may wait: a button, a count, a way to stop it, and the desk
stays live meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from .parts import Box, Button, Part


class Job(Box):
    """Runs a generator in a thread; each item it yields is a step done.

    start() -> (number of steps, generator)     read at the press of the button
    on_step(item), on_end(error or None)        called in that thread
    waits: the steps are ticks of a clock, so that seconds are told; None is a tick without news
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], tuple[int, Iterator]],
        on_step: Callable,
        on_end: Callable,
        waits: bool = False,
    ):
        super().__init__(cls="sd-line-of")
        self._cancelled = threading.Event()
        self.button, self.stop = Button(name, self.run), Button("Cancel", self._cancelled.set)
        self.count = Part(cls="sd-count", role="status")
        self.stop.hidden = True
        self.children = (self.button, self.count, self.stop)
        self._start, self._on_step, self._on_end, self.waits = start, on_step, on_end, waits
        self.thread = None

    def run(self) -> None:
        """Begin, unless it is running already."""
        if self.thread is not None and self.thread.is_alive():
            return
        self._cancelled.clear()
        self.button.disabled = True
        self.thread = threading.Thread(
            target=self._work,
            name="scantling-desk-job",
            daemon=True,
        )
        self.thread.start()

    def _work(self) -> None:
        error, items = None, iter(())
        try:
            steps, items = self._start()
            self.count.value, self.stop.hidden = "", False
            began = time.monotonic()
            for done, item in enumerate(items, 1):
                self._on_step(item)
                self.count.value = (
                    f"{time.monotonic() - began:.0f} s" if self.waits else f"{done} of {steps}"
                )
                if self._cancelled.is_set():
                    self.count.value += ", cancelled"
                    break
        except Exception as caught:
            error = caught
        finally:
            getattr(
                items,
                "close",
                bool,
            )()
            self.stop.hidden = True
            self.button.disabled = False
            self._on_end(error)
