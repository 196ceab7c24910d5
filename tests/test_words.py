"""What people read is in the words of the field: forms that a reader had to ask about stay away."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from scantling.cli.app import main

ROOT = Path(__file__).resolve().parents[1]
DESIGNS = ROOT / "gallery" / "designs"
# form -> what is said instead
BANNED = {
    r"beside the model's own arithmetic": "the largest overhead is",
    r"\bmisses a limit\b|\blimit missed\b|\bstill misses\b": "constraint violated",
    r"\bsave every\b": "checkpoint interval",
    r"\{[^}]*\} stalled\b": "checkpoint overhead",
    r"\bthe rest is pinned\b": "the others are fixed",
    r"\bleave it, because nothing fits\b": "is offloaded; no plan fits otherwise",
    r"\bthe other, same settings\b": "for comparison",
    r"\bthe latter needs\b": "name it",
    r"\b(?:goodput|spares) in\b(?! )": "downtime included",
    r"\ball \{?[\w.]+\}? together:": "expected overrun from N risks",
    r"\beach such loss waits\b": "or continues with fewer nodes",
    r"\bdiffers in\b": "differences",
    r"\bchanges that hold it\b": "changes that make it fit",
    r"\bone line: (?:FLOPs|half)": "baseline",
    r"\bnot taken\b": "rejected",
    r"\bis not nothing\b": "is not zero",
    r"\bdoes not do here\b": "is not enough here",
    r"\bdearest\b": "most expensive, highest",
    r"\} longer a step\b": "a step ... longer",
    r"\bof state a device leave\b|\bnothing fits without\b": "is offloaded; no plan fits otherwise",
    r"\bchance within the band\b": "probability of meeting it",
    r"\bor runs? on shrunk\b|\belse run on shrunk\b": "or continues with fewer nodes",
    r"\bwhat it does not do costs\b": "what it lacks costs",
    r"\bmisses a stated limit\b": "violates a constraint",
    r"\bof the width of the band goes\b|\bof the width goes\b": "the band narrows by",
    r"\bone line: median\b": "baseline: median",
    r"\bnothing that is counted\b": "none",
    r"\bplans? of the space\b|\bunder the pins\b|\bpins that cost\b": "plans compared, fixed",
    r"\bthe open search\b|\bletting go of\b": "with its fields left open",
    r"\bbounds all plans\b|\bis bound where it binds\b": "is limited by",
    r"\bno plan is legal\b": "model and batch cannot be split so",
}
# the same in what is printed, where figures stand in the place of braces
PRINTED = BANNED | {
    r"needs [\d.]+ [GTP]B of [\d.]+ [GTP]B per device": "needs ... per device; ... available",
    r"\bper device of \d": "per device; ... available",
    r"[\d.]+ % longer a step\b": "a step ... longer",
    r"\blies \d+ % (above|below)\b": "points above the upper end of the band",
    r"\bconstraint-missed\b|\bfeasible-at-risk\b|\bnot-checked\b": "the verdict in words",
    r"\bany \d+ % likely\b|\d % likely\b": "... % probability",
    r"\d \w+ if so\b": "impact ...",
}
# comments of a table are for whoever keeps it
KEYS = re.compile(
    r"^\s*#.*$|^constraint-missed,|\.constraint-missed\b|[\"'`]constraint-missed[\"'`]"
)


def said():
    """(place, text) of everything written for readers: tables and templates of texts, notebooks."""
    for top, endings in (
        ("lib", ("*.yaml", "*.j2")),
        ("lib", ("verdicts.csv", "sense.csv", "quantities.csv")),
        ("widgets", ("*.yaml", "*.j2", "*.js")),
    ):
        for ending in endings:
            for path in sorted((ROOT / top).rglob(ending)):
                if "labextensions" not in path.parts:
                    for i, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                        yield f"{path.relative_to(ROOT)}:{i}", KEYS.sub("", line)
    for path in sorted((ROOT / "notebooks").rglob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                yield str(path.relative_to(ROOT)), "".join(cell["source"])


def test_no_reader_has_to_ask_meaning_what():
    texts = list(said())
    assert len(texts) > 3000
    found = [
        (place, form, f"say: {instead}")
        for place, text in texts
        for form, instead in BANNED.items()
        if re.search(form, text, re.IGNORECASE)
    ]
    assert not found


def banned(text: str) -> list[str]:
    """The forms of PRINTED that a text of the kit has, with what is said instead."""
    return [
        f"{found[0]}: say {instead}"
        for form, instead in PRINTED.items()
        if (found := re.search(form, text, re.IGNORECASE))
    ]


COMMANDS = (
    "design {a} --full",
    "design {b} --full",
    "design {c}",
    "compare {a} {b}",
    "sweep {a} cluster.devices=2048,4096",
    "answer {a} fewest-devices",
    "goodput {b}",
    "search {b} --top 3",
    "sensitivity {a}",
    "candidates {a}",
    "blueprint {b} --part risks --full",
    "catalogue stacks",
)


@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS)
def test_the_terminal_speaks_in_words(line, capsys):
    named = ("case-3-500b-4096-h100", "case-5-deepseek-v3", "case-2-1t-dense-8-v100")
    files = dict(zip("abc", (str(DESIGNS / f"{name}.yaml") for name in named)))
    main(line.format(**files).split())
    printed = "".join(capsys.readouterr())
    assert len(printed) > 100
    assert banned(re.sub(r"\s+", " ", printed)) == []


def test_the_forms_are_found_where_they_stand():
    assert any(re.search(form, "Risks, dearest first") for form in BANNED)
    assert any(re.search(form, "12 GPUs, which still misses it", re.I) for form in BANNED)
    for text in ("it needs 3.82 TB of 84.9 GB per device", "floor lies 7 % above the band's edge"):
        assert banned(text)
    assert banned("16 devices → feasible-at-risk") and not banned("16 devices → feasible at risk")
