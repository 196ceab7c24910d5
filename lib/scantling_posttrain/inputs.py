"""What a design says of samples, adapters and rollout, and what it leaves out: filled in by a
stated rule and listed as assumed, or asked for where no rule can know it."""

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import TypeVar

from scantling.base.errors import DesignError
from scantling.base.records import Assumed, record
from scantling.catalogue.words import ADAPTED, POLICIES, Method, WeightSync
from scantling.design.design import Design
from scantling.design.methods import method_of
from scantling.design.tuned import AdapterSpec, DataSpec, RewardSpec, RolloutSpec

from .adapters import RANK, Targets
from .constants import Constants

Of = TypeVar("Of")
MEAN_TOKENS = 1024.0  # of a conversation or an instruction with its answer
ROW_TOKENS = 4096  # of a packed row, the model's context where that is shorter
PACKED_SHARE = 0.99  # of a packed row that samples fill: model cards of Megatron-Bridge, 99.3 %
P95 = 1.645  # standard deviations of a normal distribution above which 5 % lie
ATTENTION = ["attention"]
PROMPTS, SAMPLES, PROMPT, LONGEST = 64, 16, 130.0, 4096.0
SHARE_OF_CAP = 0.25  # of the longest response that the mean one has
STEPS = 500.0
JUDGED = "how long does a step wait for its judge (job.rollout.reward.seconds)?"


class Notes:
    """What was assumed, and what has to be asked."""

    def __init__(self) -> None:
        self.assumed: list[Assumed] = []
        self.asks: list[str] = []
        self.guessed = False  # a length that decides the step

    def take(self, field: str, stated: Of | None, usual: Of, why: str) -> Of:
        """What is stated, else the usual value, which is listed."""
        if stated is not None:
            return stated
        self.assumed.append(Assumed(field, usual, why))
        return usual

    def length(self, field: str, stated: float | None, usual: float, why: str) -> float:
        """`take` of a length that decides the step: the interval is wider, and it is asked for."""
        if stated is None:
            self.guessed = True
            self.asks.append(f"{field}: how many tokens? {usual:,.0f} is a guess")
        return self.take(field, stated, usual, why)


@record
class Samples:
    """What a fine-tune trains on."""

    mean: float  # tokens of a sample
    longest: int  # tokens that a sequence of the trainer must hold
    filled: float  # tokens of a sequence that are no padding
    slots: int  # tokens that a sequence takes: padded, or a packed row
    document: float  # tokens that attention stays within; 0: all of the sequence
    tokens: float | None  # of the whole run
    packed: bool


@record
class Adapters:
    """The adapters of a design."""

    rank: int
    targets: Targets
    base_bits: float


@record
class Rollout:
    """The rollout of a design, without what is searched."""

    engine: str
    prompts: int
    samples: int
    prompt: float  # mean tokens
    response: float  # mean tokens
    longest: float  # tokens
    spread: float  # standard deviation of the logarithm of lengths
    updates: int
    lag: int | None  # None: whichever the layout allows
    colocated: bool | None  # None: searched
    devices: int | None
    tp: int | None
    kv_fraction: float | None
    narrow: float  # bytes of a weight of the engine's blocks
    reference: bool
    critic: bool
    redraw: float
    environment_s: float
    sync: WeightSync | None
    steps: float

    @property
    def drawn(self) -> int:
        """Samples of a step."""
        return self.prompts * self.samples


def spread_of(mean: float, p95: float | None, usual: float) -> float:
    """Standard deviation of the logarithm of log-normal lengths with a mean and a 95th percentile:
    p95 / mean = exp(1.645 s - s^2 / 2); the usual one where no percentile is stated, or none of
    these has it."""
    if p95 is None or p95 <= mean:
        return usual
    inside = P95**2 - 2 * log(p95 / mean)
    return P95 - sqrt(inside) if inside > 0 else P95


def samples_of(design: Design, context: int, notes: Notes, k: Constants) -> Samples:
    """What the design says of its samples."""
    job, data = design.job, design.job.data or DataSpec()
    mean = notes.length(
        "job.data.mean_tokens",
        data.mean_tokens,
        min(MEAN_TOKENS, job.seq_len or MEAN_TOKENS),
        "conversations and instructions have some hundred to some thousand (judgement)",
    )
    packed = notes.take(
        "job.data.packed", data.packed, True, "rows without padding, as recipes have them"
    )
    spread = spread_of(mean, data.p95_tokens, k.length_spread)
    p95 = data.p95_tokens or mean * exp(P95 * spread - spread**2 / 2)
    usual = min(ROW_TOKENS, context) if packed else round(max(p95, mean))
    why = "4,096, or the model's context where that is shorter" if packed else "the 95th percentile"
    row = notes.take("job.seq_len", job.seq_len, max(usual, 1), why)
    if mean > row:
        raise DesignError("job.data.mean_tokens", mean, f"at most job.seq_len, {row:,} tokens", row)
    padded = round(max((mean + min(p95, row)) / 2, 1))
    tokens = job.tokens
    if tokens is None and data.samples is not None:
        tokens = data.samples * mean * (data.epochs or 1.0) * (2 if is_dpo(design) else 1)
    if tokens is None:
        notes.asks.append("job.data.samples: how many samples, or how many tokens (job.tokens)?")
    return Samples(
        mean=mean,
        longest=row,
        filled=PACKED_SHARE * row if packed else min(mean, padded),
        slots=row if packed else padded,
        document=min(mean * exp(spread**2), row) if packed else 0.0,
        tokens=tokens,
        packed=packed,
    )


