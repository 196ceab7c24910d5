"""Every field of a design moves something, or the answer says that it has no effect, and why."""

from functools import cache
from json import dumps
from pathlib import Path

import pytest
import scantling as sc
from scantling.advise.inert import inert
from scantling.base.errors import DesignError
from scantling.catalogue import HERE
from scantling.catalogue.models.entries import build_model, models
from scantling.catalogue.models.shape import flops_per_token, parameters, shape_of
from scantling.design.design import Design
from scantling.design.fields import Kind
from scantling.design.paths import fields_at, section_at
from scantling_site import PARTS, site_of

DEEPEST = 4  # sections inside each other
# words for people, what settles a line, files, and what sc.posttrain answers
BESIDES = ("scantling", "name", "notes", "unread", "confirm", "calibration", "outputs")
POSTTRAINED = ("job.method", "job.adapter", "job.data", "job.rollout", "job.phases.0.method")
STANDS_FOR = ("cluster.scale_out.like", "cluster.accelerator.like", "stack.like", "model.like")
CLUSTER = {"accelerator": "h100-sxm", "devices": 64}
JOB = {"tokens": 5e11, "seq_len": 8192, "global_batch": 256}
MOE = {
    "model": "mixtral-8x7b",
    "stack": {"id": "megatron-core", "release": "26.08"},
    "cluster": CLUSTER | {"devices": 256},
    "job": {"tokens": 5e11, "seq_len": 4096, "global_batch": 512},
    "plan": {"tp": 2, "pp": 2, "ep": 8},
    "constraints": {"deadline_days": 90, "budget_usd": 2e7},
}
FSDP = {
    "model": "llama-3.1-8b",
    "stack": "torchtitan",
    "cluster": CLUSTER,
    "job": JOB,
    "plan": {"sharding": "hsdp"},
}
BIG = {
    "model": "llama-3.1-405b",
    "cluster": {"accelerator": "h100-sxm", "devices": 16384, "oversubscription": [1, 1.5, 3]},
    "job": {"tokens": 1.5e13, "seq_len": 8192, "global_batch": 2048},
    "plan": {"tp": 8, "pp": 16},
}
TWO_SITES = {
    "model": "llama-3.1-70b",
    "cluster": CLUSTER
    | {"devices": 1024, "sites": [{"name": "a", "devices": 512}, {"name": "b", "devices": 512}]},
    "job": {"tokens": 2e12, "global_batch": 1024, "sync": {"kind": "local-steps"}},
}
# designs of which each field is changed in turn, until something moves
BASES = (
    MOE,
    MOE | {"stack": "megatron-core", "plan": {}, "job": MOE["job"] | {"precision": "fp8"}},
    FSDP,
    FSDP
    | {
        "stack": "megatron-core",
        "job": {"tokens": 5e11, "seq_len": 131_072, "global_batch": 16},
        "plan": {"tp": 4, "cp": 8},
    },
    {
        "model": "llama-3.1-70b",
        "stack": "megatron-core",
        "cluster": CLUSTER | {"devices": 512},
        "job": {"tokens": 2e12, "global_batch": 1024},
        "plan": {"tp": 4, "pp": 4, "recompute": "selective"},
    },
    BIG,
    TWO_SITES,
    FSDP
    | {
        "job": {"phases": [JOB, {"tokens": 1e10, "seq_len": 65_536, "global_batch": 32}]},
        "plan": {},
    },
    {**MOE, "job": {"phases": [MOE["job"], MOE["job"] | {"tokens": 1e10}]}, "plan": {}},
    FSDP | {"job": {"phases": [JOB]}, "plan": {"sharding": "hsdp", "dp": 64}},
    FSDP | {"job": {"phases": [JOB]}, "plan": {"precision": "fp8"}},
    FSDP | {"prices": {"owned": {"capex_usd": 3e6}}},
    FSDP | {"prices": {"spot": {"usd_per_device_hour": 1.2, "preemptions_per_day": 0.5}}},
    {
        "model": {"like": "llama-3.1-8b", "layers": 24},
        "cluster": CLUSTER,
        "job": JOB,
        "plan": {"pp": 3, "tp": 2, "vpp": 1},
    },
    {
        "model": {"like": "llama-3.1-8b", "layers": 24},
        "cluster": CLUSTER,
        "job": {"phases": [JOB, JOB]},
    },
    FSDP | {"job": {"target_loss": 2.2, "seq_len": 8192, "global_batch_tokens": 2e6}},
    FSDP
    | {"cluster": CLUSTER | {"delivery": [{"day": 0, "devices": 32}, {"day": 30, "devices": 32}]}},
)
PHASE = "job.phases.0"
# fields that have to agree with others, which change with them
TOGETHER = {
    "cluster.delivery.0.devices": {"cluster.delivery.1.devices": 16},
    "cluster.sites.0.devices": {"cluster.sites.1.devices": 256},
    f"{PHASE}.target_loss": {f"{PHASE}.tokens": None},
    f"{PHASE}.global_batch_tokens": {f"{PHASE}.global_batch": None},
    f"{PHASE}.plan.layout": {f"{PHASE}.plan.pp": 3, f"{PHASE}.plan.tp": 2},
}
VALUES = {"cluster.delivery.0.devices": [48], "cluster.sites.0.devices": [768]}
FEW = 6  # values of a field that are tried
# models of which a field of the shape is changed, the likeliest first
SHAPES = (
    *("llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "gemma-3-4b", "qwen3-next-80b-a3b"),
    *("nemotron-3-nano-30b-a3b", "jamba-v0.1", "kimi-linear-48b-a3b", "granite-4.0-h-tiny"),
    *("llama-4-scout", "gpt-oss-20b", "qwen3.5-35b-a3b", "nemotron-3-super-120b-a12b"),
)
CONFIGS = Path(__file__).parents[1] / "published"
# shapes of their own for dimensions of blocks that no catalogue model has
MIXERS = (
    {"like": "llama-3.1-8b", "mixers": "10*shortconv(conv=3)"},
    {"like": "llama-3.1-8b", "pattern": "16*(rglru+mlp,attn+mlp)", "lru_width": 4096},
    {"like": "llama-3.1-8b", "pattern": "16*(mamba+mlp,attn+mlp)", "d_inner": 8192},
)


def leaves(path=(), depth=0):
    """Dotted path and facts of every field that holds no section."""
    for name, facts in fields_at(Design, path).items():
        below = (*path, name)
        if section_at(Design, below) is None or depth >= DEEPEST:
            yield ".".join(below), facts
            continue
        if facts.kind is Kind.LIST or name in ("sites", "delivery", "phases"):
            below = (*below, "0")
        yield from leaves(below, depth + 1)


def values(facts):
    """Other values that a field may have: its words, its examples, and numbers near these."""
    near = []
    for example in facts.examples:
        if isinstance(example, bool):
            near += [example, not example]
        elif isinstance(example, (int, float)):
            numbers = [type(example)(example * times) for times in (1, 2, 0.5, 10, 0.1)]
            low = -float("inf") if facts.low is None else facts.low
            high = float("inf") if facts.high is None else facts.high
            near += [number for number in numbers if low <= number <= high]
        elif facts.several and not isinstance(example, list):
            near.append([example])
        else:
            near.append(example)
    words = [[word] for word in facts.choices] if facts.several else [*facts.choices]
    return [*words, *near][:FEW]


def plain(value):
    """The figures of an answer: not what was given or assumed, nor names and prose."""
    left_out = ("assumed", "given", "name", "no_effect", "limits", "why")
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items() if key not in left_out}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def answer(design):
    """(assessment, figures of it and of what stands around it)."""
    one = sc.assess(design)
    figures = [plain(one.as_dict(advice=False))]
    if one.fits:
        site = site_of(one)
        figures += [plain(part(site).as_dict()) for part in PARTS.values()]
    return one, dumps(figures, sort_keys=True, default=str)


