"""Attribute inference: whether synthetic records tell a secret of the people in the file."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from discreet.errors import InputError
from discreet.microdata.columns import Numbers, Places
from discreet.microdata.learning import one_thread
from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding
from discreet.microdata.risks._holdout import HoldoutRisk, Records, Sides, interval, shared_names
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["SyntheticAttribute"]

#: Classes of a secret that a model learns, the most frequent ones; and its trees, in all classes.
_CLASSES, _TREES, _FEWEST_ROUNDS = 20, 120, 10
#: Records that a model learns from at most, drawn by lot.
_LEARNED = 200_000
#: Codes of a column that a model takes as codes; of more it takes their numbers.
_CODES = 255
#: People whom a model is surest of.
_SUREST = 100


@dataclasses.dataclass(frozen=True)
class SyntheticAttribute(HoldoutRisk):
    """Guess a secret of people from the release, of those in the file and of those who are not.

    The intruder knows every other column, and tries two things: to take the secret from the nearest
    released record, and to train a model on all released records, which finds what their leaves and
    tables say of those they were made from. Numbers are guessed to a tenth of their distribution. The
    value is the accuracy, or for a model the probability that it gives the truth, on people in the file minus
    that on others, at least 0, for the attack that tells more; its interval is so wide that both
    hold in 95 % of cases. Beside it stands what the nearest of the others' own records would have
    told.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"a": range(0, 80, 2), "ill": ["flu", "gout"] * 20})
    >>> others = pd.DataFrame({"a": range(1, 81, 2), "ill": ["gout", "gout", "flu", "flu"] * 10})
    >>> pair = Pair.of(people, people, holdout=others, paired=False)
    >>> SyntheticAttribute("ill").measure(pair, rng=Randomness.seeded(1)).value > 0.4
    True
    """

    name: ClassVar[str] = "synthetic-attribute"
    reference: ClassVar[str] = (
        "Stadler, Oprisanu and Troncoso, USENIX Security 2022; Yeom, Giacomelli, Fredrikson and Jha, "
        "CSF 2018"
    )
    scenario: ClassVar[str] = "knows all columns but one of a person, and wants to know that one"
    noise: ClassVar[float] = 0.1

    secret: str | None = parameter(
        None, help="the column guessed; by default the first confidential, or else the last one"
    )

    def applies(self, pair: Pair) -> bool:
        """Needs a column to guess and others to guess it from."""
        return super().applies(pair) and len(shared_names(pair)) > 1

    def _secret(self, pair: Pair) -> str:
        if self.secret is not None:
            pair.schema[self.secret]
            if self.secret not in shared_names(pair):
                raise InputError(
                    f"column {self.secret!r} does not stand in all files, or is an identifier",
                    code="unknown-column",
                    hint="choose a column of all files; say roles={…} where it is no identifier",
                    column=self.secret,
                )
            return self.secret
        names = shared_names(pair)
        return next((name for name in pair.confidential if name in names), names[-1])

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return how much better secrets of people in the file are guessed."""
        name = self._secret(pair)
        sides, secrets = Sides.of(pair).without(name)
        missing = 1 + max(int(side.max(initial=0)) for side in secrets)  # one more value
        inside, outside, synthetic = (np.where(own < 0, missing, own) for own in secrets)
        one, two = sides.chosen(self.targets, rng)
        here, there = sides.inside.take(one), sides.outside.take(two)
        right = (
            (here.guesses(sides.synthetic, synthetic) == inside[one]).astype(float),
            (there.guesses(sides.synthetic, synthetic) == outside[two]).astype(float),
        )
        best = float((here.guesses(sides.outside, outside) == inside[one]).mean())
        model = _Model.of(sides.synthetic, synthetic, rng)
        sure = (model.told(here, inside[one]), model.told(there, outside[two]))
        attacks = {"nearest record": right, "model": (sure[0].truth, sure[1].truth)}
        found = {
            word: interval(_gain, *both, rng=rng, outside_it=0.05 / len(attacks))
            for word, both in attacks.items()
        }
        worst = max(found, key=lambda word: found[word][0])
        (low, high), gain = found[worst], _gain(*attacks[worst])
        facts = {
            "secret": name,
            "in the file": float(right[0].mean()),
            "not in the file": float(right[1].mean()),
            "from other people": best,
            "by a model in the file": float(sure[0].truth.mean()),
            "by a model not in the file": float(sure[1].truth.mean()),
            "surest hundred in the file": sure[0].surest,
            "surest hundred not in the file": sure[1].surest,
            "attack": worst,
            "low": low,
            "high": high,
        }
        if worst == "model":
            words = (
                f"a model trained on the release gives the true {name} of people in the file a probability of "
                f"{facts['by a model in the file']:.1%}, of others {facts['by a model not in the file']:.1%}: "
                f"{gain:+.1%} [{low:+.1%}, {high:+.1%}]; of the hundred it is surest of it guesses "
                f"{sure[0].surest:.0%} right, among others {sure[1].surest:.0%}"
            )
        else:
            words = (
                f"{name} of people in the file is guessed right for {facts['in the file']:.1%}, of "
                f"others for {facts['not in the file']:.1%}: {gain:+.1%} [{low:+.1%}, {high:+.1%}]"
            )
        return self.finding(max(0.0, gain), words, facts)


