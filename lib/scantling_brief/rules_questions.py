"""What a line asks."""

from .fragments import (
    ACCELERATOR,
    CHECKPOINT,
    DEVICE_NOUN,
    FLOPS,
    GROUP,
    MFU,
    OPTIMAL,
    number_in,
    percent_in,
)
from .readers import accelerator, always, amount, number, operations, share, whole, word_of_group
from .rule import topic
from .topics import Topic

_WE = r"(?:i|we|you|one)"
_CAN = (
    rf"(?:\s+(?:that\s+)?(?:can|could|should|would|do|may|might|will)\s+{_WE}"
    rf"|\s+{_WE}\s+(?:can|could|should|would))?"
)
_MODEL = r"(?:an?\s+|the\s+|of\s+an?\s+)?(?:model|llm|network|transformer)(?:\s+size)?"
_TRAIN = r"(?:\s+(?:to\s+)?(?:be\s+)?(?:train(?:ed)?|fit|run|afford|pre-?train))?"
_NOUN = (
    r"(?P<what>infini-?band|network(?:ing)?|interconnect|fabric|bandwidth|ib|roce"
    r"|ethernet|gpus?|devices?"
    r"|nodes?|cluster|tokens?|data|batch(?:\s+size)?|sequence(?:\s+length)?|context(?:\s+length)?"
    r"|price|budget|failures?|failure\s+rate|mtbf)"
)
# words before a noun: how big a GB200 cluster
_MODIFIERS = (
    rf"(?:\s+(?:{ACCELERATOR}|(?!(?:models?|llms?|moe|dense|on|in|with|for|of|can|could|do|does"
    r"|should|would|is|are)\b)[\w-]+)){0,2}?"
)
_AXIS = (
    r"(?:tp|pp|cp|ep|dp|fsdp2?|zero-?[123]|(?:activation\s+|gradient\s+)?(?:recompute|recomputation|checkpointing)"
    r"|(?:cpu\s+)?off-?load(?:ing)?|grad(?:ient)?\s+accum(?:ulation)?"
    r"|(?:tensor|pipeline|expert|data|context)\s+parallel(?:ism)?(?:\s+(?:size|degree))?)"
)
# how much of something: 60 % of the GPUs, 10 % fewer nodes
_SHARE = (
    r"(?P<share>\d{1,3}(?:\.\d+)?)(?P<share_s>)\s*(?:%|percent)\s*"
    r"(?P<how>of|more|fewer|less|higher|lower|faster|slower|cheaper)?"
)
_VERBS = (
    r"(?:(?:i|we|you|they|it|only|just|still|can|could|would|get|got|had|have|has|use|used|run|ran|with|buy|rent|there|is|are|were|was|be"
    r"|cut|cuts|lose|lost|loses|reduce|reduced|increase|increased|raise|drop|dropped|drops|lower|grow|shrink|the|our|my|by|to|at)\s+)*"
)
_GOOD = r"(?:best|optimal|proper|right|correct|good|ideal|recommended|suitable|appropriate)"
_SHARDED = r"(?:[fh]sdp2?|zero-?[123])"
_HALF = (
    r"(?P<how>halved|doubled|tripled|half(?:\s+as\s+\w+)?|twice(?:\s+as\s+\w+)?|double|slower"
    r"|faster|cheaper)"
)
_IF = (
    r"(?:what\s+(?:if|happens(?:\s+to\s+(?:the\s+|our\s+)?\w+)?\s+(?:if|when)|would\s+happen\s+if)"
    r"|(?:how|what)\s+about(?:\s+(?:if|when|using|trying|with))?"
    r"|how\s+(?:much\s+)?(?:worse|better|slower|faster)\s+(?:if|when|with)"
    r"|what\s+changes\s+(?:if|when|with)|what\s+(?:would|will|do|could)\s+(?:we|i|it)\s+(?:get|see|reach)\s+(?:with|at|if|on)"
    r"|how\s+(?:does|do|would|will|did)\s+(?:the\s+|our\s+|my\s+)?[\w/]+(?:\s+\w+)?\s+(?:change|differ|suffer|improve|move|look|shift)s?"
    r"\s+(?:if|when|with|without|by))"
)

_SAVED = r"(?:save|gain|lose|win|(?:be\s+)?(?:faster|slower|cheaper|dearer))"
_IF_USED = r"if\s+(?:we|i)\s+(?:use|used|enable|enabled|turn(?:ed)?\s+on|had)"
# with something or without it: the setting stands before these words, or behind them
_WORTH_BEFORE = (
    r"(?:be\s+|really\s+|still\s+|even\s+)*worth(?:\s+(?:it|while|the\s+\w+|having|paying\s+for|doing|trying))?",
    r"(?:an?\s+)?over-?kill(?:\s+(?:for|on))?",
    r"do\s+to(?=\s+(?:an?|the|our|my|this|that|it|\d)\b)",
    r"(?:help|hurt|kill|cripple|ruin|pay(?:\s+(?:off|back))?|matter|make\s+(?:(?:any\s+|much\s+|a\s+)?(?:sense|difference)))"
    r"(?:\s+(?:us|here|much|at\s+all|anything|a\s+lot))*",
    r"slow\s+down(?=\s+(?:an?|the|our|my|it|things|us)\b)",
    r"(?:shorten|speed\s+up|accelerate|cheapen)\s+(?:it|things|this|that|the\s+\w+|us)(?:\s+up)?",
    r"(?:bring|buy|gain|save|give|get)s?\s+(?:(?:us|me)\s+(?:anything|much|something|time|money|memory)|(?:an?y?\s+)?(?:speed-?ups?|gains?|benefits?|advantages?))",
)
_WORTH_BEHIND = (
    rf"(?:how\s+(?:much|many)|what)(?:\s+(?:time|money|memory|days|dollars))?(?:\s+(?:would|do|does|will|could|can)\s+(?:{_WE}|it))?"
    rf"\s+{_SAVED}\s+(?:with|from|by|{_IF_USED})(?:\s+using)?",
    r"(?:(?:is|are)\s+there\s+)?(?:any\s+|a\s+)(?:point|benefit|gain|advantage)\s+(?:in|of|from|to)(?:\s+using)?",
    rf"(?:should|shall)\s+{_WE}\s+(?:use|enable|turn\s+on|try|go\s+(?:for|with|to)|switch\s+to|move\s+to|bother\s+with)",
    r"worth\s+(?:using|enabling|trying|buying|switching\s+to|going\s+to|moving\s+to|upgrading\s+to|paying\s+for|to\s+use)",
    rf"(?:do|does|would|will|can|could)\s+(?:{_WE}|it)\s+(?:save|gain|win|lose)(?:\s+(?:anything|much|something|time|money|days))?"
    r"\s+(?:by|with|from)(?:\s+using)?",
    r"(?:benefits?|savings?|gains?|advantages?)\s+(?:of|from)(?:\s+using)?",
)

