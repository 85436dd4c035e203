"""`discreet table`: protect a table, compare methods, make a key for cell-key noise."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from discreet.app.cli import console

if TYPE_CHECKING:
    from discreet.audit.rules import Rule
    from discreet.data.table import Table
    from discreet.tables.methods import TableMethod


class _Group(TyperGroup):
    """Takes what is not a command for a file to protect: `discreet table people.csv …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["protect", *args]
        return super().parse_args(ctx, args)


File = Annotated[str, typer.Argument(help="Records, or ready-made cells with --value; or a URL.")]
By = Annotated[
    list[str] | None,
    typer.Option(help="Attributes to cross, with commas; repeat it for linked tables."),
]
Measure = Annotated[str | None, typer.Option(help="Column to add up; without it, counts.")]
Statistic = Annotated[str, typer.Option(help="sum or mean of the measure.")]
Rules = Annotated[
    list[str] | None,
    typer.Option("--rule", help="What is sensitive: p-percent=10, minimum-frequency=3, …"),
]
Unit = Annotated[str | None, typer.Option(help="Column that says whom a record belongs to.")]
Weight = Annotated[str | None, typer.Option(help="Column of sampling weights.")]
Hierarchies = Annotated[
    list[str] | None,
    typer.Option("--hierarchy", help="attribute=file: .hrc, child,parent pairs, or ARX lines."),
]
Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--role", help="column=role (identifier, quasi, confidential, other); else guessed."
    ),
]
Value = Annotated[
    str | None,
    typer.Option(help="Ready-made cells: the column of values.", rich_help_panel="Cells"),
]
Argus = Annotated[
    Path | None,
    typer.Option(
        help="FILE is a tau-Argus tabular file and this its .rda metadata.", rich_help_panel="Cells"
    ),
]
Apriori = Annotated[
    Path | None,
    typer.Option(
        help="A tau-Argus a-priori file (.hst): statuses, costs and protection levels of cells.",
        rich_help_panel="Cells",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="Ready-made cells: role=column for count, primary, status, lower, upper, cost, "
        "contributions (with commas).",
        rich_help_panel="Cells",
    ),
]


@dataclasses.dataclass(frozen=True)
class _Input:
    """What tables are made from, as given on the command line."""

    file: str
    by: tuple[tuple[str, ...], ...]
    measure: str | None = None
    statistic: str = "sum"
    unit: str | None = None
    weight: str | None = None
    hierarchies: tuple[str, ...] = ()
    value: str | None = None
    columns: tuple[str, ...] = ()
    request: str | None = None
    missing: str | None = None
    argus: Path | None = None
    roles: tuple[str, ...] = ()

    def tables(self) -> list[Table]:
        """Return the tables."""
        from discreet.app.cli.members import parse_hierarchies, parse_roles
        from discreet.data.dataset import read
        from discreet.errors import InputError
        from discreet.tables.tabulation import tabulate

        if self.argus is not None:
            from discreet.data.table import Table

            return [Table.from_argus(self.file, self.argus, value=self.value)]
        hierarchies = parse_hierarchies(self.hierarchies)
        if self.value is not None:
            return [self._ready_made(names, hierarchies) for names in self.by]
        if not self.by:
            raise InputError(
                "a table needs attributes",
                code="no-attributes",
                hint="write --by sector,region",
            )
        data = read(
            self.file,
            roles=parse_roles(self.roles),
            hierarchies=hierarchies,
            unit=self.unit,
            weight=self.weight,
        )
        if self.statistic not in ("sum", "mean"):
            raise InputError(
                f"there is no statistic {self.statistic!r}",
                code="unknown-statistic",
                hint="choose sum or mean",
            )
        return list(
            tabulate(
                data,
                self.by,
                self.measure,
                "mean" if self.statistic == "mean" else "sum",
                request=self.request,
                missing=self.missing,
            )
        )

    def _ready_made(self, by: tuple[str, ...], hierarchies: Any) -> Table:
        # Any: `from_cells` takes one hierarchy or several per attribute.
        from discreet.data.dataset import read
        from discreet.data.table import Table
        from discreet.errors import InputError

        known = ("count", "primary", "status", "lower", "upper", "cost", "contributions")
        roles: dict[str, Any] = {}
        for text in self.columns:
            role, _, column = text.partition("=")
            if role not in known or not column:
                raise InputError(
                    f"{text!r} does not say what a column is",
                    code="malformed-column",
                    hint="write role=column, where role is one of " + ", ".join(known),
                )
            roles[role] = column.split(",") if role == "contributions" else column
        frame = read(self.file, types=dict.fromkeys(by, "nominal")).arrow()
        assert self.value is not None
        return Table.from_cells(frame, list(by), self.value, hierarchies=hierarchies, **roles)


def _rules(texts: list[str] | None) -> list[Rule]:
    from discreet.app.cli.members import parse_member
    from discreet.audit.rules import Rule

    return [parse_member(Rule, text) for text in texts or ()]


def _split(by: list[str] | None) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(name.strip() for name in text.split(",")) for text in by or ())


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(
        cls=_Group,
        no_args_is_help=True,
        help="Protect a table: [bold]discreet table people.parquet --by sector,region "
        "--measure salary --rule p-percent=10 --method suppression -o out[/bold]",
    )
    app.add_typer(group, name="table")
    group.command("protect")(_protect)
    group.command("compare")(_compare)
    group.command("new-key")(_new_key)


def _protect(
    file: File,
    by: By = None,
    measure: Measure = None,
    statistic: Statistic = "sum",
    rule: Rules = None,
    method: Annotated[
        str, typer.Option(help="How: suppression, controlled-rounding=5, 'cell-key deviation=4' …")
    ] = "suppression",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the release.")
    ] = None,
    curator: Annotated[
        Path | None,
        typer.Option(help="HTML page with attacks, intervals and exact loss: not for publication."),
    ] = None,
    unit: Unit = None,
    weight: Weight = None,
    hierarchy: Hierarchies = None,
    role: Roles = None,
    value: Value = None,
    column: Columns = None,
    argus: Argus = None,
    apriori: Apriori = None,
    request: Annotated[
        str | None, typer.Option(help="Column that is true for those who asked for protection.")
    ] = None,
    missing: Annotated[str | None, typer.Option(help="Code for missing values.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the attack each sensitive cell would enable.")
    ] = False,
    as_json: console.JsonOption = False,
) -> None:
    """Mark what is sensitive, protect it, audit the result and write the release."""
    from discreet.app.cli.members import parse_member
    from discreet.audit.exposure import expose
    from discreet.audit.sensitivity import mark
    from discreet.errors import InputError
    from discreet.tables.layout import legend, published_text
    from discreet.tables.methods import TableMethod
    from discreet.tables.protection import protect

    rules = _rules(rule)
    chosen = parse_member(TableMethod, method)
    given_status = value is not None or argus is not None or apriori is not None
    if chosen.needs_rules and not rules and not given_status:
        raise InputError(
            "without a rule nothing is sensitive and nothing would be protected",
            code="no-rules",
            hint="write --rule minimum-frequency=3, or see: discreet methods",
        )
    given = _Input(
        file,
        _split(by),
        measure,
        statistic,
        unit,
        weight,
        tuple(hierarchy or ()),
        value,
        tuple(column or ()),
        request,
        missing,
        argus,
        tuple(role or ()),
    )
    with console.progress() as progress:
        tables = given.tables()
        if apriori is not None:
            tables, chosen = _with_apriori(apriori, tables, chosen)
        attacks = [expose(mark(table, rules)) for table in tables] if explain else []
        target: Any = tables[0] if len(tables) == 1 else tables
        release = protect(target, rules, chosen, progress=progress)
        if output is not None:
            release.write(output)
    if curator is not None:
        part = getattr(release, "joint", release)
        part.write_curator(curator)
        console.note(f"wrote {curator}, for the curator only")
    evidence = release.evidence()
    if as_json:
        found = evidence.to_dict() | ({"attacks": attacks} if explain else {})
        console.show(found, as_json=True)
        return
    for report in attacks:
        console.show(report, title="What publishing as it is would give away (confidential)")
    for part in getattr(release, "releases", (release,)):
        console.show(f"{published_text(part)}\n{legend(part)}\n")
    counts = [(name, getattr(release.loss, name)) for name in ("cells", "sensitive", "secondaries")]
    rows = [("verdict", release.verdict), *counts]
    console.show((("", ""), rows))
    console.note(
        f"wrote {output}" if output is not None else "nothing was written: name a folder with -o"
    )


def _with_apriori(
    file: Path, tables: list[Table], method: TableMethod
) -> tuple[list[Table], TableMethod]:
    """Return tables and method as an a-priori file changes them."""
    from discreet.data.apriori import read_apriori
    from discreet.errors import InputError

    if len(tables) > 1:
        raise InputError(
            "an a-priori file speaks of the cells of one table",
            code="apriori-tables",
            hint="give --by once",
        )
    given = read_apriori(file, tables[0])
    if not given.never:
        return [given.table], method
    if not hasattr(method, "never"):
        raise InputError(
            f"the a-priori file keeps cells published (p), which {method.name} cannot",
            code="apriori-never",
            hint="use --method suppression, or leave those lines out",
            file=file,
        )
    kept = (*method.never, *("/".join(codes) for codes in given.never))
    return [given.table], dataclasses.replace(method, never=kept)  # type: ignore[call-arg]


def _compare(
    file: File,
    by: By = None,
    measure: Measure = None,
    statistic: Statistic = "sum",
    rule: Rules = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Methods to compare; all of them by default.")
    ] = None,
    unit: Unit = None,
    weight: Weight = None,
    hierarchy: Hierarchies = None,
    role: Roles = None,
    value: Value = None,
    column: Columns = None,
    argus: Argus = None,
    as_json: console.JsonOption = False,
) -> None:
    """Show risk and loss of every method side by side; for the curator."""
    from discreet.app.cli.members import parse_member
    from discreet.tables.comparison import compare
    from discreet.tables.methods import TableMethod

    given = _Input(
        file,
        _split(by),
        measure,
        statistic,
        unit,
        weight,
        tuple(hierarchy or ()),
        value,
        tuple(column or ()),
        argus=argus,
        roles=tuple(role or ()),
    )
    methods = [parse_member(TableMethod, text) for text in method or ()] or None
    with console.progress() as progress:
        for table in given.tables():
            found = compare(table, _rules(rule), methods, progress=progress)
            console.show(found, as_json=as_json, title=" × ".join(table.by))


def _new_key(file: Annotated[Path, typer.Argument(help="Where the key is written.")]) -> None:
    """Write a secret key for cell-key and record noise; keep it, and keep it to yourself."""
    import secrets

    from discreet.errors import InputError

    try:
        with file.open("x", encoding="ascii") as target:
            file.chmod(0o600)
            target.write(secrets.token_hex(32) + "\n")
    except FileExistsError:
        raise InputError(
            f"{file} exists, and a key that is overwritten is lost",
            code="key-exists",
            hint="choose another name, or move the old key away",
            file=file,
        ) from None
    console.note(f"wrote {file}, readable by you only")
