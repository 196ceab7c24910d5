"""A table on the page: sorts in the browser, downloads as CSV, may offer an action per row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import anywidget
import traitlets
import yaml

from .livechart import module
from .theme import card
from .words import label, show


def cell(
    text: str,
    sort=None,
    mark: str = "",
    hint: str = "",
    key: str = "",
) -> dict:
    """One cell: what it says, what it sorts and downloads by, a mark (good, warn, bad), a hint, and
    the quantity it opens to."""
    out = {
        "text": text,
        "sort": text if sort is None else sort,
    }
    for name, value in (("mark", mark), ("hint", hint), ("key", key)):
        if value:
            out[name] = value
    return out


@cache
def tables() -> dict[str, dict]:
    """What tables.yaml says of each table, by name."""
    return yaml.safe_load(Path(__file__).with_name("tables.yaml").read_text(encoding="utf-8"))


def columns(
    names,
    prefix: str = "",
    *,
    left=(),
    wrap=(),
    labels: Mapping = {},
) -> list[dict]:
    """Columns called by the table of quantities, or by `labels`."""
    return [
        {
            "key": name,
            "label": labels.get(name) or label(prefix + name),
            "align": "left" if name in left else "",
            "wrap": name in wrap,
        }
        for name in names
    ]


class Table(anywidget.AnyWidget):
    """The table that tables.yaml describes under `name`: columns [{key, label, align, hint}] and
    rows of cells; `action` says what the first cell of a row does.

    explain(key, facts) -> {title, value, lines} is what a cell with a key opens to; `facts` are
    those of its row, set by `fill`.
    """

    _esm = module("sheet.js", "table.js")
    label = traitlets.Unicode("table").tag(sync=True)
    columns = traitlets.List().tag(sync=True)
    rows = traitlets.List().tag(sync=True)
    note = traitlets.Unicode("").tag(sync=True)
    empty = traitlets.Unicode("Nothing to list for this design.").tag(sync=True)
    action = traitlets.Unicode("").tag(sync=True)
    chosen = traitlets.Int(-1).tag(sync=True)
    sortable = traitlets.Bool(True).tag(sync=True)
    file_name = traitlets.Unicode("table").tag(sync=True)
    picked = traitlets.Dict(
        {
            "index": -1,
            "serial": 0,
        }
    ).tag(sync=True)
    asked = traitlets.Dict(
        {
            "key": "",
            "index": -1,
            "serial": 0,
        }
    ).tag(sync=True)
    detail = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        name: str,
        on_pick: Callable[[int], None] | None = None,
        *,
        explain: Callable | None = None,
    ):
        self.about = about = tables()[name]
        self.names, self.prefix = list(about["names"]), about.get("prefix", "")
        traits = {key: about[key] for key in self.class_trait_names() if key in about}
        super().__init__(
            file_name=name,
            columns=self.headed(self.names),
            **traits,
        )
        self._explain, self._facts = explain, ()
        self.observe(self._asked, "asked")
        if on_pick is not None:
            self.observe(lambda change: on_pick(int(change["new"]["index"])), "picked")

    def headed(
        self,
        names,
        labels: Mapping = {},
    ) -> list[dict]:
        """The columns of `names` with their heads."""
        about, own = self.about, self.about["names"]
        keys = {name: label(key) for name, key in about.get("quantities", {}).items()}
        said = {
            **keys,
            **(own if isinstance(own, Mapping) else about.get("labels", {})),
            **labels,
        }
        left, wrap = about["left"], about.get("wrap", ())
        return columns(
            names,
            self.prefix,
            left=left,
            wrap=wrap,
            labels=said,
        )

    def cells(
        self,
        record: Mapping,
        names=None,
    ) -> list[dict]:
        """The cells of one record, of all columns where no names are given."""
        about = self.about
        closed = about["left"] if "opens" not in about else set(self.names) - set(about["opens"])
        return [
            cell(show(key, value), value, key="" if name in closed else key)
            for name in names or self.names
            for key, value in ((self.quantity(name), record.get(name)),)
        ]

    def quantity(self, name: str) -> str:
        """The key of a column in the table of quantities."""
        return self.about.get("quantities", {}).get(name, self.prefix + name)

    def card(self, *more):
        """The table in a frame under its name."""
        return card(self.label, self, *more)

    def pick(self, index: int) -> None:
        """What the browser does when the user chooses a row; for scripts and tests."""
        self.picked = {
            "index": index,
            "serial": self.picked["serial"] + 1,
        }

    def fill(
        self,
        rows: list,
        facts: Sequence[Mapping] = (),
    ) -> None:
        """Put rows into the table, with the facts that the numbers of each are explained by."""
        self._facts = facts
        self.rows = rows

    def ask(
        self,
        key: str,
        index: int,
    ) -> None:
        """What the browser does when the user opens a number; for scripts and tests."""
        self.asked = {
            "key": key,
            "index": index,
            "serial": self.asked["serial"] + 1,
        }

    def _asked(self, change) -> None:
        if self._explain is not None:
            index = int(change["new"]["index"])
            facts = self._facts[index] if 0 <= index < len(self._facts) else {}
            self.detail = {
                **self._explain(change["new"]["key"], facts),
                "serial": change["new"]["serial"],
            }
