"""`discreet microdata anonymize` and `check`: keep privacy models, or see whether a file does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.app.cli import console

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.models import Model

FileArgument = Annotated[str, typer.Argument(help="File or address of the records.")]
ModelOption = Annotated[
    list[str],
    typer.Option(
        "--model", help="A promise: k-anonymity=5, l-diversity=diagnosis,3 …; repeatable."
    ),
]
RoleOption = Annotated[
    list[str] | None, typer.Option("--role", help="COLUMN=identifier|quasi|confidential|other.")
]
HierarchyOption = Annotated[
    list[str] | None, typer.Option("--hierarchy", help="COLUMN=FILE: .hrc, pairs or ARX lines.")
]
WeightOption = Annotated[str | None, typer.Option(help="Column with sampling weights, for k-map.")]


def add(app: typer.Typer) -> None:
    """Register the commands in the group `microdata`."""
    # The file's name sorts behind that of the group, so the group is there already.
    group = next((g.typer_instance for g in app.registered_groups if g.name == "microdata"), None)
    if group is None:
        group = typer.Typer(no_args_is_help=True, help="Anonymise records and check models.")
        app.add_typer(group, name="microdata")
    group.command("anonymize")(_anonymize)
    group.command("check")(_check)


def _anonymize(
    file: FileArgument,
    model: ModelOption,
    method: Annotated[
        str,
        typer.Option(help="How: 'generalization suppression=0.05', mondrian, local-suppression …"),
    ] = "generalization",
    role: RoleOption = None,
    hierarchy: HierarchyOption = None,
    weight: WeightOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the release.")
    ] = None,
    as_json: console.JsonOption = False,
) -> None:
    """Change records as little as possible so that they keep privacy models.

    [bold]discreet microdata anonymize people.csv --model k-anonymity=5 --role age=quasi
    --hierarchy age=age.csv --method "generalization suppression=0.05" -o out[/bold]
    """
    import dataclasses

    from discreet.app.cli.members import parse_member
    from discreet.microdata.anonymization import anonymize
    from discreet.microdata.methods import Anonymization

    models, way = _models(model), parse_member(Anonymization, method)
    with console.progress() as progress:
        people = _read(file, role, hierarchy, weight)
        release = anonymize(people, models, method=way, progress=progress)
        release = dataclasses.replace(release, format=_format(file))
        if output is not None:
            release.write(output)
    if as_json:
        console.show(release.evidence(), as_json=True)
    else:
        console.show(release.verdict)
        if release.levels:
            console.show((("column", "level"), list(release.levels.items())))
        console.show(release.loss)
    console.note(
        f"wrote {output}" if output is not None else "nothing was written: name a folder with -o"
    )


def _check(
    file: FileArgument,
    model: ModelOption,
    role: RoleOption = None,
    hierarchy: HierarchyOption = None,
    weight: WeightOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Check whether a file keeps privacy models, and how far it is from them."""
    models = _models(model)
    people = _read(file, role, hierarchy, weight)
    found = [one.check(people) for one in models]
    header = ("model", "promise", "holds", "reached", "records", "violating")
    body = [(c.model, c.promise, c.holds, c.value, c.records, c.violating_records) for c in found]
    console.show((header, body), as_json=as_json)


def _models(texts: list[str]) -> list[Model]:
    from discreet.app.cli.members import parse_member
    from discreet.microdata.models import Model

    return [parse_member(Model, text) for text in texts]


def _read(
    file: str, role: list[str] | None, hierarchy: list[str] | None, weight: str | None
) -> Dataset:
    from discreet.app.cli.members import parse_hierarchies
    from discreet.data.dataset import read
    from discreet.errors import InputError

    roles = {}
    for text in role or ():
        column, found, value = text.partition("=")
        if not found:
            raise InputError(
                f"--role needs COLUMN=ROLE, found {text!r}",
                code="malformed-option",
                hint=f"write --role {text}=quasi",
            )
        roles[column.strip()] = value.strip()
    return read(file, roles=roles, hierarchies=parse_hierarchies(hierarchy or ()), weight=weight)


def _format(file: str) -> str | None:
    """Return the format of the input, where it is one that can be written."""
    suffix = Path(file.split("#", maxsplit=1)[0]).suffix.lower()
    known = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}
    return known.get(suffix, "arrow" if suffix in (".arrow", ".feather", ".ipc") else None)
