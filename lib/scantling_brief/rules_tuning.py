"""What a line says of tuning a trained model: the method, its adapters, samples and rollout."""

from .fragments import ACCELERATOR, BATCH, BE, DEVICE_NOUN, MOST, PARAMS, number_in, whole_in
from .readers import always, plain, prefixed, sequence, sequence_of, whole, word_of_group
from .rule import Rule, asks, means, sets

_NOUN = r"(?:\s+(?:adapters?|fine-?\s?tun\w*|training|sft|run|stage))?"
_BASE = r"(?:4[\s-]?bits?|nf4|int4)"  # how its base is kept
# of a weight of the base
_BITS = r"(?P<whole>int|nf)?(?P<v>4|8|16)(?P<v_s>)(?(whole)(?:[\s-]?bits?)?|[\s-]?bits?)"
_RANK = r"(?:[,\s]+(?:with\s+)?(?:rank|r)\s*[=:]?\s*(?P<rank>\d+))?"
_SAMPLES = r"(?:samples?|generations?|roll-?outs?|completions?|responses?|answers?)"
_EACH = (
    rf"(?:n\s*=\s*)?{whole_in('v')}\s+{_SAMPLES}"
    r"(?:\s+(?:per|a|each|for\s+each|for\s+every)\s+prompt|\s+each)"
)
_RESPONSE = r"(?:response|resp|completion|generation|rollout)"
_BY = r"\s*(?:x|×|\*|by|times|of|with)\s*"
# a trainer that stands on a stack and is none of its own
TRAINER = "no stack is called so: on which does it run (stack)?"
_VARIANT = "which method is meant: this one is planned as none of these (job.method)"
OF_POLICIES = ("job.method: grpo", "job.method: ppo", "job.method: dpo")


def method(name: str, pattern: str) -> tuple[Rule, ...]:
    """Words that name a method."""
    return sets({"job.method": always(name)}, pattern + _NOUN)


def adapters(name: str, pattern: str) -> tuple[Rule, ...]:
    """Words that name adapters, with their rank where it follows."""
    fields = {"job.method": always(name), "job.adapter.rank": whole("rank")}
    return sets(fields, pattern + _NOUN + _RANK)


