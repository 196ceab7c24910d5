"""The rows of the table of quantities; see quantities.py."""
from __future__ import annotations

from .quantities import Quantity

_SC21 = "Narayanan et al. 2021, arXiv 2104.04473"
_PALM = "Chowdhery et al. 2022, arXiv 2204.02311, appendix B"
_KOR = "Korthikanti et al. 2022, arXiv 2205.05198"
_ZERO = "Rajbhandari et al. 2020, arXiv 1910.02054"
_DALY = "Daly 2006, doi:10.1016/j.future.2004.11.016"
_FLASH = "Dao 2023, arXiv 2307.08691, section 3.1"
_GOODPUT = "ML Goodput Measurement (Google Cloud)"


def q(key, label, kind, unit, formula, inputs="", source="", convention="", function=""):
    return Quantity(key, label, kind, unit, formula, tuple(inputs.split()), source, convention, function)


HEAD = (
    q("name", "Design", "text", "", "as given, else model, device count and accelerator", "name model cluster"),
    q("verdict", "Verdict", "text", "", "feasible: a plan fits and every constraint holds; constraint-missed: a plan fits, a constraint does not hold, or the pinned plan "
      "does not fit while another would; impossible: no plan fits, offload included", "memory_bytes constraints"),
    q("error", "Refusal", "text", "", "only when impossible: no plan can hold the model's state", "memory_bytes"),
    q("devices_used", "Devices used", "count", "devices", "tp x pp x cp x dp", "plan", _SC21, "ep multiplies nothing: it divides dp x cp x tp / etp"),
    q("params", "Parameters", "params", "parameters", "embedding + head + layers x (attention + MLP + norms), tied weights once", "model", "",
      "MTP modules apart (mtp_params), as the transformers library counts; checkpoint files may hold more", "describe.model.parameters"),
    q("active_params", "Active parameters", "params", "parameters", "params - MoE layers x (experts - top_k) x parameters of an expert", "model params", "",
      "embedding and head are in; some publishers leave the embedding out", "describe.model.parameters"),
    q("mtp_params", "MTP parameters", "params", "parameters", "MTP modules x (one layer + 2 h^2 + norms)", "model", "DeepSeek-V3, arXiv 2412.19437, section 2.2",
      "shared embedding and head not counted twice", "describe.model.parameters"),
    q("flops_per_token", "Model FLOP per token", "flop", "FLOP", "3 x forward = 6 x weights in matrix products + 6 x layers x seq_len x heads x (query + value width)",
      "model seq_len", _PALM, "full (non-causal) attention, output head in, embedding look-up out, recompute out; 6 N leaves the attention scores out, "
      "causal counts halve them", "describe.model.flops_per_token"),
    q("step_s", "Step time", "seconds", "s", "micro-batches x slowest stage + bubble + exposed data-parallel traffic + optimizer + host, stretched by stragglers",
      "step_breakdown_s", _SC21, "the sum of the exposed parts; hidden communication is not in it", "physics.step.step_time"),
    q("step_s_low", "Step time, low end", "seconds", "s", "step_s x 10th percentile of measured / predicted over published runs", "step_s", "", "80 % band"),
    q("step_s_high", "Step time, high end", "seconds", "s", "step_s x 90th percentile of measured / predicted over published runs", "step_s", "", "80 % band"),
    q("tokens_per_s_per_device", "Tokens/s per device", "rate", "tokens/s", "global_batch x seq_len / (step_s x devices_used)", "step_s global_batch seq_len devices_used", "",
      "while training; pauses and restarts are in goodput", "physics.step.rates"),
    q("model_tflops_per_device", "Model TFLOP/s per device", "rate", "TFLOP/s", "tokens_per_s_per_device x flops_per_token / 1e12", "tokens_per_s_per_device flops_per_token", _SC21,
      "model FLOP; tables that print hardware FLOP include recompute", "physics.step.rates"),
    q("mfu", "MFU", "share", "share", "tokens_per_s_per_device x flops_per_token / dense peak FLOP/s of the job's precision", "tokens_per_s_per_device flops_per_token precision",
      _PALM, "dense peak (datasheets often print the sparse one, twice as high); full attention counted; against the precision's own peak", "physics.step.rates"),
    q("mfu_low", "MFU, low end", "share", "share", "mfu x step_s / step_s_high", "mfu step_s step_s_high", "", "80 % band learned from published runs"),
    q("mfu_high", "MFU, high end", "share", "share", "mfu x step_s / step_s_low", "mfu step_s step_s_low", "", "80 % band learned from published runs"),
    q("mfu_causal", "MFU, causal count", "share", "share", "mfu with half of the attention scores counted", "mfu flops_per_token", "DeepSeek-V3 and Megatron-Bridge print this",
      "lower than mfu, the more so at long context"),
    q("mfu_bf16_peak", "MFU against the bf16 peak", "share", "share", "mfu x peak of the job's precision / bf16 peak", "mfu precision", "", "comparable between fp8 and bf16 runs; may pass 1"),
    q("hfu", "HFU", "share", "share", "as mfu, recomputed FLOP counted too", "mfu recompute", _PALM, "equals mfu without recompute; never below it"),
    q("bubble_fraction", "Bubble", "share", "share", "step_breakdown_s.bubble / step_s", "step_breakdown_s.bubble step_s", _SC21,
      "of the whole step; (pp - 1) / (vpp m), of the ideal time, is larger", "physics.pipeline.bubble_time"),
    q("days", "Days", "days", "days", "tokens / (global_batch x seq_len / step_s x goodput) / 86,400, summed over phases", "tokens global_batch seq_len step_s goodput", "", "wall time, failures and saves included"),
    q("days_low", "Days, low end", "days", "days", "as days with step_s_low", "days step_s_low", "", "80 % band"),
    q("days_high", "Days, high end", "days", "days", "as days with step_s_high", "days step_s_high", "", "80 % band"),
    q("goodput", "Goodput", "share", "share", "productive / wall: tau / ((M + D) x failures per period), less waiting for spares",
      "mtbf_s checkpoint_interval_s reliability spares", _DALY, "saves, lost work, detection, restart and waiting are out; slow steps are in mfu", "endure.goodput.ettr"),
    q("mtbf_s", "Time between failures", "seconds", "s", "1 / (devices / 8 x failures per 1,000 node-days / 1,000 / 86,400)", "reliability devices", "Llama 3, arXiv 2407.21783, Table 5",
      "of the whole job while it runs; any failure stops it", "endure.failures.job_mtbf_s"),
    q("checkpoint_interval_s", "Checkpoint interval", "seconds", "s", "M (1 + W0(-exp(-1 - stall / M))), at least as long as a save needs to be safe",
      "mtbf_s checkpoint_stall_s checkpoint_durable_s", _DALY, "useful compute between saves; Young's sqrt(2 stall M) is its first order", "endure.goodput.optimum_interval"),
    q("checkpoint_bytes", "Checkpoint size", "bytes", "bytes", "params x (weights + master copy + moments), one copy of the whole job", "params optimizer precision", "",
      "without gradients and activations; MTP modules in"),
    q("checkpoint_overhead", "Checkpoint overhead", "share", "share", "stall / (interval + stall)", "checkpoint_stall_s checkpoint_interval_s", "", "training stalled in saves; lost work is not in it"),
    q("spares", "Spare nodes", "count", "nodes", "as given, else the recommended number", "reliability.spares spares_recommended", "", "beyond the cluster's devices, paid for"),
    q("spares_recommended", "Spare nodes recommended", "count", "nodes", "S that makes a useful hour cheapest: greatest (1 - ErlangB(S + 1, a)) N / (N + S), a = evictions/s x repair time; at least the domain that must be survived",
      "mtbf_s reliability.repair_s", "Erlang 1917", "Poisson tails ask for more: they let a waiting job fail on", "endure.spares.cheapest"),
    q("cost_usd", "Cost", "usd", "USD", "(devices + spares) x hours x usd_per_device_hour", "days prices devices spares", "", "wall hours, spares paid; storage, network and staff only as far as the price holds them"),
    q("energy_kwh", "Energy", "kwh", "kWh", "node power x nodes x hours x pue / 1,000", "days devices prices.pue", "", "at the meter of the building"),
    q("limits", "What limits it", "text", "", "constraints missed and resources at their edge, the tightest first", "constraints memory_bytes step_breakdown_s"),
    q("avoid", "What to avoid", "text", "", "plans evaluated for this design that cost most, and why", "plan"),
    q("avoid.what", "Avoid", "text", "", "the change"), q("avoid.why", "Why", "text", "", "where the time or memory goes"), q("avoid.cost", "Costs", "text", "", "against the chosen plan"),
    q("nearest_fixes", "Nearest fixes", "text", "", "smallest changes that meet the missed constraint, each evaluated", "constraints"),
    q("nearest_fixes.change", "Change", "text", "", "what is changed, in words"), q("nearest_fixes.verdict", "Then", "text", "", "verdict of the changed design"),
    q("nearest_fixes.set", "Fields", "text", "", "fields of the design and their new values; nothing takes a pin away"), q("nearest_fixes.mfu", "MFU", "share", "share", "as mfu, of the changed design"),
    q("nearest_fixes.days", "Days", "days", "days", "as days, of the changed design"), q("nearest_fixes.cost_usd", "Cost", "usd", "USD", "as cost_usd, of the changed design"),
    q("nearest_fixes.devices", "Devices", "count", "devices", "of the changed design"),
    q("nearest_fixes.missed", "Still missed", "text", "", "constraints that the changed design misses"),
    q("missed", "Constraints missed", "text", "", "constraints that do not hold", "constraints"), q("missed.field", "Constraint", "text", "", "field of constraints"),
    q("missed.limit", "Asked for", "ratio", "", "as stated, in the unit of its field", "constraints"), q("missed.value", "Predicted", "ratio", "", "in the unit of its field"),
    q("missed.text", "Missed by", "text", "", "value, band and limit"), q("missed.chance", "Chance of meeting it", "share", "share", "share of the band on the right side of the limit"),
    q("assumed", "Assumed", "text", "", "inputs that were not given, with the rule that chose them"),
    q("assumed.field", "Field", "text", "", "dotted path in the design file"), q("assumed.value", "Value", "text", "", "what it became"), q("assumed.why", "Rule", "text", "", "why"),
)

