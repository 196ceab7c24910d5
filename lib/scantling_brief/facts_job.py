"""What the words on a job come to: its method, data, tokens, steps, batch and offload."""

import re
from calendar import month_abbr
from datetime import date

from scantling.base.units import DAY_S
from scantling.catalogue.words import ADAPTED, POLICIES, ROLLOUT_ENGINES, Method
from scantling.design.line_reading import Unread

from .facts_model import CHINCHILLA_TOKENS, read_likeness
from .facts_money import OF_WHAT
from .notes import Asked, Notes
from .readers import in_thousands
from .rules_asked import A_DATE, A_PACE, QUANTISED
from .rules_tuning import OF_POLICIES, TRAINER
from .topics import Topic

SHORTEST_RUN_DAYS = 1 / 48  # half an hour: less is a step's, a save's, a restart's
LONGEST_RUN_DAYS = 366.0  # above a year a span is that of a lease, or of a machine that is owned
MOST_OF_EACH = 32  # sequences of a device's batch, as trainers are set
SHORTEST = 64  # tokens of a sequence: fewer are sequences
LONGEST_ALONE = 2**16  # tokens that nobody trains a model on: those of a sequence
FEWEST_TOKENS = 1e6  # of a run: fewer are those of a sequence


def read_engine(notes: Notes) -> None:
    """An engine of serving beside a policy's training is the engine of its rollouts."""
    if notes.fields.get("job.method") not in (Method.GRPO, Method.PPO):
        return
    for asked in [u for u in notes.unread if u.words.lower() in ROLLOUT_ENGINES]:
        notes.unread.remove(asked)
        notes.set("job.rollout.engine", asked.words.lower(), asked.words, "samples come from it")


_KINDS = re.compile(
    r"(?:rlhf|rl|rlvr|rlaif|verl|openrlhf|trl"
    r"|reinforcement learning|preference \w+|policy \w+)(?: \w+)?",
    re.IGNORECASE,
)


def read_kind_of_method(notes: Notes) -> None:
    """The kind of a policy's training beside its method, as in RLHF with PPO, says nothing more."""
    method = notes.fields.get("job.method")
    if method not in (Method.GRPO, Method.PPO, Method.DPO):
        return
    for asked in [u for u in notes.unread if _KINDS.fullmatch(u.words)]:
        notes.unread.remove(asked)
        notes.note(asked.words, why=f"{method} is one of these")


def read_trainer(notes: Notes) -> None:
    """A trainer on a stack that is said besides says nothing more."""
    if "stack" not in notes.fields:
        return
    for asked in [u for u in notes.unread if u.question == TRAINER]:
        notes.unread.remove(asked)
        notes.note(asked.words, why=f"it runs on {notes.fields['stack']}")


_OF_A_WEIGHT = re.compile(r"(?:in\s+)?(?:int|nf)?(?P<bits>4|8)(?:[\s-]?bits?)?", re.IGNORECASE)


def read_base(notes: Notes) -> None:
    """Bits of a weight beside adapters are those of their base: a LoRA of Qwen 72B in 4 bit."""
    path, method = "job.adapter.base_bits", notes.fields.get("job.method")
    if method not in ADAPTED:
        return
    for asked in [u for u in notes.unread if u.question == QUANTISED]:
        weight = _OF_A_WEIGHT.fullmatch(asked.words)
        if weight and method == Method.LORA and path not in notes.fields:
            notes.unread.remove(asked)
            notes.set(path, int(weight["bits"]), asked.words, "the base of the adapters")
        elif weight and int(weight["bits"]) == notes.fields.get(path, 4):
            notes.unread.remove(asked)
            notes.note(asked.words, why=f"the meaning of {method}")


def read_rank(notes: Notes) -> None:
    """The rank of adapters, where it is said apart from them; else it is asked about."""
    rank = notes.facts.get("adapter_rank")
    if rank is None:
        return
    path, words = "job.adapter.rank", notes.words["adapter_rank"]
    of_adapters = notes.fields.get("job.method") in ADAPTED
    if of_adapters or "job.adapter.base_bits" in notes.fields:
        notes.set(path, rank, words)
        notes.either[:] = [
            e._replace(path=path) if e.path == "adapter_rank" else e for e in notes.either
        ]
    else:
        notes.ask(words, "a rank of adapters, or of the launch?", ("job.adapter.rank",))


