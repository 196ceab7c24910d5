"""A decoder-only transformer of the plan's dimensions in plain PyTorch: dense or mixture of
experts, grouped or latent attention.

Written for clarity; swap in your own as long as its blocks are listed in `model.blocks` and calling
it with (tokens, targets) returns the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

Shape = dict[str, Any]  # the model's dimensions, as plan.json has them
GATED = ("swiglu", "geglu")
# rotary base and norms, where the weights to start from say nothing else
BASE, EPSILON = 500000.0, 1e-5
PIECE = 2048  # tokens whose logits stand at one time


def activation(kind: str, x: torch.Tensor) -> torch.Tensor:
    if kind in ("geglu", "gelu"):
        return F.gelu(x, approximate="tanh")
    return (
        F.silu(x)
        if kind == "swiglu"
        else F.relu(x).square()
        if kind == "squared-relu"
        else F.relu(x)
    )


def norm(c: Shape, width: int) -> nn.Module:
    return (nn.LayerNorm if c["norm_bias"] else nn.RMSNorm)(width, eps=c.get("norm_eps", EPSILON))


def frequencies(c: Shape, half: int, device: torch.device) -> torch.Tensor:
    """Rotary frequencies; stretched as Llama 3.1 does where `rope_scaling` says so: slow ones
    divided by the factor, fast ones kept, a ramp between."""
    f = c.get("rope_base", BASE) ** (-torch.arange(half, device=device, dtype=torch.float32) / half)
    s = c.get("rope_scaling")
    if not s:
        return f
    turns = s["original_max_position_embeddings"] * f / (2 * math.pi)
    keep = ((turns - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])).clamp(
        0, 1
    )
    return f * keep + f / s["factor"] * (1 - keep)


def rotate(x: torch.Tensor, c: Shape) -> torch.Tensor:
    """Rotary positions on the last dimension of x (batch, heads, sequence, width), in fp32."""
    frequency = frequencies(c, x.shape[-1] // 2, x.device)
    angle = torch.outer(torch.arange(x.shape[-2], device=x.device, dtype=torch.float32), frequency)
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1).to(
        x.dtype
    )


class Attention(nn.Module):  # type: ignore[misc, unused-ignore]  # torch may not be there
    def __init__(self, c: Shape) -> None:
        super().__init__()
        self.c, self.latent = c, c["attention"] == "mla"
        h, n, k, d = c["hidden"], c["heads"], c["kv_heads"], c["head_dim"]
        if self.latent:
            wide = c["qk_nope"] + c["qk_rope"]
            if c["q_lora"]:
                self.q_down, self.q_norm = (
                    nn.Linear(h, c["q_lora"], bias=False),
                    norm(c, c["q_lora"]),
                )
            self.q = nn.Linear(c["q_lora"] or h, n * wide, bias=False)
            self.kv_down, self.kv_norm = (
                nn.Linear(h, c["kv_lora"] + c["qk_rope"], bias=False),
                norm(c, c["kv_lora"]),
            )
            self.kv = nn.Linear(c["kv_lora"], n * (c["qk_nope"] + c["v_head_dim"]), bias=False)
            self.out = nn.Linear(n * c["v_head_dim"], h, bias=False)
            return
        self.q, self.k, self.v = (nn.Linear(h, m * d, bias=c["qkv_bias"]) for m in (n, k, k))
        self.out = nn.Linear(n * d, h, bias=c["out_bias"])
        if c["qk_norm"] == "head":
            self.q_norm, self.k_norm = norm(c, d), norm(c, d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        c, (b, s, _) = self.c, x.shape
        if self.latent:
            q = self.q(self.q_norm(self.q_down(x))) if c["q_lora"] else self.q(x)
            q = q.view(b, s, c["heads"], -1).transpose(1, 2)
            low, shared = self.kv_down(x).split([c["kv_lora"], c["qk_rope"]], -1)
            k, v = (
                self.kv(self.kv_norm(low))
                .view(b, s, c["heads"], -1)
                .transpose(1, 2)
                .split([c["qk_nope"], c["v_head_dim"]], -1)
            )
            shared = rotate(shared.unsqueeze(1), c).expand(-1, c["heads"], -1, -1)
            q = torch.cat([q[..., : c["qk_nope"]], rotate(q[..., c["qk_nope"] :], c)], -1)
            k = torch.cat([k, shared], -1)
        else:
            q, k, v = (
                f(x).view(b, s, -1, c["head_dim"]).transpose(1, 2) for f in (self.q, self.k, self.v)
            )
            if c["qk_norm"] == "head":
                q, k = self.q_norm(q), self.k_norm(k)
            if not c["position_rows"]:
                q, k = rotate(q, c), rotate(k, c)

        def core(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            grouped = q.shape[1] != k.shape[1]
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)

        y = (
            checkpoint(core, q, k, v, use_reentrant=False)
            if c.get("recompute") == "selective" and self.training
            else core(q, k, v)
        )
        return self.out(y.transpose(1, 2).reshape(b, s, -1))


class MLP(nn.Module):  # type: ignore[misc, unused-ignore]  # torch may not be there
    def __init__(self, c: Shape, width: int) -> None:
        super().__init__()
        self.kind, h = c["mlp"], c["hidden"]
        if self.kind in GATED:
            self.gate = nn.Linear(h, width, bias=c["mlp_bias"])
        self.up, self.down = (
            nn.Linear(h, width, bias=c["mlp_bias"]),
            nn.Linear(width, h, bias=c["mlp_bias"]),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(
            activation(self.kind, self.gate(x)) * self.up(x)
            if self.kind in GATED
            else activation(self.kind, self.up(x))
        )


class Experts(nn.Module):  # type: ignore[misc, unused-ignore]  # torch may not be there
    """Token-choice top-k experts: tokens sorted by expert, then one grouped product for each of
    the weights. Gives its output and the load-balancing loss of Switch Transformers."""

    def __init__(self, c: Shape) -> None:
        super().__init__()
        self.c, n, h, f = c, c["experts"], c["hidden"], c["expert_ffn_hidden"]
        self.router = nn.Linear(h, n, bias=False)
        if c["mlp"] in GATED:
            self.gate = nn.Parameter(torch.empty(n, h, f))
        self.up, self.down = nn.Parameter(torch.empty(n, h, f)), nn.Parameter(torch.empty(n, f, h))
        self.shared = MLP(c, c["shared_ffn_hidden"]) if c["shared_ffn_hidden"] else None

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        c, flat = self.c, x.reshape(-1, x.shape[-1])
        share = self.router(flat).float().softmax(-1)
        weight, chosen = share.topk(c["top_k"], -1)
        weight = weight / weight.sum(-1, keepdim=True)
        used = torch.histc(chosen.float(), c["experts"], 0, c["experts"])
        balance = c["experts"] * (used / used.sum() * share.mean(0)).sum()
        order = chosen.flatten().argsort(stable=True)
        row, ends = order // c["top_k"], used.int().cumsum(0, dtype=torch.int32)
        device = x.device.type  # autocast knows no grouped products
        narrow = torch.is_autocast_enabled(device)
        dtype = torch.get_autocast_dtype(device) if narrow else x.dtype

        def product(y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return F.grouped_mm(y, w.to(dtype), offs=ends)

        y = flat.to(dtype)[row]
        up = product(y, self.up)
        y = (
            activation(c["mlp"], product(y, self.gate)) * up
            if c["mlp"] in GATED
            else activation(c["mlp"], up)
        )
        y = product(y, self.down) * weight.flatten()[order, None]
        out = self.shared(flat) if self.shared is not None else torch.zeros_like(flat)
        return out.index_add(0, row, y.to(out.dtype)).view_as(x), balance


class Block(nn.Module):  # type: ignore[misc, unused-ignore]  # torch may not be there
    def __init__(self, c: Shape, layer: int) -> None:
        super().__init__()
        step = c["layers"] // max(c["moe_layers"], 1)
        routed = c["moe_layers"] and (
            layer % step == step - 1
            if c["moe_layout"] == "interleaved"
            else layer >= c["layers"] - c["moe_layers"]
        )
        self.attention_norm, self.attention = norm(c, c["hidden"]), Attention(c)
        self.mlp_norm, self.mlp = (
            norm(c, c["hidden"]),
            Experts(c) if routed else MLP(c, c["ffn_hidden"]),
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        x = x + self.attention(self.attention_norm(x))
        y, balance = self.mlp(self.mlp_norm(x)), None
        if isinstance(y, tuple):
            y, balance = y
        return x + y, balance


class Transformer(nn.Module):  # type: ignore[misc, unused-ignore]  # torch may not be there
    def __init__(self, c: Shape) -> None:
        super().__init__()
        self.c = c
        self.embedding = nn.Embedding(c["vocab"], c["hidden"])
        self.positions = (
            nn.Embedding(c["position_rows"], c["hidden"]) if c["position_rows"] else None
        )
        self.blocks = nn.ModuleList(Block(c, i) for i in range(c["layers"]))
        self.norm = norm(c, c["hidden"]) if c["final_norm"] else nn.Identity()
        self.head = (
            None
            if c["tied_embeddings"]
            else nn.Linear(c["hidden"], c["vocab"], bias=c["head_bias"])
        )

    def start(
        self,
        seed: int,
        gathered: Callable[[torch.Tensor], AbstractContextManager[Any]] = lambda p: nullcontext(),
    ) -> Transformer:
        """Weights from the seed alone, the same on every rank: normal, 0.02, narrower where a block
        writes into the residual stream.

        gathered: context in which a parameter that is kept in parts is whole; one parameter at a
        time, so that the model never is.
        """
        g = torch.Generator(device=next(self.parameters()).device).manual_seed(seed)
        for name, p in self.named_parameters():
            with torch.no_grad(), gathered(p):
                if p.dim() == 1:
                    p.fill_(0.0 if name.endswith("bias") else 1.0)
                    continue
                into = name.endswith(("out.weight", "down.weight", "mlp.down"))
                whole = torch.empty(p.shape, device=p.device, dtype=p.dtype)
                whole.normal_(
                    0.0, 0.02 / math.sqrt(2 * self.c["layers"]) if into else 0.02, generator=g
                )
                if hasattr(p, "device_mesh"):
                    from torch.distributed.tensor import distribute_tensor

                    whole = distribute_tensor(
                        whole, p.device_mesh, p.placements, src_data_rank=None
                    )
                p.copy_(whole)
        return self

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        extra = 0.0
        for block in self.blocks:
            x, balance = block(x)
            extra = extra if balance is None else extra + balance
        x = self.norm(x)
        return self.loss(x.flatten(0, 1), targets.flatten()) + 0.01 * extra

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.embedding.weight) if self.head is None else self.head(x)

    def loss(self, x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy; in pieces, each repeated in the backward pass, where the logits of
        all tokens would be large."""

        def part(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(self.logits(x).float(), t, reduction="sum")

        if len(x) <= PIECE:
            return part(x, targets) / len(x)
        return sum(
            checkpoint(part, a, b, use_reentrant=False)
            for a, b in zip(x.split(PIECE), targets.split(PIECE))
        ) / len(x)
