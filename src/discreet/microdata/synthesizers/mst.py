"""MST: a tree of noisy pairs of columns."""

from __future__ import annotations

import dataclasses
import itertools
from typing import ClassVar

import numpy as np

from discreet.dp.graphical.domain import Clique, Numbers
from discreet.dp.graphical.estimation import Model, estimate, measured
from discreet.dp.spending import Spending
from discreet.errors import InputError
from discreet.microdata.synthesizers._private import PrivateSynthesizer
from discreet.microdata.synthesizers._tables import Coding, Tables
from discreet.progress import Progress

__all__ = ["MST"]

#: Scores are whole numbers: so many steps for one record.
_STEPS = 64
#: A pair of columns with more cells than this does not fit.
_CELLS = 5_000_000


@dataclasses.dataclass(frozen=True)
class MST(PrivateSynthesizer):
    """Measure every column and a spanning tree of pairs with noise, and draw from their model.

    A third of the budget goes to single columns, a third to choosing the pairs whose tables differ
    most from independence, a third to measuring these. Fast; keeps the ties along the tree only.
    `bins` and `missing` say how public bounds are cut and where values may be missing.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(
    ...     pd.DataFrame({"sex": ["f", "m"] * 500, "job": ["x", "y"] * 500}),
    ...     roles={"sex": "quasi", "job": "other"},
    ...     domains={"sex": ["f", "m"], "job": ["x", "y"]},
    ... )
    >>> made = dc.synthesize(people, MST(epsilon=5, delta=1e-6), n=100)
    >>> made.frame.shape, made.promise[:9]
    ((100, 2), '(5, 1e-06')
    """

    name: ClassVar[str] = "mst"
    reference: ClassVar[str] = "McKenna, Miklau and Sheldon, JPC 2021"

    @property
    def keeps(self) -> str:
        """What the records keep."""
        return (
            "noisy tables of every single column and of the pairs along one tree; other pairs as far "
            "as they follow from these; nothing else"
        )

    def _require_size(self, coded: list[Coding]) -> None:
        one, two = sorted(coded, key=lambda c: -c.codes)[:2] if len(coded) > 1 else (coded[0],) * 2
        if one.codes * two.codes > _CELLS:
            raise InputError(
                f"columns {one.name!r} and {two.name!r} have {one.codes:,} × {two.codes:,} codes "
                "together, which is too many",
                code="domain-too-large",
                hint=f"declare fewer: domains={{{one.name!r}: {{'cuts': […]}}}}, at most "
                f"{_CELLS // two.codes:,} codes",
                column=one.name,
            )

    def _modelled(
        self, tables: Tables, spending: Spending, progress: Progress
    ) -> tuple[Model, list[str]]:
        columns = range(len(tables.sizes))
        # One column has no pairs to choose and measure: it gets the whole budget.
        third = float(spending.grant) / (3 if len(columns) > 1 else 1)
        found: list[tuple[Clique, Numbers, float]] = []
        for place in columns:
            progress("columns", place, len(columns))
            counts, deviation = spending.noisy(tables.counts((place,)), third / len(columns))
            found.append(((place,), counts, deviation))
        model = estimate(tables.sizes, measured(found))
        edges = self._edges(tables, model, spending, third)
        for done, edge in enumerate(edges):
            progress("pairs", done, len(edges))
            # The last ones share what is left, so that nothing is granted and not used.
            rho = spending.left / (len(edges) - done)
            found.append((edge, *spending.noisy(tables.counts(edge), rho)))
        if edges:
            progress("fits", 1, 2)
            model = estimate(tables.sizes, measured(found), warm=model)
        progress("pairs", len(edges), len(edges))
        names = [" × ".join(tables.codings[place].name for place in edge) for edge in edges]
        return model, names

    def _edges(
        self, tables: Tables, model: Model, spending: Spending, rho: float
    ) -> list[tuple[int, int]]:
        """Return a spanning tree of pairs, each chosen by lot, large differences first."""
        columns = range(len(tables.sizes))
        total = model.beliefs.total
        score = {}
        for one, two in itertools.combinations(columns, 2):
            alone = np.outer(model.beliefs.marginal((one,)), model.beliefs.marginal((two,)))
            away = np.abs(tables.counts((one, two)) - alone / total).sum()
            score[one, two] = int(np.floor(_STEPS * away))
        part = list(columns)
        edges = []
        for _ in range(len(columns) - 1):
            open_ = [pair for pair in score if part[pair[0]] != part[pair[1]]]
            place = spending.chosen(
                [score[pair] for pair in open_],
                rho / (len(columns) - 1),
                sensitivity=_STEPS + 1,
            )
            one, two = open_[place]
            edges.append((one, two))
            part = [part[one] if own == part[two] else own for own in part]
        return edges
