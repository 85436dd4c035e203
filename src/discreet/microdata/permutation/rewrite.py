"""Queries over the original table, rewritten to queries over the two released tables.

The rewritten query counts hits per group in the permuted table and looks up in the help table
what so many hits can contribute at least and at most. It is built as a tree of standard SQL, so it
means the same on every engine, and needs nothing but the release.
"""

# The texts below hold only our own names; what the caller wrote is put in as trees.
# ruff: noqa: S608

from __future__ import annotations

import dataclasses
import functools
from typing import cast

import sqlglot
from sqlglot import exp

from discreet.microdata.permutation.groups import GROUP
from discreet.microdata.permutation.statement import Aggregate, Statement

__all__ = ["HELP", "PERMUTED", "rewrite"]

#: What the rewritten query calls the two tables.
PERMUTED = "permuted"
HELP = "help"

# Twice the rounding error of one operation on doubles: what bounds are widened by per operation.
_ROUNDING = 2.0**-52
# Where the centre of the largest variance is tried, from the least (−1) to the greatest mean (1).
CENTRES = (-1.0, -0.5, 0.0, 0.5, 1.0)


@functools.lru_cache(maxsize=512)
def _parsed(text: str) -> exp.Expression:
    # The text repeats from query to query; what the caller wrote is put in later.
    return cast("exp.Expression", sqlglot.parse_one(text, read="duckdb"))


@dataclasses.dataclass(frozen=True)
class _Column:
    """One result: where it is computed and how it is called."""

    block: str
    expression: str
    label: str


def rewrite(statement: Statement, *, sensitive: str, kind: str) -> exp.Select:
    """Return the query over the released tables.

    Parameters
    ----------
    statement
        What is asked.
    sensitive
        The permuted column.
    kind
        What arithmetic it has: see `Amounts.kind`.

    Examples
    --------
    >>> from discreet.microdata.permutation.statement import parse
    >>> asked = parse(
    ...     "SELECT SUM(pay) FROM t WHERE age < 30",
    ...     name="t",
    ...     columns=["age", "pay"],
    ...     sensitive="pay",
    ... )
    >>> print(rewrite(asked, sensitive="pay", kind="integer").sql("duckdb", pretty=True))
    WITH "hits" AS (
      SELECT
        "group_id" AS "g",
        COUNT(*) AS "h"
      FROM "permuted"
      WHERE
        "age" < 30
      GROUP BY
        "group_id"
    ), "totals" AS (
      SELECT
        CAST(COALESCE(SUM("h"), 0) AS BIGINT) AS "n",
        CAST(SUM("lb_sum") AS BIGINT) AS "low",
        CAST(SUM("ub_sum") AS BIGINT) AS "high",
        SUM("h" * "mean") AS "expected",
        MIN("lb_min") AS "min_low",
        MIN("ub_min") AS "min_high",
        MAX("lb_max") AS "max_low",
        MAX("ub_max") AS "max_high"
      FROM "hits"
      JOIN "help"
        ON "row_id" = "g" + "h"
    )
    SELECT
      "totals"."low" AS "sum_pay_lower",
      "totals"."high" AS "sum_pay_upper",
      "totals"."expected" AS "sum_pay_estimate"
    FROM "totals"
    """
    return _Rewriter(statement, sensitive, kind).query()


