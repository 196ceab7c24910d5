"""Hybrids: what scans cost and save beside attention, and why their pipelines split unevenly."""

from functools import cached_property

from scantling import Assessment, assess
from scantling.base import show
from scantling.catalogue.models.shape import Model
from scantling.design.design import Design
from scantling.physics.memory.peak import memory_by_stage

from ..question import KEPT, Choice, Explain, Number, Option, Point, Slip, Walkthrough
from ..texts import small_size
from .shared_sums import DesignFacts


class Facts(DesignFacts):
    """The numbers of the book, each worked out when it is first asked for, with its unit."""

    layers = 52  # layers
    devices = 64  # devices
    short = 8192  # tokens
    middle = 32_768  # tokens
    long = 131_072  # tokens
    pp = 4  # stages
    # Nemotron-H 8B, config.json: mixers and feed-forwards are layers of their own there
    scans = 24  # layers
    attentions = 4  # layers
    mlps = 24  # layers
    hidden = 4096  # values
    ffn = 21_504  # values
    vocab = 131_072  # tokens
    scan_heads = 128  # heads
    scan_width = 64  # values
    state = 128  # values
    groups = 8  # groups
    heads = 32  # heads
    kv_heads = 8  # heads
    head_width = 128  # values

    @cached_property
    def design(self) -> Design:
        return Design.from_data(
            {
                "name": "Nemotron-H 8B on 64 H100",
                "model": "nemotron-h-8b",
                "cluster": {
                    "accelerator": "h100-sxm",
                    "devices": self.devices,
                    "devices_per_node": 8,
                    "scale_out": "ib-ndr",
                },
                "job": {
                    "tokens": 1e12,
                    "seq_len": self.short,
                    "global_batch": 256,
                    "precision": "bf16",
                },
                "stack": "megatron-core",
                "plan": {"tp": 2, "pp": self.pp, "cp": 1, "micro_batch": 1, "schedule": "1f1b"},
            }
        )

    @cached_property
    def even_design(self) -> Design:
        return self.design.change({"plan.layout": [[0, 13], [13, 26], [26, 39], [39, 52]]})

    @cached_property
    def twin_design(self) -> Design:
        """The same layers with attention in place of every scan."""
        return self.design.change(
            {
                "model": {
                    "like": "nemotron-h-8b",
                    "pattern": "4*(3*(attn,mlp),attn,attn,mlp,attn,mlp),4*(attn,mlp)",
                }
            }
        )

    @cached_property
    def hybrid_short(self) -> Design:
        """The kit's own plans at three lengths, a step of as many tokens."""
        return Design.from_data(
            {
                "name": "Nemotron-H 8B on 64 H100",
                "model": "nemotron-h-8b",
                "cluster": {
                    "accelerator": "h100-sxm",
                    "devices": self.devices,
                    "devices_per_node": 8,
                    "scale_out": "ib-ndr",
                },
                "job": {
                    "tokens": 1e12,
                    "seq_len": self.short,
                    "global_batch": 256,
                    "precision": "bf16",
                },
                "stack": "megatron-core",
                "plan": {},
            }
        )

    @cached_property
    def twin_short(self) -> Design:
        return self.hybrid_short.change(
            {
                "model": {
                    "like": "nemotron-h-8b",
                    "pattern": "4*(3*(attn,mlp),attn,attn,mlp,attn,mlp),4*(attn,mlp)",
                }
            }
        )

    @cached_property
    def hybrid_middle(self) -> Design:
        return self.hybrid_short.change(job={"seq_len": self.middle, "global_batch": 64})

    @cached_property
    def twin_middle(self) -> Design:
        return self.twin_short.change(job={"seq_len": self.middle, "global_batch": 64})

    @cached_property
    def hybrid_long(self) -> Design:
        return self.hybrid_short.change(job={"seq_len": self.long, "global_batch": 16})

    @cached_property
    def twin_long(self) -> Design:
        return self.twin_short.change(job={"seq_len": self.long, "global_batch": 16})

    @cached_property
    def even(self) -> Assessment:
        return assess(self.even_design)

    @cached_property
    def twin(self) -> Assessment:
        return assess(self.twin_design)

    @cached_property
    def at_short(self) -> Assessment:
        return assess(self.hybrid_short)

    @cached_property
    def dense_short(self) -> Assessment:
        return assess(self.twin_short)

    @cached_property
    def at_middle(self) -> Assessment:
        return assess(self.hybrid_middle)

    @cached_property
    def dense_middle(self) -> Assessment:
        return assess(self.twin_middle)

    @cached_property
    def at_long(self) -> Assessment:
        return assess(self.hybrid_long)

    @cached_property
    def dense_long(self) -> Assessment:
        return assess(self.twin_long)

    @cached_property
    def inner(self) -> int:  # values
        return self.scan_heads * self.scan_width

    @cached_property
    def inputs(self) -> int:
        """Gate and input, keys and queries of the scan by group, a step size a head. [count]"""
        return 2 * self.inner + 2 * self.groups * self.state + self.scan_heads

    @cached_property
    def scan_layer(self) -> int:  # parameters
        return self.hidden * (self.inputs + self.inner)

    @cached_property
    def scan_two(self) -> int:  # parameters
        return self.scan_layer - self.hidden * self.inner

    @cached_property
    def attention_layer(self) -> int:  # parameters
        return 2 * self.hidden * self.head_width * (self.heads + self.kv_heads)

    @cached_property
    def mlp_layer(self) -> int:  # parameters
        return 2 * self.hidden * self.ffn

    @cached_property
    def head(self) -> int:  # parameters
        return self.vocab * self.hidden

    @cached_property
    def state_values(self) -> int:  # values
        return self.inner * self.state

    @cached_property
    def kv_values(self) -> int:  # values
        return 2 * self.kv_heads * self.head_width

    @cached_property
    def meet(self) -> float:  # tokens
        return self.state_values / self.kv_values

    @cached_property
    def kv_bytes(self) -> int:  # bytes
        return 2 * self.kv_values * self.long

    @cached_property
    def cache_all_bytes(self) -> int:  # bytes
        return (self.attentions + self.scans) * self.kv_bytes

    @cached_property
    def hybrid_cache_bytes(self) -> int:  # bytes
        return self.attentions * self.kv_bytes

    @cached_property
    def states_bytes(self) -> int:  # bytes
        return 2 * self.scans * self.state_values

    @cached_property
    def saved(self) -> int:  # bytes
        return self.cache_all_bytes - self.hybrid_cache_bytes - self.states_bytes

    @cached_property
    def scan_activations(self) -> int:
        """16-bit values of a token that the backward pass reads. [count]"""
        return self.inputs + 2 * self.inner

    @cached_property
    def attention_activations(self) -> int:  # values
        return (2 * self.heads + 2 * self.kv_heads) * self.head_width

    @cached_property
    def activation_ratio(self) -> float:  # ratio
        return self.scan_activations / self.attention_activations

    @cached_property
    def recurrence(self) -> int:  # FLOP a token
        return 7 * self.state_values

    @cached_property
    def wider(self) -> int:  # FLOP
        return 6 * (self.scan_layer - self.attention_layer) + 3 * self.recurrence

    @cached_property
    def cross(self) -> float:  # tokens
        return self.wider / (6 * self.heads * self.head_width)

    @cached_property
    def speedup(self) -> float:  # ratio
        return self.dense_long.step_s / self.at_long.step_s

    @cached_property
    def short_ratio(self) -> float:  # ratio
        return self.at_short.step_s / self.dense_short.step_s

    @cached_property
    def middle_ratio(self) -> float:  # ratio
        return self.at_middle.step_s / self.dense_middle.step_s

    @cached_property
    def twin_model(self) -> Model:
        return self.twin.resolved.model

    @cached_property
    def products(self) -> int:  # parameters
        return (
            self.scans * self.scan_layer
            + self.attentions * self.attention_layer
            + self.mlps * self.mlp_layer
            + self.head
        )

    @cached_property
    def mean_stage(self) -> float:  # parameters
        return self.products / self.pp

    @cached_property
    def even_stage(self) -> float:
        """An even split gives every stage six scans, one attention, six MLPs. [?]"""
        return self.products / self.pp - self.head / self.pp

    @cached_property
    def last_stage(self) -> float:  # parameters
        return self.even_stage + self.head

    @cached_property
    def longest(self) -> float:  # share
        return self.last_stage / self.mean_stage - 1

    @cached_property
    def longest_ratio(self) -> float:  # ratio
        return self.last_stage / self.mean_stage

    @cached_property
    def head_share(self) -> float:  # share
        return self.head / self.mean_stage

    @cached_property
    def bare_share(self) -> float:  # share
        return self.head / self.even_stage

    @cached_property
    def even_cost(self) -> float:  # share
        return self.even.step_s / self.result.step_s - 1

    @cached_property
    def head_worth(self) -> float:  # ratio
        return self.head / self.mlp_layer

    @cached_property
    def stages(self) -> tuple[dict[str, float | int], ...]:
        return memory_by_stage(self.result.chosen.case)

    @cached_property
    def first_layers(self) -> float:  # layers
        return self.stages[0]["layers"]

    @cached_property
    def last_layers(self) -> float:  # layers
        return self.stages[self.pp - 1]["layers"]

    @cached_property
    def first_bytes(self) -> float:  # bytes
        return self.stages[0]["total"]

    @cached_property
    def last_bytes(self) -> float:  # bytes
        return self.stages[self.pp - 1]["total"]

    @cached_property
    def stage_activation_bytes(self) -> float:  # bytes
        return self.stages[0]["activations"]

    @cached_property
    def twin_activation_bytes(self) -> float:  # bytes
        return float(memory_by_stage(self.twin.chosen.case)[0]["activations"])


