"""The design as a file: read it, write it, paste it; its report; and the files that a framework
starts from."""

import base64
import io
import os
import shutil
import tempfile
import zipfile
from functools import partial
from itertools import islice
from json import loads
from pathlib import Path

from scantling.base.errors import DesignError
from scantling.base.quantities.table import band_in
from scantling.design.design import Design
from scantling.design.file import dump
from scantling_kits import FRAMEWORKS, ON
from scantling_logs.learning import read_log
from scantling_logs.point import of_design
from scantling_logs.site import calibration

from ...charts.parts import Field, Part
from ...report.jobs import files_of
from ...resources import served
from ...words import at, show
from .. import rendering, theme
from ..background import Job
from ..table import cell
from .base import Panel


def _status(said) -> str:
    """Markup of what has been done."""
    return f"<p role='status'>{theme.escape(str(said))}</p>"


class Report(Panel):
    title = "File and report"
    always = True
    _saved = None  # the file that stands for the design on the desk

    options = {"to": FRAMEWORKS, "on": ON}

    def begin(self):
        if served():  # no path of a visitor is opened
            self.path = Field(description="File", takes="file")
            self.log = Field(description="Log", takes="log")
        self.job = Job("Render the report", self._start, self._rendered, self._ended, waits=True)
        self.kit_job = Job(
            "Write the launch kit",
            self._kit_start,
            self._kit_step,
            partial(self._told, self.kit_said),
        )

    def draw(self):
        self.text.value = self.now.design.to_yaml()

    # ------------------------------------------------------------ the file
    def pressed(self, act) -> None:
        try:
            if done := act():
                self.say.value = _status(done)
        except Exception as error:  # said beside the button; the desk stays as it is
            self._told(self.say, error)

    def _told(self, where: Part, error) -> None:
        if error is not None:
            where.value = f"<p class='sd-fault' role='alert'>{theme.escape(str(error))}</p>"

    def _use(self) -> str:
        return self._put(Design.from_yaml(self.text.value, self.now.design.folder))

    def _save(self) -> str:
        design = self.now.design
        if served():
            self._give(self.say, f"{rendering.slug(design.title)}.yaml", design.to_yaml().encode())
            return ""
        path = _folder(self.path)
        design.write(path, force=path == self._saved)
        self._saved = path
        return f"Written to {path.resolve()}."

    def _load(self) -> str:
        if served():
            return self._put(Design.from_yaml(self.path.value, self.now.design.folder))
        self._saved = path = _folder(self.path)
        return self._put(Design.read(path), f"{path} is on the desk.")

    def _learn(self) -> str:
        """What a log of the design's run tells: its step beside the one foretold, and a
        calibration of the machine, which the design holds from then on; it goes to whoever looks
        as a file too."""
        with tempfile.NamedTemporaryFile("w+") as dropped:
            dropped.write(self.log.value)
            dropped.flush()
            reading = read_log(dropped.name if served() else _folder(self.log))
        step = of_design(reading, self.now.design)
        made = calibration([*filter(None, [step])], [reading])
        self._give(self.learnt, "calibration.yaml", dump(made).encode())
        before = band_in(self.given, "step_s")
        done = self._put(self.now.design.change({"calibration": made}), "")
        if done or step is None or not step.measured_s:
            return done
        took, foretold = (show("step_s", s) for s in (step.measured_s, step.foretold_s))
        self.learnt.value += _status(
            f"A step took {took}; {foretold} ({before}) was foretold, "
            f"{show('step_s', self.given['step_s'])} ({band_in(self.given, 'step_s')}) is now."
        )
        return ""

    def _give(self, where: Part, name: str, content: bytes) -> None:
        """A link by which a visitor of the page takes a file."""
        data, name = base64.b64encode(content).decode(), theme.escape(name)
        kind = "application/octet-stream"
        link = f"<a download='{name}' href='data:{kind};base64,{data}'>Download {name}</a>"
        where.value = f"<p role='status'>{link}</p>"

    def _put(self, design, done: str = "On the desk.") -> str:
        if served():
            names_no_file(design, self.now.design)
        if self.session.put(design):
            return done
        refusal = self.session.refusal
        return f"Input rejected. {refusal.text if refusal else 'The line at the top says why'}."

    # ------------------------------------------------------------ the report
    def _start(self):
        self.said.value = _status("Rendering; the desk stays live.")
        folder = Path(tempfile.mkdtemp(prefix="scantling-page-")) if served() else None
        return rendering.report(self.now.design, folder or _folder(self.folder))

    def _rendered(self, page) -> None:
        if page is not None and served():
            self._give(self.said, page.name, page.read_bytes())
            shutil.rmtree(page.parent, ignore_errors=True)
        elif page is not None:
            self.said.value = _status(f"Written to {page}.")

    def _ended(self, error) -> None:
        if error is None and "Rendering" in self.said.value:
            self.said.value = _status("Cancelled; nothing was written.")
        self._told(self.said, error)

    # ------------------------------------------------------------ the launch kit
    def _kit_start(self):
        self.kit_said.value, self._kit_files = _status("Expressing the plan."), {}
        self.files.rows = []
        steps, files = rendering.launch_kit(
            self.now.result, self.to.value, self.on.value, _folder(self.kit)
        )
        # nothing is written for a visitor
        return (1, islice(files, 1)) if served() else (steps, files)

    def _kit_step(self, found) -> None:
        if isinstance(found, dict):
            self._kit_files = found
            if not served():
                return
        gaps = [
            f"{self.to.value} cannot express {g['field']} {g['value']}: {g['instead']}; {g['cost']}"
            for g in loads(self._kit_files["plan.json"]).get("not_expressed") or []
        ]
        if served():
            self._give(self.kit_said, f"{self.to.value}-{self.on.value}.zip", _zipped(found))
        else:
            self.kit_said.value = _status(f"Written to {found}.")
        self.kit_said.value += theme.lines(gaps) if gaps else ""
        self.files.rows = [
            [cell(name), cell(f"{n:,}", n)]
            for name, text in sorted(self._kit_files.items())
            for n in [text.count("\n")]
        ]


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


def _zipped(files: dict[str, str]) -> bytes:
    """The files of a kit as one archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()
