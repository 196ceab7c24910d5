"""Software stacks: what each does unless a design or a published row says otherwise.

A stack is named the way `published_runs.csv` names it. The switches are facts about the code (its read-me, paper or defaults);
the speeds that go with a stack are fitted and live in catalogue/calibration.json.
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stack:
    """Defaults of one software stack; switches as in cases.Software."""

    name: str
    title: str
    flash: float = 2.0
    sequence_parallel: bool = False     # with tp > 1
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
    broadcast_gather: float = 0.0
    group_limit: float = 0.0
    ep_overlap: float = 0.0
    grad_all_reduce: float = 0.0
    schedule: str = ""                  # pipeline schedule where none is printed
    cp_type: str = ""
    chunk_layers: int = 0               # layers of one virtual stage where vpp is not printed; 0 = not interleaved
    activation: float = 1.0             # saved activations relative to a fused stack
    source: str = ""


STACKS = {s.name: s for s in (
    Stack("megatron-core", "Megatron-LM (core) and NeMo", 3.0, True, source="Megatron-LM arguments.py defaults; NeMo performance recipes"),
    Stack("megatron-lm", "Megatron-LM before Megatron-Core", 0.0, False, "none", 2.0, dp_overlap=0.0, source="Narayanan et al. 2021"),
    Stack("megatron-deepspeed", "Megatron-DeepSpeed", 0.0, False, "zero1", 2.0, dp_overlap=0.0, source="BigScience tr11 chronicles; Smith et al. 2022"),
    Stack("zero-bubble", "Megatron-LM with zero-bubble schedules", 0.0, False, "none", 2.0, dp_overlap=0.0, source="Qi et al. 2023"),
    Stack("aleph-alpha-scaling", "Aleph Alpha scaling", 2.0, False, "zero1", 2.0, fused_norm=0.0, grad_all_reduce=1.0, dp_overlap=0.0, tp_overlap=-1.0, source="Hagemann et al. 2024"),
    Stack("pytorch-fsdp", "PyTorch FSDP (llm-foundry, Composer)", 1.0, False, "zero3", 2.0, source="llm-foundry benchmarking read-me"),
    Stack("torchtitan", "torchtitan (FSDP2)", 2.0, True, "zero3", 4.0, tp_overlap=-1.0, selective_gemm=0.45, selective_attention=0.0, selective_elementwise=0.5,
          source="torchtitan train configs; per-op selective checkpointing"),
    Stack("deepspeed", "DeepSpeed ZeRO", 2.0, False, "zero3", 2.0, chunked_loss=0.0, source="DeepSpeed configuration docs"),
    Stack("maxtext", "MaxText (JAX)", 2.0, True, "zero3", 2.0, selective_gemm=0.45, selective_attention=1.0, selective_elementwise=0.5,
          source="MaxText remat policies"),
    Stack("internevo", "InternEvo", 2.0, False, "zero1", 2.0, broadcast_gather=1.0, source="InternEvo train_performance.md"),
    Stack("megascale", "MegaScale", 2.0, True, "zero1", 2.0, source="Jiang et al. 2024"),
    Stack("meta-4d", "Meta's 4D-parallel trainer (Llama 3)", 2.0, True, "zero2", 4.0, cp_type="all-gather", chunk_layers=1, source="Llama 3 Herd of Models, section 3.3: first and last chunk hold embedding and head alone"),
    Stack("hai-llm", "HAI-LLM (DeepSeek)", 3.0, False, "zero1", 4.0, dedup_dispatch=1.0, group_limit=4.0, ep_overlap=1.0, schedule="dualpipe", source="DeepSeek-V3 report, section 3"),
    Stack("gpt-neox", "GPT-NeoX", 2.0, False, "zero1", 2.0, source="GPT-NeoX read-me"),
    Stack("primus-rocm", "Primus (Megatron on ROCm)", 2.0, True, source="AMD Primus read-me"),
)}
GENERIC = Stack("generic", "No stack named: fused kernels, sequence parallelism with tp, optimizer sharded", 2.0, True,
                source="the common ground of Megatron-Core, torchtitan and MaxText")


def stack(name: str | None) -> Stack:
    """The stack of that name; the generic one where it is unknown or None."""
    return STACKS.get(name or "", GENERIC)
