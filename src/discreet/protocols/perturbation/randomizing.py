"""Records behind noise whose law is published, with what can be had back and what an attack gets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.audit.spectral import shrinkage, spectral_filter
from discreet.data.dataset import Dataset, as_dataset
from discreet.errors import InputError
from discreet.protocols.perturbation.law import NoiseLaw
from discreet.protocols.perturbation.reconstruction import reconstruct, shares
from discreet.randomness import Randomness
from discreet.report import Report, Rows

if TYPE_CHECKING:
    import pandas

__all__ = ["Randomized", "randomize"]

_BINS = 60


@dataclasses.dataclass(frozen=True, eq=False)
class Randomized(Report):
    """Records behind published noise: what a reader can have back, and what an attacker gets."""

    frame: pandas.DataFrame
    laws: Mapping[str, NoiseLaw]
    #: L1 distance of the reconstructed and of the noisy distribution to the true one.
    reconstructed: Mapping[str, float]
    raw: Mapping[str, float]
    #: Root mean square error, in deviations of the column: no attack, shrinkage, spectral filter.
    noise: float
    shrunk: float
    filtered: float

    def rows(self) -> Rows:
        """Return one line for each column, and the attack."""
        lines: list[tuple[Any, ...]] = [
            (name, f"{law.shape} {law.scale:g}", self.reconstructed[name], self.raw[name])
            for name, law in self.laws.items()
        ]
        attack = (
            f"error left of noise {self.noise:.3f}: shrinkage {self.shrunk:.3f}, "
            f"spectral filter {self.filtered:.3f}"
        )
        return ("column", "noise", "L1 reconstructed", "L1 of noisy values"), [
            *lines,
            ("attack", attack, "", ""),
        ]


def randomize(
    data: Any,
    columns: Sequence[str],
    *,
    privacy: float = 1.0,
    shape: Literal["uniform", "gaussian"] = "gaussian",
    correlated: bool = False,
    rng: Randomness | None = None,
) -> Randomized:
    """Add noise of a published law to numeric columns, and report both sides of it.

    Parameters
    ----------
    data
        A dataset or frame.
    columns
        The columns that get noise; other columns are left out of the result.
    privacy
        Width of the interval that holds a value with 95 % confidence, as a multiple of the
        column's range, at least: the published scale is rounded up to 1, 1.5, 2, 3, 5 or 7 times a
        power of ten, for the exact one would tell the range, and with it the largest value.
    shape
        The law of the noise. Correlated noise is gaussian.
    correlated
        Whether noise has the covariance of the data. Independent noise over correlated columns can
        be filtered out again; the report says how much of it. Its laws tell the proportions of the
        columns' deviations.
    rng
        A secure source by default.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": np.arange(2000) % 80})
    >>> found = randomize(people, ["age"], rng=Randomness.seeded(1))
    >>> found.laws["age"].shape, bool(found.reconstructed["age"] < found.raw["age"])
    ('gaussian', True)
    """
    import pandas as pd

    source = rng or Randomness.secure()
    dataset = as_dataset(data)
    values = _numbers(dataset, columns)
    if correlated and shape != "gaussian":
        raise InputError(
            "correlated noise is gaussian", code="unknown-noise", hint="write shape='gaussian'"
        )
    laws = {
        name: _law(values[:, place], shape, privacy, name) for place, name in enumerate(columns)
    }
    noise = np.column_stack([law.draw(len(values), rng=source) for law in laws.values()])
    deviations = values.std(axis=0)
    deviations[deviations == 0] = 1.0
    if correlated:
        noise, laws = _with_covariance(noise, values, laws)
    # The digits that floats drop depend on the value alone: published, they would tell of it.
    noisy = np.column_stack(
        [
            _to_grid(values[:, place] + noise[:, place], law)
            for place, law in enumerate(laws.values())
        ]
    )
    found, raw = {}, {}
    for place, (name, law) in enumerate(laws.items()):
        column = values[:, place]
        back = reconstruct(noisy[:, place], law, low=column.min(), high=column.max(), bins=_BINS)
        truth = shares(column, back.edges)
        found[name] = _short(back.distance(truth))
        raw[name] = _short(back.distance(truth, raw=True))
    unit = [noisy / deviations, values / deviations]
    variance = float(np.mean([law.variance for law in laws.values()] / deviations**2))

    def error(guess: npt.NDArray[np.float64]) -> float:
        return _short(np.sqrt(((guess - unit[1]) ** 2).mean()))

    return Randomized(
        pd.DataFrame(noisy, columns=list(columns)),
        laws,
        found,
        raw,
        error(unit[0]),
        error(shrinkage(unit[0], variance)),
        error(spectral_filter(unit[0], variance)),
    )


def _numbers(dataset: Dataset, columns: Sequence[str]) -> npt.NDArray[np.float64]:
    if not columns:
        raise InputError("no column is named", code="no-columns", hint="name numeric columns")
    twice = [name for place, name in enumerate(columns) if name in columns[:place]]
    if twice:
        raise InputError(
            f"column {twice[0]!r} is named twice",
            code="duplicate-columns",
            column=twice[0],
            hint="name each column once",
        )
    dataset.relation.require(*columns)
    table = dataset.arrow(list(columns))
    found = []
    for name in columns:
        try:
            column = table.column(name).to_pandas().to_numpy(dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"column {name!r} does not hold numbers",
                code="not-numeric",
                column=name,
                hint="choose numeric columns",
            ) from None
        if not column.size or not np.isfinite(column).all():
            raise InputError(
                f"column {name!r} has missing values, or there are no records",
                code="missing-values",
                column=name,
                hint="fill or leave out missing values first",
            )
        found.append(column)
    return np.column_stack(found)


def _law(
    column: npt.NDArray[np.float64],
    shape: Literal["uniform", "gaussian"],
    privacy: float,
    name: str,
) -> NoiseLaw:
    spread = float(np.ptp(column))
    if spread == 0:
        raise InputError(
            f"column {name!r} holds one value only",
            code="constant-column",
            column=name,
            hint="leave it out",
        )
    return NoiseLaw(shape, _round_up(privacy * spread / NoiseLaw(shape, 1.0).interval(0.95)))


def _round_up(scale: float) -> float:
    """Return the next of 1, 1.5, 2, 3, 5, 7, 10, 15 …: a law is published, a column's range is not.

    >>> _round_up(26.3), _round_up(0.2), _round_up(7.1)
    (30.0, 0.2, 10.0)
    """
    if not (0 < scale < math.inf):
        return scale  # refused by the law, with its own words
    power = math.floor(math.log10(scale))
    steps = (float(f"{digit}e{power}") for digit in (1, 1.5, 2, 3, 5, 7, 10))
    return next(step for step in steps if step >= scale * (1 - 1e-12))


def _short(number: float) -> float:
    """Return a number with the digits of a report; all of them would tell of single records."""
    return float(f"{number:.4g}")


def _to_grid(values: npt.NDArray[np.float64], law: NoiseLaw) -> npt.NDArray[np.float64]:
    """Return values rounded to about a ten-thousandth of the scale of their noise."""
    digits = 4 - math.floor(math.log10(law.scale))
    return np.asarray(np.round(values, digits))


def _with_covariance(
    noise: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],
    laws: Mapping[str, NoiseLaw],
) -> tuple[npt.NDArray[np.float64], dict[str, NoiseLaw]]:
    """Return noise that varies along the data's directions in the data's proportions."""
    found, directions = np.linalg.eigh(np.atleast_2d(np.cov(values, rowvar=False)))
    root = directions * np.sqrt(np.clip(found, 0.0, None))
    scales = np.array([law.scale for law in laws.values()])
    factor = float(np.sqrt(np.mean((scales / values.std(axis=0)) ** 2)))
    made = (noise / scales) @ root.T * factor
    deviations = values.std(axis=0, ddof=1) * factor
    return made, {
        # Three digits: with all of them, whoever knows the other records computes the last.
        name: NoiseLaw("gaussian", float(f"{d:.3g}"))
        for name, d in zip(laws, deviations, strict=True)
    }
