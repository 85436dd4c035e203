"""Members to try a law on: their examples, and the same with other numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from discreet.errors import InputError
from discreet.registry import Member


def examples(member: type[Member], **offered: Any) -> tuple[Any, ...]:
    """Return the member's examples; one without any cannot be judged, which is a failure."""
    found = member.examples(**offered)
    assert found, f"{member.__name__} has no example to be judged by"
    return found


#: Whether laws that take long try every example, as the slow run does, or the first and the last.
THOROUGH = False


def some(member: type[Member], **offered: Any) -> tuple[Any, ...]:
    """Return the examples for a law that takes long."""
    found = examples(member, **offered)
    return found if THOROUGH or len(found) <= 2 else (found[0], found[-1])


def tried(
    member: type[Member], rng: np.random.Generator, variants: int, **offered: Any
) -> list[Any]:
    """Return the examples, and variants of each with numbers drawn around theirs."""
    found = list(examples(member, **offered))
    return found + [varied(one, rng) for one in found for _ in range(variants)]


def varied(one: Any, rng: np.random.Generator) -> Any:
    """Return a member with other numbers within their ranges, or as it is if it refuses them."""
    drawn = {}
    for item in one.parameters():
        value = getattr(one, item.name)
        if isinstance(value, bool) or not isinstance(value, int | float) or item.choices:
            continue
        other = value * float(2 ** rng.uniform(-1.5, 1.5))
        other = max(1, round(other)) if isinstance(value, int) else other
        if item.allows(other):
            drawn[item.name] = other
    try:
        return dataclasses.replace(one, **drawn)
    except InputError:
        return one
