"""Consistent differentially private counts over a tree of places."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Dimension, Ints, Table
from discreet.dp.accountant import Accountant, gaussian_event, rho_of
from discreet.dp.caution import caution
from discreet.dp.hierarchical.basis import Query
from discreet.dp.hierarchical.budget import Budget, allocate
from discreet.dp.hierarchical.measurement import Measurements, Simulated, measure
from discreet.dp.hierarchical.tree import fit
from discreet.errors import InfeasibleError, InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._base import Protected, TableMethod, changed
from discreet.tables.methods._contributors import require_records, require_unweighted
from discreet.tables.methods._cube import complete_cube, require_size
from discreet.tables.methods._places import Places
from discreet.tables.methods._planning import Plan, expected_errors, least_loss
from discreet.tables.methods._promised import concentrated
from discreet.tables.methods._shares import (
    level_number,
    named_levels,
    query_name,
    read_invariants,
    read_query,
    read_shares,
)
from discreet.tables.methods._tree_estimate import TreeEstimate

if TYPE_CHECKING:
    from discreet.tables.tabulation import Source

__all__ = ["TopDown", "combinations_of"]

#: Where ρ is given, ε is stated at this δ.
_DELTA = 1e-10


#: Cells of a histogram over which errors are planned: more do not fit the memory.
_PLANNED = 10_000_000


def _require_plannable(dimensions: Sequence[Dimension], place: int) -> None:
    """Refuse a plan without a tree, or of histograms that are too large."""
    if not dimensions:
        raise InputError(
            "a plan needs the tree of places",
            code="no-attributes",
            hint="give the hierarchies: {'region': …, 'sex': …}",
            parameter="hierarchies",
        )
    sizes = [int(d.is_leaf.sum()) for n, d in enumerate(dimensions) if n != place]
    if math.prod(sizes) > _PLANNED:
        raise InputError(
            f"each place would have {math.prod(sizes):,} cells, more than the {_PLANNED:,} that "
            "can be planned",
            code="table-too-large",
            hint="cross fewer attributes, or coarser ones",
        )


@dataclasses.dataclass(frozen=True)
class TopDown(TableMethod):
    """Whole, non-negative counts from nation to block that add up, with one exact privacy loss.

    Every level of the spine is measured with discrete Gaussian noise from OpenDP; from the
    measurements alone the table is then estimated from the root down. The codes of all attributes
    must be declared: a list of codes found in the records would tell who is in them.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(
    ...     pd.DataFrame({"region": ["n1", "n2", "s1"] * 40, "sex": ["f", "m"] * 60}),
    ...     hierarchies={
    ...         "region": dc.Hierarchy.from_levels({"Land": {"N": ["n1", "n2"], "S": ["s1"]}}),
    ...         "sex": dc.Hierarchy.flat(["f", "m"]),
    ...     },
    ... )
    >>> table = dc.tabulate(people, by=["region", "sex"])
    >>> release = table.protect(method=dc.TopDown(rho=1, spine="region"))
    >>> value = release.cells.set_index(["region", "sex"])["value"]
    >>> bool(value["Land", "f"] == value["N", "f"] + value["S", "f"])
    True
    >>> release.interval({"region": ["n1", "s1"], "sex": "f"}).standard_error < 3
    True
    """

    name: ClassVar[str] = "top-down"
    reference: ClassVar[str] = (
        "Abowd et al. (2022), The 2020 Census Disclosure Avoidance System TopDown Algorithm, "
        "HDSR; Hay et al. (2010), VLDB 3"
    )
    needs_rules: ClassVar[bool] = False
    risk: ClassVar[str] = "noise"
    is_random: ClassVar[bool] = True
    linked: ClassVar[str] = "refused"

    rho: float | None = parameter(
        None, help="privacy loss of the whole table (zCDP); 1 where epsilon is not given", above=0
    )
    epsilon: float | None = parameter(
        None, help="privacy loss as ε at delta, in place of rho", above=0
    )
    delta: float | None = parameter(
        None, help="the δ at which ε is stated; 1e-10 unless given", above=0, below=1
    )
    spine: str | None = parameter(
        None, help="the attribute whose hierarchy is the tree of places; the first by default"
    )
    levels: tuple[str, ...] = parameter(
        (), help="names of the spine's levels from the top down; 0, 1, 2 … otherwise"
    )
    split: str | Mapping[str, float] = parameter(
        "even",
        help="share of each level: even, leaf-heavy, census (six levels), or a mapping by level",
    )
    queries: str | Mapping[str, Any] = parameter(
        "marginals",
        help="what is measured and with which share: marginals, {query: share}, or {level: {query: "
        "share}}; a query is total, detailed, sex or sex*age",
    )
    invariants: Mapping[str, str] = parameter(
        {},
        help="what levels publish exactly, outside the promise: {'1': total}, or a marginal, sex",
    )
    zeros: tuple[Mapping[str, Any], ...] = parameter(
        (), help="impossible combinations of codes: {sex: m, status: pregnant}"
    )
    passes: Literal["totals-first", "one"] = parameter(
        "totals-first", help="settle the totals of a level before its cells, or all at once"
    )
    gather: bool = parameter(True, help="use what is measured below a place, too")
    records: int = parameter(
        1, help="most records one contributor may have; k of them cost k² times", low=1
    )
    integer: bool = parameter(
        True, help="publish whole, non-negative numbers; otherwise the best linear estimate"
    )
    measurements: bool = parameter(
        False, help="publish the noisy measurements, too: no further loss"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rho is not None and self.epsilon is not None:
            raise InputError(
                "top-down: rho and epsilon say the same; give one of them",
                code="rho-and-epsilon",
                hint="write rho=1, or epsilon=1 delta=1e-6",
                parameter="epsilon",
            )
        for name in ("rho", "epsilon"):
            value = getattr(self, name)
            if value is not None and not np.isfinite(value):
                raise InputError(
                    f"top-down: {name} is a finite number: without end there is no noise",
                    code="parameter-range",
                    parameter=name,
                )
        if isinstance(self.split, str) and self.split not in ("even", "leaf-heavy", "census"):
            raise InputError(
                f"top-down: there is no split {self.split!r}",
                code="parameter-range",
                hint="write even, leaf-heavy, census, or a share for each level: split.0=0.5",
                parameter="split",
            )
        if isinstance(self.queries, str) and self.queries != "marginals":
            raise InputError(
                f"top-down: there are no queries {self.queries!r}",
                code="parameter-range",
                hint="write marginals, or shares: queries.total=0.5 queries.detailed=0.5",
                parameter="queries",
            )
        if not self.integer and self.zeros:
            raise InputError(
                "top-down: the linear estimate knows no impossible combinations",
                code="unsupported-zeros",
                hint="leave out zeros, or write integer=true",
                parameter="zeros",
            )

    @functools.cached_property
    def loss(self) -> float:
        """The ρ that is granted to the table."""
        if self.epsilon is not None:
            return rho_of(self.epsilon, self.stated_delta)
        return 1.0 if self.rho is None else float(self.rho)

    @property
    def stated_delta(self) -> float:
        """The δ at which ε is stated."""
        return _DELTA if self.delta is None else float(self.delta)

    @property
    def caution(self) -> str:
        """What the privacy loss means, where it is large."""
        events = {gaussian_event(self.loss): 1}
        return caution(Accountant("zcdp", self.stated_delta).epsilon(events))

    # -- before anything is drawn ----------------------------------------------------------------
    def events(self, table: Table) -> Mapping[str, int]:
        """Return what the release costs, as the ledger counts it; looks at no record.

        What is refused for the records themselves is refused by `hide`: whether it is tells of them.
        """
        return self._task(table).budget.events()

    def _task(self, table: Table) -> _Task:
        """Return what is to be measured; refuse what cannot be promised for, whatever the records."""
        source: Source | None = getattr(table, "source", None)
        if table.statistic != "count":
            raise InputError(
                "top-down protects counts of records",
                code="unsupported-statistic",
                hint="tabulate without a measure; dp-noise protects sums with bounds",
            )
        require_unweighted(source, self.name)
        undeclared = [d.name for d in table.dimensions if not d.declared]
        if undeclared:
            raise InputError(
                f"the codes of {', '.join(undeclared)} are those found in the records, which would "
                "tell who is in them",
                code="undeclared-codes",
                hint="declare a hierarchy or a domain for every attribute, and none that is made from "
                "the records' values: hierarchies={'sex': dc.Hierarchy.flat(['f', 'm'])}",
                column=undeclared[0],
            )
        require_size(table)
        return self.task_of(Places.of(table.dimensions, self.place_of(table.by)))

    def place_of(self, by: tuple[str, ...]) -> int:
        """Return which of the attributes is the spine."""
        if self.spine is None:
            return 0
        if self.spine not in by:
            raise InputError(
                f"the spine {self.spine!r} is not among the attributes of the table",
                code="bad-spine",
                hint="choose among " + ", ".join(by),
                parameter="spine",
            )
        return by.index(self.spine)

    def task_of(self, places: Places) -> _Task:
        """Return what is measured over a tree of places and attributes; needs no records."""
        levels = named_levels(self.levels, places.spine.depth)
        attributes = [dimension.name for dimension in places.attributes]
        shares = read_shares(self.split, self.queries, levels, attributes)
        bare = [name for name, queries in zip(levels, shares, strict=True) if not queries]
        if bare and self.integer and not self.gather:
            raise InputError(
                f"level {bare[0]} has no share, and gather=False uses nothing but a level's own "
                "measurements",
                code="unmeasured-level",
                hint="give every level a share, or leave gather on",
                parameter="split",
            )
        exact = read_invariants(self.invariants, levels, attributes)
        possible = places.possible(combinations_of(self.zeros, places)) if self.zeros else None
        if possible is not None:
            _require_agreement(exact, possible, places)
        budget = allocate(self.loss, shares, records=self.records)
        return _Task(places, levels, tuple(shares), budget, exact, possible)

    @classmethod
    def plan(
        cls,
        hierarchies: Mapping[str, Hierarchy],
        queries: str | Mapping[str, Any] = "marginals",
        rho: float | None = None,
        target: Mapping[str, Mapping[str, float]] | None = None,
        **settings: Any,
    ) -> Plan:
        """Return expected errors of a split, or the split that meets targets at the least ρ found.

        Parameters
        ----------
        hierarchies
            The spine's tree (the first, unless `spine` names another) and the codes of attributes.
        queries, rho
            As in the method; with a target, the queries are those that may get a share, and ρ is the
            most that may be spent.
        target
            Expected absolute errors not to be exceeded, per level and query.
        settings
            Further parameters of the method: spine, levels, split, records, delta. Any: as there.

        Examples
        --------
        >>> import discreet as dc
        >>> places = dc.Hierarchy.from_levels({"Land": {"N": ["n1", "n2"], "S": ["s1", "s2"]}})
        >>> sex = dc.Hierarchy.flat(["f", "m"])
        >>> plan = dc.TopDown.plan({"region": places, "sex": sex}, rho=0.5)
        >>> round(plan.errors["1"]["total"], 2)
        1.14
        >>> plan = dc.TopDown.plan({"region": places, "sex": sex}, target={"1": {"total": 1.0}})
        >>> round(plan.errors["1"]["total"], 3) <= 1.0, plan.rho < 1.1
        (True, True)
        """
        method = cls(rho=rho, queries=queries, **settings)
        dimensions = tuple(Dimension.of(name, tree) for name, tree in hierarchies.items())
        _require_plannable(dimensions, method.place_of(tuple(hierarchies)) if dimensions else 0)
        places = Places.of(dimensions, method.place_of(tuple(hierarchies)))
        return method.planned(places, target or {})

    def planned(self, places: Places, target: Mapping[str, Mapping[str, float]]) -> Plan:
        """Return the plan of this method over a tree of places; spends nothing."""
        task = self.task_of(places)
        names = [dimension.name for dimension in places.attributes]
        shares, loss, spine, basis = task.shares, self.loss, places.spine, places.basis
        targets = {
            (level_number(level, task.levels, "target"), read_query(str(query), names)): float(
                wanted
            )
            for level, given in target.items()
            for query, wanted in given.items()
        }
        if targets:
            least, shares = least_loss(spine, basis, shares, targets, task.exact)
            loss = least * self.records**2
            is_limited = self.rho is not None or self.epsilon is not None
            if is_limited and loss > self.loss * (1 + 1e-9):
                raise InfeasibleError(
                    f"the targets cost rho = {loss:.4g}, more than the {self.loss:.4g} that is given",
                    code="target-beyond-budget",
                    hint="allow larger errors, or more rho; without rho= the least one is found",
                    parameter="target",
                )
        budget = allocate(loss, shares, records=self.records)
        asked = list(
            dict.fromkeys([*(q for level in shares for q in level), *(q for _, q in targets)])
        )
        variances = [budget.variances(level) for level in range(spine.depth)]
        errors = expected_errors(spine, basis, variances, asked, task.exact)
        whole = {name: sum(given.values()) for name, given in zip(task.levels, shares, strict=True)}
        return Plan(
            rho=budget.rho,
            epsilon=Accountant("zcdp", self.stated_delta).epsilon(budget.events()),
            delta=self.stated_delta,
            split=whole,
            queries={
                name: {query_name(q, names): share / whole[name] for q, share in given.items()}
                for name, given in zip(task.levels, shares, strict=True)
                if given
            },
            errors={
                name: {query_name(q, names): float(e) for q, e in zip(asked, row, strict=True)}
                for name, row in zip(task.levels, errors, strict=True)
            },
            target={str(level): dict(given) for level, given in target.items()},
        )

    # -- the work --------------------------------------------------------------------------------
    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return the consistent table over every combination of codes."""
        task = self._task(table)
        require_records(getattr(table, "source", None), self.records, self.name)
        leaves = task.places.leaves(table)
        task.require_possible(leaves)
        cube = complete_cube(table)
        measured = task.measure(leaves, progress)
        estimate = self.estimate(measured, task.places, rng=rng, progress=progress)
        return Protected(
            cube,
            estimate.value,
            changed(cube),
            facts=self.facts(task),
            events=task.budget.events(),
            estimate=estimate,
        )

    def estimate(
        self,
        measured: Measurements,
        places: Places,
        *,
        rng: Randomness,
        progress: Progress = silent,
    ) -> TreeEstimate:
        """Return the table that is published; nothing but the measurements goes into it."""
        # Compiled: who asks which methods there are does not wait for the compiler.
        from discreet.dp.hierarchical.estimation import gathered_from, whole_estimate

        known = gathered_from(measured)
        shown = measured if self.measurements else None
        if not self.integer:
            return TreeEstimate(places, fit(known), measured=shown)
        levels = whole_estimate(
            measured, known if self.gather else None, passes=self.passes, rng=rng, progress=progress
        )
        return TreeEstimate(places, fit(known), tuple(levels), shown)

    def facts(self, task: _Task) -> dict[str, Any]:
        """Return the promise and what was measured, as data. Any: plain values."""
        rho, delta = task.budget.rho, self.stated_delta
        epsilon = task.epsilon(delta)
        names = [dimension.name for dimension in task.places.attributes]
        named = {
            task.levels[level]: query_name(query, names) for level, query in task.exact.items()
        }
        promise = concentrated(rho, epsilon, delta, records=self.records, exact=named)
        return {
            "promise": promise,
            "rho": rho,
            "epsilon": epsilon,
            "delta": delta,
            "noise": "discrete Gaussian, OpenDP",
            "spine": task.places.name,
            "levels": list(task.levels),
            "measurements": [
                {
                    "level": task.levels[one.level],
                    "query": query_name(one.query, names),
                    "scale": one.scale,
                    "rho": one.rho,
                }
                for one in task.budget.measures
            ],
            "invariants": named,
            "integer": self.integer,
            "caution": caution(epsilon),
        }