PLAN = tuple(q("plan." + k, label, kind, unit, formula, inputs, source, convention) for k, label, kind, unit, formula, inputs, source, convention in (
    ("tp", "TP", "count", "ways", "matrices of a layer split over tp devices", "", "Shoeybi et al. 2019, arXiv 1909.08053", "two all-reduces per layer and pass"),
    ("cp", "CP", "count", "ways", "sequence split over cp devices", "", "Liu et al. 2023, arXiv 2310.01889", "a factor of its own, as in Megatron; some stacks fold it into dp"),
    ("pp", "PP", "count", "stages", "layers split over pp stages", "", _SC21, ""),
    ("vpp", "VPP", "count", "chunks", "model chunks on one stage", "", _SC21, "chunks per stage; some stacks give layers per chunk"),
    ("dp", "DP", "count", "ways", "devices_used / (tp x pp x cp)", "devices_used", "", "replicas of the batch dimension"),
    ("ep", "EP", "count", "ways", "experts of a layer spread over ep devices, inside dp x cp x tp / etp", "", "Lepikhin et al. 2020, arXiv 2006.16668", "multiplies nothing"),
    ("etp", "Expert TP", "count", "ways", "one expert split over etp devices", "", "Liu et al. 2025, arXiv 2504.14960", ""),
    ("sp", "Sequence parallel", "flag", "", "norms and dropout split over tp along the sequence", "plan.tp", _KOR, "Megatron's; not Ulysses, not cp"),
    ("sharding", "Sharding", "text", "", "zero1: optimizer states over dp x cp; zero2: gradients too; zero3 (FSDP): weights too; hsdp: zero3 inside shard_group", "", _ZERO, ""),
    ("shard_group", "Shard group", "count", "ranks", "ranks that share one copy under hsdp, else all of dp x cp", "", "Zhao et al. 2023, arXiv 2304.11277", ""),
    ("schedule", "Schedule", "text", "", "order of forward and backward passes on the stages", "", _SC21, ""),
    ("micro_batch", "Micro-batch", "count", "sequences", "sequences in one pass of one replica", "", "", "per replica, not per device"),
    ("grad_accum", "Micro-batches", "count", "micro-batches", "global_batch / (dp x micro_batch)", "global_batch plan.dp plan.micro_batch", "", ""),
    ("recompute", "Recompute", "text", "", "activations computed again in the backward: none, selective (attention core), full (whole layers)", "", _KOR,
     "selective means what the named stack means by it"),
    ("recompute_layers", "Layers recomputed", "count", "layers", "layers of a stage that recompute", "plan.recompute", "", ""),
    ("layer_split", "Layer split", "text", "", "layers on each stage", "plan.pp", "", ""),
    ("cp_type", "CP type", "text", "", "ring: keys and values go round; all-gather; ulysses: heads for sequence by all-to-all", "plan.cp", "", ""),
    ("offload", "Offload", "text", "", "state kept in host memory or NVMe", "", "Ren et al. 2021, arXiv 2101.06840", ""),
    ("precision", "Precision", "text", "", "number format of the matrix products", "job.precision", "", "attention, router and logits stay in 16 bit under the 8- and 4-bit formats"),
))

