"""The tools of the server: what each takes, as a typed class, and what it answers, as plain data.

A design is the path of a file below the server's folder, the text of a design file, or its fields.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from scantling.advise import extremes
from scantling.advise.comparison import compare as side_by_side
from scantling.advise.diagnose import diagnose as likely_losses
from scantling.advise.explanation import Explanation, explain as explained
from scantling.advise.fixes import can_do, cheaper, fixes as nearest_fixes
from scantling.api import planned
from scantling.base.errors import DesignError, plain
from scantling.base.json import clean
from scantling.base.plugins import function
from scantling.design.design import Design, json_schema
from scantling.design.draft import draft
from scantling.design.unsettled import Unsettled
from scantling.plans.leaderboard import search as leaderboard
from scantling.plans.prepare import prepare
from scantling.verdict.assess import assess as assessed
from scantling.verdict.assessment import Assessment
from scantling.verdict.limits import limits
from scantling_brief.brief import read_brief as brief
from scantling_code.diff import between
from scantling_code.snapshot import state
from scantling_kits import Inexpressible, framework, kits, write
from scantling_kits.writable import refusal

from .workspace import Workspace

MOST_PLANS = 50
MOST_DESIGNS = 8
Answered = dict[str, Any]
DesignOrPath = Annotated[
    str | dict[str, Any],
    Field(
        description="a design: the path of a file below the server's folder, the YAML text of one, "
        "or its fields (model, cluster, job, constraints, plan ...; scantling://schema)"
    ),
]


class Arguments(BaseModel):
    """Arguments of a tool: none that is not named."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Brief(Arguments):
    """What is planned, in people's own words."""

    text: str = Field(
        min_length=1, max_length=10_000, description='such as "70B on 512 H100, 2T tokens, 30 days"'
    )


class OfDesign(Arguments):
    """One design."""

    design: DesignOrPath


class Assess(OfDesign):
    """A design, and how much is said of it."""

    detail: Literal["short", "full"] = Field(
        "short", description="full: every key of `scantling design --json`, some 100 kB"
    )


class Search(OfDesign):
    """A design, and how many of its plans."""

    top: int = Field(10, ge=1, le=MOST_PLANS, description="plans, the best first")
    space: Literal["coarse", "default"] = Field("default", description="plans that are looked at")


class Compare(Arguments):
    """Designs side by side."""

    designs: list[DesignOrPath] = Field(min_length=2, max_length=MOST_DESIGNS)


class Answer(OfDesign):
    """A question about a design."""

    question: Literal[
        "longest-sequence",
        "biggest-micro-batch",
        "fewest-devices",
        "earliest-finish",
        "largest-model",
        "compute-budget",
        "cheaper",
    ]
    most_devices: int | None = Field(
        None, ge=1, le=10_000_000, description="earliest-finish: no more devices than these"
    )


class Explain(OfDesign):
    """A figure of a design."""

    key: str | None = Field(
        None,
        max_length=200,
        description="a key of `design --json`, dotted: mfu, memory_bytes.total, likely.days; "
        "without one, why the plan is what it is",
    )


class Kit(OfDesign):
    """A launch kit."""

    to: str = Field(
        max_length=50,
        description="megatron, megatron-bridge, torchtitan, fsdp, deepspeed, accelerate, maxtext "
        "or ddp",
    )
    on: str = Field("torchrun", max_length=50, description="torchrun, slurm or kubernetes")
    folder: str = Field(
        max_length=1000, description="where it is written, below the server's folder; not there yet"
    )


def read_brief(given: Brief, workspace: Workspace) -> Answered:
    """Read what is planned, in people's own words, into a design: what was read from which words,
    what was assumed, and `unread`, the words that a person has to settle before anything is worked
    out."""
    reading = brief(given.text)
    design, assumed, ignored = draft(reading, None, prepare)
    return {
        "design": design.data(),
        "yaml": design.to_yaml(),
        "read": [
            {"words": one.words, "field": one.field, "value": one.value} for one in reading.read
        ],
        "ignored": [one.words for one in ignored],
        "assumed": [one.row() for one in assumed],
        "unread": [words.stated() for words in design.unread or ()],
        "question": reading.question.topic.value if reading.question else None,
    }


def assess(given: Assess, workspace: Workspace) -> Answered:
    """Assess a design: verdict, best plan, likely days and dollars, MFU, memory, goodput, each with
    its band; what limits it, the nearest changes that help, what was assumed."""
    assessment = assessed(workspace.design(given.design))
    if given.detail == "full":
        whole: Answered = function("assessment_json")(assessment)
        return whole
    return short(assessment)


