"""What scales and units stand for, as they are written in a line."""

from scantling.base.units import DAY_S, HOUR_S, MINUTE_S

SCALES = {
    "k": 1e3,
    "thousand": 1e3,
    "m": 1e6,
    "mn": 1e6,
    "million": 1e6,
    "millions": 1e6,
    "b": 1e9,
    "bn": 1e9,
    "billion": 1e9,
    "billions": 1e9,
    "t": 1e12,
    "tn": 1e12,
    "trillion": 1e12,
    "trillions": 1e12,
}
SECONDS = {
    "s": 1,
    "sec": 1,
    "secs": 1,
    "second": 1,
    "seconds": 1,
    "m": MINUTE_S,
    "min": MINUTE_S,
    "mins": MINUTE_S,
    "minute": MINUTE_S,
    "minutes": MINUTE_S,
    "h": HOUR_S,
    "hr": HOUR_S,
    "hrs": HOUR_S,
    "hour": HOUR_S,
    "hours": HOUR_S,
    "d": DAY_S,
    "day": DAY_S,
    "days": DAY_S,
    "week": 7 * DAY_S,
    "weeks": 7 * DAY_S,
    "wk": 7 * DAY_S,
    "wks": 7 * DAY_S,
    "month": 2_592_000,
    "months": 2_592_000,
    "year": 31_536_000,
    "years": 31_536_000,
    "yr": 31_536_000,
    "yrs": 31_536_000,
}
GIGABYTES = {"gb": 1, "tb": 1000}
MEGAWATTS = {"kw": 1e-3, "mw": 1, "gw": 1e3}
