"""torchtitan."""

from ..contents import Column
from ..line_format import COUNT, GIB, RELEASE, LineFormat, StepLine, memory, pattern, value

TORCHTITAN = LineFormat(
    name="torchtitan",
    framework="torchtitan",
    marks=(("torchtitan",), ("[titan]",), ("- root - INFO - ", "step:", "GiB(", "loss:")),
    opens=(pattern(r"\[titan\] \d{4}-\d\d-"), pattern(r"- root - INFO - ")),
    headers=("Starting job: ", "Training starts at step", "torchtitan version: "),
    lines=(
        StepLine(
            word="step:",
            also="memory:",
            without="validate step:",
            precise_clock=True,
            values=(
                value(Column.STEP, rf"step:\s*{COUNT}\b"),
                value(
                    Column.TOKENS_PER_S_PER_DEVICE,
                    r"(?:tps|wps):\s*(\d{1,3}(?:,\d{3})+|\d+)(?![\d,])",
                ),
                value(
                    Column.TFLOPS_PER_DEVICE,
                    r"tflops:\s*((?:\d{1,3}(?:,\d{3})+|\d+)\.\d+)(?![\d.])",
                ),
            ),
        ),
    ),
    memory=(memory("memory:", r"memory:\s*(\d+\.\d+)GiB", GIB),),
    settings={
        "release": pattern(rf"torchtitan version: {RELEASE}"),
        "model_name": pattern(r"Model (\S+ \S+?)\s+size:"),
        "local_batch_size": pattern(rf"local batch size:? {COUNT}"),
        "global_batch_size": pattern(rf"global batch size:? {COUNT}"),
        "gradient_accumulation_steps": pattern(rf"gradient accumulation steps:? {COUNT}"),
        "seq_length": pattern(rf"sequence length:? {COUNT}"),
        "tensor_model_parallel_size": pattern(rf"[ ,]tp={COUNT}"),
        "pipeline_model_parallel_size": pattern(rf"pp={COUNT}"),
        "context_parallel_size": pattern(rf"[ ,]cp={COUNT}"),
        "expert_model_parallel_size": pattern(rf"[ ,]ep={COUNT}"),
        "dp_replicate": pattern(rf"dp_replicate={COUNT}"),
        "dp_shard": pattern(rf"dp_shard={COUNT}"),
        # components/quantization: MXFP8 by its name, Float8Linear in place of Linear
        "fp8": pattern(r"use dynamic (mxfp8)\w* quantization|Swapped to (Float8)Linear layers"),
        "recompute_granularity": pattern(r"Applied (\w+) activation checkpointing"),
        "accelerator_name": pattern(r"capacity: (?:NVIDIA |AMD )?(.+?) with "),
        "nproc_per_node": pattern(rf"NGPU={COUNT}"),
        # degrees of the axes, none on one device
        "mesh": pattern(r"device mesh with \[[^\]]*\], (\[[\d, ]*\])"),
    },
)
