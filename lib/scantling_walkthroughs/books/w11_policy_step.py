"""A policy step: what generation, training and the weights between them take, and on which devices
each should stand."""

from functools import cached_property

from scantling.base import show
from scantling.catalogue.hardware import Accelerator
from scantling.catalogue.models.entries import model
from scantling.catalogue.models.shape import Model, parameters, shape_of
from scantling.design.design import Design
from scantling.design.methods import untuned
from scantling.plans.prepare import prepare
from scantling_posttrain.answering import posttrain
from scantling_posttrain.posttrained import Posttrained, RolloutRow

from ..measured import Total, published
from ..question import KEPT, SENT, WORK, Choice, Explain, Number, Option, Point, Slip, Walkthrough


class Facts:
    """The numbers of the book, each worked out when it is first asked for, with its unit."""

    devices = 64  # devices
    prompts = 64  # prompts
    samples = 32  # samples
    prompt = 110  # tokens
    response = 3252  # tokens
    longest = 4096  # tokens
    updates = 4  # updates
    engine_tp = 4  # devices
    fraction = 0.8  # share
    steps = 500  # steps
    width = 2  # bytes
    # tried: devices that generate
    fewer = 16  # devices

    @cached_property
    def design(self) -> Design:
        return Design.from_data(
            {
                "model": "qwen3-32b",
                "cluster": {"accelerator": "h100-sxm", "devices": self.devices},
                "job": {
                    "method": "grpo",
                    "precision": "bf16",
                    "rollout": {
                        "devices": self.devices // 2,
                        "colocated": False,
                        "tp": self.engine_tp,
                        "prompts": self.prompts,
                        "samples": self.samples,
                        "mean_prompt": self.prompt,
                        "mean_response": self.response,
                        "max_response": self.longest,
                        "lag": 1,
                        "updates": self.updates,
                        "kv_fraction": self.fraction,
                        "steps": self.steps,
                        "reward": {"kind": "rule"},
                        "environment_s": 0,
                    },
                },
                "plan": {
                    **{"tp": 4, "pp": 4, "vpp": 1, "cp": 1, "micro_batch": 1},
                    **{"sharding": "zero1", "recompute": "none"},
                },
                "stack": "megatron-core",
            }
        )

    @cached_property
    def answer(self) -> Posttrained:
        return posttrain(self.design)

    @cached_property
    def moved(self) -> Posttrained:
        """With fewer devices that generate and more that train."""
        return posttrain(self.design.change({"job.rollout.devices": self.fewer}))

    @cached_property
    def shared(self) -> Posttrained:
        """On devices that both use, one after the other."""
        return posttrain(
            self.design.change(
                {
                    "job.rollout.devices": None,
                    "job.rollout.colocated": True,
                    "job.rollout.lag": None,
                    "job.rollout.kv_fraction": None,
                }
            )
        )

    @cached_property
    def rollout(self) -> RolloutRow:
        found = self.answer.rollout
        if found is None:
            raise ValueError("a policy has a rollout")
        return found

    @cached_property
    def printed(self) -> Total:
        return published("nemo-rl-qwen3-32b-step")

    @cached_property
    def model(self) -> Model:
        return model("qwen3-32b")

    @cached_property
    def chip(self) -> Accelerator:
        return prepare(untuned(self.design)).cluster.accelerator

    @cached_property
    def half(self) -> int:  # devices
        return self.devices // 2

    @cached_property
    def replicas(self) -> int:  # replicas
        return self.half // self.engine_tp

    @cached_property
    def drawn(self) -> int:  # samples
        return self.prompts * self.samples

    @cached_property
    def each(self) -> float:  # samples
        return self.drawn / self.replicas

    @cached_property
    def tokens(self) -> float:  # tokens
        return self.drawn * (self.prompt + self.response)

    @cached_property
    def params(self) -> float:  # parameters
        return float(parameters(shape_of(self.model)).total)

    @cached_property
    def update_flop(self) -> float:  # FLOP
        return 6 * self.params * self.tokens

    @cached_property
    def kv_bytes(self) -> float:  # bytes
        return 2 * self.width * self.model.layers * self.model.kv_heads * self.model.head_dim

    @cached_property
    def all_heads_bytes(self) -> float:  # bytes
        return self.kv_bytes * self.model.heads / self.model.kv_heads

    @cached_property
    def weights_bytes(self) -> float:  # bytes
        return self.width * self.params

    @cached_property
    def usable_bytes(self) -> float:  # bytes
        return self.answer.memory_bytes["capacity"]

    @cached_property
    def room_bytes(self) -> float:  # bytes
        return self.fraction * self.usable_bytes * self.engine_tp - self.weights_bytes

    @cached_property
    def length(self) -> float:  # tokens
        return self.prompt + self.response

    @cached_property
    def running(self) -> float:  # samples
        return self.room_bytes / (self.kv_bytes * self.length)

    @cached_property
    def read_s(self) -> float:  # s
        return self.weights_bytes / (self.engine_tp * self.chip.hbm_bytes_per_s)

    @cached_property
    def generation_s(self) -> float:  # s
        return self.answer.phases_s["rollout_s"]

    @cached_property
    def sync_s(self) -> float:  # s
        return self.answer.phases_s["weight_sync_s"]

    @cached_property
    def engine_s(self) -> float:  # s
        return self.generation_s + self.sync_s

    @cached_property
    def trainer_s(self) -> float:  # s
        times = self.answer.phases_s
        return sum(times.values()) - times["rollout_s"]

    @cached_property
    def train_s(self) -> float:  # s
        return self.trainer_s - self.sync_s

    @cached_property
    def step_s(self) -> float:  # s
        return self.answer.step_s or 0.0

    @cached_property
    def sum_s(self) -> float:  # s
        return self.generation_s + self.trainer_s

    @cached_property
    def moved_s(self) -> float:  # s
        return self.moved.step_s or 0.0

    @cached_property
    def shared_s(self) -> float:  # s
        return self.shared.step_s or 0.0

    @cached_property
    def goodput(self) -> float:  # share
        return self.answer.goodput or 1.0

    @cached_property
    def run_hours(self) -> float:  # h
        return self.steps * self.step_s / self.goodput / 3600

    @cached_property
    def high_hours(self) -> float:  # h
        return self.run_hours * (self.answer.step_s_high or 0.0) / self.step_s

    @cached_property
    def idle(self) -> float:
        """Share of a step that the engine stands idle beside the trainer."""
        return 1 - self.engine_s / self.step_s

    @cached_property
    def shared_hours(self) -> float:  # h
        return self.steps * self.shared_s / (self.shared.goodput or 1.0) / 3600

    @cached_property
    def shared_high_hours(self) -> float:  # h
        return self.shared_hours * (self.shared.step_s_high or 0.0) / self.shared_s

    @cached_property
    def states_bytes(self) -> float:  # bytes
        return 12 * self.params


