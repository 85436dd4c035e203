"""`discreet describe`: what a file holds and how exposed its people are."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from discreet.app.cli import console


def add(app: typer.Typer) -> None:
    """Register the command."""

    @app.command()
    def describe(
        file: Annotated[
            str,
            typer.Argument(help="CSV, Parquet, Arrow, SPSS, Stata or SAS; or a URL with #table."),
        ],
        format: Annotated[
            str | None, typer.Option(help="csv, parquet, …, where the suffix does not say.")
        ] = None,
        delimiter: Annotated[
            str | None, typer.Option(help="Of a CSV file, if not found right.")
        ] = None,
        encoding: Annotated[
            str | None, typer.Option(help="Of a CSV file: utf-8, utf-16, latin-1, cp1252.")
        ] = None,
        decimal: Annotated[str | None, typer.Option(help="Decimal mark of a CSV file.")] = None,
        header: Annotated[
            bool | None,
            typer.Option("--header/--no-header", help="Whether the first line names the columns."),
        ] = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Print what each column is, a suggested role and why, and how many records are unique.

        Nothing is decided and nothing is written. [bold]discreet describe people.csv[/bold]
        """
        from discreet.data.dataset import read
        from discreet.data.describe import describe as describe_dataset

        given = {
            "format": format,
            "delimiter": delimiter,
            "encoding": encoding,
            "decimal": decimal,
            "header": header,
        }
        # Any: each option of `read` has its own type.
        options: dict[str, Any] = {k: value for k, value in given.items() if value is not None}
        console.show(describe_dataset(read(file, **options)), as_json=as_json)
