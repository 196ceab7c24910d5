"""A change of a design: what is changed, in words and as fields, and how much it asks of whoever
makes it."""

from collections.abc import Sequence
from dataclasses import field
from json import dumps
from typing import Any

from ..base.records import record


@record
class Change:
    """One change of a design.

    effort orders changes: 1 a setting of the framework, 2 another way of running, 3 another part of
    the machine or of the recipe, 4 and above another problem; between whole numbers the cheaper to
    try comes first. set : dotted paths of the design and their values. kind : one change of a kind
    is shown, the smallest that helps; "" for what is alone of its kind.
    """

    effort: float
    text: str
    set: dict[str, Any] = field(hash=False)
    kind: str = ""

    @property
    def key(self) -> str:
        """The fields and values, the same for the same change."""
        return dumps(self.set, sort_keys=True)

    @property
    def gives_way(self) -> bool:
        """True where something that is asked for changes: the job or a constraint."""
        if self.kind in ("less", "sequence"):
            return True
        return any(path.startswith("constraints.") for path in self.set)

    @property
    def counts_devices(self) -> bool:
        """True where nothing but the number of devices changes."""
        return set(self.set) == {"cluster.devices"}


def all_of(*changes: Change) -> Change:
    """Several changes as one."""
    return Change(
        effort=sum(change.effort for change in changes),
        text=", and ".join(change.text for change in changes),
        set={path: value for change in changes for path, value in change.set.items()},
        kind=next((change.kind for change in changes if change.kind), ""),
    )


def listed(words: Sequence[str]) -> str:
    """Words as a list: a, b and c."""
    *head, last = words
    return f"{', '.join(head)} and {last}" if head else last
