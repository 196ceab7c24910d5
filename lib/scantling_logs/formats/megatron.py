"""Megatron-LM and what is built on it."""

from dataclasses import replace

from ..contents import Column
from ..line_format import (
    COUNT,
    GB,
    GIB,
    MIB,
    MILLI,
    NUMBER,
    VALUE,
    LineFormat,
    Place,
    StepLine,
    memory,
    pattern,
    value,
)
from .deepspeed import LAST_LOCAL_RANK

MEGATRON_LM = LineFormat(
    name="megatron_lm",
    framework="Megatron-LM",
    marks=(("elapsed time per iteration",), ("using world size:", "-parallel")),
    opens=(pattern(r"(?<!-)-{9,} arguments -{9,}"), pattern(r"using world size: \d+")),
    launches=("using world size: ",),
    headers=("> initializing torch distributed", "[before the start of training step]"),
    lines=(
        StepLine(
            word="elapsed time per iteration",
            values=(
                value(Column.STEP, rf"iteration:?\s+{COUNT}\s*/"),
                value(Column.SECONDS, rf"elapsed time per iteration \(ms\):{VALUE}", MILLI),
                value(Column.SECONDS, rf"elapsed time per iteration \(s\):{VALUE}"),
                value(
                    Column.TFLOPS_PER_DEVICE,
                    r"(?:throughput per GPU \(TFLOP/s/GPU\): |TFLOPs: |approx flops per GPU: )"
                    + NUMBER,
                ),
                value(Column.TOKENS_PER_S_PER_DEVICE, rf"tokens per GPU \(tokens/s/GPU\):{VALUE}"),
                value(Column.SAMPLES_PER_S, rf"samples(?: per second|/sec):{VALUE}"),
                value(Column.GLOBAL_BATCH, rf"global batch size:\s+{NUMBER}"),
                value(Column.TOKENS_TOTAL, rf"consumed tokens:\s+{NUMBER}"),
                value(Column.SAMPLES_TOTAL, rf"consumed samples:\s+{NUMBER}"),
            ),
        ),
    ),
    memory=(
        memory("mem-max-allocated-gigabytes: ", rf"mem-max-allocated-gigabytes:{VALUE}", GB),
        memory("max allocated: ", rf"max allocated:{VALUE}", MIB),
    ),
    settings={
        "world_size": pattern(rf"using world size: {COUNT}"),
        "data_parallel_size": pattern(rf"data-parallel[- ]size: {COUNT}"),
        "context_parallel_size": pattern(rf"[ ,]context-parallel size: {COUNT}"),
        "tensor_model_parallel_size": pattern(rf"(?:tensor-)?model-parallel size: {COUNT}"),
        "pipeline_model_parallel_size": pattern(rf"pipeline-model-parallel size: {COUNT}"),
    },
)

MEGATRON_BRIDGE = replace(
    MEGATRON_LM,
    name="megatron_bridge",
    framework="Megatron-Bridge",
    marks=(("MODEL_TFLOP/s/GPU",), ("megatron.bridge", "elapsed time per iteration")),
    lines=(
        StepLine(
            word="MODEL_TFLOP/s/GPU",
            place=Place.BEFORE_STEP,
            values=(
                value(Column.TFLOPS_PER_DEVICE, rf"{NUMBER} ?MODEL_TFLOP/s/GPU"),
                value(Column.SECONDS, rf"Step Time ?:{VALUE}s"),
            ),
        ),
        StepLine(
            word="elapsed time per iteration",
            values=(
                value(Column.STEP, rf"iteration:?\s+{COUNT}\s*/"),
                value(Column.SECONDS, rf"elapsed time per iteration \(ms\):{VALUE}", MILLI),
                value(Column.TFLOPS_PER_DEVICE, rf"{NUMBER} ?MODEL_TFLOP/s/GPU"),
                value(Column.GLOBAL_BATCH, rf"global batch size:\s+{NUMBER}"),
                value(Column.SAMPLES_TOTAL, rf"consumed samples:\s+{NUMBER}"),
            ),
        ),
    ),
)

