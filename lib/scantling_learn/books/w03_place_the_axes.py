"""Place the axes: what each parallel axis sends, over which tier, how much of it can hide, and on
which machine the answer turns."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scantling import catalogue
from scantling.catalogue.models.shape import parameters
from scantling.verdict.assess import assess

from ..measured import published_runs, runs
from ..question import Choice, Explain, Number, Option, Plan, PlanSlip, Point, Slip, Walkthrough
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
        return (float(self.counted.total) - 2 * float(self.counted.embedding)) / self.model.layers

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
        return {4: "a", 8: "b", 16: "c"}.get(self.best_tp, "d")

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
        return float(self.counted.total) / (self.tp * self.pp)

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
        return {("tp", "pp", "dp"): "c", ("dp", "tp", "pp"): "a", ("tp", "dp", "pp"): "b"}.get(
            tuple(self.order), "d"
        )

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
        plan = lambda n: {
            "tp": 1,
            "pp": 1,
            "dp": min(n, self.global_batch),
            "cp": max(1, n // self.global_batch),
            "sharding": "zero3",
        }
        return [
            (n, assess(self.make(devices=n).change(plan=plan(n))))
            for n in (1024, 2048, 4096, 8192, 16_384)
        ]

    @cached_property
    def placed(self):
        """(devices, assessment) of the best of all plans."""
        return [(n, assess(self.make(devices=n))) for n, _ in self.fsdp]

    # ---- the rack-scale machine
    @cached_property
    def rack(self):
        design = self.make("gb200-nvl72", devices=4608, batch=2304)
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
            table.model.str.contains("405b", case=False, na=False)
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
            self.make(scale_out={"like": "ib-ndr", "device_gbytes_per_s": 25}).change(
                plan={"tp": self.tp, "pp": self.pp, "dp": self.dp, "cp": 1, "vpp": self.parts}
            )
        )

    def busbw(self, size):
        return float(
            np.interp(
                np.log(size), np.log(self.two_nodes.message_bytes), self.two_nodes.busbw_bytes_per_s
            )
        )

    @property
    def busbw_layer(self):
        """Measured bus bandwidth over two nodes at the size of a layer's tensor. [bytes/s]"""
        return self.busbw(self.activation)


