"""Which format a file has: by its suffix, by what was said, or from its first bytes."""

from __future__ import annotations

from pathlib import Path

from discreet.data import csv_text
from discreet.errors import InputError

__all__ = ["COMPRESSED", "FORMATS", "file_format", "require_file"]

#: Suffixes that name a format.
FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".data": "csv",
    ".dat": "csv",
    ".asc": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".sav": "spss",
    ".zsav": "spss",
    ".por": "spss",
    ".dta": "stata",
    ".sas7bdat": "sas",
    ".xpt": "sas",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xlsb": "excel",
    ".xls": "excel",
    ".ods": "ods",
}
#: Suffixes of files that hold another one, compressed.
COMPRESSED = (".gz", ".bz2", ".xz", ".zip")
#: Formats that can be named; no suffix says fixed-width.
_NAMED = (*dict.fromkeys(FORMATS.values()), "fixed-width")


def file_format(path: str | Path, given: str | None = None) -> str:
    """Return the format of a file, as given or by its suffix; a compressed one is what it holds.

    >>> file_format("people.csv.gz"), file_format("survey.xlsx"), file_format("survey.ods")
    ('csv', 'excel', 'ods')
    >>> file_format("people.parquet"), file_format("adult.data"), file_format("x", "csv")
    ('parquet', 'csv', 'csv')
    """
    if given is not None:
        if given not in _NAMED:
            raise InputError(
                f"there is no file format {given!r}",
                code="unknown-format",
                hint="choose one of " + ", ".join(_NAMED),
                file=path,
            )
        return given
    place = Path(path)
    if place.suffix.lower() in COMPRESSED:
        place = place.with_suffix("")
    suffix = place.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"the suffix {suffix!r} names no file format",
            code="unknown-format",
            hint=_fitting(Path(path)),
            file=path,
        )
    return FORMATS[suffix]


#: How files of other programs become CSV, by suffix: {file} is turned into {csv}.
_ELSEWHERE = {
    ".json": "in Python, pandas.read_json({file!r}).to_csv({csv!r}, index=False)",
    ".jsonl": "in Python, pandas.read_json({file!r}, lines=True).to_csv({csv!r}, index=False)",
    ".ndjson": "in Python, pandas.read_json({file!r}, lines=True).to_csv({csv!r}, index=False)",
    ".rds": "in R, write.csv(readRDS({file!r}), {csv!r}, row.names = FALSE)",
    ".rdata": "in R, load({file!r}), then write.csv(NAME, {csv!r}, row.names = FALSE)",
    ".pkl": "in Python, pandas.read_pickle({file!r}).to_csv({csv!r}, index=False)",
    ".orc": "in Python, pandas.read_orc({file!r}).to_csv({csv!r}, index=False)",
    ".mdb": "export the table from Access as a text file with separators",
    ".accdb": "export the table from Access as a text file with separators",
}


def _fitting(file: Path) -> str:
    """Return what to write for a file whose suffix says nothing, from its first bytes."""
    if way := _ELSEWHERE.get(file.suffix.lower()):
        told = way.format(file=file.name, csv=f"{file.stem}.csv")
        return f"save it as CSV, Parquet or an Excel workbook first: {told}"
    try:
        with file.open("rb") as stream:
            head = stream.read(4096)
    except OSError:
        head = b""
    found = csv_text.magic(head)
    if found is not None and found[1] is None:
        return f"this is {found[0]}, which is no file of records; export a table from it as CSV"
    if found is not None and found[1] in COMPRESSED:
        return f"this is {found[0]}: end its name with {found[1]}, such as people.csv{found[1]}"
    if found is None and csv_text.is_binary(head):
        return "this is no text; save it as CSV, Parquet or an Excel workbook"
    return f"say format={(found[1] if found else 'csv')!r}"


def require_file(path: str | Path) -> Path:
    """Return the path of an existing, non-empty file, or say what is wrong with it."""
    file = Path(path)
    if not file.exists():
        raise InputError("there is no such file", code="no-file", file=file)
    if file.is_dir():
        raise InputError("this is a folder, not a file", code="not-a-file", file=file)
    if file.stat().st_size == 0:
        raise InputError(
            "the file is empty", code="empty-file", hint="give a file with records", file=file
        )
    return file