# ---------------------------------------------------------------- questions


def scope_question(f: Facts) -> Explain:
    return Explain(
        id="scope",
        axis="scope",
        level="senior",
        minutes=4,
        ask=(
            "Before you size a step of a policy: what do you have to know that a pre-training run "
            "never asked? Four or five lines."
        ),
        points=(
            Point(
                says="lengths of responses: mean, tail, and where they are cut",
                words=(r"\b(length|long|tail|cap|tokens of a response|distribution)",),
            ),
            Point(
                says="prompts, samples of each, and updates on them",
                words=(r"\b(prompts?|samples?|group|updates?|mini-?batch)",),
            ),
            Point(
                says="what judges a sample, and how long it takes",
                words=(r"\b(reward|judge|tool|environment|verif)",),
            ),
            Point(
                says="which models are there: reference, critic",
                words=(r"\b(reference|critic|value model|frozen)",),
            ),
            Point(
                says="how old samples may be, and whether devices are shared",
                words=(r"\b(old|lag|off-policy|on-policy|async|shared?|colocat|split)",),
            ),
        ),
        model=(
            "How long are responses, in the mean and in the tail, and where are they cut? How "
            "many prompts, how many samples of each, how many updates on them? What judges a "
            "sample, and does a step wait for it? Is there a reference or a critic? May samples be "
            "a step old, and do engine and trainer share devices?"
        ),
        hints=(
            "The data are made in the step.",
            "Somebody has to judge them.",
            "More than one model may be there.",
        ),
        worked=(
            "Lengths with their tail, prompts and samples and updates, judge and tools, reference "
            "and critic, age of samples and who stands where. Lengths decide most and are printed "
            "least."
        ),
        takeaway="A policy makes its data: ask for their lengths before anything else.",
    )


