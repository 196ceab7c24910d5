"""python renamed.py OLD NEW [KIT...]: names of two releases of the frameworks, in folders of
unpacked wheels, checkouts or environments: modules, classes, functions, fields, arguments, options
of the command line, keys of YAML. Prints those that kits use and that the new release no longer
has, with the nearest new names; then how many others came and went. Without KITs one of each kind
of model and framework is written. Ends with 1 where a kit uses a name that is gone."""

from __future__ import annotations

import ast
import difflib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

OPTION = re.compile(r"--[a-z][a-z0-9-]*")
NOT_THESE = ("tests", "test", "experiments", "examples", ".git")

PACKAGES = {  # whose names a file of a kit has
    "megatron.args": "megatron/core",
    "bridge.overrides": "megatron/bridge",
    "pretrain_bridge.py": "megatron/bridge",
    "torchtitan_config.py": "torchtitan",
    "maxtext.yml": "maxtext",
    "ds_config.json": "deepspeed",
    "accelerate.yaml": "accelerate",
}


class Used(NamedTuple):
    """A name that a kit uses."""

    file: str
    name: str


PLACES = ("*/lib/python*/site-packages", "*/mcore", "*", "")  # of packages below a root


def place(root: Path, package: str) -> Path | None:
    """The folder that holds a package: the root, a wheel in it, an environment in it."""
    for pattern in PLACES:
        for folder in sorted(root.glob(pattern)) if pattern else [root]:
            if (folder / package).is_dir():
                return folder
    return None


def names_of(folder: Path, package: str) -> set[str]:
    """All names of a package below a folder."""
    out: set[str] = set()
    for file in sorted((folder / package).rglob("*")):
        parts = file.relative_to(folder).parts
        if not {*parts}.isdisjoint(NOT_THESE):
            continue
        if file.suffix == ".py":
            out.add(".".join(file.relative_to(folder).with_suffix("").parts))
            out |= {*names_of_module(file.read_text(errors="replace"))}
        if file.suffix in (".yml", ".yaml"):
            out |= {*keys(file.read_text(errors="replace"))}
    return out


def names_of_module(text: str) -> Iterator[str]:
    """Names that a module defines, and options and keys that it spells."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    yield from fields(tree, "")
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        if isinstance(node, ast.arg):
            yield node.arg
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        if isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        if isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 80:
            yield node.value


def fields(tree: ast.AST, place: str) -> Iterator[str]:
    """Fields of classes by their class: Trainer.Config.training."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from fields(node, f"{place}{node.name}.")
        elif place and isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield f"{place}{node.target.id}"


def keys(text: str) -> Iterator[str]:
    """Keys of a YAML file's first level."""
    for match in re.finditer(r"^([a-z_]\w*):", text, re.M):
        yield match[1]


def used_by(kit: Path) -> Iterator[Used]:
    """Names of a framework in the files of a kit."""
    for file in sorted(kit.iterdir()):
        if file.name == "megatron.args":
            for option in OPTION.findall(file.read_text()):
                yield Used(file.name, option)
        if file.name == "bridge.overrides":
            for line in file.read_text().splitlines():
                key, _, value = line.partition("=")
                yield Used(file.name, key.rpartition(".")[2])
                if key == "model.tp_comm_overlap_cfg":  # a name of the framework's own
                    yield Used(file.name, value.strip("'"))
        if file.name in ("maxtext.yml", "accelerate.yaml"):
            yield from (Used(file.name, key) for key in keys(file.read_text()))
        if file.name == "ds_config.json":
            yield from (Used(file.name, key) for key in inside(json.loads(file.read_text())))
        if file.name in ("torchtitan_config.py", "pretrain_bridge.py"):
            yield from (Used(file.name, name) for name in called(file.read_text()))


def inside(value: object) -> Iterator[str]:
    """Keys of a JSON object and of those in it."""
    if isinstance(value, dict):
        for key, more in value.items():
            yield key
            yield from inside(more)


def called(text: str) -> Iterator[str]:
    """Modules and names that a program imports, and arguments of what it calls."""
    tree = ast.parse(text)
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.keyword) and node.arg and node.arg not in own:
            yield node.arg
        if isinstance(node, ast.Call):
            made = ast.unparse(node.func)
            yield from (f"{made}.{word.arg}" for word in node.keywords if word.arg)


def spellings(name: str) -> set[str]:
    """How a release may spell a name: an option as the field that it sets, a module as a package;
    an option that turns something off or on as the thing itself."""
    field = name.removeprefix("--").replace("-", "_")
    bare = re.sub(r"^(no|disable|enable|use)_", "", field)
    return {name, field, bare, f"{name}.__init__", f"disable_{bare}", f"enable_{bare}"}


def gone(used: Iterable[Used], old: set[str], new: set[str]) -> Iterator[Used]:
    """Names that the old release has and the new one does not."""
    for one in sorted({*used}):
        words = spellings(one.name)
        if words & old and not words & new:
            yield one


def sample() -> Iterator[Used]:
    """Names that kits of dense models, of experts and of latent attention use."""
    sys.path.insert(0, str(Path(__file__).parent))
    sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
    import tempfile

    from corpus import DENSE, MLA, MOE, spec
    from scantling import Design, assess
    from scantling.base.errors import DesignError
    from scantling_kits import FRAMEWORKS, kits, write

    overlapped = dict(tp=4, pp=4, cp=2, vpp=5, micro_batch=1, tp_overlap="userbuffer")
    plans = (
        (DENSE, dict(tp=2, pp=2, sharding="zero1")),
        ("llama-3-70b", dict(sharding="zero1", **overlapped)),
        (DENSE, dict(tp=1, pp=1, sharding="zero3", recompute="full")),
        (MOE, dict(tp=1, pp=1, ep=8, sharding="zero3")),
        (MLA, dict(tp=1, pp=1, ep=8, sharding="zero1")),
    )
    for model, plan in plans:
        job = dict(seq_len=8192) if model == "llama-3-70b" else {}
        data = spec(model=model, plan=plan, job=job)
        assessment = assess(Design.from_data(data | {"name": "x"}))
        for to in FRAMEWORKS:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    write(kits(assessment, to), Path(folder) / "kit")
                except DesignError:
                    continue
                yield from used_by(Path(folder) / "kit")


def main(old_root: str, new_root: str, *kits: str) -> int:
    used = [one for kit in kits for one in used_by(Path(kit))] if kits else [*sample()]
    total = 0
    for package in sorted({*PACKAGES.values()}):
        before, after = place(Path(old_root), package), place(Path(new_root), package)
        if before is None or after is None:
            continue
        # options of Megatron-LM are made of what stands beside its core too
        top = "megatron" if package == "megatron/core" else package
        old, new = names_of(before, top), names_of(after, top)
        here = [one for one in used if PACKAGES[one.file] == package]
        lost = [*gone(here, old, new)]
        fresh = sorted(new - old)
        for one in lost:
            near = difflib.get_close_matches(one.name.removeprefix("--"), fresh, n=3, cutoff=0.5)
            print(f"{one.file}: {one.name} is gone; new names near it: {', '.join(near) or 'none'}")
        known = {one.name for one in here if spellings(one.name) & old}
        print(
            f"{package}: {len(known)} names of kits, {len(lost)} of them gone; all names: "
            f"{len(old - new)} went, {len(fresh)} came"
        )
        total += len(lost)
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