# ---------------------------------------------------------------- questions


def scan_question(f: Facts) -> Number:
    return Number(
        id="scan",
        axis="size",
        level="senior",
        minutes=4,
        ask=(
            f"A Mamba-2 layer: hidden {f.hidden:,}, {f.scan_heads} heads of width "
            f"{f.scan_width}, state {f.state}, {f.groups} groups. One projection in makes the "
            "gate, the input, B and C by group, and a step size a head; one projection leads "
            "out. How many parameters do the two have?"
        ),
        expected=f.scan_layer,
        unit="parameters",
        within=1.03,
        manner="params",
        slips=(
            Slip(
                value=f.scan_two,
                says=(
                    "One of three is missing: gate, input and the projection out are each as "
                    "wide as the inner width."
                ),
            ),
            Slip(value=f.attention_layer, says="That is the attention layer of this model."),
        ),
        hints=(
            "What is the inner width?",
            ("`hidden · (2 · inner + 2 · groups · state + heads)` in, `inner · hidden` out"),
            f"The inner width is {f.inner:,}.",
        ),
        worked=(
            f"`{f.hidden:,} · ({f.inputs:,} + {f.inner:,})` = {show.params(f.scan_layer)}. An "
            f"attention layer of this model has {show.params(f.attention_layer)}: its keys "
            "and values are shared among heads."
        ),
        takeaway=(
            "A scan is not the small layer: its projections are as wide as the state needs, "
            f"here {show.params(f.scan_layer)} against {show.params(f.attention_layer)}."
        ),
    )


