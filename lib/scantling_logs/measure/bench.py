"""Timings of single kernels, copies and collectives with PyTorch: a list of short measurements,
each of which gives one point of a curve.

Imports torch when called; `measure` says so in one line where it is missing.
"""

import platform
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from os import environ, sysconf
from pathlib import Path
from time import perf_counter

from scantling.base.words import table as read_yaml


@dataclass(frozen=True)
class Step:
    """One measurement: where its point belongs ("gemm.bf16"), what to show while it runs, and the
    call that returns the point."""

    section: str
    says: str
    run: Callable[[], dict]


@dataclass(frozen=True)
class Bench:
    """A device, how long to time one point [s], and the process group's size."""

    device: object
    seconds: float
    ranks: int = 1
    ranks_per_node: int = 1

    @property
    def cuda(self) -> bool:
        return self.device.type == "cuda"

    def time(self, call) -> float:
        """Median seconds of one call, after warming up, over as many batches of calls as the time
        allows (three or more)."""
        self._seconds(call, 1)
        once = max(self._seconds(call, 1), 1e-7)
        if self.ranks > 1:
            once = self._agree(once)
        many = max(1, min(1000, int(self.seconds / 5 / once)))
        batches = 5 if once * many * 5 < 4 * self.seconds else 3
        return statistics.median(self._seconds(call, many) for _ in range(batches))

    def _seconds(self, call, many: int) -> float:
        """Seconds of one of `many` calls in a row."""
        self._sync()
        start = perf_counter()
        for _ in range(many):
            call()
        self._sync()
        return (perf_counter() - start) / many

    def _sync(self):
        if self.cuda:
            import torch

            torch.cuda.synchronize(self.device)

    def _agree(self, value: float) -> float:
        """The largest value of any rank: every rank must repeat a collective equally often."""
        import torch

        tensor = torch.tensor([value], device=self.device, dtype=torch.float32)
        torch.distributed.all_reduce(tensor, op=torch.distributed.ReduceOp.MAX)
        return float(tensor.item())


def start(device: str | None, quick: bool) -> Bench:
    """The bench on this process's device; joins the process group where torchrun started
    several."""
    import torch

    ranks = int(environ.get("WORLD_SIZE", "1"))
    kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
    where = (
        torch.device(kind, int(environ.get("LOCAL_RANK", "0")))
        if kind == "cuda"
        else torch.device(kind)
    )
    if where.type == "cuda":
        torch.cuda.set_device(where)
    if ranks > 1 and not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl" if where.type == "cuda" else "gloo")
    return Bench(where, 0.1 if quick else 0.4, ranks, int(environ.get("LOCAL_WORLD_SIZE", "1")))


def finish(bench: Bench) -> None:
    """Leave the process group."""
    if bench.ranks > 1:
        import torch

        torch.distributed.destroy_process_group()


