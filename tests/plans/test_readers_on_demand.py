"""What reads files that few designs name is imported when one names them."""

import subprocess
import sys

FIRST = """
import sys
import scantling as sc

data = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "devices": 64},
    "job": {"tokens": 1e12},
}
sc.assess(sc.Design.from_data(data))
print(*sys.modules)
"""


def test_a_design_that_names_no_model_file_loads_no_reader_of_them():
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "scantling.verdict.assess" in loaded
    assert "scantling.catalogue.models.hf" not in loaded
