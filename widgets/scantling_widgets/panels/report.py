"""The design as a file: read it, write it, paste it; and the report of it."""
from __future__ import annotations

import os
from pathlib import Path

import ipywidgets as W
from scantling.design import Design

from .. import theme
from ..background import Job
from .base import Panel


class Report(Panel):
    title = "File and report"
    always = True

    def build(self):
        wide = W.Layout(width="100%")
        self.text = W.Textarea(description="Design file", layout=W.Layout(width="100%", height="230px"), style={"description_width": "80px"}, continuous_update=False)
        self.path = W.Text(value="my-design.yaml", description="Path", layout=wide, style={"description_width": "80px"})
        self.say = theme.text()
        use, save, load = (W.Button(description=name, tooltip=tip, layout=W.Layout(width="130px")) for name, tip in (
            ("Use this text", "Put the design that the text spells on the desk"), ("Save", "Write the design on the desk to the path"), ("Load", "Put the design at the path on the desk")))
        use.on_click(lambda _: self._try(self._use))
        save.on_click(lambda _: self._try(self._save))
        load.on_click(lambda _: self._try(self._load))
        self.folder = W.Text(value="reports", description="Folder", layout=wide, style={"description_width": "80px"})
        self.job = Job("Render the report", self._start, self._rendered, self._end)
        return [theme.side_by_side(theme.card("The design, as its file", self.text, W.HBox([use])),
                                   theme.card("Save, load, report", self.path, W.HBox([save, load]), self.folder, self.job, self.say))]

    def draw(self):
        self.text.value = self.session.now.design.to_yaml()

    def _try(self, action) -> None:
        try:
            self.say.value = f"<p>{theme.escape(action())}</p>"
        except Exception as error:                      # said beside the button that was pressed; the desk stays as it is
            self.say.value = f"<p class='sd-fault' role='alert'>{theme.escape(f'{error}')}</p>"

    def _use(self) -> str:
        design = Design.from_text(self.text.value, self.session.now.design.folder)
        return "On the desk." if self.session.put(design) else "Not taken; the line above says why."

    def _save(self) -> str:
        path = Path(os.path.expanduser(self.path.value))
        self.session.now.design.write(path, force=path == getattr(self, "_saved", None))
        self._saved = path
        return f"Written to {path}."

    def _load(self) -> str:
        path = Path(os.path.expanduser(self.path.value))
        taken = self.session.put(Design.read(path))
        self._saved = path
        return f"{path} is on the desk." if taken else "Not taken; the line above says why."

    def _start(self):
        design, folder = self.session.now.design, Path(os.path.expanduser(self.folder.value))
        return 1, render(design, folder)

    def _rendered(self, path) -> None:
        self.say.value = f"<p>Report written to {theme.escape(str(path))}.</p>"

    def _end(self, error) -> None:
        if error is not None:
            self.say.value = f"<p class='sd-fault' role='alert'>{theme.escape(str(error))}</p>"


def render(design, folder: Path):
    """Yields the path of the report of a design, once it is written."""
    import tempfile

    from ..report.run import run

    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "design.yaml"
        design.write(file)
        record, = run([file], folder, workers=1)
        if record.status != "done":
            raise RuntimeError(record.error)
        yield folder / f"{record.name}.html"
