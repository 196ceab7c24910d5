"""The whole model on one page: memory, step time, MFU, goodput and cost of one dense plan.

Read this first. The rooms behind it answer the same questions for columns of plans, and add what
the page leaves out: experts, context parallelism, low precision, other schedules, offloading,
balanced splits of layers, the recompute lists of stacks, waits for spares.
`tests/test_one_page.py` writes Llama 3 405B down by hand, and holds the page to the rooms: within
5 % on the dense designs of the gallery, which showed what a page needs. Of plans drawn at random
from other models, chips and stacks four in five are as close; memory then misses by up to 55 %,
the step by up to 33 %.

Bytes, seconds, FLOP; bandwidth of one device and direction; tensors in 16 bit. What cannot be
derived is loaded by its name, all of it in `Run`: `k`, the calibrated constants of a chip and stack
(`physics.constants.gather`, rows of catalogue/priors.csv), `ring`, those of collectives
(`physics.wires.constants`), and `stack`, what the software does (catalogue/software.csv).
"""

from dataclasses import dataclass, field
from math import ceil, exp, expm1, log2, sqrt

from .base.columns import Column
from .base.units import DAY_S
from .catalogue.words import Recompute, Sharding
from .physics.constants import Constants
from .physics.software import USUAL, Software
from .physics.wires import CurveConstants, constants as ring_constants


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
    tied: bool = False  # the head's weights are the embedding's


@dataclass(frozen=True)
class Chip:
    """What one device can do, and its links."""

    flops: float  # dense 16-bit peak [FLOP/s]
    hbm_bytes_per_s: float
    link_bytes_per_s: float  # inside a node
    network_bytes_per_s: float  # between nodes
    host_bytes_per_s: float  # to the host's memory
    wave_outputs: float  # of a product, made at once: units x 128 x 256; 0: few large units
    node: int = 8  # devices that the fast link joins
    newer_flash: bool = True  # FlashAttention-3 exists
    mesh: bool = False  # the link is one to each other device of the node, not to a switch


@dataclass(frozen=True)
class Plan:
    """How the run is laid out: tp x pp x dp devices."""

    tp: int
    pp: int
    dp: int
    micro_batch: int = 1  # sequences
    vpp: int = 1  # chunks of a stage; above 1 the schedule is interleaved, else 1F1B
    # NONE, ZERO1: the optimizer over dp, ZERO3: weights and gradients too
    sharding: Sharding = Sharding.ZERO1
    recompute: Recompute = Recompute.NONE  # SELECTIVE: of the attention core
    sequence_parallel: bool = True


@dataclass(frozen=True)
class Run:
    """One plan of one model on one machine, and the constants that no formula gives."""

    model: Model
    chip: Chip
    plan: Plan
    seq_len: int
    global_batch: int  # sequences
    k: Constants
    stack: Software = USUAL
    ring: CurveConstants = field(default_factory=ring_constants)
    grad_bytes: float = 4.0  # of a gradient as it is summed and sent
    bf16: bool = True  # not fp16

    @property
    def devices(self) -> int:
        return self.plan.tp * self.plan.pp * self.plan.dp

    @property
    def tokens(self) -> int:
        """Of a micro-batch."""
        return self.plan.micro_batch * self.seq_len

    @property
    def micro_batches(self) -> float:
        """Of a replica and step."""
        return max(self.global_batch / (self.plan.dp * self.plan.micro_batch), 1.0)

    @property
    def stream(self) -> float:
        """Values of the residual stream on a rank: divided by tp under sequence parallelism."""
        shards = self.plan.tp if self.plan.sequence_parallel else 1
        return self.tokens * self.model.hidden / shards

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
    """L w + v h, twice where the head has weights of its own. [count]"""
    return m.layers * layer_weights(m) + (1 if m.tied else 2) * m.vocab * m.hidden


def flops_per_token(m: Model, seq_len: int) -> float:
    """6 (L w + v h) + 12 L s q: three forwards, head in, look-up out, attention in full, recompute
    out. PaLM (arXiv 2204.02311), appendix B. [FLOP]"""
    linear = m.layers * layer_weights(m) + m.vocab * m.hidden
    return 6 * linear + 12 * m.layers * seq_len * m.heads * m.head_dim


