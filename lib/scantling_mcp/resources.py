"""What the server lets a client read: the catalogue, the glossary, the format of a design, and the
report of a design below its folder."""

from io import StringIO
from urllib.parse import unquote

from rich.console import Console
from scantling.advise.extremes import largest_active
from scantling.base.errors import DesignError
from scantling.base.json import text as json_text
from scantling.base.plugins import function
from scantling.base.quantities.quantity import table
from scantling.base.records import record
from scantling.catalogue.listing import KINDS, listing
from scantling.cli.summary import full
from scantling.design.design import json_schema
from scantling.verdict.assess import assess
from scantling.verdict.result import Result

from .workspace import Workspace

SCHEME = "scantling://"
GLOSSARY, SCHEMA = f"{SCHEME}glossary", f"{SCHEME}schema"
CATALOGUE, REPORT = f"{SCHEME}catalogue/", f"{SCHEME}report/"
WIDTH = 120  # of a report


@record
class About:
    """What a resource is."""

    uri: str
    name: str
    description: str
    mime_type: str


def listed() -> list[About]:
    """Every resource that needs no name of a design."""
    kinds = [
        About(
            uri=f"{CATALOGUE}{kind}",
            name=f"catalogue: {kind}",
            description=f"what the catalogue holds of {kind}, with sources",
            mime_type="application/json",
        )
        for kind in KINDS
    ]
    return [
        *kinds,
        About(
            uri=GLOSSARY,
            name="glossary",
            description="every figure: label, unit, formula, convention, source",
            mime_type="text/markdown",
        ),
        About(
            uri=SCHEMA,
            name="design file",
            description="the JSON Schema of a design: every field with unit and bounds",
            mime_type="application/schema+json",
        ),
    ]


def read(uri: str, workspace: Workspace) -> tuple[str, str]:
    """(text, type) of a resource. Raises DesignError for one that there is not."""
    if uri == GLOSSARY:
        return glossary(), "text/markdown"
    if uri == SCHEMA:
        return json_text(json_schema()), "application/schema+json"
    if uri.startswith(CATALOGUE):
        return json_text(listing(uri.removeprefix(CATALOGUE))), "application/json"
    if uri.startswith(REPORT):
        return report(unquote(uri.removeprefix(REPORT)), workspace), "text/plain"
    known = [about.uri for about in listed()]
    raise DesignError("uri", uri, [*known, f"{REPORT}PATH"], problem="is no resource")


def glossary() -> str:
    """Every figure with what it means, as Markdown."""
    lines = ["# Figures", ""]
    for one in table().values():
        unit = f" [{one.unit}]" if one.unit else ""
        parts = [part for part in (one.formula, one.convention, one.source) if part]
        lines.append(f"- `{one.key}` {one.label}{unit}: {'; '.join(parts)}")
    return "\n".join(lines) + "\n"


def report(name: str, workspace: Workspace) -> str:
    """Everything that is said of the design in a file below the folder, as text."""
    assessment = assess(workspace.design(name, "uri"))
    result: Result = function("assessment_json")(assessment)
    out = StringIO()
    console = Console(file=out, width=WIDTH, markup=False, highlight=False, emoji=False)
    if assessment.phases:
        result["largest_active"] = largest_active(assessment)
        full(result, console)
    else:
        lines = [result["error"] or "", *result["limits"]]
        out.write("\n".join(lines) + "\n")
    return out.getvalue()
