"""MaxText."""

from ..contents import Column
from ..line_format import COUNT, NUMBER, VALUE, LineFormat, StepLine, pattern, value

MAXTEXT = LineFormat(
    name="maxtext",
    framework="MaxText",
    marks=(("completed step: ", "seconds: "),),
    opens=(pattern(r"Config param \w+: "),),
    headers=("Config param ", "System Information: Jax Version"),
    lines=(
        StepLine(
            word="completed step: ",
            values=(
                value(Column.STEP, rf"completed step: {COUNT}"),
                value(Column.SECONDS, rf"seconds:{VALUE}"),
                value(Column.TFLOPS_PER_DEVICE, rf"TFLOP/s/device:{VALUE}"),
                value(Column.TOKENS_PER_S_PER_DEVICE, rf"Tokens/s/device:{VALUE}"),
            ),
        ),
    ),
    settings={
        "devices_total": pattern(rf"`?{COUNT}`? total devices|Num_devices: {COUNT}"),
        "per_device_batch_size": pattern(rf"per_device_batch_size[=:] ?{NUMBER}"),
        "seq_length": pattern(rf"max_target_length[=:] ?{COUNT}"),
        "model_name": pattern(r"(?:Config param )?model_name[=:] ?([\w.-]+)"),
        # of the products, in place of dtype
        "lowest_numerical_precision_linear": pattern(r"Config param quantization: (\w+)"),
        "dtype": pattern(r"Config param dtype: (\w+)"),
    },
)
