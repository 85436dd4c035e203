"""Input perturbation at work: noise once on the records, then any question about them."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from discreet.data.engines.base import ROW, Relation
from discreet.data.engines.changes import attach
from discreet.data.sql.query import Query, from_clause, raw_query
from discreet.dp.mechanisms import FAMILY, Noise
from discreet.errors import InputError, RefusedError
from discreet.ledger.entry import Draft, Entry
from discreet.queries.guards._base import Keeper, Proposal, Protected, aggregate
from discreet.queries.guards._noisy_answers import (
    Budgets,
    bounded_rows,
    cut_notice,
    row_digest,
)
from discreet.queries.guards._profiles import sorted_places

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.ledger.store import Ledger
    from discreet.queries.guards._noise_settings import NoiseSettings

__all__ = ["NoisyRecords"]

_CURATOR = "curator"
#: Whose record a row of noisy values is, as the ledger keeps it.
_NAME = "__name"


class NoisyRecords(Keeper):
    """Answers from records whose confidential values carry noise that is drawn once."""

    def __init__(self, guard: NoiseSettings, data: Protected, ledger: Ledger | None) -> None:
        self._guard, self._data, self._ledger = guard, data, ledger
        self._columns = sorted(c for c in data.confidential if c in guard.bounds)
        if not self._columns:
            raise InputError(
                "perturbation: no confidential column has bounds",
                code="missing-parameter",
                parameter="bounds",
                hint="write bounds={'salary': (0, 500_000)}",
            )
        self._budgets = Budgets(guard, data, ledger)
        mechanism = FAMILY.get(guard.mechanism)()
        share = guard.epsilon / guard.contribution
        share /= math.sqrt(len(self._columns)) if mechanism.is_concentrated else len(self._columns)
        self._noises: dict[str, Noise] = {}
        for name in self._columns:
            low, high = guard.bounds[name]
            steps = math.ceil((high - low) / self._grain(name))
            self._noises[name] = mechanism.noise(epsilon=share, sensitivity=steps)
        self._bounded, is_cut = bounded_rows(data, guard.contribution, ledger)
        if is_cut:
            self.notices = (cut_notice(data, self._bounded, guard.contribution),)
        self._rows = self._attached(self._drawn())

    def _grain(self, name: str) -> float:
        whole = self._data.catalog[name].kind == "integer"
        return self._guard.grain.get(name, 1.0 if whole else 0.01)

    # -- noise on the records --------------------------------------------------------------------
    def _numbered(self) -> tuple[Relation, pa.Table]:
        """Return the records that count, numbered, and whose they are.

        Noise belongs to a unit and the place of a record among the unit's own, in a keyed order,
        never to a place in the data; the name that it is kept under is a keyed digest.
        """
        import pyarrow as pa

        engine = self._data.engine
        unit = self._data.catalog.unit
        rows = engine.number(self._bounded)
        own = row_digest(self._data, self._ledger)
        owner = own.copy() if unit is None else row_digest(self._data, self._ledger, (unit,))
        named = [exp.column(name, quoted=True) for name in (ROW, *self._columns)]
        select = exp.select(*named, exp.alias_(owner, "__owner"), exp.alias_(own, "__own"))
        table = engine.fetch(select.from_(from_clause(rows.query, "t")))
        table = table.take(sorted_places([table.column(n) for n in ("__owner", "__own", ROW)]))
        owners = np.array(table.column("__owner").to_pylist(), object)
        first = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]]) if owners.size else owners
        starts = np.repeat(first, np.diff(np.r_[first, owners.size])) if owners.size else owners
        places = np.arange(owners.size) - starts.astype(np.int64)
        names = [f"{owner} {place}" for owner, place in zip(owners, places, strict=True)]
        return rows, table.append_column(_NAME, pa.array(names, pa.string()))

    def _drawn(self) -> pa.Table:
        """Return the noisy columns, drawn now or recorded earlier: never drawn twice."""
        import pyarrow as pa

        text = json.dumps([self._data.name, self._guard.settings()], sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if self._ledger is not None:
            known = self._ledger.find(self._data.name, _CURATOR, digest, "input")
            if known is not None:
                self._require_same(known)
                with pa.ipc.open_stream(known.answer) as reader:
                    return reader.read_all()
        _, table = self._numbered()
        columns = {name: self._noisy(name, table) for name in self._columns}
        made = pa.table({**columns, _NAME: table.column(_NAME)})
        if self._ledger is not None:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, made.schema) as writer:
                writer.write_table(made)
            events: dict[str, int] = {}
            for noise in self._noises.values():
                events[noise.event] = events.get(noise.event, 0) + self._guard.contribution
            draft = Draft(
                self._data.name,
                _CURATOR,
                "input",
                "noise on the records",
                digest,
                "input",
                {"snapshot": self._data.snapshot} if self._data.snapshot else {},
                answer=bytes(sink.getvalue()),
            )
            charge = self._budgets.charges(_CURATOR, events)[1]
            entry, _ = self._ledger.record(draft, [charge])
            with pa.ipc.open_stream(entry.answer) as reader:
                return reader.read_all()
        return made

    def _require_same(self, drawn: Entry) -> None:
        """Refuse noise that was drawn for another snapshot: its values are not those of today."""
        assert self._ledger is not None
        own = [s for s in self._ledger.snapshots() if s.dataset == self._data.name]
        # Noise of a time when its entry did not say so belongs to the first snapshot.
        of = drawn.details.get("snapshot", own[0].identity if own else "")
        if of and self._data.snapshot and of != self._data.snapshot:
            name = next((s.name for s in own if s.identity == of), "another snapshot")
            raise RefusedError(
                f"noise was drawn for the records of {name!r}, and others' values are not in it",
                code="changed-data",
                hint=f"open the records of {name!r}, or answer about the new ones with "
                'mode="output"; other settings of the noise are drawn anew, and charged',
            )

    def _noisy(self, name: str, table: pa.Table) -> Any:
        import pyarrow as pa

        grain = self._grain(name)
        low, high = self._guard.bounds[name]
        values = np.asarray(
            table.column(name).cast(pa.float64(), safe=False).to_numpy(), np.float64
        )
        # A record without a value gets one, so that nobody can tell which have none.
        cut = np.clip(np.where(np.isnan(values), (low + high) / 2, values), low, high)
        steps = np.round(cut / grain).astype(np.int64)
        noisy = np.array(self._noises[name].draw(steps.tolist()), dtype=np.int64)
        whole = self._data.catalog[name].kind == "integer" and grain == 1.0
        return pa.array(noisy if whole else noisy * grain)

    def _attached(self, columns: pa.Table) -> Relation:
        rows, table = self._numbered()
        # Both in the order of names: who a record belongs to decides, not where it stands.
        mine = sorted_places([table.column(_NAME)])
        kept = columns.take(sorted_places([columns.column(_NAME)]))
        if not kept.column(_NAME).equals(table.column(_NAME).take(mine)):
            raise InputError(
                "the data has changed since noise was added to it",
                code="changed-data",
                hint='open the records that were there, or answer about the new ones with mode="output"',
            )
        made = kept.drop_columns([_NAME]).append_column(ROW, table.column(ROW).take(mine))
        engine = self._data.engine
        return engine.materialize(attach(rows, made))

    # -- answering -------------------------------------------------------------------------------
    def answer(self, query: Query, user: str, ready: Any = None) -> Proposal:
        self._check(query)
        columns: dict[str, exp.Expression] = {}
        for number, measure in enumerate(query.measures):
            columns[f"m{number}"] = aggregate(measure)
            columns[f"n{number}"] = exp.Count(
                this=exp.Star() if measure.argument is None else measure.total()
            )
        table = self._data.engine.fetch(raw_query(query, self._rows.query, columns))
        return Proposal("noisy", self._shown(query, table), error_95=self._errors(query, table))

    def _check(self, query: Query) -> None:
        used = query.predicate_columns.union(
            *(m.columns for m in query.measures), *(k.columns for k in query.keys)
        )
        bare = sorted((used & self._data.confidential) - set(self._columns))
        if bare:
            raise RefusedError(
                f"column {bare[0]!r} carries no noise and is not available",
                code="missing-bounds",
                hint="use columns that carry noise, or COUNT(*)",
            )

    def _shown(self, query: Query, table: pa.Table) -> pa.Table:
        import pyarrow as pa

        columns: dict[str, Any] = {f"k{n}": table.column(f"k{n}") for n in range(len(query.keys))}
        for number, measure in enumerate(query.measures):
            column = table.column(f"m{number}")
            noise = self._noises.get(measure.column or "")
            if pa.types.is_decimal(column.type):
                column = column.cast(pa.int64() if measure.kind == "integer" else pa.float64())
            if noise is not None and measure.function.startswith(("var", "stddev")):
                # The noise adds its own variance, which everybody may know and take off.
                extra = (noise.deviation * self._grain(str(measure.column))) ** 2
                values = np.asarray(column.to_numpy(), np.float64)
                squared = values**2 if measure.function.startswith("stddev") else values
                corrected = np.maximum(squared - extra, 0.0)
                is_root = measure.function.startswith("stddev")
                column = pa.array(np.sqrt(corrected) if is_root else corrected)
            columns[f"m{number}"] = column
        return pa.table(columns)

    def _errors(self, query: Query, table: pa.Table) -> dict[str, float]:
        found = {}
        for number, measure in enumerate(query.measures):
            noise = self._noises.get(measure.column or "")
            if noise is None or measure.function not in ("sum", "avg") or not table.num_rows:
                continue
            counts = table.column(f"n{number}").to_numpy().astype(np.float64)
            each = 1.959964 * noise.deviation * self._grain(str(measure.column))
            if measure.function == "sum":
                found[f"m{number}"] = float(each * math.sqrt(counts.max()))
            else:
                found[f"m{number}"] = float(each / math.sqrt(max(counts.min(), 1.0)))
        return found

    def expect(self, query: Query, user: str) -> dict[str, Any]:
        try:
            self._check(query)
        except RefusedError as error:
            return {"kind": "refused", "reason": error.message, "instead": error.hint or ""}
        return {"cost": {"epsilon": 0.0}}

    def close(self) -> None:
        """Drop the noisy records."""
        self._data.engine.drop(self._rows)
