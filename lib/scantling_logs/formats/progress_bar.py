"""tqdm."""

from ..line_format import GIB, LineFormat, memory

PROGRESS_BAR = LineFormat(
    name="progress_bar",
    framework="tqdm",
    marks=(("%|", "it/s"), ("%|", "s/it")),
    progress_bars=True,
    memory=(memory("mem=", r"mem=(\d+\.?\d*)GB", GIB),),
)