def meet_question(f: Facts) -> Number:
    return Number(
        id="meet",
        axis="memory",
        level="senior",
        ask=(
            "When it serves, a Mamba-2 layer holds one state: `inner · state` values, "
            "however long the text. An attention layer of this model holds keys and values "
            f"of {f.kv_heads} heads of width {f.head_width} for each token. From how many "
            "tokens on does attention hold more?"
        ),
        expected=f.meet,
        unit="tokens",
        within=1.03,
        slips=(
            Slip(value=f.meet * 2, says="Keys and values: two of them for each token."),
            Slip(
                value=f.meet / 4,
                says=f"Queries have {f.heads} heads, but keys and values only {f.kv_heads}.",
            ),
        ),
        hints=(
            "One of the two does not grow.",
            "`inner · state / (2 · kv heads · width)`",
            f"{f.state_values:,} values against {f.kv_values:,} a token",
        ),
        worked=(
            f"`{f.state_values:,} / {f.kv_values:,}` = {f.meet:.0f} tokens, both in the same "
            "precision."
        ),
        takeaway=(
            "A state is not free: it is what a page of text costs in attention. It pays "
            "because texts are longer than a page."
        ),
    )


def meet_note(f: Facts) -> str:
    return f"One does not grow, the other grows by {f.kv_values:,} values a token."


