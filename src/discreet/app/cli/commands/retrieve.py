"""`discreet retrieve`: publish tables, serve them, and look rows up unseen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.app.cli import console
from discreet.app.cli.allowing import AllowOption, PasswordOption, password_in
from discreet.app.cli.groups import add_group

if TYPE_CHECKING:
    from discreet.app.policy.model import Policy
    from discreet.protocols.retrieval.table import RetrievalTable
    from discreet.protocols.services.retrieval_table import RetrievalTableService

PolicyArgument = Annotated[Path, typer.Argument(help="The policy file with `retrieval:`.")]
PolicyOption = Annotated[
    Path, typer.Option("--policy", "-p", help="The policy file with `retrieval:`.")
]
TableOption = Annotated[
    str | None, typer.Option("--table", "-t", help="Which table, if there are several.")
]
SchemeOption = Annotated[
    str, typer.Option(help="auto, or one that `discreet methods scheme` lists.")
]
_POLICY = Path("policy.yaml")


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = add_group(app, "retrieve", "Look rows up by key; servers learn nothing but the size.")
    for command in (build, update, serve, get, evaluate):
        group.command()(command)


def build(
    policy: PolicyArgument,
    table: TableOption = None,
    allow: AllowOption = None,
    password_from: PasswordOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Publish the tables of a policy under their next version, signed.

    Everybody may look up every row: it protects who asks, not those whom rows are about.
    """
    from discreet.app.policy.access import permitted_policy
    from discreet.app.policy.run import open_source

    loaded, _ = permitted_policy(policy, allow=allow or (), password=password_in(password_from))
    tables = []
    for name, service in _tables(loaded, table, policy).items():
        made = service.build(open_source(loaded), policy.parent, name=name)
        tables.append(_published(name, made))
        if not as_json:
            console.note(_published_text(tables[-1]))
            console.note(f"  publisher {made.statement.publisher}")
            console.note(f"  root      {made.statement.root}")
    if as_json:
        console.show(tables, as_json=True)


