"""The design as a file: read it, write it, paste it; its report; and the files that a framework
starts from."""

from __future__ import annotations

import json
import os
from pathlib import Path

import ipywidgets as W
from scantling.design.design import Design
from scantling.kits import FRAMEWORKS, ON

from .. import rendering, theme
from ..background import Job
from ..table import Table, cell
from .base import Panel

_LABEL = {"description_width": "76px"}


class Report(Panel):
    title = "File and report"
    always = True

    def build(self):
        wide = W.Layout(width="100%")
        line = lambda *items: W.HBox(
            items, layout=W.Layout(grid_gap="8px", align_items="center", flex_flow="row wrap")
        )
        dim = lambda said: theme.text(f"<p class='sd-dim'>{said}</p>")
        text = lambda name, value: W.Text(
            value=value, description=name, layout=wide, style=_LABEL, continuous_update=False
        )
        self.text = W.Textarea(
            description="Design file",
            layout=W.Layout(width="100%", height="270px"),
            continuous_update=False,
        )
        self.text.add_class("sd-code")
        self.path, self.folder, self.kit = (
            text("File", "my-design.yaml"),
            text("Folder", "reports"),
            text("Folder", "launch"),
        )
        self.say, self.said, self.kit_said = theme.text(), theme.text(), theme.text()
        use, save, load = (
            W.Button(description=name, tooltip=tip, layout=W.Layout(width="auto"))
            for name, tip in (
                ("Use this text", "Put the design that the text spells on the desk"),
                ("Save", "Write the design on the desk to the file"),
                ("Load", "Put the design of the file on the desk"),
            )
        )
        use.on_click(lambda _: self._try(self._use))
        save.on_click(lambda _: self._try(self._save))
        load.on_click(lambda _: self._try(self._load))
        self.job = Job("Render the report", self._start, self._rendered, self._ended, waits=True)
        drop = lambda name, options: W.Dropdown(
            options=list(options), description=name, style=_LABEL, layout=W.Layout(width="240px")
        )
        self.to, self.on = drop("Framework", FRAMEWORKS), drop("Start with", ON)
        self.kit_job = Job(
            "Write the launch kit",
            self._kit_start,
            self._kit_step,
            lambda error: self._told(self.kit_said, error),
        )
        self.files = Table(
            "Files of the launch kit",
            file_name="launch-kit",
            sortable=False,
            empty="Not written yet.",
            columns=[
                {"key": "file", "label": "File", "align": "left"},
                {"key": "lines", "label": "Lines"},
            ],
        )
        return [
            theme.side_by_side(
                theme.card("The design, as its file", self.text, line(use)),
                theme.stack(
                    theme.card("Save and load", self.path, line(save, load), self.say),
                    theme.card(
                        "Report",
                        dim("One HTML page that opens offline, and its notebook."),
                        self.folder,
                        self.job,
                        self.said,
                    ),
                ),
                theme.card(
                    "Launch kit",
                    dim(
                        "The plan as a framework's own configuration, with launch "
                        "script, checkpoint plan and reasons."
                    ),
                    self.to,
                    self.on,
                    self.kit,
                    self.kit_job,
                    self.kit_said,
                    self.files,
                ),
            )
        ]

    def draw(self):
        self.text.value = self.session.now.design.to_yaml()

    # ------------------------------------------------------------ the file
    def _try(self, action) -> None:
        try:
            self.say.value = f"<p role='status'>{theme.escape(action())}</p>"
        except (
            Exception
        ) as error:  # said beside the button that was pressed; the desk stays as it is
            self._told(self.say, error)

    def _told(self, where: W.HTML, error) -> None:
        if error is not None:
            where.value = f"<p class='sd-fault' role='alert'>{theme.escape(str(error))}</p>"

    def _use(self) -> str:
        design = Design.from_text(self.text.value, self.session.now.design.folder)
        return self._put(design, "On the desk.")

    def _save(self) -> str:
        path = Path(os.path.expanduser(self.path.value))
        self.session.now.design.write(path, force=path == getattr(self, "_saved", None))
        self._saved = path
        return f"Written to {path.resolve()}."

    def _load(self) -> str:
        path = Path(os.path.expanduser(self.path.value))
        self._saved, design = path, Design.read(path)
        return self._put(design, f"{path} is on the desk.")

    def _put(self, design, done: str) -> str:
        return (
            done
            if self.session.put(design)
            else (
                f"Not taken. "
                f"{self.session.refusal.text if self.session.refusal else 'The line at the top says why'}."
            )
        )

    # ------------------------------------------------------------ the report
    def _start(self):
        self.said.value = "<p role='status'>Rendering; the desk stays live.</p>"
        return rendering.report(
            self.session.now.design, Path(os.path.expanduser(self.folder.value))
        )

    def _rendered(self, page) -> None:
        if page is not None:
            self.said.value = f"<p role='status'>Written to {theme.escape(str(page))}.</p>"

    def _ended(self, error) -> None:
        if error is None and "Rendering" in self.said.value:
            self.said.value = "<p role='status'>Cancelled; nothing was written.</p>"
        self._told(self.said, error)

    # ------------------------------------------------------------ the launch kit
    def _kit_start(self):
        self.kit_said.value, self._kit_files = "<p role='status'>Expressing the plan.</p>", {}
        self.files.rows = []
        return rendering.launch_kit(
            self.session.now.result,
            self.to.value,
            self.on.value,
            Path(os.path.expanduser(self.kit.value)),
        )

    def _kit_step(self, found) -> None:
        if isinstance(found, dict):
            self._kit_files = found
            return
        gaps = json.loads(self._kit_files["plan.json"]).get("not_expressed") or []
        said = [
            f"{self.to.value} cannot express {g['field']} {g['value']}: {g['instead']}; {g['cost']}"
            for g in gaps
        ]
        self.kit_said.value = f"<p role='status'>Written to {theme.escape(str(found))}.</p>" + (
            theme.lines(said) if said else ""
        )
        self.files.rows = [
            [cell(name), cell(f"{text.count(chr(10)):,}", text.count("\n"))]
            for name, text in sorted(self._kit_files.items())
        ]
