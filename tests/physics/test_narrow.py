"""The Python of a browser has 32-bit whole numbers by default: the numbers stay the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scantling
from scantling.advise.comparison import flat

ROOT = Path(__file__).parents[2]
DESIGNS = sorted((ROOT / "gallery" / "designs").glob("*.yaml"))


@pytest.mark.slow
def test_the_gallery_is_the_same_with_32_bit_whole_numbers():
    script = Path(__file__).with_name("narrow.py")
    argv = [sys.executable, "-W", "error", str(script), *map(str, DESIGNS)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    for path, line in zip(DESIGNS, done.stdout.splitlines(), strict=True):
        narrow = flat(json.loads(line))
        wide = flat(
            json.loads(
                json.dumps(scantling.assess(path).as_dict(advice=False), default=np.generic.item)
            )
        )
        assert wide.keys() == narrow.keys(), path.stem
        for key, value in wide.items():
            if key == "search_seconds":
                continue
            if isinstance(value, float):
                assert narrow[key] == pytest.approx(value, rel=1e-12), (path.stem, key)
            else:
                assert narrow[key] == value, (path.stem, key)