def stage_layers(layers: int, pp: int, stage: int) -> int:
    """Layers of a stage: even, the rest one each from the second on; where L + 2 divides and L does
    not, one fewer at both ends (Llama 3, arXiv 2407.21783, section 3.3.2). [count]"""
    ends = layers % pp != 0 and (layers + 2) % pp == 0
    places, over = divmod(layers + 2 * ends, pp)
    return places + (0 < stage <= over) - (ends and stage in (0, pp - 1))


# Memory --------------------------------------------------------------------------------------


def saved_bytes(r: Run, scores: bool = True) -> float:
    """Activations of a layer that its backward needs: inputs and outputs of norms, q, k, v, scores
    where they are written out, outputs of attention and MLP. s b h (34 + 5 a s / h) for GPT with
    dropout: Korthikanti et al. 2022 (arXiv 2205.05198), equations 1 to 4. [bytes]"""
    m, mask, eager = r.model, r.k.memory.dropout, r.stack.fused_norm == 0
    norms = 12 * eager * (1 - r.stack.norm_kernel)  # of one operation after the other, in fp32
    mlp = (4 + 2 * m.gated * (1 + eager)) * m.ffn
    inner: Column = 4 * (m.heads + m.kv_heads) * m.head_dim + mlp
    if scores and r.stack.flash == 0:
        inner += (2 + 3 * mask + 4 * eager) * m.heads * r.seq_len
    return float((8 + 2 * mask + norms) * r.stream + r.tokens * inner / r.plan.tp)


def activation_bytes(r: Run, stage: int, gradients: float, logits: float) -> float:
    """What recompute leaves of a layer, by layers and micro-batches in flight, p - i under 1F1B and
    (p v + p - 2 i - 1) / v interleaved (Narayanan et al. 2021, arXiv 2104.04473, section 2.2); and
    the logits or the layer at work: a share of its list and what it repeats. [bytes]"""
    p, v, memory, whole = r.plan.pp, r.plan.vpp, r.k.memory, saved_bytes(r)
    remains = {
        Recompute.NONE: whole,
        Recompute.SELECTIVE: saved_bytes(r, scores=False),
        Recompute.FULL: 2 * r.stream,
    }
    layer = remains[r.plan.recompute]
    flight = min((p * v + p - 2 * stage - 1) / v if v > 1 else p - stage, r.micro_batches)
    stored = memory.activation * flight * stage_layers(r.model.layers, p, stage) * layer
    work = memory.activation * (memory.working * whole + whole - layer)
    if memory.fresh_gradients and r.micro_batches <= 1:  # they take the place of what it frees
        return float(max(stored + logits, max(stored, gradients) + work) - gradients)
    return float(stored + max(work, logits))


def gradient_bytes(r: Run) -> float:
    """Bytes of a gradient as it is kept: under DeepSpeed's pipeline engine the 16-bit one beside
    the fp32 one, and what buckets hold again."""
    memory, driven = r.k.memory, r.stack.step_engine > 0
    wide = r.grad_bytes if driven else min(r.grad_bytes, float(memory.plain_gradients))
    beside = float(max(memory.bf16_gradients, driven * memory.engine_gradients)) * r.bf16
    again = min(float(memory.bucket_bytes), r.grad_bytes) * (r.plan.dp > 1)
    return max(wide, beside) + again


def stage_bytes(r: Run, stage: int) -> dict[str, float]:
    """A device of one stage. A parameter: weight 2, gradient, Adam with master copy 12, each over
    dp as sharded (ZeRO, arXiv 1910.02054, section 5). Other: gathered layers, the head's gradient,
    buffers, the framework, fragmentation. [bytes]"""
    m, p, memory = r.model, r.plan, r.k.memory
    last, zero3 = stage == p.pp - 1, p.sharding == Sharding.ZERO3
    layer, end = layer_weights(m) / p.tp, m.vocab * m.hidden / p.tp
    count = stage_layers(m.layers, p.pp, stage)
    params = count * layer
    params += end * ((stage == 0) + last * (p.pp > 1 or not m.tied))
    updated = params if p.sharding == Sharding.NONE else params / p.dp
    resident = updated if zero3 else params
    gradients = gradient_bytes(r) * resident
    logits = r.tokens * m.vocab / p.tp * float(r.stack.logit_bytes or memory.logit_bytes) * last
    parts = {
        "weights": 0.0 if zero3 and memory.fp32_shards else 2 * resident,
        "gradients": gradients,
        "optimizer": 12 * updated,
        "activations": activation_bytes(r, stage, gradients, logits),
        "other": 2 * end * last,
    }
    if zero3:  # whole while in use
        gathered = min(float(memory.layers_gathered) if r.stack.reshard else m.layers, count)
        parts["other"] += 2 * gathered * layer + 2 * end * (stage == 0 or last)
    if r.grad_bytes <= 2:  # widened while the optimizer steps, in the place of the activations
        wide = float(memory.step_bytes) * updated
        parts["other"] = max(parts["other"], wide - parts["activations"])
    parts["other"] += 4 * r.tokens * m.hidden * (p.tp > 1) + 16 * r.stream * (p.pp > 1)
    rest = memory.framework_bytes + memory.fragmentation * sum(parts.values())
    return parts | {"other": parts["other"] + float(rest)}


