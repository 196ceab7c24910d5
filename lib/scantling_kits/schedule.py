"""What every framework's configuration is filled from beside the plan: steps, warm-up, learning
rate, seed, and the model's constants that a design does not state."""

from .record import SEED, norm_epsilon, rotary_base

ENDLESS = 1_000_000  # steps of a run whose design names no tokens
WARM_UP = 2000  # steps at most, and a twentieth of the run


def schedule(launch, kit) -> dict:
    """Values of a template by name."""
    steps = launch.steps or ENDLESS
    return {
        "launch": launch,
        "lr": kit["train"]["lr"],
        "steps": steps,
        "warm": min(WARM_UP, steps // 20),
        "seed": SEED,
        "norm_epsilon": norm_epsilon(launch.model),
        "rotary_base": rotary_base(launch.model),
    }