def saved_question(f: Facts) -> Number:
    return Number(
        id="saved",
        axis="memory",
        level="senior",
        minutes=5,
        ask=(
            f"{f.scans} of the {f.layers} layers scan, {f.attentions} attend, the rest are "
            f"MLPs. Beside the same model with attention in all of these {f.scans}: how many "
            f"GB of cache does one sequence of {f.long:,} tokens save, in 16 bit, the states "
            "counted?"
        ),
        expected=f.saved,
        unit="GB",
        scale=1e9,
        within=1.03,
        made_of=(KEPT,),
        slips=(
            Slip(value=f.hybrid_cache_bytes, says="That is what is left."),
            Slip(
                value=f.cache_all_bytes,
                says=(
                    f"That is the whole cache without scans: the {f.attentions} attention "
                    "layers keep theirs."
                ),
            ),
            Slip(value=f.saved / 2, says="Two bytes a value, and two values: keys and values."),
        ),
        hints=(
            "What does one attention layer hold at that length?",
            "`scans · (2 · 2 · kv heads · width · tokens − 2 · inner · state)` bytes",
            (
                f"{small_size(f.kv_bytes)} a layer; all states together are "
                f"{show.size(f.states_bytes)}."
            ),
        ),
        worked=(
            f"{show.size(f.cache_all_bytes)} would be {show.size(f.hybrid_cache_bytes)}, and "
            f"the states add {show.size(f.states_bytes)}: {show.size(f.saved)} saved of a "
            "sequence."
        ),
        takeaway=(
            "The cache follows the number of attention layers and nothing else: one in so "
            "many keeps one part in so many. It is the reason for hybrids that serving sees "
            "first."
        ),
    )


def saved_note(f: Facts) -> str:
    return (
        f"The states are {small_size(f.states_bytes)} together; the cache that is left is "
        f"{small_size(f.hybrid_cache_bytes)}."
    )


def activations_question(f: Facts) -> Number:
    return Number(
        id="kept",
        axis="memory",
        level="staff",
        minutes=5,
        ask=(
            "In training nothing is cached; activations are kept. Of each token the scan's "
            "fused kernels keep what the projection in made, the scan's output and the gated "
            "output; flash attention keeps queries, keys, values and output. How many times "
            "as much does a scan layer keep, inside the mixer?"
        ),
        expected=f.activation_ratio,
        unit="times",
        slips=(
            Slip(value=1.0 / f.activation_ratio, says="The other way round: a scan keeps more."),
            Slip(
                value=f.scan_activations / (f.hidden * 4),
                says=(
                    f"Keys and values have {f.kv_heads} heads here: they are narrower than "
                    "the queries."
                ),
            ),
            Slip(
                value=f.inputs / f.attention_activations,
                says="The scan's own output and the gated one are kept too.",
            ),
        ),
        hints=(
            "Count values of one token on both sides.",
            "`(inputs + 2 · inner) / ((2 · heads + 2 · kv heads) · width)`",
            f"{f.scan_activations:,} against {f.attention_activations:,}",
        ),
        worked=(
            f"`{f.scan_activations:,} / {f.attention_activations:,}` = {f.activation_ratio:.1f}. "
            "Over the whole first stage, with the MLPs, it is "
            f"{show.size(f.stage_activation_bytes)} of activations against "
            f"{show.size(f.twin_activation_bytes)} with attention everywhere."
        ),
        takeaway=(
            "A hybrid saves cache when it serves, not activations when it trains: per token "
            "both grow alike, and the wider scan keeps more."
        ),
    )


def activations_note(f: Facts) -> str:
    return (
        "The first pipeline stage of both, by the kit: activations "
        f"{small_size(f.stage_activation_bytes)} for the hybrid, "
        f"{small_size(f.twin_activation_bytes)} for its twin."
    )


def cross_question(f: Facts) -> Number:
    return Number(
        id="cross",
        axis="size",
        level="staff",
        minutes=6,
        ask=(
            "Now the arithmetic. Training costs `6` FLOP a weight; the scan's recurrence `7 "
            "· inner · state` forward, three times that with backward; causal attention on "
            "average half of the sequence, `6 · heads · width` a token of its length. At "
            "which sequence length does an attention layer cost as much as a scan layer?"
        ),
        expected=f.cross,
        unit="tokens",
        within=1.08,
        slips=(
            Slip(
                value=f.cross / 2,
                says="That counts all pairs: causal attention meets half of them on average.",
            ),
            Slip(
                value=f.cross * 4,
                says=(
                    "Shared keys and values make the cache small, not the scores: every "
                    "query head has its own."
                ),
            ),
            Slip(value=f.meet, says="That is where the memory meets; FLOP are asked."),
        ),
        hints=(
            "Which part of which layer grows with the length?",
            (
                "`6 · scan weights + 3 · 7 · inner · state = 6 · attention weights + 6 · "
                "heads · width · length`"
            ),
            (
                f"The weights differ by {show.params(f.scan_layer)} less "
                f"{show.params(f.attention_layer)}."
            ),
        ),
        worked=(
            f"The scan costs {show.flop(f.wider)} more a token at length zero, and attention "
            f"`6 · {f.heads} · {f.head_width}` more for each token of length: equal at "
            f"{f.cross:,.0f} tokens."
        ),
        takeaway=(
            "Below the crossing a scan is the dearer layer, above it the cheaper one, "
            "without limit. Its place depends on width and state: work it out for your own."
        ),
    )


