"""Attacks on the consistent tables of a policy: on exact counts first, then on what is published."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.attacks._tables import Counts, Rates, identity
from discreet.attacks.membership_in_tables import MembershipInTables
from discreet.attacks.presence import Presence, likelihood
from discreet.attacks.reconstruction import Reconstruction
from discreet.attacks.repeated_releases import RepeatedReleases
from discreet.dp.accountant import Accountant
from discreet.dp.grant import Grant, charge
from discreet.errors import InputError
from discreet.ledger.opening import open_ledger
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.report import Report, Rows
from discreet.tables.large import tabulate_large
from discreet.tables.methods._places import Places
from discreet.tables.methods.top_down import TopDown

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["AttemptedTables", "attack_release", "attack_table"]

#: Draws of noise that telling presence may take, and the coins it then throws.
_DRAWS, _RUNS = 2_000_000, (40, 400)


@dataclasses.dataclass(frozen=True)
class AttemptedTables(Report):
    """What each attack found out, from exact and from published counts."""

    #: Attack, then "exact" or "published", to what it found.
    found: dict[str, dict[str, Rates]]

    @property
    def withstood(self) -> bool:
        """Whether no attack succeeded on what is published."""
        return not any(reports["published"].succeeded for reports in self.found.values())

    def rows(self) -> Rows:
        """One line per attack and table."""
        return ("attack", "table", "right about", "of people left out", "refused", "succeeded"), [
            (
                attack,
                table,
                f"{report.found:.1%} of {report.asked:,}",
                f"{report.blind:.1%}",
                report.refused,
                report.succeeded,
            )
            for attack, reports in self.found.items()
            for table, report in reports.items()
        ]


def attack_release(
    path: Path,
    release: str,
    *,
    attacks: Sequence[str] | None = None,
    allow: Sequence[str | Path] = (),
    password: str | None = None,
    progress: Progress = silent,
) -> AttemptedTables:
    """Attack a consistent table of a policy; nothing is charged, nothing is recorded."""
    from discreet.app.policy.access import permitted_policy
    from discreet.app.policy.run import open_source

    policy, _ = permitted_policy(path, allow=allow, password=password)
    job: Any = policy.releases.get(release)  # Any: a job of any family
    method = getattr(job, "method", None)
    if job is None or not isinstance(method, TopDown) or len(job.crossed) != 1:
        raise InputError(
            f"there is no release {release!r} with the method top-down",
            code="not-a-consistent-table",
            hint="name a release of one table with the method top-down; without --release, "
            "gateways are attacked",
            parameter="release",
        )
    data = open_source(policy)
    return attack_table(data, job.crossed[0], method, attacks=attacks, progress=progress)


def attack_table(
    data: Dataset,
    by: Sequence[str],
    method: TopDown,
    *,
    attacks: Sequence[str] | None = None,
    progress: Progress = silent,
) -> AttemptedTables:
    """Rehearse a consistent table of records and attack it: each attack on exact counts, too."""
    target = _Target.of(data, tuple(by), method)
    ways = {
        Presence.name: target.presence,
        Reconstruction.name: target.reconstruction,
        MembershipInTables.name: target.membership,
        RepeatedReleases.name: target.averaging,
    }
    unknown = [name for name in attacks or () if name not in ways]
    if unknown:
        raise InputError(
            f"there is no attack {unknown[0]!r} on tables",
            code="unknown-attack",
            hint="choose from " + ", ".join(ways),
            parameter="attack",
        )
    if len(target.places.basis.sizes) < 2:
        # Two margins of a place are solved for its records.
        ways.pop(Reconstruction.name)
    chosen = {name: way for name, way in ways.items() if not attacks or name in attacks}
    found = {}
    for number, (name, way) in enumerate(chosen.items(), start=1):
        found[name] = {"exact": way(exact=True), "published": way(exact=False)}
        progress("attacks", number, len(chosen))
    return AttemptedTables(found)


@dataclasses.dataclass(frozen=True, eq=False)
class _Target:
    """The table that is attacked, with the true counts of its smallest places."""

    method: TopDown
    places: Places
    leaves: Counts

    @classmethod
    def of(cls, data: Dataset, by: tuple[str, ...], method: TopDown) -> _Target:
        made = tabulate_large(data, by)
        places = Places.of(made.dimensions, method.place_of(made.by))
        leaves = made.leaves(places)
        if not leaves.any():
            raise InputError("there is nobody in the records to attack", code="no-records")
        method.task_of(places).require_possible(leaves)
        return cls(method, places, leaves)

    def published(self, leaves: Counts) -> Any:
        """Return what is published of the smallest places. Any: numbers."""
        measured = self.method.task_of(self.places).measure(leaves, silent)
        found = self.method.estimate(measured, self.places, rng=Randomness.secure())
        if found.whole is not None:
            return found.whole[-1]
        return self.places.basis.backward(found.fit.estimate[-1])

    def presence(self, *, exact: bool) -> Rates:
        """Attack somebody in one of the smallest cells; the score is the best there is."""
        others = self.leaves.reshape(-1).copy()
        cell = int(np.where(others > 0, others, others.max() + 1).argmin())
        others[cell] -= 1
        if exact:
            return Presence(runs=_RUNS[0]).run(identity, others, cell)
        task, shape = self.method.task_of(self.places), self.leaves.shape
        runs = int(np.clip(_DRAWS // self.places.draws(task.budget), *_RUNS))
        return Presence(runs=runs).run(
            lambda counts: task.measure(counts.reshape(shape), silent),
            others,
            cell,
            likelihood(self.places.spine, self.places.basis, others, cell),
        )

    def _halves(self) -> tuple[Counts, Counts]:
        """Leave out half of the people by lot."""
        lots = Randomness.secure()
        row, cell = np.nonzero(self.leaves)
        person = np.repeat(np.arange(len(row)), self.leaves[row, cell])
        inside = person[lots.permutation(len(person))[: (len(person) + 1) // 2]]
        people = np.zeros_like(self.leaves)
        np.add.at(people, (row[inside], cell[inside]), 1)
        return people, self.leaves - people

    def reconstruction(self, *, exact: bool) -> Rates:
        """Solve for people who are alone in their cell."""
        people, left_out = self._halves()
        publish = identity if exact else self.published
        rows = self.places.basis.sizes[0]
        return Reconstruction().run(publish, people, left_out, rows=rows)

    def membership(self, *, exact: bool) -> Rates:
        """Tell who was counted."""
        return MembershipInTables().run(identity if exact else self.published, *self._halves())

    def averaging(self, *, exact: bool) -> Rates:
        """Have the table published again and again, under a grant for one release."""
        cell = int(self.leaves.reshape(-1).argmax())
        truth = self.leaves.reshape(-1)
        if exact:
            return RepeatedReleases().run(identity, truth, cell)
        events = self.method.task_of(self.places).budget.events()
        delta = self.method.stated_delta
        epsilon = Accountant("zcdp", delta).epsilon(events)
        with open_ledger() as ledger:
            ledger.set_grant("people", Grant(epsilon, delta, "zcdp").to_dict())

            def publish(counts: Counts) -> Any:
                charge(ledger, "people", events, what="a rehearsal")
                return self.published(counts.reshape(self.leaves.shape)).reshape(-1)

            return RepeatedReleases().run(publish, truth, cell)
