"""What a line says of the model, the job and the plan."""

from collections.abc import Mapping

from scantling.base.files import table
from scantling.catalogue.setting_names import NAMES, Setting

from .fragments import (
    ACCELERATOR,
    BATCH,
    BE,
    BILLIONS,
    CONTEXT,
    ENDLESS,
    KV_HEADS,
    MAKER,
    MODEL_NOUN,
    MOST,
    OPTIMAL,
    OVER,
    PARAMS,
    PER_DEVICE,
    number_in,
    whole_in,
)
from .readers import (
    always,
    amount,
    millions,
    number,
    plain,
    plain_of,
    prefixed,
    rest,
    sequence,
    sequence_of,
    whole,
    word,
    written,
    written_of,
)
from .rule import Rule, asks, means, sets


def _ways(path: str, axis: str, name: str) -> tuple[Rule, ...]:
    """Ways of one axis of a plan, by its letters or in words."""
    parallel = r"[\s_-]+parallel(?:i[sz]m)?"
    size = r"(?:[\s_-]*(?:size|degree|ways?|rank)|\s+(?:with|of)\s+(?:an?\s+)?(?:size|degree))?"
    return sets(
        {path: whole("v")},
        rf"{axis}(?:[\s_-]*(?:size|degree|ways?))?\s*(?:[=:]|of|is)?\s*(?P<v>\d+)",
        rf"(?P<v>\d+)[\s-]*(?:way|x)?\s+{axis}",
        rf"(?P<v>\d+)[\s-]*way\s+{name}(?:{parallel})?",
        rf"-{{0,2}}{name}{parallel}{size}{BE}\s*(?P<v>\d+)",
    ) + sets({path: always(1)}, rf"(?:no|without|avoid(?:ing)?|skip)\s+(?:{axis}|{name}{parallel})")


def _words_of(path: str, words: Mapping[str, str], behind: str) -> tuple[Rule, ...]:
    """The values of one field, each by its words, with what may stand behind them."""
    patterns = {value: f"(?:{pattern}){behind}" for value, pattern in words.items()}
    return tuple(
        rule for value, text in patterns.items() for rule in sets({path: always(value)}, text)
    )


_ATTENTIONS = {
    "gqa": r"gqa|grouped[\s-]query",
    "mqa": r"mqa|multi[\s-]query",
    "mla": r"mla|multi[\s-]head latent",
    "mha": r"mha|(?:full |standard )?multi[\s-]head",
}
_MLPS = {"swiglu": "swiglu", "geglu": "geglu", "gelu": "gelu", "squared-relu": r"squared[\s-]relu"}
_FORMATS = {
    "bf16": "bf16|bfloat16",
    "fp16": "fp16|float16|half precision",
    "fp32": "fp32|float32|single precision",
    "mxfp8": "mxfp8",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4|fp4",
    "fp8-block": r"fp8[\s-]block(?:wise)?|block(?:wise)?[\s-]fp8",
    "int8": "int8",
    "fp8": (
        r"(?:fp8(?:[\s-]+float8)?|float8)(?:[\s-]+(?:hybrid|tensorwise|rowwise|delayed(?:\s+scaling)?))?"
    ),
}
_OPTIMIZERS = {
    "adamw": r"adam[\s-]?w?",
    "muon": "muon",
    "adafactor": "adafactor",
    "lion": "lion",
    "sgd": "sgd",
}
_OF_ACTIVATIONS = (
    r"(?:(?:act(?:ivations?)?|grad(?:ient)?s?)\.?[\s_-]*"
    r"(?:ckpt(?:ing|s)?|chkpt|checkpoint(?:s|ing)?|recomp(?:ut(?:e|ation|ing))?))"
)
_RECOMPUTE = rf"(?:{_OF_ACTIVATIONS}|recomput(?:e|ation|ing)|remat(?:eriali[sz]ation)?|AC)"
STYLE = r"(?:style|like|class|based|esque|scale|type|shaped|architecture|arch|inspired)"
_ACCUMULATION = (
    r"(?:(?:(?:gradient|grad)[\s_-]*)?(?:accumulation|accum|acc)(?:[\s_-]*steps?)?"
    r"|gas?(?=\s*[=:]?\s*\d))"
)
_USUAL = "1|2|4|8|16|20|24|32|40|48|64|96|128|131|160|192|200|256|512"  # thousands of a sequence
_POWERS = "1024|2048|4096|8192|16384|32768|65536|131072"  # tokens of a sequence
_EXAMPLES = (
    r"(?:examples|samples|instructions|prompts|conversations|dialog(?:ue)?s|pairs|comparisons|rows|records|problems|questions"
    r"|traces|trajectories)"
)
# of which kind they are: 50k math problems
_OF_A_KIND = r"(?:(?!(?:hundred|dozen|lakh|crore)s?\b)[a-z-]+\s+)?"
_DOCUMENT = r"(?:sequences?|documents?|docs?|contexts?|prompts?)"
# of a scale of tokens: what does an extra trillion tokens cost
_ONE = r"(?:per|for\s+each|an?(?:other)?|(?:(?:an?|one)\s+)?(?:extra|additional|further))"
# of a run that has begun: crashed at step 48,000 of 120,000, done 1.2T of 15T tokens
_SO_FAR = (
    r"(?:(?:is|are|was|were|we|it|i|now|have|has|already|currently|crash\w*|stopp\w*|died|hung|paus\w*|resum\w*|done|did|trained|through|from"
    r"|at|after|past|only|for|on|finished)\s+)+"
)
_NO_MAKER = r"(?:switch|step)\s+(?:from|to|back|over|off|on|by|in|is|at)\b"  # words of their own
_LAW_ALONE = r"chinchilla(?=\s*(?:[.,;?!)]|$))"  # the law, where no size follows
_NUMBERS = {
    Setting.TP: "plan.tp",
    Setting.PP: "plan.pp",
    Setting.VPP: "plan.vpp",
    Setting.CP: "plan.cp",
    Setting.EP: "plan.ep",
    Setting.DP: "plan.dp",
    Setting.SEQ_LEN: "job.seq_len",
    Setting.MICRO_BATCH: "plan.micro_batch",
    Setting.GLOBAL_BATCH: "job.global_batch",
    Setting.ACCUMULATION: "plan.grad_accum",
    Setting.DEVICES: "cluster.devices",
    Setting.NODES: "nodes",
    Setting.DEVICES_PER_NODE: "cluster.devices_per_node",
    Setting.LAYERS: "model.layers",
    Setting.HIDDEN: "model.hidden",
    Setting.HEADS: "model.heads",
    Setting.KV_HEADS: "model.kv_heads",
    Setting.FFN_HIDDEN: "model.ffn_hidden",
    Setting.VOCAB: "model.vocab",
    Setting.EXPERTS: "model.experts",
    Setting.TOP_K: "model.top_k",
    Setting.EXPERT_FFN_HIDDEN: "model.expert_ffn_hidden",
}


