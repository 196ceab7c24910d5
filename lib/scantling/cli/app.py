"""The `scantling` command: what commands there are, and how each ends.

Exit codes: 0 feasible or done; 3 a stated constraint is violated; 4 impossible; 2 the file or the
call is wrong, with one line on stderr;
130 stopped by Ctrl-C; 1 whoever read the output (head, less) has gone.
"""

import os
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points

import click

from ..base.errors import DesignError, closest, plain
from . import blueprint, decide, design, files, launch, learn, measure, runs, search
from .common import WRONG, tell

ROOMS = (design, search, decide, blueprint, files, runs, learn, measure, launch)
COMMANDS = {
    found.name: found
    for room in ROOMS
    for found in vars(room).values()
    if isinstance(found, click.Command)
}
GROUP = "scantling.commands"


@cache
def _plugins() -> dict:
    """Commands of other distributions, by name: a click command, or a function of the remaining
    arguments that returns an exit code."""
    return {e.name: e for e in entry_points(group=GROUP) if e.name not in COMMANDS}


class Commands(click.Group):
    """The commands of the library and those that other distributions plug in."""

    def list_commands(self, ctx):
        return [*COMMANDS, *sorted(_plugins())]

    def get_command(self, ctx, name):
        if name not in _plugins():
            return COMMANDS.get(name)
        found = _plugins()[name].load()
        return found if isinstance(found, click.Command) else _foreign(name, found)

    def resolve_command(self, ctx, args):
        if args and self.get_command(ctx, args[0]) is None:
            raise DesignError(
                args[0],
                problem="there is no such command",
                allowed=self.list_commands(ctx),
                nearest=closest(args[0], self.list_commands(ctx)),
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx, formatter):
        rows = [
            (n, _first(COMMANDS[n].help) if n in COMMANDS else _summary(_plugins()[n]))
            for n in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _first(text: str) -> str:
    """The first sentence of a command's help."""
    return " ".join(text.partition("\n\n")[0].split())


def _summary(entry) -> str:
    """One line about a plugged-in command, without importing it."""
    return {
        "report": "Render designs as offline HTML reports.",
        "walkthrough": "Copy a design interview, to be worked on, taught from or practised.",
        "lab": "Open JupyterLab on the design desk.",
        "page": "Serve the design desk as a page.",
        "site": "Write every page, and the desk in a browser, for a web server.",
    }.get(entry.name, f"From {entry.value.partition(':')[0]}.")


def _foreign(name, function):
    @click.command(
        name,
        context_settings={
            "ignore_unknown_options": True,
            "allow_interspersed_args": False,
            "help_option_names": [],
        },
        help=(function.__doc__ or "").strip().partition("\n")[0],
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def run(arguments):
        return function(list(arguments))

    return run


@click.command(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="scantling", message="%(prog)s %(version)s")
def cli():
    """Plan large LLM training runs: will it fit, how fast, how long, at what cost, and what breaks
    it."""


@cli.result_callback()
@click.pass_context
def _ended(ctx, code):
    """A command that ends well has returned its exit code, or nothing."""
    ctx.exit(code if isinstance(code, int) else 0)


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))
    try:
        code = cli.main(args=argv, prog_name="scantling", standalone_mode=False)
        sys.stdout.flush()
        return code or 0
    except DesignError as e:
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


def _silence():
    """Drop what stdout still holds, so that ending the program does not try to write it."""
    with suppress(OSError):  # a stdout that is no file holds nothing back
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int = WRONG) -> int:
    tell(message)
    return code
