"""What `scantling design` and `scantling search` print of a post-training design."""

from rich.console import Console
from rich.text import Text
from scantling.base.console import console, print_json
from scantling.base.errors import plain
from scantling.base.show import params, seconds, several, value_text
from scantling.cli.tables import TONES, named_line
from scantling.design.design import Design
from scantling.verdict.verdicts import EXIT, VERDICTS

from .answer_lines import (
    fix_text,
    goodput_text,
    memory_text,
    phases_text,
    rollout_text,
    run_text,
    step_text,
)
from .answering import moves, posttrain
from .first import to_find_out
from .fixes import MET
from .posttrained import Posttrained

MOST_ASSUMED = 8
MOST_FOUND = 3


def answer(design: Design, as_json: bool = False) -> int:
    """Print the answer to a post-training design; returns the exit code of its verdict."""
    result = posttrain(design)
    if as_json:
        print_json(result.as_dict())
    else:
        for line in lines_of(result):
            show(line, result, console())
        if result.verdict in MET:
            for fix in filter(None, moves(result)[1]):
                show(("Saves", fix_text(fix)), result, console())
    return EXIT[result.verdict]


def show(line: tuple[str, str], result: Posttrained, out: Console) -> None:
    """One line: its name, its text."""
    name, text = line
    if not name:
        out.print(Text(plain(text, 400), style="bold"))
        return
    style = TONES[VERDICTS[result.verdict].tone] if name == "Verdict" else "dim"
    out.print(named_line(name, plain(text, 600), style))


def lines_of(result: Posttrained) -> list[tuple[str, str]]:
    """(name, text) of every line."""
    verdict = VERDICTS[result.verdict].name
    lines = [("", f"{result.name}: {result.method}"), ("Verdict", verdict)]
    lines += [("Limit", text) for text in result.limits]
    lines += [("Change", fix_text(fix)) for fix in result.fixes]
    if result.plan is None:
        return lines + [("Ask", text) for text in result.asks]
    trained = f"{params(result.trained_params)} of {params(result.params)} parameters trained"
    lines.append(("Job", f"{trained}, {several(result.devices, 'device')}"))
    lines.append(("Plan", result.plan_words))
    if result.rollout is not None:
        lines += [("Rollout", rollout_text(result.rollout)), ("Phases", phases_text(result))]
    lines += [("Step", step_text(result)), ("Memory", memory_text(result))]
    of_run = (("Run", run_text(result)), ("Goodput", goodput_text(result)))
    lines += [(name, text) for name, text in of_run if text]
    lines += [("Why", text) for text in result.why]
    lines += [("Avoid", f"{one.what}: {one.why}; {one.cost}") for one in result.others]
    for one in result.sensitivity:
        lines.append(("If", f"{one.change}: {seconds(one.step_s)} a step ({one.share:+.0%})"))
    lines += [("Find", one.text) for one in to_find_out(result)[:MOST_FOUND]]
    lines += [("Ask", text) for text in result.asks]
    lines += [("Unread", text) for text in result.no_effect]
    for each in result.assumed[:MOST_ASSUMED]:
        lines.append(("Assumed", f"{each.field} {value_text(each.value)}: {each.why}"))
    rest = len(result.assumed) - MOST_ASSUMED
    if rest > 0:
        lines.append(("Assumed", f"{rest} more under --json"))
    return lines
