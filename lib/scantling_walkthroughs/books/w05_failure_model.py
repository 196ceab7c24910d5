"""The failure model first: a fleet that stops every three hours, then one that stops every twenty
minutes."""

from functools import cached_property

import numpy as np
from scantling.base import show
from scantling.base.columns import Array
from scantling.base.units import DAY_S, HOUR_S, MINUTE_S
from scantling.catalogue import failure_preset, storage
from scantling.catalogue.models.entries import models
from scantling.catalogue.models.shape import parameters
from scantling.endure import checkpoint, elastic, failures, goodput, spares as spare_nodes
from scantling.endure.goodput import Shares

from .. import measured
from ..question import Choice, Explain, Number, Option, Point, Slip, Walkthrough
from ..texts import small_size


class Facts:
    """The numbers of the book, each worked out when it is first asked for, with its unit."""

    devices = 16_384  # devices
    per_node = 8  # devices
    days = 54  # days
    interruptions = 419  # stops
    planned = 47  # stops
    corruptions = 6  # corruptions
    save_s = 60.0  # s
    recovery_min = 8.0  # min
    hourly_min = 60.0  # min
    durable_s = 120.0  # s
    far_devices = 98_304  # devices
    far_mtbf_min = 20.0  # min
    far_recovery_min = 10.0  # min
    replicas = 12  # replicas
    replica_stall_min = 3.0  # min
    repair_h = 4.0  # h
    latency_h = 8.0  # h

    @cached_property
    def meta_before(self) -> float:  # share
        return measured.value("fthsdp-before")

    @cached_property
    def meta_after(self) -> float:  # share
        return measured.value("fthsdp-after")

    @cached_property
    def hourly_elsewhere(self) -> tuple[float, float]:
        return measured.recreation_of("ettr-scale", "series", "hourly saves")

    @cached_property
    def llama_floor(self) -> float:  # share
        return measured.value("llama3-effective")

    @cached_property
    def mtbf_s(self) -> float:  # s
        return self.days * DAY_S / self.interruptions

    @cached_property
    def mtbf_all_s(self) -> float:  # s
        return self.days * DAY_S / (self.interruptions + self.planned)

    @cached_property
    def device_s(self) -> float:
        """Device-seconds between two failures. [s]"""
        return self.mtbf_s * self.devices

    @cached_property
    def rework_hourly(self) -> float:
        """Share of time redone with saves every hour: half an interval a failure. [share]"""
        return self.hourly_min * MINUTE_S / 2 / self.mtbf_s

    @cached_property
    def useful(self) -> float:  # share
        return float(self.split.useful)

    @cached_property
    def saves_only(self) -> float:  # share
        return self.best_s / (self.best_s + self.save_s)

    @cached_property
    def state_share(self) -> float:  # bytes
        return self.state_bytes / self.devices

    @cached_property
    def async_useful(self) -> float:  # share
        return float(self.async_split.useful)

    @cached_property
    def far_same_rate_s(self) -> float:  # s
        return self.mtbf_s * self.devices / self.far_devices

    @cached_property
    def far_mtbf_s(self) -> float:  # s
        return self.far_mtbf_min * MINUTE_S

    @cached_property
    def far_useful(self) -> float:  # share
        return self.far()

    @cached_property
    def replica_not_shared(self) -> float:  # share
        return (
            1
            - self.replica_stall_min / self.far_mtbf_min
            - self.far_recovery_min / self.far_mtbf_min
        )

    @cached_property
    def replica_no_stall(self) -> float:  # share
        return 1 - self.far_recovery_min / self.far_mtbf_min / self.replicas

    @cached_property
    def load(self) -> float:
        """Nodes in repair on average."""
        return self.repair_h * HOUR_S / self.far_mtbf_s

    @cached_property
    def corruption_s(self) -> float:  # s
        return self.days * DAY_S / self.corruptions

    @cached_property
    def epoch_h(self) -> int:  # h
        return int(measured.published("epoch-device-hours").value)

    @cached_property
    def meta_min(self) -> float:  # min
        return measured.published("fthsdp-mtbf").value / MINUTE_S

    @cached_property
    def young_s(self) -> float:  # s
        return float(goodput.young(self.mtbf_s, self.save_s))

    @cached_property
    def best_s(self) -> float:  # s
        return float(goodput.optimum_interval(self.mtbf_s, self.save_s))

    @cached_property
    def split(self) -> Shares:
        return goodput.shares(
            self.mtbf_s, self.save_s, self.best_s, restart_s=self.recovery_min * MINUTE_S
        )

    @cached_property
    def no_recovery(self) -> float:  # share
        return float(goodput.ettr(self.mtbf_s, self.save_s, self.best_s))

    @cached_property
    def stall_s(self) -> float:
        """Seconds that training stands still for a copy to host memory over half a PCIe 5 link.
        [s]"""
        return float(checkpoint.snapshot_stall_s(self.state_bytes / self.devices, 55000000000.0))

    @cached_property
    def store_s(self) -> float:  # s
        return float(
            checkpoint.transfer_s(
                self.state_bytes, storage("meta-tectonic").total_write_bytes_per_s
            )
        )

    @cached_property
    def unbound_s(self) -> float:  # s
        return float(goodput.optimum_interval(self.mtbf_s, self.stall_s))

    @cached_property
    def async_s(self) -> float:  # s
        return max(self.unbound_s, self.durable_s - self.stall_s)

    @cached_property
    def async_split(self) -> Shares:
        return goodput.shares(
            self.mtbf_s,
            self.stall_s,
            self.async_s,
            durable_s=self.durable_s,
            restart_s=self.recovery_min * MINUTE_S,
        )

    @cached_property
    def far_best_s(self) -> float:  # s
        return float(goodput.optimum_interval(self.far_mtbf_s, self.save_s))

    @cached_property
    def far_linear(self) -> float:  # share
        return float(goodput.ettr_linear(self.far_mtbf_min, self.far_recovery_min))

    @cached_property
    def far_no_restart(self) -> float:  # share
        return float(goodput.ettr(self.far_mtbf_s, self.save_s, self.far_best_s))

    @cached_property
    def lever(self) -> str:
        return max(self.halved, key=self.halved.__getitem__)

    @cached_property
    def replica_useful(self) -> float:  # share
        return float(
            elastic.ft_hsdp(
                self.far_mtbf_s,
                self.replicas,
                stall_s=self.replica_stall_min * MINUTE_S,
                replica_recovery_s=self.far_recovery_min * MINUTE_S,
            )
        )

    @cached_property
    def meta_ettr(self) -> float:  # ratio
        return float(goodput.ettr_linear(self.meta_min, self.far_recovery_min))

    @cached_property
    def spares(self) -> int:  # nodes
        return int(spare_nodes.spares_for(self.load, 0.99))

    @cached_property
    def waiting_at_mean(self) -> float:  # share
        return float(spare_nodes.stall_share(int(self.load), self.load))

    @cached_property
    def corruption_loss(self) -> float:  # share
        return float(goodput.sdc_loss(1 / self.corruption_s, self.latency_h * HOUR_S))

    @cached_property
    def corruption_copies(self) -> int:  # checkpoints
        return int(checkpoint.retention(self.best_s, detection_latency_s=self.latency_h * HOUR_S))

    @cached_property
    def spare_chance(self) -> float:  # ratio
        return float(spare_nodes.wait_chance(self.spares, self.load))

    @cached_property
    def state_bytes(self) -> float:  # bytes
        return checkpoint.contents(
            float(parameters(models()["llama-3.1-405b"]).total),
            ranks=self.devices,
            readers=self.devices // 128,
        ).total

    @cached_property
    def useful_half(self) -> float:  # ratio
        return float(
            goodput.ettr(
                self.mtbf_s, self.save_s, self.best_s * 0.5, restart_s=self.recovery_min * MINUTE_S
            )
        )

    @cached_property
    def useful_twice(self) -> float:  # ratio
        return float(
            goodput.ettr(
                self.mtbf_s, self.save_s, self.best_s * 2.0, restart_s=self.recovery_min * MINUTE_S
            )
        )

    @cached_property
    def flat(self) -> float:
        """Share of the time that half or twice the best interval loses at most. [share]"""
        return self.useful - min(self.useful_half, self.useful_twice)

    @cached_property
    def rsc_s(self) -> float:  # s
        return float(
            failures.job_mtbf_s(failure_preset("rsc-1").per_1000_node_days, self.far_devices)
        )

    @cached_property
    def async_largest(self) -> str:
        """Key of the option that names the largest loss."""
        lost = {
            "a": self.async_split.saves,
            "b": self.async_split.lost_work,
            "c": self.async_split.restart + self.async_split.detection,
        }
        return max(lost, key=lost.__getitem__)

    def far(self, stall: float = 1.0, recovery: float = 1.0, interval: float = 1.0) -> float:
        """Useful share on the large site with stall, recovery or interval changed by a factor; the
        interval at its optimum first."""
        tau = goodput.optimum_interval(self.far_mtbf_s, self.save_s * stall) * interval
        return float(
            goodput.ettr(
                self.far_mtbf_s,
                self.save_s * stall,
                tau,
                restart_s=self.far_recovery_min * MINUTE_S * recovery,
            )
        )

    @cached_property
    def halved(self) -> dict[str, float]:
        return {"a": self.far(stall=0.5), "b": self.far(recovery=0.5), "c": self.far(interval=2.0)}

    @cached_property
    def spare_curve(self) -> dict[str, tuple[Array, Array]]:
        n = np.arange(0, 31)
        return {"waits": (n, np.array([spare_nodes.wait_chance(int(s), self.load) for s in n]))}

    @cached_property
    def curves(self) -> dict[str, tuple[Array, Array]]:
        axis = np.geomspace(60, 4 * HOUR_S, 60)
        ways = {
            "saves of a minute that block": (self.save_s, 0.0),
            "a copy to host memory, durable later": (self.stall_s, self.durable_s),
        }
        curves = {}
        for name, (stall, durable) in ways.items():
            useful = goodput.ettr(
                self.mtbf_s, stall, axis, durable_s=durable, restart_s=self.recovery_min * MINUTE_S
            )
            curves[name] = (axis / MINUTE_S, np.asarray(useful))
        return curves

    @cached_property
    def scale_curves(self) -> dict[str, tuple[Array, Array]]:
        n = np.geomspace(2048, 131_072, 40)
        m = self.mtbf_s * self.devices / n
        restart_s = self.far_recovery_min * MINUTE_S
        ways = {
            "whole job restarts, saves block": (self.save_s, 0.0),
            "whole job restarts, saves do not block": (self.stall_s, self.durable_s),
        }
        whole = {
            name: goodput.ettr(
                m,
                stall,
                np.maximum(goodput.optimum_interval(m, stall), durable),
                durable_s=durable,
                restart_s=restart_s,
            )
            for name, (stall, durable) in ways.items()
        }
        one = elastic.ft_hsdp(
            m,
            self.replicas,
            stall_s=self.replica_stall_min * MINUTE_S,
            replica_recovery_s=restart_s,
        )
        useful = whole | {"one replica of twelve restarts": one}
        return {name: (n, np.asarray(share)) for name, share in useful.items()}


