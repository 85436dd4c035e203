"""Where records are and what their columns mean: one statement for commands, policies and Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.data.declared import HierarchySource
from discreet.data.schema import Role, Type
from discreet.registry import Record, parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["Source"]


@dataclasses.dataclass(frozen=True)
class Source(Record):
    r"""A file or table of records, the roles of its columns, and how it is to be read.

    It is the section `data:` of a policy file and the options of every command that reads records.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age;pay\n30;1000,5\n41;NA\n")
    >>> Source(str(path), roles={"age": "quasi"}, decimal=",").open()
    Dataset(people: 2 rows, age, pay)

    Any, in `domains`: a list of values, or cut points.
    """

    spelled: ClassVar[str] = "source"

    source: str = parameter(
        help="a file (CSV, Parquet, Arrow, SPSS, Stata, SAS), postgresql://…#table or "
        "spark://…#table",
        option="FILE",
        file="read",
    )
    name: str | None = parameter(None, help="the relation's name in SQL; the file's by default")
    engine: str | None = parameter(
        None, help="where files are read; DuckDB if left out", file="engine"
    )
    roles: Mapping[str, Role] = parameter(
        {},
        help="COLUMN=ROLE, where the role is identifier, quasi, confidential or other; a release "
        "needs one for every column that leaves",
        option="--role",
    )
    types: Mapping[str, Type] = parameter(
        {}, help="COLUMN=TYPE, which is numeric, ordinal, nominal or date", option="--type"
    )
    hierarchies: Mapping[str, HierarchySource | tuple[HierarchySource, ...]] = parameter(
        {},
        help="COLUMN=FILE (.hrc, child,parent pairs, or ARX lines), 'COLUMN widths=5,10', "
        "'COLUMN rare=3'",
        option="--hierarchy",
    )
    unit: str | None = parameter(None, help="the column that says to whom a row belongs")
    weight: str | None = parameter(None, help="the column with sampling weights")
    rest: Role | None = parameter(
        None, help="role of every column that is given none; identifier: none of them leaves"
    )
    vouch: tuple[str, ...] = parameter(
        (),
        help="columns that may leave although their values look as if they named people, or tell "
        "the order of permuted ones",
    )
    domains: Mapping[str, Any] = parameter(
        {},
        help="values a column can have, whatever the records hold: COLUMN=a,b,c, or @FILE (YAML) with "
        "a list or {cuts: […]} for each column",
    )
    bounds: Mapping[str, tuple[float, float]] = parameter(
        {},
        help="least and largest value a column can have, whatever the records hold: COLUMN=0,100",
    )
    format: str | None = parameter(None, help="csv, parquet, …, where the suffix does not say")
    delimiter: str | None = parameter(None, help="of a CSV file, if it is not found right")
    encoding: str | None = parameter(None, help="of a CSV file: utf-8, utf-16, latin-1, cp1252")
    decimal: str | None = parameter(None, help="decimal mark of a CSV file")
    header: bool | None = parameter(None, help="whether the first line names the columns")

    @classmethod
    def declared_name(cls) -> str:
        """Return the name of the section."""
        return "data"

    def open(
        self, *, roles: Mapping[str, str] | None = None, types: Mapping[str, str] | None = None
    ) -> Dataset:
        """Return the records; further roles and types add to those declared here."""
        from discreet.data.dataset import read

        # Any: each option of `read` has its own type.
        given: dict[str, Any] = {
            name: value
            for name in ("engine", "format", "delimiter", "encoding", "decimal", "header")
            if (value := getattr(self, name)) is not None
        }
        return read(
            self.source,
            roles={**(roles or {}), **self.roles},
            types={**(types or {}), **self.types},
            hierarchies=self.hierarchies,
            unit=self.unit,
            weight=self.weight,
            rest=self.rest,
            vouch=self.vouch,
            domains=self.domains,
            bounds=self.bounds,
            name=self.name,
            **given,
        )
