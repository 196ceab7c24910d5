"""A model is counts of block kinds; each kind is one file.

`table.Shape` is a model, or a column of models: its layers, its hidden size and a table of blocks
(kind, count, the kind's own dimensions). A kind is a frozen record in a file of its own whose five
answers are pure functions of columns: `parameters`, `flops` (per token), `kernel_s` (with `gemms`,
the matrix products behind it), `saved_bytes` (kept for the backward pass) and `exchanges` (over tp,
cp and ep). Whoever reads a model folds the answers with the counts; nobody asks for a kind by name
but for what only that kind has.

A new kind is one file, its record in `KINDS`, and the word of `catalogue.models.pattern_words` that
counts it; a package of its own names its record as an entry point of the group `scantling.blocks`.
The room stands below the catalogue, whose models count their parameters here; what a device and a
stack do comes as records of columns (`kernels.Device`, `saving.Keeping`), which physics makes.
"""

from ..base.plugins import Table
from .answers import Exchange, Gemm, Saved, Time
from .attention import Attention
from .block import Block
from .compressed import Compressed
from .delta import GatedDelta, KimiDelta
from .embedding import Embedding
from .head import Head
from .indexed import IndexedMla
from .kernels import Device
from .lightning import Lightning
from .mamba1 import Mamba1
from .mamba2 import Mamba2
from .mla import Mla
from .mlp import Bare, DenseMlpOfMoe, Mlp, Still
from .mlstm import Mlstm
from .moe import Moe
from .mtp import Mtp
from .residual import Stream
from .rglru import RgLru
from .rwkv4 import Rwkv4
from .saved_tensors import Keeping
from .shared import SharedUse, SharedWeights
from .shortconv import ShortConv
from .window import Chunk, IndexedWindow, Window, WindowMla

__all__ = ["KINDS", "Block", "Device", "Exchange", "Gemm", "Keeping", "Saved", "Time"]

_ATTENTION: tuple[type[Block], ...] = (
    Attention,
    Mla,
    Window,
    WindowMla,
    Chunk,
    IndexedWindow,
    IndexedMla,
    Compressed,
)
_STATE: tuple[type[Block], ...] = (
    Mamba1,
    Mamba2,
    GatedDelta,
    KimiDelta,
    Lightning,
    Mlstm,
    RgLru,
    Rwkv4,
    ShortConv,
)
_OTHERS: tuple[type[Block], ...] = (
    SharedUse,
    SharedWeights,
    Stream,
    DenseMlpOfMoe,
    Mlp,
    Bare,
    Still,
    Moe,
    Mtp,
    Head,
    Embedding,
)
KINDS: Table[type[Block]] = Table(
    {kind.kind: kind for kind in _ATTENTION + _STATE + _OTHERS}, group="scantling.blocks"
)