# ---------------------------------------------------------------- questions


def ask_question(f: Facts) -> Explain:
    return Explain(
        id="ask",
        axis="scope",
        level="senior",
        minutes=5,
        ask=(
            "Before any arithmetic: what do you ask about failures, and why does each answer "
            "matter? Four or five lines."
        ),
        points=(
            Point(
                says="how often this fleet fails: measured, by cause, not from a data sheet",
                words=(r"\b(mtbf|rate|how often|fail(ure)?s? per|record|history)\b",),
            ),
            Point(
                says=(
                    "what stops when one device fails: the whole synchronous job, or one replica"
                ),
                words=(r"\b(whole|entire|replica|synchron|all ranks|gang|elastic)",),
            ),
            Point(
                says="how long detection and restart take",
                words=(r"\b(detect|restart|recover|resume|hang|timeout|diagnos)",),
            ),
            Point(
                says="what a save costs, where it goes, and when it is durable",
                words=(r"\b(checkpoint|save|snapshot|durable|storage)",),
            ),
            Point(
                says="what takes the place of a dead node: spares, repair time",
                words=(r"\b(spare|standby|repair|replace|hot)",),
            ),
        ),
        model=(
            "How often does this fleet fail, by its own record? What stops when one device "
            "dies: the whole synchronous job or one replica? How long do detection and "
            "restart take? What does a checkpoint cost, and when is it durable? Are there "
            "spare nodes, and how long is a repair?"
        ),
        hints=(
            "What would change the goodput by more than a point?",
            "Follow one failure from the moment it strikes until the first new step.",
            (
                "Rate, who stops, how long until it is seen, how long until it runs again, "
                "what a save costs, what is lost, what replaces the node."
            ),
        ),
        worked=(
            "Each term of the goodput is one question: how often (the fleet's own record), "
            "how much stops (the whole job or one replica), how long until it is noticed, "
            "how long until the job runs again, how much work the newest copy is behind, "
            "what a save costs while training, and whether a spare node is ready."
        ),
        takeaway=(
            "The failure model is five numbers: rate, detection, restart, age of the newest "
            "copy, cost of a save. Ask for all five; a rate alone decides nothing."
        ),
    )


