"""The Hugging Face Trainer and LLaMA-Factory."""

from ..contents import Column
from ..line_format import COUNT, RELEASE, VALUE, LineFormat, StepLine, pattern, value

HF_TRAINER = LineFormat(
    name="hf_trainer",
    framework="Hugging Face Trainer",
    marks=(("***** Running training *****",), ("train_runtime",), ("trainer.py", "Num examples")),
    opens=(
        pattern(r"\*{5} Running training \*{5}"),
        pattern(r"""train_runtime['"]?\s*[:=]\s*['"]?\d"""),
        pattern(r"trainer\.py:\d+"),
    ),
    headers=("***** Running training *****",),
    progress_bars=True,
    settings={
        "release": pattern(rf'transformers_version"?: "?{RELEASE}'),
        "global_batch_size": pattern(r"Total train batch size .*?= ([\d,]+)"),
        "micro_batch_size": pattern(r"Instantaneous batch size per device = ([\d,]+)"),
        "gradient_accumulation_steps": pattern(rf"Gradient Accumulation steps = {COUNT}"),
        "world_size": pattern(rf"(?:Num processes|world size): {COUNT}"),
        "dtype": pattern(r"compute dtype: (?:torch\.)?(\w+)"),
    },
)

LLAMA_FACTORY = LineFormat(
    name="llama_factory",
    framework="LLaMA-Factory",
    marks=(('"current_steps":', '"elapsed_time":'),),
    lines=(
        StepLine(
            word='"current_steps":',
            also='"loss":',
            values=(
                value(Column.STEP, rf'"current_steps": {COUNT}'),
                value(Column.BAR_S, r'"elapsed_time": "([^"]+)"'),
                value(Column.TOKENS_PER_S, rf'"throughput":{VALUE}'),
            ),
        ),
    ),
)