def tokens_question(f: Facts) -> Number:
    return Number(
        id="tokens",
        axis="size",
        level="mid",
        ask=(
            f"A step draws {f.samples} samples for each of {f.prompts} prompts; a prompt has "
            f"{f.prompt} tokens and a response {f.response:,} in the mean. How many tokens does "
            "the trainer see in a step?"
        ),
        expected=f.tokens,
        unit="tokens",
        slips=(
            Slip(value=f.prompts * (f.prompt + f.response), says="That is one sample a prompt."),
            Slip(
                value=f.drawn * (f.prompt + f.longest),
                says="That has every response as long as the longest.",
            ),
            Slip(
                value=f.tokens * f.updates,
                says="The updates share the samples: each token is trained on once.",
            ),
        ),
        hints=(
            "Samples first.",
            "`prompts · samples · (prompt + response)`",
            f"`{f.prompts} · {f.samples} · ({f.prompt} + {f.response:,})`",
        ),
        worked=(
            f"`{f.prompts} · {f.samples} · ({f.prompt} + {f.response:,})` = "
            f"{show.params(f.tokens)} tokens."
        ),
        takeaway="Prompts are counted once a sample by the trainer, once a prompt by the engine.",
    )


def update_question(f: Facts) -> Number:
    return Number(
        id="update",
        axis="size",
        level="mid",
        ask=(
            f"The model has {show.params(f.params)} parameters. How many FLOP do all updates of a "
            "step take, attention's scores left out?"
        ),
        expected=f.update_flop,
        unit="FLOP",
        made_of=(WORK,),
        slips=(
            Slip(value=f.update_flop / 3, says="That is the forward pass: a log-probability."),
            Slip(
                value=f.update_flop * f.updates, says="The updates divide the samples among them."
            ),
            Slip(
                value=f.update_flop * 4 / 3,
                says="That has a pass of log-probabilities in it, which is a phase of its own.",
            ),
        ),
        hints=(
            "As in pre-training.",
            "`6 · parameters · tokens`",
            f"`6 · {show.params(f.params)} · {show.params(f.tokens)}`",
        ),
        worked=(
            f"`6 · {show.params(f.params)} · {show.params(f.tokens)}` = {show.flop(f.update_flop)}"
            ". Log-probabilities of the policy and of the reference are a forward pass each on "
            "top: two thirds of the updates together."
        ),
        takeaway="With a reference, a third of the trainer's products and more are no training.",
    )


def cache_question(f: Facts) -> Number:
    return Number(
        id="cache",
        axis="memory",
        level="mid",
        ask=(
            f"The model has {f.model.layers} layers, {f.model.kv_heads} heads of keys and values "
            f"of {f.model.head_dim} numbers, {f.model.heads} of queries. How many kB does the "
            "engine keep of one token, in 16 bits?"
        ),
        expected=f.kv_bytes,
        unit="kB",
        scale=1e3,
        made_of=(KEPT,),
        slips=(
            Slip(value=f.all_heads_bytes, says="Query heads share keys and values in groups."),
            Slip(value=f.kv_bytes / 2, says="Keys and values: two of each."),
        ),
        hints=(
            "Which heads are kept?",
            "`2 · 2 · layers · heads of keys · width`",
            f"`2 · 2 · {f.model.layers} · {f.model.kv_heads} · {f.model.head_dim}`",
        ),
        worked=(
            f"`2 · 2 · {f.model.layers} · {f.model.kv_heads} · {f.model.head_dim}` = "
            f"{f.kv_bytes / 1e3:.0f} kB."
        ),
        takeaway="Grouped queries are what makes long responses affordable to draw.",
    )


