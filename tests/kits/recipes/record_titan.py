"""python record_titan.py FOLDER: the configurations of torchtitan/models/*/config_registry.py below
FOLDER; python record_titan.py FILE: the `plan` of a kit's torchtitan_config.py. Both run under
stubs that remember what they are told; a line of JSON each: name, settings (dotted name -> value).
"""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PLAIN = re.compile(r"(llama3|deepseek_v3|qwen3|gpt_oss|moonlight|kimi)_?\w*")
NOT_THESE = re.compile(r".*(debug|sft|emulate|lora|vl_).*|_.*|model_registry|\w+_moe_\w*debug\w*")


class Made:
    """What a call of a stub makes: its name, its arguments, and what is set on it later. What is
    not set is empty."""

    def __init__(self, name: str, args: tuple[Any, ...] = (), values: Any = None) -> None:
        self.__dict__["_name"] = name
        self.__dict__["_args"] = args
        self.__dict__.update(values or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        child = Made("")
        self.__dict__[name] = child
        return child

    def __call__(self, *args: Any, **values: Any) -> Any:
        return Made(self._name, args, values)

    def __bool__(self) -> bool:
        return bool(self._name)

    def __contains__(self, item: object) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def append(self, value: object) -> None:
        self.__dict__.setdefault("_items", []).append(value)

    def __add__(self, other: object) -> Made:
        return self


class Name:
    """A name of a stubbed module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name(f"{self._name}.{name}")

    def __call__(self, *args: Any, **values: Any) -> Any:
        if self._name == "cast":
            return args[1]
        return Made(self._name, args, values)

    def __getitem__(self, key: object) -> Any:
        return Made(self._name, (key,))

    def __or__(self, other: object) -> Name:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return ()

    def __instancecheck__(self, instance: object) -> bool:
        return True


def with_values(made: Made, **values: Any) -> Made:
    """dataclasses.replace of what a stub made."""
    kept = {k: v for k, v in vars(made).items() if k[0] != "_"}
    return Made(made._name, made._args, kept | values)


class Stub(types.ModuleType):
    """A module all of whose names are stubs."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name(name)


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stub for every module that is not Python's own."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name.partition(".")[0] in sys.stdlib_module_names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        return Stub(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        return None


def unset(value: Any) -> bool:
    """Whether a value was only asked for."""
    return isinstance(value, Made) and not value._name and "_items" not in vars(value)


def word(value: Any) -> Any:
    """A value as JSON has it: what a call made by its name, and its converters in full."""
    if isinstance(value, Made):
        if "_items" in vars(value):
            return word(vars(value)["_items"])
        inside = {
            k: word(v) for k, v in vars(value).items() if not k.startswith("_") and not unset(v)
        }
        name = value._name.removesuffix(".Config")
        return f"{name}({', '.join(f'{k}={v}' for k, v in sorted(inside.items()))})"
    if isinstance(value, Name):
        return value._name
    if isinstance(value, (list, tuple)):
        return [word(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return type(value).__name__


SECTIONS = ("training", "parallelism", "compile", "comm", "debug", "checkpoint", "override")


def settings(config: Any) -> dict[str, Any]:
    """Dotted names of a Trainer.Config: its sections, and other parts by name."""
    out: dict[str, Any] = {}
    for name, value in vars(config).items():
        if name.startswith("_") or name == "model_spec":
            continue
        if name in SECTIONS and isinstance(value, Made):
            made = {k: v for k, v in vars(value).items() if k[0] != "_" and not unset(v)}
            out |= {f"{name}.{k}": word(v) for k, v in made.items()}
        else:
            out[name] = value._name if isinstance(value, Made) else word(value)
    return out


def walk(value: Any, depth: int = 0) -> Iterator[Made]:
    """Everything that a call was given, and what that was given."""
    if isinstance(value, Made) and depth < 20:
        yield value
        for inside in (*value._args, *vars(value).values()):
            yield from walk(inside, depth + 1)
    elif isinstance(value, (list, tuple)):
        for inside in value:
            yield from walk(inside, depth)
    elif isinstance(value, dict):
        for inside in value.values():
            yield from walk(inside, depth)


def model(spec: Any, converters: Any) -> dict[str, Any]:
    """Kernels and formats of the model: of a registry's arguments, or of a kit's builders."""
    out: dict[str, Any] = {"model.converters": word(converters or [])}
    for made in walk(spec):
        values = vars(made)
        out |= {
            f"model.{key}": word(values[key])
            for key in ("attn_backend", "non_blocking_capacity_factor", "num_mtp_layers")
            if key in values
        }
        for key in ("moe_comm_backend", "comm_backend"):
            if key in values:
                out["model.moe_comm_backend"] = word(values[key])
        if made._name == "get_attention_config":
            out["model.attn_backend"] = made._args[0]
    return out


def run(name: str, file: Path) -> types.ModuleType:
    """A module under stubs."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{file}: no module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main(where: str) -> None:
    place = Path(where)
    sys.meta_path.insert(0, Stubs())
    dataclasses.__dict__["replace"] = with_values
    if place.is_file():
        module = run("torchtitan_config", place)
        config = vars(module)["plan"]()
        spec = [vars(module)["layers"](), config.model_spec]
        row = settings(config) | model(spec, vars(module).get("CONVERTERS"))
        print(json.dumps({"recipe": "kit", "settings": row}))
        return
    for file in sorted(place.glob("torchtitan/models/*/config_registry.py")):
        package = f"torchtitan.models.{file.parent.name}"
        module = run(f"{package}.config_registry", file)
        for name, function in vars(module).items():
            here = inspect.isfunction(function) and function.__module__ == module.__name__
            if not here or not PLAIN.fullmatch(name) or NOT_THESE.fullmatch(name):
                continue
            row: dict[str, Any] = {"recipe": name, "folder": file.parent.name}
            try:
                config = function()
                spec = config.model_spec
                row["flavor"] = word((*spec._args, "?")[0])
                row["settings"] = settings(config) | model(spec, vars(spec).get("converters"))
            except Exception as error:  # noqa: BLE001   a recipe that does not run is named
                row["error"] = f"{type(error).__name__}: {error}"
            print(json.dumps(row))


if __name__ == "__main__":
    main(sys.argv[1])
