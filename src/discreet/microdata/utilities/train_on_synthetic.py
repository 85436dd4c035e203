"""Train on synthetic, test on real: what a model learned from the release is worth."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from discreet.errors import InputError
from discreet.microdata.columns import Numbers, numbers
from discreet.microdata.learning import one_thread
from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.microdata.utilities.trained_model import accuracy
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["TrainOnSynthetic"]


@dataclasses.dataclass(frozen=True)
class TrainOnSynthetic(UtilityMeasure):
    """Accuracy on real records of a model trained on the release, beside one trained on real ones.

    Records need not correspond. Both models predict `target` (by default the first confidential
    column, or else the last one) of records that neither was trained on: the holdout where there is one, a third
    of the original otherwise. The value is the loss of accuracy over what the original gains on the
    most frequent value.

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"age": [20, 60] * 60, "ill": ["cold", "gout"] * 60})
    >>> pair = Pair.of(raw, raw.assign(ill="cold"), paired=False)
    >>> TrainOnSynthetic("ill").compare(pair, rng=Randomness.seeded(1)).value
    1.0
    """

    name: ClassVar[str] = "train-on-synthetic"
    reference: ClassVar[str] = "Esteban, Hyland and Rätsch, 2017; Jordon et al., 2022"
    needs_origin: ClassVar[bool] = False
    noise: ClassVar[float] = 0.2

    target: str | None = parameter(None, help="column to be predicted")
    rows: int = parameter(20_000, help="records used at most", low=30)

    def applies(self, pair: Pair) -> bool:
        """Needs a column to predict, others to predict it from, and records to learn from."""
        return len(pair.shared) > 1 and min(pair.size, len(pair.original)) >= 30

    @one_thread()
    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return the relative loss of accuracy."""
        target = self._target(pair)
        numeric = pair.is_numeric(target)
        others = [n for n in pair.shared if n not in (target, pair.schema.weight)]
        columns = {name: _together(pair, name) for name in (*others, target)}
        real, told, test = (
            np.stack([columns[name][side] for name in others], axis=1) for side in range(3)
        )
        categories = [not pair.is_numeric(name) for name in others]
        goal, guessed, true = columns[target]
        if pair.holdout is None:
            mixed = rng.permutation(len(real))
            use, keep = mixed[len(real) // 3 :], mixed[: len(real) // 3]
            test, true = real[keep], goal[keep]
            real, goal = real[use], goal[use]
        known = ~np.isnan(true)
        test, true = test[known], true[known]
        reached = {}
        for name, rows, values in (("original", real, goal), ("release", told, guessed)):
            use = np.flatnonzero(~np.isnan(values))
            use = use[np.sort(rng.sample(use.size, min(use.size, self.rows)))]
            reached[name] = accuracy(rows[use], values[use], test, true, numeric, categories)
        base = 0.0
        if not numeric and true.size:
            base = float(np.bincount(true.astype(int)).max() / true.size)
        gain = reached["original"] - base
        lost = (reached["original"] - reached["release"]) / gain if gain > 0 else 0.0
        facts: dict[str, Any] = {"target": target, **reached, "most frequent value": base}
        words = (
            f"predicting {target} of real records: {reached['release']:.1%} from the release, "
            f"{reached['original']:.1%} from the original, {base:.1%} without a model"
        )
        return self.comparison(min(max(lost, 0.0), 1.0), words, facts)

    def _target(self, pair: Pair) -> str:
        if self.target is None:
            return pair.confidential[0] if pair.confidential else pair.shared[-1]
        pair.schema[self.target]
        if self.target not in pair.shared:
            raise InputError(
                f"column {self.target!r} is not in the release",
                code="unknown-column",
                column=self.target,
            )
        return self.target


def _together(pair: Pair, name: str) -> list[Numbers]:
    """Return a column of the original, the release and the holdout, as numbers or shared codes."""
    import pyarrow as pa

    from discreet.microdata.columns import codes

    parts = [pair.before(name), pair.after(name)]
    if pair.holdout is not None:
        parts.append(pair.unused(name))
    if pair.is_numeric(name):
        found = [numbers(part, name=name) for part in parts]
    else:
        places = codes(pa.concat_arrays([part.cast(pa.string()) for part in parts]))[0]
        cut = np.split(places, np.cumsum([len(part) for part in parts])[:-1])
        found = [np.where(p < 0, np.nan, p.astype(float)) for p in cut]
    return found if len(found) == 3 else [*found, np.empty(0)]
