"""What a question is about; the first of several decides."""

from enum import StrEnum


class Topic(StrEnum):
    """Kinds of question, each with a command that answers it (`questions.py`)."""

    SLOW = "why a run is slow"
    COMPUTE_OPTIMAL = "how large, compute-optimally"
    SCALING = "how many tokens, by scaling laws"
    LARGEST = "the largest model"
    LONGEST = "the longest sequence"
    MICRO_BATCH = "the largest micro-batch"
    EARLIEST = "the earliest finish"
    FEWEST = "how many devices"
    CHANGED = "what if something changes"
    EITHER = "one or the other"
    WORTH = "with it or without"
    BATCH = "which batch"
    CHIP = "which accelerator"
    CHEAPEST = "what costs less"
    TRADE = "days against dollars"
    SPARES = "failures, saves, spares"
    SENSITIVITY = "what the result hangs on"
    PLAN = "which plan"
    PRICE = "what an hour costs"
    KIT = "how to launch it"
    REPORT = "a report"
    DESIGN = "days, dollars, fit"
