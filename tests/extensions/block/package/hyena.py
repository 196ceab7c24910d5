"""The Hyena operator of order 2 (Poli et al. 2023): h x 3h in, h x h out and short filters of
`taps` a channel; its long filters are Fourier transforms, no matrix products, not counted here."""

from scantling.base.records import record
from scantling.blocks import Block, Exchange, Gemm, Saved, Time


@record
class Hyena(Block):
    kind = "hyena"
    place = "mixer"
    taps: int = 3

    def parameters(self):
        return {"other": 4 * self.hidden**2 + self.taps * self.hidden, "norms": 2 * self.hidden}

    def flops(self, seq_len):
        return {"attention_linear": 24 * self.hidden**2}

    def gemms(self, on):
        t, h, tp = on.tokens, self.hidden, on.plan.tp
        elements = t * (2 * h + 4 * h / tp) + 4 * h * h / tp
        return (Gemm("projections", 8 * t * h * h / tp, elements, 2.0),)

    def kernel_s(self, on):
        return Time(gemm=sum(on.gemm_s(product) for product in self.gemms(on)))

    def saved_bytes(self, keep):
        stream = self.hidden * keep.wide
        return Saved(outer=4.0 * stream, outer_selective=4.0 * stream, inner=10.0 * stream)

    def exchanges(self):
        return Exchange(tensor=1.0)
