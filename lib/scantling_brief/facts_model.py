"""What the words on a model come to: a row of the catalogue, a size, experts, a maker."""

import re
from typing import Any

from scantling.base.errors import DesignError, plain
from scantling.catalogue.models.entries import entry
from scantling.catalogue.models.shape import parameters

from .decisive import NO_MODEL, has_size, named_so, near_models, near_models_of
from .line import refusal
from .notes import Notes

CHINCHILLA_TOKENS = 20.0  # of a parameter
FEWEST_PARAMETERS = 1e6  # that are active: fewer are experts
_THAT_MODEL = "nothing else says the model: it is this one"
_ITS_SHAPE = re.compile(r"arch|shape", re.IGNORECASE)


def read_likeness(notes: Notes, kind: str) -> None:
    """A kind of model beside a size says nothing more; alone, the architecture of one of the
    catalogue is that one, and what is like one with a number is asked about."""
    words = notes.words["alike"]
    if notes.is_sized:
        notes.note(words, why="a kind of model, beside its size")
    elif (id := named_so(kind)) and _ITS_SHAPE.search(words):
        notes.set("model", id, words, _THAT_MODEL)
        notes.assume("model", id, _THAT_MODEL)
    elif re.search(r"\d", kind):
        notes.ask(words, NO_MODEL, near_models(kind, 0.4))
    else:
        notes.note(words, why="a kind of model: its size is not said")


def read_trillions(notes: Notes) -> None:
    """Trillions without a noun are the tokens, beside a model that is named or sized, and the
    model's size where they are what it has; else they are asked about."""
    value = notes.facts.get("trillions")
    if value is None:
        return
    words, fields = notes.words["trillions"], notes.fields
    named = fields.get("model")
    if isinstance(named, str) and "model" not in notes.as_given and has_size(named, value):
        notes.note(words, "model", named, "its size")
    elif notes.is_sized and "job.tokens" not in fields:
        why = "trillions beside a model are tokens"
        notes.set("job.tokens", float(value), words, why)
        notes.assume("job.tokens", float(value), why)
    else:
        question = "parameters of the model (model.size), or tokens of the run (job.tokens)?"
        notes.ask(words, question, ("model.size", "job.tokens"))


def read_model(notes: Notes) -> None:
    """A model is named, or a mixture of experts where it has experts."""
    fields = notes.fields
    if "active_beside" in notes.facts:
        _active_beside(notes, notes.facts["active_beside"])
    if "maker" in notes.facts:
        _of_maker(notes, notes.facts["maker"])
    if isinstance(fields.get("model"), str) and "model" not in notes.as_given:
        _of_series(notes)
        try:
            _named(fields)
        except DesignError as error:
            if not notes.unread:
                raise
            size = fields.pop("model.size", None)
            notes.take_back("model")
            notes.ask(notes.words.get("model.size", str(size)), plain(error.problem, 300))
    _few_active(notes)
    sparse = fields.keys() & {"model.experts", "model.top_k", "model.active"}
    if fields.get("model.moe") is False:
        del fields["model.moe"]
        if sparse:
            raise refusal(problem="says dense and gives experts", allowed="one of the two")
    elif {"model.layers", "model.hidden"} <= fields.keys() and sparse:
        fields.pop("model.moe", None)  # its experts say so
    elif "model.like" not in fields and sparse - {"model.top_k"}:
        fields["model.moe"] = True


_SPARSE = re.compile(r"\b(?:moe|experts?|sparse|active)\b", re.IGNORECASE)


def _active_beside(notes: Notes, active: float) -> None:
    """A smaller size behind a stroke is that of the active parameters, of a mixture of experts:
    671B/37B; else it is of another model."""
    words, size = notes.words["active_beside"], notes.fields.get("model.size")
    if size is None:
        return  # given twice, which is asked about
    if active < size and _SPARSE.search(notes.text):
        notes.set("model.active", active, words)
    else:
        notes.leave_open("model.size", "which of the two is planned?", ("model.size",))


