"""Columns as vertices of a graph: two that may not meet get different clouds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from discreet.errors import InfeasibleError, InputError

__all__ = ["colour"]

#: Assignments that are tried before none is said to exist.
_STEPS = 200_000


def colour(
    columns: Sequence[str],
    forbidden: Iterable[Collection[str]],
    clouds: int,
    *,
    allowed: Callable[[Sequence[str]], bool] = lambda _: True,
) -> list[list[str]]:
    """Return the columns of each cloud: no cloud holds two columns of a forbidden pair.

    Columns with most forbidden partners are placed first, each in the first cloud that takes it;
    where none does, earlier choices are undone. `allowed` may refuse a set of columns, such as one
    that singles out too many people; a subset of what it allows must be allowed too.

    Examples
    --------
    >>> colour(["name", "zip", "age", "diagnosis"], [("name", "diagnosis"), ("zip", "age")], 2)
    [['name', 'zip'], ['age', 'diagnosis']]
    """
    partners: dict[str, set[str]] = {name: set() for name in columns}
    for pair in forbidden:
        unknown = [name for name in pair if name not in partners]
        if unknown or len(set(pair)) != 2:
            raise InputError(
                f"a forbidden pair names {'no column ' + repr(unknown[0]) if unknown else 'not two'}",
                code="unknown-column" if unknown else "forbidden-pair",
                hint="name two of " + ", ".join(columns),
            )
        first, second = pair
        partners[first].add(second)
        partners[second].add(first)
    order = sorted(columns, key=lambda name: (-len(partners[name]), columns.index(name)))
    placed: list[list[str]] = [[] for _ in range(clouds)]
    steps = 0

    def place(depth: int) -> bool:
        nonlocal steps
        if depth == len(order):
            return True
        name = order[depth]
        for cloud in placed:
            steps += 1
            if steps > _STEPS:
                return False
            if not partners[name] & set(cloud) and allowed([*cloud, name]):
                cloud.append(name)
                if place(depth + 1):
                    return True
                cloud.pop()
            if not cloud:
                break  # the other empty clouds are like this one
        return False

    if not place(0):
        raise InfeasibleError(
            f"the columns cannot be kept apart in {clouds} clouds",
            code="too-few-clouds",
            hint="add a cloud, or forbid fewer pairs",
        )
    return placed