_OUR = r"(?:an?\s+|the\s+|my\s+|our\s+|about\s+|only\s+)*"
_SHARES_OF_MFU = (
    rf"{percent_in('v')}\s+(?:of\s+)?{MFU}",
    rf"{MFU}\s+(?:of\s+|at\s+)?{percent_in('v')}",
)
# what is said of a run that goes on
_JUDGED = (
    r"(?:normal|fast(?:\s+or\s+slow)?|ok|okay|good(?:\s+enough)?|bad|(?:as\s+)?expected|reasonable|slow|low|decent|fine|poor|terrible"
    r"|right|typical|healthy)"
)

_OUT_OF = r"\d+(?:\.\d+)?\s*(?:bytes|[kmgt]i?b)"
# PyTorch's message, of before and after 2.1 (c10/cuda/CUDACachingAllocator.cpp)
_OOM = (
    r"(?:(?:torch\.)?(?:cuda\.)?(?:OutOfMemoryError|RuntimeError):?\s*)?(?:cuda\s+error:?\s*)?(?:cuda|hip)?\s*out\s+of\s+memory\.?"
    rf"(?:\s*Tried\s+to\s+allocate\s+{_OUT_OF}\.?)?(?:\s*\(GPU\s+\d+;[^)]*\)?)?"
    rf"(?:\s*GPU\s+\d+\s+has\s+a\s+total\s+capac\w+\s+of\s+{_OUT_OF}(?:\s+of\s+which\s+{_OUT_OF}\s+is\s+free)?\.?)?"
    rf"(?:\s*(?:Including\s+non-PyTorch\s+memory,\s*)?(?:this\s+)?process(?:\s+\d+)?\s+has\s+{_OUT_OF}\s+memory\s+in\s+use\.?)?"
    rf"(?:\s*Of\s+the\s+allocated\s+memory\s+{_OUT_OF}\s+is\s+allocated\s+by\s+PyTorch,?(?:\s+and\s+{_OUT_OF}\s+is"
    r"\s+reserved\s+by\s+PyTorch\s+but\s+unallocated\.?)?)?"
)

# what an assessment says
_RESULT = (
    r"(?:(?:total|expected|training|estimated|overall|approximate|rough|gpu|peak|wall[\s-]?clock|run)\s+)*"
    r"(?:costs?|dollars|price(?:\s+tag)?|bill|time|duration|eta|days|hours|(?:gpu|device|chip|node)(?:[\s-]?hrs|-hours)|time-?line|run\s?time|wall[\s-]?clock|time[\s-]to[\s-]train|(?:pipeline\s+)?bubbles?(?:\s+(?:fraction|share|size))?|mfu|throughput|speed"
    r"|step\s+time|(?:(?:tokens|toks?)\s*(?:/|per)\s*(?:s(?:ec(?:ond)?)?|hour|day|week|month)|tps|tgs|tflops?(?:/s)?)(?:\s*(?:/|per)\s*(?:gpu|device|chip))?|memory(?:\s+(?:use|usage|footprint|requirements?|consumption))?(?:\s+(?:per|of\s+(?:a|each))\s+(?:gpu|device|chip|node))?|vram(?:\s+usage)?"
    r"|power(?:\s+(?:draw|use|consumption))?(?:\s+in\s+[kmg]w)?|speed-?ups?|energy(?:\s+(?:use|consumption))?|electricity(?:\s+(?:use|costs?|bill))?)"
    r"(?:\s+(?:and|&|/|,|plus)\s+(?:costs?|price|time|duration|days|hours|mfu|throughput|memory|power|energy))*"
)

