"""The numerical smoke test before the run."""

from math import log, sqrt

from scantling.base.records import Known, Lines, Record, record
from scantling.base.units import DAY_S

from ..job_site import Site

SMOKE_STEPS = 300


@record
class Smoke(Record):
    """What to run, on how many devices, for how long, and what must hold."""

    devices: int
    steps: int
    seconds: float
    usd: Known
    first_loss: float  # nats a token
    first_loss_tolerance: float
    layouts_agree_within: float  # of the loss
    checks: Lines


def smoke(s: Site) -> Smoke:
    """The numerical smoke test as data.

    First loss: ln(vocabulary), the entropy of a model that knows nothing. Agreement of layouts:
    bf16 rounds to 2^-9, and errors of 2 L residual additions add as a random walk, 2^-9 sqrt(2 L).
    A resume from a save must repeat the losses bit for bit.
    """
    first = log(s.model.vocab)
    seconds = SMOKE_STEPS * s.step_s
    devices = s.replica * s.tied_replicas
    return Smoke(
        devices=devices,
        steps=SMOKE_STEPS,
        seconds=seconds,
        usd=s.run.usd(seconds / DAY_S * devices / s.used),
        first_loss=first,
        first_loss_tolerance=0.05 * first,
        layouts_agree_within=2.0**-9 * sqrt(2 * s.model.layers),
        checks=(
            "the first loss is ln(vocabulary)",
            f"the loss falls over {SMOKE_STEPS} steps and the gradient norm settles",
            "the same batch gives the same loss on one replica and on two",
            "the same batch gives the same loss under tp 1 and the plan's tp, as far as rounding "
            "allows",
            "a resume from step 100 repeats steps 101 to 120 bit for bit",
            "every node computes one fixed product to the same bits (corruption screen)",
        ),
    )
