"""The Slurm script under stand-ins of Slurm's commands: it starts at every size, goes on in place
after a fault, and gives up where the run never began."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from scantling import Design, assess
from scantling.advise.batch_size import batch_guide
from scantling.base.json import clean
from scantling_kits import FRAMEWORKS, framework, kits, write
from scantling_kits.expressible import express
from scantling_kits.pages import kit
from scantling_site import part
from scantling_site.job_site import site_of
from scantling_site.rollout.watch import hang_timeout_s
from scantling_site.scheduler.dialects import request
from scantling_site.scheduler.request import early_failures

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))
from corpus import SMALL, spec  # noqa: E402

ONE_BY_ONE = 'for ((i = 0; i < HOSTS_LISTED; i++)); do echo "node-$i"; done'
AT_ONCE = 'exec seq -f "node-%.0f" 0 $((HOSTS_LISTED - 1))'
TRAINS = "exit 0"


def job(devices, **more):
    plan = dict(tp=1, pp=1, sharding="none", micro_batch=1)
    return assess(
        Design.from_data(
            spec(model=SMALL, devices=devices, plan=plan, job=dict(global_batch=devices), **more)
            | {"name": "job"}
        )
    )


@pytest.fixture(scope="module")
def launch():
    return express(job(16), 0, framework("fsdp"), "slurm")


@pytest.fixture
def run(tmp_path):
    """Runs a kit's job.sbatch: run(files, srun, names, restarts=0, hosts=None) -> (exit, calls)."""
    bin_, here = tmp_path / "bin", tmp_path / "kit"
    bin_.mkdir()

    def stub(name, text):
        (bin_ / name).write_text(f'#!/bin/bash\necho "{name} $*" >> "{tmp_path}/calls"\n{text}\n')
        (bin_ / name).chmod(0o755)

    def go(files, srun, names=AT_ONCE, restarts=0, hosts=2, down="", **more):
        if go.written is not files:
            write(files, here)
            go.written = files
        (tmp_path / "calls").write_text("")
        stub("srun", srun)
        stub("sinfo", f"printf '%s\\n' {down}" if down else "exit 0")
        stub("scontrol", f'if [ "$1" = requeue ]; then exit 0; fi\n{names}')
        p = subprocess.run(
            ["bash", "job.sbatch"],
            cwd=here,
            timeout=60,
            capture_output=True,
            env={
                "PATH": f"{bin_}:/usr/bin:/bin",
                "SLURM_JOB_ID": "7",
                "SLURM_JOB_NODELIST": "node",
                "SLURM_RESTART_COUNT": str(restarts),
                "SLURM_SUBMIT_DIR": str(here),
                "HOSTS_LISTED": str(hosts),
                "DATA": "/data/tokens",
            }
            | more,
        )
        return p.returncode, (tmp_path / "calls").read_text()

    go.folder, go.written = here, None
    return go


@pytest.mark.slow
@pytest.mark.parametrize("names", [ONE_BY_ONE, AT_ONCE])
@pytest.mark.parametrize("nodes", [1, 2, 64, 512, 2048, 12_500])
def test_it_starts_at_every_size(launch, run, nodes, names):
    """Twenty times with names printed one by one, twenty with all at once: a reader that left after
    the first of them would end the job with 141."""
    files = kit(replace(launch, devices=8 * nodes, figures=replace(launch.figures, spares=0)))
    for _ in range(20):
        code, calls = run(files, TRAINS, names, hosts=nodes)
        assert code == 0
        assert calls.count("srun ") == 1
    assert len((run.folder / "run" / "nodes-up").read_text().split()) == nodes


def test_a_node_that_is_down_or_fails_its_check_gives_its_place_to_a_spare(launch, run):
    files = kit(replace(launch, figures=replace(launch.figures, spares=2)))
    assert "#SBATCH --nodes=4\n" in files["job.sbatch"]
    srun = (
        'if [ ! -e "$RUN_DIR/struck" ]; then touch "$RUN_DIR/struck";'
        ' echo node-1 >> "$BAD_NODES"; exit 1; fi'
    )
    code, calls = run(files, srun, hosts=4, down="node-0")
    assert code == 0
    assert calls.count("srun ") == 2
    assert "requeue" not in calls
    assert (run.folder / "run" / "nodes-up").read_text().split() == ["node-2", "node-3"]
    code, calls = run(files, TRAINS, hosts=4, down="node-0 node-1 node-3")
    assert (code, calls.count("srun "), "scontrol requeue 7" in calls) == (1, 0, True)


