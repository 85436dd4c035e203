"""Multiple imputation: every value drawn from its predictive distribution, parameters included."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.microdata.columns import Numbers, Places
from discreet.microdata.synthesizers._base import (
    Fitted,
    Kind,
    Synthesizer,
    released_columns,
    require_pairs,
)
from discreet.microdata.synthesizers._sequence import Options, Plan, Planned
from discreet.microdata.synthesizers._variables import Variable, variables
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["MultipleImputation"]


@dataclasses.dataclass(frozen=True)
class MultipleImputation(Synthesizer):
    """Fully synthetic files: one column after the other from a posterior predictive distribution.

    Numbers come from a normal regression on the columns before them, whose variance (scaled inverse
    χ²) and coefficients (normal) are drawn anew for each file; categories, and where numbers are
    missing, from trees grown on a bootstrap. Several files let readers compute honest intervals:
    `dc.combine` with the rule `fully`, best with m = 20.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> rows = pd.DataFrame({"a": range(100), "b": [2.0 * n + n % 5 for n in range(100)]})
    >>> data = dc.read(rows, roles={"a": "quasi", "b": "confidential"})
    >>> made = dc.synthesize(data, MultipleImputation(m=3))
    >>> len(made.sets), bool(made.frame.corr().loc["a", "b"] > 0.99)
    (3, True)
    """

    name: ClassVar[str] = "multiple-imputation"
    reference: ClassVar[str] = "Rubin, JOS 1993; Raghunathan, Reiter and Rubin, JOS 2003"

    m: int = parameter(5, help="how many files; 20 give narrower and steadier intervals", low=1)
    min_leaf: int | None = parameter(None, help="records in a leaf at least: see cart", low=1)

    @property
    def inference(self) -> Kind:
        """Every value is drawn, with the parameters."""
        return "fully"

    @property
    def sets(self) -> int:
        """How many files the method asks for."""
        return self.m

    @property
    def keeps(self) -> str:
        """What the records keep."""
        return (
            "linear regressions of each number on the columns before it, and shares of categories as "
            "far as trees see them; not shapes beyond the normal, nor interactions"
        )

    def check(self, dataset: Dataset) -> None:
        """Check the number of columns."""
        super().check(dataset)
        columns = len(released_columns(dataset))
        require_pairs(columns, columns * (columns - 1) // 2)

    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Fitted:
        """Code the columns; what is fitted is drawn anew for each file."""
        del rng
        self.check(dataset)
        return _Imputed(self.plan(dataset), progress)

    def plan(self, dataset: Dataset) -> Plan:
        """Code the columns."""
        names = released_columns(dataset)
        found = variables(dataset, names)
        limits = {
            name: domain.range
            for name in names
            if (domain := dataset.schema.domain(name)) is not None
        }
        options = Options(self.min_leaf, {}, {}, {}, {}, proper=True, numbers=False)
        return Plan(options, names, found, limits)


class _Imputed(Fitted):
    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan, self._progress = plan, progress
        self.size = plan.records
        self.notes = {"smallest leaf": plan.min_leaf}

    def again(self, method: Synthesizer, dataset: Dataset, *, rng: Randomness) -> Fitted:
        """Code other records, with these settings."""
        del rng
        assert isinstance(method, Planned)
        return _Imputed(method.plan(dataset).like(self._plan), silent)

    def draw(self, n: int, *, rng: Randomness) -> pa.Table:
        """Return n records from parameters drawn now."""
        import pyarrow as pa

        trees = {step.variable.name: step for step in self._plan.grown(rng)}
        drawn: dict[str, Places] = {}
        exact: dict[str, Numbers] = {}
        columns: dict[str, Any] = {}
        order = self._plan.order
        for place, variable in enumerate(order):
            self._progress("columns", place, len(order))
            name = variable.name
            places, values = np.zeros(n, np.int64), None
            if trees[name].stages:  # codes, or which numbers are missing
                places, values = trees[name].draw(drawn, columns, n, rng)
            if variable.numeric:
                numbers = self._regressed(variable, order[:place], exact, drawn, n, rng)
                numbers[places == len(variable.values)] = np.nan
                exact[name] = numbers
                near = np.searchsorted(variable.scale[:-1], np.nan_to_num(numbers))
                last = len(variable.values)
                places = np.where(np.isnan(numbers), last, np.minimum(near, last - 1))
                values = variable.numbers(np.round(numbers, variable.decimals))
            drawn[name], columns[name] = places, values
        self._progress("columns", len(order), len(order))
        return pa.table({name: columns[name] for name in self._plan.names})

    def _regressed(
        self,
        variable: Variable,
        before: Sequence[Variable],
        exact: dict[str, Numbers],
        drawn: dict[str, Places],
        n: int,
        rng: Randomness,
    ) -> Numbers:
        """Return numbers from the posterior predictive distribution of a normal regression."""
        rows = np.flatnonzero(variable.places < len(variable.values))
        goal = variable.scale[variable.places[rows]]
        own = [v.scale[v.places] if v.numeric else v.places for v in before]
        other = [exact[v.name] if v.numeric else drawn[v.name] for v in before]
        seen = _design(before, [values[rows] for values in own], rows.size)
        asked = _design(before, other, n)
        left, sizes, axes = np.linalg.svd(seen, full_matrices=False)
        kept = sizes > 1e-10 * sizes[0]
        left, sizes, axes = left[:, kept], sizes[kept], axes[kept]
        free = max(rows.size - sizes.size, 1)
        rest = goal - left @ (left.T @ goal)
        chi = float(np.sum(rng.normal(free) ** 2))
        deviation = np.sqrt(float(rest @ rest) / max(chi, 1e-300))
        slope = axes.T @ ((left.T @ goal + deviation * rng.normal(sizes.size)) / sizes)
        found = asked @ slope + deviation * rng.normal(n)
        limits = self._plan.limits.get(variable.name)
        return np.clip(found, *limits) if limits is not None else np.asarray(found)


def _design(before: Sequence[Variable], values: Sequence[np.ndarray], rows: int) -> Numbers:
    """Return a constant, numbers scaled as in the original, and indicators of codes."""
    found = [np.ones(rows)]
    for variable, own in zip(before, values, strict=True):
        if variable.numeric:
            known = variable.scale[variable.places]
            middle, spread = np.nanmean(known), np.nanstd(known) or 1.0
            found.append(np.where(np.isnan(own), 0.0, (own - middle) / spread))
            if variable.missing.size:
                found.append(np.isnan(own).astype(float))
        else:
            found += [(own == code).astype(float) for code in range(1, variable.width)]
    return np.stack(found, axis=1)
