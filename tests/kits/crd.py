"""A manifest against the published schema of its custom resource, with unknown fields refused as
`kubectl --validate=strict` does.

schemas/ holds the schemas without their descriptions: JobSet v0.9.1, the training operator v1.9.0
and the ComputeDomain of NVIDIA's driver for dynamic resources (all Apache-2.0).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jsonschema


def strict(s, top=False):
    """A structural schema as a JSON schema that forbids unknown fields."""
    s = dict(s)
    if s.pop("x-kubernetes-int-or-string", None):
        s.pop("type", None)
        s["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if "properties" in s:
        s["properties"] = {k: strict(v) for k, v in s["properties"].items()}
        if top:
            s["properties"]["metadata"] = {"type": "object"}
        if not s.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in s:
            s["additionalProperties"] = False
    for k in ("additionalProperties", "items"):
        if isinstance(s.get(k), dict):
            s[k] = strict(s[k])
    if s.pop("nullable", None) and "type" in s:
        s["type"] = [s["type"], "null"]
    return s


@cache
def schemas():
    """{(apiVersion, kind): validator}."""
    out = {}
    for file in (Path(__file__).parent / "schemas").glob("*.json"):
        d = json.loads(file.read_text())
        out[d["apiVersion"], d["kind"]] = jsonschema.Draft7Validator(strict(d["schema"], True))
    return out


def check(manifest):
    """Raise ValueError where the manifest is not what its schema allows."""
    key = manifest.get("apiVersion"), manifest.get("kind")
    if key not in schemas():
        raise ValueError(f"there is no resource {key}")
    error = next(schemas()[key].iter_errors(manifest), None)
    if error:
        raise ValueError(f"{error.json_path}: {error.message[:200]}")
