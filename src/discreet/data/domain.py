"""Public domains: which values a column can have, whoever is in the file.

Differential privacy may not learn the values or the range of a column from the records, so they
are declared: a list of values, a range, or cut points. The leaves of a hierarchy are a domain, too,
unless it was made from the values of the records.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from discreet.errors import InputError

__all__ = ["Domain", "declared_domains"]


@dataclasses.dataclass(frozen=True)
class Domain:
    """What a column can hold: exactly one of values, bounds and cut points.

    Examples
    --------
    >>> Domain(values=("f", "m"))
    Domain(values=('f', 'm'), bounds=None, cuts=None)
    >>> Domain(bounds=(10, 0))
    Traceback (most recent call last):
    discreet.errors.InputError: a range must rise, found 10 to 0; ...
    """

    values: tuple[Any, ...] | None = None  # Any: values of the column's own type
    bounds: tuple[float, float] | None = None
    cuts: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if sum(part is not None for part in (self.values, self.bounds, self.cuts)) != 1:
            raise _bad("a domain is a list of values, a range or cut points")
        if self.values is not None:
            if not self.values:
                raise _bad("a domain needs values, found none")
            if len(set(self.values)) != len(self.values):
                raise _bad("a domain names a value twice")
        if self.bounds is not None:
            low, high = self.bounds
            if not (math.isfinite(low) and math.isfinite(high)):
                raise _bad("a range needs finite ends")
            if low >= high:
                raise _bad(f"a range must rise, found {low:g} to {high:g}")
        if self.cuts is not None and not (
            len(self.cuts) > 1
            and all(map(math.isfinite, self.cuts))
            and all(a < b for a, b in zip(self.cuts, self.cuts[1:], strict=False))
        ):
            raise _bad("cut points must be at least two finite numbers that rise")

    @property
    def is_whole(self) -> bool:
        """Whether it is declared in whole numbers: 0 and 100, and not 0.0 and 100.0.

        What a private release may know of a column's type: a single record with a fraction, or one
        written 50.0, makes a column of decimals of it.
        """
        given = self.values or self.bounds or self.cuts or ()
        known = [value for value in given if value is not None]
        return all(_is_whole(value) for value in known)

    @property
    def range(self) -> tuple[float, float] | None:
        """The least and largest number it allows; None where it lists texts."""
        ends = self.bounds or self.cuts
        if ends is not None:
            return float(ends[0]), float(ends[-1])
        assert self.values is not None
        if all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values):
            return float(min(self.values)), float(max(self.values))
        return None


def declared_domains(
    domains: Mapping[str, Any] | None = None, bounds: Mapping[str, Sequence[float]] | None = None
) -> dict[str, Domain]:
    """Return domains as people declare them.

    Any: a list of values, `{"values": […]}`, `{"bounds": [low, high]}`, `{"cuts": […]}`, or a
    `range` of whole numbers.

    >>> declared_domains({"sex": ["f", "m"], "age": {"cuts": [0, 18, 65, 120]}})["age"].range
    (0.0, 120.0)
    >>> declared_domains(bounds={"pay": (0, 500_000)})["pay"].bounds
    (0, 500000)
    """
    found = {column: _domain(column, given) for column, given in (domains or {}).items()}
    for column, ends in (bounds or {}).items():
        if column in found:
            raise _bad(f"column {column!r} has a domain and bounds", column)
        found[column] = _domain(column, {"bounds": ends})
    return found


def _domain(column: str, given: Any) -> Domain:
    # Any: what the caller wrote.
    if isinstance(given, Domain):
        return given
    try:
        if isinstance(given, Mapping):
            (kind, parts), *more = given.items()
            if more or kind not in ("values", "bounds", "cuts"):
                raise _bad("a domain is a list of values, a range or cut points")
            if kind == "values":
                return Domain(values=tuple(parts))
            if kind == "cuts":
                return Domain(cuts=tuple(_number(part) for part in parts))
            low, high = (_number(part) for part in parts)
            return Domain(bounds=(low, high))
        if isinstance(given, str | bytes) or not isinstance(given, Sequence | range):
            raise _bad("a domain is a list of values, a range or cut points")
        return Domain(values=tuple(given))
    except InputError as error:
        raise _bad(
            str(error.args[0]) if error.args else "the domain is malformed", column
        ) from None
    except (TypeError, ValueError):
        raise _bad("a range has two numbers for ends, and cut points are numbers", column) from None


def _is_whole(value: Any) -> bool:
    # Any: a number, or a text as typed on a command line.
    if isinstance(value, str):
        return re.fullmatch(r"[+-]?[0-9]+", value.strip()) is not None
    return isinstance(value, Integral) and not isinstance(value, bool)


def _number(part: Any) -> float:
    # Any: what the caller wrote.
    return int(part) if _is_whole(part) else float(part)


def _bad(message: str, column: str | None = None) -> InputError:
    where = "" if column is None else f"column {column!r}: "
    return InputError(
        where + message,
        code="bad-domain",
        hint="write domains={'sex': ['f', 'm'], 'age': {'cuts': [0, 18, 65, 120]}} or "
        "bounds={'salary': (0, 500_000)}",
        column=column,
    )
