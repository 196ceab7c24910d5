"""The architectures of the transformers library, and of repositories with code of their own, that
are read, and those that are known and refused."""

from .architectures import Architecture, Composite
from .architectures_dense import TABLE as DENSE
from .architectures_experts import TABLE as EXPERTS
from .architectures_hybrid import TABLE as HYBRIDS
from .architectures_remote import TABLE as REMOTE

ARCHITECTURES: dict[str, Architecture] = {**DENSE, **EXPERTS, **HYBRIDS, **REMOTE}

# multimodal configs: their language part, and whose tie_word_embeddings the library heeds
COMPOSITES = {
    "gemma3": Composite(text="gemma3_text", tie_read_from="whole", tied=True),
    "llama4": Composite(text="llama4_text", tie_read_from="part"),
    "mistral3": Composite(tie_read_from="whole", tied=True),
    "llava": Composite(),
    "qwen2_vl": Composite(text="qwen2_vl_text"),
    "qwen2_5_vl": Composite(text="qwen2_5_vl_text"),
    "qwen3_vl": Composite(text="qwen3_vl_text", tie_read_from="whole"),
    "qwen3_5": Composite(text="qwen3_5_text"),
    "qwen3_5_moe": Composite(text="qwen3_5_moe_text"),
    "gemma4": Composite(text="gemma4_text", tied=True),
    "gemma4_unified": Composite(text="gemma4_unified_text", tied=True),
    "minimax_m3_vl": Composite(text="minimax_m3_vl_text"),
    "qwen3_vl_moe": Composite(text="qwen3_vl_moe_text", tie_read_from="whole"),
    "emu3": Composite(text="emu3_text_model"),
    "got_ocr2": Composite(text="qwen2", tied=True),
    "cohere_compass": Composite(text="cohere_compass_text", tie_read_from="part"),
    "moss_transcribe_diarize": Composite(text="qwen3", tied=True),
    "fuyu": Composite(text="persimmon"),
    "phi4_multimodal": Composite(text="phi3"),
    "kimi_vl": Composite(text="deepseek_v3"),
    "kimi_k25": Composite(text="kimi_k2"),
}

# known, and not a stack of attention and MLP blocks that read left to right: what they are
_REFUSED = {
    "an encoder-decoder": (
        "t5",
        "mt5",
        "umt5",
        "longt5",
        "switch_transformers",
        "bart",
        "mbart",
        "pegasus",
        "bigbird_pegasus",
        "blenderbot",
        "led",
        "marian",
        "m2m_100",
        "nllb-moe",
        "prophetnet",
        "fsmt",
        "plbart",
        "mvp",
        "encoder-decoder",
        "t5gemma",
        "blenderbot-small",
    ),
    "an encoder-decoder speech model": (
        "whisper",
        "speech_to_text",
        "speecht5",
        "seamless_m4t",
        "moonshine",
    ),
    "encoder-only (bidirectional)": (
        "bert",
        "roberta",
        "xlm-roberta",
        "distilbert",
        "albert",
        "electra",
        "deberta",
        "deberta-v2",
        "modernbert",
        "mpnet",
        "camembert",
        "ernie",
        "nomic_bert",
        "esm",
        "longformer",
        "big_bird",
        "roformer",
        "rembert",
        "bert-generation",
        "data2vec-text",
        "megatron-bert",
        "roberta-prelayernorm",
        "roc_bert",
        "xlm-roberta-xl",
        "xmod",
        "xlm",
        "xlnet",
    ),
    "a decoder of speech, music or pictures": (
        "musicgen",
        "musicgen_melody",
        "moshi",
        "trocr",
        "git",
    ),
    "a model whose attention hashes its keys (Reformer)": ("reformer",),
    "a model whose attention has experts, which are not counted": ("jetmoe",),
    "a model that runs layers several times, which is not counted": (
        "dory",
        "hrm_text",
        "inkling2_loop_text",
    ),
    "a model whose keys and values pass short convolutions, which are not counted": (
        "inkling2_text",
    ),
    "a model whose residual streams are mixed (AltUp, LAuReL), which is not counted": (
        "gemma3n",
        "gemma3n_text",
    ),
    "a drafter of tokens beside another model": ("gemma4_assistant", "gemma4_unified_assistant"),
    "a byte model with a local encoder and decoder, which are not counted": ("blt",),
    "a model with layers of cross-attention, which are not counted": ("mllama",),
    "a model whose attention chooses keys of windows that have other heads (dots3)": (
        "dots3_note",
        "dots3_note_text",
    ),
    "a hybrid whose blocks (PLaMo's) are not counted": ("plamo2",),
    "a vision encoder": ("vit", "clip", "siglip", "siglip_vision_model", "dinov2", "swin"),
}
REFUSED = {model_type: what for what, names in _REFUSED.items() for model_type in names}
