"""What the numbers of failure domains, risks and networks mean: rows of the table of quantities.

They stand under `blueprint`; their inputs are fields of the same row, or of the assessment. Where a
row of the record names a source of
its own, that one holds.
"""

from __future__ import annotations

from .rows import q

_EVEN = "even spreading over the cards, the best case; hashing of flows loads the fullest link more"
_RUN = "of the run; of 30 days where no tokens are named"


def _rows(section, function, *rows):
    return tuple(
        q(
            f"blueprint.{section}.{key}",
            label,
            kind,
            unit,
            formula,
            " ".join(
                f"blueprint.{section}.{i[1:]}" if i.startswith(".") else i for i in inputs.split()
            ),
            source,
            convention,
            function,
        )
        for key, label, kind, unit, formula, inputs, source, convention in rows
    )


DOMAINS = _rows(
    "domains",
    "cluster.domains.domains",
    ("what", "What is lost", "text", "", "from one process to the building", "", "", ""),
    (
        "devices",
        "Devices",
        "count",
        "",
        "devices that stop together",
        "",
        "",
        "a rail of a leaf switch has one device in each of its nodes",
    ),
    (
        "replicas_stalled",
        "Replicas hit",
        "count",
        "",
        (
            "data-parallel replicas with a rank among the lost devices, and those that "
            "share an expert-parallel group with them"
        ),
        ".devices plan.tp plan.cp plan.dp plan.ep",
        "",
        "ranks in the order tp, cp, dp, pp; at most",
    ),
    (
        "events_per_run",
        "In this run",
        "rate",
        "times",
        "share of failures that take this domain x failures per day x days",
        "endurance.failures_per_1000_node_days days",
        "",
        _RUN,
    ),
    (
        "days_between",
        "One every",
        "days",
        "days",
        "1 / events per day",
        ".events_per_run days",
        "",
        "",
    ),
    (
        "recovers",
        "Comes back by",
        "text",
        "",
        "the nearest copy that outlives the loss",
        "",
        "",
        "",
    ),
    (
        "loss_s",
        "Each loses",
        "seconds",
        "s",
        (
            "detection + restart + until a save is safe + (interval + stall) / 2; a planned "
            "stop: stall + until safe + restart"
        ),
        (
            "endurance.detect_s endurance.restart_s endurance.checkpoint_durable_s "
            "checkpoint_interval_s endurance.checkpoint_stall_s"
        ),
        "Daly 2006, doi:10.1016/j.future.2004.11.016",
        "without waiting for nodes",
    ),
    (
        "days_lost",
        "Time lost",
        "days",
        "days",
        "events x (loss + waiting for nodes that the spares do not cover)",
        ".events_per_run .loss_s",
        "",
        "scaled so that the rows sum to the detection, restart and lost work of the goodput",
    ),
    (
        "usd_lost",
        "Cost",
        "usd",
        "USD",
        "days lost x dollars a day of all devices",
        ".days_lost",
        "",
        "spares are paid for too",
    ),
)
RISKS = _rows(
    "risks",
    "cluster.risks.register.risks",
    ("risk", "Risk", "text", "", "what may go wrong", "", "", ""),
    (
        "likelihood",
        "Likelihood",
        "share",
        "share",
        "that it happens in this run: (k + 1) / (n + 2) where k of n published cases went wrong",
        "",
        "rule of succession",
        "an even chance where nobody has published one",
    ),
    (
        "impact_days",
        "Impact",
        "days",
        "days",
        "days of the run with the trouble in the models, less those without",
        "days",
        "",
        "where it happens; days of the whole allocation",
    ),
    (
        "expected_usd",
        "Expected cost",
        "usd",
        "USD",
        "likelihood x days late x dollars a day",
        ".likelihood .impact_days",
        "",
        "devices that are not paid while late cost nothing",
    ),
    ("mitigation", "What to do", "text", "", "what prevents or shortens it", "", "", ""),
    (
        "left_after_days",
        "Left then",
        "days",
        "days",
        "likelihood x days late, with the remedy in the models",
        ".likelihood",
        "",
        "",
    ),
    ("owner", "Owner", "text", "", "who acts", "", "", ""),
)
TOPOLOGIES = _rows(
    "topologies",
    "cluster.network.build.alternatives",
    ("what", "Topology", "text", "", "a network that holds the same cards", "", "", ""),
    (
        "switches",
        "Switches",
        "count",
        "",
        "leaf + spine + core, all rails and planes",
        "",
        "",
        "switches of the scale-up domain apart",
    ),
    (
        "all_cables",
        "Cables",
        "count",
        "",
        "card to leaf + leaf to spine + spine to core",
        "",
        "",
        "",
    ),
    (
        "bisection_bytes_per_s",
        "Bisection",
        "bytes_per_s",
        "bytes/s",
        "the worst even cut of the cards",
        "",
        "",
        "one direction",
    ),
    (
        "usd",
        "Price",
        "usd",
        "USD",
        "switches x ports x price of a port + cables x price of a cable",
        ".switches .all_cables",
        "",
        "dated capex rows of the catalogue, scaled with the speed of a port",
    ),
    (
        "usd_per_device",
        "Per device",
        "usd",
        "USD",
        "price / devices",
        ".usd cluster.devices",
        "",
        "",
    ),
    (
        "step_change",
        "Step time",
        "share",
        "share",
        "step with this network / step with the design's own - 1",
        "step_s",
        "",
        "the same plan; adaptive routing",
    ),
    (
        "run_usd",
        "Over this run",
        "usd",
        "USD",
        "price x days / (4 years) + days x change of the step x dollars a day",
        ".usd .step_change days",
        "",
        "a network is written off over four years",
    ),
)
CROSSINGS = _rows(
    "crossings",
    "cluster.network.network.crossings",
    ("edge", "Edge", "text", "", "between scale-up domains, leaf units or pods", "", "", ""),
    ("blocks", "Blocks", "count", "", "devices / devices of one", "cluster.devices", "", ""),
    (
        "bytes",
        "In all",
        "bytes",
        "bytes",
        "bytes of every group whose ranks lie in two blocks",
        "communication",
        "",
        "one direction, all devices, one step",
    ),
    (
        "capacity_bytes_per_s",
        "Capacity",
        "bytes_per_s",
        "bytes/s",
        "devices x a device's share of the cards / oversubscription",
        "cluster.devices cluster.oversubscription",
        "",
        "one direction",
    ),
    (
        "busy_s",
        "Busy",
        "seconds",
        "s",
        "bytes / capacity",
        ".bytes .capacity_bytes_per_s",
        "",
        _EVEN,
    ),
    (
        "busy_share",
        "Of the step",
        "share",
        "share",
        "busy / step time",
        ".busy_s step_s",
        "",
        _EVEN,
    ),
)
ROWS = DOMAINS + RISKS + TOPOLOGIES + CROSSINGS
