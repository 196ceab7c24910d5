"""What the walkthroughs' facts share: a design in one call, what is read off its assessment, and
the sums that more than one of them needs."""

from __future__ import annotations

from functools import cached_property

from scantling import assess
from scantling.design.design import Design
from scantling.physics.pipeline import bubble_interleaved


def design(
    model,
    devices,
    batch,
    tokens,
    *,
    seq_len=8192,
    precision="bf16",
    plan=None,
    accelerator="h100-sxm",
    per_node=8,
    scale_out="ib-ndr",
    cluster=None,
    usd=None,
    preset=None,
    **more,
) -> Design:
    """A design of one model on one fleet; `cluster` adds fields to it, `usd` is dollars a
    device-hour, `preset` a fleet's failures, `more` any other section."""
    node = {"devices_per_node": per_node} if per_node else {}
    given = {
        "plan": plan,
        "prices": usd and {"usd_per_device_hour": usd},
        "reliability": preset and {"preset": preset},
    }
    return Design.from_data(
        {
            "model": model,
            "cluster": {
                "accelerator": accelerator,
                "devices": devices,
                "scale_out": scale_out,
                **node,
                **(cluster or {}),
            },
            "job": {
                "tokens": tokens,
                "seq_len": seq_len,
                "global_batch": batch,
                "precision": precision,
            },
            **{k: v for k, v in given.items() if v},
            **more,
        }
    )


def bubble(
    stages,
    micro_batches,
    chunks=1,
) -> float:
    """Idle share of an (interleaved) 1F1B step: `i / (m + i)`, i the idle micro-batches."""
    idle = bubble_interleaved(
        p=stages,
        v=chunks,
        F=1 / 3,
        B=1 / 3,
        W=1 / 3,
    )
    return idle / (micro_batches + idle)


class DesignFacts:
    """Facts about one design; a subclass has it as `design`."""

    @cached_property
    def result(self):
        return assess(self.design)

    @cached_property
    def cluster(self):
        return self.result.resolved.cluster

    @cached_property
    def chip(self):
        return self.cluster.accelerator

    @cached_property
    def model(self):
        return self.result.resolved.model

    @cached_property
    def up(self):
        return self.cluster.scale_up_bytes_per_s

    @cached_property
    def out(self):
        return self.cluster.scale_out_bytes_per_s

    @cached_property
    def half(self):
        """Half of what a program can have of one device. [bytes]"""
        return self.chip.hbm_usable_bytes / 2
