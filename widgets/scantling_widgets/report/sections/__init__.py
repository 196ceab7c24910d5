"""The sections of the report by name: each a function of a view, None where the design gives no
reason for it."""

from collections.abc import Callable

from ..blocks import Section
from ..view import View
from . import evidence, machine, plan, reliability, step, summary

SECTIONS: dict[str, Callable[[View], Section | None]] = {
    "verdict": summary.verdict,
    "refusal": summary.refusal,
    "brief": summary.brief,
    "signing": summary.signing,
    "plan": plan.plan,
    "layers": step.layers,
    "cost": plan.cost,
    "specialist": plan.specialist,
    "memory": step.memory,
    "step": step.step,
    "communication": step.communication,
    "recovery": reliability.recovery,
    "ladder": reliability.ladder,
    "domains": reliability.domains,
    "site": machine.site,
    "risks": reliability.risks,
    "avoid": reliability.avoid,
    "measured": evidence.measured,
    "evidence": evidence.evidence,
    "candidates": plan.candidates,
    "assumptions": evidence.assumptions,
    "quantities": evidence.quantities,
    "planes": step.planes,
    "fabrics": machine.fabrics,
    "stores": machine.stores,
    "rollout": reliability.rollout,
    "evolution": reliability.evolution,
}
