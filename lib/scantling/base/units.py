"""Units that a figure is given or shown in; inside, everything is bytes, seconds and dollars."""

MINUTE_S = 60.0
HOUR_S = 3600.0
DAY_S = 86_400.0
YEAR_S = 365.25 * DAY_S

MB = 1e6
GB = 1e9  # decimal, as data sheets and links count
GBIT = GB / 8  # one Gbit in bytes
TERA = 1e12
