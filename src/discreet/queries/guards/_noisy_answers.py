"""Output perturbation at work: one aggregate in the engine, noise on its whole numbers."""

from __future__ import annotations

import datetime
import itertools
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.engines.base import Relation
from discreet.data.sql.query import Query, from_clause
from discreet.dp.accountant import Accountant, delta_event
from discreet.dp.grant import granted
from discreet.dp.mechanisms import FAMILY, Noise
from discreet.dp.selection import Selection
from discreet.errors import EngineError, RefusedError
from discreet.ledger.entry import Charge
from discreet.queries.guards._base import Keeper, Proposal, Protected
from discreet.queries.guards._declared_keys import declared_keys
from discreet.queries.guards._ladder import Ladder
from discreet.queries.guards._profiles import Profiles, Shortcut, sorted_places
from discreet.queries.guards._statistics import Recipe, Statistic, combined_keys, statistics_of

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.ledger.store import Ledger
    from discreet.queries.guards._noise_settings import NoiseSettings

__all__ = ["Budgets", "NoisyAnswers", "bounded_rows", "current_period", "cut_notice", "row_digest"]

Whole = npt.NDArray[np.int64]
#: Plans and kinds of noise that are kept at hand.
MOST_KEPT = 1000
#: A budget that holds more questions than this holds enough.
MOST_PREVIEWED = 100_000
Choices = dict[str, tuple[Ladder, Selection]]
#: Statistics, how measures are made of them, their noises, what they cost, and quantiles.
Plan = tuple[dict[str, Statistic], list[Recipe], dict[str, Noise], dict[str, int], Choices]


class Budgets:
    """The budgets of users and of the dataset."""

    def __init__(self, guard: NoiseSettings, data: Protected, ledger: Ledger | None) -> None:
        self._guard, self._data, self._ledger = guard, data, ledger
        self.accountant = Accountant(guard.accountant, guard.delta)
        #: What all releases about the dataset may spend together, where the curator said so.
        self._grant = None if ledger is None else granted(ledger, data.name)

    def limit(self, scope: str) -> float:
        """Return the ε a budget may reach."""
        if scope != "dataset" and self._guard.user_epsilon is not None:
            return self._guard.user_epsilon
        return self._guard.epsilon

    def scopes(self, user: str) -> dict[str, str]:
        """Return the names of the user's budget, in this period, and of the dataset's."""
        period = current_period(self._guard.period)
        return {"user": f"user:{user}{' ' + period if period else ''}", "dataset": "dataset"}

    def charges(self, user: str, events: Mapping[str, int]) -> list[Charge]:
        """Return what events cost the user's budget and the dataset's."""
        return [self._charge(scope, events) for scope in self.scopes(user).values()]

    def _charge(self, scope: str, events: Mapping[str, int]) -> Charge:
        limit = self.limit(scope) * (1 + 1e-9)
        grant = self._grant if scope == "dataset" else None

        def admits(total: Mapping[str, int]) -> bool:
            within = self.accountant.epsilon(total) <= limit
            return within and (grant is None or grant.admits(total))

        return Charge(scope, events, admits)

    def _spent(self, user: str) -> dict[str, dict[str, int]]:
        scopes = self.scopes(user)
        assert self._ledger is not None
        spent = self._ledger.balances(self._data.name, list(scopes.values()))
        return {name: spent[scope] for name, scope in scopes.items()}

    def left(self, user: str) -> dict[str, float]:
        """Return what is left, in ε."""
        if self._ledger is None:
            return {}
        return {
            name: round(max(self.limit(name) - self.accountant.epsilon(spent), 0.0), 12)
            for name, spent in self._spent(user).items()
        }

    def lines(self, user: str, events: Mapping[str, int]) -> list[dict[str, Any]]:
        """Return each budget, what is spent of it, and how many questions of a kind it holds.

        Any: names and numbers.
        """
        if self._ledger is None:
            return []
        found = []
        for name, spent in self._spent(user).items():
            limit, used = self.limit(name), self.accountant.epsilon(spent)
            found.append(
                {
                    "scope": name,
                    "period": current_period(self._guard.period) if name == "user" else "",
                    "budget": limit,
                    "spent": round(used, 12),
                    "left": round(max(limit - used, 0.0), 12),
                    "questions_left": self._holds(spent, events, limit),
                }
            )
        return found

    def more(self, user: str, events: Mapping[str, int]) -> int | None:
        """Return how many more questions of a kind the budgets hold; None without a ledger."""
        held = [line["questions_left"] for line in self.lines(user, events)]
        return min(held) if held else None

    def _holds(self, spent: Mapping[str, int], events: Mapping[str, int], limit: float) -> int:
        # Convolving takes long; Rényi's bound is a little above it, so that at least so many fit.
        accountant = self.accountant
        if accountant.method == "pld":
            accountant = Accountant("rdp", accountant.delta)

        def admits(count: int) -> bool:
            total = Counter(spent)
            total.update({name: number * count for name, number in events.items()})
            return accountant.epsilon(total) <= limit * (1 + 1e-9)

        low, high = 0, 1
        while high <= MOST_PREVIEWED and admits(high):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if admits(middle) else (low, middle)
        return low


