"""Plain JSON data of whatever the library holds."""

from collections.abc import Mapping
from json import dumps
from math import isfinite
from typing import Any


def clean(value: Any) -> Any:
    """Plain JSON data: records, numpy and tuples become mappings, numbers and lists; what is not
    finite becomes None."""
    if hasattr(value, "as_dict"):
        value = value.as_dict()
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(k): clean(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(v) for v in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value


def text(value: Any, indent: int | None = 1) -> str:
    """`value` as strict JSON text: nan and infinity are null."""
    return dumps(clean(value), indent=indent, allow_nan=False, ensure_ascii=False)
