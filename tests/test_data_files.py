"""Data files hold values, names of things in the world and prose: no code.

Every string of every YAML, CSV, JSON and TOML file that ships is looked at: as a key, as a cell, as
a text. What makes code of it is a placeholder, a format, an expression, a name of the program, a
condition or a regular expression.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ENDINGS = (".yaml", ".yml", ".csv", ".json", ".toml")
# what is emitted as it stands, and what other programs made
APART = ("templates", "labextension", "labextensions", "node_modules", "__pycache__")
CONDITIONS = {"when", "if", "unless", "then", "else", "for_each", "needs", "sums", "fills"}
FORMULAS = {("quantities.csv", "formula"), ("quantities.csv", "inputs")}  # notation for readers
# what a source prints stands there as it is printed
QUOTED = {"published_runs.csv", "published_memory.csv", "reliability.csv", "prices.csv"}

PACKAGES = {
    path.parent.name: {module.stem for module in path.parent.iterdir()}
    for path in (ROOT / "lib").glob("*/*/__init__.py")
}
PLACEHOLDER = re.compile(r"\{[A-Za-z_][\w.\[\]]*(![rsa])?(:[^{}]*)?\}|\$\{?[a-z_]\w*\}?(?![\w$])")
FORMAT = re.compile(r"%(\.\d+)?[dfsge]\b|\{?:[,+]?\.\d[fge%]\}?|\{:[^{}]*\}")
EXPRESSION = re.compile(r"=[A-Za-z_(\d.-]")
PATTERN = re.compile(
    r"\\[bdswBDSW]\b|\\[bdsw][+*?)]|\(\?[:P!=<]|\[\^|\[a-z|\[0-9|\.\*|\.\+|\)\?|\]\?|^\^|\w\$$"
)
SPACED = re.compile(r" (\*|/|\+|<|>|<=|>=|==|!=|if) ")


def findings(text: str, *, formula: bool = False) -> list[str]:
    """What of code one string holds."""
    found = []
    if PLACEHOLDER.search(text):
        found.append("placeholder")
    if FORMAT.search(text):
        found.append("format")
    if EXPRESSION.match(text):
        found.append("expression")
    if names_the_program(text):
        found.append("name of the program")
    if PATTERN.search(text):
        found.append("regular expression")
    if not formula and is_operation(text):
        found.append("operation")
    return found


def names_the_program(text: str) -> bool:
    """Whether a text holds the dotted name of a module here."""
    for name in re.findall(r"\b(?:scantling\w*\.)?([a-z_]+(?:\.[a-z_]\w*)+)\b", text):
        first, second, *more = name.split(".")
        if first in PACKAGES and second in PACKAGES[first] and (more or "scantling" in text):
            return True
    return False


def is_operation(text: str) -> bool:
    """Whether a text is Python that works something out: names joined by operators, or a call."""
    text = text.strip()
    if not re.fullmatch(r"[\w.()\[\]'\", */+<>=!-]+", text):
        return False
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return False
    nodes = list(ast.walk(tree))
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    if not names or any(name != name.lower() for name in names):  # names of things in the world
        return False
    called = isinstance(tree, ast.Call) and isinstance(tree.func, (ast.Name, ast.Attribute))
    works = (ast.BinOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Lambda)
    spaced = SPACED.search(text) and any(isinstance(node, works) for node in nodes)
    return bool(spaced) or (called and ("." in text or "," in text))


def strings(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """(where, text) of every key and text of nested data."""
    if isinstance(value, dict):
        for key, inside in value.items():
            yield f"{at}.{key}", str(key)
            yield from strings(inside, f"{at}.{key}")
    elif isinstance(value, list):
        for i, inside in enumerate(value):
            yield from strings(inside, f"{at}[{i}]")
    elif isinstance(value, str):
        yield at, value


def in_file(path: Path) -> list[str]:
    """Where a file holds code, and of which kind."""
    text = path.read_text(encoding="utf-8")
    out = []
    if path.suffix == ".csv":
        for line, row in enumerate(csv.DictReader(text.splitlines()), 2):
            for column, cell in row.items():
                formula = path.name in QUOTED or (path.name, column) in FORMULAS
                kinds = findings(cell or "", formula=formula)
                out += [f"line {line}, {column}: {kind}" for kind in kinds]
        return out
    if path.suffix == ".json":
        data = json.loads(text)
    elif path.suffix == ".toml":
        data = tomllib.loads(text)
    else:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for at, words in strings(data):
        key = at.rpartition(".")[2]
        if words == key and words in CONDITIONS:
            out.append(f"{at}: condition")
        out += [f"{at}: {kind}" for kind in findings(words)]
    return out


def data_files() -> list[Path]:
    return sorted(
        path
        for folder in ("lib", "widgets")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in ENDINGS and not {*APART} & {*path.relative_to(ROOT).parts}
    )


@pytest.mark.parametrize("path", data_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_data_files_hold_no_code(path):
    held = in_file(path)
    assert not held, "\n".join(held[:20])


CODE = {
    "placeholder": ("{e.mtbf_s} between failures", "{size:1e9|.2f} GB", "{x:share 0 +}", "$word"),
    "format": ("about %.2f s", "{:,.0f} of them", "a value as :.2f}"),
    "expression": ("=10 * step_s", "=hidden*_expand/ssm_heads", "=layers"),
    "name of the program": (
        "physics.step.rates",
        "see scantling.physics.step",
        "verdict.numbers.utilisation",
    ),
    "regular expression": (
        r"megatron(?:[\s-](?:core|lm))?",
        r"zero[-_ ]([0-9])",
        r"num_layers[= ](\d+)",
        "^fp4$",
        "granularity=selective.*",
    ),
    "operation": (
        "0.5 * ahead",
        "max(context_parts, key=context_parts.get)",
        "a >= b",
        "pipeline.in_flight('1f1b', 8, 1, 128)",
        "x if y else z",
    ),
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in CODE.items() for text in texts]
)
def test_code_is_found(kind, text):
    assert kind in findings(text)


@pytest.mark.parametrize("key", sorted(CONDITIONS))
def test_conditions_are_found(key, tmp_path):
    file = tmp_path / "rows.yaml"
    file.write_text(f"late:\n  {key}: moe\n  text: plain words\n")
    assert in_file(file) == [f".late.{key}: condition"]


@pytest.mark.parametrize(
    "text",
    (
        "h100-sxm",
        "Megatron-LM (core) and NeMo",
        "plan.tp_overlap",
        "26*(mamba2,attn+mlp)",
        "10*hyena(taps=3)",
        "https://arxiv.org/abs/2104.04473",
        "tokens/s",
        "0 materialised scores, 1 FlashAttention-1",
        "NVTE_NVFP4_DISABLE_RHT=1",
        "design.yaml",
        "costs $2.50 an hour",
        "perf_recipes/{qwen,gpt_oss}/common.py",
        "90 % of the peak",
    ),
)
def test_plain_data_is_not(text):
    assert not findings(text)
