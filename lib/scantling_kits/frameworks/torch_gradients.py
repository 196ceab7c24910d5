"""How the kits' own PyTorch trainers send gradients."""

from scantling.catalogue.words import Precision

from ..launch_plan import LaunchPlan


def gradients(launch: LaunchPlan) -> tuple[bool, str]:
    """(whether gradients are summed and sent in 16 bit, as the step counts on; why, and what of the
    step waits for them)."""
    narrow = bool(launch.does.grad_bytes <= 2) and launch.phase.precision == Precision.BF16
    sent = "gradients are sent in fp32"
    if narrow:
        sent = (
            "gradients are sent in bf16, half the bytes; watch the loss against fp32 for "
            "1,000 steps"
        )
    tier = launch.dp_tier or "same device"
    why = f"gradients and weights on the {tier} are exposed for {launch.dp_exposed:.0%} of the step"
    return narrow, f"{why}: {sent}"