@pytest.mark.parametrize(
    ("nodes", "spares", "segment", "down", "taken"),
    [
        # a tray of each of four racks stands by: the lost node's own rack fills its place
        (
            64,
            4,
            17,
            [3],
            [*range(3), *range(4, 17), *range(17, 33), *range(34, 50), *range(51, 67)],
        ),
        # a rack's 16 trays stand by beside 20 segments: all of a segment goes there
        (320, 16, 16, [3], range(16, 336)),
        # two of one rack are more than its spare tray
        (64, 4, 17, [3, 5], None),
    ],
)
def test_ranks_that_share_nvlink_stay_in_one_rack_after_a_fault(
    run, nodes, spares, segment, down, taken
):
    """GB200 racks hold 18 trays, a job takes 16 of each (Slurm's topology/block with --segment, as
    CoreWeave and NVIDIA run them): a group of 64 ranks that straddled two racks would talk over the
    network."""
    nvl = dict(accelerator="gb200", devices_per_node=4)
    a = job(4 * nodes, cluster=nvl, reliability={"spares": spares})
    assert a.spares == spares
    one = express(a, 0, framework("fsdp"), "slurm")
    files = kit(one)
    assert f"#SBATCH --segment={segment}\n" in files["job.sbatch"]
    assert f"#SBATCH --nodes={nodes + spares}\n" in files["job.sbatch"]
    names = " ".join(f"node-{n}" for n in down)
    code, calls = run(files, TRAINS, hosts=nodes + spares, down=names)
    if taken is None:
        assert (code, calls.count("srun "), "scontrol requeue 7" in calls) == (1, 0, True)
        return
    assert (code, calls.count("srun ")) == (0, 1)
    up = (run.folder / "run" / "nodes-up").read_text().split()
    assert up == [f"node-{n}" for n in taken]


def test_a_run_that_never_began_is_a_mistake_and_one_that_has_saved_meets_faults(launch, run):
    """A failure within 15 minutes ends a first start; once a checkpoint is there or the job is back
    from the queue, the same failure starts again in place, until it cannot be chance."""
    files = kit(launch)
    again = early_failures(launch.figures.mtbf_s, launch.figures.days * 86400)
    code, calls = run(files, "exit 3")
    assert (code, calls.count("srun ")) == (3, 1)
    code, calls = run(files, "exit 3", restarts=1)
    assert (code, calls.count("srun ")) == (3, again - 1)  # the first start was one
    saves = (
        'n=$(cat "$RUN_DIR/n" 2>/dev/null || echo 0); echo $((n + 1)) > "$RUN_DIR/n";'
        ' [ "$n" -lt 9 ] || exit 0; sleep 0.02; mkdir -p "$RUN_DIR/checkpoints/step-000000001";'
        ' touch "$RUN_DIR/checkpoints/step-000000001/.metadata"; exit 3'
    )
    code, calls = run(files, saves, restarts=1)
    assert (code, calls.count("srun ")) == (0, 10)


def test_failures_in_a_row_are_weighed_against_the_design_s_own_rate():
    """One failure in 3.1 h (Llama 3's 16,384 devices, 54 days) strikes 7.75 % of starts within 15
    minutes: of 836 starts, twice the failures, five in a row are a chance of 0.2 %, four of 3 %."""
    assert early_failures(3.1 * 3600, 54 * 86400) == 5
    assert early_failures(1e9, 54 * 86400) == 3
    assert early_failures(60.0, 54 * 86400) == 20


def test_no_script_of_a_kit_pipes_into_a_reader_that_leaves():
    seen = 0
    a = job(16)
    for to in ("megatron", "torchtitan", "fsdp", "accelerate", "maxtext"):
        for name, text in kits(a, to, "slurm").items():
            if name.endswith((".sh", ".sbatch")):
                seen += 1
                code = [line for line in text.splitlines() if not line.startswith("#")]
                assert not [c for c in code for word in ("| head", "grep -q", "| sed") if word in c]
    assert seen


