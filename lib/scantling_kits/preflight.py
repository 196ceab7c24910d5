"""What a node is asked before the first step, with the thresholds of the design: preflight.sh."""

from math import floor

from scantling.base.records import record
from scantling.base.units import MINUTE_S
from scantling_site.job_site import site_of
from scantling_site.scheduler.health import health_checks

from .launch_plan import LaunchPlan, known
from .render import render
from .run_guide import all_reduce

DIAGNOSIS_S = 2 * MINUTE_S  # dcgmi diag -r 2; -r 1 takes seconds (NVIDIA DCGM user guide)
DCGM_S = round(5 * DIAGNOSIS_S)  # after which a diagnosis hangs: judgement
REDUCE_S = round(10 * MINUTE_S)  # after which nccl-tests hang: judgement
ASKED_S = round(MINUTE_S)  # that the devices have to answer, or a folder to be summed: judgement
APART_S = round(15 * MINUTE_S)  # that nodes may come apart beside their checks: judgement
WORTH_DIAGNOSIS = 0.01  # share of the time between failures that a diagnosis may take: judgement
ACCEPTED = 0.9  # of the bus bandwidth that the step counts on: judgement
SMI = {"nvidia": "nvidia-smi", "amd": "rocm-smi"}
NODE_REDUCE = "all-reduce in the node, 16 GB"
CARD_RATE = "rate that each card negotiated"


@record
class Preflight:
    """Checks of a node and of the allocation."""

    name: str
    smi: str  # the vendor's command that asks the devices; "" without one
    nvidia: bool
    dcgm_level: int
    cards: int  # compute cards of a node; 0: none is asked
    card_gbits: int  # that each has to have negotiated
    node_gbytes_per_s: int  # bus bandwidth of an all-reduce inside a node; 0: not asked
    all_gbytes_per_s: int  # and over the whole allocation; 0: not asked
    devices: int
    room_gb: int  # that the copies kept take
    copies: int
    bucket: bool  # RUN_DIR may be one, which has no such limit
    asked_s: int = ASKED_S  # limits of the checks
    dcgm_s: int = DCGM_S
    reduce_s: int = REDUCE_S

    @property
    def others_s(self) -> int:
        """Seconds that all checks but DCGM's may take on one node, at most: three questions to the
        devices, the sum of RUN_DIR, an all-reduce."""
        return 4 * self.asked_s + self.reduce_s

    @property
    def apart_s(self) -> int:
        """Seconds that nodes may come apart, beside DCGM's diagnosis: whoever waits for the others
        waits longer than their checks may take."""
        return APART_S + self.others_s

    @property
    def checks(self) -> str:
        """What is asked, in the words of the file's head."""
        out = []
        if self.smi:
            out.append("devices")
        if self.nvidia:
            out += ["DCGM", "memory errors"]
        if self.cards:
            out.append("links")
        out.append("room for the copies kept")
        if self.node_gbytes_per_s or self.all_gbytes_per_s:
            out.append("all-reduce")
        return ", ".join(out)


def dcgm_level(mtbf_s: float) -> int:
    """Level of DCGM's diagnosis: 2, which takes two minutes, where that is below a hundredth of the
    time between failures; else 1."""
    return 2 if DIAGNOSIS_S < WORTH_DIAGNOSIS * mtbf_s else 1


def preflight(launch: LaunchPlan) -> Preflight:
    """The checks of a launch plan, with the blueprint's own thresholds."""
    thresholds = {
        check["check"]: check["threshold"] for check in health_checks(site_of(launch.assessment))
    }
    fabric = launch.network
    wired = launch.gpu and fabric is not None and fabric.transport == "verbs"
    whole = launch.per_node == launch.cluster.devices_per_node
    node = thresholds.get(NODE_REDUCE, 0.0) if launch.gpu and whole else 0.0
    everywhere = 0.0
    if launch.gpu and launch.nodes > 1:
        everywhere = ACCEPTED * all_reduce(launch, launch.devices)
    together = launch.keep + 1
    return Preflight(
        name=launch.name,
        smi=SMI.get(launch.chip, ""),
        nvidia=launch.chip == "nvidia",
        dcgm_level=dcgm_level(known(launch.figures.mtbf_s)),
        cards=int(launch.cluster.nics_per_node) if wired else 0,
        card_gbits=floor(thresholds.get(CARD_RATE, 0.0) * 8 / 1e9) if wired else 0,
        node_gbytes_per_s=floor(node / 1e9),
        all_gbytes_per_s=floor(everywhere / 1e9),
        devices=launch.devices,
        room_gb=floor(together * known(launch.figures.checkpoint_bytes) / 1e9),
        copies=together,
        bucket=launch.framework.runtime == "jax",
    )


def preflight_file(launch: LaunchPlan) -> dict[str, str]:
    """preflight.sh."""
    return {"preflight.sh": render("preflight.sh.j2", at=preflight(launch))}
