"""Noise that lacks the structure of the data is filtered out."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.audit.spectral import shrinkage, spectral_filter
from discreet.registry import parameter

__all__ = ["SpectralNoise"]


@dataclasses.dataclass(frozen=True)
class SpectralNoise(Attack):
    """Keep the directions in which records behind published noise vary more than noise does.

    It succeeds where its guesses are much nearer to the originals than columns that are only pulled
    towards their means: anybody can do that.

    Examples
    --------
    >>> SpectralNoise().control().succeeded
    True
    """

    name: ClassVar[str] = "spectral-noise"
    reference: ClassVar[str] = "Kargupta et al. (2003), ICDM; Huang, Du and Chen (2005), SIGMOD"
    attacks: ClassVar[Attacked] = "files"

    gain: float = parameter(
        0.8, help="error relative to shrinkage that is a success", above=0, below=1
    )

    def run(self, noisy: npt.ArrayLike, variance: float, truth: npt.ArrayLike) -> AttackReport:
        """Guess the originals; the truth only says how near the guesses are."""
        originals = np.asarray(truth, dtype=np.float64)

        def error(guess: npt.NDArray[np.float64]) -> float:
            return float(np.sqrt(((guess - originals) ** 2).mean()))

        found = error(spectral_filter(noisy, variance))
        plain = error(shrinkage(noisy, variance))
        return AttackReport(self.name, 1, 0, found, found, found < self.gain * plain)

    def control(self) -> AttackReport:
        """Attack independent noise over twenty columns that vary in two directions."""
        rng = np.random.default_rng(5)
        truth = rng.normal(size=(1500, 2)) @ rng.normal(size=(2, 20)) * 10
        return self.run(truth + rng.normal(size=truth.shape) * 10, 100.0, truth)
