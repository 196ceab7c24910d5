"""Generating the samples of a policy step, on one page.

A replica of the engine has R samples to draw. Prompts are read once each (prefill, bound by
arithmetic); then every running sample grows by one token a step (decode, bound by memory): the step
reads the weights once and the keys and values of every running sample. Samples end at different
lengths, so the batch shrinks along the tail and the last steps run nearly empty: the longest sample
does not get shorter with more devices. Where memory for keys and values, or the engine, holds fewer
than R, samples queue and take the places of those that end.

Williams et al. 2009 (roofline, doi:10.1145/1498765.1498785); Pope et al. 2022 (arXiv 2211.05102),
section 2, for what decoding reads; Kwon et al. 2023 (vLLM, arXiv 2309.06180) for paged keys and
values and continuous batching. Bytes, seconds, tokens; every argument is a number or a column.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scantling.base.columns import Array, Column
from scantling.base.records import record

from .constants import Constants

POINTS = 160  # of the lengths at which the running batch is looked at
WIDTH = 2.0  # bytes of keys and values, an element


@record
class Engine:
    """One replica of the engine, and the device it runs on."""

    weight_bytes: Column  # of all parameters as the engine keeps them
    dense_bytes: Column  # of those that every token reads
    expert_bytes: Column  # of one routed expert in all layers
    experts: Column  # of a layer; 0: dense
    top_k: Column
    active_flops: Column  # of a token's forward without scores
    kv_bytes: Column  # keys and values of one token, all layers
    layers: Column
    moe_layers: Column
    vocab: Column
    devices: Column  # of the replica: tp, or ranks over which experts are spread
    inside: Column  # 1: the replica stays in one scale-up domain
    hbm_bytes_per_s: Column
    flops: Column  # peak of the engine's products
    memory_bytes: Column  # of a device that the engine may fill
    running: Column  # samples that the engine lets run at once


@record
class Drawn:
    """What one replica has to draw in a step."""

    samples: Column
    per_prompt: Column  # samples that share a prompt
    prompt: Column  # mean tokens
    response: Column  # mean tokens
    longest: Column  # tokens at which a response is cut
    replicas: Column
    spread: Column  # standard deviation of the logarithm of lengths


class Generated(NamedTuple):
    """Seconds of one step's generation, and how it went."""

    prefill_s: Column
    decode_s: Column
    tail_s: Column  # of the decoding, with fewer than a tenth of the samples running
    running: Column  # samples that run at once on a replica, at most
    fits: Column  # 1: the weights leave room for one sample and more

    @property
    def total_s(self) -> Column:
        """Prefill and decoding, one after the other."""
        return self.prefill_s + self.decode_s


def normal_tail(x: Array) -> Array:
    """Share of a normal distribution above x: 1 / (1 + exp(1.5976 x + 0.07056 x^3)), within 0.0002
    (Page 1977, Applied Statistics 26, 75)."""
    return np.asarray(1 / (1 + np.exp(np.clip(1.5976 * x + 0.07056 * x**3, -60, 60))))


def survival(tokens: Array, median: Array, spread: Array) -> Array:
    """Share of responses longer than `tokens`, log-normal."""
    return normal_tail(np.log(np.maximum(tokens, 1e-9) / median) / spread)


def median_of(mean: Array, longest: Array, spread: Array) -> Array:
    """Median of log-normal lengths that have this mean once cut at `longest`: by bisection, 40
    halvings of [mean / 50, 50 mean]. A mean near the cut has all of them cut."""
    low, high = np.log(mean / 50), np.log(mean * 50)
    at = np.linspace(0, 1, POINTS) ** 2
    grid = at * longest[..., None]
    for _ in range(40):
        middle = (low + high) / 2
        tail = survival(grid, np.exp(middle)[..., None], spread[..., None])
        short = np.trapezoid(tail, grid, axis=-1) < mean
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return np.asarray(np.exp((low + high) / 2))


def room(e: Engine) -> Column:
    """Bytes of a replica for keys and values: what the weights leave of its memory."""
    return np.maximum(e.memory_bytes * e.devices - e.weight_bytes, 0.0)


def running_limit(e: Engine, d: Drawn) -> Column:
    """Samples that run at once: those drawn, those the engine lets, those whose keys and values
    fit at their mean length."""
    each = e.kv_bytes * (d.prompt + d.response)
    return np.minimum(np.minimum(d.samples, e.running), np.maximum(room(e) / each, 1.0))


def experts_read(e: Engine, batch: Array) -> Array:
    """Experts of a layer that a batch visits: E (1 - (1 - k / E)^b)."""
    count = np.maximum(e.experts, 1.0)
    return np.asarray(count * (1 - (1 - np.minimum(e.top_k / count, 1.0)) ** batch))