def running_question(f: Facts) -> Number:
    return Number(
        id="running",
        axis="memory",
        level="senior",
        ask=(
            f"A replica of the engine has {f.engine_tp} devices and may fill "
            f"{show.share(f.fraction)} of their {show.size(f.usable_bytes)} each. Beside the "
            "weights in 16 bits, how many samples of mean length run at once?"
        ),
        expected=f.running,
        unit="samples",
        slips=(
            Slip(
                value=(f.room_bytes + f.weights_bytes) / (f.kv_bytes * f.length),
                says="The weights have to be taken off first.",
            ),
            Slip(
                value=f.room_bytes / (f.kv_bytes * (f.prompt + f.longest)),
                says="That has every sample as long as the longest.",
            ),
            Slip(
                value=f.running / f.engine_tp,
                says="That is one device's share: a sample's cache is cut over all of them.",
            ),
        ),
        hints=(
            "Room first, then a sample.",
            "`(share · memory · devices − weights) / (bytes a token · length)`",
            f"`{show.size(f.room_bytes)} / ({f.kv_bytes / 1e3:.0f} kB · {f.length:,.0f})`",
        ),
        worked=(
            f"`{show.size(f.room_bytes)} / ({f.kv_bytes / 1e3:.0f} kB · {f.length:,.0f})` = "
            f"{f.running:.0f}; a replica has {f.each:.0f} to draw, so some of them wait."
        ),
        takeaway="Where fewer run than are drawn, generation is a queue, and more memory helps.",
    )


def read_question(f: Facts) -> Number:
    return Number(
        id="read",
        axis="size",
        level="senior",
        ask=(
            "Every step of decoding reads the weights once. What is the least that it takes on a "
            f"replica of {f.engine_tp} devices of {show.bytes_per_s(f.chip.hbm_bytes_per_s)}, in "
            "milliseconds?"
        ),
        expected=f.read_s,
        unit="ms",
        scale=1e-3,
        slips=(
            Slip(value=f.read_s * f.engine_tp, says="Each device reads its share."),
            Slip(
                value=f.read_s * f.engine_tp / f.half,
                says="The replicas do not share the reading: each reads all of the weights.",
            ),
        ),
        hints=(
            "Bytes over bandwidth.",
            "`2 · parameters / (devices · bandwidth)`",
            (
                f"`{show.size(f.weights_bytes)} / ({f.engine_tp} · "
                f"{show.bytes_per_s(f.chip.hbm_bytes_per_s)})`"
            ),
        ),
        worked=(
            f"`{show.size(f.weights_bytes)} / ({f.engine_tp} · "
            f"{show.bytes_per_s(f.chip.hbm_bytes_per_s)})` = {show.seconds(f.read_s)}, whatever "
            "the batch: caches, exchanges and launches come on top."
        ),
        takeaway="The last sample of a batch pays for the weights alone.",
    )


def tail_question(f: Facts) -> Choice:
    return Choice(
        id="tail",
        axis="parallelism",
        level="senior",
        ask="You double the devices that generate. What becomes of the time of generation?",
        expected="b",
        options=(
            Option(key="a", text="it halves", says="The longest sample is as long on any number."),
            Option(
                key="b",
                text="it falls by less than half, and by ever less",
                says="Yes: the tail runs nearly empty, and more devices do not shorten it.",
            ),
            Option(
                key="c",
                text="nothing changes",
                says="While samples wait for a place, more places help.",
            ),
        ),
        hints=(
            "What does the last sample do?",
            "A token needs the one before it.",
            "Samples that wait gain, the longest does not.",
        ),
        worked=(
            "Samples that waited find a place, so the bulk is faster; the longest response still "
            "takes as many steps as it has tokens, each at least the reading of the weights."
        ),
        takeaway="Give a tail fewer tokens, not more devices.",
    )


