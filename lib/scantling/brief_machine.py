"""The rules by which `init --text` reads a machine: accelerators and their count, nodes, network, storage; and catalogue models by name."""

from __future__ import annotations

import re
from functools import cache

from .brief_grammar import Rule, whole

_FAMILY = (
    r"GH200|GB200|GB300|A100|A800|H100|H800|H200|H20|B200|B300|V100|L40S|L40|RTX\s?4090|RTX\s?PRO\s?6000|MI250X?|MI300X?|MI325X?|MI350X?|MI355X?|MI455X|"
    r"TPU[\s-]?v?\d[a-z]?x?|(?:TPU[\s-]?)?Ironwood|(?:TPU[\s-]?)?Trillium|Trainium[\s-]?\d?|Trn\d|Gaudi[\s-]?\d|(?:Ascend[\s-]?)?910[BC]|Rubin"
)
_FORM = r"SXM\d?|PCI-?e|NVL72|NVL36|NVL|OAM|HBM\d\w?"
ACCELERATOR = rf"(?:(?:NVIDIA|AMD|Google|Intel|AWS|Huawei)\s+)?(?:(?P<box>DGX|HGX)[\s-]+)?(?P<acc>{_FAMILY})(?:'?s(?![a-z]))?(?P<more>(?:[\s-]*\(?(?:{_FORM}|\d+\s?GB(?!/|ps))\)?(?![a-z0-9]))*)"
_NOUN = r"(?:gpus?|accelerators?|devices?|chips?|cards?|tpus?)"
_TIMES = r"(?:\s*[x×*]\s*|\s+)"
_END = r"(?![A-Za-z0-9])"


def _rule(pattern, act, flags=re.IGNORECASE):
    return Rule(re.compile(rf"(?:{pattern}){_END}", flags), act)


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
    return re.sub(r"[\s-]", "", m["acc"].lower()), int(memory[1]) if memory else None, form[0].replace("-", "") if form else None


def _nodes(n, m):
    n.fact("nodes", m.whole("n"), m)
    if m["acc"]:
        _accelerator(n, m)
    if m["per"]:
        n.set("cluster.devices_per_node", m.whole("per"), m)


def _per_node(n, m):
    n.set("cluster.devices_per_node", m.whole("per"), m)
    _accelerator(n, m)


