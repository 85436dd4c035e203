"""Attacks on the gateways of a policy: the raw data first, then every guard."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.attacks._base import AttackReport, GatewayAttack, Victim
from discreet.data.schema import Type
from discreet.errors import DiscreetError, InputError, nearest
from discreet.progress import Progress, silent
from discreet.report import Report, Rows

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.queries.guards import Guard

__all__ = ["Attempted", "attack_dataset", "attack_policy", "choose_victim"]


@dataclasses.dataclass(frozen=True)
class Attempted(Report):
    """What each attack found out, without a guard and under each."""

    victim: Victim
    truth: float
    #: Attack, then target ("raw" or the guard's name), to what it found.
    found: dict[str, dict[str, AttackReport]]

    @property
    def withstood(self) -> bool:
        """Whether no attack succeeded under a guard."""
        return not any(
            report.succeeded
            for reports in self.found.values()
            for target, report in reports.items()
            if target != "raw"
        )

    def rows(self) -> Rows:
        """One line per attack."""
        targets = list(next(iter(self.found.values()), {}))
        return ("attack", *targets), [
            (attack, *(_told(reports[target]) for target in targets))
            for attack, reports in self.found.items()
        ]


def attack_policy(
    path: Path,
    *,
    column: str,
    condition: str,
    group: str | None = None,
    other: str | None = None,
    attacks: Sequence[str] | None = None,
    guards: Sequence[str] = (),
    allow: Sequence[str | Path] = (),
    password: str | None = None,
    progress: Progress = silent,
) -> Attempted:
    """Attack the data of a policy raw and under each of its guards, and the guards given."""
    from discreet.app.policy.access import permitted_policy
    from discreet.app.policy.guards import read_guard
    from discreet.app.policy.run import open_source

    policy, _ = permitted_policy(path, allow=allow, password=password)
    dataset = open_source(policy)
    chosen = {name: getattr(job, "guard", None) for name, job in policy.gateways.items()}
    chosen |= {text: read_guard(text) for text in guards}
    victim = choose_victim(dataset, column, condition, group=group, other=other)
    return attack_dataset(
        dataset,
        victim,
        {name: guard for name, guard in chosen.items() if guard is not None},
        _attacks(attacks),
        progress=progress,
    )


def attack_dataset(
    dataset: Dataset,
    victim: Victim,
    guards: dict[str, Guard],
    attacks: Sequence[GatewayAttack],
    *,
    progress: Progress = silent,
) -> Attempted:
    """Run attacks on the raw data and under each guard, each from an empty history."""
    from discreet.attacks._raw import RawDatabase
    from discreet.queries.gateway import Gateway

    raw = RawDatabase(dataset)
    truth = _truth(raw, victim)
    found: dict[str, dict[str, AttackReport]] = {}
    total = len(attacks) * (len(guards) + 1)
    done = 0
    for attack in attacks:
        reports = {"raw": attack.run(raw, victim, truth)}
        for name, guard in guards.items():
            progress("attacks", done := done + 1, total)
            # Nothing of a rehearsal leaves, so that another ledger's mark does not matter.
            rehearsal = dataclasses.replace(dataset, origin=None)
            with Gateway(rehearsal, guard=guard, ledger=":memory:") as gate:
                reports[name] = attack.run(gate, victim, truth)
        progress("attacks", done := done + 1, total)
        found[attack.name] = reports
    return Attempted(victim, truth, found)


def choose_victim(
    dataset: Dataset,
    column: str,
    condition: str,
    *,
    group: str | None = None,
    other: str | None = None,
) -> Victim:
    """Return the victim, with conditions chosen where none is given.

    The group drops the last part of what is known; the other condition is the value of a
    quasi-identifier whose share is nearest to a half.
    """
    import sqlglot
    from sqlglot import exp

    dataset.relation.require(column)
    if dataset.schema[column].type is not Type.NUMERIC:
        raise InputError(
            f"column {column!r} does not hold numbers; these attacks are on a number",
            code="not-numeric",
            column=column,
            hint="name a column that can be added up",
        )
    try:
        known = sqlglot.parse_one(condition, dialect="postgres")
    except sqlglot.errors.SqlglotError:
        raise InputError(
            "the condition on the victim cannot be read",
            code="malformed-condition",
            hint="write it as behind WHERE: --victim \"age = 41 AND region = 'TGN'\"",
        ) from None
    if group is None:
        parts = list(known.flatten()) if isinstance(known, exp.And) else [known]
        group = " AND ".join(part.sql("postgres") for part in parts[:-1]) or "TRUE"
    used = {found.name for found in known.find_all(exp.Column)}
    # Attacks write their names into SQL, where a hyphen or a capital needs quotes.
    relation, named = (
        exp.to_identifier(name, quoted=True).sql("postgres") for name in (dataset.name, column)
    )
    return Victim(relation, named, condition, group, other or _other(dataset, used))


def _other(dataset: Dataset, used: set[str]) -> str:
    from sqlglot import exp

    columns = [name for name in dataset.schema.quasi if name not in used] or list(
        dataset.schema.quasi
    )
    best: tuple[float, str] | None = None
    for name in columns:
        key = exp.column(name, quoted=True)
        counted = dataset.aggregate(
            exp.select(key.as_("v"), exp.Count(this=exp.Star()).as_("n"))
            .from_(exp.table_(dataset.name, quoted=True))
            .group_by(key)
        ).to_pylist()
        total = sum(row["n"] for row in counted)
        for row in counted:
            if row["v"] is None:
                continue
            distance = abs(row["n"] / total - 0.5)
            if best is None or distance < best[0]:
                best = distance, exp.EQ(this=key, expression=exp.convert(row["v"])).sql("postgres")
    if best is None:
        raise InputError(
            "no column is left to split the people by",
            code="no-other-condition",
            hint="write --other CONDITION",
        )
    return best[1]


def _truth(raw: Any, victim: Victim) -> float:
    """Return the victim's value; the condition must hold for one record."""
    sql = (
        f"SELECT COUNT(*) AS n, SUM({victim.column}) AS x FROM {victim.relation}"  # noqa: S608 - the curator's own condition, on the curator's data
        f" WHERE {victim.condition}"
    )
    try:
        row = raw.ask(sql, user="").table.to_pylist()[0]
    except DiscreetError:
        raise InputError(
            "the condition on the victim does not fit the data",
            code="malformed-condition",
            hint="name columns of the data, as in --victim \"age = 41 AND region = 'TGN'\"",
        ) from None
    if row["n"] != 1 or row["x"] is None:
        raise InputError(
            f"the condition holds for {row['n']} records; attacks are on one person",
            code="victim-not-unique",
            hint="add what the attacker knows: another column of that person",
        )
    return float(row["x"])


def _attacks(names: Sequence[str] | None) -> list[GatewayAttack]:
    """Return all attacks on gateways, or those named."""
    from discreet.attacks import FAMILY, attacks_on

    known, fitting = FAMILY.members(), attacks_on("gateway")
    for name in names or ():
        guess = nearest(name, fitting)
        hint = f"write {guess!r}" if guess else "choose from " + ", ".join(fitting)
        if name not in known:
            raise InputError(f"there is no attack {name!r}", code="unknown-attack", hint=hint)
        if name not in fitting:
            raise InputError(
                f"{name!r} attacks {known[name].attacks}, which a policy's gateways are not",
                code="attack-not-on-gateways",
                hint=hint,
            )
    return [attack() for name, attack in fitting.items() if not names or name in names]


def _told(report: AttackReport) -> str:
    if report.lower is None or report.upper is None:
        return "refused"
    if report.lower == report.upper:
        return f"{report.lower:,.0f} ({'found' if report.succeeded else 'wrong'})"
    return f"{report.lower:,.0f} … {report.upper:,.0f}"
