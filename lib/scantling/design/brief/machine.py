"""The rules by which `init --text` reads a machine: accelerators and their count, nodes, network,
storage; and catalogue models by name."""

from __future__ import annotations

import re
from functools import cache

from .grammar import Rules, whole

_FAMILY = (
    r"GH200|GB200|GB300|A100|A800|H100|H800|H200|H20|B200|B300|V100|L40S|L40|RTX\s?4090|RTX\s?PRO\s?6000|MI250X?|MI300X?|MI325X?|MI350X?|MI355X?|MI455X|"
    r"TPU[\s-]?v?\d[a-z]?x?|(?:TPU[\s-]?)?Ironwood|(?:TPU[\s-]?)?Trillium|Trainium[\s-]?\d?|Trn\d|Gaudi[\s-]?\d|(?:Ascend[\s-]?)?910[BC]|Rubin"
)
_FORM = r"SXM\d?|PCI-?e|NVL72|NVL36|NVL|OAM|HBM\d\w?"
ACCELERATOR = rf"(?:(?:NVIDIA|AMD|Google|Intel|AWS|Huawei)\s+)?(?:(?P<box>DGX|HGX)[\s-]+)?(?P<acc>{_FAMILY})(?:'?s(?![a-z]))?(?P<more>(?:[\s-]*\(?(?:{_FORM}|\d+\s?GB(?!/|ps))\)?(?![a-z0-9]))*)"
_NOUN = r"(?:gpus?|accelerators?|devices?|chips?|cards?|tpus?)"
_TIMES = r"(?:\s*[x×*]\s*|\s+)"


def _accelerator(n, m, count=None):
    n.fact("accelerator", _family(m), m)
    if m["box"]:
        n.fact("box", True, m)
    if count is not None:
        n.set("cluster.devices", count, m)


def _family(m) -> tuple:
    more = (m["more"] or "").lower()
    memory = re.search(r"(\d+)\s?gb", more)
    form = re.search(_FORM.lower(), more)
    return (
        re.sub(r"[\s-]", "", m["acc"].lower()),
        int(memory[1]) if memory else None,
        form[0].replace("-", "") if form else None,
    )


def _nodes(n, m):
    n.fact("nodes", m.whole("n"), m)
    if m["acc"]:
        _accelerator(n, m)
    if m["per"]:
        n.set("cluster.devices_per_node", m.whole("per"), m)


def _sites(n, m):
    n.set("cluster.sites", m.whole("n"), m)
    _accelerator(n, m, m.whole("n") * _devices(m))


def _pods(n, m):
    n.set("cluster.pod_devices", _devices(m), m)
    (_accelerator if m["acc"] else _count)(n, m, m.whole("n") * _devices(m))


def _count(n, m, devices):
    n.set("cluster.devices", devices, m)


def _per_node(n, m):
    n.set("cluster.devices_per_node", m.whole("per"), m)
    _accelerator(n, m)


def _no_link_rate(n, m):
    from ...base.errors import DesignError, plain

    raise DesignError(
        "text",
        problem=f"cannot use '{plain(m.said, 60)}'",
        allowed=(
            "the catalogue's link, or in the file accelerator: {like: id, "
            "link_gbytes_per_s: one direction}"
        ),
    )


def _devices(m, name="c") -> int:
    """16K devices are 16,384, as the field says it; 100K are 100,000."""
    plain = int(m[name].replace(",", ""))
    return m.whole(name, 1024 if plain & (plain - 1) == 0 else 1000)


def _fabric(n, kind, m):
    said = n.facts.get("fabric", ("",))[0]
    if {said, kind} & {"ib"} and kind.startswith("ib") and said.startswith("ib"):
        n.facts.pop("fabric")  # InfiniBand, and its generation apart
        kind = max(said, kind, key=len)
    n.fact("fabric", kind, m)


def _gb(m) -> float:
    return float(m["v"]) * (1000 if m["u"].upper() == "TB" else 1)


def _rate(n, m):
    unit = m["u"]
    if unit in ("gb/s", "tb/s"):
        n.clashes.append(
            (
                "network rate",
                f"{m['r']} Gb/s",
                f"{m['r']} GB/s",
                m.said + ": bits (Gb/s) or bytes (GB/s)?",
            )
        )
    bits = float(m["r"]) * (8 if "B" in unit else 1) * (1000 if unit[0] in "Tt" else 1)
    n.fact("rate", bits, m)
    if m["of"]:
        n.fact("rate_of", _of(m["of"]), m)


