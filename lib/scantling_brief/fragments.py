"""Pieces of the patterns: what is written in the same way in many sentences. All are matched with
case ignored, unless a rule says otherwise."""

import re
from collections.abc import Iterable

from scantling import catalogue
from scantling.base.files import table

# racks that accelerators of the catalogue are sold in: nvl72
RACK = "|".join(
    sorted(
        {
            rack
            for row in catalogue.accelerators().values()
            for name in (row.id, *row.aliases)
            for rack in re.findall(r"nvl\d+", name)
        }
    )
)
FAMILY = (
    rf"{'|'.join(table(__file__, 'names')['racks'])}|"
    r"GH200|GB200|GB300|A100|A800|H100|H800|H200|H20|B200|B300"
    r"|V100|L40S|L40|(?:GeForce\s+)?(?:RTX[\s-]?)?(?:3090|4090|5090)|RTX\s?PRO\s?6000"
    r"|(?:RTX[\s-]?)?A6000|A40|A10G?"
    r"|MI250X?(?:[\s-]GCD(?=s?\b))?|MI300X?|MI325X?"
    r"|MI350X?|MI355X?|MI430X|MI440X|MI455X|TPU[\s-]?v?\d[a-z]?x?"
    r"|(?:TPU[\s-]?)?Ironwood(?:[\s(]+(?:TPU[\s-]?)?v?7x?\b\)?)?"
    r"|(?:TPU[\s-]?)?Trillium(?:[\s(]+(?:TPU[\s-]?)?v6e\b\)?)?|Trainium[\s-]?\d?|Trn\d|Gaudi[\s-]?\d|(?:Ascend[\s-]?)?910[BC]"
    r"|v(?:[3-7][epx]?|8[ti])(?=[\s-]+(?:chips?|tpus?|slices?|pods?)\b|-\d|\s+\d+x\d)"
    r"|Rubin(?:[\s-]+(?:Ultra|CPX))?"
)
# what looks like an accelerator and is none of the catalogue's: of NVIDIA, AMD, others
SHAPED = (
    r"(?:GeForce\s+|Quadro\s+)?(?:RTX|GTX)[\s-]?(?:PRO[\s-]?)?[AT]?\d{3,4}(?:[\s-]?(?:Ti"
    r"|Super|Ada))*"
    r"|[345]0[5-9]0(?:[\s-]?Ti)?(?=s?\b)"
    r"|(?:Tesla[\s-]?)?(?:[TPKML](?:4|10|16|40|60|80|100|1000)|A(?:2|10G?|16|30|40))"
    r"|MI\d{2,3}[A-Z]{0,2}|[BHR][1-9]00[A-Z]?|TPU[\s-]?v?\d+[a-z]{0,2}"
    r"|(?:Apple\s+)?M[1-5][\s-](?:Ultra|Max|Pro)"
)
HBM = (
    r"(?:8|12|16|22|23|24|32|40|46|48|64|80|94|96|110|120|128|141|144|180|192|256|268|279|288|432)"
)
# memory of a device beside its name: 80GB, 40G; no rate of a network
MEMORY = (
    rf"(?:\d+\s?Gi?B(?:s(?![a-z/]))?(?!/|ps)|{HBM}\s?G(?!b|/)(?!\s*(?:ib|infiniband|roce|ethernet|efa|nics?|network"
    r"|links?)\b))"
)
MEMORY_OF_EACH = (
    rf"(?:\s*(?:\(|,)?\s*(?:with|w/|having|at|of)?\s*(?:\d+\s?Gi?Bs?|{HBM}\s?G)\s*(?:of\s+)?(?:v-?ram|hbm\w*"
    r"|gpu memory|memory|each|per\s+(?:gpu|card|device|chip))(?:\s+(?:each|per\s+(?:gpu|card"
    r"|device|chip)))?\)?)"
)
FORM = rf"SXM\d?|PCI-?e|{RACK}|NVL|OAM|HBM\d\w?"
ENDLESS = r"(?:nan|inf(?:inity)?)"
MOST = (
    r"(?:(?:at|a) most|no more than|not more than|not (?:to )?exceed"
    r"(?:ing)?|(?:a )?max(?:imum|\.)?(?: of)?|up to|under|below|less than"
    r"|(?:not|never)(?: (?:be|rise|go))? (?:above|over|higher than|more than)"
    r"|within|<=|<|≤|(?:is )?limited to|limit(?: of)?|capped at|cap of)"
)
LEAST = (
    r"(?:at least|(?:a )?min(?:imum|\.)?(?: of)?|more than|above|over"
    r"|>=|>|≥|not? (?:less|fewer|lower) than"
    r"|(?:not|never)(?: (?:be|fall|drop|go))? (?:below|under|lower than|less than)"
    r"|exceeding|(?:a )?target(?:ing)?"
    r"(?: of)?)"
)
BE = (
    r"(?:\s*(?::|=|is|are|be|of|to|at|must be|should be|has to be|must stay"
    r"|must|should|may|shall|stay|stays|kept|reach|reaching))*"
)