_OF_A_LENGTH = (
    "their mean length (job.rollout.mean_response), or the longest (job.rollout.max_response)?"
)
_OF_A_SEQUENCE = re.compile(r"seq|context|ctx|length|pack|document|block", re.IGNORECASE)


def _may_be_a_policy(notes: Notes) -> bool:
    """Whether a policy is trained, or words are asked about that may say so: RL of a 32B."""
    asked = (unread for unread in notes.unread if unread.choices == OF_POLICIES)
    return notes.fields.get("job.method") in POLICIES or any(asked)


def _of_responses(notes: Notes) -> None:
    """Thousands alone, beside a policy, are a length of responses or of sequences: asked about."""
    path = "job.seq_len"
    if path not in notes.fields or not _may_be_a_policy(notes):
        return
    words = notes.words[path]
    if _OF_A_SEQUENCE.search(words):
        return
    choices = ("job.rollout.mean_response", "job.rollout.max_response", path)
    notes.leave_open(path, _OF_A_LENGTH, choices)


_OF_A_STEP = "prompts of a step (job.rollout.prompts), or of the whole data set?"
_OF_A_PROMPT = "samples of a prompt (job.rollout.samples)?"
# four times the most of a published step (DAPO, arXiv 2503.14476); above, it may be the data set's
_MOST_PROMPTS = 2048
_ONE_STEP = re.compile(r"step|batch|update|iteration", re.IGNORECASE)


def _prompts(notes: Notes) -> None:
    """More prompts than any published step has are asked about, unless they are said to be one
    step's."""
    path = "job.rollout.prompts"
    if notes.fields.get(path, 0) > _MOST_PROMPTS and not _ONE_STEP.search(notes.words[path]):
        notes.leave_open(path, _OF_A_STEP, (path,))


_OF_A_POLICY = "prompts of a step (job.rollout.prompts), or samples of all of them?"


def _batch_of_a_policy(notes: Notes) -> None:
    """The batch of a policy is its prompts or its samples, as trainers differ: it is asked about,
    unless what is said of both comes to it."""
    path, fields = "job.global_batch", notes.fields
    if path not in fields or fields.get("job.method") not in POLICIES:
        return
    prompts = fields.get("job.rollout.prompts", 0)
    if fields[path] in (prompts, prompts * fields.get("job.rollout.samples", 1)):
        notes.take_back(path)
        notes.note(notes.words[path], why="the prompts or the samples of a step, said besides")
    else:
        notes.leave_open(path, _OF_A_POLICY, ("job.rollout.prompts",))


def read_samples(notes: Notes) -> None:
    """Samples of a fine-tune stand in its data, where its length and passes are too; of a policy
    they are asked about; the n of a policy is its samples of a prompt."""
    facts, fields, words = notes.facts, notes.fields, notes.words
    method = fields.get("job.method")
    _prompts(notes)
    if "tokens_each" in facts:
        if method in POLICIES:
            notes.set("job.rollout.mean_response", facts["tokens_each"], words["tokens_each"])
        elif "examples" in facts:
            facts["example_tokens"] = facts["tokens_each"]
            words["example_tokens"] = words["tokens_each"]
        else:
            notes.set("job.seq_len", facts["tokens_each"], words["tokens_each"])
    if "group" in facts:
        if method in POLICIES:
            notes.set("job.rollout.samples", facts["group"], words["group"])
        else:
            notes.ask(words["group"], _OF_A_PROMPT, ("job.rollout.samples",))
    _batch_of_a_policy(notes)
    if method in POLICIES and "examples" in facts:
        notes.ask(words["examples"], _OF_A_STEP, ("job.rollout.prompts",))
    if method not in POLICIES and method not in (None, Method.PRETRAIN):
        of_tokens = {"epochs"} if "tokens_of_epoch" in facts and facts["epochs"] != 1 else set()
        for fact, name in _DATA.items():
            if fact in facts.keys() - of_tokens:
                notes.set(f"job.data.{name}", float(facts.pop(fact)), words[fact])
    if "example_tokens" in facts and "examples" not in facts:
        notes.set("job.document_tokens", facts["example_tokens"], words["example_tokens"])


_DATA = {"examples": "samples", "example_tokens": "mean_tokens", "epochs": "epochs"}


