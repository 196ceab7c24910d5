"""671B for the price of 37B? A sparse model on 2,048 devices: what the experts save, what they
send, and what the saving costs."""

# ---- memory


def held(parts, total, pp, /, ep, bytes_per_param=6):
    """Weights and fp32 gradients on a device of an average stage."""
    routed = parts.routed_experts
    return ((total - routed) / pp + routed / pp / ep) * bytes_per_param


def least_ep(held, half, /, bytes_per_param=6):
    return next(ep for ep in (1, 2, 4, 8, 16, 32, 64, 128, 256) if held(ep, bytes_per_param) < half)


# ---- the rack-scale machine


def by_ep(node_by_ep, rack_by_ep):
    """{machine: {ep: assessment}}, bf16 on both so that the chips' formats play no part."""
    return {"h800-sxm": node_by_ep, "gb200-nvl72": rack_by_ep}


def rack_answer(rack_share, node_share):
    return "a" if rack_share < 0.9 * node_share else "b"