MEMORY = tuple(q("memory_bytes." + k, label, "bytes", "bytes", formula, inputs, source, convention) for k, label, formula, inputs, source, convention in (
    ("weights", "Weights", "parameters on the device x bytes of a weight, / dp x cp under zero3", "params plan", _ZERO, "the model copy used in matrix products"),
    ("gradients", "Gradients", "parameters on the device x bytes of a gradient, / dp x cp from zero2", "params plan", _ZERO, "fp32 accumulation where the stack does so"),
    ("optimizer", "Optimizer states", "parameters on the device x (master copy + moments), / dp x cp from zero1", "params plan optimizer", _ZERO, "Adam: 4 + 4 + 4 bytes"),
    ("activations", "Activations", "saved bytes per layer x layers of the stage x micro-batches in flight, and the logits", "model plan seq_len", _KOR, "recomputed ones are not saved"),
    ("other", "Buffers and runtime", "communication buffers + CUDA context + fragmentation", "plan", "", "visible here, hidden in most estimates"),
    ("total", "Memory", "weights + gradients + optimizer + activations + other", "memory_bytes", "", "the fullest stage, at its peak"),
    ("capacity", "Usable memory", "what a program can have of the device's memory", "cluster.accelerator", "", "decimal GB; an 80 GB card has about 85.0e9 bytes"),
)) + (
    q("memory_bytes", "Memory of the fullest device", "bytes", "bytes", "weights + gradients + optimizer + activations + other", "memory_bytes.total", _KOR,
      "per device, on the fullest pipeline stage; decimal GB"),
    q("memory_by_stage", "Memory by stage", "bytes", "bytes", "as memory_bytes, for each pipeline stage", "memory_bytes"),
    q("memory_by_stage.stage", "Stage", "count", "", "position in the pipeline, from 0"),
    q("memory_by_stage.layers", "Layers", "count", "layers", "layers on the stage"),
) + tuple(q("memory_by_stage." + k, label, "bytes", "bytes", "as memory_bytes." + k) for k, label in (
    ("weights", "Weights"), ("gradients", "Gradients"), ("optimizer", "Optimizer states"), ("activations", "Activations"), ("other", "Buffers and runtime"), ("total", "Memory")))

