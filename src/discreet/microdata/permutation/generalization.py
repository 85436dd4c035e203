"""A generalised table to compare with: quasi-identifiers coarsened until groups are diverse."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.data.hierarchy import Hierarchy

__all__ = ["Generalized", "generalize"]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_WIDTHS = (1, 2, 5, 10, 20, 40, 80, 160, 320)


@dataclasses.dataclass(frozen=True, eq=False)
class Generalized:
    """Groups of records that look alike, and the interval each shows of one attribute."""

    labels: Integers
    spans: Floats
    #: Level of each quasi-identifier, or the width of the intervals.
    levels: dict[str, int]


def generalize(
    columns: Mapping[str, Sequence[Any]],
    hierarchies: Mapping[str, Hierarchy],
    classes: Integers,
    *,
    k: int,
    keep: str,
    levels: Mapping[str, int] | None = None,
) -> Generalized | None:
    """Coarsen quasi-identifiers until every group has k distinct sensitive values.

    The attribute that is asked about is kept as fine as it can be; then the generalisation with
    most groups is taken, in favour of generalisation as the paper does. Without a hierarchy of
    that attribute it is cut into intervals and the others are dropped.

    Parameters
    ----------
    columns
        The values of each quasi-identifier. Any: of any type.
    hierarchies
        Their hierarchies, where there are any.
    classes
        The place of each record's sensitive value.
    k
        Distinct sensitive values in every group.
    keep
        The attribute that range queries are about.
    levels
        The level of each quasi-identifier, where an anonymiser chose them already.

    Returns
    -------
    Generalized or None
        None where even everything together is not diverse.
    """
    if keep not in hierarchies:
        return _intervals(np.asarray(columns[keep], dtype=np.float64), classes, k, keep)
    names = [keep, *(name for name in hierarchies if name != keep and name in columns)]
    coded = [_codes(columns[name], hierarchies[name]) for name in names]
    heights = [
        range(hierarchies[name].height + 1) if levels is None else range(at, at + 1)
        for name in names
        for at in [(levels or {}).get(name, hierarchies[name].height)]
    ]
    for level in heights[0]:
        best: tuple[int, Integers, tuple[int, ...]] | None = None
        for rest in itertools.product(*heights[1:]):
            node = (level, *rest)
            labels = _combined([codes[:, at] for codes, at in zip(coded, node, strict=True)])
            groups = int(labels.max()) + 1
            if (best is None or groups > best[0]) and _least_distinct(labels, classes) >= k:
                best = groups, labels, node
        if best is not None:
            spans = _spans(best[1], coded[0][:, level], hierarchies[keep], level)
            return Generalized(best[1], spans, dict(zip(names, best[2], strict=True)))
    return None


def _codes(values: Sequence[Any], hierarchy: Hierarchy) -> Integers:
    place = {leaf: row for row, leaf in enumerate(hierarchy.leaves)}
    texts = [str(value) for value in values]
    hierarchy.require_covers(dict.fromkeys(texts), column=hierarchy.name)
    return hierarchy.levels[[place[text] for text in texts]].astype(np.int64)


def _combined(parts: Sequence[Integers]) -> Integers:
    key = np.zeros(len(parts[0]), dtype=np.int64)
    for part in parts:
        _, key = np.unique(key * (int(part.max()) + 1) + part, return_inverse=True)
    return key.astype(np.int64)


def _least_distinct(labels: Integers, classes: Integers) -> int:
    pairs = np.unique(labels * (int(classes.max()) + 1) + classes)
    return int(np.bincount(pairs // (int(classes.max()) + 1)).min())


def _spans(labels: Integers, codes: Integers, hierarchy: Hierarchy, level: int) -> Floats:
    """Return the smallest and largest single value below the code that each group shows."""
    leaves = np.array([float(leaf) for leaf in hierarchy.leaves])
    above = hierarchy.levels[:, level]
    spans = np.empty((int(labels.max()) + 1, 2))
    for group in range(len(spans)):
        inside = leaves[above == codes[np.argmax(labels == group)]]
        spans[group] = inside.min(), inside.max()
    return spans


def _intervals(places: Floats, classes: Integers, k: int, keep: str) -> Generalized | None:
    for width in _WIDTHS:
        begin = np.floor(places / width) * width
        starts, labels = np.unique(begin, return_inverse=True)
        if _least_distinct(labels.astype(np.int64), classes) >= k:
            spans = np.column_stack([starts, starts + width - 1])
            return Generalized(labels.astype(np.int64), spans, {keep: width})
    return None
