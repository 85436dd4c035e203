"""`discreet microdata`: mask, strengthen, measure and explore releases of records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.app.cli import console

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.masking import Masking

FileArgument = Annotated[str, typer.Argument(help="File or address of the records.")]
RoleOption = Annotated[
    list[str] | None, typer.Option("--role", help="COLUMN=identifier|quasi|confidential|other.")
]
TypeOption = Annotated[
    list[str] | None, typer.Option("--type", help="COLUMN=numeric|ordinal|nominal|date.")
]
HierarchyOption = Annotated[
    list[str] | None, typer.Option("--hierarchy", help="COLUMN=FILE (.hrc, ARX or child,parent).")
]
WeightOption = Annotated[str | None, typer.Option(help="Column with sampling weights.")]
MethodOption = Annotated[
    list[str],
    typer.Option(
        "--method",
        "-m",
        help="'NAME=COLUMN,… parameter=value …', such as 'top-coding=salary value=90000'; repeatable.",
    ),
]
KeysOption = Annotated[
    list[str] | None, typer.Option("--key", help="Column an intruder knows; repeatable.")
]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="Folder of the release.")]


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(
        no_args_is_help=True, help="Mask records, measure risk and utility, explore methods."
    )
    app.add_typer(group, name="microdata")
    _add_mask(group)
    _add_strengthen(group)
    _add_measures(group)
    _add_explore(group)


def _add_mask(group: typer.Typer) -> None:
    @group.command()
    def mask(
        file: FileArgument,
        method: MethodOption,
        role: RoleOption = None,
        type: TypeOption = None,
        hierarchy: HierarchyOption = None,
        weight: WeightOption = None,
        output: OutputOption = Path("out/microdata"),
        as_json: console.JsonOption = False,
    ) -> None:
        """Mask records by one method after the other and write the release.

        [bold]discreet microdata mask people.csv -m 'microaggregation=age,salary k=5' -m
        'rank-swapping=income p=5' --role name=identifier -o out[/bold]
        """
        import dataclasses

        from discreet.microdata.pipeline import mask as run

        with console.progress() as progress:
            people = _read(file, role, type, hierarchy, weight)
            release = run(people, [_method(text) for text in method], progress=progress)
            release = dataclasses.replace(release, format=_format(file))
            release.write(output)
        console.show(release.evidence() if as_json else release.verdict, as_json=as_json)
        console.note(f"wrote {output}")


def _add_strengthen(group: typer.Typer) -> None:
    @group.command()
    def strengthen(
        file: FileArgument,
        method: MethodOption,
        below: Annotated[float, typer.Option(help="Risk to be undercut.")] = 0.05,
        measure: Annotated[str | None, typer.Option(help="Risk measure.")] = None,
        role: RoleOption = None,
        type: TypeOption = None,
        hierarchy: HierarchyOption = None,
        weight: WeightOption = None,
        output: OutputOption = Path("out/microdata"),
        as_json: console.JsonOption = False,
    ) -> None:
        """Make methods stronger until the measured risk is low enough; write the least lossy."""
        import dataclasses

        from discreet.microdata.assessment import RiskBelow
        from discreet.microdata.strengthening import strengthen as run

        with console.progress() as progress:
            people = _read(file, role, type, hierarchy, weight)
            until = RiskBelow(below, measure)
            methods = [_method(text) for text in method]
            release = run(people, methods, until=until, progress=progress)
            release = dataclasses.replace(release, format=_format(file))
            release.write(output)
        console.show(release.evidence() if as_json else release.verdict, as_json=as_json)
        console.note(f"wrote {output}")


def _add_measures(group: typer.Typer) -> None:
    @group.command()
    def risk(
        file: FileArgument,
        released: Annotated[
            str | None,
            typer.Argument(
                help="The released file, records in the same order; the file itself if left out."
            ),
        ] = None,
        key: KeysOption = None,
        population: Annotated[
            str | None,
            typer.Option(help="Size of the population the file is a sample of, or a file of it."),
        ] = None,
        role: RoleOption = None,
        type: TypeOption = None,
        hierarchy: HierarchyOption = None,
        weight: WeightOption = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Measure what intruders could do with a file, each with its scenario."""
        from discreet.data.dataset import read
        from discreet.microdata.assessment import risk as run

        with console.progress() as progress:
            report = run(
                _read(file, role, type, hierarchy, weight),
                None if released is None else read(released),
                keys=key,
                population=_population(population),
                progress=progress,
            )
        console.show(report, as_json=as_json)
        if not as_json:
            console.show(report.scenarios(), title="Intruders")

    @group.command()
    def utility(
        file: FileArgument,
        released: Annotated[str, typer.Argument(help="The released file, in the same order.")],
        role: RoleOption = None,
        type: TypeOption = None,
        hierarchy: HierarchyOption = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Measure what a released file lost."""
        from discreet.data.dataset import read
        from discreet.microdata.comparison import utility as run

        with console.progress() as progress:
            people = _read(file, role, type, hierarchy, None)
            report = run(people, read(released), progress=progress)
        console.show(report, as_json=as_json)


def _add_explore(group: typer.Typer) -> None:
    @group.command()
    def explore(
        file: FileArgument,
        method: MethodOption,
        role: RoleOption = None,
        type: TypeOption = None,
        hierarchy: HierarchyOption = None,
        weight: WeightOption = None,
        output: Annotated[
            Path | None, typer.Option("--output", "-o", help="Folder of the map.")
        ] = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Compare methods and parameters side by side as a map of risk against loss.

        A parameter may list values with |, as in 'microaggregation=age,salary k=3|5|10'.
        """
        from discreet.microdata.exploration import frontier

        candidates = [_method(one) for text in method for one in _spread(text)]
        with console.progress() as progress:
            people = _read(file, role, type, hierarchy, weight)
            found = frontier(people, candidates, progress=progress)
        console.show(found, as_json=as_json)
        if output is not None:
            found.write(output)
            console.note(f"wrote {output / 'map.html'}")


def _read(
    file: str,
    role: list[str] | None,
    type: list[str] | None,
    hierarchy: list[str] | None,
    weight: str | None,
) -> Dataset:
    from discreet.app.cli.members import parse_hierarchies
    from discreet.data.dataset import read

    return read(
        file,
        roles=_pairs(role, "--role"),
        types=_pairs(type, "--type"),
        hierarchies=parse_hierarchies(hierarchy or ()),
        weight=weight,
    )


def _population(text: str | None) -> float | str | None:
    """Return the size of a population, or the file that it is in."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _pairs(given: list[str] | None, option: str) -> dict[str, str]:
    from discreet.errors import InputError

    pairs = {}
    for text in given or ():
        name, found, value = text.partition("=")
        if not found:
            raise InputError(
                f"{option} needs COLUMN=VALUE, found {text!r}",
                code="malformed-option",
                hint=f"write {option} {text}=…",
            )
        pairs[name.strip()] = value.strip()
    return pairs


def _method(text: str) -> Masking:
    from discreet.app.cli.members import parse_member
    from discreet.microdata.masking import Masking

    method: Masking = parse_member(Masking, text)
    return method


def _spread(text: str) -> list[str]:
    """Return one text for each combination of the values that parameters list with |."""
    import itertools

    choices = []
    for word in text.split():
        name, equals, value = word.partition("=")
        choices.append([f"{name}{equals}{one}" for one in value.split("|")])
    return [" ".join(chosen) for chosen in itertools.product(*choices)]


def _format(file: str) -> str | None:
    """Return the format of the input, where it is one that can be written."""
    suffix = Path(file.split("#", maxsplit=1)[0]).suffix.lower()
    known = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}
    return known.get(suffix, "arrow" if suffix in (".arrow", ".feather", ".ipc") else None)
