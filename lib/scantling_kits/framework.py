"""What a framework is to a launch kit: one record, filled from the framework's YAML file (what it
is called, what it can express, its words for the reader) and the functions of its module."""

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from functools import cache
from pathlib import Path

from scantling.base.extensions import files
from scantling.base.records import Lines, record
from scantling.base.words import yaml_of
from scantling.plans.space import Space

FOLDER = Path(__file__).parent
FUNCTIONS = ("files", "lacks", "adjust", "builds")  # of a framework's module
MERGED = ("domain", "knobs", "saves", "gaps", "notes", "sites")


@record
class Domain:
    """The values of one field of a plan that a framework has words for, the preferred first, and
    why no others."""

    values: tuple
    why: str = ""


def same_model(model):
    return model


def same_pins(pins, own, outside):
    return pins


@record
class Framework:
    """One framework that kits are written for.

    Facts of its YAML file:
    id, package, version : its name here and on the package index. file : its own configuration.
    launcher : torchrun, accelerate or python: what starts the processes.
    runtime : torch or jax. chips : vendor stacks that it runs on. space : axes of the search for
    another plan that it fixes. domain : values of a plan's field that it has words for (a field
    that is not there: all).
    states : layout of the model's states between steps ("fp32 shards", "16-bit with master"; None:
    not stated). own_trainer : the kit writes the training loop.
    transformer_engine : it is built on Transformer Engine. without_transformer_engine :
    what is said where the chip has none. reads_by_position : data are token ids, read by position.
    saves_in_background : training goes on while a checkpoint is written.
    stop : "file" a file `stop` in RUN_DIR ends the run after a checkpoint, "term" SIGTERM does, ""
    nothing saves before the end. whole : the file below RUN_DIR, as a glob, that is written last of
    a checkpoint.
    install : shell lines. data : what DATA is. log : where loss, norm and throughput appear.
    profile : how to take one. modules : its words for what `selective`
    recompute repeats. skip : how to leave out batches. keep : what becomes of old
    checkpoints. thins : a glob below RUN_DIR of the checkpoints whose oldest launch.sh removes,
    where the framework has no word for it ("": it has). rehearse : how to end after 100 steps.
    knobs : where micro_batch, recompute, offload and sharding are set, and what a plan spills
    into. made_up : the run without DATA.
    stragglers : how slow ranks are found. network_limit : what to do where gradients are exposed.
    source : the variable that names the folder of its checkout. saves : its checkpoints in words
    (format, where, resume, hand_over).
    without_data : what it does without DATA where made-up tokens are not asked for.
    command : what the launcher starts. prepare : shell lines before it. equivalent : the same by
    its own launcher, {launch...} filled in. gaps : by name, what else of model and plan it can
    lack. notes : by name, what no field of the plan says and it had to choose. sites : how several
    sites keep in step ("synchronous", "local-steps") -> what the kit sets for it; a kind that is
    not there it cannot do, "why". ordered_launch : it demands that kernels start in order.
    packs : vendor stacks on which attention stays within the documents packed into a sequence.
    blocks : words of a model's pattern that its kit builds, and its own letter for each.

    Functions of its module: files(launch, kit) its own files by name, lacks(launch, model, **plan)
    which of its gaps are there, adjust(pins, own, outside) the pins of a nearest plan,
    builds(model) the model that it trains in place of one that it cannot build.
    """

    id: str
    package: str
    version: str
    file: str
    chips: Lines
    launcher: str
    runtime: str
    own_trainer: bool
    transformer_engine: bool
    reads_by_position: bool
    saves_in_background: bool
    stop: str
    whole: str
    without_data: str
    domain: Mapping[str, Domain]
    saves: Mapping[str, str]
    install: Lines
    data: str
    log: str
    profile: str
    skip: str
    keep: str
    rehearse: str
    knobs: Mapping[str, str]
    made_up: str
    stragglers: str
    network_limit: str
    files: Callable[..., dict[str, str]]
    lacks: Callable[..., dict]
    command: str
    gaps: Mapping[str, Mapping]
    notes: Mapping[str, str]
    sites: Mapping[str, str]
    prepare: str = ""
    source: str = ""
    thins: str = ""
    equivalent: str = ""
    ordered_launch: bool = False
    packs: Lines = ()
    states: str | None = None
    modules: Mapping[str, str] = field(default_factory=dict)
    blocks: Mapping[str, str] = field(default_factory=dict)
    without_transformer_engine: str = ""
    space: Mapping[str, tuple] | None = None
    adjust: Callable[..., dict] = same_pins
    builds: Callable = same_model


def offers(framework: Framework) -> dict:
    """Axis of a plan -> the values that a framework has words for, of the axes that a search
    varies."""
    axes = {f.name for f in fields(Space)} - {"precision"}
    named = {k: d.values for k, d in framework.domain.items() if k in axes}
    return named | {k: v for k, v in (framework.space or {}).items() if k in axes}


@cache
def stated(name: str) -> dict:
    """The facts of frameworks/NAME.yaml; `like` names the file whose facts stand where it says
    nothing, and a null takes one of them away."""
    *_, path = files(FOLDER, f"frameworks/{name}.yaml")
    own = yaml_of(path)
    if "like" not in own:
        return own
    base = stated(own.pop("like"))
    for part in MERGED:
        merged = base[part] | own.get(part, {})
        own[part] = {k: v for k, v in merged.items() if v is not None}
    return {k: v for k, v in (base | own).items() if v is not None}


def framework(name: str, **functions) -> Framework:
    """The framework of frameworks/NAME.yaml with the functions of its module."""
    facts = dict(stated(name))
    facts["domain"] = {
        field: Domain(values=tuple(d["values"]), why=d["why"])
        for field, d in facts["domain"].items()
    }
    facts["space"] = {k: tuple(v) for k, v in facts.get("space", {}).items()}
    facts |= {name: tuple(facts[name]) for name in ("install", "chips")}
    return Framework(**facts, **functions)
