"""`discreet permute`: a permuted release of a file, and the paper's comparison of methods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from discreet.app.cli import console

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset


class _Group(TyperGroup):
    """Takes what is not a command for a file to permute: `discreet permute people.csv …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["file", *args]
        return super().parse_args(ctx, args)


Sensitive = Annotated[str, typer.Option("--sensitive", "-s", help="The column to protect.")]
Quasi = Annotated[
    str | None, typer.Option(help="Columns an intruder may know, with commas; guessed if left out.")
]
Identifiers = Annotated[
    str | None, typer.Option(help="Columns that name people, with commas; never released.")
]
K = Annotated[int, typer.Option("-k", help="Distinct values in every group.", min=2)]
E = Annotated[float, typer.Option("-e", help="Least range of the values in a group.", min=0)]
Hierarchies = Annotated[
    list[str] | None, typer.Option("--hierarchy", help="attribute=file, for the generalised table.")
]


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(
        cls=_Group,
        no_args_is_help=True,
        help="Release a file whose sensitive values changed hands inside groups.\n\n"
        "[bold]discreet permute people.csv -s salary -k 5 -e 2000 -o out[/bold], then "
        "[bold]discreet ask --release out 'SELECT AVG(salary) FROM people WHERE age < 30'[/bold]",
    )
    app.add_typer(group, name="permute")

    @group.command("file")
    def permute_file(
        file: Annotated[str, typer.Argument(help="CSV, Parquet, Arrow, …; or a URL with #table.")],
        sensitive: Sensitive,
        output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the release.")],
        k: K = 5,
        e: E = 0.0,
        partition: Annotated[
            str,
            typer.Option(
                "--partition",
                "-p",
                help="weighted, min-sum, min-max, min-max-exact, local, sequential; with "
                "parameters: 'local columns=age,region'.",
            ),
        ] = "weighted",
        cap: Annotated[
            bool, typer.Option("--cap", help="Let no value make up more than 1/k of a group.")
        ] = False,
        quasi: Quasi = None,
        identifiers: Identifiers = None,
        store: Annotated[
            str | None,
            typer.Option(help="Also write both tables into the file's engine, with this prefix."),
        ] = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Permute a column inside groups and write the release: two tables, evidence and a page.

        [bold]discreet permute people.csv -s salary -k 5 -e 2000 -o out[/bold]
        """
        from discreet.app.cli.members import parse_member
        from discreet.microdata.permutation.partitions import Partition
        from discreet.microdata.permutation.permute import permute

        data = _read(file, sensitive, quasi, identifiers)
        method = parse_member(Partition, partition)
        with console.progress() as progress:
            safe = permute(
                data, sensitive=sensitive, k=k, e=e, partition=method, cap=cap, progress=progress
            )
            safe.write(output)
            if store is not None:
                safe.store(store)
        console.show(safe.evidence() if as_json else str(safe), as_json=as_json)
        console.note(f'wrote {output}; ask it: discreet ask --release {output} "SELECT …"')

    @group.command()
    def compare(
        file: Annotated[
            str | None, typer.Argument(help="The file; generated people if left out.")
        ] = None,
        sensitive: Sensitive = "loss",
        column: Annotated[
            str, typer.Option("--range", "-r", help="The column that range queries are about.")
        ] = "age",
        k: K = 5,
        e: Annotated[
            list[float] | None, typer.Option("-e", help="Least range in a group; repeatable.")
        ] = None,
        queries: Annotated[int, typer.Option(min=1, help="Random queries of each size.")] = 300,
        sweep: Annotated[
            bool, typer.Option(help="Also vary the correlation, on generated people.")
        ] = True,
        quasi: Quasi = None,
        hierarchy: Hierarchies = None,
        anonymizer: Annotated[
            bool,
            typer.Option(
                "--anonymizer",
                help="Generalise as `anonymize` would; else the range column stays finest.",
            ),
        ] = False,
        output: Annotated[
            Path | None,
            typer.Option("--output", "-o", help="Write tables and pictures here (HTML)."),
        ] = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Compare generalisation with permutation under every partition, as the paper does.

        Prints the relative error of AVG for random selections and for ranges, and how it changes
        with the correlation of the two columns. [bold]discreet permute compare -o compare.html[/bold]
        """
        from discreet.microdata.permutation import comparison as paper
        from discreet.report import plain

        data = _generated() if file is None else _read(file, sensitive, quasi, None, hierarchy)
        with console.progress() as progress:
            found = [
                paper.compare(
                    data, sensitive=sensitive, column=column, k=k, e=least, queries=queries,
                    generalization="anonymizer" if anonymizer else "finest", progress=progress,
                )
                for least in e or [0.0]
            ]  # fmt: skip
            swept = paper.sweep(k=k, progress=progress) if sweep else None
        if as_json:
            console.show(plain({"comparisons": found, "sweep": swept}), as_json=True)
        else:
            for one in found:
                console.show(one, title=f"k = {one.k}, e = {one.e:g}")
            if swept is not None:
                console.show(swept, title="Range queries as the correlation weakens")
        if output is not None:
            paper.write_page(output, found, swept)
            console.note(f"wrote {output}")


def _read(
    file: str,
    sensitive: str,
    quasi: str | None,
    identifiers: str | None,
    hierarchy: list[str] | None = None,
) -> Dataset:
    from discreet.app.cli.members import parse_hierarchies
    from discreet.data.dataset import read

    roles = dict.fromkeys(_listed(identifiers), "identifier")
    roles |= dict.fromkeys(_listed(quasi), "quasi")
    roles[sensitive] = "confidential"
    return read(file, roles=roles, hierarchies=parse_hierarchies(hierarchy or ()))


def _listed(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _generated(records: int = 600) -> Dataset:
    """Return people whose loss follows their age loosely."""
    import pyarrow as pa

    from discreet.data.dataset import read
    from discreet.microdata.permutation.comparison import generated
    from discreet.randomness import Randomness

    age, loss = generated(records, 300.0, rng=Randomness.secure())
    roles = {"age": "quasi", "loss": "confidential"}
    table = pa.table({"age": age.astype("int64"), "loss": loss.astype("int64")})
    return read(table, roles=roles, name="people")