STEP = (q("step_breakdown_s", "Where the step goes", "seconds", "s", "exposed time by cause; sums to step_s", "step_s", "", "hidden communication stands in hidden_s", "physics.step.step_time"),) + tuple(
    q("step_breakdown_s." + k, label, "seconds", "s", formula, inputs, source, convention) for k, label, formula, inputs, source, convention in (
        ("gemm", "Matrix products", "FLOP / (peak x measured share) + operand bytes / HBM rate + launches; backward twice the forward", "model plan", "", "linear layers and experts; attention core and output head apart"),
        ("attention", "Attention core", "causal FLOP / (peak x kernel share); backward 2.5 x forward", "seq_len plan", _FLASH, "causal work counted here, full in mfu"),
        ("elementwise", "Element-wise", "bytes of norms, activations, residuals / HBM rate; casts of low-precision recipes", "model plan", _KOR, ""),
        ("logits", "Output head and loss", "3 products of tokens x vocab / tp x h, + bytes per logit / HBM rate, on the last stage", "model.vocab plan", "", "counted where that stage is the slowest"),
        ("recompute", "Recompute", "the forward passes done again", "plan.recompute", _KOR, "not in mfu, in hfu"),
        ("tp", "TP, exposed", "2 collectives per layer and pass of tokens x h x 2 (tp - 1) / tp bytes, less what is overlapped", "plan.tp", "arXiv 1909.08053", ""),
        ("cp", "CP, exposed", "keys and values round the ring, less the attention that hides them", "plan.cp", "arXiv 2310.01889", ""),
        ("ep", "EP, exposed", "dispatch and combine all-to-all of routed tokens, less what is overlapped", "plan.ep", "arXiv 2006.16668", ""),
        ("dp", "DP, exposed", "gradient reduction and parameter gathers, less the compute that hides them", "plan.dp plan.sharding", _ZERO, ""),
        ("pp", "PP sends, exposed", "activations between stages", "plan.pp", _SC21, "idle time of the pipeline is bubble"),
        ("bubble", "Bubble", "(pp - 1) / vpp x (forward + backward of a micro-batch) for 1f1b and interleaved; each schedule its own", "plan.pp plan.schedule plan.grad_accum", _SC21, ""),
        ("optimizer", "Optimizer", "bytes per parameter updated on the device / HBM rate (host link where offloaded)", "params plan", "", ""),
        ("host", "Host and launches", "launch time that compute does not cover, per layer and per step", "stack", "", ""),
        ("straggler", "Stragglers", "share per doubling of nodes, by which the slowest of many delays all", "devices_used", "", ""),
        ("data", "Waiting for data", "what the input pipeline cannot deliver in time", "cluster.storage", "", ""),
    )) + (q("hidden_s", "Hidden communication", "seconds", "s", "communication that runs under compute", "step_breakdown_s", "", "takes no time of its own; lost overlap exposes it"),) + tuple(
    q("hidden_s." + k, f"{k.upper()}, hidden", "seconds", "s", "time on the wire less the exposed part", f"step_breakdown_s.{k}") for k in ("tp", "cp", "ep", "dp", "pp"))

