"""The rules by which `init --text` reads what a run must keep to, what it costs and how it fails;
and what is understood and sets nothing."""

from __future__ import annotations

from .grammar import BE, LEAST, MOST, Rules, num, percent, time

LIMITS = Rules()
rule, simple, aside = LIMITS.rule, LIMITS.simple, LIMITS.aside

# the limits
_CKPT = r"(?:checkpoint(?:ing|s)?|saves?)"
simple(
    "constraints.deadline_days",
    (
        rf"(?:in|{MOST}|deadline{BE}|over|for|takes?|lasting)\s*(?:(?:{MOST}|about|around)\s+)?{time('v')}(?:\s+(?:deadline|or "
        rf""
        rf""
        rf""
        rf""
        rf""
        rf""
        rf""
        rf"less|or fewer|at most|maximum|max))?"
    ),
    rf"{time('v')}[\s-]+(?:deadline|time limit|maximum|max)",
    (
        rf"(?:deadline|time limit|training "
        rf"time|duration|wall[\s-]?time){BE}\s*(?:{MOST}\s*)?{time('v')}"
    ),
    read="days",
)
simple(
    "constraints.deadline_days",
    r"(?P<v>\d+(?:\.\d+)?)[\s-]?(?P<v_u>days?|weeks?|months?)",
    read="days",
    why="a time alone is the deadline",
)
_OVERHEAD = r"(?:time\s+)?(?:overhead|cost|stall share)"
simple(
    "constraints.max_checkpoint_overhead",
    (
        rf"{MOST}\s*{percent('v')}\s+(?:of\s+)?(?:{_OVERHEAD}\s+(?:for|from|in|due "
        rf"to|of|spent on)\s+{_CKPT}|{_CKPT}\s+{_OVERHEAD})"
    ),
    (
        rf"{percent('v')}\s+(?:max(?:imum)?\s+)?(?:{_CKPT}\s+{_OVERHEAD}|{_OVERHEAD}\s+(?:for|from|in|due "
        rf""
        rf""
        rf""
        rf""
        rf""
        rf""
        rf""
        rf"to|of)\s+{_CKPT})(?:\s+(?:at most|max(?:imum)?))?"
    ),
    (
        rf"{_CKPT}\s+{_OVERHEAD}{BE}\s*(?:{MOST})?\s*{percent('v')}(?:\s+(?:or less|at "
        rf"most|max(?:imum)?))?"
    ),
    rf"{MOST}\s*{percent('v')}\s+(?:of\s+(?:the\s+)?time\s+)?(?:on|in|for)\s+{_CKPT}",
    read="share",
)
_MFU = r"(?:model[\s-]flop[s/]*[\s-]utili[sz]ation(?:\s*\(mfu\))?|mfu(?:\s*\(model[\s-]flop[s/]*[\s-]utili[sz]ation\))?)"
simple(
    "constraints.min_mfu",
    (
        rf"(?:{LEAST}\s*)?{percent('v')}\+?\s+(?:of\s+)?{_MFU}(?:\s+(?:or "
        rf"(?:more|better|higher)|at least|minimum))?"
    ),
    rf"{_MFU}{BE}\s*(?:{LEAST})?\s*{percent('v')}\+?(?:\s+or (?:more|better|higher))?",
    rf"(?:minimum|min|target)\s+{_MFU}{BE}\s*{percent('v')}",
    read="share",
)
simple("constraints.min_mfu", rf"{_MFU}{BE}\s*(?:{LEAST})?\s*(?P<v>0?\.\d+)", read="plain")
_GOOD = r"(?:goodput|effective training time|ettr)"
simple(
    "constraints.min_goodput",
    rf"(?:{LEAST}\s*)?{percent('v')}\s+(?:of\s+)?{_GOOD}",
    rf"{_GOOD}{BE}\s*(?:{LEAST})?\s*{percent('v')}",
    read="share",
)
for _usd in (rf"(?:us)?\$\s*{num('v')}", rf"{num('v')}\s*(?:usd|(?:us\s+)?dollars|\$)"):
    simple(
        "constraints.budget_usd",
        (
            rf"(?:budget|cost|spend|price)(?:\s+(?:cap|limit))?{BE}\s*(?:{MOST})?\s*{_usd}(?:\s+(?:or "
            rf""
            rf""
            rf""
            rf""
            rf""
            rf""
            rf""
            rf"less|at most|budget))?"
        ),
        (
            rf"(?:{MOST}|for)\s*(?:{MOST}\s*)?{_usd}(?:\s+(?:budget|in "
            rf"total|total))?(?!\s*(?:/|per\b|an?\s+(?:gpu|device|chip|accelerator|hour|kwh)))"
        ),
        rf"{_usd}\s+budget",
        read="amount",
    )
    simple(
        "prices.usd_per_device_hour",
        rf"(?:at\s+)?{_usd}\s*(?:/|per|an?)\s*(?:gpu|device|chip|accelerator|tpu|[a-z]*\d+[a-z]*)(?:\s*(?:/|per|an?)\s*|[\s-]*)(?:hours?|hr|h)",
        read="amount",
    )
    simple("prices.usd_per_kwh", rf"(?:at\s+)?{_usd}\s*(?:/|per|an?)\s*kwh", read="amount")
