"""What the parties of a joint computation agreed on: the section `joint` of a policy."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import operator
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from discreet.audit.rules import Rule
from discreet.audit.rules._base import LevelBound
from discreet.data.hierarchy import Hierarchy
from discreet.data.sql import Catalog
from discreet.data.sql.query import Field
from discreet.errors import InputError
from discreet.protocols.arithmetic.fixed_point import EXACT, require_room
from discreet.protocols.joint.computation import Computation
from discreet.protocols.transport.client import address_of
from discreet.protocols.transport.identity import certificate_pin, read_certificates
from discreet.protocols.transport.session import Agreement
from discreet.registry import Record, parameter
from discreet.report import plain

__all__ = ["RECORDS", "TOTAL", "JointPolicy", "MeasureBound", "PartyEntry"]

_NODES = 3
_MOST_CELLS = 1_000_000
_MOST_MARGINS = 100_000
#: What a total has in the place of a code.
TOTAL = "Total"
#: Stands among measures for the records themselves: a contributor may have many of a cell's.
RECORDS = "*"
_MOST_OWNERS = 16


@dataclasses.dataclass(frozen=True)
class PartyEntry(Record):
    """One party: where it listens, and the certificate by which the others know it."""

    spelled: ClassVar[str] = "certificate"
    certificate: str = parameter(help="its .crt file, from `discreet key new --for party`")
    address: str | None = parameter(None, help="host:port; an analyst needs none")


@dataclasses.dataclass(frozen=True)
class MeasureBound(Record):
    """How large a measure can be: public, and checked by every owner before it takes part."""

    spelled: ClassVar[str] = "bound"
    bound: float = parameter(
        help="no owner's sum over all its records exceeds this", above=0, high=1e30
    )
    decimals: int = parameter(0, help="digits after the point that are kept", low=0, high=6)

    @property
    def scale(self) -> int:
        """Whole units in one."""
        return int(10**self.decimals)


@dataclasses.dataclass(frozen=True)
class JointPolicy(Record):
    """Who computes together, on which columns, under which rules.

    Every party holds the same section; a session between parties whose sections or certificates
    differ is refused.
    """

    relation: str = parameter(help="name of the joint relation in SQL")
    parties: Mapping[str, PartyEntry] = parameter(help="every party: address and certificate")
    owners: tuple[str, ...] = parameter(help="the parties that hold records")
    nodes: tuple[str, ...] = parameter(
        help="the three parties that compute on shares: owners, or owners and an independent one"
    )
    analysts: tuple[str, ...] = parameter(help="the parties that may ask")
    keys: Mapping[str, tuple[str, ...]] = parameter(
        help="columns to group by, each with all its codes: who has which code stays hidden"
    )
    rules: tuple[Rule, ...] = parameter(help="what makes a cell sensitive")
    hierarchies: Mapping[str, Mapping[str, tuple[str, ...]]] = parameter(
        {}, help="for keys with subtotals: each subtotal and what it adds up, codes or subtotals"
    )
    measures: Mapping[str, MeasureBound] = parameter({}, help="columns that may be summed")
    together: tuple[tuple[str, ...], ...] | None = parameter(
        None,
        help="measures in groups that have nothing to do with each other; those of a group are "
        "withheld together, and by default all are one group",
    )
    conditions: Mapping[str, Literal["text", "integer", "number", "boolean", "date"]] = parameter(
        {}, help="columns that WHERE may use, and their type"
    )
    unit: str | None = parameter(
        None, help="column that tells contributors; else each record is one"
    )
    request: str | None = parameter(
        None, help="column that is true for contributors who asked for protection"
    )
    collusion: int = parameter(
        1, help="how many owners may put their parts together to learn of the others", low=1
    )
    records: int = parameter(
        1 << 31, help="no owner has more records than this", low=1, high=1 << 40
    )
    dealer: str | None = parameter(
        None, help="a party without records that deals masks, compares codes, adds masked parts"
    )
    computations: Mapping[str, Computation] = parameter(
        {}, help="what else may be computed, by name: sums, products, regressions, clusters"
    )
    budget: float | None = parameter(
        None, help="epsilon that all noisy computations may cost together", above=0
    )
    delta: float = parameter(1e-6, help="delta of that budget", above=0, high=0.1)
    time_limit: float = parameter(60.0, help="seconds to wait for a party", above=0, high=3600)
    #: Where certificates are found: the folder of the policy, never what the policy says.
    folder: str = dataclasses.field(default=".", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for role, names in {
            "owners": self.owners,
            "nodes": self.nodes,
            "analysts": self.analysts,
        }.items():
            for name in names:
                if name not in self.parties:
                    raise _wrong(role, f"{name!r} is not among the parties", "add it to parties")
            if len(set(names)) != len(names):
                raise _wrong(role, "a party is named twice", "name it once")
        if len(self.nodes) != _NODES:
            raise _wrong("nodes", f"{len(self.nodes)} parties compute", "name exactly three")
        if not 2 <= len(self.owners) <= _MOST_OWNERS:
            raise _wrong("owners", f"there are {len(self.owners)}", f"name 2 to {_MOST_OWNERS}")
        if self.collusion >= len(self.owners):
            raise _wrong("collusion", "no owner is left to protect", "tolerate fewer")
        if self.dealer is not None and (
            self.dealer not in self.parties or self.dealer in {*self.owners, *self.nodes}
        ):
            raise _wrong("dealer", "it is no party, or it is an owner or a node",
                         "name a party that has no other part")  # fmt: skip
        dealers = set() if self.dealer is None else {self.dealer}
        places: dict[tuple[str, int], str] = {}
        for name in sorted({*self.owners, *self.nodes} | dealers):
            address = self.parties[name].address
            if address is None:
                raise _wrong("parties", f"{name!r} has no address", "give it as host:port")
            other = places.setdefault(address_of(address), name)
            if other != name:
                raise _wrong("parties", f"{other!r} and {name!r} listen at the same address",
                             "give each its own")  # fmt: skip
        for name, codes in self.keys.items():
            if not codes or len(set(codes)) != len(codes) or TOTAL in codes:
                raise _wrong("keys", f"the codes of {name!r} are none, or twice, or 'Total'",
                             "list every code once; 'Total' is the name of totals")  # fmt: skip
            if any(unicodedata.normalize("NFC", code) != code for code in codes):
                raise _wrong("keys", f"a code of {name!r} has letters and accents apart",
                             "write codes in Unicode's composed form (NFC), as records are read")  # fmt: skip
        for name in self.hierarchies:
            if name not in self.keys:
                raise _wrong("hierarchies", f"{name!r} is no key", "name keys only")
            self.tree(name)
        for rule in self.rules:
            if not rule.inequalities():
                raise _wrong("rules", f"{rule.name} cannot be judged on shares",
                             "choose minimum-frequency, p-percent, pq, dominance, request or "
                             "zero-cells without empty")  # fmt: skip
            asks = any(form.requested for form in rule.inequalities())
            if asks and self.request is None:
                raise _wrong("request", f"the rule {rule.name} needs to know who asked",
                             "name the column that is true for those who asked")  # fmt: skip
        if self.together is not None:
            named = [name for group in self.together for name in group]
            if sorted(named) != sorted(self.measures):
                raise _wrong("together", "a measure is in no group, or in two, or is none",
                             "name every measure in one group, or leave it out")  # fmt: skip
        if not self.rules:
            raise _wrong("rules", "there is none", "name at least minimum-frequency")
        for name, computation in self.computations.items():
            computation.require(name, self)
        self._require_room()

    def _require_room(self) -> None:
        owners = len(self.owners)
        for rule in self.rules:
            for form in rule.inequalities():
                counted = abs(form.constant) + abs(form.count) * owners * self.records
                for measure in self._judged_bounds() if form.total else ():
                    whole = math.ceil(measure.bound * measure.scale) + 1
                    parts = abs(form.total) + sum(map(abs, form.largest)) + abs(form.requested)
                    require_room(counted + parts * owners * whole, what=f"the rule {rule.name}")
                require_room(counted, what=f"the rule {rule.name}")
        # Whatever the rules look at: a sum beyond this would be shown as another.
        for name, measure in self.measures.items():
            whole = owners * (math.ceil(measure.bound * measure.scale) + 1)
            require_room(whole, what=f"sums of {name}", limit=EXACT)

    def _judged_bounds(self) -> list[MeasureBound]:
        records = [] if self.unit is None else [self.measure(RECORDS)]
        return [*self.measures.values(), *records]

    def measure(self, name: str) -> MeasureBound:
        """Return how large a measure can be."""
        return MeasureBound(float(self.records)) if name == RECORDS else self.measures[name]

    @functools.cached_property
    def level_bound(self) -> LevelBound:
        """The most protection that any rule asks for."""
        return functools.reduce(operator.or_, (rule.level_bound() for rule in self.rules))

    def tree(self, key: str) -> Hierarchy:
        """Return the codes of a key with their subtotals and the total.

        A code that no subtotal names belongs to the total.
        """
        groups = self.hierarchies.get(key, {})
        above = {child: parent for parent, children in groups.items() for child in children}
        listed = [child for children in groups.values() for child in children]
        known = {*self.keys[key], *groups}
        if (
            len(above) < len(listed)
            or set(groups) & {*self.keys[key], TOTAL}
            or not set(listed) <= known
            or not all(groups.values())
        ):
            raise _wrong("hierarchies", f"{key!r} has a code that is unknown, in two subtotals, or a "
                         "subtotal without codes", "name every code once, as in keys")  # fmt: skip
        pairs = [(TOTAL, ""), *((code, above.get(code, TOTAL)) for code in sorted(groups))]
        pairs += [(code, above.get(code, TOTAL)) for code in self.keys[key]]
        return Hierarchy.from_pairs(pairs)

    def require_margins(self, keys: Sequence[str], measures: Sequence[str]) -> None:
        """See that cells can be compared with what others need for their protection."""
        level, owners = self.level_bound, len(self.owners)
        for name in measures:
            measure = self.measure(name)
            whole = owners * (math.ceil(measure.bound * measure.scale) + 1)
            added = math.ceil(level.amount * measure.scale)
            unit = level.share.denominator
            require_room(
                (unit + level.share.numerator) * whole + unit * added, what="a protection level"
            )
        cells = math.prod(len(self.tree(key)) for key in keys)
        if cells > _MOST_MARGINS:
            raise InputError(
                f"with all margins there are {cells:,} cells, at most {_MOST_MARGINS:,} can be "
                "protected at once",
                code="too-many-cells",
                hint="group by fewer columns, or leave out the margins",
            )

    @property
    def largest(self) -> int:
        """How many largest contributions the rules look at."""
        return max(len(form.largest) for rule in self.rules for form in rule.inequalities())

    def judged_with(self, measures: Sequence[str]) -> tuple[str, ...]:
        """Return some measures and all that are withheld together with them.

        Of pay = salary + bonus two sums tell the third. So what one of them withholds is withheld in
        all, whichever is asked for, now or later. Where contributors have several records, how many
        one of them has is judged too: a count would tell it.
        """
        groups = (tuple(self.measures),) if self.together is None else self.together
        found = {name for group in groups if set(group) & set(measures) for name in group}
        records = () if self.unit is None else (RECORDS,)
        return (*(name for name in self.measures if name in found), *records)

    def certificates(self) -> dict[str, str]:
        """Return the certificate of each party."""
        files = {name: entry.certificate for name, entry in self.parties.items()}
        return read_certificates(self.folder, files)

    def agreement(self) -> Agreement:
        """Return what sessions are bound to: everything stated here, and the certificates."""
        stated: dict[str, Any] = {
            item.name: plain(getattr(self, item.name))
            for item in self.parameters()
            if item.name not in ("folder", "parties", "rules", "computations")
        }
        stated["computations"] = {name: one.stated() for name, one in self.computations.items()}
        stated["rules"] = [[rule.name, plain(dataclasses.asdict(rule))] for rule in self.rules]
        stated["parties"] = {
            name: [self.parties[name].address, certificate_pin(pem)]
            for name, pem in self.certificates().items()
        }
        content = json.dumps(stated, sort_keys=True).encode()
        return Agreement(hashlib.sha256(content).hexdigest(), tuple(sorted(self.parties)))

    def pattern(self, keys: Sequence[str]) -> str:
        """Return a digest of everything that decides which cells of these keys are withheld."""
        stated = {
            "rules": sorted(
                json.dumps([rule.name, plain(dataclasses.asdict(rule))], sort_keys=True)
                for rule in self.rules
            ),
            "keys": [[key, list(self.keys[key])] for key in keys],
            "hierarchies": {key: plain(self.hierarchies.get(key)) for key in keys},
            "owners": sorted(self.owners),
            "collusion": self.collusion,
            "unit": self.unit,
            "request": self.request,
        }
        return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()

    def catalog(self) -> Catalog:
        """Return what SQL may name."""
        kinds = dict.fromkeys(self.measures, "number") | dict.fromkeys(self.keys, "text")
        kinds |= self.conditions  # a key that is a number says so there
        return Catalog(
            self.relation, tuple(Field(n, k) for n, k in sorted(kinds.items())), self.unit
        )

    def require_cells(self, keys: tuple[str, ...]) -> int:
        """Return the number of cells of a cross of keys, within what is computed at once."""
        cells = math.prod(len(self.keys[key]) for key in keys)
        if cells > _MOST_CELLS:
            raise InputError(
                f"the cross of {', '.join(keys)} has {cells:,} cells, at most {_MOST_CELLS:,} can be "
                "computed at once",
                code="too-many-cells",
                hint="group by fewer columns",
            )
        return cells


def _wrong(parameter: str, what: str, hint: str) -> InputError:
    return InputError(
        f"joint: {parameter}: {what}", code="joint-policy", hint=hint, parameter=parameter
    )
