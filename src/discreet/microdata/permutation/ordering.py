"""What an attacker gains who orders each permuted group by what is released; what is refused for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.errors import RefusedError
from discreet.microdata.ordering import Ordering, Released, Trial, predicting, tried
from discreet.microdata.permutation.groups import Groups

__all__ = ["ordering", "require_unpredicted", "trial_of"]

Integers = npt.NDArray[np.int64]


def trial_of(groups: Groups, chosen: Integers, owners: Integers | None = None) -> Trial:
    """Try some groups of a partition."""
    parts = [groups.order[groups.starts[g] : groups.starts[g + 1]] for g in chosen]
    rows = np.concatenate(parts)
    label = np.repeat(np.arange(len(chosen)), groups.sizes[chosen])
    classes = groups.amounts.classes[rows].astype(np.int64)
    is_number = groups.amounts.is_number
    values = groups.amounts.distinct[classes] if is_number else classes.astype(float)
    return Trial(rows, label, classes, values, is_number=is_number, owners=owners)


def ordering(
    groups: Groups,
    columns: Mapping[str, Released],
    chosen: Integers,
    *,
    owners: Integers | None = None,
) -> Ordering:
    """Try to order some of the groups by every released column, and by all of them together.

    Parameters
    ----------
    groups
        The partition, with the true values.
    columns
        What is released, one entry per record in the records' order.
    chosen
        The groups to look at.
    owners
        Whose each record is, where people have several; each record is somebody's by default.
    """
    return tried(trial_of(groups, chosen, owners), columns)


def require_unpredicted(
    groups: Groups,
    columns: Mapping[str, Released],
    chosen: Integers,
    *,
    sensitive: str,
    vouched: Sequence[str],
    owners: Integers | None = None,
) -> Ordering:
    """Refuse columns by which attackers find values far more often than by guessing.

    Columns that are vouched for are not held against the release; what they give away is still
    part of the result.
    """
    trial = trial_of(groups, chosen, owners)
    whole = tried(trial, columns)
    left = {name: column for name, column in columns.items() if name not in vouched}
    telling = predicting(trial, left)[0]
    if telling:
        names = ", ".join(map(repr, telling))
        raise RefusedError(
            f"ordering each group by {' and '.join(telling)} finds the exact {sensitive} of "
            f"{whole.accuracy:.0%} of the people, where guessing finds {whole.baseline:.0%}",
            code="predicting-columns",
            hint=f"do not release {'it' if len(telling) == 1 else 'them'} (role identifier or "
            f"confidential), make {'it' if len(telling) == 1 else 'them'} coarser, or vouch by "
            f"name: vouch=[{names}]",
            columns=telling,
        )
    return whole
