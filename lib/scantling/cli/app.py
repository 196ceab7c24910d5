"""The `scantling` command: what commands there are, and how each ends.

Exit codes: 0 feasible or done; 3 a stated constraint is violated; 4 impossible; 2 the file or the
call is wrong, with one line on stderr;
130 stopped by Ctrl-C, 143 and 129 by SIGTERM and SIGHUP; 1 whoever read the output (head, less)
has gone.
"""

import gc
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import EntryPoint
from io import TextIOWrapper
from threading import current_thread, main_thread
from typing import Any

import click

from ..base import plugins
from ..base.console import tell
from ..base.errors import CatalogueError, DesignError, closest, plain
from ..base.threads import one_thread

WRONG = 2
OBJECTS = 500_000  # new ones before garbage is looked for: modules and records live to the end
# commands of the core by name: the module of this package that has each, imported when it is called
CORE = {
    "design": "design",
    "goodput": "design",
    "compare": "design",
    "search": "search",
    "spaces": "search",
    "candidates": "decide",
    "diagnose": "decide",
    "sweep": "decide",
    "answer": "decide",
    "scaling": "decide",
    "sensitivity": "decide",
    "front": "decide",
    "schema": "catalogues",
    "catalogue": "catalogues",
    "prices": "catalogues",
    "params": "catalogues",
    "predict": "runs",
    "validate": "runs",
}

# the commands by what is asked of them, as `--help` lists them; whatever else is installed follows
QUESTIONS = {
    "Where do I start?": ("init", "ask", "schema", "catalogue", "params", "walkthrough"),
    "Does it fit, how fast is it, how long does it take and what does it cost?": (
        *("design", "goodput", "compare", "prices", "report"),
    ),
    "Which plan is best, and what should change?": (
        *("search", "spaces", "answer", "sweep", "front", "sensitivity", "scaling", "candidates"),
    ),
    "Can I see it and move its inputs?": ("lab", "page", "site"),
    "What stands around it, and how is it started?": ("blueprint", "launch", "recipe", "trace"),
    "Does the run do what was planned?": ("diagnose", "learn", "measure"),
    "How right are the predictions?": ("predict", "validate"),
    "How are many designs kept?": ("assess-many", "lock", "check", "diff", "mcp", "agents"),
}
FURTHER = "What else is installed?"


def _commands() -> dict[str, EntryPoint]:
    """Every command by name, those of the core first, then those that packages beside it bring."""
    package = __name__.rpartition(".")[0]
    core = {
        name: EntryPoint(name, f"{package}.{module}:{name}", plugins.COMMANDS)
        for name, module in CORE.items()
    }
    return core | {n: e for n, e in plugins.entries(plugins.COMMANDS).items() if n not in core}


class Commands(click.Group):
    """The commands of the library and those that other packages plug in, each imported when it is
    called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_commands())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        entry = _commands().get(name)
        if entry is None:
            return None
        try:
            command = plugins.load(entry)
        except DesignError as missing:
            return _lacking(entry, missing)
        return command if isinstance(command, click.Command) else _foreign(name, command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in names:
            raise DesignError(
                args[0],
                problem="there is no such command",
                allowed=names,
                nearest=closest(args[0], names),
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = _commands()
        wide = max(map(len, commands))  # one column of names over all questions
        placed = {name for names in QUESTIONS.values() for name in names}
        further = {FURTHER: [name for name in commands if name not in placed]}
        for question, names in (QUESTIONS | further).items():
            rows = [(n.ljust(wide), plugins.summary(commands[n])) for n in names if n in commands]
            if rows:
                formatter.write(f"\n{question}\n")
                with formatter.indentation():
                    formatter.write_dl(rows)


def _lacking(entry: EntryPoint, missing: DesignError) -> click.Command:
    """A command whose packages are not installed: it says what it would do, and what it needs."""
    needs = f"It {missing.problem}: {missing.allowed}"

    @click.command(
        entry.name,
        context_settings={"ignore_unknown_options": True},
        help=f"{plugins.summary(entry)}\n\n{needs}",
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def run(arguments: Sequence[str]) -> None:
        raise missing

    return run


def _foreign(name: str, function: Any) -> click.Command:
    """A function of the remaining arguments that returns an exit code, as a command."""

    @click.command(
        name,
        context_settings={
            "ignore_unknown_options": True,
            "allow_interspersed_args": False,
            "help_option_names": [],
        },
        help=plugins.first_sentence(function.__doc__ or ""),
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def run(arguments: Sequence[str]) -> Any:
        return function(list(arguments))

    return run


@click.command(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="scantling", message="%(prog)s %(version)s")
def cli() -> None:
    """Plan large LLM training runs: will it fit, how fast, how long, at what cost, and what breaks
    it."""


@cli.result_callback()
@click.pass_context
def _ended(ctx: click.Context, code: Any) -> None:
    """A command that ends well has returned its exit code, or nothing."""
    ctx.exit(code if isinstance(code, int) else 0)


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    gc.set_threshold(OBJECTS)
    one_thread()
    _steady_streams()
    try:
        with _orderly_end(), _plain_warnings():
            code: int | None = cli.main(args=argv, prog_name="scantling", standalone_mode=False)
        sys.stdout.flush()
        return code or 0
    except DesignError as e:
        return _fail(e.one_line(), e.exit)
    except CatalogueError as e:  # a row of a user's own folder
        return _fail(str(e))
    except click.exceptions.NoArgsIsHelpError as e:
        print(e.format_message(), file=sys.stderr)
        return WRONG
    except click.UsageError as e:
        where = e.ctx.command_path if e.ctx else "scantling"
        return _fail(f"{' '.join(e.format_message().split())} (try {where} --help)")
    except click.ClickException as e:
        return _fail(e.format_message())
    except (click.Abort, KeyboardInterrupt):
        return _fail("stopped", 130)
    except BrokenPipeError:
        _silence()
        return 1
    except OSError as e:  # a full disk, a folder that may not be written
        _silence()
        return _fail(f"{plain(e.filename or 'output', 200)}: {e.strerror or e}")


@contextmanager
def _orderly_end() -> Iterator[None]:
    """Inside, a signal that ends the program first ends what the command began: files half written,
    folders of its own, processes. A program that hears them itself, or ignores them, goes on so."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    mine: list[signal.Signals] = []
    if current_thread() is main_thread():
        # of those that the system has: Windows knows no SIGHUP
        numbers = [one for one in signal.Signals if one.name in ("SIGTERM", "SIGHUP")]
        mine = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def _steady_streams() -> None:
    """Streams that can be used: one that the caller closed is empty, or drops what it gets, and one
    whose encoding lacks a character prints a mark in its place."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Inside, a warning to the user is a line of the program; one to its authors says where."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, UserWarning):
            tell(str(message))
        else:
            usual(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _silence() -> None:
    """Drop what stdout still holds, so that ending the program does not try to write it."""
    with suppress(OSError):  # a stdout that is no file holds nothing back
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int = WRONG) -> int:
    tell(message)
    return code
