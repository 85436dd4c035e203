"""A quasi-identifier with its hierarchy, numbered so that every level keeps the order.

Values are numbered along the tree: at each level the values that share a code are neighbours, and
the first of them stands for all. Generalising a column of numbers then never reverses two of
them, which lets classes be merged by runs instead of by sorting anew.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from discreet.data.hierarchy import Hierarchy
from discreet.errors import InputError
from discreet.microdata.classes import Integers, Numbers
from discreet.microdata.frequency_set import Coded

__all__ = ["Attribute", "attribute"]


@dataclasses.dataclass(frozen=True, eq=False)
class Attribute:
    """The values of one quasi-identifier that occur, at every level of generalisation.

    Parameters
    ----------
    name
        The column.
    rank
        For each value (as the frequency set numbers them) its place along the tree.
    first
        For each level and place the place of the first value that shares its code.
    share
        For each level and place the share of the hierarchy's single values its code covers.
    leaves
        Number of single values in the hierarchy, whether they occur or not.
    labels
        For each level and value (as the frequency set numbers them) the code; None is missing.
    lowest
        The level that the first row of `first`, `share` and `labels` stands for.
    """

    name: str
    rank: Integers
    first: Integers
    share: Numbers
    leaves: int
    labels: tuple[tuple[str | None, ...], ...]
    lowest: int = 0

    @property
    def height(self) -> int:
        """Number of levels to choose from."""
        return len(self.first)

    @property
    def codes(self) -> Integers:
        """Number of different codes at each level."""
        return np.array([len(np.unique(level)) for level in self.first])


def attribute(
    coded: Coded, hierarchy: Hierarchy, *, lowest: int = 0, highest: int | None = None
) -> Attribute:
    """Return the values of a column numbered along its hierarchy.

    A missing value is a value of its own: the hierarchy's code for it if it has one (`NA`), else
    it stays missing at every level but the root.

    >>> import pyarrow as pa
    >>> from discreet.microdata.frequency_set import code_column
    >>> region = Hierarchy.from_levels({"North": ["N1", "N2"], "South": ["S1"]})
    >>> found = attribute(code_column("region", pa.array(["S1", "N1", None])), region)
    >>> found.labels[1]
    ('North', 'South', None)
    >>> found.first.tolist()
    [[0, 1, 2], [0, 1, 2], [0, 0, 0]]
    """
    if not hierarchy.is_nested:
        raise InputError(
            f"the levels of the hierarchy of {coded.name!r} are not nested",
            code="hierarchy-not-nested",
            hint="give each code one parent",
            column=coded.name,
        )
    places, codes, leaves = _levels(coded, hierarchy)
    top = places.shape[1] - 1
    high = top if highest is None else highest
    if not 0 <= lowest <= high <= top:
        raise InputError(
            f"column {coded.name!r} has the levels 0 to {top}, asked for {lowest} to {high}",
            code="unknown-level",
            hint=f"choose levels between 0 and {top}",
            column=coded.name,
        )
    chosen = places[:, lowest : high + 1]
    order = np.lexsort(chosen[: len(coded.values)].T)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    first, share = [], []
    for level in chosen.T:
        along = level[order]
        starts = np.concatenate(([True], along[1:] != along[:-1]))
        first.append(np.flatnonzero(starts)[np.cumsum(starts) - 1])
        covered = np.bincount(level[leaves], minlength=len(codes))
        share.append(covered[along] / len(leaves))
    labels = tuple(
        tuple(codes[place] for place in places[: len(coded.values), level])
        for level in range(lowest, high + 1)
    )
    return Attribute(
        coded.name, rank, np.array(first), np.array(share), len(leaves), labels, lowest
    )


def _levels(coded: Coded, hierarchy: Hierarchy) -> tuple[Integers, list[str | None], Integers]:
    """Return the code of every value at every level, the codes, and which rows are leaves.

    The first rows are the values of the data in their order, the others the hierarchy's leaves.
    """
    import pyarrow as pa

    codes: list[str | None] = list(hierarchy.codes)
    table = hierarchy.levels.astype(np.int64)
    if hierarchy.edges is not None:
        return _interval_levels(coded, hierarchy, table, codes)
    is_truth = pa.types.is_boolean(coded.values.type)
    rows = []
    for text in coded.texts():
        row = hierarchy.leaf_rows.get("NA" if text is None else text)
        if row is None and is_truth and text is not None:
            row = hierarchy.leaf_rows.get(
                text.capitalize()
            )  # as tables and `hierarchy new` write it
        if row is None and text is None:
            # Missing until the root, as one more single value of the hierarchy.
            table = np.concatenate((table, np.full((1, table.shape[1]), len(codes))))
            table[-1, -1] = table[0, -1]
            codes.append(None)
            row = len(table) - 1
        rows.append(-1 if row is None else row)
    missing = [t for t, row in zip(coded.texts(), rows, strict=True) if row < 0]
    if missing:
        raise InputError(
            f"column {coded.name!r} has {len(missing)} values that are not single values of its "
            "hierarchy, such as " + ", ".join(repr(value) for value in missing[:3]),
            code="hierarchy-not-covering",
            hint="add them to the hierarchy or recode them",
            column=coded.name,
            missing=missing[:100],
        )
    used = table[np.array(rows, dtype=np.int64)]
    return np.concatenate((used, table)), codes, np.arange(len(used), len(used) + len(table))


def _interval_levels(
    coded: Coded, hierarchy: Hierarchy, table: Integers, codes: list[str | None]
) -> tuple[Integers, list[str | None], Integers]:
    """Return the levels of numbers below intervals: the numbers themselves are level 0."""
    texts = coded.texts()
    try:
        found = hierarchy.leaf_of([None if t is None else float(t) for t in texts])
    except ValueError:
        raise InputError(
            f"column {coded.name!r} holds text, and its hierarchy is of intervals of numbers",
            code="not-numeric",
            hint="correct the column or give it a hierarchy of its values",
            column=coded.name,
        ) from None
    outside = [t for t, leaf in zip(texts, found, strict=True) if leaf is None and t is not None]
    if outside:
        raise InputError(
            f"column {coded.name!r} has {len(outside)} values outside the intervals of its "
            "hierarchy, such as " + ", ".join(repr(value) for value in outside[:3]),
            code="hierarchy-not-covering",
            hint="open the ends of the intervals, or add intervals",
            column=coded.name,
        )
    levels = np.full((len(texts), table.shape[1] + 1), 0, dtype=np.int64)
    for row, (text, leaf) in enumerate(zip(texts, found, strict=True)):
        levels[row, 0] = len(codes)
        codes.append(text)
        own = hierarchy.leaf_rows.get("NA") if leaf is None else hierarchy.leaf_rows[leaf]
        levels[row, 1:] = levels[row, 0] if own is None else table[own]
        levels[row, -1] = table[0, -1]
    return levels, codes, np.arange(len(texts))
