"""Negotiate: an approved plan, then 30 % less budget and half the time; what can give, what each
gift costs, what to offer."""

import numpy as np
from scantling.catalogue import scaling_laws as convergence
from scantling.catalogue.published import best_published

from ..measured import runs
from .base import swept

# ---------------------------------------------------------------- the approved plan


def published_mfu(seq_len):
    """MFU of published dense bf16 runs on this device: from Llama 3's largest fleet to the
    record."""
    return runs("llama3-405b-t4-3")[0].mfu_measured, best_published(
        "h100-sxm", "bf16", False, seq_len
    ).mfu


# ---------------------------------------------------------------- tokens, parameters


def softer(loss_tokens, loss_params):
    return "a" if loss_tokens < loss_params else "b"


def loss_curves(params, small_params):
    d = np.geomspace(2e12, 16e12, 40)
    return {"70B": (d, convergence.loss(params, d)), "49B": (d, convergence.loss(small_params, d))}


# ---------------------------------------------------------------- devices


def half_answer(doubled, half_days):
    return "c" if doubled.days > 1.01 * half_days else "b"


def scale_curves(base, doubled, base_design, devices):
    ends = swept(base_design, "cluster.devices", 1024, 8192)
    n = np.array([1024, 2048, 4096, 8192], float)
    first, last = (a.days for a in ends.values())
    return {
        "the kit": (n, np.array([first, base.days, doubled.days, last])),
        "days · devices constant": (n, base.days * devices / n),
    }


# ---------------------------------------------------------------- packages


def packages(doubled, low, best, fewer_on_more, low_on_more):
    return dict(zip("abcde", (doubled, low, best, fewer_on_more, low_on_more)))


def meets(packages, deadline_days, budget_usd):
    """The packages that keep both limits."""
    return [k for k, r in packages.items() if r.days <= deadline_days and r.cost_usd <= budget_usd]


def package_lines(packages, deadline_days, budget_usd):
    rows = []
    for k, r in packages.items():
        late = r.days > deadline_days
        dear = r.cost_usd > budget_usd
        rows.append(
            f"- {k}: {r.days:.1f} days{' (late)' if late else ''}, "
            f"${r.cost_usd / 1e6:.2f}M{' (over)' if dear else ''}"
            f"{'' if late or dear else ': both kept'}"
        )
    return "\n".join(rows)


def points(base, packages):
    return {k: ([r.days], [r.cost_usd]) for k, r in [("approved", base), *packages.items()]}
