"""`discreet hierarchy`: make a hierarchy from a column, check one, look at one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.app.cli import console
from discreet.app.cli.groups import add_group

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.data.hierarchy import Hierarchy

_HELP = "Make a hierarchy from a column, check one against a file, look at one."
#: Lines of a tree that are shown unless more are asked for.
_LINES = 40

FileArgument = Annotated[str, typer.Argument(help="The file of records.", metavar="FILE")]
TreeArgument = Annotated[
    Path, typer.Argument(help="The hierarchy: .hrc, child,parent pairs or ARX lines.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="How FILE is read, such as sheet=Data or dates=day; repeatable."),
]


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = add_group(app, "hierarchy", _HELP)
    for command in (new, check, show):
        group.command()(command)


def new(
    file: FileArgument,
    column: Annotated[str, typer.Argument(help="The column to make it for.")],
    how: Annotated[
        str | None,
        typer.Option(
            "--as",
            help="prefixes=3,2 · dates=month,year · widths=5,10 · rare=5 · redact=3 · "
            "standard=icd-10 · order=low,mid,high · 'quantiles=5 low=0 high=100' · "
            "'kmeans=5 low=0 high=100' · grid=0.01,0.1,1 (coordinates); suggested "
            "from the values if left out.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it to this file, to edit.")
    ] = None,
    setting: SetOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Make a hierarchy from the values of a column, as asked for or as suggested.

    [bold]discreet hierarchy new people.csv zip --as prefixes=3,2 -o zip.csv[/bold]
    """
    from discreet.data.declared import HierarchySource, parse_hierarchies
    from discreet.data.suggestion import suggest_hierarchy
    from discreet.registry import build

    dataset = _dataset(file, setting)
    dataset.relation.require(column)
    if how is None:
        said = suggest_hierarchy(dataset, column)
        source: HierarchySource = build(HierarchySource, said, path=("hierarchies", column))
        console.note(f"suggested from the values: {said}")
    else:
        source = parse_hierarchies([f"{column} {how}"])[column]
    made = source.open(column, lambda name: _frequencies(dataset, name))
    if output is not None:
        made.to_arx(output)
        console.note(f"wrote {output}: one line per value, one field per level; edit it freely")
    _show(made, as_json=as_json, lines=_LINES)


def check(
    hierarchy: TreeArgument,
    file: Annotated[
        str | None, typer.Option("--file", help="Check it against this file of records.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="The column it is for.")] = None,
    setting: SetOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Check that a hierarchy is one tree, and that it has every value of a column.

    [bold]discreet hierarchy check zip.csv --file people.csv --column zip[/bold]
    """
    from discreet.data.codes import code_text
    from discreet.data.declared import read_hierarchy
    from discreet.errors import InputError

    made = read_hierarchy(hierarchy)
    if file is not None and column is not None:
        dataset = _dataset(file, [*(setting or ()), f"types={column}:nominal"])
        values = [code_text(value) for value in _frequencies(dataset, column) if value is not None]
        lost = [value for value in values if value not in set(made.leaves)]
        if lost:
            raise InputError(
                f"{len(lost):,} of {len(values):,} values of column {column!r} are not in the "
                "hierarchy",
                code="hierarchy-incomplete",
                hint=f"add a line for each; `discreet hierarchy new {file} {column} -o all.csv` "
                "lists every value",
                column=column,
                file=hierarchy,
            )
    levels = len(made.levels[0]) if len(made.leaves) else 1
    found = (
        ("values", "codes", "levels", "root"),
        [(len(made.leaves), len(made.codes), levels, made.root)],
    )
    console.show(found, as_json=as_json)


def show(
    hierarchy: TreeArgument,
    lines: Annotated[int, typer.Option(help="Lines to show; 0 for all.")] = _LINES,
    as_json: console.JsonOption = False,
) -> None:
    """Draw a hierarchy as a tree.

    [bold]discreet hierarchy show region.hrc[/bold]
    """
    from discreet.data.declared import read_hierarchy

    _show(read_hierarchy(hierarchy), as_json=as_json, lines=lines)


def _dataset(file: str, setting: list[str] | None) -> Dataset:
    from discreet.data.source import Source
    from discreet.registry import build

    said: dict[str, Any] = dict(text.partition("=")[::2] for text in setting or ())
    if "types" in said:
        said["types"] = dict([said["types"].rsplit(":", 1)])
    source: Source = build(Source, {"source": file, **said}, path=("data",))
    return source.open()


def _frequencies(dataset: Dataset, column: str) -> dict[Any, int]:
    # Any: values of the column's own type.
    found = dataset.frequencies([column])
    return dict(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))


def _show(made: Hierarchy, *, as_json: bool, lines: int) -> None:
    pairs = made.pairs()
    if as_json:
        console.show((("child", "parent"), [list(pair) for pair in pairs]), as_json=True)
        return
    below: dict[str, list[str]] = {}
    for child, parent in pairs[1:]:
        below.setdefault(parent, []).append(child)
    shown, stack = [], [(made.root, 0)]
    while stack:
        code, depth = stack.pop()
        shown.append("  " * depth + code)
        inside = below.pop(code, [])
        stack += [(child, depth + 1) for child in reversed(inside)]
    most = lines or len(shown)
    text = shown[:most]
    if len(shown) > most:
        text.append(f"… {len(shown) - most:,} more lines of {len(shown):,}: --lines 0 shows all")
    console.show("\n".join(text))
