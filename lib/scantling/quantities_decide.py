"""What the numbers about the global batch and the changes tried mean: rows of the table of quantities."""
from __future__ import annotations

from .quantities_rows import q

_LAWS = "each row names its own"

BATCH = (
    q("batch", "Global batch", "text", "", "the convergence constraint: critical batches, shapes that keep it, learning rate", "job.global_batch", _LAWS, "laws are fitted on models below 4B parameters", "decide.batch_guide.batch_guide"),
    q("batch.sequences", "Sequences a step", "count", "sequences", "as given", "job.global_batch"),
    q("batch.tokens", "Tokens a step", "params", "tokens", "sequences x seq_len", "job.global_batch job.seq_len"),
    q("batch.steps", "Optimizer steps", "count", "steps", "tokens / tokens a step", "job.tokens batch.tokens"),
    q("batch.dp", "Data parallel", "count", "ways", "as plan.dp", "plan"), q("batch.micro_batch", "Micro-batch", "count", "sequences", "as plan.micro_batch", "plan"),
    q("batch.grad_accum", "Accumulation", "count", "micro-batches", "as plan.grad_accum", "plan"),
    q("batch.standing", "Against the critical batch", "text", "", "small below every critical estimate, contested between, large above all", "batch.critical"),
    q("batch.extra_tokens", "Tokens above the least", "share", "share", "overhead x batch / critical batch, by the laws' own definitions: lowest, highest", "batch.critical", _LAWS, "", "decide.convergence.batch_advice"),
    *(q(f"batch.{kind}{key}", label, shown, unit, text, "job.tokens active_params", _LAWS, "", "decide.convergence.batch_size" if key == ".tokens" else "") for kind in ("critical", "optimal") for key, label, shown, unit, text in (
        ("", f"{kind.capitalize()} batches", "text", "", "published power laws at the run's tokens and compute"), (".law", "Law", "text", "", "id"),
        (".tokens", f"{kind.capitalize()} batch", "params", "tokens", "k x tokens^exponent, or of compute"), (".definition", "Definition", "text", "", "the source's own"),
        (".fitted", "Fitted on", "text", "", "range of the source"), (".source", "Source", "text", "", "paper"))),
    q("batch.learning_rate", "Learning rate", "text", "", "where to start and how it follows the batch", "batch", _LAWS, "to be confirmed by an ML specialist", "decide.convergence.learning_rate_factor"),
    q("batch.learning_rate.source", "Source", "text", "", "papers"),
    q("batch.learning_rate.peak", "Peak learning rate", "text", "", "published power laws of size and tokens", "active_params job.tokens", _LAWS, "", "decide.convergence.peak_learning_rate"),
    q("batch.learning_rate.peak.law", "Law", "text", "", "id"), q("batch.learning_rate.peak.value", "Peak", "number", "", "k C^c N^n D^d", "active_params job.tokens", _LAWS),
    q("batch.learning_rate.peak.source", "Source", "text", "", "paper"),
    q("batch.learning_rate.if_batch", "If the batch changes", "text", "", "factor on the peak learning rate", "", _LAWS, "", "decide.convergence.learning_rate_factor"),
    q("batch.learning_rate.if_batch.times", "Batch", "ratio", "", "new batch / batch"),
    q("batch.learning_rate.if_batch.low", "Factor, low", "ratio", "", "1, or the square root of the batch ratio where smaller"),
    q("batch.learning_rate.if_batch.high", "Factor, high", "ratio", "", "1, or the square root of the batch ratio where larger"),
    q("batch.reshapes", "The same batch otherwise", "text", "", "other dp x micro_batch x grad_accum, the fastest plan of each", "plan", "", "", "decide.batch_guide.reshapes_of"),
    *(q(f"batch.reshapes.{k}", label, "count", "", f"as plan.{k}") for k, label in (("dp", "Data parallel"), ("micro_batch", "Micro-batch"), ("grad_accum", "Accumulation"), ("tp", "Tensor parallel"),
                                                                                  ("cp", "Context parallel"), ("pp", "Pipeline stages"))),
    q("batch.reshapes.devices_used", "Devices used", "count", "devices", "as devices_used"), q("batch.reshapes.step_s", "Step time", "seconds", "s", "as step_s"),
    q("batch.reshapes.memory_share", "Memory", "share", "share", "memory / usable memory"), q("batch.reshapes.step_ratio", "Step against today's", "ratio", "", "step_s / today's step_s"),
    q("batch.flags", "To confirm", "text", "", "what an ML specialist must confirm"), q("batch.lines", "In words", "text", "", "the guidance in a few lines"),
)
TRIED = (
    q("tried", "Changes tried", "text", "", "every single change that was assessed, feasible or not", "constraints", "", "", "decide.fixes.tried"),
    q("tried.change", "Change", "text", "", "what was changed"), q("tried.verdict", "Verdict", "text", "", "with the change"), q("tried.mfu", "MFU", "share", "share", "as mfu"),
    q("tried.days", "Days", "days", "days", "as days"), q("tried.cost_usd", "Cost", "usd", "USD", "as cost_usd"), q("tried.devices", "Devices", "count", "devices", "as given"),
)
LARGEST = (
    q("largest_active", "Largest active count in time", "text", "", "largest active count that meets the deadline, each count assessed whole", "constraints", "",
      "where a mixture of experts is given by size alone", "decide.active_count.largest_active"),
    q("largest_active.active_params", "Active parameters", "params", "parameters", "as active_params"), q("largest_active.experts", "Experts", "count", "experts", "derived from size and active count"),
    q("largest_active.top_k", "Experts a token", "count", "experts", "derived from size and active count"), q("largest_active.days", "Days", "days", "days", "as days"),
)
ROWS = BATCH + TRIED + LARGEST
