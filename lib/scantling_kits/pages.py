"""A kit put together: plan.json, the framework's files, scripts, README.md and checkpoint.md."""

from dataclasses import asdict
from json import dumps

from scantling.base.json import clean
from scantling.base.units import DAY_S
from scantling.catalogue.scaling_laws import LR_LAWS, learning_rate_advice, peak_learning_rate
from scantling.plans.words import short
from scantling_site.rollout.burn_in import scale_up_tests
from scantling_site.site import site_of

from .env import environment, flags, site
from .guide import bus_rates, justification, smaller, troubles
from .ladder import expectations
from .record import SEED, norm_epsilon, picked, rotary_base
from .render import filled, render, source
from .scripts import scripts
from .state import state_bytes

SHAPE = (
    "layers",
    "hidden",
    "ffn_hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "vocab",
    "mlp",
    "attention",
    "tied_embeddings",
    "experts",
    "top_k",
    "expert_ffn_hidden",
    "shared_ffn_hidden",
    "moe_layers",
    "moe_layout",
    "mtp_layers",
    "q_lora",
    "kv_lora",
    "qk_nope",
    "qk_rope",
    "v_head_dim",
    "window",
    "windowed_layers",
    "norm_bias",
    "final_norm",
    "qk_norm",
    "position_rows",
    "qkv_bias",
    "out_bias",
    "mlp_bias",
    "head_bias",
)


def learning_rate(launch) -> tuple:
    """(peak learning rate, where it is from): the start that the design and the report name, at the
    run's tokens (20 a parameter where the design names none). Where they name none, a tenth of the
    lowest law, which the reader has to replace."""
    active = launch.params.active
    phase = launch.phase
    tokens = launch.run_tokens or 20 * active
    advice = learning_rate_advice(active, tokens, phase.optimizer, phase.from_checkpoint)
    if advice.start is not None:
        laws = ", ".join(f"{x['value']:.1e} {x['source'].split(',')[0]}" for x in advice.laws)
        return advice.start, f"the middle of published laws: {laws}"
    least = min(peak_learning_rate(active, tokens, law) for law in LR_LAWS)
    return float(f"{least / 10:.2g}"), f"a placeholder to be replaced: {advice.why}"


def constants(model) -> str:
    """Where the rotary base and the norms' epsilon come from."""
    known = model.norm_epsilon and (model.rope_base or model.position_rows)
    return "the model's own" if known else "the model's own are not known here, set them"


def shape(model) -> dict:
    """The model's dimensions as plain values."""
    return {k: getattr(model, k) for k in SHAPE} | {
        "rope_base": rotary_base(model),
        "norm_eps": norm_epsilon(model),
    }


def training(launch) -> dict:
    """What the kit's own trainers read: the plan, the job, and the arithmetic that they hold
    themselves against."""
    p = launch.plan
    job = launch.phase
    framework = launch.framework
    kept = {}
    if framework.states and p["tp"] * p["pp"] * p["ep"] == 1:
        kept = state_bytes(
            framework.states,
            p["sharding"],
            launch.shards * p["cp"],
            launch.params.total,
            precision=job.precision,
            optimizer=job.optimizer,
        )
    return picked(
        "train",
        launch=launch,
        seed=SEED,
        lr=learning_rate(launch)[0],
        peak_flops=launch.cluster.accelerator.peak_flops(job.precision),
        state_bytes={k: round(v) for k, v in kept.items()},
    )


def _json(value) -> str:
    return dumps(clean(value), indent=1, allow_nan=False) + "\n"


def programs(launch) -> tuple:
    """(the files that a run reads, name to text; what the pages for people know besides)."""
    days = launch.figures["days"]
    about = {
        "environment": environment(launch),
        "train": training(launch),
        "shape": shape(launch.model),
        "wall_s": days and days * DAY_S,
    }
    own = launch.framework.files(launch, about)
    plan = picked(
        "plan",
        launch=launch,
        params=int(launch.params.total),
        gaps=[asdict(g) for g in launch.gaps],
        variables=[v._asdict() for v in about["environment"]],
        **about,
    )
    out = {**own, **scripts(launch, about), "plan.json": _json(plan)}
    return out, about | {"plan": plan, "own": sorted(own)}


def kit(launch, rungs=()) -> dict:
    """All files of one phase's kit, name to text; `rungs` are the (name, launch plan) of its
    ladder."""
    framework = launch.framework
    out, about = programs(launch)
    burnt = {test.id: test for test in scale_up_tests(site_of(launch.assessment))}
    ladder = [expectations(*rung, burnt) for rung in rungs]
    if ladder:
        out["ladder.json"] = _json(ladder)
        out["check_ladder.py"] = source("check_ladder.py")
    known = about | {
        "launch": launch,
        "how": " ".join(filled([framework.sites.get(launch.sync, "")], launch=launch)),
        "why": justification(launch),
        "troubles": troubles(launch),
        "rates": bus_rates(launch),
        "shrink": smaller(launch),
        "site": site(launch),
        "flags": flags(launch),
        "notes": filled(
            framework.notes.values(),
            launch=launch,
            base=rotary_base(launch.model),
            epsilon=norm_epsilon(launch.model),
            constants=constants(launch.model),
        ),
        "framework": framework,
        "equivalent": framework.equivalent.format(launch=launch),
        "files": sorted(out),
        "lr_source": learning_rate(launch)[1],
        "describe": short,
        "ladder": ladder,
    }
    return {
        **out,
        "README.md": render("README.md.j2", **known),
        "checkpoint.md": render("checkpoint.md.j2", **known),
    }
