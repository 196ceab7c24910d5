"""What every PyTorch trainer of this kit shares: data by position, checkpoints, resume, metrics,
heartbeat, profiler.

Environment: RUN_DIR (where everything is written), DATA (flat uint32 file of token ids; random
tokens with MOCK_DATA=1 alone), INIT (folder of safetensors to start from), STEPS (stop there),
SAVE_STEPS, SEED, LR, SKIP (first-last: steps whose sequences are left out), TRACKER (wandb or
tensorboard), PROFILE_STEP, MEMORY_SNAPSHOT=1, COMPILE (0 or 1). A file `stop` in RUN_DIR ends the
run after a checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

Plan = dict[str, Any]  # the plan of plan.json


def start() -> tuple[int, int, torch.device]:
    """(rank, ranks, device) of this process."""
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    elif "OMP_NUM_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
    seed = int(os.environ.get("SEED", 0)) + dist.get_rank()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)  # noqa: E702
    return (
        dist.get_rank(),
        dist.get_world_size(),
        torch.device("cuda", torch.cuda.current_device()) if cuda else torch.device("cpu"),
    )


class Data:
    """Sequences by their number in the run: sequence i of the data is the same whatever the ranks,
    so the position is the step alone."""

    def __init__(self, vocab: int, seq_len: int, seed: int) -> None:
        path = os.environ.get("DATA")
        if not path and os.environ.get("MOCK_DATA") != "1":
            raise SystemExit("no DATA: set it, or MOCK_DATA=1 for made-up tokens")
        self.vocab, self.seq_len, self.seed = vocab, seq_len, seed
        self.file = np.memmap(path, dtype=np.uint32, mode="r") if path else None
        self.many = (len(self.file) - 1) // seq_len if self.file is not None else 0
        first, _, last = os.environ.get("SKIP", "").partition("-")
        # steps count from 1 in the log
        self.skip = (int(first) - 1, int(last or first)) if first else None

    def place(self, step: int) -> int:
        """The number of the step whose sequences this step reads: those that SKIP leaves out are
        passed over."""
        return step + self.skip[1] - self.skip[0] if self.skip and step >= self.skip[0] else step

    def sequence(self, i: int) -> torch.Tensor:
        """seq_len + 1 token ids. A file is read in an order shuffled anew every epoch."""
        if self.file is None:
            return torch.randint(
                0,
                self.vocab,
                (self.seq_len + 1,),
                generator=torch.Generator().manual_seed(self.seed * 1_000_003 + i),
            )
        epoch, at = divmod(i, self.many)
        stride = next(
            s for s in range(self.many * 5 // 8 + epoch + 1, 10**12) if math.gcd(s, self.many) == 1
        )
        begin = at * stride % self.many * self.seq_len
        return torch.from_numpy(self.file[begin : begin + self.seq_len + 1].astype(np.int64))

    def micro_batch(
        self, first: int, count: int, device: torch.device
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.stack([self.sequence(first + k) for k in range(count)]).to(device)
        return rows[:, :-1], rows[:, 1:]


class State:
    """Model and optimizer as torch.distributed.checkpoint wants them."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )


class Checkpoints:
    """step-N folders with the sharded state and one file of random state a rank; whole once `last`
    is there, which is written last."""

    def __init__(self, folder: str | Path, keep: int, last: str = ".metadata") -> None:
        self.folder, self.keep, self.last, self.pending = Path(folder), keep, last, None
        self.folder.mkdir(parents=True, exist_ok=True)
        # saves talk beside training: on the same group the two would cross
        self.group = dist.new_group(backend="gloo")
        self.removal = threading.Thread()

    def whole(self) -> list[Path]:
        found = (p for p in self.folder.glob("step-*") if (p / self.last).is_file())
        return sorted(found, key=step_of)

    def latest(self) -> Path | None:
        """The newest whole checkpoint, the same on every rank."""
        found = [str(w[-1]) if (w := self.whole()) else None] if dist.get_rank() == 0 else [None]
        dist.broadcast_object_list(found)
        return Path(found[0]) if found[0] else None

    def random_state(self, step: int) -> dict[str, Any]:
        return {
            "step": step,
            "torch": torch.get_rng_state(),
            "numpy": np.random.get_state(),
            "python": random.getstate(),
            "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
        }

    def restore_random(self, path: Path) -> None:
        file = path / f"rank-{dist.get_rank()}.pt"
        if not file.exists():  # more ranks than when it was saved: they keep their own seed
            return
        r = torch.load(file, weights_only=False)
        torch.set_rng_state(r["torch"])
        np.random.set_state(r["numpy"])
        random.setstate(r["python"])  # noqa: E702
        if r["cuda"] is not None and torch.cuda.is_available():
            torch.cuda.set_rng_state(r["cuda"])

    def save(
        self, step: int, state: State, wait: bool = False, more: dict[str, Any] | None = None
    ) -> None:
        self.finish()
        path = self.folder / f"step-{step:09d}"
        if dist.get_rank() == 0 and path.exists():
            shutil.rmtree(path)  # torn by a kill
        dist.barrier()
        path.mkdir(exist_ok=True)
        torch.save(self.random_state(step) | {"more": more}, path / f"rank-{dist.get_rank()}.pt")
        dist.barrier()
        if wait:
            dcp.save({"state": state}, checkpoint_id=path, process_group=self.group)
        else:
            self.pending = dcp.async_save(
                {"state": state}, checkpoint_id=path, process_group=self.group
            )
        self.thin()

    def thin(self) -> None:
        """Remove behind training, and many files at a time, what is older than the last `keep`:
        two files a rank, each a question to the metadata server."""
        if dist.get_rank() or self.removal.is_alive():
            return
        stay = self.whole()[-self.keep :]
        old = [p for p in self.folder.glob("step-*") if stay and step_of(p) < step_of(stay[0])]
        self.removal = threading.Thread(target=remove, args=(old, self.last), daemon=True)
        self.removal.start()

    def finish(self) -> None:
        if self.pending is not None:
            self.pending.result()
            self.pending = None
            dist.barrier()

    def end(self) -> None:
        """Before the process ends: what is being written is whole, what is being removed gone."""
        self.finish()
        if self.removal.is_alive():
            self.removal.join()


