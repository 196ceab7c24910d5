"""The failure model first: a fleet that stops every three hours, then one that stops every twenty
minutes."""

from functools import partial

import numpy as np
from scantling.base.units import HOUR_S, MINUTE_S
from scantling.endure import elastic, goodput, spares as spare_nodes

# ---------------------------------------------------------------- saves that do not block


def async_largest(async_split):
    """Key of the option that names the largest loss."""
    lost = {
        "a": async_split.saves,
        "b": async_split.lost_work,
        "c": async_split.restart + async_split.detection,
    }
    return max(lost, key=lost.get)


# ---------------------------------------------------------------- the larger site


def far(far_mtbf_s, save_s, far_recovery_min, /, stall=1.0, recovery=1.0, interval=1.0):
    """Useful share on the large site with stall, recovery or interval changed by a factor; the
    interval at its optimum first."""
    tau = goodput.optimum_interval(far_mtbf_s, save_s * stall) * interval
    return goodput.ettr(
        far_mtbf_s, save_s * stall, tau, restart_s=far_recovery_min * MINUTE_S * recovery
    )


def halved(far):
    return {"a": far(stall=0.5), "b": far(recovery=0.5), "c": far(interval=2.0)}


# ---------------------------------------------------------------- curves for the pictures


def spare_curve(load):
    n = np.arange(0, 31)
    return {"waits": (n, np.array([spare_nodes.wait_chance(int(s), load) for s in n]))}


def curves(save_s, stall_s, durable_s, mtbf_s, recovery_min):
    axis = np.geomspace(60, 4 * HOUR_S, 60)
    ways = {
        "saves of a minute that block": (save_s, 0.0),
        "a copy to host memory, durable later": (stall_s, durable_s),
    }
    useful = partial(goodput.ettr, mtbf_s, interval_s=axis, restart_s=recovery_min * MINUTE_S)
    return {
        name: (axis / MINUTE_S, useful(stall, durable_s=durable))
        for name, (stall, durable) in ways.items()
    }


def scale_curves(
    mtbf_s, devices, save_s, far_recovery_min, stall_s, durable_s, replicas, replica_stall_min
):
    n = np.geomspace(2048, 131_072, 40)
    m = mtbf_s * devices / n
    restart_s = far_recovery_min * MINUTE_S
    ways = {
        "whole job restarts, saves block": (save_s, 0.0),
        "whole job restarts, saves do not block": (stall_s, durable_s),
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
        m, replicas, stall_s=replica_stall_min * MINUTE_S, replica_recovery_s=restart_s
    )
    useful = whole | {"one replica of twelve restarts": one}
    return {name: (n, share) for name, share in useful.items()}
