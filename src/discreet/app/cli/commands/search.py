"""`discreet search`: disguises for searches where the database does not help, measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.app.cli import console
from discreet.app.cli.groups import add_group

if TYPE_CHECKING:
    from discreet.protocols.search._base import Vocabulary


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = add_group(app, "search", "Disguise searches, and measure what that hides.")

    @group.command()
    def evaluate(
        vocabulary: Annotated[
            Path | None,
            typer.Argument(help="A file with the columns term and count; Zipf's law without one."),
        ] = None,
        terms: Annotated[int, typer.Option(min=100, help="Terms, without a file.")] = 20_000,
        as_json: console.JsonOption = False,
    ) -> None:
        """Measure what an attacker concludes from searches under each disguise."""
        from discreet.protocols.search import Vocabulary, search_risk

        words = Vocabulary.zipf(terms) if vocabulary is None else _read(vocabulary)
        console.show(search_risk(words), as_json=as_json)

    @group.command()
    def disguise(
        term: Annotated[str, typer.Argument(help="What you look for.")],
        vocabulary: Annotated[Path, typer.Option(help="A file with the columns term and count.")],
        cap: Annotated[
            float, typer.Option(help="Highest probability with which the term may be named.")
        ] = 0.2,
        as_json: console.JsonOption = False,
    ) -> None:
        """Print the search to type in place of a term: its bucket, always the same (Goopir)."""
        from discreet.protocols.search.goopir import Goopir

        query = Goopir(cap=cap).prepare(_read(vocabulary)).query(term)
        console.show({"query": query} if as_json else query, as_json=as_json)


def _read(file: Path) -> Vocabulary:
    from discreet.data.dataset import read
    from discreet.protocols.search._base import Vocabulary

    rows = read(file, types={"term": "nominal"}).arrow(["term", "count"])
    counts = zip(rows.column("term").to_pylist(), rows.column("count").to_pylist(), strict=True)
    return Vocabulary.of({str(term): float(count or 0) for term, count in counts})