def cross_note(f: Facts) -> str:
    return f"The crossing by FLOP is at {f.cross:,.0f} tokens. The clock's comes below."


def payoff_question(f: Facts) -> Choice:
    return Choice(
        id="payoff",
        axis="verification",
        level="senior",
        ask=(
            f"At {f.short:,} tokens on the {f.devices} H100, each with the kit's best plan: "
            "how does the hybrid's step compare with that of its twin with attention "
            "everywhere, a step of as many tokens?"
        ),
        expected="b",
        options=(
            Option(
                key="a",
                text="Shorter: scans are linear, attention is quadratic.",
                says=(
                    f"{f.short:,} tokens are below the crossing: there the quadratic term is "
                    "still the smaller one. The hybrid's step takes "
                    f"{show.seconds(f.at_short.step_s)}, the twin's "
                    f"{show.seconds(f.dense_short.step_s)}."
                ),
            ),
            Option(
                key="b",
                text="Longer: the scan has more weights and is not a matrix product.",
                says=(
                    f"{show.seconds(f.at_short.step_s)} against "
                    f"{show.seconds(f.dense_short.step_s)}."
                ),
            ),
            Option(
                key="c",
                text="The same: both train as many tokens.",
                says=(
                    "As many tokens, but not as many FLOP: the twin has "
                    f"{show.params(f.twin.params)} parameters, the hybrid "
                    f"{show.params(f.result.params)}."
                ),
            ),
        ),
        hints=(
            "On which side of the crossing is it?",
            "Below the crossing the scan layer costs more FLOP.",
            "And its kernels run well below the rate of matrix products.",
        ),
        worked=(
            f"{show.seconds(f.at_short.step_s)} against {show.seconds(f.dense_short.step_s)}. "
            f"The twin is also the smaller model, {show.params(f.twin.params)} for "
            f"{show.params(f.result.params)}: which of them learns more is another question."
        ),
        takeaway='"Linear" says how a cost grows, not how large it is.',
    )


def speedup_question(f: Facts) -> Number:
    return Number(
        id="speedup",
        axis="verification",
        level="staff",
        minutes=5,
        ask=(
            f"And at {f.long:,} tokens, as many tokens a step? Estimate how many times longer "
            "the twin's step is than the hybrid's, by the kit's best plans."
        ),
        expected=f.speedup,
        unit="times",
        within=1.25,
        slips=(
            Slip(
                value=7.0,
                says=(
                    "That is the ratio of attention layers. MLPs, scans and the head cost "
                    "what they cost at any length."
                ),
                within=1.2,
            ),
            Slip(value=1.0 / f.speedup, says="That is the hybrid over the twin.", within=1.2),
        ),
        hints=(
            "Only the attention grows.",
            (
                "Attention kernels take "
                f"{show.seconds(f.at_short.step_breakdown_s['attention'])} of the hybrid's "
                f"step at {f.short:,} tokens, scans with them."
            ),
            "Below two.",
        ),
        worked=(
            f"{show.seconds(f.dense_long.step_s)} against {show.seconds(f.at_long.step_s)}: "
            f"{f.speedup:.1f} times. At {f.middle:,} tokens they are "
            f"{show.seconds(f.dense_middle.step_s)} and {show.seconds(f.at_middle.step_s)}: "
            "the clock's crossing is later than that of the FLOP, because a scan reaches "
            "less of the peak."
        ),
        takeaway=(
            "When does the scan pay in training? From tens of thousands of tokens on; the "
            "time of the kernels decides, not the exponent."
        ),
    )


def speedup_note(f: Facts) -> str:
    return (
        f"Three lengths, a step of as many tokens, the kit's best plans: {f.short:,}, "
        f"{f.middle:,}, {f.long:,} tokens."
    )


