"""Timings of single kernels, copies and collectives with PyTorch: a list of short measurements,
each of which gives one point of a curve.

Imports torch when called; `measure` says so in one line where it is missing.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


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
        sync = self._sync
        call()
        sync()
        start = time.perf_counter()
        call()
        sync()
        once = max(time.perf_counter() - start, 1e-7)
        if self.ranks > 1:
            once = self._agree(once)
        many = max(1, min(1000, int(self.seconds / 5 / once)))
        times = []
        for _ in range(5 if once * many * 5 < 4 * self.seconds else 3):
            sync()
            start = time.perf_counter()
            for _ in range(many):
                call()
            sync()
            times.append((time.perf_counter() - start) / many)
        return statistics.median(times)

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

    ranks, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
    where = torch.device(kind, local) if kind == "cuda" else torch.device(kind)
    if where.type == "cuda":
        torch.cuda.set_device(where)
    if ranks > 1 and not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl" if where.type == "cuda" else "gloo")
    return Bench(where, 0.1 if quick else 0.4, ranks, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def finish(bench: Bench) -> None:
    """Leave the process group."""
    if bench.ranks > 1:
        import torch

        torch.distributed.destroy_process_group()


def describe(bench: Bench) -> tuple[dict, dict]:
    """(device, software): what the driver calls the device, its memory, and the versions that were
    measured with."""
    import torch

    if bench.cuda:
        about = torch.cuda.get_device_properties(bench.device)
        device = {"name": about.name, "memory_bytes": int(about.total_memory), "count": bench.ranks}
    else:
        device = {
            "name": _processor(),
            "memory_bytes": int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
            "count": bench.ranks,
            "threads": torch.get_num_threads(),
        }
    software = {"python": platform.python_version(), "torch": str(torch.__version__)}
    if bench.cuda:
        software |= {
            "cuda": str(torch.version.cuda or torch.version.hip),
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        }
    return device, software


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(
                (line.split(":", 1)[1].strip() for line in file if line.startswith("model name")),
                "CPU",
            )
    except OSError:
        return "CPU"


def steps(bench: Bench, quick: bool) -> list[Step]:
    """All measurements, in the order in which they are most worth having if they are stopped
    half-way."""
    out = [
        *_gemms(bench, quick),
        *_copies(bench, quick),
        *_attention(bench, quick),
        *_launch(bench),
        *_host(bench, quick),
    ]
    return out + (_collectives(bench, quick) if bench.ranks > 1 else [])


def _gemms(bench, quick):
    if bench.cuda:
        cubes = (
            (512, 1024, 2048, 4096, 8192)
            if quick
            else (256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
        )
        layers = (
            [(8192, 8192, 1024), (8192, 3584, 8192)]
            if quick
            else [
                (t, n, k)
                for t in (2048, 8192)
                for n, k in ((1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584), (32064, 8192))
            ]
        )
        dtypes = ("bf16", "fp16", "fp8")
    else:
        cubes, layers, dtypes = (
            (64, 128, 256, 512) if quick else (64, 96, 128, 192, 256, 384, 512, 768, 1024),
            [(512, 256, 128)],
            ("bf16", "fp32"),
        )
    sizes = [(n, n, n) for n in cubes] + layers
    return [
        Step(
            f"gemm.{d}",
            f"GEMM {d} {m} × {n} × {k}",
            lambda m=m, n=n, k=k, d=d: _gemm(bench, m, n, k, d),
        )
        for d in dtypes
        for m, n, k in sizes
    ]


def _gemm(bench, m, n, k, dtype):
    import torch

    if dtype == "fp8":
        a = torch.randn(m, k, device=bench.device).to(torch.float8_e4m3fn)
        b = torch.randn(n, k, device=bench.device).to(torch.float8_e4m3fn).t()
        one = torch.ones((), device=bench.device)
        call = lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)  # noqa: E731
    else:
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[dtype]
        a, b = (
            torch.randn(m, k, device=bench.device, dtype=kind),
            torch.randn(k, n, device=bench.device, dtype=kind),
        )
        into = torch.empty(m, n, device=bench.device, dtype=kind)
        call = lambda: torch.mm(a, b, out=into)  # noqa: E731
    return {"m": m, "n": n, "k": k, "seconds": bench.time(call)}


def _copies(bench, quick):
    sizes = (
        ([2**26, 2**29] if quick else [2**22, 2**24, 2**26, 2**28, 2**30, 2**32])
        if bench.cuda
        else ([2**22, 2**26] if quick else [2**20, 2**22, 2**24, 2**26, 2**27])
    )
    return [
        Step("memory", f"{op} of {n / 1e6:,.0f} MB", lambda n=n, op=op: _copy(bench, n, op))
        for op in ("copy", "triad")
        for n in sizes
    ]


def _copy(bench, size, op):
    import torch

    a = torch.zeros(size // 4, device=bench.device)
    b, c = torch.empty_like(a), torch.ones_like(a)
    call = (lambda: b.copy_(a)) if op == "copy" else (lambda: torch.add(a, c, alpha=2.0, out=b))
    return {
        "op": op,
        "bytes": (2 if op == "copy" else 3) * (size // 4) * 4,
        "seconds": bench.time(call),
    }


def _attention(bench, quick):
    if bench.cuda:
        sizes = [
            (max(1, 8192 // s), s, 32, 128)
            for s in ((2048, 8192) if quick else (1024, 2048, 4096, 8192, 16384))
        ] + ([] if quick else [(4, 2048, 8, 128), (4, 2048, 64, 64)])
        backends = ("flash", "cudnn")
    else:
        sizes, backends = (
            [(1, s, 2, 64) for s in ((256, 1024) if quick else (256, 512, 1024, 2048))],
            ("flash",),
        )
    return [
        Step(
            "attention",
            f"attention {b} × {s} tokens, {h} heads of {d}, {kind}",
            lambda b=b, s=s, h=h, d=d, kind=kind: _attend(bench, b, s, h, d, kind),
        )
        for b, s, h, d in sizes
        for kind in backends
    ]


def _attend(bench, batch, seq_len, heads, head_dim, backend):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    kind = {
        "flash": SDPBackend.FLASH_ATTENTION,
        "cudnn": getattr(SDPBackend, "CUDNN_ATTENTION", None),
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
    }[backend]
    dtype = (
        torch.bfloat16
        if not bench.cuda or torch.cuda.get_device_capability(bench.device)[0] >= 8
        else torch.float16
    )
    q, k, v = (
        torch.randn(batch, heads, seq_len, head_dim, device=bench.device, dtype=dtype)
        for _ in range(3)
    )

    def call():
        with sdpa_kernel(kind), torch.no_grad():
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return {
        "batch": batch,
        "seq_len": seq_len,
        "heads": heads,
        "head_dim": head_dim,
        "backend": backend,
        "seconds": bench.time(call),
    }


def _launch(bench):
    def run():
        import torch

        x = torch.zeros(8, device=bench.device)
        return {"what": "one kernel on 8 numbers", "seconds": bench.time(lambda: x.add_(1.0))}

    return [Step("launch", "launching a small kernel", run)]


def _host(bench, quick):
    if not bench.cuda:
        return []
    return [
        Step("host", f"{n / 1e6:,.0f} MB {way}", lambda n=n, way=way: _host_copy(bench, n, way))
        for way in ("to the device", "to the host")
        for n in ([2**28] if quick else [2**20, 2**24, 2**28, 2**30])
    ]


def _host_copy(bench, size, way):
    import torch

    there, here = (
        torch.empty(size, dtype=torch.uint8, device=bench.device),
        torch.empty(size, dtype=torch.uint8, pin_memory=True),
    )
    call = (
        (lambda: there.copy_(here, non_blocking=True))
        if way == "to the device"
        else (lambda: here.copy_(there, non_blocking=True))
    )
    return {"way": way, "bytes": size, "seconds": bench.time(call)}


def _collectives(bench, quick):
    if bench.cuda:
        sizes = (
            [2**15, 2**20, 2**25, 2**28]
            if quick
            else [2**15, 2**17, 2**20, 2**22, 2**24, 2**26, 2**28, 2**30]
        )
    else:
        sizes = [2**15, 2**20, 2**25] if quick else [2**15, 2**18, 2**20, 2**22, 2**25]
    ops = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
    return [
        Step(
            "collectives",
            f"{op.replace('_', '-')} of {n / 1e6:,.3g} MB over {bench.ranks}",
            lambda op=op, n=n: _collective(bench, op, n),
        )
        for op in ops
        for n in sizes
    ]


def _collective(bench, op, size):
    """bytes: the whole tensor of an all-reduce, all-gather or reduce-scatter; what one rank sends
    in an all-to-all."""
    import torch
    from torch import distributed

    kind = torch.bfloat16 if bench.cuda else torch.float32
    count = size // kind.itemsize // bench.ranks * bench.ranks
    whole, part = (
        torch.zeros(count, device=bench.device, dtype=kind),
        torch.zeros(count // bench.ranks, device=bench.device, dtype=kind),
    )
    other = torch.empty_like(whole) if op == "all_to_all" else None
    gather = (
        getattr(distributed, "all_gather_single", None) or distributed.all_gather_into_tensor
    )  # renamed in PyTorch 2.13
    scatter = (
        getattr(distributed, "reduce_scatter_single", None) or distributed.reduce_scatter_tensor
    )
    call = {
        "all_reduce": lambda: distributed.all_reduce(whole),
        "all_gather": lambda: gather(whole, part),
        "reduce_scatter": lambda: scatter(part, whole),
        "all_to_all": lambda: distributed.all_to_all_single(other, whole),
    }[op]
    return {
        "op": op,
        "ranks": bench.ranks,
        "ranks_per_node": bench.ranks_per_node,
        "bytes": count * kind.itemsize,
        "seconds": bench.time(call),
    }
