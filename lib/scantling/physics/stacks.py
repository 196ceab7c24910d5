"""Software stacks: what each does unless a design or a published row says otherwise.

A stack is named the way `published_runs.csv` names it. The switches are facts about the code (its
read-me, paper or defaults);
the speeds that go with a stack are fitted and live in catalogue/calibration.json.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stack:
    """Defaults of one software stack; switches as in cases.Software."""

    name: str
    title: str
    flash: float = 2.0  # on Ampere; see flash_hopper
    sequence_parallel: bool = False  # with tp > 1
    sharding: str = "zero1"
    grad_bytes: float = 4.0
    tp_overlap: float = 0.0
    dp_overlap: float = 1.0
    chunked_loss: float = 0.0
    dedup_dispatch: float = 0.0
    selective_gemm: float = 0.0
    selective_attention: float = 1.0
    selective_elementwise: float = 0.0
    fused_norm: float = 1.0
    lazy_recompute: float = 0.0
    broadcast_gather: float = 0.0
    group_limit: float = 0.0
    ep_overlap: float = 0.0
    grad_all_reduce: float = 0.0
    schedule: str = ""  # pipeline schedule where none is printed
    recompute: str = "none"  # where none is printed
    cp_type: str = ""
    chunk_layers: int = (
        0  # layers of one virtual stage where vpp is not printed; 0 = not interleaved
    )
    interleaves: bool = False  # its recipes interleave as finely as layers divide
    flash_hopper: float = 2.0  # generation of flash attention on Hopper and later
    bf16_grad_bytes: float = 0.0  # of a gradient under bf16, where not as grad_bytes
    # 1: a sharded pipeline is driven instruction by instruction: sends and reductions run between
    # them
    pipeline_engine: float = 0.0
    # year since when stages are laid out so that loss and MTP take the place of three layers,
    # virtual stages or not
    mtp_layout_since: float = 1e9
    dedup_planned: float = (
        0.0  # 1: a run planned now has a dispatcher that sends a token over a link once
    )
    activation: float = 1.0  # saved activations relative to a fused stack
    source: str = ""


STACKS = {
    s.name: s
    for s in (
        Stack(
            "megatron-core",
            "Megatron-LM (core) and NeMo",
            2.0,
            True,
            flash_hopper=3.0,
            interleaves=True,
            mtp_layout_since=2026.0,
            dedup_planned=1.0,
            source=(
                "Megatron-LM arguments.py defaults; NeMo and Megatron-Bridge performance recipes"
            ),
        ),
        Stack(
            "megatron-lm",
            "Megatron-LM before Megatron-Core",
            0.0,
            False,
            "none",
            2.0,
            dp_overlap=0.0,
            source="Narayanan et al. 2021",
        ),
        Stack(
            "megatron-deepspeed",
            "Megatron-DeepSpeed",
            0.0,
            False,
            "zero1",
            2.0,
            dp_overlap=0.0,
            bf16_grad_bytes=4.0,
            pipeline_engine=1.0,
            source=(
                "BigScience tr11 chronicles; Smith et al. 2022; DeepSpeed BF16_Optimizer "
                "accumulates in fp32, its pipeline engine sends and reduces between "
                "instructions"
            ),
        ),
        Stack(
            "zero-bubble",
            "Megatron-LM with zero-bubble schedules",
            0.0,
            False,
            "none",
            2.0,
            dp_overlap=0.0,
            source="Qi et al. 2023",
        ),
        Stack(
            "aleph-alpha-scaling",
            "Aleph Alpha scaling",
            2.0,
            False,
            "zero1",
            2.0,
            fused_norm=0.0,
            grad_all_reduce=1.0,
            dp_overlap=0.0,
            tp_overlap=-1.0,
            source="Hagemann et al. 2024",
        ),
        Stack(
            "pytorch-fsdp",
            "PyTorch FSDP (llm-foundry, Composer)",
            1.0,
            False,
            "zero3",
            2.0,
            source="llm-foundry benchmarking read-me",
        ),
        Stack(
            "torchtitan",
            "torchtitan (FSDP2)",
            2.0,
            True,
            "zero3",
            4.0,
            tp_overlap=-1.0,
            selective_gemm=0.45,
            selective_attention=0.0,
            selective_elementwise=0.5,
            source="torchtitan train configs; per-op selective checkpointing",
        ),
        Stack(
            "deepspeed",
            "DeepSpeed ZeRO",
            2.0,
            False,
            "zero3",
            2.0,
            chunked_loss=0.0,
            source="DeepSpeed configuration docs",
        ),
        Stack(
            "maxtext",
            "MaxText (JAX)",
            2.0,
            True,
            "zero3",
            2.0,
            selective_gemm=0.0,
            selective_attention=1.0,
            selective_elementwise=1.0,
            lazy_recompute=1.0,
            recompute="full",
            source="MaxText remat policies",
        ),
        Stack(
            "internevo",
            "InternEvo",
            2.0,
            False,
            "zero1",
            2.0,
            broadcast_gather=1.0,
            source="InternEvo train_performance.md",
        ),
        Stack("megascale", "MegaScale", 2.0, True, "zero1", 2.0, source="Jiang et al. 2024"),
        Stack(
            "meta-4d",
            "Meta's 4D-parallel trainer (Llama 3)",
            2.0,
            True,
            "zero2",
            4.0,
            cp_type="all-gather",
            chunk_layers=1,
            source=(
                "Llama 3 Herd of Models, section 3.3: first and last chunk hold embedding "
                "and head alone"
            ),
        ),
        Stack(
            "hai-llm",
            "HAI-LLM (DeepSeek)",
            2.0,
            False,
            "zero1",
            4.0,
            dedup_dispatch=1.0,
            group_limit=4.0,
            ep_overlap=1.0,
            schedule="dualpipe",
            flash_hopper=3.0,
            recompute="selective",
            selective_gemm=0.09,
            selective_attention=0.0,
            selective_elementwise=1.0,
            source=(
                "DeepSeek-V3 report, section 3; 3.2.3 and 3.3.3: every RMSNorm, the MLA "
                "up-projections and the outputs of SwiGLU are repeated"
            ),
        ),
        Stack("gpt-neox", "GPT-NeoX", 2.0, False, "zero1", 2.0, source="GPT-NeoX read-me"),
        Stack("primus-rocm", "Primus (Megatron on ROCm)", 2.0, True, source="AMD Primus read-me"),
    )
}
GENERIC = Stack(
    "generic",
    "No stack named: fused kernels, sequence parallelism with tp, optimizer sharded",
    2.0,
    True,
    flash_hopper=3.0,
    mtp_layout_since=2026.0,
    dedup_planned=1.0,
    source="the common ground of Megatron-Core, torchtitan and MaxText",
)


def stack(name: str | None) -> Stack:
    """The stack of that name; the generic one where it is unknown or None."""
    return STACKS.get(name or "", GENERIC)


def canonical(name: str | None, family: str) -> str | None:
    """The stack whose code runs: Megatron-LM on Hopper and later is Megatron-Core, the old one
    predates those chips."""
    return "megatron-core" if name == "megatron-lm" and family in ("hopper", "blackwell") else name
