"""Strengthen: methods of growing strength until the measured risk is low enough."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from discreet.data.dataset import as_dataset
from discreet.errors import InfeasibleError, InputError
from discreet.microdata.assessment import RiskBelow, risk
from discreet.microdata.masking import Masking
from discreet.microdata.pipeline import mask
from discreet.microdata.release import MicrodataRelease
from discreet.microdata.risks._base import RiskMeasure
from discreet.progress import Progress, silent
from discreet.randomness import Randomness

__all__ = ["strengthen"]

Pipeline = tuple[Masking, ...]
_REFINEMENTS = 3


def strengthen(
    data: Any,
    methods: Sequence[Masking | Sequence[Masking]] | Masking,
    *,
    until: RiskBelow,
    measures: Sequence[RiskMeasure] | None = None,
    most: int = 40,
    rng: Randomness | None = None,
    progress: Progress = silent,
) -> MicrodataRelease:
    """Return the least lossy release whose measured risk is below a limit.

    Each of `methods` is tried by itself: a masking method, or a list of them that are applied one
    after the other. Its parameters grow step by step until the risk is low enough, and are then
    taken back as far as they can be. Of those that get there the one that lost least is returned;
    what was tried is in its `notes`.

    Parameters
    ----------
    data
        A dataset or a frame. Any: every library has its own frame.
    methods
        Alternatives, each with the weakest parameters to begin with.
    until
        The demand: `dc.risk < 0.05` for the share of people linked to their record, or
        `dc.risk["re-identification"] < 0.2` for one measure.
    measures
        Risk measures used while searching; by default those that link records, or the one the
        demand names. The release has all of them.
    most
        Steps of growth at most, for each alternative.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(pd.DataFrame({"age": range(60)}), roles={"age": "quasi"})
    >>> demand = dc.risk["re-identification"] < 0.11
    >>> safe = strengthen(people, dc.Microaggregation("age", k=2), until=demand)
    >>> safe.methods[0].k
    9
    """
    alternatives = _alternatives(methods)
    dataset = as_dataset(data)
    rng = rng or Randomness.secure()
    chosen = list(measures) if measures is not None else _searched(until)
    search = _Search(dataset, until, chosen, rng, most)
    reached: list[tuple[float, MicrodataRelease]] = []
    for done, pipeline in enumerate(alternatives):
        progress("strengthen", done, len(alternatives))
        if (release := search.grow(pipeline)) is not None:
            reached.append((release.loss.value, release))
    progress("strengthen", len(alternatives), len(alternatives))
    if not reached:
        best = min((step["risk"] for step in search.tried), default=1.0)
        raise InfeasibleError(
            f"no method brings the risk below {until.limit:g}; the lowest reached is {best:.3g}",
            code="risk-too-high",
            hint=f"allow a risk of at least {best:.3g}, or add stronger methods",
            reached=best,
            tried=search.tried,
        )
    release = min(reached, key=lambda item: item[0])[1]
    demand = {"measure": until.measure or "record-linkage", "below": until.limit}
    return dataclasses.replace(release, notes={"until": demand, "tried": search.tried})


def _alternatives(methods: Sequence[Masking | Sequence[Masking]] | Masking) -> list[Pipeline]:
    given = [methods] if isinstance(methods, Masking) else list(methods)
    found = [(item,) if isinstance(item, Masking) else tuple(item) for item in given]
    if not found or not all(found):
        raise InputError(
            "no masking method is given",
            code="missing-method",
            hint="write methods=[dc.Microaggregation(['age', 'salary']), …]",
        )
    return found


def _searched(until: RiskBelow) -> list[RiskMeasure]:
    from discreet.microdata.assessment import default_measures

    found = default_measures()
    if until.measure is None:
        return [m for m in found if m.identifies]
    name = until.measure.split(":")[0]
    chosen = [m for m in found if m.name == name]
    if not chosen:
        raise InputError(
            f"there is no risk measure {until.measure!r}",
            code="unknown-measure",
            hint="choose one of " + ", ".join(sorted({m.name for m in found})),
        )
    return chosen


class _Search:
    """Tries pipelines and remembers what each risked."""

    def __init__(
        self,
        dataset: Any,
        until: RiskBelow,
        measures: list[RiskMeasure],
        rng: Randomness,
        most: int,
    ) -> None:
        self.dataset, self.until, self.measures = dataset, until, measures
        self.rng, self.most = rng, most
        self.tried: list[dict[str, Any]] = []

    def grow(self, pipeline: Pipeline) -> MicrodataRelease | None:
        """Return the weakest release of a pipeline that meets the demand, if one does."""
        weaker: Pipeline | None = None
        current: Pipeline | None = pipeline
        for _ in range(self.most):
            if current is None:
                return None
            release = self._meets(current)
            if release is not None:
                return self._taken_back(weaker, current, release)
            weaker, current = current, _stronger(current, self.dataset)
        return None

    def _taken_back(
        self, weaker: Pipeline | None, strong: Pipeline, release: MicrodataRelease
    ) -> MicrodataRelease:
        for _ in range(_REFINEMENTS if weaker is not None else 0):
            assert weaker is not None
            middle = tuple(_midway(a, b) for a, b in zip(weaker, strong, strict=True))
            if middle in (weaker, strong):
                break
            found = self._meets(middle)
            if found is None:
                weaker = middle
            else:
                strong, release = middle, found
        return release

    def _meets(self, pipeline: Pipeline) -> MicrodataRelease | None:
        try:
            release = mask(self.dataset, pipeline, rng=self.rng)
        except InfeasibleError:
            return None
        report = risk(self.dataset, release, measures=self.measures, rng=self.rng)
        value = self.until.value(report)
        self.tried.append({"methods": [m.settings() for m in pipeline], "risk": value})
        return release if self.until.holds(report) else None


def _stronger(pipeline: Pipeline, dataset: Any) -> Pipeline | None:
    """Return the pipeline with every method that can be made stronger one step further."""
    grown = []
    for method in pipeline:
        further = method.stronger()
        try:
            if further is not None:
                further.check(dataset.schema)
        except InputError:  # such as a level that the hierarchy does not have
            further = None
        grown.append(further)
    if not any(further is not None for further in grown):
        return None
    return tuple(
        method if further is None else further
        for method, further in zip(pipeline, grown, strict=True)
    )


def _midway(weak: Masking, strong: Masking) -> Masking:
    """Return a method half-way between two that differ in numbers only."""
    changes = {}
    for item in weak.parameters():
        one, two = getattr(weak, item.name), getattr(strong, item.name)
        if one != two and isinstance(one, int | float) and isinstance(two, int | float):
            changes[item.name] = (one + two) // 2 if isinstance(one, int) else (one + two) / 2
    return dataclasses.replace(weak, **changes) if changes else weak
