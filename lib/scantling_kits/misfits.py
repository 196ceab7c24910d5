"""What of a plan a framework has no words for, and the refusals where nothing stands in for it."""

from collections.abc import Iterable, Iterator

from scantling.base.errors import DesignError
from scantling.base.show import span
from scantling.catalogue.families import families
from scantling.catalogue.models.patterns import layers_of
from scantling.catalogue.models.shape import Model
from scantling.catalogue.words import Sharding
from scantling.physics.software import OWN_ZERO1

from .frameworks import FRAMEWORKS
from .launch_plan import Framework, Gap, LaunchPlan

STALL = "reliability.checkpoint_stall_s"
PLAIN = {"attn", "mlp", "moe"}  # blocks of models without a pattern


def in_words(gaps: Iterable[Gap]) -> str:
    """Gaps in one line."""
    return "; ".join(f"{g.field} {g.value}: {g.why}" for g in gaps)


class Inexpressible(DesignError):
    """No plan that the framework can express meets what the design asks for: the gaps, and why the
    nearest plan does not do."""

    def __init__(self, to: str, gaps: Iterable[Gap], why: str) -> None:
        self.to = to
        self.gaps = tuple(gaps)
        self.why = why
        lacks = in_words(self.gaps)
        super().__init__(
            problem=f"{to} cannot express the plan ({lacks}), and no plan that it can express will "
            f"do: {why}"
        )


def misfits(launch: LaunchPlan) -> list[Gap]:
    """What of the plan is outside the framework's domain, and what else it lacks."""
    plan = launch.plan.as_dict() | {"optimizer": launch.phase.optimizer}
    unused = {"schedule": launch.plan.pp == 1, "cp_type": launch.plan.cp == 1}
    outside = [
        Gap(name, plan[name], domain.why)
        for name, domain in launch.framework.domain.items()
        if plan[name] not in domain.values and not unused.get(name)
    ]
    return outside + lacking(launch)


def hard_gaps(launch: LaunchPlan) -> list[Gap]:
    """Those that nothing stands in for."""
    return [gap for gap in misfits(launch) if gap.instead is None]


def lacking(launch: LaunchPlan) -> list[Gap]:
    """What else of model and plan the framework lacks."""
    modules = set(launch.plan.recompute_modules) - {"layers"} - launch.framework.modules.keys()
    out = [*launch.framework.gaps(launch)]
    if modules:
        why = "it has no words for repeating these modules alone"
        out.append(Gap("recompute_modules", ", ".join(sorted(modules)), why))
    if launch.repeats_operations and not launch.framework.selects_operations:
        why = "its `selective` repeats modules by name, the plan all operations but those of a list"
        out.append(Gap("recompute", launch.plan.recompute, why))
    return [*out, *waited_for(launch), *apart_from_the_rest(launch), *activations_away(launch)]


def waited_for(launch: LaunchPlan) -> Iterator[Gap]:
    """Saves that go on behind training, where the framework writes none so."""
    at = launch.survival
    if not launch.framework.saves_in_background and at.durable_s:
        why = "training waits until the files of a save are written"
        yield Gap(STALL, span(at.stall_s), why, span(at.waited_s))


def apart_from_the_rest(launch: LaunchPlan) -> Iterator[Gap]:
    """Layers in 16 bit, and experts sharded their own way, that it has no words for."""
    kept, p = launch.phase.kept_16bit, launch.plan
    if kept and any(kept) and not launch.framework.keeps_16bit:
        why = "layers that stay in 16 bit are not written into this kit"
        yield Gap("keep_16bit", f"first {kept[0]}, last {kept[1]}", why)
    own = launch.does.whole_experts == OWN_ZERO1 and launch.model.is_moe and p.ep > 1
    if own and p.sharding in (Sharding.ZERO3, Sharding.HSDP):
        why = "its experts are sharded as the rest is"
        yield Gap("expert_sharding", Sharding.ZERO1.value, why)


