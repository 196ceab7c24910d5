"""The numbers of the site that no formula gives: measured, published or judgement, each with its
source in tables/constants.csv."""

from dataclasses import fields
from pathlib import Path

from scantling.base.files import csv_rows
from scantling.base.records import record

TABLES = Path(__file__).with_name("tables")


@record
class SiteConstants:
    """One field a row of tables/constants.csv, which says where each comes from."""

    network_share: float  # share: network in the all-in price of a cluster
    network_life_years: float  # years: over which a network is written off
    # ratio: fullest uplink over the mean that a design should accept of hashed flows
    load_limit: float
    small_share: float  # share: of the step: a saving below this is not worth a setting
    # ratio: alone over estimated time above which a small group on a mesh is warned of
    slow_group: float
    heartbeat_s: float  # s: period of a node's health report
    heartbeat_bytes: float  # bytes: a node's health report
    # bytes: step, learning-rate schedule, batch ramp, loss-scale state, plan, versions
    schedule_bytes: float
    token_copy_bytes: float  # bytes: of a token from host memory to a device
    norm_bytes: float  # bytes: of the gradient norm's exchange
    log_bytes: float  # bytes: loss, norms and timers of a step
    host_link_bytes_per_s: float  # bytes/s: host link of a device whose catalogue row names none
    read_share: float  # share: of a recovery that the transfer of the state may add
    copies: float  # copies: at the file system at least
    milestone_s: float  # s: between copies in the object store
    milestone_time: float  # share: of that time in which such a copy is written
    row_racks: float  # racks: on one coolant distribution unit or busway
    row_repair_s: float  # s: until a row is back
    building_repair_s: float  # s: until a building is back
    none_seen: float  # events: at most expected where none was seen
    cube: float  # chips: that one optical-switch port group moves as a whole
    lemons: float  # share: of the failures that go with the nodes that cause most of them
    late_h: float  # h: that offline stress tests took to find a corrupting device
    # W: sites above this are built for the job; smaller ones are rented where they stand
    dedicated_w: float
    untuned: float  # probability: that an Ethernet fabric has to be tuned
    shared_link: float  # probability: that a job of 512 devices has a slow link
    slow_link_min: float  # min: until a slow link is found
    slow_link_devices: float  # devices: of the jobs that were counted
    slow_link_factor: float  # ratio: how much slower such a link is
    slow_store: float  # ratio: how much less a shared or rebuilding file system gives
    peers_s: float  # s: until a save in the peers' memory is durable
    scatter: float  # share: spread of single runs once a source's common part is known
    # share: of the run: closer than this the scheduler with fewer control planes is taken
    tie: float
    nudge: float  # fit: how far a reading of the documents may be off
    preempt_s: float  # s: after which a job may be stopped
    restore_fixed_s: float  # s: of a restart that is not loading
    fleet_pace: float  # share: daily swing of the throughput with the temperature
    auto_repair: float  # share: of the repairs that need nobody
    default_timeout_s: float  # s: usual watchdog on collectives
    lazy_init_s: float  # s: communicators formed lazily take at most
    node_accept_low: float  # share: loosest acceptance of an all-reduce in a node
    node_accept_high: float  # share: tightest acceptance of an all-reduce in a node
    unjudged: float  # share: how far the curves may be off on a fabric with no published series
    dip: float  # share: of the ideal speed that a change may take before it counts as breaking
    engine_memory: float  # share: of an engine's memory that the weights may take
    engine_usable: float  # share: of an engine's memory in use
    engine_sequences: float  # sequences: of a device of an engine at most
    swing_devices: float  # devices: in one synchronous job from which swings of power are told
    power_cap: float  # share: of the power: the cap whose price in days is told
    epochs_worth: float  # passes: over a corpus


def site_constants() -> SiteConstants:
    """The table as a record. Raises ValueError for a row with no field of its name, and for a
    field with no row."""
    values = {row["id"]: float(row["value"]) for row in csv_rows(TABLES / "constants.csv")}
    names = {f.name for f in fields(SiteConstants)}
    if names != values.keys():
        wrong = ", ".join(sorted(names ^ values.keys()))
        raise ValueError(f"tables/constants.csv and SiteConstants differ in {wrong}")
    return SiteConstants(**values)


CONSTANTS = site_constants()
