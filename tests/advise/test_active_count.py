"""The largest active count that meets a deadline, where a mixture of experts is known by its size
alone."""

import pytest
from scantling import Design, assess
from scantling.advise.extremes import largest_active

BY_SIZE = (
    "model: {{size: 40e9, moe: true}}\ncluster: {{accelerator: h100-sxm, devices: "
    "32}}\njob: {{tokens: 2.5e11, seq_len: 4096, global_batch: 256}}\nconstraints: "
    "{{deadline_days: {}}}\n"
)


@pytest.fixture(scope="module")
def found():
    design = Design.from_text(BY_SIZE.format(8))
    return design, largest_active(assess(design))


@pytest.mark.slow
def test_the_count_meets_the_deadline_and_the_next_does_not(found):
    design, most = found
    at = lambda count: assess(design.change({"model.active": count}))  # noqa: E731
    assert at(most["active_params"]).days <= 8 < at(1.15 * most["active_params"]).days
    assert most["days"] <= 8


@pytest.mark.slow
def test_a_mixture_does_the_work_of_its_active_parameters(found):
    """6 FLOP per active parameter and token (Kaplan et al. 2020) and a share of the peak that
    training reaches, 10 to 60 %, bound the answer."""
    per_peak = 8 * 86_400 * 32 * 989e12 / (6 * 2.5e11)
    assert 0.1 * per_peak < found[1]["active_params"] < 0.6 * per_peak


@pytest.mark.slow
def test_a_longer_deadline_never_lowers_it(found):
    longer = largest_active(assess(Design.from_text(BY_SIZE.format(12))))
    assert longer["active_params"] >= found[1]["active_params"]


@pytest.mark.parametrize(
    "model",
    ["llama-3.1-8b", "{size: 40e9}", "{size: 40e9, moe: true, active: 8e9}", "mixtral-8x7b"],
)
def test_otherwise_the_question_does_not_arise(model):
    text = BY_SIZE.format(8).replace("{size: 40e9, moe: true}", model)
    assert largest_active(assess(Design.from_text(text))) is None
    assert (
        largest_active(assess(Design.from_text(BY_SIZE.format(8).partition("constraints")[0])))
        is None
    )


@pytest.mark.slow
def test_none_where_even_the_smallest_is_too_slow():
    assert largest_active(assess(Design.from_text(BY_SIZE.format(0.001)))) is None
