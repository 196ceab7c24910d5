"""DLLogger of NVIDIA's examples and NeMo 1: `DLLL {json}` lines."""

from ..found import Found, number
from ..rows import chosen, events, take


def read(path, found: Found) -> None:
    """What the log holds: blocks of parameters, and steps."""
    for event, _ in events(path, "DLLL "):
        data = event.get("data")
        step = event.get("step")
        found.seen(number(event.get("timestamp")))
        if not isinstance(data, dict):
            continue
        if step == "PARAMETER":
            found.launches += 1
            for name, value in data.items():
                found.setting(str(name).rpartition("/")[2].lower(), value)
        elif any(column == "s" for column, _, _ in chosen(tuple(data))):
            take(found, data | {"iter": step[-1] if isinstance(step, list) and step else step})