def mtbf_question(f: Facts) -> Number:
    return Number(
        id="mtbf",
        axis="reliability",
        level="mid",
        ask=(
            f"The run log: {f.interruptions} unexpected interruptions and {f.planned} planned "
            f"ones in {f.days} days. How long does the job run between two failures, in "
            "hours?"
        ),
        expected=f.mtbf_s,
        unit="h",
        scale=3600.0,
        within=1.04,
        slips=(
            Slip(
                value=f.mtbf_all_s,
                says=(
                    f"That counts the {f.planned} planned stops too. They are announced, the "
                    "job saves first: count the unexpected ones for the failure model."
                ),
                within=1.03,
            ),
            Slip(
                value=f.device_s / f.per_node,
                says=("That is how long one node lasts. The job stops when any of its nodes does."),
            ),
            Slip(value=f.mtbf_s / 24, says="That is in days: the question wants hours."),
        ),
        hints=(
            "Planned stops save first, and lose nothing.",
            "Time over number of failures.",
            f"`{f.days} · 24 h / {f.interruptions}`",
        ),
        worked=(
            f"`{f.days} · 24 / {f.interruptions}` = {show.seconds(f.mtbf_s)}. A planned stop "
            "is announced: the job saves, stops and loses only the restart, so it does not "
            f"belong into this number (with it: {show.seconds(f.mtbf_all_s)})."
        ),
        takeaway="Count what strikes without warning; planned stops are a separate, cheaper line.",
    )