QUESTIONS = (
    *topic(
        Topic.SLOW,
        rf"why\s+(?:is|was|are)\s+(?:my|our|the|it)?\s*{MFU}\s*(?:only|just|so\s+low|low|stuck|at|\(|,|\s)*"
        rf"{percent_in('v')}",
        *(
            rf"(?:is|are)\s+{_OUR}{mfu}(?:\s+(?:any|considered|a))*\s+{_JUDGED}(?:\s+(?:for|on|with))?"
            for mfu in _SHARES_OF_MFU
        ),
        *(
            rf"(?:is|are)\s+(?:my|our)\s+{mfu}(?=[^.?!]*\b(?:{_JUDGED}|too\s+(?:good|low|high))\b)"
            for mfu in _SHARES_OF_MFU
        ),
        fields={"mfu": share, "mfu_seen": always(True)},
    ),
    *topic(
        Topic.SLOW,
        rf"(?:had|was|were|used\s+to\s+(?:be|get|see|have))\s+(?:at\s+)?\d+(?:\.\d+)?\s*%\s*{MFU}?,?\s*(?:and\s+|but\s+|it\s+is\s+|we\s+are\s+)*"
        rf"(?:now|today|currently)\s+(?:it\s+is\s+|at\s+|only\s+|just\s+|down\s+to\s+)*{percent_in('v')}(?:\s+{MFU})?",
        fields={"mfu": share, "mfu_seen": always(True)},
    ),
    *topic(
        Topic.DESIGN,
        *(
            rf"(?:is|are)\s+{_OUR}{mfu}\s+(?:realistic|achievable|reachable|attainable|possible|feasible"
            r"|doable)(?:\s+(?:for|on|with))?"
            for mfu in _SHARES_OF_MFU
        ),
        fields={"mfu": share, "mfu_wished": always(True)},
    ),
    *topic(
        Topic.SLOW,
        (
            r"why(?:\s+(?:is|are|does|do|am)\s+(?:my|our|the|it|i|we|this)?(?:\s+(?:training"
            r"|run|job|model|step(?!\s+time)|mfu|throughput)s?)?(?:\s+(?:so|this|only))?)?(?:\s+(?:slow"
            r"|low|bad|poor))?"
        ),
        (
            r"(?:so\s+|too\s+|very\s+|running\s+|is\s+)slow(?:er)?(?:\s+than\s+(?:expected"
            r"|it\s+should))?|slow(?:s|ed|ing)\s+down"
        ),
        (
            r"(?:how\s+(?:can|do|could|should)\s+(?:i|we)\s+)?(?:improve|speed\s+(?:it\s+)?up"
            r"|increase\s+(?:the\s+)?mfu|get\s+(?:a\s+)?(?:better|higher)\s+mfu"
            r"|optimi[sz]e)(?:\s+(?:it|this|that|the\s+run))?"
        ),
        (
            rf"(?:is|are|does|do)\s+(?:that|this|it|these|those)\s+(?:(?:sound|look|seem)s?\s+)?{_JUDGED}"
        ),
        rf"{_JUDGED}(?=\s*\?)",
        r"how\s+(?:good|bad|normal|slow|low)\s+(?:is|are)\s+(?:that|this|it|these|those)",
        rf"(?:is|are)\s+{_OUR}(?=\d[\d.,]*\s*k?\s*(?:tok|tflop|s\b|sec)[^?]*\b{_JUDGED}\b)",
        rf"{_JUDGED}(?=\s+for\s+(?:an?\s+)?\d+(?:\.\d+)?[bm]\b[^?]*\?)",
        r"what\s+(?:should|could|would)\s+(?:it|that|this|the\s+mfu|mfu)\s+be",
        r"how\s+far\s+(?:away\s+)?(?:from|off|below)\s+(?:good|normal|optimal|ideal|typical|the\s+(?:best|optimum|norm))(?:\s+(?:is|are)\s+(?:that|this|it|we))?",
        rf"(?:is|are|means?)\s+what\s+{MFU}|(?:what|which)\s+{MFU}\s+(?:is|are)\s+(?:that|this|it|these|those)",
        r"should(?:n't)?\s+(?:it\s+)?be\s+\d+(?:\.\d+)?\s*%?(?:\s*,?\s*(?:no|right|or\s+not))?(?=\s*\?)",
        r"(?:crawl|drag|limp|creep|struggl|disappoint|underwhelm)(?:e?s|ing|ed|s\s+along)?|sluggish(?:ly)?",
        r"what(?:'?s|\s+is|\s+(?:am|are)\s+(?:i|we)\s+doing)\s+(?:wrong|the\s+bottleneck)(?:\s+here)?",
        r"(?:is\s+)?(?:something|anything|what'?s|sth)\s+(?:is\s+)?(?:off|wrong|broken|fishy)(?:\s+here)?",
        r"(?:(?:(?:far|way|much)\s+)?too|so|very|rather|pretty)\s+(?:low|slow|bad|poor)(?=\s*\?)|should\s+(?:i|we)\s+be\s+(?:happy|worried|concerned)",
        r"to\s+blame|(?:the\s+)?culprit|at\s+fault|(?:the\s+)?limiting\s+factor",
        r"(?:low|poor|slow)\s+(?:pre-?)?(?:training\s+)?(?:training|throughput|performance|speed|tflops?|mfu|[wt]ps|tgs|(?:gpu\s+)?utili[sz]ation)(?!\s*(?:of\s+)?\d)",
        r"(?:(?:not|un)\s?able|fail(?:ed|ing)?|can(?:['’]?t|\s?not)|could(?:n['’]?t|\s+not))\s+(?:to\s+)?(?:reproduce|reach|match|replicate)"
        r"\s+(?:the\s+|that\s+|this\s+|your\s+)?(?:\S+\s+){0,2}?(?:throughput|speed|performance|tflops?|mfu|numbers)",
        r"(?:explain|account\s+for|cause)s?(?=\s+(?:an?|the|this|that|such|our|my)\s+(?:drop|loss|slow\w*|fall|difference|gap|low)\b)",
        r"(?:diagnose|bottlenecks?|under-?perform(?:s|ing)?|troubleshoot)",
        r"(?:only|barely|merely)\s+(?:achiev|giv|reach|get|see|hit|deliver|yield|do)(?:t?ing|e?s|e)?(?:\s+(?:us|me|an?|low|poor|throughput|of|about|around|at))*"
        r"(?=\s+\d[\d.,]*\s*(?:k\b|%|[tp]flop|tok))",
        r"where\s+(?:does|is|did)\s+(?:(?:all|most\s+of)\s+)?(?:the|my|our)\s+time\s+(?:go(?:ing)?|lost"
        r"|spent)|what\s+(?:is\s+)?(?:takes?|taking|eats?|eating|limits?|limiting)\s+(?:so\s+long|the\s+time"
        r"|the\s+speed|us)",
        r"(?:any\s+)?room\s+for\s+improvement",
        r"(?:could|should|can)\s+(?:it|this|that|we)\s+(?:be|get|do|go)\s+(?:better|faster|higher)",
    ),
    *topic(
        Topic.COMPUTE_OPTIMAL,
        rf"(?:the\s+)?(?:(?:biggest|largest)\s+)?(?:{OPTIMAL}|optimal|best|right|ideal|chinchilla)\s+"
        r"(?:model(?:\s+size)?|size|llm)(?!\s+\d)",
        rf"(?:what|how\s+(?:big|large))(?:'?s|\s+\S+){{0,4}}?\s+{OPTIMAL}(?:\s+(?:model(?:\s+size)?|size))?",
        rf"(?:what|which)\s+(?:kind\s+of\s+)?(?:model|llm)\s+(?:can|could|should|would)\s+{_WE}{_TRAIN}",
        rf"what\s+(?:can|could)\s+{_WE}\s+(?:pre-?train|train|afford)",
        r"model\s+size(?=\s+(?:for|in|on|with|within|given|is|would)\b|\s*\?)",
        r"(?:what|which)\s+(?:model|size)(?=\s*(?:[?.,;]|$)|\s+(?:is|would)\b)",
    ),
    *topic(
        Topic.SCALING,
        (
            r"how\s+many\s+tokens(?!\s+(?:can|could|will|do|does)\s+(?:\d|it\b|the|my|our|an?\s))(?:\s+(?:should|do|would|does)\s+(?:i|we|it"
            r"|you)(?:\s+(?:train\s+on|need|use|want))?)?"
        ),
        (
            r"(?:how\s+much|what\s+amount\s+of)\s+(?:training\s+)?data(?:\s+(?:do"
            r"|should)\s+(?:i|we)\s+(?:need|use))?"
        ),
        rf"{OPTIMAL}\s+(?:number\s+of\s+|amount\s+of\s+)?(?:tokens|token\s+count|data)",
        r"scaling\s+laws?",
        r"(?:enough|sufficient|too\s+(?:few|little|many|much))\s+(?:tokens|data)",
    ),
    *topic(
        Topic.SCALING,
        rf"(?:is|are|would|will)\s+{number_in('v')}\s*(?:tokens?|toks?)(?:\s+be)?\s+(?:enough"
        r"|sufficient|too\s+(?:few|little|many|much))(?:\s+(?:data|for))?",
        fields={"job.tokens": amount},
    ),
    *topic(
        Topic.SCALING,
        (
            rf"{number_in('v')}\s*(?:flops?|flop)(?!/|\s*(?:per|a)\b)(?:\s+(?:budget"
            r"|of\s+compute|of\s+training))?"
        ),
        fields={"flops": number("v")},
    ),
    *topic(
        Topic.SCALING,
        rf"{number_in('v')}\s*(?=[pezy]|exa|zetta|yotta){FLOPS}(?:(?<=day)|(?<=days))(?:\s+(?:budget|of\s+\w+))?",
        rf"{number_in('v')}\s*(?=[zy]){FLOPS}(?!/|\s*(?:per|a)\b)(?:\s+(?:budget|of\s+\w+))?",
        fields={"flops": operations},
    ),
    *topic(
        Topic.LARGEST,
        (
            r"(?:what(?:'?s|\s+is)?\s+)?(?:the\s+)?(?:biggest|largest"
            rf"|max(?:imum)?)\s+(?:(?:dense\s+|moe\s+)?(?:model|llm)(?:\s+size)?|dense|moe){_CAN}{_TRAIN}(?:\s+worth\s+\w+ing)?"
        ),
        rf"how\s+(?:big|large)(?:\s+(?:an?\s+|of\s+an?\s+)?{_MODIFIERS}\s*(?:model|llm))?{_CAN}{_TRAIN}"
        r"(?!\s+(?:of\s+)?(?:should|must|is|are|will|would|does|do)\b"
        r"|\s+(?:of\s+)?(?:an?|the|our|my)\s+(?!(?:\w+\s+)?(?:moe|dense)\b))",
        rf"how\s+many\s+(?:billions?\s+of\s+)?(?:params?|parameters){_CAN}{_TRAIN}",
        r"(?:what(?:'?s|\s+is)\s+)?(?:the\s+)?(?:max(?:imum)?|largest|biggest|highest)\s+(?:number|amount|count)\s+of\s+(?:params?|parameters)",
        r"(?:what|which)\s+(?:size\s+(?:of\s+)?model|model\s+size|size)(?!\s+(?:is|would))"
        rf"{_CAN}{_TRAIN}",
    ),
    *topic(
        Topic.LONGEST,
        (
            r"(?:what(?:'?s|\s+is)?\s+)?(?:the\s+)?(?:longest|max(?:imum|imal)?|biggest"
            r"|largest)\s+(?:possible\s+)?(?:context|sequence|seq|ctx)(?:[\s-]*(?:length|len"
            rf"|window))?{_CAN}{_TRAIN}"
        ),
        rf"how\s+long\s+(?:a\s+)?(?:of\s+a\s+)?(?:context|sequence)s?{_CAN}{_TRAIN}",
        r"(?:what|which)\s+(?:context|sequence|ctx|seq)(?:[\s-]*(?:length|len|window))?\s+(?:is|are|would\s+be|will\s+be)\s+"
        r"(?:affordable|possible|feasible|realistic|reachable|achievable|doable|supported)",
        rf"(?:what|which)\s+(?:context|sequence|ctx|seq)(?:[\s-]*(?:length|len|window))?\s+(?:can|could|would)\s+{_WE}"
        r"\s+(?:reach|get(?:\s+to)?|train(?:\s+with)?|use|fit|afford|run)",
    ),
    *topic(
        Topic.MICRO_BATCH,
        (
            r"(?:what(?:'?s|\s+is)?\s+)?(?:the\s+)?(?:biggest|largest"
            r"|max(?:imum)?)\s+(?:micro[\s-]?batch(?:es)?|batch|bsz?|per[\s-](?:gpu"
            rf"|device)\s+batch)(?:\s+size)?(?:\s+per\s+(?:gpu|device))?{_CAN}{_TRAIN}"
        ),
        r"(?:what|which)\s+micro[\s-]?batch(?:\s+size)?(?!\s*/)",
    ),
    *topic(
        Topic.EARLIEST,
        (
            rf"(?:the\s+)?(?:earliest|soonest|fastest|shortest)(?:\s+(?:{_WE}|it|possible|finish|time"
            r"|way|date|that))*(?:\s+(?:could|can|to|we|be))*(?:\s+(?:finish(?:ed)?|done"
            r"|complete[d]?|train(?:ed)?))?"
        ),
        (
            r"how\s+(?:soon|quickly|early)(?:\s+(?:can|could|will)\s+(?:it|we|i"
            r"|this))?(?:\s+(?:be\s+)?(?:finish(?:ed)?|done|complete[d]?))?"
        ),
    ),
    *topic(
        Topic.FEWEST,
        rf"how\s+many\s+{GROUP}\s*(?:of|with|,|\()\s*(?P<per>\d{{1,2}})(?P<per_s>)\s*[x×]?\s*{ACCELERATOR}(?:\s+{DEVICE_NOUN})?"
        r"(?:\s+(?:do|would|will|should|are|is)\s+(?:i|we|one|you|it)?(?:\s*(?:need(?:ed)?|require[d]?|take|have))?)?",
        fields={"accelerator": accelerator, "cluster.devices_per_node": whole("per")},
    ),
    *topic(
        Topic.FEWEST,
        (
            r"(?:how\s+many(?:\s+(?:de|of|more|such|(?:blocks|units|pieces|sheets)\s+of))?|(?:the\s+)?(?:minimum|fewest|least|smallest)(?:\s+(?:number"
            rf"|amount)\s+of)?)\s+(?:{ACCELERATOR}|{DEVICE_NOUN}"
            rf"|{GROUP})(?:\s+{DEVICE_NOUN})?(?![\s-]*(?:hours?|hrs)\b)(?:\s+(?:do|would|will|should|are|is)\s+(?:i|we"
            r"|one|you|it)?(?:\s*(?:need(?:ed)?|require[d]?|take|have))?)?(?:\s+(?:needed"
            r"|required))?"
        ),
        r"(?:what(?:'?s|\s+is)\s+the\s+)?smallest\s+(?:cluster|machine)",
        r"what\s+(?:would|does|will)\s+it\s+take(?:\s+to\b)?",
        r"(?:size|sizing|dimension(?:ing)?)\s+(?:the|a|our|my)\s+(?:cluster|machine|system)(?:\s+for)?",
        r"(?:please|pls|plz|kindly|(?:can|could|would)\s+you)\s+(?:size|dimension)(?:\s+(?:it|this|that|up|for|out))*(?=\s|:)(?!\s+(?:the\s+)?(?:storage|network|power|cooling|switch\w*))",
        rf"(?:\#\s*(?:of\s+)?|(?:the\s+)?number\s+of\s+)(?:{ACCELERATOR}|{DEVICE_NOUN}|{GROUP})(?!\s*(?:[:=(]|is\b|are\b)?\s*\d)"
        r"(?:\s+(?:needed|required|we\s+need|to\s+(?:rent|buy|reserve)))?",
        r"(?:what|which)\s+(?:gpu|device|node|chip)\s+(?:count|number)",
        r"how\s+many(?:\s+of\s+(?:them|these|those))?"
        r"(?:\s+(?:do|would|will|should)\s+(?:i|we)\s+(?:need|buy|rent|use|take))?"
        r"(?=\s*[?.,;]|\s*$|\s+and\s+(?:what|how|for|at)\b)",
        rf"(?:what|which|how\s+(?:big|large)(?:\s+(?:should|must|would|will|does|do|need))?)(?:\s+(?:of\s+)?(?:an?|the|our|my))?{_MODIFIERS}"
        r"\s+(?:cluster(?:\s+size)?|machine|fleet|size\s+(?:of\s+)?cluster|number\s+of\s+(?:gpus|nodes))"
        r"(?:\s+(?:do|would|should|will|must)\s+(?:i|we)(?:\s+(?:need|want|use|rent|buy))?|\s+(?:have\s+to\s+|need\s+to\s+)?be)?",
        fields={"accelerator": accelerator},
    ),
    *topic(
        Topic.DESIGN,
        rf"how\s+many\s+(?:{ACCELERATOR}|{DEVICE_NOUN})[\s-]*(?:hours|hrs)",
        fields={"accelerator": accelerator},
    ),
    *topic(
        Topic.CHANGED,
        rf"{_IF}\s+(?:the\s+|our\s+)?(?P<what>nodes?|gpus?)\s+fail\s+(?P<how>twice|half)(?:\s+as)?(?:\s+often)?",
        (
            rf"(?:{_IF}\s+)?(?:the\s+|our\s+|my\s+)?{_NOUN}(?:\s+(?:bandwidth|speed|rate"
            rf"|count))?\s+(?:is|was|were|are|gets?|got|be|only|drops?|falls?|goes|went|down|to|by)"
            rf"(?:\s+(?:down|to|by|only))*\s+{_HALF}"
        ),
        rf"{_IF}\s+(?:the\s+|our\s+|my\s+)?{_NOUN}(?:\s+count)?\s+(?P<how>doubles?|halves?|triples?)",
        (
            rf"{_IF}\s+(?:i|we|you)\s+(?P<how>halve|double|triple)[ds]?\s+(?:the\s+|our\s+"
            rf"|number\s+of\s+|of\s+)*{_NOUN}(?:\s+(?:bandwidth|speed))?"
        ),
        (
            rf"{_IF}\s+(?:the\s+)?{_NOUN}\s+(?:fail\w*\s+)?(?P<how>twice\s+as\s+(?:often|many"
            r"|much|fast)|half\s+as\s+(?:fast|many|much))"
        ),
        (
            rf"{_IF}\s+(?:the\s+|our\s+)?(?P<what>nodes?|gpus?|failures?)\s+fail\s+(?P<how>twic"
            r"e|more|half)(?:\s+as)?(?:\s+often)?"
        ),
        (
            rf"(?:{_IF}\s+(?:we\s+had\s+|with\s+)?)?(?P<how>half|twice"
            rf"|double)\s+(?:of\s+)?(?:the\s+)?{_NOUN}(?:\s+(?:bandwidth|speed))?"
        ),
        rf"{_IF}\s+{_VERBS}{_SHARE}\s*(?:of\s+)?(?:the\s+|our\s+|my\s+|all\s+)*{_NOUN}(?:\s+(?:bandwidth|speed))?",
        rf"{_IF}\s+{_VERBS}{_NOUN}(?:\s+(?:bandwidth|speed|rate|count))?\s+{_VERBS}{_SHARE}(?!\s*(?:mfu|of\s+peak))",
        rf"{_IF}\s+{_VERBS}{_NOUN}\s+(?:is\s+|are\s+)?(?:cut\s+)?in\s+(?P<how>half)",
        _IF,
        fields={
            "share": number("share"),
            "changed": word_of_group("what"),
            "by": word_of_group("how"),
        },
    ),
    *topic(
        Topic.CHANGED,
        rf"(?:{_IF}|if)\s+(?:we|i|they)\s+(?:(?:only|just|can|could)\s+)*(?:get|got|have|had|receive|use|keep)\s+(?:(?:only|just)\s+)*"
        rf"{_SHARE}(?:\s*(?:the|our|my|those|these))+(?:\s+(?:reserved|promised|ordered|planned|requested))?"
        rf"(?=\s+\d[\d,]*k?\s*(?:[x×]\s*)?(?:{ACCELERATOR}|{DEVICE_NOUN}))",
        fields={"share": number("share"), "changed": always("gpus"), "by": word_of_group("how")},
    ),
    *topic(Topic.WORTH, *_WORTH_BEFORE, fields={"behind": always(False)}),
    *topic(Topic.WORTH, *_WORTH_BEHIND, fields={"behind": always(True)}),
    *topic(
        Topic.BATCH,
        (
            r"(?:what|which)\s+(?:global\s+)?batch(?:\s+size)?(?:\s+(?:is|should|would|to"
            r"|do)(?:\s+(?:i|we|be|best|use|optimal|good))*)?"
        ),
        r"(?:best|optimal|right)\s+(?:global\s+)?batch(?:\s+size)?",
    ),
    *topic(
        Topic.CHIP,
        (
            r"what\s+(?:should|would|could|must)\s+(?:i|we)\s+(?:rent|buy|order|reserve)(?=\s+(?:for|to)\b|\s*\?)|(?:what|which)\s+(?:kind\s+of\s+)?(?:gpus?|chips?|accelerators?|cards?"
            r"|hardware)(?:\s+(?:is|are|should|would|do|to)(?:\s+(?:i|we|be|best|use|buy|rent"
            r"|cheapest))*)?"
        ),
    ),
    *topic(
        Topic.CHEAPEST,
        (
            r"(?:the\s+|what(?:'?s|\s+is)\s+the\s+)?(?:cheapest|least\s+expensive"
            r"|most\s+cost[\s-](?:efficient|effective))(?:\s+(?:way|option|plan|machine"
            r"|cluster|setup|configuration|gpus?))?(?:\s+(?:to|for))?(?:\s+train)?"
        ),
        (
            r"(?:cheaper|lower\s+cost|save\s+money|reduce\s+(?:the\s+)?costs?"
            r"|cut\s+(?:the\s+)?costs?|bring\s+(?:the\s+)?costs?\s+down)(?:\s+way)?"
        ),
    ),
    *topic(
        Topic.TRADE,
        (
            r"(?:trade-?off|pareto|time\s+(?:vs\.?|versus|against)\s+(?:cost|money)|(?:cost"
            r"|days)\s+(?:vs\.?|versus|against)\s+(?:time|days|cost"
            r"|dollars))(?:\s+(?:front(?:ier)?|curve))?"
        ),
    ),
    *topic(
        Topic.SPARES,
        (
            r"(?:how\s+many\s+)(?:hot\s+|cold\s+)?spare(?:s|\s+(?:nodes|gpus"
            r"|machines))?(?:\s+(?:do|should|would)\s+(?:i|we)(?:\s+(?:need|have|keep"
            r"|plan))?)?"
        ),
        (
            r"(?:what|which|best|optimal|right|ideal)\s+(?:is\s+the\s+|the\s+)?(?:best\s+"
            rf"|optimal\s+|right\s+)?{CHECKPOINT}\s+(?:interval|frequency|cadence"
            r"|period)(?:\s+(?:should|do|to)(?:\s+(?:i|we|use))*)?"
        ),
        rf"{CHECKPOINT}\s+(?:interval|frequency|cadence)",
        r"expected\s+(?:goodput|ettr)|(?:best|optimal|right|ideal)\s+(?:save\s+)?interval",
        r"what\s+(?:do|does|would|will)\s+(?:an?|each|every|one)\s+(?:failure|crash|restart|interruption)\s+cost(?:\s+us)?",
        rf"how\s+(?:big|large|heavy)(?:\s+(?:is|are|will|would|must))?\s+(?:an?\s+|the\s+|one\s+|each\s+|our\s+)*{CHECKPOINT}(?:\s+be)?",
        r"(?:idle|lost|wasted|down)[\s-]?time(?:\s+(?:from|by|due\s+to|through|of)\s+(?:restarts?|failures?|crashes))?",
        rf"(?:more|less)\s+(?:frequent|regular)\s+{CHECKPOINT}|{CHECKPOINT}\s+(?:more|less)\s+(?:often|frequently)",
        (
            r"how\s+(?:often|frequently)(?:\s+(?:should|do|to|must)(?:\s+(?:i"
            rf"|we))?)?(?:\s+(?:save|{CHECKPOINT}|take|write))*"
        ),
        r"(?:mtbf|mean\s+time\s+(?:between|to)\s+failures?)(?!\s*(?:of|is|=|:)?\s*\d[\d.]*[\s-]*(?:s|m|min\w*|h|hours?|hrs?|days?|weeks?)\b)(?:\s+of)?",
        rf"how\s+much\s+(?:time\s+)?(?:do|does|will|would)\s+(?:the\s+|our\s+)?(?={CHECKPOINT})",
        r"(?:expected\s+|number\s+of\s+)*(?:failures|interruptions|restarts|crashes)\s+(?:per|a|each|/)\s*(?:day|week|month|run)(?=\s*\?)",
        r"(?:spares?|spare\s+(?:nodes|gpus|machines|capacity))(?=\s*\?|\s+for\b)",
        rf"(?:do|does|should|would|will)\s+(?:{_WE}|it)\s+need\s+(?:any\s+|hot\s+|cold\s+)*spares?(?:\s+(?:nodes|gpus|machines))?",
        r"how\s+often\s+(?:will|does|do|would|should)\s+(?:it|this|that|the\s+\w+|we)\s+(?:crash|fail|break|stop|restart)",
        rf"{CHECKPOINT}\s+(?:is|are|of|takes?)\s+how\s+(?:many\s+[gt]i?b|big|large)(?:\s+(?:with|including)\s+(?:the\s+)?optimi[sz]er(?:\s+states?)?)?",
        rf"how\s+many\s+[gt]i?b\s+(?:is|are|does|do|for|of)\s+(?:an?\s+|the\s+|one\s+|each\s+|our\s+)*{CHECKPOINT}(?:\s+(?:take|need|have))?",
        rf"{CHECKPOINT}\s+sizes?(?:\s+and\s+(?:save|write)\s+times?)?|(?:save|saving|write)\s+times?",
        r"how\s+much\s+(?:time|compute|work|goodput|progress|uptime)\s+(?:do|will|would|could|did|is)\s+(?:(?:i|we)\s+)?(?:wasted?|loo?se|lost)"
        r"(?:\s+(?:per|at\s+(?:a|each)|with\s+each)\s+(?:failure|crash|restart|interruption))?",
        r"effective\s+(?:training\s+)?time(?:\s+(?:share|ratio|fraction))?(?=\s*\?)",
        rf"(?:{CHECKPOINT}\s+)?too\s+(?:often|rarely|rare|seldom|infrequent(?:ly)?|frequent(?:ly)?)(?=\s*\?|\s+(?:with|for|at|if|on|given)\b)",
        r"(?:what|which|how\s+(?:much|large\s+a))\s+(?:fraction|share|part|percentage|percent)\s+(?:of\s+)?(?:the\s+|our\s+)?(?:(?:gpu\s+)?time|run|compute)?"
        r"(?:\s+(?:is|are|do|will|would|goes|we|be|to))*\s+(?:lost|lose|wasted?|failures)",
        (
            r"(?:what|which)(?:\s+is\s+the|\s+will\s+be\s+the)?\s+(?:expected\s+)?(?:(?:uptime|availability)(?:\s*/\s*goodput)?|goodput(?:\s*/\s*uptime)?"
            r"|ettr|failure\s+rate)(?:\s+(?:should|can|do)\s+(?:i|we)\s+expect)?"
        ),
        (
            r"(?:expected\s+)?(?:goodput|ettr)(?:\s+expected)?(?=\s+(?:for|of|on|with|at)\s+(?!\d+\s*%)|\s*[?])"
        ),
        rf"how\s+long\s+(?:does|do|will|would)\s+(?:an?|the|one|our)(?=\s+(?:\S+\s+){{1,2}}{CHECKPOINT}\b)",
        r"how\s+(?:long|much\s+time)\s+(?:does|do|will|would)\s+(?:an?\s+|the\s+|one\s+)?"
        rf"(?:restarts?|recover(?:y|ing)|{CHECKPOINT}|failover)(?:\s+(?:take|last|cost))?",
        (
            r"how\s+many\s+(?:failures|interruptions|restarts|crashes)(?:\s+(?:per|a)\s+(?:day|week|month))?(?:\s+(?:should|will|do"
            r"|can)\s+(?:i|we|it)?\s*(?:expect|see|have)?)?"
        ),
    ),
    *topic(
        Topic.SPARES,
        r"(?:are|is|will|would|do)\s+(?P<v>\d+)\s+(?:(?:hot|cold|warm)\s+)?spares?(?:\s+(?:nodes?|machines?))?\s+(?:be\s+)?"
        r"(?:enough|sufficient|suffice|too\s+(?:few|many))",
        fields={"reliability.spares": whole("v")},
    ),
    *topic(
        Topic.SPARES,
        rf"(?:(?:{_IF}|if|when)\s+)?(?:an?\s+|one\s+|1\s+(?:of\s+(?:our\s+|the\s+)?)?|the\s+|any\s+|whole\s+|entire\s+|single\s+)+(?:node|rack|pod|switch|building|hall|gpu)\s+"
        rf"(?:of\s+{ACCELERATOR}\s+)?(?:dies|fails|goes\s+down|is\s+lost|breaks|crashes)(?!\s+(?:\w+\s+){{0,2}}(?:every|each|once|per|an?|\d))",
        fields={"accelerator": accelerator},
    ),
    *topic(
        Topic.SENSITIVITY,
        (
            r"(?:what\s+)?matters?\s+most|sensitivity(?:\s+(?:analysis|study))?|tornado"
            r"|(?:what|which)\s+(?:drives|dominates|influences)(?:\s+(?:the\s+)?(?:cost|time"
            r"|result|days))?|most\s+(?:important|sensitive)\s+(?:factor|input|assumption)s?"
        ),
        r"how\s+(?:sensitive|robust|fragile)\s+(?:is|are|would)(?:\s+(?:the|our|my|this|that|it))?(?:\s+(?:cost|bill|price|time|duration|schedule|finish|date"
        r"|plan|run|estimate|result|days|budget|mfu|of)\b)*",
        r"(?:sensitive|robust)\s+(?:is|are|to|against)(?:\s+(?:the|our|my|this|that|it))?(?:\s+(?:failure|failures|failure\s+rate|price|network|batch))?",
        r"(?:what|which)\s+(?:inputs?|assumptions?|parameters?|factors?|knobs?)\s+(?:matters?|moves?|drives?|hurts?)(?:\s+(?:the\s+)?(?:most|more|cost|time|result))*",
    ),
    *topic(
        Topic.PLAN,
        (
            r"(?:what|which)\s+(?:kind\s+of\s+|(?:is|would\s+be)\s+(?:the|an?)\s+)?(?:(?:combinations?|mix(?:ture)?|degrees?|choice)\s+of\s+)?"
            rf"(?:{_GOOD}\s+)?(?:(?:(?:data|tensor|pipeline|expert|context|[dtpec]p|3d|4d)[\s,/&+]*(?:and\s+)?)+\s+)?(?:parallelism|parallelization|parallelisation"
            r"|parallel\s+(?:strategy|plan|configuration|config|layout|setup)"
            r"|tp(?:\s*/\s*pp)?(?:\s*/\s*dp)?|sharding|plan|layout|mapping|partitioning|split|strategy|configuration|config"
            r"|settings?)(?:\s+(?:should|is|do|would|to|are)(?:\s+(?:i|we|best|optimal|use"
            r"|pick|choose))*|\s+(?:is\s+)?supposed\s+to\s+be)?"
        ),
        (
            rf"{_GOOD}\s+(?:parallelism|parallel\s+(?:strategy|plan|config\w*)"
            r"|tp/pp(?:/dp)?|3d\s+parallelism|sharding|plan|layout|configuration)"
        ),
        (
            r"how\s+(?:should|do|would|can|to)\s+(?:i|we|you|one)?\s*(?:parallel[iz]+e|shard|split"
            r"|lay\s+(?:it\s+)?out)(?:\s+(?:it|the\s+model|this))?"
        ),
    ),
    *topic(
        Topic.PLAN,
        rf"(?:what|which)\s+{_AXIS}(?=\s*(?:[?.,;]|$)|\s+(?:should|do|is|to|would)\b)(?:\s+(?:should|do|is|to|would)(?:\s+(?:i|we|best|use|be|pick))*)?",
        rf"how\s+to\s+(?:set|choose|pick|configure|select)\s+(?:the\s+)?{_AXIS}(?:\s*[/,]\s*{_AXIS})*",
        rf"(?:what|which)\s+(?:mbs|micro[\s-]?batch|ga|grad(?:ient)?\s+accum\w*|{_AXIS})(?:\s*[/,]\s*(?:mbs|ga|{_AXIS}))+",
        rf"(?:is|are|would|does)\s+{_AXIS}(?:\s+across\s+(?:the\s+)?nodes)?(?:\s+(?:be|ever|really|an?|any))*\s+"
        r"(?:good|bad|sensible|okay|ok|wise|make\s+sense|needed|necessary)(?:\s+idea)?",
        r"recommend(?:ed)?\s+(?:an?\s+|the\s+)?(?:parallelism|plan|layout|config\w*|sharding|parallel\s+\w+)",
        r"(?:pipeline|tensor|data|expert|context)(?:\s+parallel(?:ism)?)?\s+(?:or|vs\.?|versus)\s+(?:pipeline|tensor|data|expert|context)"
        r"\s+parallel(?:ism)?(?:\s+across\s+nodes)?",
        rf"(?:do|does|should|would|will)\s+(?:{_WE}|it)\s+(?:need|want|require|have)\s+(?:to\s+use\s+)?(?:any\s+)?{_AXIS}(?!\s*[=\d])",
        rf"(?:(?:any|is)\s+)?{_AXIS}\s+(?:needed|necessary|required)",
        rf"(?:(?:should|shall)\s+(?:i|we)\s+(?:use|pick|go\s+(?:for|with))\s+)?(?!{_SHARDED}\s+(?:or|vs\.?|versus)\s+{_SHARDED}){_AXIS}(?:\s+across\s+nodes)?\s+(?:or|vs\.?|versus)"
        rf"\s+{_AXIS}(?!\s*[=\d])",
    ),
    *topic(
        Topic.PRICE,
        r"(?:what(?:'?s|\s+is)\s+the\s+)?(?:price|rate|rent)\s+(?:of|for)\s+(?:an?\s+)?(?:gpu|device|hour)[\s-]*hours?",
        r"(?:hourly|gpu)\s+(?:price|rate)s?",
    ),
    *topic(
        Topic.KIT,
        (
            r"(?:(?:how\s+(?:do|can|should|to)\s+(?:i|we)?\s*)?launch(?:\s+(?:it|this|script"
            r"|kit|command))?|(?:give\s+me\s+|write\s+)?(?:a\s+|the\s+)?(?:launch|sbatch"
            r"|slurm|config)\s+(?:script|file|command)s?)"
        ),
        r"(?:launch[\s-]+)?kits?(?=\s+(?:for|of)\b)",
        r"(?:give|write|generate|make|show|send)(?:\s+(?:me|us))?(?:\s+(?:an?|the))?(?=\s+(?:[\w.-]+\s+){1,2}(?:config(?:uration)?s?"
        r"|yaml|json|arg(?:ument)?s|flags|(?:launch\s+)?scripts?)\b)",
    ),
    *topic(
        Topic.REPORT,
        (
            r"(?:a\s+|write\s+(?:me\s+)?a\s+|make\s+(?:me\s+)?a\s+)?(?:pdf\s+)?report(?=\s*(?:"
            r"$|[?.!,]))"
        ),
    ),
    *topic(
        Topic.DESIGN,
        r"how\s+many\s+tokens(?=\s+(?:can|could|will|do|does)\s+(?:\d|it\b|the|my|our|an?\s))",
        r"(?:what(?:'?s|\s+is)\s+)?(?:the\s+)?(?:max(?:imum)?|most)\s+(?:number\s+of\s+)?tokens(?=\s+(?:in|within|on|for|with|by|(?:an?|the|our)\s+\d|we|i)\b)",
        r"(?:any|is\s+there\s+an?)\s+(?:(?:network|memory|compute|comm\w*|io|storage)\s+)?bottlenecks?",
        r"how\s+many\s+tokens\s+(?:fit|go\s+through|get\s+done)",
        r"how\s+many\s+(?:tokens|steps|updates|iterations)\s*(?:/|per|an?|each)\s*(?:second|hour|day|week|month)",
        r"how\s+long\s+(?:is|does|would|will)\s+(?:an?|one|each|the)\s+(?:step|iteration|epoch)(?:\s+(?:take|be|last))?",
        r"(?:the\s+)?(?:co2|carbon|emissions?)(?:\s+(?:footprint|emissions?))?",
        rf"how\s+many\s+tokens\s+(?:do|can|could|will|would)\s+{_WE}\s+(?:get|process|see|push|manage|fit|afford|buy|pay\s+for"
        r"|finish|crunch|burn|squeeze)(?:\s+(?:through|in|done|out))*",
        r"what\s+(?:would|will|does|is|do)\s+(?:(?:it|this|that|the)\s+)?(?:total\s+)?costs?",
        r"what\s+(?:would|will|does|do)\s+(?:it|this|that|we)\s+(?:all\s+)?come\s+to",
        r"how\s+(?:much|many)\s+costs?",
        r"what(?:'?s|\s+is)\s+the\s+(?:total\s+|training\s+|expected\s+)*"
        r"(?:cost|price|bill|eta|time|duration|time-?line|run\s?time|wall[\s-]?clock(?:\s+time)?)",
        (
            r"how\s+(?:long|much|fast|slow|expensive)(?:\s+(?:time|money|days|hours|memory|vram"
            r"|power|energy|electricity|compute))?(?:\s+(?:per|a)\s+(?:gpu"
            r"|device))?(?:\s+(?:will|would|does|do|is|must|should|did)\s+(?:it|this|that|we"
            r"|i|the\s+run|training)?)?(?:\s+(?:take|cost|run|need|be|last|use))?"
            r"(?:\s+(?:for|does|until|till)\s+the\s+(?:rest|remainder|end)(?:\s+(?:take|of\s+it))?)?"
            r"(?:\s+(?:per|for\s+(?:an?|one|each))\s+(?:step|epoch|iteration|update))?"
        ),
        (
            r"how\s+many\s+(?:(?:de|of)\s+)?(?:days|weeks|hours|months|dollars)(?:\s+(?:will|would|does"
            r"|do)\s+(?:it|this|that|we|i))?(?:\s+(?:take|cost|need))?"
        ),
        (
            r"(?:what|which)\s+(?:mfu|throughput|speed|step\s+time|tokens/s"
            r"|performance)(?:\s+(?:should|can|could|do|will|would|to)(?:\s+(?:i|we|it|expect"
            r"|get|see|reach))*)?"
        ),
        (
            r"what(?:'?s|\s+is)\s+the\s+(?:expected\s+)?(?:mfu|throughput|step\s+time"
            r"|memory(?:\s+use|\s+usage|\s+footprint)?)"
        ),
        (
            r"(?:does|do|will|would|can|could)\s+(?:it|this|that|they|the\s+model)\s+(?:fit"
            r"|work|run)(?:\s+(?:in|into|on)\s+memory)?"
        ),
        (
            r"(?:is\s+(?:it|this|that)\s+)?(?:(?:im)?possible|(?:in)?feasible|doable"
            r"|(?:un)?realistic|(?:im)?plausible|credible|achievable|attainable|manageable|enough)(?:\s+(?:to|at\s+all))?"
        ),
        r"(?:will|would|does|do)(?=\s+(?:a\s+|an\s+|the\s+)?\S+(?:\s+\S+){0,2}\s+fit\b)",
        r"(?:does|do|will|would)\s+(?:it|this|that|they|the\s+\w+)\s+(?:support|allow|handle)",
        (
            r"(?:get|got|getting|hit|hitting|(?:raise|throw|give)s?|(?:crash|fail)(?:e?s|ed|ing)?(?:\s+with)?|run(?:ning)?\s+(?:in)?to)?\s*(?:an?\s+)?(?:cuda\s"
            r"+)?(?:oom|out[\s-]of[\s-]memory)(?:s|\s+errors?)?"
        ),
        _OOM,
        r"(?:(?:activation|gpu|cpu|host|system)\s+)?(?:memory|v?ram)\s+(?:blow|explode|overflow|spike)s?(?:\s+up)?",
        r"what\s+(?:breaks|fails|goes\s+wrong|gives\s+(?:way|out))(?:\s+first)?",
        r"what\s+(?:to|should\s+(?:i|we)|can\s+(?:i|we))\s+do|what\s+now",
        r"(?:(?:is|are|does|do|did)\s*(?:n['’]?t|\s+not)|not)\s+work(?:s|ed|ing)?",
        r"(?:days|weeks|time)\s+(?:and|&|\+)\s+(?:dollars|money|\$)|(?:dollars|money|\$)\s+(?:and|&|\+)\s+(?:days|weeks|time)",
        r"is\s+(?:the\s+)?\w+\s+(?:going\s+to\s+be\s+)?(?:the|a|our)\s+(?:main\s+)?(?:bottleneck|problem|limit|issue)|how\s+(?:bad|good)(?:\s+(?:is|will)\s+(?:it|that)(?:\s+be)?)?",
        r"(?:time|duration|seconds|minutes|hours)\s+(?:per|for\s+(?:an?|one|each)|of\s+(?:an?|one|each))\s+(?:step|iteration|epoch|update)(?!\s+\d)",
        r"when\s+(?:will|would|can|could|is|are)(?=\s[^?]*\b(?:done|finish\w*|ready|complete\w*|through)\b)",
        rf"what\s+(?:do|does|would|will)\s+(?:{_WE}|it|that|this)\s+(?:gain|lose|save|win|get|bring)(?:\s+us)?(?=\s*[?.,;]|\s*$)",
        r"how\s+far(?=\s+(?:does|do|can|could|will|would)\b)",
        r"what\s+(?:does|would|will)\s+(?:that|this|it)\s+(?:do|change|mean)(?:\s+(?:to|for))?",
        r"what(?:'?s|\s+is|\s+will|\s+would)\s+(?:be\s+)?(?:the\s+|my\s+|our\s+)?(?:main\s+)?bottleneck\s+(?:going\s+to\s+be|be)",
        r"(?:or\s+)?(?:comm(?:s|unication)?|compute|memory|network|bandwidth|latency|io|i/o)[\s-]bound",
        r"(?:what|which)\s+(?:share|fraction|part|percentage|percent)\s+of\s+(?:the\s+|our\s+)?(?:total\s+)?(?:cost|bill|price|budget)s?",
        r"\$+(?=\s*(?:$|[;,?.&/]|and\b))",
        _RESULT,
        rf"(?:what(?:'?s|\s+(?:is|are|was|were|would|will|does|do)(?:\s+be)?)|tell\s+me|give\s+me|estimate)\s+(?:(?:it|this|that|the|my|our|its)\s+)?{_RESULT}",
        rf"(?:what|which)\s+{_RESULT}(?:\s+(?:should|can|could|do|will|would|to)(?:\s+(?:i|we|it|expect|get|see|reach))*)?",
        rf"how\s+(?:much|many|high|big|large|long)\s+(?:is|are|would\s+be|will\s+be)\s+(?:the\s+|my\s+|our\s+|its\s+)?{_RESULT}",
        r"what\s+(?:can|could|should|do)\s+(?:i|we)\s+expect(?:\s+(?:from|of|with|on))?",
        r"fits?(?=\s+(?:on|in|into|for|with|without|at)\b|\s*[?.,!]|\s*$)",
    ),
)