simple("prices.pue", rf"pue{BE}\s*(?P<v>\d(?:\.\d+)?)", read="plain")
rule(
    rf"(?:(?:{MOST}|power(?:\s+(?:limit|cap|budget))?){BE}\s*(?:{MOST})?\s*)(?P<v>\d+(?:\.\d+)?)\s*(?P<u>mw|kw|gw)(?:\s+(?:of\s+)?(?:power|facility))?"
)(
    lambda n, m: n.set(
        "constraints.max_power_mw",
        float(m["v"]) * {"kw": 1e-3, "mw": 1.0, "gw": 1e3}[m["u"].lower()],
        m,
    )
)
simple(
    "constraints.max_lost_work_s",
    rf"(?:lose|losing|loss of)\s+{MOST}\s+{time('v')}(?:\s+of (?:work|progress|training))?",
    rf"(?:max(?:imum)?\s+)?lost work{BE}\s*(?:{MOST})?\s*{time('v')}",
    rf"{MOST}\s+{time('v')}\s+of lost (?:work|progress)",
    rf"rpo{BE}\s*(?:{MOST})?\s*{time('v')}",
    read="seconds",
)
simple(
    "constraints.max_recovery_s",
    (
        rf"(?:recover(?:y|s|ed|ing)?|restart(?:s|ed|ing)?|resum(?:e|es|ed|ing))(?:\s+(?:time|from "
        rf"failures?))?{BE}\s*(?:in|{MOST})?\s*(?:{MOST}\s*)?{time('v')}"
    ),
    rf"rto{BE}\s*(?:{MOST})?\s*{time('v')}",
    read="seconds",
)
simple(
    "constraints.max_checkpoint_stall_s",
    rf"{_CKPT}\s+stalls?{BE}\s*(?:{MOST})?\s*{time('v')}",
    rf"{MOST}\s+{time('v')}\s+(?:of\s+)?(?:{_CKPT}\s+)?stall(?:\s+per\s+{_CKPT})?",
    read="seconds",
)
simple(
    "constraints.max_checkpoint_stall_s",
    rf"(?:(?:without|no)\s+)(?:blocking|stalling)(?:\s+on\s+i/?o)?\s+(?:during|for|on|in|by)\s+{_CKPT}",
    rf"(?:non[\s-]?blocking|async(?:hronous)?)\s+{_CKPT}(?:\s+i/?o)?",
    rf"{_CKPT}\s+(?:must|should|may)\s+not\s+(?:block|stall)(?:\s+training)?",
    rf"(?:without|no)\s+{_CKPT}\s+(?:blocking|stalls?)",
    value=1.0,
    why="not blocking is read as a stall of at most 1 s",
)
_DOMAIN = r"(?P<v>node|machine|host|server|rack|pod)"
_EPOCH = (
    r"(?:\s+without\s+(?:restarting|losing|restart "
    r"of)\s+(?:the\s+)?(?:entire\s+|whole\s+)?(?:job|run|training)(?:\s+from\s+(?:the\s+)?(?:last\s+)?(?:epoch|scratch|beginning|start))?)?"
)