_GROUP = r"(?:nodes?|hosts?|servers?|machines?|boxes|systems|instances|trays)"
MACHINE = [
    _rule(rf"{whole('c')}{_TIMES}{ACCELERATOR}(?:\s+{_NOUN})?(?!\s+{_GROUP})", lambda n, m: _accelerator(n, m, _devices(m))),
    _rule(rf"{ACCELERATOR}\s*[x×*]\s*{whole('c')}", lambda n, m: _accelerator(n, m, _devices(m))),
    _rule(ACCELERATOR + rf"(?:\s+{_NOUN})?", lambda n, m: _accelerator(n, m)),
    _rule(rf"{whole('c')}(?:{_TIMES}|-){_NOUN}(?!\s*(?:per|/|a|in each|each))", lambda n, m: n.set("cluster.devices", _devices(m), m)),
    _rule(
        rf"{whole('n')}{_TIMES}(?:{ACCELERATOR}\s+)?{_GROUP}(?:,?\s*(?:of|with|x|×|each with|each having|having|at)\s*(?P<per>\d+)\s*[x×]?(?:\s*{_NOUN})?(?:\s+each)?)?",
        _nodes,
    ),
    _rule(rf"{whole('n')}\s*{_GROUP}\s*(?:of|with|x|×|,)?\s*(?P<per>\d+)\s*[x×]?\s*{ACCELERATOR}(?:\s+{_NOUN})?(?:\s+(?:each|(?:per|in each)\s+{_GROUP}))?", _nodes),
    _rule(
        rf"(?P<v>\d+)\s*[x×]?\s*{_NOUN}\s*(?:per|/|a|in each|in a)\s*{_GROUP}",
        lambda n, m: n.set("cluster.devices_per_node", m.whole("v"), m),
    ),
    _rule(rf"(?P<per>\d+){_TIMES}{ACCELERATOR}(?:\s+{_NOUN})?\s+(?:(?:per|/|a|in each|in a)\s+{_GROUP}|each)", _per_node),
    _rule(rf"(?P<v>\d+)\s+(?:per|in each)\s+{_GROUP}", lambda n, m: n.set("cluster.devices_per_node", m.whole("v"), m)),
    _rule(r"(?:without|no)\s+nvlink(?:/nvswitch)?", lambda n, m: n.fact("nvlink", False, m)),
    _rule(
        r"(?:with\s+)?nvlink(?:\s*(?:/|and|\+)\s*nvswitch)?(?:\s+(?:inside|within|in)\s+(?:the\s+|a\s+|each\s+)?node)?(?!\s*\d*[\s\d.]*[gt]b)",
        lambda n, m: n.fact("nvlink", True, m),
    ),
    _rule(r"nvswitch", lambda n, m: n.fact("nvlink", True, m)),
    # the network
    _rule(
        r"(?P<g>edr|hdr|ndr|xdr)(?:[\s-]*(?:infiniband|ib))?(?:\s+rdma)?|(?:infiniband|ib)[\s-]+(?P<h>edr|hdr|ndr|xdr)(?:\s+rdma)?",
        lambda n, m: _fabric(n, "ib-" + (m["g"] or m["h"]).lower(), m),
    ),
    _rule(r"(?:infiniband|ib)(?:\s+(?:rdma|network|fabric|networking))*", lambda n, m: _fabric(n, "ib", m)),
    _rule(r"roce(?:\s?v2)?(?:\s+(?:rdma|ethernet|network|fabric))*", lambda n, m: _fabric(n, "rocev2", m)),
    _rule(r"(?:aws\s+)?efa(?:[\s-]?(?P<v>v[1-4]))?", lambda n, m: _fabric(n, "efa-" + (m["v"] or "v2").lower(), m)),
    _rule(
        r"(?:(?P<ib>infiniband|ib)|(?P<roce>roce(?:\s?v2)?)|(?P<eth>ethernet))(?:\s+at|,)?\s+(?P<r>\d+)\s?g",
        lambda n, m: (_fabric(n, "ib" if m["ib"] else "rocev2" if m["roce"] else "eth", m), n.fact("rate", float(m["r"]), m)),
    ),
    _rule(r"(?:hpe\s+)?slingshot(?:[\s-]?11)?", lambda n, m: _fabric(n, "slingshot11", m)),
    _rule(r"spectrum[\s-]?x", lambda n, m: _fabric(n, "rocev2", m)),
    _rule(r"omni[\s-]?path", lambda n, m: _fabric(n, "omnipath-100", m)),
    _rule(r"(?:tcp\s+)?ethernet(?:\s+tcp)?", lambda n, m: _fabric(n, "eth", m)),
    _rule(r"rdma", lambda n, m: n.fact("rdma", True, m)),
    _rule(r"(?P<r>\d+(?:\.\d+)?)\s?[gt]b(?:it)?s?(?:/s|ps)(?:\s+\w+)?\s+nvlink\d?", lambda n, m: _no_link_rate(m)),
    _rule(
        r"(?:nvlink|scale[\s-]up)\s+domains?\s+of\s+(?P<v>\d+)(?:\s+(?:gpus?|devices?))?",
        lambda n, m: n.set("cluster.scale_up_domain", m.whole("v"), m),
    ),
    _rule(
        r"(?:(?i:over|via)\s+)?(?P<r>\d+(?:\.\d+)?)\s?(?P<u>[GgTt]b(?:it)?/s|[GgTt]bps|[GT]B/s|[GT]Bps|[GgTt]bits?/s|G(?=[\s-]+(?i:ib|infiniband|roce|ethernet|efa|[ehnx]dr)))(?:\s*(?:per|/|a)\s*(?P<of>(?i:gpu|device|chip|accelerator|node|host|server|nic|port|link|rail)))?",
        lambda n, m: _rate(n, m),
        0,
    ),
    _rule(
        r"(?:per|each|every)\s+(?P<of>gpu|device|chip|accelerator|node|host|server|nic|port|link|rail)",
        lambda n, m: n.fact("rate_of", _of(m["of"]), m),
    ),
    _rule(
        r"(?P<v>\d+)\s*[x×]?\s*(?:nics?|ports|hcas?|rails)(?:\s+(?:per|/|a|in each)\s*(?:node|host|server))?",
        lambda n, m: n.set("cluster.nics_per_node", m.whole("v"), m),
    ),
    _rule(
        r"(?P<v>\d+(?:\.\d+)?)\s*(?::|to)\s*1\s+(?:over-?subscri(?:bed|ption)|blocking)",
        lambda n, m: n.set("cluster.oversubscription", float(m["v"]), m),
    ),
    _rule(
        r"(?:over-?subscription)(?:\s+(?:of|ratio))*\s*[:=]?\s*(?P<v>\d+(?:\.\d+)?)(?:\s*:\s*1)?",
        lambda n, m: n.set("cluster.oversubscription", float(m["v"]), m),
    ),
    _rule(
        r"non-?blocking(?:\s+(?:network|fabric|fat[\s-]tree))?|full[\s-]bisection(?:\s+bandwidth)?|(?:no|without)\s+over-?subscription",
        lambda n, m: n.set("cluster.oversubscription", 1.0, m),
    ),
    _rule(rf"pods?\s+of\s+{whole('v')}(?:\s+{_NOUN})?", lambda n, m: n.set("cluster.pod_devices", _devices(m, "v"), m)),
    _rule(r"(?P<v>\d+)\s+(?:sites|data\s?cent(?:er|re)s)", lambda n, m: n.set("cluster.sites", m.whole("v"), m)),
    # memory and disks
    _rule(
        r"(?P<v>\d+(?:\.\d+)?)\s?(?P<u>GB|TB)\s+(?:of\s+)?(?:host\s+|system\s+|cpu\s+)?(?:memory|ram|dram)\s*(?:per|/|a|in each)\s*(?:node|host|server)",
        lambda n, m: _gb(n, m, "cluster.host_memory_gb"),
    ),
    _rule(
        r"(?P<v>\d+(?:\.\d+)?)\s?(?P<u>GB|TB)\s+(?:of\s+)?(?:local\s+)?nvme(?:\s+(?:storage|ssds?))?(?:\s*(?:per|/|a|in each)\s*(?:node|host|server))?",
        lambda n, m: _gb(n, m, "cluster.nvme_gb"),
    ),
    _rule(
        r"(?:on\s+)?(?P<v>lustre|gpfs|weka|vast|daos|3fs)(?:\s+(?:storage|file\s?system))?",
        lambda n, m: n.set("cluster.storage", m["v"].lower(), m),
    ),
]