_BEGINS = re.compile(r"start|from|since", re.IGNORECASE)  # a date at which a run begins
_ENDS = re.compile(r"by|before|until|till|due", re.IGNORECASE)
_MONTHS = [name.lower() for name in month_abbr]
_DAY = re.compile(
    rf"(?P<m>{'|'.join(_MONTHS[1:])})[a-z]*\.?\s*(?P<d>\d{{1,2}})(?!\d)|(?P<e>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?"
    rf"(?P<n>{'|'.join(_MONTHS[1:])})",
    re.IGNORECASE,
)
_YEAR = re.compile(r"20\d\d")
_COMMON_YEAR = 2027  # of dates without one
_OF_DELIVERY = re.compile(
    r"\b(?:(?:deliver|arriv|ship|availab|hand\w*\s+over|lead\s+time|wait)\w*|now\s*,?\s*(?:or|vs\.?|versus|and|then|\d))[^.?!;]*$",
    re.IGNORECASE,
)
_IN = re.compile(r"in|within|after", re.IGNORECASE)
_WHEN_IT_COMES = "until the machine comes, or until the run has to be done?"


def _date(words: str) -> date | None:
    """The day that words name; None where they name a month or a season."""
    day, year = _DAY.search(words), _YEAR.search(words)
    if day is None:
        return None
    month = _MONTHS.index((day["m"] or day["n"]).lower())
    try:
        return date(int(year[0]) if year else _COMMON_YEAR, month, int(day["d"] or day["e"]))
    except ValueError:
        return None


def _between(notes: Notes, dates: list[Unread]) -> None:
    """The days between two dates, the one that a run begins at first."""
    days = [day for asked in dates if (day := _date(asked.words)) is not None]
    if len(dates) != 2 or len(days) != 2:
        return
    one, two = dates
    first, last = days
    if _BEGINS.match(two.words) or last < first and not _ENDS.match(two.words):
        first, last = last, first
    if last < first and first.year == last.year == _COMMON_YEAR:
        last = last.replace(year=_COMMON_YEAR + 1)
    if last <= first:
        return
    path, why = "constraints.deadline_days", f"from {first:%d %B} to {last:%d %B}"
    notes.unread[:] = [asked for asked in notes.unread if asked not in dates]
    notes.set(path, float((last - first).days), f"{one.words} {two.words}", why)
    notes.assume(path, float((last - first).days), why)


def read_dates(notes: Notes) -> None:
    """Two dates are the days between them; one beside the days until it needs no answer: before
    NeurIPS, which is in 11 weeks. When a machine is delivered is no deadline."""
    path = "constraints.deadline_days"
    dates = [unread for unread in notes.unread if unread.question == A_DATE]
    if path not in notes.fields:
        _between(notes, dates)
        return
    before = notes.text[: notes.places[path]]
    if _OF_DELIVERY.search(before) and _IN.match(notes.words[path]):
        notes.leave_open(path, _WHEN_IT_COMES, (path,))
        return
    for asked in dates:
        if _BEGINS.match(asked.words):
            continue
        notes.unread.remove(asked)
        notes.note(asked.words, why="the days until then are said")


_IS_OVER = re.compile(
    r"(?:\bwhy\s+(?:does|did|do)\b|\b(?:we|i|they|it)(?:['’]ve|\s+(?:have|had|already))*\s+(?:pre-?)?(?:trained|finished|completed|ran)|\btook)"
    r"\b[^.?!;]*$",
    re.IGNORECASE,
)


# of a run that goes on: at 1.1T of 3T tokens after 26 days
_SO_FAR = re.compile(r"\b(?:after|since)\s+\d+(?:\.\d+)?[\s-]?[a-z]+$", re.IGNORECASE)
# a run that is over, where it is asked whether that is slow
_FINISHES = re.compile(r"\bfinish(?:es|ed)?\s*$", re.IGNORECASE)
_DOUBTED = re.compile(
    r"\bthroughput\b[^.?!]*\b(?:low|slow|normal|expected|right|bad)\b[^.!]*\?", re.IGNORECASE
)
_TAKES = re.compile(r"(?:takes|took)\s+\d", re.IGNORECASE)
_MAY = re.compile(
    r"\b(?:must|should|may|can|will|would|shall|that|if|only)\s+(?:it\s+)?$", re.IGNORECASE
)


