"""An analysis of one's own: any function of the file, run before and after."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["Analysis"]


@dataclasses.dataclass(frozen=True)
class Analysis(UtilityMeasure):
    """The user's own figures before and after.

    `figures` takes a frame, of the library the data came in, and returns a number or a mapping
    of names to numbers. The value is the mean relative difference.

    Examples
    --------
    >>> import pandas as pd
    >>> raw, safe = pd.DataFrame({"pay": [10.0, 20.0]}), pd.DataFrame({"pay": [12.0, 21.0]})
    >>> method = Analysis("mean pay", lambda frame: frame["pay"].mean())
    >>> method.compare(Pair.of(raw, safe), rng=Randomness.seeded(1)).value
    0.1
    """

    name: ClassVar[str] = "analysis"
    reference: ClassVar[str] = "Karr et al., The American Statistician 2006"

    title: str = parameter(help="what the figures are called")
    figures: Callable[..., Any] = parameter(help="frame to figures")

    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return the mean relative difference of the figures."""
        hidden = set(pair.schema.identifiers)
        names = [name for name in pair.original.columns if name not in hidden]
        before = _named(self.figures(pair.original.select(names).frame))
        after = _named(self.figures(pair.released.frame))
        facts, apart = {}, []
        for name, value in before.items():
            found = after.get(name)
            facts[name] = {"before": value, "after": found}
            if found is None or np.isnan(found):
                apart.append(1.0)
            else:
                apart.append(abs(found - value) / (abs(value) if value else 1.0))
        value = float(np.mean(apart)) if apart else 0.0
        words = f"{self.title}: figures differ by {value:.2%} on average"
        return Comparison(f"analysis: {self.title}", value, words, facts)


def _named(found: Any) -> Mapping[str, float]:
    # Any: whatever the user's function returns: a number, a mapping, a pandas Series.
    if hasattr(found, "to_dict"):
        found = found.to_dict()
    if isinstance(found, Mapping):
        return {str(name): float(value) for name, value in found.items()}
    return {"figure": float(found)}