@dataclasses.dataclass(frozen=True, eq=False)
class _Told:
    """What a model says of people: the probability of each one's truth, and the surest guesses."""

    truth: Numbers
    surest: float


@dataclasses.dataclass(frozen=True, eq=False)
class _Model:
    """Boosted trees that learned a secret from released records; without them only its shares."""

    #: Any: scikit-learn has no annotations.
    trees: Any
    classes: Places
    shares: Numbers

    @classmethod
    @one_thread()
    def of(cls, records: Records, secret: Places, rng: Randomness) -> _Model:
        """Return the model; of a secret of many classes it learns the most frequent ones."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        found, many = np.unique(secret, return_counts=True)
        classes = np.sort(found[np.argsort(-many, kind="stable")[:_CLASSES]])
        rows = np.flatnonzero(np.isin(secret, classes))
        if rows.size > _LEARNED:
            rows = np.sort(rows[rng.sample(rows.size, _LEARNED)])
        shares = np.array([float((secret[rows] == one).mean()) for one in classes])
        if classes.size < 2:
            return cls(None, classes, shares)
        few = [place for place, column in enumerate(records.codes.T) if column.max() < _CODES]
        trees = HistGradientBoostingClassifier(
            max_iter=max(_FEWEST_ROUNDS, _TREES // (max(2, classes.size))),
            early_stopping=False,
            random_state=0,
            categorical_features=few,
        )
        return cls(trees.fit(_matrix(records.take(rows)), secret[rows]), classes, shares)

    @one_thread()
    def told(self, people: Records, secret: Places) -> _Told:
        """Return what the model says of people whose secret is known."""
        if self.trees is None:
            chance = np.tile(self.shares, (len(people), 1))
        else:
            chance = self.trees.predict_proba(_matrix(people))
        at = np.minimum(np.searchsorted(self.classes, secret), self.classes.size - 1)
        known = self.classes[at] == secret
        truth = np.where(known, chance[np.arange(len(people)), at], 0.0)
        surest = np.argsort(-chance.max(axis=1), kind="stable")[:_SUREST]
        right = self.classes[chance.argmax(axis=1)][surest] == secret[surest]
        return _Told(truth, float(right.mean()))


def _matrix(records: Records) -> np.ndarray:
    """Return records as trees take them; missing codes are missing."""
    codes = np.where(records.codes < 0, np.nan, records.codes.astype(np.float64))
    return np.concatenate([codes, records.scaled.astype(np.float64)], axis=1)


def _gain(inside: Numbers, outside: Numbers) -> float:
    return float(inside.mean() - outside.mean())
