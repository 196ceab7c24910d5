"""On the path of Megatron-LM's CPU run alone."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import no_cuda  # noqa: E402

no_cuda.introduce()
