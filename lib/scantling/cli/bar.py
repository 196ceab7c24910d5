"""Progress of a search on a terminal, and how it is stopped."""

import contextlib
import signal
import sys

import click


class Bar:
    """Progress on stderr; the first Ctrl-C ends the search with what it has, the second ends the
    program."""

    def __init__(self, shown: bool):
        self.shown = shown
        self.stopped = False
        self.bar = None

    def __call__(
        self,
        done,
        of,
    ):
        if self.shown:
            if self.bar is None or self.bar.length != of or done < self.bar.pos:
                self._close()
                self.bar = click.progressbar(
                    length=of,
                    label="searching",
                    file=sys.stderr,
                )
                self.bar.__enter__()
            self.bar.update(done - self.bar.pos)
        return not self.stopped

    def _close(self):
        if self.bar is not None:
            self.bar.__exit__(
                None,
                None,
                None,
            )
            self.bar = None

    @contextlib.contextmanager
    def watching(self):
        """Inside, an interrupt only asks the search to end."""

        def ask(number, frame):
            if self.stopped:
                raise KeyboardInterrupt
            self.stopped = True
            click.echo("\nstopping after this chunk; once more to quit", err=True)

        try:
            before = signal.signal(signal.SIGINT, ask)
        except ValueError:  # not the main thread
            before = None
        try:
            yield self
        finally:
            self._close()
            if before is not None:
                signal.signal(signal.SIGINT, before)
