"""A page on disguises: privacy against cost, posterior per bucket, a profile before and after."""

from __future__ import annotations

import numpy as np

from discreet.chart import COLOURS, Axis, Series, bars, plot
from discreet.page import Page, Section
from discreet.protocols.search._base import SearchRisk, Vocabulary
from discreet.protocols.search.goopir import Buckets, Goopir

__all__ = ["search_page"]

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
                picture=_costs(risk),
            ),
            Section(
                "Posterior per bucket",
                text=f"Goopir: the probability of the likeliest term of each bucket; the cap is "
                f"{goopir.cap:g}.",
                picture=_posteriors(buckets, goopir.cap),
            ),
            Section(
                "A profile before and after",
                text=f"Shares of the {_MOST} commonest terms in what users search for, and in what the "
                "engine sees under Goopir.",
                picture=_profiles(buckets),
            ),
        ),
        lead=f"{len(vocabulary.terms):,} terms. The attacker knows how often people search for each.",
    )


def _costs(risk: SearchRisk) -> str:
    told = {
        "once": [(one.overhead, one.right) for one in risk.disguises],
        "after repeats": [(one.overhead, one.repeated) for one in risk.disguises],
    }
    series = [
        Series(name, points, colour, is_line=False)
        for (name, points), colour in zip(told.items(), COLOURS, strict=False)
    ]
    return plot(
        series,
        Axis("sent for each search", is_log=True),
        Axis("attacker right", low=0, high=1, is_percent=True),
        notes=[(one.overhead, one.right, one.disguise) for one in risk.disguises],
    )


def _posteriors(buckets: Buckets, cap: float) -> str:
    likeliest = []
    for number in range(len(buckets.members)):
        inside = buckets.inside(number)
        likeliest.append((number + 1.0, float(inside.max() / inside.sum())))
    # A picture of thousands of buckets shows a sample of them.
    shown = likeliest[:: max(len(likeliest) // 400, 1)]
    limit = [(shown[0][0], cap), (shown[-1][0], cap)]
    return plot(
        [
            Series("likeliest term", shown, COLOURS[0], has_points=False),
            Series("cap", limit, COLOURS[1], has_points=False),
        ],
        Axis("bucket", low=0, is_whole=True),
        Axis("posterior", low=0, high=1, is_percent=True),
    )


def _profiles(buckets: Buckets) -> str:
    words = buckets.vocabulary
    seen = np.zeros(len(words.terms))
    for members in buckets.members:
        places = list(members)
        seen[places] = words.weights[places].sum()
    seen /= seen.sum()
    lines: dict[str, dict[str, float]] = {}
    for place, term in enumerate(words.terms[:_MOST]):
        lines[f"{term}, searched for"] = {"searched for": float(words.weights[place])}
        lines[f"{term}, seen"] = {"seen": float(seen[place])}
    return bars(lines, Axis("share of the searches", is_percent=True))
