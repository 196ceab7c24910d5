"""What the words on money come to: budgets, owned machines, spot, prices of an instance."""

import re

from scantling.base.typed import currency
from scantling.base.units import DAY_S

from .fragments import ACCELERATOR, DEVICE_NOUN, GROUP
from .notes import Notes

OF_WHAT = "days of the run, or how long the machine is kept?"
OWNED = (
    "the machine is owned and what it cost is not said: dollars are those of renting it; with "
    "prices.owned.capex_usd they are its share of that price, with energy on top"
)
_IN_DOLLARS = "in which currency? dollars are planned with (prices.owned.capex_usd)"
DEAREST_DEVICE = 20.0  # [USD/h]: above all offers of the catalogue for one device
LEAST_BUDGET = 100.0  # [USD]: less is the price of something
_OF_THE_RUN = re.compile(r"budget|total|spend|ceiling|\bcap\b", re.IGNORECASE)


def read_budget(notes: Notes) -> None:
    """So few dollars that no run costs them are the price of an hour, unless words say that they
    are the budget; a few more are asked about."""
    path, price = "constraints.budget_usd", "prices.usd_per_device_hour"
    value = notes.fields.get(path, LEAST_BUDGET)
    if not 0 < value < LEAST_BUDGET or _OF_THE_RUN.search(notes.words[path]):
        return
    if value > DEAREST_DEVICE or price in notes.fields:
        notes.leave_open(path, "dollars of an hour of a device, or of the run?", (price, path))
        return
    notes.take_back(path)
    notes.set(price, value, notes.words[path], "some dollars are those of an hour of a device")
    notes.either[:] = [e._replace(path=price) if e.path == path else e for e in notes.either]


def read_owned(notes: Notes) -> None:
    """Years that a machine is written off over, beside its price; they are asked about without. One
    that is owned, of which no price is said, has the dollars of a rent, which is told."""
    path, capex, budget = "prices.owned.years", "prices.owned.capex_usd", "constraints.budget_usd"
    if path in notes.fields and capex not in notes.fields and budget in notes.fields:
        price, words = notes.fields[budget], notes.words[budget]
        notes.take_back(budget)
        notes.set(capex, price, words, "of a machine that is written off")
    if "capex_each" in notes.facts and (devices := notes.fields.get("cluster.devices")):
        words = notes.words["capex_each"]
        notes.set(capex, notes.facts["capex_each"] * devices, words, f"of {devices:,} devices")
    elif "capex_each" in notes.facts:
        notes.ask(notes.words["capex_each"], "of how many devices (prices.owned.capex_usd)?")
    if capex in notes.fields and "no_currency" in notes.facts and currency(notes.text):
        notes.leave_open(capex, _IN_DOLLARS)
    bought = capex in notes.fields
    if "years" in notes.facts and bought:
        notes.set(path, notes.facts["years"], notes.words["years"], "written off over")
    elif "years" in notes.facts:
        notes.ask(notes.words["years"], OF_WHAT, ("constraints.deadline_days",))
    elif path in notes.fields and not bought:
        notes.leave_open(path, "what did the machine cost (prices.owned.capex_usd)?")
    elif "owned" in notes.facts and not any(name.startswith("prices.") for name in notes.fields):
        notes.assume(capex, None, OWNED)


_MACHINE = re.compile(rf"(?:{ACCELERATOR}|{DEVICE_NOUN}|{GROUP}|racks?)\s*$", re.IGNORECASE)
_OF_SUM = "dollars of the run (constraints.budget_usd), or parameters of the model (model.size)?"
_DOLLARS = "a sum behind a machine is what it may cost; no currency is said: dollars"


def read_bare_sum(notes: Notes, value: float) -> None:
    """A sum without a currency behind a machine is the budget, where the model is said; else it
    may be the model's size, as behind other words it is."""
    path, words = "constraints.budget_usd", notes.words["bare_sum"]
    if not _MACHINE.search(notes.text[: notes.places["bare_sum"]]):
        notes.set("model.size", value, words, "a number of millions alone is the model's size")
    elif not notes.is_sized or path in notes.fields or currency(notes.text):
        notes.ask(words, _OF_SUM, (path, "model.size"))
    else:
        notes.set(path, float(value), words, _DOLLARS)
        notes.assume(path, float(value), _DOLLARS)


_TAKEN_BACK = "prices.spot.preemptions_per_day"
_SPOT_PRICE = "prices.spot.usd_per_device_hour"
_SPOT_ALONE = re.compile(r"(?:spot|pre-?empt|interruptible)", re.IGNORECASE)


def read_spot(notes: Notes) -> None:
    """Devices that are taken back have a price and how often that happens; what is not said of the
    two is asked about."""
    priced = _SPOT_PRICE in notes.fields
    if priced and "interrupt" in notes.words.get("mtbf_s", "").lower():
        notes.facts.setdefault("taken_back_s", notes.facts.pop("mtbf_s"))
        notes.words.setdefault("taken_back_s", notes.words["mtbf_s"])
    since_s = notes.facts.get("taken_back_s")
    if since_s is None and not priced:
        return
    if since_s is None:
        notes.leave_open(_SPOT_PRICE, f"how many a day are taken back ({_TAKEN_BACK})?")
        return
    words = notes.words["taken_back_s"]
    if not priced:
        notes.ask(words, f"taken back at which price ({_SPOT_PRICE})?", (_SPOT_PRICE,))
        return
    notes.set(_TAKEN_BACK, float(f"{DAY_S / since_s:.4g}"), words, "of all nodes together")
    notes.unread[:] = [asked for asked in notes.unread if not _SPOT_ALONE.match(asked.words)]


_OF_DEVICE = re.compile(r"gpu|device|chip|card|accelerator|tpu|[abhv]\d", re.IGNORECASE)


def read_price_of_instance(notes: Notes) -> None:
    """An hourly price beside a rented instance that names no device is asked about, or is the
    instance's where no device costs as much."""
    path = "prices.usd_per_device_hour"
    price = notes.fields.get(path)
    if price is None or _OF_DEVICE.search(notes.words[path]):
        return
    notes.take_back(path)
    words = notes.words[path]
    if price > DEAREST_DEVICE:
        notes.set("prices.usd_per_node_hour", price, words, "an hour of an instance")
    else:
        notes.ask(
            words, "an hour of a device, or of the instance?", (path, "prices.usd_per_node_hour")
        )
