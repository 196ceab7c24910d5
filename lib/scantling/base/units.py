"""Units that a figure is given or shown in; inside, everything is bytes, seconds and dollars."""

from __future__ import annotations

MINUTE_S = 60.0
HOUR_S = 3600.0
DAY_S = 86_400.0
MONTH_S = 30 * DAY_S
YEAR_S = 365.25 * DAY_S

KB, MB, GB, TB = 1e3, 1e6, 1e9, 1e12  # decimal, as data sheets and links count
GIB = 2**30
GBIT = GB / 8  # one Gbit in bytes
TERA = 1e12