def step_of(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))


def remove(folders: Iterable[Path], last: str) -> None:
    """Folders with all that is in them, first the file by which they count as whole."""
    for folder in folders:
        (folder / last).unlink(missing_ok=True)
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(os.unlink, [p for p in folder.rglob("*") if not p.is_dir()]))
        shutil.rmtree(folder, ignore_errors=True)


def local(t: torch.Tensor) -> torch.Tensor:
    return t.to_local() if hasattr(t, "to_local") else t


def size(tensors: Iterable[torch.Tensor | None]) -> int:
    return int(sum(local(t).numel() * t.element_size() for t in tensors if t is not None))


def tracker(run: Path) -> Callable[[dict[str, Any]], object]:
    """What takes the rows of metrics.jsonl beside the file; a restart goes on under
    WANDB_RUN_ID."""
    kind = os.environ.get("TRACKER", "")
    if kind == "wandb":
        import wandb

        wandb.init(dir=run, resume="allow", project=os.environ.get("WANDB_PROJECT", "training"))
        return lambda row: wandb.log(row, step=row["step"])
    if kind == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(str(run / "tensorboard"))
        return lambda row: [
            writer.add_scalar(k, v, row["step"]) for k, v in row.items() if k != "step"
        ]
    if kind:
        raise ValueError(f"TRACKER={kind}: wandb or tensorboard")
    return lambda row: None


class Watch:
    """metrics.jsonl (rank 0), heartbeat-N (every rank: step, time, its own seconds and MFU),
    state-N.json (bytes that this rank keeps), profiler and memory snapshot on demand."""

    def __init__(self, run: str | Path, rank: int, plan: Plan) -> None:
        self.run, self.rank, self.plan, self.since = Path(run), rank, plan, time.perf_counter()
        self.run.mkdir(parents=True, exist_ok=True)
        self.log = open(self.run / "metrics.jsonl", "a") if rank == 0 else None  # noqa: SIM115
        self.at = int(os.environ.get("PROFILE_STEP", -1))
        self.profiler: Any = None
        self.track = tracker(self.run) if rank == 0 else None
        self.launched = float(os.environ.get("LAUNCHED", 0))  # by launch.sh, seconds since 1970
        if os.environ.get("MEMORY_SNAPSHOT") and torch.cuda.is_available():
            torch.cuda.memory._record_memory_history(max_entries=200_000)

    def before(self, step: int) -> None:
        if step == self.at:
            self.profiler = torch.profiler.profile(record_shapes=True, profile_memory=True)
            self.profiler.start()

    def mfu(self, seconds: float, ranks: int) -> float:
        """Share of the peak of a step of so many seconds."""
        tokens = self.plan["global_batch"] * self.plan["seq_len"] / seconds / ranks
        return float(tokens * self.plan["flops_per_token"] / self.plan["peak_flops"])

    def after(
        self, step: int, loss: float, norm: float, ranks: int, own: float | None = None
    ) -> None:
        """own: seconds of this rank before it waited for the others."""
        seconds = time.perf_counter() - self.since
        self.since = time.perf_counter()
        mfu = self.mfu(own or seconds, ranks)
        (self.run / f"heartbeat-{self.rank}").write_text(
            json.dumps(
                dict(step=step, time=round(time.time()), seconds=round(own or seconds, 4), mfu=mfu)
            )
            + "\n"
        )
        tokens = self.plan["global_batch"] * self.plan["seq_len"] / seconds / ranks
        if self.log and self.track:
            row = dict(
                step=step,
                loss=loss,
                grad_norm=norm,
                seconds=round(seconds, 4),
                tokens_per_s_per_device=round(tokens, 1),
                mfu=tokens * self.plan["flops_per_token"] / self.plan["peak_flops"],
            )
            if torch.cuda.is_available():
                row["memory_bytes"] = torch.cuda.max_memory_allocated()
            if self.launched:
                row["first_step_s"] = round(time.time() - self.launched, 1)
                self.launched = 0.0
            self.log.write(json.dumps(row) + "\n")
            self.log.flush()
            self.track(row)
        if self.profiler and step == self.at + 1:
            self.profiler.stop()
            self.profiler.export_chrome_trace(str(self.run / f"trace-{self.rank}.json"))
        if os.environ.get("MEMORY_SNAPSHOT") and torch.cuda.is_available() and step == 3:
            torch.cuda.memory._dump_snapshot(str(self.run / f"memory-{self.rank}.pickle"))

    def state(self, **found: int) -> None:
        """What this rank keeps beside what the plan counts. [bytes]"""
        (self.run / f"state-{self.rank}.json").write_text(
            json.dumps({"found": found, "planned": self.plan["state_bytes"]}, indent=1)
        )


