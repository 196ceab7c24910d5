"""What people read is in the words of the field: forms that a reader had to ask about stay away."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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


def test_the_forms_are_found_where_they_stand():
    assert any(re.search(form, "Risks, dearest first") for form in BANNED)
    assert any(re.search(form, "12 GPUs, which still misses it", re.I) for form in BANNED)