@pytest.mark.parametrize(
    ("file", "to"),
    [
        ("llama-3.1-405b", "megatron"),
        ("mixtral-8x22b-128-h100", "megatron-bridge"),
        ("nemotron-3-super-64-gb300", "megatron-bridge"),
        ("qwen3-235b-a22b-256-gb200", "megatron-bridge"),
    ],
)
def test_a_kit_and_the_blueprint_of_a_design_ask_for_the_same(file, to):
    """Every field that both state: nodes with spares, kill policy, signal, time, network, retries,
    time-outs, interval, retention, learning rate."""
    a = assess(Design.read(ROOT / "gallery" / "designs" / f"{file}.yaml"))
    gaps = express(a, 0, FRAMEWORKS[to], "slurm").gaps
    if gaps:  # the framework cannot say all of it: another plan is launched
        a = assess(a.design.change({f"plan.{gap.field}": gap.instead for gap in gaps}))
        assert not express(a, 0, FRAMEWORKS[to], "slurm").gaps
    files = kits(a, to, "slurm")
    plan, job = json.loads(files["plan.json"]), files["job.sbatch"]
    site = site_of(a)
    asked = part(site, "scheduler")
    fields = request(site, "slurm")["fields"]
    stated = dict(re.findall(r"^#SBATCH --([a-z-]+)(?:=(\S+))?$", job, re.M))
    for name in ("nodes", "ntasks-per-node", "gpus-per-node", "open-mode"):
        assert stated[name] == str(fields[name]), name
    assert int(stated.get("segment", 1)) == fields.get("segment", 1)
    assert stated["signal"] == "B:" + fields["signal"]
    assert int(stated.get("switches", "1").partition("@")[0]) == fields.get("switches", 1)
    for name in ("requeue", "no-kill", "exclusive"):
        assert (name in stated) == bool(fields[name]), name
    assert f"--kill-on-bad-exit={fields['kill-on-bad-exit']} " in job
    days, clock = stated["time"].split("-")
    hours, minutes, _ = (int(n) for n in clock.split(":"))
    if a.days:
        assert (int(days) * 24 + hours) * 60 + minutes == fields["time-minutes"]
    assert f'"$early" -ge {asked.requeue["most_in_a_row"]} ]' in job
    assert plan["checkpoint"]["keep"] == part(site, "stores").retention
    assert plan["checkpoint"]["every_steps"] == round(site.e.checkpoint_interval_s / a.step_s)
    rates = batch_guide(a)["learning_rate"]
    assert (rates["start"] is not None) == bool(a.days)  # no tokens stated, no days and no rate
    if a.days:
        peaks = [row["value"] for row in rates["peak"]]
        assert plan["train"]["lr"] == rates["start"] and min(peaks) < rates["start"] < max(peaks)
    own = files["megatron.args" if to == "megatron" else "bridge.overrides"]
    given = re.search(r"timeout.seconds.after.init[ =](\d+)", own)
    assert int(given[1]) == math.ceil(hang_timeout_s(site.step_s, site.e.checkpoint_stall_s))
    launched = a
    if a.endurance.recovery == "elastic":  # no framework goes on with fewer: what is launched waits
        launched = assess(a.design.change({"reliability.recovery": "in-place"}))
        (lost,) = (g for g in plan["not_expressed"] if g["field"] == "reliability.recovery")
        assert lost["cost"] == f"goodput {launched.goodput:.2%} against {a.goodput:.2%}"
    for name in ("goodput", "mtbf_s", "spares", "checkpoint_bytes", "step_s", "days", "cost_usd"):
        assert plan["figures"][name] == launched.headline()[name], name
    assert plan["recovery"] == launched.endurance.recovery
    assert plan["checkpoint"]["keep_days"] == a.endurance.keep_days
    assert plan["checkpoint"]["tiers"] == clean(a.endurance.tiers)
    gaps = {g["field"] for g in plan["not_expressed"]}
    assert ("reliability.recovery" in gaps) == (a.endurance.recovery == "elastic")


KEPT = {  # where a framework is told how many checkpoints stay
    "megatron": ("launch.sh", r"many > (\d+) \?"),
    "megatron-bridge": ("bridge.overrides", r"most_recent_k=(\d+)"),
    "torchtitan": ("torchtitan_config.py", r"keep_latest_k=(\d+)"),
    "maxtext": ("maxtext.yml", r"max_num_checkpoints_to_keep: (\d+)"),
}


@pytest.mark.parametrize("to", FRAMEWORKS)
def test_every_kit_keeps_as_many_checkpoints_as_the_report(to):
    a = job(16, checkpoint={"keep_versions": 7, "keep_days": 3})
    files = kits(a, to)
    file, pattern = KEPT.get(to, ("plan.json", r'"keep": (\d+)'))
    assert part(site_of(a), "stores").retention == 7
    assert {*re.findall(pattern, files[file])} == {"7"}
    assert "keep it 3 days" in files["checkpoint.md"] or "to keep 3 days" in files["checkpoint.md"]