def worth_question(f: Facts) -> Number:
    return Number(
        id="worth",
        axis="parallelism",
        level="mid",
        ask=(
            f"To the pipeline. The head is {f.vocab:,} by {f.hidden:,}; an MLP layer has two "
            f"matrices of {f.hidden:,} by {f.ffn:,}. How many MLP layers is the head worth, "
            "by its products?"
        ),
        expected=f.head_worth,
        unit="layers",
        slips=(
            Slip(
                value=f.head_worth * 2,
                says=(
                    "The embedding is a look-up and multiplies nothing; or one of the MLP's "
                    "two matrices was forgotten."
                ),
            ),
            Slip(value=f.head / f.scan_layer, says="That is in scan layers."),
        ),
        hints=(
            "Products follow weights.",
            "`vocabulary · hidden / (2 · hidden · ffn)`",
            f"{show.params(f.head)} against {show.params(f.mlp_layer)}",
        ),
        worked=f"{show.params(f.head)} / {show.params(f.mlp_layer)} = {f.head_worth:.2f} layers.",
        takeaway=(
            "A head is a stack of layers that no layer count shows. The smaller the model, "
            "the heavier it stands on the last stage."
        ),
    )


def longest_question(f: Facts) -> Number:
    return Number(
        id="longest",
        axis="parallelism",
        level="staff",
        minutes=6,
        ask=(
            f"{f.pp} stages of as many layers each: six scans, one attention and six MLPs, "
            "and the last one has the head as well. By products, how many per cent is the "
            "last stage longer than the mean stage?"
        ),
        expected=f.longest,
        unit="%",
        scale=0.01,
        within=1.1,
        slips=(
            Slip(
                value=f.head_share,
                says=(
                    "That is the head over the mean, but a quarter of the head is in the "
                    "mean: the last stage's layers are less than it."
                ),
            ),
            Slip(
                value=f.bare_share,
                says="That is against the other stages, not against the mean of all.",
            ),
            Slip(value=f.longest_ratio, says="That is the ratio; the excess over one is asked."),
        ),
        hints=(
            "All products, over the stages, is the mean.",
            "`(layers / stages + head) / ((layers + head) / stages) − 1`",
            f"All products are {show.params(f.products)}, the head {show.params(f.head)}.",
        ),
        worked=(
            f"{show.params(f.last_stage)} against a mean of {show.params(f.mean_stage)}: "
            f"{show.share(f.longest)}. The kit's own layout puts {f.first_layers} layers on "
            f"the first and {f.last_layers} on the last; the even one is "
            f"{show.share(f.even_cost)} slower. That is less than the products say: in "
            "seconds the head weighs less, because scans take more time than their products, "
            "and no split reaches the mean."
        ),
        takeaway=(
            "A hybrid's layers differ in time, and embedding and head are no layers: balance "
            "the seconds of the stages, not the number of their layers."
        ),
    )


def longest_note(f: Facts) -> str:
    return (
        f"The kit's layout has {f.first_layers:,} layers on the first stage and "
        f"{f.last_layers:,} on the last. The even one is {show.share(f.even_cost)} slower a "
        "step."
    )


def fullest_question(f: Facts) -> Choice:
    return Choice(
        id="fullest",
        axis="memory",
        level="senior",
        ask=(
            "The kit's layout evens out the time of the stages, under 1F1B. Which stage is "
            "the fullest in memory?"
        ),
        expected="a",
        options=(
            Option(
                key="a",
                text="the first",
                says=(f"{show.size(f.first_bytes)} against {show.size(f.last_bytes)} on the last."),
            ),
            Option(
                key="b",
                text="the last, with its head",
                says=(
                    f"The head's weights and logits are there, but the first stage has {f.pp} "
                    "micro-batches in flight and the last one only one: "
                    f"{show.size(f.first_bytes)} against {show.size(f.last_bytes)}."
                ),
            ),
            Option(
                key="c",
                text="the one with most attention",
                says=(
                    f"A scan keeps {f.activation_ratio:.1f} times as much as an attention layer, "
                    "and what counts most is how many micro-batches are in flight."
                ),
            ),
            Option(
                key="d",
                text="all alike: the time is even",
                says=(
                    f"Even time is not even memory: {show.size(f.first_bytes)} on the first, "
                    f"{show.size(f.last_bytes)} on the last."
                ),
            ),
        ),
        hints=(
            "How many micro-batches are in flight on each stage?",
            "As many as there are stages from here to the end.",
            "The head is one matrix.",
        ),
        worked=(
            f"{show.size(f.first_bytes)} on the first, {show.size(f.last_bytes)} on the last: "
            f"micro-batches in flight fall from {f.pp} to one."
        ),
        takeaway=(
            "One split cannot even out time and memory both. Even out the time, and see that "
            "the fullest stage fits."
        ),
    )


