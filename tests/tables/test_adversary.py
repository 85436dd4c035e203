"""Generated releases by every method, judged by a verifier that shares no code with the product."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from tests.tables import verifier

import discreet as dc
from discreet.audit.rules import FAMILY as RULES
from discreet.tables.methods import FAMILY as METHODS

#: One in eight cannot be protected as asked: in blocks of 300, of which each gives at least LEAST
#: releases, 6,300 give more than 5,000.
NORMAL, SLOW, BLOCK, LEAST = 60, 6300, 300, 239
#: Methods of which the printed numbers lie near no bounds that a file tells.
MOVED = ("controlled-tabular-adjustment", "record-noise")
#: How many cells were judged by going through every table, per method.
ENUMERATED = Counter()


@dataclasses.dataclass
class Case:
    """Random records and what is made of them."""

    frame: pd.DataFrame
    kind: str
    losses: bool
    hierarchies: dict
    missing: str | None
    weighted: bool
    linked: bool
    confidential: bool
    #: Units that asked for protection, cells that the curator names, and whether zeros are secrets.
    asked: frozenset = frozenset()
    named: tuple[str, ...] = ()
    zeros: bool = False
    #: Whether the codes of all attributes are declared, as a tree of places needs them.
    declared: bool = False

    @property
    def counts(self):
        """Whether cells are whole numbers of records."""
        return self.kind == "count" and not self.weighted

    def tables(self):
        roles = {"a": "quasi", "b": "confidential" if self.confidential else "quasi", "c": "quasi"}
        trees = dict(self.hierarchies)
        if self.declared:
            trees["a"] = dc.Hierarchy.flat(["p", "q", "r", "s", "?"])
            trees.setdefault("b", dc.Hierarchy.flat(["x1", "x2", "y1"]))
        data = dc.read(self.frame, unit="unit", hierarchies=trees, roles=roles)
        return dc.tabulate(
            data,
            [["a", "b"], ["a", "c"]] if self.linked else ["a", "b"],
            None if self.kind == "count" else "amount",
            "mean" if self.kind == "mean" else "sum",
            weight="w" if self.weighted else None,
            request="asked" if self.asked else None,
            missing=self.missing,
        )

    def records(self, merged):
        """The records as the verifier adds them up, with codes as they were merged."""
        records = self.frame.to_dict("records")
        for record in records:
            if self.weighted:
                record["amount"] = record["w"] * (1 if self.kind == "count" else record["amount"])
            for name in ("a", "b"):
                code = self.missing if pd.isna(record[name]) else record[name]
                codes = merged.get(name, (code,))
                # An attribute of which all codes were merged has its total only.
                inside = [c for c in codes if code in c.split(" + ")] or [codes[0]]
                record[name] = code if code in codes else inside[0]
        return records


def generated(seed):
    """Return random records: hierarchies with one child or two at once, missing codes, losses."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(12, 60))
    frame = pd.DataFrame(
        {
            "a": rng.choice(list("pqrs")[: rng.integers(2, 5)], number),
            "b": rng.choice(["x1", "x2", "y1"][: rng.integers(2, 4)], number),
            "c": rng.choice(["u", "v"], number),
        }
    )
    frame["amount"] = np.round(rng.lognormal(3, 1, number), int(rng.integers(0, 3)))
    kind = str(rng.choice(["count", "sum", "mean"], p=[0.45, 0.4, 0.15]))
    losses = bool(kind == "sum" and rng.random() < 0.2)
    if losses:
        frame.loc[rng.random(number) < 0.3, "amount"] *= -1
    frame["unit"] = (
        rng.integers(0, max(2, number // 2), number) if rng.random() < 0.3 else range(number)
    )
    frame["w"] = rng.choice([1.0, 1.5, 2.25, 4.0], number)
    nested = [("Total", ""), ("x", "Total"), ("y", "Total"), ("x1", "x"), ("x2", "x"), ("y1", "y")]
    across = [("Total", ""), ("1", "Total"), ("2", "Total"), ("x1", "1"), ("y1", "1"), ("x2", "2")]
    shape = rng.choice(["flat", "nested", "both"], p=[0.4, 0.35, 0.25])
    chosen = {"flat": (), "nested": (nested,), "both": (nested, across)}[str(shape)]
    hierarchies = {"b": [dc.Hierarchy.from_pairs(pairs) for pairs in chosen]} if chosen else {}
    missing = bool(rng.random() < 0.2)
    if missing:
        frame.loc[rng.random(number) < 0.1, "a"] = None
    weighted = bool(kind != "mean" and not losses and rng.random() < 0.2)
    linked = bool(kind != "mean" and rng.random() < 0.2)
    confidential = bool(not weighted and not losses and rng.random() < 0.2)
    case = Case(
        frame, kind, losses, hierarchies, "?" if missing else None, weighted, linked, confidential
    )
    return rng, with_wishes(case, np.random.default_rng([seed, 1]))


def with_wishes(case, rng):
    """Return the case with contributors who asked, cells that are named, or zeros as secrets."""
    frame = case.frame
    wish = str(rng.choice(["none", "request", "manual", "zeros"], p=[0.55, 0.15, 0.15, 0.15]))
    if wish == "request" and case.kind == "sum" and not case.weighted and not case.losses:
        case.asked = frozenset(frame["unit"][rng.random(len(frame)) < 0.2].tolist())
        frame["asked"] = frame["unit"].isin(case.asked)
    elif wish == "manual" and not case.linked:
        rows = frame.dropna(subset=["a"]).sample(2, random_state=int(rng.integers(1000)))
        case.named = tuple(sorted({f"{row.a}/{row.b}" for row in rows.itertuples()}))
    elif wish == "zeros" and not case.confidential and case.kind != "mean":
        case.zeros = True
        if case.kind == "sum":  # a cell whose contributors all have nothing
            row = frame.sample(1, random_state=int(rng.integers(1000))).iloc[0]
            frame.loc[(frame["a"] == row.a) & (frame["b"] == row.b), "amount"] = 0.0
    return case


def with_rules(rules, case):
    """Return the rules, with those for what was wished for."""
    if case.asked:
        rules = [*rules, dc.Request(60.0)]
    if case.named:
        rules = [*rules, dc.Manual(case.named, 20.0)]
    if case.zeros:
        rules = [*rules, dc.ZeroCells(1.0, empty=case.kind == "count")]
    return rules


def with_privacy(rng, case):
    """Return noise with differential privacy for a case that allows for it."""
    limit = 2000.0
    return dc.DPTableNoise(
        epsilon=float(rng.choice([0.1, 0.5, 1.0, 3.0])),
        bounds=None if case.kind == "count" else (-limit if case.losses else 0.0, limit),
        totals=str(rng.choice(["levels", "bottom-up"])),
        records=int(case.frame["unit"].value_counts().max()),
        non_negative=bool(rng.random() < 0.5),
    )


def of_places(rng, case):
    """Return consistent noisy counts over a tree of places for a case that allows for it."""
    case.declared = True
    spine = "a" if len(case.hierarchies.get("b", ())) == 2 else str(rng.choice(["a", "b"]))
    return dc.TopDown(
        rho=float(rng.choice([0.05, 0.5, 2.0])),
        spine=spine,
        split=str(rng.choice(["even", "leaf-heavy"])),
        passes=str(rng.choice(["totals-first", "one"])),
        records=int(case.frame["unit"].value_counts().max()),
        invariants={"0": "total"} if rng.random() < 0.3 else {},
    )


def chosen(rng, case):
    """Return a random method with random parameters, and rules that go with it."""
    counting = case.kind == "count"
    rules = [dc.MinimumFrequency(int(rng.integers(2, 5)))]
    if not counting and rng.random() < 0.6:
        p = float(rng.choice([5, 10, 20]))
        rules.append(dc.PPercent(p) if rng.random() < 0.7 else dc.Pq(p, 60.0))
    elif not counting and rng.random() < 0.3:
        rules.append(dc.Dominance(2, 80.0))
    base = float(rng.choice([3, 5, 10])) if counting else None
    methods = [
        dc.Suppression(
            attacker=str(rng.choice(["outsider", "contributors"])),
            objective=str(rng.choice(["count", "value"])),
            effort=str(rng.choice(["fast", "balanced"])),
        ),
        dc.Intervals(),
        dc.ConventionalRounding(base),
        dc.RandomRounding(base),
        dc.ControlledRounding(base, time_limit=5),
        dc.ControlledTabularAdjustment(time_limit=3),
    ]
    if not case.weighted:
        methods.append(dc.CellKey(deviation=int(rng.integers(3, 6)), variance=2.0))
    if not case.linked and not case.named:
        methods.append(dc.Recoding(percent=10, then=dc.Suppression(attacker="outsider")))
    if not counting and not case.losses:
        methods.append(dc.RecordNoise(5, 20))
    # Half of the releases withhold cells: there is most to infer from.
    method = methods[0] if rng.random() < 0.3 else methods[int(rng.integers(len(methods)))]
    if not case.linked and not case.weighted and case.kind != "mean" and rng.random() < 0.08:
        method = with_privacy(rng, case)
        if counting and not case.named and rng.random() < 0.6:
            return of_places(rng, case), []
    return method, with_rules(rules, case)


def released(seed, folder):
    """Return a random release that is called safe, and its files as the verifier reads them."""
    rng, case = generated(seed)
    method, rules = chosen(rng, case)
    try:
        release = dc.protect(case.tables(), rules, method, rng=dc.Randomness.seeded(seed))
    except dc.InfeasibleError:
        return None
    parts = release.releases if case.linked else (release,)
    if not parts[0].is_safe:
        return None
    paths = [folder / f"{seed}-{number}.csv" for number in range(len(parts))]
    parents = {}
    for part, path in zip(parts, paths, strict=True):
        part.published.to_csv(path, index=False)
        for d in part.table.dimensions:
            parents[d.name] = [{c: p for c, p in h.pairs() if p} for h in d.hierarchies]
    return case, parts, verifier.Published(paths, parents)


def needed(case, parts, published, found, rules):
    """Yield each sensitive cell with its value and levels, counted again from the records."""
    roots = [published.root(name) for name in published.by]
    own = {}
    if case.weighted:  # what a weighted contribution is, is for the rules to say
        for part in parts:
            table = part.table
            for cell in np.flatnonzero(table.status == 2).tolist():
                codes = dict(zip(table.by, table.labels(cell), strict=True))
                name = tuple(codes.get(n, r) for n, r in zip(published.by, roots, strict=True))
                own[name] = table.lower[cell], table.upper[cell]
    listed = [(codes, found.get(codes, {})) for codes in published.place]
    for codes, given in listed:
        needs = [
            verifier.levels(given, rule, counts=case.counts, codes=codes, asked=case.asked)
            for rule in rules
        ]
        if case.weighted:
            needs = [own.get(codes)]
        for rule in rules:
            if rule["name"] == "group-disclosure":
                place = published.by.index("b")
                missing = verifier.whole_group(found, codes, place, roots[place], rule["n"])
                each = 1.0 if case.counts else 0.0
                needs.append(None if missing is None else (missing * each, 0.0))
        needs = [need for need in needs if need is not None]
        if needs:
            yield codes, float(sum(given.values())), *(max(s) for s in zip(*needs, strict=True))


def judge(seed, folder):
    """Return how many cells were judged, and one for the release."""
    made = released(seed, folder)
    if made is None:
        return 0
    case, parts, published = made
    evidence = parts[0].evidence().to_dict()["settings"]
    method, merged = evidence["method"], {}
    if method["name"] == "recoding":
        method = method["then"]
        merged = {d.name: d.codes for d in parts[0].table.dimensions}
    name = method["name"]
    if name == "dp-noise":
        verifier.require_private(published, evidence)
        return 1
    if name == "top-down":
        truth = verifier.contributions(case.records({}), published.by, published.parents, None)
        value = np.array([sum(truth.get(codes, {}).values()) for codes in published.place])
        inside, cells = verifier.require_consistent(published, evidence, value)
        assert inside >= 0.5 * cells, (seed, "intervals miss the truth")
        return 1
    if case.kind == "mean" and name != "suppression":
        return 1  # printed means do not tell sums
    if case.losses and name == "cell-key":
        return 1  # noise is a share of gains and losses, of which nobody knows the sizes
    measure = None if case.counts else "amount"
    found = verifier.contributions(case.records(merged), published.by, published.parents, measure)
    negative = case.losses and any(sum(given.values()) < 0 for given in found.values())
    floor = -np.inf if negative else 0.0
    lists_empty = any(codes not in found for codes in published.place)
    value, numbers = (None, None) if case.kind != "mean" else verifier.sums(published)
    ends = verifier.bounds(
        published,
        method,
        evidence["facts"],
        counts=case.counts,
        floor=floor,
        omitted=not lists_empty,
        value=value,
    )
    judged, fewest = 0, published.fewest()
    everything = published.enumerated(*ends) if case.counts and name not in MOVED else None
    for codes, true, below, above in needed(case, parts, published, found, evidence["rules"]):
        cell = published.place[codes]
        least = floor if not case.counts else 0.0 if lists_empty else fewest[cell]
        below = min(below, true - least) if math.isfinite(least) else below
        judged += 1
        where = (seed, name, codes)
        slack = 1e-5 * max(1.0, abs(true))
        if name == "controlled-tabular-adjustment":
            moved = published.number(cell) - true
            assert moved >= above - slack or moved <= -below + slack, where
        elif name == "record-noise":
            if len(found[codes]) == 1:
                left = abs(true) * (method["most"] - method["least"]) / (100 + method["most"])
                assert left >= above - slack, where
        else:
            low, high = published.interval(cell, *ends, whole=case.counts)
            assert low - slack <= true <= high + slack, where
            if everything is not None:
                assert [low, high] == [f(everything[:, cell]) for f in (np.min, np.max)], where
                ENUMERATED[name] += 1
            # What the verdict says: both levels together, and of whole numbers two at least.
            assert high - low >= min(below + above, 1e12) - slack, where
            assert high > low, where
            if name == "suppression":
                assert low <= true - below + slack, where
                assert high >= true + above - slack, where
        if numbers is not None:
            hidden = np.isnan(numbers)
            lower, upper = np.where(hidden, 0.0, numbers), np.where(hidden, np.inf, numbers)
            if not lists_empty:
                lower = np.maximum(lower, 1.0)
            low, high = published.interval(cell, lower, upper, whole=True)
            assert high > low, where
    return 1 + judged


@pytest.mark.parametrize("start", range(0, NORMAL, 10))
def test_generated_releases(start, tmp_path):
    assert sum(judge(seed, tmp_path) for seed in range(start, start + 10)) > 0


def test_small_releases_are_judged_by_every_table_that_fits(tmp_path):
    ENUMERATED.clear()
    for seed in range(200, 222):
        judge(seed, tmp_path)
    assert ENUMERATED["suppression"] > 3
    assert ENUMERATED["intervals"] > 3


def test_gains_and_losses_of_one_unit_are_one_contribution(tmp_path):
    """Sizes of records were added up, so that a cell of two dominant units was published."""
    assert judge(223, tmp_path) > 1


def test_every_rule_and_method_is_generated():
    methods, rules = set(), set()
    for seed in (*range(NORMAL), *range(1000, 1100)):
        if rules == set(RULES.members()) and methods == set(METHODS.members()):
            break
        rng, case = generated(seed)
        method, given = chosen(rng, case)
        methods.add(method.name)
        rules |= {rule.name for rule in given} | (
            {"group-disclosure"} if case.confidential else set()
        )
    assert rules == set(RULES.members())
    assert methods == set(METHODS.members())


def test_contributors_of_linked_tables_with_losses(tmp_path):
    """Where nothing bounds a cell that does not matter, zero times no end was no number."""
    assert judge(1430, tmp_path) > 1


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 1000 + SLOW, BLOCK))
def test_many_generated_releases(start, tmp_path):
    judged = [judge(seed, tmp_path) for seed in range(start, start + BLOCK)]
    assert np.count_nonzero(judged) >= LEAST


def test_the_verifier_finds_what_is_given_away(tmp_path):
    """Control: a table with one cell withheld, which its total gives away, and one with two."""
    path = tmp_path / "cells.csv"
    parents = {"s": [{"a": "Total", "b": "Total", "c": "Total"}]}
    for text, expected in (("2", (8.0, 8.0)), ("", (1.0, 9.0))):
        path.write_text(f"s,value\nTotal,40\na,\nb,{text}\nc,30\n")
        published = verifier.Published(path, parents)
        lower, upper = verifier.bounds(
            published, {"name": "suppression"}, {}, counts=True, floor=0.0, omitted=True
        )
        assert published.interval(published.place[("a",)], lower, upper, whole=True) == expected