def current_period(period: str | None) -> str:
    """Return the name of the day, week, month or year that it is, in UTC.

    >>> len(current_period("month")), current_period(None)
    (7, '')
    """
    now = datetime.datetime.now(datetime.UTC)
    forms = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}
    return "" if period is None else now.strftime(forms[period])


class NoisyAnswers(Keeper):
    """Answers with fresh noise, charged to the budgets."""

    def __init__(self, guard: NoiseSettings, data: Protected, ledger: Ledger | None) -> None:
        self._guard, self._data = guard, data
        self._budgets = Budgets(guard, data, ledger)
        self._mechanism = FAMILY.get(guard.mechanism)()
        for name in (*guard.bounds, *guard.keys):
            data.relation.require(name)
        self._keys = declared_keys(guard.keys, data.relation.schema)
        self._rows, self._is_cut = bounded_rows(data, guard.contribution, ledger)
        if self._is_cut:
            self.notices = (cut_notice(data, self._rows, guard.contribution),)
        self._shortcut = Shortcut(data, self._rows)
        self._noises: dict[tuple[float, int], Noise] = {}
        self._plans: dict[tuple[tuple[str, ...], tuple[str, ...]], Plan] = {}

    def answer(self, query: Query, user: str, ready: Any = None) -> Proposal:
        import pyarrow as pa

        statistics, recipes, noises, events, choices = self._planned(query)
        table = self._rows_of(query, statistics) if ready is None else ready
        keys, noisy = self._noised(query, table, statistics, noises)
        chosen = self._chosen(query, keys, choices)
        values = {
            name: noisy[name].astype(np.float64) * statistics[name].grain for name in statistics
        }
        columns: dict[str, Any] = dict(keys)
        for number, recipe in enumerate(recipes):
            columns[f"m{number}"] = (
                pa.array(chosen[recipe.ladder.name])
                if recipe.ladder is not None
                else _column(recipe, recipe.made(values))
            )
        return Proposal(
            "noisy",
            _table(columns, query),
            charges=self._budgets.charges(user, events),
            spent={"epsilon": self._cost(events)},
            error_95=self._errors(recipes, statistics, noises, values),
        )

    def ready(self, query: Query) -> pa.Table | None:
        """Return the statistics where they are at hand, so that the engine need not be asked."""
        statistics, _, _, _, choices = self._planned(query)
        profiles = self._shortcut.profiles(query)
        if profiles is None or choices or not profiles.are_known(statistics):
            return None
        try:
            return self._added(query, statistics, profiles)
        except EngineError:  # the engine may fail on it too, once it is charged
            return None

    def charges(self, query: Query, user: str, ready: Any) -> tuple[Sequence[Charge], float]:
        if ready is not None:
            return (), 0.0
        events = self._planned(query)[3]
        return self._budgets.charges(user, events), self._cost(events)

    def prepare(self, query: Query) -> None:
        self._shortcut.start()
        self._rows_of(query, self._planned(query)[0])

    # -- planning --------------------------------------------------------------------------------
    def _planned(self, query: Query) -> Plan:
        """Return the plan of a question; conditions do not change it, and each is made once."""
        name = tuple(m.text for m in query.measures), tuple(key.text for key in query.keys)
        plan = self._plans.get(name)
        if plan is None:
            if len(self._plans) >= MOST_KEPT:
                self._plans.clear()
            plan = self._plans[name] = self._plan(query)
        return plan

    def _plan(self, query: Query) -> Plan:
        guard = self._guard
        statistics, recipes = statistics_of(query, guard, self._data.catalog, self._data.count)
        private = bool(query.keys) and combined_keys(query, guard.keys) is None
        if private:
            if guard.delta <= 0:
                raise RefusedError(
                    "groups of undeclared keys need a delta",
                    code="private-keys",
                    hint="ask the curator to declare keys={…} or delta",
                )
            if "count *" not in statistics:
                count = exp.Count(this=exp.Star())
                statistics["count *"] = Statistic("count *", count, guard.contribution)
        ladders = {r.ladder.name: r.ladder for r in recipes if r.ladder is not None}
        share = self._share(len(statistics) + len(ladders))
        noises = {name: self._noise(share, s.sensitivity) for name, s in statistics.items()}
        choices = {
            name: (ladder, ladder.selection(share, concentrated=self._concentrated))
            for name, ladder in ladders.items()
        }
        names = [self._event(noise) for noise in noises.values()]
        events = dict(Counter([*names, *(selection.event for _, selection in choices.values())]))
        if private:
            events[delta_event(self._delta())] = 1
        return statistics, recipes, noises, events, choices

    @property
    def _concentrated(self) -> bool:
        """Whether costs are counted as ρ; losses that are convolved are counted as they are."""
        return self._mechanism.is_concentrated and self._guard.accountant != "pld"

    def _event(self, noise: Noise) -> str:
        return noise.convolved_event if self._guard.accountant == "pld" else noise.event

    def _noise(self, epsilon: float, sensitivity: int) -> Noise:
        """Return the noise for a statistic; there are few kinds, and each is made once."""
        key = epsilon, sensitivity
        noise = self._noises.get(key)
        if noise is None:
            if len(self._noises) >= MOST_KEPT:
                self._noises.clear()
            noise = self._mechanism.noise(epsilon=epsilon, sensitivity=sensitivity)
            self._noises[key] = noise
        return noise

    def _share(self, parts: int) -> float:
        # Pure costs add up, concentrated ones (ε²/2) add up as squares.
        if self._mechanism.is_concentrated:
            return float(self._guard.per_query / np.sqrt(parts))
        return self._guard.per_query / parts

    def _delta(self) -> float:
        """Return the δ of one question: its part of half of all of it."""
        guard = self._guard
        share = guard.per_query / guard.epsilon
        return guard.delta * share if guard.accountant == "basic" else guard.delta * share / 2

    def _cost(self, events: Mapping[str, int]) -> float:
        return round(self._budgets.accountant.epsilon(events), 12)

    # -- computing -------------------------------------------------------------------------------
    def _rows_of(self, query: Query, statistics: Mapping[str, Statistic]) -> pa.Table:
        """Return the statistics of each group, in the order of the keys."""
        from discreet.data.sql.query import raw_query

        profiles = self._shortcut.profiles(query, asked=0)
        if profiles is not None and (found := self._added(query, statistics, profiles)) is not None:
            return found
        columns = {f"s{n}": s.tree for n, s in enumerate(statistics.values())}
        # Quantiles alone need no sum; then the groups are all that is fetched here.
        columns = columns or {"n": exp.Count(this=exp.Star())}
        rows = self._data.engine.fetch(raw_query(query, self._rows.query, columns))
        # The engine's own order can depend on who is in the data.
        return rows.take(sorted_places([rows.column(f"k{n}") for n in range(len(query.keys))]))

    def _added(
        self, query: Query, statistics: Mapping[str, Statistic], profiles: Profiles
    ) -> pa.Table | None:
        """Return the statistics of each group from those of its profiles, where they add up."""
        import pyarrow as pa

        # Expressions differ from question to question: what was summed would not be asked again.
        if any(m.argument is not None and m.column is None for m in query.measures):
            return None
        if not statistics:  # quantiles alone
            return None
        # Units that have several records may lie in several profiles.
        if self._guard.contribution > 1 and "units" in statistics:
            return None
        keys, parts = profiles.grouping(query)
        columns: dict[str, Any] = {name: keys.column(name) for name in keys.column_names}
        for number, (name, statistic) in enumerate(statistics.items()):
            sums = profiles.sums(name, statistic.made, parts)
            if sums is None:
                return None
            columns[f"s{number}"] = pa.array(sums)
        return pa.table(columns)

    def _noised(
        self,
        query: Query,
        table: pa.Table,
        statistics: Mapping[str, Statistic],
        noises: Mapping[str, Noise],
    ) -> tuple[dict[str, Any], dict[str, Whole]]:
        declared = combined_keys(query, self._guard.keys)
        exact = {
            name: table.column(f"s{n}").to_numpy().astype(np.int64)
            for n, name in enumerate(statistics)
        }
        if query.keys and declared is not None:
            keys, exact = self._declared(query, table, declared, exact)
        else:
            keys = {f"k{n}": table.column(f"k{n}") for n in range(len(query.keys))}
        noisy = {
            name: np.array(noises[name].draw(exact[name].tolist()), dtype=np.int64)
            for name in statistics
        }
        if query.keys and declared is None:
            limit = self._guard.contribution + noises["count *"].tail(
                self._delta() / self._guard.contribution
            )
            shown = noisy["count *"] >= limit
            keys = {name: column.filter(shown) for name, column in keys.items()}
            noisy = {name: values[shown] for name, values in noisy.items()}
        return keys, noisy

    def _chosen(
        self, query: Query, keys: Mapping[str, Any], choices: Choices
    ) -> dict[str, list[float]]:
        """Return the quantiles of each group that is shown. Any: columns of Arrow."""
        found = {}
        groups = list(zip(*(column.to_pylist() for column in keys.values()), strict=True))
        for name, (ladder, selection) in choices.items():
            counts = self._counts_of(query, ladder)
            nobody = np.zeros(ladder.steps, np.int64)
            found[name] = [
                ladder.chosen(counts.get(group, nobody), selection)
                for group in (groups if query.keys else [()])
            ]
        return found

    def _counts_of(self, query: Query, ladder: Ladder) -> dict[tuple[object, ...], Whole]:
        return ladder.counts(query, self._data.engine, self._rows.query)

    def _declared(
        self,
        query: Query,
        table: pa.Table,
        names: Sequence[str],
        exact: Mapping[str, Whole],
    ) -> tuple[dict[str, Any], dict[str, Whole]]:
        """Return a row for each combination of declared keys, zeros where nobody is."""
        import pyarrow as pa

        found = {
            tuple(row.values()): place
            for place, row in enumerate(
                table.select([f"k{n}" for n in range(len(names))]).to_pylist()
            )
        }
        wanted = list(itertools.product(*(self._keys[name] for name in names)))
        places = np.array([found.get(combination, -1) for combination in wanted], np.int64)
        filled = {
            name: np.where(places >= 0, values[places] if values.size else 0, 0).astype(np.int64)
            for name, values in exact.items()
        }
        keys = {
            f"k{n}": pa.array([c[n] for c in wanted], type=table.schema.field(f"k{n}").type)
            for n in range(len(names))
        }
        return keys, filled

    def _errors(
        self,
        recipes: Sequence[Recipe],
        statistics: Mapping[str, Statistic],
        noises: Mapping[str, Noise],
        values: Mapping[str, npt.NDArray[np.float64]],
    ) -> dict[str, float]:
        grains = {name: s.grain for name, s in statistics.items()}
        found = {}
        for number, recipe in enumerate(recipes):
            if recipe.squares is not None or recipe.ladder is not None:
                continue  # their error depends on the data
            counts = values[recipe.count] if recipe.count else np.ones(1)
            smallest = float(counts.min(initial=np.inf)) if counts.size else 1.0
            found[f"m{number}"] = float(recipe.error_95(noises, grains, smallest))
        return found

    # -- explaining ------------------------------------------------------------------------------
    def expect(self, query: Query, user: str) -> dict[str, Any]:
        try:
            statistics, recipes, noises, events, choices = self._planned(query)
        except RefusedError as error:
            return {"kind": "refused", "reason": error.message, "instead": error.hint or ""}
        cost = self._cost(events)
        left = self.left(user)
        grains = {name: s.grain for name, s in statistics.items()}
        facts: dict[str, Any] = {
            "cost": {"epsilon": cost, "epsilon of a group of 5": 5 * cost},
            "left": left,
            "more": self._budgets.more(user, events),
            "error_95": {
                f"m{n}": float(r.error_95(noises, grains, 1.0))
                for n, r in enumerate(recipes)
                if r.measure.function in ("count", "units", "sum")
            },
        }
        if choices:
            ranks = max(ladder.ranks_95(selection) for ladder, selection in choices.values())
            facts["reason"] = f"quantiles are wrong by {ranks:,.0f} records in rank at most (95 %)"
        if self._is_cut:
            cut = (
                f"of each unit {self._guard.contribution} records count at most: counts and sums "
                "leave the others out, and means are of those that stay"
            )
            facts["reason"] = "; ".join(filter(None, [facts.get("reason", ""), cut]))
        if left and min(left.values()) < cost * (1 - 1e-9) and self._guard.accountant == "basic":
            facts |= {
                "kind": "refused",
                "reason": "the privacy budget does not hold what this answer would cost",
            }
        return facts

    def left(self, user: str) -> dict[str, float]:
        return self._budgets.left(user)

    def budget(self, user: str) -> list[dict[str, Any]]:
        counting = self._event(self._noise(self._share(1), self._guard.contribution))
        return self._budgets.lines(user, {counting: 1})

    def close(self) -> None:
        self._shortcut.close()


