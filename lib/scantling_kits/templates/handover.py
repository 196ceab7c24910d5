"""Weights in and out as safetensors: python handover.py CHECKPOINT FOLDER writes a checkpoint for
other programs; INIT=FOLDER starts a run from one.

Llama, Qwen2, Qwen3 and Mixtral shapes have the names and the config.json of their Hugging Face
classes; any other shape keeps the names of model.py.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

Shape = dict[str, Any]  # the model's dimensions, as plan.json has them
Tensors = Callable[[str], torch.Tensor]  # by the name in the file
HERE = Path(__file__).parent
PARTS = {
    "attention_norm": "input_layernorm",
    "mlp_norm": "post_attention_layernorm",
    "attention.q": "self_attn.q_proj",
    "attention.k": "self_attn.k_proj",
    "attention.v": "self_attn.v_proj",
    "attention.out": "self_attn.o_proj",
    "attention.q_norm": "self_attn.q_norm",
    "attention.k_norm": "self_attn.k_norm",
    "mlp.gate": "mlp.gate_proj",
    "mlp.up": "mlp.up_proj",
    "mlp.down": "mlp.down_proj",
    "mlp.router": "block_sparse_moe.gate",
}
EXPERT = {"gate": "w1", "down": "w2", "up": "w3"}


def family(c: Shape) -> str | None:
    """The Hugging Face class of this shape, or None."""
    plain = (
        c["mlp"] == "swiglu"
        and c["attention"] != "mla"
        and not (
            c["norm_bias"]
            or c["position_rows"]
            or c["out_bias"]
            or c["mlp_bias"]
            or c["head_bias"]
            or c["shared_ffn_hidden"]
        )
    )
    if not plain or not c["final_norm"]:
        return None
    if c["experts"]:
        return (
            "Mixtral"
            if c["moe_layers"] == c["layers"] and not (c["qk_norm"] or c["qkv_bias"])
            else None
        )
    return {("", False): "Llama", ("", True): "Qwen2", ("head", False): "Qwen3"}.get(
        (c["qk_norm"], c["qkv_bias"])
    )


def outside(name: str, c: Shape) -> list[tuple[str, int | None]]:
    """[(name in the file, how to slice it out of this parameter)] of a parameter of model.py:
    experts are one file tensor each, turned round."""
    if family(c) is None:
        return [(name, None)]
    if not name.startswith("blocks."):
        return [
            (
                {
                    "embedding.weight": "model.embed_tokens.weight",
                    "norm.weight": "model.norm.weight",
                    "head.weight": "lm_head.weight",
                }[name],
                None,
            )
        ]
    _, i, part = name.split(".", 2)
    if c["experts"] and part in ("mlp.gate", "mlp.up", "mlp.down"):
        return [
            (f"model.layers.{i}.block_sparse_moe.experts.{e}.{EXPERT[part[4:]]}.weight", e)
            for e in range(c["experts"])
        ]
    stem, kind = part.rsplit(".", 1)
    return [(f"model.layers.{i}.{PARTS[stem]}.{kind}", None)]


def config(c: Shape, seq_len: int) -> dict[str, Any]:
    """config.json of the family."""
    kind = family(c) or ""
    rope = {"rope_theta": c.get("rope_base", 500000.0)} | (
        {"rope_scaling": c["rope_scaling"]} if c.get("rope_scaling") else {}
    )
    out = dict(
        architectures=[f"{kind}ForCausalLM"],
        model_type=kind.lower(),
        hidden_size=c["hidden"],
        intermediate_size=c["expert_ffn_hidden"] or c["ffn_hidden"],
        num_hidden_layers=c["layers"],
        num_attention_heads=c["heads"],
        num_key_value_heads=c["kv_heads"],
        head_dim=c["head_dim"],
        vocab_size=c["vocab"],
        tie_word_embeddings=c["tied_embeddings"],
        hidden_act="silu",
        rms_norm_eps=c.get("norm_eps", 1e-5),
        max_position_embeddings=seq_len,
        dtype="bfloat16",
        **rope,
    )
    return out | (
        dict(num_local_experts=c["experts"], num_experts_per_tok=c["top_k"]) if c["experts"] else {}
    )


def settled(c: Shape) -> Shape:
    """The shape with rotary base, its stretching and the norms' epsilon from INIT's config.json,
    where there is one."""
    file = Path(os.environ.get("INIT", HERE / "none")) / "config.json"
    if not file.is_file():
        return c
    given = json.loads(file.read_text())
    same = dict(
        hidden="hidden_size",
        layers="num_hidden_layers",
        heads="num_attention_heads",
        vocab="vocab_size",
    )
    wrong = {k: (given[v], c[k]) for k, v in same.items() if v in given and given[v] != c[k]}
    if wrong:
        sys.exit(f"INIT holds another model: {wrong} (in {file}, in the plan)")
    rope = dict(given.get("rope_parameters") or given.get("rope_scaling") or {})
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in ("default", "llama3"):
        sys.exit(
            f"INIT stretches its rotary positions by {kind}, which model.py does not: "
            f"put that into model.frequencies"
        )
    out = dict(
        c,
        rope_base=float(rope.get("rope_theta", given.get("rope_theta", 10000.0))),
        norm_eps=given.get("rms_norm_eps", 1e-5),
    )
    return out | ({"rope_scaling": rope} if kind == "llama3" else {})


def reader(folder: str | Path) -> tuple[Iterable[str], Tensors]:
    """name -> tensor, over all safetensors of a folder."""
    from safetensors import safe_open

    files = [safe_open(str(f), "pt") for f in sorted(Path(folder).glob("*.safetensors"))]
    where = {name: f for f in files for name in f.keys()}
    if not where:
        sys.exit(f"no safetensors in {folder}")
    return where.keys(), lambda name: where[name].get_tensor(name)


def begin(
    model: Any,
    seed: int,
    gathered: Callable[[torch.Tensor], AbstractContextManager[Any]] = lambda p: nullcontext(),
) -> Any:
    """Weights from INIT where it is set, each rank its own part; else from the seed. gathered: as
    in Transformer.start."""
    if not os.environ.get("INIT"):
        return model.start(seed, gathered)
    from torch.distributed.tensor import distribute_tensor

    names, tensor = reader(os.environ["INIT"])
    for name, p in model.named_parameters():
        rows = outside(name.replace("_checkpoint_wrapped_module.", ""), model.c)
        lost = [row for row, _ in rows if row not in names]
        if lost:
            sys.exit(f"INIT has no {lost[0]}, which {name} comes from")
        whole = (
            tensor(rows[0][0])
            if rows[0][1] is None
            else torch.stack([tensor(row).T for row, _ in rows])
        )
        with torch.no_grad(), gathered(p):
            if whole.shape != p.shape:
                sys.exit(
                    f"INIT has {rows[0][0]} as {tuple(whole.shape)}, the plan as {tuple(p.shape)}"
                )
            whole = whole.to(p.dtype).to(p.device)
            p.copy_(
                distribute_tensor(whole, p.device_mesh, p.placements, src_data_rank=None)
                if hasattr(p, "device_mesh")
                else whole
            )
    return model


def weights(source: str | Path) -> dict[str, torch.Tensor]:
    """name of model.py -> tensor, of a checkpoint folder of the trainer (weights alone are read) or
    of safetensors with model.py's names."""
    source = Path(source)
    if not (source / ".metadata").is_file():
        names, tensor = reader(source)
        return {n.replace("_checkpoint_wrapped_module.", ""): tensor(n) for n in names}
    import torch.distributed.checkpoint as dcp

    kept = dcp.FileSystemReader(source)
    found = {
        k: torch.empty(v.size, dtype=v.properties.dtype)
        for k, v in kept.read_metadata().state_dict_metadata.items()
        if k.startswith("state.model.")
    }
    dcp.load(found, storage_reader=kept, no_dist=True)
    return {k.removeprefix("state.model."): v for k, v in found.items()}


def main(source: str, folder: str | Path) -> None:
    from safetensors.torch import save_file

    spec = json.loads((HERE / "plan.json").read_text())
    c, out = settled(spec["shape"]), {}
    for name, t in weights(source).items():
        for to, e in outside(name, c):
            out[to] = (t if e is None else t[e].T).to(torch.bfloat16).contiguous()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(out, str(folder / "model.safetensors"), metadata={"format": "pt"})
    if family(c):
        (folder / "config.json").write_text(json.dumps(config(c, spec["seq_len"]), indent=1) + "\n")
    print(f"{len(out)} tensors as {family(c) or 'model.py'} names them, in {folder}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
