"""Diagnosis: a defect put in is found again; a sound run is left in peace; published mishaps."""

from __future__ import annotations

import math

import pytest
from scantling import Design, assess
from scantling.advise.diagnose import FASTER, SLOWER, diagnose
from scantling.physics.memory.peak import memory
from scantling.physics.step import step_time
from scantling.plans.plan_names import pins_of

DENSE = (
    "model: llama-3.1-70b\ncluster: {accelerator: h100-sxm, devices: 256}\njob: {seq_len: "
    "8192, global_batch: 512}\nplan: {tp: 4, pp: 4, cp: 1, sharding: zero1, recompute: "
    "none, offload: none}\n"
)
MOE = (
    "model: mixtral-8x22b\ncluster: {accelerator: h100-sxm, devices: 128}\njob: {seq_len: "
    "4096, global_batch: 256}\nplan: {tp: 2, pp: 8, ep: 8, etp: 1, sharding: zero1}\n"
)


def measured_with(text, name, size):
    """A design whose measurement is the model's own answer with one defect in it."""
    a = assess(Design.from_text(text))
    cause = next(c for c in SLOWER if c.name.startswith(name))
    broken = cause.change(a.chosen.case, size)
    said = {
        "step_s": float(step_time(broken).total),
        "memory_gb": float(memory(broken).total) / 1e9,
    }
    return a, Design.from_text(text).change(
        {f"plan.{k}": v for k, v in pins_of(a.plan).items()}
    ).change(measured=said)


@pytest.mark.parametrize(
    "text, name, size, among",
    [
        (DENSE, "devices run below", 1.25, 5),
        (DENSE, "layers are recomputed", 1, 1),
        (DENSE, "tensor-parallel ranks", 1, 3),
        (MOE, "tokens crowd", 1.6, 3),
        (DENSE, "attention materialises", 1, 2),
    ],
)
def test_a_defect_put_in_is_among_the_first(text, name, size, among):
    _, design = measured_with(text, name, size)
    d = diagnose(design)
    assert d.measured_s > d.predicted_s
    assert any(r["cause"].startswith(name) for r in d.causes[:among]), [
        r["cause"] for r in d.causes
    ]
    found = next(r for r in d.causes if r["cause"].startswith(name))
    assert found["explains"] == pytest.approx(1, abs=0.02) and found["step_s"] == pytest.approx(
        d.measured_s, rel=0.02
    )


def test_memory_tells_recomputation_from_slow_clocks():
    """The same step time; the peak decides: recomputing layers leaves most of the activations'
    memory free."""
    _, design = measured_with(DENSE, "layers are recomputed", 1)
    with_peak = diagnose(design)
    without = diagnose(design.change({"measured.memory_gb": None}))
    first = lambda d: next(
        r["weight"] for r in d.causes if r["cause"].startswith("layers are recomputed")
    )  # noqa: E731
    assert with_peak.causes[0]["cause"].startswith("layers are recomputed") and first(
        with_peak
    ) > first(without)


def test_a_sound_run_is_inside_the_band():
    a = assess(Design.from_text(DENSE))
    d = diagnose(
        Design.from_text(DENSE)
        .change({f"plan.{k}": v for k, v in pins_of(a.plan).items()})
        .change(measured={"step_s": a.step_s * 1.01})
    )
    assert d.inside and "inside the band" in d.lines[0] and d.chance > 0.3


def test_a_run_faster_than_predicted_gets_other_causes():
    a = assess(Design.from_text(DENSE))
    d = diagnose(
        Design.from_text(DENSE)
        .change({f"plan.{k}": v for k, v in pins_of(a.plan).items()})
        .change(measured={"step_s": a.step_s * 0.9})
    )
    assert {r["cause"] for r in d.causes} <= {c.name for c in FASTER}
    assert "faster" in d.lines[0]


def test_mfu_and_tokens_stand_for_the_step():
    a = assess(Design.from_text(DENSE))
    by = [
        diagnose(Design.from_text(DENSE).change(measured=m)).measured_s
        for m in (
            {"mfu": a.mfu / 1.3},
            {"tokens_per_s_per_device": a.tokens_per_s_per_device / 1.3},
        )
    ]
    assert by == [pytest.approx(1.3 * a.step_s, rel=1e-6)] * 2


