"""Keys of maxtext.yml that MaxText's own runs carry beside the plan: typed rows.

Sources, at e591f30: `v6e` is benchmarks/maxtext_trillium_model_configs.py (48 of them), `gpu` the
files of src/maxtext/configs/gpu.
"""

from scantling.catalogue.words import Precision

from ..launch_plan import LaunchPlan
from ..recipe_settings import Setting, always
from ..xla_flags import dense_hungry, hungry, of, on_tpus

TILE = 2048  # tokens of a tile of attention, at most
SEGMENTS = 32  # documents of a packed sequence, at most
SMALLEST_TILE = 128  # lanes of the vector unit


def tile(tokens: int) -> int:
    """The largest tile, a power of two up to TILE, that divides a length; SMALLEST_TILE where none
    does, which MaxText takes as it takes its own."""
    size = TILE
    while size > SMALLEST_TILE and tokens % size:
        size //= 2
    return size


def query_tile(launch: LaunchPlan) -> int:
    """Tile of the queries of a rank: under context parallelism two chunks of the sequence."""
    cp = launch.plan.cp
    return tile(launch.phase.seq_len // (2 * cp) if cp > 1 else launch.phase.seq_len)


def key_tile(launch: LaunchPlan) -> int:
    """Tile of keys and values, which every rank has whole."""
    return tile(launch.phase.seq_len)


def split_mesh(launch: LaunchPlan) -> bool:
    """TPUs whose torus is shared by several axes of the mesh."""
    p = launch.plan
    return on_tpus(launch) and max(p.tp, p.cp, p.pp, p.ep) > 1


def packed_on_gpus(launch: LaunchPlan) -> bool:
    """Documents packed into sequences under cuDNN's attention, which takes them in 16 bit and not
    under gathered context parallelism."""
    return launch.gpu and launch.plan.cp == 1 and launch.phase.precision != Precision.FP32


def loose_on_gpus(launch: LaunchPlan) -> bool:
    """The other runs on GPUs."""
    return launch.gpu and not packed_on_gpus(launch)


QUERIES = (
    "tiles of attention as large as the raised limit of on-chip memory takes: MaxText's are 512"
)
KEYS = "the same of keys and values, for dense models"
OPTIONS: tuple[Setting, ...] = (
    of(
        always,
        "use_iota_embed",
        True,
        "tokens are looked up by a product with a one-hot matrix that is made on the way: its "
        "backward scatters nothing",
        "v6e: 43 of 48; gpu: 8 of 8",
    ),
    of(
        split_mesh,
        "allow_split_physical_axes",
        True,
        "an axis of the mesh may be a part of an axis of the torus: without it degrees that are no "
        "side of the slice end the start",
        "v6e and v5p: all with tensor or expert parallelism that is no side of the slice; "
        "jax.experimental.mesh_utils, create_device_mesh",
    ),
    of(
        packed_on_gpus,
        "max_segments_per_seq",
        SEGMENTS,
        "documents that Transformer Engine's attention takes in a sequence: more would corrupt it",
        "gpu: 8 of 8; configs/base.yml: set this to something like 32 for GPUs",
    ),
    of(
        loose_on_gpus,
        "packing",
        False,
        "Transformer Engine's attention takes packed documents in 16 bit alone, and under context "
        "parallelism in a ring alone",
        "layers/attention_op.py: cudnn_flash_attention",
    ),
    of(hungry, "sa_block_q", query_tile, QUERIES, "v6e: 25 of 48 (1,024 in 22)"),
    of(hungry, "sa_block_q_dkv", query_tile, QUERIES, "v6e: 43 of 48"),
    of(hungry, "sa_block_q_dq", query_tile, QUERIES, "v6e: 44 of 48"),
    of(dense_hungry, "sa_block_kv", key_tile, KEYS, "v6e: all of Llama 3.1 8B and 70B"),
    of(dense_hungry, "sa_block_kv_compute", key_tile, KEYS, "v6e: all of Llama 3.1 8B and 70B"),
    of(dense_hungry, "sa_block_kv_dkv", key_tile, KEYS, "v6e: all of Llama 3.1 8B and 70B"),
    of(dense_hungry, "sa_block_kv_dkv_compute", key_tile, KEYS, "v6e: all of Llama 3.1 8B and 70B"),
    of(dense_hungry, "sa_block_kv_dq", key_tile, KEYS, "v6e: all of Llama 3.1 8B and 70B"),
)
