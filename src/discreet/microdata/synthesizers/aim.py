"""AIM: noisy tables chosen one after the other, where the model is worst."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.dp.graphical.domain import Clique, Numbers, clique
from discreet.dp.graphical.estimation import Model, estimate, measured
from discreet.dp.graphical.junction_tree import junction_tree
from discreet.dp.spending import Spending
from discreet.errors import InputError
from discreet.microdata.synthesizers._private import PrivateSynthesizer
from discreet.microdata.synthesizers._tables import Coding, Tables
from discreet.progress import Progress
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["AIM"]

#: Nominal rounds per column: many small ones find the worst tables, and noise falls as they do.
_ROUNDS = 16
#: The share of a round that measures; the rest chooses.
_MEASURE = 0.9
#: Scores are whole numbers: so many steps for one record.
_STEPS = 64


@dataclasses.dataclass(frozen=True)
class AIM(PrivateSynthesizer):
    """Measure, round after round, the table on which the model is worst, and draw from the model.

    Single columns come first. Each round then chooses, by lot and by how wrong the model is, one
    table among those of the workload and its parts, measures it with noise and fits the model anew;
    where a round learned nothing above the noise, the next one gets more budget. `size` limits the
    cells of the model. `bins` and `missing` say how public bounds are cut and where values may be
    missing.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(
    ...     pd.DataFrame({"sex": ["f", "m"] * 500, "job": ["x", "y"] * 500}),
    ...     roles={"sex": "quasi", "job": "other"},
    ...     domains={"sex": ["f", "m"], "job": ["x", "y"]},
    ... )
    >>> made = dc.synthesize(people, AIM(epsilon=5, delta=1e-6), n=100)
    >>> rows = made.frame
    >>> bool(((rows.sex == "f") == (rows.job == "x")).mean() > 0.9)
    True
    """

    name: ClassVar[str] = "aim"
    reference: ClassVar[str] = "McKenna, Mullins, Sheldon and Miklau, PVLDB 2022"

    workload: Any = parameter(
        2, help="2 or 3: all tables of so many columns; or a list of lists of columns"
    )
    size: int = parameter(200_000, help="cells of the model at most", low=10)

    @property
    def keeps(self) -> str:
        """What the records keep."""
        tables = (
            f"tables of {self.workload} columns"
            if isinstance(self.workload, int)
            else "tables named"
        )
        return (
            f"noisy tables of every single column and of those {tables} that differ most from what "
            "the others tell; nothing else"
        )

    def check(self, dataset: Dataset) -> None:
        """Check domains and workload."""
        super().check(dataset)
        self._require_tables(self._codings(dataset))

    def _require_size(self, coded: list[Coding]) -> None:
        for one in coded:
            if one.codes > self.size:
                raise InputError(
                    f"column {one.name!r} alone has {one.codes:,} codes, more than the model may "
                    f"have cells ({self.size:,})",
                    code="domain-too-large",
                    hint=f"declare fewer: domains={{{one.name!r}: {{'cuts': […]}}}} with at most "
                    f"{max(2, int(math.sqrt(self.size)))} codes",
                    column=one.name,
                )

    def _require_tables(self, coded: Sequence[Coding]) -> None:
        """Raise an InputError where a table of the workload has more cells than the model may have.

        Of all tables of three columns the large ones are left out: their pairs stay.
        """
        tables = self._workload([one.name for one in coded])
        if self.workload == 3:
            tables = list(itertools.combinations(range(len(coded)), min(2, len(coded))))
        for own in tables:
            cells = math.prod(coded[place].codes for place in own)
            if cells > self.size:
                widest = max((coded[place] for place in own), key=lambda one: one.codes)
                most = max(2, self.size * widest.codes // cells)
                raise InputError(
                    f"the table {' × '.join(coded[place].name for place in own)} has {cells:,} cells, "
                    f"more than the model may have ({self.size:,})",
                    code="domain-too-large",
                    hint=f"declare fewer codes: domains={{{widest.name!r}: {{'cuts': […]}}}} with at "
                    f"most {most:,}, or write a larger size",
                    column=widest.name,
                )

    def _workload(self, names: Sequence[str]) -> list[Clique]:
        if isinstance(self.workload, int):
            if isinstance(self.workload, bool) or self.workload not in (1, 2, 3):
                raise _bad_workload()
            many = min(self.workload, len(names))
            return list(itertools.combinations(range(len(names)), many))
        if not isinstance(self.workload, list | tuple) or not self.workload:
            raise _bad_workload()
        lists = [self.workload] if isinstance(self.workload[0], str) else list(self.workload)
        for one in lists:
            if not one:
                raise _bad_workload()
            for name in one if isinstance(one, list | tuple) else [one]:
                if name not in names:
                    raise InputError(
                        f"the workload names {name!r}, which is no column of the release",
                        code="unknown-column",
                        hint="choose among " + ", ".join(names),
                        column=str(name),
                    )
        return [clique(names.index(name) for name in one) for one in lists]

    def _modelled(
        self, tables: Tables, spending: Spending, progress: Progress
    ) -> tuple[Model, list[str]]:
        sizes, grant = tables.sizes, float(spending.grant)
        weights = _weights(self._workload([one.name for one in tables.codings]))
        weights = {own: w for own, w in weights.items() if sizes.cells(own) <= self.size}
        share = grant / (_ROUNDS * len(sizes))
        found: list[tuple[Clique, Numbers, float]] = []
        for place in range(len(sizes)):
            counts, deviation = spending.noisy(tables.counts((place,)), _MEASURE * share)
            found.append(((place,), counts, deviation))
        model = estimate(sizes, measured(found))
        chosen: list[str] = []
        last = False
        while not last:
            progress("rounds", round(1000 * spending.share), 1000)
            last = spending.left < 2 * share
            if last:
                share = spending.left
            own = self._chosen(tables, model, weights, found, spending, share)
            before = model.beliefs.marginal(own)
            rest = spending.left if last else _MEASURE * share
            counts, deviation = spending.noisy(tables.counts(own), rest)
            found.append((own, counts, deviation))
            # What is measured next corrects this fit: only the last one has to be exact.
            fitness = (
                {"rounds": 1000, "tolerance": 1e-5} if last else {"rounds": 60, "tolerance": 1e-3}
            )
            progress("fits", len(chosen), len(chosen) + 1)
            model = estimate(sizes, measured(found), warm=model, **fitness)  # type: ignore[arg-type]  # both are numbers
            chosen.append(" × ".join(tables.codings[place].name for place in own))
            moved = np.abs(model.beliefs.marginal(own) - before).sum()
            if moved <= _expected(deviation, before.size):
                share *= 4  # half the noise, twice the certainty of the choice
        progress("rounds", 1000, 1000)
        return model, list(dict.fromkeys(chosen))

    def _chosen(
        self,
        tables: Tables,
        model: Model,
        weights: dict[Clique, int],
        found: Sequence[tuple[Clique, Numbers, float]],
        spending: Spending,
        share: float,
    ) -> Clique:
        """Return the table on which the model is worst, beyond what noise would make it."""
        known = {own for own, _, _ in found}
        allowed = self.size * min(1.0, spending.share + share / float(spending.grant))
        now = junction_tree(tables.sizes, known).cells
        candidates = [
            own
            for own in weights
            if own in known or junction_tree(tables.sizes, known | {own}).cells <= max(allowed, now)
        ]
        deviation = 1 / math.sqrt(2 * _MEASURE * share)
        scores = []
        for own in candidates:
            away = np.abs(tables.counts(own) - model.beliefs.marginal(own)).sum()
            worth = weights[own] * (away - _expected(deviation, tables.sizes.cells(own)))
            scores.append(int(np.floor(_STEPS * worth)))
        largest = max(weights[own] for own in candidates)
        place = spending.chosen(scores, (1 - _MEASURE) * share, sensitivity=_STEPS * largest + 1)
        return candidates[place]


def _weights(workload: Sequence[Clique]) -> dict[Clique, int]:
    """Return the parts of the workload's tables, each with what it shares with all of them."""
    parts = {
        part
        for own in workload
        for many in range(1, len(own) + 1)
        for part in itertools.combinations(own, many)
    }
    return {
        part: sum(len(set(part) & set(own)) for own in workload)
        for part in sorted(parts, key=lambda p: (len(p), p))
    }


def _expected(deviation: float, cells: int) -> float:
    """Return the sum of absolute noise that so many cells are expected to have."""
    return math.sqrt(2 / math.pi) * deviation * cells


def _bad_workload() -> InputError:
    return InputError(
        "the workload is not understood",
        code="parameter-range",
        hint="write workload=2, workload=3 or workload=[['age', 'sex'], ['age', 'job']]",
        parameter="workload",
    )
