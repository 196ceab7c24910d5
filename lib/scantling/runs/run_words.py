"""What the words of run tables mean: each rule a pattern over a text in lower case, the column that
it settles, its value, and whose word it is. Rules hold in order; the last one that matches wins."""

import re
from enum import StrEnum
from typing import NamedTuple


class Text(StrEnum):
    """A text of a row in which words are sought."""

    PRECISION_AS_PRINTED = "precision_as_printed"
    OFFLOAD = "offload"
    PUBLISHED = "published"
    SCALE_OUT_NETWORK = "scale_out_network"
    OPTIONS = "options"  # other_opts and recompute_as_printed
    FRAMEWORK = "framework"
    OTHER_OPTS = "other_opts"
    SHARDING_AS_PRINTED = "sharding_as_printed"
    RECOMPUTE_AS_PRINTED = "recompute_as_printed"
    SOURCE_URL = "source_url"  # of how a peak was measured alone: no prediction reads it
    STACK = "stack"
    EFFORT = "effort"
    MOE_DISPATCHER = "moe_dispatcher"
    WHEN = "when"  # published, stack and other_opts


class Rule(NamedTuple):
    """What a word in a text of a row means."""

    column: str  # that it settles
    value: str  # \1: what the pattern's group holds
    text: Text
    pattern: re.Pattern[str]
    source: str
    also: re.Pattern[str] | None  # must be found as well
    unless: re.Pattern[str] | None  # must not be found

    def value_in(self, text: str) -> str | None:
        """The value that the rule reads in a text; None where it does not hold."""
        match = self.pattern.search(text)
        if match is None or (self.also and not self.also.search(text)):
            return None
        if self.unless and self.unless.search(text):
            return None
        return match.expand(self.value)


def rule(
    column: str, value: str, text: Text, pattern: str, source: str, also: str = "", unless: str = ""
) -> Rule:
    """A rule with its patterns compiled."""
    return Rule(
        column,
        value,
        text,
        re.compile(pattern),
        source,
        re.compile(also) if also else None,
        re.compile(unless) if unless else None,
    )


