"""Combinations of answers, and their values at atoms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.audit.history.field import Marks, Vector, lookup, masked, sum_of, values_at
from discreet.audit.history.state import ATOMS, State
from discreet.compiling import inner

__all__ = ["Combination", "combination_at", "combined", "print_of", "value_at", "values_everywhere"]

Ids = npt.NDArray[np.int64]


class Combination(NamedTuple):
    """A combination of answers."""

    coefficients: Vector
    used: Vector  # words of the mask that are not zero
    mask: Marks  # which coefficients are not zero


@inner
def combined(coefficients: Vector) -> Combination:
    """Return the combination with some coefficients."""
    used, mask = masked(coefficients)
    return Combination(coefficients, used, mask)


@inner
def value_at(members: Marks, given: Combination, atom: int, p: int) -> int:
    """Return the value of a combination at an atom."""
    return lookup(given.coefficients, given.used, given.mask, members, atom, p)


@inner
def combination_at(state: State, given: Combination, atoms: Ids, out: Vector) -> None:
    """Write the values of a combination at some atoms to `out`."""
    values_at(given.coefficients, given.used, given.mask, state.members, atoms, out, state.prime)


@inner
def values_everywhere(state: State, coefficients: Vector) -> Vector:
    """Return the values of a combination of answers at all atoms."""
    values = np.empty(state.used[ATOMS], np.int64)
    combination_at(state, combined(coefficients), np.arange(values.size), values)
    return values


@inner
def print_of(given: Combination, numbers: Vector, p: int) -> int:
    """Return the sum over answers of a number, such as a fingerprint, times the coefficient."""
    return sum_of(given.coefficients, given.used, given.mask, numbers, p)
