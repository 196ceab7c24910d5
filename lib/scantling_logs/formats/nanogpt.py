"""nanoGPT, its descendants, and trainers that print alike."""

from ..contents import Column
from ..line_format import (
    COUNT,
    MIB,
    MILLI,
    NUMBER,
    VALUE,
    LineFormat,
    StepLine,
    memory,
    pattern,
    value,
)

NANOGPT = LineFormat(
    name="nanogpt_family",
    framework="nanoGPT",
    marks=(("iter ", ": loss ", ", time ", "ms"),),
    headers=("tokens per iteration will be: ",),
    data_parallel_only=True,
    lines=(
        StepLine(
            word=", time ",
            also="iter ",
            values=(
                value(Column.STEP, rf"iter {COUNT}: loss"),
                value(Column.SECONDS, rf", time {NUMBER}ms", MILLI),
            ),
        ),
    ),
    settings={"total_batch_tokens": pattern(r"tokens per iteration will be: ([\d,]+)")},
)

NANOCHAT = LineFormat(
    name="nanogpt_family",
    framework="nanochat",
    marks=(("tok/sec: ", "| dt: "),),
    headers=("Distributed world size: ", "Autodetected device type: "),
    data_parallel_only=True,
    lines=(
        StepLine(
            word="| dt: ",
            also="step ",
            values=(
                value(Column.STEP, rf"^.{{0,40}}?step\s+{COUNT}"),
                value(Column.SECONDS, rf"dt:{VALUE}ms", MILLI),
                value(Column.TOKENS_PER_S, rf"tok/sec:{VALUE}"),
            ),
        ),
    ),
    memory=(memory("Peak memory usage: ", rf"Peak memory usage:{VALUE}MiB", MIB),),
    settings={
        "world_size": pattern(
            rf"Distributed world size: {COUNT}|ranks?: {COUNT}$|Number of ranks: {COUNT}"
        ),
        "total_batch_tokens": pattern(r"Total batch size ([\d,]+) => grad"),
        "micro_batch_size": pattern(rf"Tokens / micro-batch / rank: {COUNT} x"),
        "seq_length": pattern(rf"Tokens / micro-batch / rank: \d+ x {COUNT}"),
        "dtype": pattern(r"COMPUTE_DTYPE: (\S+)"),
        "accelerator_name": pattern(r"GPU: (?:NVIDIA |AMD )?([^{|]+?) \|"),
    },
)

MODDED_NANOGPT = LineFormat(
    name="nanogpt_family",
    framework="modded-nanogpt",
    marks=(("train_time:", "step_avg:", "step:"),),
    data_parallel_only=True,
    lines=(
        StepLine(
            word="train_time:",
            also="step_avg:",
            values=(
                value(Column.STEP, rf"\bstep:{COUNT}(?:/\d+)?\b"),
                value(Column.TOTAL_S, rf"train_time:{VALUE}ms", MILLI),
                value(Column.TOTAL_S, rf"train_time:{VALUE}s"),
            ),
        ),
    ),
    memory=(
        memory("peak memory allocated: ", rf"peak memory allocated: {COUNT} MiB", MIB),
        memory("peak memory consumption: ", rf"peak memory consumption: {COUNT} MiB", MIB),
    ),
    settings={
        "world_size": pattern(rf"world_size[:=] ?{COUNT}|Running pytorch .* on {COUNT} GPUs"),
        "total_batch_tokens": pattern(rf"train_batch_tokens:{COUNT}"),
        "seq_length": pattern(rf"train_seq_len:{COUNT}"),
    },
    counted={"world_size": pattern(rf"\|\s+{COUNT}\s+(?:NVIDIA|AMD|Tesla) .*\|")},
)

LLM_C = LineFormat(
    name="llm_c",
    framework="llm.c",
    marks=(
        ("s:0 tel:",),
        ("s:1 trl:",),
        ("| norm ", "tok/s", "step "),
        ("| train loss ", " tok/s", "step "),
    ),
    headers=("| max_sequence_length T",),
    data_parallel_only=True,
    lines=(
        StepLine(word=" trl:", values=(value(Column.STEP, rf"\bs:{COUNT} "),)),
        StepLine(
            word="tok/s",
            values=(
                value(Column.STEP, rf"step\s+{COUNT}/\d+"),
                value(Column.SECONDS, rf"{NUMBER} ms", MILLI),
                value(Column.TOKENS_PER_S, rf"{NUMBER} tok/s"),
            ),
        ),
    ),
    settings={
        "seq_length": pattern(
            rf"max_sequence_length T\s*\|\s*{COUNT}|sequence length T\s*\|\s*{COUNT}"
        ),
        "micro_batch_size": pattern(rf"micro batch size B\s*\|\s*{COUNT}"),
        "total_batch_tokens": pattern(rf"total batch size\s*\|\s*{COUNT}"),
        "world_size": pattern(rf"num_processes\s*\|\s*{COUNT}"),
        "dtype": pattern(r"precision\s*\|\s*(\w+)"),
        "accelerator_name": pattern(r"device\s*\|\s*(?:NVIDIA )?(.+?)\s*\|"),
    },
)

LIT_GPT = LineFormat(
    name="lit_gpt",
    framework="LitGPT",
    marks=(("iter time:", "loss train:"), ("iter time:", "Epoch ", "| step")),
    lines=(
        StepLine(
            word="iter time:",
            values=(
                value(Column.STEP, rf"iter:? {COUNT}"),
                value(Column.SECONDS, rf"iter time:{VALUE} ?ms", MILLI),
            ),
        ),
    ),
)
