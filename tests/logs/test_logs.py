"""Logs of public runs say what a careful reader takes from them; dirty ones no less."""

import gzip
import json
import random
import re
import time
import tracemalloc
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import scantling as sc
from dirt import REFUSED, VARIANTS, tried
from scantling.cli import main
from scantling_logs.formats import FORMATS
from scantling_logs.line_format import BAR, LineFormat
from scantling_logs.text import CHUNK, HEAD, UNPACKED, blocks

DATA = Path(__file__).parent / "data"
NOISY = {"torn lines", "times of nan", "lines missing"}
CHEAP = sorted({*VARIANTS} - NOISY)  # a log of two lines cannot lose one
MEGATRON = (
    " [2025-12-22 15:18:{second:02d}] iteration {step:8d}/      50 | "
    "consumed samples: {samples:12d} | "
    "elapsed time per iteration (ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): 400.0 | "
    "learning rate: 3.000000E-05 | global batch size:   512 | lm loss: 8.114214E+00 | "
    "loss scale: 1.0 | grad norm: 0.042 | number of skipped iterations:   0 |"
)


def megatron(steps, ms=9000.0, prefix="", times=None):
    times = times or {}
    return "\n".join(
        prefix + MEGATRON.format(second=i % 60, step=i, samples=512 * i, ms=times.get(i, ms))
        for i in steps
    )


def log(tmp_path, text, name="job.out"):
    path = tmp_path / name
    path.write_text(text)
    return sc.learn(path)[0]


def test_a_torchtitan_log_of_two_lines():
    """Steps 1 and 10 alone are logged: 18.465 s over 9 steps; the rate is that of one device."""
    got = sc.learn(DATA / "torchtitan_qwen3_14b.log")[0]
    assert got["format"] == "torchtitan"
    assert got["step_s"] == pytest.approx(18.465 / 9, rel=0.001)
    assert got["tokens_per_s_per_device"] == 9982
    assert got["peak_memory_gb"] == pytest.approx(168.57)
    assert (got["devices"], got["dp"], got["tp"], got["pp"]) == (8, 8, 1, 1)
    assert (got["seq_len"], got["micro_batch"], got["global_batch"]) == (128, 160, 1280)
    assert got["accelerator"] == "B200" and not got["oom"]


TITAN = (
    "[rank0]:[titan] 2026-05-22 18:20:{second:02d},599 - root - INFO - step: {step:2d}  loss: 1.0"
    "  grad_norm: 2.0  memory: 173.96GiB(97.54%)  tps: {tps:,}  tflops: 318.63  mfu: 14.16%\n"
)
BUILT = "[rank0]:[titan] 2026-05-22 18:19:00,100 - root - INFO - Building {}\n"


@pytest.mark.parametrize(
    ("mesh", "devices"),
    [
        ("0-D device mesh with [], []", 1),
        ("2-D device mesh with ['dp_shard', 'tp'], [16, 8]", 128),
        ("device mesh with parallelism: pp=2, dp_replicate=1, dp_shard=8, cp=1, tp=4, ep=1", 64),
    ],
)
def test_torchtitan_says_its_mesh(tmp_path, mesh, devices):
    """A difference of stamps leaves the first step out by itself, a printed rate does not."""
    rates = [520, 3_782, 5_259, 5_679, 6_403]
    steps = [TITAN.format(second=4 * i, step=i, tps=tps) for i, tps in enumerate(rates, 1)]
    got = log(tmp_path, BUILT.format(mesh) + "".join(steps))
    assert got["devices"] == devices and got["step_s"] == 4.0
    assert got["tokens_per_s_per_device"] == (5_259 + 5_679) / 2


def test_deepspeed_quotes_the_last_process_of_a_node(tmp_path):
    """launch.py: its sigkill_handler prints the command of the last one that it started."""
    said = (
        "[2024-02-14 20:37:14,113] [ERROR] [launch.py:320:sigkill_handler] ['python', '-u', "
        "'train.py', '--local_rank=7', '--deepspeed_config', 'eyJ0'] exits with return code = 1\n"
    )
    got = log(tmp_path, "NeoXArgs.configure_distributed_args()\n" + said)
    assert (got["format"], got["devices"]) == ("gpt_neox", 8)


def test_event_files_and_json_lines():
    events = sc.learn(DATA / "events.out.tfevents.torchtitan.gz")[0]
    assert events["step_s"] == pytest.approx(0.0998, rel=0.03) and events["steps"] == 10
    lines = sc.learn(DATA / "llama_factory_trainer_log.jsonl")[0]
    assert lines["step_s"] == pytest.approx(2.0, rel=0.03)
    assert lines["devices"] is None and "devices" in lines["missing"]


def test_a_table_of_collectives():
    got = sc.learn(DATA / "nccl_alltoall_two_nodes.log")[0]
    assert got["devices"] == 2 and got["steps"] is None
    assert max(row["busbw_gbytes_per_s"] for row in got["collectives"]) == pytest.approx(27.28)
    assert {row["test"] for row in got["collectives"]} >= {"alltoall"}


