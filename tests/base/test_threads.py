"""OpenBLAS reads OPENBLAS_NUM_THREADS when it is loaded (its user manual, environment variables):
one thread for this program, the caller's own word for a program that runs his code."""

import os
import subprocess
import sys

import pytest

NAME = "OPENBLAS_NUM_THREADS"
SAYS = (
    "import os; from scantling.cli.app import main; main(['--version']);"
    "from scantling.base.threads import as_given; "
    f"print(os.environ['{NAME}'], as_given(os.environ).get('{NAME}'))"
)


@pytest.mark.parametrize("given, own, handed_on", [(None, "1", "None"), ("4", "4", "4")])
def test_a_kernel_of_the_lab_has_the_threads_that_the_caller_says(given, own, handed_on):
    environment = {name: value for name, value in os.environ.items() if name != NAME}
    if given:
        environment[NAME] = given
    done = subprocess.run(
        [sys.executable, "-c", SAYS], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1].split() == [own, handed_on]
