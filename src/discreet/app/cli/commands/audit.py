"""`discreet audit`: what anybody can infer from a published table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.app.cli import console


def add(app: typer.Typer) -> None:
    """Register the command."""

    @app.command()
    def audit(
        published: Annotated[
            list[Path],
            typer.Argument(help="The published table: CSV or Parquet; several if they are linked."),
        ],
        hierarchy: Annotated[
            list[str] | None,
            typer.Option(help="attribute=file; those beside the table are found by themselves."),
        ] = None,
        value: Annotated[str, typer.Option(help="The column of values.")] = "value",
        total: Annotated[
            str | None,
            typer.Option(help="Code of totals without a hierarchy; left out, found by arithmetic."),
        ] = None,
        within: Annotated[
            float | None,
            typer.Option(help="How far a printed value may be from the true one (rounding)."),
        ] = None,
        protection: Annotated[
            float | None,
            typer.Option(help="Percent of its value a withheld cell must remain unknown by."),
        ] = None,
        counts: Annotated[
            bool | None,
            typer.Option(
                help="Values are counts, of which no zero is withheld; else as told beside the table."
            ),
        ] = None,
        intervals: Annotated[
            Path | None, typer.Option(help="Write the intervals to this CSV file.")
        ] = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Compute from the published file alone in which interval each withheld cell lies.

        Of the folder of a top-down release, totals, invariants, intervals and ρ are derived again.
        Exit code 0 if nothing can be computed too closely, 3 otherwise.
        [bold]discreet audit out/cells.csv --protection 10[/bold]
        """
        from discreet.data.atomic import atomic_file
        from discreet.data.declared import read_hierarchies
        from discreet.errors import InputError
        from discreet.tables.derivation import derive
        from discreet.tables.published import audit_published

        derived = derive(published[0]) if len(published) == 1 else None
        if derived is not None:
            console.show(derived, as_json=as_json)
            if not derived.safe:
                raise typer.Exit(3)
            return
        if any(path.is_dir() for path in published):
            raise InputError(
                "the folder holds no evidence.json of a consistent table",
                code="no-evidence",
                hint="take the folder as it was published; of other tables, name the file of cells: "
                "discreet audit out/cells.csv",
                file=next(path for path in published if path.is_dir()),
            )
        with console.progress() as progress:
            found = audit_published(
                published,
                read_hierarchies(hierarchy or ()),
                value=value,
                total=total,
                within=within,
                protection=protection,
                counts=counts,
                progress=progress,
            )
        frame = found.intervals.drop(columns=["need_lower", "need_upper"])
        if intervals is not None:
            with atomic_file(intervals) as file:
                frame.to_csv(file, index=False)
        if as_json:
            console.show({**found.to_dict(), "intervals": frame}, as_json=True)
        else:
            console.show(found)
            head = frame.sort_values("safe", kind="stable").head(20)
            console.show((list(head.columns), head.to_numpy().tolist()), title="intervals")
            if found.is_of_means:
                console.note("of means the intervals are those of the sums, value times count")
            if len(frame) > len(head):
                console.note(f"{len(frame) - len(head)} more; write all with --intervals FILE")
        if not found.safe:
            raise typer.Exit(3)
