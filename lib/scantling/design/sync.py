"""How the fields that a design leaves out of `job.sync` are filled in, each with its rule."""

from ..base.errors import DesignError
from ..base.records import Assumed, Derived
from .cluster import Sync
from .fields import defaults
from .schema import SyncSpec


def build_sync(spec: SyncSpec | None) -> tuple[Sync, list[Assumed]]:
    """How the sites keep in step, as given, else by averages of local steps; and what had to be
    assumed."""
    new = Derived(spec.stated() if spec else {}, "job.sync")
    steps = new.stated.get("local_steps", 0)
    kind = new.take(
        "kind",
        "synchronous" if steps == 1 else "local-steps",
        "weights averaged after local steps, an outer step over them (DiLoCo, arXiv 2311.08105): "
        "no step waits for the way between sites; to be confirmed by an ML specialist",
    )
    if kind == "synchronous":
        if steps > 1:
            raise DesignError(
                "job.sync.local_steps",
                steps,
                "1, or kind: local-steps",
                1,
                problem="contradicts job.sync.kind synchronous",
            )
        new.fields["local_steps"] = 1
        new.take("compress_bits", 0, "gradients as they are")
    else:
        why = "the fewest whose exchange takes 2 % of the time, from 24 to 500, "
        new.take("local_steps", 0, f"0: searched with the plan, {why}the published numbers")
        new.take_usual(defaults(SyncSpec))
    fields = dict(new.fields)
    return Sync(exchange_bytes=fields.pop("compress_bits") / 8, **fields), new.assumed
