"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries, keys and
values come back from low-rank latents."""

import numpy as np

from ..base.columns import Column
from ..base.records import record
from .answers import Gemm
from .attention import Softmax
from .kernels import Device


@record
class Mla(Softmax):
    """`q_lora` 0: queries without a low rank. Keys are nope + rope wide a head, values v_head."""

    kind = "mla"
    latent = True

    q_lora: Column
    kv_lora: Column
    qk_nope: Column
    qk_rope: Column
    v_head_dim: Column

    @property
    def q_head(self) -> Column:
        return self.qk_nope + self.qk_rope

    @property
    def v_head(self) -> Column:
        return self.v_head_dim

    @property
    def kv_width(self) -> Column:
        """As expanded, the mean of keys and values."""
        return self.heads * (self.q_head + self.v_head) // 2

    @property
    def saved_heads(self) -> Column:
        return self.heads

    @property
    def down(self) -> Column:
        """Outputs of the down-projections."""
        return self.q_lora + self.kv_lora + self.qk_rope

    @property
    def qkv_outputs(self) -> Column:
        return self.down

    @property
    def latent_norms(self) -> Column:
        return self.q_lora + self.kv_lora

    @property
    def up_weights(self) -> Column:
        """Of the up-projections, which bring q, k and v back. [count]"""
        up_kv = self.kv_lora * self.heads * (self.qk_nope + self.v_head)
        return self.q_lora * self.q_width + up_kv

    @property
    def latent_bytes(self) -> Column:
        return 4.0 * self.down

    @property
    def chain_width(self) -> Column:
        return self.heads * (self.q_head + self.v_head) / 2

    def weights(self) -> Column:
        """h q_lora + q_lora q, or h q without the low rank; h (kv_lora + rope) + kv_lora heads
        (nope + v) + heads v h. [count]"""
        wide = self.down + self.out_width + self.gate_width + (self.q_lora <= 0) * self.q_width
        return self.hidden * wide + self.up_weights

    def gemms(self, on: Device) -> tuple[Gemm, ...]:
        t, h, tp, heads = on.tokens, self.hidden, on.plan.tp, self.heads
        q_in = np.where(self.q_lora > 0, self.q_lora, h)
        up_q = heads * self.q_head / tp
        up_kv = heads * (self.qk_nope + self.v_head) / tp
        out = heads * self.v_head / tp
        gate = self.gate_width / tp
        weights = h * self.down + q_in * up_q + self.kv_lora * up_kv + h * (out + gate)
        across = self.down + q_in + up_q + self.kv_lora + up_kv + out + gate
        return (
            Gemm(
                "projections",
                flops=2 * t * weights,
                elements=t * (2 * h + across) + weights,
                kernels=2.0,
                idle=on.idle_flops(h, (up_q, up_q)),
            ),
        )
