"""Walkthroughs: every listed wrong answer goes through the check and meets its own feedback; right
ones are right."""

from __future__ import annotations

import base64
import json
import math
import re
from html import unescape

import pytest
import scantling_walkthroughs as learn
from reading import texts
from scantling import assess
from scantling.catalogue.models.shape import causal_flops_per_token, parameters
from scantling_walkthroughs import measured, question_pages
from scantling_walkthroughs.books.w02_memory_wall import sharded_bytes
from scantling_walkthroughs.grade import grade, unanswered
from scantling_walkthroughs.question import Choice, Explain, Number, Plan
from scantling_walkthroughs.right_answers import right_answer
from scantling_walkthroughs.rubric import LEVELS, rubric

WALKTHROUGHS = list(learn.walkthroughs().values())
QUESTIONS = [(w, q) for w in WALKTHROUGHS for q in w.questions]
FACTS = {w.number: w.facts for w in WALKTHROUGHS}


def ident(pair):
    return f"{pair[0].number}.{pair[1].id}"


def of_kind(kind):
    return pytest.mark.parametrize(
        ("w", "q"),
        [p for p in QUESTIONS if isinstance(p[1], kind)],
        ids=[ident(p) for p in QUESTIONS if isinstance(p[1], kind)],
    )


each = pytest.mark.parametrize(("w", "q"), QUESTIONS, ids=map(ident, QUESTIONS))
each_walkthrough = pytest.mark.parametrize("w", WALKTHROUGHS, ids=[w.number for w in WALKTHROUGHS])


# ---------------------------------------------------------------- the questions
@each_walkthrough
def test_a_walkthrough_is_an_hour_of_a_dozen_questions(w):
    assert 8 <= len(w.questions) <= 16
    assert 45 <= w.minutes <= 60
    assert 0.8 * w.minutes <= sum(q.minutes for q in w.questions) <= w.minutes
    assert len({q.id for q in w.questions}) == len(w.questions)
    assert learn.walkthroughs()[w.number] is w
    assert any(q.level == "staff" for q in w.questions)


@each
def test_a_question_is_complete(w, q):
    seen = 0
    assert q.axis in rubric()[0]
    assert q.level in LEVELS
    assert len(q.hints) == 3
    assert q.worked.strip()
    for text in texts(q):
        seen += 1
        assert not re.search(r"[{}]|\bnan\b|\binf\b", text), text
    assert seen


@each
def test_the_right_answer_is_right(w, q):
    verdict = grade(q, right_answer(q))
    assert verdict.right, verdict.says
    assert verdict.credit == 1.0
    assert unanswered(None)
    assert grade(q, ...).status == "open"


@of_kind(Number)
def test_every_slip_meets_its_own_feedback(w, q):
    assert q.slips
    for i, slip in enumerate(q.slips):
        value = slip.value / q.scale
        verdict = grade(q, value)
        assert (verdict.status, verdict.slip) == ("slip", i), (i, value, verdict)
        assert verdict.says == slip.says
        assert verdict.credit == 0.0


@of_kind(Number)
def test_a_number_off_the_list_is_told_which_way_it_is_off(w, q):
    right = right_answer(q)
    listed = [s.value / q.scale for s in q.slips]
    far = next(
        f
        for f in (7.3, 11.7, 13.1, 17.9, 23.3)
        if all(abs(math.log(abs(right * f / s))) > 0.2 for s in listed)
    )
    assert "high" in grade(q, right * far).says
    assert grade(q, "no idea").status == "unreadable"
    assert grade(q, f"{right!r}").right


@of_kind(Choice)
def test_every_wrong_option_says_why(w, q):
    right = set(q.right)
    assert right < {o.key for o in q.options}
    for i, option in enumerate(q.options):
        if option.key in right:
            continue
        assert option.says
        verdict = grade(q, sorted(right | {option.key}) if q.several else option.key)
        assert (verdict.status, verdict.slip) == ("slip", i)
        assert option.says in verdict.says
    if q.several:
        if len(right) > 1:
            assert "1 more" in grade(q, sorted(right)[1:]).says
        assert grade(q, ", ".join(sorted(right))).right
    assert grade(q, "zz").status == "unreadable"


@pytest.mark.slow
@of_kind(Plan)
def test_every_wrong_plan_meets_its_own_feedback(w, q):
    for i, slip in enumerate(q.slips):
        verdict = grade(q, dict(slip.example))
        assert (verdict.status, verdict.slip) == ("slip", i), (dict(slip.example), verdict)
        assert re.search(r"\d", verdict.says), "feedback names the numbers of that very plan"
    assert grade(q, {n: 7 for n in q.names}).status in ("wrong", "slip")
    assert "has to say" in grade(q, {}).says
    typed = ", ".join(f"{k} {v}" for k, v in right_answer(q).items())
    assert grade(q, typed).right