def mtbf_note(f: Facts) -> str:
    return (
        f"`M = time / failures`. With {f.interruptions:,} in {f.days:,} days: "
        f"{show.seconds(f.mtbf_s)}."
    )


def device_question(f: Facts) -> Number:
    return Number(
        id="device",
        axis="reliability",
        level="senior",
        ask=(
            "What does that say about one device: how many hours does it run between two "
            "failures, on average?"
        ),
        expected=f.device_s,
        unit="h",
        scale=3600.0,
        within=1.06,
        slips=(
            Slip(
                value=f.device_s / f.per_node,
                says=(
                    f"You multiplied by nodes: {f.per_node} devices share one. The question "
                    "is about a device."
                ),
            ),
            Slip(
                value=f.mtbf_s / f.devices,
                says=(
                    "The other way round: a single device fails far less often than the job "
                    "that needs all of them."
                ),
            ),
        ),
        hints=(
            "All devices run at once; the job stops with the first of them.",
            "Rates add: the job's rate is the number of devices times the rate of one.",
            f"`{show.seconds(f.mtbf_s)} · {f.devices:,}`",
        ),
        worked=(
            "Rates add up over a synchronous job, so one device lasts "
            f"`{show.seconds(f.mtbf_s)} · {f.devices:,}` = {show.seconds(f.device_s)}. Epoch "
            f"AI takes {f.epoch_h:,} hours for its projections: the same fleet, read "
            "backwards."
        ),
        takeaway=(
            "A device that lasts almost six years makes a job of this size stop eight times "
            "a day: at scale reliability is arithmetic, not quality."
        ),
    )


def hourly_question(f: Facts) -> Number:
    return Number(
        id="hourly",
        axis="reliability",
        level="senior",
        ask=(
            "The team saves every hour. What share of the time goes into redoing lost work, "
            "in per cent?"
        ),
        expected=f.rework_hourly,
        unit="%",
        scale=0.01,
        within=1.06,
        slips=(
            Slip(
                value=f.rework_hourly * 2,
                says=(
                    "That charges a whole interval for each failure. It strikes in the "
                    "middle on average: half of it."
                ),
            ),
            Slip(
                value=f.hourly_min * 30 / f.mtbf_all_s,
                says=("Close, but with the planned stops in the rate; they save before they stop."),
                within=1.01,
            ),
        ),
        hints=(
            "A failure throws the job back to the newest save.",
            "On average half an interval is lost, once per failure.",
            f"`({f.hourly_min:g} min / 2) / {show.seconds(f.mtbf_s)}`",
        ),
        worked=(
            "A failure strikes anywhere in the interval, half of it on average: "
            f"`{f.hourly_min:g} min / 2 / {show.seconds(f.mtbf_s)}` = "
            f"{show.share(f.rework_hourly)}. On a fleet of that size with hourly saves Meta "
            "expects seven tenths of the time to be useful, restarts included."
        ),
        takeaway=(
            "Lost work is `interval / (2 MTBF)`: a habit of hourly saves is fine at a "
            "failure a week, and a disaster at eight a day."
        ),
    )


def interval_question(f: Facts) -> Number:
    return Number(
        id="interval",
        axis="reliability",
        level="senior",
        ask=(
            f"A synchronous save stops training for {show.seconds(f.save_s)}. How often would "
            "you save, in minutes?"
        ),
        expected=f.young_s,
        unit="min",
        scale=60.0,
        within=1.08,
        slips=(
            Slip(
                value=float((f.save_s * f.mtbf_s) ** 0.5),
                says=(
                    "A factor of two is missing under the root: only half an interval is "
                    "lost, so `t / (2 M)` is the loss to balance."
                ),
            ),
            Slip(
                value=f.hourly_min * 60.0,
                says=(
                    "An hour is a habit, not an answer: it loses "
                    f"{show.share(f.rework_hourly)} to rework."
                ),
            ),
            Slip(
                value=float((2 * f.save_s * f.device_s) ** 0.5),
                says=(
                    "That uses the life of one device. The job restarts when any of its "
                    "devices fails."
                ),
            ),
        ),
        hints=(
            ("More saves cost time, fewer saves lose work: both grow in opposite directions."),
            "Least of `save / t + t / (2 M)`.",
            f"`sqrt(2 · {show.seconds(f.save_s)} · {show.seconds(f.mtbf_s)})`",
        ),
        worked=(
            "The sum `save / t + t / (2 M)` is least at Young's `sqrt(2 · save · M)` = "
            f"{show.seconds(f.young_s)}. Exactly, with the time of the save itself in the "
            f"period, it is {show.seconds(f.best_s)}; the valley is flat: half or twice the "
            f"interval costs no more than {show.share(f.flat)} of the time."
        ),
        takeaway=(
            "Young: the interval is the geometric mean of twice the save and the MTBF. It "
            "moves with the square root: a ten times cheaper save is worth a three times "
            "shorter interval."
        ),
    )


