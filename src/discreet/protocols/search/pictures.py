"""A page on disguises: privacy against cost, posterior per bucket, a profile before and after."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.page import Page, Section, svg
from discreet.protocols.search._base import SearchRisk, Vocabulary
from discreet.protocols.search.goopir import Buckets, Goopir

__all__ = ["search_page"]

_COLOUR = "#0b6e75"
#: Terms of a profile that are drawn.
_MOST = 15


def search_page(risk: SearchRisk, vocabulary: Vocabulary) -> Page:
    """Return what disguises hide and cost, with pictures.

    Examples
    --------
    >>> from discreet.protocols.search import search_risk
    >>> words = Vocabulary.zipf(300)
    >>> page = search_page(search_risk(words), words)
    >>> [section.title for section in page.sections]
    ['Figures', 'Privacy against cost', 'Posterior per bucket', 'A profile before and after']
    """
    goopir = Goopir()
    buckets = goopir.prepare(vocabulary)
    return Page(
        "Disguises compared",
        (
            Section("Figures", table=risk),
            Section(
                "Privacy against cost",
                text="How often the attacker is right, once and after repeats, against what is sent "
                "for each real search.",
                picture=svg(_costs(risk)),
            ),
            Section(
                "Posterior per bucket",
                text=f"Goopir: the probability of the likeliest term of each bucket; the cap is "
                f"{goopir.cap:g}.",
                picture=svg(_posteriors(buckets, goopir.cap)),
            ),
            Section(
                "A profile before and after",
                text=f"Shares of the {_MOST} commonest terms in what users search for, and in what the "
                "engine sees under Goopir.",
                picture=svg(_profiles(buckets)),
            ),
        ),
        lead=f"{len(vocabulary.terms):,} terms. The attacker knows how often people search for each.",
    )


def _costs(risk: SearchRisk) -> Any:
    # Any: an Altair chart; Altair is imported only where something is drawn.
    import altair as alt
    import pandas as pd

    lines = [
        {"disguise": one.disguise, "attacker": words, "right": value, "sent": one.overhead}
        for one in risk.disguises
        for words, value in (("once", one.right), ("after repeats", one.repeated))
    ]
    base = alt.Chart(pd.DataFrame(lines)).encode(
        x=alt.X("sent:Q", title="sent for each search", scale=alt.Scale(type="log")),
        y=alt.Y("right:Q", title="attacker right", scale=alt.Scale(domain=[0, 1])),
    )
    points = base.mark_point(size=80, filled=True).encode(
        color=alt.Color("attacker:N", title=None), shape=alt.Shape("disguise:N", title=None)
    )
    return points.properties(width=460, height=260)


def _posteriors(buckets: Buckets, cap: float) -> Any:
    import altair as alt
    import pandas as pd

    weights = buckets.vocabulary.weights
    likeliest = []
    for number, members in enumerate(buckets.members):
        inside = weights[list(members)]
        likeliest.append({"bucket": number + 1, "posterior": float(inside.max() / inside.sum())})
    # A picture of thousands of buckets shows a sample of them.
    shown = pd.DataFrame(likeliest[:: max(len(likeliest) // 400, 1)])
    line = alt.Chart(shown).mark_line(color=_COLOUR)
    found = line.encode(x="bucket:Q", y=alt.Y("posterior:Q", scale=alt.Scale(domain=[0, 1])))
    limit = alt.Chart(pd.DataFrame({"cap": [cap]})).mark_rule(strokeDash=[4, 4]).encode(y="cap:Q")
    return (found + limit).properties(width=460, height=220)


def _profiles(buckets: Buckets) -> Any:
    import altair as alt
    import pandas as pd

    words = buckets.vocabulary
    seen = np.zeros(len(words.terms))
    for members in buckets.members:
        places = list(members)
        seen[places] = words.weights[places].sum()
    seen /= seen.sum()
    lines = [
        {"term": words.terms[place], "profile": kind, "share": float(shares[place])}
        for kind, shares in (("searched for", words.weights), ("seen", seen))
        for place in range(min(_MOST, len(words.terms)))
    ]
    bars = alt.Chart(pd.DataFrame(lines)).mark_bar(color=_COLOUR)
    return bars.encode(
        x=alt.X("share:Q", title=None),
        y=alt.Y("term:N", title=None, sort=None),
        column=alt.Column("profile:N", title=None, sort=["searched for", "seen"]),
    ).properties(width=220, height=18 * _MOST)