@of_kind(Explain)
def test_explanations_are_set_beside_their_points_and_not_graded_on_words_alone(w, q):
    full = grade(q, q.model)
    assert all(full.hits)
    assert "yourself" in full.says
    assert grade(q, "Because.").credit == 0.0
    assert grade(q, "Because.", mine=range(1, len(q.points) + 1)).credit == 1.0
    assert grade(q, q.model, mine=[1]).credit == pytest.approx(1 / len(q.points))


def test_a_plan_that_cannot_run_or_does_not_fit_says_so():
    w = learn.walkthrough("full_round")
    q = w.question("plan")
    assert (
        "hidden" in grade(q, {"tp": 3, "pp": 16, "dp": 128}).says
        or "divide" in grade(q, {"tp": 3, "pp": 16, "dp": 128}).says
    )
    assert re.search(
        r"does not fit: .* GB", grade(q, {"tp": 8, "pp": 1, "dp": 1024, "sharding": "zero1"}).says
    )


# ---------------------------------------------------------------- a session
def test_credit_falls_with_wrong_tries_and_hints_and_nothing_is_locked():
    s = learn.begin("01")
    assert not s.check("flops").right
    assert s.credit("flops") == 0.0
    s.check("flops", s.facts.flops / 3)
    s.hint("flops")
    card = s.check("flops", s.facts.flops)
    assert card.right
    assert s.credit("flops") == pytest.approx(1 - 0.25 - 0.15)
    s.check("ratio", 9)
    assert s.credit("ratio") == 1.0
    s.check("ratio", 18)  # what was right stays right
    s.answer("ratio")  # and reading on costs nothing
    assert s.credit("ratio") == 1.0


def test_the_scorecard_names_axes_level_and_what_to_do_again():
    s = learn.begin("01")
    for q in s.walkthrough.questions:
        if q.axis != "memory":
            s.check(q.id, right_answer(q))
    card = s.scorecard()
    by_axis = {a.axis.key: a for a in card.axes}
    assert by_axis["memory"].points == 0.0
    assert by_axis["memory"].shows == "not answered", "nothing is said of what nobody answered"
    assert by_axis["size"].shows == by_axis["size"].axis.staff
    assert by_axis["size"].points == by_axis["size"].most
    assert [q.id for q, _ in card.redo] == ["state"]
    assert "Fill the memory" in card.redo[0][1]
    assert card.level.name == "staff"
    assert not card.full
    assert "staff" in repr(card)
    assert "Do again" in card._repr_html_()
    empty = learn.begin("01").scorecard()
    assert empty.level.name == "mid"
    assert len(empty.redo) == 3
    assert all(
        axis.staff in unescape(empty._repr_html_()) for axis in (a.axis for a in empty.axes)
    ), "nothing answered: the rubric itself is shown"


def test_levels_follow_the_thresholds_of_the_rubric():
    from scantling_walkthroughs.rubric import level_of

    assert [level_of(p, 18).name for p in (0, 6, 7, 12, 13, 18)] == [
        "mid",
        "mid",
        "senior",
        "senior",
        "staff",
        "staff",
    ]
    assert len(rubric()[0]) == 9


def test_a_blank_gives_nothing_away_before_the_end():
    s = learn.begin("02", "blank")
    q = s.walkthrough.question("card")
    card = s.check("card", 80)
    for shown in (repr(card), card._repr_html_()):
        assert "Noted" in shown
        assert not re.search(r"slip|Hint|Worked|box", shown)
    assert s.work("card", "anything") is None
    s.started -= 17 * 60
    s.check("state", "66 GB")
    end = s.scorecard()._repr_html_()
    assert "17 of 50 minutes" in end
    assert re.search(r"<code>state</code></td>.*?<td>17</td></tr>", end), "when each answer came"
    assert "A usual slip" in end
    assert q.slips[2].says.split(".")[0] in end


def test_a_student_sees_folds_and_an_instructor_answers():
    student, teacher = learn.begin("03"), learn.begin("03", "instructor")
    closed, opened = student.check("rails")._repr_html_(), teacher.check("rails")._repr_html_()
    assert (closed.count("<details"), opened.count("<details")) == (4, 5), (
        "a teacher has the usual slips as well"
    )
    assert "Usual slips" in opened and "That is one port." in opened
    assert "<details open" not in closed
    assert 'scl-answer" open' in opened
    assert "data-key" in closed
    assert "data-key" not in opened
    assert str(question_pages.answer_as_text(student.walkthrough.question("rails"), 400)) in opened
    assert '<details class="scl-work"><summary>' in student.work("rails", "x")._repr_html_()
    student.check("rails", 400)
    assert 'scl-work" open' in student.work("rails", "x")._repr_html_(), (
        "what was answered right opens"
    )
    with pytest.raises(ValueError, match="mode"):
        learn.begin("03", "teacher")