def bounded_rows(
    data: Protected, contribution: int, ledger: Ledger | None
) -> tuple[Relation, bool]:
    """Return the rows with at most so many of each unit, and whether any were left out.

    Which stay is decided by a keyed digest of each row. It depends on the unit's own rows alone, so
    that one unit's presence changes nothing about the others; and the key makes it as good as
    random, where an order of the values would keep the smallest.
    """
    unit = data.catalog.unit
    if unit is None:
        return data.relation, False
    distinct = exp.Count(this=exp.Distinct(expressions=[exp.column(unit, quoted=True)]))
    select = exp.select(exp.alias_(distinct, "n")).from_(from_clause(data.relation.query, "t"))
    if int(data.engine.fetch(select).column(0)[0].as_py()) == data.count:
        return data.relation, False
    columns = [exp.column(name, quoted=True) for name in data.relation.columns]
    own, copy = (exp.column(name, quoted=True) for name in ("__own", "__copy"))
    digested = exp.select(*columns, exp.alias_(row_digest(data, ledger), "__own")).from_(
        from_clause(data.relation.query, "t")
    )
    # Equal rows have equal digests and would stay or go together: each copy gets a place of its own.
    told_apart = exp.select(
        *(c.copy() for c in columns), own, exp.alias_(_numbered([unit, "__own"], own), "__copy")
    ).from_(from_clause(digested, "t"))
    mixed = exp.MD5(this=exp.DPipe(this=own.copy(), expression=exp.cast(copy, "text")))
    inner = exp.select(
        *(c.copy() for c in columns), exp.alias_(_numbered([unit], mixed), "__place")
    ).from_(from_clause(told_apart, "t"))
    kept = exp.LTE(
        this=exp.column("__place", quoted=True), expression=exp.Literal.number(contribution)
    )
    outer = exp.select(*(c.copy() for c in columns)).from_(from_clause(inner, "t")).where(kept)
    return data.engine.materialize(Relation(data.engine, outer, data.relation.schema)), True


