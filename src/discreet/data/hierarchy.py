"""Hierarchies: the codes of an attribute as a tree, from single values up to the total.

A statistical office writes them as child/parent pairs or `.hrc` files, ARX as one line per value
with its coarser and coarser names. All become the same thing: codes with parents before
children, the root first.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError

__all__ = ["Hierarchy"]

Indices = npt.NDArray[np.int32]


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

    @classmethod
    def from_pairs(
        cls, pairs: Iterable[tuple[str, str]], *, name: str = "", file: str | Path | None = None
    ) -> Hierarchy:
        """Make a hierarchy from (child, parent) pairs; the root's parent is empty."""
        parent_of: dict[str, str] = {}
        for line, (child, parent) in enumerate(pairs, start=1):
            child, parent = str(child), "" if parent is None else str(parent)
            if child == "":
                raise InputError(
                    "a code is empty", code="hierarchy-empty-code", file=file, line=line
                )
            if parent_of.get(child, parent) != parent:
                raise InputError(
                    f"code {child!r} has two parents, {parent_of[child]!r} and {parent!r}",
                    code="hierarchy-two-parents",
                    hint="give each code one parent, or make two hierarchies of the attribute",
                    file=file,
                    line=line,
                    value=child,
                )
            parent_of[child] = parent
        return cls._from_parents(parent_of, name=name, file=file)

    @classmethod
    def flat(cls, leaves: Iterable[str], *, total: str = "Total", name: str = "") -> Hierarchy:
        """Make a hierarchy of single values below one total."""
        return cls.from_pairs([(total, ""), *((leaf, total) for leaf in leaves)], name=name)

    @classmethod
    def _from_parents(
        cls, parent_of: Mapping[str, str], *, name: str, file: str | Path | None
    ) -> Hierarchy:
        roots = [child for child, parent in parent_of.items() if parent == ""]
        children: dict[str, list[str]] = {}
        for child, parent in parent_of.items():
            if parent != "":
                if parent not in parent_of:
                    raise InputError(
                        f"code {child!r} has parent {parent!r}, which is not in the hierarchy",
                        code="hierarchy-orphan",
                        hint=f"add a line for {parent!r}",
                        file=file,
                        value=child,
                    )
                children.setdefault(parent, []).append(child)
        if len(roots) != 1:
            found = (
                "no code without a parent"
                if not roots
                else f"{len(roots)} roots: {', '.join(roots[:5])}"
            )
            raise InputError(
                f"a hierarchy has one root, found {found}",
                code="hierarchy-cycle" if not roots and parent_of else "hierarchy-roots",
                hint="write one line whose parent is empty",
                file=file,
            )
        order, place = [roots[0]], 0
        while place < len(order):  # breadth first, so that parents come before children
            order.extend(children.get(order[place], ()))
            place += 1
        if len(order) != len(parent_of):
            lost = sorted(set(parent_of) - set(order))
            raise InputError(
                f"codes lead to each other in a circle: {', '.join(lost[:5])}",
                code="hierarchy-cycle",
                hint="every code must lead up to the root",
                file=file,
                value=lost[0],
            )
        index = {code: i for i, code in enumerate(order)}
        parents = np.array([index.get(parent_of[code], -1) for code in order], dtype=np.int32)
        return cls(tuple(order), parents, name=name)

    def __len__(self) -> int:
        return len(self.codes)

    def __contains__(self, code: object) -> bool:
        return code in self.index

    def __repr__(self) -> str:
        return f"Hierarchy({len(self.leaves)} values, {self.height + 1} levels, root {self.root!r})"

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """Place of each code."""
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
        row = self.leaves.index(leaf) if leaf in self.leaves else None
        if row is None:
            raise InputError(
                f"{leaf!r} is not a single value of the hierarchy",
                code="hierarchy-missing-code",
                hint="add it to the hierarchy or correct the data",
                value=leaf,
            )
        return self.codes[int(self.levels[row, level])]

    def require_covers(
        self, values: Iterable[str], *, column: str, file: str | None = None
    ) -> None:
        """Say which values of the data are missing from the hierarchy, if any."""
        missing = [value for value in values if value not in self.index]
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

    def pairs(self) -> list[tuple[str, str]]:
        """Return the (child, parent) pairs, the inverse of `from_pairs`."""
        above = ["" if p < 0 else self.codes[p] for p in self.parents]
        return list(zip(self.codes, above, strict=True))


def union(hierarchies: Sequence[Hierarchy]) -> tuple[tuple[str, ...], Indices]:
    """Return the codes of several hierarchies over one attribute, and each one's parents.

    All must share the root: the total is the same, however it is split.
    """
    codes = list(hierarchies[0].codes)
    index = {code: i for i, code in enumerate(codes)}
    for other in hierarchies[1:]:
        if other.root != hierarchies[0].root:
            raise InputError(
                f"hierarchies of one attribute share their root, found {hierarchies[0].root!r} "
                f"and {other.root!r}",
                code="hierarchy-roots",
            )
        for code in other.codes:
            if code not in index:
                index[code] = len(codes)
                codes.append(code)
    parents = np.full((len(hierarchies), len(codes)), -1, dtype=np.int32)
    for row, hierarchy in enumerate(hierarchies):
        for code, parent in zip(hierarchy.codes, hierarchy.parents, strict=True):
            if parent >= 0:
                parents[row, index[code]] = index[hierarchy.codes[parent]]
    return tuple(codes), parents
