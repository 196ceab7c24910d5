"""A mixture of experts: router, routed experts of which a token visits `top_k`, shared experts."""

import numpy as np

from ..base.columns import Column, some
from ..base.records import record
from .answers import Exchange, Gemm, Saved, Time
from .block import Block
from .kernels import GATHERED, STREAM_BYTES, Device
from .mlp import chain_bytes, mlp_gemm, mlp_parameters
from .saved_tensors import Keeping, stream_bytes


@record
class Moe(Block):
    """`width` of one routed expert, `shared_width` of a layer's shared experts together."""

    kind = "moe"
    place = "feed"

    experts: Column
    top_k: Column
    width: Column
    shared_width: Column
    matrices: Column
    shared_gate: Column = 0  # hidden x 1 gate on the shared expert
    expert_bias: Column = 0
    shared_bias: Column = 0
    router_bias: Column = 0
    router_scales: Column = 0  # one number a value of the stream and one an expert (Gemma 4)
    latent: Column = 0  # width that experts work in; 0: the stream's
    latent_norm: Column = 0
    zero_experts: Column = 0  # that the router knows and that compute nothing
    parallel: Column = 0

    @property
    def outer(self) -> Column:
        """Width of what an expert reads and writes."""
        return self.hidden + (self.latent > 0) * (self.latent - self.hidden)

    @property
    def active_bytes(self) -> Column:
        return chain_bytes(self.matrices) * (self.top_k * self.width + self.shared_width)

    def to_latent(self) -> Column:
        """Weights of the projections into the latent width and back. [count]"""
        return 2 * self.hidden * self.latent

    def expert(self) -> Column:
        """Parameters of one routed expert: n l i, l the width it reads. [count]"""
        return mlp_parameters(self.matrices, self.outer, self.width, self.expert_bias)

    def parameters(self) -> dict[str, Column]:
        expert = self.expert()
        return {
            "shared_experts": mlp_parameters(
                self.matrices,
                self.hidden,
                self.shared_width,
                self.shared_bias * (self.shared_width > 0),
            ),
            "other": self.shared_gate * self.hidden
            + self.to_latent()
            + self.latent_norm * self.latent
            + self.router_scales * (self.hidden + self.experts),
            "router": self.hidden * (self.experts + self.zero_experts)
            + self.router_bias * self.experts,
            "routed_experts": self.experts * expert,
            "unused": (self.experts - self.top_k) * expert,
        }

    def flops(self, seq_len: Column) -> dict[str, Column]:
        per_width = 6 * self.matrices
        return {
            "shared_experts": per_width * self.hidden * self.shared_width,
            "shared_gate": 6 * self.shared_gate * self.hidden,
            "router": 6 * self.hidden * (self.experts + self.zero_experts),
            "routed_experts": per_width * self.outer * self.width * self.top_k
            + 6 * self.to_latent(),
        }

    def expert_rows(self, on: Device) -> Column:
        """Token copies that one rank's experts process at even routing: t x top_k x etp / tp."""
        return on.tokens * self.top_k * on.plan.etp / on.plan.tp

    def busiest_rows(self, on: Device) -> Column:
        """Token copies of the fullest expert rank: it sets the pace, unless each rank has all
        experts, routing is forced even or what is over an even share dropped."""
        of = on.software
        skew = np.where(of.expert_skew > 0, of.expert_skew, on.constants.ep_imbalance)
        room = np.where(of.capacity_factor > 0, of.capacity_factor, 1.0)
        return self.expert_rows(on) * np.where(
            (of.even_routing > 0) | (on.plan.ep <= 1), room, skew
        )

    def on_rank(self, on: Device) -> tuple[Column, Column, Column, Column]:
        """(token copies, experts, their width, the shared ones' width) of the fullest rank."""
        p = on.plan
        experts, width, shared = self.experts / p.ep, self.width / p.etp, self.shared_width / p.tp
        return self.busiest_rows(on), experts, width, shared

    def gemms(self, on: Device) -> tuple[Gemm, ...]:
        k, h, n = on.constants, self.outer, self.matrices
        rows, local, f, shared = self.on_rank(on)
        each = np.maximum(rows / np.maximum(local, 1), 1.0)
        grouped = Gemm(
            "experts",
            flops=2 * rows * h * f * n,
            elements=rows * (2 * h + n * f) + local * n * h * f,
            kernels=2.0,
            rate=on.linear_flops * k.grouped_gemm * each / (each + k.grouped_half),
        )
        # the stream is read and written beside the experts, whether or not there are shared ones
        always = mlp_gemm("shared_experts", self.matrices, self.hidden, shared, on)
        always = always._replace(kernels=2.0 * (self.shared_width > 0))
        if not some(self.latent):
            return grouped, always
        t, weights = on.tokens / on.shards, self.to_latent()
        around = Gemm(
            "latent",
            flops=2 * t * weights,
            elements=2 * t * (self.hidden + self.latent) + weights,
            kernels=2.0,
        )
        return grouped, always, around

    def router_s(self, on: Device) -> Column:
        """Seconds of the product of tokens and router in 16 bit."""
        flops = 2 * on.tokens / on.shards * self.hidden * self.experts
        return flops / (on.bf16_flops * on.constants.router)

    def kernel_s(self, on: Device) -> Time:
        k, t, h = on.constants, on.tokens, self.hidden
        rows, local, f, shared = self.on_rank(on)
        # of the experts' inner tensors, what the products do not apply and cast themselves
        apart = rows * f * (1 - on.software.fused_experts)
        chain = chain_bytes(self.matrices) * (apart + t * shared) + t * STREAM_BYTES * h / on.shards
        cast = rows * 2 * self.outer + 3 * (apart + t * shared)
        static = np.where(on.software.even_routing > 1, k.static_host, 1.0)
        shards = (on.software.whole_experts == 0) | (on.plan.ep == 1)
        gathered = (on.plan.sharding >= GATHERED) & shards
        fetched = np.where(gathered, k.expert_gather_s, 0.0)
        looped = on.software.looped_experts * local * (k.expert_loop_s + fetched)
        return Time(
            gemm=sum(on.gemm_s(product) for product in self.gemms(on)) + self.router_s(on),
            elementwise=on.chain_s * chain + k.permute * 2 * rows * self.outer / on.bytes_per_s,
            cast=on.cast_s * cast,
            host=(k.moe_host_s * static + looped) * on.host_share,
            accumulate=on.gradient_s * self.matrices * (local * f * self.outer + shared * h),
        )

    def saved_bytes(self, keep: Keeping) -> Saved:
        """Norm input and output; router 8 E; rows of the rank as they come and go; the experts'
        inner tensors, split over etp, and the shared ones'."""
        stream, wide = stream_bytes(self.hidden, keep, 2.0 - 2.0 * self.parallel), keep.wide
        copies = self.top_k * keep.imbalance
        width = copies * self.width + self.shared_width
        up = 2.0 * (self.matrices - 1) * wide
        mid = keep.linear_bytes * wide
        silu = 2.0 * wide * keep.eager_experts * (self.matrices - 2) * copies * self.width
        router = 8.0 * self.experts * wide
        across = copies * self.outer * wide
        return Saved(
            outer=stream.outer + router,
            outer_selective=stream.outer_selective + keep.moe * router,
            inner=(up + mid) * width + silu,
            inner_selective=keep.moe
            * ((keep.gemm * up * keep.narrow + keep.act * mid) * width + keep.gemm * silu),
            routed=across * (keep.linear_bytes + keep.expert_bytes),
            routed_selective=keep.moe
            * across
            * (keep.gemm * keep.linear_bytes + keep.act * keep.expert_bytes),
            copies=copies,
        )

    def exchanges(self) -> Exchange:
        # experts that are not tensor-parallel need no collectives of the stream
        return Exchange(
            tensor=1.0 * (self.shared_width > 0),
            copies=self.top_k,
            narrow=1 - self.outer / self.hidden,
        )