def _numbered(within: Sequence[str], by: exp.Expression) -> exp.Expression:
    """Return the place of a row among those that share some columns, in the order of a value."""
    return exp.Window(
        this=exp.RowNumber(),
        partition_by=[exp.column(name, quoted=True) for name in within],
        order=exp.Order(expressions=[exp.Ordered(this=by.copy(), nulls_first=False)]),
    )


def cut_notice(data: Protected, rows: Relation, contribution: int) -> str:
    """Return what the curator should know of the records that are left out."""
    left = data.count - data.engine.count(rows)
    return (
        f"{left:,} of {data.count:,} records are left out of answers: a unit adds "
        f"{contribution} at most"
    )


def row_digest(
    data: Protected, ledger: Ledger | None, columns: Sequence[str] | None = None
) -> exp.Expression:
    """Return a digest of a row's columns, all if left out, under a key that stays with the ledger."""
    key = os.urandom(32)
    if ledger is not None:
        key = ledger.secret(f"order of rows {data.name}", key)
    text: exp.Expression = exp.Literal.string(key.hex())
    for name in data.relation.columns if columns is None else columns:
        known = exp.cast(exp.column(name, quoted=True), "text")
        part = exp.Coalesce(this=known, expressions=[exp.Literal.string("\x01")])
        apart = exp.DPipe(this=text, expression=exp.Literal.string("\x02"))
        text = exp.DPipe(this=apart, expression=part)
    return exp.MD5(this=text)


def _column(recipe: Recipe, values: npt.NDArray[np.float64]) -> Any:
    import pyarrow as pa

    if recipe.measure.kind == "integer":  # cut to 64 bits
        return pa.array(np.round(np.clip(values, -9.2e18, 9.2e18)).astype(np.int64))
    return pa.array(values)


def _table(columns: Mapping[str, Any], query: Query) -> pa.Table:
    import pyarrow as pa

    if not query.keys:
        return pa.table({name: column[:1] for name, column in columns.items()})
    return pa.table(columns)
