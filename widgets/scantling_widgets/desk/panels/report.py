"""The design as a file: read it, write it, paste it; its report; and the files that a framework
starts from."""

import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from json import loads
from pathlib import Path

from scantling.base.errors import DesignError
from scantling.base.quantities.quantity import quantity
from scantling.base.records import at
from scantling.base.show import seconds
from scantling.design.design import Design
from scantling.design.file import dump
from scantling.verdict.result import FigureKey, band_of
from scantling_kits import FRAMEWORKS, ON
from scantling_logs.learning import read_log
from scantling_logs.log_reading import Reading
from scantling_logs.measure.worth import Worth
from scantling_logs.point import of_design, other_run
from scantling_logs.site_calibration import calibration
from scantling_logs.texts import worth_row
from scantling_posttrain.recipes import FRAMEWORKS as RECIPES

from ...charts.page_parts import Button, Download, Drop, Field, Part
from ...report.jobs import files_of
from ...shipped_files import served
from .. import boxes, link, panel_tables, rendered_files
from ..background import Job
from ..page_table import Cell, cell
from ..rendered_files import Files
from .base import Methods, Panel
from .compare import banded

_LOG = (
    "<p class='sd-dim'>A log of this design's run tells how fast the machine really is. The design "
    "takes that as its calibration; step, band and charts follow, and Undo takes it back. The log "
    "is read where the desk computes (in the browser, where there is no server) and is not "
    "kept.</p>"
)
_PAGE = "<p class='sd-dim'>One HTML page that opens offline, and its notebook.</p>"
_KIT = (
    "<p class='sd-dim'>The plan as a framework's own configuration, with launch script, checkpoint "
    "plan and reasons.</p>"
)

_RECIPE = (
    "<p class='sd-dim'>The plan as a script of a framework of tuning, each setting under the name "
    "that its own configuration has, and what it has no words for.</p>"
)


# what is shown before and after a log
_LEARNT: tuple[FigureKey, ...] = ("step_s", "mfu_shown", "likely.days", "likely.cost_usd")


def _status(text: str) -> str:
    """Markup of what has been done."""
    return f"<p role='status'>{boxes.escape(text)}</p>"


