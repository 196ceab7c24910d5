"""The rules by which `init --text` reads model, job and plan; the machine is in brief_machine.py,
limits and prices are in brief_limits.py."""

from __future__ import annotations

from ...catalogue.stacks import stacks
from .grammar import BE, Rules, num, whole

RULES = Rules()
rule, simple = RULES.rule, RULES.simple

# the model
_PARAMS = r"(?:total\s+)?(?:param(?:eter)?s?)(?:\s+(?:in total|total))?"
_NOUN = r"(?:model|moe|dense|llm|transformer|language model|foundation model|lm|decoder)"
_BILLIONS = r"(?P<v>\d+(?:\.\d+)?)[\s-]?(?P<v_s>bn|b|tn|t|billion|trillion)"
simple(
    "model.size",
    rf"{num('v')}[\s-]*{_PARAMS}",
    rf"(?:model size|parameter count|{_PARAMS}){BE}\s*{num('v')}",
    read="num",
)
simple(
    "model.size",
    rf"{_BILLIONS}(?=[\s-]+(?:\S+\s+){{0,2}}?{_NOUN}\b)",
    rf"{_BILLIONS}[\s-]+total",
    read="num",
)
simple(
    "model.size",
    r"(?P<v>\d+(?:\.\d+)?)[\s-]?(?P<v_s>bn|b|billion)",
    read="num",
    why="a number of billions alone is the model's size",
)
simple(
    "model.active",
    rf"{num('v')}[\s-]*(?:active|activated)(?:[\s-]+{_PARAMS})?(?:\s+per token)?",
    rf"(?:active|activated)(?:\s+{_PARAMS})?{BE}\s*{num('v')}(?:\s+{_PARAMS})?",
    r"A(?P<v>\d+(?:\.\d+)?)(?P<v_s>b)",
    read="num",
)


@rule(
    rf"{num('p')}\s*/\s*{num('a')}(?:\s*{_PARAMS})?(?=\s*(?:moe|mixture|sparse))",
    r"(?P<p>\d+(?:\.\d+)?)(?P<p_s>b)-A(?P<a>\d+(?:\.\d+)?)(?P<a_s>b)",
)
def _total_and_active(n, m):
    n.set("model.size", m.num("p"), m)
    n.set("model.active", m.num("a"), m)


simple(
    "model.moe",
    r"(?:sparse\s+)?moe",
    r"(?:sparse\s+)?mixture[\s-]of[\s-]experts(?:\s*\(moe\))?",
    r"sparse(?:ly[\s-]activated)?(?=\s+(?:model|transformer|llm))",
    value=True,
)
simple("model.moe", r"dense", value=False)
_KV = r"(?:kv|key[\s-]value)[\s-]*heads"
for _field, _after, _before in (  # words behind the number, words before it
    (
        "layers",
        r"(?:transformer\s+|decoder\s+)?(?:layers?|blocks)(?:\s+deep)?",
        r"(?:layers?|depth)",
    ),
    ("experts", r"(?:routed\s+)?experts?(?:\s+per layer)?", "experts"),
    ("heads", r"(?:attention\s+|query\s+)?heads", r"(?:attention\s+)?heads"),
    ("kv_heads", _KV, _KV),
    ("head_dim", None, r"head[\s_-]?(?:dim(?:ension)?|size)"),
):
    simple(
        f"model.{_field}",
        *[rf"{whole('v')}[\s-]*{_after}"] * (_after is not None),
        rf"{_before}{BE}\s*{whole('v')}",
        read="whole",
    )
simple(
    "model.top_k",
    r"top[\s-]?k?[\s=-]*(?P<v>\d+)(?:\s+(?:routing|gating|routed|experts))?",
    r"(?P<v>\d+)\s+(?:active|activated)\s+experts(?:\s+per token)?",
    r"(?P<v>\d+)\s+experts\s+(?:active\s+)?per token",
    read="whole",
)
simple(
    "model.hidden",
    rf"(?:hidden(?:\s+(?:size|dim(?:ension)?|width))?|model\s+(?:dim(?:ension)?|width)){BE}\s*(?P<v>\d{{3,6}})",
    r"d_?model\s*=?\s*(?P<v>\d{3,6})",
    r"(?P<v>\d{3,6})\s+hidden(?:\s+(?:size|dim(?:ension)?))?",
    read="whole",
)
simple(
    "model.vocab",
    rf"vocab(?:ulary)?(?:\s+size)?{BE}\s*{num('v')}(?:\s+tokens)?",
    rf"{num('v')}[\s-]*(?:token\s+)?vocab(?:ulary)?",
    read="whole",
)
for _kind, _words in (
    ("gqa", r"gqa|grouped[\s-]query"),
    ("mqa", r"mqa|multi[\s-]query"),
    ("mla", r"mla|multi[\s-]head latent"),
    ("mha", r"mha|(?:full |standard )?multi[\s-]head"),
):
    simple("model.attention", rf"(?:{_words})(?:\s+attention)?(?:\s+\({_kind}\))?", value=_kind)
for _kind in ("swiglu", "geglu", "gelu", "squared-relu"):
    simple(
        "model.mlp", _kind.replace("-", r"[\s-]") + r"(?:\s+(?:mlp|ffn|activations?))?", value=_kind
    )

