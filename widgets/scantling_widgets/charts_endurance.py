"""Where wall time goes that is not training: the shares that failures and saves take."""
from __future__ import annotations

from .figures import Figure, named
from .grammar import alt
from .words import label_or, share


def shares(given) -> dict:
    """Shares of wall time that are not productive, largest first, those that are nil left out."""
    badput = (given.get("endurance") or {}).get("badput") or {}
    return dict(sorted(((k, v) for k, v in badput.items() if v and v > 0), key=lambda item: -item[1]))


def _badput_data(given) -> dict:
    lost = shares(given)
    names = [label_or(f"endurance.badput.{key}", key) for key in lost]
    return {"lost": {"what": names, "share": list(lost.values()), "text": [share(v) for v in lost.values()], "says": [f"{n}: {share(v)} of wall time" for n, v in zip(names, lost.values())]}}


def _badput_words(given) -> str:
    return "Share of wall time that is not training: " + "; ".join(_badput_data(given)["lost"]["says"]) + "."


def _badput_chart(legend: bool = False) -> alt.Chart:
    y = alt.Y("what:N", title=None, sort="-x", axis=alt.Axis(ticks=False, domain=False, minExtent=105))
    x = alt.X("share:Q", title="share of wall time", axis=alt.Axis(format="~%", tickCount=5), scale=alt.Scale(domainMin=0, nice=True))
    base = alt.Chart(named("lost")).encode(y=y, x=x, tooltip=alt.Tooltip("says:N", title=" "))
    return alt.layer(base.mark_bar(color="#cc79a7", stroke=None), base.mark_text(align="left", dx=4, fontSize=11, style="ink-text").encode(text="text:N"))


badput = Figure("badput", "Where the rest of the wall time goes", _badput_chart, _badput_data, _badput_words, height=170, empty="No failures and no saves: all of the time is training.")
