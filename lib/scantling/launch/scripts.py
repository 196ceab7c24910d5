"""launch.sh (what every node runs) and what a scheduler wraps around it: job.sbatch, jobset.yaml."""
from __future__ import annotations

import math
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from ..errors import plain
from .quote import comment, js, md, py, sh, slug

DAY_S = 86400


@cache
def templates() -> Environment:
    """The kit's templates; every value from a design goes through one of the quoting filters."""
    env = Environment(loader=PackageLoader(__package__, "templates"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False)    # noqa: S701
    env.filters |= dict(sh=sh, js=js, py=py, comment=comment, md=md, slug=slug, line=lambda text: plain(str(text), 2000))
    return env


def render(name: str, **values) -> str:
    """One template as text."""
    return templates().get_template(name).render(**values)


def wall_text(seconds: float) -> str:
    """D-HH:MM:SS."""
    minutes = max(1, math.ceil(seconds / 60))
    return f"{minutes // 1440}-{minutes // 60 % 24:02d}:{minutes % 60:02d}:00"


def scripts(launch, module, kit) -> dict[str, str]:
    """env.sh and launch.sh, and the scheduler's own file."""
    restarts = max(3, math.ceil((kit["wall_s"] or 30 * DAY_S) / max(launch.figures["mtbf_s"], 1.0) * 2))
    values = dict(launch=launch, kit=kit, launcher=module.LAUNCHER, command=module.command(launch), restarts=min(restarts, 1000),
                  prepare=getattr(module, "prepare", lambda _: "")(launch), plugin=PLUGIN.get(launch.chip, "nvidia.com/gpu"))
    out = {"env.sh": render("env.sh.j2", **values), "launch.sh": render("launch.sh.j2", **values)}
    if launch.on == "slurm":
        limit = min((kit["wall_s"] or 7 * DAY_S) * 1.1, 7 * DAY_S)
        pod = launch.cluster.pod_devices or 0
        switches = math.ceil(launch.devices / pod) if pod and launch.nodes > 1 else 0
        block = launch.cluster.scale_up_domain // launch.cluster.devices_per_node if launch.cluster.scale_up_domain > launch.cluster.devices_per_node else 0
        out["job.sbatch"] = render("job.sbatch.j2", **values, wall=wall_text(limit), switches=switches, block=block if block and launch.nodes % block == 0 else 0,
                                   links=math.ceil((kit["wall_s"] or 0) * 1.1 / (7 * DAY_S)))
    if launch.on == "kubernetes":
        out["jobset.yaml"] = render("jobset.yaml.j2", **values, files=sorted(kit["names"]))
    return out


PLUGIN = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "tpu": "google.com/tpu"}
