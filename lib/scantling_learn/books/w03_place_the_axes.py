"""Place the axes: what each parallel axis sends, over which tier, how much of it can hide, and on
which machine the answer turns."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scantling import assess, catalogue
from scantling.catalogue.models.shape import parameters

from ..measured import published_runs, runs
from .base import DesignFacts, design


class Facts(DesignFacts):
    """405B on 4,096 H100; what one layer, one micro-batch and one step put on the wires; the same
    on a rack-scale machine."""

    devices, seq_len, global_batch = 4096, 8192, 2048
    tp, pp, dp, parts = 8, 16, 32, 8

    def make(self, accelerator="h100-sxm", devices=4096, batch=2048, **cluster):
        return design(
            "llama-3.1-405b",
            devices,
            batch,
            1e12,
            seq_len=self.seq_len,
            accelerator=accelerator,
            per_node=8 if accelerator == "h100-sxm" else None,
            cluster=cluster,
            name=f"Llama 3.1 405B on {devices:,} {accelerator}",
        )

    @cached_property
    def design(self):
        return self.make()

    @cached_property
    def classic(self):
        """The plan that the questions are about, pinned."""
        return assess(
            self.design.change(
                plan={
                    "tp": self.tp,
                    "pp": self.pp,
                    "dp": self.dp,
                    "cp": 1,
                    "vpp": self.parts,
                    "schedule": "interleaved",
                }
            )
        )

    @cached_property
    def peak(self):
        return self.cluster.accelerator.bf16_flops

    @cached_property
    def counted(self):
        return parameters(self.model)

    @cached_property
    def layer_params(self):
        return (self.counted.total - 2 * self.counted.embedding) / self.model.layers

    # ---- tensor parallel
    @cached_property
    def activation(self):
        """Bytes of one sequence's hidden states in 16 bit."""
        return self.seq_len * self.model.hidden * 2.0

    def tp_bytes_of(self, tp):
        """Sent by a device per layer and micro-batch: 4 gathers or scatters forward, 4 backward."""
        return 8 * self.activation * (tp - 1) / tp

    @cached_property
    def tp_bytes(self):
        return self.tp_bytes_of(self.tp)

    def compute_of(self, tp):
        """Seconds of a layer's matrix products per micro-batch on one device at full peak, forward
        and backward."""
        return 6 * self.layer_params * self.seq_len / tp / self.peak

    @cached_property
    def compute_s(self):
        return self.compute_of(self.tp)

    @cached_property
    def tp_share(self):
        return self.tp_bytes / self.up / self.compute_s

    @cached_property
    def rails(self):
        """What a ring over two nodes sees at each rank: every device drives its own port, up to the
        link inside."""
        return min(self.up, 8 * self.out)

    @cached_property
    def tp16_share(self):
        return self.tp_bytes_of(16) / self.rails / self.compute_of(16)

    @cached_property
    def two_nodes(self):
        return catalogue.collective_series()["aws_p5_h100_2n_all_reduce"]

    @cached_property
    def by_tp(self):
        return {tp: assess(self.design.change(plan={"tp": tp})) for tp in (2, 4, 8, 16, 32)}

    @cached_property
    def best_tp(self):
        return min(self.by_tp, key=lambda tp: self.by_tp[tp].step_s)

    @cached_property
    def best_tp_answer(self):
        return {
            4: "a",
            8: "b",
            16: "c",
        }.get(self.best_tp, "d")

    # ---- pipeline and data
    @cached_property
    def micro_batches(self):
        return self.global_batch // self.dp

    @cached_property
    def pp_bytes(self):
        return self.activation / self.tp

    @cached_property
    def pp_step(self):
        return self.row("pp")["bytes"]

    @cached_property
    def device_params(self):
        return self.counted.total / (self.tp * self.pp)

    @cached_property
    def dp_bytes(self):
        return self.device_params * (4 + 2) * (self.dp - 1) / self.dp

    def row(self, axis):
        return next(r for r in self.classic.as_dict()["communication"] if r["axis"] == axis)

    @cached_property
    def tp_row(self):
        return self.row("tp")

    @cached_property
    def pp_row(self):
        return self.row("pp")

    @cached_property
    def dp_row(self):
        return self.row("dp")

    @cached_property
    def order(self):
        return sorted(("tp", "pp", "dp"), key=lambda a: -self.row(a)["bytes"])

    @cached_property
    def order_answer(self):
        return {
            ("tp", "pp", "dp"): "c",
            ("dp", "tp", "pp"): "a",
            ("tp", "dp", "pp"): "b",
        }.get(tuple(self.order), "d")

    # ---- fully sharded data parallelism
    @cached_property
    def ridge(self):
        """Tokens per device and micro-batch at which gathering weights twice and scattering
        gradients, 2 bytes each, takes as long as 6 FLOP a token.

        The eight devices of a node take part in one gather, so that its ring crosses on eight
        ports: the rate of `rails`.
        """
        return (2 + 2 + 2) / 6 * self.peak / self.rails

    @cached_property
    def batch_tokens(self):
        return self.global_batch * self.seq_len

    @cached_property
    def tokens_each(self):
        return self.batch_tokens / self.devices

    @cached_property
    def fsdp_devices(self):
        return self.batch_tokens / self.ridge

    @cached_property
    def tokens_frontier(self):
        return self.batch_tokens / 16_384

    @cached_property
    def fsdp(self):
        """(devices, assessment), every device at work: the batch's sequences first, then two and
        more devices to a sequence."""
        batch, out = self.global_batch, []
        for n in (1024, 2048, 4096, 8192, 16_384):
            ranks = dict(
                tp=1,
                pp=1,
                dp=min(n, batch),
                cp=max(1, n // batch),
                sharding="zero3",
            )
            out.append((n, assess(self.make(devices=n).change(plan=ranks))))
        return out

    @cached_property
    def placed(self):
        """(devices, assessment) of the best of all plans."""
        return [(n, assess(self.make(devices=n))) for n, _ in self.fsdp]

    # ---- the rack-scale machine
    @cached_property
    def rack(self):
        design = self.make(
            "gb200-nvl72",
            devices=4608,
            batch=2304,
        )
        return {tp: assess(design.change(plan={"tp": tp})) for tp in (2, 4, 8, 16, 64)}

    @cached_property
    def rack_best(self):
        return min(self.rack, key=lambda tp: self.rack[tp].step_s)

    @cached_property
    def rack_answer(self):
        return "a" if self.rack_best <= 8 else "b" if self.rack_best == 16 else "c"

    @cached_property
    def rack_published(self):
        """Tensor-parallel degrees of the published runs of this model on NVL72 racks."""
        table = published_runs()
        rows = table[
            table.model.str.contains(
                "405b",
                case=False,
                na=False,
            )
            & table.accelerator.isin(["gb200-nvl72", "gb300-nvl72"])
        ]
        return " or ".join(str(int(t)) for t in sorted(rows.tp.dropna().unique(), reverse=True))

    @cached_property
    def measured(self):
        return runs(
            "llama3-405b-t4-1",
            "llama3-405b-t4-2",
            "dgxc-405b-v25.05.05-02",
            "korthikanti-530B-2240-seqsel",
            "megascale-fig9-megascale-530B-11200",
        )

    @cached_property
    def slow_net(self):
        """The same machine with half the bandwidth out of each device, its plan kept: what each
        axis loses."""
        return assess(
            self.make(
                scale_out={
                    "like": "ib-ndr",
                    "device_gbytes_per_s": 25,
                }
            ).change(
                plan={
                    "tp": self.tp,
                    "pp": self.pp,
                    "dp": self.dp,
                    "cp": 1,
                    "vpp": self.parts,
                }
            )
        )

    def busbw(self, size):
        return np.interp(
            np.log(size), np.log(self.two_nodes.message_bytes), self.two_nodes.busbw_bytes_per_s
        )

    @property
    def busbw_layer(self):
        """Measured bus bandwidth over two nodes at the size of a layer's tensor. [bytes/s]"""
        return self.busbw(self.activation)
