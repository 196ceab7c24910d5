"""What every report is: sections and pictures by name, in one order."""

from json import dumps

from scantling.base.displayed import Html

from ..charts.figure import Facts
from ..charts.pictures import RESULT, Picture
from .order import ORDER
from .sections.summary import REFUSAL


class Document:
    """One design's report, part by part, for a notebook to show."""

    data: Facts  # the answer as plain data

    @property
    def impossible(self) -> bool:
        """Whether no plan holds the design."""
        raise NotImplementedError

    def section(self, name: str) -> Html | None:
        """One section as HTML; None where the design gives no reason for it."""
        raise NotImplementedError

    def picture(self, name: str) -> Picture | None:
        """One figure as a static picture; None where there is nothing to draw."""
        raise NotImplementedError

    def html(self) -> str:
        """All sections and pictures in the order of the notebook, without papermill and a
        kernel."""
        parts = []
        for name in ("header", "refusal", *ORDER):
            if name.endswith("-picture"):
                picture = self.picture(name.removesuffix("-picture"))
                parts.append(picture.figure() if picture else "")
            else:
                section = self.section(name)
                parts.append(section.html if section else "")
        return "\n".join(filter(None, parts))

    def result(self) -> None:
        """Hand the answer over as data to the program that runs the notebook."""
        from IPython.display import display

        words = f"{self.data['name']}: {self.data['verdict']}"
        if self.impossible:
            words = dumps(REFUSAL)
        display({RESULT: self.data, "text/plain": words}, raw=True)