def describe(bench: Bench) -> tuple:
    """(device, software): what the driver calls the device, its memory, and the versions that were
    measured with."""
    import torch

    software = {"python": platform.python_version(), "torch": str(torch.__version__)}
    if bench.cuda:
        about = torch.cuda.get_device_properties(bench.device)
        name = about.name
        memory_bytes = about.total_memory
        more = {}
        software["cuda"] = str(torch.version.cuda or torch.version.hip)
        software["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    else:
        name = _processor()
        more = {"threads": torch.get_num_threads()}
        memory_bytes = sysconf("SC_PAGE_SIZE") * sysconf("SC_PHYS_PAGES")
    return {"name": name, "memory_bytes": memory_bytes, "count": bench.ranks, **more}, software


def _processor() -> str:
    try:
        about = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "CPU"
    found = re.search(r"^model name\s*:\s*(.*\S)", about, re.M)
    return found[1] if found else "CPU"


OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def steps(bench: Bench, quick: bool) -> list:
    """All measurements, in the order in which they are most worth having if they are stopped
    half-way."""
    known = read_yaml(__file__, "sizes")
    says = known["says"]
    known = known["cuda" if bench.cuda else "cpu"]
    size = known["full"] | (known["quick"] if quick else {})
    products = [[n, n, n] for n in size["cubes"]] + size["layers"]
    copies, host, messages = ([2**k for k in size[n]] for n in ("copies", "host", "collectives"))
    ops = OPS if bench.ranks > 1 else ()

    def each(section, call, *axes):
        for what, of in product(*axes):
            yield Step(
                f"{section}.{what}" if section == "gemm" else section,
                says[section].format(
                    what, of, mb=of / 1e6 if isinstance(of, int) else 0.0, ranks=bench.ranks
                ),
                partial(call, bench, what, of),
            )

    return [
        *each("gemm", _gemm, size["dtypes"], products),
        *each("memory", _copy, ("copy", "triad"), copies),
        *each("attention", _attend, size["attention"], size["backends"]),
        Step("launch", "launching a small kernel", partial(_launch, bench)),
        *each("host", _host_copy, ("to the device", "to the host"), host),
        *each("collectives", _collective, ops, messages),
    ]


def _gemm(bench, dtype, mnk):
    import torch

    m, n, k = mnk
    on = partial(torch.randn, device=bench.device)
    if dtype == "fp8":
        a, b = (on(rows, k).to(torch.float8_e4m3fn) for rows in (m, n))
        one = torch.ones((), device=bench.device)
        call = partial(
            torch._scaled_mm, a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16
        )
    else:
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[dtype]
        a = on(m, k, dtype=kind)
        b = on(k, n, dtype=kind)
        call = partial(torch.mm, a, b, out=a.new_empty(m, n))
    return {"m": m, "n": n, "k": k, "seconds": bench.time(call)}


def _copy(bench, op, size):
    import torch

    count = size // 4
    a = torch.zeros(count, device=bench.device)
    b = torch.empty_like(a)
    call, moved = (
        (partial(b.copy_, a), 2)
        if op == "copy"
        else (partial(torch.add, a, torch.ones_like(a), alpha=2.0, out=b), 3)
    )
    return {"op": op, "bytes": moved * count * 4, "seconds": bench.time(call)}


def _attend(bench, shape, backend):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    kind = getattr(SDPBackend, f"{backend.upper()}_ATTENTION", None)
    half = not bench.cuda or torch.cuda.get_device_capability(bench.device)[0] >= 8
    batch, seq_len, heads, head_dim = shape
    q, k, v = torch.randn(
        3,
        batch,
        heads,
        seq_len,
        head_dim,
        device=bench.device,
        dtype=torch.bfloat16 if half else torch.float16,
    )

    def call():
        with sdpa_kernel(kind), torch.no_grad():
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return {
        **dict(zip(("batch", "seq_len", "heads", "head_dim"), shape)),
        "backend": backend,
        "seconds": bench.time(call),
    }


def _launch(bench):
    import torch

    return {
        "what": "one kernel on 8 numbers",
        "seconds": bench.time(partial(torch.zeros(8, device=bench.device).add_, 1.0)),
    }


def _host_copy(bench, way, size):
    import torch

    there = torch.empty(size, dtype=torch.uint8, device=bench.device)
    here = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    into, source = (there, here) if way == "to the device" else (here, there)
    return {
        "way": way,
        "bytes": size,
        "seconds": bench.time(partial(into.copy_, source, non_blocking=True)),
    }


def _collective(bench, op, size):
    """bytes: the whole tensor of an all-reduce, all-gather or reduce-scatter; what one rank sends
    in an all-to-all."""
    import torch
    from torch import distributed

    kind = torch.bfloat16 if bench.cuda else torch.float32
    count = size // kind.itemsize // bench.ranks * bench.ranks
    whole = torch.zeros(count, device=bench.device, dtype=kind)
    part = whole.new_zeros(count // bench.ranks)
    # renamed in PyTorch 2.13
    gather = getattr(distributed, "all_gather_single", None) or distributed.all_gather_into_tensor
    call = {
        "all_reduce": partial(distributed.all_reduce, whole),
        "all_gather": partial(gather, whole, part),
        "reduce_scatter": partial(
            getattr(distributed, "reduce_scatter_single", None)
            or distributed.reduce_scatter_tensor,
            part,
            whole,
        ),
        "all_to_all": partial(distributed.all_to_all_single, torch.empty_like(whole), whole),
    }[op]
    return {
        "op": op,
        "ranks": bench.ranks,
        "ranks_per_node": bench.ranks_per_node,
        "bytes": count * kind.itemsize,
        "seconds": bench.time(call),
    }
