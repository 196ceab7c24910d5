"""Money that is no dollar is asked about, in a file and in a line."""

import pytest
from scantling.base.errors import DesignError
from scantling.base.typed import currency, dollars
from scantling.design.design import Design
from scantling_brief.brief import read_brief

BASE = {
    "scantling": 1,
    "name": "x",
    "model": "llama-3.1-70b",
    "cluster": {"accelerator": "h100-sxm", "devices": 512},
    "job": {"tokens": 2e12},
}
MONEY = ("2.5 EUR", "€2.5", "£ 2.5", "2.5 CHF", "3 MEUR", "300 million yen", "2 CAD", "A$2", "5 kr")
FIELDS = (
    ("prices", "usd_per_device_hour"),
    ("prices", "usd_per_kwh"),
    ("constraints", "budget_usd"),
)


@pytest.mark.parametrize(("section", "field"), FIELDS)
@pytest.mark.parametrize("money", MONEY[:-1])
def test_another_currency_in_a_file_is_asked_about(section, field, money):
    with pytest.raises(DesignError, match="dollars are planned with"):
        Design.from_data(BASE | {section: {field: money}})


@pytest.mark.parametrize("name", ("budget_eur", "eur_per_device_hour", "budget_gbp", "currency"))
def test_a_field_in_another_currency_says_that_dollars_are_planned_with(name):
    for section in ("prices", "constraints"):
        with pytest.raises(DesignError, match="dollars are planned with"):
            Design.from_data(BASE | {section: {name: 5}})


@pytest.mark.parametrize("text", ("$2.5", "2.5 USD", "US$2.5", "2.5 dollars"))
def test_dollars_with_their_sign_are_named_as_the_nearest(text):
    assert dollars(text) == 2.5 and currency(text) is None
    with pytest.raises(DesignError, match="nearest: 2.5"):
        Design.from_data(BASE | {"prices": {"usd_per_device_hour": text}})


@pytest.mark.parametrize(
    "word", ("Europe", "wonder", "usd_per_device_hour", "deadline_days", "franchise", "5 kr")
)
def test_other_words_are_no_money(word):
    assert currency(word) is None


@pytest.mark.parametrize("money", ("2.10 EUR per GPU hour", "€2.10/GPU-h", "£1.8 an hour"))
def test_a_price_in_another_currency_asks_for_the_price(money):
    (words,) = read_brief(f"70B on 512 H100, 2T tokens, {money}").unread
    assert [*words.choices] == ["prices.usd_per_device_hour"] and words.words == money


@pytest.mark.parametrize("money", ("4 MCHF", "budget 2M euros", "15M RMB", "budget €2M"))
def test_a_budget_in_another_currency_asks_for_the_budget(money):
    (words,) = read_brief(f"70B on 512 H100, 2T tokens, {money}").unread
    assert [*words.choices] == ["constraints.budget_usd"]