def read_past(notes: Notes) -> None:
    """Days that a run took are its speed, as measured, where its tokens are said; they are no
    deadline of the next."""
    path, fields = "constraints.deadline_days", notes.fields
    if path not in fields:
        return
    before, words = notes.text[: notes.places[path]], notes.words[path]
    if "begun" in notes.facts and _SO_FAR.search(before + words):
        notes.leave_open(path, "days that it has run so far, or those that are left?", (path,))
        return
    took = _IS_OVER.search(before) or _TAKES.match(words) and not _MAY.search(before)
    if not took and not (_DOUBTED.search(notes.text) and _FINISHES.search(before)):
        return
    tokens, devices, words = (
        fields.get("job.tokens"),
        fields.get("cluster.devices"),
        notes.words[path],
    )
    if not tokens or not devices:
        notes.leave_open(
            path, "of a run that is over: how many tokens had it (job.tokens)?", (path,)
        )
        return
    rate = float(f"{tokens / (fields[path] * DAY_S) / devices:.6g}")
    notes.take_back(path)
    notes.set("measured.tokens_per_s_per_device", rate, words, "of a run that is over")


def read_pace(notes: Notes) -> None:
    """Tokens a day that so many devices are sought for: the tokens of the run in their days, or
    those of one day."""
    pace, fields = notes.facts.get("pace"), notes.fields
    sought = any(asked.topic is Topic.FEWEST for asked in notes.questions)
    deadline = "constraints.deadline_days"
    if not pace or not sought or deadline in fields:
        return
    words = notes.words["pace"]
    tokens = fields.get("job.tokens", pace)
    if "job.tokens" not in fields:
        notes.set("job.tokens", tokens, words, "those of one day")
    notes.set(deadline, float(f"{tokens / pace:.6g}"), words, "at this rate")
    notes.unread[:] = [asked for asked in notes.unread if asked.question != A_PACE]


_OF_THE_LAWS = "scaling laws weigh size and tokens: how many tokens are they (job.tokens)?"


def read_tokens(notes: Notes) -> None:
    """Tokens of several epochs; no tokens for a model that nobody names; a count too small for a
    run is asked about."""
    facts = notes.facts
    fields = notes.fields
    each = facts.get("tokens_of_epoch")
    if each is not None:
        words = notes.words["tokens_of_epoch"]
        notes.set(
            "job.tokens", each * facts.get("epochs", 1), words, "each epoch passes all tokens"
        )
    elif "epochs" in facts and "examples" not in facts and facts["epochs"] != 1:
        notes.ask(notes.words["epochs"], "of how many tokens is an epoch (job.tokens has all)?")
    if "steps" in facts:
        _steps(notes, facts["steps"])
    sized = any(path.partition(".")[0] == "model" for path in fields)
    if "tokens_per_param" in facts and not sized:
        if facts.pop("tokens_per_param") != CHINCHILLA_TOKENS:
            notes.ask(notes.words["tokens_per_param"], _OF_THE_LAWS, ("job.tokens",))
        notes.questions.append(Asked(Topic.COMPUTE_OPTIMAL, notes.words["tokens_per_param"]))
    days = fields.get("constraints.deadline_days")
    if days is not None and days < SHORTEST_RUN_DAYS:
        path = "constraints.deadline_days"
        notes.leave_open(path, "a time of the run, or of something else?", (path,))
    elif days is not None and days > LONGEST_RUN_DAYS and "prices.owned.capex_usd" in fields:
        notes.take_back("constraints.deadline_days")
        words = notes.words["constraints.deadline_days"]
        notes.set("prices.owned.years", days / 365, words, "written off over")
    elif days is not None and days > LONGEST_RUN_DAYS:
        notes.leave_open("constraints.deadline_days", OF_WHAT)
    if "alike" in facts:
        read_likeness(notes, str(facts["alike"]))
    in_sequences = "tokens of a sequence (job.seq_len), or sequences (plan.micro_batch)?"
    _ask_if_below(notes, "job.seq_len", SHORTEST, in_sequences)
    tokens = fields.get("job.tokens", FEWEST_TOKENS)
    if SHORTEST <= tokens <= LONGEST_ALONE and "job.seq_len" not in fields:
        words = notes.words["job.tokens"]
        notes.take_back("job.tokens")
        thousands = re.match(r"(\d+)\s?k", words, re.IGNORECASE)
        if thousands:
            tokens = in_thousands(int(thousands[1]))
        notes.set("job.seq_len", int(tokens), words, "too few for a run: those of a sequence")
    _of_responses(notes)
    of_a_sequence = "tokens of the run (job.tokens), or of a sequence (job.seq_len)?"
    _ask_if_below(notes, "job.tokens", FEWEST_TOKENS, of_a_sequence)