def _few_active(notes: Notes) -> None:
    """Fewer active than a model has parameters are experts: 256 experts, 8 active."""
    active = notes.fields.get("model.active")
    if active is None or active >= FEWEST_PARAMETERS:
        return
    del notes.fields["model.active"]
    notes.set("model.top_k", int(active), notes.words["model.active"], "experts of a token")


def _of_series(notes: Notes) -> None:
    """Of a series that is named without a size, the one of the size that is said: a 6.7B GPT-3."""
    fields = notes.fields
    size, words = fields.get("model.size"), notes.words.get("model", "")
    if size is None or re.search(r"\d\s?[bm]\b", words, re.IGNORECASE):
        return
    series = fields["model"].rpartition("-")[0]
    kin = [id for id in near_models_of(series, size) if id.startswith(f"{series}-")]
    if series and len(kin) == 1 and has_size(kin[0], size) and kin[0] != fields["model"]:
        notes.fields["model"] = kin[0]
        notes.note(words, "model", kin[0], f"the one of {series} with this size")


def _of_maker(notes: Notes, maker: str) -> None:
    """A model by its maker and a size: the one that the catalogue has of both; it is asked about
    where several or none are so called. Its name stands in the file as it was given."""
    words = notes.words["maker"]
    fields = notes.fields
    if isinstance(fields.get("model"), str):
        if maker.lower() not in fields["model"]:
            notes.ask(words, NO_MODEL, (fields["model"],))
        return
    size = fields.get("model.size")
    if (
        maker.lower() == "chinchilla"
        and size is not None
        and named_so(f"{maker}-{size / 1e9:g}b") is None
    ):
        why = "no model of this size: as many tokens as the law says"
        notes.facts.setdefault("tokens_per_param", CHINCHILLA_TOKENS)
        notes.note(words, "model.size", size, why)
        return
    of_maker = near_models_of(maker, size)
    kin = of_maker or near_models(maker, 0.5)
    if (
        size is not None
        and len(of_maker) == 1
        and has_size(of_maker[0], size)
        and not re.search(r"\d", maker)
    ):
        for path in ("model.size", "model.active", "model.moe"):
            fields.pop(path, None)
        why = f"the only one of {maker} with this size in the catalogue"
        notes.set("model", kin[0], words, why)
        notes.assume("model", kin[0], why)
        return
    if size is not None:
        fields["model.name"] = words
        notes.ask(words, NO_MODEL, (*kin, f"model: {{size: {size:g}}}"))
        return
    if any(path.startswith("model.") for path in fields):
        fields["model.name"] = words
        notes.ask(words, NO_MODEL, kin)
        return
    fields["model"] = words
    notes.as_given.add("model")
    notes.ask(words, NO_MODEL, kin)


def _named(fields: dict[str, Any]) -> None:
    """A catalogue model that the text also describes: sizes have to agree, other dimensions replace
    the row's."""
    id = fields["model"]
    model = entry(id).model
    counts = parameters(model)
    total = float(counts.total)
    active = float(counts.active)
    _agrees(fields.get("model.size"), id, "", total, (total, active))
    fields.pop("model.size", None)
    _agrees(fields.pop("model.active", None), id, "active ", active, (active,))
    moe = fields.pop("model.moe", model.is_moe)
    if moe != model.is_moe:
        kind = "a mixture of experts" if model.is_moe else "dense"
        raise refusal(
            problem=f"names {id}, which is {kind}, and says the contrary", allowed="one of the two"
        )
    if any(path.startswith("model.") for path in fields):
        fields["model.like"] = fields.pop("model")


def _agrees(
    stated: float | None, id: str, kind: str, count: float, counts: tuple[float, ...]
) -> None:
    """Raises DesignError for a size that is none of the named model's, within 8 %."""
    if stated is None or min(abs(stated / n - 1) for n in counts) <= 0.08:
        return
    problem = (
        f"names {id}, which has {count / 1e9:.4g}B {kind}parameters, and says {stated / 1e9:g}B"
    )
    raise refusal(problem=problem, allowed="one of the two")
