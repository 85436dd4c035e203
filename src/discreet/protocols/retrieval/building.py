"""From a relation to a published table: rows are read once, in batches."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from discreet.data.atomic import atomic_directory, working_folder
from discreet.data.dataset import Dataset
from discreet.data.schema import Role
from discreet.errors import InputError, RefusedError, nearest
from discreet.protocols.retrieval.digests import salt_of
from discreet.protocols.retrieval.entries import kind_of, plain_rows
from discreet.protocols.retrieval.matrix_shape import Layout
from discreet.protocols.retrieval.published import STATEMENT, Published, versions
from discreet.protocols.retrieval.schemes import FAMILY
from discreet.protocols.retrieval.signing import Publisher
from discreet.protocols.retrieval.statement import Arithmetic, Statement
from discreet.protocols.retrieval.writing import Entries, Writer

__all__ = ["MAIN", "build", "chosen_columns", "part_name", "require_limit", "require_publishable"]

#: The part of a table's own key.
MAIN = "main"
#: Room for changes before a table is built again.
PLACES = 4096


def build(
    dataset: Dataset,
    *,
    key: str,
    folder: Path,
    publisher: Publisher,
    columns: Sequence[str] | None,
    secondary: dict[str, int],
    schemes: tuple[str, ...],
    name: str | None,
    width: int | None,
    places: int | None,
    layout: Layout,
    expires: float | None,
) -> Published:
    """Publish a dataset: see `RetrievalTable.build`."""
    _require_options(places, layout, expires)
    names = chosen_columns(dataset, key, columns, secondary)
    arithmetics = _arithmetics(schemes)
    version = max(versions(folder), default=0) + 1
    with (
        _overtaken(folder, version),
        working_folder("discreet-retrieval") as spool,
        atomic_directory(folder / f"v{version}") as stage,
    ):
        kinds, entries = _read(dataset, names, secondary, spool)
        rows = len(entries[MAIN].keys)
        writer = Writer(
            folder=stage,
            table=name or dataset.name,
            version=version,
            publisher=publisher,
            seed=salt_of(name or dataset.name, "matrix", version, 0),
            arithmetics=arithmetics,
            layout=layout,
        )
        room = places if places is not None else min(PLACES, max(rows, 64))
        limits = {MAIN: (key, 1)} | {
            part_name(column): (column, limit) for column, limit in secondary.items()
        }
        parts = tuple(
            writer.part(
                part,
                column,
                kinds[column],
                limit,
                entries[part],
                width=width if part == MAIN else None,
                places=room,
            )
            for part, (column, limit) in limits.items()
        )
        statement = Statement(
            table=writer.table,
            version=version,
            base=version,
            rows=rows,
            columns=tuple((column, kinds[column]) for column in names),
            parts=parts,
            files=writer.files,
            seed=writer.seed.hex(),
            publisher=publisher.reader.public,
            expires=expires,
        )
        (stage / STATEMENT).write_bytes(statement.signed(publisher))
    return Published(folder / f"v{version}", statement)


@contextlib.contextmanager
def _overtaken(folder: Path, version: int) -> Iterator[None]:
    """Say so if somebody else published the same version meanwhile."""
    try:
        yield
    except InputError as error:
        if error.code == "foreign-files" and version in versions(folder):
            raise InputError(
                f"another build published version {version} meanwhile, and this one is not published",
                code="version-taken",
                hint="run it again, if its rows are the newer ones",
                file=folder,
            ) from error
        raise


def _require_options(places: int | None, layout: str, expires: float | None) -> None:
    """Refuse options with which a table could be built and not be asked."""
    if places is not None and not 1 <= places <= 1 << 16:
        raise InputError(
            f"a table has room for 1 to 65,536 changes, and places is {places}",
            code="retrieval-places",
            hint="write places=4096, or leave it out",
        )
    if layout not in get_args(Layout):
        raise InputError(
            f"there is no layout {layout!r}",
            code="retrieval-layout",
            hint=f"choose one of {', '.join(get_args(Layout))}",
        )
    if expires is not None and not 0 <= expires < float("inf"):
        raise InputError(
            "a version expires some seconds after the next one",
            code="retrieval-expires",
            hint="write expires=86400 for a day, or leave it out",
        )


def part_name(column: str) -> str:
    """Return the name of the part of a secondary key, which is also part of names of files."""
    return "by-" + "".join(c if c.isalnum() and c.isascii() else f"_{ord(c):x}" for c in column)


def chosen_columns(
    dataset: Dataset, key: str, columns: Sequence[str] | None, secondary: dict[str, int]
) -> list[str]:
    """Return the columns that are published, the key first."""
    wanted = list(dataset.columns if columns is None else columns)
    names = [key, *(name for name in dict.fromkeys(wanted) if name != key)]
    for name in (*names, *secondary):
        if name not in dataset.columns:
            guess = nearest(name, dataset.columns)
            raise InputError(
                f"there is no column {name!r}",
                code="unknown-column",
                column=name,
                hint=f"write {guess!r}" if guess else "choose of " + ", ".join(dataset.columns),
            )
    for name, limit in secondary.items():
        if name not in names or name == key or not 1 <= limit <= 1024:
            raise InputError(
                f"the secondary key {name!r} must be a published column besides the key, with 1 to "
                f"1024 rows for each value",
                code="retrieval-secondary",
                column=name,
                hint=f"write secondary: {{{name}: 16}} and list {name} among the columns",
            )
    return names


def require_publishable(dataset: Dataset, names: Sequence[str], *, publishable: bool) -> None:
    """Refuse columns that nobody said may be published.

    Whoever looks up learns at least one row, and may look up as many as there are: private retrieval
    protects who asks, never those the rows are about.
    """
    if not isinstance(publishable, bool):  # the text "false" would be taken for a yes
        raise InputError(
            f"publishable must be True or False, found {publishable!r}",
            code="parameter-type",
            hint="write publishable=True to vouch, without quotes",
        )
    undecided = set(dataset.schema.undecided)
    risky = [
        name
        for name in names
        if dataset.schema[name].role in (Role.CONFIDENTIAL, Role.IDENTIFIER) or name in undecided
    ]
    if risky and not publishable:
        raise RefusedError(
            f"{', '.join(risky)}: identifying, confidential or undecided, and everybody may look up every "
            "row of a table for retrieval: it protects who asks, not those whom the rows are about",
            code="not-publishable",
            hint="leave the columns out, publish a protected release instead, or vouch with "
            "publishable: true",
        )


def _arithmetics(schemes: tuple[str, ...]) -> tuple[Arithmetic, ...]:
    wanted = {FAMILY.get(scheme).arithmetic for scheme in schemes}
    found = tuple(one for one in ("xor", "add") if one in wanted)
    if not found:
        raise InputError(
            "no scheme is named", code="no-scheme", hint="write schemes: [dpf] or [simple-pir]"
        )
    return found


def _read(
    dataset: Dataset, names: list[str], secondary: dict[str, int], spool: Path
) -> tuple[dict[str, str], dict[str, Entries]]:
    """Read the rows once; return how columns are written, and the entries of each part."""
    relation = dataset.engine.project(dataset.relation, names)
    kinds: dict[str, str] = {}
    main = Entries(spool / MAIN)
    groups: dict[str, dict[str, list[Any]]] = {column: {} for column in secondary}
    with contextlib.closing(main):
        for batch in dataset.engine.batches(relation):
            kinds = kinds or {name: kind_of(name, batch.schema.field(name).type) for name in names}
            for row in plain_rows(batch, list(kinds.values())):
                if row[0] is None:
                    raise InputError(
                        f"column {names[0]!r} has no value in some row, and is the key",
                        code="missing-key",
                        column=names[0],
                        hint="leave such rows out, or choose another key",
                    )
                main.add(row[0], row[1:])
                for column, group in groups.items():
                    value = row[names.index(column)]
                    if value is not None:
                        group.setdefault(json.dumps(value), []).append(row[0])
    if not main.keys:
        raise InputError("there are no rows to publish", code="empty-table", hint="check the data")
    entries = {MAIN: main}
    for column, limit in secondary.items():
        entries[part_name(column)] = _grouped(column, limit, groups[column], spool)
    return kinds, entries


def _grouped(column: str, limit: int, group: dict[str, list[Any]], spool: Path) -> Entries:
    if not group:
        raise InputError(
            f"column {column!r} has no value in any row, and is a secondary key",
            code="empty-secondary",
            column=column,
            hint="leave it out of `secondary`",
        )
    for keys in group.values():
        require_limit(column, len(keys), limit)
    made = Entries(spool / part_name(column))
    for value, keys in sorted(group.items()):
        # A list is as long as any: keys in order, so that it does not depend on the engine's.
        made.add(json.loads(value), sorted(keys, key=json.dumps))
    made.close()
    return made


def require_limit(column: str, found: int, limit: int) -> None:
    """Refuse more rows for one value of a secondary key than a look-up fetches."""
    if found > limit:
        raise InputError(
            f"a value of {column!r} has {found} rows, and a look-up fetches {limit}",
            code="secondary-limit",
            column=column,
            hint=f"write secondary: {{{column}: {found}}} or more",
        )