def useful_question(f: Facts) -> Number:
    return Number(
        id="useful",
        axis="reliability",
        level="staff",
        ask=(
            f"At that interval, with {f.recovery_min:g} minutes from a failure to the first "
            "new step: what share of the time trains, in per cent?"
        ),
        expected=f.useful,
        unit="%",
        scale=0.01,
        within=1.025,
        slips=(
            Slip(
                value=f.saves_only,
                says=(
                    "That counts the saves alone. A failure also loses half an interval and "
                    f"{f.recovery_min:g} minutes of recovery."
                ),
                within=1.015,
            ),
            Slip(
                value=f.no_recovery,
                says=(
                    f"Saves and lost work are in; the {f.recovery_min:g} minutes of recovery "
                    "after each failure are not."
                ),
                within=1.015,
            ),
            Slip(
                value=1 - f.useful,
                says="That is the lost share; the question asks for what trains.",
                within=1.05,
            ),
        ),
        hints=(
            "Three losses: saves, rework, recovery.",
            "`save / (t + save)`, `t / (2 M)`, `recovery / M`, and they multiply.",
            (
                f"`{show.seconds(f.save_s)} / {show.seconds(f.best_s)}`, "
                f"`{show.seconds(f.best_s)} / (2 · {show.seconds(f.mtbf_s)})`, "
                f"`{f.recovery_min:g} min / {show.seconds(f.mtbf_s)}`"
            ),
        ),
        worked=(
            f"Saves {show.share(f.split.saves)}, lost work {show.share(f.split.lost_work)}, "
            f"recovery {show.share(f.split.restart)}: {show.share(f.useful)} is left. The "
            "exact form is `t exp(-R/M) / (M (exp((t + s)/M) - 1))`. The authors of Llama "
            f"3.1 report more than {show.share(f.llama_floor)}: with a save that blocks for a "
            "minute nobody gets there, whatever the interval."
        ),
        takeaway=(
            "Budget the lost time by cause before optimising any of it; the optimum interval "
            "makes saves and rework equal, and leaves the recovery as it is."
        ),
    )


def async_question(f: Facts) -> Number:
    return Number(
        id="async",
        axis="reliability",
        level="staff",
        ask=(
            "Now a save copies the state to host memory and writes it from there: training "
            f"stands still for {show.seconds(f.stall_s)}, the copy is durable "
            f"{show.seconds(f.durable_s)} later. How often do you save, in minutes?"
        ),
        expected=f.async_s,
        unit="min",
        scale=60.0,
        within=1.25,
        slips=(
            Slip(
                value=float(goodput.young(f.mtbf_s, f.durable_s)),
                says=(
                    f"You put the {show.seconds(f.durable_s)} of writing into Young's "
                    "formula. Training does not wait for the write: only the "
                    f"{show.seconds(f.stall_s)} of stall belong there."
                ),
                within=1.1,
            ),
            Slip(
                value=float(goodput.young(f.mtbf_s, f.save_s)),
                says=(
                    f"That is the interval of the save that blocks for {show.seconds(f.save_s)}."
                ),
                within=1.1,
            ),
        ),
        hints=(
            (
                "Young's formula asks for what a save costs the training, not for how long "
                "the write lasts."
            ),
            "But one write must be finished before the next begins.",
            (
                f"`sqrt(2 · {show.seconds(f.stall_s)} · {show.seconds(f.mtbf_s)})`, and not "
                f"less than {show.seconds(f.durable_s)}"
            ),
        ),
        worked=(
            "The stall alone would ask for a checkpoint interval of "
            f"{show.seconds(f.unbound_s)}; one write in flight at a time makes it "
            f"{show.seconds(f.async_s)}. The time until the copy is durable moves no optimum: "
            "it acts like extra restart time, since a failure before it falls back one save "
            "more."
        ),
        takeaway=(
            "Asynchronous saves turn the interval from an optimum into a question of "
            "storage: it is the write, not the stall, that limits how often."
        ),
    )