@cache
def before(i):
    """The design of a base, and its answer."""
    design = Design.from_data({"scantling": 1, "name": "x", **BASES[i]})
    return design, answer(design)[1]


def moves(path, facts):
    """Whether the field moves a figure of one of the bases, or is said to have no effect there."""
    said = False
    for i in range(len(BASES)):
        design, usual = before(i)
        for value in VALUES.get(path) or values(facts):
            try:
                changes = TOGETHER.get(path, {}) | {path: value}
                one, figures = answer(design.change(changes))
            except DesignError:
                continue
            if figures != usual:
                return True
            said = said or any(line.startswith(f"{path}: no effect") for line in inert(one))
    return said


def shaped(spec):
    """Parameters and arithmetic of a model; None where there is none."""
    try:
        model, _ = build_model(spec)
        shape = shape_of(model)
        flops = flops_per_token(shape, 8192.0)
    except DesignError:
        return None
    return str((vars(parameters(model)), vars(flops), model.attention, model.layers, shape))


@cache
def configured():
    """Models by a config, for blocks that no catalogue model has."""
    names = ("deepseek-v4-flash", "glm-5", "zamba2-2.7b", "zamba2-1.2b")
    folders = (HERE / "hf", CONFIGS / "hf-hybrid/configs", CONFIGS / "hf/configs")
    paths = [folder / f"{name}.json" for name in names for folder in folders]
    return [{"hf_config": str(path)} for path in paths if path.exists()]


