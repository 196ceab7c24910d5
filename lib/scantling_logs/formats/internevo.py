"""InternEvo."""

from ..contents import Column
from ..line_format import COUNT, NUMBER, VALUE, LineFormat, StepLine, pattern, value

INTERNEVO = LineFormat(
    name="internevo",
    framework="InternEvo",
    marks=(("tgs (tokens/gpu/second)=",), ("tgs/last_tgs_1=",)),
    headers=("===New Run ",),
    lines=(
        StepLine(
            word="tgs (tokens/gpu/second)=",
            precise_clock=True,
            values=(
                value(Column.STEP, rf"step={COUNT}"),
                value(Column.TFLOPS_PER_DEVICE, rf"tflops ?= ?{NUMBER}"),
                value(Column.TOKENS_PER_S_PER_DEVICE, rf"tgs \(tokens/gpu/second\)={VALUE}"),
                value(Column.TOKENS_TOTAL, rf"num_consumed_tokens={VALUE}"),
            ),
        ),
    ),
    settings={
        "seq_length": pattern(rf"(?:SEQ_LEN|seq_len) ?= ?{COUNT}"),
        "tensor_model_parallel_size": pattern(rf"\btensor ?= ?{COUNT},|tensor=dict\(size={COUNT}"),
        "pipeline_model_parallel_size": pattern(rf"pipeline=dict\(size={COUNT}"),
        "dtype": pattern(r'^\s*dtype="([\w.]+)"'),
    },
)
