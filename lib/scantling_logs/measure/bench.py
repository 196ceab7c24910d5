"""Timings of single kernels, copies and collectives with PyTorch: a list of short measurements,
each of which gives one point of a curve.

Imports torch when called; `measure` says so in one line where it is missing.
"""

import platform
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import environ, fsync, sysconf
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .points import (
    AttentionPoint,
    CollectivePoint,
    CopyPoint,
    GemmPoint,
    HostPoint,
    LaunchPoint,
    LayerPoint,
    Measurement,
    SavePoint,
)
from .sizes import Attention, Block, Product, sizes_of, small

if TYPE_CHECKING:
    import torch

Call = Callable[[], Any]  # what is timed; its result is left alone


@dataclass(frozen=True)
class Step:
    """One measurement: where its point belongs ("gemm.bf16"), what to show while it runs, and the
    call that returns the point."""

    section: str
    says: str
    run: Callable[[], Measurement]


@dataclass(frozen=True)
class Bench:
    """A device, how long to time one point [s], and the process group's size."""

    device: "torch.device"
    seconds: float
    ranks: int = 1
    ranks_per_node: int = 1

    @property
    def cuda(self) -> bool:
        return bool(self.device.type == "cuda")

    def time(self, call: Call) -> float:
        """Median seconds of one call, after warming up, over as many batches of calls as the time
        allows (three or more)."""
        self._seconds(call, 1)
        once = max(self._seconds(call, 1), 1e-7)
        if self.ranks > 1:
            once = self._agree(once)
        calls = max(1, min(1000, int(self.seconds / 5 / once)))
        batches = 5 if once * calls * 5 < 4 * self.seconds else 3
        return statistics.median(self._seconds(call, calls) for _ in range(batches))

    def _seconds(self, call: Call, calls: int) -> float:
        """Seconds of one of so many calls in a row."""
        self._sync()
        start = perf_counter()
        for _ in range(calls):
            call()
        self._sync()
        return (perf_counter() - start) / calls

    def _sync(self) -> None:
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
    place = torch.device(kind)
    if kind == "cuda":
        place = torch.device(kind, int(environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(place)
    if ranks > 1 and not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl" if kind == "cuda" else "gloo")
    return Bench(place, 0.1 if quick else 0.4, ranks, int(environ.get("LOCAL_WORLD_SIZE", "1")))


def finish(bench: Bench) -> None:
    """Leave the process group."""
    if bench.ranks > 1:
        import torch

        torch.distributed.destroy_process_group()


def describe(bench: Bench) -> tuple[dict[str, Any], dict[str, str]]:
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
    name = re.search(r"^model name\s*:\s*(.*\S)", about, re.M)
    return name[1] if name else "CPU"


OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def steps(
    bench: Bench, quick: bool, store: Path | None = None, of_model: Sequence[Product] = ()
) -> list[Step]:
    """All measurements, in the order in which they are most worth having if they are stopped
    half-way; a save to `store`, where there is one, and the products of a model, where they are
    given."""
    sizes = sizes_of(bench.cuda, quick)
    if of_model:
        sizes = replace(sizes, layers=tuple(of_model) if bench.cuda else small(of_model))
    measurements = [
        Step(
            f"gemm.{precision}",
            f"GEMM {precision} {size.m} × {size.n} × {size.k}",
            partial(_gemm, bench, precision, size),
        )
        for precision in sizes.precisions
        for size in sizes.products
    ]
    measurements += [
        Step(
            "layer",
            f"a layer of width {size.hidden}, {size.batch} × {size.seq_len} tokens, both ways",
            partial(_layer, bench, size),
        )
        for size in sizes.blocks
    ]
    measurements += [
        Step("memory", f"{op} of {2**log2 / 1e6:,.0f} MB", partial(_copy, bench, op, 2**log2))
        for op in ("copy", "triad")
        for log2 in sizes.copies
    ]
    measurements += [
        Step(
            "attention",
            f"attention {size.batch} × {size.seq_len} tokens, {size.heads} heads of "
            f"{size.head_dim}, {backend}",
            partial(_attend, bench, size, backend),
        )
        for size in sizes.attention
        for backend in sizes.backends
    ]
    measurements.append(Step("launch", "launching a small kernel", partial(_launch, bench)))
    measurements += [
        Step("host", f"{2**log2 / 1e6:,.0f} MB {way}", partial(_host_copy, bench, way, 2**log2))
        for way in ("to the device", "to the host")
        for log2 in sizes.host
    ]
    if store is not None:
        measurements += [
            Step(
                "save",
                f"{2**log2 / 1e6:,.0f} MB to the store",
                partial(_save, bench, store, 2**log2),
            )
            for log2 in sizes.saves
        ]
    measurements += [
        Step(
            "collectives",
            f"{op} of {2**log2 / 1e6:,.3g} MB over {bench.ranks}",
            partial(_collective, bench, op, 2**log2),
        )
        for op in (OPS if bench.ranks > 1 else ())
        for log2 in sizes.collectives
    ]
    return measurements


def _gemm(bench: Bench, precision: str, size: Product) -> GemmPoint:
    import torch

    on = partial(torch.randn, device=bench.device)
    call: Call
    if precision == "fp8":
        a, b = (on(rows, size.k).to(torch.float8_e4m3fn) for rows in (size.m, size.n))
        one = torch.ones((), device=bench.device)
        call = partial(
            torch._scaled_mm, a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16
        )
    else:
        kinds = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
        a = on(size.m, size.k, dtype=kinds[precision])
        b = on(size.k, size.n, dtype=kinds[precision])
        call = partial(torch.mm, a, b, out=a.new_empty(size.m, size.n))
    return GemmPoint(m=size.m, n=size.n, k=size.k, seconds=bench.time(call))


def _copy(bench: Bench, op: str, size: int) -> CopyPoint:
    import torch

    count = size // 4
    a = torch.zeros(count, device=bench.device)
    b = torch.empty_like(a)
    call: Call
    if op == "copy":
        call = partial(b.copy_, a)
        arrays = 2
    else:
        call = partial(torch.add, a, torch.ones_like(a), alpha=2.0, out=b)
        arrays = 3
    return CopyPoint(op=op, bytes=arrays * count * 4, seconds=bench.time(call))


def _attend(bench: Bench, size: Attention, backend: str) -> AttentionPoint:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    kernels = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION"}
    kernel = SDPBackend.__members__.get(kernels[backend])
    bf16 = not bench.cuda or torch.cuda.get_device_capability(bench.device)[0] >= 8
    q, k, v = torch.randn(
        3,
        size.batch,
        size.heads,
        size.seq_len,
        size.head_dim,
        device=bench.device,
        dtype=torch.bfloat16 if bf16 else torch.float16,
    )

    def call() -> None:
        with sdpa_kernel(kernel), torch.no_grad():
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return AttentionPoint(
        batch=size.batch,
        seq_len=size.seq_len,
        heads=size.heads,
        head_dim=size.head_dim,
        backend=backend,
        seconds=bench.time(call),
    )


def _layer(bench: Bench, size: Block) -> LayerPoint:
    """Forward and backward of a transformer layer as PyTorch's own module runs it, kernel by
    kernel: pre-norm, GELU, four times as wide inside, causal attention."""
    import torch

    kind = torch.bfloat16 if bench.cuda else torch.float32
    layer = torch.nn.TransformerEncoderLayer(
        size.hidden,
        size.heads,
        4 * size.hidden,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=True,
        device=bench.device,
        dtype=kind,
    )
    x = torch.randn(
        size.batch, size.seq_len, size.hidden, device=bench.device, dtype=kind, requires_grad=True
    )
    mask = torch.nn.Transformer.generate_square_subsequent_mask(
        size.seq_len, device=bench.device, dtype=kind
    )

    def forward() -> torch.Tensor:
        out: torch.Tensor = layer(x, src_mask=mask, is_causal=True)
        return out

    def both() -> None:
        forward().sum().backward()

    return LayerPoint(
        batch=size.batch,
        seq_len=size.seq_len,
        hidden=size.hidden,
        heads=size.heads,
        forward_s=bench.time(forward),
        seconds=bench.time(both),
    )


def _save(bench: Bench, store: Path, size: int) -> SavePoint:
    """A save of so many bytes as torch.save writes them, flushed to the store."""
    import torch

    tensor = torch.ones(size // 4, device=bench.device)
    path = store / f".measure-{environ.get('RANK', '0')}.pt"

    def save() -> None:
        with path.open("wb") as file:
            torch.save(tensor, file)
            file.flush()
            fsync(file.fileno())

    try:
        return SavePoint(bytes=size, ranks=bench.ranks, seconds=bench.time(save))
    finally:
        path.unlink(missing_ok=True)


def _launch(bench: Bench) -> LaunchPoint:
    import torch

    call = partial(torch.zeros(8, device=bench.device).add_, 1.0)
    return LaunchPoint(what="one kernel on 8 numbers", seconds=bench.time(call))


def _host_copy(bench: Bench, way: str, size: int) -> HostPoint:
    import torch

    on_device = torch.empty(size, dtype=torch.uint8, device=bench.device)
    on_host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    if way == "to the device":
        call = partial(on_device.copy_, on_host, non_blocking=True)
    else:
        call = partial(on_host.copy_, on_device, non_blocking=True)
    return HostPoint(way=way, bytes=size, seconds=bench.time(call))


def _collective(bench: Bench, op: str, size: int) -> CollectivePoint:
    """bytes: the whole tensor of an all-reduce, all-gather or reduce-scatter; what one rank sends
    in an all-to-all."""
    import torch
    from torch import distributed

    kind = torch.bfloat16 if bench.cuda else torch.float32
    count = size // kind.itemsize // bench.ranks * bench.ranks
    whole = torch.zeros(count, device=bench.device, dtype=kind)
    part = whole.new_zeros(count // bench.ranks)
    call: Call
    if op == "all_reduce":
        call = partial(distributed.all_reduce, whole)
    elif op == "all_to_all":
        call = partial(distributed.all_to_all_single, torch.empty_like(whole), whole)
    elif op == "all_gather":  # renamed in PyTorch 2.13
        gather = getattr(distributed, "all_gather_single", None)
        call = partial(gather or distributed.all_gather_into_tensor, whole, part)
    else:
        scatter = getattr(distributed, "reduce_scatter_single", None)
        call = partial(scatter or distributed.reduce_scatter_tensor, part, whole)
    return CollectivePoint(
        op=op,
        ranks=bench.ranks,
        ranks_per_node=bench.ranks_per_node,
        bytes=count * kind.itemsize,
        seconds=bench.time(call),
    )