def _of(word) -> str:
    word = word.lower()
    return (
        "node"
        if word in ("node", "host", "server")
        else "port"
        if word in ("nic", "port", "link", "rail")
        else "device"
    )


_SITES = r"(?:sites|data\s?cent(?:er|re)s)"
_GROUP = r"(?:nodes?|hosts?|servers?|machines?|boxes|systems|instances|trays)"
MACHINE = Rules()
rule, simple = MACHINE.rule, MACHINE.simple

rule(rf"{whole('c')}{_TIMES}{ACCELERATOR}(?:\s+{_NOUN})?(?!\s+{_GROUP})")(
    lambda n, m: _accelerator(n, m, _devices(m))
)
rule(rf"{ACCELERATOR}\s*[x×*]\s*{whole('c')}")(lambda n, m: _accelerator(n, m, _devices(m)))
rule(ACCELERATOR + rf"(?:\s+{_NOUN})?")(_accelerator)
rule(
    rf"{whole('n')}\s+{_SITES},?\s+each\s+(?:with|of|having)\s+{whole('c')}{_TIMES}{ACCELERATOR}(?:\s+{_NOUN})?",
    rf"{whole('n')}\s+{_SITES}\s+(?:with|of|having)\s+{whole('c')}{_TIMES}{ACCELERATOR}(?:\s+{_NOUN})?\s+each",
)(_sites)
rule(rf"{whole('n')}\s+pods\s+of\s+{whole('c')}(?:{_TIMES}(?:{ACCELERATOR}|{_NOUN}))?")(_pods)
simple(
    "cluster.devices",
    rf"{whole('c')}(?:{_TIMES}|-){_NOUN}(?!\s*(?:per|/|a|in each|each))",
    read=_devices,
)
rule(
    rf"{whole('n')}{_TIMES}(?:{ACCELERATOR}\s+)?{_GROUP}(?:,?\s*(?:of|with|x|×|each "
    rf"with|each having|having|at)\s*(?P<per>\d+)\s*[x×]?(?:\s*{_NOUN})?(?:\s+each)?)?"
)(_nodes)
rule(
    rf"{whole('n')}\s*{_GROUP}\s*(?:of|with|x|×|,)?\s*(?P<per>\d+)\s*[x×]?\s*{ACCELERATOR}(?:\s+{_NOUN})?(?:\s+(?:each|(?:per|in "
    rf""
    rf""
    rf""
    rf""
    rf""
    rf""
    rf""
    rf"each)\s+{_GROUP}))?"
)(_nodes)
simple(
    "cluster.devices_per_node",
    rf"(?P<v>\d+)\s*[x×]?\s*{_NOUN}\s*(?:per|/|a|in each|in a)\s*{_GROUP}",
    read="whole",
)
rule(
    rf"(?P<per>\d+){_TIMES}{ACCELERATOR}(?:\s+{_NOUN})?\s+(?:(?:per|/|a|in each|in "
    rf"a)\s+{_GROUP}|each)"
)(_per_node)
simple("cluster.devices_per_node", rf"(?P<v>\d+)\s+(?:per|in each)\s+{_GROUP}", read="whole")
rule(r"(?:without|no)\s+nvlink(?:/nvswitch)?")(lambda n, m: n.fact("nvlink", False, m))
rule(
    r"(?:with\s+)?nvlink(?:\s*(?:/|and|\+)\s*nvswitch)?(?:\s+(?:inside|within|in)\s+(?:the\s+|a\s+|each\s+)?node)?(?!\s*\d*[\s\d.]*[gt]b)"
)(lambda n, m: n.fact("nvlink", True, m))
rule(r"nvswitch")(lambda n, m: n.fact("nvlink", True, m))

# the network
for _kind, _words in (
    ("ib", r"(?:infiniband|ib)(?:\s+(?:rdma|network|fabric|networking))*"),
    ("rocev2", r"roce(?:\s?v2)?(?:\s+(?:rdma|ethernet|network|fabric))*"),
    ("slingshot11", r"(?:hpe\s+)?slingshot(?:[\s-]?11)?"),
    ("rocev2", r"spectrum[\s-]?x"),
    ("omnipath-100", r"omni[\s-]?path"),
    ("eth", r"(?:tcp\s+)?ethernet(?:\s+tcp)?"),
):
    rule(_words)(lambda n, m, kind=_kind: _fabric(n, kind, m))
