"""A fine-tuning step: what it takes and holds, from the core's step and memory of the same plan.

A frozen base has no weight gradients, no gradient traffic and no optimizer: two passes of three of
its products remain (2 + 2 of the 6 FLOP a weight and token), and of its state the weights alone, in
as many bits as they are kept in. Adapters add narrow products beside every adapted projection
(`adapters`), their own gradients and moments. 4-bit weights are unpacked before every product that
reads them (Dettmers et al. 2023, QLoRA, arXiv 2305.14314, section 3). DPO runs two sequences a pair
through the trained model and forward through the reference (Rafailov et al. 2023, arXiv 2305.18290,
equation 7); beside adapters that is the base itself, unpacked once more where it is in 4 bits.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scantling.base.columns import Column
from scantling.blocks.head import Head
from scantling.blocks.moe import Moe
from scantling.catalogue.models.shape import as_floats, parameters
from scantling.physics.cases import ZERO3, Cases
from scantling.physics.compute import hbm_rate
from scantling.physics.memory.peak import Memory, memory
from scantling.physics.step import Step, device_params, step_time

from .adapters import Targets, adapted, adapter_flops, adapter_parameters
from .constants import Constants
from .tuning_columns import Tuning

SCALE_BITS = 0.127  # of a weight of 4 bits (QLoRA, section 3)
UNPACKED_BYTES = 2.0  # of a weight in the format of the products


class Spent(NamedTuple):
    """Seconds of one optimizer step by what they go to; they sum to `total`."""

    products: Column
    attention: Column
    elementwise: Column
    logits: Column
    recompute: Column
    adapters: Column
    unpacking: Column
    exposed: Column  # traffic that nothing hides, and bubbles
    optimizer: Column
    host: Column
    reference: Column

    @property
    def total(self) -> Column:
        """Seconds of one step."""
        return sum(self[1:], self[0])


def passes(c: Cases) -> Column:
    """Passes over a layer in one step and micro-batch: forward, backward, and forward again where
    it is repeated."""
    return 2 + c.full_share + 0 * c.micro_batches


def frozen_share(t: Tuning, k: Constants) -> Column:
    """What of the products of a layer is left: all of them, or without the weight gradients."""
    return np.where(t.adapters > 0, k.frozen_products, 1.0)


def layers_run(c: Cases) -> Column:
    """Layers that a device runs in a step: of its stage, for every micro-batch."""
    return c.micro_batches * c.shape.layers / c.plan.pp


def adapters_s(c: Cases, t: Tuning, k: Constants) -> Column:
    """Adapters of a step: their products, and the passes over what they read and write. [s]

    tokens x layers x [passes x bytes x (inputs + outputs) / HBM] + FLOP / peak; forward, backward
    and again where layers are repeated.
    """
    one = adapted(c.shape, t.targets)
    share = np.where(t.fused_lora > 0, k.adapter_fused, 1.0)
    moved = k.adapter_passes * share * 2.0 * (one.inputs + one.outputs) / c.plan.tp
    narrow = adapter_flops(c.shape, t.targets, t.rank) / c.shape.layers / c.plan.tp
    each = moved / hbm_rate(c) + 3 * narrow / (c.chip.bf16_flops * c.constants.gemm)
    return (t.adapters > 0) * layers_run(c) * c.tokens * each * passes(c) / 2


def unpacking_s(c: Cases, t: Tuning, k: Constants) -> Column:
    """Unpacking weights of the base that are kept in fewer than 8 bits, once a pass. [s]

    weights of a device x (bits / 8 + 2) bytes / (share x HBM) x passes x micro-batches.
    """
    dense, experts = device_params(c)
    n = as_floats(parameters(c.shape))
    blocks = np.maximum(dense + experts - (n.embedding + n.lm_head) / c.plan.tp, 0.0)
    share = np.where(t.blockwise > 0, k.unpack_nf4, k.unpack_gptq)
    moved = blocks * (t.base_bits / 8 + UNPACKED_BYTES)
    return (t.base_bits < 16) * c.micro_batches * passes(c) * moved / (hbm_rate(c) * share)


def policy_loss_s(c: Cases, t: Tuning, k: Constants) -> Column:
    """What a policy's loss adds to the head of a step: passes over the logits in fp32. [s]"""
    vocab = sum(head.vocab for head in c.shape.of(Head)) / c.plan.tp
    moved = k.policy_logit_bytes * c.tokens * vocab
    return t.policy_loss * c.micro_batches * moved / hbm_rate(c)


