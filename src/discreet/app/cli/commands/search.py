"""`discreet search`: disguises for searches where the database does not help, measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.app.cli import console
from discreet.app.cli.allowing import AllowOption
from discreet.app.cli.groups import add_group
from discreet.errors import InputError, RefusedError

if TYPE_CHECKING:
    from discreet.protocols.search.backends import Backend
    from discreet.protocols.search.declaration import SearchPolicy


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = add_group(app, "search", "Disguise searches, and measure what that hides.")
    for command in (evaluate, disguise, proxy, member):
        group.command()(command)


def evaluate(
    vocabulary: Annotated[
        Path | None,
        typer.Argument(help="A file with the columns term and count; Zipf's law without one."),
    ] = None,
    terms: Annotated[int, typer.Option(min=100, help="Terms, without a file.")] = 20_000,
    html: Annotated[Path | None, typer.Option(help="Write a page with pictures there.")] = None,
    as_json: console.JsonOption = False,
) -> None:
    """Measure what an attacker concludes from searches under each disguise."""
    from discreet.protocols.search import Vocabulary, search_risk
    from discreet.protocols.search.declaration import read_vocabulary

    words = Vocabulary.zipf(terms) if vocabulary is None else read_vocabulary(vocabulary)
    found = search_risk(words)
    if html is not None:
        from discreet.data.atomic import atomic_file
        from discreet.protocols.search.pictures import search_page

        with atomic_file(html) as file:
            file.write_text(search_page(found, words).html(), encoding="utf-8")
    console.show(found, as_json=as_json)


def disguise(
    term: Annotated[str, typer.Argument(help="What you look for.")],
    vocabulary: Annotated[Path, typer.Option(help="A file with the columns term and count.")],
    cap: Annotated[
        float, typer.Option(help="Highest probability with which the term may be named.")
    ] = 0.2,
    as_json: console.JsonOption = False,
) -> None:
    """Print the search to type in place of a term: its bucket, always the same (Goopir)."""
    from discreet.protocols.search.declaration import kept_beside, read_vocabulary
    from discreet.protocols.search.goopir import Goopir

    words = read_vocabulary(vocabulary)
    query = Goopir(cap=cap).resume(words, kept_beside(vocabulary)).query(term)
    console.show({"query": query} if as_json else query, as_json=as_json)


def proxy(
    policy: Annotated[Path, typer.Argument(help="The policy file with `search:`.")],
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Another port than the policy's.")
    ] = None,
    allow: AllowOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Serve searches on this machine; the engine behind sees them in disguise.

    [bold]discreet search proxy policy.yaml[/bold], then open the address it prints.
    """
    from discreet.app.server.search_proxy import serve_proxy

    search = _search(policy, allow)
    serve_proxy(
        search.open(_connected), search.port if port is None else port, started=_told(as_json)
    )


def member(
    policy: Annotated[Path, typer.Argument(help="The policy file with `search:`.")],
    name: Annotated[str, typer.Option("--as", help="Which member this is.")],
    key: Annotated[Path, typer.Option(help="The key file of the member's certificate.")],
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Another port than the policy's.")
    ] = None,
    allow: AllowOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Take part in a crowd or among peers: search for others, and through them, on a page.

    [bold]discreet search member policy.yaml --as ana --key ana.key[/bold]
    """
    from discreet.app.server.search_proxy import serve_proxy

    search = _search(policy, allow)
    serve_proxy(
        search.join(name, key, _connected),
        search.port if port is None else port,
        started=_told(as_json),
    )


def _search(policy: Path, allow: list[str] | None) -> SearchPolicy:
    from discreet.app.policy.access import permitted_policy

    loaded, _ = permitted_policy(policy, allow=allow or ())
    if loaded.search is None:
        raise InputError(
            "the policy has no section `search`",
            code="no-search",
            hint="add `search: {vocabulary: words.csv, index: articles.db}`",
            file=policy,
        )
    return loaded.search


def _connected(search: SearchPolicy) -> Backend:
    """Return the gateway of a policy; the password is asked for, or read from DISCREET_PASSWORD."""
    from discreet.protocols.search.statistics import StatisticalGateway
    from discreet.queries.client import Client

    password = os.environ.get("DISCREET_PASSWORD") or typer.prompt(
        f"Password of {search.user}", hide_input=True, err=True
    )
    client = Client(
        str(search.gateway),
        user=str(search.user),
        password=password,
        certificate=search.certificate,
    )

    def ask(statement: str, terms: Sequence[str]) -> list[dict[str, Any]]:
        answer = client.ask(statement, list(terms))
        if answer.table is None:
            raise RefusedError(answer.reason, code=answer.code, hint=answer.hint)
        return list(answer.table.to_pylist())

    return StatisticalGateway(ask, str(search.statement), close=client.close)


def _told(as_json: bool) -> Callable[[int], None]:
    """Return what says where one searches; with --json, in one line for programs."""

    def tell(port: int) -> None:
        url = f"http://127.0.0.1:{port}/"
        console.done(f"searching unseen on {url} (stop with Ctrl+C)", as_json=as_json, url=url)

    return tell