def prepare(blocks: Any, plan: Plan, recompute: bool = True) -> None:
    """Blocks in place: those whose forward is repeated are wrapped, then every block is compiled
    where the step counts on it; COMPILE=0 or 1 says otherwise."""
    if recompute and plan["recompute"] == "full":
        for i, block in enumerate(list(blocks)[: plan["recompute_layers"]]):
            blocks[i] = checkpoint_wrapper(block)
    if os.environ.get("COMPILE", "0" if plan["eager"] else "1") == "1":
        for block in blocks:
            block.compile()


def rate(step: int, peak: float, steps: int | None = None) -> float:
    """Linear warm-up over a twentieth of the run, 2,000 steps at most, then a cosine to a tenth of
    the peak; no end, no cosine."""
    warm = min(1.0, (step + 1) / (max(1, min(2000, steps // 20)) if steps else 2000))
    return (
        peak * warm * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps))))
        if steps
        else peak * warm
    )


def seen(total: float, run: str | Path) -> tuple[float, bool]:
    """(mean of a number over the ranks, whether to stop) in one reduction."""
    stop = float((Path(run) / "stop").exists()) if dist.get_rank() == 0 else 0.0
    t = torch.tensor([total / dist.get_world_size(), stop], dtype=torch.float64)
    dist.all_reduce(t)
    return t[0].item(), t[1].item() > 0


def train(
    model: Any,
    optimizer: torch.optim.Optimizer,
    plan: Plan,
    rank: int,
    ranks: int,
    device: torch.device,
    *,
    once: Callable[[bool], AbstractContextManager[Any]] = lambda last: contextlib.nullcontext(),
    clip: Callable[[], Any] | None = None,
    cast: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext,
) -> None:
    """Steps until the tokens or STEPS are through. once(last): context of one micro-batch; clip:
    function that clips and returns the norm."""
    run = os.environ["RUN_DIR"]
    steps = int(os.environ.get("STEPS", 0)) or plan["steps"] or 10**9
    every = int(os.environ.get("SAVE_STEPS") or plan["save_steps"])
    data = Data(plan["vocab"], plan["seq_len"], int(os.environ.get("SEED", 0)))
    saves, watch, state = (
        Checkpoints(Path(run) / "checkpoints", plan["keep"]),
        Watch(run, rank, plan),
        State(model, optimizer),
    )
    scaler = torch.amp.GradScaler(device.type, enabled=plan["precision"] == "fp16")
    step, found = 0, saves.latest()
    if found:
        dcp.load({"state": state}, checkpoint_id=found)
        step = step_of(found)
        saves.restore_random(found)
        kept = torch.load(found / "rank-0.pt", weights_only=False)["more"]
        if kept:
            scaler.load_state_dict(kept)
    m, n = plan["micro_batch"], plan["grad_accum"]
    while step < steps:
        watch.before(step)
        begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = rate(
                step,
                float(os.environ.get("LR") or plan["lr"]),
                plan["steps"] or int(os.environ.get("STEPS", 0)),
            )
        total = 0.0
        for k in range(n):
            tokens, targets = data.micro_batch(
                data.place(step) * plan["global_batch"] + (rank * n + k) * m, m, device
            )
            with once(k == n - 1), cast():
                loss = model(tokens, targets) / n
            with once(k == n - 1):
                scaler.scale(loss).backward()
            total += loss.item()
        scaler.unscale_(optimizer)
        norm = clip() if clip else torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        norm = float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)
        gradients = size(p.grad for p in model.parameters())
        scaler.step(optimizer)
        scaler.update()
        if step == 0 or found:
            moments = size(
                v
                for s in optimizer.state.values()
                for v in s.values()
                if torch.is_tensor(v) and v.dim()
            )
            watch.state(
                parameters=size(model.parameters()), gradients=gradients, master=0, moments=moments
            )
            found = None
        optimizer.zero_grad(set_to_none=True)
        step += 1
        own = time.perf_counter() - begin
        loss, stop = seen(total, run)
        watch.after(step, loss, norm, ranks, own)
        if step % every == 0 or stop or step == steps:
            saves.save(
                step,
                state,
                wait=stop or step == steps or not plan["async_save"],
                more=scaler.state_dict() or None,
            )
        if stop:
            break
    saves.end()
    if step >= steps and rank == 0:
        (Path(run) / "done").write_text(f"{step}\n")
    dist.barrier()
    dist.destroy_process_group()
