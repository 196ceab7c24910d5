"""The failure model first: a fleet that stops every three hours, then one that stops every twenty
minutes."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scantling import catalogue
from scantling.base.units import DAY_S, HOUR_S, MINUTE_S
from scantling.catalogue import storage
from scantling.catalogue.models.entries import models
from scantling.catalogue.models.shape import parameters
from scantling.endure import checkpoint, elastic, failures, goodput, spares
from scantling.evidence.figures.figures import recreate
from scantling.physics import stragglers

from ..measured import published
from ..question import Choice, Explain, Number, Option, Point, Slip, Walkthrough


class Facts:
    """A published run's failures, the saves of its model, and the same job on a site six times as
    large."""

    devices, per_node, days, interruptions, planned, corruptions = 16_384, 8, 54, 419, 47, 6
    save_s, recovery_min, hourly_min, durable_s = 60.0, 8.0, 60.0, 120.0
    (
        far_devices,
        far_mtbf_min,
        far_recovery_min,
        replicas,
        replica_stall_min,
        repair_h,
        latency_h,
    ) = 98_304, 20.0, 10.0, 12, 3.0, 4.0, 8.0

    # ---------------------------------------------------------------- printed by others
    epoch_h = property(lambda self: int(published("epoch-device-hours").value))
    meta_min = property(lambda self: published("fthsdp-mtbf").value / MINUTE_S)
    meta_before = property(lambda self: published("fthsdp-before").value)
    meta_after = property(lambda self: published("fthsdp-after").value)
    llama_floor = property(lambda self: published("llama3-effective").value)

    @cached_property
    def hourly_elsewhere(self):
        """(ours, printed) useful share of another fleet with hourly saves."""
        row = recreate("ettr-scale").table().set_index("series").loc["hourly saves"]
        return float(row.ours), float(row.published)

    # ---------------------------------------------------------------- the three-hour fleet
    @cached_property
    def mtbf_s(self):
        return self.days * DAY_S / self.interruptions

    @property
    def mtbf_all_s(self):
        return self.days * DAY_S / (self.interruptions + self.planned)

    @property
    def device_s(self):
        """Device-seconds between two failures."""
        return self.mtbf_s * self.devices

    @property
    def rework_hourly(self):
        """Share of time redone with saves every hour: half an interval a failure."""
        return self.hourly_min * MINUTE_S / 2 / self.mtbf_s

    @property
    def young_s(self):
        return float(goodput.young(self.mtbf_s, self.save_s))

    @property
    def best_s(self):
        return float(goodput.optimum_interval(self.mtbf_s, self.save_s))

    @cached_property
    def split(self):
        return {
            k: float(v)
            for k, v in goodput.shares(
                self.mtbf_s, self.save_s, self.best_s, restart_s=self.recovery_min * MINUTE_S
            ).items()
        }

    @property
    def flat(self):
        """Share of the time that half or twice the best interval loses at most."""
        return self.useful - min(
            float(
                goodput.ettr(
                    self.mtbf_s,
                    self.save_s,
                    self.best_s * k,
                    restart_s=self.recovery_min * MINUTE_S,
                )
            )
            for k in (0.5, 2.0)
        )

    @property
    def useful(self):
        return self.split["useful"]

    @property
    def saves_only(self):
        return self.best_s / (self.best_s + self.save_s)

    @property
    def no_recovery(self):
        return float(goodput.ettr(self.mtbf_s, self.save_s, self.best_s))

    # ---------------------------------------------------------------- saves that do not block
    @cached_property
    def state_bytes(self):
        n = parameters(models()["llama-3.1-405b"]).total
        return float(checkpoint.contents(n, ranks=self.devices, readers=self.devices // 128).total)

    @property
    def state_share(self):
        return self.state_bytes / self.devices

    @cached_property
    def stall_s(self):
        """Seconds that training stands still for a copy to host memory over half a PCIe 5 link."""
        return float(checkpoint.snapshot_stall_s(self.state_bytes / self.devices, 55e9))

    @property
    def store_s(self):
        return float(
            checkpoint.transfer_s(
                self.state_bytes, storage("meta-tectonic").total_write_bytes_per_s
            )
        )

    @property
    def unbound_s(self):
        return float(goodput.optimum_interval(self.mtbf_s, self.stall_s))

    @property
    def async_s(self):
        return max(self.unbound_s, self.durable_s - self.stall_s)

    @cached_property
    def async_split(self):
        return {
            k: float(v)
            for k, v in goodput.shares(
                self.mtbf_s,
                self.stall_s,
                self.async_s,
                durable_s=self.durable_s,
                restart_s=self.recovery_min * MINUTE_S,
            ).items()
        }

    @property
    def async_useful(self):
        return self.async_split["useful"]

    @property
    def async_largest(self):
        """Key of the option that names the largest loss."""
        lost = {
            "a": self.async_split["saves"],
            "b": self.async_split["lost work"],
            "c": self.async_split["restart"] + self.async_split["detection"],
        }
        return max(lost, key=lost.get)

    # ---------------------------------------------------------------- the larger site
    @property
    def far_same_rate_s(self):
        return self.mtbf_s * self.devices / self.far_devices

    @property
    def far_mtbf_s(self):
        return self.far_mtbf_min * MINUTE_S

    @property
    def far_best_s(self):
        return float(goodput.optimum_interval(self.far_mtbf_s, self.save_s))

    def far(self, stall=1.0, recovery=1.0, interval=1.0):
        """Useful share on the large site with stall, recovery or interval changed by a factor; the
        interval at its optimum first."""
        tau = float(goodput.optimum_interval(self.far_mtbf_s, self.save_s * stall)) * interval
        return float(
            goodput.ettr(
                self.far_mtbf_s,
                self.save_s * stall,
                tau,
                restart_s=self.far_recovery_min * MINUTE_S * recovery,
            )
        )

    @cached_property
    def far_useful(self):
        return self.far()

    @property
    def far_linear(self):
        return float(goodput.ettr_linear(self.far_mtbf_min, self.far_recovery_min))

    @property
    def far_no_restart(self):
        return float(goodput.ettr(self.far_mtbf_s, self.save_s, self.far_best_s))

    @cached_property
    def halved(self):
        return {"a": self.far(stall=0.5), "b": self.far(recovery=0.5), "c": self.far(interval=2.0)}

    @property
    def lever(self):
        return max(self.halved, key=self.halved.get)

    @property
    def replica_useful(self):
        return float(
            elastic.ft_hsdp(
                self.far_mtbf_s,
                self.replicas,
                stall_s=self.replica_stall_min * MINUTE_S,
                replica_recovery_s=self.far_recovery_min * MINUTE_S,
            )
        )

    @property
    def replica_not_shared(self):
        return (
            1
            - self.replica_stall_min / self.far_mtbf_min
            - self.far_recovery_min / self.far_mtbf_min
        )

    @property
    def replica_no_stall(self):
        return 1 - self.far_recovery_min / self.far_mtbf_min / self.replicas

    @property
    def meta_counted(self):
        return float(goodput.ettr_linear(self.meta_min, self.far_recovery_min))

    @property
    def load(self):
        """Nodes in repair on average."""
        return self.repair_h * HOUR_S / self.far_mtbf_s

    @cached_property
    def spares(self):
        return int(spares.spares_for(self.load, 0.99))

    @property
    def waiting_at_mean(self):
        return float(spares.stall_share(int(self.load), self.load))

    @property
    def corruption_s(self):
        return self.days * DAY_S / self.corruptions

    @property
    def corruption_loss(self):
        return float(stragglers.sdc_loss(1 / self.corruption_s, self.latency_h * HOUR_S))

    @property
    def corruption_copies(self):
        return int(checkpoint.retention(self.best_s, detection_latency_s=self.latency_h * HOUR_S))

    # ---------------------------------------------------------------- curves for the pictures
    @cached_property
    def spare_curve(self):
        n = np.arange(0, 31)
        return {"waits": (n, np.array([float(spares.wait_chance(int(s), self.load)) for s in n]))}

    @property
    def spare_chance(self):
        return float(spares.wait_chance(self.spares, self.load))

    @cached_property
    def curves(self):
        axis = np.geomspace(60, 4 * HOUR_S, 60)
        ways = {
            "saves of a minute that block": dict(stall=self.save_s, durable=0.0),
            "a copy to host memory, durable later": dict(
                stall=self.stall_s, durable=self.durable_s
            ),
        }
        return {
            name: (
                axis / MINUTE_S,
                goodput.ettr(
                    self.mtbf_s,
                    w["stall"],
                    axis,
                    durable_s=w["durable"],
                    restart_s=self.recovery_min * MINUTE_S,
                ),
            )
            for name, w in ways.items()
        }

    @cached_property
    def scale_curves(self):
        n = np.geomspace(2048, 131_072, 40)
        m = self.mtbf_s * self.devices / n
        tau = goodput.optimum_interval(m, self.save_s)
        return {
            "whole job restarts, saves block": (
                n,
                goodput.ettr(m, self.save_s, tau, restart_s=self.far_recovery_min * MINUTE_S),
            ),
            "whole job restarts, saves do not block": (
                n,
                goodput.ettr(
                    m,
                    self.stall_s,
                    np.maximum(goodput.optimum_interval(m, self.stall_s), self.durable_s),
                    durable_s=self.durable_s,
                    restart_s=self.far_recovery_min * MINUTE_S,
                ),
            ),
            "one replica of twelve restarts": (
                n,
                elastic.ft_hsdp(
                    m,
                    self.replicas,
                    stall_s=self.replica_stall_min * MINUTE_S,
                    replica_recovery_s=self.far_recovery_min * MINUTE_S,
                ),
            ),
        }

    @property
    def rsc_s(self):
        return float(
            failures.job_mtbf_s(
                catalogue.failure_preset("rsc-1").per_1000_node_days, self.far_devices
            )
        )


QUESTIONS = (
    Explain(
        "ask",
        (
            "Before any arithmetic: what do you ask about failures, and why does each "
            "answer matter? Four or five lines."
        ),
        "scope",
        "senior",
        (
            "What would change the goodput by more than a point?",
            "Follow one failure from the moment it strikes until the first new step.",
            (
                "Rate, who stops, how long until it is seen, how long until it runs again, "
                "what a save costs, what is lost, what replaces the node."
            ),
        ),
        "Each term of the goodput is one question: how often (the fleet's own record), "
        "how much stops (the whole job or one replica), how long until it is noticed, "
        "how long until the job runs again, "
        "how much work the newest copy is behind, what a save costs while training, and "
        "whether a spare node is ready.",
        (
            "The failure model is five numbers: rate, detection, restart, age of the newest "
            "copy, cost of a save. Ask for all five; a rate alone decides nothing."
        ),
        minutes=5,
        points=(
            Point(
                "how often this fleet fails: measured, by cause, not from a data sheet",
                (r"\b(mtbf|rate|how often|fail(ure)?s? per|record|history)\b",),
            ),
            Point(
                "what stops when one device fails: the whole synchronous job, or one replica",
                (r"\b(whole|entire|replica|synchron|all ranks|gang|elastic)",),
            ),
            Point(
                "how long detection and restart take",
                (r"\b(detect|restart|recover|resume|hang|timeout|diagnos)",),
            ),
            Point(
                "what a save costs, where it goes, and when it is durable",
                (r"\b(checkpoint|save|snapshot|durable|storage)",),
            ),
            Point(
                "what takes the place of a dead node: spares, repair time",
                (r"\b(spare|standby|repair|replace|hot)",),
            ),
        ),
        model="How often does this fleet fail, by its own record? What stops when one device "
        "dies: the whole synchronous job or one replica? How long do detection and "
        "restart take? What does a checkpoint cost, "
        "and when is it durable? Are there spare nodes, and how long is a repair?",
    ),
    Number(
        "mtbf",
        (
            "The run log: {interruptions} unexpected interruptions and {planned} planned "
            "ones in {days} days. How long does the job run between two failures, in hours?"
        ),
        "reliability",
        "mid",
        (
            "Planned stops save first, and lose nothing.",
            "Time over number of failures.",
            "`{days} · 24 h / {interruptions}`",
        ),
        (
            "`{days} · 24 / {interruptions}` = {mtbf_s:seconds}. A planned stop is "
            "announced: the job saves, stops and loses only the restart, so it does not "
            "belong into this number (with it: {mtbf_all_s:seconds})."
        ),
        "Count what strikes without warning; planned stops are a separate, cheaper line.",
        expected="mtbf_s",
        unit="h",
        scale=HOUR_S,
        within=1.04,
        slips=(
            Slip(
                "mtbf_all_s",
                (
                    "That counts the {planned} planned stops too. They are announced, the "
                    "job saves first: count the unexpected ones for the failure model."
                ),
                1.03,
            ),
            Slip(
                lambda f: f.mtbf_s * f.devices / f.per_node,
                "That is how long one node lasts. The job stops when any of its nodes does.",
            ),
            Slip(lambda f: f.mtbf_s / 24, "That is in days: the question wants hours."),
        ),
    ),
    Number(
        "device",
        (
            "What does that say about one device: how many hours does it run between two "
            "failures, on average?"
        ),
        "reliability",
        "senior",
        (
            "All devices run at once; the job stops with the first of them.",
            "Rates add: the job's rate is the number of devices times the rate of one.",
            "`{mtbf_s:seconds} · {devices}`",
        ),
        (
            "Rates add up over a synchronous job, so one device lasts `{mtbf_s:seconds} · "
            "{devices}` = {device_s:seconds}. Epoch AI takes {epoch_h} hours for its "
            "projections: the same fleet, read backwards."
        ),
        (
            "A device that lasts almost six years makes a job of this size stop eight times "
            "a day: at scale reliability is arithmetic, not quality."
        ),
        expected="device_s",
        unit="h",
        scale=HOUR_S,
        within=1.06,
        slips=(
            Slip(
                lambda f: f.mtbf_s * f.devices / f.per_node,
                (
                    "You multiplied by nodes: {per_node} devices share one. The question is "
                    "about a device."
                ),
            ),
            Slip(
                lambda f: f.mtbf_s / f.devices,
                (
                    "The other way round: a single device fails far less often than the job "
                    "that needs all of them."
                ),
            ),
        ),
    ),
    Number(
        "hourly",
        (
            "The team saves every hour. What share of the time goes into redoing lost work, "
            "in per cent?"
        ),
        "reliability",
        "senior",
        (
            "A failure throws the job back to the newest save.",
            "On average half an interval is lost, once per failure.",
            "`({hourly_min:g} min / 2) / {mtbf_s:seconds}`",
        ),
        (
            "A failure strikes anywhere in the interval, half of it on average: "
            "`{hourly_min:g} min / 2 / {mtbf_s:seconds}` = {rework_hourly:share}. On a "
            "fleet of that size with hourly saves Meta expects seven tenths of the time to "
            "be useful, restarts included."
        ),
        (
            "Lost work is `interval / (2 MTBF)`: a habit of hourly saves is fine at a "
            "failure a week, and a disaster at eight a day."
        ),
        expected="rework_hourly",
        unit="%",
        scale=0.01,
        within=1.06,
        slips=(
            Slip(
                lambda f: 2 * f.rework_hourly,
                (
                    "That charges a whole interval for each failure. It strikes in the "
                    "middle on average: half of it."
                ),
            ),
            Slip(
                lambda f: f.hourly_min * MINUTE_S / 2 / f.mtbf_all_s,
                "Close, but with the planned stops in the rate; they save before they stop.",
                1.01,
            ),
        ),
    ),
    Number(
        "interval",
        (
            "A synchronous save stops training for {save_s:seconds}. How often would you "
            "save, in minutes?"
        ),
        "reliability",
        "senior",
        (
            "More saves cost time, fewer saves lose work: both grow in opposite directions.",
            "Least of `save / t + t / (2 M)`.",
            "`sqrt(2 · {save_s:seconds} · {mtbf_s:seconds})`",
        ),
        (
            "The sum `save / t + t / (2 M)` is least at Young's `sqrt(2 · save · M)` = "
            "{young_s:seconds}. Exactly, with the time of the save itself in the period, it "
            "is {best_s:seconds}; the valley is flat: half or twice the interval costs no "
            "more than {flat:share} of the time."
        ),
        (
            "Young: the interval is the geometric mean of twice the save and the MTBF. It "
            "moves with the square root: a ten times cheaper save is worth a three times "
            "shorter interval."
        ),
        expected="young_s",
        unit="min",
        scale=MINUTE_S,
        within=1.08,
        slips=(
            Slip(
                lambda f: float(np.sqrt(f.save_s * f.mtbf_s)),
                (
                    "A factor of two is missing under the root: only half an interval is "
                    "lost, so `t / (2 M)` is the loss to balance."
                ),
            ),
            Slip(
                lambda f: f.hourly_min * MINUTE_S,
                "An hour is a habit, not an answer: it loses {rework_hourly:share} to rework.",
            ),
            Slip(
                lambda f: float(np.sqrt(2 * f.save_s * f.device_s)),
                "That uses the life of one device. The job restarts when any of its devices fails.",
            ),
        ),
    ),
    Number(
        "useful",
        (
            "At that interval, with {recovery_min:g} minutes from a failure to the first "
            "new step: what share of the time trains, in per cent?"
        ),
        "reliability",
        "staff",
        (
            "Three losses: saves, rework, recovery.",
            "`save / (t + save)`, `t / (2 M)`, `recovery / M`, and they multiply.",
            (
                "`{save_s:seconds} / {best_s:seconds}`, `{best_s:seconds} / (2 · "
                "{mtbf_s:seconds})`, `{recovery_min:g} min / {mtbf_s:seconds}`"
            ),
        ),
        "Saves {split[saves]:share}, lost work {split[lost work]:share}, recovery "
        "{split[restart]:share}: {useful:share} is left. The exact form is `t exp(-R/M) "
        "/ (M (exp((t + s)/M) - 1))`. The authors of Llama 3.1 report more than "
        "{llama_floor:share}: "
        "with a save that blocks for a minute nobody gets there, whatever the interval.",
        (
            "Budget the lost time by cause before optimising any of it; the optimum "
            "interval makes saves and rework equal, and leaves the recovery as it is."
        ),
        expected="useful",
        unit="%",
        scale=0.01,
        within=1.025,
        slips=(
            Slip(
                "saves_only",
                (
                    "That counts the saves alone. A failure also loses half an interval and "
                    "{recovery_min:g} minutes of recovery."
                ),
                1.015,
            ),
            Slip(
                "no_recovery",
                (
                    "Saves and lost work are in; the {recovery_min:g} minutes of recovery "
                    "after each failure are not."
                ),
                1.015,
            ),
            Slip(
                lambda f: 1 - f.useful,
                "That is the lost share; the question asks for what trains.",
                1.05,
            ),
        ),
    ),
    Number(
        "async",
        (
            "Now a save copies the state to host memory and writes it from there: training "
            "stands still for {stall_s:seconds}, the copy is durable {durable_s:seconds} "
            "later. How often do you save, in minutes?"
        ),
        "reliability",
        "staff",
        (
            (
                "Young's formula asks for what a save costs the training, not for how long "
                "the write lasts."
            ),
            "But one write must be finished before the next begins.",
            (
                "`sqrt(2 · {stall_s:seconds} · {mtbf_s:seconds})`, and not less than "
                "{durable_s:seconds}"
            ),
        ),
        (
            "The stall alone would ask for a save every {unbound_s:seconds}; one write in "
            "flight at a time makes it {async_s:seconds}. The time until the copy is "
            "durable moves no optimum: it acts like extra restart time, since a failure "
            "before it falls back one save more."
        ),
        (
            "Asynchronous saves turn the interval from an optimum into a question of "
            "storage: it is the write, not the stall, that limits how often."
        ),
        expected="async_s",
        unit="min",
        scale=MINUTE_S,
        within=1.25,
        slips=(
            Slip(
                lambda f: float(goodput.young(f.mtbf_s, f.durable_s)),
                (
                    "You put the {durable_s:seconds} of writing into Young's formula. "
                    "Training does not wait for the write: only the {stall_s:seconds} of "
                    "stall belong there."
                ),
                1.1,
            ),
            Slip(
                lambda f: float(goodput.young(f.mtbf_s, f.save_s)),
                "That is the interval of the save that blocks for {save_s:seconds}.",
                1.1,
            ),
        ),
    ),
    Choice(
        "largest",
        "With these saves {async_useful:share} of the time trains. Where does most of the rest go?",
        "reliability",
        "senior",
        (
            "Put the three losses side by side.",
            "`stall / t`, `(t / 2 + durable) / M`, `recovery / M`.",
            "saves {async_split[saves]:share}, lost work {async_split[lost work]:share}",
        ),
        (
            "Saves {async_split[saves]:share}, lost work {async_split[lost work]:share}, "
            "detection and restart {async_split[restart]:share}. Once saves are cheap, what "
            "is left is the time from failure to first step."
        ),
        (
            "After asynchronous saves the restart is the largest loss: communicators, "
            "loading, warm-up, and first of all noticing."
        ),
        expected="async_largest",
        options=(
            Option(
                "a",
                "into the saves",
                "They cost {async_split[saves]:share} now: the stall is {stall_s:seconds}.",
            ),
            Option(
                "b",
                "into work that is done again",
                "That is {async_split[lost work]:share}: the newest copy is only minutes old.",
            ),
            Option(
                "c",
                "into noticing the failure and restarting",
                "Yes: {async_split[restart]:share}, more than saves and rework together.",
            ),
        ),
    ),
    Number(
        "far",
        (
            "The next site has {far_devices} devices of the same kind. How long does its "
            "job run between failures, in minutes?"
        ),
        "reliability",
        "senior",
        (
            "Rates add.",
            "MTBF falls as one over the number of devices.",
            "`{mtbf_s:seconds} · {devices} / {far_devices}`",
        ),
        (
            "`{mtbf_s:seconds} · {devices} / {far_devices}` = {far_same_rate_s:seconds}. "
            "Meta measured {meta_min:g} minutes at this size: the rate of its older A100 "
            "fleet gives {rsc_s:seconds}. Published fleets differ by three to one in the "
            "rate, so carry both."
        ),
        (
            "Same rate per device, six times the devices, a sixth of the time: plan for the "
            "range of published rates, not for the best of them."
        ),
        expected="far_same_rate_s",
        unit="min",
        scale=MINUTE_S,
        within=1.05,
        slips=(
            Slip("mtbf_s", "That is the smaller fleet's: the number of devices is in it."),
            Slip(
                lambda f: f.mtbf_s * f.far_devices / f.devices,
                "The wrong way: more devices fail more often, not less.",
            ),
        ),
    ),
    Number(
        "collapse",
        (
            "Take {far_mtbf_min:g} minutes. Saves block for {save_s:seconds}, the whole job "
            "restarts in {far_recovery_min:g} minutes, the interval is at its optimum. What "
            "share of the time trains, in per cent?"
        ),
        "reliability",
        "staff",
        (
            "The same three losses, but they are no longer small.",
            "Products, not sums: `t exp(-R/M) / (M (exp((t + s)/M) - 1))`.",
            "interval {far_best_s:seconds}, recovery `exp(-{far_recovery_min:g}/{far_mtbf_min:g})`",
        ),
        "The best interval is {far_best_s:seconds}; {far_useful:share} is left. Adding "
        "first-order losses would say {far_linear:share} for the recovery alone, before "
        "any saves: beyond some ten thousands of devices the additive formulas leave "
        "the truth. "
        "Meta reports {meta_before:share} for whole-job restarts at this size.",
        (
            "When recovery is half the time between failures, more than half of the site is "
            "lost, and no interval brings it back."
        ),
        expected="far_useful",
        unit="%",
        scale=0.01,
        within=1.05,
        slips=(
            Slip(
                "far_linear",
                (
                    "That is `1 - recovery / MTBF`: it leaves out saves and lost work, and "
                    "adds what should be multiplied."
                ),
                1.03,
            ),
            Slip(
                "far_no_restart",
                (
                    "Saves and lost work are in, the restarts are not: {far_recovery_min:g} "
                    "minutes after every failure, and a failure can strike a restart as "
                    "well."
                ),
                1.03,
            ),
            Slip("useful", "That is the smaller fleet at three hours between failures.", 1.02),
        ),
    ),
    Choice(
        "lever",
        "You can have one of three, for the same money. Which?",
        "cost",
        "staff",
        (
            "Work out all three.",
            "The save enters as a square root, the recovery as an exponential.",
            "as it is {far_useful:share}",
        ),
        (
            "Store twice as fast: {halved[a]:share}. Recovery halved: {halved[b]:share}. "
            "Half as many saves: {halved[c]:share}. As it was: {far_useful:share}."
        ),
        "Storage buys the square root, recovery the whole: at short MTBFs pay for the restart.",
        expected="lever",
        options=(
            Option(
                "a",
                "a store twice as fast: saves block half as long",
                "It gives {halved[a]:share}: the loss to saves goes with the square root.",
            ),
            Option(
                "b",
                "recovery in half the time: warm spares, communicators made once, restart in place",
                "Yes: {halved[b]:share}.",
            ),
            Option(
                "c",
                "saves half as often",
                "It gives {halved[c]:share}: away from the optimum, both ways are worse.",
            ),
        ),
    ),
    Number(
        "replica",
        (
            "{replicas} replicas train together; a failure stops all for "
            "{replica_stall_min:g} minutes, after which eleven go on while one recovers for "
            "{far_recovery_min:g}. What share of the work is done now, in per cent?"
        ),
        "parallelism",
        "staff",
        (
            "Two losses: all stand still, one stands still.",
            "`1 - S / M - (R / M) / replicas`.",
            (
                "`1 - {replica_stall_min:g}/{far_mtbf_min:g} - "
                "({far_recovery_min:g}/{far_mtbf_min:g}) / {replicas}`"
            ),
        ),
        (
            "`1 - {replica_stall_min:g}/{far_mtbf_min:g} - "
            "({far_recovery_min:g}/{far_mtbf_min:g})/{replicas}` = {replica_useful:share}. "
            "Meta's fault-tolerant HSDP reports {meta_after:share} after, "
            "{meta_before:share} before. The price: the step goes on with a smaller batch, "
            "which the training has to allow."
        ),
        (
            "Shrink what a failure stops: replica-level recovery is worth more than any "
            "faster save, and is a decision of the training recipe as much as of the "
            "platform."
        ),
        expected="replica_useful",
        unit="%",
        scale=0.01,
        within=1.03,
        slips=(
            Slip(
                "replica_not_shared",
                (
                    "You charge the whole recovery to everybody. Only one replica of "
                    "{replicas} stands still for it."
                ),
                1.02,
            ),
            Slip(
                "replica_no_stall",
                "The {replica_stall_min:g} minutes in which all replicas stand still are missing.",
                1.02,
            ),
            Slip("far_useful", "That is the whole job restarting.", 1.02),
        ),
    ),
    Number(
        "spares",
        (
            "Each failure takes a node away for {repair_h:g} hours. How many spare nodes "
            "does the large site need so that a replacement is ready 99 times of 100?"
        ),
        "reliability",
        "staff",
        (
            "How many nodes are in repair at once, on average?",
            "Load = repair / MTBF; then a quantile, not the mean: Erlang's loss formula.",
            "load {load:ratio}",
        ),
        (
            "On average {load:ratio} nodes are away. With only that many spares the job "
            "waits {waiting_at_mean:share} of the time; for 99 of 100 it takes {spares}. "
            "ByteRobust sizes its standbys by the same 99th percentile."
        ),
        (
            "Size spares by the tail, not the mean; one more node costs thousandths, one "
            "missing costs the site."
        ),
        expected="spares",
        unit="nodes",
        within=1.12,
        slips=(
            Slip(
                lambda f: f.load,
                (
                    "That is the average number in repair: half of the time more are away, "
                    "and the job waits."
                ),
            ),
        ),
    ),
    Number(
        "corruption",
        (
            "Six of the interruptions were silent data corruption. If one is noticed "
            "{latency_h:g} hours after it happened, what share of the time is lost, in per "
            "cent?"
        ),
        "verification",
        "staff",
        (
            "Everything since the corruption is thrown away.",
            "Latency over time between corruptions.",
            "`{latency_h:g} h / ({days} days / {corruptions})`",
        ),
        "`{latency_h:g} h / {corruption_s:seconds}` = {corruption_loss:share}: as much "
        "as all restarts together, and {corruption_copies} saves have to be kept so "
        "that a clean one exists. "
        "What finds it earlier: checksums of gradients, a step repeated on other "
        "devices, loss by rank.",
        "Retention is a reliability decision: keep copies for as long as a corruption can hide.",
        expected="corruption_loss",
        unit="%",
        scale=0.01,
        within=1.08,
        slips=(
            Slip(
                lambda f: f.latency_h * HOUR_S / f.mtbf_s,
                (
                    "That takes every failure for a corruption; only {corruptions} of "
                    "{interruptions} were."
                ),
                1.05,
            ),
        ),
    ),
    Explain(
        "defend",
        (
            "The director has money for one quarter of engineering. What do you do first, "
            "second, third, and what do you measure to know that it worked?"
        ),
        "telling",
        "staff",
        (
            "Lead with the number that matters.",
            "Order by points of goodput, not by taste.",
            "Restart path, then saves, then what a failure stops; a drill measures it.",
        ),
        "The order follows the budget: restart in place with warm spares (points at "
        "once), asynchronous saves with a copy on a peer, then replica-level recovery "
        "with the owners of the recipe, since it changes the batch. Measure by killing "
        "a node on purpose, "
        "every week: seconds from kill to first step, work lost, and goodput by cause "
        "from the job's own events.",
        "A recovery that is not drilled does not exist.",
        minutes=6,
        points=(
            Point(
                "leads with goodput or dollars, before any mechanism",
                (r"\b(goodput|dollars?|\$|days|useful share|effective)\b",),
            ),
            Point(
                "puts the restart path (detection, spares, in-place restart) first",
                (r"\b(restart|recover|detect|spare|standby)",),
            ),
            Point(
                "then saves that do not block, or a copy nearer than the store",
                (r"\b(async|snapshot|peer|in-memory|host memory|does not block|do not block)",),
            ),
            Point(
                "names who else must agree: batch and recipe change under replica recovery",
                (r"\b(batch|recipe|ML|research|convergence|owner)",),
            ),
            Point(
                "measures it: drills, time to first step, goodput by cause",
                (r"\b(drill|kill|inject|measure|game day|test)",),
            ),
        ),
        model="Goodput first: the budget says recovery is the largest loss. One: restart in "
        "place on warm spares with fast detection. Two: asynchronous saves with a peer "
        "copy. Three: replica recovery, agreed with research since the batch shrinks. "
        "Measure with a weekly drill: kill a node, time to first step, goodput by cause.",
    ),
)

WALKTHROUGH = Walkthrough(
    "05",
    "failure_model",
    "The failure model first: three hours between failures, then twenty minutes",
    55,
    Facts,
    QUESTIONS,
)
