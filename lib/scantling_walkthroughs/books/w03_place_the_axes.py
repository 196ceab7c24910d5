"""Place the axes: what each parallel axis sends, over which tier, how much of it can hide, and on
which machine the answer turns."""

from functools import cached_property

import numpy as np
from scantling import Assessment, assess
from scantling.base import show
from scantling.catalogue import collective_series
from scantling.catalogue.models.shape import Params, parameters
from scantling.catalogue.rows import CollectiveSeries
from scantling.design.design import Design
from scantling.physics.communication import Traffic

from .. import measured
from ..measured import Run, published_runs
from ..question import (
    SENT,
    Choice,
    Explain,
    Number,
    Option,
    Plan,
    PlanSlip,
    Point,
    Slip,
    Walkthrough,
)
from ..texts import small_size
from .shared_sums import DesignFacts, axis_traffic, fastest, swept, tp_traffic_bytes


class Facts(DesignFacts):
    """The numbers of the book, each worked out when it is first asked for, with its unit."""

    devices = 4096  # devices
    seq_len = 8192  # tokens
    global_batch = 2048  # sequences
    tp = 8  # devices
    pp = 16  # stages
    dp = 32  # replicas
    parts = 8  # model parts a device

    @cached_property
    def design(self) -> Design:
        return Design.from_data(
            {
                "name": "Llama 3.1 405B on 4,096 h100-sxm",
                "model": "llama-3.1-405b",
                "cluster": {
                    "accelerator": "h100-sxm",
                    "devices": self.devices,
                    "devices_per_node": 8,
                    "scale_out": "ib-ndr",
                },
                "job": {
                    "tokens": 1e12,
                    "seq_len": self.seq_len,
                    "global_batch": self.global_batch,
                    "precision": "bf16",
                },
            }
        )

    @cached_property
    def classic_design(self) -> Design:
        """The plan that the questions are about, pinned."""
        return self.design.change(
            {
                "plan": {
                    "tp": self.tp,
                    "pp": self.pp,
                    "dp": self.dp,
                    "cp": 1,
                    "vpp": self.parts,
                    "schedule": "interleaved",
                }
            }
        )

    @cached_property
    def slow_design(self) -> Design:
        """Half the bandwidth out of each device, the plan kept: what each axis loses."""
        return self.design.change(
            cluster={"scale_out": {"like": "ib-ndr", "device_gbytes_per_s": 25}},
            plan={"tp": self.tp, "pp": self.pp, "dp": self.dp, "cp": 1, "vpp": self.parts},
        )

    @cached_property
    def rack_design(self) -> Design:
        return Design.from_data(
            {
                "name": "Llama 3.1 405B on 4,608 gb200-nvl72",
                "model": "llama-3.1-405b",
                "cluster": {"accelerator": "gb200-nvl72", "devices": 4608, "scale_out": "ib-ndr"},
                "job": {
                    "tokens": 1e12,
                    "seq_len": self.seq_len,
                    "global_batch": 2304,
                    "precision": "bf16",
                },
            }
        )

    @cached_property
    def classic(self) -> Assessment:
        return assess(self.classic_design)

    @cached_property
    def slow_net(self) -> Assessment:
        return assess(self.slow_design)

    @cached_property
    def measured(self) -> tuple[Run, ...]:
        return measured.runs(
            "llama3-405b-t4-1",
            "llama3-405b-t4-2",
            "dgxc-405b-v25.05.05-02",
            "korthikanti-530B-2240-seqsel",
            "megascale-fig9-megascale-530B-11200",
        )

    @cached_property
    def best_tp_answer(self) -> str:
        """Key of the option that `best_tp` makes right."""
        return {4: "a", 8: "b", 16: "c"}.get(self.best_tp, "d")

    @cached_property
    def order_answer(self) -> str:
        """Key of the option that `order` makes right."""
        return {"tp, pp, dp": "c", "dp, tp, pp": "a", "tp, dp, pp": "b"}.get(self.order, "d")

    @cached_property
    def peak(self) -> float:  # FLOP/s
        return self.cluster.accelerator.bf16_flops

    @cached_property
    def layer_params(self) -> float:  # parameters
        return float(
            (self.parameter_counts.total - 2 * self.parameter_counts.embedding) / self.model.layers
        )

    @cached_property
    def activation(self) -> float:
        """Bytes of one sequence's hidden states in 16 bit. [bytes]"""
        return self.seq_len * self.model.hidden * 2.0

    @cached_property
    def tp_bytes(self) -> float:  # bytes
        return self.tp_bytes_of(self.tp)

    @cached_property
    def compute_s(self) -> float:  # s
        return self.compute_of(self.tp)

    @cached_property
    def tp_share(self) -> float:  # share
        return self.tp_bytes / self.up / self.compute_s

    @cached_property
    def tp16_share(self) -> float:  # share
        return self.tp_bytes_of(16) / self.rails / self.compute_of(16)

    @cached_property
    def micro_batches(self) -> int:  # micro-batches
        return self.global_batch // self.dp

    @cached_property
    def pp_bytes(self) -> float:  # bytes
        return self.activation / self.tp

    @cached_property
    def pp_step(self) -> float:  # bytes
        return float(self.pp_row["bytes"])

    @cached_property
    def device_params(self) -> float:  # parameters
        return float(self.parameter_counts.total / (self.tp * self.pp))

    @cached_property
    def dp_bytes(self) -> float:  # bytes
        return self.device_params * (4 + 2) * (self.dp - 1) / self.dp

    @cached_property
    def tp_row(self) -> Traffic:
        return axis_traffic(self.classic, "tp")

    @cached_property
    def pp_row(self) -> Traffic:
        return axis_traffic(self.classic, "pp")

    @cached_property
    def dp_row(self) -> Traffic:
        return axis_traffic(self.classic, "dp")

    @cached_property
    def ridge(self) -> float:
        """Tokens per device and micro-batch at which gathering weights twice and scattering
        gradients, 2 bytes each, takes as long as 6 FLOP a token. The eight devices of a node take
        part in one gather, so that its ring crosses on eight ports: the rate of `rails`. [?]"""
        return (2 + 2 + 2) / 6 * self.peak / self.rails

    @cached_property
    def batch_tokens(self) -> int:  # tokens
        return self.global_batch * self.seq_len

    @cached_property
    def tokens_each(self) -> float:  # tokens
        return self.batch_tokens / self.devices

    @cached_property
    def fsdp_devices(self) -> float:  # devices
        return self.batch_tokens / self.ridge

    @cached_property
    def tokens_frontier(self) -> float:  # tokens
        return self.batch_tokens / 16384

    @cached_property
    def busbw_layer(self) -> float:
        """Measured bus bandwidth over two nodes at the size of a layer's tensor. [bytes/s]"""
        return self.busbw(self.activation)

    @cached_property
    def parameter_counts(self) -> Params:
        return parameters(self.model)

    @cached_property
    def rails(self) -> float:
        """What a ring over two nodes sees at each rank: every device drives its own port, up to the
        link inside. [bytes/s]"""
        return min(self.up, 8 * self.out)

    @cached_property
    def by_tp(self) -> dict[int, Assessment]:
        """By tp, under the classic sharding of states alone."""
        classic = self.design.change({"plan.sharding": "zero1"})
        return swept(classic, "plan.tp", 2, 4, 8, 16, 32)

    @cached_property
    def by_pp(self) -> dict[int, Assessment]:
        """By pp at tp 8."""
        return swept(self.design.change({"plan.tp": self.tp}), "plan.pp", 8, 16, 32)

    @cached_property
    def whole_sequences(self) -> Assessment:
        """The best plan's degrees without context parallelism."""
        best = self.result.plan
        return assess(self.design.change(plan={"tp": best["tp"], "pp": best["pp"], "cp": 1}))

    @cached_property
    def rack(self) -> dict[int, Assessment]:
        return swept(self.rack_design, "plan.tp", 2, 4, 8, 16, 64)

    @cached_property
    def two_nodes(self) -> CollectiveSeries:
        return collective_series()["aws_p5_h100_2n_all_reduce"]

    @cached_property
    def best_tp(self) -> int:  # devices
        return fastest(self.by_tp)

    @cached_property
    def rack_best(self) -> int:  # devices
        return fastest(self.rack)

    def tp_bytes_of(self, tp: int) -> float:
        return tp_traffic_bytes(self.activation, tp)

    def compute_of(self, tp: int) -> float:
        """Seconds of a layer's matrix products per micro-batch on one device at full peak, forward
        and backward."""
        return 6 * self.layer_params * self.seq_len / tp / self.peak

    @cached_property
    def order(self) -> str:
        """The axes, from the most bytes to the fewest."""
        rows = (self.tp_row, self.pp_row, self.dp_row)
        return ", ".join(row["axis"] for row in sorted(rows, key=lambda row: -row["bytes"]))

    @cached_property
    def fsdp(self) -> list[tuple[int, Assessment]]:
        """(devices, assessment), every device at work: the batch's sequences first, then two and
        more devices to a sequence."""
        rows = []
        for devices in (1024, 2048, 4096, 8192, 16_384):
            plan = {
                "tp": 1,
                "pp": 1,
                "dp": min(devices, self.global_batch),
                "cp": max(1, devices // self.global_batch),
                "sharding": "zero3",
            }
            rows.append(
                (devices, assess(self.design.change({"cluster.devices": devices}, plan=plan)))
            )
        return rows

    @cached_property
    def best_plans(self) -> list[tuple[int, Assessment]]:
        """(devices, assessment) of the best of all plans."""
        return [*swept(self.design, "cluster.devices", *dict(self.fsdp)).items()]

    @cached_property
    def rack_answer(self) -> str:
        if self.rack_best <= 8:
            return "a"
        return "b" if self.rack_best == 16 else "c"

    @cached_property
    def rack_published(self) -> str:
        """Tensor-parallel degrees of the published runs of this model on NVL72 racks."""
        table = published_runs()
        rows = table[
            table.model.str.contains("405b", case=False, na=False)
            & table.accelerator.isin(["gb200-nvl72", "gb300-nvl72"])
        ]
        return " or ".join(str(int(t)) for t in sorted(rows.tp.dropna().unique(), reverse=True))

    def busbw(self, size: float) -> float:
        """Measured bus bandwidth over two nodes at a size. [bytes/s]"""
        series = self.two_nodes
        rate = np.interp(np.log(size), np.log(series.message_bytes), series.busbw_bytes_per_s)
        return float(rate)


# ---------------------------------------------------------------- questions


def tp_bytes_question(f: Facts) -> Number:
    return Number(
        id="tp_bytes",
        axis="communication",
        level="senior",
        ask=(
            "Tensor parallel 8 with sequence parallelism: two all-gathers and two "
            "reduce-scatters of the hidden states in a layer's forward pass, and as many "
            "backward. One sequence, 16 bit. How many GB does a device send per layer and "
            "micro-batch?"
        ),
        expected=f.tp_bytes,
        unit="GB",
        scale=1e9,
        made_of=(SENT,),
        slips=(
            Slip(
                value=f.tp_bytes / 2,
                says="That is the forward pass alone; the backward pass has four as well.",
            ),
            Slip(value=f.tp_bytes * 2, says="Hidden states travel in 16 bit: two bytes, not four."),
            Slip(
                value=f.tp_bytes / 8, says="That is one collective. There are eight.", within=1.02
            ),
            Slip(
                value=f.tp_bytes / 7,
                says="That divides by the ranks: each rank passes on all parts but its own.",
            ),
        ),
        hints=(
            "Count the collectives, then the bytes of one.",
            "A gather over t ranks moves `(t − 1)/t` of the tensor through each rank.",
            "`8 · 7/8 · 8,192 · 16,384 · 2`",
        ),
        worked=(
            f"One sequence's hidden states are {small_size(f.activation)}; eight collectives "
            f"at 7/8 of it are {show.size(f.tp_bytes)}."
        ),
        takeaway=(
            "Tensor parallelism sends activations, so its traffic goes with tokens, not with "
            "parameters: more batch does not dilute it."
        ),
    )


def tp_share_question(f: Facts) -> Number:
    return Number(
        id="tp_share",
        axis="communication",
        level="senior",
        minutes=4,
        ask=(
            "A layer's matrix products at full peak, against that traffic at NVLink's full "
            "rate, one direction: which share of the compute time, in per cent, is the "
            "traffic?"
        ),
        expected=f.tp_share,
        unit="%",
        scale=0.01,
        within=1.06,
        slips=(
            Slip(
                value=f.tp_share / 2,
                says=(
                    "900 GB/s is both directions together. One direction of NVLink carries "
                    "half of it."
                ),
            ),
            Slip(
                value=f.tp_share * 3,
                says=(
                    "The compute is `6 · N · tokens`, forward and backward; you compared "
                    "with the forward pass."
                ),
            ),
            Slip(value=f.tp_share / 8, says="Compute is divided over the 8 ranks as well."),
            Slip(
                value=f.tp_share * 2,
                says="Twice too much: sparse peak in the compute, or bytes counted both ways.",
            ),
        ),
        hints=(
            "Seconds over seconds.",
            (
                "Compute: `6 · layer parameters · tokens / tp / peak`. Traffic: bytes over "
                f"{show.bytes_per_s(f.up)}."
            ),
            (
                f"{show.params(f.layer_params)} parameters a layer; "
                f"{show.seconds(f.compute_s)} of compute."
            ),
        ),
        worked=(
            f"{show.size(f.tp_bytes)} / {show.bytes_per_s(f.up)} against "
            f"{show.seconds(f.compute_s)}: {show.share(f.tp_share)}. The kit's step, with "
            "real rates on both sides, exposes "
            f"{show.seconds(f.classic.step_breakdown_s['tp'])} of "
            f"{show.seconds(f.classic.step_s)}."
        ),
        takeaway=(
            f"Even on the fast tier, tensor parallelism costs {show.share(f.tp_share)} of a "
            "layer's compute, both sides at their best: between two matrix products there is "
            "little to hide it behind."
        ),
    )


def rails_question(f: Facts) -> Number:
    return Number(
        id="rails",
        axis="communication",
        level="staff",
        minutes=4,
        ask=(
            "tp 16 over two nodes. Each of the eight devices of a node has its own 400 Gb/s "
            "port. Which rate, in GB/s, can a ring collective reach at each rank at best?"
        ),
        expected=f.rails,
        unit="GB/s",
        scale=1e9,
        made_of=(SENT,),
        slips=(
            Slip(
                value=f.out,
                says=(
                    "That is one port. The ring of sixteen crosses between the nodes on all eight."
                ),
            ),
            Slip(value=f.out * 64, says="Those are gigabits."),
            Slip(
                value=f.up,
                says="That is the link inside; eight ports together are a little less.",
                within=1.02,
            ),
        ),
        hints=(
            "How many bytes cross between the nodes, and over how many ports?",
            ("NCCL builds one ring per port: every rank's data crosses on eight ports at once."),
            "`min(link inside, 8 · 50)`",
        ),
        worked=(
            f"Eight ports of {show.bytes_per_s(f.out)} work for the same collective: "
            f"{show.bytes_per_s(f.rails)} at best, just below NVLink's "
            f"{show.bytes_per_s(f.up)}. The measured rate is in the table below."
        ),
        takeaway=(
            '"Nine times slower across nodes" is true of a point-to-point message, not of a '
            "collective whose ring crosses on every rail. Tensor parallelism stops at the "
            "node for another reason: the next question."
        ),
    )


def rails_note(f: Facts) -> str:
    return (
        "Large messages even beat the sum of the ports: an all-reduce that adds up inside the "
        "node first sends less across it than a ring. A layer's tensor is smaller than that: "
        f"{small_size(f.activation)}, where the measured rate is "
        f"{show.bytes_per_s(f.busbw_layer)}."
    )


def tp16_question(f: Facts) -> Number:
    return Number(
        id="tp16",
        axis="communication",
        level="staff",
        ask=("At that rate: which share of the compute time is the traffic at tp 16, in per cent?"),
        expected=f.tp16_share,
        unit="%",
        scale=0.01,
        within=1.07,
        slips=(
            Slip(value=f.tp16_share / 2, says="The compute of a device halves when tp doubles."),
            Slip(
                value=f.tp16_share * f.rails / f.out,
                says="That uses one port for the whole collective; eight carry it.",
            ),
            Slip(value=f.tp_share, says="That is tp 8."),
        ),
        hints=(
            "What does doubling tp do to compute, and what to the bytes?",
            "Compute per device halves; bytes go from 7/8 to 15/16 of the tensor.",
            "`8 · 15/16 · activation / 400 GB/s` over half the compute time.",
        ),
        worked=(
            f"{show.share(f.tp16_share)}, against {show.share(f.tp_share)} at tp 8: the bytes "
            "a device sends hardly change, its compute halves."
        ),
        takeaway=(
            "Tensor parallelism has a strong-scaling limit of its own: twice the degree, "
            "twice the share of traffic, on any network. A slower tier makes it worse, but "
            "does not make it so."
        ),
    )


def best_tp_question(f: Facts) -> Choice:
    return Choice(
        id="best_tp",
        axis="parallelism",
        level="senior",
        ask="So which tensor-parallel degree does the search settle on for this fleet?",
        expected=f.best_tp_answer,
        options=(
            Option(
                key="a",
                text="4",
                says=(
                    f"{show.seconds(f.by_tp[4].step_s)} a step: what tensor parallelism no longer "
                    "saves of memory has to come from elsewhere, and costs more there."
                ),
            ),
            Option(key="b", text="8", says=f"{show.seconds(f.by_tp[8].step_s)} a step."),
            Option(
                key="c",
                text="16",
                says=(
                    f"{show.seconds(f.by_tp[16].step_s)} a step: "
                    f"{show.seconds(f.by_tp[16].step_breakdown_s['tp'])} of it is "
                    "tensor-parallel traffic that nothing hides."
                ),
            ),
            Option(
                key="d",
                text="32",
                says=(
                    f"{show.seconds(f.by_tp[32].step_s)} a step, "
                    f"{show.seconds(f.by_tp[32].step_breakdown_s['tp'])} of it on the wire."
                ),
            ),
        ),
        hints=(
            "Too small does not fit without paying elsewhere; too large is all traffic.",
            "Memory pushes tp up; the share of traffic pushes it down.",
            "Below 8, memory has to come from recompute, more stages or other splits.",
        ),
        worked=(
            f"Best steps: tp 4 {show.seconds(f.by_tp[4].step_s)}, tp 8 "
            f"{show.seconds(f.by_tp[8].step_s)}, tp 16 {show.seconds(f.by_tp[16].step_s)}."
        ),
        takeaway=(
            "tp is bought for memory and paid in traffic. The least that lets the rest of "
            "the plan breathe is right, and the node is where its price jumps."
        ),
    )


def pp_bytes_question(f: Facts) -> Number:
    return Number(
        id="pp_bytes",
        axis="communication",
        level="senior",
        ask=(
            "Pipeline: with tp 8 and sequence parallelism, how many MB does a device send to "
            "the next stage per micro-batch and boundary, forward?"
        ),
        expected=f.pp_bytes,
        unit="MB",
        scale=1e6,
        made_of=(SENT,),
        slips=(
            Slip(
                value=f.activation,
                says=("With sequence parallelism each of the 8 ranks holds, and sends, an eighth."),
            ),
            Slip(value=f.pp_bytes * 2, says="Forward only: one way, 16 bit."),
            Slip(value=f.pp_bytes / 2, says="Two bytes a value: you counted values."),
        ),
        hints=(
            "What does a stage hand over, and who holds it?",
            "The hidden states, split over the tensor-parallel ranks.",
            "`8,192 · 16,384 · 2 / 8`",
        ),
        worked=(
            f"{show.size(f.pp_bytes)}. With 8 parts a device and {f.micro_batches} "
            f"micro-batches, both ways, a step sends {show.size(f.pp_step)}."
        ),
        takeaway=(
            "A boundary is crossed once a micro-batch where tensor parallelism has eight "
            "collectives a layer: pipeline is the axis for slow tiers."
        ),
    )


def dp_bytes_question(f: Facts) -> Number:
    return Number(
        id="dp_bytes",
        axis="communication",
        level="senior",
        ask=(
            "Data parallel 32 over tp 8 · pp 16: gradients reduce-scattered in fp32, weights "
            "all-gathered in bf16. How many GB does a device send per step?"
        ),
        expected=f.dp_bytes,
        unit="GB",
        scale=1e9,
        within=1.09,
        made_of=(SENT,),
        slips=(
            Slip(
                value=f.dp_bytes * (f.tp * f.pp),
                says="Each device holds only its share of the model: divide by tp · pp.",
                within=1.09,
            ),
            Slip(
                value=f.dp_bytes * 4 / 6, says="That has gradients in 16 bit; they are fp32 here."
            ),
            Slip(
                value=f.dp_bytes / f.dp,
                says=(
                    "Sharding does not divide the traffic: each rank passes nearly the whole on."
                ),
                within=1.09,
            ),
        ),
        hints=(
            "How many parameters does a device hold?",
            "`N / (tp · pp) · (4 + 2) · (dp − 1)/dp`",
            f"{show.params(f.device_params)} parameters on a device.",
        ),
        worked=(
            f"{show.params(f.device_params)} · 6 · 31/32 = {show.size(f.dp_bytes)}; the "
            f"fullest stage, which the kit reports, {show.size(f.dp_row['bytes'])}."
        ),
        takeaway=(
            "Data-parallel traffic goes with parameters and is paid once a step: the more "
            "micro-batches a step has, the less it weighs."
        ),
    )


def order_question(f: Facts) -> Choice:
    return Choice(
        id="order",
        axis="parallelism",
        level="staff",
        ask=(
            "Rank the axes by the bytes that a device sends in a step of tp 8 · pp 16 · dp "
            "32, interleaved with 8 parts a device."
        ),
        expected=f.order_answer,
        options=(
            Option(
                key="a",
                text="dp, tp, pp",
                says=(
                    f"The gradients of {show.params(f.device_params)} parameters are sent "
                    f"once a step: {show.size(f.dp_row['bytes'])}. tp sends "
                    f"{show.size(f.tp_row['bytes'])}."
                ),
            ),
            Option(
                key="b",
                text="tp, dp, pp",
                says=(
                    "Close: but with 8 parts a device each micro-batch crosses eight "
                    f"boundaries a device, there and back: pp {show.size(f.pp_row['bytes'])}, "
                    f"dp {show.size(f.dp_row['bytes'])}."
                ),
            ),
            Option(
                key="c",
                text="tp, pp, dp",
                says=(
                    f"{show.size(f.tp_row['bytes'])}, {show.size(f.pp_row['bytes'])}, "
                    f"{show.size(f.dp_row['bytes'])}."
                ),
            ),
            Option(
                key="d",
                text="pp, tp, dp",
                says=(
                    "A boundary is crossed once a part; tp has eight collectives in every "
                    f"layer: {show.size(f.tp_row['bytes'])} against "
                    f"{show.size(f.pp_row['bytes'])}."
                ),
            ),
        ),
        hints=(
            "You have all three per unit. How many units has a step?",
            (
                "tp: layers of the stage × micro-batches. pp: parts × micro-batches × two "
                "ways. dp: once."
            ),
            f"{f.micro_batches} micro-batches, 8 layers a stage.",
        ),
        worked=(
            f"tp {show.size(f.tp_row['bytes'])}, pp {show.size(f.pp_row['bytes'])}, dp "
            f"{show.size(f.dp_row['bytes'])}. Without interleaving, pp would send an eighth."
        ),
        takeaway=(
            "The gradients of a 405B model are not the traffic problem. Count per step "
            "before you buy bandwidth: and know that interleaving multiplies the pipeline's "
            "messages by its parts."
        ),
    )


def order_note(f: Facts) -> str:
    return (
        "Halve the bandwidth out of every device and keep the plan: the step goes from "
        f"{show.seconds(f.classic.step_s)} to {show.seconds(f.slow_net.step_s)}. The axes were "
        "placed so that the slow tier hardly matters."
    )


def ridge_question(f: Facts) -> Number:
    return Number(
        id="ridge",
        axis="communication",
        level="staff",
        minutes=5,
        ask=(
            "Now the rival: fully sharded data parallelism alone. Each micro-batch gathers a "
            "layer's weights for forward and again for backward and scatters its gradients, "
            "all in 16 bit, and computes 6 FLOP per parameter and token. From how many "
            "tokens per device and micro-batch does the network keep up, compute at full "
            "peak, the ring on every port?"
        ),
        expected=f.ridge,
        unit="tokens",
        within=1.1,
        slips=(
            Slip(
                value=f.ridge * f.rails / f.out,
                says=(
                    "That gives each device's whole gather to its own port. The eight "
                    "devices of a node gather the same weights: the ring crosses on all "
                    "eight ports."
                ),
            ),
            Slip(value=f.ridge / 8, says="Ports in gigabits, eight times too fast."),
            Slip(value=f.ridge * 3, says="6 FLOP a token, not 2: the backward pass computes too."),
            Slip(
                value=f.ridge / 3,
                says="Three transfers of two bytes: forward gather, backward gather, scatter.",
            ),
            Slip(value=f.ridge * 2, says="That is the sparse peak."),
        ),
        hints=(
            "Both sides are proportional to parameters: they cancel.",
            "`bytes per parameter / rate = 6 · tokens / peak`",
            f"`6 / 6 · {show.flops(f.peak)} / {show.bytes_per_s(f.rails)}`",
        ),
        worked=(
            "Six bytes against six FLOP a token: the answer is peak over rate, "
            f"{f.ridge:,.0f} tokens, whatever the model. The eight devices of a node share "
            "one gather, so each port carries an eighth of it."
        ),
        takeaway=(
            "Fully sharded data parallelism has a roofline in tokens per device, and the "
            "model's size cancels out of it. A fixed global batch over a growing fleet "
            "slides below it."
        ),
    )


def fsdp_question(f: Facts) -> Number:
    return Number(
        id="fsdp",
        axis="parallelism",
        level="staff",
        ask=(
            "With this batch of 2,048 sequences of 8,192: up to how many devices, then, can "
            "it go alone before the network binds?"
        ),
        expected=f.fsdp_devices,
        unit="devices",
        within=1.25,
        slips=(
            Slip(
                value=f.global_batch,
                says=(
                    "That is where the batch runs out of sequences; context parallelism goes "
                    "on from there. The network is asked."
                ),
                within=1.02,
            ),
            Slip(
                value=f.fsdp_devices * f.out / f.rails,
                says="That is with one port for a device's whole gather.",
                within=1.2,
            ),
        ),
        hints=(
            "Tokens of the batch, tokens each device needs.",
            "`batch tokens / ridge`",
            f"{f.batch_tokens:,} tokens",
        ),
        worked=(
            f"{f.batch_tokens:,} / {f.ridge:,.0f} is {f.fsdp_devices:,.0f} devices. This "
            f"fleet has {f.tokens_each:,.0f} tokens each, above the line; 16,384 devices "
            f"would have {f.tokens_frontier:,.0f}, well below. It is a slope, not a cliff: "
            "overlap is never whole, real rates tilt both sides, and a ring over thousands "
            "of ranks adds a latency that no bandwidth buys back."
        ),
        takeaway=(
            '"It scales linearly" holds until the batch runs out. Beyond, give each gather '
            "more tokens: tensor, context or pipeline parallelism, or a hybrid that gathers "
            "inside a pod."
        ),
    )


def fsdp_note(f: Facts) -> str:
    return (
        f"A batch of {f.global_batch:,} sequences feeds as many data-parallel ranks; beyond, "
        "context parallelism splits each sequence, and the gathers stay as large while the "
        f"work between them shrinks. From {f.fsdp[3][0]:,} to {f.fsdp[4][0]:,} devices the step "
        f"goes from {show.seconds(f.fsdp[3][1].step_s)} to {show.seconds(f.fsdp[4][1].step_s)}; "
        f"the best plan's, on the larger fleet, is {show.seconds(f.best_plans[4][1].step_s)}. The "
        "published runs in the table placed their axes: they hold their MFU to five figures of "
        "devices."
    )


def plan_question(f: Facts) -> Plan:
    def outside_the_node(trial: Assessment, best: Assessment) -> str:
        return (
            f"tp {trial.plan['tp']}: {show.seconds(trial.step_breakdown_s['tp'])} of exposed "
            f"traffic in a step of {show.seconds(trial.step_s)}; the best plan has "
            f"{show.seconds(best.step_breakdown_s['tp'])}."
        )

    def sharded_data_only(trial: Assessment, best: Assessment) -> str:
        return (
            f"{f.tokens_each:,.0f} tokens a device are barely above what the network needs: "
            f"{show.seconds(trial.step_breakdown_s['dp'])} of {show.seconds(trial.step_s)} wait "
            "for weights and gradients, and every layer is recomputed."
        )

    def narrow_tensor(trial: Assessment, best: Assessment) -> str:
        return (
            f"With tp {trial.plan['tp']} each device holds so many activations that "
            f"{trial.plan['recompute_layers']} layers a stage are recomputed, if it fits at all: "
            f"{show.seconds(trial.step_s)} a step."
        )

    return Plan(
        id="plan",
        axis="parallelism",
        level="staff",
        minutes=5,
        ask="Your plan for the 4,096: `tp`, `pp`, `dp`. Within eight per cent of the best.",
        design=f.design,
        names=("tp", "pp", "dp"),
        slower=1.08,
        slips=(
            PlanSlip(
                example={"tp": 16, "pp": 8, "dp": 32}, says=outside_the_node, at_least={"tp": 9}
            ),
            PlanSlip(
                example={"tp": 1, "pp": 1, "dp": 2048, "cp": 2},
                says=sharded_data_only,
                at_most={"tp": 1, "pp": 1},
            ),
            PlanSlip(example={"tp": 2, "pp": 16, "dp": 128}, says=narrow_tensor, at_most={"tp": 2}),
        ),
        hints=(
            "Fast tier: tp. Slow tier: pp and dp. How many micro-batches are left?",
            "tp 8, pp 8 to 32, dp and cp the rest: what halves activations without a recompute?",
            "tp 8 · pp 16 leaves 32, to be shared between dp and cp.",
        ),
        worked=(
            f"At tp 8 the stages hardly matter: {show.seconds(f.by_pp[8].step_s)} with 8, "
            f"{show.seconds(f.by_pp[16].step_s)} with 16, {show.seconds(f.by_pp[32].step_s)} with "
            "32, each with cp 2, which halves the activations of a device. Without it layers have "
            f"to be recomputed: {show.seconds(f.whole_sequences.step_s)}, "
            f"{show.seconds(f.whole_sequences.step_breakdown_s['recompute'])} of it for that."
        ),
        takeaway=(
            "With micro-batches to spare the number of stages is forgiving; what decides is "
            "whether activations fit without a recompute. Spend the effort where the slope is."
        ),
    )


def rack_question(f: Facts) -> Choice:
    return Choice(
        id="rack",
        axis="parallelism",
        level="staff",
        ask=(
            "Twist: GB200 in racks of 72 on one NVLink domain, twice the memory of a device. "
            "Where does the best tensor-parallel degree for this model go?"
        ),
        expected=f.rack_answer,
        options=(
            Option(
                key="a",
                text="It stays or falls, to 8 or less.",
                says=(
                    f"To tp {f.rack_best}: {show.seconds(f.rack[f.rack_best].step_s)} a step, and "
                    f"{show.seconds(f.rack[8].step_s)} at tp 8. Memory asks for less of it."
                ),
            ),
            Option(
                key="b",
                text="It doubles, to 16: there is bandwidth for it now.",
                says=(
                    f"{show.seconds(f.rack[16].step_s)} a step against "
                    f"{show.seconds(f.rack[4].step_s)} at tp 4: doubling tp halves the "
                    "compute that its traffic has to pay for, on any link."
                ),
            ),
            Option(
                key="c",
                text="It fills the domain: 64.",
                says=(
                    f"{show.seconds(f.rack[64].step_s)} a step: "
                    f"{show.seconds(f.rack[64].step_breakdown_s['tp'])} of it is "
                    "tensor-parallel traffic, on the fastest link there is."
                ),
            ),
        ),
        hints=(
            "Which of the two forces on tp does the new machine change?",
            "A larger domain takes the jump away. More memory takes the need away.",
            "What was tp bought for?",
        ),
        worked=(
            f"Best steps: tp 2 {show.seconds(f.rack[2].step_s)}, tp 4 "
            f"{show.seconds(f.rack[4].step_s)}, tp 8 {show.seconds(f.rack[8].step_s)}, tp 16 "
            f"{show.seconds(f.rack[16].step_s)}, tp 64 {show.seconds(f.rack[64].step_s)}. The "
            "wide domain carries data-parallel and pipeline traffic instead."
        ),
        takeaway=(
            "A rack-scale domain does not ask for a rack-wide tensor parallel: its "
            "strong-scaling limit is still there, and larger memory lowers what tp is needed "
            f"for. Published runs of this model on such racks use tp {f.rack_published}."
        ),
    )


def overlap_question(f: Facts) -> Explain:
    return Explain(
        id="overlap",
        axis="communication",
        level="staff",
        minutes=4,
        ask=(
            "Why can data-parallel traffic run beneath the compute, while tensor-parallel "
            "traffic hardly can? And when does the first stop being true?"
        ),
        points=(
            Point(
                says=(
                    "Tensor-parallel results are needed by the very next matrix product: a "
                    "dependence, not a bandwidth, problem."
                ),
                words=(
                    "depend",
                    "next (matrix|matmul|gemm|layer|operation)",
                    "critical path",
                    "needs? the result",
                    "wait",
                ),
            ),
            Point(
                says=(
                    "Gradients are needed only by the optimizer, so a layer's exchange runs "
                    "under the backward pass of the others."
                ),
                words=("backward", "optimi[sz]er", "bucket"),
            ),
            Point(
                says=(
                    "It ends when the compute to hide behind is short: few micro-batches, "
                    "small batch per device, slow network."
                ),
                words=(
                    "few(er)? micro",
                    "small(er)? batch",
                    "slow",
                    "too (little|few|short)",
                    "micro-?batch",
                ),
            ),
        ),
        model=(
            "The next matrix product depends on the tensor-parallel result and must wait for "
            "it. Gradients are needed only by the optimizer, so their exchange runs beneath "
            "the backward pass of other layers. It stops hiding with few micro-batches or a "
            "slow network, when there is too little compute to hide behind."
        ),
        hints=(
            "What can the device do while it waits?",
            "Dependence: who needs the result, and when?",
            (
                "Think of the last layers of the backward pass, of few micro-batches, of a "
                "slow port."
            ),
        ),
        worked=(
            f"Exposed in the classic plan: tp {show.seconds(f.tp_row['exposed_s'])} of "
            f"{show.seconds(f.tp_row['time_s'])}, dp {show.seconds(f.dp_row['exposed_s'])} of "
            f"{show.seconds(f.dp_row['time_s'])}."
        ),
        takeaway=(
            "Traffic hides where nothing waits for it. Ask of each axis who needs its result "
            "next, and when."
        ),
    )


def falsify_question(f: Facts) -> Explain:
    return Explain(
        id="falsify",
        axis="verification",
        level="staff",
        minutes=4,
        ask=(
            "Two nodes for an afternoon, one pod for an hour: what do you measure, in which "
            "order, and which result would make you place an axis elsewhere?"
        ),
        points=(
            Point(
                says=(
                    "Measures each axis' collective at its own message size and group, on "
                    "its own tier."
                ),
                words=("message", "size", "collective", "all-?reduce", "nccl", "bandwidth"),
            ),
            Point(
                says=("Measures with compute running, since overlap is what the plan counts on."),
                words=(
                    "overlap",
                    "with compute",
                    "beside",
                    "concurrent",
                    "while .*(comput|matmul|gemm)",
                    "under load",
                ),
            ),
            Point(
                says="Runs a short step of the rival placements, not only parts.",
                words=(r"\bstep", "both plans", "candidate", "rival", "end.to.end"),
            ),
            Point(
                says="Says which result would change the placement.",
                words=(
                    "change|chang",
                    "instead",
                    "otherwise",
                    "if (it|the|we)",
                    "threshold",
                    "below",
                ),
            ),
        ),
        model=(
            "First the collectives of each axis at the message sizes and groups of the plan, "
            "on two nodes, then with matrix products running beside them. Then a short step "
            "of both candidates on one pod. If the wider tensor parallelism is faster there, "
            "or gradients stop hiding, I change the placement; I write down that threshold "
            "before the run."
        ),
        hints=(
            "Which numbers does the placement rest on?",
            (
                "The rate of each axis' own message, on its own tier, with compute beside "
                "it; then a short step."
            ),
            (
                f"Tensor-parallel message {small_size(f.activation)}, pipeline message "
                f"{show.size(f.pp_bytes)}, {show.bytes_per_s(f.rails)} across two nodes."
            ),
        ),
        worked=(
            "Collectives at the sizes and groups that the plan has, not at the largest: "
            f"{small_size(f.activation)} for tensor parallelism, where the measured rate "
            f"across nodes is {show.bytes_per_s(f.busbw_layer)} and the sum of the ports "
            f"{show.bytes_per_s(f.rails)}. Then the same with a matrix product beside it, "
            "since that is what overlap means. Then a step of one pipeline replica with the "
            "two candidate degrees. Turn when the order of the candidates turns, not when a "
            "number is missed."
        ),
        takeaway=(
            "Name beforehand the number at which you would change the plan; a measurement "
            "that cannot change it is not worth the machine."
        ),
    )


BOOK = Walkthrough(
    number="03",
    name="place_the_axes",
    title="Place the axes: 405B on real tiers",
    minutes=55,
    book=Facts,
    asks=(
        tp_bytes_question,
        tp_share_question,
        rails_question,
        tp16_question,
        best_tp_question,
        pp_bytes_question,
        dp_bytes_question,
        order_question,
        ridge_question,
        fsdp_question,
        plan_question,
        rack_question,
        overlap_question,
        falsify_question,
    ),
)
