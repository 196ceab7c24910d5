"""python judge_handover.py KIT: weights out of a kit's checkpoint and back, held against
transformers' own classes; prints one JSON line."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

TOKENS = torch.randint(0, 64, (2, 32), generator=torch.Generator().manual_seed(1))
SMALL = dict(layers=2, hidden=64, ffn_hidden=96, heads=4, kv_heads=2, head_dim=16, vocab=64)
STRETCH = dict(
    rope_type="llama3",
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=16,
)
KINDS = {
    "Llama": {},
    "Llama stretched": dict(rope_base=10000.0, rope_scaling=STRETCH),
    "Qwen3": dict(qk_norm="head"),
    "Qwen2": dict(qkv_bias=True),
    "Mixtral": dict(experts=4, top_k=2, expert_ffn_hidden=96, moe_layers=2),
}


def logits(model, tokens):
    """What model.py gives where transformers gives .logits."""
    seen = []
    keep = model.logits
    model.logits = lambda x: seen.append(keep(x)) or seen[-1]
    model(tokens, tokens)
    return seen[0].view(*tokens.shape, -1)


@torch.no_grad()
def compare(model, folder, handover, transformer):
    """(largest difference of the logits, largest difference of the weights that INIT brings
    back)."""
    other = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="sdpa"
    ).eval()
    os.environ["INIT"] = str(folder)
    again = handover.begin(transformer(handover.settled(dict(model.c, rope_scaling=None))), 0)
    tokens = TOKENS % model.c["vocab"]
    worst = max(
        (a - b.to(torch.bfloat16).float()).abs().max().item()
        for a, b in zip(again.parameters(), model.parameters())
    )
    return dict(
        logits=(logits(again, tokens) - other(tokens).logits).abs().max().item(), back=worst
    )


def main(kit):
    kit = Path(kit)
    run = kit / "run"
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    environment = os.environ | {
        "MASTER_PORT": str(port),
        "RUN_ID": "handover",
        "RUN_DIR": str(run),
        "MOCK_DATA": "1",
        "STEPS": "3",
        "SAVE_STEPS": "3",
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    subprocess.run(
        ["bash", str(kit / "launch.sh")], env=environment, check=True, capture_output=True
    )
    subprocess.run(
        [
            sys.executable,
            str(kit / "handover.py"),
            str(next((run / "checkpoints").glob("step-*3"))),
            str(kit / "out"),
        ],
        check=True,
        capture_output=True,
    )
    sys.path.insert(0, str(kit))
    import handover
    import model as made
    from safetensors.torch import save_file

    shape = json.loads((kit / "plan.json").read_text())["shape"]
    found = {}
    trained = made.Transformer(shape)
    kept = handover.weights(next((run / "checkpoints").glob("step-*3")))
    trained.load_state_dict(kept)
    found["trained Llama"] = compare(trained, kit / "out", handover, made.Transformer)
    for name, more in KINDS.items():
        model = made.Transformer(shape | SMALL | more).start(3)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.02 * torch.randn_like(p)) if p.dim() == 1 else None
        out = {
            to: (t if e is None else t[e].T).to(torch.bfloat16).contiguous()
            for n, t in model.named_parameters()
            for to, e in handover.outside(n, model.c)
        }
        folder = kit / name.replace(" ", "-")
        folder.mkdir()
        save_file(
            {k: v.detach() for k, v in out.items()},
            str(folder / "model.safetensors"),
            metadata={"format": "pt"},
        )
        (folder / "config.json").write_text(json.dumps(handover.config(model.c, 64)))
        found[name] = compare(model, folder, handover, made.Transformer)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
