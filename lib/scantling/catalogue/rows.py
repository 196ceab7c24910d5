"""Records of the data files that are not chips, fabrics or nodes. Bytes, seconds, FLOP, dollars;
nan where a source gives nothing."""

from math import isnan, nan

from ..base.records import Lines, record


@record
class Sourced:
    """A row with where it comes from, when that was said, and how it was had (load.VERIFIED)."""

    source: str
    verified: str
    date: str = ""
    notes: str = ""


@record
class Storage(Sourced):
    """A file system, object store, local disk or guidance tier: rates of one client (a host) and of
    the whole `scope` [bytes/s]."""

    id: str
    name: str
    kind: str
    # what the total rates and the capacity are of: cluster, appliance, TiB, node, drive, 32 nodes …
    scope: str
    client_read_bytes_per_s: float
    client_write_bytes_per_s: float
    total_read_bytes_per_s: float
    total_write_bytes_per_s: float
    capacity_bytes: float
    latency_s: float
    usd_per_gb_month: float
    aliases: Lines = ()
    # AWS, GCP, Azure, CoreWeave; makers (to anyone); empty where an operator built it for itself
    sold_by: str = ""

    def write_bytes_per_s(self, nodes: float) -> float:
        """Write rate [bytes/s] that a job on this many hosts can have: the smaller of hosts x
        client and the total; nan if neither is known.

        A total that is stated per 32 nodes, per host or per drive grows with the hosts; one per TiB
        or appliance is that of a single unit.
        """
        return self._rate(nodes, self.client_write_bytes_per_s, self.total_write_bytes_per_s)

    def read_bytes_per_s(self, nodes: float) -> float:
        """Read rate [bytes/s] that a job on this many hosts can have; as `write_bytes_per_s`."""
        return self._rate(nodes, self.client_read_bytes_per_s, self.total_read_bytes_per_s)

    def _rate(self, nodes: float, client: float, total: float) -> float:
        if self.scope == "32 nodes":
            total *= max(1.0, nodes / 32)
        known = [x for x in (client * nodes, total) if not isnan(x)]
        return min(known) if known else nan


@record
class FailurePreset(Sourced):
    """One fleet: failures and planned stops per 1,000 8-device node-days, devices of the job that
    was counted (nan where many were), where these come from, how well it is known."""

    id: str
    per_1000_node_days: float
    planned_per_1000_node_days: float
    devices: float
    note: str


@record
class Optimizer:
    """What an optimizer keeps for each parameter [bytes], in memory and in a checkpoint alike."""

    id: str
    moment_bytes: float
    master_bytes: float
    newton_schulz: float  # iterations that make a matrix orthogonal in the update
    notes: str
    source: str
    aliases: Lines = ()


@record
class Price(Sourced):
    """One dated observation: `value` in `unit` (USD per device-hour for rents), or only a range."""

    item: str
    provider: str
    category: str
    value: float
    unit: str
    low: float
    high: float
    term: str
    # on-demand | contract | spot | serverless | capacity-block | index | list | capex | power |
    # factor
    kind: str
    # how far the source of a rent is to be trusted: list (the provider's own list or rates),
    # benchmark (an index over contracts or offers), press (a table or blog that quotes them)
    rank: str = ""

    @property
    def middle(self) -> float:
        """The value, or the middle of the range where only that is given."""
        return self.value if not isnan(self.value) else (self.low + self.high) / 2


@record
class Fact(Sourced):
    """One published reliability figure as printed; `value` stays text because sources print ranges
    and bounds."""

    id: str
    quantity: str
    value: str
    unit: str
    context: str
    title: str
    locator: str

    @property
    def number(self) -> float:
        """The value as a number; nan where the source prints a range, a bound or words."""
        try:
            return float(self.value)
        except ValueError:
            return nan


@record
class GemmPoint(Sourced):
    """One measured operation; `fraction` is of the dense peak of its own precision."""

    accelerator: str
    op: str
    dtype: str
    shape_class: str
    m: float
    n: float
    k: float
    note: str
    achieved_flops: float
    peak_flops: float
    fraction: float


@record
class CollectiveSeries(Sourced):
    """One published curve: message size [bytes] to bus bandwidth [bytes/s] (all-reduce: algbw
    2(n-1)/n, others (n-1)/n)."""

    id: str
    fabric: str
    accelerator: str
    nvlink_domains: int
    devices: int
    collective: str
    link_bytes_per_s: float
    message_bytes: tuple[float, ...] = ()
    busbw_bytes_per_s: tuple[float, ...] = ()
