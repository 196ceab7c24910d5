"""What training waits for its data: the reads of a step against the store that they come from."""

from typing import TypedDict

import numpy as np

from ..base.columns import Column
from ..design.resolved import Resolved
from .cases import Cases


def token_bytes(vocab: Column) -> Column:
    """Bytes of a token in memory-mapped shards: 2 for a vocabulary of up to 65,536, else 4."""
    return np.where(vocab <= 2**16, 2.0, 4.0)[()]


class Reads(TypedDict):
    """How fast the shards of a design can be read, fields of `Job`."""

    token_bytes: float
    read_bytes_per_s: float
    reads_per_s: float  # sequences


def reads(resolved: Resolved) -> Reads:
    """How fast the shards of a design can be read; no limit where none is known."""
    corpus = resolved.corpus
    rate, sequences = corpus.read_gbytes_per_s, corpus.reads_per_s
    return {
        "token_bytes": float(token_bytes(float(resolved.model.vocab))),
        "read_bytes_per_s": np.inf if rate is None else 1e9 * rate,
        "reads_per_s": np.inf if sequences is None else sequences,
    }


def stall_s(c: Cases, step_s: Column) -> Column:
    """What reading the next step's sequences takes longer than this step, beside which it runs. [s]

    A step reads batch x sequence x bytes of a token at the store's rate and one piece a sequence,
    max(bytes / rate, sequences / reads a second). Stops being true where loaders decode images or
    tokenise as they go.
    """
    job = c.job
    took = np.maximum(
        job.global_batch * job.seq_len * job.token_bytes / job.read_bytes_per_s,
        job.global_batch / job.reads_per_s,
    )
    return np.maximum(took - step_s, 0.0)