def memory_bytes(r: Run) -> dict[str, float]:
    """Parts of the fullest device: the first, second or last stage. [bytes]"""
    stages = {0, min(1, r.plan.pp - 1), r.plan.pp - 1}
    return max((stage_bytes(r, i) for i in stages), key=lambda parts: sum(parts.values()))


# Step time -----------------------------------------------------------------------------------


def product_s(r: Run, inputs: float, outputs: float) -> float:
    """2 t i o / (sustained share of the peak), longer by part-filled last waves of tiles in two of
    three passes (NVIDIA, matrix multiplication guide), and every operand over HBM, the additive
    roofline (Williams et al. 2009, doi:10.1145/1498765.1498785). [s]"""
    k, t = r.k, r.tokens
    idle: Column = 0.0
    if r.chip.wave_outputs:
        waves = [t * width / r.chip.wave_outputs for width in (inputs, outputs)]
        idle = sum(min(ceil(n) / n - 1, 1) for n in waves) / 3 * k.wave
    moved = 2 * k.gemm_bytes * (t * inputs + inputs * outputs + t * outputs)
    return float(
        2 * t * inputs * outputs / (r.chip.flops * k.gemm) * (1 + idle)
        + moved / r.hbm
        + k.gemm_launch_s
    )


def attention_s(r: Run) -> tuple[float, float]:
    """(forward, backward) of a layer's core. Flash: the causal half, backward 2.5 forwards
    (FlashAttention-2, arXiv 2307.08691, section 3.1), slower on short sequences and few tiles of
    128 queries and a head; scores written out: all of them, and passes over HBM (Korthikanti et al.
    2022, section 4). [s]"""
    k, heads, t, s = r.k, r.model.heads / r.plan.tp, r.tokens, r.seq_len
    if r.stack.flash == 0:
        full = 4 * t * s * heads * r.model.head_dim / (r.chip.flops * k.attention_full * k.gemm)
        full += 2 * k.scores_passes * t * s * heads / r.hbm
        return float(full), float(2 * full)
    share = k.attention * s / (s + k.attention_half)
    share *= k.attention_fa2 if r.stack.flash < 3 and r.chip.newer_flash else 1.0
    share *= k.attention_fa1 if r.stack.flash == 1 else 1.0
    core = 2 * t * s * heads * r.model.head_dim / (r.chip.flops * share)
    idle = k.attention_tiles * 128 / (heads * t)
    backward = 2.5 * core / k.attention_backward * (1 + k.attention_tiles_backward * idle)
    return float(core / k.attention_forward * (1 + idle)), float(backward)


def elementwise_s(r: Run) -> float:
    """A layer's norms and residuals (11 bytes a value of the stream, twice), rotary and activation,
    forward, each tensor once over HBM: Korthikanti et al. 2022, section 4. [s]"""
    m = r.model
    inner = 4 * (m.heads + m.kv_heads) * m.head_dim + (4 + 2 * m.gated) * m.ffn
    norm = r.k.norm_kernel if r.stack.norm_kernel else 1.0
    chain = r.k.elementwise * norm * (1.0 if r.stack.fused_norm else r.k.eager)
    return float((22 * r.stream + r.tokens * inner / r.plan.tp) * chain / r.hbm)


