"""Published goodputs against the models of `endure`, each row in the definition that its source
counts by: two sources' figures are never comparable without it."""

from __future__ import annotations

from pathlib import Path

import closed_forms
from jinja2 import Template
from scantling import catalogue
from scantling.base.files import table_rows
from scantling.base.records import Known, Record, record
from scantling.base.show import percent
from scantling.endure import elastic, failures, goodput

KEPT = "id run convention bound why title locator source".split()
WITHIN = 0.03  # shares by which a row may be off


def useful_elapsed(preset, devices, stall_s, restart_s, detect_s, durable_s=0.0, interval_s=None):
    """Useful steps over elapsed time (Llama 3, DLRover): saves, replay, detection and restarts are
    lost. The exact closed form at a published fleet's rate; the optimum interval where none is
    printed. Spares, planned stops and slow nodes, which no row prints, are left out."""
    fleet = catalogue.failure_preset(preset)
    rate = fleet.per_1000_node_days * failures.grown(devices, fleet.devices)
    m = failures.job_mtbf_s(rate, devices)
    return goodput.ettr(
        m,
        stall_s,
        interval_s or max(goodput.optimum_interval(m, stall_s), durable_s - stall_s),
        durable_s=durable_s,
        restart_s=restart_s,
        down_s=detect_s,
    )


def meta_ettr(rate, devices, interval_s, restart_s, write_s=0.0, queue_s=0.0):
    """E[ETTR] of Meta's RSC: run time over run and queue time, first order
    (`goodput.ettr_meta`)."""
    per_s = failures.failure_rate_per_s(rate, devices)
    if queue_s:
        return closed_forms.ettr_meta_queued(per_s, interval_s, restart_s, queue_s)
    return goodput.ettr_meta(per_s, interval_s, write_s, restart_s)


def averaging_share(inner_s, exchange_s):
    """Compute share of INTELLECT-1: only the outer all-reduce is lost."""
    return inner_s / (inner_s + exchange_s)


def steps_committed(mtbf_s, known_mtbf_s, known_share):
    """Share of steps that all living replica groups commit: a failure spoils the step that it falls
    into, 1 - step / M at even intervals. The step is that of the same run at another rate."""
    step_s = (1 - known_share) * known_mtbf_s
    return goodput.ettr_linear(mtbf_s, step_s)


CONVENTIONS = {
    "useful-elapsed": useful_elapsed,
    "calendar": useful_elapsed,
    "meta-ettr": meta_ettr,
    "averaging-share": averaging_share,
    "linear": goodput.ettr_linear,
    "replica-stall": elastic.ft_hsdp,
    "steps-committed": steps_committed,
}


@record
class Against(Record):
    """One published goodput beside ours. off : ours less printed; calendar rows hold more than
    failures, so what is off there is `beyond`, and no test of the model."""

    id: str
    run: str
    convention: str
    printed: float
    bound: str  # least: the source prints that it was more
    ours: float
    off: float
    beyond: Known
    holds: bool | None  # None where nothing can be held against the model
    why: str
    title: str
    locator: str
    source: str


def against_the_world() -> tuple[Against, ...]:
    """Every row of goodput_world.csv predicted in its own convention. No rate is fitted on the row
    that it is checked with: fleets' own rates stand where a source prints one, else a fleet's that
    is not the row's."""
    return tuple(_against(row) for row in table_rows(__file__, "goodput_world"))


def _against(row: dict) -> Against:
    given = dict(pair.split("=") for pair in row["given"].split())
    read = {k: v if k == "preset" else float(v) for k, v in given.items()}
    ours = float(CONVENTIONS[row["convention"]](**read))
    printed = float(row["printed"])
    off = ours - printed
    calendar = row["convention"] == "calendar"
    least = row["bound"] == "least"
    return Against(
        **{k: row[k] for k in KEPT},
        printed=printed,
        ours=ours,
        off=off,
        beyond=off if calendar else None,
        holds=None if calendar else bool(off >= -WITHIN if least else abs(off) <= WITHIN),
    )


# printed hours between failures of one synchronous job (Llama 3, s3.3.4: 419 in 54 days; FT-HSDP,
# arXiv 2602.00277: 2.3 interruptions per 1,000 servers a day, and every 18 min), and what ours is
BETWEEN = (
    (16_384, 54 * 24 / 419, "Llama 3: where the growth starts"),
    (32_768, 1000 / 4096 / 2.3 * 24, "another fleet, half as many failures a device: not fitted"),
    (98_304, 0.3, "FT-HSDP: the power of the growth is set by this row and the first"),
)


def between_failures() -> list[dict]:
    """Hours between failures as devices grow: printed, ours (Llama 3's rate, `failures.grown`), and
    what a rate that stays per device would give."""
    rate = catalogue.failure_preset("llama3").per_1000_node_days
    return [
        {
            "devices": n,
            "printed": hours,
            "ours": failures.job_mtbf_s(rate * failures.grown(n), n) / 3600,
            "linear": failures.job_mtbf_s(rate, n) / 3600,
            "why": why,
        }
        for n, hours, why in BETWEEN
    ]


def page() -> str:
    """The rows as a page in Markdown."""
    template = Template(
        Path(__file__).with_name("goodput_world.md.j2").read_text(encoding="utf-8"),
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return template.render(rows=against_the_world(), percent=percent, between=between_failures())
