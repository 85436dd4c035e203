"""Where records are and what their columns mean: one statement for commands, policies and Python."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from discreet.data.declared import HierarchySource
from discreet.data.schema import Role, Type
from discreet.errors import InputError
from discreet.registry import Record, parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["UNDECIDED", "Source"]

#: What a policy says as `unit` where somebody has to decide first; nothing is read before.
UNDECIDED = "?"

#: Settings that `read` takes under the same name where they are given.
_READ = (
    *("engine", "format", "sheet", "delimiter", "encoding", "decimal", "thousands", "dates"),
    *("skip", "footer", "header", "labels", "metadata", "na", "quote"),
)


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
        help="a file (CSV, Parquet, Arrow, Excel, ODS, SPSS, Stata, SAS, fixed width; also "
        "compressed), a folder of files with the same columns, postgresql://…#table or "
        "spark://…#table",
        option="FILE",
        file="read",
    )
    name: str | None = parameter(None, help="the relation's name in SQL; the file's by default")
    engine: str | None = parameter(
        None, help="where files are read; DuckDB if left out", file="engine"
    )
    read_columns: tuple[str, ...] | None = parameter(
        None,
        help="the only columns to be read, a right to which suffices; all if left out",
        option="--read-column",
    )
    driver_limit: str | None = parameter(
        None,
        help="how much one question may bring from the engine into Python, such as 2GB (4GiB if "
        "left out); more is refused before it is fetched",
    )
    roles: Mapping[str, Role] = parameter(
        {},
        help="COLUMN=ROLE, where the role is identifier, quasi, confidential or other; a release "
        "needs one for every column that leaves",
        option="--role",
    )
    types: Mapping[str, Type] = parameter(
        {},
        help="COLUMN=TYPE, which is numeric, ordinal, nominal or date",
        option="--type/--types",
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
    format: str | None = parameter(
        None, help="csv, excel, fixed-width, …, where the suffix does not say"
    )
    sheet: str | None = parameter(None, help="of a workbook, where several hold records")
    delimiter: str | None = parameter(None, help="of a CSV file, if it is not found right")
    encoding: str | None = parameter(None, help="of a CSV file: utf-8, utf-16, latin-1, cp1252")
    decimal: str | None = parameter(None, help="decimal mark of a CSV file")
    thousands: str | None = parameter(None, help="mark between thousands in a CSV file")
    dates: Literal["day", "month"] | None = parameter(
        None, help="which of day and month comes first in dates such as 01/02/2024"
    )
    skip: int | None = parameter(
        None, help="lines or rows above the names of the columns", low=0, high=10_000
    )
    footer: int | None = parameter(
        None, help="lines or rows below the last record", low=0, high=10_000
    )
    header: bool | None = parameter(None, help="whether the first line names the columns")
    labels: bool | None = parameter(
        None, help="read the labels of codes in SPSS, Stata and SAS files instead of the codes"
    )
    metadata: str | None = parameter(
        None, help="the .rda file that names the fields of a fixed-width file", file="read"
    )

    na: tuple[str, ...] | None = parameter(
        None, help='texts that mean "no value" in a CSV file or workbook, besides an empty field'
    )
    quote: str | None = parameter(
        None, help="what stands around texts in a CSV file; empty if nothing does"
    )
    as_read: tuple[str, ...] | None = parameter(
        None,
        help="doubts about how the file is read that are settled, such as a column or 'line 62'; "
        "where this is given, even empty, any other doubt stops every job",
    )

    @classmethod
    def reading_options(cls) -> tuple[str, ...]:
        """Return the names of what may be said about how a file is written."""
        return tuple(name for name in _READ if name != "engine")

    @classmethod
    def declared_name(cls) -> str:
        """Return the name of the section."""
        return "data"

    def open(
        self, *, roles: Mapping[str, str] | None = None, types: Mapping[str, str] | None = None
    ) -> Dataset:
        """Return the records; further roles and types add to those declared here."""
        from discreet.data.dataset import read

        if self.unit == UNDECIDED:
            raise InputError(
                "nobody decided to whom the records belong",
                code="undecided-unit",
                hint="write the column of the persons as `unit:`, or delete the line if every record "
                "is a person of its own; the policy says which columns look like it",
            )
        # Any: each option of `read` has its own type.
        given: dict[str, Any] = {
            name: value for name in _READ if (value := getattr(self, name)) is not None
        }
        found = read(
            self.source,
            columns=self.read_columns,
            driver_limit=self.driver_limit,
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
        self._require_settled(found)
        return found

    def open_like(self, file: str | Path, columns: Sequence[str]) -> Dataset:
        """Return columns of another file with the roles of these, such as of changed rows.

        A file of the same kind is also read with the same options.
        """
        alike = Path(file).suffix.lower() == Path(self.source).suffix.lower()
        options: dict[str, Any] = {} if alike else dict.fromkeys(_READ)
        further = dataclasses.replace(
            self,
            source=str(file),
            name=None,
            read_columns=tuple(columns),
            roles={name: role for name, role in self.roles.items() if name in columns},
            types={name: kind for name, kind in self.types.items() if name in columns},
            hierarchies={},
            unit=self.unit if self.unit in columns else None,
            weight=self.weight if self.weight in columns else None,
            vouch=(),
            domains={},
            bounds={},
            as_read=None,
            **options,
        )
        return further.open()

    def _require_settled(self, found: Dataset) -> None:
        """Refuse records of which it is not decided how they are to be read."""
        if self.as_read is None or found.reading is None:
            return
        asked = [one for one in found.reading.questions if one.about not in self.as_read]
        if asked:
            names = json.dumps([one.about for one in asked], ensure_ascii=False)
            raise InputError(
                "it is not decided how the file is to be read",
                code="undecided-reading",
                hint="write the answers under `data:`; where it is right as it was read, name it: "
                f"as_read: {names}",
                mistakes=tuple(one.in_policy() for one in asked),
            )
