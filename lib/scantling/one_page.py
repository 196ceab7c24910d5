"""The whole model on one page: memory, step time, MFU, goodput and cost of one dense plan.

Read this first. The rooms behind it answer the same questions for columns of plans, and add what
the page leaves out: experts, context parallelism, low precision, other schedules, offloading,
balanced splits of layers, waits for spares, and what each software stack does otherwise (eager
norms, attention scores written out, gradients in 16 bit, recompute lists, overlaps of its own).
`tests/test_one_page.py` writes Llama 3 405B down by hand, and holds the page within 5 % of the
rooms on ten designs of the gallery. Of plans drawn at random in its words six in seven are as close
(memory always, the step at worst 18 % off); on stacks that do otherwise it misses by a third and
more.

Bytes, seconds, FLOP; bandwidth of one device and direction. Tensors in 16 bit, gradients summed in
32, flash attention, fused norms. `k` holds the constants that no formula gives, each loaded by its
name from catalogue/priors.csv with unit and source (`physics.constants`).
"""

from dataclasses import dataclass
from math import ceil, exp, expm1, log2, sqrt

from .base.units import DAY_S, HOUR_S
from .catalogue.words import Recompute, Sharding
from .physics.constants import Constants
from .physics.wires import CurveConstants


@dataclass(frozen=True)
class Model:
    """A dense transformer."""

    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    gated: bool  # MLP of gate, up and down, else of up and down


@dataclass(frozen=True)
class Chip:
    """What one device can do, and its links at the rate that a ring sustains."""

    flops: float  # dense 16-bit peak [FLOP/s]
    hbm_bytes_per_s: float
    link_bytes_per_s: float  # inside a node
    network_bytes_per_s: float  # between nodes
    host_bytes_per_s: float  # to the host's memory
    wave_outputs: float  # of a product, made at once: units x 128 x 256
    node: int = 8  # devices that the fast link joins


@dataclass(frozen=True)
class Run:
    """One plan of one model: tp x pp x dp devices."""

    model: Model
    chip: Chip
    k: Constants
    ring: CurveConstants
    tp: int
    pp: int
    dp: int
    seq_len: int
    global_batch: int  # sequences
    micro_batch: int = 1  # sequences
    vpp: int = 1  # chunks of a stage; above 1 the schedule is interleaved, else 1F1B
    sharding: Sharding = Sharding.ZERO1  # the optimizer over dp; ZERO3: weights and gradients too
    recompute: Recompute = Recompute.NONE  # SELECTIVE: of the attention core
    sequence_parallel: bool = True

    @property
    def devices(self) -> int:
        return self.tp * self.pp * self.dp

    @property
    def tokens(self) -> int:
        """Of a micro-batch."""
        return self.micro_batch * self.seq_len

    @property
    def micro_batches(self) -> float:
        """Of a replica and step."""
        return max(self.global_batch / (self.dp * self.micro_batch), 1.0)

    @property
    def stream(self) -> float:
        """Values of the residual stream on a rank."""
        return self.tokens * self.model.hidden / (self.tp if self.sequence_parallel else 1)

    @property
    def inner_bytes(self) -> float:
        """On a rank, of a layer: queries, keys, values, outputs of attention and MLP, 16 bit."""
        m = self.model
        width = 4 * (m.heads + m.kv_heads) * m.head_dim + (4 + 2 * m.gated) * m.ffn
        return self.tokens * width / self.tp

    @property
    def hbm(self) -> float:
        """Bytes/s that kernels reach."""
        return float(self.chip.hbm_bytes_per_s * self.k.hbm_share)


# Parameters and FLOPs ------------------------------------------------------------------------


def products(m: Model, tp: int = 1) -> tuple[tuple[float, float], ...]:
    """(inputs, outputs) of a layer's products on a rank: QKV, attention output, up, down."""
    h, q, kv, up = m.hidden, m.heads * m.head_dim, m.kv_heads * m.head_dim, (1 + m.gated) * m.ffn
    return (h, (q + 2 * kv) / tp), (q / tp, h), (h, up / tp), (m.ffn / tp, h)


def layer_weights(m: Model) -> float:
    """Weights of a layer; norms and biases, below 0.3 %, are left out. [count]"""
    return sum(inputs * outputs for inputs, outputs in products(m))


