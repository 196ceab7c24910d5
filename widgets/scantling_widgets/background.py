"""Work that takes longer than a slider may wait: a button, a bar, a way to stop it, and the desk
stays live meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import ipywidgets as W

from .theme import button


class Job(W.HBox):
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
        room = {
            "width": "auto",
            "min_width": "96px",
            "flex": "0 0 auto",
        }
        self.button = button(name, self.run, **room)
        self.count = W.Label("", layout=W.Layout(width="118px"))
        self.bar = W.IntProgress(
            min=0,
            max=1,
            layout=W.Layout(
                width="120px",
                visibility="hidden",
            ),
        )
        self._cancelled = threading.Event()
        self.stop = button(
            "Cancel",
            self._cancelled.set,
            width="76px",
            visibility="hidden",
        )
        super().__init__(
            [
                self.button,
                self.count,
                self.bar,
                self.stop,
            ],
            layout=W.Layout(
                align_items="center",
                grid_gap="8px",
            ),
        )
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
            self.bar.max, self.bar.value, self.count.value = max(1, steps), 0, ""
            self.bar.layout.visibility = self.stop.layout.visibility = "visible"
            began = time.monotonic()
            for done, item in enumerate(items, 1):
                self._on_step(item)
                waiting = item is None and self.waits  # nothing new, only time: say how long
                self.bar.value = min(done, self.bar.max - 1) if waiting else done
                self.count.value = (
                    f"{time.monotonic() - began:.0f} s" if self.waits else f"{done} of {steps}"
                )
                if self._cancelled.is_set():
                    self.count.value += ", cancelled"
                    break
        except Exception as caught:
            error = caught
        finally:
            getattr(items, "close", bool)()
            self.bar.layout.visibility = self.stop.layout.visibility = "hidden"
            self.button.disabled = False
            self._on_end(error)
