"""nanotron."""

from ..contents import Column
from ..line_format import (
    BYTE,
    COUNT,
    HUMAN_VALUE,
    MILLI,
    LineFormat,
    StepLine,
    memory,
    pattern,
    value,
)

_STEP = value(Column.STEP, rf"iteration: {COUNT} /")
_RATES = (
    value(Column.TOKENS_PER_S_PER_DEVICE, rf"tokens_per_sec_per_gpu:{HUMAN_VALUE}"),
    value(Column.TOKENS_PER_S, rf"tokens_per_sec:{HUMAN_VALUE}"),
    value(Column.TFLOPS_PER_DEVICE, rf"model_tflops_per_gpu:{HUMAN_VALUE}"),
)
NANOTRON = LineFormat(
    name="nanotron",
    framework="nanotron",
    marks=(("time_per_iteration_ms:", "tokens_per_sec"),),
    opens=(pattern(r"\[INFO\|DP=\d+\|PP=\d+\|TP=\d+"),),
    headers=("[Start training] datetime",),
    lines=(
        StepLine(
            word="elapsed_time_per_iteration_ms:",
            values=(
                _STEP,
                value(Column.SECONDS, rf"elapsed_time_per_iteration_ms:{HUMAN_VALUE}", MILLI),
                *_RATES,
                value(Column.GLOBAL_BATCH, rf"global_batch_size:{HUMAN_VALUE}"),
            ),
        ),
        StepLine(
            word=" time_per_iteration_ms:",  # its global_batch_size counts tokens
            values=(
                _STEP,
                value(Column.SECONDS, rf"time_per_iteration_ms:{HUMAN_VALUE}", MILLI),
                *_RATES,
                value(Column.GLOBAL_BATCH, rf"global_batch_size_in_sequences:{HUMAN_VALUE}"),
            ),
        ),
    ),
    memory=(
        memory("cuda_max_memory_reserved: ", rf"cuda_max_memory_reserved:{HUMAN_VALUE}", BYTE),
    ),
    settings={
        "tensor_model_parallel_size": pattern(rf"\btp={COUNT}"),
        "pipeline_model_parallel_size": pattern(rf"\bpp={COUNT}"),
        "data_parallel_size": pattern(rf"\bdp={COUNT}"),
        "micro_batch_size": pattern(rf"micro_batch_size={COUNT}|\| mbs: {COUNT}"),
        "seq_length": pattern(rf"sequence_length(?:=|: ){COUNT}"),
        "gradient_accumulation_steps": pattern(
            rf"batch_accumulation_per_replica={COUNT}|\| grad_accum: {COUNT}"
        ),
        "global_batch_size": pattern(rf"grad_accum: \d+ \| global_batch_size: {COUNT}"),
    },
)