def parameters(m: Model) -> float:
    """L w + 2 v h: layers, embedding and head. [count]"""
    return m.layers * layer_weights(m) + 2 * m.vocab * m.hidden


def flops_per_token(m: Model, seq_len: int) -> float:
    """6 (L w + v h) + 12 L s q: three forwards, head in, look-up out, attention in full, recompute
    out. PaLM (arXiv 2204.02311), appendix B. [FLOP]"""
    linear = m.layers * layer_weights(m) + m.vocab * m.hidden
    return 6 * linear + 12 * m.layers * seq_len * m.heads * m.head_dim


def stage_layers(layers: int, pp: int, stage: int) -> int:
    """Layers of a stage: even, the rest one each from the second stage on. Both ends have one fewer
    where L + 2 divides (Llama 3, arXiv 2407.21783, section 3.3.2). [count]"""
    each, rest = divmod(layers, pp)
    return each + (0 < stage <= rest)


# Memory --------------------------------------------------------------------------------------


def activation_bytes(r: Run, stage: int) -> float:
    """What recompute leaves of a layer, by layers and micro-batches in flight, p - i under 1F1B and
    (p v + p - 2 i - 1) / v interleaved (Narayanan et al. 2021, arXiv 2104.04473, section 2.2); and
    the layer at work, or the logits. A layer saves inputs and outputs of its norms and products:
    Korthikanti et al. 2022 (arXiv 2205.05198), section 4, flash attention, no dropout. [bytes]"""
    p, v, memory = r.pp, r.vpp, r.k.memory
    whole = 8 * r.stream + r.inner_bytes
    stored = 2 * r.stream if r.recompute == Recompute.FULL else whole
    flight = min((p * v + p - 2 * stage - 1) / v if v > 1 else p - stage, r.micro_batches)
    logits = memory.logit_bytes * r.tokens * r.model.vocab / r.tp * (stage == p - 1)
    work = memory.activation * ((1 + memory.working) * whole - stored)
    layers = flight * stage_layers(r.model.layers, p, stage)
    return float(memory.activation * layers * stored + max(work, logits))


def stage_bytes(r: Run, stage: int) -> dict[str, float]:
    """A device of one stage. A parameter: weight 2, gradient 4, Adam with master copy 12, each over
    dp as sharded (ZeRO, arXiv 1910.02054, section 5). Other: gathered layers, the head's gradient,
    buffers, the framework, fragmentation. [bytes]"""
    m, memory = r.model, r.k.memory
    first, last = stage == 0, stage == r.pp - 1
    layer, end = layer_weights(m) / r.tp, m.vocab * m.hidden / r.tp
    params = stage_layers(m.layers, r.pp, stage) * layer + (first + last) * end
    zero3 = r.sharding == Sharding.ZERO3
    resident = params / r.dp if zero3 else params
    parts = {
        "weights": 2 * resident,
        "gradients": 4 * resident,
        "optimizer": 12 * params / r.dp,
        "activations": activation_bytes(r, stage),
    }
    gathered = 2 * (memory.layers_gathered * layer + end) * zero3  # whole while in use
    buffers = 4 * r.tokens * m.hidden * (r.tp > 1) + 16 * r.stream * (r.pp > 1)
    other = gathered + buffers + 2 * end * last
    lost = memory.fragmentation * (sum(parts.values()) + other)
    return parts | {"other": float(other + lost + memory.framework_bytes)}


def memory_bytes(r: Run) -> dict[str, float]:
    """Parts of a device of the fullest stage. [bytes]"""
    stages = (stage_bytes(r, stage) for stage in range(r.pp))
    return max(stages, key=lambda parts: sum(parts.values()))


# Step time -----------------------------------------------------------------------------------


def product_s(r: Run, inputs: float, outputs: float) -> float:
    """2 t i o / (sustained share of the peak), longer by part-filled last waves of tiles in two of
    three passes (NVIDIA, matrix multiplication guide), and every operand over HBM, the additive
    roofline (Williams et al. 2009, doi:10.1145/1498765.1498785). [s]"""
    k, t = r.k, r.tokens
    waves = [t * width / r.chip.wave_outputs for width in (inputs, outputs)]
    idle = sum(min(ceil(n) / n - 1, 1) for n in waves) / 3 * k.wave
    moved = 2 * k.gemm_bytes * (t * inputs + inputs * outputs + t * outputs)
    busy = 2 * t * inputs * outputs / (r.chip.flops * k.gemm) * (1 + idle)
    return float(busy + moved / r.hbm)


