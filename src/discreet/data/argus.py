"""tau-Argus tabular files, read as they are: fields in a text file, their meaning in an `.rda`.

The metadata file names one variable per unindented line and says below it, in lines such as
``<RECODEABLE>``, ``<TOTCODE> "Total"`` or ``<HIERCODELIST> "region.hrc"``, what it is.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

from discreet.data.files import read_lines, read_rows, require_file
from discreet.data.hierarchy import Hierarchy
from discreet.errors import InputError

__all__ = ["read_argus"]

_TAG = re.compile(r"<\s*(\w+)\s*>\s*(.*)")
#: The status of cells that stay published, and the column that says so.
_NEVER, _KEPT = "never", "__never"
_DIMENSION = {"RECODEABLE", "RECODABLE"}
_KINDS = {
    "NUMERIC": "value",
    "FREQUENCY": "count",
    "MAXSCORE": "largest",
    "STATUS": "status",
    "LOWERPL": "lower",
    "LOWERPROTECTIONLEVEL": "lower",
    "UPPERPL": "upper",
    "UPPERPROTECTIONLEVEL": "upper",
    "COST": "cost",
    "SHADOW": "shadow",
}


@dataclasses.dataclass
class _Variable:
    name: str
    line: int
    tags: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def kind(self) -> str:
        if self.tags.keys() & _DIMENSION:
            return "dimension"
        special = [word for tag, word in _KINDS.items() if tag in self.tags and tag != "NUMERIC"]
        return special[0] if special else "value" if "NUMERIC" in self.tags else "other"


def read_argus(
    path: str | Path, metadata: str | Path | None = None, *, value: str | None = None
) -> dict[str, Any]:
    """Return the cells of a tabular file as what `Table.from_cells` takes.

    Any: a frame, names of its columns, hierarchies.
    """
    import pyarrow as pa

    file = require_file(path)
    rda = Path(metadata) if metadata is not None else file.with_suffix(".rda")
    settings, variables = _metadata(rda)
    rows = read_rows(file, delimiter=settings.get("SEPARATOR", ","))
    if not rows:
        raise InputError("the file has no cells", code="empty-table", file=file)
    _require_width(rows, variables, file, rda)
    columns = {v.name: [row[1][i].strip() for row in rows] for i, v in enumerate(variables)}
    by = [v for v in variables if v.kind == "dimension"]
    measure = _measure(variables, value, rda)
    data: dict[str, Any] = {v.name: columns[v.name] for v in by}
    roles: dict[str, str] = {}
    largest: list[str] = []
    for variable in variables:
        if variable.kind in ("dimension", "other", "shadow"):
            continue
        if variable.kind == "value" and variable is not measure:
            continue
        if variable.kind == "status":
            words = _status(columns[variable.name], settings, rows, file)
            data[variable.name] = ["safe" if word == _NEVER else word for word in words]
            data[_KEPT] = [word == _NEVER for word in words]
            roles |= {"status": variable.name, "never": _KEPT}
            continue
        data[variable.name] = _numbers(columns[variable.name], variable.name, rows, file)
        if variable.kind == "largest":
            largest.append(variable.name)
        elif variable is not measure or variable.kind == "count":
            roles[variable.kind] = variable.name
    frame = pa.table(data)
    if "count" in roles:  # tau-Argus writes out empty cells; here they are known zeros
        kept = [
            n > 0 or v != 0 for n, v in zip(data[roles["count"]], data[measure.name], strict=True)
        ]
        frame = frame.filter(pa.array(kept, type=pa.bool_()))
    return {
        "frame": frame,
        "by": [v.name for v in by],
        "value": measure.name,
        "statistic": "count" if measure.kind == "count" else "sum",
        "contributions": largest,
        "hierarchies": {v.name: _hierarchy(v, columns[v.name], rda) for v in by},
        **roles,  # each kind is the parameter of the same name
    }


def _metadata(rda: Path) -> tuple[dict[str, str], list[_Variable]]:
    settings: dict[str, str] = {}
    variables: list[_Variable] = []
    for line, text in read_lines(rda):
        found = _TAG.match(text.strip())
        if found is None:
            variables.append(_Variable(text.split()[0] if text.split() else "", line))
            continue
        tag, rest = found.group(1).upper(), found.group(2).strip().strip('"')
        (variables[-1].tags if variables else settings)[tag] = rest
    variables = [v for v in variables if v.name]
    if not any(v.kind == "dimension" for v in variables):
        raise InputError(
            "the metadata has no <RECODEABLE> variable, so the table has no dimension",
            code="no-dimension",
            file=rda,
        )
    return settings, variables


def _measure(variables: list[_Variable], wanted: str | None, rda: Path) -> _Variable:
    numeric = [v for v in variables if v.kind == "value"] or [
        v for v in variables if v.kind == "count"
    ]
    chosen = [v for v in numeric if wanted in (None, v.name)]
    if len(chosen) != 1:
        names = ", ".join(v.name for v in numeric)
        raise InputError(
            f"the metadata has {len(chosen)} numeric variables to take as the value",
            code="argus-value",
            hint=f"pass value= one of {names}" if names else "declare one <NUMERIC>",
            file=rda,
        )
    return chosen[0]


def _require_width(
    rows: list[tuple[int, list[str]]], variables: list[_Variable], file: Path, rda: Path
) -> None:
    for line, fields in rows:
        if len(fields) != len(variables):
            raise InputError(
                f"the line has {len(fields)} fields where {rda.name} names {len(variables)}",
                code="ragged-row",
                hint="check <SEPARATOR> and the variables of the metadata",
                file=file,
                line=line,
            )


def _numbers(
    values: list[str], name: str, rows: list[tuple[int, list[str]]], file: Path
) -> list[float]:
    numbers = []
    for (line, _), value in zip(rows, values, strict=True):
        try:
            numbers.append(float(value) if value else 0.0)
        except ValueError:
            raise InputError(
                f"variable {name!r} is not a number here",
                code="not-a-number",
                hint="write numbers with a point as decimal mark",
                file=file,
                line=line,
                column=name,
            ) from None
    return numbers


def _status(
    values: list[str], settings: dict[str, str], rows: list[tuple[int, list[str]]], file: Path
) -> list[str]:
    words = {
        settings.get("SAFE", "s").lower(): "safe",
        settings.get("UNSAFE", "u").lower(): "primary",
        settings.get("PROTECT", "p").lower(): _NEVER,
        "": "safe",
    }
    found = []
    for (line, _), value in zip(rows, values, strict=True):
        if value.lower() not in words:
            raise InputError(
                f"the status {value!r} is none of the metadata",
                code="unknown-status",
                hint="declare it by <SAFE>, <UNSAFE> or <PROTECT>",
                file=file,
                line=line,
            )
        found.append(words[value.lower()])
    return found


def _hierarchy(variable: _Variable, codes: list[str], rda: Path) -> Hierarchy:
    total = variable.tags.get("TOTCODE", "Total")
    listed = variable.tags.get("HIERCODELIST")
    if listed is not None:
        leading = variable.tags.get("HIERLEADSTRING", "@")
        return Hierarchy.from_hrc(rda.parent / listed, total=total, leading=leading)
    distinct = [code for code in dict.fromkeys(codes) if code != total]
    levels = variable.tags.get("HIERLEVELS")
    if levels is None:
        return Hierarchy.flat(distinct, total=total)
    widths = [int(width) for width in levels.split() if width.isdigit() and int(width) > 0]
    ends = [sum(widths[: place + 1]) for place in range(len(widths))]
    pairs = {total: ""}
    for code in distinct:
        parent = total
        for end in ends:
            part = code[:end]
            pairs.setdefault(part, parent)
            parent = part
            if end >= len(code):
                break
    return Hierarchy.from_pairs(pairs.items())