def async_note(f: Facts) -> str:
    return (
        f"The whole state is {small_size(f.state_bytes)}, a share of "
        f"{small_size(f.state_share)} a device; copying that at half the host link is the "
        f"{show.seconds(f.stall_s)}. The store of the published run writes it in "
        f"{show.seconds(f.store_s)} at its sustained rate, so the {show.seconds(f.durable_s)} "
        "until a copy counts are mostly coordination."
    )


def largest_question(f: Facts) -> Choice:
    return Choice(
        id="largest",
        axis="reliability",
        level="senior",
        ask=(
            f"With these saves {show.share(f.async_useful)} of the time trains. Where does "
            "most of the rest go?"
        ),
        expected=f.async_largest,
        options=(
            Option(
                key="a",
                text="into the saves",
                says=(
                    f"They cost {show.share(f.async_split.saves)} now: the stall is "
                    f"{show.seconds(f.stall_s)}."
                ),
            ),
            Option(
                key="b",
                text="into work that is done again",
                says=(
                    f"That is {show.share(f.async_split.lost_work)}: the newest copy is only "
                    "minutes old."
                ),
            ),
            Option(
                key="c",
                text="into noticing the failure and restarting",
                says=(
                    f"Yes: {show.share(f.async_split.restart)}, more than saves and rework "
                    "together."
                ),
            ),
        ),
        hints=(
            "Put the three losses side by side.",
            "`stall / t`, `(t / 2 + durable) / M`, `recovery / M`.",
            (
                f"saves {show.share(f.async_split.saves)}, lost work "
                f"{show.share(f.async_split.lost_work)}"
            ),
        ),
        worked=(
            f"Saves {show.share(f.async_split.saves)}, lost work "
            f"{show.share(f.async_split.lost_work)}, detection and restart "
            f"{show.share(f.async_split.restart)}. Once saves are cheap, what is left is the "
            "time from failure to first step."
        ),
        takeaway=(
            "After asynchronous saves the restart is the largest loss: communicators, "
            "loading, warm-up, and first of all noticing."
        ),
    )


def far_question(f: Facts) -> Number:
    return Number(
        id="far",
        axis="reliability",
        level="senior",
        ask=(
            f"The next site has {f.far_devices:,} devices of the same kind. How long does its "
            "job run between failures, in minutes?"
        ),
        expected=f.far_same_rate_s,
        unit="min",
        scale=60.0,
        slips=(
            Slip(
                value=f.mtbf_s, says="That is the smaller fleet's: the number of devices is in it."
            ),
            Slip(
                value=f.mtbf_s * f.far_devices / f.devices,
                says="The wrong way: more devices fail more often, not less.",
            ),
        ),
        hints=(
            "Rates add.",
            "MTBF falls as one over the number of devices.",
            f"`{show.seconds(f.mtbf_s)} · {f.devices:,} / {f.far_devices:,}`",
        ),
        worked=(
            f"`{show.seconds(f.mtbf_s)} · {f.devices:,} / {f.far_devices:,}` = "
            f"{show.seconds(f.far_same_rate_s)}. Meta measured {f.meta_min:g} minutes at this "
            f"size: the rate of its older A100 fleet gives {show.seconds(f.rsc_s)}. Published "
            "fleets differ by three to one in the rate, so carry both."
        ),
        takeaway=(
            "Same rate per device, six times the devices, a sixth of the time: plan for the "
            "range of published rates, not for the best of them."
        ),
    )


def collapse_question(f: Facts) -> Number:
    return Number(
        id="collapse",
        axis="reliability",
        level="staff",
        ask=(
            f"Take {f.far_mtbf_min:g} minutes. Saves block for {show.seconds(f.save_s)}, the "
            f"whole job restarts in {f.far_recovery_min:g} minutes, the interval is at its "
            "optimum. What share of the time trains, in per cent?"
        ),
        expected=f.far_useful,
        unit="%",
        scale=0.01,
        slips=(
            Slip(
                value=f.far_linear,
                says=(
                    "That is `1 - recovery / MTBF`: it leaves out saves and lost work, and "
                    "adds what should be multiplied."
                ),
                within=1.03,
            ),
            Slip(
                value=f.far_no_restart,
                says=(
                    "Saves and lost work are in, the restarts are not: "
                    f"{f.far_recovery_min:g} minutes after every failure, and a failure can "
                    "strike a restart as well."
                ),
                within=1.03,
            ),
            Slip(
                value=f.useful,
                says="That is the smaller fleet at three hours between failures.",
                within=1.02,
            ),
        ),
        hints=(
            "The same three losses, but they are no longer small.",
            "Products, not sums: `t exp(-R/M) / (M (exp((t + s)/M) - 1))`.",
            (
                f"interval {show.seconds(f.far_best_s)}, recovery "
                f"`exp(-{f.far_recovery_min:g}/{f.far_mtbf_min:g})`"
            ),
        ),
        worked=(
            f"The best interval is {show.seconds(f.far_best_s)}; {show.share(f.far_useful)} "
            f"is left. Adding first-order losses would say {show.share(f.far_linear)} for the "
            "recovery alone, before any saves: beyond some ten thousands of devices the "
            f"additive formulas leave the truth. Meta reports {show.share(f.meta_before)} for "
            "whole-job restarts at this size."
        ),
        takeaway=(
            "When recovery is half the time between failures, more than half of the site is "
            "lost, and no interval brings it back."
        ),
    )