@dataclasses.dataclass(frozen=True, eq=False)
class _Task:
    """What is measured, settled before any record is looked at."""

    places: Places
    levels: tuple[str, ...]
    shares: Sequence[Mapping[Query, float]]
    budget: Budget
    #: Marginals that levels publish as they are.
    exact: Mapping[int, Query]
    possible: npt.NDArray[np.bool_] | None

    def epsilon(self, delta: float) -> float:
        """Return the ε of all measurements at a δ: what a ledger charges."""
        return Accountant("zcdp", delta).epsilon(self.budget.events())

    def require_possible(self, leaves: Ints) -> None:
        """Refuse records in combinations that are declared impossible."""
        if self.possible is not None and leaves[:, ~self.possible].any():
            raise InputError(
                "there are records in combinations of codes that are declared impossible",
                code="impossible-records",
                hint="correct the records, or leave the combination out of zeros",
                parameter="zeros",
            )

    def measure(
        self, leaves: Ints, progress: Progress, simulated: Simulated | None = None
    ) -> Measurements:
        """Return the noisy counts: the last step that sees the truth."""
        return measure(
            self.places.spine,
            self.places.basis,
            leaves,
            self.budget,
            exact=self.exact,
            possible=self.possible,
            progress=progress,
            simulated=simulated,
        )