rule(
    r"(?P<g>edr|hdr|ndr|xdr)(?:[\s-]*(?:infiniband|ib))?(?:\s+rdma)?|(?:infiniband|ib)[\s-]+(?P<h>edr|hdr|ndr|xdr)(?:\s+rdma)?"
)(lambda n, m: _fabric(n, "ib-" + (m["g"] or m["h"]).lower(), m))
rule(r"(?:aws\s+)?efa(?:[\s-]?(?P<v>v[1-4]))?")(
    lambda n, m: _fabric(n, "efa-" + (m["v"] or "v2").lower(), m)
)
rule(
    r"(?:(?P<ib>infiniband|ib)|(?P<roce>roce(?:\s?v2)?)|(?P<eth>ethernet))(?:\s+at|,)?\s+(?P<r>\d+)\s?g"
)(
    lambda n, m: (
        _fabric(n, "ib" if m["ib"] else "rocev2" if m["roce"] else "eth", m),
        n.fact("rate", float(m["r"]), m),
    )
)
rule(r"rdma")(lambda n, m: n.fact("rdma", True, m))
rule(r"(?P<r>\d+(?:\.\d+)?)\s?[gt]b(?:it)?s?(?:/s|ps)(?:\s+\w+)?\s+nvlink\d?")(_no_link_rate)
simple(
    "cluster.scale_up_domain",
    r"(?:nvlink|scale[\s-]up)\s+domains?\s+of\s+(?P<v>\d+)(?:\s+(?:gpus?|devices?))?",
    read="whole",
)
rule(
    r"(?:(?i:over|via)\s+)?(?P<r>\d+(?:\.\d+)?)\s?(?P<u>[GgTt]b(?:it)?/s|[GgTt]bps|[GT]B/s|[GT]Bps|[GgTt]bits?/s|G(?=[\s-]+(?i:ib|infiniband|roce|ethernet|efa|[ehnx]dr)))(?:\s*(?:per|/|a)\s*(?P<of>(?i:gpu|device|chip|accelerator|node|host|server|nic|port|link|rail)))?",
    flags=0,
)(_rate)
rule(
    r"(?:per|each|every)\s+(?P<of>gpu|device|chip|accelerator|node|host|server|nic|port|link|rail)"
)(lambda n, m: n.fact("rate_of", _of(m["of"]), m))
simple(
    "cluster.nics_per_node",
    (
        r"(?P<v>\d+)\s*[x×]?\s*(?:nics?|ports|hcas?|rails)(?:\s+(?:per|/|a|in "
        r"each)\s*(?:node|host|server))?"
    ),
    read="whole",
)
simple(
    "cluster.oversubscription",
    r"(?P<v>\d+(?:\.\d+)?)\s*(?::|to)\s*1\s+(?:over-?subscri(?:bed|ption)|blocking)",
    read="plain",
)
simple(
    "cluster.oversubscription",
    r"(?:over-?subscription)(?:\s+(?:of|ratio))*\s*[:=]?\s*(?P<v>\d+(?:\.\d+)?)(?:\s*:\s*1)?",
    read="plain",
)
simple(
    "cluster.oversubscription",
    r"non-?blocking(?:\s+(?:network|fabric|fat[\s-]tree))?|full[\s-]bisection(?:\s+bandwidth)?|(?:no|without)\s+over-?subscription",
    value=1.0,
)
simple(
    "cluster.pod_devices",
    rf"pods?\s+of\s+{whole('v')}(?:\s+{_NOUN})?",
    read=lambda m: _devices(m, "v"),
)
simple("cluster.sites", rf"(?P<v>\d+)\s+{_SITES}", read="whole")

# memory and disks
simple(
    "cluster.host_memory_gb",
    (
        r"(?P<v>\d+(?:\.\d+)?)\s?(?P<u>GB|TB)\s+(?:of\s+)?(?:host\s+|system\s+|cpu\s+)?(?:memory|ram|dram)\s*(?:per|/|a|in "
        r""
        r""
        r""
        r""
        r""
        r""
        r""
        r"each)\s*(?:node|host|server)"
    ),
    read=_gb,
)
simple(
    "cluster.nvme_gb",
    (
        r"(?P<v>\d+(?:\.\d+)?)\s?(?P<u>GB|TB)\s+(?:of\s+)?(?:local\s+)?nvme(?:\s+(?:storage|ssds?))?(?:\s*(?:per|/|a|in "
        r""
        r""
        r""
        r""
        r""
        r""
        r""
        r"each)\s*(?:node|host|server))?"
    ),
    read=_gb,
)
simple(
    "cluster.storage",
    r"(?:on\s+)?(?P<v>lustre|gpfs|weka|vast|daos|3fs)(?:\s+(?:storage|file\s?system))?",
    read=lambda m: m["v"].lower(),
)