_STEP = value(Column.STEP, rf"iteration[:=]?\s*{COUNT}\s*/")
_MORE = (
    value(Column.SECONDS, rf"elapsed time per iteration \(s\):{VALUE}"),
    value(
        Column.TFLOPS_PER_DEVICE,
        r"(?:throughput per GPU \(TFLOP/s/GPU\): |TFLOPs: |approx flops per GPU: "
        rf"|\[LM\]-?TFLOPs=|\| TFLOPs=){NUMBER}",
    ),
    value(
        Column.TOKENS_PER_S_PER_DEVICE,
        rf"(?:tokens per gpu per second \(tgs\): |tokens_per_gpu_per_second_tgs=){NUMBER}",
    ),
    value(Column.SAMPLES_PER_S, rf"samples(?:[ _]per[ _]second|/sec)[:=]\s*{NUMBER}"),
    value(Column.GLOBAL_BATCH, rf"global[ _]batch[ _]size[:=]\s*{NUMBER}"),
    value(Column.TOKENS_TOTAL, rf"consumed[ _]tokens[:=]\s*{NUMBER}"),
    value(Column.SAMPLES_TOTAL, rf"consumed[ _]samples[:=]\s*{NUMBER}"),
)
MEGATRON_DEEPSPEED = replace(
    MEGATRON_LM,
    name="megatron_deepspeed",
    framework="Megatron-DeepSpeed",
    marks=(
        ("elapsed_time_per_iteration_ms=", "iteration="),
        ("elapsed time per iteration (s)",),
        ("elapsed time per iteration", "DeepSpeed"),
        ("using world size:", "DeepSpeed", "-parallel"),
    ),
    lines=(
        StepLine(
            word="elapsed time per iteration",
            values=(
                _STEP,
                value(Column.SECONDS, rf"elapsed time per iteration \(ms\):{VALUE}", MILLI),
                *_MORE,
            ),
        ),
        StepLine(
            word="elapsed_time_per_iteration_ms=",
            values=(
                _STEP,
                value(Column.SECONDS, rf"elapsed_time_per_iteration_ms={VALUE}", MILLI),
                *_MORE,
            ),
        ),
    ),
    settings={
        **MEGATRON_LM.settings,
        # in a diary around the lines
        "devices_total": pattern(rf"\bfor {COUNT} (?:gpus|GPUs)\b"),
    },
)

PRIMUS_MEGATRON = replace(
    MEGATRON_LM,
    name="primus_megatron",
    framework="Primus (Megatron-LM)",
    marks=(
        ("mem usage/free/total", "elapsed time per iteration"),
        ("[Primus:Runtime]", "elapsed time per iteration"),
    ),
    opens=(pattern(r"\[Primus:\w+\]"),),
    memory=(
        *MEGATRON_LM.memory,
        memory("max mem usage/usage_ratio: ", rf"max mem usage/usage_ratio:{VALUE}GB", GIB),
        memory(
            "hip mem usage/free/total/usage_ratio: ",
            rf"hip mem usage/free/total/usage_ratio:{VALUE}GB",
            GIB,
        ),
        memory(
            "rocm mem usage/free/total/usage_ratio: ",
            rf"rocm mem usage/free/total/usage_ratio:{VALUE}GB",
            GIB,
        ),
    ),
    settings={**MEGATRON_LM.settings, "world_size": pattern(rf"world_size[=:] ?{COUNT}")},
)

GPT_NEOX = replace(
    MEGATRON_LM,
    name="gpt_neox",
    framework="GPT-NeoX",
    marks=(
        ("NeoXArgs",),
        ("approx flops per GPU",),
        ("gpt-neox", "DeepSpeed"),
        ("megatron/neox_arguments",),
        ("gpt-neox", "OutOfMemory"),
    ),
    opens=(
        pattern(r"NeoXArgs\.\w+\(\)"),
        pattern(r'File "\S*gpt-neox\S*", line \d+'),
        pattern(r"\w \.{4,} \S+?\.{2,}(?:updated|default)"),
        pattern(r"(?<!-)-{9,} arguments -{9,}"),
    ),
    launches=(),
    headers=("NeoXArgs.configure_distributed_args()", "> initializing torch distributed"),
    settings={
        **MEGATRON_LM.settings,
        "last_local_rank": LAST_LOCAL_RANK,
        "devices_total": pattern(rf"global_num_gpus \.+ {COUNT}"),
    },
)