def lever_question(f: Facts) -> Choice:
    return Choice(
        id="lever",
        axis="cost",
        level="staff",
        ask="You can have one of three, for the same money. Which?",
        expected=f.lever,
        options=(
            Option(
                key="a",
                text="a store twice as fast: saves block half as long",
                says=(
                    f"It gives {show.share(f.halved['a'])}: the loss to saves goes with the "
                    "square root."
                ),
            ),
            Option(
                key="b",
                text=(
                    "recovery in half the time: warm spares, communicators made once, "
                    "restart in place"
                ),
                says=f"Yes: {show.share(f.halved['b'])}.",
            ),
            Option(
                key="c",
                text="saves half as often",
                says=(
                    f"It gives {show.share(f.halved['c'])}: away from the optimum, both ways "
                    "are worse."
                ),
            ),
        ),
        hints=(
            "Work out all three.",
            "The save enters as a square root, the recovery as an exponential.",
            f"as it is {show.share(f.far_useful)}",
        ),
        worked=(
            f"Store twice as fast: {show.share(f.halved['a'])}. Recovery halved: "
            f"{show.share(f.halved['b'])}. Half as many saves: {show.share(f.halved['c'])}. "
            f"As it was: {show.share(f.far_useful)}."
        ),
        takeaway=(
            "Storage buys the square root, recovery the whole: at short MTBFs pay for the restart."
        ),
    )


def replica_question(f: Facts) -> Number:
    return Number(
        id="replica",
        axis="parallelism",
        level="staff",
        ask=(
            f"{f.replicas} replicas train together; a failure stops all for "
            f"{f.replica_stall_min:g} minutes, after which eleven go on while one recovers "
            f"for {f.far_recovery_min:g}. What share of the work is done now, in per cent?"
        ),
        expected=f.replica_useful,
        unit="%",
        scale=0.01,
        within=1.03,
        slips=(
            Slip(
                value=f.replica_not_shared,
                says=(
                    "You charge the whole recovery to everybody. Only one replica of "
                    f"{f.replicas} stands still for it."
                ),
                within=1.02,
            ),
            Slip(
                value=f.replica_no_stall,
                says=(
                    f"The {f.replica_stall_min:g} minutes in which all replicas stand still "
                    "are missing."
                ),
                within=1.02,
            ),
            Slip(value=f.far_useful, says="That is the whole job restarting.", within=1.02),
        ),
        hints=(
            "Two losses: all stand still, one stands still.",
            "`1 - S / M - (R / M) / replicas`.",
            (
                f"`1 - {f.replica_stall_min:g}/{f.far_mtbf_min:g} - "
                f"({f.far_recovery_min:g}/{f.far_mtbf_min:g}) / {f.replicas}`"
            ),
        ),
        worked=(
            f"`1 - {f.replica_stall_min:g}/{f.far_mtbf_min:g} - "
            f"({f.far_recovery_min:g}/{f.far_mtbf_min:g})/{f.replicas}` = "
            f"{show.share(f.replica_useful)}. Meta's fault-tolerant HSDP reports "
            f"{show.share(f.meta_after)} after, {show.share(f.meta_before)} before. The "
            "price: the step goes on with a smaller batch, which the training has to allow."
        ),
        takeaway=(
            "Shrink what a failure stops: replica-level recovery is worth more than any "
            "faster save, and is a decision of the training recipe as much as of the "
            "platform."
        ),
    )


def spares_question(f: Facts) -> Number:
    return Number(
        id="spares",
        axis="reliability",
        level="staff",
        ask=(
            f"Each failure takes a node away for {f.repair_h:g} hours. How many spare nodes "
            "does the large site need so that a replacement is ready 99 times of 100?"
        ),
        expected=f.spares,
        unit="nodes",
        within=1.12,
        slips=(
            Slip(
                value=f.load,
                says=(
                    "That is the average number in repair: more are often away, and the job "
                    f"would wait {show.share(f.waiting_at_mean)} of the time."
                ),
            ),
        ),
        hints=(
            "How many nodes are in repair at once, on average?",
            "Load = repair / MTBF; then a quantile, not the mean: Erlang's loss formula.",
            f"load {show.number(f.load)}",
        ),
        worked=(
            f"On average {show.number(f.load)} nodes are away. With only that many spares the "
            f"job waits {show.share(f.waiting_at_mean)} of the time; for 99 of 100 it takes "
            f"{f.spares}. ByteRobust sizes its standbys by the same 99th percentile."
        ),
        takeaway=(
            "Size spares by the tail, not the mean; one more node costs thousandths, one "
            "missing costs the site."
        ),
    )