def _require_agreement(
    exact: Mapping[int, Query], possible: npt.NDArray[np.bool_], places: Places
) -> None:
    """Refuse exact counts of what is declared impossible: one of the two is wrong, or both idle."""
    for query in exact.values():
        some = np.asarray(places.basis.answers(possible[None, :].astype(np.int64), query))[0]
        if not some.all():
            raise InputError(
                "an exact count and an impossible combination contradict each other: nobody can be "
                "in some of the counted cells",
                code="contradicting-invariant",
                hint="leave the combination out of zeros, or publish fewer attributes exactly",
                parameter="invariants",
            )


def combinations_of(
    zeros: tuple[Mapping[str, Any], ...], places: Places
) -> tuple[dict[str, tuple[str, ...]], ...]:
    """Return impossible combinations with the codes of each attribute; refuse unknown ones."""
    known = {dimension.name: dimension for dimension in places.attributes}
    found = []
    for given in zeros:
        combination = {}
        for name, codes in given.items():
            several = (codes,) if isinstance(codes, str) else tuple(codes)
            if name not in known or any(code not in known[name].index for code in several):
                raise InputError(
                    f"the impossible combination {dict(given)!r} names what the table does not have",
                    code="unknown-code",
                    hint="name attributes beside the spine, and their codes",
                    parameter="zeros",
                )
            combination[name] = several
        if not combination:
            raise InputError(
                "an impossible combination names at least one attribute",
                code="unknown-code",
                parameter="zeros",
            )
        found.append(combination)
    return tuple(found)
