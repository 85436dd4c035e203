"""Hierarchies: the codes of an attribute as a tree, from single values up to the total.

A statistical office writes them as child/parent pairs or `.hrc` files, ARX as one line per value
with its coarser and coarser names. All become the same thing: codes with parents before
children, the root first.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import itertools
import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.data.atomic import atomic_file
from discreet.errors import InputError
from discreet.report import html_table

if TYPE_CHECKING:
    from discreet.data.hierarchy_sources import Levels

__all__ = ["Hierarchy"]

Indices = npt.NDArray[np.int32]
#: Values that notebooks show.
_SHOWN = 20


@dataclasses.dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree of codes with one root.

    Parameters
    ----------
    codes
        Every code, parents before children, the root first.
    parents
        For each code the place of its parent in `codes`; −1 for the root.
    table
        For each leaf (in the order of `leaves`) the place of its code at every level, level 0 the
        leaf itself, the last level the root. Given where the source has it (ARX), else derived:
        see `levels`.
    name
        Told apart by name where an attribute has several hierarchies.
    edges
        Ends of the intervals that the leaves are, where they are intervals of numbers.
    observed
        Whether the single values were looked up in the records: they are then no public domain.

    Examples
    --------
    >>> region = Hierarchy.from_pairs(
    ...     [
    ...         ("Total", ""),
    ...         ("North", "Total"),
    ...         ("South", "Total"),
    ...         ("N1", "North"),
    ...         ("N2", "North"),
    ...     ]
    ... )
    >>> region.root, region.leaves
    ('Total', ('South', 'N1', 'N2'))
    >>> region.children("North")
    ('N1', 'N2')
    >>> region.generalize("N1", 1)
    'North'
    """

    codes: tuple[str, ...]
    parents: Indices
    table: Indices | None = None
    name: str = ""
    edges: npt.NDArray[np.float64] | None = None
    observed: bool = False

    @classmethod
    def from_pairs(
        cls,
        pairs: Any,
        *,
        name: str = "",
        file: str | Path | None = None,
        na: str | None = None,
    ) -> Hierarchy:
        """Make a hierarchy from (child, parent) pairs; the root's parent is empty.

        Any: an iterable of pairs, a frame with two columns, or the path of a CSV file with them.
        """
        from discreet.data.hierarchy_sources import triples

        file = pairs if isinstance(pairs, str | Path) else file
        return cls._from_triples(triples(pairs, file), name=name, file=file).with_na(na)

    @classmethod
    def from_levels(
        cls,
        levels: Any,
        *,
        total: str | None = None,
        name: str = "",
        na: str | None = None,
    ) -> Hierarchy:
        """Make a hierarchy from its levels spelt out.

        Parameters
        ----------
        levels
            A nested mapping of groups down to lists of single values (with the root as its only
            key, or without it); or rows (tuples, or a frame), each from a single value up to the
            root. Any: a frame may be of any library.
        total
            Name of the root, where the levels do not end in one.
        na
            Missing values are a value of their own with this name.

        Examples
        --------
        >>> Hierarchy.from_levels({"North": ["N1", "N2"], "South": ["S1"]}).leaves
        ('N1', 'N2', 'S1')
        >>> rows = [("N1", "North"), ("N2", "North"), ("S1", "South")]
        >>> Hierarchy.from_levels(rows, total="All").ancestors("N2")
        ('N2', 'North', 'All')
        """
        from discreet.data import hierarchy_sources as sources

        if isinstance(levels, Mapping):
            if len(levels) == 1 and total in (None, *levels):  # its only group is the root
                total, levels = next(iter(levels.items()))
            pairs = sources.nested(levels, str(total or "Total"))
            return cls._from_triples(pairs, name=name, file=None).with_na(na)
        rows = sources.frame_rows(levels, None, None) if hasattr(levels, "columns") else levels
        distinct = dict.fromkeys(tuple(row) for row in rows)
        table, lines = sources.level_rows(enumerate(distinct, start=1), total, None)
        return cls._from_tree(sources.tree(table, lines, None), name).with_na(na)

    @classmethod
    def from_intervals(
        cls,
        cuts: Sequence[float] | None = None,
        *,
        width: float | Sequence[float] = (),
        low: float | None = None,
        high: float | None = None,
        open_low: bool = True,
        open_high: bool = True,
        labels: Sequence[str] | None = None,
        values: Iterable[float] | None = None,
        total: str = "Total",
        name: str = "",
        na: str | None = None,
    ) -> Hierarchy:
        """Make a hierarchy of intervals of numbers; `leaf_of` then finds each number's place.

        Parameters
        ----------
        cuts
            Where one interval ends and the next begins; an interval holds its lower end.
        width, low, high
            Intervals of equal width instead; several widths make several levels.
        open_low, open_high
            Add an interval for everything below the first or from the last cut on.
        labels
            Names of the finest intervals, else made from the cuts.
        values
            Numbers that become level 0 themselves, below the intervals, as columns of whole
            numbers (ages, years) need them for generalisation.

        Examples
        --------
        >>> age = Hierarchy.from_intervals([0, 18, 65], open_low=False)
        >>> age.leaves
        ('0-17', '18-64', '65+')
        >>> age.leaf_of([3, 18, 99])
        ['0-17', '18-64', '65+']
        >>> years = Hierarchy.from_intervals(width=(5, 10), low=0, high=100, values=range(100))
        >>> [years.generalize("37", level) for level in range(4)]
        ['37', '35-39', '30-39', 'Total']
        """
        from discreet.data import hierarchy_sources as sources

        several = (width,) if isinstance(width, int | float) else tuple(width)
        rows, edges = sources.intervals(
            sources.grid(cuts, several, low, high),
            open_low=open_low,
            open_high=open_high,
            labels=labels,
            values=None if values is None else sorted(set(values)),
            total=total,
        )
        table, lines = sources.level_rows(enumerate(rows, start=1), None, None)
        built = cls._from_tree(sources.tree(table, lines, None), name)
        if values is None:
            built = dataclasses.replace(built, edges=np.array(edges, dtype=np.float64))
        return built.with_na(na)

    @classmethod
    def from_level_rows(cls, rows: Iterable[Sequence[str]], *, name: str = "") -> Hierarchy:
        """Make a hierarchy from one row per value: its name at every level, the root last.

        >>> Hierarchy.from_level_rows([["10115", "10*", "Total"]]).generalize("10115", 1)
        '10*'
        """
        from discreet.data import hierarchy_sources as sources

        table, lines = sources.level_rows(enumerate(rows, start=1), None, None)
        return cls._from_tree(sources.tree(table, lines, None), name)

    @classmethod
    def from_rare(
        cls,
        values: Mapping[str, int] | Iterable[str],
        minimum: int,
        *,
        label: str = "Other",
        total: str = "Total",
        name: str = "",
        na: str | None = None,
    ) -> Hierarchy:
        """Make a hierarchy in which values rarer than a minimum share one name.

        Its values are those that were counted, so they are no public domain (`observed`).

        >>> sector = Hierarchy.from_rare({"IT": 40, "HC": 30, "Zoo": 1, "Circus": 2}, minimum=5)
        >>> sector.children("Other")  # 3 are still too few, so the next rarest joins
        ('HC', 'Zoo', 'Circus')
        """
        from discreet.data.hierarchy_sources import shared

        counts: Mapping[str, float] = (
            {str(value): number for value, number in values.items()}
            if isinstance(values, Mapping)
            else Counter(str(value) for value in values)
        )
        if not counts:
            raise InputError("there are no values to merge", code="hierarchy-empty")
        frequent, rare = shared(counts, minimum)
        taken = {label, total} & set(counts)
        if taken:
            raise InputError(
                f"the name {min(taken)!r} is itself a value of the data",
                code="hierarchy-duplicate",
                hint="choose another label or total",
                value=min(taken),
            )
        joined = set(rare)
        pairs = [(total, ""), *((value, total) for value in frequent)]
        if rare:
            pairs += [(label, total), *((value, label) for value in counts if value in joined)]
        tree = dataclasses.replace(cls.from_pairs(pairs, name=name), observed=True)
        return tree.with_na(na)

    @classmethod
    def from_hrc(
        cls,
        path: str | Path,
        *,
        total: str = "Total",
        leading: str = "@",
        name: str = "",
        na: str | None = None,
    ) -> Hierarchy:
        """Read a tau-Argus `.hrc` file: a code per line, its depth written as leading strings."""
        from discreet.data.hierarchy_sources import hrc

        pairs = hrc(path, total, leading)
        return cls._from_triples(pairs, name=name, file=path).with_na(na)

    @classmethod
    def from_arx(
        cls,
        path: str | Path,
        *,
        delimiter: str | None = None,
        total: str | None = None,
        name: str = "",
        na: str | None = None,
    ) -> Hierarchy:
        """Read an ARX hierarchy: one line per value, from the value itself to the coarsest name.

        The level table is kept exactly as it is written, repeated names included.
        """
        from discreet.data import hierarchy_sources as sources
        from discreet.data.files import read_rows

        rows = read_rows(path, delimiter=delimiter)
        table, lines = sources.level_rows(rows, total, path)
        return cls._from_tree(sources.tree(table, lines, path), name).with_na(na)

    @classmethod
    def _from_tree(cls, levels: Levels, name: str) -> Hierarchy:
        return cls(levels.codes, levels.parents, table=levels.table, name=name)

    @classmethod
    def _from_triples(
        cls, pairs: Iterable[tuple[int, str, str]], *, name: str, file: str | Path | None
    ) -> Hierarchy:
        from discreet.data.hierarchy_sources import rooted

        return cls(*rooted(pairs, file), name=name)

    @classmethod
    def flat(cls, leaves: Iterable[str], *, total: str = "Total", name: str = "") -> Hierarchy:
        """Make a hierarchy of single values below one total."""
        return cls.from_pairs([(total, ""), *((leaf, total) for leaf in leaves)], name=name)

    def __len__(self) -> int:
        return len(self.codes)

    def __contains__(self, code: object) -> bool:
        return code in self.index

    def _repr_html_(self) -> str:
        names = [f"level {level}" for level in range(self.height + 1)]
        lines = [[self.codes[place] for place in line] for line in self.levels[:_SHOWN].tolist()]
        left = len(self.leaves) - len(lines)
        return html_table(repr(self) + (f", {left:,} values not shown" * bool(left)), names, lines)

    def __repr__(self) -> str:
        return f"Hierarchy({len(self.leaves)} values, {self.height + 1} levels, root {self.root!r})"

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """Place of each code."""
        # Codes come from the root down, so where a group is spelt like a value, the value is found.
        return {code: i for i, code in enumerate(self.codes)}

    @property
    def root(self) -> str:
        """The code of the total."""
        return self.codes[0]

    @functools.cached_property
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        """Which codes have no children."""
        leaf = np.ones(len(self.codes), dtype=bool)
        leaf[self.parents[1:]] = False
        return leaf

    @functools.cached_property
    def leaves(self) -> tuple[str, ...]:
        """The codes without children, in order."""
        return tuple(self.codes[i] for i in np.flatnonzero(self.is_leaf))

    @functools.cached_property
    def leaf_rows(self) -> dict[str, int]:
        """Row of each leaf in `levels`."""
        return {leaf: row for row, leaf in enumerate(self.leaves)}

    @functools.cached_property
    def depth(self) -> Indices:
        """Steps from the root to each code."""
        depth = np.zeros(len(self.codes), dtype=np.int32)
        for i in range(1, len(self.codes)):
            depth[i] = depth[self.parents[i]] + 1
        return depth

    @property
    def height(self) -> int:
        """The highest level of generalisation: at this level everything is the root."""
        return int(self.levels.shape[1]) - 1

    def children(self, code: str) -> tuple[str, ...]:
        """Return the codes directly below one."""
        return tuple(self.codes[i] for i in np.flatnonzero(self.parents == self.place(code)))

    def place(self, code: str) -> int:
        """Return the place of a code, or say that it is missing."""
        try:
            return self.index[code]
        except KeyError:
            raise InputError(
                f"the hierarchy has no code {code!r}",
                code="hierarchy-missing-code",
                hint="add it to the hierarchy or correct the data",
                value=code,
            ) from None

    @functools.cached_property
    def is_nested(self) -> bool:
        """Whether values that share a code at some level share one at every higher level.

        A tree made here always is; a `table` made by hand may not be.
        """
        for fine, coarse in itertools.pairwise(self.levels.T):
            above = np.full(len(self.codes), -1, dtype=np.int64)
            above[fine] = coarse
            if (above[fine] != coarse).any():
                return False
        return True

    @functools.cached_property
    def levels(self) -> Indices:
        """For each leaf the place of its code at every level, for full-domain generalisation.

        Where branches differ in depth the shallow leaf stays as it is at the lower levels, so that
        each level above holds the codes of one depth.
        """
        if self.table is not None:
            return self.table
        leaves = np.flatnonzero(self.is_leaf).astype(np.int32)
        steps = int(self.depth.max(initial=0))
        columns = [leaves]
        for level in range(1, steps + 1):
            current = columns[-1].copy()
            climb = self.depth[current] > steps - level
            current[climb] = self.parents[current[climb]]
            columns.append(current)
        return np.stack(columns, axis=1)

    def generalize(self, leaf: str, level: int) -> str:
        """Return the code that stands for a leaf at a level; level 0 is the leaf itself."""
        row = self.leaf_rows.get(leaf)
        if row is None:
            raise InputError(
                f"{leaf!r} is not a single value of the hierarchy",
                code="hierarchy-missing-code",
                hint="add it to the hierarchy or correct the data",
                value=leaf,
            )
        if not 0 <= level <= self.height:
            raise InputError(
                f"the hierarchy has no level {level}",
                code="hierarchy-level",
                hint=f"choose a level from 0 to {self.height}",
            )
        return self.codes[int(self.levels[row, level])]

    def require_covers(
        self, values: Iterable[str], *, column: str, file: str | None = None
    ) -> None:
        """Say which values of the data are missing from the hierarchy, if any."""
        self._require(values, self.index, column, file)

    def require_leaves(self, values: Iterable[str], *, column: str) -> None:
        """Say which values of the data are missing or groups of others, if any."""
        self._require(values, self.leaf_rows, column, None)

    @staticmethod
    def _require(
        values: Iterable[str], known: Container[str], column: str, file: str | None
    ) -> None:
        missing = [value for value in values if value not in known]
        if missing:
            raise InputError(
                f"column {column!r} has {len(missing)} values that its hierarchy lacks, such as "
                + ", ".join(repr(value) for value in missing[:3]),
                code="hierarchy-not-covering",
                hint="add them to the hierarchy or recode them",
                column=column,
                file=file,
                missing=missing[:100],
            )

    def ancestors(self, code: str) -> tuple[str, ...]:
        """Return the codes from one up to the root, itself first."""
        place, chain = self.place(code), []
        while place >= 0:
            chain.append(self.codes[place])
            place = int(self.parents[place])
        return tuple(chain)

    def with_na(self, na: str | None = "NA") -> Hierarchy:
        """Return the hierarchy with missing values as a value of their own, below the root.

        >>> Hierarchy.flat(["a", "b"]).with_na("unknown").leaves
        ('a', 'b', 'unknown')
        """
        if na is None:
            return self
        if na in self.index:
            raise InputError(
                f"the hierarchy already has a code {na!r}",
                code="hierarchy-duplicate",
                hint="choose another name for missing values",
                value=na,
            )
        place = len(self.codes)
        table = None
        if self.table is not None:
            row = np.full((1, self.table.shape[1]), place, dtype=np.int32)
            row[0, -1] = 0
            table = np.concatenate([self.table, row])
        return Hierarchy(
            (*self.codes, na),
            np.append(self.parents, np.int32(0)),
            table=table,
            name=self.name,
            edges=self.edges,
            observed=self.observed,
        )

    def leaf_of(self, numbers: Iterable[float | None]) -> list[str | None]:
        """Return the interval each number lies in; None for what is missing or in none."""
        if self.edges is None:
            raise InputError(
                "the hierarchy has no intervals",
                code="hierarchy-intervals",
                hint="make it with Hierarchy.from_intervals",
            )
        given = np.array([math.nan if x is None else x for x in numbers], dtype=np.float64)
        at = np.searchsorted(self.edges, given, side="right") - 1
        at[~(given < self.edges[-1]) & ~np.isposinf(given)] = -1
        if np.isposinf(self.edges[-1]):
            at[np.isposinf(given)] = len(self.edges) - 2
        else:
            at[given >= self.edges[-1]] = -1
        return [None if place < 0 else self.leaves[place] for place in at]

    def require_distinct_codes(self, *, column: str | None = None) -> None:
        """Refuse names that stand for two things: cells of a table could not be told apart."""
        if len(self.index) < len(self.codes):
            twice = next(code for code, n in Counter(self.codes).items() if n > 1)
            raise InputError(
                f"the hierarchy uses the name {twice!r} for a group and for something in it",
                code="hierarchy-ambiguous",
                hint="rename the group to use the hierarchy in a table",
                column=column,
                value=twice,
            )

    def to_pairs(self, path: str | Path) -> None:
        """Write child,parent lines with a header."""
        with atomic_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as f:
            csv.writer(f).writerows([("child", "parent"), *self.pairs()])

    def to_arx(self, path: str | Path, *, delimiter: str = ";") -> None:
        """Write one line per value with its name at every level, as ARX reads it."""
        rows = ([self.codes[i] for i in row] for row in self.levels)
        with atomic_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as f:
            csv.writer(f, delimiter=delimiter).writerows(rows)

    def to_hrc(self, path: str | Path, *, leading: str = "@") -> None:
        """Write a tau-Argus `.hrc` file; the root is not in it, its name goes into the metadata."""
        bad = next((c for c in self.codes if c.startswith(leading) or "\n" in c), None)
        if bad is not None:
            raise InputError(
                f"code {bad!r} begins with the leading string or breaks the line",
                code="hierarchy-leading",
                hint="choose another leading string",
                value=bad,
            )
        below: dict[int, list[int]] = {}
        for place, parent in enumerate(self.parents[1:], start=1):
            below.setdefault(int(parent), []).append(place)
        lines, stack = [], below.get(0, [])[::-1]
        while stack:
            place = stack.pop()
            lines.append(leading * (int(self.depth[place]) - 1) + self.codes[place])
            stack += below.get(place, [])[::-1]
        with atomic_file(path) as temporary:
            temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def pairs(self) -> list[tuple[str, str]]:
        """Return the (child, parent) pairs, the inverse of `from_pairs`."""
        above = ["" if p < 0 else self.codes[p] for p in self.parents]
        return list(zip(self.codes, above, strict=True))
