"""What the server may touch: files below the folder that it was started in."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from scantling.base.errors import DesignError, plain
from scantling.base.files import read_text
from scantling.catalogue.models.hf import config_file
from scantling.design import file as design_yaml
from scantling.design.design import Design
from scantling_code.sources import companions

_INSIDE = "a path below the folder that the server was started in"


class Workspace:
    """A folder, below which files are read and, where that is asked for, written."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).resolve()

    def path(self, name: str, field: str) -> Path:
        """A path below the folder, links followed. Raises DesignError for any other."""
        if not name or not name.isprintable():
            raise DesignError(field, name, _INSIDE)
        try:
            path = (self.root / name).resolve()
            path.exists()
        except (OSError, RuntimeError) as error:  # a name too long, links in a circle
            problem = plain(getattr(error, "strerror", None) or error, 100)
            raise DesignError(field, name, _INSIDE, problem=problem) from None
        if path != self.root and not path.is_relative_to(self.root):
            raise DesignError(field, name, _INSIDE, problem="is outside it")
        return path

    def design(self, stated: str | Mapping[str, Any], field: str = "design") -> Design:
        """The design that the path of a file, the text of one or its fields say; the files that it
        names are below the folder too."""
        if isinstance(stated, Mapping):
            design_yaml.bounded(stated)
            return self._checked(dict(stated), self.root)
        if "\n" in stated or stated.lstrip().startswith("{"):
            return self._checked(design_yaml.load(stated), self.root)
        path = self.path(stated, field)
        wrong = partial(DesignError, field, stated)
        text = read_text(path, "the path of a design file", wrong=wrong)
        return self._checked(design_yaml.load(text), path.parent)

    def _checked(self, data: Any, folder: Path) -> Design:
        if isinstance(data, Mapping):
            for field, name in companions(data).items():
                path = self.path(str(folder / name), field)
                self.path(str(config_file(path)), field)  # which a link may lead out of a folder
        return Design.from_data(data, folder)
