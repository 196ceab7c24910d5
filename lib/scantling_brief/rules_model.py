"""What a line says of the model, the job and the plan."""

from .fragments import (
    BATCH,
    BE,
    BILLIONS,
    CONTEXT,
    ENDLESS,
    KV_HEADS,
    MODEL_NOUN,
    OVER,
    PARAMS,
    number_in,
    whole_in,
)
from .readers import always, amount, number, plain, prefixed, whole
from .rule import sets

MODEL = (
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
    *sets(
        {"model.size": number("v")},
        rf"(?P<v>\d+(?:\.\d+)?|{ENDLESS})[\s-]?(?P<v_s>bn|b|billion)",
        why="a number of billions alone is the model's size",
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
        r"(?P<p>\d+(?:\.\d+)?)(?P<p_s>b)-A(?P<a>\d+(?:\.\d+)?)(?P<a_s>b)",
    ),
    *sets(
        {"model.moe": always(True)},
        r"(?:sparse\s+)?moe",
        r"(?:sparse\s+)?mixture[\s-]of[\s-]experts(?:\s*\(moe\))?",
        r"sparse(?:ly[\s-]activated)?(?=\s+(?:model|transformer|llm))",
    ),
    *sets({"model.moe": always(False)}, r"dense"),
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
        rf"{whole_in('v')}[\s-]*(?:attention\s+|query\s+)?heads",
        rf"(?:attention\s+)?heads{BE}\s*{whole_in('v')}",
    ),
    *sets(
        {"model.kv_heads": whole("v")},
        rf"{whole_in('v')}[\s-]*{KV_HEADS}",
        rf"{KV_HEADS}{BE}\s*{whole_in('v')}",
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
        r"d_?model\s*=?\s*(?P<v>\d{3,6})",
        r"(?P<v>\d{3,6})\s+hidden(?:\s+(?:size|dim(?:ension)?))?",
    ),
    *sets(
        {"model.vocab": whole("v")},
        rf"vocab(?:ulary)?(?:\s+size)?{BE}\s*{number_in('v')}(?:\s+tokens)?",
        rf"{number_in('v')}[\s-]*(?:token\s+)?vocab(?:ulary)?",
    ),
    *sets(
        {"model.attention": always("gqa")},
        r"(?:gqa|grouped[\s-]query)(?:\s+attention)?(?:\s+\(gqa\))?",
    ),
    *sets(
        {"model.attention": always("mqa")},
        r"(?:mqa|multi[\s-]query)(?:\s+attention)?(?:\s+\(mqa\))?",
    ),
    *sets(
        {"model.attention": always("mla")},
        r"(?:mla|multi[\s-]head latent)(?:\s+attention)?(?:\s+\(mla\))?",
    ),
    *sets(
        {"model.attention": always("mha")},
        (
            r"(?:mha|(?:full |standard )?multi[\s-]head)(?:\s+attention)?"
            r"(?:\s+\(mha\))?"
        ),
    ),
    *sets({"model.mlp": always("swiglu")}, r"swiglu(?:\s+(?:mlp|ffn|activations?))?"),
    *sets({"model.mlp": always("geglu")}, r"geglu(?:\s+(?:mlp|ffn|activations?))?"),
    *sets({"model.mlp": always("gelu")}, r"gelu(?:\s+(?:mlp|ffn|activations?))?"),
    *sets(
        {"model.mlp": always("squared-relu")}, r"squared[\s-]relu(?:\s+(?:mlp|ffn|activations?))?"
    ),
    *sets(
        {"job.tokens": amount},
        (
            rf"{OVER}{number_in('v')}[\s-]*(?:training\s+)?(?:tokens|toks?)"
            r"(?!\s*(?:per|/|in (?:a|one|each) (?:batch|step)|batch|sequences?))"
        ),
        rf"(?:tokens|token (?:count|budget)){BE}\s*{number_in('v')}",
    ),
    *sets(
        {"examples": amount},
        (
            rf"{number_in('v')}[\s-]*(?:[a-z-]+\s+)?(?:examples|samples"
            r"|instructions|prompts|conversations)(?!\s+(?:per|/))"
        ),
    ),
    *sets({"epochs": plain}, r"(?:for\s+|over\s+)?(?P<v>\d+)\s+epochs?"),
    *sets(
        {"tokens_per_param": always(20.0)},
        r"(?:chinchilla|compute)[\s-]optimal(?:ly|ity)?(?:\s+tokens?)?",
    ),
    *sets(
        {"tokens_per_param": plain},
        (
            r"(?P<v>\d+(?:\.\d+)?)\s*(?:tokens|toks?)\s*(?:per|/|a)\s*param"
            r"(?:eter)?"
        ),
    ),
    *sets(
        {"job.from_checkpoint": always(True)},
        (
            r"(?:(?:supervised|full|instruction)[\s-]+)?fine-?\s?tun"
            r"(?:e|es|ed|ing)(?:\s+run)?"
        ),
        r"(?:sft|instruction[\s-]tuning|post-?training|mid-?training)",
        (
            r"contin(?:ue|ual|ued|uous|uing)[\s-]+(?:ly[\s-]+)?(?:pre-?)?train"
            r"(?:ing|ed)?"
        ),
        (
            r"(?:from|starting from|initiali[sz]ed from)\s+(?:an?\s+"
            r"|the\s+)?(?:pre-?trained\s+)?(?:checkpoint|base model|weights)"
        ),
        (
            rf"{number_in('v')}[\s-]*token(?=\s+(?:run|corpus|dataset"
            r"|data set|budget|training|pre-?training))"
        ),
    ),
    *sets(
        {"job.seq_len": whole("v", thousand=1024)},
        rf"{CONTEXT}s?{BE}\s*{whole_in('v')}(?:[\s-]*tokens)?",
        rf"{whole_in('v')}[\s-]*(?:tokens?[\s-]+)?{CONTEXT}s?",
        rf"sequences of {whole_in('v')}(?:\s+tokens)?",
        why="K is 1,024 here",
    ),
    *sets(
        {"job.global_batch_tokens": amount},
        rf"{BATCH}{BE}\s*{number_in('v')}[\s-]*tokens",
        rf"{number_in('v')}[\s-]*tokens?[\s-]+{BATCH}",
        (
            rf"{number_in('v')}\s*tokens\s+(?:per|/|in (?:a|one|each))\s*"
            r"(?:global\s+)?(?:batch|step)"
        ),
    ),
    *sets(
        {"job.global_batch_tokens": amount},
        rf"(?P<v>\d+(?:\.\d+)?)\s?(?P<v_s>m|mn|million)[\s-]+{BATCH}",
        rf"{BATCH}{BE}\s*(?P<v>\d+(?:\.\d+)?)\s?(?P<v_s>m|mn|million)",
        why="a batch of millions counts tokens",
    ),
    *sets(
        {"job.global_batch": whole("v")},
        (
            rf"{BATCH}{BE}\s*{whole_in('v')}(?:\s*(?:sequences|seqs|samples))?"
            r"(?!\s*(?:tokens|[mbt]\b|million))"
        ),
        (
            rf"{whole_in('v')}[\s-]*(?:sequences|seqs|samples)\s+(?:per"
            r"|/|in (?:a|one|each))\s*(?:global\s+)?(?:batch|step)"
        ),
    ),
    *sets(
        {"job.precision": always("bf16")},
        (
            r"(?:bf16|bfloat16)(?:\s+(?:mixed[\s-]precision|precision"
            r"|training|recipe))?"
        ),
    ),
    *sets(
        {"job.precision": always("fp16")},
        (
            r"(?:fp16|float16|half precision)(?:\s+(?:mixed[\s-]precision"
            r"|precision|training|recipe))?"
        ),
    ),
    *sets(
        {"job.precision": always("fp32")},
        (
            r"(?:fp32|float32|single precision)(?:\s+(?:mixed[\s-]precision"
            r"|precision|training|recipe))?"
        ),
    ),
    *sets(
        {"job.precision": always("mxfp8")},
        r"(?:mxfp8)(?:\s+(?:mixed[\s-]precision|precision|training|recipe))?",
    ),
    *sets(
        {"job.precision": always("mxfp4")},
        r"(?:mxfp4)(?:\s+(?:mixed[\s-]precision|precision|training|recipe))?",
    ),
    *sets(
        {"job.precision": always("nvfp4")},
        (
            r"(?:nvfp4|fp4)(?:\s+(?:mixed[\s-]precision|precision|training"
            r"|recipe))?"
        ),
    ),
    *sets(
        {"job.precision": always("fp8-block")},
        (
            r"(?:fp8[\s-]block(?:wise)?|block(?:wise)?[\s-]fp8)(?:\s+"
            r"(?:mixed[\s-]precision|precision|training|recipe))?"
        ),
    ),
    *sets(
        {"job.precision": always("int8")},
        r"(?:int8)(?:\s+(?:mixed[\s-]precision|precision|training|recipe))?",
    ),
    *sets(
        {"job.precision": always("fp8")},
        (
            r"(?:fp8|float8)(?:\s+(?:mixed[\s-]precision|precision|training"
            r"|recipe))?"
        ),
    ),
    *sets({"job.optimizer": always("adamw")}, r"adam[\s-]?w?(?:\s+optimizer)?"),
    *sets({"job.optimizer": always("muon")}, r"muon(?:\s+optimizer)?"),
    *sets({"job.optimizer": always("adafactor")}, r"adafactor(?:\s+optimizer)?"),
    *sets({"job.optimizer": always("lion")}, r"lion(?:\s+optimizer)?"),
    *sets({"job.optimizer": always("sgd")}, r"sgd(?:\s+optimizer)?"),
    *sets(
        {"plan.tp": whole("v")},
        r"tp\s*[=:]?\s*(?P<v>\d+)",
        (
            r"(?P<v>\d+)[\s-]*way\s+tensor(?:[\s-]model)?(?:[\s-]+paralleli[sz]m"
            r"|[\s-]+parallel)?"
        ),
        rf"tensor(?:[\s-]model)?[\s-]+paralleli[sz]m{BE}\s*(?P<v>\d+)",
    ),
    *sets(
        {"plan.pp": whole("v")},
        r"pp\s*[=:]?\s*(?P<v>\d+)",
        r"(?P<v>\d+)[\s-]*way\s+pipeline(?:[\s-]+paralleli[sz]m|[\s-]+parallel)?",
        rf"pipeline[\s-]+paralleli[sz]m{BE}\s*(?P<v>\d+)",
    ),
    *sets(
        {"plan.dp": whole("v")},
        r"dp\s*[=:]?\s*(?P<v>\d+)",
        r"(?P<v>\d+)[\s-]*way\s+data(?:[\s-]+paralleli[sz]m|[\s-]+parallel)?",
        rf"data[\s-]+paralleli[sz]m{BE}\s*(?P<v>\d+)",
    ),
    *sets(
        {"plan.cp": whole("v")},
        r"cp\s*[=:]?\s*(?P<v>\d+)",
        r"(?P<v>\d+)[\s-]*way\s+context(?:[\s-]+paralleli[sz]m|[\s-]+parallel)?",
        rf"context[\s-]+paralleli[sz]m{BE}\s*(?P<v>\d+)",
    ),
    *sets(
        {"plan.ep": whole("v")},
        r"ep\s*[=:]?\s*(?P<v>\d+)",
        r"(?P<v>\d+)[\s-]*way\s+expert(?:[\s-]+paralleli[sz]m|[\s-]+parallel)?",
        rf"expert[\s-]+paralleli[sz]m{BE}\s*(?P<v>\d+)",
    ),
    *sets(
        {"plan.micro_batch": whole("v")},
        rf"(?:micro[\s-]?batch(?:es)?(?:\s+size)?|mbs){BE}\s*(?P<v>\d+)",
    ),
    *sets(
        {"plan.sharding": prefixed("zero")},
        r"(?:deepspeed\s+)?zero[\s-]*(?:stage[\s-]*)?(?P<v>[123])",
    ),
    *sets({"plan.sharding": always("hsdp")}, r"hsdp|hybrid shard(?:ed|ing)(?: data parallel)?"),
    *sets(
        {"plan.sharding": always("zero3")},
        r"fsdp2?|fully[\s-]sharded(?: data[\s-]parallel(?:ism)?)?",
        why="FSDP shards what ZeRO-3 shards",
    ),
    *sets(
        {"plan.recompute": always("full")},
        (
            r"(?:full|with)\s+(?:activation\s+)?(?:recompute|recomputation"
            r"|checkpointing)"
        ),
        r"(?:activation|gradient)\s+(?:checkpointing|recomputation)",
    ),
    *sets(
        {"plan.recompute": always("selective")},
        r"selective\s+(?:activation\s+)?(?:recompute|recomputation|checkpointing)",
    ),
    *sets(
        {"plan.recompute": always("none")},
        r"(?:no|without)\s+(?:activation\s+)?(?:recompute|recomputation)",
    ),
)
