"""The gallery: every design of `gallery/designs` assessed, predicted beside published, with
pictures, pages and an index.

`python -m scantling_widgets.pages.gallery` writes all of it again. Git holds the designs, the
published figures, one table of headline figures, a thumbnail each and their list (README.md); the
pages are built into build/site/gallery and published from there.
"""

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.base.files import csv_rows
from scantling.base.quantities.quantity import show
from scantling.base.records import at, record
from scantling.base.show import days, percent, seconds, share
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs
from scantling.verdict.result import FigureKey, figure
from scantling_posttrain.answering import posttrain
from scantling_posttrain.constants import HERE as POSTTRAINED
from scantling_posttrain.posttrained import Posttrained
from scantling_posttrain.predict import answer

from .. import shipped_files
from ..charts import memory_step as charts
from ..charts.figure import Facts, Spec, compiled
from ..charts.livechart import vega_version
from ..charts.sides import side_memory, sides
from ..charts.theme import SCHEMA, THEME, listed
from ..quantity_texts import plan_text
from ..report.compare import result_of
from ..report.jobs import today
from ..report.page import templated
from ..report.rendering import environment, render
from ..report.report_batch import Record, as_csv, run, write

# of the plan, and figures of the assessment, in the table of headline figures
PLAN = ("tp", "cp", "pp", "vpp", "dp", "ep", "etp", "sharding", "micro_batch", "recompute")
FIGURES: tuple[FigureKey, ...] = (
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
# columns of a predicted run, by the key of the assessment
RUN_COLUMNS = {
    "tokens_per_s_per_device": "tokens_per_s_per_device",
    "step_s": "step_time_s",
    "mfu": "mfu",
}
SITE = "build/site/gallery"  # of a checkout: the pages that are published
POSTTRAIN = "posttrain"  # folder of the designs that tune a trained model
FIRST = "llama-3.1-405b"  # beside the cases, first in the list
THUMBNAIL = 480


class Published(NamedTuple):
    """A figure that the world printed of a design's run. `key`: of the assessment that it is
    compared with; `run`: its row of the published runs, where it has one."""

    design: str
    key: str
    published: float
    label: str
    source: str
    url: str
    locator: str
    run: str
    note: str


@record
class Comparison:
    """A published figure beside what is predicted: by the design, and as the run's own row."""

    figure: Published
    predicted: Any
    off: str
    off_as_run: str

    @property
    def predicted_text(self) -> str:
        return show(self.figure.key, self.predicted)

    @property
    def published_text(self) -> str:
        return show(self.figure.key, self.figure.published)

    @property
    def remark(self) -> str:
        """Where it was read."""
        note = f"; {self.figure.note}" if self.figure.note else ""
        return f"{self.figure.locator}{note}"


@record
class Entry:
    """A design of the index: what it is, what is predicted, what was published."""

    name: str
    title: str
    data: Facts
    compared: tuple[Comparison, ...]

    @property
    def plan(self) -> str:
        return plan_text(self.data["plan"]) if self.data.get("plan") else ""

    @property
    def file(self) -> str:
        """Of the design, in the folder of designs."""
        return f"{POSTTRAIN}/{self.name}.yaml" if self.name in tuned() else f"{self.name}.yaml"

    @property
    def mfu(self) -> str:
        return share(self.data["mfu"]) if self.data.get("mfu") else ""

    @property
    def step(self) -> str:
        return seconds(self.data["step_s"]) if self.plan else ""

    @property
    def days(self) -> str:
        likely = self.data["likely"]["days"] if self.plan else None
        return "" if likely is None else days(likely)

    @property
    def figures(self) -> str:
        """The headline figures in a line behind the verdict."""
        if not self.plan:
            return ""
        texts = (self.mfu and f"MFU {self.mfu}", f"step {self.step}", self.days)
        return "".join(f" · {text}" for text in texts if text)


def folder() -> Path:
    """The gallery of a checkout. Raises FileNotFoundError in an installed kit, which has the
    designs alone."""
    here = Path(__file__).resolve().parents[3] / "gallery"
    if not (here / "designs").is_dir():
        raise FileNotFoundError(
            "the gallery is in a checkout of scantling, not in the installed package"
        )
    return here


def designs() -> dict[str, Path]:
    """Design files of the gallery that train a model from the start, by name."""
    return {path.stem: path for path in sorted(shipped_files.example().parent.glob("*.yaml"))}


def tuned() -> dict[str, Path]:
    """Those that tune a trained model, by name."""
    folder = shipped_files.example().parent / POSTTRAIN
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def everything() -> dict[str, Path]:
    """All designs of the gallery, by name."""
    return designs() | tuned()


def published() -> list[Published]:
    """What the world printed about these runs: the rows of `published.csv`. What a run printed of
    its software, no design file names."""
    frame = pd.read_csv(shipped_files.published("published.csv"), keep_default_na=False)
    return [Published(*row) for row in frame[list(Published._fields)].itertuples(index=False)]


def figures(data: Facts) -> dict[str, Any]:
    """Verdict, plan and headline figures of an assessment, as the table holds them."""
    plan: Mapping[str, Any] = {**(data.get("plan") or {})}
    return {
        "verdict": data["verdict"],
        **{f"plan.{field}": plan.get(field) for field in PLAN},
        **{key: figure(data, key) for key in FIGURES},
    }


def pages(site: Path) -> list[Entry]:
    """The reports of all designs, a thumbnail each and their index, into the folder `site`; returns
    the entries of the index. Raises DesignError naming a report that could not be made."""
    out, thumbnails = site / "pages", site / "thumbnails"
    for done in run(everything().values(), out, progress=_progress):
        if done.status != "done":
            raise DesignError(done.design, problem=f"has no report: {done.error}")
    results = {name: result_of(out / f"{name}.ipynb") for name in everything()}
    first = sorted(results, key=lambda name: (not name.startswith("case-") and name != FIRST, name))
    entries = [entry(name, results[name]) for name in first]
    thumbnails.mkdir(exist_ok=True)
    for e in entries:
        answered = posttrain(tuned()[e.name]) if e.name in tuned() else None
        write(thumbnails / f"{e.name}.png", thumbnail(e.data, answered))
        page = out / f"{e.name}.html"
        write(page, linked(page.read_text(encoding="utf-8"), e))
    write(site / "index.html", index(entries))
    return entries


def _progress(record: Record, done: int, total: int) -> None:
    outcome = record.error or record.headline.get("verdict")
    print(f"{done}/{total} {record.name}: {outcome}", flush=True)


def as_run(of: Iterable[Published]) -> dict[tuple[str, str], float]:
    """The published figures predicted from the rows of their runs, with what those print of
    releases, compilers and graphs, by (design, key)."""
    asked = [p for p in of if p.run]
    if not asked:
        return {}
    frame = read_runs(catalogue.HERE / "published_runs.csv")
    rows = frame[frame.id.isin([p.run for p in asked])].reset_index(drop=True)
    predicted = predict_frame(rows).set_index("id") if len(rows) else rows
    found = tuned_runs([p.run for p in asked])
    return {
        (p.design, p.key): found[p.run, p.key]
        if (p.run, p.key) in found
        else float(predicted.at[p.run, RUN_COLUMNS[p.key]])
        for p in asked
    }


def tuned_runs(ids: Sequence[str]) -> dict[tuple[str, str], float]:
    """The same of the published rows of post-training, by (id, key)."""
    out: dict[tuple[str, str], float] = {}
    for table in sorted((POSTTRAINED / "published").glob("*.csv")):
        rows = [row for row in csv_rows(table) if row["id"] in ids]
        columns = answer(rows) or {}
        for key in RUN_COLUMNS:
            values = columns.get(key, ())
            out |= {(row["id"], key): float(value) for row, value in zip(rows, values)}
    return out


def entry(name: str, data: Facts) -> Entry:
    """One entry of the index."""
    own = [p for p in published() if p.design == name]
    runs = as_run(own)
    compared = []
    for p in own:
        predicted = at(data, p.key)
        compared.append(
            Comparison(
                figure=p,
                predicted=predicted,
                off=_off(predicted, p.published),
                off_as_run=_off(runs.get((p.design, p.key)), p.published),
            )
        )
    return Entry(name=name, title=data["name"], data=data, compared=tuple(compared))


def _off(predicted: float | None, published: float) -> str:
    """How far a prediction lies from what was printed."""
    text = percent(predicted / published - 1, 0, "+") if predicted else ""
    return "0 %" if text[1:] == "0 %" else text


def linked(page: str, e: Entry) -> str:
    """A report with the way back to the index, and with what was published of its run."""
    more = render("published", e=e)
    return re.sub(
        r'(<nav class="gallery">.*)?</main>', lambda _: f"{more}</main>", page, flags=re.S
    )


def index(entries: Sequence[Entry]) -> str:
    """The index as a page: a card an entry, then predicted beside published."""
    return templated("gallery", title="scantling gallery", date=today(), entries=entries)


def thumbnail(data: Facts, answered: Posttrained | None = None) -> bytes:
    """A PNG of the memory and the step of an assessment, or of its refusal; `answered`: of a design
    that tunes a trained model."""
    import vl_convert

    chart = _charts(data, answered) if data.get("plan") else _refusal()
    theme = THEME | {
        "background": "#ffffff",
        "axis": THEME["axis"] | {"labelFontSize": 10},
        "padding": 10,
    }
    chart = chart | {"config": theme}
    png: bytes = vl_convert.vegalite_to_png(chart, vl_version=vega_version(), scale=0.75)
    return png


def _refusal() -> Spec:
    """What stands in the place of pictures where there is no plan."""
    words = listed([{}]).mark_text(
        text=["No plan can hold this model, on this machine"],
        fontSize=20,
        fontWeight="bold",
        color="#a3241b",
        align="center",
    )
    return {"$schema": SCHEMA, **compiled(words.properties(width=400, height=240))}


def _charts(data: Facts, answered: Posttrained | None) -> Spec:
    """Memory above, the step below."""
    width = THUMBNAIL - 80
    if answered is None:
        drawn = [chart.static(width, False, data) for chart in (charts.memory, charts.step)]
    else:
        drawn = [chart.static(width, False, data, answered) for chart in (side_memory, sides)]
    parts: list[Spec] = []
    datasets: dict[str, Any] = {}
    for number, part in enumerate(drawn):
        own = {name: f"{number}-{name}" for name in part["datasets"]}
        datasets |= {own[name]: rows for name, rows in part.pop("datasets").items()}
        del part["$schema"]
        parts.append(_renamed(part, own))
    return {
        "$schema": SCHEMA,
        "vconcat": parts,
        "datasets": datasets,
        "resolve": {"scale": {"color": "independent"}},
    }


def _renamed(spec: Any, names: Mapping[str, str]) -> Any:
    """A specification whose data sets have other names: those of two pictures may be the same."""
    if isinstance(spec, list):
        return [_renamed(item, names) for item in spec]
    if not isinstance(spec, dict):
        return spec
    named = {key: _renamed(value, names) for key, value in spec.items()}
    data = named.get("data")
    if isinstance(data, dict) and data.get("name") in names:
        named["data"] = data | {"name": names[data["name"]]}
    return named


def main() -> None:
    """Make what git holds of the gallery again, and the pages in the site."""
    gallery = folder()
    site = gallery.parent / SITE
    entries = pages(site)
    shutil.copytree(site / "thumbnails", gallery / "thumbnails", dirs_exist_ok=True)
    data = {e.name: e.data for e in entries}
    rows = ({"design": name} | figures(data[name]) for name in everything())
    write(gallery / "headline.csv", as_csv(rows))
    readme = environment().get_template("gallery.md.j2").render(entries=entries)
    write(gallery / "README.md", readme + "\n")


if __name__ == "__main__":
    main()