def weights_sent_s(c: Cases, t: Tuning, k: Constants) -> Column:
    """Writing what was trained for an engine that reads it from a file, once a step: 2 bytes a
    trained parameter over the file's rate. [s]"""
    return t.file_sync * 2.0 * trained_parameters(c, t) / k.file_bytes_per_s


def launches_s(c: Cases, t: Tuning, k: Constants) -> Column:
    """What the host takes to launch the kernels of a step where they are launched one by one: the
    layer's own and those of its adapters, once a pass. [s]"""
    one = adapted(c.shape, t.targets)
    layer = k.peft_layer_s + k.peft_module_s * one.modules * (t.adapters > 0)
    layer = layer + k.engine_layer_s * t.engine + unpacking_launches_s(c, t, k) / passes(c)
    untuned = k.experts_layer_s * (c.software.tuned < 0) * c.shape.moe_layers / c.shape.layers
    experts = sum((b.count > 0) * b.experts for b in c.shape.of(Moe)) / c.plan.ep
    looped = t.looped * k.expert_pass_s * experts * c.shape.moe_layers / c.shape.layers
    return layers_run(c) * (t.eager_peft * layer + untuned + looped) * passes(c)


def unpacking_launches_s(c: Cases, t: Tuning, k: Constants) -> Column:
    """What the host takes to launch the unpacking of an average layer's projections, all passes.
    [s]

    bitsandbytes: scales, their offset and the weights, in every pass (functional.py,
    dequantize_4bit). GPTQ's trainable modules: shifts, masks, zeros, scales and reshapes one
    operation each, and not in the backward, whose unpacked weights autograd has kept (AutoGPTQ,
    nn_modules/qlinear/qlinear_cuda.py). A launch is a seventh of an adapter's.
    """
    whole = Targets(qkv=1.0, out=1.0, mlp=1.0, fused=t.targets.fused)
    again = passes(c) - 1
    launches = np.where(t.blockwise > 0, 3 * passes(c), 12 * again)
    return (t.base_bits < 16) * adapted(c.shape, whole).modules * launches * k.peft_module_s / 7


def spent(c: Cases, t: Tuning, k: Constants) -> Spent:
    """The step of every case. [s]"""
    own = with_own_code(c, t, k)
    return spent_of(own, t, k, step_time(own))


def with_own_code(c: Cases, t: Tuning, k: Constants) -> Cases:
    """The cases with the trainer's own code in place of the stack's: the logits that its loss
    keeps, and its element-wise chains; what its host takes to launch them is in `launches_s`."""
    eager = t.eager_chains > 0
    kept = np.where(t.eager_loss > 0, k.eager_logit_bytes - t.logits_spared, c.software.logit_bytes)
    software = replace(
        c.software,
        logit_bytes=kept,
        fused_norm=np.where(eager, 0.0, c.software.fused_norm),
        norm_kernel=np.where(eager, t.norm_kernel, c.software.norm_kernel),
    )
    launched = np.where(eager, 0.0, c.constants.eager_layer_s)
    fewer = np.where(t.adapters > 0, frozen_stream(t), 1.0)  # bytes, as if at a higher rate
    constants = replace(
        c.constants,
        eager_layer_s=launched,
        host_rank_bytes_per_s=fewer * c.constants.host_rank_bytes_per_s,
    )
    chip = replace(c.chip, host_bytes_per_s=fewer * c.chip.host_bytes_per_s)
    return replace(c, software=software, constants=constants, chip=chip)


