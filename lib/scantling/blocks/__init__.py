"""A model is counts of block kinds; each kind is one file.

`table.Shape` is a model, or a column of models: its layers, its hidden size and a table of blocks
(kind, count, the kind's own dimensions). A kind is a frozen record in a file of its own whose five
answers are pure functions of columns: `parameters`, `flops` (per token), `kernel_s` (with `gemms`,
the matrix products behind it), `saved_bytes` (kept for the backward pass) and `exchanges` (over tp,
cp and ep). Whoever reads a model folds the answers with the counts; nobody asks for a kind by name
but for what only that kind has.

A new kind is one file, its record in `KINDS`, and the dimensions by which `make_shape` counts it.
The room stands below the catalogue, whose models count their parameters here; what a device and a
stack do comes as records of columns (`kernels.Device`, `saving.Keeping`), which physics makes.
"""

from .attention import Attention
from .embedding import Embedding
from .head import Head
from .mla import Mla
from .mlp import Mlp
from .moe import Moe
from .mtp import Mtp
from .window import Window, WindowMla

KINDS = {
    kind.kind: kind for kind in (Attention, Mla, Window, WindowMla, Mlp, Moe, Mtp, Head, Embedding)
}
