"""Plans and shares in a few words, as every line of text shows them."""

from __future__ import annotations


def short(plan: dict) -> str:
    """A plan in a few words: tp 8 · pp 16 · dp 128 · zero1 · full recompute of 2 layers a stage."""
    words = [
        f"{k} {plan[k]}"
        for k in ("tp", "cp", "pp", "vpp", "dp", "ep", "etp")
        if plan[k] > 1 or k in ("tp", "pp", "dp")
    ]
    words += [plan["sharding"], f"micro-batch {plan['micro_batch']}"]
    if plan["recompute"] != "none":
        n = plan["recompute_layers"]
        words.append(
            f"{plan['recompute']} recompute"
            + (f" of {n} layer{'s' * (n != 1)} a stage" if plan["recompute"] == "full" else "")
        )
    words += [f"offload {plan['offload']}"] if plan["offload"] != "none" else []
    return " · ".join(words)