def frozen_stream(t: Tuning) -> Column:
    """Times as few bytes a frozen base draws from host memory: 2 passes in the bits that it is kept
    in, and no gradients back, in place of the 3 x 16 bits of weights that are trained."""
    return 3 * 16 / (2 * np.where(t.base_bits < 16, t.base_bits + SCALE_BITS, 16.0))


def spent_of(c: Cases, t: Tuning, k: Constants, s: Step) -> Spent:
    """The step of every case from the core's step of the same plan."""
    left = frozen_share(t, k)
    frozen = t.adapters > 0
    wide = 1.0 + in_fp32(c, t)
    products, elementwise = s.gemm * left, wide * s.elementwise
    logits = s.logits * np.where(frozen & (t.ends_trained == 0), left, 1.0)
    logits = logits + policy_loss_s(c, t, k)
    extra, unpacked = wide * adapters_s(c, t, k), unpacking_s(c, t, k)
    gathered = np.where(c.plan.sharding >= ZERO3, 2 / 3, 0.0)
    dp = s.dp * np.where(frozen, gathered, 1.0)
    sent = s.tp + s.cp + s.ep + s.pp + dp
    work = products + elementwise + s.attention + s.recompute + sent + extra + unpacked
    waits = np.maximum(launches_s(c, t, k) - work, 0.0)
    trained = trained_parameters(c, t) / parameters(c.shape).total
    share = np.where(frozen, trained, 1.0)
    forward = t.forwards * (s.gemm + s.elementwise + s.logits + sent) / 3
    forward = forward + t.forwards * (s.attention / 3.5 + unpacked / passes(c))
    bubble = (
        s.bubble
        * (work + logits)
        / np.maximum(
            s.gemm + s.elementwise + s.attention + s.recompute + s.tp + s.cp + s.ep + s.logits,
            1e-12,
        )
    )
    parts = Spent(
        products=products,
        attention=s.attention,
        elementwise=elementwise,
        logits=logits,
        recompute=s.recompute,
        adapters=extra,
        unpacking=unpacked,
        exposed=sent + bubble + s.straggler + s.data,
        optimizer=s.optimizer * share,
        host=s.host + waits,
        reference=forward,
    )
    slower = np.where(t.any_model > 0, k.any_model, 1.0)
    return Spent(*(slower * part for part in parts))


def trained_parameters(c: Cases, t: Tuning) -> Column:
    """Parameters that are updated: all, or the adapters and, where they are trained too, embedding
    and output head. [count]"""
    n = parameters(c.shape)
    ends = t.ends_trained * (n.embedding + n.lm_head)
    some = adapter_parameters(c.shape, t.targets, t.rank) + ends
    return np.where(t.adapters > 0, some, n.total)


class Held(NamedTuple):
    """Bytes on the fullest device by what holds them; they sum to `total`."""

    weights: Column
    trained: Column  # gradients, moments and copies of what is trained
    activations: Column
    other: Column
    capacity: Column

    @property
    def total(self) -> Column:
        """Bytes of the fullest device."""
        return self.weights + self.trained + self.activations + self.other


def without_states(c: Cases) -> Cases:
    """The same cases with nothing beside 16-bit weights: a frozen model."""
    job = replace(c.job, master_bytes=0.0, optimizer_bytes=0.0, grad_bytes=0.0)
    return replace(c, job=job)


def base_weights(c: Cases, t: Tuning, m: Memory) -> Column:
    """Weights of a frozen base on a device: its blocks in `base_bits`, embedding, norms and head as
    they are loaded, or all of them in fp32. [bytes]

    4 bits have a scale of 8 bits a block of 64, and one of 32 bits for 256 of these: 0.127 bits a
    weight (Dettmers et al. 2023, section 3).
    """
    n = as_floats(parameters(c.shape))
    ends = (n.embedding + n.lm_head + n.norms) / n.total
    narrow = (t.base_bits + SCALE_BITS) / 16
    width = np.where(t.base_bits < 16, narrow, 1.0 + t.fp32_base)
    return m.weights * (ends * (1.0 + t.fp32_base) + (1 - ends) * width)