class _Rewriter:
    def __init__(self, statement: Statement, sensitive: str, kind: str) -> None:
        self.statement = statement
        self.kind = kind
        self.keys = [f"k{place}" for place in range(len(statement.keys))]
        self.blocks: dict[str, exp.Expression] = {}
        self.worlds: list[str] = []
        self.nodes: dict[str, exp.Expression] = {
            "_sensitive": exp.column(exp.to_identifier(sensitive, quoted=True)),
            "_where": statement.where or exp.true(),
            **{f"_key{n}": key.expression for n, key in enumerate(statement.keys)},
        }
        if statement.values is not None:
            self.nodes["_values"] = statement.values

    # -- text of our own names, into which the trees of the caller are put -------------------------
    def tree(self, text: str) -> exp.Expression:
        made = _parsed(text).copy()
        for column in list(made.find_all(exp.Column)):
            if column.name in self.nodes and not column.table:
                node = self.nodes[column.name].copy()
                is_plain = isinstance(node, exp.Column | exp.Literal | exp.Boolean)
                column.replace(node if is_plain else exp.paren(node, copy=False))
        for name in made.find_all(exp.Identifier):
            name.set("quoted", True)
        return made

    def add(self, name: str, text: str) -> str:
        tree = self.tree(text)
        where = tree.args.get("where")
        if where is not None and isinstance(where.this, exp.Boolean):
            tree.set("where", None)
        elif where is not None and isinstance(where.this, exp.Paren):
            where.set("this", where.this.this)
        self.blocks[name] = tree
        return name

    def comma(self, *more: str, owner: str = "") -> str:
        return ", ".join([*(f"{owner}{key}" for key in self.keys), *more])

    def named_keys(self) -> str:
        return "".join(f"_key{n} AS k{n}, " for n in range(len(self.keys)))

    def raw_keys(self) -> str:
        return "".join(f"_key{n}, " for n in range(len(self.keys)))

    def listed(self, owner: str = "") -> str:
        return "".join(f"{owner}{key}, " for key in self.keys)

    def group(self) -> str:
        return f" GROUP BY {self.comma()}" if self.keys else ""

    def over(self, *more: str) -> str:
        return f"PARTITION BY {self.comma(*more)} " if self.keys or more else ""

    def same(self, left: str, right: str) -> str:
        pairs = [f"{left}.{key} IS NOT DISTINCT FROM {right}.{key}" for key in self.keys]
        return " AND ".join(pairs) or "TRUE"

    # -- the query ---------------------------------------------------------------------------------
    def query(self) -> exp.Select:
        self.add(
            "hits",
            f"SELECT {self.named_keys()}{GROUP} AS g, COUNT(*) AS h FROM {PERMUTED} WHERE _where "
            f"GROUP BY {self.raw_keys()}{GROUP}",
        )
        counts = self._totals()
        columns: list[_Column] = []
        for place, aggregate in enumerate(self.statement.aggregates):
            columns += getattr(self, f"_{aggregate.kind}")(aggregate, place, counts)
        if self.worlds:  # all of them in one pass over the rows
            self.add(
                "world",
                f"SELECT {self.named_keys()}{', '.join(self.worlds)} FROM {PERMUTED} WHERE _where"
                + (f" GROUP BY {self.raw_keys().rstrip(', ')}" if self.keys else ""),
            )
        base = next(iter(name for name in ("totals", "counts") if name in self.blocks))
        keys = [
            exp.alias_(exp.column(self.keys[n], table=base, quoted=True), key.label, quoted=True)
            for n, key in enumerate(self.statement.keys)
            if key.shown
        ]
        results = [
            exp.alias_(self.tree(f"SELECT {c.expression}").expressions[0], c.label, quoted=True)
            for c in columns
        ]
        final = exp.select(*keys, *results).from_(exp.to_table(base))
        for block in dict.fromkeys(c.block for c in columns):
            if block != base:
                final = final.join(
                    exp.to_table(block),
                    on=self.tree(f"SELECT {self.same(base, block)}").expressions[0],
                    join_type="left",
                )
        for place, falls in self.statement.order:
            key = exp.column(self.keys[place], table=base, quoted=True)
            final = final.order_by(exp.Ordered(this=key, desc=falls, nulls_first=False))
        for identifier in final.find_all(exp.Identifier):
            identifier.set("quoted", True)
        for name, tree in self.blocks.items():
            final = final.with_(exp.to_identifier(name, quoted=True), as_=tree, copy=False)
        return final

    def _totals(self) -> str:
        """Add the counts and, where wanted, the bounds that combine by sum, least and greatest."""
        if self.statement.values is not None:
            self.add(
                "inside",
                f"SELECT {GROUP} AS g, COUNT(*) AS size, "
                "SUM(CASE WHEN _values THEN 1 ELSE 0 END) AS v "
                f"FROM {PERMUTED} GROUP BY {GROUP}",
            )
            return self.add(
                "counts",
                f"SELECT {self.listed()}"
                "CAST(COALESCE(SUM(GREATEST(h + v - size, 0)), 0) AS BIGINT) AS low, "
                "CAST(COALESCE(SUM(LEAST(h, v)), 0) AS BIGINT) AS high, "
                "COALESCE(SUM(CAST(h AS DOUBLE) * v / size), 0) AS expected "
                f"FROM hits JOIN inside ON inside.g = hits.g{self.group()}",
            )
        count = "CAST(COALESCE(SUM(h), 0) AS BIGINT) AS n"
        if all(a.kind == "count" for a in self.statement.aggregates):
            return self.add("counts", f"SELECT {self.listed()}{count} FROM hits{self.group()}")
        if self.statement.where is None and not self.keys and self.kind != "float":
            return self._all_records()
        low, high = "SUM(lb_sum)", "SUM(ub_sum)"
        if self.kind == "integer":
            low, high = f"CAST({low} AS BIGINT)", f"CAST({high} AS BIGINT)"
        return self.add(
            "totals",
            f"SELECT {self.listed()}{count}, {low} AS low, {high} AS high, "
            "SUM(h * mean) AS expected, MIN(lb_min) AS min_low, MIN(ub_min) AS min_high, "
            "MAX(lb_max) AS max_low, MAX(ub_max) AS max_high "
            f"FROM hits JOIN {HELP} ON row_id = g + h{self.group()}",
        )

    def _all_records(self) -> str:
        """Add the aggregates of all records: whole groups keep their values, so they are exact."""
        total = "SUM(_sensitive)"
        if self.kind == "integer":
            total = f"CAST({total} AS BIGINT)"
        ends = ", ".join(
            f"{end.upper()}(_sensitive) AS {end}_{side}"
            for end in ("min", "max")
            for side in ("low", "high")
        )
        return self.add(
            "totals",
            f"SELECT COUNT(*) AS n, {total} AS low, {total} AS high, {total} AS expected, {ends} "
            f"FROM {PERMUTED}",
        )

    def _results(
        self, aggregate: Aggregate, block: str, low: str, high: str, estimate: str
    ) -> list[_Column]:
        ends = (("lower", low), ("upper", high), ("estimate", estimate))
        return [_Column(block, text, f"{aggregate.label}_{end}") for end, text in ends]

    def _count(self, aggregate: Aggregate, _: int, counts: str) -> list[_Column]:
        if self.statement.values is not None:
            ends = ("counts.low", "counts.high", "counts.expected")
            return self._results(aggregate, counts, *ends)
        return self._results(aggregate, counts, f"{counts}.n", f"{counts}.n", f"{counts}.n")

    def _sum(self, aggregate: Aggregate, _: int, counts: str) -> list[_Column]:
        return self._results(aggregate, counts, "totals.low", "totals.high", "totals.expected")

    def _avg(self, aggregate: Aggregate, _: int, counts: str) -> list[_Column]:
        ends = (f"CAST(totals.{end} AS DOUBLE) / totals.n" for end in ("low", "high", "expected"))
        return self._results(aggregate, counts, *ends)

    def _world(self, function: str, place: int) -> _Column:
        """Ask for an aggregate of the released rows themselves: one of the equally likely worlds."""
        self.worlds.append(f"{function} AS v{place}")
        label = self.statement.aggregates[place].label
        return _Column("world", f"world.v{place}", f"{label}_estimate")

    def _min(self, aggregate: Aggregate, place: int, counts: str) -> list[_Column]:
        return self._extreme(aggregate, place, counts, "min")

    def _max(self, aggregate: Aggregate, place: int, counts: str) -> list[_Column]:
        return self._extreme(aggregate, place, counts, "max")

    def _extreme(self, aggregate: Aggregate, place: int, counts: str, end: str) -> list[_Column]:
        low, high = f"totals.{end}_low", f"totals.{end}_high"
        first, second, _ = self._results(aggregate, counts, low, high, "")
        return [first, second, self._world(f"{end.upper()}(_sensitive)", place)]

    # -- quantiles: of the h smallest and of the h largest values of every group -------------------
    def _quantile(self, aggregate: Aggregate, place: int, _: str) -> list[_Column]:
        name = f"quantile{place}"
        self.add(
            f"ends{place}",
            f"SELECT {self.listed('hits.')}lb_max AS low, ub_min AS high "
            f"FROM hits JOIN {HELP} ON {HELP}.{GROUP} = hits.g AND {HELP}.hits <= hits.h",
        )
        self.add(
            f"ranks{place}",
            f"SELECT {self.listed()}low, high, COUNT(*) OVER ({self.over()}) AS n, "
            f"ROW_NUMBER() OVER ({self.over()}ORDER BY low) AS low_rank, "
            f"ROW_NUMBER() OVER ({self.over()}ORDER BY high) AS high_rank FROM ends{place}",
        )
        self.add(
            f"world{place}",
            f"SELECT {self.named_keys()}_sensitive AS v FROM {PERMUTED} WHERE _where",
        )
        self.add(
            f"order{place}",
            f"SELECT {self.listed()}v, COUNT(*) OVER ({self.over()}) AS n, "
            f"ROW_NUMBER() OVER ({self.over()}ORDER BY v) AS v_rank FROM world{place}",
        )
        low, high, middle = (self._pick(aggregate, end) for end in ("low", "high", "v"))
        self.add(
            name,
            f"SELECT {self.listed()}{low} AS low, {high} AS high FROM ranks{place}{self.group()}",
        )
        self.add(
            f"picked{place}", f"SELECT {self.listed()}{middle} AS v FROM order{place}{self.group()}"
        )
        low, high = f"{name}.low", f"{name}.high"
        if not aggregate.discrete and (aggregate.quantile.denominator > 2 or self.kind == "float"):
            # Engines interpolate in different order; the last digit may differ.
            low += f" - ABS({name}.low) * {4 * _ROUNDING!r}"
            high += f" + ABS({name}.high) * {4 * _ROUNDING!r}"
        first, second, _e = self._results(aggregate, name, low, high, "")
        third = _Column(f"picked{place}", f"picked{place}.v", f"{aggregate.label}_estimate")
        return [first, second, third]

    def _pick(self, aggregate: Aggregate, end: str) -> str:
        """Return the aggregate that picks the quantile from ranked rows, by whole numbers only."""
        top, bottom = aggregate.quantile.numerator, aggregate.quantile.denominator
        if aggregate.discrete:
            place = f"GREATEST(({top} * n + {bottom - 1}) // {bottom}, 1)"
            return f"MAX(CASE WHEN {end}_rank = {place} THEN {end} END)"
        at = f"({top} * (n - 1)) // {bottom}"
        rest = f"({top} * (n - 1)) % {bottom}"
        value = f"CAST({end} AS DOUBLE)"
        here = f"MAX(CASE WHEN {end}_rank = {at} + 1 THEN {value} END)"
        then = (
            f"MAX(CASE WHEN {end}_rank = {at} + CASE WHEN {rest} > 0 THEN 2 ELSE 1 END "
            f"THEN {value} END)"
        )
        share = f"MAX(CAST({rest} AS DOUBLE)) / {bottom}"
        return f"{here} + ({then} - {here}) * ({share})"

    # -- variance: the least by a sweep of the centre, the greatest bounded at a few centres -------
    def _variance(self, aggregate: Aggregate, place: int, _: str) -> list[_Column]:
        self._centred()
        self._least_squares()
        self._most_squares()
        low, high = (self._variance_of(aggregate, f"squares.{end}") for end in ("low", "high"))
        function = {
            (True, False): "VAR_SAMP",
            (False, False): "VAR_POP",
            (True, True): "STDDEV_SAMP",
            (False, True): "STDDEV_POP",
        }[aggregate.sample, aggregate.root]
        first, second, _e = self._results(aggregate, "squares", low, high, "")
        return [first, second, self._world(f"{function}(CAST(_sensitive AS DOUBLE))", place)]

    def _variance_of(self, aggregate: Aggregate, squares: str) -> str:
        count = "(squares.n - 1)" if aggregate.sample else "squares.n"
        text = f"GREATEST({squares}, 0) / NULLIF({count}, 0)"
        return f"SQRT({text})" if aggregate.root else text

    def _centred(self) -> None:
        """Add every value of the groups that are hit, less the middle of the mean's bounds."""
        if "centred" in self.blocks:
            return
        middle = "(CAST(totals.low AS DOUBLE) + totals.high) / (2 * totals.n)"
        self.add(
            "centred",
            f"SELECT {self.listed('hits.')}hits.g, hits.h, {HELP}.hits AS r, totals.n, "
            f"CAST(lb_max AS DOUBLE) - {middle} AS x, "
            "(CAST(totals.high AS DOUBLE) - totals.low) / (2 * totals.n) AS reach "
            f"FROM hits JOIN {HELP} ON {HELP}.{GROUP} = hits.g "
            f"JOIN totals ON {self.same('totals', 'hits')}",
        )

    def _least_squares(self) -> None:
        if "least" in self.blocks:
            return
        self.add(
            "bottom",
            f"SELECT {self.listed()}MAX(n) AS n, SUM(CASE WHEN r <= h THEN x ELSE 0 END) AS s, "
            "SUM(CASE WHEN r <= h THEN x * x ELSE 0 END) AS q, SUM(x * x) AS scale, "
            f"COUNT(*) AS size FROM centred{self.group()}",
        )
        self.add(
            "moves",
            f"SELECT {self.listed('a.')}a.g, a.r, (a.x + b.x) / 2 AS c, b.x - a.x AS ds, "
            "(b.x - a.x) * (b.x + a.x) AS dq FROM centred AS a JOIN centred AS b "
            f"ON b.g = a.g AND b.r = a.r + a.h AND {self.same('b', 'a')}",
        )
        window = f"{self.over()}ORDER BY c, g, r ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        self.add(
            "sweep",
            f"SELECT {self.listed()}SUM(ds) OVER ({window}) AS s, SUM(dq) OVER ({window}) AS q "
            "FROM moves",
        )
        after = "(bottom.q + sweep.q) - (bottom.s + sweep.s) * (bottom.s + sweep.s) / bottom.n"
        self.add(
            "least",
            f"SELECT {self.listed('bottom.')}MAX(bottom.n) AS n, MAX(bottom.scale) AS scale, "
            "MAX(bottom.size) AS size, LEAST(MIN(bottom.q - bottom.s * bottom.s / bottom.n), "
            f"COALESCE(MIN({after}), MIN(bottom.q - bottom.s * bottom.s / bottom.n))) AS low "
            f"FROM bottom LEFT JOIN sweep ON {self.same('sweep', 'bottom')}"
            + (f" GROUP BY {self.comma(owner='bottom.')}" if self.keys else ""),
        )

    def _most_squares(self) -> None:
        if "squares" in self.blocks:
            return
        centres = " UNION ALL ".join(f"SELECT CAST({t!r} AS DOUBLE) AS t" for t in CENTRES)
        self.add("centres", centres)
        self.add(
            "away",
            f"SELECT {self.listed()}g, h, t, (x - t * reach) * (x - t * reach) AS d "
            "FROM centred CROSS JOIN centres",
        )
        self.add(
            "far",
            f"SELECT {self.listed()}h, t, d, "
            f"ROW_NUMBER() OVER ({self.over('g', 't')}ORDER BY d DESC) AS r FROM away",
        )
        self.add(
            "around",
            f"SELECT {self.listed()}t, SUM(CASE WHEN r <= h THEN d ELSE 0 END) AS d "
            f"FROM far GROUP BY {self.comma('t')}",
        )
        self.add("most", f"SELECT {self.listed()}MIN(d) AS high FROM around{self.group()}")
        # Every sum of at most `size` terms is off by less than size roundings of its scale.
        slack = f"(least.size + 8) * {2 * _ROUNDING!r} * least.scale"
        self.add(
            "squares",
            f"SELECT {self.listed('least.')}least.n, least.low - {slack} AS low, "
            f"most.high + {slack} AS high FROM least JOIN most ON {self.same('least', 'most')}",
        )

    # -- weighted sums: the rearrangement inequality ------------------------------------------------
    def _weighted(self, aggregate: Aggregate, place: int, _: str) -> list[_Column]:
        assert aggregate.weight is not None
        self.nodes["_weight"] = aggregate.weight
        self.add(
            f"weights{place}",
            f"SELECT {self.named_keys()}{GROUP} AS g, CAST(_weight AS DOUBLE) AS w "
            f"FROM {PERMUTED} WHERE _where",
        )
        positive = "CASE WHEN w > 0 THEN 1 ELSE 0 END"
        self.add(
            f"ranks{place}",
            f"SELECT {self.listed()}g, w, ROW_NUMBER() OVER "
            f"({self.over('g', positive)}ORDER BY ABS(w) DESC) AS r "
            f"FROM weights{place} WHERE w IS NOT NULL",
        )
        up, down = "CAST(lb_max AS DOUBLE)", "CAST(ub_min AS DOUBLE)"
        self.add(
            f"terms{place}",
            f"SELECT {self.listed()}w * CASE WHEN w > 0 THEN {up} ELSE {down} END AS low, "
            f"w * CASE WHEN w > 0 THEN {down} ELSE {up} END AS high, w * mean AS expected "
            f"FROM ranks{place} JOIN {HELP} ON row_id = g + r",
        )
        slack = f"(COUNT(*) + 4) * {_ROUNDING!r}"
        name = self.add(
            f"weighted{place}",
            f"SELECT {self.listed()}SUM(low) - SUM(ABS(low)) * {slack} AS low, "
            f"SUM(high) + SUM(ABS(high)) * {slack} AS high, SUM(expected) AS expected "
            f"FROM terms{place}{self.group()}",
        )
        return self._results(aggregate, name, f"{name}.low", f"{name}.high", f"{name}.expected")