def short(assessment: Assessment) -> Answered:
    """What decides, of an assessed design."""
    now = state(assessment)
    return {
        "name": now.name,
        "verdict": now.verdict,
        "met": assessment.met,
        "limits": limits(assessment),
        "plan": now.plan,
        "figures": {key: vars(figure) for key, figure in now.figures.items()},
        "likely": assessment.likely.row() if assessment.phases else None,
        "memory_bytes": assessment.memory_bytes,
        "step_breakdown_s": assessment.step_breakdown_s,
        "missed": list(now.missed),
        "assumed": [one.row() for one in assessment.assumed] if assessment.phases else [],
        "error": assessment.error,
        "nearest_fixes": nearest_fixes(assessment),
    }


def search(given: Search, workspace: Workspace) -> Answered:
    """The plans that fit a design, best first, and how many were rejected for which reason."""
    plans = leaderboard(workspace.design(given.design), given.space, None, None)
    columns = {name: list(plans[name][: given.top]) for name in plans}
    rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
    return {"plans": rows, **dict(plans.attrs)}


def compare(given: Compare, workspace: Workspace) -> Answered:
    """Set designs side by side: what was asked where it differs, plans, figures; of two also what
    each change does alone, and their interaction."""
    designs = [workspace.design(one, f"designs.{i}") for i, one in enumerate(given.designs)]
    assessments = [assessed(design) for design in designs]
    answer: Answered = side_by_side(assessments).as_dict()
    if len(designs) == 2:
        one, other = assessments
        difference = between(state(one), one, state(other), designs[1])
        answer["difference"] = difference.as_dict()
    return answer


_QUESTIONS: Mapping[str, Callable[[Design], extremes.Answer | None]] = {
    "longest-sequence": extremes.longest_sequence,
    "biggest-micro-batch": extremes.biggest_micro_batch,
    "fewest-devices": extremes.fewest_devices,
    "largest-model": extremes.largest_model,
    "compute-budget": extremes.within_budget_of_compute,
}


def answer(given: Answer, workspace: Workspace) -> Answered:
    """A direct answer about a design: longest-sequence, biggest-micro-batch, fewest-devices,
    earliest-finish, largest-model, compute-budget, cheaper. `value` is null where no choice fits
    and meets every constraint."""
    design = workspace.design(given.design)
    if given.most_devices is not None and given.question != "earliest-finish":
        raise DesignError("most_devices", given.most_devices, "the question earliest-finish")
    if given.question == "cheaper":
        now = assessed(design)
        if not now.met or now.cost_usd is None:
            raise DesignError(
                "question",
                given.question,
                "a feasible design with tokens and a price",
                problem="has nothing to compare with",
            )
        return {"question": given.question, "changes": cheaper(now)}
    if given.question == "earliest-finish":
        reply = extremes.earliest_finish(design, given.most_devices)
    else:
        reply = _QUESTIONS[given.question](design)
    return {"question": given.question, "value": None, **(reply or {})}


def fixes(given: OfDesign, workspace: Workspace) -> Answered:
    """Changes of a design that keep what is asked for, each with the verdict that it leads to,
    feasible ones first; `set` is what to put into the design."""
    assessment = assessed(workspace.design(given.design))
    return {
        "verdict": assessment.verdict,
        "limits": limits(assessment),
        "fixes": nearest_fixes(assessment),
        "can_do": can_do(assessment),
    }


def diagnose(given: OfDesign, workspace: Workspace) -> Answered:
    """The likely losses of a measured run, most likely first, and what to measure next. The design
    carries `measured` (step_s, mfu or tokens_per_s_per_device) and, best, the plan that ran."""
    try:
        return asdict(likely_losses(workspace.design(given.design)))
    except DesignError:
        raise
    except ValueError as error:
        raise DesignError("design", problem=str(error)) from None


def goodput(given: OfDesign, workspace: Workspace) -> Answered:
    """Failures, checkpoint interval, goodput and spares of a design."""
    assessment = planned(workspace.design(given.design))
    figures: Answered = {"name": assessment.resolved.name, "verdict": assessment.verdict}
    return figures | dict(function("goodput")(assessment))


