"""Laws of metrics: bounds never exceed scores, and the search by them finds the least score."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.microdata.frequency_set import FrequencySet
from discreet.microdata.search.attribute import attribute
from discreet.microdata.search.lattice import optimum
from discreet.microdata.search.metrics._base import Metric, Scorer
from discreet.microdata.search.metrics.discernibility import Discernibility
from discreet.microdata.search.rollup import Rollup
from tests.laws import people
from tests.laws.parameters import examples

TREES = {"region": people.REGIONS, "job": people.JOBS}
MODEL = dc.KAnonymity(3)


def files() -> Iterator[tuple[FrequencySet, list[Any]]]:
    for seed in range(6):
        rows = people.frame(seed, 30, missing=False)[list(TREES)]
        counted = pa.Table.from_pandas(rows, preserve_index=False).group_by(list(TREES))
        table = FrequencySet.from_table(
            counted.aggregate([([], "count_all")]).rename_columns([*TREES, "count"]), list(TREES)
        )
        yield table, [attribute(coded, TREES[coded.name]) for coded in table.quasi]


def nodes(table: FrequencySet, attributes: list[Any], metric: Any, limit: int) -> Iterator[Any]:
    """Yield place, score, floor and bound of every node that suppresses no more than the limit."""
    rollup = Rollup(table, attributes)
    scorer = metric.scorer(table, attributes, rollup, limit)
    for place, node in enumerate(itertools.product(*(range(one.height) for one in attributes))):
        grouping = rollup.at(node)
        kept = MODEL.satisfied(grouping.classes(()))
        gone = int(grouping.sizes[~kept].sum())
        if gone <= limit:
            score = scorer.score(node, grouping, kept)
            yield place, score, float(scorer.floor[place]), scorer.bound(place, node, gone), scorer


def bounds_never_exceed_scores(member: type[Metric]) -> None:
    for metric in examples(member):
        for table, attributes in files():
            for limit in (0, 5, 30):
                for place, score, floor, bound, _ in nodes(table, attributes, metric, limit):
                    slack = 1e-9 * max(1.0, abs(score))
                    assert floor <= score + slack, f"{metric}: floor of node {place}"
                    assert bound <= score + slack, f"{metric}: bound of node {place}"


def the_search_finds_the_least_score(member: type[Metric]) -> None:
    for metric in examples(member):
        for table, attributes in files():
            for limit in (0, 5):
                told = list(nodes(table, attributes, metric, limit))
                least = min(score for _, score, *_ in told)
                found = optimum(table, attributes, [MODEL], metric, limit=limit)
                # The last of what is yielded is the scorer, which says how its score is stated.
                stated = told[0][-1].final(least)
                assert np.isclose(found.score, stated), f"{metric}: {found.score}, not {stated}"


def coarser_is_never_better(member: type[Metric]) -> None:
    """Without suppression the whole file as one class loses at least as much as any other node."""
    for metric in examples(member):
        for table, attributes in files():
            scores = [score for _, score, *_ in nodes(table, attributes, metric, 0)]
            assert all(np.isfinite(scores))
            assert scores[-1] >= max(scores) - 1e-9, f"{metric}: {scores}"


LAWS = (bounds_never_exceed_scores, the_search_finds_the_least_score, coarser_is_never_better)


@dataclasses.dataclass(frozen=True)
class _Scored(Metric):
    def scorer(self, table: Any, attributes: Any, rollup: Any, limit: int) -> Scorer:
        made = Discernibility().scorer(table, attributes, rollup, limit)
        return self.broken(made)

    def broken(self, made: Scorer) -> Scorer:
        return made


@dataclasses.dataclass(frozen=True)
class HighFloor(_Scored):
    """Bounds scores from below by more than they are."""

    name: ClassVar[str] = "high-floor"

    def broken(self, made: Scorer) -> Scorer:
        made.floor = made.floor * 3
        return made


@dataclasses.dataclass(frozen=True)
class Skipping(_Scored):
    """Rules out all nodes but the last, so that the search sees nothing better."""

    name: ClassVar[str] = "skipping"

    def broken(self, made: Scorer) -> Scorer:
        made.floor = np.where(np.arange(len(made.floor)) == len(made.floor) - 1, 0.0, 1e9)
        return made


@dataclasses.dataclass(frozen=True)
class Upside(_Scored):
    """Likes coarse files."""

    name: ClassVar[str] = "upside"

    def broken(self, made: Scorer) -> Scorer:
        plain = made.score
        made.score = lambda *given: -plain(*given)  # type: ignore[method-assign]
        made.floor = np.full_like(made.floor, -1e9)
        return made


BROKEN = {
    HighFloor: bounds_never_exceed_scores,
    Skipping: the_search_finds_the_least_score,
    Upside: coarser_is_never_better,
}