def test_weights_are_shares_and_every_cause_says_what_to_measure():
    _, design = measured_with(MOE, "tokens crowd", 1.6)
    d = diagnose(design)
    assert math.isclose(sum(r["weight"] for r in d.causes), 1) and all(
        len(r["measure"]) > 10 for r in d.causes
    )
    whole = [r["weight"] for r in d.causes if r["explains"] >= 0.95]
    rest = [r["explains"] for r in d.causes[len(whole) :]]
    assert whole == sorted(whole, reverse=True) and rest == sorted(rest, reverse=True)
    assert all(share < 0.95 for share in rest)


def test_nothing_measured_is_said():
    with pytest.raises(ValueError, match="measured"):
        diagnose(Design.from_text(DENSE))


def test_no_cause_speeds_a_slow_run_up():
    seen = 0
    a = assess(Design.from_text(MOE))
    base = float(step_time(a.chosen.case).total)
    for cause in SLOWER:
        if not cause.name.startswith("the schedule"):
            seen += 1
            assert float(
                step_time(cause.change(a.chosen.case, cause.worst or 1.0)).total
            ) >= base * (1 - 1e-9), cause.name
    assert seen


def test_a_run_that_no_single_cause_explains():
    """A hundred times as slow on one node: the first causes together come near, and a plan that was
    not given is said to be missing."""
    node = (
        "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: 8}\n"
        "job: {seq_len: 8192, global_batch: 64}\n"
    )
    a = assess(Design.from_text(node))
    ran = Design.from_text(node).change({f"plan.{k}": v for k, v in pins_of(a.plan).items()})
    d = diagnose(ran.change(measured={"step_s": 100 * a.step_s}))
    assert max((c["explains"] for c in d.causes), default=0) < 0.8 and "<0.1 %" in d.lines[0]
    assert "none of these alone explains it" in d.lines[-1] or "no single cause" in d.lines[-1]
    open_plan = diagnose(Design.from_text(node).change(measured={"step_s": 3 * a.step_s}))
    assert "pin what ran" in open_plan.lines[1]


def ranked(text, **measured):
    """Causes of a run with this measurement, in their order, and the lines."""
    d = diagnose(Design.from_text(text).change(measured=measured))
    return [row["cause"] for row in d.causes], d


SOCKETS = "sockets or Ethernet"


@pytest.mark.parametrize("times", [10, 40, 150])
@pytest.mark.parametrize(
    "model, devices, stack", [("llama-2-7b", 16, "pytorch-fsdp"), ("llama-3.1-8b", 32, "deepspeed")]
)
def test_a_network_over_sockets_leads_however_slow_it_is(model, devices, stack, times):
    """NCCL without its plugin takes a 1 to 10 Gbit/s interface where 200 Gbit/s lie beside it."""
    text = (
        f"model: {model}\nstack: {stack}\ncluster: {{accelerator: a100-80-sxm, devices: {devices}}}"
        f"\njob: {{seq_len: 4096, global_batch: {2 * devices}}}\n"
        "plan: {tp: 1, pp: 1, cp: 1, sharding: zero3, micro_batch: 1, offload: none}"
    )
    hdr = 25.0  # GB/s of the node's cards, per device
    slow = {"cluster.scale_out_gbytes_per_s_per_device": hdr / times}
    step_s = assess(Design.from_text(text).change(slow)).step_s
    causes, _ = ranked(text, step_s=step_s)
    assert SOCKETS in causes[0] or (times == 10 and SOCKETS in causes[1])


def test_nothing_is_named_that_the_plan_cannot_have():
    """No tensor ranks, experts or second node: none of them is spread, crowded or slow."""
    text = (
        "model: llama-3.1-8b\ncluster: {accelerator: h100-sxm, devices: %d}\n"
        "job: {seq_len: 4096, global_batch: 64}\nplan: {tp: 1, pp: 1, cp: 1, sharding: zero3}"
    )
    for devices in (8, 64):
        causes, _ = ranked(text % devices, mfu=0.1)
        assert causes and not any(w in c for c in causes for w in ("tensor-", "expert", "stages"))
        assert any("between nodes" in c for c in causes) == (devices > 8)