def test_the_key_of_a_page_is_of_the_kind_that_its_script_compares():
    """One option: its key; several: a list of keys."""
    w = learn.walkthrough("08")
    one = next(q for q in w.questions if isinstance(q, Choice) and not q.several)
    several = next(q for q in w.questions if isinstance(q, Choice) and q.several)
    keys = [json.loads(base64.b64decode(question_pages._key(q))) for q in (one, several)]
    assert keys[0]["right"] == right_answer(one)
    assert keys[1]["right"] == sorted(right_answer(several))


def test_check_by_name_and_what_there_is_not():
    assert learn.check("01.ratio", "9 times").right
    assert learn.check("full_round.ratio", 18).slip == 0
    with pytest.raises(KeyError, match="ratio"):
        learn.check("01.nothing", 1)
    with pytest.raises(KeyError, match="full_round"):
        learn.begin("99")


# ---------------------------------------------------------------- with controls
@pytest.fixture
def widgets():
    """A session as a notebook in Jupyter has it, without a browser."""
    from scantling_widgets.pages import walkthrough_widgets as live

    return lambda mode="student": live.begin("02", mode, controls=True)


def does(front, **done):
    """What the script of the page sends when the reader does something."""
    front.given = {"serial": front.given.get("serial", 0) + 1} | done


def test_controls_ask_check_and_hint(widgets):
    s = widgets()
    front = s.check("card").front()
    assert front.key["kind"] == "number" and front.key["act"] == "Check"
    assert front.html.count("<details") == 4 and front.said == question_pages.block("")
    does(front, answer="80")
    assert "name on the box" in front.said
    does(front, hints=1)
    assert s.hints["card"] == 1
    does(front, answer="85.5")
    assert "Right" in front.said
    assert s.credit("card") == pytest.approx(1 - 0.25 - 0.15)
    again = s.check("card").front()
    assert again.html.count("<details open") == 1, "hints that were taken stay open"
    assert s.check("card", 80).front().said != again.said, "an answer in the cell is judged"
    choice = s.check("flight").front()
    assert not choice.key["several"]
    does(s.check("flight").front(), answer=["b"])  # a second front does not disturb the first
    assert choice.said == question_pages.block("")
    does(choice, answer=["b"])
    assert "Right" in choice.said
    does(choice, answer=[])
    assert "Type an answer" in choice.said


def test_the_reader_ticks_the_points_of_an_explanation(widgets):
    s = widgets()
    front = s.check("launch").front()
    does(front, answer="The allocator fragments.")
    assert s.last("launch").hits == (True, False, False)
    does(front, answer="The allocator fragments.", mine=[1, 2, 3])
    assert "by your own count 3 of 3" in front.said
    assert s.last("launch").credit == 1.0


def test_a_blank_with_controls_says_nothing_before_it_is_handed_in(widgets):
    s = widgets("blank")
    front = s.check("card").front()
    assert front.key["act"] == "Note"
    assert "<details" not in front.html and "data-key" not in front.html
    does(front, answer="80")
    assert "Noted" in front.said and "box" not in front.said
    done, shown = s.scorecard().children
    assert shown.value == ""
    done.click()
    assert "name on the box" in shown.value


def test_the_scorecard_follows_the_answers(widgets):
    s = widgets()
    (shown,) = s.scorecard().children
    assert "Nothing is answered yet" in shown.value
    s.judge(s.walkthrough.question("card"), 85.5)
    assert "points: mid" in shown.value


