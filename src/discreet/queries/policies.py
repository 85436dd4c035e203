"""Who is answered how: guards by user, role and column, and which of them may stand together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from discreet.data.schema import Schema
from discreet.data.sql import Catalog, Query
from discreet.errors import InputError, RefusedError, nearest
from discreet.queries.guards._base import Guard

__all__ = ["Policies", "Policy"]


@dataclasses.dataclass(frozen=True)
class Policy:
    """What holds for one user, role or column: a guard, and the columns they may use."""

    guard: Guard | None = None
    #: Columns that may be named at all; None means all but identifiers.
    columns: tuple[str, ...] | None = None


class Policies:
    """The guards of one gateway.

    A user's own policy comes before a role's, and both before a column's; what none of them
    settles is answered by the gateway's guard. A question is answered under one guard: one about
    two columns with different guards is refused, also where one of them has the gateway's. With `apart` the curator vouches that
    people under different guards do not share their answers. `columns` are those that may be asked
    about by whom no policy gives others; what nobody may ask about is not even counted.

    Examples
    --------
    >>> from discreet.queries.guards.camouflage import Camouflage
    >>> from discreet.queries.guards.restriction import Restriction
    >>> from discreet.demo import salaries
    >>> chosen = Policies(
    ...     Restriction(k=3), {"column:salary": Camouflage(bound=0.3)}, salaries().schema
    ... )
    >>> [guard.name for guard in chosen.guards()]
    ['restriction', 'camouflage']
    """

    def __init__(
        self,
        default: Guard,
        given: Mapping[str, Guard | Policy],
        schema: Schema,
        *,
        apart: bool = False,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._default = default
        #: What those may ask about for whom no policy names columns.
        self._shown = None if columns is None else tuple(columns)
        policies = {
            name: policy if isinstance(policy, Policy) else Policy(policy)
            for name, policy in given.items()
        }
        _check_names(policies, schema.names)
        self._people = {n: p for n, p in policies.items() if not n.startswith("column:")}
        self._columns = {
            name.partition(":")[2]: policy.guard
            for name, policy in policies.items()
            if name.startswith("column:") and policy.guard is not None
        }
        self._apart = apart
        self._confidential = frozenset(schema.confidential)
        for column in () if apart else schema.confidential:
            _check_together(column, self._applying(column))

    def require_families(self, families: Iterable[Mapping[str, str]]) -> None:
        """Refuse guards that do not go together for columns that tell of each other.

        Exact sums of the total would narrow the intervals of a salary that it follows from.
        """
        for family in () if self._apart else families:
            for name in dict.fromkeys(family.values()):
                columns = sorted(column for column in family if family[column] == name)
                guards = [guard for column in columns for guard in self._applying(column)]
                _check_together(" and ".join(columns), guards)

    def guards(self) -> list[Guard]:
        """Return every guard that may be needed."""
        own = [policy.guard for policy in self._people.values() if policy.guard is not None]
        return [self._default, *own, *self._columns.values()]

    def askable(self) -> frozenset[str] | None:
        """Return the columns that anybody may ask about; None means all but identifiers."""
        if self._shown is None:
            return None
        own = [policy.columns or () for policy in self._people.values()]
        return frozenset(self._shown).union(*own)

    def visible(self, catalog: Catalog, user: str, roles: Sequence[str]) -> Catalog:
        """Return what somebody may ask about; hidden columns do not exist for them."""
        own = self._of(user, roles).columns
        columns = self._shown if own is None else own
        if columns is None:
            return catalog
        shown = {*columns, catalog.unit}
        return dataclasses.replace(
            catalog,
            fields=tuple(f for f in catalog.fields if f.name in shown),
            lookups={
                name: tuple(f for f in fields if f"{name}.{f.name}" in shown)
                for name, fields in catalog.lookups.items()
            },
        )

    def guard_for(self, query: Query, user: str, roles: Sequence[str] = ()) -> Guard:
        """Return the guard that answers somebody's question."""
        own = self._of(user, roles).guard
        if own is not None:
            return own
        used = query.predicate_columns.union(
            *(key.columns for key in query.keys), *(m.columns for m in query.measures)
        )
        # Confidential columns without a guard of their own are under the gateway's: that of another
        # column does not answer about them.
        found = {
            column: self._columns.get(column, self._default)
            for column in sorted(used & self._confidential.union(self._columns))
        }
        guards = list(found.values())
        if any(guard != guards[0] for guard in guards):
            raise RefusedError(
                "the columns " + " and ".join(found) + " are answered in different ways",
                code="different-guards",
                hint="ask about one of them at a time",
            )
        return guards[0] if guards else self._default

    def person_guard(self, user: str, roles: Sequence[str] = ()) -> Guard:
        """Return the guard that answers somebody about columns without a guard of their own."""
        return self._of(user, roles).guard or self._default

    def _of(self, user: str, roles: Sequence[str]) -> Policy:
        names = [f"user:{user}", *(f"role:{role}" for role in roles)]
        return next((self._people[n] for n in names if n in self._people), Policy())

    def applying(self, columns: Iterable[str]) -> dict[str, list[Guard]]:
        """Return the guards that answer somebody about each column; none if they are kept apart."""
        return {} if self._apart else {column: self._applying(column) for column in columns}

    def _applying(self, column: str) -> list[Guard]:
        own = [policy.guard for policy in self._people.values() if policy.guard is not None]
        return [self._columns.get(column, self._default), *own]


def _check_names(policies: Mapping[str, Policy], columns: Sequence[str]) -> None:
    for name, policy in policies.items():
        kind, _, who = name.partition(":")
        if kind not in ("user", "role", "column") or not who:
            raise InputError(
                f"the policy {name!r} is for nobody",
                code="malformed-policy",
                hint=f"write 'user:{name}', 'role:{name}' or 'column:{name}'",
            )
        if kind == "column" and who not in columns:
            guess = nearest(who, columns)
            raise InputError(
                f"the policy {name!r} is for a column that does not exist",
                code="unknown-column",
                column=who,
                hint=f"write 'column:{guess}'" if guess else "name a column of the data",
            )
        if kind == "column" and (policy.guard is None or policy.columns is not None):
            raise InputError(
                f"the policy {name!r} needs a guard, and nothing else",
                code="malformed-policy",
                hint="hide columns from users and roles; give a column a guard",
            )


def _check_together(columns: str, guards: Iterable[Guard]) -> None:
    """Refuse guards whose answers, put together, would say more than each promises.

    Intervals hold the truth for sure. Exact answers, or intervals of another kind, to whoever
    shares them narrow such intervals below their bound. Noise excludes nothing, so it may stand
    beside either, and exact answers are audited together whatever their k.
    """
    sure: list[Guard] = []
    for guard in guards:
        if guard.answers != "noisy" and guard not in sure:
            sure.append(guard)
    if len(sure) > 1 and any(guard.answers == "interval" for guard in sure):
        named = ", ".join(sorted({guard.name for guard in sure}))
        raise InputError(
            f"answers about {columns} under {named} would narrow each other",
            code="guards-not-together",
            column=columns,
            hint="give everybody the same guard for them (perturbation may stand beside it), "
            "or vouch that users under different guards do not share answers: apart=True",
        )