SEARCH = (
    q("communication", "Communication", "text", "", "what is sent, between whom, how long", "plan"),
    q("communication.axis", "Axis", "text", "", "tp, cp, ep, dp or pp"), q("communication.what", "What", "text", "", "operation and payload"),
    q("communication.group", "Group", "count", "devices", "devices that take part"), q("communication.tier", "Tier", "text", "", "slowest network tier that the group spans"),
    q("communication.bytes", "Bytes", "bytes", "bytes", "sent by one device in a step", convention="one direction"),
    q("communication.calls", "Calls", "count", "calls", "operations in a step"), q("communication.time_s", "Time on the wire", "seconds", "s", "in a step, hidden part included"),
    q("communication.exposed_s", "Exposed", "seconds", "s", "what of it adds to the step"),
    q("without_single_source", "Without lone sources", "text", "", "the headline without constants that one source alone supports", "", "physics.bands.without_single_source"),
    q("without_single_source.single_source", "Supported by one source", "text", "", "chips, stacks and pairs whose constants come from one source"),
    q("without_single_source.step_s", "Step time without them", "seconds", "s", "step_s with what all runs share in their place"),
    q("without_single_source.mfu", "MFU without them", "share", "share", "mfu with what all runs share in their place"),
    q("candidates", "Best plans", "text", "", "plans that fit, the fastest first", "plan"),
    *(q("candidates." + k, label, "text" if k in ("sharding", "schedule", "recompute", "layer_split", "cp_type", "offload", "precision") else "flag" if k == "sp" else "count", "", "as plan." + k)
      for k, label in ((p.key[5:], p.label) for p in PLAN)),
    q("candidates.step_s", "Step time", "seconds", "s", "as step_s"), q("candidates.mfu", "MFU", "share", "share", "as mfu"),
    q("candidates.recompute_share", "Layers recomputed", "share", "share", "share of the layers that recompute"),
    q("candidates.memory_bytes", "Memory", "bytes", "bytes", "as memory_bytes.total"), q("candidates.devices_used", "Devices used", "count", "devices", "as devices_used"),
    q("rejected", "Rejected plans", "count", "plans", "legal plans that do not fit, by reason", "memory_bytes"),
    q("legal", "Legal plans", "count", "plans", "plans that obey every rule: fitting + rejected", "plan"),
    q("evaluated", "Plans timed", "count", "plans", "plans whose step time was worked out", "plan"),
    q("nearest_runs", "Nearest published runs", "text", "", "published runs with the most similar model, device, scale and plan"),
    q("nearest_runs.id", "Run", "text", "", "id in the table of published runs"), q("nearest_runs.model", "Model", "text", "", "as printed"),
    q("nearest_runs.accelerator", "Accelerator", "text", "", "catalogue id"), q("nearest_runs.devices", "Devices", "count", "devices", "as printed"),
    q("nearest_runs.plan", "Plan", "text", "", "as printed"), q("nearest_runs.mfu", "MFU", "share", "share", "tokens/s brought to the convention of mfu"),
    q("nearest_runs.source", "Source", "text", "", "paper, report or table"),
    q("nearest_runs.stack", "Software", "text", "", "stack of the run"), q("nearest_runs.locator", "Where", "text", "", "table or figure of the source"),
    q("nearest_runs.distance", "Distance", "number", "doublings", "sum over conditions of the weighted difference in doublings", "plan devices",
      function="physics.bands.nearest_runs"),
    q("nearest_runs.differs", "Differs in", "text", "", "conditions in which the run is not this design, the largest first"),
    q("why", "Why this plan", "text", "", "what each axis buys and costs here"), q("why.axis", "Axis", "text", "", "dimension of the plan"), q("why.text", "Why", "text", "", "with this design's own numbers"),
)