def _of_setting(setting: Setting, path: str) -> tuple[Rule, ...]:
    """A number as frameworks state it: --num-layers 80, training.seq_len: 8192."""
    names = "|".join(name.replace("_", "[_-]") for name in NAMES[setting] if "_" in name)
    return sets({path: whole("v")}, rf"-{{0,2}}(?:[a-z_]+\.)*(?:{names})\s*[=:]?\s*{whole_in('v')}")


def _of_file(begin: str, stack: str) -> tuple[Rule, ...]:
    """ZeRO's stage and its offload in the name of a configuration file: ds_z3_offload_config.json.
    The files of stage 3 that are called so take parameters too (LLaMA-Factory,
    examples/deepspeed)."""
    stage, end = rf"{begin}[\s_-]z(?:ero)?[\s_-]?", r"(?:_config)?(?:\.json)?"
    fields = {"stack": always(stack), "plan.sharding": prefixed("zero")}
    return tuple(
        rule
        for values, pattern in (
            (fields, rf"{stage}(?P<v>[123])"),
            (fields | {"plan.offload": always("optimizer")}, rf"{stage}(?P<v>[12])_off-?load"),
            (fields | {"plan.offload": always("optimizer+params")}, rf"{stage}(?P<v>3)_off-?load"),
        )
        for rule in sets(values, pattern + end)
    )