# ---------------------------------------------------------------- against what was published
def test_facts_agree_with_what_they_are_modelled_on():
    one, two, three, four = (FACTS[n] for n in ("01", "02", "03", "04"))
    assert one.mtbf_s == pytest.approx(measured.published("llama3-mtbf").value, rel=0.01)
    assert one.result.devices_used == one.devices
    assert two.saved_gpt3 == pytest.approx(
        measured.published("selective-saved-175b").value, abs=0.006
    )
    assert two.saved_mtnlg == pytest.approx(
        measured.published("selective-saved-530b").value, abs=0.006
    )
    for stage in ("zero1", "zero2", "zero3"):
        assert getattr(sharded_bytes(7.5e9, 64), stage) == pytest.approx(
            measured.published(f"zero-7.5b-{stage}").value, rel=0.005
        )
    tried = assess(
        two.design.change(plan={"tp": 8, "pp": 1, "dp": 8, "sharding": "zero1"})
    ).memory_bytes
    assert two.state_zero1 == pytest.approx(
        tried["weights"] + tried["gradients"] + tried["optimizer"], rel=0.01
    ), "the sum by hand is the kit's"
    # with sequence parallelism the backward pass gathers the inputs of attention and MLP once more
    # (Korthikanti et al. 2022, section 4.2.2): ten gathers and scatters of a layer, where the sum
    # by hand counts eight; a layer that is recomputed has the forward pass's four again
    plan = three.classic.plan
    stage = math.ceil(three.model.layers / three.pp)
    again = plan["recompute_layers"] if plan["recompute"] == "full" else 0
    collectives = 10 + 4 * again / stage
    assert three.tp_bytes * collectives / 8 == pytest.approx(
        three.tp_row["bytes"] / (plan["grad_accum"] * stage), rel=0.01
    )
    assert three.pp_step == pytest.approx(
        three.pp_bytes * 2 * three.parts * three.micro_batches, rel=0.01
    )
    assert three.rails == pytest.approx(three.busbw(536870912), rel=0.05), (
        "two nodes of H100 measured by nccl-tests"
    )
    assert four.total == pytest.approx(four.published_total.value, rel=0.002)
    assert four.active == pytest.approx(four.published_active.value, rel=0.02)
    assert four.hours == pytest.approx(four.published_hours.value, rel=0.002)