ENDURANCE = tuple(q("endurance." + k, label, kind, unit, formula, inputs, source, convention, function) for k, label, kind, unit, formula, inputs, source, convention, function in (
    ("devices", "Devices", "count", "devices", "devices of the job", "", "", "", ""),
    ("preset", "Fleet", "text", "", "fleet whose failure rate stands in where none is given", "reliability.preset", "", "", "endure.failures.preset"),
    ("failures_per_1000_node_days", "Failure rate", "rate", "per 1,000 node-days", "given, else the fleet's", "reliability", "", "per node of 8 devices; scales per device", "endure.failures.preset"),
    ("mtbf_s", "Time between failures", "seconds", "s", "as mtbf_s", "", "", "", "endure.failures.job_mtbf_s"),
    ("failures_per_day", "Failures per day", "rate", "per day", "86,400 / mtbf_s x share of the cause", "mtbf_s", "Llama 3, arXiv 2407.21783, Table 5", "by cause; counts, not the printed percentages", "endure.failures.rates_by_cause"),
    ("planned_per_day", "Planned stops per day", "rate", "per day", "the fleet's rate, one job whatever its size", "reliability", "Llama 3, arXiv 2407.21783, s3.3.4", "maintenance and changes; saved before they begin", "endure.failures.preset"),
    ("checkpoint_interval_s", "Checkpoint interval", "seconds", "s", "as checkpoint_interval_s", "", "", "", "endure.goodput.optimum_interval"),
    ("checkpoint_bytes", "Checkpoint size", "bytes", "bytes", "as checkpoint_bytes", "", "", "", ""),
    ("checkpoint_stall_s", "Stall of a save", "seconds", "s", "0.5 s + state of a device / half the host link", "checkpoint_bytes", "ByteCheckpoint, arXiv 2407.20143, Table 8", "training stands still; asynchronous saves", "endure.checkpoint.snapshot_stall_s"),
    ("checkpoint_durable_s", "Until a save is safe", "seconds", "s", "20 s + checkpoint bytes / write rate of the store, after the stall", "checkpoint_bytes", "ByteCheckpoint, Table 8", "a failure before falls back to the save before", "endure.checkpoint.transfer_s"),
    ("checkpoint_overhead", "Checkpoint overhead", "share", "share", "as checkpoint_overhead", "", "", "", ""),
    ("young_s", "Interval by Young", "seconds", "s", "sqrt(2 stall M)", "mtbf_s checkpoint_stall_s", "Young 1974, doi:10.1145/361147.361115", "first order", "endure.goodput.young"),
    ("daly_s", "Interval by Daly", "seconds", "s", "sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + (d / 2M) / 9) - d", "mtbf_s checkpoint_stall_s", _DALY, "higher order", "endure.goodput.daly"),
    ("optimum_s", "Interval, exact optimum", "seconds", "s", "M (1 + W0(-exp(-1 - stall / M)))", "mtbf_s checkpoint_stall_s", _DALY, "before any ceiling moves it", "endure.goodput.optimum_interval"),
    ("restart_s", "Restart", "seconds", "s", "relaunch + communicators + load", "reliability.restart_s", "", "a failure can strike in it", "endure.reliability.communicator_init_s"),
    ("detect_s", "Detection", "seconds", "s", "until a failure is noticed and localised", "reliability.detect_s", "", "", ""),
    ("repair_s", "Repair of a node", "seconds", "s", "until a failed node is back", "reliability.repair_s", "", "", ""),
    ("recovery_s", "Recovery", "seconds", "s", "detect_s + restart_s", "endurance.detect_s endurance.restart_s", "", "from the failure to the first new step", ""),
    ("lost_work_s", "Most work lost", "seconds", "s", "interval + stall + durable", "checkpoint_interval_s", "", "worst case of one failure; the mean is about half the interval", ""),
    ("goodput", "Goodput", "share", "share", "as goodput", "", "", "", "endure.goodput.ettr"),
    ("badput", "Where the rest goes", "share", "share", "shares of wall time by cause; with goodput they sum to 1", "goodput", _GOODPUT, "", "endure.goodput.shares"),
    ("spares", "Spare nodes", "count", "nodes", "as spares", "", "", "", ""),
    ("spares_recommended", "Spare nodes recommended", "count", "nodes", "as spares_recommended", "", "", "", "endure.spares.cheapest"),
    ("spares_for", "Spare nodes for a chance", "count", "nodes", "fewest S with ErlangB(S, a) <= 1 - chance", "endurance.repair_s mtbf_s", "Erlang 1917", "chance that a failure finds a spare", "endure.spares.spares_for"),
    ("write_bytes_per_s_needed", "Write rate needed", "bytes_per_s", "bytes/s", "checkpoint bytes / (interval + stall)", "checkpoint_bytes checkpoint_interval_s", "", "so that one save is safe before the next", "endure.checkpoint.write_rate_needed"),
    ("write_bytes_per_s", "Write rate", "bytes_per_s", "bytes/s", "of the cluster's store", "cluster.storage", "", "", "endure.storage.rates"),
    ("retention", "Copies to keep", "count", "copies", "enough to reach back past a corruption found late", "checkpoint_interval_s", "", "", "endure.checkpoint.retention"),
    ("domain_nodes", "Nodes of a failure domain", "count", "nodes", "nodes that fail together", "cluster", "", "", "endure.failures.domains"),
    ("sites", "Sites", "count", "sites", "datacentres that the job runs over", "cluster.sites", "", "they average every 100 steps", "endure.elastic.apart"),
    ("copies_survive", "Copies survive", "text", "", "largest domain whose loss the copies outlive", "cluster.storage", "", "process: only on the nodes' own disks", "endure.storage.rates"),
    ("interval_set_by", "Interval set by", "text", "", "the optimum, the save itself or a ceiling", "checkpoint_interval_s", "", "", ""),
    ("assumed", "Assumed", "text", "", "as assumed", "", "", "", ""),
    ("curve", "Goodput over the interval", "share", "share", "goodput at other intervals", "checkpoint_interval_s", _DALY, "", "endure.goodput.ettr"),
    ("curve.interval_s", "Interval", "seconds", "s", "useful compute between saves", "", "", "", ""),
    ("curve.goodput", "Goodput", "share", "share", "as goodput", "", "", "", ""),
)) + (q("endurance", "Endurance", "text", "", "failures, saves, restarts and spares", "reliability"),) + tuple(
    q("endurance.badput." + k, label, "share", "share", formula, "goodput", _GOODPUT) for k, label, formula in (
        ("saves", "Saves", "training stalled in saves"), ("lost work", "Lost work", "work done again after a failure"), ("detection", "Detection", "until a failure is noticed"),
        ("restart", "Restart", "from the new allocation to training"), ("spare shortage", "Spare shortage", "waiting for a repaired node"), ("planned stops", "Planned stops", "maintenance and upgrades"),
        ("stragglers", "Stragglers", "degraded nodes not yet replaced"), ("sdc", "Silent corruption", "steps replayed after silent data corruption"), ("sites", "Sites apart", "averaging between datacentres")))

