"""Designs by name: a file, `-` for stdin, or `git:REV:FILE`, the file as a revision of its
repository has it, with the files that it names."""

import atexit
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from scantling.base.errors import DesignError, plain
from scantling.base.files import MAX_BYTES
from scantling.catalogue.models.hf import CONFIG
from scantling.design import file as design_yaml
from scantling.design.design import Design
from scantling.design.file_or_stdin import read

GIT = "git:"
PATIENCE_S = 30  # for git to answer
_FORM = "git:REV:FILE, such as git:HEAD~1:designs/run.yaml"
_FOLDERS = ExitStack()  # of files from revisions, until the program ends
atexit.register(_FOLDERS.close)


def design_of(name: str) -> Design:
    """The design that a name says. Raises DesignError, which leads with the name."""
    try:
        if not name.startswith(GIT):
            return read(name)
        text, folder = of_revision(name)
        return Design.from_data(design_yaml.load(text), folder)
    except DesignError as error:
        raise named(error, name) from None


def named(error: DesignError, name: str) -> DesignError:
    """The error with the name of its file in front of its field."""
    start = plain(name, 200)
    if error.field.startswith(start):
        return error
    led = error.at("")
    led.field = f"{start}: {error.field}" if error.field else start
    return led


def companions(data: Mapping[str, Any]) -> dict[str, str]:
    """Dotted field -> path of each file that a design names."""
    files: dict[str, str] = {}
    model = data.get("model")
    if isinstance(model, Mapping) and isinstance(model.get("hf_config"), str):
        files["model.hf_config"] = model["hf_config"]
    if isinstance(data.get("calibration"), str):
        files["calibration"] = data["calibration"]
    return files


def of_revision(name: str) -> tuple[str, Path]:
    """The text of git:REV:FILE, a design or a lock, and a folder of its own with the companions of
    the design beside it."""
    revision, _, path = name.removeprefix(GIT).partition(":")
    if not revision or not path:
        raise DesignError("", name, _FORM, problem="names no revision and file")
    file = Path(path)
    folder = file.parent if file.parent.is_dir() else Path.cwd()
    here = str(folder)
    inside = file.name if folder == file.parent else path
    commit = _git(
        here, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
    )
    if commit is None:
        raise DesignError("", revision, "a commit, a branch or a tag", problem="is no revision")
    at = commit.decode("ascii", "replace").strip()
    prefix = _git(here, "rev-parse", "--show-prefix") or b""
    root = PurePosixPath(prefix.decode("utf-8", "replace").strip())
    text = _text(_blob(here, at, root, inside), inside)
    data = design_yaml.load(text)
    data = data.get("asked", data) if isinstance(data, Mapping) else data  # a lock's design
    copies = Path(_FOLDERS.enter_context(TemporaryDirectory(prefix="scantling-")))
    place = copies / root / PurePosixPath(inside).parent
    place.mkdir(parents=True, exist_ok=True)
    for field, companion in (companions(data) if isinstance(data, Mapping) else {}).items():
        target = (place / companion).resolve()
        if not target.is_relative_to(copies.resolve()):
            raise DesignError(field, companion, "a file of the repository", problem="is outside it")
        source = str(PurePosixPath(inside).parent / companion)
        if _git(here, "cat-file", "-t", _object(at, root, source)) == b"tree\n":
            source, target = f"{source}/{CONFIG}", target / CONFIG
        content = _blob(here, at, root, source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return text, place


def _object(commit: str, root: PurePosixPath, path: str) -> str:
    """What git calls a file of a commit, its path relative to a folder that lies at `root`."""
    steps: list[str] = []
    for step in (root / path).parts:
        if step == "..":
            if not steps:
                raise DesignError("", path, "a file of the repository", problem="is outside it")
            steps.pop()
        else:
            steps.append(step)
    return f"{commit}:{'/'.join(steps)}"


def _blob(folder: str, commit: str, root: PurePosixPath, path: str) -> bytes:
    """The bytes of a file of a commit, its path relative to `folder`, which lies at `root`."""
    blob = _object(commit, root, path)
    size = _git(folder, "cat-file", "-s", blob)
    if size is None:
        raise DesignError("", path, "a file that the revision has", problem="is not in it")
    if int(size) > MAX_BYTES:
        raise DesignError("", path, problem=f"is larger than {MAX_BYTES:,} bytes")
    content = _git(folder, "cat-file", "blob", blob)
    if content is None:
        raise DesignError("", path, "a file that the revision has", problem="is a folder in it")
    return content


def _text(content: bytes, path: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DesignError("", path, "a YAML file in UTF-8", problem="is not text") from None


def _git(folder: str, *arguments: str) -> bytes | None:
    """What git prints; None where it refuses. Raises DesignError without git or a repository."""
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments],
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise DesignError("", problem=f"git does not run ({plain(error)})", allowed=_FORM) from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode("utf-8", "replace")
    if "not a git repository" in said or "dubious ownership" in said:
        raise DesignError("", problem=f"git: {plain(said.strip(), 200)}", allowed=_FORM)
    return None