def pace_question(f: Facts) -> Number:
    return Number(
        id="pace",
        axis="communication",
        level="mid",
        ask=(
            f"Half of the devices generate in {show.seconds(f.generation_s)}, half train in "
            f"{show.seconds(f.train_s)}; the new weights then take both {show.seconds(f.sync_s)}. "
            "Samples may be a step old. How many seconds does a step take?"
        ),
        expected=f.step_s,
        unit="s",
        within=1.03,
        slips=(
            Slip(value=f.sum_s, says="One after the other; here both run at once."),
            Slip(value=f.engine_s, says="That is the shorter side, which then waits."),
            Slip(value=f.sum_s / 2, says="The sides do not help each other."),
        ),
        hints=(
            "Which of them waits?",
            "`max(engine, trainer)`",
            f"`max({show.seconds(f.engine_s)}, {show.seconds(f.trainer_s)})`",
        ),
        worked=(
            f"`max({show.seconds(f.engine_s)}, {show.seconds(f.trainer_s)})` = "
            f"{show.seconds(f.step_s)}. The other side stands idle for the rest."
        ),
        takeaway="Side by side the longer side sets the pace: balance them.",
    )


def printed_note(f: Facts) -> str:
    return (
        f"The published run has this plan and this split; the kit gives {show.seconds(f.step_s)}, "
        f"between {show.seconds(f.answer.step_s_low or 0.0)} and "
        f"{show.seconds(f.answer.step_s_high or 0.0)} in eight of ten."
    )


def split_question(f: Facts) -> Choice:
    better = "a" if f.moved_s < f.shared_s else "c"
    return Choice(
        id="split",
        axis="parallelism",
        level="staff",
        ask=(
            "The trainer sets the pace. Which change shortens the step most, the lengths as they "
            "are?"
        ),
        expected=better,
        options=(
            Option(
                key="a",
                text=f"only {f.fewer} devices generate, the others train",
                says=(
                    f"That gives {show.seconds(f.moved_s)} a step: the engine is now the longer "
                    "side."
                ),
            ),
            Option(
                key="b",
                text="more devices generate",
                says="They would wait for the trainer even longer.",
            ),
            Option(
                key="c",
                text="engine and trainer share all devices, one after the other",
                says=f"That gives {show.seconds(f.shared_s)} a step.",
            ),
        ),
        hints=(
            "Who waits for whom?",
            "Move devices to whoever is late, while the other keeps up.",
            "Shared devices are never idle, but nothing runs beside anything.",
        ),
        worked=(
            f"As it stands {show.seconds(f.step_s)}; {f.fewer} that generate "
            f"{show.seconds(f.moved_s)}; all shared {show.seconds(f.shared_s)}."
        ),
        takeaway=(
            "Try splits and the shared layout: which wins hangs on lengths and on how devices "
            "divide, not on taste."
        ),
    )


def sync_question(f: Facts) -> Number:
    return Number(
        id="sync",
        axis="communication",
        level="mid",
        ask="How many GB of weights go to each replica of the engine after a step, in 16 bits?",
        expected=f.weights_bytes,
        unit="GB",
        scale=1e9,
        made_of=(SENT,),
        slips=(
            Slip(
                value=f.states_bytes,
                says="Those are the trainer's states; the engine needs the weights alone.",
            ),
            Slip(
                value=f.weights_bytes * f.replicas,
                says="That is all replicas together; a broadcast sends once.",
            ),
            Slip(value=f.weights_bytes * 2, says="That is fp32."),
        ),
        hints=(
            "Neither gradients nor moments.",
            "`2 · parameters`",
            f"`2 · {show.params(f.params)}`",
        ),
        worked=(
            f"`2 · {show.params(f.params)}` = {show.size(f.weights_bytes)}, in "
            f"{show.seconds(f.sync_s)} by broadcast: little beside the phases of this step."
        ),
        takeaway="The sync hurts where steps are short or the path is a file.",
    )