def spares_note(f: Facts) -> str:
    return (
        "Erlang's loss formula: chance that a failure finds no spare, by the number of spares, "
        f"when {show.ratio(f.load)} are in repair on average. The mean is where the curve is "
        "still steep."
    )


def corruption_question(f: Facts) -> Number:
    return Number(
        id="corruption",
        axis="verification",
        level="staff",
        ask=(
            "Six of the interruptions were silent data corruption. If one is noticed "
            f"{f.latency_h:g} hours after it happened, what share of the time is lost, in per "
            "cent?"
        ),
        expected=f.corruption_loss,
        unit="%",
        scale=0.01,
        within=1.08,
        slips=(
            Slip(
                value=f.latency_h * 3600 / f.mtbf_s,
                says=(
                    f"That takes every failure for a corruption; only {f.corruptions} of "
                    f"{f.interruptions} were."
                ),
                within=1.05,
            ),
        ),
        hints=(
            "Everything since the corruption is thrown away.",
            "Latency over time between corruptions.",
            f"`{f.latency_h:g} h / ({f.days} days / {f.corruptions})`",
        ),
        worked=(
            f"`{f.latency_h:g} h / {show.seconds(f.corruption_s)}` = "
            f"{show.share(f.corruption_loss)}, nearly as much as the "
            f"{show.share(f.split.restart)} of all restarts together, and "
            f"{f.corruption_copies} saves have to be kept so that a clean one exists. What "
            "finds it earlier: checksums of gradients, a step repeated on other devices, "
            "loss by rank."
        ),
        takeaway=(
            "Retention is a reliability decision: keep copies for as long as a corruption can hide."
        ),
    )


def corruption_note(f: Facts) -> str:
    return (
        f"A corruption that is found after {f.latency_h:g} hours costs as much as a hundred "
        "fast restarts. Gemini's authors replay suspicious steps; Llama 3's count six in "
        f"{f.days:,} days."
    )


def defend_question(f: Facts) -> Explain:
    return Explain(
        id="defend",
        axis="telling",
        level="staff",
        minutes=6,
        ask=(
            "The director has money for one quarter of engineering. What do you do first, "
            "second, third, and what do you measure to know that it worked?"
        ),
        points=(
            Point(
                says="leads with goodput or dollars, before any mechanism",
                words=(r"\b(goodput|dollars?|\$|days|useful share|effective)\b",),
            ),
            Point(
                says="puts the restart path (detection, spares, in-place restart) first",
                words=(r"\b(restart|recover|detect|spare|standby)",),
            ),
            Point(
                says="then saves that do not block, or a copy nearer than the store",
                words=(
                    r"\b(async|snapshot|peer|in-memory|host memory|does not block|do not block)",
                ),
            ),
            Point(
                says=("names who else must agree: batch and recipe change under replica recovery"),
                words=(r"\b(batch|recipe|ML|research|convergence|owner)",),
            ),
            Point(
                says="measures it: drills, time to first step, goodput by cause",
                words=(r"\b(drill|kill|inject|measure|game day|test)",),
            ),
        ),
        model=(
            "Goodput first: the budget says recovery is the largest loss. One: restart in "
            "place on warm spares with fast detection. Two: asynchronous saves with a peer "
            "copy. Three: replica recovery, agreed with research since the batch shrinks. "
            "Measure with a weekly drill: kill a node, time to first step, goodput by cause."
        ),
        hints=(
            "Lead with the number that matters.",
            "Order by points of goodput, not by taste.",
            "Restart path, then saves, then what a failure stops; a drill measures it.",
        ),
        worked=(
            "The order follows the budget: restart in place with warm spares (points at "
            "once), asynchronous saves with a copy on a peer, then replica-level recovery "
            "with the owners of the recipe, since it changes the batch. Measure by killing a "
            "node on purpose, every week: seconds from kill to first step, work lost, and "
            "goodput by cause from the job's own events."
        ),
        takeaway="A recovery that is not drilled does not exist.",
    )


BOOK = Walkthrough(
    number="05",
    name="failure_model",
    title="The failure model first: three hours between failures, then twenty minutes",
    minutes=55,
    book=Facts,
    asks=(
        ask_question,
        mtbf_question,
        device_question,
        hourly_question,
        interval_question,
        useful_question,
        async_question,
        largest_question,
        far_question,
        collapse_question,
        lever_question,
        replica_question,
        spares_question,
        corruption_question,
        defend_question,
    ),
)
