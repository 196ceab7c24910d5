"""The gallery: every design of `gallery/designs` assessed, predicted beside published, with
pictures, pages and an index.

`python -m scantling_widgets.gallery` writes all of it again. Git holds the designs, the published
figures, one table of headline figures, a thumbnail each and their list (README.md); the pages are
built into build/site/gallery and published from there.
"""

import re
import shutil
from pathlib import Path

import pandas as pd
from scantling import catalogue
from scantling.base.errors import DesignError
from scantling.base.files import table as read_yaml
from scantling.base.show import percent
from scantling.runs.predict import predict_frame
from scantling.runs.read import read_runs

from .. import resources
from ..charts import memory_step as charts
from ..charts.figure import Spec, compiled
from ..charts.livechart import vega_version
from ..charts.theme import SCHEMA, THEME, listed
from ..report import run as reports
from ..report.compare import result_of
from ..report.jobs import today
from ..report.page import templated
from ..report.text import environment, render
from ..words import at

KEPT = read_yaml(__file__, "gallery")
SITE = "build/site/gallery"  # of a checkout: the pages that are published
FIRST = "llama-3.1-405b"  # beside the cases, first in the list
THUMBNAIL = 480


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
    """Design files of the gallery by name."""
    return {path.stem: path for path in sorted(resources.example().parent.glob("*.yaml"))}


def published() -> list:
    """What the world printed about these runs: the rows of `published.csv`.

    `key`: of the assessment that a figure is compared with; `run`: its row of the published runs,
    where it has one: what the run printed of its software, no design file names.
    """
    frame = pd.read_csv(resources.published("published.csv"), keep_default_na=False)
    return list(frame.itertuples(index=False, name="Published"))


def figures(data: dict) -> dict:
    """Verdict, plan and headline figures of an assessment, as the table holds them."""
    return {key: at(data, key) for key in KEPT["figures"]}


def pages(site: Path) -> list[dict]:
    """The reports of all designs, a thumbnail each and their index, into the folder `site`; returns
    the entries of the index. Raises DesignError naming a report that could not be made."""
    out, thumbnails = site / "pages", site / "thumbnails"
    for record in reports.run(designs().values(), out, told=_told):
        if record.status != "done":
            raise DesignError(record.design, problem=f"has no report: {record.error}")
    results = {name: result_of(out / f"{name}.ipynb") for name in designs()}
    first = sorted(results, key=lambda name: (not name.startswith("case-") and name != FIRST, name))
    entries = [entry(name, results[name]) for name in first]
    thumbnails.mkdir(exist_ok=True)
    for e in entries:
        reports.write(thumbnails / f"{e['name']}.png", thumbnail(e["data"]))
        page = out / f"{e['name']}.html"
        reports.write(page, linked(page.read_text(encoding="utf-8"), e))
    reports.write(site / "index.html", index(entries))
    return entries


def _told(record, done: int, total: int) -> None:
    said = record.error or record.headline.get("verdict")
    print(f"{done}/{total} {record.name}: {said}", flush=True)


def as_run(of: list) -> dict[tuple[str, str], float]:
    """The published figures predicted from the rows of their runs, with what those print of
    releases, compilers and graphs, by (design, key)."""
    asked = [p for p in of if p.run]
    if not asked:
        return {}
    frame = read_runs(catalogue.HERE / "published_runs.csv")
    rows = frame[frame.id.isin([p.run for p in asked])].reset_index(drop=True)
    predicted = predict_frame(rows).set_index("id")
    return {(p.design, p.key): float(predicted.at[p.run, KEPT["of_a_run"][p.key]]) for p in asked}


def entry(name: str, data: dict) -> dict:
    """One entry of the index: what it is, what is predicted, what was published."""
    of = [p for p in published() if p.design == name]
    own = as_run(of)
    return {
        "name": name,
        "title": data["name"],
        "data": data,
        "compared": [
            {
                **p._asdict(),
                "predicted": at(data, p.key),
                "off": _off(at(data, p.key), p.published),
                "off_as_run": _off(own.get((p.design, p.key)), p.published),
            }
            for p in of
        ],
    }


def _off(predicted, published: float) -> str:
    """How far a prediction lies from what was printed."""
    text = percent(predicted / published - 1, 0, "+") if predicted else ""
    return "0 %" if text[1:] == "0 %" else text


def linked(page: str, e: dict) -> str:
    """A report with the way back to the index, and with what was published of its run."""
    more = render("published", {"e": e})
    return re.sub(
        r'(<nav class="gallery">.*)?</main>', lambda _: f"{more}</main>", page, flags=re.S
    )


def index(entries: list[dict]) -> str:
    """The index as a page: a card an entry, then predicted beside published."""
    return templated("gallery", title="scantling gallery", date=today(), entries=entries)


def thumbnail(data: dict) -> bytes:
    """A PNG of the memory and the step of an assessment, or of its refusal."""
    import vl_convert

    chart = _charts(data) if data.get("plan") else _refusal()
    theme = THEME | {
        "background": "#ffffff",
        "axis": THEME["axis"] | {"labelFontSize": 10},
        "padding": 10,
    }
    chart = chart | {"config": theme}
    return vl_convert.vegalite_to_png(chart, vl_version=vega_version())


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


def _charts(data: dict) -> dict:
    parts, datasets = [], {}
    for figure in (charts.memory, charts.step):
        part = figure.static(THUMBNAIL - 80, False, data)
        datasets |= part.pop("datasets")
        del part["$schema"]
        parts.append(part)
    return {
        "$schema": SCHEMA,
        "vconcat": parts,
        "datasets": datasets,
        "resolve": {"scale": {"color": "independent"}},
    }


def main() -> None:
    """Make what git holds of the gallery again, and the pages in the site."""
    gallery = folder()
    site = gallery.parent / SITE
    entries = pages(site)
    shutil.copytree(site / "thumbnails", gallery / "thumbnails", dirs_exist_ok=True)
    data = {e["name"]: e["data"] for e in entries}
    kept = ({"design": name} | figures(data[name]) for name in designs())
    reports.write(gallery / "headline.csv", reports.as_csv(kept))
    readme = environment().get_template("gallery.md.j2").render(entries=entries)
    reports.write(gallery / "README.md", readme + "\n")


if __name__ == "__main__":
    main()