def ring_s(r: Run, nbytes: float, ranks: int, packed: int, share: float = 1.0) -> float:
    """All-gather or reduce-scatter: (n - 1) / n S bytes at the slower of the link and the cards of
    the members in a node, n - 1 steps, under the faster of two protocols, LL128 and Simple
    (NVIDIA/nccl, src/graph/tuning.cc). packed: ranks of other groups between two members. [s]"""
    k, w, chip = r.k, r.ring, r.chip
    inside = min(max(chip.node // packed, 1), ranks)
    out = ranks / inside - 1  # steps between nodes
    rate, fill = chip.link_bytes_per_s * k.scale_up_share * w.ring_share, w.fill
    if chip.mesh and inside > 1:
        rate *= (inside - 1) / (chip.node - 1)
    if out:
        card = chip.network_bytes_per_s * k.scale_out_share * w.out_share * share
        rate, fill = min(rate, inside * card), w.fill_out
    times = []
    for begin, hop, hop_out, payload in ((10e-6, 1.9e-6, 4e-6, 0.92), (8.4e-6, 3.4e-6, 14e-6, 1.0)):
        start = w.start * begin + w.hop * hop * (ranks - 1 - out) + w.hop_out * hop_out * out
        wire = (ranks - 1) / ranks * nbytes / (rate * payload)
        times.append(start + wire + 2 * fill * sqrt(start * wire))
    return float(min(times))


def tensor_parallel_s(r: Run) -> float:
    """Exposed of a layer: two all-reduces of t h forward, as many backward, forward's again under
    full recompute, more with sequence parallelism (Korthikanti et al. 2022, section 4.2.2). [s]"""
    k, p, stack = r.k, r.plan, r.stack
    forward = 4 * ring_s(r, 2 * r.tokens * r.model.hidden, p.tp, 1) * (p.tp > 1)
    exposed = k.tp_exposed * (k.tp_alone if stack.tp_overlap not in (0, 1) else 1.0)
    exposed = k.tp_overlapped if stack.tp_overlap == 1 else exposed
    backward = min(exposed, k.tp_overlapped) if stack.async_reduce else exposed
    more = k.tp_sequence * (1 + stack.async_reduce) * p.sequence_parallel
    return float(forward * (exposed * (1 + (p.recompute == Recompute.FULL) + more) + backward))


def send_s(r: Run) -> float:
    """Exposed sends of a micro-batch between stages, each chunk, both ways. [s]"""
    p, exposed = r.plan, r.k.pp_exposed if r.stack.p2p_overlap else 1.0
    one = 2 * ring_s(r, 2 * r.stream, 2, max(p.tp * p.dp * p.pp // 2, 1)) * (p.pp > 1)
    return float(2 * p.vpp * one * exposed)


def data_parallel_s(r: Run, params: float, forward_s: float, backward_s: float) -> float:
    """Exposed of `params` parameters. Gradients beside the last backward and, under zero1, weights
    beside a forward: c^2 / (c + w) of c beside w (ZeRO, section 7). zero3: both in every
    micro-batch, prefetched layer by layer (FSDP, arXiv 2304.11277, section 3.3). [s]"""
    p, k, stack, grads, weights = r.plan, r.k, r.stack, r.grad_bytes * params, 2 * params
    if p.dp == 1:
        return 0.0
    if p.sharding == Sharding.ZERO3 and (stack.reshard or p.pp == 1):
        gathers, work, q = 2 if stack.reshard else 1, forward_s + backward_s, k.fsdp_power
        pieces = (1 + gathers) * r.model.layers / p.pp
        packed = r.chip.node if stack.own_card and p.dp * p.tp > r.chip.node else p.tp
        wire: Column = pieces * ring_s(r, (gathers * weights + grads) / pieces, p.dp, packed)
        if stack.dp_overlap:
            wire = (work**q + wire**q) ** (1 / q) - work + k.fsdp_contention * min(wire, work)
        copied = stack.gather_copies * (10 + r.grad_bytes) * params / r.hbm
        return float(r.micro_batches * (wire + copied))
    share = 1.0 if stack.dp_overlap else float(k.dp_alone)
    buckets = float(max(grads / k.dp_bucket_bytes, 1.0))
    passes = 2.0 if p.sharding == Sharding.NONE or stack.grad_all_reduce else 1.0
    window = stack.dp_overlap * (1 + p.pp * (p.vpp - 1)) / p.vpp
    reduce = passes * buckets * ring_s(r, grads / buckets, p.dp, p.tp, share)
    gather = buckets * ring_s(r, weights / buckets, p.dp, p.tp, share)
    exposed = gather**2 / (gather + window * forward_s) if p.sharding != Sharding.NONE else 0.0
    return float(exposed + reduce**2 / (reduce + window * backward_s))


def layer_s(r: Run) -> tuple[float, float]:
    """(forward and backward, what is recomputed) of a layer and micro-batch: products and chains
    three times, attention, weight gradients added to a buffer, launches, tensor-parallel traffic;
    no less than a host needs that dispatches tensor parallelism operation by operation. [s]"""
    m, p, k, (core, core_back) = r.model, r.plan, r.k, attention_s(r)
    once = sum(product_s(r, *widths) for widths in products(m, p.tp)) + elementwise_s(r)
    full = once + core + float(k.layer_host_s)
    recomputed = {Recompute.NONE: 0.0, Recompute.SELECTIVE: core, Recompute.FULL: full}[p.recompute]
    added = (
        (2 * r.grad_bytes - 2) * layer_weights(m) / p.tp / r.hbm * (p.sharding != Sharding.ZERO3)
    )
    both = 3 * once + core + core_back + added + k.host_passes * k.layer_host_s
    both += tensor_parallel_s(r)
    least = k.eager_tp_s - recomputed if r.stack.eager_tp and p.tp > 1 else 0.0
    return float(max(both, least)), recomputed


def head_s(r: Run) -> float:
    """Three products of t h v and the cross entropy's bytes. [s]"""
    width, k = r.model.vocab / r.plan.tp, r.k
    loss = k.logit_bytes * (1.0 if r.stack.fused_norm else k.logit_eager) * r.tokens * width
    return float(3 * product_s(r, r.model.hidden, width) + loss / r.hbm)


def step_s(r: Run) -> float:
    """m micro-batches of the slowest stage, the bubble of (p - 1) / v of an average one (Narayanan
    et al. 2021, section 2.2), exposed data-parallel traffic, optimizer, host, stragglers. [s]"""
    m, p, k = r.model, r.plan, r.k
    (work, recomputed), head = layer_s(r), head_s(r)
    counts = [stage_layers(m.layers, p.pp, i) for i in range(p.pp)]
    slowest = max(max(counts) * (work + recomputed), counts[-1] * (work + recomputed) + head)
    bubble = (p.pp - 1) / p.vpp * (m.layers * (work + recomputed) + head) / p.pp
    ends = m.vocab * m.hidden * (1 if p.pp > 1 or m.tied else 2)
    params = (m.layers * layer_weights(m) / p.pp + ends) / p.tp
    forward = (max(counts) * work + head * (p.pp == 1)) / 3
    traffic = data_parallel_s(r, params, forward, slowest - forward)
    update = k.optimizer_bytes * params / (1 if p.sharding == Sharding.NONE else p.dp) / r.hbm
    total = r.micro_batches * (slowest + send_s(r)) + bubble + traffic + update + k.step_host_s
    wide = 0 if r.stack.tuned > 0 else min(max(log2(r.devices / 1024), 0), 2)
    slower = 1 + k.straggler * log2(max(r.devices / k.straggler_devices, 1.0))
    slower += k.straggler_wide * wide
    return float(total * k.overall * (k.engine if r.stack.step_engine else 1.0) * slower)


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
    MTBF M, detection D, restart R, a copy durable after w, saves that stall d every tau, which is
    sqrt(2 d M) - d, or until the last copy is durable. Young 1974 (doi:10.1145/361147.361115);
    Daly 2006 (doi:10.1016/j.future.2004.11.016)."""
    mtbf = DAY_S * 1000 * 8 / (fleet.failures_per_1000_node_days * r.devices)
    copy = 14 * parameters(r.model)  # weights, master weights, moments [bytes]
    # 0.5 s blocked, 20 s to commit (ByteCheckpoint, NSDI'25, Table 8); half the host link's rate
    stall = 0.5 + copy / r.devices / (0.5 * r.chip.host_bytes_per_s)
    durable = 20 + copy / fleet.write_bytes_per_s
    every = max(sqrt(2 * stall * mtbf) - stall, durable - stall, step_s(r))
    failures = exp((fleet.restart_s + durable) / mtbf) * expm1((every + stall) / mtbf)
    return every / ((mtbf + fleet.detect_s) * failures)


def cost_usd(r: Run, fleet: Fleet, tokens: float, usd_per_device_hour: float) -> float:
    """(Devices + spares) x tokens / (tokens a step) x step / goodput x price. [USD]"""
    wall_s = tokens / (r.global_batch * r.seq_len) * step_s(r) / goodput(r, fleet)
    return (r.devices + fleet.spares) * wall_s / 3600 * usd_per_device_hour
