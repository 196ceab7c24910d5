"""The gallery: every design of `gallery/designs` assessed, predicted beside published, with
pictures, pages and an index.

`python -m scantling_widgets.gallery` writes all of it again. Git holds the designs, the published
figures, one table of headline figures,
a thumbnail each, the index and some rendered pages; `stale` says whether the table is still what
the library computes.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import scantling
from markupsafe import Markup
from scantling import catalogue
from scantling.base.show import percent
from scantling.evidence.predict import predict_frame
from scantling.evidence.runs import read_runs

from . import charts
from .figures import SCHEMA, spec
from .livechart import vega_version
from .report import run as reports
from .report.compare import result_of
from .report.jobs import today
from .report.page import document
from .report.pictures import THEME
from .report.text import REFUSAL, environment
from .words import at

PAGES = (
    "llama-3.1-405b",
    "case-1-175b-moe-1024-a100",
    "case-2-1t-dense-8-v100",
    "case-3-500b-4096-h100",
    "case-5-deepseek-v3",
    "case-6-100k-gpus",
)
TOLERANCE = 0.005
FIGURES = (
    "params",
    "active_params",
    "devices_used",
    "step_s",
    "mfu",
    "tokens_per_s_per_device",
    "bubble_fraction",
    "memory_bytes.total",
    "days",
    "goodput",
    "mtbf_s",
    "checkpoint_interval_s",
    "cost.device_hours",
    "cost_usd",
    "energy_kwh",
)
PLAN = ("tp", "cp", "pp", "vpp", "dp", "ep", "etp", "sharding", "micro_batch", "recompute")
THUMBNAIL = 480


@dataclass(
    frozen=True,
    kw_only=True,
)
class Published:
    """One printed figure of a run, under the key of the assessment that it is compared with."""

    design: str
    key: str
    published: float
    label: str
    source: str
    url: str
    locator: str
    # its row of the published runs, where it has one: what the run printed of its software, no
    # design file names
    run: str
    note: str


def folder() -> Path:
    """The gallery of a checkout. Raises FileNotFoundError in an installed kit, which has the
    designs alone."""
    here = Path(__file__).resolve().parents[2] / "gallery"
    if not (here / "designs").is_dir():
        raise FileNotFoundError(
            "the gallery is in a checkout of scantling, not in the installed package"
        )
    return here


def designs(gallery: Path | None = None) -> dict[str, Path]:
    """Design files of the gallery by name."""
    return {path.stem: path for path in sorted(((gallery or folder()) / "designs").glob("*.yaml"))}


def published(gallery: Path | None = None) -> list[Published]:
    """What the world printed about these runs."""
    with open(
        (gallery or folder()) / "published.csv",
        newline="",
        encoding="utf-8",
    ) as file:
        return [
            Published(
                **{
                    **row,
                    "published": float(row["published"]),
                }
            )
            for row in csv.DictReader(file)
        ]


def figures(assessment) -> dict:
    """Verdict, plan and headline figures of an assessment, as the table holds them."""
    data = assessment if isinstance(assessment, dict) else assessment.as_dict()
    plan = data.get("plan") or {}
    return {
        "verdict": data["verdict"],
        **{f"plan.{k}": plan.get(k) for k in PLAN},
        **{k: at(data, k) for k in FIGURES},
    }


def table(rows: dict[str, dict]) -> str:
    """The headline figures as CSV; seven digits, so that a last bit that differs between machines
    does not show."""
    text = io.StringIO()
    columns = [
        "design",
        "verdict",
        *(f"plan.{k}" for k in PLAN),
        *FIGURES,
    ]
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for name, row in rows.items():
        writer.writerow(
            {
                "design": name,
                **{k: f"{v:.7g}" if isinstance(v, float) else v for k, v in row.items()},
            }
        )
    return text.getvalue()


def read_table(gallery: Path | None = None) -> dict[str, dict]:
    """The headline figures that the gallery was last built with."""
    with open(
        (gallery or folder()) / "headline.csv",
        newline="",
        encoding="utf-8",
    ) as file:
        return {row.pop("design"): row for row in csv.DictReader(file)}


def moved(
    now: dict,
    kept: dict,
    tolerance: float = TOLERANCE,
) -> list[str]:
    """What differs between figures just computed and those kept, beyond `tolerance` of the
    value."""
    out = []
    for key, value in now.items():
        was = kept.get(key, "")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            same = was != "" and abs(value - float(was)) <= tolerance * abs(value)
        else:
            same = ("" if value is None else str(value)) == was
        if not same:
            out.append(f"{key} {was or 'nothing'} → {value}")
    return out


def stale(gallery: Path | None = None) -> dict[str, list[str]]:
    """Designs whose figures are not those of the table any more, and in what."""
    kept, named = read_table(gallery), designs(gallery)
    out = {name: ["in the table, but no such design"] for name in kept if name not in named}
    for name, path in named.items():
        if name not in kept:
            out[name] = ["not in the table"]
        elif differs := moved(figures(scantling.assess(scantling.Design.read(path))), kept[name]):
            out[name] = differs
    return out


def build(
    gallery: Path | None = None,
    out: Path | None = None,
    workers: int | None = None,
    told=None,
) -> list:
    """Make everything again: reports of all designs into `out`, and what git holds into `gallery`.
    Returns the records of the reports."""
    gallery = gallery or folder()
    out = out or gallery.parent / "build" / "gallery"
    named = designs(gallery)
    records = reports.run(
        named.values(),
        out,
        workers=workers,
        told=told,
    )
    results = {r.name: result_of(out / f"{r.name}.ipynb") for r in records if r.status == "done"}
    if len(results) < len(named):
        return records
    thumbnails, pages = gallery / "thumbnails", gallery / "pages"
    thumbnails.mkdir(exist_ok=True)
    pages.mkdir(exist_ok=True)
    for name, data in results.items():
        reports.write(thumbnails / f"{name}.png", thumbnail(data))
    for name in PAGES:
        _keep_page(pages / f"{name}.html", (out / f"{name}.html").read_text(encoding="utf-8"))
    for old in (*thumbnails.glob("*.png"), *pages.glob("*.html")):
        kept = named if old.parent == thumbnails else PAGES
        if old.stem not in kept and not old.stem.startswith("desk-"):
            old.unlink()
    reports.write(
        gallery / "headline.csv", table({name: figures(data) for name, data in results.items()})
    )
    entries = [entry(name, results[name], gallery) for name in sorted(results, key=_cases_first)]
    reports.write(
        gallery / "README.md",
        environment().get_template("gallery.md.j2").render(entries=entries) + "\n",
    )
    _keep_page(gallery / "index.html", index(entries))
    return records


def _cases_first(name: str) -> tuple:
    return not name.startswith("case-") and name not in PAGES, name


OF_A_RUN = {
    "tokens_per_s_per_device": "tokens_per_s_per_device",
    "step_s": "step_time_s",
    "mfu": "mfu",
}


def as_run(of: list[Published]) -> dict[tuple[str, str], float]:
    """The published figures predicted from the rows of their runs, with what those print of
    releases, compilers and graphs, by (design, key)."""
    asked = [p for p in of if p.run]
    if not asked:
        return {}
    frame = read_runs(catalogue.HERE / "published_runs.csv")
    rows = frame[frame.id.isin([p.run for p in asked])].reset_index(drop=True)
    predicted = predict_frame(rows).set_index("id")
    return {(p.design, p.key): float(predicted.at[p.run, OF_A_RUN[p.key]]) for p in asked}


def entry(
    name: str,
    data: dict,
    gallery: Path | None = None,
) -> dict:
    """One entry of the index: what it is, what is predicted, what was published."""
    of = [p for p in published(gallery) if p.design == name]
    own = as_run(of)
    compared = [
        {
            **asdict(p),
            "predicted": at(data, p.key),
            "off": _off(at(data, p.key), p.published),
            "off_as_run": _off(own.get((p.design, p.key)), p.published),
        }
        for p in of
    ]
    return {
        "name": name,
        "title": data["name"],
        "data": data,
        "compared": compared,
        "page": name in PAGES,
    }


def _off(predicted, published: float) -> str:
    """How far a prediction lies from what was printed."""
    text = percent(predicted / published - 1, 0, "+") if predicted else ""
    return "0 %" if text[1:] == "0 %" else text


def index(entries: list[dict]) -> str:
    """The index as a page: a card an entry, then predicted beside published."""
    body = environment().get_template("gallery.j2").render(entries=entries)
    return document(
        Markup(body),
        title="scantling gallery",
        date=today(),
        kind="wide",
    )


def thumbnail(data: dict) -> bytes:
    """A PNG of the memory and the step of an assessment, or of its refusal."""
    import vl_convert

    chart = _refusal() if data["verdict"] == "impossible" else _charts(data)
    axis = {
        **THEME["axis"],
        "labelFontSize": 10,
    }
    theme = {
        **THEME,
        "background": "#ffffff",
        "axis": axis,
        "padding": 10,
    }
    return vl_convert.vegalite_to_png(
        {
            **chart,
            "config": theme,
        },
        vl_version=vega_version(),
        scale=1.5,
    )


def _charts(data: dict) -> dict:
    parts, datasets = [], {}
    for figure, height in ((charts.memory, 150), (charts.step, 70)):
        part = figure.static(
            data,
            width=THUMBNAIL - 80,
            legend=False,
        )
        datasets |= part.pop("datasets")
        part.pop("$schema")
        parts.append(
            {
                **part,
                "height": height,
            }
        )
    return {
        "$schema": SCHEMA,
        "vconcat": parts,
        "datasets": datasets,
        "resolve": {"scale": {"color": "independent"}},
    }


def _refusal() -> dict:
    words = json.dumps(REFUSAL).replace(": ", ":\n").replace(" for model", "\nfor model")
    size = {
        "$schema": SCHEMA,
        "width": THUMBNAIL - 80,
        "height": 300,
    }
    return {
        **size,
        **spec("refusal", lines=words.split("\n")),
    }


def _keep_page(path: Path, text: str) -> None:
    """Write a page, unless it differs from the one that is there in its date alone."""
    if not path.exists() or _undated(path.read_text(encoding="utf-8")) != _undated(text):
        reports.write(path, text)


def _undated(text: str) -> str:
    return re.sub(r"<time[^>]*>[^<]*</time>", "", text)


def main() -> int:
    """Build the gallery; `--check` says instead what has moved."""
    if "--check" in sys.argv[1:]:
        found = stale()
        for name, differs in found.items():
            print(f"{name}: {'; '.join(differs)}")
        return 1 if found else 0
    records = build(
        told=lambda record, done, total: print(
            f"{done}/{total} {record.name}: {record.error or record.headline.get('verdict')}",
            flush=True,
        )
    )
    return 1 if any(r.status != "done" for r in records) else 0


if __name__ == "__main__":
    sys.exit(main())