TUNING = (
    *adapters(
        "qlora",
        rf"(?:{_BASE}\s+)?q-?lora(?:\s+(?:in\s+|with\s+|on\s+)?\(?{_BASE}(?:\s+(?:base|weights|quanti\w+))?\)?)?",
    ),
    *adapters("lora", r"lora"),
    *sets(
        {"job.method": always("lora"), "job.adapter.base_bits": whole("v")},
        rf"{_BITS}\s+lora{_NOUN}",
        rf"lora{_NOUN}\s+(?:(?:in|with|at|on)\s+)?(?:an?\s+)?{_BITS}(?:\s+(?:base|weights))?(?!\s+(?:adam|optim))",
    ),
    *sets(
        {"job.adapter.base_bits": whole("v")},
        rf"{_BITS}\s+(?:frozen\s+)?base(?:\s+(?:model|weights))?",
        r"load_in_(?P<v>4|8)(?P<v_s>)bit(?:\s*[=:]\s*true)?",
    ),
    *sets(
        {"job.method": always("lora"), "job.adapter.rank": whole("v")},
        r"lora_(?:r|rank|dim)\s*[:=]?\s*(?P<v>\d+)",
        r"(?:low-rank\s+)?adapters?\s*(?:of|with|at|,|\()?\s*(?:rank|r)\s*[:=]?\s*(?:of\s+)?(?P<v>\d+)",
    ),
    *asks(
        "parameters that are trained: of which rank are the adapters (job.adapter.rank)?",
        rf"(?:number\s+of\s+)?trainable\s+{PARAMS}{BE}\s*{number_in('x')}\s*%?",
        rf"{number_in('x')}[\s-]*trainable(?:\s+{PARAMS})?",
        choices=("job.adapter.rank",),
    ),
    *sets({"adapter_rank": whole("v")}, rf"(?:lora[\s_-]*)?(?:rank|r){BE}\s*(?P<v>\d+)"),
    *sets(
        {"job.adapter.targets": always(["attention", "mlp"])},
        r"(?:on\s+)?all[\s-]+(?:the\s+)?(?:linear|lin|projection)(?:s|[\s-]+(?:layers|modules|projections))?(?:\s+targets?)?",
    ),
    *means("it scales what adapters add and costs nothing", rf"(?:lora[\s_-]*)?alpha{BE}\s*\d+"),
    *method("dpo", r"(?:dpo|direct\s+preference\s+optimi[sz]ation)"),
    *method("grpo", r"grpo"),
    *method("ppo", r"ppo(?:\s*/\s*rlhf)?"),
    *asks(
        _VARIANT,
        r"(?:(?:v|rs)lora|dora|qdora|loha|lokr|peft|prefix[\s-]tuning|prompt[\s-]tuning|p-tuning"
        r"|adapters?|adapter[\s-]tuning|soft\s+prompts?|galore|ia3)" + _NOUN,
        choices=("job.method: lora", "job.method: qlora"),
    ),
    *asks(
        _VARIANT,
        r"(?:orpo|kto|simpo|ipo|dapo|gspo|rloo|rlhf|rlaif|rlvr|rlef)" + _NOUN,
        r"(?:reinforcement\s+learning|preference\s+(?:training|tuning|optimi[sz]ation|data)"
        r"|policy\s+(?:training|gradient|optimi[sz]ation)|verl|openrlhf|trl)",
        r"rl(?=\s+(?:training|run|fine|post|on|of|with|for|stage))(?:\s+training)?|rl[\s-]+tun(?:e|es|ed|ing)",
        choices=OF_POLICIES,
    ),
    *asks(
        TRAINER,
        r"(?:axolotl|llama[\s-]?factory|unsloth|levanter|lit-?gpt|torchtune|ms-swift|xtuner|open-instruct|lmflow|llm-foundry)",
        choices=("stack",),
    ),
    *asks(
        "what judges a sample, and how long does a step wait for it (job.rollout.reward)?",
        r"(?:reward\s+model(?:l?ing|s)?|rejection\s+sampling|best[\s-]of[\s-]n|llm[\s-]judges?)",
        choices=("job.rollout.reward: {kind: rule}", "job.rollout.reward: {kind: model}"),
    ),
    *asks(
        "devices of the rollout beside those of the trainer: how many are there in all"
        " (cluster.devices), and how many of them for the rollout (job.rollout.devices)?",
        rf"{number_in('x')}\s*(?:{ACCELERATOR}\s*)?(?:{DEVICE_NOUN}\s*)?(?:for|on|do|doing)\s+(?:the\s+)?"
        r"(?:roll-?outs?|generation|inference|sampling)(?:\s+(?:with|by|in|on|using|via)\s+(?:vllm|sglang))?",
        choices=("cluster.devices", "job.rollout.devices"),
    ),
    *sets(
        {"job.rollout.engine": prefixed("")},
        r"(?P<v>vllm|sglang)(?=\s+roll-?outs?)(?:\s+roll-?outs?)",
        r"(?:roll-?outs?|generation|sampling)\s+(?:with|by|in|on|using|via)\s+(?P<v>vllm|sglang)",
    ),
    *sets({"group": whole("v")}, rf"groups?\s+of\s+{whole_in('v')}(?:\s+{_SAMPLES})?"),
    *sets(
        {"job.rollout.max_response": sequence},
        rf"(?:cap(?:ped)?|cut)(?:\s+(?:at|of|to))?\s*{whole_in('v')}[\s-]*tok(?:en)?s?",
    ),
    *sets(
        {"job.rollout.kv_fraction": plain},
        r"gpu[\s_-]*(?:mem(?:ory)?[\s_-]*)?util(?:i[sz]ation)?\s*[=:]?\s*(?:of\s+)?(?P<v>0?\.\d+)",
    ),
    *sets(
        {"job.rollout.lag": whole("v")},
        r"(?:lag|staleness|(?:max\s+)?off-?policy(?:ness)?)\s*(?:of\s+|=|:)?\s*(?P<v>\d{1,2})(?P<v_s>)(?:\s+steps?)?",
    ),
    *sets(
        {"job.rollout.samples": whole("v")},
        rf"(?:per|each|every)\s+prompt\s+{whole_in('v')}\s+{_SAMPLES}",
    ),
    *sets(
        {"job.rollout.colocated": always(True)},
        r"co-?locate[ds]?(?:\s+(?:engine|mode|roll-?outs?))?",
    ),
    *sets({"group": whole("v")}, rf"n\s*=\s*{whole_in('v')}"),
    *sets(
        {"job.rollout.tp": whole("v"), "job.rollout.engine": word_of_group("engine")},
        r"(?:(?P<engine>vllm|sglang)(?:\s+roll-?outs?)?|roll-?outs?|generation|engine)\s+(?:with\s+|at\s+|on\s+)?(?:tp|tensor[\s-]parallel(?:\s+size)?)"
        r"\s*[=:]?\s*(?P<v>\d+)(?P<v_s>)",
    ),
    *sets(
        {"job.rollout.samples": whole("v")},
        _EACH,
        rf"group[\s_-]size{BE}\s*{whole_in('v')}",
        # as TRL, NeMo RL and OpenRLHF call them
        rf"(?:num_generations(?:_per_prompt)?|n_samples_per_prompt)\s*[=:]?\s*{whole_in('v')}",
    ),
    *sets(
        {"job.rollout.prompts": whole("prompts"), "job.rollout.samples": whole("v")},
        rf"{whole_in('prompts')}\s+prompts[\s,]*(?:and|with|by|x|×|\*)?\s*{_EACH}",
        rf"{whole_in('prompts')}\s+prompts(?:\s*(?:/|per|a)\s*step)?{_BY}{whole_in('v')}\s+{_SAMPLES}",
        rf"{whole_in('prompts')}\s+prompts\s*[x×*]\s*(?P<v>\d{{1,4}})(?P<v_s>)(?=\s*(?:[,.;)?]|$))",
        rf"{_EACH},?\s*(?:and\s+|with\s+|for\s+|of\s+)?{whole_in('prompts')}\s+prompts(?:\s+(?:per|a|each)\s+(?:step|batch|iteration))?",
        rf"{whole_in('v')}\s+{_SAMPLES}{_BY}{whole_in('prompts')}\s+prompts",
    ),
    *sets(
        {"job.rollout.prompts": whole("v")},
        rf"{whole_in('v')}\s+prompts\s*(?:(?:per|a|each)\s+|/\s*)(?:step|batch|update|iteration)",
        rf"(?:{BATCH}|batches)\s*(?:of|{BE})\s*{whole_in('v')}\s+prompts",
        rf"num_prompts_per_step\s*[=:]?\s*{whole_in('v')}",
    ),
    *asks(
        "the longest prompt: how long are they in the mean (job.rollout.mean_prompt)?",
        rf"(?:max(?:imum)?[\s_-]+)?prompt[\s_-]+(?:length|len){BE}\s*{whole_in('x')}(?:\s*tokens)?",
        choices=("job.rollout.mean_prompt",),
    ),
    *asks(
        "prompts of a step (job.rollout.prompts), or samples of all of them?",
        rf"roll-?out[\s_-]+batch(?:[\s_-]+size)?{BE}\s*{whole_in('x')}",
        choices=("job.rollout.prompts",),
    ),
    *sets(
        {"job.rollout.max_response": sequence},
        rf"{whole_in('v')}\s*(?:tok(?:en)?s?\s+)?max(?:imum)?\.?\s+(?:{_RESPONSE}|output)(?:\s+(?:length|tokens))?",
        rf"max(?:imum)?[\s_-]+{_RESPONSE}(?:[\s_-]+(?:length|len))?{BE}\s*"
        rf"(?:{MOST}\s*)?{whole_in('v')}(?:\s*tokens)?",
        rf"(?:responses?|completions?|generations?|roll-?outs?|answers?)\s+(?:of\s+)?{MOST}\s*{whole_in('v')}"
        r"(?:\s*tokens)?(?!\s*(?:days?|weeks?|months?|hours?|minutes?|h\b|d\b))",
    ),
    *sets(
        {"job.rollout.max_response": sequence},
        rf"(?:response|completion|output|generation)s?[\s_-]+(?:length|len|budget|tokens|limit|cap){BE}\s*(?:{MOST}\s*)?"
        rf"{whole_in('v')}(?:\s*tokens)?",
        rf"{whole_in('v')}(?:[\s-]*tok(?:en)?s?)?[\s-]+(?:response|completion|output|generation)s?[\s_-]+(?:length|len|budget|limit|cap)",
        rf"max[\s_-]*(?:new[\s_-]*|output[\s_-]*|response[\s_-]*|completion[\s_-]*)tokens{BE}\s*{whole_in('v')}",
        rf"{MOST}\s*{whole_in('v')}(?:[\s-]*tokens?)?\s+(?:each|per\s+(?:response|completion|sample|roll-?out|answer)|(?:long\s+)?"
        r"(?:responses?|completions?|generations?|outputs?))",
        why="a length of responses without more is the one at which they are cut",
    ),
    *sets(
        {"job.rollout.samples": whole("v"), "job.rollout.max_response": sequence_of("most")},
        rf"{_EACH},?\s*(?:of\s+)?{MOST}\s*{whole_in('most')}(?:\s*tokens)?",
    ),
    *asks(
        "their mean length (job.rollout.mean_response), or the longest (job.rollout.max_response)?",
        rf"(?:responses?|completions?|generations?|roll-?outs?|outputs?|cots?)\s*(?:of|at|~|are|is|around|about)?\s*{number_in('x')}"
        r"(?:\s*tok(?:en)?s?)?(?!\s*(?:per|/|each|x|×|\*|for\s+each|a\s+prompt|prompts|gpus?|h\d|a\d|devices?|nodes?))",
        rf"{number_in('x')}[\s-]*tok(?:en)?s?\s+(?:long\s+)?(?:responses?|completions?|generations?|roll-?outs?|outputs?|cots?)",
        r"\d{1,3}\s?k[\s-]+(?:long\s+)?(?:responses?|completions?|generations?|roll-?outs?|outputs?|cots?)(?!\s+(?:per|a|each)\b)",
        choices=("job.rollout.mean_response", "job.rollout.max_response"),
    ),
    *means(
        "a setting of the optimizer or the loss: it costs nothing",
        rf"(?:beta|lr|learning[\s_-]rate|(?:(?:lr|learning[\s_-]rate)[\s_-])?warm-?up(?:[\s_-](?:steps|ratio))?|weight[\s_-]decay|temperature|temp|kl(?:[\s_-](?:coef\w*"
        rf"|penalty|beta))?|clip(?:[\s_-]\w+)?|dropout|top[\s_-]?p|gamma|lambda|epsilon|eps|seed|momentum|beta[12]){BE}\s*"
        r"\d*\.?\d+(?:e-?\d+)?%?(?!\s*(?:b\b|tokens?|gpus?|[xX×*]))(?:\s+steps\b)?",
    ),
    *means(
        "a data set: how large it is is not known here",
        r"gsm-?8k|math-?500|aime(?:\s*(?:20)?2\d)?|(?:human|live)\s?code\s?bench|mmlu(?:-pro)?|c4|the\s+pile|fine-?web(?:-edu|-?2)?"
        r"|(?:slim|red)pajama(?:-v\d)?|dclm|ultra-?(?:chat|feedback)(?:-?200k)?|open-?hermes(?:[\s-]2(?:\.5)?)?|dolma|dolly-15k|tulu-?3"
        r"|open-?orca|the\s+stack(?:[\s-]v2)?|starcoder-?data|common\s?crawl|wikipedia|openwebtext|tiny-?stories",
    ),
    *sets(
        {"job.rollout.mean_response": sequence},
        rf"(?:mean|average|avg)\s+{_RESPONSE}(?:\s+length)?{BE}\s*"
        rf"{whole_in('v')}(?:\s*tokens)?",
    ),
    *sets(
        {"job.rollout.mean_response": sequence, "job.rollout.max_response": sequence_of("most")},
        rf"(?:mean|average|avg)\s+{_RESPONSE}(?:\s+length)?{BE}\s*"
        rf"{whole_in('v')}(?:\s*tokens)?,?\s*(?:and\s+)?{MOST}\s*{whole_in('most')}(?:\s*tokens)?",
    ),
)