def _domain(m):
    return {"machine": "node", "host": "node", "server": "node"}.get(m["v"].lower(), m["v"].lower())


simple(
    "constraints.survive",
    (
        rf"(?:single[\s-])?{_DOMAIN}\s+(?:failures?|loss(?:es)?|outages?)\s+(?:must|should|need "
        rf"to|have to|can|to)?\s*(?:be\s+)?(?:tolerated|survived){_EPOCH}"
    ),
    (
        rf"(?:must\s+|should\s+)?(?:tolerates?|tolerating|survives?|surviving|tolerant "
        rf"(?:of|to))\s+(?:the\s+|a\s+|any\s+|single\s+)*(?:(?:loss|failures?|outages?)\s+of\s+(?:a\s+|any\s+|one\s+)?)?{_DOMAIN}s?(?:\s+(?:failures?|loss(?:es)?|outages?))?{_EPOCH}"
    ),
    read=_domain,
)
simple(
    "constraints.survive",
    rf"(?:must be\s+)?fault[\s-]tolerant|fault[\s-]tolerance(?:\s+(?:is\s+)?required)?{_EPOCH}",
    value="node",
    why="tolerating faults is read as surviving the loss of a node",
)
simple(
    "reliability.spares",
    r"(?P<v>\d+)\s+(?:hot[\s-]|cold[\s-]|warm[\s-])?spare(?:\s+node)?s?(?:\s+nodes)?",
    read="whole",
)
simple(
    "reliability.checkpoint_stall_s",
    rf"(?:each|a|every)\s+{_CKPT}\s+(?:stalls|blocks|pauses)(?:\s+training)?(?:\s+for)?\s+{time('v')}",
    read="seconds",
)

aside(
    "every plan has to fit in memory",
    r"(?:must|should|has to)\s+fit\s+(?:in|into)\s+(?:gpu\s+|device\s+)?memory",
    r"fits?\s+(?:in|into)\s+(?:gpu\s+|device\s+)?memory",
)
aside(
    "no deadline is the default",
    r"(?:no|without(?: a)?)\s+(?:deadline|time limit|time constraint)s?",
)
aside(
    "no budget limit is the default",
    r"(?:no|without(?: a)?)\s+(?:budget|cost|money)(?:\s+(?:limit|cap|constraint))?s?",
    r"unlimited budget",
)
aside(
    "the plan is searched over data, tensor, pipeline, context and expert parallelism",
    r"(?:using\s+)?(?:[345]d|hybrid|n-?d)[\s-]+paralleli[sz]m",
    r"(?:data|tensor|pipeline|expert|context|sequence|model)(?:,?\s+(?:and\s+)?(?:data|tensor|pipeline|expert|context|sequence|model))*[\s-]+paralleli[sz]m",
)
aside("every design is synchronous", r"synchronous(?:\s+(?:training|sgd|updates|steps))?")
aside(
    "bursts of the data-parallel reduction are part of every step",
    (
        r"(?:the\s+)?(?:network\s+(?:must|should|has to|needs "
        r"to)\s+handle\s+)?(?:(?:massive|frequent|heavy|large|huge|bursty|intense)(?:,?\s+(?:and\s+)?)?)+all-?reduces?(?:\s+traffic)?(?:\s+bursts?)?"
    ),
    r"(?:ring\s+)?all-?reduces?(?:\s+traffic)?(?:\s+bursts?)?",
)
aside("mixed precision is the default", r"mixed[\s-]precision(?:\s+training)?")
aside("one epoch or several: the tokens are what counts", r"single epoch|one epoch")
