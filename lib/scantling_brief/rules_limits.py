"""What a line says of limits, prices and failures, and what is understood and sets nothing."""

from scantling.base.typed import CURRENCIES, CURRENCY_SIGNS

from .fragments import (
    ACCELERATOR,
    BE,
    CHECKPOINT,
    DEVICE_NOUN,
    DOMAIN,
    EPOCH,
    FAMILY,
    GOODPUT,
    GROUP,
    LEAST,
    MFU,
    MODEL_NOUN,
    MOST,
    OVERHEAD,
    PARAMS,
    PER_DEVICE,
    STORAGE,
    WENT,
    number_in,
    percent_in,
    time_in,
    whole_in,
)
from .readers import (
    accelerator,
    always,
    amount,
    cents,
    days,
    devices,
    domain,
    every,
    gigabytes,
    hours_of_days,
    megawatts,
    number,
    plain,
    ratio,
    seconds,
    seconds_of,
    share,
    slower,
    span_of_each,
    whole,
    wished,
    word,
    years,
)
from .rule import asks, means, sets

_STRAGGLERS = rf"(?:stragglers?|straggling|slow(?:\s+{GROUP})?)(?:\s+{GROUP})?"
_SPARE = r"(?:(?:hot|cold|warm)[\s-])?(?:spares?|stand-?by)(?:[\s-]+(?:nodes?|machines?|hosts?))?"
_CORRUPTION = r"(?:sdcs?|(?:silent[\s-]+)?(?:data[\s-]+)?corruptions?|bit[\s-]flips?)"
_CHECKS = (
    rf"(?:(?:with|periodic|regular)\s+)*(?:{_CORRUPTION}[\s-]+(?:spot[\s-])?(?:checks?|checking"
    rf"|detection|detectors?|screening|scans?)|(?:spot[\s-])?checks?\s+(?:for|against)\s+{_CORRUPTION})"
)
_MANY = r"(?:several|a\s+few|few|some|a\s+couple\s+of|many)"
_PER = r"(?:/|per|an?|each|every)\s*(?P<v_u>hour|day|week|month)"
_BREAKS = (
    r"(?:(?:fail|crash|hang|die?|break|go(?:es)?\s+down|falls?\s+over|restart|stop)(?:e?s|ed|ing)?"
    r"|f[ae]ll(?:s|en|ing)?\s+off\s+the\s+bus|is\s+lost)"
)
_LOSES = (
    r"(?:(?:we|i|you)\s+)?"
    r"(?:(?:see\s+)?(?:an?\s+|the\s+)?loss\s+of|los(?:es?|ing)|see(?:s|ing)?|have|has)"
)
_ABOUT = r"(?:\s+(?:about|around|roughly|on\s+average))*"
_EVERY = r"\s+(?:(?:once\s+)?(?:every|each)|once\s+in)"
_MTBF = r"(?:mtbf|mttf|mean\s+time\s+(?:between|to)\s+failures?)"

# the job once more, and how long that lasts
_AGAIN = (
    r"(?:(?:recover(?:y|s|ed|ing)?|re-?start(?:s|ed|ing)?|re-?launch(?:es|ed|ing)?|resum(?:e|es|ed|ing|ption))"
    r"(?:\s+times?)?(?:\s+(?:from|after)\s+(?:an?\s+|any\s+|the\s+)?(?:\w+\s+)?(?:failures?|crash(?:es)?|checkpoints?))?)"
)
_BACK = (
    r"(?:(?:(?:be|is|are|get)\s+)?"
    r"back(?:\s+(?:up|online|running|training|in\s+training|up\s+and\s+running))?"
    r"|(?:be\s+|run(?:ning)?\s+|train(?:ing)?\s+)again)"
)
_MUST = r"(?:must|should|shall|has\s+to|have\s+to|needs?\s+to|may|might|ought\s+to|can(?:not|'t)?)"
_TAKE = (
    r"(?:takes?|be(?:\s+(?:done|complete))?|lasts?|needs?|costs?|happens?|completes?"
    r"|finish(?:es)?)"
)
_NEAR = r"(?:(?:about|around|roughly|some|~|currently|now|only|just|typically|usually)\s*)*"
_LASTS = (
    r"(?:\s*(?:[:=~,]|times?|overheads?|costs?|penalty|of|at|in|is|are|was|were|takes?|took|needs?"
    rf"|lasts?|with|us|me|you|it))*\s*{_NEAR}"
)
_EACH_ONE = r"(?:(?:an?|the|our|my|each|every|one|whose)\s+)?"
_AFTER_ONE = (
    r"(?:\s+(?:after|of|from)\s+(?:an?\s+|any\s+|the\s+|each\s+|every\s+)?(?:\w+\s+)?"
    r"(?:failures?|crash(?:es)?|loss|outages?|faults?))?"
)

_SPOT = r"(?:spot|pre-?emptible|interruptible)"
_SPOT_OF = r"(?:instances?|machines?|vms?|capacity|market|pric(?:es?|ing)|nodes?|gpus?|devices)"
_TAKEN = (
    r"(?:(?:(?:gets?|got|are|is|being|be)\s+)?"
    r"(?:interrupted|pre-?empted|evicted|reclaimed|taken\s+(?:back|away)))"
)
_HOURLY = rf"(?:\s*(?:/|per|an?)\s*(?:{DEVICE_NOUN}[\s/-]*)?(?:hours?|hr|h)\b)?"
_CURRENCY = rf"(?:{CURRENCY_SIGNS}|(?:{CURRENCIES})\b)"
_BOUGHT = (
    r"(?:we\s+|i\s+)?(?:bought|paid|purchased|acquired)(?:\s+(?:it|them|these|the\s+(?:cluster|machines?)))?|capex|purchase\s+price"
    r"|acquisition\s+costs?"
)
_OR_MORE = r"(?:\s+(?:or (?:more|better|higher)|at least|min(?:imum)?|floor|target))?"
_OF_EACH = rf"\s*(?:each|apiece|(?:per|/|an?)\s*(?:{DEVICE_NOUN}|{ACCELERATOR}))"
# a sum without a currency: no price of one, nothing that is counted
_BARE_SUM = (
    r"(?P<x>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)[\s-]?(?P<x_s>k|mn|m|bn|mio\.?|mrd\.?|thousand"
    rf"|millions?|billions?)(?![\w-])(?!\s*(?:/|\$|{CURRENCY_SIGNS}|(?:{CURRENCIES}|usd"
    rf"|(?:us\s+)?dollars?|per|each|apiece|an?|tokens?|toks?|{PARAMS}|{DEVICE_NOUN}|steps?"
    r"|samples?)\b))"
)
# a sum, no price of something
_NO_RATE = r"(?!\s*(?:/|per\b|an?\s+(?:gpu|device|chip|accelerator|node|hour|kwh|month|year)))"
_TOKENS_A_SECOND = (
    r"(?:tokens?|toks?)\s*(?:/|per|a)\s*(?:s|sec|second)(?!\s*(?:/|per|a|and|on each)\s*\w)"
)

