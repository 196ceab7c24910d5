"""What a design says of samples, adapters and rollout, and what it leaves out: filled in by a
stated rule and listed as assumed, or asked for where no rule can know it."""

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import TypeVar

from scantling.base.errors import DesignError
from scantling.base.records import Assumed, Lines, record
from scantling.base.show import several
from scantling.catalogue.words import ADAPTED, POLICIES, Method, WeightSync
from scantling.design.design import Design
from scantling.design.methods import method_of
from scantling.design.schema import Job
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
# what says where a run ends, before what comes after it
POLICY_ENDS = ("job.rollout.steps", "job.data.samples", "job.tokens")
TUNED_ENDS = ("job.tokens", "job.data.samples")
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
    row: float  # tokens of the trainer's packed row
    dp: int | None  # replicas of the engine; None: as many as its devices hold

    @property
    def drawn(self) -> int:
        """Samples of a step."""
        return self.prompts * self.samples

    @property
    def generating(self) -> int | None:
        """Devices that generate: as stated, or those of the stated replicas; None: searched."""
        if self.devices is None and self.tp is not None and self.dp is not None:
            return self.tp * self.dp
        return self.devices


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
    job, spec = design.job, design.job.rollout or RolloutSpec()
    prompt = notes.take("job.rollout.mean_prompt", spec.mean_prompt, PROMPT, "of questions")
    longest = longest_of(job, spec, prompt, notes)
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
    tp = max(filter(None, (spec.tp, spec.ep)), default=None)
    check_replicas(spec.devices, tp, spec.dp)
    reward = reward_s(spec.reward, notes)
    prompts, samples, updates = batches_of(job, spec, notes)
    redraw = notes.take("job.rollout.redraw", spec.redraw, 1.0, "no dynamic sampling")
    return Rollout(
        engine=notes.take("job.rollout.engine", spec.engine, "vllm", "what most trainers drive"),
        prompts=prompts,
        samples=samples,
        prompt=prompt,
        response=response,
        longest=longest,
        spread=notes.take(
            "job.rollout.tail", spec.tail, k.length_spread, "fitted on published steps"
        ),
        updates=updates,
        lag=spec.lag,
        colocated=spec.colocated,
        devices=spec.devices,
        tp=tp,
        kv_fraction=spec.kv_fraction,
        narrow=1.0 if (spec.precision or "").startswith(("fp8", "mxfp8", "int8")) else 2.0,
        reference=notes.take(
            "job.rollout.reference", spec.reference, True, "a penalty on leaving the start"
        ),
        critic=notes.take(
            "job.rollout.critic", spec.critic, method is Method.PPO, "PPO has one, GRPO none"
        ),
        redraw=redraw,
        environment_s=reward + environment_s(spec, notes),
        sync=WeightSync(spec.weight_sync) if spec.weight_sync else None,
        steps=steps_of(job, spec, prompts * redraw, prompts * samples * (prompt + response), notes),
        row=max(prompt + longest, job.seq_len or 0),
        dp=spec.dp,
    )


