"""The command on what stands around a job: network, placement, planes, scheduler, stores, domains,
recovery, risks, roll-out, evolution."""

import click
from scantling.base.console import console, print_json
from scantling.base.errors import DesignError
from scantling.cli.common import named, possible
from scantling.cli.options import FILE, JSON
from scantling.verdict.verdicts import EXIT

from . import PARTS, blueprint as site_around
from .terminal import show_parts


@click.command()
@FILE
@JSON
@click.option(
    "--part",
    "parts",
    multiple=True,
    metavar="PART",
    help=f"Only this part; may be given more than once: {', '.join(PARTS)}.",
)
@click.option("--full", is_flag=True, help="All lines of the network, not its totals alone.")
def blueprint(file: str, as_json: bool, parts: tuple[str, ...], full: bool) -> int:
    """Plan the site around the design in FILE (- for stdin): network, scheduler, storage, failure
    domains, risks, roll-out, what breaks next.

    Exit codes as of design: 0 feasible, 3 a stated constraint is violated, 4 impossible, 2 the file
    is wrong.
    """
    for part in parts:
        if part not in PARTS:
            raise DesignError("--part", part, PARTS)
    a = possible(file, as_json)
    data = site_around(a, parts or PARTS).as_dict(parts or PARTS)
    if as_json:
        print_json(named(a) | data)
    else:
        show_parts(a.resolved.name, data, console(), full)
    return EXIT[a.verdict]