def _no_link_rate(m):
    from .errors import DesignError, plain

    raise DesignError(
        "text",
        problem=f"cannot use '{plain(m.said, 60)}'",
        allowed="the catalogue's link, or in the file accelerator: {like: id, link_gbytes_per_s: one direction}",
    )


def _devices(m, name="c") -> int:
    """16K devices are 16,384, as the field says it; 100K are 100,000."""
    plain = int(m[name].replace(",", ""))
    return m.whole(name, 1024 if plain & (plain - 1) == 0 else 1000)


def _fabric(n, kind, m):
    said = n.facts.get("fabric", ("",))[0]
    if {said, kind} & {"ib"} and kind.startswith("ib") and said.startswith("ib"):
        n.facts.pop("fabric")       # InfiniBand, and its generation apart
        kind = max(said, kind, key=len)
    n.fact("fabric", kind, m)


def _gb(n, m, path):
    n.set(path, float(m["v"]) * (1000 if m["u"].upper() == "TB" else 1), m)


def _rate(n, m):
    unit = m["u"]
    if unit in ("gb/s", "tb/s"):
        n.clashes.append(("network rate", f"{m['r']} Gb/s", f"{m['r']} GB/s", m.said + ": bits (Gb/s) or bytes (GB/s)?"))
    bits = float(m["r"]) * (8 if "B" in unit else 1) * (1000 if unit[0] in "Tt" else 1)
    n.fact("rate", bits, m)
    if m["of"]:
        n.fact("rate_of", _of(m["of"]), m)