def attention_s(r: Run) -> tuple[float, float]:
    """(forward, backward) of a layer's core: the causal half, backward 2.5 forwards
    (FlashAttention-2, arXiv 2307.08691, section 3.1), slower on short sequences and, forward, on
    few tiles of 128 queries and a head. [s]"""
    k, heads, s = r.k, r.model.heads / r.tp, r.seq_len
    rate = r.chip.flops * k.attention * s / (s + k.attention_half)
    core = 2 * r.tokens * s * heads * r.model.head_dim / rate
    idle = k.attention_tiles * 128 / (heads * r.tokens)
    return float(core / k.attention_forward * (1 + idle)), float(2.5 * core / k.attention_backward)


def ring_s(r: Run, nbytes: float, ranks: int, packed: int) -> float:
    """All-gather or reduce-scatter: (n - 1) / n S bytes at the slower of the link and the cards of
    the members in a node, and n - 1 steps of a hop (NVIDIA/nccl, src/graph/tuning.cc). packed:
    ranks of other groups between two members. [s]"""
    if ranks == 1:
        return 0.0
    w = r.ring
    inside = min(max(r.chip.node // packed, 1), ranks)
    steps_out = ranks / inside - 1  # between nodes
    rate = r.chip.link_bytes_per_s
    if steps_out:
        rate = min(rate, inside * r.chip.network_bytes_per_s)
    hops = 3.4e-6 * w.hop * (ranks - 1 - steps_out) + 14e-6 * w.hop_out * steps_out
    start, wire = 8.4e-6 * w.start + hops, (ranks - 1) / ranks * nbytes / rate
    return float(start + wire + 2 * (w.fill_out if steps_out else w.fill) * sqrt(start * wire))


def send_s(r: Run) -> float:
    """Exposed sends of a micro-batch between stages, each chunk, both ways; a ring of two ranks
    passes half of its bytes. [s]"""
    one = 2 * ring_s(r, 2 * r.stream, min(r.pp, 2), max(r.devices // 2, 1))
    return float(2 * r.vpp * one * r.k.pp_exposed)


def tensor_parallel_s(r: Run) -> float:
    """Exposed of a layer: two all-reduces of t h forward, as many backward, forward's again under
    full recompute, more with sequence parallelism (Korthikanti et al. 2022, section 4.2.2). [s]"""
    k, one = r.k, 2 * ring_s(r, 2 * r.tokens * r.model.hidden, r.tp, 1)
    forwards = 1 + (r.recompute == Recompute.FULL) + k.tp_sequence * r.sequence_parallel
    backward = k.tp_exposed if r.sequence_parallel else k.tp_overlapped
    return float(2 * one * (forwards * k.tp_exposed + backward))


def zero3_s(r: Run, params: float, work: float) -> float:
    """Exposed of two gathers and a reduction in every micro-batch, prefetched layer by layer beside
    its work (FSDP, arXiv 2304.11277, section 3.3): (w^q + c^q)^(1/q) - w, and the share of the
    overlap that both lose. [s]"""
    k, pieces = r.k, 3 * r.model.layers / r.pp
    wire = pieces * ring_s(r, 8 * params / pieces, r.dp, r.tp)
    exposed = (work**k.fsdp_power + wire**k.fsdp_power) ** (1 / k.fsdp_power) - work
    return float(r.micro_batches * (exposed + k.fsdp_contention * min(wire, work)))


def zero1_s(r: Run, params: float, work: float) -> float:
    """Exposed of weights gathered beside the first forward, a third of the work, and gradients
    reduced beside the last backward: c^2 / (c + w) of c beside w (ZeRO, section 7). [s]"""
    window = work * (1 + r.pp * (r.vpp - 1)) / r.vpp  # of the pipeline's chunks
    buckets = max(4 * params / float(r.k.dp_bucket_bytes), 1.0)
    gather = buckets * ring_s(r, 2 * params / buckets, r.dp, r.tp)
    reduce = buckets * ring_s(r, 4 * params / buckets, r.dp, r.tp)
    return gather**2 / (gather + window / 3) + reduce**2 / (reduce + window * 2 / 3)


def layer_s(r: Run) -> float:
    """Forward, backward and what is recomputed of a layer and micro-batch: products, norms and
    residuals (11 bytes a value of the stream, twice) and activations three times, attention, weight
    gradients added to a buffer, tensor-parallel traffic. [s]"""
    k, (core, core_back) = r.k, attention_s(r)
    once = sum(product_s(r, *widths) for widths in products(r.model, r.tp))
    once += float((22 * r.stream + r.inner_bytes) * k.elementwise / r.hbm)
    recomputed = {Recompute.NONE: 0.0, Recompute.SELECTIVE: core, Recompute.FULL: once + core}
    added = 6 * layer_weights(r.model) / r.tp / r.hbm * (r.sharding != Sharding.ZERO3)
    return 3 * once + core + core_back + recomputed[r.recompute] + added + tensor_parallel_s(r)


def stragglers(r: Run) -> float:
    """How many times as long a step takes where all wait for the slowest: longer with each doubling
    of the devices, and with the first two beyond 1,024 once more."""
    doublings = log2(max(r.devices / r.k.straggler_devices, 1.0))
    wide = min(max(log2(r.devices / 1024), 0.0), 2.0)
    return float(1 + r.k.straggler * doublings + r.k.straggler_wide * wide)


def step_s(r: Run) -> float:
    """m micro-batches of the slowest stage, the bubble of (p - 1) / v of an average one (Narayanan
    et al. 2021, section 2.2), exposed data-parallel traffic, optimizer, host, stragglers. [s]"""
    m, k, layer = r.model, r.k, layer_s(r)
    head = 3 * product_s(r, m.hidden, m.vocab / r.tp)
    counts = [stage_layers(m.layers, r.pp, stage) for stage in range(r.pp)]
    slowest = max(max(counts) * layer, counts[-1] * layer + head)
    bubble = (r.pp - 1) / r.vpp * (m.layers * layer + head) / r.pp
    params = (m.layers * layer_weights(m) / r.pp + m.vocab * m.hidden) / r.tp
    exposed_s = zero3_s if r.sharding == Sharding.ZERO3 else zero1_s
    traffic = exposed_s(r, params, slowest)
    update = k.optimizer_bytes * params / r.dp / r.hbm
    total = r.micro_batches * (slowest + send_s(r)) + bubble + traffic + update + k.step_host_s
    return float(total * k.overall * stragglers(r))


def mfu(r: Run) -> float:
    """Model FLOP of a step over what the peak does in it: PaLM, appendix B."""
    flops = flops_per_token(r.model, r.seq_len) * r.global_batch * r.seq_len
    return flops / (step_s(r) * r.devices * r.chip.flops)


# Goodput and cost ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Fleet:
    """How the machine fails and saves."""

    failures_per_1000_node_days: float  # nodes of 8 devices
    detect_s: float
    restart_s: float
    write_bytes_per_s: float  # of the store
    spares: int = 0  # devices that stand by


def goodput(r: Run, fleet: Fleet) -> float:
    """Useful share of the wall time, tau / ((M + D) exp((R + w) / M) (exp((tau + d) / M) - 1)):
    MTBF M, detection D, restart R, a copy durable after w, saves that stall d every tau =
    sqrt(2 d M). Young 1974 (doi:10.1145/361147.361115); Daly 2006
    (doi:10.1016/j.future.2004.11.016)."""
    mtbf = DAY_S * 1000 * 8 / (fleet.failures_per_1000_node_days * r.devices)
    copy = 14 * parameters(r.model)  # weights, master weights, moments [bytes]
    # 0.5 s blocked, 20 s to commit (ByteCheckpoint, NSDI'25, Table 8); half the host link's rate
    stall = 0.5 + copy / r.devices / (0.5 * r.chip.host_bytes_per_s)
    durable = 20 + copy / fleet.write_bytes_per_s
    every = max(sqrt(2 * stall * mtbf), step_s(r))
    failures = exp((fleet.restart_s + durable) / mtbf) * expm1((every + stall) / mtbf)
    return every / ((mtbf + fleet.detect_s) * failures)


def cost_usd(r: Run, fleet: Fleet, tokens: float, usd_per_device_hour: float) -> float:
    """(Devices + spares) x tokens / (tokens a step) x step / goodput x price. [USD]"""
    wall_s = tokens / (r.global_batch * r.seq_len) * step_s(r) / goodput(r, fleet)
    return (r.devices + fleet.spares) * wall_s / HOUR_S * usd_per_device_hour