EVERY = dict(leaves())
OF_DESIGNS = [
    path
    for path in EVERY
    if path.partition(".")[0] not in (*BESIDES, "model", "measured")
    and not path.startswith(POSTTRAINED)
    and path not in STANDS_FOR
]
# names, files, and the length that a job takes where it states none
NO_SHAPE = ("model.like", "model.name", "model.hf_config", "model.seq_len")
OF_MODELS = [path for path in EVERY if path.startswith("model.") and path not in NO_SHAPE]


@pytest.mark.slow
@pytest.mark.parametrize("path", OF_DESIGNS)
def test_a_field_moves_something_or_is_said_to_have_no_effect(path):
    assert moves(path, EVERY[path]), f"{path} changes nothing"


@pytest.mark.parametrize("path", OF_MODELS)
def test_a_field_of_a_model_moves_its_count_or_its_arithmetic(path):
    name = path.removeprefix("model.")
    sized = ({"size": 8e9}, {"size": 8e9, "moe": True})
    bases = [*({"like": model} for model in SHAPES), *MIXERS, *sized, *configured()]
    for base in bases:
        usual = shaped(base)
        for value in values(EVERY[path]):
            other = shaped(base | {name: value})
            if other is not None and other != usual:
                return
    pytest.fail(f"{path} changes no model")


@pytest.mark.parametrize(
    "name", ("step_s", "mfu", "tokens_per_s_per_device", "memory_gb", "goodput")
)
def test_a_measured_figure_stands_in_the_place_of_the_computed_one(name):
    design, usual = before(2)
    one = sc.assess(design)
    computed = {
        "step_s": one.step_s,
        "mfu": one.mfu,
        "tokens_per_s_per_device": one.tokens_per_s_per_device,
        "memory_gb": one.memory_bytes["total"] / 1e9,
        "goodput": one.goodput,
    }
    value = computed[name] * 0.97
    assert answer(design.change({f"measured.{name}": value}))[1] != usual


def test_a_job_without_a_length_has_that_of_its_model():
    model = {"like": "llama-3.1-8b", "seq_len": 2048}
    data = {"scantling": 1, "name": "x", "cluster": CLUSTER, "job": {"tokens": 5e11}}
    (phase,) = sc.assess(Design.from_data(data | {"model": model})).phases
    assert phase.phase.seq_len == 2048


def test_every_model_of_the_catalogue_that_is_tried_is_there():
    assert set(SHAPES) <= set(models())