def update(
    policy: PolicyArgument,
    changed: Annotated[
        Path | None, typer.Option(help="A file with changed and new rows, all columns.")
    ] = None,
    deleted: Annotated[
        list[str] | None, typer.Option(help="A key that is gone; repeatable.")
    ] = None,
    table: TableOption = None,
    allow: AllowOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Publish changed rows as the next version, without building the table again."""
    loaded, name, service = _one(policy, table, allow)
    made = service.update(loaded.data, changed, tuple(deleted or ()), policy.parent, name=name)
    state = made.statement
    many = len(state.part("main").changed)
    room = state.part("main").delta
    facts = _published(name, made)
    console.done(
        f"{_published_text(facts)}\n"
        f"  {many:,} of {room:,} changes before the table must be built again",
        as_json=as_json,
        **facts,
        changes=many,
        room=room,
    )


def serve(
    policy: PolicyArgument,
    server: Annotated[str, typer.Option(help="Which of the servers of the policy this is.")],
    allow: AllowOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Answer look-ups as one of the servers, until interrupted.

    Two servers hide what is asked only while their operators do not tell each other.
    """
    import threading

    from discreet.app.policy.access import permitted_policy
    from discreet.protocols.services.retrieval_table import serve_tables

    loaded, _ = permitted_policy(policy, allow=allow or ())
    started, identity = serve_tables(_tables(loaded, None, policy), server, policy.parent)
    console.done(
        f"server {server} answers at {started.address} until interrupted (TLS 1.3)\n"
        f"  certificate {identity.certificate}\n  pin         {identity.pin}",
        as_json=as_json,
        server=server,
        address=started.address,
        certificate=identity.certificate,
        pin=identity.pin,
    )
    with started:
        threading.Event().wait()


def get(
    key: Annotated[str, typer.Argument(help="The key, or with --where a secondary key's value.")],
    policy: PolicyOption = _POLICY,
    table: TableOption = None,
    where: Annotated[str | None, typer.Option(help="A secondary key, such as city.")] = None,
    scheme: SchemeOption = "auto",
    allow: AllowOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Look a row up by its key; the servers of the policy do not learn which.

    Exit code 1 says that it is proven that there is none.
    """
    import json

    from discreet.report import plain

    _, name, service = _one(policy, table, allow)
    with service.asking(policy.parent, name=name, scheme=scheme, library="pyarrow") as retrieval:
        if where is None:
            row = retrieval.get(key)
            rows = [] if row is None else [row]
        else:
            rows = retrieval.where(**{where: key}).to_pylist()
        told = (
            f"{retrieval.scheme.name}: {retrieval.why}; {retrieval.sent:,} bytes up, "
            f"{retrieval.received:,} down"
        )
    if as_json:
        print(json.dumps(plain(rows), ensure_ascii=False))
    else:
        for row in rows:
            print("\n".join(f"{column}: {_shown(value)}" for column, value in row.items()))
        console.note(told if rows else f"proven absent; {told}")
    if not rows:
        raise typer.Exit(1)


def _shown(value: object) -> object:
    """Return a value of a row as it is printed; a missing one as in all tables."""
    return "–" if value is None else value


def evaluate(
    policy: PolicyArgument,
    table: TableOption = None,
    views: Annotated[int, typer.Option(min=40, help="Questions that the classifier sees.")] = 600,
    allow: AllowOption = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with a picture there.")] = None,
    as_json: console.JsonOption = False,
) -> None:
    """Measure what each scheme hides and costs on a published table."""
    from discreet.protocols.retrieval.evaluation import retrieval_risk
    from discreet.protocols.retrieval.table import RetrievalTable

    _, name, service = _one(policy, table, allow)
    made = RetrievalTable.open(service.place(policy.parent, name))
    found = retrieval_risk(made, views=views)
    if html is not None:
        from discreet.data.atomic import atomic_file

        with atomic_file(html) as file:
            file.write_text(found.page().html(), encoding="utf-8")
    console.show(found, as_json=as_json)


def _published(name: str, made: RetrievalTable) -> dict[str, object]:
    """Return what a published version is known by."""
    state = made.statement
    return {
        "table": name,
        "version": state.version,
        "rows": state.rows,
        "columns": [name for name, _ in state.columns],
        "folder": made.folder,
        "publisher": state.publisher,
        "root": state.root,
    }


def _published_text(facts: Mapping[str, Any]) -> str:
    # Who forgot `columns:` publishes the key alone, and reads it here.
    columns = ", ".join(facts["columns"])
    text = "{table}: version {version}, {rows:,} rows of {columns}, in {folder}"
    return text.format(**{**facts, "columns": columns})


def _tables(policy: Policy, name: str | None, path: Path) -> dict[str, RetrievalTableService]:
    """Return the tables of a policy, or the one of a name."""
    from discreet.errors import InputError
    from discreet.protocols.services.retrieval_table import RetrievalTableService

    found = {
        known: service
        for known, service in policy.retrieval.items()
        if isinstance(service, RetrievalTableService) and name in (None, known)
    }
    if not found:
        known = ", ".join(policy.retrieval) or "none"
        raise InputError(
            f"the policy has no table {name!r}" if name else "the policy publishes no table",
            code="no-retrieval-table",
            hint=f"add `retrieval:`; there are: {known}",
            file=path,
        )
    return found


def _one(
    path: Path, name: str | None, allow: list[str] | None
) -> tuple[Policy, str, RetrievalTableService]:
    """Return the policy, and the one table that is meant."""
    from discreet.app.policy.access import permitted_policy
    from discreet.errors import InputError

    policy, _ = permitted_policy(path, allow=allow or ())
    found = _tables(policy, name, path)
    if len(found) > 1:
        raise InputError(
            "the policy publishes several tables",
            code="several-tables",
            hint="choose with --table: " + ", ".join(found),
            file=path,
        )
    return policy, *next(iter(found.items()))