CLAIMS = {
    "01 the second stage is the fullest": lambda f: (
        max(range(16), key=lambda i: f.result.as_dict()["memory_by_stage"][i]["total"]) == 1
    ),
    "01 context parallelism saves what the published degrees recompute": lambda f: (
        f.result.plan["cp"] == 2
        and f.result.step_breakdown_s["recompute"] == 0
        and f.plan_rows[1][1].plan["cp"] == 1
        and f.plan_rows[1][1].step_s > 1.1 * f.result.step_s
    ),
    "01 tensor parallelism across two nodes costs, and is no catastrophe": lambda f: (
        1.02 < f.plan_rows[2][1].step_s / f.plan_rows[0][1].step_s < 1.2
    ),
    "02 the best plan is tight, within the allowed chance of running out": lambda f: (
        0 < f.result.oom_probability <= f.oom_allowed and f.result_share > 0.75
    ),
    "02 with the plan kept only activations grow, in proportion to the length": lambda f: (
        f.context_parts["activations"] == pytest.approx(16, rel=0.01)
        and all(f.context_parts[part] == 1 for part in ("weights", "gradients", "optimizer"))
    ),
    "02 stages and ZeRO-3 lie close together": lambda f: (
        f.result.plan["sharding"] == "zero3"
        and f.result.plan["pp"] == 1
        and abs(f.piped.step_s / f.result.step_s - 1) < 0.1
        and f.piped.bubble_fraction < 0.06
        and f.piped.step_breakdown_s["recompute"] < 0.02 * f.piped.step_s
    ),
    "02 tensor 8 with ZeRO-1 fits on the devices only by recomputing nearly everything": lambda f: (
        f.tight.plan["offload"] == "none" and f.tight.fits and f.recomputed > 0.9
    ),
    "02 recompute of everything: the measured ratio is near four thirds": lambda f: (
        abs(
            f.recompute_pair[1].tokens_per_s_measured
            / f.recompute_pair[0].tokens_per_s_measured
            / (4 / 3)
            - 1
        )
        < 0.03
    ),
    "03 tp 8 is best, tp 4 and 16 are slower": lambda f: (
        f.best_tp == 8 and min(f.by_tp[4].step_s, f.by_tp[16].step_s) > f.by_tp[8].step_s
    ),
    "03 the stages hardly matter at tp 8, and cp 2 saves the recompute": lambda f: (
        all(a.plan["cp"] == 2 for a in f.by_pp.values())
        and max(a.step_s for a in f.by_pp.values()) < 1.03 * f.result.step_s
        and f.whole_sequences.step_breakdown_s["recompute"] > 0.1 * f.whole_sequences.step_s
    ),
    "03 half the bandwidth out of every device hardly matters": lambda f: (
        f.slow_net.step_s < 1.05 * f.classic.step_s
    ),
    "03 sharding alone gets slower from 8,192 to 16,384 devices": lambda f: (
        f.fsdp[4][1].step_s > f.fsdp[3][1].step_s
    ),
    "03 the rack wants no wider tensor parallelism": lambda f: f.rack_best <= 8,
    "04 a little tensor parallelism at most": lambda f: (
        max(f.by_tp[1].step_s, f.by_tp[2].step_s) < min(f.by_tp[4].step_s, f.by_tp[8].step_s)
    ),
    "04 DualPipe buys time, most of it by sharing the head": lambda f: (
        f.plain.step_breakdown_s["logits"] - f.run.step_breakdown_s["logits"]
        > 0.5 * (f.plain.step_s - f.run.step_s)
        > 0
    ),
    "05 the valley is flat": lambda f: 0 < f.flat < 0.03,
    "05 the restart is the largest loss, then the lever": lambda f: (
        (f.async_largest, f.lever) == ("c", "b")
    ),
    "10 the layers' weights are the kit's, but for convolution, norm and biases": lambda f: (
        0.999
        < (f.scans * f.scan_layer + f.attentions * f.attention_layer)
        / parameters(f.model).attention
        < 1
    ),
    "10 layer and length cost what the kit counts at the crossing": lambda f: (
        abs(
            causal_flops_per_token(f.model, f.cross) / causal_flops_per_token(f.twin_model, f.cross)
            - 1
        )
        < 0.002
    ),
    "10 slower at the short length, even or nearly at the middle, faster at the long": lambda f: (
        f.short_ratio > 1.2 and 0.9 < f.middle_ratio < 1.1 and f.speedup > 1.4
    ),
    "10 the first stage is the fullest, with fewer layers on the last": lambda f: (
        f.first_bytes == max(row["total"] for row in f.stages)
        and f.last_layers < f.first_layers
        and f.even_cost > 0.03
    ),
    "10 a hybrid keeps more activations than its twin": lambda f: (
        f.stage_activation_bytes > 1.2 * f.twin_activation_bytes
    ),
    "10 the even split is as the question says": lambda f: all(
        stage["blocks"] == {"mamba2": 6, "mlp": 6, "attention": 1}
        for stage in f.even.as_dict()["stages"]
    ),
    "06 what the slow node computes longer is what the reduction is too long": lambda f: (
        f.m * f.compute_ms * f.slow_compute_share / 1e3
        == pytest.approx((f.gradient_times - 1) * f.kit_dp_s)
    ),
    "06 interleaving lets fewer tensor ranks and more stages win": lambda f: (
        f.best.plan["vpp"] > 1
        and f.best.plan["tp"] < f.tp
        and f.best.plan["pp"] > f.pp
        and f.best.step_s < f.interleaved.step_s < f.after.step_s
    ),
    "06 most of the fall is the bubble": lambda f: (
        f.mfu_small - f.expected > f.expected - f.mfu_large > 0
    ),
    "06 the small run is as it should be": lambda f: (
        abs(f.before.step_s / f.step_small_s - 1) < 0.06 < 1 - f.after.step_s / f.step_s
    ),
    "07 less than half of the memory is used, and tensor 4 fits": lambda f: (
        f.inside.memory_bytes["total"] < 0.5 * f.inside.memory_bytes["capacity"]
        and f.best.plan["tp"] <= 4
    ),
    "07 nobody has reached the MFU of the document": lambda f: f.implied > 1.1 * f.record.mfu,
    "08 one package keeps both limits": lambda f: f.meets == ["c"],
    "08 twice the batch and twice the devices both cost": lambda f: (
        min(f.twice_extra, f.doubled_usd_share) > 0.02
    ),
    "08 the tokens are the cheaper gift": lambda f: f.softer == "a",
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_the_prose_claims_is_what_the_kit_says(claim):
    assert CLAIMS[claim](FACTS[claim[:2]])


def test_published_rows_are_read_and_named():
    (run,) = measured.runs("llama3-405b-t4-2")
    assert run.devices == 16384
    assert run.mfu_measured == pytest.approx(400e12 / 989e12, abs=0.002), (
        "Llama 3, table 4: 400 TFLOP/s per device"
    )
    with pytest.raises(KeyError, match="nothing-1"):
        measured.runs("nothing-1")
    with pytest.raises(KeyError, match="dsv3-usd"):
        measured.published("nothing")


def test_beside_shows_errors_and_ranges():
    table = learn.compare(
        ("a", 110, 100, "ratio", "x"),
        ("b", 0.4, (0.38, 0.43), "share", "y"),
        ("c", 0.5, (0.38, 0.40), "share", "z"),
    )
    assert table.worst == pytest.approx(0.25)
    assert "+10.0 %" in repr(table)
    assert "inside" in table._repr_html_()
