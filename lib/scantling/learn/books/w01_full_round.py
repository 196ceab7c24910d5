"""The full round: a dense model of the 100B to 700B class on 16,384 H100, from first questions to the defence of the plan."""
from __future__ import annotations

from functools import cached_property

from ...design import Design
from ...model import flops_per_token, parameters
from ...verdict import assess
from ..question import Explain, Number, Point, Slip, Walkthrough


class Facts:
    """The fleet, the model and what the kit makes of them."""

    devices = 16_384

    @cached_property
    def design(self):
        return Design.from_data({"model": "llama-3.1-405b", "cluster": {"accelerator": "h100-sxm", "devices": self.devices, "devices_per_node": 8, "scale_out": "rocev2-400", "pod_devices": 3072},
                                 "job": {"tokens": 15.6e12, "seq_len": 8192, "global_batch": 2048, "precision": "bf16"}, "reliability": {"preset": "llama3"}})

    @cached_property
    def result(self):
        return assess(self.design)

    @cached_property
    def model(self):
        return self.result.resolved.model

    @cached_property
    def params(self):
        return float(parameters(self.model).total)

    @cached_property
    def flops(self):
        return 6 * self.params * self.tokens
    tokens = 15.6e12


QUESTIONS = (
    Number("flops", "How much compute does the run need, in FLOP?", "size", "senior",
           ("Parameters times tokens, times a constant.", "Two FLOP per parameter forward, twice that backward.", "`6 · {params:params} · {tokens:params}`"),
           "`6 · N · D` = {flops:flop}.", "Six FLOP per parameter and token.",
           expected="flops", unit="FLOP", within=1.08, shown="flop",
           slips=(Slip(lambda f: f.flops / 3, "That is the forward pass alone, `2 · N · D`: the backward pass costs twice as much again."),)),
    Explain("why", "Why?", "scope", "staff", ("a", "b", "c"), "x", points=(Point("says goodput", (r"goodput",)),), model="Because goodput."),
)

WALKTHROUGH = Walkthrough("01", "full_round", "The full round: 405B on 16,384 H100", 55, Facts, QUESTIONS)