class Report(Panel):
    title = "File and report"
    always = True
    methods = Methods.ALL
    _saved: Path | None = None  # the file that stands for the design on the desk

    def build(self) -> Sequence[Part]:
        text, files = self._text(), self._files()
        self.learn_card, self.measure_card = self._log(), self._measurements()
        page = self._page()
        self.kit_card = self._kit()
        return [
            boxes.columns(
                text, boxes.stack(files, self.learn_card, self.measure_card, page), self.kit_card
            )
        ]

    def _text(self) -> Part:
        """The design as text."""
        self.text = Field(description="Design file", lines=16, cls="sd-code")
        self.text_status = boxes.text()
        self.use = self._button(
            "Use this text",
            self._use,
            self.text_status,
            "Put the design that the text spells, or that a link holds, on the desk",
        )
        return boxes.card(
            "The design, as its file", self.text, boxes.row(self.use), self.text_status
        )

    def _files(self) -> Part:
        """Its file, written and read."""
        self.path = Field(description="File", value="my-design.yaml")
        if served():  # no path of a visitor is opened
            self.path = Field(description="File", takes="file")
        self.file_download, self.file_status = Download(), boxes.text()
        self.save = self._button(
            "Save", self._save, self.file_status, "Write the design on the desk to the file"
        )
        self.load = self._button(
            "Load", self._load, self.file_status, "Put the design of the file on the desk"
        )
        return boxes.card(
            "Save and load",
            self.path,
            boxes.row(self.save, self.load),
            self.file_download,
            self.file_status,
        )

    def _log(self) -> Part:
        """What a log of its run teaches."""
        self.log = Field(description="Log", value="train.log")
        if served():
            self.log = Field(description="Log", takes="log")
            self.log.on("value", lambda _: self._learn_at_once(self.log))
        self.dropped = Field(description="or a file", takes="log")
        self.dropped.hidden = served()
        self.dropped.on("value", lambda _: self._learn_at_once(self.dropped))
        self.log_download, self.log_status = Download(), boxes.text()
        self.learn = self._button(
            "Learn",
            self._learn,
            self.log_status,
            "Read it and put the calibration that follows into the design",
        )
        self.learnt = self.list_of(panel_tables.LEARNT)
        self.learnt.hidden = True
        return boxes.card(
            "Learn from a log",
            boxes.text(_LOG),
            self.log,
            self.dropped,
            boxes.row(self.learn),
            self.log_download,
            self.log_status,
            self.learnt,
        )

    def _measurements(self) -> Part:
        """What to measure on a few nodes."""
        self.measures = Field(description="Folder", value="measure")
        self.measures.hidden = served()
        self.measures_download, self.measures_status = Download(), boxes.text()
        self.worth = self.list_of(panel_tables.TO_MEASURE)
        self.measures_job = Job(
            "Write the measurements",
            self._measures_start,
            self._measures_step,
            partial(self._show_error, self.measures_status),
        )
        return boxes.card(
            "Measure first",
            self.measures,
            self.measures_job,
            self.measures_download,
            self.measures_status,
            self.worth,
            see="Short runs for two nodes and two hours, first what narrows days and dollars most. "
            "learn.sh, which is among them, puts what they measured into the design.",
        )

    def _page(self) -> Part:
        """The report."""
        self.folder = Field(description="Folder", value="reports")
        self.folder.hidden = served()  # it goes to the reader's downloads
        self.report_download, self.report_status = Download(), boxes.text()
        self.job = Job("Render the report", self._start, self._rendered, self._ended, waits=True)
        return boxes.card(
            "Report",
            boxes.text(_PAGE),
            self.folder,
            self.job,
            self.report_download,
            self.report_status,
        )

    def _kit(self) -> Part:
        """The files that a framework starts from."""
        self.about_kit = boxes.text(_KIT)
        self.to, self.on = Drop("Framework", FRAMEWORKS), Drop("Start with", ON)
        self.kit = Field(description="Folder", value="launch")
        self.kit.hidden = served()
        self.kit_download, self.kit_status = Download(), boxes.text()
        self.files = self.list_of(panel_tables.LAUNCH_KIT)
        self.kit_job = Job(
            "Write the launch kit",
            self._kit_start,
            self._kit_step,
            partial(self._show_error, self.kit_status),
        )
        return boxes.card(
            "Launch kit",
            self.about_kit,
            self.to,
            self.on,
            self.kit,
            self.kit_job,
            self.kit_download,
            self.kit_status,
            self.files,
        )

    def _button(self, label: str, act: Callable[[], str], place: Part, tip: str) -> Button:
        return Button(label, partial(self._pressed, act, place), tip)

    def draw(self) -> None:
        self.text.value = self.now.design.to_yaml()
        tuned = self.now.tuned is not None
        for card in (self.learn_card, self.measure_card):
            card.hidden = tuned  # they speak of pre-training
        self.to.options = tuple(RECIPES) if tuned else FRAMEWORKS
        self.on.hidden = tuned  # a recipe is a script
        self.about_kit.value = _RECIPE if tuned else _KIT

    # ------------------------------------------------------------ the file
    def _pressed(self, act: Callable[[], str], place: Part) -> None:
        try:
            if done := act():
                place.value = _status(done)
        except Exception as error:  # said below the button; the desk stays as it is
            self._show_error(place, error)
            if isinstance(error, DesignError):
                self.session.refuse(error)  # and beside the inputs of the fields that are wrong

    def _show_error(self, place: Part, error: Exception | None) -> None:
        if error is None:
            return
        lines = error.lines() if isinstance(error, DesignError) else [str(error)]
        place.value = "".join(
            f"<p class='sd-fault' role='alert'>{boxes.escape(line)}</p>" for line in lines
        )

    def _use(self) -> str:
        if link.holds(self.text.value):
            return self._put(link.read(self.text.value))
        return self._put(Design.from_yaml(self.text.value, self.now.design.folder))

    def _save(self) -> str:
        design = self.now.design
        if served():
            name = f"{rendered_files.slug(design.title)}.yaml"
            self.file_download.give(name, design.to_yaml().encode())
            return "Saved to your downloads."
        path = _folder(self.path)
        design.write(path, force=path == self._saved)
        self._saved = path
        return f"Written to {path.resolve()}."

    def _load(self) -> str:
        if served():
            return self._put(Design.from_yaml(self.path.value, self.now.design.folder))
        self._saved = path = _folder(self.path)
        return self._put(Design.read(path), f"{path} is on the desk.")

    def _learn_at_once(self, field: Field) -> None:
        """A log that was chosen, or dropped on the desk."""
        if field.value:
            self._pressed(partial(self._learn_text, field.value), self.log_status)

    def _learn(self) -> str:
        """The log that the field names, or whose text it holds."""
        if served():
            return self._learn_text(self.log.value)
        return self._learn_reading(read_log(_folder(self.log)))

    def _learn_text(self, text: str) -> str:
        with tempfile.NamedTemporaryFile("w+") as dropped:
            dropped.write(text)
            dropped.flush()
            return self._learn_reading(read_log(dropped.name))

    def _learn_reading(self, reading: Reading) -> str:
        """What a log of the design's run tells: its step beside the one foretold, and a
        calibration of the machine, which the design holds from then on; it goes to whoever looks
        as a file too."""
        if reading.devices is None and not reading.collectives:
            raise DesignError(
                "the log",
                allowed="a line such as world_size ....... 64 in it",
                problem="does not say its devices",
            )
        if why := other_run(reading, self.now.design):
            raise DesignError(
                "the log", problem=f"is of another run: {why}", allowed="a log of the design's run"
            )
        earlier = self.figures
        step = of_design(reading, self.now.design)
        learned = calibration([step] if step else [], [reading])
        self.log_download.give("calibration.yaml", dump(learned).encode())
        before = band_of(self.figures, "step_s")
        done = self._put(self.now.design.change({"calibration": learned}), "")
        if done or step is None or not step.measured_s:
            return done
        self.log_status.value = _status(
            f"A step took {seconds(step.measured_s)}; {seconds(step.foretold_s)} ({before}) was "
            f"predicted, {seconds(self.figures['step_s'])} ({band_of(self.figures, 'step_s')}) is "
            "now."
        )
        self.learnt.rows = [
            [quantity(key).label, banded(earlier, key), banded(self.figures, key)]
            for key in _LEARNT
        ]
        self.learnt.hidden = False
        return ""

    def _put(self, design: Design, done: str = "On the desk.") -> str:
        if served():
            names_no_file(design, self.now.design)
        if self.session.put(design):
            return done
        refusal = self.session.refusal
        if refusal is None:
            return "Input rejected. The line at the top says why."
        return (
            " ".join(["Input rejected.", refusal.text, *(fault.text for fault in refusal.others)])
            + "."
        )

    # ------------------------------------------------------------ the report
    def _start(self) -> tuple[int, Iterator[Path | None]]:
        self.report_download.withdraw()
        self.report_status.value = _status("Rendering; the desk stays live.")
        folder = Path(tempfile.mkdtemp(prefix="scantling-page-")) if served() else None
        return rendered_files.report(self.now.design, folder or _folder(self.folder))

    def _rendered(self, page: Path | None) -> None:
        if page is not None and served():
            self.report_download.give(page.name, page.read_bytes())
            self.report_status.value = _status("Saved to your downloads.")
            shutil.rmtree(page.parent, ignore_errors=True)
        elif page is not None:
            self.report_status.value = _status(f"Written to {page}.")

    def _ended(self, error: Exception | None) -> None:
        if error is None and "Rendering" in self.report_status.value:
            self.report_status.value = _status("Cancelled; nothing was written.")
        self._show_error(self.report_status, error)

    # ------------------------------------------------------------ what to measure first
    def _measures_start(self) -> tuple[int, Iterator[Sequence[Worth] | Path]]:
        self.measures_download.withdraw()
        self.measures_status.value = _status("Weighing measurements against each other.")
        folder = Path(tempfile.mkdtemp(prefix="scantling-page-")) if served() else None
        return rendered_files.measurements(self.now.assessment, folder or _folder(self.measures))

    def _measures_step(self, step: Sequence[Worth] | Path) -> None:
        if not isinstance(step, Path):
            self.worth.rows = [worth_row(worth) for worth in step]
        elif served():
            files = {
                path.relative_to(step).as_posix(): path.read_text("utf-8")
                for path in sorted(step.rglob("*"))
                if path.is_file()
            }
            self.measures_download.give("measure.zip", _zipped(files))
            self.measures_status.value = _status("Saved to your downloads.")
            shutil.rmtree(step, ignore_errors=True)
        else:
            self.measures_status.value = _status(f"Written to {step}.")

    # ------------------------------------------------------------ the launch kit
    def _kit_start(self) -> tuple[int, Iterator[Files | Path]]:
        self.kit_download.withdraw()
        self.kit_status.value = _status("Expressing the plan.")
        self._kit_files: Files = {}
        self.files.rows = []
        if self.now.tuned is not None:
            steps, files = rendered_files.tuning_kit(
                self.now.design, self.to.value, _folder(self.kit)
            )
        else:
            steps, files = rendered_files.launch_kit(
                self.now.assessment, self.to.value, self.on.value, _folder(self.kit)
            )
        # nothing is written for a visitor
        return (1, islice(files, 1)) if served() else (steps, files)

    def _kit_step(self, step: Files | Path) -> None:
        if not isinstance(step, Path):
            self._kit_files = step
            if not served():
                return
        plan = loads(self._kit_files["plan.json"])
        gaps = [
            f"{self.to.value} cannot express {g['field']} {g['value']}: {g['instead']}; {g['cost']}"
            for g in plan.get("not_expressed") or []
        ] + list(plan.get("gaps") or [])
        if served():
            name = f"{self.to.value}-{self.on.value}.zip"
            self.kit_download.give(name, _zipped(self._kit_files))
            self.kit_status.value = _status("Saved to your downloads.")
        else:
            self.kit_status.value = _status(f"Written to {step}.")
        self.kit_status.value += boxes.lines(gaps) if gaps else ""
        self.files.rows = [
            _file_row(name, self._kit_files[name]) for name in sorted(self._kit_files)
        ]


def _file_row(name: str, text: str) -> list[Cell]:
    lines = text.count("\n")
    return [cell(name), cell(f"{lines:,}", lines)]


def _folder(field: Field) -> Path:
    return Path(os.path.expanduser(field.value))


def names_no_file(design: Design, now: Design) -> None:
    """Raises DesignError where a design that a visitor typed names a file of the server."""
    for field, named in files_of(design).items():
        if named != at(now.data(), field):
            raise DesignError(
                field,
                named,
                "the figures themselves: this page opens no file",
                problem="names a file",
            )


def _zipped(files: Files) -> bytes:
    """The files of a kit as one archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()
