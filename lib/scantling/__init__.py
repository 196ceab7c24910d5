"""Plan large LLM training runs: memory, step time, MFU, goodput, days and cost of a design."""

from .api import *  # noqa: F403
from .api import __all__


def __dir__() -> list[str]:
    return __all__
