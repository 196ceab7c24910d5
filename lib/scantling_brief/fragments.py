"""Pieces of the patterns: what is written in the same way in many sentences. All are matched with
case ignored, unless a rule says otherwise."""

FAMILY = (
    r"NVL72|GH200|GB200|GB300|A100|A800|H100|H800|H200|H20|B200|B300"
    r"|V100|L40S|L40|RTX\s?4090|RTX\s?PRO\s?6000|MI250X?|MI300X?|MI325X?"
    r"|MI350X?|MI355X?|MI455X|TPU[\s-]?v?\d[a-z]?x?|(?:TPU[\s-]?)?Ironwood"
    r"|(?:TPU[\s-]?)?Trillium|Trainium[\s-]?\d?|Trn\d|Gaudi[\s-]?\d|(?:Ascend[\s-]?)?910[BC]"
    r"|Rubin"
)
FORM = r"SXM\d?|PCI-?e|NVL72|NVL36|NVL|OAM|HBM\d\w?"
ENDLESS = r"(?:nan|inf(?:inity)?)"
MOST = (
    r"(?:(?:at|a) most|no more than|not more than|not (?:to )?exceed"
    r"(?:ing)?|(?:a )?max(?:imum|\.)?(?: of)?|up to|under|below|less than"
    r"|within|<=|<|≤|(?:is )?limited to|limit(?: of)?|capped at|cap of)"
)
LEAST = (
    r"(?:at least|(?:a )?min(?:imum|\.)?(?: of)?|more than|above|over"
    r"|>=|>|≥|no(?:t)? less than|not below|exceeding|(?:a )?target(?:ing)?"
    r"(?: of)?)"
)
BE = (
    r"(?:\s*(?::|=|is|are|be|of|to|at|must be|should be|has to be|must stay"
    r"|must|should|may|shall|stay|stays|kept|reach|reaching))*"
)
ACCELERATOR = (
    r"(?:(?:NVIDIA|AMD|Google|Intel|AWS|Huawei)\s+)?(?:(?P<box>DGX|HGX)[\s-]+)?"
    rf"(?P<pre>\d+\s?GB[\s-]+(?:(?:NVIDIA|AMD)\s+)?)?(?P<acc>{FAMILY})"
    rf"(?:'?s(?![a-z]))?(?P<more>(?:[\s-]*\(?(?:{FORM}|\d+\s?GB(?!/|ps)"
    r"|(?<=-)(?:16|32|40|80|96)(?!\d))\)?(?![a-z0-9]))*)"
)
EPOCH = (
    r"(?:\s+without\s+(?:restarting|losing|restart of)\s+(?:the\s+)?"
    r"(?:entire\s+|whole\s+)?(?:job|run|training)(?:\s+from\s+(?:the\s+)?"
    r"(?:last\s+)?(?:epoch|scratch|beginning|start))?)?"
)
MFU = (
    r"(?:model[\s-]flop[s/]*[\s-]utili[sz]ation(?:\s*\(mfu\))?|mfu(?:\s*\(model[\s-]flop[s/]*"
    r"[\s-]utili[sz]ation\))?)"
)
CONTEXT = (
    r"(?:(?:sequence|context)(?:\s+(?:length|len|window))?|seq(?:[\s_-]?len"
    r"(?:gth)?)?)"
)
MODEL_NOUN = (
    r"(?:model|moe|dense|llm|transformer|language model|foundation model"
    r"|lm|decoder)"
)
LINK = r"(?:over\s+(?:an?\s+|the\s+)?)?"
OVER = r"(?:(?:over|more than|nearly|almost|close to|some)\s+)?"
GROUP = r"(?:nodes?|hosts?|servers?|machines?|boxes|systems|instances|trays)"
BILLIONS = r"(?P<v>\d+(?:\.\d+)?)[\s-]?(?P<v_s>bn|b|tn|t|billion|trillion)"
PARAMS = r"(?:total\s+)?(?:param(?:eter)?s?)(?:\s+(?:in total|total))?"
DEVICE_NOUN = r"(?:gpus?|accelerators?|devices?|chips?|cards?|tpus?)"
BATCH = r"(?:(?:global\s+)?batch(?:\s+size)?(?:\s*\(global\))?|gbs)"
OVERHEAD = r"(?:time\s+)?(?:overhead|cost|stall share)"
GOODPUT = r"(?:goodput|effective training time|ettr)"
DOMAIN = r"(?P<v>node|machine|host|server|rack|pod)"
KV_HEADS = r"(?:kv|key[\s-]value)[\s-]*heads"
CHECKPOINT = r"(?:checkpoint(?:ing|s)?|saves?)"
SITES = r"(?:sites|data\s?cent(?:er|re)s)"
TIMES = r"(?:\s*[x×*]\s*|\s+)"


def number_in(name: str) -> str:
    """A number with its scale: 175B, 1.5 trillion, 1e12; its digits are the group of that name, its
    scale NAME_s."""
    return (
        rf"(?>(?P<{name}>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[+-]?\d{{1,3}})?"
        rf"|\.\d+|(?<![a-z]){ENDLESS}(?=\s|[kmbt]\b))(?:[\s-]?(?P<{name}_s>k|mn|m|bn|b|tn|t"
        rf"|thousand|millions?|billions?|trillions?)(?![a-z0-9]))?)"
    )


def whole_in(name: str) -> str:
    """A whole number: 16,384, 16K; its digits are the group of that name, its scale NAME_s."""
    return (
        rf"(?>(?P<{name}>\d{{1,3}}(?:,\d{{3}})+|\d+)(?:(?P<{name}_s>k|\sthousand)(?!"
        rf"[a-z0-9]))?)"
    )


def percent_in(name: str) -> str:
    """5 %, 5 percent; the number is the group of that name."""
    return rf"(?>(?P<{name}>\d+(?:\.\d+)?)\s*(?P<{name}_p>%|percent|per cent))"


def time_in(name: str) -> str:
    """A span: 30 days, 90-minute; the number is the group of that name, its unit NAME_u."""
    return (
        rf"(?P<{name}>\d+(?:\.\d+)?)[\s-]?(?P<{name}_u>seconds?|secs?|minutes?|mins?|hours?"
        rf"|hrs?|days?|weeks?|wks?|months?|years?|yrs?|s|h|d)(?![a-z0-9])"
    )