def reduce_s(e: Engine, k: Constants) -> Column:
    """Latency of a step's exchanges over the ranks of a replica: two a layer, and the hops of more
    ranks."""
    one = np.where(e.inside > 0, k.decode_reduce_s, k.decode_reduce_out_s)
    return 2 * e.layers * one * np.log2(np.maximum(e.devices, 1.0))


def decode_step_s(e: Engine, batch: Array, context: Array, k: Constants) -> Array:
    """One token more of each of `batch` running samples with `context` tokens behind them. [s]

    max((weights + keys, values and logits) / HBM, FLOP / peak) + exchanges + launches of experts +
    the engine's own.
    """
    read = e.dense_bytes + e.expert_bytes * experts_read(e, batch) * (e.experts > 0)
    past = batch * context * e.kv_bytes + 12.0 * batch * e.vocab
    memory = (read / k.decode_hbm + past / k.decode_kv) / (e.devices * e.hbm_bytes_per_s)
    products = batch * e.active_flops / (e.devices * e.flops * k.decode_flops)
    host = k.engine_step_s + k.engine_row_s * batch
    routed = k.experts_step_s * e.moe_layers
    return np.asarray(np.maximum(memory, products) + reduce_s(e, k) + routed + host)


def prefill_s(e: Engine, d: Drawn, k: Constants) -> Column:
    """Reading the prompts, each once for the samples that share it. [s]"""
    prompts = np.maximum(d.samples / d.per_prompt, 1.0)
    return prompts * d.prompt * e.active_flops / (e.devices * e.flops * k.prefill_flops)


def decode_s(e: Engine, d: Drawn, k: Constants) -> tuple[Array, Array, Array]:
    """(decoding, its tail, samples at once). [s, s, count]

    Of B places and R samples, R - B wait: the queue empties after (R - B) M / B steps, M the mean
    length; then the running ones end along the lengths that they still have, once as many have
    waited as run. With no queue they end along the survival of lengths itself. A step runs as long
    as one sample of any replica does: 1 - (1 - S)^(all samples).
    """
    columns = (
        d.samples,
        d.response,
        d.longest,
        d.spread,
        d.prompt,
        d.replicas,
        running_limit(e, d),
    )
    wide: list[NDArray[np.float64]] = [
        np.atleast_1d(np.asarray(x, float)) for x in np.broadcast_arrays(*columns)
    ]
    samples, response, longest, spread, prompt, replicas, places = wide
    mean = np.minimum(response, 0.98 * longest)
    median = median_of(mean, longest, spread)
    at = np.linspace(0, 1, POINTS) ** 2 * longest[:, None]
    alive = survival(at, median[:, None], spread[:, None])
    steps = np.diff(at, axis=1)
    pieces = (alive[:, 1:] + alive[:, :-1]) / 2 * steps
    beyond = np.cumsum(pieces[:, ::-1], axis=1)[:, ::-1]
    left = np.concatenate([beyond, np.zeros((len(at), 1))], axis=1) / mean[:, None]
    queued = np.maximum(samples - places, 0.0)
    mixed = np.minimum(queued / places, 1.0)[:, None]
    share = (1 - mixed) * alive + mixed * left
    share = (share[:, 1:] + share[:, :-1]) / 2
    middle = (at[:, 1:] + at[:, :-1]) / 2
    batch = np.maximum(places[:, None] * share, 1.0)
    engine = columns_of(e, len(samples))
    context = prompt[:, None] + (1 - mixed) * middle + mixed * mean[:, None]
    any_left = 1 - (1 - np.minimum(share, 1.0)) ** (places * replicas)[:, None]
    each = decode_step_s(engine, batch, context, k) * steps * any_left
    full = decode_step_s(engine, places[:, None], (prompt + mean / 2)[:, None], k)[:, 0]
    drained = queued * mean / places * full
    tail = (each * (share < 0.1)).sum(axis=1)
    return drained + each.sum(axis=1), tail, places


def columns_of(e: Engine, rows: int) -> Engine:
    """The engine's numbers as columns [rows, 1], so that they broadcast along lengths."""
    wide = {
        name: np.broadcast_to(np.asarray(x, float), rows)[:, None] for name, x in vars(e).items()
    }
    return Engine(**wide)


def generate(e: Engine, d: Drawn, k: Constants) -> Generated:
    """The generation of one step on every replica at once."""
    decoded, tail, running = decode_s(e, d, k)
    return Generated(
        prefill_s=prefill_s(e, d, k),
        decode_s=decoded,
        tail_s=tail,
        running=running,
        fits=1.0 * (room(e) > e.kv_bytes * (d.prompt + d.longest)),
    )