COST = tuple(q("cost." + k, label, kind, unit, formula, inputs, source, convention) for k, label, kind, unit, formula, inputs, source, convention in (
    ("device_hours", "Device-hours", "hours", "h", "(devices + spares) x wall hours", "days devices spares", "", "restarts and waiting included"),
    ("usd_per_device_hour", "Price per device-hour", "usd", "USD/h", "given, else the newest dated price of the catalogue", "prices", "", "renting; what it includes differs by seller"),
    ("usd_per_device_hour_low", "Price per device-hour, lowest", "usd", "USD/h", "lowest of the newest observations", "prices", "", ""),
    ("usd_per_device_hour_high", "Price per device-hour, highest", "usd", "USD/h", "highest of the newest observations", "prices", "", ""),
    ("price_date", "Price dated", "text", "", "month of the newest observation", "", "", ""), ("price_source", "Price from", "text", "", "where the price was read", "", "", ""),
    ("cost_usd", "Cost", "usd", "USD", "as cost_usd", "prices", "", ""), ("cost_usd_low", "Cost at the lowest price", "usd", "USD", "device-hours x lowest price", "prices", "", ""),
    ("cost_usd_high", "Cost at the highest price", "usd", "USD", "device-hours x highest price", "prices", "", ""), ("lost_usd", "Lost to failures and saves", "usd", "USD", "cost x (1 - goodput)", "goodput", "", ""),
    ("lost_device_hours", "Device-hours lost", "hours", "h", "device-hours x (1 - goodput)", "goodput", "", ""), ("energy_kwh", "Energy", "kwh", "kWh", "as energy_kwh", "prices.pue", "", ""),
    ("energy_usd", "Energy bill", "usd", "USD", "energy x usd_per_kwh", "prices.usd_per_kwh", "", "inside the rent where devices are rented"),
    ("power_w", "Facility power", "watts", "W", "nodes x node power x share in use x pue", "prices.pue", "", "while training"), ("pue", "PUE", "ratio", "", "facility power / machine power", "prices.pue", "", ""),
    ("usd_per_kwh", "Price of energy per kWh", "usd", "USD/kWh", "given, else the catalogue's", "prices.usd_per_kwh", "", ""),
    ("carbon_kg", "Carbon", "mass", "kg", "energy x carbon intensity of the grid", "energy_kwh", "Ember 2024", "by country; operation alone, not the making of the hardware"),
    ("carbon_source", "Carbon from", "text", "", "where the intensities were read", "", "", ""), ("assumed", "Assumed", "text", "", "as assumed", "", "", ""),
)) + (q("cost", "Cost", "usd", "USD", "device-hours x price", "prices"), q("plan", "Plan", "text", "", "how the job is laid out on the devices")) + tuple(
    q(f"{k}.assumed.{f}", label, "text", "", formula) for k in ("cost", "endurance") for f, label, formula in (
        ("field", "Field", "dotted path in the design file"), ("value", "Value", "what it became"), ("why", "Rule", "why")))

