"""A mixture of experts: router, routed experts of which a token visits `top_k`, shared experts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .kernels import STREAM_BYTES, Device
from .mlp import chain_bytes, mlp_gemm, mlp_parameters, stream_bytes
from .saving import Keeping
from .table import Block, Column, Exchange, Gemm, Saved, Time


@dataclass(
    frozen=True,
    kw_only=True,
)
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
    parallel: Column = 0

    def expert(self):
        """Parameters of one routed expert. [count]"""
        return mlp_parameters(self, self.width, self.expert_bias)

    def parameters(self):
        expert = self.expert()
        bias = self.shared_bias * (self.shared_width > 0)
        return {
            "shared_experts": mlp_parameters(self, self.shared_width, bias),
            "other": self.shared_gate * self.hidden,
            "router": self.hidden * self.experts + self.router_bias * self.experts,
            "routed_experts": self.experts * expert,
            "unused": (self.experts - self.top_k) * expert,
        }

    def flops(self, seq_len):
        per_width = 6 * self.matrices * self.hidden
        return {
            "shared_experts": per_width * self.shared_width,
            "shared_gate": 6 * self.shared_gate * self.hidden,
            "router": 6 * self.hidden * self.experts,
            "routed_experts": per_width * self.width * self.top_k,
        }

    def expert_rows(self, on: Device):
        """Token copies that one rank's experts process at even routing: t x top_k x etp / tp."""
        return on.tokens * self.top_k * on.plan.etp / on.plan.tp

    def busiest_rows(self, on: Device):
        """Token copies of the fullest expert rank: it sets the pace, unless routing is forced even
        or what is over an even share dropped."""
        k = on.constants
        return self.expert_rows(on) * np.where(on.software.even_routing > 0, 1.0, k.ep_imbalance)

    def on_rank(self, on: Device):
        """(token copies, experts, their width, the shared ones' width) of the fullest rank."""
        p = on.plan
        share = self.experts / p.ep, self.width / p.etp, self.shared_width / p.tp
        return self.busiest_rows(on), *share

    def gemms(self, on: Device):
        k, h, n = on.constants, self.hidden, self.matrices
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
        beside = mlp_gemm(
            "shared_experts",
            self,
            on,
            shared,
        )
        kernels = np.where(self.shared_width > 0, 2.0, 0.0)
        return grouped, beside._replace(kernels=kernels)

    def router_s(self, on: Device):
        """Seconds of the product of tokens and router in 16 bit."""
        flops = 2 * on.tokens / on.shards * self.hidden * self.experts
        return flops / (on.bf16_flops * on.constants.router)

    def kernel_s(self, on: Device):
        k, t, h = on.constants, on.tokens, self.hidden
        rows, local, f, shared = self.on_rank(on)
        chain = chain_bytes(self) * (rows * f + t * shared) + t * STREAM_BYTES * h / on.shards
        cast = rows * (2 * h + 3 * f) + t * 3 * shared
        static = np.where(on.software.even_routing > 1, k.static_host, 1.0)
        return Time(
            gemm=sum(on.gemm_s(product) for product in self.gemms(on)) + self.router_s(on),
            elementwise=on.chain_s * chain + k.permute * 2 * rows * h / on.bytes_per_s,
            cast=on.cast_s * cast,
            host=k.moe_host_s * static * on.host_share,
            accumulate=on.gradient_s * self.matrices * h * (local * f + shared),
        )

    def saved_bytes(self, keep: Keeping):
        """Norm input and output; router 8 E; rows of the rank as they come and go; the experts'
        inner tensors, split over etp, and the shared ones'."""
        stream, wide = stream_bytes(self, keep), keep.wide
        copies = self.top_k * keep.imbalance
        width = copies * self.width + self.shared_width
        up, mid = 2.0 * (self.matrices - 1) * wide, keep.linear_bytes * wide
        router, across = 8.0 * self.experts * wide, copies * self.hidden * wide
        return Saved(
            outer=stream.outer + router,
            outer_selective=stream.outer_selective + router,
            inner=(up + mid) * width,
            inner_selective=(keep.gemm * up * keep.narrow + keep.chain * mid) * width,
            routed=across * (keep.linear_bytes + 2.0),
            routed_selective=across * (keep.gemm * keep.linear_bytes + keep.chain * 2.0),
            copies=copies,
        )

    def exchanges(self):
        # experts that are not tensor-parallel need no collectives of the stream
        tensor = np.where(self.shared_width > 0, 1.0, 0.0)[()]
        return Exchange(
            tensor=tensor,
            copies=self.top_k,
        )
