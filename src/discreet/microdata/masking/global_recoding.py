"""Global recoding: fewer, coarser categories for everyone."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.microdata.columns import codes, numbers
from discreet.microdata.masking._base import ColumnMasking, require_covered, require_numbers
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["GlobalRecoding"]


@dataclasses.dataclass(frozen=True)
class GlobalRecoding(ColumnMasking):
    """Replace values by coarser ones: a level of the hierarchy, an interval, or "other".

    Exactly one of `level` (of each column's own hierarchy, 0 = as is), `width` or `breaks`
    (intervals, closed below and open above) and `rare` (categories with fewer records are merged)
    is given. Only the distinct values leave the engine, and the recode is a join inside it.
    Missing values stay missing.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"age": [21, 38, None], "job": ["cook", "cook", "pilot"]})
    >>> rng = Randomness.seeded(1)
    >>> GlobalRecoding("age", width=10).apply(rows, schema=None, rng=rng)["age"].to_pylist()
    ['[20, 30)', '[30, 40)', None]
    >>> GlobalRecoding("job", rare=2).apply(rows, schema=None, rng=rng)["job"].to_pylist()
    ['cook', 'cook', 'other']
    """

    name: ClassVar[str] = "global-recoding"
    reference: ClassVar[str] = "Hundepool et al., Statistical Disclosure Control, 2012, 3.3.2"
    perturbative: ClassVar[bool] = False
    in_engine: ClassVar[bool] = True
    blind_to_order: ClassVar[bool] = True

    level: int | None = parameter(None, help="level of the hierarchy", low=0)
    width: float | None = parameter(None, help="width of the intervals", above=0)
    breaks: tuple[float, ...] = parameter((), help="ends of the intervals")
    rare: int | None = parameter(None, help="fewest records of a category that stays", low=2)
    other: str = parameter("other", help="the name of merged rare categories")

    @classmethod
    def examples(cls, **offered: Any) -> tuple[Self, ...]:
        """Return the method by level and by rare categories."""
        return cls(offered["columns"], level=1), cls(offered["columns"], rare=20)

    def __post_init__(self) -> None:
        object.__setattr__(self, "breaks", tuple(self.breaks))
        super().__post_init__()
        given = [self.level is not None, self.width is not None, bool(self.breaks), self.rare]
        if sum(map(bool, given)) != 1:
            raise InputError(
                "global-recoding needs one of level, width, breaks and rare",
                code="missing-parameter",
                hint=f"write GlobalRecoding({self.columns[0]!r}, level=1)",
                parameter="level",
            )
        if any(a >= b for a, b in itertools.pairwise(self.breaks)):
            raise InputError(
                "the breaks of the intervals must rise",
                code="parameter-range",
                parameter="breaks",
            )

    def check(self, schema: Schema) -> None:
        """Levels need a hierarchy that has them."""
        super().check(schema)
        for name in self.columns if self.level is not None else ():
            found = schema.hierarchies(name)
            if not found:
                raise InputError(
                    f"column {name!r} has no hierarchy to recode by",
                    code="no-hierarchy",
                    hint=f"read the data with hierarchies={{{name!r}: …}}, or recode by width or rare",
                    column=name,
                )
            assert self.level is not None
            if self.level > found[0].height:
                raise InputError(
                    f"the hierarchy of {name!r} has levels 0 to {found[0].height}, not {self.level}",
                    code="parameter-range",
                    hint=f"write a level of at most {found[0].height}",
                    column=name,
                )

    def require(self, dataset: Dataset) -> None:
        """Intervals need numbers."""
        super().require(dataset)
        if self.width is not None or self.breaks:
            require_numbers(self, dataset.relation.schema)

    def rehearse(self, dataset: Dataset) -> None:
        """Refuse categories that a hierarchy lacks."""
        super().rehearse(dataset)
        if self.level is not None:
            for name in self.columns:
                require_covered(dataset, name)

    def mask(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Dataset:
        """Recode in the engine: only distinct values are seen here."""
        import pyarrow as pa

        self.require(dataset)
        maps = {}
        for done, name in enumerate(self.columns):
            progress(self.name, done, len(self.columns))
            found = dataset.frequencies([name])
            values, counts = found.column(0).combine_chunks(), found.column(1).to_numpy()
            known = np.asarray(values.is_valid())
            values, counts = values.filter(pa.array(known)), counts[known]
            target = self._target(name, values, counts, dataset.schema)
            maps[name] = pa.table({"from": values, "to": target})
        progress(self.name, len(self.columns), len(self.columns))
        return dataset.recode(maps)

    def stronger(self) -> GlobalRecoding | None:
        """Return the method one level up, or with wider intervals, or merging more."""
        if self.level is not None:
            return dataclasses.replace(self, level=self.level + 1) if self.level < 20 else None
        if self.width is not None:
            return dataclasses.replace(self, width=self.width * 2) if self.width < 1e12 else None
        if self.rare is not None:
            return dataclasses.replace(self, rare=self.rare * 2) if self.rare < 1 << 30 else None
        return None

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the recoded columns."""
        import pyarrow as pa

        masked = {}
        for name in self.columns:
            places, values = codes(rows.column(name))
            counts = np.bincount(places[places >= 0], minlength=len(values))
            target = self._target(name, values, counts, schema)
            masked[name] = target.take(pa.array(places, mask=places < 0))
        return masked

    def _target(
        self, name: str, values: pa.Array, counts: np.ndarray, schema: Schema | None
    ) -> pa.Array:
        """Return what stands for each distinct value."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.rare is not None:
            text = values.cast(pa.string())
            return pc.if_else(pa.array(counts >= self.rare), text, self.other)
        if self.level is not None:
            assert schema is not None
            hierarchy = schema.hierarchies(name)[0]
            words = values.cast(pa.string()).to_pylist()
            hierarchy.require_leaves(words, column=name)
            row = {leaf: place for place, leaf in enumerate(hierarchy.leaves)}
            column = hierarchy.levels[:, self.level]
            return pa.array([hierarchy.codes[column[row[w]]] for w in words], pa.string())
        return pa.array(self._intervals(numbers(values, name=name)), pa.string())

    def _intervals(self, values: np.ndarray) -> list[str]:
        if self.width is not None:
            low = np.floor(values / self.width) * self.width
            return [f"[{a:g}, {a + self.width:g})" for a in low]
        ends = (-np.inf, *self.breaks, np.inf)
        place = np.searchsorted(self.breaks, values, side="right")
        names = [
            f"< {b:g}" if a == -np.inf else (f"≥ {a:g}" if b == np.inf else f"[{a:g}, {b:g})")
            for a, b in itertools.pairwise(ends)
        ]
        return [names[p] for p in place]
