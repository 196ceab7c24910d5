"""One tier of copies, as closed forms and simulation ask for it."""

from ..base.columns import Column
from ..base.records import record


@record
class Level:
    """One tier of copies: written at every `every`-th save, stalls and is durable so many seconds
    later, restarts take `restart_s` from it."""

    stall_s: Column = 0.0
    durable_s: Column = 0.0
    restart_s: Column = 0.0
    every: int = 1
