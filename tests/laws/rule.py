"""Laws of sensitivity rules.

Rules judge sums of non-negative contributions. What their inequalities imply, whichever is meant:

- a contributor who is no larger than the others and did not ask for protection never makes a cell
  sensitive (the total, the remainder and the number of contributors only grow);
- more for the largest contributor, who asks for protection, never makes a sensitive cell safe (its
  share of the total only grows);
- two safe cells of different contributors are safe together (Cox's sub-additivity), where the rule
  claims it;
- no level exceeds the bound that the rule states for those who cannot see contributions;
- neither the order of the records nor the order of the cells matters.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import pandas as pd

import discreet as dc
from discreet.audit.rules._base import Inequality, Rule, Verdict, verdict
from discreet.data.table import Table
from tests.laws import parameters

CASES = 400
#: More than any rule asks for by default; cells with fewer contributors are padded with zeros.
LARGEST = 5


def cells(*groups: list[float], asks: int = 0) -> Table:
    """A table with one cell per list of contributions; the contributor in place `asks` asks."""
    ranked = [sorted(group, reverse=True) for group in groups]
    frame = pd.DataFrame(
        {
            "cell": [f"c{place}" for place in range(len(groups))],
            "value": [float(np.sum(group)) for group in groups],
            "count": [len(group) for group in groups],
            **{
                f"x{n}": [float(group[n]) if n < len(group) else 0.0 for group in ranked]
                for n in range(LARGEST)
            },
        }
    )
    table = Table.from_cells(
        frame,
        by=["cell"],
        value="value",
        count="count",
        contributions=[f"x{n}" for n in range(LARGEST)],
    )
    asking = [group[asks] if asks < len(group) else 0.0 for group in groups]
    return table.replace(requested=np.array(asking, dtype=float))


def contributions(rng: np.random.Generator, least: int = 1) -> list[float]:
    """One to eight contributions, some equal, as round as statistics are."""
    size = int(rng.integers(least, 9))
    return [float(x) for x in np.ceil(rng.lognormal(2, 1.2, size))]


def tried(member: type[Rule], seed: int):
    """Each example of the rule, and variants of it with other numbers."""
    return parameters.tried(member, np.random.default_rng(seed), 4, cells=("c0", "c3"))


def blind_to_order(member: type[Rule]) -> None:
    rng = np.random.default_rng(11)
    groups = [contributions(rng) for _ in range(40)]
    records = pd.DataFrame(
        [
            (f"c{cell}", pay, place == 0, f"u{cell}-{place}")
            for cell, group in enumerate(groups)
            for place, pay in enumerate(group)
        ],
        columns=["cell", "pay", "asks", "unit"],
    )
    order = rng.permutation(len(groups))
    plain = cells(*groups)
    moved = dataclasses.replace(
        plain,
        codes=plain.codes[order],
        value=plain.value[order],
        count=plain.count[order],
        contributions=plain.contributions[order],
        requested=plain.requested[order],
    )
    mixed = [tabulated(records.sample(frac=1, random_state=seed)) for seed in (1, 2)]
    for rule in tried(member, 12):
        found = rule.judge(plain)
        again = rule.judge(moved)
        for name in ("sensitive", "lower", "upper"):
            assert np.array_equal(getattr(found, name)[order], getattr(again, name)), (
                f"{rule} depends on the place of a cell"
            )
        told = [rule.judge(table) for table in mixed]
        assert np.array_equal(told[0].sensitive, told[1].sensitive), f"{rule} depends on the order"
        assert np.allclose(told[0].upper, told[1].upper), f"{rule} depends on the order"


def tabulated(records: pd.DataFrame) -> Table:
    data = dc.read(records, roles={"cell": "quasi", "pay": "confidential"}, unit="unit")
    return dc.tabulate(data, by=["cell"], measure="pay", request="asks")


def levels_belong_to_sensitive_cells(member: type[Rule]) -> None:
    rng = np.random.default_rng(13)
    table = cells(*(contributions(rng) for _ in range(CASES)), [0.0, 0.0])
    before = {
        field.name: np.copy(value)
        for field in dataclasses.fields(table)
        if isinstance(value := getattr(table, field.name), np.ndarray)
    }
    for rule in tried(member, 14):
        found = rule.judge(table)
        assert found.sensitive.dtype == bool
        assert len(found.sensitive) == len(found.lower) == len(found.upper) == len(table)
        for level in (found.lower, found.upper):
            assert np.isfinite(level).all(), f"{rule} asks for an endless level"
            assert (level >= 0).all(), f"{rule} asks for a negative level"
            assert (level[~found.sensitive] == 0).all(), f"{rule} protects a safe cell"
        some = found.sensitive & (table.value > 0)
        assert (found.upper[some] > 0).all(), f"{rule} asks for no protection of a sensitive cell"
    for name, value in before.items():
        assert np.array_equal(getattr(table, name), value), f"{member.name} changed its input"


def a_small_contributor_never_makes_a_cell_sensitive(member: type[Rule]) -> None:
    rng = np.random.default_rng(15)
    groups = [contributions(rng) for _ in range(CASES)]
    grown = [[*group, float(np.floor(rng.uniform(0, min(group))))] for group in groups]
    for rule in tried(member, 16):
        before, after = rule.judge(cells(*groups)), rule.judge(cells(*grown))
        wrong = np.flatnonzero(~before.sensitive & after.sensitive)
        assert not wrong.size, f"{rule} calls {grown[wrong[0]]} sensitive, and not without the last"


def more_for_the_largest_never_makes_a_cell_safe(member: type[Rule]) -> None:
    rng = np.random.default_rng(17)
    groups = [sorted(contributions(rng), reverse=True) for _ in range(CASES)]
    grown = [[group[0] * float(rng.uniform(1, 5)), *group[1:]] for group in groups]
    for rule in tried(member, 18):
        before, after = rule.judge(cells(*groups)), rule.judge(cells(*grown))
        wrong = np.flatnonzero(before.sensitive & ~after.sensitive)
        assert not wrong.size, f"{rule} calls {groups[wrong[0]]} sensitive, {grown[wrong[0]]} not"


def safe_cells_are_safe_together(member: type[Rule]) -> None:
    if not member.subadditive:
        return
    rng = np.random.default_rng(19)
    ones, twos = ([sorted(contributions(rng), reverse=True) for _ in range(CASES)] for _ in "ab")
    both = [sorted(one + two, reverse=True) for one, two in zip(ones, twos, strict=True)]
    for rule in tried(member, 20):
        apart = rule.judge(cells(*ones)).sensitive | rule.judge(cells(*twos)).sensitive
        wrong = np.flatnonzero(~apart & rule.judge(cells(*both)).sensitive)
        assert not wrong.size, f"{rule}: {ones[wrong[0]]} and {twos[wrong[0]]} are safe, not both"


def no_level_exceeds_its_bound(member: type[Rule]) -> None:
    rng = np.random.default_rng(21)
    table = cells(*(contributions(rng) for _ in range(CASES)), [0.0, 0.0])
    for rule in tried(member, 22):
        if not rule.inequalities():
            continue
        bound = rule.level_bound()
        most = float(bound.share) * table.value + bound.amount
        for one, most_here in ((table, most), (counted(table), bound.contributors)):
            found = rule.judge(one)
            if one.statistic == "count" and not found.sensitive.any():
                continue
            if one.statistic == "count" and any(form.total for form in rule.inequalities()):
                continue  # it judges amounts; counts are no concern of it
            assert (found.upper <= most_here + 1e-9).all(), f"{rule} asks for more than it says"


def counted(table: Table) -> Table:
    assert table.count is not None
    return dataclasses.replace(table, value=table.count.astype(float)).replace(statistic="count")


LAWS = (
    no_level_exceeds_its_bound,
    blind_to_order,
    levels_belong_to_sensitive_cells,
    a_small_contributor_never_makes_a_cell_sensitive,
    more_for_the_largest_never_makes_a_cell_safe,
    safe_cells_are_safe_together,
)


@dataclasses.dataclass(frozen=True)
class EverySecond(Rule):
    """Calls every second cell sensitive."""

    name: ClassVar[str] = "every-second"

    def judge(self, table: Table) -> Verdict:
        odd = np.arange(len(table)) % 2 == 1
        return verdict(odd, table.value, table.value)


@dataclasses.dataclass(frozen=True)
class Crowded(Rule):
    """Calls a cell sensitive when it has many contributors: the inequality is turned around."""

    name: ClassVar[str] = "crowded"

    def judge(self, table: Table) -> Verdict:
        return verdict(self.needs_count(table) > 4, table.value, table.value)


@dataclasses.dataclass(frozen=True)
class TurnedDominance(Rule):
    """Calls a cell sensitive unless it is dominated."""

    name: ClassVar[str] = "turned-dominance"

    def judge(self, table: Table) -> Verdict:
        top = self.needs_contributions(table, 1)[:, 0]
        return verdict(top < 0.5 * table.value, table.value, table.value)


@dataclasses.dataclass(frozen=True)
class Large(Rule):
    """Calls large cells sensitive, and claims to be sub-additive."""

    name: ClassVar[str] = "large"

    def judge(self, table: Table) -> Verdict:
        return verdict(table.value > 60, table.value, table.value)


@dataclasses.dataclass(frozen=True)
class Unprotected(Rule):
    """Finds the right cells and asks for no protection of them."""

    name: ClassVar[str] = "unprotected"

    def judge(self, table: Table) -> Verdict:
        none = np.zeros(len(table))
        return verdict(self.needs_count(table) < 3, none, none)


@dataclasses.dataclass(frozen=True)
class Greedy(Rule):
    """Asks for the whole value, and says that it asks for a tenth."""

    name: ClassVar[str] = "greedy"

    def inequalities(self) -> tuple[Inequality, ...]:
        return (Inequality.scaled(total=100, largest=(-110,)),)

    def judge(self, table: Table) -> Verdict:
        return verdict(np.ones(len(table), dtype=bool), table.value, table.value)


BROKEN = {
    Greedy: no_level_exceeds_its_bound,
    EverySecond: blind_to_order,
    Unprotected: levels_belong_to_sensitive_cells,
    Crowded: a_small_contributor_never_makes_a_cell_sensitive,
    TurnedDominance: more_for_the_largest_never_makes_a_cell_safe,
    Large: safe_cells_are_safe_together,
}