def check_replicas(devices: int | None, tp: int | None, dp: int | None) -> None:
    """Raises DesignError where the devices of the stated replicas are not those that generate."""
    if devices is None or dp is None:
        return
    each = devices // dp if tp is None else tp
    if each * dp != devices:
        whole = f"replicas of {several(each, 'device')}" if tp else "a divisor"
        allowed = f"{whole} on the {devices:,} of job.rollout.devices"
        raise DesignError("job.rollout.dp", dp, allowed, devices // tp if tp else None)


def longest_of(job: Job, spec: RolloutSpec, prompt: float, notes: Notes) -> float:
    """Tokens at which a response is cut: as stated, else what the trainer's sequence leaves beside
    the mean prompt. Raises DesignError where that is nothing, or less than what is stated."""
    field = "job.rollout.max_response"
    if job.seq_len is None or spec.max_response is not None:
        longest = notes.length(field, spec.max_response, LONGEST, "a cap that many recipes have")
        if job.seq_len is not None and longest > job.seq_len:
            row = f"at most job.seq_len, {job.seq_len:,} tokens"
            raise DesignError(field, longest, row, job.seq_len)
        return longest
    if job.seq_len <= prompt:
        above = f"above job.rollout.mean_prompt, {prompt:,.0f} tokens"
        raise DesignError("job.seq_len", job.seq_len, above, round(2 * prompt))
    return notes.take(field, None, job.seq_len - prompt, "what job.seq_len leaves beside a prompt")


def batches_of(job: Job, spec: RolloutSpec, notes: Notes) -> tuple[int, int, int]:
    """(prompts, samples of each, updates) of a step. job.global_batch, the samples of an update,
    gives what is not stated: prompts x samples = updates x global_batch. Raises DesignError where
    whole numbers do not."""
    why, batch = "the usual one of recipes (judgement)", job.global_batch
    samples = notes.take("job.rollout.samples", spec.samples, SAMPLES, why)
    once = spec.updates or 1
    if batch is None:
        prompts = notes.take("job.rollout.prompts", spec.prompts, PROMPTS, why)
    else:
        given = max(once * batch // samples, 1)
        why = "updates x job.global_batch / samples of a prompt"
        prompts = notes.take("job.rollout.prompts", spec.prompts, given, why)
    drawn, why = prompts * samples, "one, strictly on-policy"
    if batch is not None and spec.prompts is not None:
        once, why = max(drawn // batch, 1), "prompts x samples / job.global_batch"
    updates = notes.take("job.rollout.updates", spec.updates, once, why)
    if updates > drawn:
        raise DesignError(
            "job.rollout.updates",
            updates,
            f"at most {drawn:,}, a sample each; job.rollout.steps are those of the run",
            drawn,
        )
    if batch is not None and drawn != updates * batch:
        of_step = f"{prompts:,} prompts x {samples:,} samples in {several(updates, 'update')}"
        allowed = f"samples of an update: {of_step}"
        raise DesignError("job.global_batch", batch, allowed, max(drawn // updates, 1))
    return prompts, samples, updates


def steps_of(
    job: Job, spec: RolloutSpec, step_prompts: float, step_tokens: float, notes: Notes
) -> float:
    """Steps of the run: as stated, else those that pass over the prompts of job.data, or take
    job.tokens."""
    data, field = job.data or DataSpec(), "job.rollout.steps"
    if spec.steps is None and data.samples is not None:
        passed = max(data.samples * (data.epochs or 1.0) / step_prompts, 1.0)
        return notes.take(field, None, passed, "job.data.samples x epochs / prompts of a step")
    if spec.steps is None and job.tokens is not None:
        return notes.take(field, None, max(job.tokens / step_tokens, 1.0), "job.tokens / a step's")
    return notes.take(field, spec.steps, STEPS, "a run of some hundred steps")


def without_effect(design: Design) -> Lines:
    """A line for each stated field that the answer does not read, with what it reads instead."""
    job, data, spec = design.job, design.job.data or DataSpec(), design.job.rollout or RolloutSpec()
    policy = method_of(design) in POLICIES
    ends = {
        "job.rollout.steps": spec.steps,
        "job.data.samples": data.samples,
        "job.tokens": job.tokens,
    }
    first = POLICY_ENDS if policy else TUNED_ENDS
    end = next((field for field in first if ends[field] is not None), "job.data.samples")
    ended = f"{end} says where the run ends"
    lengths = "job.data.mean_tokens says how long samples are"
    if policy:
        lengths = "job.rollout.mean_prompt and mean_response say how long samples are"
    unread = {  # field: its value, why it is not read
        "job.from_checkpoint": (job.from_checkpoint is False, "what is tuned has been trained"),
        "job.document_tokens": (job.document_tokens, lengths),
        "job.evaluation_hours": (job.evaluation_hours, "days end with the last step"),
        "job.corpus": (job.corpus, "samples are taken as they are"),
        "job.target_loss": (job.target_loss, ended),
        "job.tokens": (job.tokens if end != "job.tokens" else None, ended),
        "job.data.samples": (data.samples if end != "job.data.samples" else None, ended),
        "job.data.epochs": (data.epochs if end != "job.data.samples" else None, ended),
        "measured.mfu": (design.measured.mfu, "a measured step or rate of tokens is read"),
        "measured.memory_gb": (design.measured.memory_gb, "memory is as computed"),
        "cluster.delivery": (design.cluster.delivery, "all devices are there on the first day"),
        "prices.spot": (design.prices.spot, "the run is on devices that nobody takes back"),
    }
    if policy:
        update = "job.rollout.prompts, samples and updates say what an update takes"
        unread |= {
            "job.global_batch_tokens": (job.global_batch_tokens, update),
            "job.data.mean_tokens": (data.mean_tokens, lengths),
            "job.data.p95_tokens": (data.p95_tokens, lengths),
            "job.data.packed": (data.packed is False, "a policy's samples are packed"),
        }
    return tuple(
        f"{field}: no effect here, because {why}" for field, (value, why) in unread.items() if value
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