def _ask_if_below(notes: Notes, path: str, least: float, question: str) -> None:
    """Ask about a count that is too small for its field, which then stays open."""
    value = notes.fields.get(path)
    if value is not None and value < least:
        notes.leave_open(path, question)


def _steps(notes: Notes, steps: int) -> None:
    """Tokens of a number of steps, where the batch is said in tokens, or in sequences of a length
    that is said; it is asked about where neither is."""
    fields = notes.fields
    words = notes.words["steps"]
    if fields.get("job.method") in POLICIES:
        notes.set("job.rollout.steps", float(steps), words)
        return
    batch = fields.get("job.global_batch_tokens")
    if batch is None and {"job.global_batch", "job.seq_len"} <= fields.keys():
        batch = fields["job.global_batch"] * fields["job.seq_len"]
    if batch is None:
        notes.ask(words, "of how many tokens is a step (job.global_batch_tokens)?")
    elif "job.tokens" not in fields:
        notes.set("job.tokens", float(steps * batch), words, f"{steps:,} steps of {batch:,.0f}")


def read_batch(notes: Notes) -> None:
    """The sequences of a step where the batch of a device and the accumulation are said:
    micro-batch x accumulation x data-parallel ways; ways that are not said are 1, as in a trainer's
    settings."""
    fields = notes.fields
    accumulation = fields.get("plan.grad_accum")
    devices = fields.get("cluster.devices")
    _of_each_or_all(notes, devices, accumulation)
    micro_batch = fields.get("plan.micro_batch")
    if not (micro_batch and accumulation and devices):
        return
    if fields.keys() & {"job.global_batch", "job.global_batch_tokens"}:
        return
    ways = fields.get("plan.tp", 1) * fields.get("plan.pp", 1) * fields.get("plan.cp", 1)
    if devices % ways == 0:
        batch = micro_batch * accumulation * (devices // ways)
        words = f"{notes.words['plan.micro_batch']}, {notes.words['plan.grad_accum']}"
        why = f"{micro_batch} x {accumulation} x {devices // ways} data-parallel ranks"
        notes.set("job.global_batch", batch, words, why)
        notes.assume("job.global_batch", batch, why)


def read_offload(notes: Notes) -> None:
    """The CPU offload of FSDP takes parameters, gradients and the optimizer's states
    (torch.distributed.fsdp, `CPUOffloadPolicy`); where its words name the optimizer it is that
    alone."""
    path = "plan.offload"
    words = notes.words.get(path, "")
    if notes.fields.get(path) != "optimizer" or "optimi" in words.lower():
        return
    if "fsdp" in notes.words.get("plan.sharding", "").lower():
        notes.take_back(path)
        notes.set(path, "optimizer+params", words, "FSDP takes both to the host")


_GLOBAL = re.compile(r"global|total|effective|gbs|step", re.IGNORECASE)


def _of_each_or_all(notes: Notes, devices: int | None, accumulation: int | None) -> None:
    """A batch that does not say whose it is, of no more sequences than there are devices, is a
    trainer's setting for each where accumulation is said, and asked about where it is not."""
    fields, path = notes.fields, "job.global_batch"
    batch = fields.get(path)
    if batch is None or devices is None or "plan.micro_batch" in fields:
        return
    if devices == 1 and not accumulation:
        return
    words = notes.words[path]
    of_all = batch > devices or batch > MOST_OF_EACH
    if accumulation and batch % accumulation:
        of_all = False  # the steps of a batch of all devices part it
    if of_all or _GLOBAL.search(words):
        return
    notes.take_back(path)
    if accumulation:
        notes.set("plan.micro_batch", batch, words, "beside accumulation it is that of each device")
    else:
        notes.ask(
            words, "of each device, or of all?", (f"plan.micro_batch: {batch}", f"{path}: {batch}")
        )
