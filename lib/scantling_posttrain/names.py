"""The catalogue's model of a name that a fine-tuning table or a recipe prints.

A fine-tuned, quantised or dated release has the shape of the model that it comes from: the words
that say so are left out of the name. A name that is still none of the catalogue's is looked up in
names.csv, whose rows say who wrote that one model has another's shape. Anything else is unknown:
no model takes another's place.
"""

import re
from functools import cache
from pathlib import Path

from scantling.base.files import csv_rows
from scantling.catalogue.models.entries import id_of

HERE = Path(__file__).parent
# what a release is called beside the model's own name: its tuning, its format, its date, its file
_RELEASE = re.compile(
    r"-(instruct|chat|base|it|hf|math|coder|sft|thinking|gptq|awq|bf16|fp16|fp8|int4|int8"
    r"|v0\.\d+|\d{4})(?=-|$)"
)
_BRACKETS = re.compile(r"\s*\([^)]*\)")
_SEPARATORS = re.compile(r"[\s_/]+")
_PUBLISHER = re.compile(r"^(meta|qwen|mistralai|google|microsoft|deepseek-ai)[-/](?=\w)")
_POINT = re.compile(r"(?<=\d)_(?=\d)")  # of a number in the name of a file


@cache
def _others() -> dict[str, str]:
    """Names of models that have the shape of one of the catalogue."""
    return {row["name"]: row["model"] for row in csv_rows(HERE / "names.csv")}


def plain_name(name: str) -> str:
    """A printed name in lower case, words joined by hyphens, without what a release adds."""
    text = _SEPARATORS.sub("-", _POINT.sub(".", _BRACKETS.sub("", name).strip().lower()))
    return _RELEASE.sub("", _RELEASE.sub("", text))


def model_id(name: str) -> str:
    """The catalogue's id of the model of a printed name; "" where no rule names one."""
    text = plain_name(name)
    for word in (name.lower(), text, _PUBLISHER.sub("", text)):
        if known := id_of(word):
            return known
        if word in _others():
            return _others()[word]
    return ""