# rows of nccl-tests: with the root, and of older releases, which left it out of an all-reduce
ROOTED = (
    "     8388608       2097152     float     sum      -1    195.3   42.95   80.54      0    195.0"
)
ROOTLESS = "     8388608       2097152   float     sum   1228.0    6.83   12.81  5e-07   1223.6"


@pytest.mark.parametrize("before", ["", "0: ", "[1,0]<stdout>:", "2025-06-01T10:00:00.123456789Z "])
@pytest.mark.parametrize(("row", "busbw"), [(ROOTED, 80.54), (ROOTLESS, 12.81)])
def test_launchers_write_before_the_rows_of_a_table(before, row, busbw, tmp_path):
    """srun --label, mpirun --tag-output (as AWS's examples start it), kubectl logs --timestamps."""
    rows = [
        "# nThread 1 nGpus 1 minBytes 8388608 maxBytes 8388608 step: 2(factor) warmup iters: 5",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong",
        row + "   42.99   80.60      0",
        "# Avg bus bandwidth    : 71.9",
    ]
    (got,) = log(tmp_path, "".join(f"{before}{line}\n" for line in rows))["collectives"]
    assert (got["bytes"], got["busbw_gbytes_per_s"]) == (8_388_608, busbw)


# lines as the frameworks' own code writes them
WRITTEN = {
    "megatron_bridge": (
        "".join(
            f"Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU\n{megatron([i])}\n"
            for i in range(1, 9)
        ),
        {"step_s": 9.0, "tflops_per_device": 663.5, "global_batch": 512},
    ),
    "nanotron": (
        "\n".join(
            f"[default0]:07/01/2024 13:00:0{i} [INFO|DP=0|PP=0|TP=0|node]: iteration: {i} / 20 | "
            "consumed_tokens: 2.1M | elapsed_time_per_iteration_ms: 1.25K | tokens_per_sec: 1.68M |"
            " tokens_per_sec_per_gpu: 210K | global_batch_size: 1.02K | lm_loss: 10.4 | lr: 0.0003"
            " | model_tflops_per_gpu: 131 | hardware_tflops_per_gpu: 140 | grad_norm: 5"
            for i in range(1, 9)
        ),
        {"step_s": 1.25, "tokens_per_s_per_device": 210_000, "tflops_per_device": 131},
    ),
    "olmo_core": (
        "\n".join(
            f"2025-03-01 10:00:{i * 4:02d}.100\thost:0\tolmo_core.train.callbacks:1\t"
            f"INFO\t[step={i}/1000,epoch=1,eta=1:00:00]\n    train/CE loss=8.1\n"
            "    throughput/device/TPS=12,345\n    throughput/device/TPS (actual avg)=11,000"
            for i in range(1, 9)
        ),
        {"step_s": 4.0, "tokens_per_s_per_device": 12_345},
    ),
    "torchtune": (
        "\n".join(
            f"Step {i} | loss:1.23 lr:2e-05 tokens_per_second_per_gpu:2345.5 "
            "peak_memory_active:20.5 peak_memory_alloc:20.1 peak_memory_reserved:22.25"
            for i in range(1, 9)
        ),
        {"tokens_per_s_per_device": 2345.5, "peak_memory_gb": 22.25, "step_s": None},
    ),
    "composer": (
        "\n".join(
            f"[batch={i}/100]:\n\t Train time/batch: {i - 1}\n\t Train loss/train/total: 11.2\n"
            "\t Train throughput/batches_per_sec: 0.5000\n"
            "\t Train throughput/device/tokens_per_sec: 16384.0\n"
            "\t Train memory/peak_allocated_mem: 31.5"
            for i in range(1, 9)
        ),
        # its memory monitor divides bytes by 1.0e9
        {"step_s": 2.0, "tokens_per_s_per_device": 16_384, "peak_memory_gb": 31.5e9 / 2**30},
    ),
    "openrlhf": (
        "\n".join(
            f"2025-05-01 12:{i:02d}:00 INFO ppo_trainer.py:120 -- ✨ Global step {i}: "
            "{'policy_loss': 0.01, 'actor_lr': 5e-07, 'kl': 0.001}"
            for i in range(1, 9)
        ),
        {"step_s": 60.0},
    ),
    "nemo_rl": (
        "\n".join(
            f"========================= Step {i}/100 =========================\n"
            "⏱️  Timing:\n  • Total step time: 43.25s\n  • policy_training: 20.10s (46.5%)"
            for i in range(1, 9)
        ),
        {"step_s": 43.25},
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_lines_that_frameworks_write(name, tmp_path):
    text, figures = WRITTEN[name]
    got = log(tmp_path, text)
    assert got["format"] == name and got["steps"] == 8
    assert {k: got[k] for k in figures} == pytest.approx(figures)


def test_steady_steps_leave_out_compilation_and_pauses(tmp_path):
    times = {1: 90_000.0, 2: 40_000.0, 30: 120_000.0}
    got = log(tmp_path, megatron(range(1, 61), times=times))
    assert got["step_s"] == got["step_s_p90"] == 9.0
    assert any("pauses" in note for note in got["assumed"])


def test_evaluations_are_no_steps_of_a_progress_bar(tmp_path):
    """The Trainer's bar (tqdm writes whole seconds) over steps of 9 s, 60 s of evaluation after
    every fiftieth, with a bar of its own."""
    rows, elapsed = ["***** Running training *****"], 0
    for i in range(1, 201):
        elapsed += 9
        clock = f"{elapsed // 60:02d}:{elapsed % 60:02d}"
        rows.append(f"  8%|█         | {i}/2343 [{clock}<5:21:27,  9.00s/it]")
        if i % 50 == 0:
            rows += [f" 10%|█ | {k}/20 [00:{3 * k - 1:02d}<00:57,  3.00s/it]" for k in range(1, 21)]
            elapsed += 60
    assert log(tmp_path, "\r".join(rows))["step_s"] == 9.0


def test_a_job_that_went_back_was_restarted(tmp_path):
    text = megatron(range(1, 41)) + "\nTraceback\n" + megatron(range(21, 61))
    got = log(tmp_path, text)
    assert got["restarts"] == 1 and got["steps"] == 60 and got["step_s"] == 9.0


def test_a_dirty_log(tmp_path):
    """Ranks interleaved, colours, carriage returns, bytes of no text, half lines, a loss of nan."""
    good = megatron(range(1, 31), prefix="7: [default7]:")
    dirty = (
        good.replace("iteration", "\x1b[32miteration")
        .replace("8.114214E+00", "nan")
        .replace("\n", "\r\n7: \udcff\x00 lm loss\n iteration     17/  ", 5)
    )
    path = tmp_path / "job.out.gz"
    path.write_bytes(gzip.compress(dirty.encode("utf-8", "surrogateescape")))
    assert sc.learn(path)[0]["step_s"] == 9.0
    cut = tmp_path / "cut.out.gz"
    cut.write_bytes(path.read_bytes()[:-20])  # the job was killed while it wrote
    assert sc.learn(cut)[0]["step_s"] == 9.0


def test_out_of_memory_after_a_step(tmp_path):
    text = megatron([1, 2, 3]) + "\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate"
    got = log(tmp_path, text)
    assert got["oom"] and any("does not show a fit" in note for note in got["assumed"])


def test_an_unknown_file_says_how_to_give_the_figures(tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    assert main(["learn", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("scantling: ") and said.count("\n") == 1
    assert "megatron_lm" in said and "measured: {step_s:" in said


def test_a_folder_of_logs_as_json(tmp_path, capsys):
    for i in range(3):
        (tmp_path / f"job{i}.out").write_text(megatron(range(1, 20), ms=9000.0 + i))
    (tmp_path / "notes.txt").write_text("no log")
    assert main(["learn", str(tmp_path), "--json"]) == 0
    *got, last = json.loads(capsys.readouterr().out)
    assert [row["file"] for row in got] == ["job0.out", "job1.out", "job2.out"]
    assert last["summary"]["used"] == 0 and len(last["summary"]["left_out"]) == 3
    assert all(row["tp"] is None and row["global_batch"] == 512 for row in got)


@pytest.mark.slow
def test_a_long_log_is_a_stream(tmp_path):
    """10 MB in a small part of the 500 MB that 1 GB may take."""
    block = (megatron(range(1, 60)) + "\n" + "INFO a line that says nothing at all\n" * 300) * 8
    path = tmp_path / "long.out"
    path.write_text(block * (10_000_000 // len(block)))
    tracemalloc.start()
    got = sc.learn(path)[0]
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert got["step_s"] == 9.0 and held < 100e6


def test_a_log_that_unpacks_without_end_is_left(tmp_path):
    """gzip packs equal bytes 1,030 times (RFC 1951: at most 258 bytes in two bits); words ten."""
    path = tmp_path / "endless.log.gz"
    path.write_bytes(gzip.compress(b"\n" * 200_000_000, 9))
    assert sum(map(len, blocks(path))) < HEAD + CHUNK + UNPACKED * path.stat().st_size < 60e6


@pytest.mark.parametrize("name", CHEAP)
def test_dirt_leaves_the_figures(name, tmp_path):
    """Variants of a public torchtitan log (its two step lines) and of Megatron's own lines."""
    steady = megatron(range(1, 60), prefix="[default7]:").encode()
    for raw in ((DATA / "torchtitan_qwen3_14b.log").read_bytes(), steady):
        told = tried(raw, tmp_path, [name])[name]
        assert not told or name in REFUSED and "known format" in told


def test_deep_json_is_no_event(tmp_path):
    event = ':::MLLOG {"key": "seed", "value": 1, "time_ms": 1}\n'
    assert log(tmp_path, event + ':::MLLOG {"a":' + "[" * 200_000)["format"] == "mlperf_mllog"


def test_goodput_by_cause(tmp_path):
    """59 steps of 9 s in what Megatron stamps; a save of 40 s, an evaluation of 100 s, ten steps
    lost and five minutes until they are done again."""
    rows, clock = [], 1_000_000

    def step(i, seconds=9):
        nonlocal clock
        clock += seconds
        day, second = divmod(clock, 86_400)
        stamp = f"2025-12-{day:02d} {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        rows.append(f" [{stamp}] iteration {i:8d}/ 500 | elapsed time per iteration (ms): 9000.0 |")

    for i in range(1, 50):
        step(i, 49 if i == 21 else 109 if i == 31 else 9)
        if i == 20:
            rows.append("  successfully saved checkpoint from iteration      20 to x [ t 1/8 ]")
        if i == 30:
            rows.append(
                " validation loss at iteration 30 | lm loss value: 9.0 | lm loss PPL: 8.8 |"
            )
    for i in range(40, 60):
        step(i, 309 if i == 40 else 9)
    got = log(tmp_path, "\n".join(rows))
    wall = 9 * 68 + 40 + 100 + 300
    lost = {n: s * wall for n, s in got["badput"].items() if s}
    assert lost == pytest.approx(
        {"saves": 40, "evaluation": 100, "restart": 300, "lost work": 90}, rel=1e-3
    )
    assert got["goodput"] + sum(got["badput"].values()) == pytest.approx(1, abs=1e-3)
    assert got["goodput"] * wall == pytest.approx(9 * 58, rel=1e-3)


def test_no_clock_no_goodput(tmp_path):
    got = log(tmp_path, megatron(range(1, 60)).replace("[2025-12-22", "[day"))
    assert got["goodput"] is None and got["badput"] == {}


# lines of 50 steps of 9 s: nanotron's logger writes %m/%d/%Y, absl (MaxText) no year
CLOCKS = {
    "nanotron": (
        "{:%m/%d/%Y %H:%M:%S} [INFO|DP=0|PP=0|TP=0|node]: iteration: {} / 500 | consumed_tokens: "
        "2.1M | elapsed_time_per_iteration_ms: 9K | tokens_per_sec: 116K | tokens_per_sec_per_gpu: "
        "14.6K | global_batch_size: 512 | lm_loss: 10"
    ),
    "maxtext": (
        "I{:%m%d %H:%M:%S}.000000 1234 metric_logger.py:196] completed step: {}, seconds: 9.000, "
        "TFLOP/s/device: 400.123, Tokens/s/device: 5461.333, total_weights: 8388608, loss: 2.1"
    ),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_goodput_by_the_clock_that_a_framework_writes(name, tmp_path):
    """50 steps of 9 s, 20 minutes until it goes on, ten of them done again."""
    clock, rows = datetime(2025, 12, 31, 10, 0, 0), []
    for step in (*range(1, 51), *range(41, 61)):
        clock += timedelta(seconds=9 + 1200 * (len(rows) == 50))
        rows.append(CLOCKS[name].format(clock, step))
    got = log(tmp_path, "\n".join(rows))
    wall_s = 69 * 9 + 1200
    assert got["format"] == name and got["restarts"] == 1
    assert got["badput"]["restart"] == pytest.approx(1200 / wall_s, rel=1e-3)
    assert got["badput"]["lost work"] == pytest.approx(10 * 9 / wall_s, rel=1e-3)
    assert got["goodput"] == pytest.approx(59 * 9 / wall_s, rel=1e-3)


# how the columns of a step are called: plain tables, spreadsheets, exports of W&B's and
# TensorBoard's pages, Prometheus's stamps
TABLES = {
    "step,step_time_s,loss": "{i},2.000,2.1",
    "Step,Step time (ms),Tokens/s/GPU": "{i},2000.0,4096",
    "iteration,iter_time_ms": "{i},2000.0",
    "epoch,step,train_step_timing": "0,{i},2.0",
    '"Step","Relative Time (Process)","train/loss"': "{i},{s},2.1",
    "Wall time,Step,Value": "17172360{s:02d}.0,{i},2.1",
    "timestamp,step,loss": "2025-06-01T10:00:{s:02d}Z,{i},2.1",
}


@pytest.mark.parametrize("header", TABLES)
def test_a_table_says_its_unit_in_its_header(header, tmp_path):
    rows = (TABLES[header].format(i=i, s=2 * i) for i in range(1, 29))
    got = log(tmp_path, "\n".join([header, *rows]), "metrics.csv")
    assert got["step_s"] == 2.0 and got["steps"] == 28


def test_ranks_that_share_a_file_write_out_of_order(tmp_path):
    """Eight ranks, each with its line of a step, buffered by more than a step."""
    rows = [
        (8 * i + rank, TITAN.format(second=4 * i % 60, step=i, tps=5_000).replace("20:", f"{m}:"))
        for i in range(1, 101)
        for m in [f"{20 + 4 * i // 60:02d}"]
        for rank in range(8)
    ]
    draw = random.Random(5)
    mixed = sorted(rows, key=lambda row: row[0] + 12 * draw.random())
    assert log(tmp_path, "".join(text for _, text in mixed))["step_s"] == 4.0


def test_a_column_that_does_not_go_on_is_no_clock(tmp_path):
    """`time` may be the time of a step, in a unit that nobody says."""
    rows = (f"{i},{2000 + i % 2 * 9}" for i in range(1, 60))
    got = log(tmp_path, "\n".join(["step,time", *rows]), "metrics.csv")
    assert got["step_s"] is None and "step_s" in got["missing"]


PROSE = """# Logs of our runs
Traps: "elapsed time per iteration (ms)" is a mean; NeMo writes "[NeMo " and train_step_timing in s;
"completed step: N, seconds: S" is MaxText; busbw, algbw of nccl-tests; "[titan]" step: memory:
traceEvents in a Kineto file ("traceEvents", ProfilerStep#3), ":::MLLOG {" of MLPerf, "DLLL {json}".
CurrSamplesPerSec= of DeepSpeed, train_runtime, levanter, torchtitan, Config:, %| 3.1s/it
"""
TABLE = 'file,format,quirks\na.log,kineto,"""traceEvents"" with ProfilerStep#; [NeMo "\nb,nemo,x\n'
CODE = """# levanter, torchtitan, nanochat
print0(f"step {step:05d} | dt: {dt * 1000:.2f}ms | tok/sec: {tok_per_sec:,} | lrm: {lrm}")
print0(f"step:{step}/{steps} train_time:{ms:.0f}ms step_avg:{ms / step:.2f}ms")
log_string += ' elapsed time per iteration (ms): {:.1f} |'.format(elapsed)
"""


def test_words_about_logs_are_no_logs(tmp_path, capsys):
    """A folder of logs holds a readme, a table about them and code: one line each, not read."""
    others = {"README.md": PROSE, "truth.csv": TABLE, "train.txt": CODE, "empty.log": ""}
    for name, text in others.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "job.out").write_text(megatron(range(1, 20)))
    assert main(["learn", str(tmp_path), "--json"]) == 0
    told = capsys.readouterr()
    assert [row["file"] for row in json.loads(told.out)] == ["job.out"]
    lines = told.err.splitlines()
    assert len(lines) == len(others) and all(line.startswith("scantling: ") for line in lines)
    assert all(any(f"/{name} is no log" in line for line in lines) for name in others)


@pytest.mark.slow
def test_a_gzip_that_breaks_halfway_is_read_up_to_there(tmp_path):
    """A byte that is wrong: zlib says so with an error of its own (zlib.error)."""
    rows = "".join(f"{random.Random(i).random()}\n" for i in range(400_000))
    raw = bytearray(gzip.compress((megatron(range(1, 60)) + "\n" + rows).encode()))
    raw[len(raw) * 2 // 3 :] = bytes(len(raw) // 3 + 1)
    path = tmp_path / "broken.out.gz"
    path.write_bytes(raw)
    assert sc.learn(path)[0]["step_s"] == 9.0
    path.write_bytes(raw[:12] + bytes(500) + raw[600:])
    assert main(["learn", str(path)]) == 2


def stamped(text: str, since: int, seconds: int) -> str:
    """The Megatron lines of a text with a clock that goes on by `seconds` a line from `since`."""
    out = []
    for i, line in enumerate(text.split("\n")):
        at = since + i * seconds
        clock = f"{at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}"
        out.append(re.sub(r"\d\d:\d\d:\d\d(?=\])", clock, line))
    return "\n".join(out)


FIRST = stamped(megatron(range(1, 41)), 3_600, 9)
AGAIN = "using world size: 8, data-parallel size: 8, context-parallel size: 1"
TITAN_AGAIN = "".join(
    f"[rank{i}]:[titan] 2026-05-22 19:00:0{i},100 - root - INFO - Starting job: pretrain\n"
    for i in range(8)
)
TITAN_STEPS = [TITAN.format(second=4 * i % 60, step=i, tps=5_000) for i in range(1, 13)]
BEGUN_AGAIN = {
    # Megatron-LM writes its groups once a launch, torchtitan "Starting job:" on every rank
    "a header, from the next step on": (
        FIRST + "\n" + AGAIN + "\n" + stamped(megatron(range(41, 61)), 3_960 + 240, 9),
        1,
    ),
    "a header and steps done again": (
        FIRST + "\n" + AGAIN + "\n" + stamped(megatron(range(21, 61)), 3_960 + 1_500, 9),
        1,
    ),
    "a header of each rank and steps done again": (
        TITAN_AGAIN + "".join(TITAN_STEPS) + TITAN_AGAIN + "".join(TITAN_STEPS[4:]),
        1,
    ),
    "a launch that ended before its first step": (
        AGAIN + "\ntorch.OutOfMemoryError\n" + AGAIN + "\n" + FIRST,
        1,
    ),
    "half an hour in which nothing is written": (
        FIRST + "\n" + stamped(megatron(range(41, 61)), 3_960 + 1_800, 9),
        1,
    ),
    "two of them": (
        FIRST
        + "\n"
        + stamped(megatron(range(41, 61)), 3_960 + 1_800, 9)
        + "\n"
        + stamped(megatron(range(61, 81)), 3_960 + 1_980 + 2_500, 9),
        2,
    ),
    "half an hour of evaluation": (
        FIRST
        + "\n validation loss at iteration 40 | lm loss value: 2.1E+00 | lm loss PPL: 8.2E+00 |\n"
        + stamped(megatron(range(41, 61)), 3_960 + 1_800, 9),
        0,
    ),
    "half an hour of a checkpoint": (
        FIRST
        + "\nsaving checkpoint at iteration      40 to /x in torch_dist format\n"
        + stamped(megatron(range(41, 61)), 3_960 + 1_800, 9),
        0,
    ),
    "the clock set by an hour": (
        FIRST + "\n" + stamped(megatron(range(41, 61)), 3_960 + 3_600, 9),
        0,
    ),
    "a pause of five minutes": (FIRST + "\n" + stamped(megatron(range(41, 61)), 3_960 + 300, 9), 0),
}


@pytest.mark.parametrize("name", BEGUN_AGAIN)
def test_restarts_are_found_from_the_log_itself(name, tmp_path):
    text, restarts = BEGUN_AGAIN[name]
    assert log(tmp_path, text)["restarts"] == restarts


def launched(steps, seconds, **said) -> str:
    """A launch as Megatron-LM writes it: its groups, its arguments, its steps."""
    world = "using world size: {world_size}, data-parallel size: {data_parallel_size}\n"
    return world.format(**said) + dumped(**said) + megatron(steps, ms=1e3 * seconds) + "\n"


WHOLE = dict(world_size=64, data_parallel_size=8, tensor_model_parallel_size=8, micro_batch_size=2)
HALF = WHOLE | dict(world_size=32, data_parallel_size=4)
SMALL = WHOLE | dict(micro_batch_size=1)
OUT = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB.\n"


def runs(tmp_path, text) -> list[tuple]:
    (tmp_path / "job.out").write_text(text)
    names = ("devices", "micro_batch", "step_s", "steps", "restarts")
    return [tuple(run[name] for name in names) for run in sc.learn(tmp_path / "job.out")]


def test_a_job_that_goes_on_with_fewer_devices_is_another_run(tmp_path):
    """A lost rack: half the devices take twice as long, from the last checkpoint on."""
    text = launched(range(1, 41), 9, **WHOLE) + launched(range(31, 71), 18, **HALF)
    assert runs(tmp_path, text) == [(64, 2, 9.0, 40, 0), (32, 2, 18.0, 40, 1)]


def test_a_sweep_in_one_file_is_as_many_runs(tmp_path):
    sweep = (WHOLE, 9), (SMALL, 12), (HALF, 18)
    text = "".join(launched(range(1, 31), seconds, **said) for said, seconds in sweep)
    assert [run[:3] for run in runs(tmp_path, text)] == [(64, 2, 9), (64, 1, 12), (32, 2, 18)]
    assert {run[4] for run in runs(tmp_path, text)} == {0}
    names = [run["file"] for run in sc.learn(tmp_path / "job.out")]
    assert names == [f"job.out, run {i} of 3" for i in (1, 2, 3)]


@pytest.mark.parametrize("first", [True, False])
def test_a_launch_without_a_step_is_no_run(first, tmp_path):
    """Out of memory before its first step; the settings of the steps are those of their launch."""
    failed, ran = launched((), 0, **WHOLE) + OUT, launched(range(1, 31), 9, **SMALL)
    text = failed + ran if first else ran + failed
    assert runs(tmp_path, text) == [(64, 1, 9.0, 30, 1)]


def test_a_launch_with_the_same_settings_is_the_same_run(tmp_path):
    text = launched(range(1, 41), 9, **WHOLE) + launched(range(31, 71), 9, **WHOLE)
    assert runs(tmp_path, text) == [(64, 2, 9.0, 70, 1)]


def test_a_batch_that_is_ramped_up_is_no_slow_step(tmp_path):
    """--rampup-batch-size: steps, batch and rate are of the batch of most steps; a longer step of a
    larger batch is none that something slowed."""
    ramp = [(128, range(1, 31), 3), (256, range(31, 61), 5), (512, range(61, 131), 9)]
    text, clock = "", datetime(2025, 12, 22, 15, 0, 0)
    for batch, steps, seconds in ramp:
        for i in steps:
            clock += timedelta(seconds=seconds)
            line = megatron([i], ms=1e3 * seconds).replace("size:   512", f"size: {batch:5d}")
            text += re.sub(r"15:18:\d\d", f"{clock:%H:%M:%S}", line) + "\n"
    got = log(tmp_path, text)
    assert (got["global_batch"], got["step_s"]) == (512, 9.0)
    assert got["goodput"] == pytest.approx(1.0, abs=0.01)


# arguments of Megatron-LM with which the models were trained, in the words of its dump
PUBLISHED_SHAPES = {
    # arXiv 2401.04088, table 1
    "mixtral-8x7b": dict(
        num_layers=32,
        hidden_size=4096,
        num_attention_heads=32,
        num_query_groups=8,
        ffn_hidden_size=14336,
        num_experts=8,
        moe_router_topk=2,
        padded_vocab_size=32000,
        swiglu=True,
    ),
    # arXiv 2505.09388, table 2
    "qwen3-30b-a3b": dict(
        num_layers=48,
        hidden_size=2048,
        num_attention_heads=32,
        num_query_groups=4,
        ffn_hidden_size=6144,
        moe_ffn_hidden_size=768,
        num_experts=128,
        moe_router_topk=8,
        padded_vocab_size=151936,
        swiglu=True,
    ),
    # arXiv 2407.21783, table 3; 3.1 has the same shape
    "llama-3-8b": dict(
        num_layers=32,
        hidden_size=4096,
        num_attention_heads=32,
        num_query_groups=8,
        ffn_hidden_size=14336,
        padded_vocab_size=128256,
        swiglu=True,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED_SHAPES)
def test_a_model_is_known_by_its_shape(name, tmp_path):
    def model_of(said: dict) -> dict:
        return log(tmp_path, dumped(**said) + megatron(range(1, 20)))

    said = PUBLISHED_SHAPES[name]
    got = model_of(said)
    assert got["model"] == name
    assert any("the same shape" in note for note in got["assumed"])
    other = model_of(said | {"num_layers": 34})  # of no published model
    assert other["model"] == f"34 layers x {said['hidden_size']}"


def dumped(**said) -> str:
    """Arguments as Megatron-LM's print_args writes them (training/arguments.py)."""
    rows = "".join(f"  {name} {'.' * (48 - len(name))} {value}\n" for name, value in said.items())
    return f"{'-' * 24} arguments {'-' * 24}\n{rows}"


RECOMPUTED = "recompute", "recompute_layers", "sharding"
GRANULARITY = "recompute_granularity"
PLANS = {
    # all layers, a checkpoint of each; one layer of each of the two chunks of a stage
    "uniform": (
        dumped(**{GRANULARITY: "full", "recompute_method": "uniform", "recompute_num_layers": 1}),
        ("full", None, None),
    ),
    "block": (
        dumped(
            **{GRANULARITY: "full", "recompute_method": "block", "recompute_num_layers": 1},
            virtual_pipeline_model_parallel_size=2,
            use_distributed_optimizer=True,
        ),
        ("full", 2, "zero1"),
    ),
    "off": (dumped(**{GRANULARITY: None}, use_distributed_optimizer=False), ("none", None, "none")),
    # before recompute_granularity, and GPT-NeoX
    "a switch": (dumped(checkpoint_activations=True), ("full", None, None)),
    # runtime/config.py of DeepSpeed: 29 columns of name and dots
    "deepspeed": (
        "using world size: 8, data-parallel-size: 8\n[2024-02-14 20:37:14,113] [INFO] "
        "[config.py:1000:print]   zero_optimization_stage ...... 3\n",
        (None, None, "zero3"),
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_recompute_and_sharding_are_those_of_the_dump(name, tmp_path):
    head, plan = PLANS[name]
    got = log(tmp_path, head + megatron(range(1, 20)))
    assert tuple(got[field] for field in RECOMPUTED) == plan


def test_the_micro_batch_of_a_configuration_that_deepspeed_prints(tmp_path):
    """Its name fills the 29 columns of name and dots."""
    at = "[2024-02-14 20:37:14,113] [INFO] [{}] "
    config = at.format("config.py:1000:print") + "  train_micro_batch_size_per_gpu  4\n"
    step = at.format("timer.py:260:stop") + (
        "epoch=0/micro_step={0}/global_step={0}, RunningAvgSamplesPerSec=58.7, "
        "CurrSamplesPerSec=128.0, MemAllocated=6.01GB, MaxMemAllocated=19.52GB\n"
    )
    assert log(tmp_path, config + "".join(map(step.format, range(9))))["micro_batch"] == 4


def test_the_batch_of_a_configuration_that_maxtext_prints(tmp_path):
    """pyconfig.py prints what it works out of the batch of a device."""
    told = "Config param global_batch_size_to_train_on: 1024\n"
    step = "completed step: {}, seconds: 9.000, TFLOP/s/device: 157.700, loss: 10.8\n"
    got = log(tmp_path, told + "".join(map(step.format, range(9))))
    assert got["global_batch"] == 1024


TITAN_SAYS = "[rank0]:[titan] 2026-05-22 18:16:03,672 - root - INFO - {}\n".format
PRODUCTS = {
    # transformer_config.py: fp8 and fp4 are formats, None where off; the recipes have defaults
    "bf16": (dumped(bf16=True, fp4=None, fp4_recipe="nvfp4", fp8=None, fp8_recipe="delayed"), ""),
    "fp8": (dumped(bf16=True, fp8="hybrid", fp8_recipe="delayed"), ""),
    "fp8-current": (dumped(bf16=True, fp8="hybrid", fp8_recipe="tensorwise"), ""),
    "fp8-block": (dumped(bf16=True, fp8="e4m3", fp8_recipe="blockwise"), ""),
    "mxfp8": (dumped(bf16=True, fp8="e4m3", fp8_recipe="mxfp8"), ""),
    "nvfp4": (dumped(bf16=True, fp4="e2m1", fp4_recipe="nvfp4", fp8=None), ""),
    # components/quantization of torchtitan; a public run of May 2026
    "mxfp8, torchtitan": (
        TITAN_SAYS("Converted modules to use dynamic mxfp8_rceil quantization for linear ops"),
        "titan",
    ),
    "fp8, torchtitan": (
        TITAN_SAYS("Swapped to Float8Linear layers with enable_fsdp_float8_all_gather=True"),
        "titan",
    ),
    # base.yml of MaxText: quantization beside dtype
    "int8, maxtext": (
        "Config param dtype: bfloat16\nConfig param quantization: int8\n",
        "completed step: {}, seconds: 9.000, TFLOP/s/device: 157.700, loss: 10.8\n",
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_precision_is_that_of_the_products(name, tmp_path):
    head, step = PRODUCTS[name]
    steps = "".join(TITAN_STEPS) if step == "titan" else "".join(map(step.format, range(9)))
    assert log(tmp_path, head + (steps or megatron(range(9))))["precision"] == name.split(",")[0]


def test_torchtitan_says_what_it_recomputes(tmp_path):
    """distributed/activation_checkpoint.py: "Applied {mode} activation checkpointing"."""
    said = (
        "[rank0]:[titan] 2025-11-25 19:44:58,595 - root - INFO - Applied selective activation "
        "checkpointing to the model\n"
    )
    assert log(tmp_path, said + "".join(TITAN_STEPS))["recompute"] == "selective"


def test_the_chip_is_the_one_that_nvidia_smi_lists(tmp_path):
    """`nvidia-smi -L` in the script of the job."""
    listed = "0: GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5b7a9d1c-0000-0000-0000-000000000000)\n"
    assert log(tmp_path, listed + megatron(range(1, 20)))["accelerator"] == "H100 80GB HBM3"


def test_names_of_frameworks_are_those_of_the_catalogue(tmp_path):
    """torchtitan writes "Model qwen3 14B", MLPerf the benchmark."""
    text = "[rank0]:[titan] 2026-05-22 18:19:00,100 - root - INFO - Model qwen3 14B size: 14,7\n"
    assert log(tmp_path, text + "".join(TITAN_STEPS))["model"] == "qwen3-14b"
    event = ':::MLLOG {"key": "submission_benchmark", "value": "llama31_405b", "time_ms": 1}\n'
    assert log(tmp_path, event)["model"] == "llama-3.1-405b"


def test_long_lines_do_not_slow_the_recognition(tmp_path):
    """Sixty lines of 59 kB, as the JSON of a configuration may be."""
    path = tmp_path / "long.out"
    path.write_text((("x" * 59_000 + "\n") * 60) + megatron(range(1, 60)))
    began = time.process_time()
    assert sc.learn(path)[0]["step_s"] == 9.0
    assert time.process_time() - began < 5


@pytest.mark.parametrize("repeated", ["x", " ", "1", "1,", "-", ". ", "| ", "] ", "step: ", "=:"])
def test_no_pattern_is_slow_on_what_is_repeated(repeated):
    """Each pattern of each format passes once over a line of 20,000 characters: 40 s where a number
    was sought from every digit of a long one."""
    line = repeated * (20_000 // len(repeated))
    began = time.process_time()
    BAR.search(line)
    for form in FORMATS:
        if isinstance(form, LineFormat):
            values = [value.pattern for kind in form.lines for value in kind.values]
            memory = [peak.pattern for peak in form.memory]
            for pattern in (*form.opens, *form.settings.values(), *values, *memory):
                pattern.search(line)
    assert time.process_time() - began < 5
