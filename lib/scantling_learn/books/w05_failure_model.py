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
        return row.ours, row.published

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
        return goodput.young(self.mtbf_s, self.save_s)

    @property
    def best_s(self):
        return goodput.optimum_interval(self.mtbf_s, self.save_s)

    @cached_property
    def split(self):
        return {
            k: v
            for k, v in goodput.shares(
                self.mtbf_s,
                self.save_s,
                self.best_s,
                restart_s=self.recovery_min * MINUTE_S,
            ).items()
        }

    @property
    def flat(self):
        """Share of the time that half or twice the best interval loses at most."""
        return self.useful - min(
            goodput.ettr(
                self.mtbf_s,
                self.save_s,
                self.best_s * k,
                restart_s=self.recovery_min * MINUTE_S,
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
        return goodput.ettr(self.mtbf_s, self.save_s, self.best_s)

    # ---------------------------------------------------------------- saves that do not block
    @cached_property
    def state_bytes(self):
        n = parameters(models()["llama-3.1-405b"]).total
        return checkpoint.contents(
            n,
            ranks=self.devices,
            readers=self.devices // 128,
        ).total

    @property
    def state_share(self):
        return self.state_bytes / self.devices

    @cached_property
    def stall_s(self):
        """Seconds that training stands still for a copy to host memory over half a PCIe 5 link."""
        return checkpoint.snapshot_stall_s(self.state_bytes / self.devices, 55e9)

    @property
    def store_s(self):
        return checkpoint.transfer_s(
            self.state_bytes, storage("meta-tectonic").total_write_bytes_per_s
        )

    @property
    def unbound_s(self):
        return goodput.optimum_interval(self.mtbf_s, self.stall_s)

    @property
    def async_s(self):
        return max(self.unbound_s, self.durable_s - self.stall_s)

    @cached_property
    def async_split(self):
        return {
            k: v
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
        return goodput.optimum_interval(self.far_mtbf_s, self.save_s)

    def far(
        self,
        stall=1.0,
        recovery=1.0,
        interval=1.0,
    ):
        """Useful share on the large site with stall, recovery or interval changed by a factor; the
        interval at its optimum first."""
        tau = goodput.optimum_interval(self.far_mtbf_s, self.save_s * stall) * interval
        return goodput.ettr(
            self.far_mtbf_s,
            self.save_s * stall,
            tau,
            restart_s=self.far_recovery_min * MINUTE_S * recovery,
        )

    @cached_property
    def far_useful(self):
        return self.far()

    @property
    def far_linear(self):
        return goodput.ettr_linear(self.far_mtbf_min, self.far_recovery_min)

    @property
    def far_no_restart(self):
        return goodput.ettr(self.far_mtbf_s, self.save_s, self.far_best_s)

    @cached_property
    def halved(self):
        return {
            "a": self.far(stall=0.5),
            "b": self.far(recovery=0.5),
            "c": self.far(interval=2.0),
        }

    @property
    def lever(self):
        return max(self.halved, key=self.halved.get)

    @property
    def replica_useful(self):
        return elastic.ft_hsdp(
            self.far_mtbf_s,
            self.replicas,
            stall_s=self.replica_stall_min * MINUTE_S,
            replica_recovery_s=self.far_recovery_min * MINUTE_S,
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
        return goodput.ettr_linear(self.meta_min, self.far_recovery_min)

    @property
    def load(self):
        """Nodes in repair on average."""
        return self.repair_h * HOUR_S / self.far_mtbf_s

    @cached_property
    def spares(self):
        return int(spares.spares_for(self.load, 0.99))

    @property
    def waiting_at_mean(self):
        return spares.stall_share(int(self.load), self.load)

    @property
    def corruption_s(self):
        return self.days * DAY_S / self.corruptions

    @property
    def corruption_loss(self):
        return stragglers.sdc_loss(1 / self.corruption_s, self.latency_h * HOUR_S)

    @property
    def corruption_copies(self):
        return int(checkpoint.retention(self.best_s, detection_latency_s=self.latency_h * HOUR_S))

    # ---------------------------------------------------------------- curves for the pictures
    @cached_property
    def spare_curve(self):
        n = np.arange(0, 31)
        return {"waits": (n, np.array([spares.wait_chance(int(s), self.load) for s in n]))}

    @property
    def spare_chance(self):
        return spares.wait_chance(self.spares, self.load)

    @cached_property
    def curves(self):
        axis = np.geomspace(60, 4 * HOUR_S, 60)
        ways = {
            "saves of a minute that block": dict(
                stall=self.save_s,
                durable=0.0,
            ),
            "a copy to host memory, durable later": dict(
                stall=self.stall_s,
                durable=self.durable_s,
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
                goodput.ettr(
                    m,
                    self.save_s,
                    tau,
                    restart_s=self.far_recovery_min * MINUTE_S,
                ),
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
        return failures.job_mtbf_s(
            catalogue.failure_preset("rsc-1").per_1000_node_days, self.far_devices
        )

    # ---- usual wrong answers
    @cached_property
    def slip_hourly_2(self):
        return self.hourly_min * MINUTE_S / 2 / self.mtbf_all_s

    @cached_property
    def slip_interval_1(self):
        return np.sqrt(self.save_s * self.mtbf_s)

    @cached_property
    def slip_interval_3(self):
        return np.sqrt(2 * self.save_s * self.device_s)

    @cached_property
    def slip_useful_3(self):
        return 1 - self.useful

    @cached_property
    def slip_async_1(self):
        return goodput.young(self.mtbf_s, self.durable_s)

    @cached_property
    def slip_async_2(self):
        return goodput.young(self.mtbf_s, self.save_s)

    @cached_property
    def slip_corruption_1(self):
        return self.latency_h * HOUR_S / self.mtbf_s
