"""What a line says of tuning a trained model: the method, its adapters, samples and rollout."""

from .fragments import ACCELERATOR, BATCH, BE, DEVICE_NOUN, MOST, number_in, whole_in
from .readers import always, prefixed, sequence, sequence_of, whole
from .rule import Rule, asks, means, sets

_NOUN = r"(?:\s+(?:adapters?|fine-?\s?tun\w*|training|sft|run|stage))?"
_BASE = r"(?:4[\s-]?bits?|nf4|int4)"  # how its base is kept
_RANK = r"(?:[,\s]+(?:with\s+)?(?:rank|r)\s*[=:]?\s*(?P<rank>\d+))?"
_SAMPLES = r"(?:samples|generations|roll-?outs|completions|responses)"
_EACH = (
    rf"(?:n\s*=\s*)?{whole_in('v')}\s+{_SAMPLES}"
    r"(?:\s+(?:per|a|each|for\s+each|for\s+every)\s+prompt|\s+each)"
)
_BY = r"\s*(?:x|×|\*|by|times|of|with)\s*"
_VARIANT = "which method is meant: this one is planned as none of these (job.method)"
_POLICIES = ("job.method: grpo", "job.method: ppo", "job.method: dpo")


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
    *sets({"adapter_rank": whole("v")}, rf"(?:lora[\s_-]*)?(?:rank|r){BE}\s*(?P<v>\d+)"),
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
        r"rl(?=\s+(?:training|run|fine|post|on|of|with|for|stage))(?:\s+training)?",
        choices=_POLICIES,
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
    *sets({"job.rollout.colocated": always(True)}, r"co-?located(?:\s+(?:engine|roll-?outs?))?"),
    *sets({"job.rollout.samples": whole("v")}, _EACH, rf"group[\s_-]size{BE}\s*{whole_in('v')}"),
    *sets(
        {"job.rollout.prompts": whole("prompts"), "job.rollout.samples": whole("v")},
        rf"{whole_in('prompts')}\s+prompts[\s,]*(?:and|with|by|x|×|\*)?\s*{_EACH}",
        rf"{whole_in('prompts')}\s+prompts{_BY}{whole_in('v')}\s+{_SAMPLES}",
        rf"{_EACH},?\s*(?:and\s+|with\s+|for\s+|of\s+)?{whole_in('prompts')}\s+prompts",
        rf"{whole_in('v')}\s+{_SAMPLES}{_BY}{whole_in('prompts')}\s+prompts",
    ),
    *sets(
        {"job.rollout.prompts": whole("v")},
        rf"{whole_in('v')}\s+prompts\s*(?:(?:per|a|each)\s+|/\s*)(?:step|batch|update|iteration)",
        rf"(?:{BATCH}|batches)\s*(?:of|{BE})\s*{whole_in('v')}\s+prompts",
    ),
    *sets(
        {"job.rollout.max_response": sequence},
        rf"max(?:imum)?\s+(?:response|completion|generation)(?:\s+length)?{BE}\s*"
        rf"(?:{MOST}\s*)?{whole_in('v')}(?:\s*tokens)?",
        rf"(?:responses?|completions?|generations?|roll-?outs?)\s+(?:of\s+)?{MOST}\s*{whole_in('v')}"
        r"(?:\s*tokens)?",
    ),
    *sets(
        {"job.rollout.mean_response": sequence},
        rf"(?:mean|average|avg)\s+(?:response|completion|generation)(?:\s+length)?{BE}\s*"
        rf"{whole_in('v')}(?:\s*tokens)?",
    ),
    *sets(
        {"job.rollout.mean_response": sequence, "job.rollout.max_response": sequence_of("most")},
        rf"(?:mean|average|avg)\s+(?:response|completion|generation)(?:\s+length)?{BE}\s*"
        rf"{whole_in('v')}(?:\s*tokens)?,?\s*(?:and\s+)?{MOST}\s*{whole_in('most')}(?:\s*tokens)?",
    ),
)