def test_what_the_stack_does_anyway_is_named_beside_the_causes():
    """Transformers' experts are modules, run one by one: 166 s a step were measured of a model of
    30B with 3B active, and nobody's machine was at fault."""
    text = (
        "model: qwen3-30b-a3b\nstack: deepspeed\ncluster: {accelerator: h100-sxm, devices: 8}\n"
        "job: {seq_len: 4096, global_batch: 32, from_checkpoint: true}\nplan: {tp: 1, pp: 1, "
        "cp: 1, ep: 1, sharding: zero3, micro_batch: 1, offload: none, recompute: full}"
    )
    _, d = ranked(text, step_s=166)
    assert d.built_in[0]["cause"].startswith("experts run one by one")
    assert d.built_in[0]["explains"] > 0.9 and "experts run one by one" in d.lines[1]


def test_experts_one_by_one_and_graphs_that_are_off_are_found():
    for text, switch, name in (
        (MOE, {"looped_experts": 1.0}, "experts run one by one"),
        (MOE + "stack: megatron-core\n", {"graphs": 0.0}, "CUDA graphs are off"),
    ):
        text = text.replace("etp: 1", "etp: 1, cuda_graphs: full") if "graphs" in switch else text
        _, design = measured_with(text, name, 1)
        d = diagnose(design)
        assert any(r["cause"] == name and r["explains"] > 0.95 for r in d.causes), d.lines


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("chip", ["mi300x", "gaudi3", "mi250x-gcd"])
def test_tensor_ranks_spread_over_nodes_are_found_on_a_mesh_too(chip):
    """A domain of one device has no peer to share its links with: the rate of its ring was 0."""
    design = Design.from_data(
        {
            "model": "llama-3.1-70b",
            "cluster": {"accelerator": chip, "devices": 256},
            "job": {"tokens": 2e12, "seq_len": 8192, "global_batch": 512},
            "plan": {"tp": 8, "pp": 1},
        }
    )
    spread = next(cause for cause in SLOWER if cause.name.startswith("tensor-parallel ranks"))
    case = assess(design).chosen.case
    slow_s = float(step_time(spread.change(case, 1.0)).total)
    found = diagnose(design.change({"measured.step_s": slow_s}))
    assert spread.name in [row["cause"] for row in found.causes[:4]]


def stated(text, mfu):
    """The lines that a stated MFU gets."""
    return diagnose(Design.from_text(text).change(measured={"mfu": mfu})).lines


H200 = (
    "model: qwen2.5-32b\ncluster: {accelerator: h200-sxm, devices: 16}\njob: {seq_len: 4096, "
    "global_batch: 256}\nstack: megatron-core\nplan: {tp: 4, pp: 2}\n"
)
B300 = (
    "model: qwen3-4b\ncluster: {accelerator: b300-sxm, devices: 16}\njob: {seq_len: 4096, "
    "global_batch: 128}\nstack: pytorch-fsdp\nplan: {sharding: zero3}\n"
)


def test_an_mfu_by_the_peak_with_sparsity_is_counted_anew():
    """NVIDIA's H200 sheet prints 1,979 TFLOP/s in 16 bit, with sparsity: 420 TFLOP/s a device are
    21.2 % of it and 42.5 % of the dense 989."""
    line = stated(H200, 420 / 1979)[1]
    assert "with sparsity" in line and "21.2 %" in line and "42.4 %" in line and "989" in line


def test_an_mfu_by_the_peak_that_trainers_fall_back_to_is_counted_anew():
    """torchtitan 0.3.0, `get_peak_flops`: 312e12, the A100's, for a chip that it does not know. 276
    TFLOP/s on B300, of 2,250, are 12 % and read 88 %."""
    line = stated(B300, 276e12 / 312e12)[1]
    assert "A100" in line and "12.3 %" in line and "2,250" in line


def test_a_likely_mfu_is_not_counted_anew():
    """Nor is one that losses explain better than any other peak does, nor a step that was timed."""
    a = assess(Design.from_text(H200))
    assert not any("dense bf16 peak" in line for line in stated(H200, a.mfu))
    assert not any("dense bf16 peak" in line for line in stated(H200, a.mfu / 8))
    timed = Design.from_text(H200).change(measured={"step_s": 2 * a.step_s})
    assert not any("dense bf16 peak" in line for line in diagnose(timed).lines)
