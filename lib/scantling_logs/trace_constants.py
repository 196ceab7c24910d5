"""What the kernels of a trace tell of constants: seconds of each part beside the foretold ones."""

from math import hypot, sqrt

from scantling.catalogue.hardware import Accelerator
from scantling.physics.calibration_file import implausible
from scantling.physics.cases import Cases
from scantling.physics.constants import PRIORS
from scantling.physics.step import COMPUTE, step_time

from .constant import Moved, moved
from .log_reading import Reading
from .step_parts import one, seconds_of

WITHIN = 0.05  # sd of the ln of a part's seconds over a few steps; judgement
# constants that kernels of a trace move, each by a part of the step
PART_OF = {
    "gemm": "gemm",
    "attention": "attention",
    "tp_exposed": "tp",
    "tp_overlapped": "tp",
    "pp_exposed": "pp",
    "ep_overlapped": "ep",
}


def of_trace(reading: Reading, case: Cases, chip: Accelerator) -> dict[str, Moved]:
    """Constants by the kernels of a trace beside the parts of the step that is foretold: a rate by
    foretold / measured, a share that is exposed by the inverse, both as far as the prior leaves
    them open against the scatter of a few steps."""
    if not reading.kernels:
        return {}
    step = step_time(case)
    foretold_s = seconds_of(step)
    repeated = 1 + foretold_s["recompute"] / sum(foretold_s[part] for part in COMPUTE)
    constants = {}
    for name, part in PART_OF.items():
        predicted_s = foretold_s[part] * (repeated if part in COMPUTE else 1)
        if part == "gemm":
            predicted_s += foretold_s["logits"]
        measured_s = reading.kernels.get(part, 0.0)
        if not (measured_s > 0 and predicted_s > 0 and predicted_s != measured_s):
            continue
        rate = predicted_s / measured_s
        prior_sd = hypot(PRIORS[name].sd, *PRIORS[name].by.values())
        weight = prior_sd**2 / (prior_sd**2 + WITHIN**2)
        usual = one(vars(case.constants)[name])
        value = usual * (rate if part in COMPUTE else 1 / rate) ** weight
        if not implausible(name, value, chip):
            constants[name] = moved(value, usual, prior_sd * sqrt(1 - weight))
    return constants
