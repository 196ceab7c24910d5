from .endurance import implied_restart_min
from .forms import layer_activations, state_bytes
from .kernels import alone_bytes_per_s, bus_bytes_per_s, gemm_share

__all__ = [
    "alone_bytes_per_s",
    "bus_bytes_per_s",
    "gemm_share",
    "implied_restart_min",
    "layer_activations",
    "state_bytes",
]
