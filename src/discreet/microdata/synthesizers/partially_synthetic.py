"""Partially synthetic data: some columns, of all or of some records, drawn anew."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.microdata.columns import Places
from discreet.microdata.synthesizers._base import (
    Fitted,
    Kind,
    Synthesizer,
    released_columns,
    require_pairs,
)
from discreet.microdata.synthesizers._rules import Rule
from discreet.microdata.synthesizers._sequence import Plan
from discreet.microdata.synthesizers._variables import folded, variables
from discreet.microdata.synthesizers.cart import CART
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["PartiallySynthetic"]


@dataclasses.dataclass(frozen=True)
class PartiallySynthetic(Synthesizer):
    """Draw some columns anew from trees on all others; everything else leaves as it is.

    `where` chooses the records: a condition such as "age > 80", or in Python an array of one truth
    value per record, such as `risk > 0.1`. Trees are grown on all records.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = pd.DataFrame({"age": range(200), "pay": [n % 7 for n in range(200)]})
    >>> data = dc.read(people, roles={"age": "quasi", "pay": "confidential"})
    >>> made = dc.synthesize(data, PartiallySynthetic("pay", where="age >= 150")).frame
    >>> made["age"].equals(people["age"]), made["pay"][:150].equals(people["pay"][:150])
    (True, True)
    """

    name: ClassVar[str] = "partially-synthetic"
    reference: ClassVar[str] = "Little, JOS 1993; Reiter, Survey Methodology 2003"
    corresponds: ClassVar[bool] = True

    columns: tuple[str, ...] = parameter(help="columns that are drawn anew")
    by: CART = parameter(CART(), help="how trees are grown: see cart")
    where: Any = parameter(None, help="records that are drawn anew, such as 'age > 80'")

    def __post_init__(self) -> None:
        given: Any = self.columns
        names = (given,) if isinstance(given, str) else tuple(given)
        object.__setattr__(self, "columns", names)
        super().__post_init__()

    @property
    def inference(self) -> Kind:
        """Some values are real."""
        return "partially"

    @property
    def keeps(self) -> str:
        """What the records keep."""
        some = "" if self.where is None else " of the records chosen"
        return (
            f"everything but {', '.join(self.columns)}{some}, as it is; of these the distribution given "
            "all other columns, as far as trees see it"
        )

    def settings(self) -> dict[str, Any]:
        """Return the parameters; which records were chosen, and by which values, stays in the house."""
        where = None if self.where is None else "records chosen by the curator"
        if isinstance(self.where, str):
            where = "a condition on " + ", ".join(Rule("", self.where, None).reads)
        return super(PartiallySynthetic, dataclasses.replace(self, where=where)).settings()

    def untouched(self, dataset: Dataset) -> tuple[str, ...]:
        """Return the columns that leave as they are."""
        return tuple(n for n in released_columns(dataset) if n not in self.columns)

    def check(self, dataset: Dataset) -> None:
        """Check columns and condition."""
        super().check(dataset)
        names = released_columns(dataset)
        if not self.columns:
            raise InputError(
                "no column is drawn anew, so the records would leave as they are",
                code="missing-parameter",
                hint="name the columns: dc.PartiallySynthetic(['salary'])",
                parameter="columns",
            )
        for name in self.columns:
            dataset.schema[name]
            if name not in names:
                raise InputError(
                    f"column {name!r} is an identifier and is not synthesised",
                    code="identifier-column",
                    column=name,
                )
        kept = self.untouched(dataset)
        require_pairs(len(names), self.by.pairs((*kept, *self.columns), len(kept)))
        if isinstance(self.where, str):
            for name in Rule(self.columns[0], self.where, None).reads:
                dataset.schema[name]

    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Fitted:
        """Grow a tree for every column that is drawn anew."""
        self.check(dataset)
        names = released_columns(dataset)
        known = {
            v.name: folded(v, self.by.tails) if v.name in self.columns else v
            for v in variables(dataset, names, in_order=True)
        }
        kept = self.untouched(dataset)
        limits = {
            name: domain.range
            for name in self.columns
            if (domain := dataset.schema.domain(name)) is not None
        }
        order = [known[name] for name in (*kept, *self.columns)]
        plan = Plan(self.by.options(), names, order, limits, kept=len(kept))
        rows = dataset.arrow(names).combine_chunks()
        return _Redrawn(plan, rows, self._chosen(rows), rng, progress)

    def _chosen(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        if self.where is None:
            return np.ones(rows.num_rows, bool)
        if isinstance(self.where, str):
            columns = {n: rows.column(n).combine_chunks() for n in rows.column_names}
            return self._some(Rule(self.columns[0], self.where, None).holds(columns))
        chosen = np.asarray(self.where)
        if chosen.dtype != bool or chosen.shape != (rows.num_rows,):
            raise InputError(
                f"where chooses among {rows.num_rows:,} records, so it needs as many truth values",
                code="parameter-type",
                hint="write where=risk > 0.1, or a condition such as where='age > 80'",
                parameter="where",
            )
        return self._some(chosen)

    def _some(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        if not chosen.any():
            raise InputError(
                "where chooses no record, so the file would leave as it is",
                code="chooses-nobody",
                hint="widen the condition, or leave out where to draw all records anew",
                parameter="where",
            )
        return chosen


class _Redrawn(Fitted):
    """The file with some cells drawn anew."""

    def __init__(
        self,
        plan: Plan,
        rows: pa.Table,
        chosen: npt.NDArray[np.bool_],
        rng: Randomness,
        progress: Progress,
    ) -> None:
        self._plan, self._rows, self._chosen, self._progress = plan, rows, chosen, progress
        self._steps = None if plan.options.proper else plan.grown(rng, progress)
        self.size = rows.num_rows
        self.notes = {"smallest leaf": plan.min_leaf}

    def draw(self, n: int, *, rng: Randomness) -> pa.Table:
        """Return the records, chosen cells drawn anew."""
        import pyarrow.compute as pc

        drawn: dict[str, Places] = {v.name: v.places for v in self._plan.order[: self._plan.kept]}
        columns: dict[str, Any] = {
            name: self._rows.column(name).combine_chunks() for name in self._rows.column_names
        }
        found = self._rows
        for step in self._steps or self._plan.grown(rng, self._progress):
            name = step.variable.name
            places, values = step.draw(drawn, columns, self.size, rng)
            drawn[name] = np.where(self._chosen, places, step.variable.places)
            own = columns[name]
            columns[name] = pc.if_else(self._chosen, values.cast(own.type), own)
            found = found.set_column(found.column_names.index(name), name, columns[name])
        return found