def activations_away(launch: LaunchPlan) -> list[Gap]:
    """What of activations that wait in host memory, or of MaxText's policies, it has no words
    for."""
    phase, words = launch.phase, launch.framework.offloads
    if phase.remat:
        if words:
            return []
        why = "policies of recompute by name are MaxText's"
        return [Gap("remat", phase.remat, why)]
    if phase.memory_budget is not None:
        why = "the compiler's memory budget is not written into this kit"
        return [Gap("compile_memory_budget", f"{phase.memory_budget:g}", why)]
    if not phase.offloaded_layers:
        return []
    named = ", ".join(phase.offloaded_modules) or "all that is kept"
    lacks = [name for name in phase.offloaded_modules if name not in words]
    if not words:
        why = "activations in host memory are not written into this kit"
    elif lacks or not phase.offloaded_modules:
        why = f"it names what leaves, of {', '.join(words)}"
    elif phase.offloaded_layers < launch.model.layers:
        why = "what leaves, leaves in every layer"
    else:
        return []
    return [Gap("activation_offload", named, why)]


def unbuilt(framework: Framework, model: Model) -> list[str]:
    """What of the blocks of a model's layers, and of how they stand, the framework's kit has no
    words for."""
    layers = layers_of(model.pattern)
    words = {word for layer in layers for word in layer}
    unknown = words - framework.blocks.keys()
    out = sorted(unknown - PLAIN or unknown)
    if "|" in model.pattern:
        out.append("blocks side by side")
    if ">" in model.pattern:
        out.append("weights that several layers share")
    if len({len(layer) for layer in layers}) > 1:
        out.append("layers with unlike numbers of blocks")
    if "mla_dsa" in words and {"attn", "gdn"} & words:
        out.append("an indexer in some of the attention")
    if model.mixers:
        out.append(model.mixers)
    return out


def refuse_chip(launch: LaunchPlan) -> None:
    """Raises Inexpressible where the framework does not run on the accelerator."""
    framework = launch.framework
    if launch.chip in framework.chips:
        return
    chip = launch.cluster.accelerator.name
    stacks = families().values()
    devices = dict.fromkeys(f.devices for f in stacks if f.vendor_stack in framework.chips)
    why = f"{framework.package} as written here runs on {' and '.join(devices)}"
    able = [f.id for f in FRAMEWORKS.values() if launch.chip in f.chips]
    other = f"; --to {able[0]} is for it" if able else ", for which no kit is written"
    gap = Gap("cluster.accelerator", chip, why)
    raise Inexpressible(framework.id, [gap], f"the plan is for {chip}{other}")


def refuse_blocks(launch: LaunchPlan) -> None:
    """Raises Inexpressible where the framework's kit does not build the model's blocks."""
    lacks = unbuilt(launch.framework, launch.model)
    if not lacks:
        return
    able = {f.id: unbuilt(f, launch.model) for f in FRAMEWORKS.values() if launch.chip in f.chips}
    near = min(able, key=lambda to: len(able[to]))
    gap = Gap("model.pattern", ", ".join(lacks), "its kit builds no such layers")
    advice = f"--to {near} does"
    if able[near]:
        advice = f"no kit does, --to {near} all but {', '.join(able[near])}"
    raise Inexpressible(launch.to, [gap], advice)


def refuse_packing(launch: LaunchPlan) -> None:
    """Raises Inexpressible where attention would cross the documents packed into a sequence."""
    packed = launch.phase.software.get("document_tokens")
    if packed and launch.chip not in launch.framework.packs:
        gap = Gap("job.document_tokens", int(packed), "its attention runs over the whole sequence")
        raise Inexpressible(launch.to, [gap], "leave it out; --to maxtext has it on TPUs")


def refuse_sites(launch: LaunchPlan) -> None:
    """Raises Inexpressible where a kit cannot run on the sites of the design as it says: no word
    for local steps, sites of several sizes, one scheduler for all."""
    kind = launch.sync
    if not kind:
        return
    if kind not in launch.framework.syncs:
        able = [f.id for f in FRAMEWORKS.values() if kind in f.syncs and launch.chip in f.chips]
        others = f"--to {' or '.join(able)} does, or " if able else ""
        gap = Gap("job.sync.kind", kind, launch.framework.no_local_steps)
        raise Inexpressible(launch.to, [gap], f"{others}set job.sync.kind to synchronous")
    sizes = launch.cluster.by_site
    if len(set(sizes)) > 1 or sizes[0] % launch.per_node:
        gap = Gap("cluster.sites", sizes, "ranks are shared out evenly")
        raise Inexpressible(launch.to, [gap], "give every site as many whole nodes")
    if launch.on != "torchrun":
        gap = Gap("--on", launch.on, "each site has a scheduler of its own")
        advice = "write it --on torchrun, which each of them starts with its own NODE_RANKs"
        raise Inexpressible(launch.to, [gap], advice)
