"""What an owner brings to a computation: its columns, checked against what was agreed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.rules import Rule
from discreet.data.dataset import Dataset
from discreet.errors import InputError, RefusedError
from discreet.protocols.joint.computation import Computation
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.summary import require_parts_declared

__all__ = [
    "numbers_of",
    "persons_of",
    "require_computations",
    "require_no_dominance",
    "require_safe_part",
]

Floats = npt.NDArray[np.float64]


def persons_of(data: Dataset, column: str, *, unit: str | None) -> tuple[bytes, ...]:
    """Return the identifiers of an owner's persons; contributors may have several records."""
    found = data.arrow([column]).column(column).to_pylist()
    if column == unit:
        found = list(dict.fromkeys(found))
    if any(one is None for one in found) or len(set(found)) != len(found):
        raise InputError(
            f"column {column!r} has an identifier that is missing or occurs twice",
            code="identifier-twice",
            column=column,
            hint="align by a column that names every person once",
        )
    return tuple(str(one).encode() for one in found)


def numbers_of(
    data: Dataset,
    computation: Computation,
    owner: str,
    policy: JointPolicy,
    persons: Sequence[bytes] | None = None,
) -> Floats:
    """Return an owner's columns; where contributors are told apart, their sums in a sum.

    With `persons`, the records of these persons in this order: a database keeps none of its own.
    """
    names = computation.columns[owner]
    protocol = computation.protocol
    units = [policy.unit] if policy.unit is not None and protocol.judges_parts else []
    named = [] if persons is None else [_identifier(computation, owner, policy)]
    table = data.arrow(list(dict.fromkeys([*names, *units, *named])))
    columns = []
    for name in names:
        found = np.array(table.column(name).to_pylist(), dtype=object)
        try:
            values = found.astype(np.float64)
        except (TypeError, ValueError):
            values = np.array([np.inf])
        bound = computation.bounds[name]
        least = 0.0 if protocol.judges_parts else -bound
        # Noisy sums clamp what is too large. Written so that NaN fits nowhere.
        most = np.inf if getattr(protocol, "epsilon", 0) else bound
        fits = (values >= least) & (values <= most)
        if protocol.split == "arbitrary":
            fits |= np.isnan(values)  # another owner holds it
        if not fits.all():
            raise InputError(
                f"column {name!r} has a value that is missing, no number, or beyond its bound",
                code="beyond-bound",
                column=name,
                hint="clean the column, or agree on a larger bound",
            )
        columns.append(values)
    rows = np.stack(columns, axis=1)
    if persons is not None:
        listed = table.column(named[0]).to_pylist()
        places = {str(one).encode(): place for place, one in enumerate(listed)}
        if len(places) != len(listed) or not all(one in places for one in persons):
            raise InputError(
                f"column {named[0]!r} names other persons than when they were aligned",
                code="not-aligned",
                column=named[0],
                hint="align them again",
            )
        return rows[[places[one] for one in persons]]
    if not units:
        return rows
    units_of = np.array([str(one) for one in table.column(units[0]).to_pylist()])
    _, whose = np.unique(units_of, return_inverse=True)
    added = np.zeros((int(whose.max(initial=-1)) + 1, len(names)))
    np.add.at(added, whose, rows)
    limits = np.array([computation.bounds[name] for name in names])
    if not getattr(protocol, "epsilon", 0) and (added > limits).any():
        raise InputError(
            "the records of a contributor add up to more than the bound",
            code="beyond-bound",
            hint="agree on a larger bound: it holds for all records of a contributor together",
        )
    return added


def _identifier(computation: Computation, owner: str, policy: JointPolicy) -> str:
    """Return the column that names an owner's persons in the alignment."""
    assert computation.aligned is not None
    return policy.computations[computation.aligned].columns[owner][0]


def require_computations(data: Dataset, owner: str, policy: JointPolicy) -> None:
    """See, when an owner starts, that its records have what it agreed to offer."""
    summed: list[str] = []
    for computation in policy.computations.values():
        if owner not in computation.columns:
            continue
        protocol = computation.protocol
        if (protocol.judges_parts or protocol.centres) and not getattr(protocol, "epsilon", 0):
            summed += computation.columns[owner]
        data.relation.require(*computation.columns[owner])
        if computation.protocol.split == "persons":
            persons_of(data, computation.columns[owner][0], unit=policy.unit)
        else:
            numbers_of(data, computation, owner, policy)
    require_parts_declared(data, list(dict.fromkeys(summed)))


def require_safe_part(records: Floats, rules: Sequence[Rule]) -> None:
    """Refuse to take part with sums that a rule finds sensitive by themselves.

    Where every part is safe, so is every sum of parts: what others have only adds to the remainder.
    """
    if not len(records):
        return
    for rule in rules:
        for values in records.T if records.shape[1] else [np.zeros(len(records))]:
            if all(_value(form, values) < 0 for form in rule.inequalities()):
                raise RefusedError(
                    "the part of this owner is sensitive by itself",
                    code="part-sensitive",
                    hint="ask for a joint table, whose rules are judged on all parts together",
                )


def require_no_dominance(records: Floats, rules: Sequence[Rule]) -> None:
    """Refuse centres of columns in which one record is most of the sizes, by the agreed rules.

    The centre of its cluster would tell it. One or two records say nothing of dominance; how few
    records a cluster may have is judged for all owners together.

    >>> from discreet.audit.rules.p_percent import PPercent
    >>> require_no_dominance(np.array([[3.0], [-2.0], [1.0]]), [PPercent(10)])
    >>> require_no_dominance(np.array([[3e6], [-2.0], [1.0]]), [PPercent(10)])
    Traceback (most recent call last):
    discreet.errors.RefusedError: one record is most of a column of this owner; ...
    """
    for rule in rules:
        forms = rule.inequalities()
        if not any(form.largest for form in forms):
            continue
        for column in records.T:
            sizes = np.abs(column[~np.isnan(column)])
            if len(sizes) > 2 and all(_value(form, sizes) < 0 for form in forms):
                raise RefusedError(
                    "one record is most of a column of this owner",
                    code="part-sensitive",
                    hint="cut off the largest values of the column, or leave it out",
                )


def _value(form: Any, values: Floats) -> float:
    """Return the linear form of a rule for one column of one owner. Any: an inequality."""
    largest = np.sort(values)[::-1]
    found = form.constant + form.count * len(values) + form.total * float(values.sum())
    found += sum(
        factor * float(largest[place])
        for place, factor in enumerate(form.largest)
        if place < len(largest)
    )
    # A contributor who asks may be the largest: then the largest must be safe to show.
    return float(found + form.requested * float(largest[0]))
