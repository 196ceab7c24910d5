"""The full round: a dense model of the 100B to 700B class on 16,384 H100, from the first questions
to the defence of the plan."""

from scantling import assess

# ---- plan


def plan_rows(design, tried):
    return [(name, assess(design.change(plan=plan))) for name, plan in tried]


# ---- half the fleet


def half_answer(smaller, result):
    return "b" if smaller.mfu > result.mfu else "a"
