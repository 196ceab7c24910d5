"""What decides and has no field of a design: distillation, serving, other kinds of models, other
currencies than dollars, dates, machines that are taken back. It is asked about."""

from scantling.base.typed import CURRENCIES, CURRENCY_SIGNS

from .fragments import (
    ACCELERATOR,
    BE,
    CONTEXT,
    DEVICE_NOUN,
    GROUP,
    MODEL_NOUN,
    MOST,
    PARAMS,
    TIMES,
    number_in,
    time_in,
)
from .readers import a_day, accelerator, always, word
from .rule import asks, sets
from .topics import Topic

_DISTILLATION = (
    "distillation is not planned (a teacher runs beside): is training of the student alone meant?"
)
_SERVING = "serving is not planned, training is: is a training run meant?"
QUANTISED = "quantisation is not planned: is training in this format meant (job.precision)?"
_OTHER_MODELS = (
    "only language models of decoder layers are planned: does one of this shape stand for it?"
)
_CURRENCY = f"(?:[kmb]?(?:{CURRENCIES}))"
_SIGN = f"(?:{CURRENCY_SIGNS})"
_AN_HOUR = (
    r"(?:(?:\s*(?:/|per|an?|each)\s*(?:gpus?|devices?|chips?|cards?|accelerators?|tpus?|nodes?))?"
    r"[\s-]*(?:/|per|an?|each|pro)?[\s-]*(?:gpu|device|chip|card|node)?[\s-]?(?:hours?|hrs?|h)\b)"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_PART = r"(?:the\s+)?(?:(?:beginning|start|middle|mid|end|early|late)[\s-]+(?:of\s+)?)?(?:the\s+)?"
_BY = r"(?:by|before|until|till|due(?:\s+(?:by|on))?|from|starting|start|ready|on|in|since)\s+"
A_PACE = "a rate, measured or wanted: what is it of job.tokens and constraints.deadline_days?"
A_DATE = "a deadline is stated in days from the start: how many?"
_WHICH = "a range: which value of it is planned with?"
_UP_TO = r"(?:\s*[-–—]\s*|\s+to\s+|\s+and\s+)"
# from one number to another: between 256 and 512, 6-8, 1 to 2
_RANGE = (
    rf"(?:(?:in|somewhere|anything|anywhere)\s+)*(?:(?:between|from)\s+{number_in('x')}{_UP_TO}{number_in('y')}"
    rf"|{number_in('i')}(?:[-–—]|\s+to\s+){number_in('j')})"
)
_THEN = r"(?:\+|&|->|→|,?\s*then|,?\s*and(?:\s+then)?|,?\s*followed\s+by|,?\s*plus)"
_DOLLARS = r"\$\s*"
# a rented machine as its owner calls it: p4de.24xlarge, a2-ultragpu-8g, BM.GPU.A100-v2.8
_RENTED = (
    r"(?:(?:[gp]\d\w{0,3}|trn\d\w?|inf\d|dl\d\w?)\.(?:\d*x?large|metal\S*)"
    r"|[acgn]\d\w?-\w+gpu-\d+g(?:-\w+)?"
    r"|(?:standard[_\s])?n[cdv]\d+\w*[_\s](?:\w+_)?v\d|[bv]m\.gpu[\w.-]*\w)"
)

ASKED = (
    *asks(
        "what does the machine cost to buy (prices.owned.capex_usd)?",
        r"(?:rent|buy|lease)(?:ing)?\s+(?:or|vs\.?|versus)\s+(?:rent|buy|lease)(?:ing)?(?:\s+(?:them|it|one))?",
        r"(?:or|vs\.?|versus)\s+(?:rent|buy|lease)(?:ing)?(?:\s+(?:them|it|one))?(?!\s+\d)",
        choices=("prices.owned.capex_usd", "prices.usd_per_device_hour"),
        of=Topic.DESIGN,
    ),
    *asks(
        "how many are there (cluster.devices)? The assessment says what they draw",
        rf"how\s+many\s+(?:{ACCELERATOR}|{DEVICE_NOUN}|{GROUP}|racks?)(?:\s+(?:{DEVICE_NOUN}|racks?))?\s+(?:(?:can|could|would|will|do|does)\s+(?:we|i|it|that)\s+"
        r"(?:power|feed|supply|cool)|(?:(?:can|could|would|will)\s+)?fit(?!\s+(?:an?|the|our|my)\s))",
        choices=("cluster.devices",),
        fields={"accelerator": accelerator},
        of=Topic.DESIGN,
    ),
    *asks(
        "a German Billion is 10^12, an English one 10^9: which is meant (job.tokens)?",
        rf"{number_in('v')}\s*Bio\.?(?:\s*(?:tokens?|toks?))?",
        choices=("job.tokens",),
    ),
    *asks(
        "nodes that are kept back: cluster.devices without them, and reliability.spares?",
        rf"of\s+which\s+{number_in('v')}\s+(?:{GROUP}\s+)?(?:(?:are|is|will\s+be)\s+)?(?:(?:kept|held|reserved|set\s+aside|used|left)"
        r"\s+)?(?:back\s+)?(?:as\s+)?(?:(?:hot|cold|warm)[\s-])?(?:spares?|stand-?by)",
        rf"{number_in('w')}\s+(?:{GROUP}\s+(?:are|is|will\s+be)|of\s+(?:them|these|those|our\s+{GROUP}))\s+(?:kept\s+|held\s+|reserved\s+|used\s+)?(?:back\s+)?(?:as\s+)?"
        r"(?:(?:hot|cold|warm)[\s-])?(?:spares?|stand-?by)",
        choices=("cluster.devices", "reliability.spares"),
    ),
    *asks(
        "no node of the catalogue is so called: how many of which accelerator does it have?",
        rf"(?:{number_in('x')}{TIMES})?{_RENTED}(?:\s*[x×*]\s*{number_in('y')})?",
        choices=("cluster.accelerator", "cluster.devices"),
    ),
    *asks(
        "how many devices does each hold (cluster.devices)?",
        rf"{number_in('x')}\s+(?:{ACCELERATOR}|dgx|hgx)\s+(?:super)?(?:pods?|clusters|racks)",
        choices=("cluster.devices",),
        fields={"accelerator": accelerator},
    ),
    *asks(
        _WHICH,
        rf"{_RANGE}{TIMES}(?:{ACCELERATOR}(?:\s+{DEVICE_NOUN})?|{DEVICE_NOUN}|{GROUP})",
        choices=("cluster.devices",),
        fields={"accelerator": accelerator},
    ),
    *asks(
        _WHICH,
        rf"{_RANGE}[\s-]*(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)",
        rf"between\s+{time_in('x')}{_UP_TO}{time_in('y')}",
        choices=("constraints.deadline_days",),
    ),
    *asks(_WHICH, rf"{_RANGE}[\s-]*(?:tokens?|toks?)(?!\s*(?:/|per))", choices=("job.tokens",)),
    *asks(
        _WHICH,
        rf"{_RANGE}[\s-]*(?:{PARAMS}|{MODEL_NOUN})",
        r"\d+(?:\.\d+)?\s?b?(?:[-–—]|\s+to\s+)\d+(?:\.\d+)?\s?b",
        choices=("model.size",),
    ),
    *asks(_WHICH, rf"{_RANGE}[\s-]*{CONTEXT}", choices=("job.seq_len",)),
    *asks(_WHICH, rf"{_RANGE}\s+epochs?", choices=("job.tokens",)),
    *asks(
        _WHICH,
        rf"(?:between|from)\s+{_DOLLARS}{number_in('x')}{_UP_TO}(?:{_DOLLARS})?{number_in('y')}",
        rf"{_DOLLARS}{number_in('x')}(?:\s*[-–—]\s*|\s+to\s+)(?:{_DOLLARS}{number_in('y')}|{number_in('z')}(?!\s*(?:[x×*-]|[a-z])))",
        rf"{number_in('x')}(?:\s*[-–—]\s*|\s+to\s+){_DOLLARS}{number_in('y')}",
        choices=("constraints.budget_usd",),
    ),
    *asks(
        "until a node is repaired (reliability.repair_s), or until the job runs again "
        "(reliability.restart_s)?",
        rf"(?:mttr|mean\s+time\s+to\s+(?:repair|recover(?:y)?|restore)){BE}\s*(?:about\s+)?{time_in('v')}",
        choices=("reliability.repair_s", "reliability.restart_s"),
    ),
    *asks(
        "every plan has to fit with what the allocator keeps: how likely may it run out "
        "(constraints.max_oom_probability)?",
        rf"(?:{MOST}\s*)?\d+(?:\.\d+)?\s*(?:%|percent)\s+(?:of\s+)?(?:the\s+|gpu\s+|device\s+|hbm\s+|v-?ram\s+)*(?:memory|hbm|v-?ram)(?:\s+(?:headroom|margin|use|usage|free))?",
        r"(?:memory|hbm|v-?ram)\s+(?:head-?room|margin|reserve)(?:\s+of)?\s*\d+(?:\.\d+)?\s*(?:%|percent|gb)?",
        choices=("constraints.max_oom_probability",),
    ),
    *asks(
        _DISTILLATION,
        r"(?:knowledge\s+)?distil(?:l|led|ling|lation)?(?:\s+\S+)?(?:\s+(?:in)?to)?",
        r"(?:teacher|student)\s+models?",
    ),
    *asks(
        _SERVING,
        r"(?:serve|serving|served|inference|inferencing|infer)(?:\s+(?:throughput|latency|cost"
        r"|server|engine|cluster))?(?:\s+of)?",
        r"(?:vllm|sglang|tensorrt(?:-llm)?|trt-llm|tgi|llama\.cpp|ollama|exllama|triton\s+server)",
        r"(?:deploy(?:ing|ed|ment)?|host(?:ing)?)(?=\s+(?:a|an|the|our|it|this|llama|qwen|deepseek"
        r"|model|llm|\d))",
        r"deploy(?:ing|ment)?(?=\s*(?:[+&,;?]|and\b|then\b|to\b|or\b|$))",
        r"(?:kv[\s-]cache|time\s+to\s+first\s+token|ttft|tpot|latency|prefill|decode\s+(?:speed|throughput)"
        r"|concurrent\s+users|requests\s+per\s+second|rps|chatbot|generation\s+speed)",
    ),
    *asks(
        QUANTISED,
        r"(?:quanti[sz](?:e|ed|ing|ation)|gptq|awq|gguf|nf4|(?:in\s+)?(?:int)?[48][\s-]?bit"
        r"|int4|q[48]_\w+|ptq|qat)(?:\s+to(?:\s+int\d)?)?",
    ),
    *asks(
        _OTHER_MODELS,
        r"(?:diffusion|dit|vision[\s-]transformers?|vits?|vlms?|vision[\s-]language|multi-?modal"
        r"|text[\s-]to[\s-](?:image|video|speech)|image\s+generation|video\s+(?:generation|model)"
        r"|speech|audio|asr|tts|encoder[\s-]decoder|encoder[\s-]only|embedding\s+models?|reranker"
        r"|recommend(?:er|ation)s?|gans?|unet|resnet\d*|cnns?|protein|world\s+models?|whisper|wav2vec"
        r"|clip|sdxl|flux|alphafold\d?|esm-?\d|dino(?:v\d)?)"
        r"(?:\s+models?)?",
        r"(?:mamba-?2?|rwkv|retnet|hyena|ssms?|state[\s-]space|linear[\s-]attention|xlstm)"
        r"(?:\s+(?:hybrid|model|layers))?",
        choices=("model.pattern",),
    ),
    *asks(
        A_PACE,
        rf"{number_in('v')}[\s-]*(?:tokens?|toks?)\s*(?:/|per|an?|every|each)\s*(?P<v_u>s|sec|second|minute|hour|hr|h|day|week"
        r"|month)(?!\s*(?:/|per|a|and|on each)\s*(?:gpu|device|chip|card|accelerator|[abhm]\w*\d))",
        fields={"pace": a_day},
    ),
    *asks(
        "how much is it for the whole run (constraints.budget_usd)?",
        rf"\$\s*{number_in('v')}\s*(?:/|per|an?|every|each)\s*(?:day|week|month|quarter|year|annum)",
        choices=("constraints.budget_usd",),
    ),
    *asks(
        "a share of the time: how many days in a row are there (constraints.deadline_days)?",
        r"\d+(?:\.\d+)?\s*(?:hours?|hrs?|h|days?|nights?|weeks?)\s*(?:/|per|an?|every|each)\s*(?:day|night|week|month"
        r"|year)",
        choices=("constraints.deadline_days",),
    ),
    *asks(
        "a part of a chip is not planned: is the whole one meant?",
        r"(?:mig|v-?gpus?|gpu\s+slices?)(?:\s+(?:slices?|instances?|partitions?))?(?:\s+of)?",
    ),
    *sets(
        {"job.method": always("sft"), "then": word},
        rf"(?:full[\s-]+)?(?:sft|fine-?tun\w+|instruction[\s-]tuning)\s*{_THEN}\s*(?P<v>dpo|grpo|ppo)",
        why="one stage after the other, each planned by itself",
    ),
    *asks(
        "a run of one method is planned: which of these stages (job.method)?",
        rf"pre-?train\w*\s*{_THEN}\s*(?:sft|fine-?tun\w+|instruction[\s-]tuning)\s*{_THEN}\s*(?:dpo|grpo|ppo|rl\w*)",
        rf"(?:sft|fine-?tun\w+|instruction[\s-]tuning)\s*{_THEN}\s*rl\w*",
        rf"pre-?train\w*\s*{_THEN}\s*(?:sft|fine-?tun\w+|instruction[\s-]tuning|post-?training)",
        choices=("job.method",),
    ),
    *asks(
        "dollars are planned with: how many are they (constraints.budget_usd)?",
        rf"(?:budget(?:\s+(?:cap|limit))?{BE}\s*)?(?:{MOST}\s*)?{_SIGN}\s*{number_in('v')}"
        r"(?:\s+(?:budget|cap|limit|in total|total))?",
        rf"(?:budget(?:\s+(?:cap|limit))?{BE}\s*)?(?:{MOST}\s*)?{number_in('v')}\s*"
        rf"(?:{_SIGN}|{_CURRENCY})(?:\s+(?:budget|cap|limit|in total|total))?",
        rf"(?:budget(?:\s+(?:cap|limit))?{BE}\s*)?(?:{MOST}\s*)?{_CURRENCY}\s*{number_in('v')}",
        rf"(?:in|as)\s+(?:{CURRENCIES})",
        choices=("constraints.budget_usd",),
    ),
    *asks(
        "dollars are planned with: how many are they an hour (prices.usd_per_device_hour)?",
        rf"{_SIGN}\s*{number_in('v')}{_AN_HOUR}",
        rf"{number_in('v')}\s*(?:{_SIGN}|{_CURRENCY}){_AN_HOUR}",
        rf"{_CURRENCY}\s*{number_in('v')}{_AN_HOUR}",
        choices=("prices.usd_per_device_hour",),
    ),
    *asks(
        "how many days may it take (constraints.deadline_days)?",
        r"(?:in|within|under|at\s+most|no\s+more\s+than|less\s+than)\s+(?:several|a\s+few|some"
        r"|a\s+couple\s+of)\s+(?:weeks?|months?|days?)",
        choices=("constraints.deadline_days",),
    ),
    *asks(
        "how many nodes are they (reliability.spares)?",
        r"(?:several|a\s+few|few|some|dozens\s+of|hundreds\s+of)(?:\s+(?:dozen|hundred|thousand))?\s+"
        r"(?:hot|warm|cold)?[\s-]?(?:spares?(?:\s+nodes?)?|nodes?\s+(?:on\s+)?stand-?by)",
        choices=("reliability.spares",),
    ),
    *asks(
        "how many tokens are they (job.tokens)?",
        r"as\s+many\s+tokens\s+as\s+(?:possible|(?:we|i|you)\s+(?:can|could|like))",
        r"(?:against\s+|with\s+|on\s+)?(?:an?\s+|the\s+)?fixed\s+(?:token\s+budget|budget\s+of\s+"
        r"tokens)",
        choices=("job.tokens",),
    ),
    *asks(
        A_DATE,
        rf"{_BY}{_PART}(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?)?{_MONTH}"
        r"(?:\s*\d{1,2}(?:st|nd|rd|th)?)?(?:,?\s*20\d\d)?",
        rf"{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s*20\d\d)?(?:\s+deadline)?",
        rf"\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:\s*20\d\d)?",
        rf"{_MONTH}\s+20\d\d",
        rf"(?:{_BY})?{_PART}(?:20\d\d-\d\d-\d\d|\d{{1,2}}[./]\d{{1,2}}[./](?:20)?\d\d)",
        (
            rf"(?:by|before|until|till|in|starting|start|ready)\s+{_PART}20[23]\d(?!\s*[x×]?\s*"
            r"[a-z]+\d|\s*(?:gpu|device|node|chip|tpu|card|acc|step|seq|tok))"
        ),
        rf"{_BY}{_PART}(?:this\s+|next\s+)?(?:q[1-4]|h[12]|year|quarter|month|week"
        r"|christmas|easter|summer|winter|spring|autumn|fall|neurips|icml|iclr|monday|friday)"
        r"(?:[\s,]*20\d\d)?",
        r"(?:q[1-4]|h[12])\s*(?:of\s+)?20\d\d",
        r"(?:over|during)\s+(?:the\s+|our\s+)?(?:christmas|easter|summer|winter|spring|holiday|semester|term)\s*(?:break|holidays?|vacation|shutdown)?",
        choices=("constraints.deadline_days",),
    ),
    *asks(
        "how often are nodes taken back (prices.spot.preemptions_per_day), and at which price "
        "(prices.spot.usd_per_device_hour)? Or is the price alone that of a spot market "
        "(prices.kind: spot)?",
        r"(?:spot|pre-?empt(?:ible|ions?|ed)|interruptible)(?:\s+(?:instances?|machines?|vms?"
        r"|capacity|market|pricing|price|nodes?|gpus?))?",
        choices=("prices.spot", "prices.kind: spot", "prices.kind: on-demand"),
    ),
    *asks(
        "which of these schedules is meant (plan.schedule)?",
        r"zero[\s-]?bubble(?:\s+(?:pipeline|schedule|pp))?",
        choices=("zb-1p", "zb-2p", "zb-v"),
    ),
    *asks(
        "is the cluster's power bounded (constraints.max_power_mw)?",
        r"\d+(?:\.\d+)?\s*[mg]w(?:\s+(?:data\s?cent(?:er|re)|site|facility|campus|of\s+power))?",
        choices=("constraints.max_power_mw",),
    ),
)