PHASES = (
    q("phases", "Phases", "text", "", "stretches of the run, each with its own plan", "job.phases"), q("phases.name", "Phase", "text", "", "as given"), q("phases.tokens", "Tokens", "params", "tokens", "as given", "tokens"),
    q("phases.seq_len", "Sequence", "count", "tokens", "tokens in one sequence"), q("phases.global_batch", "Global batch", "count", "sequences", "sequences in one step"),
    q("phases.step_s", "Step time", "seconds", "s", "as step_s"), q("phases.mfu", "MFU", "share", "share", "as mfu"), q("phases.memory_bytes", "Memory", "bytes", "bytes", "as memory_bytes.total"),
    q("layers_by_stage", "Layers by stage", "text", "", "layers on the first, middle and last stages", "plan.pp"), q("search_seconds", "Search", "seconds", "s", "time that the search took"),
    q("candidates.zone", "Memory zone", "text", "", "safe up to 0.80 of the usable memory, tight up to all of it"),
) + tuple(q("phases." + p.key, p.label, p.kind, p.unit, "as " + p.key) for p in PLAN)

_WILLIAMS = "Williams et al. 2009, doi:10.1145/1498765.1498785"
ROOFLINE = tuple(q("roofline." + k, label, kind, unit, formula, inputs, source, convention, "decide.roofline.roofline") for k, label, kind, unit, formula, inputs, source, convention in (
    ("kernel", "Kernel", "text", "", "kind of kernel, forward, backward and recompute together", "", "", ""),
    ("flops", "FLOP", "flop", "FLOP", "executed on the fullest stage's device", "plan model", "", "recompute in; flash attention causal, 3.5 forwards"),
    ("bytes", "HBM traffic", "bytes", "bytes", "2 x operand elements, each read or written once", "plan model", "", "perfect reuse inside a kernel; counters show more"),
    ("intensity", "Intensity", "rate", "FLOP/byte", "flops / bytes", "roofline.flops roofline.bytes", _WILLIAMS, "over HBM bytes; for an axis over the bytes that one device sends"),
    ("achieved_flops", "Achieved", "flops", "FLOP/s", "flops / seconds", "roofline.flops roofline.seconds", _WILLIAMS, "while the kernel runs"),
    ("attainable_flops", "Roof", "flops", "FLOP/s", "min(peak, intensity x bandwidth)", "roofline.intensity roofline.peak_flops", _WILLIAMS, "rated peak and bandwidth"),
    ("peak_flops", "Peak", "flops", "FLOP/s", "dense peak of the number format", "precision", "", "dense; datasheets often print the sparse one"),
    ("seconds", "Time a step", "seconds", "s", "its part of step_breakdown_s and of recompute", "step_breakdown_s", "", "exposed, on the fullest stage"),
    ("share", "Of the step", "share", "share", "seconds / step_s", "roofline.seconds step_s", "", ""),
    ("bound", "Bound by", "text", "", "compute where intensity x HBM rate passes the peak, else memory", "roofline.intensity", _WILLIAMS, ""),
    ("ridge", "Ridge", "rate", "FLOP/byte", "peak / HBM rate", "", _WILLIAMS, "left of it memory binds"),
))

ROWS = HEAD + PLAN + MEMORY + STEP + SEARCH + ENDURANCE + COST + PHASES + ROOFLINE
