"""What was told exactly, by attribute, and what another answer would add to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.audit.history.auditor import Auditor, Decision
from discreet.ledger.store import Ledger
from discreet.queries.guards._base import Protected
from discreet.queries.guards._exact_settings import ExactSettings
from discreet.queries.guards._profiles import Profiles
from discreet.queries.guards._room import Plan, Room

__all__ = ["ExactHistory", "Step", "smallest_k"]

Ids = npt.NDArray[np.int64]


@dataclasses.dataclass(eq=False)
class Step:
    """What one answer changes for one attribute."""

    #: None where the partition decides.
    decision: Decision | None
    plan: Plan | None
    #: What it means together with answers under other settings.
    joint: Decision | None


class _Tabled:
    """What is told of an attribute beside tables, with and without the cells that they withhold.

    Other auditors count the sum over everybody as told; a table may withhold it. So there is one
    record more here, which nobody asks about.
    """

    def __init__(self, counts: Ids, k: int) -> None:
        everybody = np.append(counts, 2 * k)
        self._told, self._all = Auditor(everybody, k), Auditor(everybody, k)
        self.withholds = False

    def withhold(self, cells: Sequence[Ids]) -> None:
        for inside in cells:
            self.withholds = True
            self._all.learn(inside)

    def learn(self, here: Ids) -> None:
        self._told.learn(here)
        self._all.learn(here)

    def tells(self, here: Ids) -> bool:
        """Whether withheld cells have a part in a sum.

        Where it follows from what is told and all withheld cells, and not without these, it may
        tell one of them; else it cannot.
        """
        return self._all.decide(here).known and not self._told.decide(here).known


class ExactHistory:
    """An auditor per attribute, and what else limits the answers about it.

    Parameters
    ----------
    settings, profiles
        The guard's settings, and the records by profile.
    family
        Attributes that are audited as one, by name.
    bounds
        What everybody knows of each column that has an interval to keep.
    floor
        The k that answers under all settings keep together; None if these settings see to it.
    """

    def __init__(
        self,
        settings: ExactSettings,
        profiles: Profiles,
        family: Mapping[str, str],
        bounds: Mapping[str, tuple[float, float]],
        floor: int | None,
    ) -> None:
        self._settings, self._profiles = settings, profiles
        self._family, self._bounds, self._floor = family, bounds, floor
        #: Whether decisions look at the history; those on fixed cells do not.
        self._audits = settings.mode == "history"
        self.auditors: dict[str, Auditor] = {}
        self._rooms: dict[str, Room] = {}
        #: What is told beside tables, and that with all cells that they withhold.
        self._tabled: dict[str, _Tabled] = {}
        #: What users of all settings are told: they may tell each other.
        self._joint: dict[str, Auditor] = {}

    def asked(self, attributes: Sequence[str]) -> list[Auditor]:
        """Return the auditors that must agree to a question about some attributes.

        Records without a value count nothing for theirs, so that all look at the same records.
        """
        asked = [self._auditor(attribute) for attribute in attributes]
        if self._floor is not None:
            asked += [self._together(attribute) for attribute in attributes]
        return asked

    def withholds(self, attributes: Sequence[str]) -> bool:
        """Whether tables withhold cells of any of the attributes."""
        return any(name in self._tabled and self._tabled[name].withholds for name in attributes)

    def step(self, attribute: str, here: Ids) -> Step | None:
        """Return what answering about some profiles would change, or None if it is unsafe."""
        decision = joint = plan = None
        if self._audits:
            decision = self._auditor(attribute).decide(here)
            if not decision.safe or self._tells_withheld(attribute, here):
                return None
            if not decision.known and (room := self._room(attribute)) is not None:
                plan = room.after(here)
                if plan is None:
                    return None
        if self._floor is not None:
            joint = self._together(attribute).decide(here)
            if not joint.safe:
                return None
        return Step(decision, plan, joint)

    def _auditor(self, attribute: str) -> Auditor:
        if attribute not in self.auditors:
            self.auditors[attribute] = Auditor(self._counts(attribute), self._settings.k)
        return self.auditors[attribute]

    def _together(self, attribute: str) -> Auditor:
        """Return the auditor of answers under all settings, which keep the smallest k."""
        assert self._floor is not None
        if attribute not in self._joint:
            self._joint[attribute] = Auditor(self._counts(attribute), self._floor)
        return self._joint[attribute]

    def _room(self, attribute: str) -> Room | None:
        settings = self._settings
        if settings.interval is None or attribute not in self._bounds:
            return None
        if attribute not in self._rooms:
            share = settings.interval / (2 * settings.inside)
            self._rooms[attribute] = Room(self._counts(attribute), share)
        return self._rooms[attribute]

    def _counts(self, attribute: str) -> Ids:
        counts = self._profiles.counts
        if attribute in self._profiles.known and attribute not in self._family:
            counts = np.where(self._profiles.known[attribute], counts, 0)
        return counts

    def _tells_withheld(self, attribute: str, here: Ids) -> bool:
        """Whether an answer could tell, with earlier ones, a cell that a table withholds."""
        tabled = self._tabled.get(attribute)
        return tabled is not None and tabled.withholds and tabled.tells(here)

    def accept(self, decided: Mapping[str, Step]) -> None:
        """Take what is answered into the history."""
        for attribute, step in decided.items():
            if step.decision is not None:
                self.auditors[attribute].accept(step.decision)
                if attribute in self._tabled:
                    self._tabled[attribute].learn(step.decision.inside)
            if step.plan is not None:
                self._rooms[attribute].accept(step.plan)
            if step.joint is not None:
                self._joint[attribute].accept(step.joint)

    def learn(self, attribute: str, here: Ids, *, own: bool) -> None:
        """Take an answer into the history, given under these settings or others.

        What was given cannot be taken back, and counts whatever it means. One of other settings
        that these would not give counts among all answers together, where the smallest k is kept.
        """
        if attribute in self._tabled:
            self._tabled[attribute].learn(here)
        if self._audits:
            auditor = self._auditor(attribute)
            if own or self._floor is None:
                new = auditor.learn(here)
            else:
                decision = auditor.decide(here)
                new = not decision.known
                if decision.safe:
                    auditor.accept(decision)
            if new and (room := self._room(attribute)) is not None:
                room.learn(here)
        if self._floor is not None:
            self._together(attribute).learn(here)

    def withhold(self, attribute: str, cells: Sequence[Ids]) -> None:
        """Take the cells into the history that a table withholds, before those that it tells."""
        if attribute not in self._tabled:
            self._tabled[attribute] = _Tabled(self._counts(attribute), self._settings.k)
        self._tabled[attribute].withhold(cells)

    def forget(self) -> None:
        """Drop everything; the ledger is replayed."""
        self.auditors.clear()
        self._rooms.clear()
        self._joint.clear()
        self._tabled.clear()


def smallest_k(guard: ExactSettings, data: Protected, ledger: Ledger | None) -> int | None:
    """Return the k that all answers keep together; None if this guard sees to it alone."""
    others = [g for g in data.guards if isinstance(g, ExactSettings) and g != guard]
    smallest = [other.k for other in others]
    if ledger is not None:
        known = {guard.digest, *(other.digest for other in others)}
        if ledger.policies(data.name, "exact") - known:
            smallest.append(2)  # settings of an earlier time, of which nothing is known here
    if not smallest:
        return None
    floor = min(guard.k, *smallest)
    return floor if floor < guard.k or guard.mode == "partition" else None