def _spelt(names: Iterable[str]) -> str:
    """The pattern of names, the longest first; a space is a dash, a space or nothing."""
    parts = (re.split(r"[\s-]", name) for name in sorted(names, key=len, reverse=True))
    return "|".join(r"[\s-]?".join(map(re.escape, part)) for part in parts)


def _of_catalogue() -> list[str]:
    """Names of accelerators that no pattern has: those of a row that was added. A short one may
    mean anything."""
    begins = re.compile(f"{FAMILY}|{SHAPED}", re.IGNORECASE)
    rows = catalogue.accelerators().values()
    names = (name for row in rows for name in (row.id, *row.aliases))
    return [n for n in names if len(n) > 3 and re.search(r"\d", n) and not begins.match(n)]


_LOOKS = re.compile(SHAPED, re.IGNORECASE)
_NAMED = [*table(__file__, "names")["chips"], *_of_catalogue()]
_CHIPS = [name for name in _NAMED if not _LOOKS.fullmatch(name)]
_TWO_WORDS = _spelt(name for name in _CHIPS if " " in name)
_ONE_WORD = _spelt(name for name in _CHIPS if " " not in name)
ACCELERATOR = (
    r"(?:(?:NVIDIA|AMD|Google|Intel|AWS|Huawei)\s+)?(?:(?P<box>DGX|HGX)[\s-]+)?"
    rf"(?P<pre>{MEMORY}[\s-]+(?:(?:NVIDIA|AMD)\s+)?)?"
    rf"(?P<acc>(?:{_TWO_WORDS}|{FAMILY}|{_ONE_WORD}|{SHAPED})(?:[\s-]?(?:Ti"
    rf"|Super)(?![a-z]))?)(?!(?!x\d)[A-Za-z0-9]{{2}}|(?!x\d)[a-rt-z0-9])"
    rf"(?:'?s(?![a-z]))?(?P<more>{MEMORY_OF_EACH}?(?:[\s-]*\(?(?:{FORM}|{MEMORY}|(?:with|w/)\s*{HBM}\s?Gi?B(?!\s*(?:of\s+)?(?:/|[a-z]*ram\b|host|system|cpu|main|server|local|nvme|ssd|disk|storage|per\b|each\b|of\b|[a-z]*\s*memory))"
    r"|(?<=-)(?:16|32|40|80|96)(?!\d)(?:s(?![a-z]))?|(?<=[AH][18]00\s)(?:40|80)(?=\s*(?:[?,;)]|$|[.]\s)))\)?(?![a-z0-9]))*)"
)
# a shared file system or object store of the catalogue
STORAGE = _spelt(
    name
    for row in catalogue.storages().values()
    if row.kind != "requirement"
    for name in (row.id, *row.aliases, "daos")
)
# a model's maker or series with its version: Llama 5, Kimi K3, Stable LM 2, BERT-large
MAKER = (
    rf"(?:{_spelt(table(__file__, 'names')['makers'])})(?:[\s-]?[a-z]?\d{{1,2}}(?:\.\d+)*(?"
    r"![\w.]|\s*[x×*%]"
    r"|\s+(?:nodes?|gpus?|h\d|a\d|b\d|tokens)))?"
    r"(?:[\s-](?:large|base|small|medium|mini|tiny|nano|xl|xxl|chat|instruct|coder|pro|plus|ultra"
    r"|air|lite|flash|behemoth|next|omni|turbo|nemo|scout|maverick|super|thinking|vision|vl|math|moe|reasoning"
    r"|distill?|guard|audio|embedding)(?![a-z0-9]))*"
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
    r"(?:(?:max(?:imum)?[\s_-])?(?:(?:sequence|context)(?:[\s_-]+(?:length|len|window|size))?"
    r"|seq(?:[\s_-]?len(?:gth)?)?|ctx(?:[\s_-]?len(?:gth)?)?|block[\s_-]?size))"
)
MODEL_NOUN = (
    r"(?:model|moe|dense|llm|transformer|language model|foundation model"
    r"|lm|decoder)"
)
LINK = r"(?:over\s+(?:an?\s+|the\s+)?)?"
OVER = r"(?:(?:over|more than|nearly|almost|close to|some)\s+)?"
GROUP = r"(?:nodes?|hosts?|servers?|machines?|box(?:es)?|systems|instances?|trays)"
# from a count of nodes to what each holds: 4 nodes, each with 8 ...
EACH_HOLDS = (
    rf"(?:\s*[,:(]?\s*(?:(?:and\s+|where\s+)?each(?:\s+(?:one|of\s+(?:them|which)|{GROUP}))?\s+)?"
    r"(?:of|with|w/|having|has|have|holding|containing|contains|running|at|à|a(?=\s+\d)|x|×|\*)?\s*(?:each\s+)?)"
)
# a device, as a rank of the training: per GPU, on each card
PER_DEVICE = (
    r"(?:\s*(?:per|/|a|on each|for each|on every)\s*(?:gpu|device|card|rank|chip|accelerator))"
)
# a figure that has become another
WENT = (
    r"(?:drop(?:s|ped|ping)?|fell|fallen|falls?|falling|went(?:\s+(?:up|down))?|gone(?:\s+(?:up|down))?|up|down"
    r"|declin(?:es?|ed|ing)|(?:in|de)creas(?:es?|ed|ing)|degrad(?:es?|ed|ing)|rose|risen|rises|jump(?:s|ed)|grew"
    r"|(?:im|re)prov(?:es?|ed))"
)
BILLIONS = r"(?P<v>\d+(?:\.\d+)?)[\s-]?(?P<v_s>bn|b|tn|t|billion|trillion)"
PARAMS = r"(?:total\s+)?(?:param(?:eter)?s?)(?:\s+(?:in total|total))?"
DEVICE_NOUN = r"(?:gpus?|accelerators?|devices?|chips?|cards?|tpus?|pcs|pieces?)"
BATCH = (
    r"(?:(?:(?:global|total|effective|(?<![a-z_])train)[\s_-]+)?"
    r"batch(?:[\s_-]+size)?(?:\s*\(global\))?|gbs|bsz?)"
)
OVERHEAD = r"(?:time\s+)?(?:overhead|cost|stall share)"
GOODPUT = r"(?:goodput|effective training time|ettr)"
DOMAIN = r"(?P<v>node|machine|host|server|rack|pod)"
KV_HEADS = r"(?:kv|key[\s-]value)[\s-]*heads?"
CHECKPOINT = r"(?:checkpoint(?:ing|s)?|ckpts?|saves?)"
SITES = (
    r"(?:sites|data\s?cent(?:er|re)s|regions|campuses"
    r"|clusters(?=[^.;?]*\b(?:ms|km|wan|cit(?:y|ies)|apart|remote|regions)\b))"
)
_SAYS = r"(?:says|suggests|allows|recommends|wants)"
OPTIMAL = (
    r"(?:(?:chinchilla|compute)[\s-]optimal(?:ly|ity)?|(?:by|per)\s+chinchilla|chinchilla[\s-](?:sized?|style|scale)"
    rf"|as\s+(?:big|large)\s+as\s+chinchilla(?:\s+{_SAYS})?|chinchilla\s+{_SAYS})"
)
TIMES = r"(?:\s*[x×*]\s*|\s+)"


