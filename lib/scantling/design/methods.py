"""A method that the core does not plan: nothing is worked out as if it were pre-training."""

from ..base.errors import DesignError
from ..base.plugins import FUNCTIONS, entries
from ..catalogue.words import ADAPTED, POLICIES, Method
from .design import Design

SECTIONS = ("adapter", "data", "rollout")  # of a job, that only these methods have
PLANNER = "posttrain"  # function of the public face that plans the other methods


def method_of(design: Design) -> Method:
    """What a design trains: pre-training where it does not say."""
    return Method(design.job.method or Method.PRETRAIN)


def is_posttraining(design: Design) -> bool:
    """Whether a design tunes a trained model."""
    return method_of(design) is not Method.PRETRAIN


def untuned(design: Design) -> Design:
    """The design without what it tunes and how: model, machine and limits, to be checked alone."""
    if not is_posttraining(design):
        return design
    return design.change({f"job.{name}": None for name in ("method", *SECTIONS)})


def of_method(design: Design, method: str) -> Design:
    """The design trained by another method, without what that one has no use for."""
    return design.change({**without_use(Method(method)), "job.method": method})


def without_use(method: Method) -> dict[str, None]:
    """The sections of a job that a method has no use for, each as a field to be left out."""
    uses = {
        "adapter": method in (*ADAPTED, Method.DPO),
        "rollout": method in POLICIES,
        "data": method not in (*POLICIES, Method.PRETRAIN),
    }
    return {f"job.{name}": None for name in SECTIONS if not uses[name]}


def refuse_posttraining(design: Design) -> None:
    """Raises DesignError where a design is no pre-training: its step, memory and price are other
    ones."""
    if not is_posttraining(design):
        return
    here = PLANNER in entries(FUNCTIONS)
    allowed = (
        "scantling design or scantling search, or sc.posttrain in Python"
        if here
        else "pip install 'scantling[all]', which brings the package that plans it"
    )
    raise DesignError(
        "job.method",
        method_of(design).value,
        allowed,
        problem="is not answered here, nor planned as if it were pre-training",
    )