def _of(word) -> str:
    word = word.lower()
    return "node" if word in ("node", "host", "server") else "port" if word in ("nic", "port", "link", "rail") else "device"


@cache
def models() -> list[Rule]:
    """Catalogue models by their ids, written with spaces, dots or dashes."""
    from .catalogue.models import entries

    rules = []
    for entry in entries().values():
        for name in (entry.id, *entry.aliases):
            loose = r"[\s_-]*".join(re.escape(p) for p in name.split("-"))
            rules.append(_rule(loose, lambda n, m, id=entry.id: n.set("model", id, m)))
    return rules


def choose_accelerator(family: str, memory: int | None, form: str | None, nvlink: bool | None) -> tuple[str, str]:
    """(catalogue id, why) of an accelerator by family, memory and form. Raises DesignError where the catalogue has no such card."""
    from . import catalogue
    from .errors import DesignError

    rows = list(catalogue.accelerators().values())

    def flat(text):
        return re.sub(r"[^a-z0-9]", "", text.lower())

    of_family = [
        r
        for r in rows
        if any(
            flat(name) == family or flat(name).startswith(family) and not flat(name)[len(family) :][:1].isalpha()
            for name in (r.id, *r.aliases)
        )
        or re.match(rf"{family}(?:[^a-z0-9]|$)", r.id)
    ]
    if not of_family:
        raise DesignError("cluster.accelerator", family, [r.id for r in rows], problem="is not an accelerator of the catalogue")
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
            r for r in fitting if form.rstrip("0123456789") in r.id.rstrip("0123456789") or form in r.id or form in flat(r.name)
        ] or _none(family, form, of_family)
    if nvlink is False:
        fitting = [r for r in fitting if r.scale_up.startswith("pcie")] or _none(family, "without NVLink", of_family)
    elif nvlink is True:
        fitting = [r for r in fitting if "nvlink" in r.scale_up] or _none(family, "with NVLink", of_family)
    usual = next((r for r in fitting if any(flat(a) == family for a in (r.id, *r.aliases))), fitting[0])
    if len(fitting) == 1:
        return usual.id, ""
    return usual.id, "the usual one of " + ", ".join(r.id for r in fitting)


def _memory(row, memory) -> bool:
    return abs(row.hbm_bytes / 1e9 - memory) < 1 or re.search(rf"\b{memory}\s?GB", row.name) is not None


def _none(family, what, rows):
    from .errors import DesignError

    raise DesignError("cluster.accelerator", f"{family.upper()} {what}", [r.id for r in rows], problem="is not in the catalogue")


def choose_fabric(kind: str | None, rate: tuple | None, per_node: int) -> dict:
    """Cluster fields of a network said in words: kind ("ib", "rocev2", "eth", or an id), rate (Gb/s, per "port", "device" or "node")."""
    from . import catalogue

    fabrics = list(catalogue.fabrics("scale-out").values())
    if rate is None:
        return {} if kind == "ib" else {"scale_out": {"rocev2": "rocev2-400", "eth": "eth-100"}.get(kind, kind)}
    bits, of = rate
    port = bits / per_node if of == "node" else bits
    wanted = [f for f in fabrics if f.id == kind or kind in ("ib", "rocev2", "eth", None) and f.id.startswith((kind or "ib") + "-")]

    def speed(f):
        return f.port_bytes_per_s * 8 / 1e9

    exact = [f for f in wanted if abs(speed(f) - port) < 1]
    fields = {}
    if exact:
        fields["scale_out"] = exact[0].id
    else:
        near = min(wanted, key=lambda f: abs(speed(f) - port))
        fields["scale_out"] = near.id if of != "port" else {"like": near.id, "port_gbits_per_s": port}
    if of in ("device", "node"):
        fields["scale_out_gbytes_per_s_per_device"] = float(f"{(bits / per_node if of == 'node' else bits) / 8:.6g}")
    return fields