def offloaded(c: Cases, t: Tuning, k: Constants) -> Memory:
    """Memory of the core with what a device keeps in host memory for the method: states of all that
    is trained, of a critic too, or the weights of a frozen base."""
    c = with_own_code(c, t, k)
    whole, frozen = memory(c), memory(without_states(c))
    base = base_weights(c, t, replace(frozen, weights=frozen.host))
    return replace(whole, host=np.where(t.adapters > 0, base, whole.host * (1 + t.critics)))


def trained_bytes(c: Cases, t: Tuning) -> Column:
    """What adapters take on a device: weight and gradient, two moments, and a copy of one while the
    optimizer steps over all tensors at once; embedding and head where they are trained, in 16 bit.
    [bytes]"""
    ranks = c.site_ranks
    whole = np.where(c.plan.sharding >= ZERO3, ranks, 1.0)
    divided = np.where(c.plan.sharding > 0, ranks, 1.0)
    devices = c.plan.tp * c.plan.pp
    n = parameters(c.shape)
    adapters = adapter_parameters(c.shape, t.targets, t.rank) / devices
    ends = t.ends_trained * (n.embedding + n.lm_head) / devices

    def states(count: Column, width: Column) -> Column:
        return count * width * (2 / whole + 3 / divided)

    return states(adapters, t.adapter_bytes) + states(ends, 2.0)


def held(c: Cases, t: Tuning, k: Constants) -> Held:
    """Memory of the fullest device of every case. [bytes]

    Beside the trained model stand the weights of a frozen reference, sharded as the plan shards
    weights (TRL's DPOTrainer, ref_model; with adapters the base is the reference), and a critic
    with all of its states. The reference of a policy waits in host memory (verl, NeMo RL), and is
    not counted.
    """
    c = with_own_code(c, t, k)
    whole, frozen = memory(c), memory(without_states(c))
    adapters = t.adapters > 0
    n = as_floats(parameters(c.shape))
    head = 2.0 * np.where(n.lm_head > 0, n.lm_head, n.embedding) / c.plan.tp
    unpacked = (t.base_bits < 16) * UNPACKED_BYTES * widest_projection(c)
    other = np.maximum(frozen.other - head, 0.0) + unpacked + t.ends_trained * head
    activations = np.where(adapters, frozen.activations, whole.activations)
    activations = activations + fp32_boundaries(c, t)
    gradients = whole.gradients * np.where(t.backward_update > 0, 1 / c.shape.layers, 1.0)
    usual = np.maximum(c.job.optimizer_bytes, 1e-12)
    moments = whole.optimizer * np.where(t.moment_bytes > 0, t.moment_bytes / usual, 1.0)
    parts = (
        np.where(
            adapters,
            base_weights(c, t, frozen),
            whole.weights * (1 + t.critics) + t.forwards * frozen.weights,
        ),
        np.where(adapters, trained_bytes(c, t), (gradients + moments) * (1 + t.critics)),
        activations,
        np.where(adapters, other, whole.other),
    )
    seen = t.context * k.context_bytes + np.maximum(t.context, t.reserved) * (
        k.reserved_share * sum(parts)
    )
    return Held(parts[0], parts[1], parts[2], parts[3] + seen, whole.capacity)


def fp32_boundaries(c: Cases, t: Tuning) -> Column:
    """What boundaries between repeated layers take more in fp32 than in 16 bit: 2 bytes of every
    token and width. [bytes]"""
    boundary = 2.0 * c.shape.hidden * c.tokens / c.sequence_shards
    return in_fp32(c, t) * c.full_share * c.shape.layers / c.plan.pp * boundary


def in_fp32(c: Cases, t: Tuning) -> Column:
    """1 where what runs between layers is in fp32: embedding and norms are (peft, utils/other.py,
    prepare_model_for_kbit_training), and no sharding casts what enters a layer."""
    return t.fp32_stream * (c.plan.sharding < ZERO3)


def widest_projection(c: Cases) -> Column:
    """Weights of the widest product of a layer on a device. [count]"""
    n = as_floats(parameters(c.shape))
    feed = (n.mlp_dense + n.shared_experts) / c.shape.layers / 3
    return feed / c.plan.tp
