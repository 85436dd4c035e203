"""The measured parts of a synthetic release's page: tables side by side, distances, the attack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.microdata.pair import Pair
from discreet.microdata.utilities.marginals import coded_columns, distances
from discreet.page import Section

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.comparison import UtilityReport
    from discreet.microdata.judgement import SyntheticRisk

__all__ = ["measured_sections"]

#: Columns drawn side by side and in the heat map, at most.
_COLUMNS = 16
#: A class of fewer original records is not drawn.
_FEWEST = 10


def measured_sections(
    original: Dataset,
    released: Dataset,
    risk: SyntheticRisk,
    utility: UtilityReport,
    independent: float,
) -> list[Section]:
    """Return what was lost and what intruders gain, with pictures."""
    from discreet.microdata.pictures import curve, heat_map, paired_bars

    pair = Pair.of(original, released, paired=False)
    columns = coded_columns(pair)
    names = sorted(columns)[:_COLUMNS]
    pairs = [(a, b) for n, a in enumerate(names) for b in names[n + 1 :]]
    apart = distances(columns, pairs)
    shares = [row for name in names for row in _shares(name, columns[name])]
    parts = [
        Section(
            "What was lost",
            f"Columns drawn independently of each other, which keep nothing, lose {independent:.3f} in "
            "tables of two columns.",
            table=utility,
        ),
        Section(
            "Columns side by side",
            "Shares of the original and of the first file; numbers are cut into twelve classes.",
            picture=paired_bars(shares),
        ),
        Section(
            "Pairs of columns",
            "Total variation between both files' tables of two columns; darker is worse.",
            picture=heat_map(
                [{"one": a, "two": b, "value": value} for (a, b), value in apart.items()]
            ),
        )
        if pairs
        else Section("Pairs of columns", "There is only one column."),
        Section(
            "What an intruder gains",
            "The control is a file in which every attack must succeed: a bootstrap, which copies "
            "people, or the original. Where records have no place among the original ones, the method was "
            "fitted anew to one half of the records, drawn by lot; people of the other half tell what "
            "is chance.",
            table=risk,
        ),
    ]
    attack = next((f.facts for f in risk.found.findings if f.measure == "membership"), None)
    if attack is not None:
        words = f"AUC {attack['AUC']:.3f} [{attack['low']:.3f}, {attack['high']:.3f}]; the diagonal is chance."
        parts.append(Section("Telling who is in the file", words, picture=curve(attack["ROC"])))
    return parts


def _shares(name: str, column: tuple[Any, Any, int]) -> list[dict[str, Any]]:
    one, two, width = column
    shares = [np.bincount(side, minlength=width) / max(side.size, 1) for side in (one, two)]
    # The most frequent classes are enough to see whether a column is kept, and a page that leaves
    # shows no class of a few people.
    most = np.argsort(-shares[0], kind="stable")[:12]
    kept = np.sort(most[shares[0][most] * one.size >= _FEWEST])
    return [
        {"column": name, "class": f"{place:04d} {word}", "file": word, "share": float(share[place])}
        for place in kept
        for word, share in zip(("original", "synthetic"), shares, strict=True)
    ]
