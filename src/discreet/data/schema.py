"""What each column is: its role in a disclosure, its type, and who a row belongs to."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping, Sequence

from discreet.data.domain import Domain, declared_domains
from discreet.data.hierarchy import Hierarchy
from discreet.errors import InputError, nearest
from discreet.report import html_table

__all__ = ["Column", "Domain", "Role", "Schema", "Type"]


class Role(enum.StrEnum):
    """What an intruder can do with a column."""

    IDENTIFIER = "identifier"
    QUASI = "quasi"
    CONFIDENTIAL = "confidential"
    OTHER = "other"


class Type(enum.StrEnum):
    """How a column's values compare."""

    NUMERIC = "numeric"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    DATE = "date"


@dataclasses.dataclass(frozen=True)
class Column:
    """One column: role, type, hierarchies, and why it was judged so."""

    name: str
    role: Role = Role.OTHER
    type: Type = Type.NOMINAL
    hierarchies: tuple[Hierarchy, ...] = ()
    reason: str = ""
    #: Whether the curator said the role; a guess is none, and nothing is released on a guess.
    decided: bool = True
    #: Whether the curator vouches that its values name nobody, whatever they look like.
    vouched: bool = False
    #: The values that everybody may know the column can have, whatever the records hold.
    domain: Domain | None = None
    #: The order of its values as codes, where whoever made the data said one.
    order: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Schema:
    """The columns of a dataset, the unit a row belongs to and its weight.

    Examples
    --------
    >>> schema = Schema((Column("name", Role.IDENTIFIER), Column("age", Role.QUASI, Type.NUMERIC)))
    >>> schema.quasi
    ('age',)
    >>> schema["agee"]
    Traceback (most recent call last):
    discreet.errors.InputError: there is no column 'agee'; write 'age' [unknown-column]
    """

    columns: tuple[Column, ...]
    unit: str | None = None
    weight: str | None = None

    def _repr_html_(self) -> str:
        lines = [(one.name, one.role.value, one.type.value) for one in self.columns]
        return html_table("Columns, and what they are", ("column", "role", "type"), lines)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return tuple(column.name for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        guess = nearest(name, self.names)
        raise InputError(
            f"there is no column {name!r}",
            code="unknown-column",
            hint=f"write {guess!r}" if guess else "choose one of " + ", ".join(self.names),
            column=name,
            available=list(self.names),
        )

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def with_role(self, role: Role) -> tuple[str, ...]:
        """Return the names of the columns with a role."""
        return tuple(column.name for column in self.columns if column.role == role)

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Columns that name a respondent: they never leave."""
        return self.with_role(Role.IDENTIFIER)

    @property
    def quasi(self) -> tuple[str, ...]:
        """Columns an intruder may know of a respondent."""
        return self.with_role(Role.QUASI)

    @property
    def confidential(self) -> tuple[str, ...]:
        """Columns to be protected."""
        return self.with_role(Role.CONFIDENTIAL)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Columns whose role nobody said."""
        return tuple(column.name for column in self.columns if not column.decided)

    @property
    def vouched(self) -> tuple[str, ...]:
        """Columns that may leave whatever their values look like."""
        return tuple(column.name for column in self.columns if column.vouched)

    def with_undecided_hidden(self) -> Schema:
        """Return the schema with every column that nobody decided on as an identifier."""
        columns = tuple(
            column if column.decided else dataclasses.replace(column, role=Role.IDENTIFIER)
            for column in self.columns
        )
        return dataclasses.replace(self, columns=columns)

    def domain(self, name: str) -> Domain | None:
        """Return the declared domain of a column; a hierarchy's leaves are one unless looked up."""
        column = self[name]
        if column.domain is not None or not column.hierarchies:
            return column.domain
        tree = column.hierarchies[0]
        if tree.observed:
            return None
        if (
            tree.edges is not None
            and math.isfinite(tree.edges[0])
            and math.isfinite(tree.edges[-1])
        ):
            whole = all(float(edge).is_integer() for edge in tree.edges)
            return Domain(cuts=tuple(int(e) if whole else float(e) for e in tree.edges))
        return Domain(values=tuple(tree.leaves))

    def require_dimension(self, name: str) -> Column:
        """Return a column that a table may be crossed by; refuse one that names respondents.

        >>> Schema((Column("name", Role.IDENTIFIER),)).require_dimension("name")
        Traceback (most recent call last):
        discreet.errors.InputError: column 'name' identifies respondents ...
        """
        column = self[name]
        if column.role is Role.IDENTIFIER or name == self.unit:
            raise InputError(
                f"column {name!r} identifies respondents and cannot be a dimension",
                code="identifier-dimension",
                hint="cross by columns that many respondents share, or say that it is one: role quasi",
                column=name,
            )
        return column

    def hierarchies(self, name: str) -> tuple[Hierarchy, ...]:
        """Return the hierarchies of a column; empty if it has none."""
        return self[name].hierarchies

    def replace(
        self,
        *,
        roles: Mapping[str, Role | str] | None = None,
        types: Mapping[str, Type | str] | None = None,
        hierarchies: Mapping[str, Hierarchy | Sequence[Hierarchy]] | None = None,
        unit: str | None = None,
        weight: str | None = None,
        rest: Role | str | None = None,
        vouch: Sequence[str] = (),
        domains: Mapping[str, object] | None = None,
        bounds: Mapping[str, Sequence[float]] | None = None,
        orders: Mapping[str, tuple[str, ...]] | None = None,
    ) -> Schema:
        """Return the schema with what the curator said in place of what was guessed."""
        changes: dict[str, dict[str, object]] = {name: {} for name in self.names}
        if weight is not None and not self[weight].decided:
            changes[self[weight].name] |= {"role": Role.OTHER, "decided": True, "reason": "weight"}
        if unit is not None and not self[unit].decided:
            # Whoever could follow a unit from record to record would know more than one record.
            changes[self[unit].name] |= {"role": Role.IDENTIFIER, "decided": True, "reason": "unit"}
        for name, role in (roles or {}).items():
            changes[self[name].name] |= {
                "role": _member(Role, role, name),
                "reason": "given",
                "decided": True,
            }
        if rest is not None:
            wanted = _member(Role, rest, "rest")
            for column in self.columns:
                open_ = not column.decided and "role" not in changes[column.name]
                if open_ and column.role is not Role.IDENTIFIER:
                    changes[column.name] |= {"role": wanted, "reason": "rest", "decided": True}
        for name in (vouch,) if isinstance(vouch, str) else vouch:
            changes[self[name].name]["vouched"] = True
        for name, domain in declared_domains(domains, bounds).items():
            changes[self[name].name]["domain"] = domain
        for name, kind in (types or {}).items():
            changes[self[name].name]["type"] = _member(Type, kind, name)
        for name, order in (orders or {}).items():
            changes[self[name].name]["order"] = order
        for name, given in (hierarchies or {}).items():
            several = (given,) if isinstance(given, Hierarchy) else tuple(given)
            changes[self[name].name]["hierarchies"] = several
        columns = tuple(dataclasses.replace(c, **changes[c.name]) for c in self.columns)  # type: ignore[arg-type]  # checked above
        return Schema(columns, unit or self.unit, weight or self.weight)


def _member(kind: type[Role] | type[Type], value: str, column: str) -> Role | Type:
    try:
        return kind(value)
    except ValueError:
        word = kind.__name__.lower()
        guess = nearest(str(value), [m.value for m in kind])
        raise InputError(
            f"column {column!r} cannot have the {word} {value!r}",
            code=f"unknown-{word}",
            hint=f"write {guess!r}"
            if guess
            else "choose one of " + ", ".join(m.value for m in kind),
            column=column,
        ) from None
