"""Public relations that are joined to the protected one by declared keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.data.dataset import Dataset
from discreet.data.sql import Catalog, Join
from discreet.data.sql.query import fields_of, from_clause
from discreet.errors import InputError

if TYPE_CHECKING:
    from discreet.data.engines.base import Relation

__all__ = ["catalog_of", "wide"]


def catalog_of(
    dataset: Dataset, lookups: Mapping[str, Dataset], joins: Mapping[str, tuple[str, str]]
) -> Catalog:
    """Return what may be asked about a dataset and the lookups joined to it."""
    for name in joins:
        if name not in lookups:
            raise InputError(
                f"the join names a lookup {name!r} that is not given",
                code="unknown-lookup",
                hint=f"pass lookups={{{name!r}: …}}",
            )
    return Catalog.of(
        dataset.name,
        dataset.schema,
        dataset.relation.schema,
        lookups={n: fields_of(d.schema, d.relation.schema) for n, d in lookups.items()},
        joins=[Join(name, on, key) for name, (on, key) in joins.items()],
    )


def wide(dataset: Dataset, catalog: Catalog, lookups: Mapping[str, Dataset]) -> Relation:
    """Return the rows with the columns of declared lookups beside their own."""
    if not catalog.joins:
        return dataset.relation
    named: list[Any] = [
        exp.column(name, table=catalog.relation, quoted=True) for name in dataset.columns
    ]
    select = exp.select()
    for join in catalog.joins:
        lookup = lookups[join.lookup]
        keys = lookup.frequencies([join.key])
        if any(count != 1 for count in keys.column("count").to_pylist()):
            raise InputError(
                f"the key {join.key!r} of lookup {join.lookup!r} is not unique",
                code="ambiguous-join",
                column=join.key,
                hint="a join must meet at most one row",
            )
        held = dataset.engine.load(lookup.arrow())
        named += [
            exp.alias_(
                exp.column(f.name, table=join.lookup, quoted=True),
                f"{join.lookup}.{f.name}",
                quoted=True,
            )
            for f in catalog.lookups[join.lookup]
        ]
        on = exp.EQ(
            this=exp.column(join.on, table=catalog.relation, quoted=True),
            expression=exp.column(join.key, table=join.lookup, quoted=True),
        )
        select = select.join(from_clause(held.query, join.lookup), on=on, join_type="left")
    select = select.from_(from_clause(dataset.relation.query, catalog.relation)).select(*named)
    return dataset.engine.relation(select)