def explain(given: Explain, workspace: Workspace) -> Answered:
    """What one figure of a design is made of: formula, values, source; without a key, why the plan
    is what it is."""
    reply = explained(planned(workspace.design(given.design)), given.key)
    if isinstance(reply, Explanation):
        return asdict(reply)
    return {"why": list(reply)}


def kit(given: Kit, workspace: Workspace) -> Answered:
    """Write a launch kit, the best plan as a framework's own configuration, into a new folder below
    the server's. Refused where a plan does not fit, or the run makes no sense."""
    folder = workspace.path(given.folder, "folder")
    if folder.exists():
        raise DesignError("folder", given.folder, "a folder that is not there yet")
    offers = framework(given.to, given.on).offers
    assessment = assessed(workspace.design(given.design), kit=offers)
    if not assessment.phases:
        raise DesignError("design", assessment.verdict, problem="holds no plan: see its limits")
    if why := refusal(assessment, False):
        raise DesignError("design", assessment.verdict, problem=why)
    try:
        files = kits(assessment, given.to, given.on)
    except Inexpressible as error:
        raise DesignError("to", given.to, problem=str(error)) from None
    write(files, folder)
    return {
        "folder": str(folder.relative_to(workspace.root)),
        "files": sorted(files),
        "verdict": assessment.verdict,
        "plan": assessment.plan,
    }


class Tool(NamedTuple):
    """What a tool takes and the function that answers; `writes`: whether it leaves files."""

    arguments: type[Arguments]
    function: Callable[[Any, Workspace], Answered]
    writes: bool = False


TOOLS: dict[str, Tool] = {
    "read_brief": Tool(Brief, read_brief),
    "assess": Tool(Assess, assess),
    "search": Tool(Search, search),
    "compare": Tool(Compare, compare),
    "answer": Tool(Answer, answer),
    "fixes": Tool(OfDesign, fixes),
    "diagnose": Tool(OfDesign, diagnose),
    "goodput": Tool(OfDesign, goodput),
    "explain": Tool(Explain, explain),
    "kit": Tool(Kit, kit, True),
}


def input_schema(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments. That of a design stands in `assess`, by sections; the
    others refer to the resource with the whole."""
    schema = tool.arguments.model_json_schema()
    if tool.function is assess:
        whole = json_schema()
        fields = {name: _outline(part) for name, part in whole["properties"].items()}
        design = schema["properties"]["design"]
        for form in design["anyOf"]:
            if form.get("type") == "object":
                form |= {"properties": fields, "required": whole["required"]}
    return schema


def _outline(part: Mapping[str, Any]) -> dict[str, Any]:
    """What a section of a design is for."""
    return {key: part[key] for key in ("description", "examples", "example") if key in part}


def call(name: str, arguments: Mapping[str, Any], workspace: Workspace) -> Answered:
    """The answer of a tool as plain JSON data. Raises DesignError for whatever is wrong with the
    call."""
    if name not in TOOLS:
        raise DesignError("tool", name, list(TOOLS), problem="is no tool")
    tool = TOOLS[name]
    try:
        stated = tool.arguments.model_validate(dict(arguments))
    except ValidationError as error:
        raise _wrong_argument(tool, error) from None
    answered: Answered = clean(tool.function(stated, workspace))
    return answered


def _wrong_argument(tool: Tool, error: ValidationError) -> DesignError:
    """The first fault of some arguments."""
    first = error.errors()[0]
    steps = [str(step) for step in first["loc"]]
    if first["type"] == "extra_forbidden":
        return DesignError(
            "argument", steps[0], list(tool.arguments.model_fields), problem="is no argument"
        )
    if first["type"] == "missing":
        return DesignError(
            steps[0], problem="is missing", allowed=list(tool.arguments.model_fields)
        )
    return DesignError(steps[0], first["input"], plain(first["msg"], 200))


def refused(error: DesignError) -> Answered:
    """An error as plain data: field, value, allowed, nearest, and the line that says it."""
    value = None if error.value is DesignError.MISSING else clean(_small(error.value))
    row: Answered = {
        "field": error.field,
        "value": value,
        "problem": error.problem,
        "allowed": list(error.allowed) if isinstance(error.allowed, tuple) else error.allowed,
        "nearest": None if error.nearest is None else plain(error.nearest, 200),
        "message": str(error),
    }
    if isinstance(error, Unsettled):
        row["unread"] = [words.stated() for words in error.unread]
    return {"error": row}


def _small(value: Any) -> Any:
    """A foreign value as it is where it is short, else its beginning."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    return plain(value, 200)
