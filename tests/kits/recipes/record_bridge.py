"""python record_bridge.py FOLDER: every pre-training recipe of Megatron-Bridge below FOLDER, run
under recording stubs; prints a line of JSON each: its name, settings (dotted name -> value) and
environment.

Recipes, number formats and overlaps run as they are; everything else that they import (torch,
Megatron-Core, providers, the hub) is a stub that remembers what it is told.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import inspect
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

# what runs as it is: the recipes, and records that they are made of
REAL = re.compile(
    r"megatron(\.bridge(\.(perf_recipes|recipes|training|utils)(\..*)?)?)?$"
    r"|megatron\.bridge\.training\.(comm_overlap|mixed_precision|flex_dispatcher_backend)$"
)
RUN = ("megatron.bridge.perf_recipes", "megatron.bridge.recipes")
RUN_TRAINING = ("comm_overlap", "mixed_precision", "flex_dispatcher_backend")
PRETRAIN = re.compile(r"_pretrain_(\d+)gpu_([a-z0-9]+)_([a-z0-9_]+)_config$")


class Record:
    """An object that keeps what is set on it; what is not set is None."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def __call__(self, *args: Any, **values: Any) -> Record:
        return Record(**values)


class Word:
    """A value that only has a name: torch.bfloat16, an enum's member, a function."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name.rpartition(".")[2]

    def __getattr__(self, name: str) -> Word:
        if name.startswith("__"):
            raise AttributeError(name)
        return Word(f"{self._name}.{name}")

    def __call__(self, *args: Any, **values: Any) -> Any:
        return answer(self._name, args, values)

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return ()

    def __or__(self, other: object) -> Word:
        return self

    __ror__ = __or__

    def __getitem__(self, key: object) -> Word:
        return self

    def __hash__(self) -> int:
        return hash(self._name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word) and other._name == self._name


def answer(name: str, args: tuple[Any, ...], values: dict[str, Any]) -> Any:
    """What a stub's function returns: versions are new, decorators give the function back, a hub
    gives a provider, everything else a record of its arguments."""
    last = name.rpartition(".")[2]
    if last.startswith("is_") or last.startswith("has_"):
        return True
    if last == "load_quantization_recipe":
        return Word(str(args[0] if args else last))
    if len(args) == 1 and inspect.isfunction(args[0]):
        return args[0]
    if "ConfigContainer" in last:
        return Container(**values)
    return Provider(**values)


class Provider(Record):
    """A record whose methods give records: AutoBridge, providers of models."""

    def to_megatron_provider(self, *args: Any, **values: Any) -> Record:
        return Provider()

    def to_megatron_model_config(self, *args: Any, **values: Any) -> Record:
        return Provider()

    def get_model_config(self, *args: Any, **values: Any) -> Record:  # after 0.6.2
        return Provider()

    def finalize(self) -> None:
        return None


SECTIONS = "model train optimizer scheduler ddp dataset checkpoint dist rng validation logger "
SECTIONS += "tokenizer mixed_precision comm_overlap rerun_state_machine profiling straggler"


class Container(Record):
    """A ConfigContainer: sections that are not given are empty records."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        for name in SECTIONS.split():
            self.__dict__.setdefault(name, Provider())


class Stub(types.ModuleType):
    """A module all of whose names are words."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Word(f"{self.__name__}.{name}")


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stub for every module that does not run as it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        top = name.partition(".")[0]
        if name in ("megatron", "megatron.bridge", "megatron.bridge.training"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        runs = name.startswith(RUN) or (
            name.startswith("megatron.bridge.training.") and name.rpartition(".")[2] in RUN_TRAINING
        )
        if runs:
            return None
        if top not in sys.stdlib_module_names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        module = Stub(spec.name)
        if spec.name in ("megatron", "megatron.bridge", "megatron.bridge.training"):
            module.__path__ = [str(self.folder / spec.name.replace(".", "/"))]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        return None


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple, set)):
        return [plain(x) for x in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Word):
        return repr(value)
    if hasattr(value, "value") and not isinstance(value, Record):
        return plain(value.value)
    if hasattr(value, "__dict__"):
        return {k: plain(v) for k, v in vars(value).items() if not k.startswith("_")}
    return str(value)


def recipes(folder: Path) -> dict[str, Any]:
    """Functions of pre-training recipes by name."""
    found = {}
    for file in sorted((folder / "megatron/bridge/perf_recipes").rglob("*.py")):
        name = ".".join(file.relative_to(folder).with_suffix("").parts)
        if file.stem == "__init__":
            continue
        module = importlib.import_module(name)
        for key, value in vars(module).items():
            if PRETRAIN.search(key) and inspect.isfunction(value) and value.__module__ == name:
                found[key] = value
    return found


def root_of(folder: Path) -> Path:
    """The folder that holds `megatron/bridge/perf_recipes`."""
    for place in (folder, folder / "src"):
        if (place / "megatron/bridge/perf_recipes").is_dir():
            return place
    raise SystemExit(f"{folder}: no megatron/bridge/perf_recipes in it")


PRESETS = (
    "bf16_mixed",
    "fp16_mixed",
    "bf16_with_fp8_delayed_scaling_mixed",
    "bf16_with_fp8_current_scaling_mixed",
    "bf16_with_fp8_subchannel_scaling_mixed",
    "bf16_with_mxfp8_mixed",
    "bf16_with_nvfp4_mixed",
)


def base() -> dict[str, Any]:
    """What a kit's script starts from: the common recipe, the presets of number formats, the sizes
    of user buffers by name."""
    common = importlib.import_module("megatron.bridge.recipes.common")
    formats = importlib.import_module("megatron.bridge.training.mixed_precision")
    overlap = importlib.import_module("megatron.bridge.training.comm_overlap")
    return {
        "base": {
            section: plain(value) for section, value in vars(common._pretrain_common()).items()
        },
        "presets": {name: plain(vars(formats)[name]()) for name in PRESETS},
        "user_buffers": {
            name: plain(value)
            for name, value in vars(overlap).items()
            if name.startswith("userbuffers_")
        },
    }


def main(folder: str) -> None:
    root = root_of(Path(folder))
    sys.meta_path.insert(0, Stubs(root))
    print(json.dumps(base()))
    for name, recipe in recipes(root).items():
        row: dict[str, Any] = {"recipe": name}
        try:
            cfg = recipe()
            row |= {
                "settings": {
                    section: plain(value)
                    for section, value in vars(cfg).items()
                    if section != "env_vars"
                },
                "env": plain(getattr(cfg, "env_vars", {}) or {}),
            }
        except Exception as error:  # noqa: BLE001   a recipe that does not run is named, not hidden
            row["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(row))


if __name__ == "__main__":
    main(sys.argv[1])
