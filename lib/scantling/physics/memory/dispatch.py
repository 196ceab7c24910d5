"""Memory of the exchange of tokens between experts, by dispatcher: what the libraries allocate
once, and the rows that pass through a layer."""

import numpy as np

from ...base.columns import Array, Column, some
from ...blocks.moe import Moe
from ..cases import Cases
from ..software import DEEPEP, HYBRIDEP, UCCL

NVL_PEERS = 8  # ranks that DeepEP takes to share NVLink
CHANNELS = 10  # of DeepEP: half of its 20 multiprocessors
RDMA_TOKENS = 128  # that a channel holds for each peer over the network
# tokens that a channel holds for each NVLink peer, by ranks of the group (get_dispatch_config)
NVL_TOKENS_BY_RANKS = ((8, 256), (64, 288), (96, 480), (128, 560), (np.inf, 720))
SOURCE_BYTES = 8  # of a token: where it came from
SLOTS = 128  # top-k entries and scales that a token in a buffer has room for
SLOT_BYTES = 8 + 4 + 4  # an index, its weight, a scale


def exchange_rows_bytes(c: Cases, rows: Column) -> Column:
    """Bytes of the rows of one layer on their way to experts and back: 8 h a row, sorted for
    sending and as received, 16 bit, there and back; 4 h where the dispatcher sorts into and out of
    its own buffer (HybridEP)."""
    own = (c.software.dedup_dispatch == HYBRIDEP) & (c.plan.ep > 1)
    return rows * c.shape.hidden * np.where(own, 4.0, 8.0)


def dispatcher_bytes(c: Cases) -> Column:
    """Bytes that a dispatcher keeps for the whole run: none where tokens go by the library of
    collectives (all-to-all, all-gather), or where a rank has all experts."""
    kind, width = c.software.dedup_dispatch, _width(c)
    deepep = (kind == DEEPEP) | (kind == UCCL)
    if not (some(deepep) or some(kind == HYBRIDEP)) or not c.shape.of(Moe):
        return 0.0
    inside = c.ep_group.inside
    tokens = c.tokens / c.plan.tp * c.plan.etp
    experts = sum(b.experts for b in c.shape.of(Moe)[:1]) / c.plan.ep
    size = np.select(
        [deepep, kind == HYBRIDEP],
        [
            np.broadcast_to(deepep_bytes(c.plan.ep, width), np.shape(kind + c.plan.ep + width)),
            hybridep_bytes(tokens, width, inside, c.plan.ep / inside, experts),
        ],
        0.0,
    )
    return size * (c.plan.ep > 1)


def _width(c: Cases) -> Column:
    """Values of a token as it is sent: the stream's, or the latent's of its experts."""
    return c.shape.hidden * (1 - sum(b.exchanges().narrow for b in c.shape.of(Moe)))


def deepep_bytes(ranks: Column, hidden: Column) -> Array:
    """Buffers of DeepEP's high-throughput kernels, whatever the tokens of a micro-batch: channels x
    peers x tokens that a channel holds x bytes of a token, over NVLink and, from more than 8 ranks
    on, twice (sent and received) over the network.

    Source: deepseek-ai/DeepEP csrc/legacy/config.hpp (get_nvl_buffer_size_hint,
    get_rdma_buffer_size_hint) and deep_ep/buffers/legacy.py (get_dispatch_config) at dd758ca.
    """
    token = 2.0 * hidden + SOURCE_BYTES + SLOTS * SLOT_BYTES
    limits, held = zip(*NVL_TOKENS_BY_RANKS)
    nvl_tokens = np.array(held)[np.searchsorted(limits, ranks)]
    nvl = CHANNELS * np.minimum(ranks, NVL_PEERS) * nvl_tokens * token
    far = (np.asarray(ranks) > NVL_PEERS) * ranks / NVL_PEERS
    return np.asarray(nvl + 2 * CHANNELS * far * RDMA_TOKENS * token)


def hybridep_bytes(
    tokens: Column, hidden: Column, inside: Column, domains: Column, experts: Column
) -> Array:
    """Buffers of HybridEP: room for all tokens of all ranks, as if all chose one rank's experts
    (T n d tokens of 2 h bytes, a probability for each expert of the domain and a scale for each 128
    values), which dispatch and combine share; and over the network what a rank sends and what it
    receives and reduces for the other d - 1 domains.

    tokens : T of a rank and micro-batch.  inside, domains : n ranks that share NVLink, d groups of
    them.  experts : of a rank.
    Source: deepseek-ai/DeepEP, branch hybrid-ep at 94a9f8f, csrc/hybrid_ep/buffer/intranode.cu and
    internode_doca.cu (allocate_dispatch_buffers, allocate_combine_buffers).
    """
    token = 2.0 * hidden
    around = 4.0 * experts * inside + 4.0 * hidden / SLOTS
    worst = tokens * inside * domains * (token + around)
    others = domains - 1
    network = tokens * (others > 0) * token + tokens * others * (3 * token + around)
    return np.asarray(worst + network)