def is_dpo(design: Design) -> bool:
    """Whether a design trains on pairs of a preferred and a rejected answer."""
    return method_of(design) is Method.DPO


def adapters_of(design: Design, notes: Notes) -> Adapters | None:
    """The adapters of a design; None where all weights are trained. Preferences are learned by
    either; beside adapters the frozen base is the reference, with the adapters off (TRL,
    trainer/dpo_trainer.py, `null_ref_context`)."""
    method = method_of(design)
    if method not in ADAPTED and design.job.adapter is None:
        return None
    spec = design.job.adapter or AdapterSpec()
    rank = notes.take("job.adapter.rank", spec.rank, RANK, "the usual one of recipes (judgement)")
    named = notes.take(
        "job.adapter.targets", spec.targets, ATTENTION, "attention's projections, as peft has it"
    )
    usual = 4 if method is Method.QLORA else 16
    bits = notes.take("job.adapter.base_bits", spec.base_bits, usual, f"the meaning of {method}")
    return Adapters(rank=rank, targets=targets_of(named), base_bits=float(bits))


def targets_of(named: Sequence[str]) -> Targets:
    """Which projections have adapters."""
    whole = "attention" in named
    return Targets(
        qkv=float(whole or "qkv" in named),
        out=float(whole or "out" in named),
        mlp=float("mlp" in named),
        fused=0.0,
    )


def rollout_of(design: Design, notes: Notes, k: Constants) -> Rollout | None:
    """The rollout of a design; None where no policy is trained."""
    method = method_of(design)
    if method not in POLICIES:
        return None
    spec = design.job.rollout or RolloutSpec()
    longest = notes.length(
        "job.rollout.max_response", spec.max_response, LONGEST, "a cap that many recipes have"
    )
    response = notes.length(
        "job.rollout.mean_response",
        spec.mean_response,
        SHARE_OF_CAP * longest,
        "a quarter of the longest (judgement)",
    )
    if response > longest:
        raise DesignError(
            "job.rollout.mean_response", response, f"at most max_response, {longest:,.0f}", longest
        )
    reward = reward_s(spec.reward, notes)
    why = "the usual one of recipes (judgement)"
    prompts = notes.take("job.rollout.prompts", spec.prompts, PROMPTS, why)
    samples = notes.take("job.rollout.samples", spec.samples, SAMPLES, why)
    updates = notes.take("job.rollout.updates", spec.updates, 1, "one, strictly on-policy")
    if updates > prompts * samples:
        raise DesignError(
            "job.rollout.updates",
            updates,
            f"at most {prompts * samples:,}, a sample each; job.rollout.steps are those of the run",
            prompts * samples,
        )
    return Rollout(
        engine=notes.take("job.rollout.engine", spec.engine, "vllm", "what most trainers drive"),
        prompts=prompts,
        samples=samples,
        prompt=notes.take("job.rollout.mean_prompt", spec.mean_prompt, PROMPT, "of questions"),
        response=response,
        longest=longest,
        spread=notes.take(
            "job.rollout.tail", spec.tail, k.length_spread, "fitted on published steps"
        ),
        updates=updates,
        lag=spec.lag,
        colocated=spec.colocated,
        devices=spec.devices,
        tp=spec.tp,
        kv_fraction=spec.kv_fraction,
        narrow=1.0 if (spec.precision or "").startswith(("fp8", "mxfp8", "int8")) else 2.0,
        reference=notes.take(
            "job.rollout.reference", spec.reference, True, "a penalty on leaving the start"
        ),
        critic=notes.take(
            "job.rollout.critic", spec.critic, method is Method.PPO, "PPO has one, GRPO none"
        ),
        redraw=notes.take("job.rollout.redraw", spec.redraw, 1.0, "no dynamic sampling"),
        environment_s=reward + environment_s(spec, notes),
        sync=WeightSync(spec.weight_sync) if spec.weight_sync else None,
        steps=notes.take("job.rollout.steps", spec.steps, STEPS, "a run of some hundred steps"),
    )


def environment_s(spec: RolloutSpec, notes: Notes) -> float:
    """Seconds that a step waits for tools; asked where nothing is said."""
    if spec.environment_s is None:
        notes.asks.append(
            "job.rollout.environment_s: do tools or environments keep a step waiting, and how long?"
        )
    return notes.take("job.rollout.environment_s", spec.environment_s, 0.0, "none was named")


def reward_s(reward: RewardSpec | None, notes: Notes) -> float:
    """Seconds that a step waits for what judges its samples. Raises DesignError for a judge or a
    reward model of which nobody says how long it takes."""
    if reward is None or reward.kind is None:
        notes.asks.append(f"job.rollout.reward: what judges a sample, and {JUDGED}")
        notes.assumed.append(Assumed("job.rollout.reward.kind", "rule", "a program, no wait"))
        return (reward.seconds or 0.0) if reward else 0.0
    if reward.kind != "rule" and reward.seconds is None:
        raise DesignError(
            "job.rollout.reward.seconds",
            allowed="seconds that a step waits for it, measured: no rule knows another's model",
            problem=f"is missing beside the {reward.kind}",
        )
    return reward.seconds or 0.0