def number_in(name: str) -> str:
    """A number with its scale: 175B, 1.5 trillion, 1e12; its digits are the group of that name, its
    scale NAME_s."""
    return (
        rf"(?>(?P<{name}>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[+-]?\d{{1,3}})?"
        rf"|\.\d+|(?<![a-z]){ENDLESS}(?=\s|[kmbt]\b))(?:[\s-]?(?P<{name}_s>k|mn|m|bn|b|tn|t"
        rf"|mio\.?|mrd\.?|thousand|millions?|billions?|trillions?)(?![a-z0-9]))?)"
    )


def whole_in(name: str) -> str:
    """A whole number: 16,384, 16K; its digits are the group of that name, its scale NAME_s."""
    return (
        rf"(?>(?P<{name}>\d{{1,3}}(?:,\d{{3}})+|\d+\.\d+(?=\s?k\b)|\d+)(?:\s?(?P<{name}_s>k|(?<=\s)thousand)(?!"
        rf"[a-z0-9]))?)"
    )


# a large sum of operations: 5 ZFLOP, 300 PFLOP/s-days, 2e24 FLOPs; its unit is the group flop
FLOPS = (
    r"(?P<flop>[gtpezy]|giga|tera|peta|exa|zetta|yotta)?[\s-]?f(?:lops?|lop/s)(?:/s)?"
    r"(?P<for>[\s-]*days?)?"
)


def percent_in(name: str) -> str:
    """5 %, 5 percent; the number is the group of that name."""
    return rf"(?>(?P<{name}>\d+(?:\.\d+)?)\s*(?P<{name}_p>%|percent|per cent))"


def time_in(name: str) -> str:
    """A span: 30 days, 90-minute; the number is the group of that name, its unit NAME_u."""
    return (
        rf"(?P<{name}>\d{{1,3}}(?:,\d{{3}})+|\d+(?:\.\d+)?)[\s-]?(?P<{name}_u>ms|seconds?|secs?|minutes?|mins?|hours?"
        rf"|hrs?|days?|weeks?|wks?|months?|quarters?|years?|yrs?|s|h|d)(?![a-z0-9])"
    )
