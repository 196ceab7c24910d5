"""Levanter."""

from ..contents import Column
from ..line_format import (
    COUNT,
    HUMAN,
    VALUE,
    LineFormat,
    StepLine,
    pattern,
    steps_per_second,
    value,
)

LEVANTER = LineFormat(
    name="levanter",
    framework="Levanter",
    marks=(("levanter",), ("Progress on:train ",)),
    opens=(
        pattern(r'File "\S*levanter\S*", line \d+'),
        pattern(r"^.{0,80}- levanter\S* - "),
        pattern(r"Initialized jax\.distributed"),
    ),
    headers=("Initialized jax.distributed",),
    progress_bars=True,
    lines=(
        StepLine(
            word="Progress on:train ",
            values=(
                value(Column.STEP, rf"train {HUMAN}it/"),
                steps_per_second(rf"rate:{VALUE}it/s"),
                value(Column.SECONDS, rf"rate:{VALUE}s/it"),
            ),
        ),
    ),
    settings={
        "world_size": pattern(rf"Initialized jax\.distributed with {COUNT} devices"),
        "seq_length": pattern(rf"max_seq_len: {COUNT}"),
        "global_batch_size": pattern(rf"train_batch_size: {COUNT}"),
    },
)
