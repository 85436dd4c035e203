"""Several hierarchies over one attribute, as one list of codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.data.hierarchy import Hierarchy, Indices
from discreet.errors import InputError

__all__ = ["union"]


def union(hierarchies: Sequence[Hierarchy]) -> tuple[tuple[str, ...], Indices]:
    """Return the codes of several hierarchies over one attribute, and each one's parents.

    All must share the root: the total is the same, however it is split.
    """
    for hierarchy in hierarchies:
        hierarchy.require_distinct_codes()
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
