"""A check in the formats that continuous integration reads: JUnit XML and SARIF 2.1.0."""

from collections.abc import Sequence
from importlib.metadata import version
from json import dumps
from pathlib import Path, PurePath
from typing import Any
from xml.etree import ElementTree

from scantling.verdict.verdicts import VERDICTS

from .check import MEANS, Checked, Kind

SARIF_VERSION = "2.1.0"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def junit(results: Sequence[Checked]) -> str:
    """One test case a design; a failure for what it does not keep, an error for a wrong file."""
    failed = sum(any(f.kind != Kind.REFUSED for f in one.findings) for one in results)
    errors = sum(any(f.kind == Kind.REFUSED for f in one.findings) for one in results)
    suite = ElementTree.Element(
        "testsuite",
        name="scantling",
        tests=str(len(results)),
        failures=str(failed),
        errors=str(errors),
    )
    for one in results:
        path = PurePath(one.path)
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_xml(str(path.parent)),
            name=_xml(path.name),
            file=_xml(one.path),
        )
        for tag, wrong in (("error", True), ("failure", False)):
            findings = [f for f in one.findings if (f.kind == Kind.REFUSED) == wrong]
            if findings:
                text = "\n".join(_xml(f.text) for f in findings)
                part = ElementTree.SubElement(
                    case, tag, message=_xml(findings[0].text), type=findings[0].kind.value
                )
                part.text = text
        if one.verdict:
            out = ElementTree.SubElement(case, "system-out")
            out.text = VERDICTS[one.verdict].name
    suites = ElementTree.Element("testsuites", name="scantling check")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _xml(text: str) -> str:
    """Text without the characters that XML has no place for."""
    return "".join(c if c.isprintable() else "�" for c in text)


def sarif(results: Sequence[Checked]) -> str:
    """One result a finding, at the line of the field that it concerns."""
    kinds = list(Kind)
    findings = [
        {
            "ruleId": finding.kind.value,
            "ruleIndex": kinds.index(finding.kind),
            "level": "error",
            "message": {"text": finding.text},
            "locations": [_location(one.path, finding.field)],
        }
        for one in results
        for finding in one.findings
    ]
    rules = [{"id": kind.value, "shortDescription": {"text": MEANS[kind]}} for kind in kinds]
    driver = {"name": "scantling", "version": version("scantling"), "rules": rules}
    log = {
        "$schema": SCHEMA,
        "version": SARIF_VERSION,
        "runs": [
            {"tool": {"driver": driver}, "results": findings, "columnKind": "unicodeCodePoints"}
        ],
    }
    return dumps(log, indent=1, ensure_ascii=False) + "\n"


def _location(path: str, field: str) -> dict[str, Any]:
    artifact: dict[str, Any] = {"uri": _uri(path)}
    if not Path(path).is_absolute():
        artifact["uriBaseId"] = "%SRCROOT%"
    line = _line(path, field)
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line}}}


def _uri(path: str) -> str:
    """A path as a reference: relative where it is, its odd characters escaped."""
    file = Path(path)
    if file.is_absolute():
        return file.as_uri()
    return (Path("/") / file).as_uri().removeprefix("file:///")


def _line(path: str, field: str) -> int:
    """The line on which the last name of a field stands first, else the first."""
    name = field.rpartition(".")[2]
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines() if name else []
    except (OSError, UnicodeDecodeError):
        return 1
    for number, line in enumerate(lines, 1):
        if f"{name}:" in line:
            return number
    return 1