# the job
simple(
    "job.tokens",
    (
        rf"{num('v')}[\s-]*(?:training\s+)?tokens(?!\s*(?:per|/|in (?:a|one|each) "
        rf"(?:batch|step)|batch|sequences?))"
    ),
    rf"(?:tokens|token (?:count|budget)){BE}\s*{num('v')}",
    rf"{num('v')}[\s-]*token(?=\s+(?:run|corpus|dataset|data set|budget|training|pre-?training))",
    read="amount",
)
_CONTEXT = r"(?:(?:sequence|context)(?:\s+(?:length|len|window))?|seq(?:[\s_-]?len(?:gth)?)?)"
simple(
    "job.seq_len",
    rf"{_CONTEXT}s?{BE}\s*{whole('v')}(?:[\s-]*tokens)?",
    rf"{whole('v')}[\s-]*(?:tokens?[\s-]+)?{_CONTEXT}s?",
    rf"sequences of {whole('v')}(?:\s+tokens)?",
    read=lambda m: m.whole("v", 1024),
    why="K is 1,024 here",
)
_BATCH = r"(?:global\s+)?batch(?:\s+size)?(?:\s*\(global\))?"
simple(
    "job.global_batch_tokens",
    rf"{_BATCH}{BE}\s*{num('v')}[\s-]*tokens",
    rf"{num('v')}[\s-]*tokens?[\s-]+{_BATCH}",
    rf"{num('v')}\s*tokens\s+(?:per|/|in (?:a|one|each))\s*(?:global\s+)?(?:batch|step)",
    read="amount",
)
simple(
    "job.global_batch",
    rf"{_BATCH}{BE}\s*{whole('v')}(?:\s*(?:sequences|seqs|samples))?(?!\s*(?:tokens|[mbt]\b|million))",
    (
        rf"{whole('v')}[\s-]*(?:sequences|seqs|samples)\s+(?:per|/|in "
        rf"(?:a|one|each))\s*(?:global\s+)?(?:batch|step)"
    ),
    read="whole",
)
for _word, _pattern in (
    ("bf16", r"bf16|bfloat16"),
    ("fp16", r"fp16|float16|half precision"),
    ("fp32", r"fp32|float32|single precision"),
    ("mxfp8", r"mxfp8"),
    ("nvfp4", r"nvfp4|fp4"),
    ("fp8-block", r"fp8[\s-]block(?:wise)?|block(?:wise)?[\s-]fp8"),
    ("fp8", r"fp8|float8"),
):
    simple(
        "job.precision",
        rf"(?:{_pattern})(?:\s+(?:mixed[\s-]precision|precision|training|recipe))?",
        value=_word,
    )
for _word, _pattern in (
    ("adamw", r"adam[\s-]?w?"),
    ("muon", "muon"),
    ("adafactor", "adafactor"),
    ("lion", "lion"),
    ("sgd", "sgd"),
):
    simple("job.optimizer", rf"{_pattern}(?:\s+optimizer)?", value=_word)

# the plan, pinned only where a number is given
for _key, _words in (
    ("tp", r"tensor(?:[\s-]model)?"),
    ("pp", "pipeline"),
    ("dp", "data"),
    ("cp", "context"),
    ("ep", "expert"),
):
    simple(
        f"plan.{_key}",
        rf"{_key}\s*[=:]?\s*(?P<v>\d+)",
        rf"(?P<v>\d+)[\s-]*way\s+{_words}(?:[\s-]+paralleli[sz]m|[\s-]+parallel)?",
        rf"{_words}[\s-]+paralleli[sz]m{BE}\s*(?P<v>\d+)",
        read="whole",
    )
simple("plan.micro_batch", rf"micro[\s-]?batch(?:es)?(?:\s+size)?{BE}\s*(?P<v>\d+)", read="whole")
simple(
    "plan.sharding",
    r"(?:deepspeed\s+)?zero[\s-]*(?:stage[\s-]*)?(?P<v>[123])",
    read=lambda m: f"zero{m['v']}",
)
simple("plan.sharding", r"hsdp|hybrid shard(?:ed|ing)(?: data parallel)?", value="hsdp")
simple(
    "plan.sharding",
    r"fsdp2?|fully[\s-]sharded(?: data[\s-]parallel(?:ism)?)?",
    value="zero3",
    why="FSDP shards what ZeRO-3 shards",
)
simple(
    "plan.recompute",
    r"(?:full|with)\s+(?:activation\s+)?(?:recompute|recomputation|checkpointing)",
    r"(?:activation|gradient)\s+(?:checkpointing|recomputation)",
    value="full",
)
simple(
    "plan.recompute",
    r"selective\s+(?:activation\s+)?(?:recompute|recomputation|checkpointing)",
    value="selective",
)
simple(
    "plan.recompute",
    r"(?:no|without)\s+(?:activation\s+)?(?:recompute|recomputation)",
    value="none",
)
for _stack in stacks().values():
    if _stack.brief:
        simple("stack", rf"(?:{_stack.brief})(?:\s+(?:framework|stack))?", value=_stack.name)

FILLERS = frozenset(
    """
    a an the this that these we our us i it its is are be being been was will would shall can could should must need needs needed has have having want
    wants like to of for from with on in at by as into via across and then so also plus which where when while using use uses used run runs running train
    trains trained training pretrain pretraining pre-training pre-train please plan design build architecture model models llm llms llama-style gpt-style
    language large transformer transformers decoder decoder-only foundation autoregressive style based network neural cluster clusters datacenter machine
    system systems infrastructure hardware gpu gpus accelerator accelerators device devices chip chips card cards node nodes nvidia amd intel google aws
    azure oracle hgx dgx connected interconnected interconnect fabric networking equipped containing consisting comprising made up total altogether
    complete completes completed completing finish finishes finished finishing done end-to-end achieve achieves achieved require requires required
    requirement requirements constraint constraints goal goals target support supports handle tokens token parameter parameters job epochs workload
    project new our own code multilingual w deliver delivers reach hit about approximately roughly around some
""".split()
)
