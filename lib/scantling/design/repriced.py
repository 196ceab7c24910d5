"""The prices that a design states, where a change makes its machine another one."""

from collections.abc import Mapping
from typing import Any

from .design import Design

OF_A_CHIP = ("usd_per_device_hour", "usd_per_node_hour", "owned", "spot")
CATALOGUE_S = "at the catalogue's price"
SAME_EACH = "at the same price a device"


def repriced(design: Design, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of a design (dotted paths and values), with what they make of the prices that it
    states.

    What an owned machine and its staff cost is in proportion to its devices (`Design.change` keeps
    to that too; here it stands in what is set, to be shown and written by hand). A price that is
    stated is of the design's own chip: of another one it says nothing, and is left out, so that the
    catalogue's holds. Changes that set prices themselves stay as they are.
    """
    if any(path.startswith("prices") for path in changes):
        return dict(changes)
    stated = design.prices.stated()
    if "cluster.accelerator" in changes:
        return {**changes, **{f"prices.{name}": None for name in OF_A_CHIP if name in stated}}
    owned = design.prices.owned
    times = (changes.get("cluster.devices") or design.cluster.devices) / design.cluster.devices
    if owned is None or times == 1:
        return dict(changes)
    paid = {f"prices.owned.{part}": value for part, value in owned.grown(times).items()}
    return {**changes, **paid}


def price_note(changes: Mapping[str, Any]) -> str:
    """What is to be said of the price beside changes that were repriced; "" where it stays."""
    prices = [path for path in changes if path.startswith("prices.")]
    if not prices:
        return ""
    return CATALOGUE_S if "cluster.accelerator" in changes else SAME_EACH