QUESTIONS = (
    Number(
        "tp_bytes",
        (
            "Tensor parallel 8 with sequence parallelism: two all-gathers and two "
            "reduce-scatters of the hidden states in a layer's forward pass, and as many "
            "backward. One sequence, 16 bit. How many GB does a device send per layer and "
            "micro-batch?"
        ),
        "communication",
        "senior",
        (
            "Count the collectives, then the bytes of one.",
            "A gather over t ranks moves `(t − 1)/t` of the tensor through each rank.",
            "`8 · 7/8 · 8,192 · 16,384 · 2`",
        ),
        (
            "One sequence's hidden states are {activation:bytes}; eight collectives at 7/8 "
            "of it are {tp_bytes:bytes}."
        ),
        (
            "Tensor parallelism sends activations, so its traffic goes with tokens, not "
            "with parameters: more batch does not dilute it."
        ),
        expected="tp_bytes",
        unit="GB",
        scale=1e9,
        within=1.05,
        slips=(
            Slip(
                lambda f: f.tp_bytes / 2,
                "That is the forward pass alone; the backward pass has four as well.",
            ),
            Slip(lambda f: f.tp_bytes * 2, "Hidden states travel in 16 bit: two bytes, not four."),
            Slip(lambda f: f.tp_bytes / 8, "That is one collective. There are eight.", within=1.02),
            Slip(
                lambda f: f.tp_bytes / 7,
                "That divides by the ranks: each rank passes on all parts but its own.",
            ),
        ),
    ),
    Number(
        "tp_share",
        (
            "A layer's matrix products at full peak, against that traffic at NVLink's full "
            "rate, one direction: which share of the compute time, in per cent, is the "
            "traffic?"
        ),
        "communication",
        "senior",
        (
            "Seconds over seconds.",
            (
                "Compute: `6 · layer parameters · tokens / tp / peak`. Traffic: bytes over "
                "{up:bytes_per_s}."
            ),
            "{layer_params:params} parameters a layer; {compute_s:seconds} of compute.",
        ),
        (
            "{tp_bytes:bytes} / {up:bytes_per_s} against {compute_s:seconds}: "
            "{tp_share:share}. The kit's step, with real rates on both sides, exposes "
            "{classic.step_breakdown_s[tp]:seconds} of {classic.step_s:seconds}."
        ),
        (
            "Even on the fast tier, tensor parallelism costs {tp_share:share} of a layer's "
            "compute, both sides at their best: between two matrix products there is little "
            "to hide it behind."
        ),
        minutes=4,
        expected="tp_share",
        unit="%",
        scale=0.01,
        within=1.06,
        slips=(
            Slip(
                lambda f: f.tp_share / 2,
                "900 GB/s is both directions together. One direction of NVLink carries half of it.",
            ),
            Slip(
                lambda f: f.tp_share * 3,
                (
                    "The compute is `6 · N · tokens`, forward and backward; you compared "
                    "with the forward pass."
                ),
            ),
            Slip(lambda f: f.tp_share / 8, "Compute is divided over the 8 ranks as well."),
            Slip(
                lambda f: f.tp_share * 2,
                "Twice too much: sparse peak in the compute, or bytes counted both ways.",
            ),
        ),
    ),
    Number(
        "rails",
        (
            "tp 16 over two nodes. Each of the eight devices of a node has its own 400 Gb/s "
            "port. Which rate, in GB/s, can a ring collective reach at each rank at best?"
        ),
        "communication",
        "staff",
        (
            "How many bytes cross between the nodes, and over how many ports?",
            "NCCL builds one ring per port: every rank's data crosses on eight ports at once.",
            "`min(link inside, 8 · 50)`",
        ),
        (
            "Eight ports of {out:bytes_per_s} work for the same collective: "
            "{rails:bytes_per_s} at best, just below NVLink's {up:bytes_per_s}. The "
            "measured rate is in the table below."
        ),
        (
            '"Nine times slower across nodes" is true of a point-to-point message, not of a '
            "collective whose ring crosses on every rail. Tensor parallelism stops at the "
            "node for another reason: the next question."
        ),
        minutes=4,
        expected="rails",
        unit="GB/s",
        scale=1e9,
        within=1.05,
        slips=(
            Slip(
                "out",
                "That is one port. The ring of sixteen crosses between the nodes on all eight.",
            ),
            Slip(lambda f: 8 * f.out * 8, "Those are gigabits."),
            Slip(
                "up",
                "That is the link inside; eight ports together are a little less.",
                within=1.02,
            ),
        ),
    ),
    Number(
        "tp16",
        "At that rate: which share of the compute time is the traffic at tp 16, in per cent?",
        "communication",
        "staff",
        (
            "What does doubling tp do to compute, and what to the bytes?",
            "Compute per device halves; bytes go from 7/8 to 15/16 of the tensor.",
            "`8 · 15/16 · activation / 400 GB/s` over half the compute time.",
        ),
        (
            "{tp16_share:share}, against {tp_share:share} at tp 8: the bytes a device sends "
            "hardly change, its compute halves."
        ),
        (
            "Tensor parallelism has a strong-scaling limit of its own: twice the degree, "
            "twice the share of traffic, on any network. A slower tier makes it worse, but "
            "does not make it so."
        ),
        expected="tp16_share",
        unit="%",
        scale=0.01,
        within=1.07,
        slips=(
            Slip(lambda f: f.tp16_share / 2, "The compute of a device halves when tp doubles."),
            Slip(
                lambda f: f.tp16_share * f.rails / f.out,
                "That uses one port for the whole collective; eight carry it.",
            ),
            Slip("tp_share", "That is tp 8."),
        ),
    ),
    Choice(
        "best_tp",
        "So which tensor-parallel degree does the search settle on for this fleet?",
        "parallelism",
        "senior",
        (
            "Too small does not fit without recompute; too large is all traffic.",
            "Memory pushes tp up; the share of traffic pushes it down.",
            "Below 8, layers have to be recomputed.",
        ),
        (
            "Best steps: tp 4 {by_tp[4].step_s:seconds}, tp 8 {by_tp[8].step_s:seconds}, tp "
            "16 {by_tp[16].step_s:seconds}."
        ),
        (
            "tp is bought for memory and paid in traffic. The least that lets the rest of "
            "the plan breathe is right, and the node is where its price jumps."
        ),
        expected="best_tp_answer",
        options=(
            Option(
                "a",
                "4",
                (
                    "{by_tp[4].step_s:seconds} a step: it fits only by recomputing "
                    "{by_tp[4].plan[recompute_layers]} layers of each stage."
                ),
            ),
            Option("b", "8", "{by_tp[8].step_s:seconds} a step."),
            Option(
                "c",
                "16",
                (
                    "{by_tp[16].step_s:seconds} a step: "
                    "{by_tp[16].step_breakdown_s[tp]:seconds} of it is tensor-parallel "
                    "traffic that nothing hides."
                ),
            ),
            Option(
                "d",
                "32",
                (
                    "{by_tp[32].step_s:seconds} a step, "
                    "{by_tp[32].step_breakdown_s[tp]:seconds} of it on the wire."
                ),
            ),
        ),
    ),
    Number(
        "pp_bytes",
        (
            "Pipeline: with tp 8 and sequence parallelism, how many MB does a device send "
            "to the next stage per micro-batch and boundary, forward?"
        ),
        "communication",
        "senior",
        (
            "What does a stage hand over, and who holds it?",
            "The hidden states, split over the tensor-parallel ranks.",
            "`8,192 · 16,384 · 2 / 8`",
        ),
        (
            "{pp_bytes:bytes}. With 8 parts a device and {micro_batches} micro-batches, "
            "both ways, a step sends {pp_step:bytes}."
        ),
        (
            "A boundary is crossed once a micro-batch where tensor parallelism has eight "
            "collectives a layer: pipeline is the axis for slow tiers."
        ),
        expected="pp_bytes",
        unit="MB",
        scale=1e6,
        within=1.05,
        slips=(
            Slip(
                "activation",
                "With sequence parallelism each of the 8 ranks holds, and sends, an eighth.",
            ),
            Slip(lambda f: f.pp_bytes * 2, "Forward only: one way, 16 bit."),
            Slip(lambda f: f.pp_bytes / 2, "Two bytes a value: you counted values."),
        ),
    ),
    Number(
        "dp_bytes",
        (
            "Data parallel 32 over tp 8 · pp 16: gradients reduce-scattered in fp32, "
            "weights all-gathered in bf16. How many GB does a device send per step?"
        ),
        "communication",
        "senior",
        (
            "How many parameters does a device hold?",
            "`N / (tp · pp) · (4 + 2) · (dp − 1)/dp`",
            "{device_params:params} parameters on a device.",
        ),
        (
            "{device_params:params} · 6 · 31/32 = {dp_bytes:bytes}; the fullest stage, "
            "which the kit reports, {dp_row[bytes]:bytes}."
        ),
        (
            "Data-parallel traffic goes with parameters and is paid once a step: the more "
            "micro-batches a step has, the less it weighs."
        ),
        expected="dp_bytes",
        unit="GB",
        scale=1e9,
        within=1.09,
        slips=(
            Slip(
                lambda f: f.dp_bytes * f.tp * f.pp,
                "Each device holds only its share of the model: divide by tp · pp.",
                within=1.09,
            ),
            Slip(lambda f: f.dp_bytes * 4 / 6, "That has gradients in 16 bit; they are fp32 here."),
            Slip(
                lambda f: f.dp_bytes / f.dp,
                "Sharding does not divide the traffic: each rank passes nearly the whole on.",
                within=1.09,
            ),
        ),
    ),
    Choice(
        "order",
        (
            "Rank the axes by the bytes that a device sends in a step of tp 8 · pp 16 · dp "
            "32, interleaved with 8 parts a device."
        ),
        "parallelism",
        "staff",
        (
            "You have all three per unit. How many units has a step?",
            (
                "tp: layers of the stage × micro-batches. pp: parts × micro-batches × two "
                "ways. dp: once."
            ),
            "{micro_batches} micro-batches, 8 layers a stage.",
        ),
        (
            "tp {tp_row[bytes]:bytes}, pp {pp_row[bytes]:bytes}, dp {dp_row[bytes]:bytes}. "
            "Without interleaving, pp would send an eighth."
        ),
        (
            "The gradients of a 405B model are not the traffic problem. Count per step "
            "before you buy bandwidth: and know that interleaving multiplies the pipeline's "
            "messages by its parts."
        ),
        expected="order_answer",
        options=(
            Option(
                "a",
                "dp, tp, pp",
                (
                    "The gradients of {device_params:params} parameters are sent once a "
                    "step: {dp_row[bytes]:bytes}. tp sends {tp_row[bytes]:bytes}."
                ),
            ),
            Option(
                "b",
                "tp, dp, pp",
                (
                    "Close: but with 8 parts a device each micro-batch crosses eight "
                    "boundaries a device, there and back: pp {pp_row[bytes]:bytes}, dp "
                    "{dp_row[bytes]:bytes}."
                ),
            ),
            Option(
                "c",
                "tp, pp, dp",
                "{tp_row[bytes]:bytes}, {pp_row[bytes]:bytes}, {dp_row[bytes]:bytes}.",
            ),
            Option(
                "d",
                "pp, tp, dp",
                (
                    "A boundary is crossed once a part; tp has eight collectives in every "
                    "layer: {tp_row[bytes]:bytes} against {pp_row[bytes]:bytes}."
                ),
            ),
        ),
    ),
    Number(
        "ridge",
        "Now the rival: fully sharded data parallelism alone. Each micro-batch gathers "
        "a layer's weights for forward and again for backward and scatters its "
        "gradients, all in 16 bit, and computes 6 FLOP per parameter and token. "
        "From how many tokens per device and micro-batch does the network keep up, "
        "compute at full peak, the ring on every port?",
        "communication",
        "staff",
        (
            "Both sides are proportional to parameters: they cancel.",
            "`bytes per parameter / rate = 6 · tokens / peak`",
            "`6 / 6 · {peak:flops} / {rails:bytes_per_s}`",
        ),
        (
            "Six bytes against six FLOP a token: the answer is peak over rate, {ridge:,.0f} "
            "tokens, whatever the model. The eight devices of a node share one gather, so "
            "each port carries an eighth of it."
        ),
        (
            "Fully sharded data parallelism has a roofline in tokens per device, and the "
            "model's size cancels out of it. A fixed global batch over a growing fleet "
            "slides below it."
        ),
        minutes=5,
        expected="ridge",
        unit="tokens",
        within=1.10,
        slips=(
            Slip(
                lambda f: f.ridge * f.rails / f.out,
                (
                    "That gives each device's whole gather to its own port. The eight "
                    "devices of a node gather the same weights: the ring crosses on all "
                    "eight ports."
                ),
            ),
            Slip(lambda f: f.ridge / 8, "Ports in gigabits, eight times too fast."),
            Slip(lambda f: f.ridge * 3, "6 FLOP a token, not 2: the backward pass computes too."),
            Slip(
                lambda f: f.ridge / 3,
                "Three transfers of two bytes: forward gather, backward gather, scatter.",
            ),
            Slip(lambda f: f.ridge * 2, "That is the sparse peak."),
        ),
    ),
    Number(
        "fsdp",
        (
            "With this batch of 2,048 sequences of 8,192: up to how many devices, then, can "
            "it go alone before the network binds?"
        ),
        "parallelism",
        "staff",
        (
            "Tokens of the batch, tokens each device needs.",
            "`batch tokens / ridge`",
            "{batch_tokens:,} tokens",
        ),
        "{batch_tokens:,} / {ridge:,.0f} is {fsdp_devices:,.0f} devices. This fleet has "
        "{tokens_each:,.0f} tokens each, above the line; 16,384 devices would have "
        "{tokens_frontier:,.0f}, well below. "
        "It is a slope, not a cliff: overlap is never whole, real rates tilt both "
        "sides, and a ring over thousands of ranks adds a latency that no bandwidth "
        "buys back.",
        (
            '"It scales linearly" holds until the batch runs out. Beyond, give each gather '
            "more tokens: tensor, context or pipeline parallelism, or a hybrid that gathers "
            "inside a pod."
        ),
        expected="fsdp_devices",
        unit="devices",
        within=1.25,
        slips=(
            Slip(
                lambda f: float(f.global_batch),
                (
                    "That is where the batch runs out of sequences; context parallelism "
                    "goes on from there. The network is asked."
                ),
                within=1.02,
            ),
            Slip(
                lambda f: f.fsdp_devices * f.out / f.rails,
                "That is with one port for a device's whole gather.",
                within=1.2,
            ),
        ),
    ),
    Plan(
        "plan",
        "Your plan for the 4,096: `tp`, `pp`, `dp`. Within eight per cent of the best.",
        "parallelism",
        "staff",
        (
            "Fast tier: tp. Slow tier: pp and dp. How many micro-batches are left?",
            "tp 8, pp 8 to 32, dp (and cp) the rest.",
            "tp 8 · pp 16 leaves 32.",
        ),
        (
            "The batch is wide for this fleet: every plan with tp 8 has micro-batches "
            "enough, so bubble hardly counts and several lie close together."
        ),
        (
            "With micro-batches to spare the placement is forgiving, except for one axis. "
            "Spend the effort where the slope is."
        ),
        minutes=5,
        design="design",
        names=("tp", "pp", "dp"),
        slower=1.08,
        slips=(
            PlanSlip(
                {"tp": 16, "pp": 8, "dp": 32},
                lambda plan, a, f: plan["tp"] > 8,
                (
                    "tp {a.plan[tp]}: {a.step_breakdown_s[tp]:seconds} of exposed traffic "
                    "in a step of {a.step_s:seconds}; the best plan has "
                    "{best.step_breakdown_s[tp]:seconds}."
                ),
            ),
            PlanSlip(
                {"tp": 1, "pp": 1, "dp": 2048, "cp": 2},
                lambda plan, a, f: plan["tp"] * plan["pp"] == 1,
                (
                    "{tokens_each:,.0f} tokens a device are barely above what the network "
                    "needs: {a.step_breakdown_s[dp]:seconds} of {a.step_s:seconds} wait for "
                    "weights and gradients, and every layer is recomputed."
                ),
            ),
            PlanSlip(
                {"tp": 2, "pp": 16, "dp": 128},
                lambda plan, a, f: plan["tp"] <= 2,
                (
                    "With tp {a.plan[tp]} each device holds so many activations that "
                    "{a.plan[recompute_layers]} layers a stage are recomputed, if it fits "
                    "at all: {a.step_s:seconds} a step."
                ),
            ),
        ),
    ),
    Choice(
        "rack",
        (
            "Twist: GB200 in racks of 72 on one NVLink domain, twice the memory of a "
            "device. Where does the best tensor-parallel degree for this model go?"
        ),
        "parallelism",
        "staff",
        (
            "Which of the two forces on tp does the new machine change?",
            "A larger domain takes the jump away. More memory takes the need away.",
            "What was tp bought for?",
        ),
        "Best steps: "
        + ", ".join(f"tp {tp} {{rack[{tp}].step_s:seconds}}" for tp in (2, 4, 8, 16, 64))
        + ". The wide domain carries data-parallel and pipeline traffic instead.",
        (
            "A rack-scale domain does not ask for a rack-wide tensor parallel: its "
            "strong-scaling limit is still there, and larger memory lowers what tp is "
            "needed for. Published runs of this model on such racks use tp "
            "{rack_published}."
        ),
        expected="rack_answer",
        options=(
            Option("a", "It stays or falls, to 8 or less.", "tp {rack_best}."),
            Option(
                "b",
                "It doubles, to 16: there is bandwidth for it now.",
                (
                    "{rack[16].step_s:seconds} a step against {rack[4].step_s:seconds} at "
                    "tp 4: doubling tp halves the compute that its traffic has to pay for, "
                    "on any link."
                ),
            ),
            Option(
                "c",
                "It fills the domain: 64.",
                (
                    "{rack[64].step_s:seconds} a step: "
                    "{rack[64].step_breakdown_s[tp]:seconds} of it is tensor-parallel "
                    "traffic, on the fastest link there is."
                ),
            ),
        ),
    ),
    Explain(
        "overlap",
        (
            "Why can data-parallel traffic run beneath the compute, while tensor-parallel "
            "traffic hardly can? And when does the first stop being true?"
        ),
        "communication",
        "staff",
        (
            "What can the device do while it waits?",
            "Dependence: who needs the result, and when?",
            "Think of the last layers of the backward pass, of few micro-batches, of a slow port.",
        ),
        (
            "Exposed in the classic plan: tp {tp_row[exposed_s]:seconds} of "
            "{tp_row[time_s]:seconds}, dp {dp_row[exposed_s]:seconds} of "
            "{dp_row[time_s]:seconds}."
        ),
        (
            "Traffic hides where nothing waits for it. Ask of each axis who needs its "
            "result next, and when."
        ),
        minutes=4,
        points=(
            Point(
                (
                    "Tensor-parallel results are needed by the very next matrix product: a "
                    "dependence, not a bandwidth, problem."
                ),
                (
                    r"depend",
                    r"next (matrix|matmul|gemm|layer|operation)",
                    r"critical path",
                    r"needs? the result",
                    r"wait",
                ),
            ),
            Point(
                (
                    "Gradients are needed only by the optimizer, so a layer's exchange runs "
                    "under the backward pass of the others."
                ),
                (r"backward", r"optimi[sz]er", r"bucket"),
            ),
            Point(
                (
                    "It ends when the compute to hide behind is short: few micro-batches, "
                    "small batch per device, slow network."
                ),
                (
                    r"few(er)? micro",
                    r"small(er)? batch",
                    r"slow",
                    r"too (little|few|short)",
                    r"micro-?batch",
                ),
            ),
        ),
        model="The next matrix product depends on the tensor-parallel result and must wait "
        "for it. Gradients are needed only by the optimizer, so their exchange runs "
        "beneath the backward pass of other layers. "
        "It stops hiding with few micro-batches or a slow network, when there is too "
        "little compute to hide behind.",
    ),
    Explain(
        "falsify",
        (
            "Two nodes for an afternoon, one pod for an hour: what do you measure, in which "
            "order, and which result would make you place an axis elsewhere?"
        ),
        "verification",
        "staff",
        (
            "Which numbers does the placement rest on?",
            (
                "The rate of each axis' own message, on its own tier, with compute beside "
                "it; then a short step."
            ),
            (
                "Tensor-parallel message {activation:bytes}, pipeline message "
                "{pp_bytes:bytes}, {rails:bytes_per_s} across two nodes."
            ),
        ),
        "Collectives at the sizes and groups that the plan has, not at the largest: "
        "{activation:bytes} for tensor parallelism, where the measured rate across "
        "nodes is {busbw_layer:bytes_per_s} and the sum of the ports "
        "{rails:bytes_per_s}. Then the same with a matrix product beside it, since that "
        ""
        "is what overlap means. Then a step of one pipeline replica with the two "
        "candidate degrees. Turn when the order of the candidates turns, not when a "
        "number is missed.",
        (
            "Name beforehand the number at which you would change the plan; a measurement "
            "that cannot change it is not worth the machine."
        ),
        minutes=4,
        points=(
            Point(
                (
                    "Measures each axis' collective at its own message size and group, on "
                    "its own tier."
                ),
                (r"message", r"size", r"collective", r"all-?reduce", r"nccl", r"bandwidth"),
            ),
            Point(
                "Measures with compute running, since overlap is what the plan counts on.",
                (
                    r"overlap",
                    r"with compute",
                    r"beside",
                    r"concurrent",
                    r"while .*(comput|matmul|gemm)",
                    r"under load",
                ),
            ),
            Point(
                "Runs a short step of the rival placements, not only parts.",
                (r"\bstep", r"both plans", r"candidate", r"rival", r"end.to.end"),
            ),
            Point(
                "Says which result would change the placement.",
                (
                    r"change|chang",
                    r"instead",
                    r"otherwise",
                    r"if (it|the|we)",
                    r"threshold",
                    r"below",
                ),
            ),
        ),
        model="First the collectives of each axis at the message sizes and groups of the "
        "plan, on two nodes, then with matrix products running beside them. Then a "
        "short step of both candidates on one pod. "
        "If the wider tensor parallelism is faster there, or gradients stop hiding, I "
        "change the placement; I write down that threshold before the run.",
    ),
)

WALKTHROUGH = Walkthrough(
    "03", "place_the_axes", "Place the axes: 405B on real tiers", 55, Facts, QUESTIONS
)