LIMITS = (
    *sets(
        {"constraints.min_mfu": share},
        rf"(?:(?:keep|keeping|hold|with|an?|at|in)\s+)*{MFU}(?:\s+(?:in|of|at|between|within|from|the"
        r"|band|range))*\s*(?P<v>\d{1,2}(?:\.\d+)?)\s*%?\s*(?:-|–|—|to|and)\s*\d{1,2}(?:\.\d+)?"
        r"\s*(?:%|percent|per cent)(?:\s+(?:band|range|mfu))?",
        r"(?P<v>\d{1,2}(?:\.\d+)?)\s*%?\s*(?:-|–|—|to)\s*\d{1,2}(?:\.\d+)?\s*"
        rf"(?:%|percent|per cent)\s+{MFU}(?:\s+(?:band|range))?",
        why="the lower end of the band is the floor",
    ),
    *sets(
        {"reliability.recovery": always("elastic")},
        r"(?:support(?:s|ing)?\s+|with\s+|must\s+be\s+)?elastic(?:ally)?(?:[\s-]+(?:resiz\w+"
        r"|resizes?|recover\w*|scaling|training|restarts?|shrink\w*|reshap\w+|job))",
        r"(?:drop(?:s|ping)?|shrink(?:s|ing)?\s+(?:by|without))\s+(?:a|the|any)\s+(?:failed|lost)"
        r"\s+(?:gang|replica|node)s?",
        why="the others change their number and go on without what was lost",
    ),
    *sets(
        {"constraints.survive": always("node")},
        rf"(?:with\s+|and\s+|some\s+)*(?:hot|warm)[\s-]{_SPARE}",
        why="spares without a number: the loss of a node is survived, how many is worked out",
    ),
    *sets(
        {"reliability.spares": whole("v")},
        r"(?P<v>\d+)\s+(?:(?:hot|cold|warm)[\s-])?(?:stand-?by|warm|reserve)\s+(?:nodes?|machines?)",
    ),
    *sets(
        {"reliability.sdc.check_every_s": seconds},
        rf"{_CHECKS}\s+(?:every|each|once\s+(?:every|in))\s+{time_in('v')}",
    ),
    *(
        rule
        for fact, one in (("node_mtbf_s", GROUP), ("device_mtbf_s", DEVICE_NOUN))
        for rule in sets(
            {fact: seconds},
            rf"(?:(?:our|an?|the|each)\s+)?(?:per[\s-]*)?{one}(?:[\s-]level)?\s+{_MTBF}{BE}\s*(?:about\s+)?{time_in('v')}",
            rf"{_MTBF}\s+(?:per|of\s+(?:an?|one|each|our|the))\s+{one}{BE}\s*(?:about\s+)?{time_in('v')}",
            rf"{_MTBF}{BE}\s*(?:about\s+)?{time_in('v')}\s+(?:per|for\s+(?:an?|one|each)|an?|each)\s+{one}",
            rf"(?:every|each)\s+(?:single\s+)?{one}\s+{_BREAKS}{_ABOUT}(?:{_EVERY}|\s+once\s+(?:per|an?))\s+{time_in('v')}",
        )
    ),
    *sets(
        {"mtbf_s": seconds},
        r"(?:an?\s+|one\s+)?(?:hardware\s+|node\s+|gpu\s+)?(?:failures?|interruptions?|faults?)"
        rf"\s+(?:roughly\s+|about\s+|around\s+)?(?:every|each)\s+(?:~\s*)?{time_in('v')}",
        rf"{_MTBF}(?:\s+(?:of|for)\s+(?:(?:the|our|a)\s+)?(?:whole\s+)?(?:job|run|cluster|system|training|machine|fleet))?{BE}\s*(?:~\s*|about\s+)?"
        rf"{time_in('v')}",
        rf"(?:job|run|cluster|system|fleet)(?:[\s-]level)?\s+{_MTBF}{BE}\s*(?:~\s*|about\s+)?{time_in('v')}",
        rf"(?:an?\s+|one\s+|1\s+|some\s+|the\s+)?(?:{GROUP}|{DEVICE_NOUN}|job|run|training)\s+{_BREAKS}{_ABOUT}{_EVERY}\s+"
        rf"(?:~\s*)?{time_in('v')}",
        rf"(?:{_LOSES}|(?:takes?|knocks?|brings?)\s+(?:out|down))\s+(?:an?|one|1)\s+(?:{GROUP}|{DEVICE_NOUN}){_ABOUT}{_EVERY}\s+(?:~\s*)?{time_in('v')}",
        rf"(?:{_BREAKS}|an?\s+(?:failure|crash|restart)){_ABOUT}{_EVERY}\s+(?:~\s*)?{time_in('v')}",
        rf"every\s+{time_in('v')},?\s+(?:(?:we|there)\s+(?:have|see|get|is|lose)\s+)?(?:an?|one|1)\s+(?:failure|crash|{GROUP}\s+{_BREAKS})",
    ),
    *sets(
        {"mtbf_s": every},
        rf"(?P<v>\d+(?:\.\d+)?)\s+(?:{GROUP}|{DEVICE_NOUN})\s+{_BREAKS}\s*{_PER}",
        rf"(?:(?:our|the|job|run|training|it|we)\s+)*{_BREAKS}{_ABOUT}\s+(?P<v>\d+(?:\.\d+)?)\s*(?:times|x)\s*"
        r"(?:/|per|an?|each|every|this|(?:in\s+)?(?:the\s+)?(?:last|past))\s*(?P<v_u>hour|day|week|month)",
        rf"{_LOSES}\s+(?P<v>\d+(?:\.\d+)?)\s+(?:{GROUP}|{DEVICE_NOUN})\s*{_PER}",
        rf"(?:(?:{GROUP}|{DEVICE_NOUN})\s+)?(?:failures?|interruptions?|faults?)\s*[:=]\s*(?P<v>\d+(?:\.\d+)?)\s*{_PER}",
        rf"(?P<v>\d+(?:\.\d+)?)\s+(?:hardware\s+|node\s+|gpu\s+)?(?:failures?|interruptions?|faults?|crash(?:es)?)\s*{_PER}",
    ),
    *sets(
        {"mtbf_s": seconds, "nodes": whole("n")},
        rf"(?:an?|one|1)\s+{GROUP}\s+(?:out\s+)?of\s+(?:(?:our|the)\s+)?{whole_in('n')}(?:\s+{GROUP})?\s+{_BREAKS}{_ABOUT}{_EVERY}\s+{time_in('v')}",
    ),
    *sets(
        {"mtbf_s": every, "nodes": whole("n")},
        rf"{_LOSES}\s+(?P<v>\d+(?:\.\d+)?)\s+{GROUP}\s*{_PER},?\s+(?:out\s+)?of\s+(?:our\s+|the\s+)?{whole_in('n')}"
        rf"(?:\s+{GROUP})?",
    ),
    *sets(
        {"mtbf_s": every, "cluster.devices": devices("n")},
        rf"{_LOSES}\s+(?P<v>\d+(?:\.\d+)?)\s+{DEVICE_NOUN}\s*{_PER},?\s+(?:out\s+)?of\s+(?:our\s+|the\s+)?{whole_in('n')}"
        rf"(?:\s+{DEVICE_NOUN})?",
    ),
    *sets(
        {"reliability.failures_per_1000_node_days": plain},
        r"(?P<v>\d+(?:\.\d+)?)\s+(?:failures?|interruptions?|faults?|crash(?:es)?)\s*(?:/|per)\s*(?:1,?000|1k|1000)[\s-]+node[\s-]*days?",
    ),
    *sets(
        {
            "reliability.stragglers.share": share,
            "reliability.stragglers.slowdown": slower("s"),
            "cluster.devices": devices("n"),
            "accelerator": accelerator,
        },
        rf"{percent_in('v')}\s+of\s+(?:(?:the|our|my|these)\s+)?{whole_in('n')}\s*(?:{ACCELERATOR}(?:\s+{DEVICE_NOUN})?|{DEVICE_NOUN})\s+"
        rf"(?:are|being|turn|is|run)\s+(?:slow(?!\w)|stragglers?|{percent_in('s')}\s+slower)",
        why="nodes that turn slow and do not stop",
    ),
    *sets(
        {"reliability.stragglers.share": share, "reliability.stragglers.slowdown": slower("s")},
        rf"{percent_in('v')}\s+(?:of\s+)?(?:the\s+|our\s+)?(?:{GROUP}\s+)?(?:are\s+|being\s+|turn\s+)?{_STRAGGLERS}"
        rf"(?:\s*[,(]?\s*(?:that\s+|which\s+|and\s+)?(?:are\s+|run\s+|each\s+|at\s+)*{percent_in('s')}\s+slower\)?)?",
        why="nodes that turn slow and do not stop",
    ),
    *sets(
        {"checkpoint.interval_s": seconds_of("i"), "cluster.storage": word},
        rf"{CHECKPOINT}\s+(?:to|on|onto|into)\s+(?P<v>{STORAGE})\s+(?:every|each)\s+{time_in('i')}",
    ),
    *sets(
        {"checkpoint.interval_s": seconds},
        rf"{time_in('v')}\s+{CHECKPOINT}(?:\s+(?:interval|period|cadence))?",
    ),
    *sets(
        {"checkpoint.interval_s": always(3600.0)}, rf"hourly\s+{CHECKPOINT}|{CHECKPOINT}\s+hourly"
    ),
    *sets(
        {"checkpoint.interval_s": seconds},
        rf"{time_in('v')}\s+(?:in\s+)?between\s+(?:two\s+|the\s+)?{CHECKPOINT}",
    ),
    *sets({"checkpoint.interval_s": every}, rf"(?P<v>\d+)\s+{CHECKPOINT}\s*{_PER}"),
    *means(
        "repeated steps that find corruptions are part of every plan, as often as they pay", _CHECKS
    ),
    *means(
        "how often the job fails follows from the machine and the fleet's rate",
        r"(?:(?:through|despite|with)\s+)?(?:an?\s+)?(?:hardware\s+|node\s+)?(?:failures?"
        rf"|interruptions?|faults?)\s+(?:roughly\s+|about\s+)?(?:every|each)\s+{_MANY}"
        r"\s+(?:hours?|days?|minutes?)",
    ),
    *means(
        "a claim beside a comparison",
        r"(?:about\s+|up\s+to\s+)?\d+(?:\.\d+)?\s*(?:x|times)\s+(?:the\s+speed(?=\s+of)"
        r"|(?:faster|slower|cheaper|quicker)(?=[^.?!]*\sthan\b))",
    ),
    *means(
        "a time of day",
        r"(?:at\s+)?\d{1,2}(?::\d\d)?\s?[ap]\.?m\.?",
        r"(?:at\s+)?[012]?\d:[0-5]\d(?=\s*(?:[,;.?)]|$))",
    ),
    *means(
        "where it came from",
        r"(?:from|of|since|bought\s+in)\s+20(?:1\d|2[0-5])(?!\d|\s*(?:[x×]|gpus?|devices|cards|chips|nodes|steps|tok|seq|(?:nvidia|amd|intel)\b"
        rf"|(?:{FAMILY})))",
        r"left[\s-]?over(?:\s+from\s+(?:the\s+)?(?:20\d\d|\w+))?",
    ),
    *means(
        "how long it takes is worked out; constraints.deadline_days is a limit",
        rf"(?:for|over|lasts?|lasting|takes?|taking)?\s*{_MANY}\s+(?:weeks?|months?|days?)",
    ),
    *sets(
        {"constraints.deadline_days": days},
        (
            rf"(?:in|{MOST}|deadline{BE}|over|for|takes?|lasting)\s*(?:"
            rf"(?:{MOST}|about|around)\s+)?{time_in('v')}(?:\s+(?:deadline"
            r"|or less|or fewer|at most|maximum|max))?"
        ),
        rf"{time_in('v')}[\s-]+(?:deadline|time limit|maximum|max)",
        (
            r"(?:deadline|time limit|training time|duration|wall[\s-]?time"
            r"|(?:slot|window|reservation)(?:\s+on\s+(?:the|this|that|our)\s+\w+)?)"
            rf"{BE}\s*"
            rf"(?:{MOST}\s*)?{time_in('v')}"
        ),
    ),
    *sets(
        {"constraints.deadline_days": days},
        r"(?P<v>\d+(?:\.\d+)?)[\s-]?(?P<v_u>days?|weeks?|months?)(?!\s*(?:/|per\b|a\s+(?:week|month|year)))",
        r"(?P<v>\d+)\s?(?P<v_u>d)(?!\s*(?:-|parallel|hybrid|torus|mesh|model|plan|layout))",
        why="a time alone is the deadline",
    ),
    *sets(
        {"constraints.deadline_days": plain},
        r"(?:(?:ends?|over|out|due|expires?|finish(?:ed)?|done|ready)\s+)?(?:by|on|until|before|at)\s+day\s+(?P<v>\d+)",
    ),
    *sets(
        {"checkpoint.keep_versions": whole("v")},
        rf"(?:keep(?:ing)?|hold(?:ing)?|stor(?:e|ing))\s+(?:the\s+)?(?:last\s+)?(?P<v>\d+)(?P<v_s>)\s+(?:copies|versions|{CHECKPOINT})",
        rf"(?P<v>\d+)(?P<v_s>)\s+(?:copies|versions|{CHECKPOINT})\s+(?:are\s+)?(?:kept|stored|retained)",
    ),
    *sets(
        {"constraints.max_checkpoint_overhead": share},
        (
            rf"{MOST}\s*{percent_in('v')}\s+(?:of\s+)?(?:{OVERHEAD}\s+"
            rf"(?:for|from|in|due to|of|spent on)\s+{CHECKPOINT}|{CHECKPOINT}\s+{OVERHEAD})"
        ),
        (
            rf"{percent_in('v')}\s+(?:max(?:imum)?\s+)?(?:{CHECKPOINT}\s+{OVERHEAD}"
            rf"|{OVERHEAD}\s+(?:for|from|in|due to|of)\s+{CHECKPOINT})"
            r"(?:\s+(?:at most|max(?:imum)?))?"
        ),
        rf"{CHECKPOINT}\s+(?:(?:must|should|may|can)\s*(?:not|n't)\s+(?:cost|take|eat)\s+(?:us\s+)?(?:more\s+than|over|above)"
        rf"|(?:(?:must|should|may|can)\s+)?(?:costs?|takes?|eats?)\s+{MOST})\s+{percent_in('v')}(?:\s+of\s+(?:the\s+)?(?:run|time|training))?",
        (
            rf"{CHECKPOINT}\s+{OVERHEAD}{BE}\s*(?:{MOST})?\s*{percent_in('v')}"
            r"(?:\s+(?:or less|at most|max(?:imum)?))?"
        ),
        (
            rf"{MOST}\s*{percent_in('v')}\s+(?:of\s+(?:the\s+)?time\s+)?"
            rf"(?:on|in|for)\s+{CHECKPOINT}"
        ),
    ),
    *sets(
        {"mfu": share, "mfu_wished": wished},
        (
            rf"(?:(?:{LEAST}|aim(?:ing|s)?\s+(?:for|at)|want(?:s|ing)?|hop(?:e|ing)\s+for|shoot(?:ing)?\s+for|need(?:s|ing)?"
            rf")\s*)?{percent_in('v')}\+?\s+(?:of\s+)?{MFU}(?:\s+"
            r"(?:or (?:more|better|higher)|at least|minimum|target|goal|floor))?"
        ),
        (
            rf"(?:(?:minimum|min|target)\s+)?{MFU}(?:\s+(?:target|goal|floor|minimum))?{BE}\s*"
            rf"(?:{LEAST})?\s*{percent_in('v')}\+?(?:\s+or (?:more|better|higher))?"
        ),
    ),
    *sets(
        {"mfu": share, "mfu_wished": always(True)},
        r"(?:can|could|will|would|should|does|do)\s+(?:it|we|i|this|that|they)\s+(?:hit|reach|get(?:\s+to)?|achieve|make|see|do)\s+"
        rf"{percent_in('v')}\+?\s+(?:of\s+)?{MFU}",
    ),
    *sets(
        {"mfu": share, "mfu_seen": always(True)},
        rf"{MFU}\s+(?:sits|hovers|stays|stagnates|plateaus|lands|is\s+stuck|stuck)\s+(?:at\s+|about\s+|around\s+|near\s+|~\s*)*"
        rf"{percent_in('v')}",
        rf"{MFU}\s+(?:is\s+|of\s+|at\s+|was\s+)?(?:only|just|currently|now|barely)\s+(?:at\s+|about\s+"
        rf"|around\s+)?{percent_in('v')}",
        rf"{WENT}\s+(?:from\s+)?\d+(?:\.\d+)?\s*%?\s*(?:{MFU}\s+)?to\s+{percent_in('v')}\s+{MFU}",
        rf"{MFU}\s+(?:has\s+)?{WENT}\s+(?:from\s+)?\d+(?:\.\d+)?\s*%?\s*to\s+{percent_in('v')}",
        why="what it is now",
    ),
    *sets(
        {"mfu": plain, "mfu_wished": wished},
        rf"(?:(?:minimum|min|target)\s+)?{MFU}{BE}\s*(?:{LEAST})?\s*(?P<v>0?\.\d+)",
    ),
    *sets(
        {"measured.step_s": seconds},
        r"(?:(?:each|every|one|a|our|my|the)\s+)?(?:step|iteration)s?(?:\s+time)?(?:\s+(?:"
        r"takes?|took|is|are|at|of|needs|requires|lasts))*"
        rf"\s*(?:about\s+|around\s+|~\s*)?{time_in('v')}",
        rf"(?:takes?|took|needs|at)?\s*(?:about\s+|around\s+|~\s*)?{time_in('v')}\s*(?:/|per|a|each)\s*(?:step|iteration|it\b)",
        r"(?:(?:each|every|one|a|our|my|the)\s+)?(?:step|iteration)s?(?:\s+times?)?\s+(?:has\s+|have\s+)?"
        rf"{WENT}\s+(?:from\s+)?{time_in('w')}\s+to\s+{time_in('v')}",
    ),
    *sets(
        {"job.global_batch_tokens": number("n"), "measured.step_s": seconds},
        r"(?:(?:each|every|one|an?|our|my|the)\s+)?(?:step|iteration)\s+(?:of|with)\s+"
        rf"{number_in('n')}[\s-]*tok(?:en)?s?\s+(?:takes?|took|needs|requires|lasts)\s+{_NEAR}{time_in('v')}",
    ),
    *sets(
        {"measured.step_s": every},
        r"(?P<v>\d+(?:\.\d+)?)\s*(?:it|iters?|iterations?|steps?|updates?)\s*(?:/|per|an?)\s*(?P<v_u>s|sec|second|min|minute|hour|h)",
    ),
    *sets(
        {"measured.step_s": span_of_each("n")},
        rf"(?P<n>[1-9]\d*)\s+(?:steps|iterations)\s+(?:takes?|took|need(?:s|ed)?)\s+(?:us\s+)?{_NEAR}{time_in('v')}",
    ),
    *sets(
        {"measured.tokens_per_s_per_device": amount, "hours_of": accelerator},
        rf"{number_in('v')}\s*(?:tokens?|toks?)\s*(?:/|per|a)\s*(?:s|sec|second)\s*(?:/|per|a|on\s+each|on\s+an?)\s*{ACCELERATOR}",
    ),
    *sets(
        {"measured.tokens_per_s_per_device": amount},
        rf"{number_in('v')}\s*(?:tokens|toks?|tgs|tps)\s*(?:/|per|a)\s*(?:s|sec"
        r"|second)\s*(?:/|per|a|and|on each)\s*"
        r"(?:gpu|device|chip|card|accelerator|[abhm][a-z]?\d+[a-z]*)",
        (
            rf"{number_in('v')}\s*(?:tokens?|toks?)\s*(?:/|per)\s*(?:gpu|device|chip"
            r"|card)\s*(?:/|per|a)\s*(?:s|sec|second)"
        ),
        rf"(?:tps|tgs){BE}\s*{number_in('v')}{PER_DEVICE}",
        rf"wps(?:\s*(?:[:=]|is|are|of|at|only|just|about|around))*\s*{number_in('v')}{PER_DEVICE}?",
        rf"{number_in('v')}\s*(?:tgs|wps)",
        rf"{WENT}\s+(?:from\s+)?{number_in('w')}\s*(?:(?:tokens?|toks?)\S*\s+)?to\s+{number_in('v')}\s*(?:tokens?|toks?)\s*(?:/|per)\s*s(?:ec|econd)?\s*"
        r"(?:/|per)\s*(?:gpu|device|chip|card)",
        r"(?:(?:tokens?|toks?)\s*(?:/|per)\s*(?:s|sec|second)|tps|tgs)\s*(?:/|per)\s*(?:gpu|device|chip|card)\s*(?:of|is|at|=|:)?\s*"
        rf"{number_in('v')}",
    ),
    *sets(
        {"tokens_per_s_node": amount},
        rf"{number_in('v')}\s*(?:tokens?|toks?)\s*(?:/|per|a)\s*(?:s|sec|second)\s*(?:/|per|a|on\s+each)\s*{GROUP}",
    ),
    *sets(
        {"tokens_per_s": amount},
        rf"(?:total|aggregate|overall|global|cluster(?:-wide)?|whole)?\s*throughput{BE}\s*(?:about\s+|~\s*)?{number_in('v')}\s*"
        rf"{_TOKENS_A_SECOND}",
        rf"(?:total|aggregate|overall)(?:\s+of)?\s+{number_in('v')}\s*{_TOKENS_A_SECOND}",
        rf"{number_in('v')}\s*{_TOKENS_A_SECOND}\s*[,(]?\s*(?:in\s+total|total|aggregate|overall|altogether|across\s+(?:all|the"
        r"|our)(?:\s+\w+)?|for\s+the\s+whole\s+\w+|cluster-wide)\)?",
    ),
    *sets(
        {"tflops": number("v"), "mfu_wished": wished},
        rf"(?:(?:{LEAST}|aim(?:ing|s)?\s+(?:for|at)|want(?:s|ing)?|hop(?:e|ing)\s+for|need(?:s|ing)?)\s*)?"
        r"(?P<v>\d{2,4}(?:\.\d+)?)(?P<v_s>)\s*(?:model\s+)?(?:tflops?(?:/s)?|tflop/s)"
        rf"\s*(?:/|per|a|on\s+each)\s*(?:{DEVICE_NOUN}|{ACCELERATOR})",
    ),
    *sets(
        {"tflops": number("v"), "tflops_alone": always(True), "mfu_wished": wished},
        rf"(?:(?:{LEAST}|aim(?:ing|s)?\s+(?:for|at)|want(?:s|ing)?|hop(?:e|ing)\s+for|need(?:s|ing)?)\s*)?"
        r"(?P<v>\d{2,4}(?:\.\d+)?)(?P<v_s>)\s*(?:model\s+)?(?:tflops?(?:/s)?|tflop/s)(?!\s*(?:/|per\b|an?\b|on\s+each|peak|dense|sparse))",
    ),
    *sets(
        {"measured.memory_gb": gigabytes},
        r"(?:peak(?:s|ed)?(?:\s+(?:memory|at|of))*)\s*(?P<v>\d+(?:\.\d+)?)\s?(?P<u>GB)",
    ),
    *sets(
        {"checkpoint.interval_s": seconds},
        (
            rf"(?:{CHECKPOINT}|checkpointed|saved|save)\s+(?:interval\s*)?(?:of|is|every|each"
            rf"|:|=)\s*{time_in('v')}"
        ),
    ),
    *sets(
        {"constraints.min_goodput": share},
        rf"(?:{LEAST}\s*)?{percent_in('v')}\s+(?:of\s+)?{GOODPUT}{_OR_MORE}",
        rf"{GOODPUT}{BE}\s*(?:{LEAST})?\s*{percent_in('v')}{_OR_MORE}",
    ),
    *sets(
        {"constraints.budget_usd": amount},
        rf"(?:(?:budget|cost|spend|price|ceiling)(?:\s+(?:cap|limit|ceiling))?{BE}\s*)?(?:(?:{MOST}|for)\s*)*"
        rf"\$\s*{number_in('v')}(?:\s+(?:budget|cap|limit|max(?:imum)?|or less|at most|in total"
        rf"|total|to spend))*{_NO_RATE}",
        rf"budget(?:\s+(?:cap|limit))?{BE}\s*(?:{MOST}\s*)?{number_in('v')}"
        r"(?=\s*(?:$|[,.;:)?!]|(?:for|on|in|to|and|total|with)\b))",
        why="a sum alone is the budget",
    ),
    *sets(
        {"constraints.budget_usd": number("x")},
        rf"(?:costs?|spend(?:ing)?|pay(?:ing)?)(?:\s+us)?{BE}\s*{MOST}\s*{_BARE_SUM}",
        why="no currency is said: dollars",
    ),
    *sets(
        {"prices.usd_per_device_hour": amount},
        r"(?:(?:at|@|for|from)|on[\s-]demand(?:\s+(?:at|for|is))?)\s*\$\s*(?P<v>\d{1,2}(?:\.\d+)?)(?P<v_s>)(?![\d,.]*\d|\s*(?:[kmb]|mn|mio|bn|thousand"
        r"|million|billion)\b|\s*(?:/|per\b|an?\b|budget|in total|total))(?:\s+each)?",
        r"@\s*(?P<v>\d{1,2}\.\d{1,2})(?P<v_s>)(?!\d|\s*(?:[kmbtx%]\b|%|h\b|hours?|days?|weeks?|[tgm]i?b|[tgm]hz|[tp]flop|€|£|¥|[a-z]*(?:eur|gbp|rmb|yuan)))",
        r"(?:at|for)\s+(?P<v>\d{1,2}\.\d{1,2})(?P<v_s>)(?=\s*(?:[?;)]|,(?!\d)|\.(?!\d)|$)|\s+(?:or|vs\.?|versus|and|each)\b)",
        why="some dollars for a device are those of an hour",
    ),
    *sets(
        {"prices.usd_per_device_hour": amount},
        r"(?:(?:gpu|device|hourly)\s+)?(?:price|rate|rent)s?\s+(?:goes|go|rises?|climbs?|drops?|falls?|went|rose|fell|jumps?|moves?|increases?|decreases?)"
        r"\s+(?:up\s+|down\s+)?(?:to|at)\s*\$\s*(?P<v>\d{1,2}(?:\.\d+)?)(?P<v_s>)(?![\d,.]*\d|\s*[kmb]\b)"
        r"(?:\s*(?:/|per|an?)\s*(?:gpu[\s/-]*)?(?:hours?|hr|h))?",
    ),
    *sets(
        {"prices.usd_per_node_hour": amount},
        (
            rf"(?:at\s+)?\$\s*{number_in('v')}\s*(?:/|per|an?|each)\s*(?:{GROUP}(?:\s*(?:/|per|an?)\s*"
            r"|[\s-]*)(?:hours?|hr|h)|(?:hours?|hr|h)\s*(?:/|per|an?|each|for\s+(?:a|each))\s*"
            rf"(?:whole\s+)?{GROUP})"
        ),
        (
            rf"(?:(?:per|a|each)\s+)?(?:{GROUP})\s+(?:rental|rented|price|costs?|costing|is)?\s*(?:at|for|:|=|of)?\s*"
            rf"\$\s*{number_in('v')}\s*(?:/|per|an)\s*(?:hours?|hr|h)(?!\s*(?:/|per)\s*\w)"
        ),
    ),
    *sets(
        {"prices.usd_per_device_hour": amount},
        (
            rf"(?:at\s+)?\$\s*{number_in('v')}\s*(?:/|per|an)\s*(?:hours?"
            r"|hr|h)(?:\s+each)?"
            rf"{PER_DEVICE}?"
        ),
        rf"(?:price|cost|rate)\s+(?:per|an?|/|of\s+an?)\s*(?:gpu|device|card|chip)?[\s-]*(?:hours?|hr|h){BE}\s*\$\s*{number_in('v')}",
        rf"(?:an?\s+)?(?:gpu|device|card|chip)[\s-]hours?\s+(?:costs?|is|are|at|for)\s+\$\s*{number_in('v')}",
        rf"(?:at|@|for)\s*{number_in('v')}\s*(?:/|per|an)\s*(?:gpu[\s/-]*)?(?:hours?|hr|h)(?:\s+each)?",
        why="an hourly price alone is that of a device",
    ),
    *sets(
        {"prices.usd_per_device_hour": amount, "hours_of": accelerator},
        (
            rf"(?:at\s+)?\$\s*{number_in('v')}\s*(?:/|per|an?)\s*"
            rf"(?:gpu|device|chip|accelerator|tpu|{ACCELERATOR})(?:\s*"
            r"(?:/|per|an?)\s*|[\s-]*)(?:hours?|hr|h)"
        ),
    ),
    *sets(
        {"capex_each": amount},
        rf"(?:{_BOUGHT}){BE}\s*(?:for\s+|at\s+|about\s+)*\$\s*{number_in('v')}{_OF_EACH}",
        rf"\$\s*{number_in('v')}{_OF_EACH}\s+(?:to\s+buy|when\s+(?:we|i)\s+bought|up-?front|capex|purchased?)",
    ),
    *sets(
        {"prices.owned.capex_usd": amount},
        rf"(?:{_BOUGHT}){BE}\s*(?:for\s+|at\s+|about\s+)*\$\s*{number_in('v')}",
        rf"\$\s*{number_in('v')}\s+(?:of\s+)?(?:capex|up-?front|purchase(?:\s+price)?|to\s+buy(?:\s+(?:it|them))?)",
    ),
    *sets(
        {"prices.owned.capex_usd": number("x"), "no_currency": always(True)},
        rf"(?:{_BOUGHT}){BE}\s*(?:for\s+|at\s+|about\s+|around\s+)*{_BARE_SUM}",
    ),
    *sets(
        {
            "prices.owned.capex_usd": number("x"),
            "prices.owned.years": years,
            "no_currency": always(True),
        },
        r"(?:bought\s+)?for\s+(?P<x>\d+(?:\.\d+)?)[\s-]?(?P<x_s>k|mn|m|mio\.?|thousand|millions?)\s+(?:(?:and\s+)?(?:written\s+off|amorti[sz]ed|depreciated)\s+)?(?:over|across)\s+"
        r"(?P<v>\d+(?:\.\d+)?)[\s-]?(?P<v_u>years?|yrs?)",
    ),
    *sets(
        {"prices.owned.years": years},
        rf"(?:amorti[sz]ed|depreciated|written\s+off|owned|kept)\s+(?:over|for|in)\s+{time_in('v')}",
        rf"{time_in('v')}[\s-]+(?:amorti[sz]ation|depreciation|write-?off|lifetime|useful\s+life)",
        rf"(?:amorti[sz]ation|depreciation|write-?off|lifetime)(?:\s+(?:of|over|in))*\s*{time_in('v')}",
    ),
    *sets(
        {"owned": always(True)},
        r"(?:we|i)\s+(?:already\s+)?(?:own(?!\s+no\b)|(?:have\s+)?(?:bought|purchased)(?=\s+\d))",
        r"(?:our|my)\s+own(?=\s+(?:\d|cluster|machines?|hardware|gpus?|servers?|data\s?cent))",
        r"owned(?:\s+(?:cluster|machines?|hardware))?",
        r"on[\s-]prem(?:ises?)?",
    ),
    *sets({"years": years}, r"(?P<v>\d+(?:\.\d+)?)[\s-]?(?P<v_u>years?|yrs?)(?!\s*(?:/|per\b))"),
    *sets(
        {"prices.kind": always("reserved")},
        r"(?:with\s+)?(?:an?\s+|the\s+)?(?:reserved\s+)?(?:yearly|annual|\d+[\s-](?:years?|months?|yr)|one[\s-]year)[\s-]+(?:commit(?:ment)?|reserv(?:ation|ed)|term|contract|lease)",
    ),
    *sets(
        {"prices.spot.usd_per_device_hour": amount},
        rf"{_SPOT}(?:\s+{_SPOT_OF})*\s*[,(:]?\s*(?:at|for|@|costs?|is|are|of|:|=)?\s*"
        rf"\$\s*{number_in('v')}{_HOURLY}\)?",
        rf"{_SPOT}(?:\s+{_SPOT_OF})*\s*[,(:]?\s*(?:at|for|@)\s*(?P<v>\d{{1,2}}\.\d{{1,2}})(?P<v_s>){_HOURLY}(?![\w%]|\s*{_CURRENCY})",
    ),
    *sets(
        {"prices.spot.usd_per_device_hour": amount},
        rf"(?:at\s+|for\s+|@\s*)?\$\s*{number_in('v')}{_HOURLY}\s*[,(]?\s*(?:on\s+(?:the\s+)?|in\s+the\s+)?{_SPOT}(?:\s+{_SPOT_OF})?\)?",
    ),
    *sets(
        {"taken_back_s": seconds},
        rf"{_TAKEN}{_ABOUT}{_EVERY}\s+(?:~\s*)?{time_in('v')}(?:\s+on\s+average)?",
        rf"(?:an?\s+)?(?:pre-?emptions?|evictions?|reclaims?){_ABOUT}{_EVERY}\s+(?:~\s*)?{time_in('v')}(?:\s+on\s+average)?",
    ),
    *sets(
        {"taken_back_s": every},
        rf"{_TAKEN}{_ABOUT}\s+(?P<v>\d+(?:\.\d+)?)\s*(?:times|x)?\s*{_PER}",
        rf"(?P<v>\d+(?:\.\d+)?)\s+(?:pre-?emptions?|evictions?|reclaims?)\s*{_PER}",
    ),
    *sets(
        {"prices.kind": always("on-demand")},
        r"on[\s-]demand(?:\s+(?:price|pricing|rates?|instances?))?",
    ),
    *sets(
        {"prices.usd_per_kwh": amount}, rf"(?:at\s+)?\$\s*{number_in('v')}\s*(?:/|per|an?)\s*kwh"
    ),
    *sets(
        {"prices.usd_per_kwh": plain},
        rf"(?:(?:electricity|power|energy)(?:\s+(?:price|costs?|rate))?{BE}\s*)?(?:at\s+)?(?P<v>0?\.\d+)\s*(?:/|per|an?)\s*kwh",
        why="no currency is said: dollars",
    ),
    *sets(
        {"prices.usd_per_kwh": cents},
        r"(?:electricity|power|energy)(?:\s+(?:price|costs?|rate))?(?:\s*(?:is|are|at|of|:|=))*\s*(?P<v>\d+(?:\.\d+)?)\s*(?:¢|(?:us\s+)?cents?|ct)(?!\s*(?:/|per))",
        r"(?:at\s+)?(?P<v>\d+(?:\.\d+)?)\s*(?:¢|(?:us\s+)?cents?|ct|c)\s*(?:/|per|an?)\s*kwh",
    ),
    *sets(
        {"job.target_loss": plain},
        (
            rf"(?:(?:target|final|training)\s+)?loss{BE}\s*(?:{MOST}\s*)?"
            r"(?P<v>[1-9]\.\d+)(?:\s*nats)?"
        ),
    ),
    *sets(
        {"bare_sum": number("x")},
        rf"for\s+(?=[\d.,]+[\s-]?m){_BARE_SUM}(?!\s*(?:over|across|context|ctx|{MODEL_NOUN})\b)",
    ),
    *sets({"prices.pue": plain}, rf"pue{BE}\s*(?P<v>\d(?:\.\d+)?)", r"(?P<v>[12]\.\d+)\s+pue"),
    *sets(
        {"constraints.max_power_mw": megawatts},
        (
            rf"(?:(?:{MOST}|power(?:\s+(?:limit|cap|budget|envelope))?){BE}\s*"
            rf"(?:{MOST})?\s*)(?P<v>\d+(?:\.\d+)?)\s*(?P<u>mw|kw|gw)(?:\s+"
            r"(?:of\s+)?(?:power|facility))?"
        ),
        r"(?:max(?:imum)?|peak|total)\s+power\s*(?:of\s*)?(?P<v>\d+(?:\.\d+)?)\s*(?P<u>mw|kw|gw)",
        r"(?:have|has|in|into|with|our|an?|the)\s+(?:an?\s+|our\s+|only\s+)*(?P<v>\d+(?:\.\d+)?)[\s-]*(?P<u>mw|kw|gw)\s+"
        r"(?:data\s?cent(?:er|re)|site|facility|campus|hall|building)",
        r"is\s+(?P<v>\d+(?:\.\d+)?)\s*(?P<u>mw|kw|gw)\s+(?:enough|sufficient|ok)",
        r"(?:will|would|does|do|can|could)\s+(?P<v>\d+(?:\.\d+)?)\s*(?P<u>mw|kw|gw)\s+(?:feed|power|supply|run|carry|support|be\s+enough|do|suffice)"
        r"(?:\s+for)?",
        r"(?P<v>\d+(?:\.\d+)?)\s*(?P<u>mw|kw|gw)\s+(?:of\s+)?(?:it\s+(?:load|power|capacity)|critical\s+(?:load|it)"
        r"|(?:power\s+)?available(?:\s+power)?)",
        (
            r"(?P<v>\d+(?:\.\d+)?)\s*(?P<u>mw|kw|gw)\s+(?:power\s+)?(?:cap|limit|budget"
            r"|envelope|max(?:imum)?)"
        ),
    ),
    *sets(
        {"constraints.max_lost_work_s": seconds},
        (
            rf"(?:lose|losing|loss of)\s+{MOST}\s+{time_in('v')}(?:\s+of "
            r"(?:work|progress|training))?(?:\s+(?:per|a|at\s+(?:a|each))\s+(?:failure|crash|restart|interruption))?"
        ),
        rf"(?:not|never)\s+(?:cost|lose|waste)\s+(?:us\s+)?more\s+than\s+{time_in('v')}\s+of\s+(?:work|progress|training)",
        rf"(?:max(?:imum)?\s+)?lost work{BE}\s*(?:{MOST})?\s*{time_in('v')}",
        rf"{MOST}\s+{time_in('v')}\s+of\s+(?:lost\s+(?:work|progress)|(?:work|progress)\s+lost)",
        rf"rpo{BE}\s*(?:{MOST})?\s*{time_in('v')}",
    ),
    *sets(
        {"constraints.max_recovery_s": seconds},
        rf"{_AGAIN}(?:\s+{_MUST})?(?:\s+{_TAKE})?{BE}\s*(?:in\s+)?{MOST}\s*{time_in('v')}{_AFTER_ONE}",
        rf"{_AGAIN}\s+{_MUST}(?:\s+(?:not|never))?(?:\s+{_TAKE})?(?:\s+(?:in|longer\s+than|more\s+than|over))?\s+{time_in('v')}{_AFTER_ONE}",
        rf"{_MUST}\s+(?:be\s+able\s+to\s+)?{_AGAIN}\s+in\s+{time_in('v')}{_AFTER_ONE}",
        rf"(?:recover|resume|{_BACK})\s+in\s+{time_in('v')}{_AFTER_ONE}",
        rf"{_BACK}\s+{MOST}\s*{time_in('v')}{_AFTER_ONE}",
        rf"(?:{MOST}|longest)\s+(?:allowed\s+|tolerable\s+)?{_AGAIN}{BE}\s*{time_in('v')}",
        rf"{MOST}\s*{time_in('v')}\s+(?:to\s+(?:{_BACK}|(?:recover|restart|resume)(?:\s+(?:it|training|the\s+\w+))?)|(?:of|for)\s+(?:an?\s+)?"
        rf"(?:recovery|restart)){_AFTER_ONE}",
        rf"(?:rto|recovery\s+time\s+objective){BE}\s*(?:{MOST})?\s*{time_in('v')}",
    ),
    *asks(
        "the longest that is allowed (constraints.max_recovery_s), or how long it takes "
        "(reliability.restart_s)?",
        rf"(?:recovery|resum(?:ing|ption))(?:\s+times?)?(?:\s+(?:from|after)\s+(?:an?\s+|any\s+)?(?:\w+\s+)?failures?)?{BE}\s*{time_in('v')}",
        choices=("constraints.max_recovery_s", "reliability.restart_s"),
    ),
    *sets(
        {"constraints.max_checkpoint_stall_s": seconds},
        rf"{CHECKPOINT}\s+stalls?{BE}\s*(?:{MOST})?\s*{time_in('v')}",
        (
            rf"{MOST}\s+{time_in('v')}\s+(?:of\s+)?(?:{CHECKPOINT}\s+)?stall"
            rf"(?:\s+per\s+{CHECKPOINT})?"
        ),
    ),
    *sets(
        {"constraints.max_checkpoint_stall_s": always(1.0)},
        (
            r"(?:(?:without|no)\s+)(?:blocking|stalling)(?:\s+on\s+i/?o)?\s+"
            rf"(?:during|for|on|in|by)\s+{CHECKPOINT}"
        ),
        rf"(?:non[\s-]?blocking|async(?:hronous)?)\s+{CHECKPOINT}(?:\s+i/?o)?",
        (
            rf"{CHECKPOINT}\s+(?:must|should|may)\s+not\s+(?:block|stall)"
            r"(?:\s+training)?"
        ),
        rf"(?:without|no)\s+{CHECKPOINT}\s+(?:blocking|stalls?)",
        why="not blocking is read as a stall of at most 1 s",
    ),
    *sets(
        {"constraints.survive": domain},
        (
            rf"(?:single[\s-])?{DOMAIN}\s+(?:failures?|loss(?:es)?|outages?)\s+"
            r"(?:must|should|need to|have to|can|to)?\s*(?:be\s+)?(?:tolerated"
            rf"|survived){EPOCH}"
        ),
        rf"(?:an?\s+|any\s+|one\s+|the\s+|single\s+)*{DOMAIN}\s+(?:failures?|loss(?:es)?|outages?|crash(?:es)?)\s+"
        r"(?:must|should|may|shall|can)(?:\s+not|n't|not)\s+(?:stop|kill|end|interrupt|take\s+down|bring\s+down|hurt|halt|abort)"
        r"(?:\s+(?:the|our|a)?\s*(?:job|run|training|us|everything))?",
        (
            r"(?:must\s+|should\s+)?(?:tolerates?|tolerating|survives?"
            r"|surviving|tolerant (?:of|to))\s+(?:the\s+|a\s+|any\s+"
            r"|single\s+)*(?:(?:loss|failures?|outages?)\s+of\s+(?:a\s+"
            rf"|any\s+|one\s+)?)?{DOMAIN}s?(?:\s+(?:failures?|loss(?:es)?"
            rf"|outages?))?{EPOCH}"
        ),
    ),
    *sets(
        {"constraints.survive": always("node")},
        (
            r"(?:must be\s+)?fault[\s-]tolerant|fault[\s-]tolerance(?:\s+"
            rf"(?:is\s+)?required)?{EPOCH}"
        ),
        why="tolerating faults is read as surviving the loss of a node",
    ),
    *sets(
        {"spares_of_each": ratio("v", "n")},
        rf"{whole_in('v')}\s+(?:(?:hot|cold|warm)[\s-])?spare(?:s|\s+(?:nodes?|machines?))?\s+(?:per|in\s+every|for\s+every|every)\s+{whole_in('n')}"
        rf"(?:\s+{GROUP})?",
    ),
    *sets(
        {"reliability.spares": whole("v")},
        (
            r"(?P<v>\d+)\s+(?:hot[\s-]|cold[\s-]|warm[\s-])?spare(?:\s+node)?s?"
            r"(?:\s+nodes)?"
        ),
        r"(?P<v>\d+)\s+nodes?\s+(?:as\s+|of\s+)?(?:hot[\s-]|cold[\s-]|warm[\s-])?spares?",
    ),
    *sets(
        {"checkpoint.interval_s": seconds_of("i"), "reliability.checkpoint_stall_s": seconds},
        rf"(?:{CHECKPOINT}|save)\s+every\s+{time_in('i')}\s*[,(]?\s*(?:each\s+|that\s+|which\s+|and\s+)*(?:cost(?:s|ing)?|stall(?:s|ing)?)\s+(?:us\s+)?"
        rf"{time_in('v')}(?:\s+each)?\)?",
    ),
    *asks(
        "does training stand still meanwhile (reliability.checkpoint_stall_s), or go on "
        "(reliability.checkpoint_durable_s)?",
        rf"(?:(?:each|an?|every|one|our|the)\s+)?(?:{CHECKPOINT}|(?:writing|saving|storing)(?:\s+(?:it|one|(?:an?\s+|the\s+)?{CHECKPOINT}))?)\s+"
        rf"(?:takes?|took|needs?|lasts?|costs?)\s+(?:us\s+)?{_NEAR}{time_in('v')}",
        choices=("reliability.checkpoint_stall_s", "reliability.checkpoint_durable_s"),
    ),
    *sets(
        {"reliability.checkpoint_stall_s": seconds},
        rf"(?:(?:each|a|every|one|our)\s+)?{CHECKPOINT}\s+(?:takes?|took|needs?|lasts?)\s+{_NEAR}{time_in('v')}\s*(?:,|and)\s*(?:it\s+)?"
        r"(?:stops|blocks|pauses|halts|freezes)(?:\s+(?:training|us|everything|(?:the|our)\s+\w+))?",
        (
            rf"(?:(?:each|a|every|one|our)\s+)?(?:{CHECKPOINT}|saving)\s+(?:stalls?|blocks?|pauses?|halts?|freezes?)"
            rf"(?:\s+(?:training|us|everything|(?:the|our)\s+\w+))?(?:\s+for)?\s+{time_in('v')}"
        ),
    ),
    *sets(
        {"reliability.restart_s": seconds},
        rf"{_EACH_ONE}(?:job\s+|cold\s+|warm\s+|full\s+)?(?:re-?starts?|re-?launch(?:es)?|(?:re-?start|re-?launch)(?:ing|ed))(?:\s+(?:the\s+)?(?:job|run|training))?"
        rf"{_LASTS}{time_in('v')}{_AFTER_ONE}",
        rf"{_EACH_ONE}(?:recover(?:y|ing|s|ed)|resum(?:ing|ption|es|ed))(?:\s+from\s+(?:an?\s+)?(?:failures?|checkpoints?))?\s+"
        rf"(?:takes?|took|costs?|needs?|in|after){_LASTS}{time_in('v')}{_AFTER_ONE}",
        rf"(?:takes?|took|needs?|with|have|see)\s+(?:us\s+)?{_NEAR}{time_in('v')}\s+(?:to|until)\s+(?:it\s+|we\s+|(?:the\s+)?(?:job|run|training)\s+)?"
        rf"(?:{_BACK}|re-?starts?|re-?launch(?:es)?|recovers?|resumes?)(?:\s+(?:it|training|the\s+\w+))?{_AFTER_ONE}",
        rf"{time_in('v')}[\s-]+(?:to\s+(?:restart|relaunch)(?:\s+(?:it|training|the\s+\w+))?|(?:per|for\s+(?:an?|each|every))\s+restart"
        r"|re-?starts?(?:\s+(?:times?|overhead|cost|each))?(?!\s+(?:every|once|per\b)))",
    ),
    *sets(
        {"reliability.detect_s": seconds},
        rf"detection(?:\s+time)?\s+(?:takes?|took|is|of)\s+(?:us\s+)?{time_in('v')}",
        rf"(?:detect(?:ing|ion(?:\s+of)?)|notic(?:ing|e)|finding)\s+(?:an?\s+|the\s+)?(?:hang|hung\s+job|failure|fault|crash)(?:e?s)?"
        rf"(?:\s+(?:takes?|took|costs?|needs?))?\s+(?:us\s+)?{time_in('v')}",
    ),
    *sets(
        {"reliability.repair_s": seconds},
        rf"(?:(?:an?|the|each)\s+)?(?:node\s+)?(?:repairs?|repairing\s+(?:an?|the|each)\s+node)\s+(?:takes?|took|costs?|needs?)\s+(?:us\s+)?{time_in('v')}",
    ),
    *sets(
        {"device_hours": number("v"), "hours_of": accelerator},
        (
            r"(?:(?:budget|grant|allocation|allowance)(?:\s+of)?[\s:]*)?"
            rf"(?:{MOST}\s*|only\s+)?{number_in('v')}[\s-]*(?:{DEVICE_NOUN}"
            rf"|{ACCELERATOR}(?:[\s-]*{DEVICE_NOUN})?)(?:\s|-)?(?:hours?"
            r"|hrs?)"
        ),
    ),
    *sets(
        {"device_hours": hours_of_days, "hours_of": accelerator},
        r"(?:(?:budget|grant|allocation|allowance)(?:\s+of)?[\s:]*)?"
        rf"(?:{MOST}\s*|only\s+)?{number_in('v')}[\s-]*(?:{DEVICE_NOUN}|{ACCELERATOR}(?:[\s-]*{DEVICE_NOUN})?)-(?P<unit>days?|weeks?|months?|years?)",
        why="device-days are 24 device-hours each",
    ),
    *sets(
        {"node_hours": number("v")},
        r"(?:(?:budget|grant|allocation|allowance)(?:\s+of)?[\s:]*)?"
        rf"(?:{MOST}\s*|only\s+)?{number_in('v')}[\s-]*{GROUP}[\s-]*(?:hours?|hrs?)",
    ),
    *means(
        "every plan has to fit in memory",
        r"(?:must|should|has to)\s+fit\s+(?:in|into)\s+(?:gpu\s+|device\s+)?memory",
        r"fits?\s+(?:in|into)\s+(?:gpu\s+|device\s+)?memory",
    ),
    *means(
        "no deadline is the default",
        r"(?:no|without(?: a)?)\s+(?:deadline|time limit|time constraint)s?",
    ),
    *means(
        "no budget limit is the default",
        (
            r"(?:no|without(?: a)?)\s+(?:budget|cost|money)(?:\s+(?:limit"
            r"|cap|constraint))?s?"
        ),
    ),
    *means(
        "the plan is searched over data, tensor, pipeline, context and expert parallelism",
        r"(?:using\s+)?(?:[345]d|hybrid|n-?d)[\s-]+parallel(?:i[sz]m|i[sz]ed|i[sz]ation)?",
        (
            r"(?:data|tensor|pipeline|expert|context|sequence|model)"
            r"(?:,?\s+(?:and\s+)?(?:data|tensor|pipeline|expert|context"
            r"|sequence|model))*[\s-]+paralleli[sz]m"
        ),
        r"unlimited budget",
    ),
    *means(
        "it goes with tensor parallelism in every plan",
        r"(?:with\s+)?(?:megatron[\s-]+)?(?:sequence|seq)[\s-]par(?:allel(?:ism)?)?(?!\s*(?:size|=|\d))",
    ),
    *means(
        "every plan has it where the stack does",
        r"(?:with\s+)?flash[\s-]?att(?:ention|n)(?:[\s-]?[234])?",
    ),
    *means(
        "a way of speaking",
        r"(?:given\s+|the\s+|a\s+)*green\s+(?:light|signal)",
        r"last\s+time|(?:kindly|please)\s+revert(?:\s+back)?(?:\s+with)?|do\s+the\s+needful",
        r"on\s+top\s+of|go/no-go|next\s+(?:year|quarter|month|week)|second\s+opinion|second\s+look|at\s+first|first\s+of\s+all|in\s+the\s+end",
    ),
    *means(
        "when it happened: nothing to set",
        r"(?:at|on|in|after)\s+(?:the\s+)?(?:very\s+)?(?:first\s+)?(?:step|iteration|iter)\s+\d+(?!\s*(?:k|s|sec\w*|tokens?|of)\b)",
    ),
    *means(
        "when the answer is wanted",
        r"(?:by|before|until|for|in\s+time\s+for)\s+(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|today|next\s+week)['’]s(?:\s+\w+)?\s+"
        r"(?:call|meeting|review|board|stand-?up|sync|presentation|committee|session)",
    ),
    *means(
        "what is compared follows",
        r"(?:compare|comparing|weigh(?:ing)?|choose\s+between|decide\s+between)?\s*(?:these|the\s+following|both|\d)\s+"
        r"(?:options|offers|alternatives|variants|setups|scenarios|quotes)",
    ),
    *means("every design is synchronous", r"synchronous(?:\s+(?:training|sgd|updates|steps))?"),
    *means(
        "bursts of the data-parallel reduction are part of every step",
        (
            r"(?:the\s+)?(?:network\s+(?:must|should|has to|needs to)\s+handle\s+)?"
            r"(?:(?:massive|frequent|heavy|large|huge|bursty|intense)"
            r"(?:,?\s+(?:and\s+)?)?)+all-?reduces?(?:\s+traffic)?(?:\s+bursts?)?"
        ),
        r"(?:ring\s+)?all-?reduces?(?:\s+traffic)?(?:\s+bursts?)?",
    ),
    *means("mixed precision is the default", r"mixed[\s-]precision(?:\s+training)?"),
    *means("one epoch or several: the tokens are what counts", r"single epoch|one epoch"),
)