RULES = (
    rule(
        "offload",
        "none",
        Text.OFFLOAD,
        "^activation",
        "activations alone: not offloading of states",
    ),
    rule("offload", "optimizer", Text.OFFLOAD, r"^optimizer\b", "states on the host"),
    rule(
        "offload",
        "optimizer+params",
        Text.OFFLOAD,
        r"^optimizer\+params?\b",
        "states and weights on the host",
    ),
    rule("released", r"\1", Text.PUBLISHED, r"^(\d{4})", "the year of publication"),
    rule("released_month", r"\1", Text.PUBLISHED, r"^\d{4}-?(\d\d)", "the month of publication"),
    rule(
        "slices",
        r"\1",
        Text.SCALE_OUT_NETWORK,
        r"(\d+) slices",
        "slices of a torus that one run joined",
    ),
    rule("scale_out", "dcn-tpu", Text.SCALE_OUT_NETWORK, "dcn", "name of the network"),
    rule("scale_out", "efa-v2", Text.SCALE_OUT_NETWORK, "efa", "name of the network"),
    rule("scale_out", "rocev2-400", Text.SCALE_OUT_NETWORK, "roce", "name of the network"),
    rule("scale_out", "slingshot11", Text.SCALE_OUT_NETWORK, "slingshot", "name of the network"),
    rule("scale_out", "omnipath-100", Text.SCALE_OUT_NETWORK, "omni", "name of the network"),
    rule("options_printed", "1", Text.OPTIONS, r"\S", "whether the source prints any option"),
    rule(
        "flash",
        "0",
        Text.FRAMEWORK,
        "mindspeed",
        "scripts that do not print use-flash-attn materialise scores",
    ),
    rule("flash", "2", Text.OPTIONS, "use-flash-attn", "MindSpeed-LLM option"),
    rule("flash", "1", Text.OPTIONS, "flash_attentionv1", "name of the kernel"),
    rule("flash", "2", Text.OPTIONS, "flash_attention2", "name of the kernel"),
    rule("flash", "3", Text.OPTIONS, "flashattention-3", "name of the kernel"),
    rule(
        "flash",
        "4",
        Text.OPTIONS,
        r"flash[-_ ]?attention[-_ ]?4|\bfa4\b|tokamax splash",
        "names of the kernels that pipeline the softmax beside the products",
    ),
    rule("flash", "0", Text.OPTIONS, "unfused attention", "scores are materialised"),
    rule(
        "balanced_ring",
        "1",
        Text.OPTIONS,
        r"zig-?zag|striped attention|causal load.balanc|load.balanced (?:ring|context)",
        "each rank of a ring holds an early and a late chunk, so that none waits",
    ),
    rule(
        "capacity_factor",
        r"\1",
        Text.OPTIONS,
        r"capacity factor (\d+(?:\.\d+)?)",
        "rows of an expert over an even share",
    ),
    rule(
        "packed",
        "1",
        Text.OPTIONS,
        r"\bvarlen\b|packed (?:documents|sequences)|sequence packing",
        "documents packed into a sequence, attention within each",
    ),
    rule(
        "flash", r"\1", Text.OPTIONS, r"\bflash[ _-]attention[ _-]([234])\b", "name of the kernel"
    ),
    rule(
        "flash",
        "0",
        Text.OTHER_OPTS,
        "^(torch|fused)$",
        "Hagemann et al. 2024: torch and fused are attention kernels that materialise scores",
    ),
    rule(
        "unfused_scores",
        "1",
        Text.OTHER_OPTS,
        "^torch$",
        "Hagemann et al. 2024: torch masks and normalises in several kernels",
    ),
    rule(
        "graphs",
        "1",
        Text.OPTIONS,
        "cuda_graph_impl=(?:transformer_engine|local)|cuda graphs",
        "Megatron-Bridge recipes: graphs of single modules",
    ),
    rule(
        "graphs",
        "0.5",
        Text.OPTIONS,
        "cuda_graph_impl=(?:transformer_engine|local)|cuda graphs",
        "Megatron-Bridge recipes: the router's module alone is captured",
        also="moe_router",
        unless="'attn'",
    ),
    rule(
        "graphs",
        "2",
        Text.OPTIONS,
        "cuda_graph_impl=full_iteration",
        "Megatron-Bridge recipes: the whole iteration is captured",
    ),
    rule(
        "graphs",
        "2",
        Text.OPTIONS,
        "cuda_graph_impl=local",
        "Megatron-Bridge recipes: scope of the local implementation",
        also="full_iteration",
    ),
    rule(
        "tp_overlap",
        "1",
        Text.OPTIONS,
        "ub_tp_comm_overlap|tp-comm-overlap",
        "Transformer Engine's user buffers",
    ),
    rule(
        "tp_overlap",
        "0.44",
        Text.OPTIONS,
        "async tp",
        "PyTorch asynchronous tensor parallelism shortens the forward by up to 29 % "
        "and the step by 8 %: the forward's collectives, 1 of 1 + 1.25, are pipelined",
    ),
    rule("tp_overlap", "-1", Text.OPTIONS, "no comm overlap", "nothing runs beside collectives"),
    rule("ep_overlap", "1", Text.OPTIONS, "moe_a2a_overlap=true", "Megatron-Core option"),
    rule(
        "dedup_dispatch",
        "1",
        Text.OPTIONS,
        "deepep",
        "a dispatcher that sends a token over a link once",
    ),
    rule(
        "dedup_dispatch",
        "2",
        Text.OPTIONS,
        "hybridep",
        "a dispatcher that sends a token over a link once",
    ),
    rule(
        "dp_overlap",
        "0",
        Text.OPTIONS,
        "no comm overlap|use_gradient_bucket=false",
        "gradients are reduced after the backward",
    ),
    rule("p2p_overlap", "0", Text.OPTIONS, "no comm overlap", "sends run alone"),
    rule(
        "parallel_block",
        "1",
        Text.OPTIONS,
        "parallel transformer block",
        "attention and MLP read the same input",
    ),
    rule(
        "norm_kernel",
        "1",
        Text.OPTIONS,
        "rms kernel",
        "Hagemann et al. 2024: one fused norm kernel in an eager stack",
    ),
    rule("fused_norm", "0", Text.OPTIONS, "eager|no compile", "kernels run one operation each"),
    rule(
        "fused_norm",
        "0",
        Text.OPTIONS,
        r"transformer[ _-]engine not used|without transformer[ _-]engine",
        "Megatron's local layers: norms and activations of single PyTorch operations",
    ),
    rule(
        "fp8_gather",
        "0",
        Text.FRAMEWORK,
        r"\baiter\b",
        "AMD's kernels keep 16-bit weights beside the 8-bit ones",
    ),
    rule(
        "fp8_attention",
        "1",
        Text.OPTIONS,
        "fp8_dot_product_attention=true",
        "Transformer Engine option",
    ),
    rule(
        "even_routing",
        "1",
        Text.OPTIONS,
        "forced-balanced|force balance",
        "router forced to an even load",
    ),
    rule(
        "even_routing",
        "2",
        Text.OPTIONS,
        "token drop|token-drop moe",
        "tokens beyond an even share are dropped and the rest padded to it",
    ),
    rule("chunked_loss", "1", Text.OPTIONS, "liger", "Liger kernels: cross entropy in chunks"),
    rule(
        "chunked_loss",
        "0",
        Text.FRAMEWORK,
        r"^halo\b",
        "Halo, agent-docs/optimization/liger-kernels.md: fused_linear_cross_entropy is off, the "
        "loss keeps all logits",
    ),
    rule(
        "logit_bytes",
        "8",
        Text.FRAMEWORK,
        r"^halo\b",
        "transformers' loss_utils.py: 16-bit logits, an fp32 copy that Liger's cross entropy "
        "overwrites with its gradient, and the 16-bit one",
    ),
    rule(
        "reshard",
        "0",
        Text.FRAMEWORK,
        r"^halo\b",
        "Halo, agent-docs/parallelism/data-parallelism.md: fsdp_reshard_after_forward is off",
    ),
    rule(
        "whole_experts",
        "1",
        Text.FRAMEWORK,
        r"^halo\b",
        "Halo, agent-docs/parallelism/expert-parallelism.md: FSDP2 leaves out modules that are "
        "split over expert ranks",
    ),
    rule(
        "balanced_layout", "1", Text.OPTIONS, "pp_layout", "Megatron-Core: stages laid out by hand"
    ),
    rule(
        "optimizer_group",
        r"\1",
        Text.SHARDING_AS_PRINTED,
        r"within (\d+)",
        "ranks that share one copy of the optimizer states",
    ),
    rule(
        "grad_bytes",
        "2",
        Text.FRAMEWORK,
        "nemo|megatron.bridge",
        "NVIDIA's performance recipes set grad_reduce_in_fp32 = False "
        "(Megatron-Bridge scripts/performance, NeMo grad_sync_dtype: bf16); "
        "Megatron's own default under bf16 is fp32",
    ),
    rule("grad_bytes", "4", Text.OTHER_OPTS, "fp32 grad", "gradients accumulated in fp32"),
    rule(
        "grad_bytes",
        "4",
        Text.OTHER_OPTS,
        "mp mode default",
        "llm-foundry: MP mode DEFAULT reduces gradients in fp32",
    ),
    rule(
        "cp_type",
        "ulysses",
        Text.OPTIONS,
        "cp a2a",
        "heads are exchanged instead of keys and values",
    ),
    rule("interleaved", "1", Text.OTHER_OPTS, "interleav", "virtual stages without their number"),
    rule("schedule", "zb-1p", Text.OTHER_OPTS, "zero-bubble|zero bubble|zb-1p", "Qi et al. 2023"),
    rule("schedule", "zb-2p", Text.OTHER_OPTS, "zbb|zb-2p", "Qi et al. 2023"),
    rule("schedule", "dualpipe", Text.OTHER_OPTS, "dualpipe", "DeepSeek-V3 report"),
    rule("schedule", "zb-v", Text.OTHER_OPTS, "zb-v|zbv", "Qi et al. 2024"),
    rule("schedule", "v-half", Text.OTHER_OPTS, "v-half", "Qi et al. 2024"),
    rule("schedule", "v-min", Text.OTHER_OPTS, "v-min", "Qi et al. 2024"),
    rule(
        "recompute_layers",
        r"\1",
        Text.RECOMPUTE_AS_PRINTED,
        r"num[-_]layers[= ](\d+)",
        "Megatron-LM: layers of a virtual stage that recompute",
        unless="uniform",
    ),
    rule(
        "recompute",
        "selective",
        Text.RECOMPUTE_AS_PRINTED,
        "granularity=selective",
        "Megatron-LM option",
    ),
    rule(
        "recompute",
        "",
        Text.RECOMPUTE_AS_PRINTED,
        "fraction of blocks",
        "fms-fsdp: a fraction of the blocks repeats its forward, which fraction is not printed",
    ),
    rule(
        "recompute",
        "full",
        Text.RECOMPUTE_AS_PRINTED,
        "remat_policy=(?:custom(?!.*(?:proj|mlpw|context))|qkv_proj_offloaded)",
        "MaxText's base.yml: a custom policy repeats what it does not name; the "
        "policy for q, k and v alone repeats the rest",
    ),
    rule(
        "activation_offload",
        "1",
        Text.RECOMPUTE_AS_PRINTED,
        "remat_policy=(?:custom$|qkv_proj_offloaded)|decoder_layer_input=offload",
        "MaxText: what is kept is kept by the host; so does every custom policy of "
        "benchmarks/maxtext_trillium_model_configs.py (02df154)",
    ),
    rule(
        "activation_offload",
        "0.25",
        Text.SHARDING_AS_PRINTED,
        "megatron-fsdp",
        "Megatron-Bridge scripts/performance/configs/llama: "
        "cpu_offloading_num_layers of 20 to 40 of 80 layers under Megatron-FSDP",
    ),
    rule(
        "selective_attention",
        "0",
        Text.RECOMPUTE_AS_PRINTED,
        r"^selective \((?:layernorm|mla_up_proj|moe)",
        "Megatron-Core: recompute_modules names what is repeated",
        unless="core_attn",
    ),
    rule(
        "selective_up",
        "0",
        Text.RECOMPUTE_AS_PRINTED,
        r"^selective \((?:layernorm|moe)",
        "Megatron-Core: recompute_modules names what is repeated",
        unless="mla_up_proj",
    ),
    rule(
        "selective_norm",
        "1",
        Text.RECOMPUTE_AS_PRINTED,
        r"^selective \(.*layernorm",
        "Megatron-Core: recompute_modules names what is repeated",
    ),
    rule(
        "selective_act",
        "1",
        Text.RECOMPUTE_AS_PRINTED,
        r"^selective \(.*moe_act",
        "Megatron-Core: recompute_modules names what is repeated",
    ),
    rule(
        "selective_moe",
        "1",
        Text.RECOMPUTE_AS_PRINTED,
        r"^selective \(.*\bmoe\b",
        "Megatron-Core: recompute_modules names what is repeated",
    ),
    rule(
        "selective_gemm",
        "0.333",
        Text.RECOMPUTE_AS_PRINTED,
        "save_dot_except_logits_ffn1",
        "Praxis and MaxText checkpoint policies: all products are kept but those of "
        "the logits and of the first layer of the feed-forward, a third of those of "
        "a layer",
    ),
    rule(
        "shard_group",
        r"\1",
        Text.SHARDING_AS_PRINTED,
        r"(?:fsdp[= ]|hsdp \d+x)(\d+)",
        "ranks that share one copy of the weights",
    ),
    rule(
        "flash",
        "0",
        Text.OTHER_OPTS,
        r"^(?:baseline|\+(?:ptb|swa|tp overlap|pp overlap|dp overlap))",
        "Jiang et al. 2024 (MegaScale), table 3: each row keeps what those before it "
        "brought; efficient operators come seventh",
    ),
    rule(
        "tp_overlap",
        "1",
        Text.OTHER_OPTS,
        r"^\+(?:tp overlap|pp overlap|dp overlap|efficient ops|misc|lamb)",
        "Jiang et al. 2024 (MegaScale), table 3",
    ),
    rule(
        "dp_overlap",
        "0",
        Text.OTHER_OPTS,
        r"^(?:baseline|\+(?:ptb|swa|tp overlap|pp overlap))",
        "Jiang et al. 2024 (MegaScale), table 3",
    ),
    rule(
        "p2p_overlap",
        "0",
        Text.OTHER_OPTS,
        r"^(?:baseline|\+(?:ptb|swa|tp overlap))",
        "Jiang et al. 2024 (MegaScale), table 3",
    ),
    rule(
        "parallel_block",
        "1",
        Text.OTHER_OPTS,
        r"^\+(?:ptb|swa|tp overlap|pp overlap|dp overlap|efficient ops|misc|lamb)",
        "Jiang et al. 2024 (MegaScale), table 3",
    ),
    rule(
        "tuned",
        "1",
        Text.FRAMEWORK,
        r"nemo|megatron.bridge|mlperf|jax-toolbox|\bpax\b|t5x|mindspeed",
        "recipes that the maker of the chips tuned and published",
    ),
    rule("graphs", "1", Text.OPTIONS, "layer cuda graph", "MLPerf submissions: a graph a layer"),
    rule(
        "graphs",
        "2",
        Text.OPTIONS,
        "full cuda graph",
        "MLPerf submissions: the whole iteration is captured",
    ),
    rule(
        "tp_overlap",
        "1",
        Text.OPTIONS,
        "tp comm overlap|use-mc2",
        "Transformer Engine's user buffers by another name; MindSpeed's fused "
        "products and collectives",
    ),
    rule(
        "cp_type",
        "ulysses",
        Text.OPTIONS,
        "ulysses_cp_algo",
        "MindSpeed: heads are exchanged instead of keys and values",
    ),
    rule(
        "fused_experts",
        "1",
        Text.OPTIONS,
        "cutedsl_fused_grouped_mlp=true",
        "Megatron-Bridge: grouped products, activation and quantisation in one CuTe DSL kernel",
    ),
    rule(
        "looped_experts", "1", Text.OPTIONS, "grouped_gemm false", "experts run one after the other"
    ),
    rule(
        "eager_tp",
        "1",
        Text.STACK,
        "^(torchtitan|kempnerforge)$",
        "their configurations do not compile unless told to; DTensor dispatches each operation",
    ),
    rule("eager_tp", "0", Text.OPTIONS, r"torch\.compile", "PyTorch compiles the block"),
    rule("eager_tp", "1", Text.OPTIONS, "no compile", "kernels run one operation each"),
    rule(
        "dp_overlap",
        "1",
        Text.RECOMPUTE_AS_PRINTED,
        "^non-repeated layers",
        "Pax: layers that are not scanned are scheduled together",
    ),
    rule(
        "half_states",
        "1",
        Text.PRECISION_AS_PRINTED,
        r"^pure bf16|\badamw? states in that type",
        "torch_dtype bfloat16: PyTorch's optimizers keep their states in the format of the weights",
    ),
    rule(
        "half_states",
        "1",
        Text.OTHER_OPTS,
        "adamwbf16|no fp32 copy",
        "optimizers that keep 16-bit weights and moments, and round at random in place of an fp32 "
        "copy",
    ),
    rule(
        "half_states",
        "1",
        Text.STACK,
        "^kempnerforge$",
        "KempnerForge: model.to(dtype=param_dtype), and no fp32 copy",
    ),
    rule(
        "grad_bytes",
        "2",
        Text.PRECISION_AS_PRINTED,
        r"^pure bf16|\badamw? states in that type",
        "torch_dtype bfloat16: gradients have the format of the weights",
    ),
    rule(
        "grad_bytes",
        "2",
        Text.OTHER_OPTS,
        "adamwbf16|no fp32 copy",
        "gradients have the format of the weights",
    ),
    rule(
        "precision",
        "fp32",
        Text.STACK,
        "^sailor$",
        "Sailor artifact: run_opt.slurm gives neither --fp16 nor --bf16",
    ),
    rule(
        "logit_bytes",
        "14",
        Text.STACK,
        "^torchtitan$",
        "torchtitan until April 2025: an eager loss holds 16-bit logits, an fp32 "
        "copy, its log-softmax and the gradient",
    ),
    rule(
        "logit_bytes",
        "4",
        Text.WHEN,
        r"^20(25-(0[5-9]|1)|2[6-9]).* torchtitan .*torch\.compile",
        "torchtitan since April 2025 compiles the loss: 16-bit logits and their gradient",
        unless="no compile",
    ),
    rule(
        "peak_unit",
        "1.073741824",
        Text.SOURCE_URL,
        "pytorch/ao$",
        "torchao parse_torchtitan_logs.py reads torchtitan's peaks, in GiB",
    ),
    rule(
        "peak_unit",
        "1.073741824",
        Text.STACK,
        "^(kempnerforge|nanotron)$",
        "both divide the bytes of the allocator by 1024**3 and print GB",
    ),
    rule(
        "peak_unit",
        "1.073741824",
        Text.STACK,
        "^internevo$",
        "its table of inference in the same section gives 14.5 and 39 where bf16 "
        "weights alone are 14.64e9 and 40.18e9 bytes",
    ),
    rule(
        "flash",
        "0",
        Text.WHEN,
        "^(?:20[01].|202[0-3]|2024-01).* paxml",
        "JAX-Toolbox's read-me of Pax: flash attention by default from 6 February 2024 on",
    ),
    rule(
        "dp_overlap",
        "0",
        Text.WHEN,
        "^(?:20[01].|202[0-3]|2024-01).* paxml",
        "JAX-Toolbox GPU_performance.md: pipelined all-gathers, in its containers of 2024 on",
    ),
    rule(
        "half_states",
        "1",
        Text.PRECISION_AS_PRINTED,
        "^pure (?:bf16|fp16)",
        "no mixed precision: PyTorch's optimizers keep their states in the format of the weights",
    ),
    rule(
        "grad_bytes",
        "2",
        Text.PRECISION_AS_PRINTED,
        "^pure (?:bf16|fp16)",
        "no mixed precision: gradients have the format of the weights",
    ),
    rule("tuned", "1", Text.EFFORT, "^tuned$", "what a row says of itself"),
    rule("tuned", "0", Text.EFFORT, "^typical$", "what a row says of itself"),
    rule("tuned", "-1", Text.EFFORT, "^first-week$", "what a row says of itself"),
    rule(
        "tuned",
        "0",
        Text.FRAMEWORK,
        r"zero-3 \(in megatron\)",
        "a rival as the baseline of a paper, whatever the paper's own runs are",
    ),
    rule("dedup_dispatch", "-1", Text.MOE_DISPATCHER, "^allgather$", "name of the dispatcher"),
    rule("dedup_dispatch", "0", Text.MOE_DISPATCHER, "^alltoall$", "name of the dispatcher"),
    rule("dedup_dispatch", "1", Text.MOE_DISPATCHER, "^deepep$", "name of the dispatcher"),
    rule("dedup_dispatch", "2", Text.MOE_DISPATCHER, "^hybridep$", "name of the dispatcher"),
    rule("dedup_dispatch", "3", Text.MOE_DISPATCHER, "^uccl$", "name of the dispatcher"),
)
