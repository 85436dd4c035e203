"""The next version of a published table: changes go into the delta table, nothing is rebuilt."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.data.atomic import atomic_directory
from discreet.data.dataset import Dataset, as_dataset
from discreet.errors import InfeasibleError, InputError
from discreet.protocols.retrieval.building import MAIN, require_limit, require_publishable
from discreet.protocols.retrieval.digests import Digests
from discreet.protocols.retrieval.entries import encode_entry, key_of, kind_of, plain_rows
from discreet.protocols.retrieval.hints import old_table
from discreet.protocols.retrieval.published import STATEMENT, Published, versions
from discreet.protocols.retrieval.records import unpack_record, width_for
from discreet.protocols.retrieval.schemes._base import Bytes
from discreet.protocols.retrieval.schemes._panels import slots_in
from discreet.protocols.retrieval.signing import Publisher
from discreet.protocols.retrieval.statement import Arithmetic, Part, hint_file
from discreet.protocols.retrieval.writing import Writer

__all__ = ["update"]

# Any, throughout: keys and values as JSON holds them. Changes of a part, by the key as JSON.
Changes = dict[str, tuple[Any, Any]]


def update(
    table: Published,
    changed: Any,
    *,
    deleted: Sequence[Any],
    publisher: Publisher,
    publishable: bool,
) -> Published:
    """Publish the next version: see `RetrievalTable.update`."""
    state = table.statement
    if publisher.reader.public != state.publisher:
        raise InputError(
            "the key is not that of the table's publisher",
            code="publisher-key",
            hint="use the key file that the table was built with",
        )
    if any(part.is_old for part in state.parts):
        raise old_table(repr(state.table))
    newest = max(versions(table.folder.parent))
    if newest != state.version:
        raise InputError(
            f"version {state.version} is not the newest, which is {newest}",
            code="unknown-version",
            hint="open the newest version and update that",
        )
    rows = _rows(table, changed, deleted, publishable=publishable)
    by_part: dict[str, Changes] = {MAIN: rows}
    for part in state.parts:
        if part.name != MAIN:
            by_part[part.name] = _secondary(table, part, rows)
    version = state.version + 1
    with atomic_directory(table.folder.parent / f"v{version}") as stage:
        arithmetics: tuple[Arithmetic, ...] = state.arithmetics  # type: ignore[assignment]  # as built
        writer = Writer(
            stage, state.table, version, publisher, bytes.fromhex(state.seed), arithmetics
        )
        parts = []
        for part in state.parts:
            entries = _merged(table, part, by_part[part.name])
            parts.append(writer.delta(part, entries, state.base, _before(table, part)))
            for block in ("filter", "directory"):
                for arithmetic in arithmetics:
                    file = part.file(block, arithmetic, state.base, version)
                    for one in (file, hint_file(file)):
                        if one in state.files:
                            _link(table, one, stage / one)
                            writer.files[one] = state.files[one]
        added = sum(
            (value is not None) - (table.lookup(MAIN, key) is not None)
            for key, value in rows.values()
        )
        made = dataclasses.replace(
            state,
            version=version,
            rows=state.rows + added,
            parts=tuple(parts),
            files=writer.files,
        )
        (stage / STATEMENT).write_bytes(made.signed(publisher))
    return Published(table.folder.parent / f"v{version}", made)


def _before(table: Published, part: Part) -> Bytes | None:
    """Return the delta table of this version, where clients keep a hint of it."""
    if "add" not in part.filters:
        return None
    return slots_in(part.shapes("add")["delta"], table.block(part, "delta", "add"))


def _link(table: Published, file: str, target: Any) -> None:
    # The same bytes under another name: nothing is copied where the file system can do that.
    try:
        os.link(table.folder / file, target)
    except OSError:
        shutil.copyfile(table.folder / file, target)


def _rows(table: Published, changed: Any, deleted: Sequence[Any], *, publishable: bool) -> Changes:
    """Return the new value of every changed key; None for those that are gone."""
    names = [name for name, _ in table.statement.columns]
    kinds = [kind for _, kind in table.statement.columns]
    found: Changes = {}
    if changed is not None:
        dataset = changed if isinstance(changed, Dataset) else as_dataset(changed)
        dataset.relation.require(*names)
        require_publishable(dataset, names, publishable=publishable)
        relation = dataset.engine.project(dataset.relation, names)
        for batch in dataset.engine.batches(relation):
            for name, kind in table.statement.columns:
                if (other := kind_of(name, batch.schema.field(name).type)) != kind:
                    raise InputError(
                        f"column {name!r} is published as {kind} and is {other} in the changes",
                        code="retrieval-type",
                        column=name,
                        hint=f"cast it to {kind}",
                    )
            for row in plain_rows(batch, kinds):
                _note(found, row[0], row[1:], names[0])
    for key in deleted:
        wanted = key_of(key, kinds[0], names[0])
        if table.lookup(MAIN, wanted) is None:
            raise InputError(
                f"there is no key {wanted!r} to delete",
                code="unknown-key",
                column=names[0],
                hint="write the key as the table has it, or leave it out",
            )
        _note(found, wanted, None, names[0])
    if not found:
        raise InputError(
            "nothing is changed", code="no-changes", hint="give changed rows or deleted keys"
        )
    return found


def _note(found: Changes, key: Any, value: Any, column: str) -> None:
    written = json.dumps(key)
    if key is None or written in found:
        raise InputError(
            f"the key {key!r} is missing or changed twice",
            code="duplicate-key",
            column=column,
            hint="give each changed row once",
        )
    found[written] = (key, value)


def _secondary(table: Published, part: Part, rows: Changes) -> Changes:
    """Return the new lists of keys of a secondary key."""
    names = [name for name, _ in table.statement.columns]
    place = names.index(part.column) - 1
    lists: dict[str, list[Any]] = {}

    def keys_of(value: Any) -> list[Any]:
        written = json.dumps(value)
        if written not in lists:
            lists[written] = list(table.lookup(part.name, value) or ())
        return lists[written]

    for key, value in rows.values():
        before = table.lookup(MAIN, key)
        old = None if before is None else before[place]
        new = None if value is None else value[place]
        if old == new:
            continue
        if old is not None:
            keys_of(old).remove(key)
        if new is not None:
            keys_of(new).append(key)
            require_limit(part.column, len(keys_of(new)), part.limit)
    return {
        written: (json.loads(written), sorted(keys, key=json.dumps) or None)
        for written, keys in lists.items()
    }


def _merged(table: Published, part: Part, changes: Changes) -> Mapping[int, bytes]:
    """Return all changes since the base version, by fingerprint; the newest of each key wins."""
    shape = part.shapes("xor" if "xor" in part.filters else "add")["delta"]
    kept: dict[int, bytes] = {}
    for place, fingerprint in enumerate(part.changed):
        found = unpack_record(table.slots_sum(part, "delta", [place]))
        assert found is not None  # our own file
        kept[fingerprint] = found[1]
    digests = Digests.of([key for key, _ in changes.values()], bytes.fromhex(part.salt))
    for (key, value), fingerprint in zip(
        changes.values(), digests.fingerprints.tolist(), strict=True
    ):
        entry = encode_entry(key, value)
        width_for(len(entry), part.width, built=True)
        kept[fingerprint] = entry
    if len(kept) > shape.slots:
        raise InfeasibleError(
            f"{len(kept)} rows changed since the table was built, and {shape.slots} may",
            code="delta-full",
            hint="build the table again from all of its rows",
        )
    return kept
