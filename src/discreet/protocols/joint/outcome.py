"""What an agreed computation returns: numbers, what was opened, and what each party learned."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.page import Page, Section
from discreet.protocols.joint.computation import Computation
from discreet.protocols.joint.learned import Leakage
from discreet.report import Report, Rows

__all__ = ["JointResult", "read_shown", "stated_as"]

_LARGEST = 1 << 20


@dataclasses.dataclass(frozen=True, eq=False)
class JointResult(Report):
    """The result of a computation over several owners."""

    computation: str
    protocol: str
    columns: tuple[str, ...]
    values: Mapping[str, npt.NDArray[np.float64]]
    opened: tuple[Mapping[str, Any], ...]
    leakage: Leakage
    caution: str
    transcript: Mapping[str, Any]

    def __getitem__(self, name: str) -> npt.NDArray[np.float64]:
        return self.values[name]

    def rows(self) -> Rows:
        """Return one line for each number, named by its column where it has one."""
        lines = [
            (name, *self._place(name, values.shape, place), _shown(float(values[place])))
            for name, values in self.values.items()
            for place in np.ndindex(values.shape)
        ]
        return ("result", "of", "value"), lines

    def _place(self, name: str, shape: tuple[int, ...], place: tuple[int, ...]) -> tuple[str]:
        columns = self.columns
        explained = columns[:-1]
        if self.protocol.endswith("regression") and name in ("coefficients", "errors"):
            named = ("constant", *explained) if name == "coefficients" else explained
            return (named[place[0]],)
        if len(shape) == 1 and shape[0] == len(columns) and name == "sum":
            return (columns[place[0]],)
        if len(shape) == 2 and self.protocol.endswith("product"):
            return (f"{columns[place[0]]} × {columns[shape[0] + place[1]]}",)
        if len(shape) == 2 and shape[1] == len(columns):
            first = columns[place[0]] if shape[0] == shape[1] else str(place[0] + 1)
            return (f"{first}, {columns[place[1]]}",)
        return ("" if math.prod(shape) == 1 else ", ".join(str(one + 1) for one in place),)

    def page(self) -> Page:
        """Return the numbers, what each party learned and the messages, as a page."""
        from discreet.protocols.joint.pictures import run_sections

        sections = [Section("Result", table=self), *run_sections(self.transcript, self.leakage)]
        return Page(f"{self.computation}: {self.protocol}", sections, verdict=self.caution)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "computation": self.computation,
            "protocol": self.protocol,
            "columns": list(self.columns),
            "values": {name: _known(found) for name, found in self.values.items()},
            "opened": [dict(one) for one in self.opened],
            "leakage": self.leakage.to_dict(),
            "caution": self.caution,
            "transcript": dict(self.transcript),
        }


def stated_as(shown: Mapping[str, npt.NDArray[np.float64]]) -> bytes:
    """Return numbers as a party states them; what is not known is null.

    >>> read_shown(stated_as({"centres": np.array([[1.0, np.nan]])}))["centres"].tolist()
    [[1.0, nan]]
    """
    stated = {name: _known(values) for name, values in shown.items()}
    return json.dumps(stated, allow_nan=False).encode()


def _known(values: npt.NDArray[np.float64]) -> Any:
    """Return numbers as plain data. Any: lists of numbers and None, as deep as the array."""
    return np.where(np.isnan(values), None, values).tolist()  # type: ignore[call-overload]


def read_shown(body: bytes) -> dict[str, npt.NDArray[np.float64]]:
    """Return the numbers that a party states; ValueError where it states something else."""
    found = json.loads(body)
    if not isinstance(found, dict) or len(found) > 16:
        raise ValueError("names")
    shown = {}
    for name, values in found.items():
        numbers = np.asarray(values, dtype=np.float64)
        if numbers.size > _LARGEST or numbers.ndim > 2 or np.isinf(numbers).any():
            raise ValueError("numbers")
        shown[str(name)[:64]] = numbers
    return shown


def _shown(value: float) -> float | str:
    return "unknown" if math.isnan(value) else value


def result_of(
    name: str,
    computation: Computation,
    shown: Mapping[str, npt.NDArray[np.float64]],
    transcripts: Mapping[str, Any],
) -> JointResult:
    """Return the result that numbers and transcripts make."""
    openings: Sequence[Any] = next((t["opened"] for t in transcripts.values() if t["opened"]), ())
    protocol = computation.protocol
    return JointResult(
        name,
        protocol.name,
        computation.listed,
        shown,
        tuple(openings),
        protocol.leakage(),
        protocol.caution,
        transcripts,
    )