MODEL = (
    *(rule for setting, path in _NUMBERS.items() for rule in _of_setting(setting, path)),
    *sets(
        {"alike": written_of("like")},
        rf"(?P<like>(?!chinchilla){MAKER})[\s-]{STYLE}(?:\s+(?:model|moe|llm|decoder))?",
    ),
    *means(
        "a publication: what it planned is not taken over",
        rf"(?:(?:as\s+)?(?:in|from|per|like)\s+)?(?:the\s+)?{MAKER}\s+(?:paper|tech(?:nical)?\s+report|report|blog(?:\s+post)?)",
    ),
    *sets(
        {"alike": written_of("like")},
        r"(?P<like>(?!llama|gpt)[a-z][a-z0-9.]*\d[a-z0-9.]*)-(?:like|style|type|esque)(?:\s+(?:model|moe|llm|architecture))?",
    ),
    *sets({"maker": written}, rf"(?!{_LAW_ALONE}|{_NO_MAKER}){MAKER}"),
    *sets(
        {"maker": written_of("maker"), "model.size": number("v")},
        rf"(?P<maker>{MAKER})[\s-]*(?P<v>\d+(?:\.\d+)?)[\s-]?(?P<v_s>b|bn|t|tn|m|billion|trillion)",
    ),
    *asks(
        "no model of the catalogue is so named alone: which is it?",
        r"\d+\s?x\s?\d+(?:\.\d+)?b(?:[\s-]+moe)?|\d+\s+experts\s+of\s+\d+(?:\.\d+)?b",
        choices=(
            "mixtral-8x7b",
            "mixtral-8x22b",
            "model: {size: , moe: true, experts: 8, top_k: 2}",
        ),
    ),
    *asks(
        "a model's size counts all of it (model.size): how large is the whole?",
        rf"{number_in('v')}[\s-]*(?:{PARAMS}\s+)?(?:each|apiece|(?:per|an?)\s+expert)(?=\s*(?:[,.;:)?]|$|(?:top|on|with)\b))",
        choices=("model.size",),
    ),
    *asks(
        "in which format are the optimizer's states kept? The optimizer's usual one is planned",
        (
            r"(?:in\s+|with\s+)?(?:(?:bf16|fp8|fp16|int8)\s+adam\w*|(?:bf16|fp8|fp16|int8"
            r"|8[\s-]?bit)\s+(?:optimi[sz]er\s+)?(?:states?|moments?|optimi[sz]er))"
        ),
    ),
    *sets(
        {"model.size": number("v")},
        rf"{number_in('v')}[\s-]*{PARAMS}",
        rf"(?:model size|parameter count|{PARAMS}){BE}\s*{number_in('v')}",
    ),
    *sets(
        {"model.size": number("v")},
        rf"{BILLIONS}(?=[\s-]+(?:\S+\s+){{0,2}}?{MODEL_NOUN}\b)",
        rf"{BILLIONS}[\s-]+total",
    ),
    *sets({"model.layers": whole("v")}, r"(?P<v>\d{1,3})(?P<v_s>)L(?=\s*[,;/)]|\s)", case=True),
    *sets(
        {"model.size": number("v")},
        rf"(?P<v>\d+(?:\.\d+)?|{ENDLESS})[\s-]?(?P<v_s>bn|b|billion)",
        why="a number of billions alone is the model's size",
    ),
    *sets(
        {"job.from_checkpoint": always(True), "model.size": number("w")},
        r"(?:(?:warm[\s-])?start(?:ing|ed)?|continu(?:e|es|ed|ing)|resum(?:e|es|ed|ing))\s+(?:training\s+)?from\s+(?:an?|our|the)\s+"
        rf"(?P<w>\d+(?:\.\d+)?)(?P<w_s>b)\s+(?:checkpoint|ckpt|model|base)(?:\s+(?:at|of|after)\s+{number_in('v')}(?:\s*(?:tokens|toks?))?)?",
    ),
    *sets(
        {"model.size": number("w"), "job.tokens": amount},
        rf"(?:an?|the|our|my)\s+(?P<w>\d+(?:\.\d+)?)(?P<w_s>b)\s+(?:(?:model|dense|moe)\s+)?(?:up\s+)?to\s+"
        rf"{number_in('v')}\s*(?:tokens|toks?)(?!\s*(?:/|per))",
        why="a model as far as so many tokens",
    ),
    *sets(
        {"trillions": number("v")},
        r"(?:over\s+)?(?P<v>\d+(?:\.\d+)?)\s?(?P<v_s>t|tn|trillion)(?!\w|\s*(?:/\s*s\b|bytes?|b\b|ib\b|infini|roce|eth|efa|network|fabric|nics?\b|links?"
        r"|per\s|ram|memory|dram|hbm|nvme|ssd|disks?|storage|param|model|dense|moe|dollars|usd))",
    ),
    *sets(
        {"model.size": number("v")},
        (
            r"(?P<v>\d{2,3})[\s-]?(?P<v_s>m)(?!\s*(?:tok|batch|seq|sample"
            r"|usd|dollar|example))"
        ),
        why="a number of millions alone is the model's size",
    ),
    *sets(
        {"model.active": number("v")},
        (
            rf"{number_in('v')}[\s-]*(?:active|activated)(?:[\s-]+{PARAMS})?"
            r"(?:\s+per token)?"
        ),
        rf"{number_in('v')}[\s-]*act\.?(?:[\s-]+{PARAMS})?(?![\s._-]*(?:ckpt|chkpt|check|recomp|off|func))",
        (
            rf"(?:active|activated)(?:\s+{PARAMS})?{BE}\s*{number_in('v')}"
            rf"(?:\s+{PARAMS})?"
        ),
        r"A(?P<v>\d+(?:\.\d+)?)(?P<v_s>b)",
    ),
    *sets(
        {"model.size": number("p"), "model.active": number("a")},
        (
            rf"{number_in('p')}\s*/\s*{number_in('a')}(?:\s*{PARAMS})?"
            r"(?=\s*(?:moe|mixture|sparse))"
        ),
        r"(?P<p>\d+(?:\.\d+)?)(?P<p_s>[bt])[\s-]A(?P<a>\d+(?:\.\d+)?)(?P<a_s>b)",
    ),
    *sets(
        {"model.size": number("p"), "active_beside": number("a")},
        r"(?P<p>\d+(?:\.\d+)?)(?P<p_s>[bt])/(?P<a>\d+(?:\.\d+)?)(?P<a_s>b)(?!\s*(?:tok|/))",
    ),
    *sets(
        {"model.attention": always("gqa")},
        r"(?:gqa|grouped[\s-]query)(?:\s+attention)?(?:\s+\(gqa\))?",
    ),
    *sets(
        {"model.moe": always(True)},
        r"(?:sparse\s+)?moe",
        r"(?:sparse\s+)?mixture[\s-]of[\s-]experts(?:\s*\(moe\))?",
        r"sparse(?:ly[\s-]activated)?(?=\s+(?:model|transformer|llm))",
    ),
    *sets({"model.moe": always(False)}, r"dense"),
    *sets(
        {"model.experts": whole("v"), "model.top_k": whole("k")},
        rf"{whole_in('v')}[\s-]*(?:routed\s+)?experts?[\s,(]*(?:with\s+)?{whole_in('k')}\s+(?:active|activated|per\s+token)(?:\s+experts?)?\)?",
    ),
    *sets(
        {"model.mtp_layers": whole("v")},
        rf"mtp(?:[\s_-]*(?:heads?|layers?|depth|modules?))?{BE}\s*{whole_in('v')}",
        rf"{whole_in('v')}\s+mtp(?:[\s_-]*(?:heads?|layers?|modules?))?",
    ),
    *sets(
        {"model.layers": whole("v")},
        (
            rf"{whole_in('v')}[\s-]*(?:transformer\s+|decoder\s+)?(?:layers?"
            r"|blocks)(?:\s+deep)?"
        ),
        rf"(?:layers?|depth){BE}\s*{whole_in('v')}",
    ),
    *sets(
        {"model.experts": whole("v")},
        rf"{whole_in('v')}[\s-]*(?:routed\s+)?experts?(?:\s+per layer)?",
        rf"experts{BE}\s*{whole_in('v')}",
    ),
    *sets(
        {"model.heads": whole("v")},
        rf"{whole_in('v')}[\s-]*(?:attention\s+|query\s+)?heads?",
        rf"(?:attention\s+)?heads{BE}\s*{whole_in('v')}",
    ),
    *sets(
        {"model.kv_heads": whole("v")},
        rf"{whole_in('v')}[\s-]*{KV_HEADS}",
        r"(?P<v>\d{1,3})(?P<v_s>)\s+kv(?=\s*(?:[,.;)]|$))",
        rf"{KV_HEADS}{BE}\s*{whole_in('v')}",
        r"kv\s*[=:]?\s*(?P<v>\d{1,3})(?P<v_s>)(?!\s*(?:\w|%|\.\d))",
    ),
    *sets(
        {"model.head_dim": whole("v")}, rf"head[\s_-]?(?:dim(?:ension)?|size){BE}\s*{whole_in('v')}"
    ),
    *sets(
        {"model.top_k": whole("v")},
        (
            r"top[\s-]?k?[\s=-]*(?P<v>\d+)(?:\s+(?:routing|gating|routed"
            r"|experts))?"
        ),
        r"(?P<v>\d+)\s+(?:active|activated)\s+experts(?:\s+per token)?",
        r"(?P<v>\d+)\s+experts\s+(?:active\s+)?per token",
    ),
    *sets(
        {"model.hidden": whole("v")},
        (
            r"(?:hidden(?:\s+(?:size|dim(?:ension)?|width))?|model\s+"
            rf"(?:dim(?:ension)?|width)){BE}\s*(?P<v>\d{{3,6}})"
        ),
        r"d_?(?:model)?\s*=\s*(?P<v>\d{3,6})",
        r"d_?model\s*(?P<v>\d{3,6})",
        r"(?P<v>\d{3,6})[\s-]+wide",
        r"(?P<v>\d{3,6})\s+hidden(?:\s+(?:size|dim(?:ension)?))?",
    ),
    *sets(
        {"model.expert_ffn_hidden": whole("v")},
        r"(?:moe|experts?)[\s_-]*(?:ffn|mlp|intermediate|hidden|dim(?:ension)?|width|size)(?:[\s_-]*(?:hidden|size|dim(?:ension)?|width))*\s*(?:[:=]|of|is)?\s*"
        r"(?P<v>\d{3,6})(?P<v_s>)",
    ),
    *sets(
        {"model.ffn_hidden": whole("v")},
        rf"(?:ffn|mlp|feed[\s-]?forward|intermediate)(?:[\s_-]*(?:hidden|size|dim(?:ension)?|width))*{BE}\s*"
        r"(?P<v>\d{3,6})",
        r"d_?ff\s*=?\s*(?P<v>\d{3,6})",
        r"(?P<v>\d{3,6})[\s-]+(?:ffn|intermediate)(?:[\s_-]*(?:hidden|size|dim|width))?",
    ),
    *sets(
        {"model.vocab": whole("v")},
        rf"vocab(?:ulary)?(?:\s+size)?{BE}\s*{number_in('v')}(?:\s+tokens)?",
        rf"{number_in('v')}[\s-]*(?:token\s+)?vocab(?:ulary)?",
    ),
    *sets(
        {"model.attention": always("gqa"), "model.kv_heads": whole("v")},
        r"gqa[\s=:-]*(?:with\s+|of\s+)?(?P<v>\d+)(?:\s+groups?)?(?!\s*[\w%])",
    ),
    *_words_of("model.attention", _ATTENTIONS, r"(?:\s+attention)?(?:\s+\([gm][qhl]a\))?"),
    *_words_of("model.mlp", _MLPS, r"(?:\s+(?:mlp|ffn|activations?))?"),
    *sets(
        {"job.tokens": amount},
        (
            rf"{OVER}{number_in('v')}[\s-]*(?:(?:training|de|of)\s+)?(?:tokens|toks?)"
            r"(?!\s*(?:per|in (?:a|one|each) (?:batch|step)|batch|sequences?|documents?"
            r"|contexts?|long|each)\b|\s*/\s*(?:s|sec|second|step|batch|gpu|device|param\w*|day)\b)"
        ),
        (
            rf"{OVER}{number_in('v')}[\s-]*token(?!\s*(?:per|/|batch|sequences?|documents?"
            r"|contexts?|vocab|windows?|seq|long))"
        ),
        rf"(?:tokens|token (?:count|budget)){BE}\s*{number_in('v')}",
        rf"(?:another\s+)?{number_in('v')}\s+(?:more|further|additional|extra)\s+(?:tokens|toks?)",
        r"(?:another|further|additional)\s+(?P<v>\d+(?:\.\d+)?)\s?(?P<v_s>b|bn|t|billion|trillion)(?:\s+(?:tokens|toks?))?(?!\s*(?:param|model|dense|moe))",
    ),
    *sets(
        {"steps": whole("s"), "job.global_batch_tokens": amount},
        (
            rf"(?:for\s+)?{whole_in('s')}\s+(?:training\s+|optimi[sz]er\s+)?steps\s+(?:of|at|with|x"
            rf"|×)\s+{number_in('v')}[\s-]*(?:tokens?|toks?)"
        ),
    ),
    *sets(
        {"steps": rest("v", "w"), "begun": always(True)},
        rf"{_SO_FAR}step\s+{number_in('v')}(?:\s*steps)?\s*(?:/|(?:out\s+)?of(?:\s+(?:the|our))?(?:\s+total)?)\s*{number_in('w')}(?:\s+steps)?",
        rf"{_SO_FAR}{number_in('v')}(?:\s*steps)?\s*(?:out\s+)?of(?:\s+(?:the|our))?(?:\s+total)?\s*{number_in('w')}\s+steps",
        why="the rest of a run that has begun",
    ),
    *sets(
        {"job.tokens": rest("v", "w"), "begun": always(True)},
        rf"{_SO_FAR}{number_in('v')}(?:\s*(?:tokens|toks?))?\s*(?:out\s+)?of(?:\s+(?:the|our))?(?:\s+total)?\s*{number_in('w')}\s*(?:tokens|toks?)(?:\s+(?:done|in))?",
        why="the rest of a run that has begun",
    ),
    *sets(
        {"steps": whole("v")},
        rf"(?:max|train|total|num)[\s_-](?:train(?:ing)?[\s_-])?(?:steps|iters|iterations)\s*[=:]?\s*{whole_in('v')}",
        (
            rf"(?:for\s+)?{whole_in('v')}\s+(?:training\s+|optimi[sz]er\s+)?(?:steps"
            r"|iterations)(?!\s*(?:of|per)\b)"
        ),
    ),
    *sets(
        {"tokens_of_epoch": amount, "epochs": whole("e")},
        (
            r"(?:for\s+)?(?P<e>\d+)(?P<e_s>)\s+epochs?\s+(?:over|of|on|through)\s+(?:the\s+|our\s+"
            rf"|a\s+)?{number_in('v')}[\s-]*(?:tokens?|toks?)"
        ),
    ),
    *sets(
        {"epochs": plain_of("e"), "examples": amount},
        (
            r"(?:for\s+)?(?P<e>\d+)\s+epochs?\s+(?:over|of|on|through)\s+(?:the\s+|our\s+|a\s+)?"
            rf"(?:over\s+)?{number_in('v')}[\s-]*{_OF_A_KIND}{_EXAMPLES}(?!\s+(?:per|/|of|with|at|x|each))"
        ),
    ),
    *sets(
        {"examples": number("v"), "example_tokens": sequence_of("w")},
        rf"(?:over\s+)?{number_in('v')}[\s-]*{_OF_A_KIND}{_EXAMPLES}\s*[,(]?\s*"
        rf"(?:(?:of|with|at|x|@|each|avg\.?|averag(?:e|ing)|mean|length|len|about|around|roughly|~)\s*)+{whole_in('w')}[\s-]*"
        r"tok(?:en)?s?(?:\s+(?:each|on\s+average|avg|per\s+\w+))?",
    ),
    *sets(
        {"tokens_each": sequence},
        rf"{whole_in('v')}[\s-]*tok(?:en)?s?\s+(?:each|(?:per|an?)\s+(?:pair|row|record|conversation))",
    ),
    *sets(
        {"example_tokens": sequence_of("w")},
        rf"(?:avg\.?|average|mean)\s+(?:of\s+|length\s+(?:of\s+)?|len\s+)?{whole_in('w')}[\s-]*tok(?:en)?s?(?:\s+(?:each|per\s+\w+))?",
        rf"{whole_in('w')}[\s-]*tok(?:en)?s?\s+(?:on\s+average|avg|average)(?:\s+per\s+\w+)?",
    ),
    *sets({"examples": amount}, rf"{number_in('v')}[\s-]*{_OF_A_KIND}{_EXAMPLES}(?!\s+(?:per|/))"),
    *sets({"epochs": plain}, r"(?:for\s+|over\s+)?(?P<v>\d+)\s+epochs?"),
    *sets({"epochs": always(1.0)}, r"epoch(?=\s+(?:on|over|of|through)\b)"),
    *sets({"tokens_per_param": always(20.0)}, _LAW_ALONE, rf"{OPTIMAL}(?:\s+tokens?)?"),
    *sets(
        {"tokens_per_param": plain},
        (
            r"(?P<v>\d+(?:\.\d+)?)\s*(?:tokens?|toks?)\s*(?:per|/|a)\s*param"
            r"(?:eter)?"
        ),
    ),
    *sets(
        {"job.from_checkpoint": always(True)},
        (
            r"(?:(?:supervised|full|instruction)[\s-]+)?fine-?\s?tunn?"
            r"(?:e|es|ed|ing)(?:\s+run)?"
        ),
        r"(?:full[\s-]+(?:param(?:eter)?[\s-]+)?)?(?:sft|ft|cpt|instruct(?:ion)?[\s-]tun(?:e|ed|ing)|post-?training|mid-?training)",
        (
            r"contin(?:ue|ually|ual|ued|uous|uously|uing)(?:[\s-]+(?:ly[\s-]+)?(?:pre-?)?train"
            r"(?:ing|ed)?)?"
        ),
        (
            r"(?:from|(?:warm[\s-])?start(?:ing|ed)?\s+from|initiali[sz]ed\s+from)\s+(?:an?\s+"
            r"|the\s+|our\s+)?(?:pre-?trained\s+)?(?:checkpoint|ckpt|base model|weights)"
        ),
        rf"(?:(?:resum|continu|restart)(?:e|es|ed|ing)|(?:warm[\s-])?start(?:ing|ed)?)\s+(?:training\s+)?from\s+(?:an?\s+|the\s+|our\s+)?(?:checkpoint|ckpt)\s+(?:at|of|after)\s+"
        rf"{number_in('v')}(?:\s*(?:tokens|toks?))?(?:\s+in)?",
        r"(?:long[\s-])?context[\s-]+exten(?:sion|ding)|extend(?:ing)?(?!\s+(?:(?:the|our|my|a)\s+)?(?:cluster|deadline|budget|machine"
        r"|lease|contract|fleet|training|run)\b)",
    ),
    *sets({"job.tokens": always(1e9)}, rf"{_ONE}\s+billion\s+tokens", why="what one takes"),
    *sets(
        {"job.seq_len": sequence},
        rf"{CONTEXT}s?{BE}\s*(?:{MOST}\s*)?{whole_in('v')}(?:[\s-]*tokens?)?",
        rf"(?:{MOST}\s*)?{whole_in('v')}[\s-]*(?:tokens?[\s-]+)?{CONTEXT}s?",
        rf"{whole_in('v')}[\s-]*tokens?\s+of\s+{CONTEXT}",
        rf"(?:cut-?off(?:[\s_-]?len(?:gth)?)?|truncat(?:ed?|ing|ion)(?:[\s_-]?len(?:gth)?)?|(?:model[\s_-])?max(?:imum)?[\s_-]length|(?:(?<![a-z]\s)|(?<=with\s)|(?<=and\s))length"
        rf"|max[\s_-]?len){BE}\s*(?:{MOST}\s*)?{whole_in('v')}(?:[\s-]*tokens?)?",
        (
            rf"{_DOCUMENT}\s*(?:are|of|with|that are|reach|go"
            rf"|run)?\s*(?:{MOST}\s*)?{whole_in('v')}[\s-]*(?:tokens?(?:\s+long)?)?"
        ),
        (
            rf"{MOST}\s*{whole_in('v')}[\s-]*tokens?\s*(?:per|/|a|in (?:a|each))\s*(?:sequence"
            r"|document|sample|example)"
        ),
        rf"{whole_in('v')}[\s-]*tokens?[\s-]+(?:long\s+)?{_DOCUMENT}",
        (
            rf"{whole_in('v')}[\s-]*tokens?\s*(?:per|/)\s*(?:sequence|document|sample"
            r"|example)"
        ),
        rf"pack(?:ing|ed)\s+(?:to|at|into|length)\s+{whole_in('v')}(?:[\s-]*tokens?)?",
        r"(?P<v>\d{1,3})(?P<v_s>k)[\s-]+pack(?:ing|ed)",
        why="K after a power of two is 1,024 here",
    ),
    *sets(
        {"job.document_tokens": sequence},
        rf"(?:avg\.?|average|mean|typical|median)\s+{_DOCUMENT}(?:[\s-]+(?:length|len|size))?{BE}\s*{whole_in('v')}"
        r"(?:[\s-]*tokens?)?",
        rf"{_DOCUMENT}\s+(?:of|are|with)\s+{whole_in('v')}\s*tokens?\s+(?:on\s+average|in\s+the\s+mean)",
        why="the mean length of a document",
    ),
    *sets(
        {"job.seq_len": millions},
        rf"(?P<v>\d{{1,3}})\s?(?:m|mn|million)[\s-]*(?:tokens?[\s-]+)?(?:of\s+)?{CONTEXT}s?",
        rf"{CONTEXT}s?{BE}\s*(?:{MOST}\s*)?(?P<v>\d{{1,3}})\s?(?:m|mn|million)(?:[\s-]*tokens?)?",
        why="M after a power of two is 1,048,576 here",
    ),
    *sets(
        {"job.seq_len": sequence},
        (
            rf"(?:(?:at|with|seq)\s+)?(?P<v>{_USUAL})(?P<v_s>k)(?:\s+ctx\b|(?=\s*(?:$|[,.;:)?!]"
            r"|[-–—]\s|(?:on|with|for|in|using|and|fit|fits|full|fine|lora|qlora|sft|dpo|training|pre-?training)\b)))"
        ),
        rf"@\s*(?P<v>{_POWERS})(?P<v_s>)(?=\s*(?:$|[,.;:)?!]))",
        why="thousands alone are the tokens of a sequence",
    ),
    *sets({"job.tokens": always(1e12)}, rf"{_ONE}\s+trillion\s+tokens", why="what one takes"),
    *sets(
        {"job.global_batch_tokens": amount},
        rf"{BATCH}{BE}\s*{number_in('v')}[\s-]*tokens",
        rf"{number_in('v')}[\s-]*tok(?:en)?s?[\s-]+{BATCH}",
        (
            rf"{number_in('v')}\s*tok(?:en)?s?\s*(?:\bper\b|/|in (?:a|one|each))\s*"
            r"(?:global\s+)?(?:batch|step)"
        ),
        rf"(?:one|1|an?|each|every|the)\s+(?:optimi[sz]er\s+|training\s+)?step\s+(?:of|has|is|with|takes|sees)\s+{number_in('v')}[\s-]*tok(?:en)?s?",
    ),
    *sets(
        {"job.global_batch_tokens": amount},
        rf"(?P<v>\d+(?:\.\d+)?)\s?(?P<v_s>m|mn|million)[\s-]+{BATCH}",
        rf"{BATCH}{BE}\s*(?P<v>\d+(?:\.\d+)?)\s?(?P<v_s>m|mn|million)",
        why="a batch of millions counts tokens",
    ),
    *sets(
        {"plan.micro_batch": whole("v")},
        (
            r"(?:(?:train[\s_-])?micro[\s_-]?batch(?:[\s_-]?size)?[\s_-]per[\s_-]gpu|per[\s_-]?(?:device|gpu)[\s_-]?(?:train[\s_-]?)?(?:batch(?:[\s_-]?size)?|bs)"
            r"|(?:local|device)[\s_-]batch(?:[\s_-]size)?|micro[\s_-]?bsz?|micro[\s_-]?batch(?:es)?(?:[\s_-]?si"
            rf"ze)?|mbs|lbs|local[\s_-]batch(?:[\s_-]size)?){BE}\s*{whole_in('v')}(?:\s*(?:sequences|seqs|samples))?{PER_DEVICE}?"
        ),
        (
            rf"(?:batch(?:\s+size)?|bs){BE}\s*{whole_in('v')}(?:\s*(?:sequences|seqs"
            rf"|samples))?{PER_DEVICE}"
        ),
        rf"{whole_in('v')}[\s-]*(?:sequences?|seqs?|samples?|examples?){PER_DEVICE}",
        rf"(?:batch(?:\s+size)?|bsz?){BE}\s*{whole_in('v')}(?=\s*[x×*]\s*\d+\s*(?:gpus?|devices?|{ACCELERATOR}))",
        rf"micro{BE}\s*{whole_in('v')}",
        r"per[\s-](?:device|gpu)\s+(?P<v>\d{1,2})(?P<v_s>)(?=\s*(?:[,.;]|$))",
        rf"(?:per|on\s+each|on\s+every)\s+(?:gpu|device|card|rank|chip)\s+{whole_in('v')}\s*(?:sequences?|seqs?|samples?)",
        rf"(?:batch(?:\s+size)?|bs){PER_DEVICE}{BE}\s*{whole_in('v')}",
        why="a batch of each device is the micro-batch",
    ),
    *sets(
        {"plan.grad_accum": whole("v")},
        rf"{_ACCUMULATION}{BE}\s*{whole_in('v')}(?:\s*(?:steps|micro[\s-]?batches))?",
        (
            rf"{whole_in('v')}[\s-]*(?:steps\s+(?:of\s+)?)?(?:(?:gradient"
            r"|grad)[\s_-]*)?(?:accumulation|accum)(?:[\s_-]*steps?)?"
        ),
        (
            rf"accumulat(?:e|ing|ed)\s+(?:gradients\s+)?(?:over\s+)?{whole_in('v')}(?:\s*(?:ste"
            r"ps|micro[\s-]?batches))?"
        ),
    ),
    *sets(
        {"plan.grad_accum": always(1)},
        r"(?:no|without)\s+(?:gradient\s+|grad\s+)?(?:accumulation|accum|accumulating)",
    ),
    *sets(
        {"job.global_batch": whole("v")},
        (
            rf"{BATCH}{BE}\s*{whole_in('v')}(?:\s*(?:sequences|seqs|samples))?"
            rf"(?!\s*(?:tokens|[mbt]\b|million)|{PER_DEVICE})"
        ),
        rf"{whole_in('v')}\s*(?:gbs|global[\s_-]batch(?:[\s_-]size)?)(?!\s*[=:]?\s*\d)",
        (
            rf"{whole_in('v')}[\s-]*(?:sequences|seqs?|samples)\s*(?:\bper\b"
            r"|/|in (?:a|one|each))\s*(?:global\s+)?(?:batch|step)"
        ),
    ),
    *sets(
        {"job.global_batch": whole("v"), "job.seq_len": sequence_of("w")},
        (
            rf"{BATCH}{BE}\s*{whole_in('v')}\s*(?:(?:sequences|seqs|samples)\s*)?(?:x|×|\*|of|by)\s*"
            rf"{whole_in('w')}[\s-]*tok(?:en)?s?(?!\s*(?:per|/))"
        ),
        rf"{BATCH}{BE}\s*{whole_in('v')}\s*(?:sequences|seqs|samples)\s+of\s+(?:length\s+)?(?P<w>\d{{3,}})(?P<w_s>)(?![\d.]*\s*[kmb])",
        rf"{BATCH}{BE}\s*{whole_in('v')}\s*[x×*]\s*(?P<w>{_POWERS})(?P<w_s>)(?!\s*{ACCELERATOR})",
        rf"{whole_in('v')}\s*(?:sequences|seqs|samples)\s+of\s+(?:length\s+)?{whole_in('w')}[\s-]*(?:tok(?:en)?s?)?\s*"
        r"(?:per|a|each|every|in (?:a|each))\s+(?:global\s+)?(?:step|batch|update|iteration)",
        rf"{whole_in('v')}\s*(?:sequences|seqs|samples)\s+of\s+(?:length\s+)?{whole_in('w')}(?:[\s-]*tok(?:en)?s?)?(?=[^.?!]*\bbatch)",
    ),
    *means(
        "what the optimizer keeps is in 32 bit in every plan that says no other",
        r"(?:fp32|float32)\s+(?:master\s+(?:weights?|copy|params?|parameters)|optimi[sz]er(?:\s+states?)?|adam[\s-]?w?(?:\s+"
        r"states?)?|states?|moments?)",
        r"(?:adam[\s-]?w?|optimi[sz]er|master\s+weights?)(?:\s+states?)?\s+in\s+(?:fp32|float32)",
    ),
    *sets(
        {"plan.gradients": always("fp32")},
        r"(?:fp32|float32)\s+grad(?:ient)?s?(?:\s+(?:accumulation|reduction|reduce|all-?reduce))?",
    ),
    *sets(
        {"plan.gradients": always("bf16")},
        r"bf16\s+grad(?:ient)?s?(?:\s+(?:accumulation|reduction|reduce|all-?reduce))?",
    ),
    *_words_of(
        "job.precision", _FORMATS, r"(?:\s+(?:mixed[\s-]precision|precision|training|recipe))?"
    ),
    *sets(
        {"job.optimizer": always("adamw-8bit")},
        r"(?:paged[\s_-]+)?adam[\s-]?w?[\s_-]*\(?8[\s-]?bit\)?(?:\s+optimi[sz]er)?",
        r"(?:paged[\s_-]+)?8[\s-]?bit\s+(?:paged\s+)?adam[\s-]?w?(?:\s+optimi[sz]er)?",
        why="moments in 8 bit beside fp32 weights",
    ),
    *_words_of("job.optimizer", _OPTIMIZERS, r"(?:\s+optimi[sz]er)?"),
    *_ways("plan.tp", "tp", r"tensor(?:[\s_-]model)?"),
    *_ways("plan.pp", "pp", r"pipeline(?:[\s_-]model)?"),
    *sets(
        {"plan.pp": whole("v")},
        r"(?P<v>\d+)\s+(?:pipeline|pp)[\s-]+stages",
        r"pipeline(?:[\s_-]+(?:stages|size|depth))?\s*[=:]?\s*(?P<v>\d+)",
    ),
    *_ways("plan.dp", "dp", "data"),
    *_ways("plan.cp", "cp", "context"),
    *_ways("plan.ep", "ep", r"expert(?:[\s_-]model)?"),
    *sets(
        {"plan.tp": whole("v")},
        rf"model[\s_-]+parallel(?:ism)?(?:[\s_-]*(?:size|degree|ways?))?{BE}\s*(?P<v>\d+)",
        r"(?P<v>\d+)[\s-]*way\s+model(?:[\s-]+parallel(?:ism)?)?",
        r"(?<![a-z_])mp(?:[\s_-]*size)?\s*[=:]?\s*(?P<v>\d+)",
        why="model parallelism is read as tensor parallelism",
    ),
    *sets(
        {"plan.moe_dispatcher": word},
        r"(?:(?:with|using)\s+)?(?P<v>deepep|hybridep|uccl)(?:\s+(?:dispatch(?:er|ing)?|backend))?",
        r"(?P<v>allgather|alltoall)\s+(?:token\s+)?dispatch(?:er|ing)?",
    ),
    *sets(
        {"plan.moe_dispatcher": always("alltoall")},
        r"all-to-all\s+(?:token\s+)?dispatch(?:er|ing)?",
    ),
    *sets(
        {"plan.moe_dispatcher": always("allgather")},
        r"all-gather\s+(?:token\s+)?dispatch(?:er|ing)?",
    ),
    *sets({"plan.cp_type": always("ring")}, r"ring[\s-]+(?:flash[\s-]+)?attention"),
    *sets(
        {"plan.cp_type": always("ulysses"), "plan.cp": whole("v")},
        (
            r"(?:deepspeed[\s-]+)?ulysses(?:[\s-]+(?:sequence[\s-]+parallel(?:ism)?|attention|sp))?"
            rf"(?:(?:[\s_-]+(?:size|degree|ways?))?{BE}\s*(?P<v>\d+)(?![\d.]*\s*[a-z×*]))?"
        ),
    ),
    *sets(
        {"plan.vpp": whole("v")},
        rf"(?:vpp|virtual\s+(?:pipeline|stages|chunks)(?:\s+(?:size|degree))?){BE}\s*(?P<v>\d+)",
        r"(?P<v>\d+)\s+(?:virtual\s+|model\s+)?chunks(?:\s+(?:per|a)\s+(?:rank|stage|device|gpu))?",
        r"(?P<v>\d+)\s+(?:virtual|model)\s+stages(?:\s+per\s+(?:rank|stage|device))?",
    ),
    *sets(
        {"plan.pp": always(1)},
        r"(?:no|without|avoid(?:ing)?|skip)\s+(?:pp|pipeline(?:[\s-]+parallel(?:i[sz]m)?)?)",
    ),
    *sets(
        {"plan.tp": always(1)},
        r"(?:no|without|avoid(?:ing)?|skip)\s+(?:tp|tensor[\s-]+parallel(?:i[sz]m)?)",
    ),
    *sets(
        {"plan.cp": always(1)},
        r"(?:no|without|avoid(?:ing)?|skip)\s+(?:cp|context[\s-]+parallel(?:i[sz]m)?)",
    ),
    *sets({"plan.schedule": word}, r"(?P<v>1f1b|gpipe|dualpipe)(?:\s+(?:schedule|pipeline))?"),
    *sets(
        {"plan.schedule": always("interleaved")},
        r"(?:1f1b\s+)?interleav(?:ed|ing)(?:\s+(?:1f1b|pipeline|schedule|stages))*(?:\s+with)?",
    ),
    *sets(
        {"plan.offload": always("optimizer")},
        (
            r"(?:with\s+)?(?:(?:cpu|host|nvme|ssd|disk)[\s-]+)?(?:optimi[sz]er[\s-]+(?:states?[\s-]+)?)?off-"
            r"?load(?:ing|ed)?(?:[\s_]+(?:the\s+)?(?:optimi[sz]er(?:\s+states?)?))?(?:\s+(?:to|device[\s:=]*)\s*(?:"
            r"the\s+)?(?:cpu|host|nvme|ssds?|disks?)(?:\s+memory)?)?"
        ),
        r"zero[\s-]off-?load",
        why="offload is that of the optimizer's states",
    ),
    *sets(
        {"plan.offload": always("optimizer+params")},
        (
            r"(?:with\s+)?(?:(?:cpu|host)\s+)?(?:optimi[sz]er\s+(?:and"
            r"|\+)\s+)?(?:param(?:eter)?s?|weights?)\s+off-?load(?:ing)?"
        ),
        (
            r"off-?load(?:ing)?\s+(?:the\s+)?(?:everything|all|params?|parameters"
            r"|weights)(?:\s+and\s+(?:the\s+)?optimi[sz]er)?(?:\s+to\s+(?:the\s+)?(?:cpu"
            r"|host))?"
        ),
        (
            r"(?:with\s+)?(?:(?:cpu|host)\s+)?off-?load(?:ing)?\s*[(:]?\s*(?:(?:of|the|both)\s+)*optimi[sz]er(?:\s+states?)?\s*(?:,|\+|&|and)\s*"
            r"(?:the\s+)?(?:params?|parameters|model|weights)"
        ),
        r"zero[\s-]?infinity",
    ),
    *sets({"plan.offload": always("none")}, r"(?:no|without)\s+(?:cpu\s+)?off-?load(?:ing)?"),
    *sets(
        {"plan.compile": always(True)},
        r"(?:(?:with|using)\s+)?torch[\s._]*compile(?:\s+(?:on|enabled))?(?!\s+(?:off|disabled))",
        r"compile\s+(?:on|enabled)|(?:with|using|\+)\s*compile|compile(?=\s*[+,])",
    ),
    *sets(
        {"plan.compile": always(False)},
        r"(?:no|without)\s+(?:torch[\s._]*)?compile|(?:torch[\s._]*)?compile\s+(?:off|disabled)|eager\s+mode",
    ),
    *sets(
        {"plan.sharding": prefixed("zero")},
        r"zero[\s_-]*(?:optimi[sz]ation[\s:]*)?(?:stage[\s:=-]*)?(?P<v>[123])",
    ),
    *sets(
        {"plan.sharding": prefixed("zero")},
        r"(?<=deepspeed\s)stage[\s-]*(?P<v>[123])",
        r"z-?(?P<v>[123])",
    ),
    *(
        rule
        for begin, stack in table(__file__, "names")["files"].items()
        for rule in _of_file(begin, stack)
    ),
    *sets(
        {"plan.sharding": always("zero1")},
        r"(?:(?:use|with)[\s_-])?(?:megatron[\s-]+)?(?:distributed|sharded)[\s_-]optimi[sz]er",
        why="a distributed optimizer shards its states, as ZeRO-1 does",
    ),
    *sets({"plan.sharding": always("hsdp")}, r"hsdp|hybrid shard(?:ed|ing)(?: data parallel)?"),
    *sets(
        {"plan.sharding": always("zero3")},
        r"fsdp2?|fully[\s-]sharded(?: data[\s-]parallel(?:ism)?)?",
        r"(?:fsdp2?[\s:='\"]*)?full_shard(?:\s+auto_wrap)?",
        why="FSDP shards what ZeRO-3 shards",
    ),
    *sets(
        {"plan.sharding": always("none")},
        r"(?:pytorch[\s-]+)?ddp|distributed\s+data[\s-]+parallel(?:ism)?",
        why="each replica holds all",
    ),
    *sets(
        {"plan.recompute": always("full")},
        rf"(?:full|with)\s+(?:{_RECOMPUTE}|checkpointing)",
        _OF_ACTIVATIONS,
    ),
    *sets(
        {"plan.recompute": word},
        rf"(?:{_RECOMPUTE}|checkpointing)\s*(?:[:=]|is|granularity)+\s*(?P<v>selective|full|none)",
        r"remat(?:[\s_]policy)?\s*[:=]?\s*(?P<v>full|none)",
    ),
    *sets(
        {"plan.recompute": always("selective")},
        rf"selective\s+(?:{_RECOMPUTE}|checkpointing)",
        r"recompute[\s_-]activations",
    ),
    *sets(
        {"plan.recompute": always("none")},
        rf"(?:no|without)\s+{_RECOMPUTE}",
        rf"(?:(?:full|selective)\s+)?{_RECOMPUTE}\s*[:=]?\s*(?:is\s+|turned\s+)?(?:off|disabled|false|none)",
    ),
)