def across_question(f: Facts) -> Choice:
    return Choice(
        id="across",
        axis="communication",
        level="staff",
        ask=(
            "The sequence gets too long for one device and is cut over several. A scan goes "
            "through it in order. What do the training frameworks send?"
        ),
        expected="c",
        options=(
            Option(
                key="a",
                text="Keys and values around a ring, as for attention.",
                says=(
                    "A scan has no keys of all tokens to meet: what comes before is in the state."
                ),
            ),
            Option(
                key="b",
                text="Only the state, from each device to the next.",
                says=(
                    "It is the least that has to be sent, but then each device waits for the "
                    "one before it; frameworks that do better split the heads instead."
                ),
            ),
            Option(
                key="c",
                text=(
                    "All-to-alls: each device gets the whole sequence of some heads, and "
                    "gives it back after the scan."
                ),
                says="Heads do not know of each other; the scan then runs as on one device.",
            ),
            Option(
                key="d",
                text="Nothing: every part of the sequence scans by itself.",
                says="Then the state would begin anew at every cut: another model.",
            ),
        ),
        hints=(
            "In which dimension is a scan parallel?",
            "Heads are independent, tokens are not.",
            "From a cut by sequence to a cut by heads, and back.",
        ),
        worked=(
            "An all-to-all before and one after: the bytes of the projection's output and of "
            "the scan's, over the devices. It needs as many heads, and groups of B and C, as "
            "it cuts into."
        ),
        takeaway=(
            "A mixer decides what context parallelism sends: attention its keys and values, "
            "a scan its whole width. Ask which layers pay for a long context."
        ),
    )


def tell_question(f: Facts) -> Explain:
    return Explain(
        id="tell",
        axis="telling",
        level="staff",
        minutes=4,
        ask=(
            "The architects ask whether the next model should be a hybrid. What do you tell "
            "them, in four sentences, of what it costs and saves, and from which length on?"
        ),
        points=(
            Point(
                says="serving: the cache shrinks with the number of attention layers",
                words=(r"\b(serv|cache|inference|decod)",),
            ),
            Point(
                says="training: it pays only from a certain sequence length on",
                words=(r"\b(length|long|sequences?|context|tokens)",),
            ),
            Point(
                says="activations are not saved, and stages have to be balanced by time",
                words=(r"\b(activations?|stages?|pipeline|uneven|balance)",),
            ),
            Point(
                says="quality is for small-scale runs to decide",
                words=(r"\b(quality|recall|ablation|small(er)?[- ]scale|learns?)",),
            ),
        ),
        model=(
            "When it serves, the cache shrinks with the number of attention layers, by "
            f"{show.size(f.saved)} of {show.size(f.cache_all_bytes)} at {f.long:,} tokens. In "
            f"training it takes {f.short_ratio:.1f} times as long at {f.short:,} tokens, about as "
            f"long at {f.middle:,}, and {show.share(1 - 1 / f.speedup)} less at {f.long:,}. It "
            "saves no activations, and its pipeline stages have to be split by time. Whether "
            "quality and recall hold is for small-scale runs to show before we commit."
        ),
        hints=(
            "Serving and training see different things.",
            "Name the length.",
            "What is not yours to say?",
        ),
        worked=(
            "Cache first, then the length from which training gains, then what it does not "
            "save, then what others have to confirm."
        ),
        takeaway=(
            "A hybrid is bought for long contexts and for serving. Say so, and name the length."
        ),
    )


BOOK = Walkthrough(
    number="10",
    name="hybrid",
    title="Hybrids: when a scan pays",
    minutes=55,
    book=Facts,
    asks=(
        scan_question,
        meet_question,
        saved_question,
        activations_question,
        cross_question,
        payoff_question,
        speedup_question,
        worth_question,
        longest_question,
        fullest_question,
        across_question,
        tell_question,
    ),
)
