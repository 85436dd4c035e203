"""Splitting a relation into fragments: each in its own database, in an order of its own."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.atomic import atomic_file
from discreet.data.dataset import as_dataset
from discreet.data.engines import Engine, connect
from discreet.data.schema import Role
from discreet.errors import InputError
from discreet.protocols.fragments.asking import Fragments
from discreet.protocols.fragments.clouds import ROW_ID, order_of
from discreet.protocols.fragments.colouring import colour
from discreet.protocols.fragments.telling import told_pairs
from discreet.randomness import Randomness

__all__ = ["fragment"]

_SEED = 32


def fragment(
    data: Any,
    clouds: Sequence[str],
    *,
    keys: str | Path,
    forbidden: Iterable[Collection[str]] = (),
    risk: Callable[[Sequence[str]], float] | None = None,
    largest_risk: float = 0.05,
) -> Fragments:
    """Put the columns of a relation into several databases, so that none holds a forbidden pair.

    Parameters
    ----------
    data
        A dataset or a frame. Any: of any library.
    clouds
        Addresses of databases, duckdb:///file.db or postgresql://…; each gets one table.
    keys
        Where the controller's file is written: which column is where, and the seeds of the orders.
        Only who has it can put records together again.
    forbidden
        Pairs of columns that no cloud may hold; an identifying column and a confidential one are
        such a pair by their roles, and so is each with a column that tells the other (a code and its
        name, income and a tax on it).
    risk
        Says how much a set of columns singles people out; no cloud holds quasi-identifiers above
        `largest_risk`.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> folder = tempfile.mkdtemp()
    >>> people = pd.DataFrame(
    ...     {"name": ["Ada", "Bob", "Cy"], "zip": ["1", "2", "2"], "debt": [5, 7, 9]}
    ... )
    >>> clouds = [f"duckdb:///{folder}/{name}.db" for name in "ab"]
    >>> found = fragment(people, clouds, keys=f"{folder}/keys.json", forbidden=[("name", "debt")])
    >>> found.columns
    (('name', 'zip'), ('debt',))
    >>> found.ask("SELECT zip, SUM(debt) AS debt FROM data GROUP BY zip ORDER BY zip").rows()[1]
    [('1', 5), ('2', 16)]
    """
    dataset = as_dataset(data)
    if Path(keys).exists():
        raise InputError(
            "the file of the controller exists", code="file-exists", file=Path(keys),
            hint="name another: without the old one its fragments cannot be put together",
        )  # fmt: skip
    if len(clouds) < 2 or len(set(clouds)) < len(clouds):
        raise InputError(
            "fragments need two databases or more", code="too-few-clouds",
            hint="name different databases",
        )  # fmt: skip
    roles = {column.name: column.role for column in dataset.schema.columns}
    if ROW_ID in {name.lower() for name in roles}:
        raise InputError(f"a column is called {ROW_ID}", code="column-exists", hint="rename it")
    identifying = [name for name, role in roles.items() if role is Role.IDENTIFIER]
    confidential = [name for name, role in roles.items() if role is Role.CONFIDENTIAL]
    pairs = [tuple(pair) for pair in forbidden] + list(itertools.product(identifying, confidential))
    quasi = {name for name, role in roles.items() if role is Role.QUASI}

    def allowed(columns: Sequence[str]) -> bool:
        known = [name for name in columns if name in quasi]
        return risk is None or len(known) < 2 or risk(known) <= largest_risk

    rows, rng = dataset.arrow(list(roles)), Randomness.secure()
    pairs += told_pairs({name: rows.column(name).to_pandas() for name in roles}, pairs)
    parts = colour(list(roles), pairs, len(clouds), allowed=allowed)
    for address in clouds:
        with contextlib.closing(connect(address)) as engine:
            _require_free(engine, dataset.name)
    stated: dict[str, Any] = {"relation": dataset.name, "records": len(rows), "clouds": []}
    for address, columns in zip(clouds, parts, strict=True):
        if not columns:
            continue
        seed = rng.bytes(_SEED)
        table = rows.select(columns).take(order_of(seed, len(rows)))
        table = table.append_column(ROW_ID, [np.arange(len(rows), dtype=np.int64)])
        with contextlib.closing(connect(address)) as engine:
            # Once more: two addresses may lead to one database, which would hold both fragments.
            _require_free(engine, dataset.name)
            engine.store(engine.load(table), dataset.name)
        stated["clouds"].append({"address": address, "columns": columns, "seed": seed.hex()})
    with atomic_file(keys, private=True) as file:
        file.write_text(json.dumps(stated, indent=2) + "\n", encoding="utf-8")
    return Fragments.open(keys)


def _require_free(engine: Engine, name: str) -> None:
    """Refuse to write over a table, be it of somebody else or the fragment before."""
    try:
        engine.table(name)
    except InputError:
        return
    raise InputError(
        f"a database has a table {name!r} already, or two addresses lead to it",
        code="table-exists",
        hint="name different databases, and drop the tables of an earlier split",
    )
