"""The design as a file: read it, write it, paste it; its report; and the files that a framework
starts from."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import ipywidgets as W
from scantling.design.design import Design
from scantling.kits import FRAMEWORKS, ON

from .. import rendering, theme
from ..background import Job
from ..table import Table, cell
from .base import Panel

_ROOM = "76px"  # for the name of a field
_BUTTONS = {
    "Use this text": "Put the design that the text spells on the desk",
    "Save": "Write the design on the desk to the file",
    "Load": "Put the design of the file on the desk",
}
_PAGE = "One HTML page that opens offline, and its notebook."
_KIT = (
    "The plan as a framework's own configuration, with launch script, checkpoint plan and reasons."
)


def _field(name: str, value: str) -> W.Text:
    style, layout = {"description_width": _ROOM}, W.Layout(width="100%")
    return W.Text(
        value=value,
        description=name,
        layout=layout,
        style=style,
        continuous_update=False,
    )


def _status(said) -> str:
    """Markup of what has been done."""
    return f"<p role='status'>{theme.escape(str(said))}</p>"


class Report(Panel):
    title = "File and report"
    always = True

    def build(self):
        self.text = W.Textarea(
            description="Design file",
            layout=W.Layout(
                width="100%",
                height="270px",
            ),
            continuous_update=False,
        )
        self.text.add_class("sd-code")
        self.path, self.folder = _field("File", "my-design.yaml"), _field("Folder", "reports")
        self.kit = _field("Folder", "launch")
        self.say, self.said, self.kit_said = theme.text(), theme.text(), theme.text()
        use, save, load = (self._button(*button) for button in _BUTTONS.items())
        self.job = Job(
            "Render the report",
            self._start,
            self._rendered,
            self._ended,
            waits=True,
        )
        self.to = theme.drop(
            "Framework",
            FRAMEWORKS,
            "240px",
            _ROOM,
        )
        self.on = theme.drop(
            "Start with",
            ON,
            "240px",
            _ROOM,
        )
        told = partial(self._told, self.kit_said)
        self.kit_job = Job(
            "Write the launch kit",
            self._kit_start,
            self._kit_step,
            told,
        )
        self.files = Table("launch-kit")
        page, kit = (theme.text(f"<p class='sd-dim'>{said}</p>") for said in (_PAGE, _KIT))
        saved = theme.card(
            "Save and load",
            self.path,
            theme.row(save, load, gap="8px"),
            self.say,
        )
        report = theme.card(
            "Report",
            page,
            self.folder,
            self.job,
            self.said,
        )
        launch = (self.to, self.on, self.kit, self.kit_job, self.kit_said, self.files)
        return [
            theme.side_by_side(
                theme.card("The design, as its file", self.text, theme.row(use, gap="8px")),
                theme.stack(saved, report),
                theme.card("Launch kit", kit, *launch),
            )
        ]

    def _button(
        self,
        name: str,
        tip: str,
    ) -> W.Button:
        acts = {
            "Use this text": self._use,
            "Save": self._save,
            "Load": self._load,
        }
        return theme.button(
            name,
            partial(self._try, acts[name]),
            tip,
            width="auto",
        )

    def draw(self):
        self.text.value = self.session.now.design.to_yaml()

    # ------------------------------------------------------------ the file
    def _try(self, action) -> None:
        try:
            self.say.value = _status(action())
        except Exception as error:  # said beside the button; the desk stays as it is
            self._told(self.say, error)

    def _told(
        self,
        where: W.HTML,
        error,
    ) -> None:
        if error is not None:
            where.value = f"<p class='sd-fault' role='alert'>{theme.escape(str(error))}</p>"

    def _use(self) -> str:
        design = Design.from_text(self.text.value, self.session.now.design.folder)
        return self._put(design, "On the desk.")

    def _save(self) -> str:
        path = _folder(self.path)
        self.session.now.design.write(path, force=path == getattr(self, "_saved", None))
        self._saved = path
        return f"Written to {path.resolve()}."

    def _load(self) -> str:
        path = _folder(self.path)
        self._saved, design = path, Design.read(path)
        return self._put(design, f"{path} is on the desk.")

    def _put(
        self,
        design,
        done: str,
    ) -> str:
        if self.session.put(design):
            return done
        refusal = self.session.refusal
        return f"Not taken. {refusal.text if refusal else 'The line at the top says why'}."

    # ------------------------------------------------------------ the report
    def _start(self):
        self.said.value = _status("Rendering; the desk stays live.")
        return rendering.report(self.session.now.design, _folder(self.folder))

    def _rendered(self, page) -> None:
        if page is not None:
            self.said.value = _status(f"Written to {page}.")

    def _ended(self, error) -> None:
        if error is None and "Rendering" in self.said.value:
            self.said.value = _status("Cancelled; nothing was written.")
        self._told(self.said, error)

    # ------------------------------------------------------------ the launch kit
    def _kit_start(self):
        self.kit_said.value, self._kit_files = _status("Expressing the plan."), {}
        self.files.rows = []
        to, on = self.to.value, self.on.value
        return rendering.launch_kit(
            self.session.now.result,
            to,
            on,
            _folder(self.kit),
        )

    def _kit_step(self, found) -> None:
        if isinstance(found, dict):
            self._kit_files = found
            return
        gaps = [
            f"{self.to.value} cannot express {g['field']} {g['value']}: {g['instead']}; {g['cost']}"
            for g in json.loads(self._kit_files["plan.json"]).get("not_expressed") or []
        ]
        self.kit_said.value = _status(f"Written to {found}.") + (theme.lines(gaps) if gaps else "")
        counts = {name: text.count("\n") for name, text in sorted(self._kit_files.items())}
        self.files.rows = [[cell(name), cell(f"{n:,}", n)] for name, n in counts.items()]


def _folder(field: W.Text) -> Path:
    return Path(os.path.expanduser(field.value))