def unknown_question(f: Facts) -> Choice:
    return Choice(
        id="unknown",
        axis="verification",
        level="senior",
        ask=(
            "A source prints a step time and a cap, but no mean length of a response. What do you "
            "say of a plan that rests on it?"
        ),
        expected="c",
        options=(
            Option(
                key="a",
                text="take half of the cap",
                says="Caps are set generously: means of a tenth and of nine tenths are printed.",
            ),
            Option(
                key="b",
                text="take the cap, to be safe",
                says="Then trainer and engine are both wrong, and the split too.",
            ),
            Option(
                key="c",
                text="ask, or draw a few hundred samples first; until then a wide interval",
                says="Yes: an hour on one replica settles what no formula knows.",
            ),
        ),
        hints=(
            "Which number moves everything here?",
            "It costs little to measure.",
            "Say the interval, not the guess.",
        ),
        worked=(
            "Lengths move both sides of the step at once. A few hundred prompts on one replica "
            "give mean and tail; what is not known is asked for, and widens the interval."
        ),
        takeaway="A guess of a length is a guess of the step.",
    )


def days_question(f: Facts) -> Number:
    return Number(
        id="days",
        axis="cost",
        level="mid",
        ask=(
            f"How many hours do {f.steps} steps take, with the step above and a goodput of "
            f"{show.share(f.goodput)}?"
        ),
        expected=f.run_hours * 3600,
        unit="h",
        scale=3600,
        within=1.03,
        slips=(
            Slip(value=f.steps * f.sum_s, says="That has engine and trainer one after the other."),
            Slip(
                value=f.high_hours * 3600,
                says="That is the end of the interval: what to promise, not what is likely.",
            ),
        ),
        hints=(
            "Steps times seconds.",
            "`steps · step / goodput`",
            f"`{f.steps} · {show.seconds(f.step_s)} / {show.share(f.goodput)}`",
        ),
        worked=(
            f"`{f.steps} · {show.seconds(f.step_s)} / {show.share(f.goodput)}` = "
            f"{f.run_hours:.1f} h; to promise {f.high_hours:.1f} h."
        ),
        takeaway="Promise the end of the interval: lengths grow while a policy learns.",
    )


def tell_question(f: Facts) -> Explain:
    return Explain(
        id="tell",
        axis="telling",
        level="staff",
        minutes=4,
        ask="Tell whoever owns the machine in four sentences what you recommend, and why.",
        points=(
            Point(says="the split or the sharing", words=(r"\b(split|shared?|devices|colocat)",)),
            Point(
                says="the step and the run, with a range",
                words=(r"\b(step|hours?|days?|range|interval)",),
            ),
            Point(
                says="what sets the pace, and what would change it",
                words=(r"\b(trainer|engine|pace|longer|balance)",),
            ),
            Point(
                says="what was assumed of lengths and judge",
                words=(r"\b(length|tail|judge|reward|assum)",),
            ),
        ),
        model=(
            "I would let engine and trainer share all devices: the split leaves the engine idle "
            f"for {show.share(f.idle)} of a step of {show.seconds(f.step_s)}, and sharing takes "
            f"{show.seconds(f.shared_s)} with fresh samples. The run then takes "
            f"{show.hours(f.shared_hours)}, and I would promise {show.hours(f.shared_high_hours)}, "
            "the end of the interval. If responses grow a longer tail, the split comes back. It "
            "rests on printed lengths and on a reward that takes no time."
        ),
        hints=(
            "The layout first.",
            "A range, and what sets the pace.",
            "What would turn it round?",
        ),
        worked=(
            f"Shared devices take {show.seconds(f.shared_s)} a step, the split "
            f"{show.seconds(f.step_s)}, within the interval of either. A longer tail turns it "
            "round; lengths are watched from the first step."
        ),
        takeaway="Recommend a layout together with the length at which you would leave it.",
    )


BOOK = Walkthrough(
    number="11",
    name="policy_step",
    title="A policy step: generation beside training",
    minutes=48,
    book=Facts,
    asks=(
        scope_question,
        tokens_question,
        update_question,
        cache_question,
        running_question,
        read_question,
        tail_question,
        pace_question,
        split_question,
        sync_question,
        unknown_question,
        days_question,
        tell_question,
    ),
)