@pytest.mark.slow
def test_old_checkpoints_of_megatron_go_and_what_is_newer_than_the_newest_whole_one_stays(tmp_path):
    """As Megatron-LM lays them: iter_NNNNNNN, the newest whole one in the tracker file, which goes
    back where the run goes back to an older checkpoint. torch_dist has two files a rank, which
    several processes remove side by side: of 150 files each has 64 at most."""
    kit, bin_ = tmp_path / "kit", tmp_path / "bin"
    write(kits(job(16, checkpoint={"keep_versions": 3}), "megatron"), kit)
    saved = kit / "run" / "checkpoints"
    for step in range(10, 100, 10):
        (saved / f"iter_{step:07d}").mkdir(parents=True)
    for rank in range(75):
        for file in range(2):
            (saved / "iter_0000010" / f"__{rank}_{file}.distcp").touch()
    (saved / "latest_checkpointed_iteration.txt").write_text("80")
    bin_.mkdir()
    (bin_ / "torchrun").write_text("#!/bin/bash\nsleep 2\n")
    (bin_ / "rm").write_text(f'#!/bin/bash\necho "$@" >> {tmp_path}/removed\nexec /bin/rm "$@"\n')
    for name in ("torchrun", "rm"):
        (bin_ / name).chmod(0o755)
    env = {"PATH": f"{bin_}:/usr/bin:/bin", "MEGATRON_LM": "/m", "DATA": "/d", "TOKENIZER": "/t"}
    for rank, left in (("1", range(10, 100, 10)), ("0", (60, 70, 80, 90))):
        p = subprocess.run(
            ["bash", "launch.sh"],
            cwd=kit,
            env=env | {"NODE_RANK": rank},
            capture_output=True,
            text=True,
        )
        assert p.returncode == 0, p.stderr
        assert sorted(int(f.name[5:]) for f in saved.glob("iter_*")) == [*left]
    removed = (tmp_path / "removed").read_text().splitlines()
    assert max(line.count(".distcp") for line in removed) <= 64
    assert sum(line.count(".distcp") for line in removed) == 150


def test_a_failure_goes_back_to_the_queue_where_the_design_counts_on_that(run):
    """`recovery: restart` in the reliability of a design: neither torchrun nor the job starts again
    in place."""
    files = kits(job(16, reliability={"recovery": "restart"}), "fsdp", "slurm")
    assert "--max-restarts=0 " in files["launch.sh"]
    saves = (
        'sleep 0.02; mkdir -p "$RUN_DIR/checkpoints/step-000000001";'
        ' touch "$RUN_DIR/checkpoints/step-000000001/.metadata"; exit 3'
    )
    code, calls = run(files, saves)
    assert (code, calls.count("srun "), "scontrol requeue 7" in calls) == (3, 1, True)


def test_tiers_of_a_design_are_those_of_the_kit_or_named_as_missing():
    """Megatron-LM's local checkpoints (arguments.py): near copies every few steps, one of them on
    another node, and the copy in RUN_DIR as often as the design's last tier."""
    tiers = {"l0": {"every_s": 60}, "l1": {}, "l2": {"every_s": 600}}
    a = job(16, checkpoint={"tiers": tiers})
    near, *_, far = a.endurance.tiers
    given = dict(re.findall(r"^(--\S+) ?(.*)$", kits(a, "megatron")["megatron.args"], re.M))
    assert int(given["--non-persistent-save-interval"]) == round(near["every_s"] / a.step_s)
    assert int(given["--save-interval"]) == round(far["every_s"] / a.step_s)
    assert (given["--replication-jump"], given["--replication-factor"]) == ("8", "2")
    bridge = kits(a, "megatron-bridge")["bridge.overrides"]
    assert "checkpoint.replication_jump=8\n" in bridge
    for to in FRAMEWORKS:
        files = kits(a, to)
        plan = json.loads(files["plan.json"])
        assert "; the optimum of the nearest copies for one failure" in files["README.md"]
        last = plan["checkpoint"]["tiers"][-1]["every_s"]
        assert plan["checkpoint"]["every_steps"] == round(last / plan["step_s"])
        fields = {g["field"] for g in plan["not_expressed"]}
        assert ("checkpoint.tiers" in fields) == (not to.startswith("megatron"))