@cache
def models() -> Rules:
    """Catalogue models by their ids, written with spaces, dots or dashes."""
    from ...catalogue.models.entries import entries

    rules = Rules()
    for entry in entries().values():
        for name in (entry.id, *entry.aliases):
            loose = r"[\s_-]*".join(re.escape(p) for p in name.split("-"))
            rules.simple("model", loose, value=entry.id)
    return rules


def choose_accelerator(
    family: str, memory: int | None, form: str | None, nvlink: bool | None
) -> tuple[str, str]:
    """(catalogue id, why) of an accelerator by family, memory and form. Raises DesignError where
    the catalogue has no such card."""
    from ... import catalogue
    from ...base.errors import DesignError

    rows = list(catalogue.accelerators().values())

    def flat(text):
        return re.sub(r"[^a-z0-9]", "", text.lower())

    of_family = [
        r
        for r in rows
        if any(
            flat(name) == family
            or flat(name).startswith(family)
            and not flat(name)[len(family) :][:1].isalpha()
            for name in (r.id, *r.aliases)
        )
        or re.match(rf"{family}(?:[^a-z0-9]|$)", r.id)
    ]
    if not of_family:
        raise DesignError(
            "cluster.accelerator",
            family,
            [r.id for r in rows],
            problem="is not an accelerator of the catalogue",
        )
    fitting = [r for r in of_family if memory is None or _memory(r, memory)]
    if not fitting:
        sizes = sorted({round(r.hbm_bytes / 1e9) for r in of_family})
        raise DesignError(
            "cluster.accelerator",
            f"{family.upper()} {memory} GB",
            f"{family.upper()} with " + ", ".join(map(str, sizes)) + " GB",
            min(sizes, key=lambda s: abs(s - memory)),
            problem="is not in the catalogue",
        )
    if form and not form.startswith(("hbm", "oam")):
        fitting = [
            r
            for r in fitting
            if form.rstrip("0123456789") in r.id.rstrip("0123456789")
            or form in r.id
            or form in flat(r.name)
        ] or _none(family, form, of_family)
    if nvlink is False:
        fitting = [r for r in fitting if r.scale_up.startswith("pcie")] or _none(
            family, "without NVLink", of_family
        )
    elif nvlink is True:
        fitting = [r for r in fitting if "nvlink" in r.scale_up] or _none(
            family, "with NVLink", of_family
        )
    usual = next(
        (r for r in fitting if any(flat(a) == family for a in (r.id, *r.aliases))), fitting[0]
    )
    if len(fitting) == 1:
        return usual.id, ""
    return usual.id, "the usual one of " + ", ".join(r.id for r in fitting)


def _memory(row, memory) -> bool:
    return (
        abs(row.hbm_bytes / 1e9 - memory) < 1
        or re.search(rf"\b{memory}\s?GB", row.name) is not None
    )


def _none(family, what, rows):
    from ...base.errors import DesignError

    raise DesignError(
        "cluster.accelerator",
        f"{family.upper()} {what}",
        [r.id for r in rows],
        problem="is not in the catalogue",
    )


def choose_fabric(kind: str | None, rate: tuple | None, per_node: int) -> dict:
    """Cluster fields of a network said in words: kind ("ib", "rocev2", "eth", or an id), rate
    (Gb/s, per "port", "device" or "node")."""
    from ... import catalogue

    fabrics = list(catalogue.fabrics("scale-out").values())
    if rate is None:
        return (
            {}
            if kind == "ib"
            else {"scale_out": {"rocev2": "rocev2-400", "eth": "eth-100"}.get(kind, kind)}
        )
    bits, of = rate
    port = bits / per_node if of == "node" else bits
    wanted = [
        f
        for f in fabrics
        if f.id == kind
        or kind in ("ib", "rocev2", "eth", None)
        and f.id.startswith((kind or "ib") + "-")
    ]

    def speed(f):
        return f.port_bytes_per_s * 8 / 1e9

    exact = [f for f in wanted if abs(speed(f) - port) < 1]
    fields = {}
    if exact:
        fields["scale_out"] = exact[0].id
    else:
        near = min(wanted, key=lambda f: abs(speed(f) - port))
        fields["scale_out"] = (
            near.id if of != "port" else {"like": near.id, "port_gbits_per_s": port}
        )
    if of in ("device", "node"):
        fields["scale_out_gbytes_per_s_per_device"] = float(
            f"{(bits / per_node if of == 'node' else bits) / 8:.6g}"
        )
    return fields
