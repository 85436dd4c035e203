"""A command made from a job: options from its parameters and those of the source."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from discreet.app.cli import console
from discreet.app.cli.members import parse_member, read_value
from discreet.data.declared import parse_hierarchies
from discreet.data.engines.driver import metering
from discreet.data.job import Job
from discreet.data.source import Source
from discreet.errors import InputError
from discreet.registry import Member, Parameter, build, is_address

if TYPE_CHECKING:
    from discreet.app.cli.glance import Glance

__all__ = ["command", "with_reading"]

_OUTPUT = ("--output", "-o")
_METAVARS: dict[Any, str] = {int: "INTEGER", float: "FLOAT", str: "TEXT"}


def command(glance: Glance) -> Callable[..., None]:
    """Return the function that typer makes a command of."""
    job: type[Job] = getattr(importlib.import_module(glance.module), glance.cls)

    def run(**typed: Any) -> None:
        _run(job, typed)

    run.__doc__ = glance.help
    run.__name__ = glance.name
    signature = inspect.Signature([*_arguments(job)])
    run.__signature__ = signature  # type: ignore[attr-defined]  # read by typer
    run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    return run


def _arguments(job: type[Job]) -> Iterator[inspect.Parameter]:
    """Give one argument of the function for every option; of two alike the source's is taken."""
    shared = {item.name: item for item in Source.parameters()}
    own = [item for item in job.parameters() if item.name not in shared]
    file = dataclasses.replace(shared.pop("source"), required=job.needs_source)
    for item in (file, *own):
        yield _argument(item, None)
    for item in shared.values():
        yield _argument(item, None if item.name == "roles" else "Data")
    place = typer.Option(*_OUTPUT, help="Where the result is written.", show_default=False)
    yield _keyword(
        "output", Annotated[Path | None, place], Path(job.output) if job.output else None
    )
    yield _keyword("rows_out", Annotated[bool, _rows_out()], False)
    yield _keyword("as_json", console.JsonOption, False)


def with_reading(run: Callable[..., None]) -> Callable[..., None]:
    """Return a command that also takes how a file is written, as commands of jobs do.

    Its function receives `reading`: the values that were typed, by the names that `Source` has.
    """
    wanted = {item.name: item for item in Source.parameters()}
    items = [wanted[name] for name in ("types", *Source.reading_options())]
    plain = inspect.signature(run, eval_str=True)
    own = [one for name, one in plain.parameters.items() if name != "reading"]
    more = [_argument(item, "Data") for item in items]

    @functools.wraps(run)
    def command(**typed: Any) -> None:
        # Any: what typer makes of each option.
        given = [(item, typed.pop(item.name)) for item in items]
        said = {i.name: _value(i, text) for i, text in given if text not in (None, [])}
        run(**typed, reading=said)

    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *more)]
    command.__signature__ = plain.replace(parameters=parameters)  # type: ignore[attr-defined]  # read by typer
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _rows_out() -> Any:
    # Any: typer's own class of options.
    return typer.Option(
        "--rows-out",
        help="Say how many rows would be fetched from the engine, and of what kind; do nothing else.",
        show_default=False,
    )


def _is_argument(item: Parameter) -> bool:
    return item.option.isupper()


def _argument(item: Parameter, panel: str | None) -> inspect.Parameter:
    kind, default = _typed(item)
    text = item.help[:1].upper() + item.help[1:] + (f" ({item.range})" if item.range else "") + "."
    text = text.replace("[", r"\[")
    if _is_argument(item):
        declared: Any = typer.Argument(help=text, metavar=item.option, show_default=False)
    else:
        shown = False if item.default in (None, (), {}) or kind is bool else _text(item.default)
        flag = kind in (bool, bool | None)
        declared = typer.Option(
            *_names(item),
            help=text,
            metavar=None if flag else _metavar(item.type),
            show_default=shown,
            rich_help_panel=panel,
        )
    return _keyword(item.name, Annotated[kind, declared], ... if item.required else default)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    empty = inspect.Parameter.empty if default is ... else default
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=empty, annotation=annotation
    )


def _names(item: Parameter) -> list[str]:
    """Return how an option is typed: as declared, or made from its name."""
    dashed = item.name.replace("_", "-")
    if item.option:
        return item.option.split("/")
    if item.type is bool and item.default is False:
        return [f"--{dashed}"]
    if item.type is bool or item.type == bool | None:
        return [f"--{dashed}/--no-{dashed}"]
    return [f"-{dashed}" if len(dashed) == 1 else f"--{dashed}"]


def _typed(item: Parameter) -> tuple[Any, Any]:
    """Return how typer takes an option: a switch, a list of texts, or a text; and its default.

    Everything but switches stays a text until the job is built: mistakes are told in one place.
    """
    if item.type is bool:
        return bool, item.default
    if item.type == bool | None:
        return bool | None, None
    if _several(item.type):
        return (list[str] if item.required else list[str] | None), None
    return (str if item.required else str | None), None


def _several(kind: Any) -> bool:
    return any(get_origin(option) in (tuple, Mapping) for option in (kind, *get_args(kind)))


def _metavar(kind: Any) -> str:
    options = [one for one in get_args(kind) or (kind,) if one is not type(None)]
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    return _METAVARS.get(options[0], "TEXT") if len(options) == 1 else "TEXT"


def _text(default: Any) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _run(job: type[Job], typed: dict[str, Any]) -> None:
    """Build job and source from what was typed, run, write, show."""
    from discreet.data.formulas import stated_cautions
    from discreet.dp.caution import cautions

    output, as_json, rows_out = (typed.pop(name) for name in ("output", "as_json", "rows_out"))
    source = _built(Source, typed) if typed.get("source") is not None else None
    shared = {item.name for item in Source.parameters()}
    demand: Job = _built(job, {n: value for n, value in typed.items() if n not in shared})
    for warning in cautions(demand):
        console.note(f"caution: {warning}")
    if rows_out:
        console.show(demand.rows_out(source), as_json=as_json)
        return
    with console.progress() as progress, metering() as meter:
        data = demand.open(source)
        demand.check(data)
        explained = demand.explanations(data)
        result = demand.run(data, progress=progress)
        if output is not None:
            demand.write(result, output)
    if output is not None and demand.section == "releases":
        for warning in stated_cautions(Path(output)):
            console.note(f"caution: {warning}")
    for note in demand.finish(result):
        console.note(note)
    if source is not None and is_address(source.source):
        console.note(meter.outflow().sentence())
    _show(demand, result, explained, as_json)
    if output is not None:
        console.note(demand.note.format(output=output))
    elif demand.section == "releases":
        console.note("nothing was written: name a folder with -o")


def _show(demand: Job, result: Any, explained: Sequence[Any], as_json: bool) -> None:
    if as_json:
        found: Any = demand.data(result)
        if explained:
            found = found.to_dict() | {"attacks": list(explained)}
        console.show(found, as_json=True)
        return
    for report in explained:
        console.show(report, title="What publishing as it is would give away (confidential)")
    for title, part in demand.shown(result):
        console.show(part, title=title)


def _built(declared: Any, typed: Mapping[str, Any]) -> Any:
    # Any: a job's class or `Source`, and an object of it.
    values = {}
    for item in declared.parameters():
        given = typed.get(item.name)
        if given is not None and given != []:
            values[item.name] = _value(item, given)
    return declared(**values)


def _value(item: Parameter, given: Any) -> Any:
    """Return a parameter's value from the texts that were typed for it."""
    kind = item.type
    if isinstance(given, bool):
        return given
    family = _family(kind)
    if item.name == "hierarchies":
        return parse_hierarchies(given)
    if any(get_origin(option) is Mapping for option in (kind, *get_args(kind))):
        return build(kind, _mapping(item, given))
    if family is not None:
        texts = [given] if isinstance(given, str) else given
        spread = [one for text in texts for one in (_spread(text) if item.spread else [text])]
        made = [parse_member(family, text) for text in spread]
        return made[0] if isinstance(given, str) else tuple(made)
    if isinstance(given, str):
        return build(kind, given)
    lists = [[part.strip() for part in text.split(",") if part.strip()] for text in given]
    if _nested(kind):
        return build(kind, lists if len(lists) > 1 else lists[0])
    return build(kind, [part for parts in lists for part in parts])


def _family(kind: Any) -> Any:
    """Return the base class of the members that a parameter takes; None where it takes none."""
    for option in (kind, *get_args(kind), *(i for o in get_args(kind) for i in get_args(o))):
        if isinstance(option, type) and issubclass(option, Member):
            return option
    return None


def _nested(kind: Any) -> bool:
    """Whether a parameter takes lists of lists."""
    options = (kind, *get_args(kind))
    return any(
        get_origin(option) is tuple and get_origin(get_args(option)[0]) is tuple
        for option in options
    )


def _mapping(item: Parameter, texts: Sequence[str]) -> dict[str, Any]:
    """Return the entries that were typed, `NAME=VALUE`, or that stand in a file: `@domains.yaml`.

    Of domains and bounds a value lists several, with commas.
    """
    found: dict[str, Any] = {}
    for text in texts:
        if text.startswith("@"):
            held = read_value(text)
            if not isinstance(held, Mapping):
                raise InputError(
                    f"{_names(item)[0]} needs a file with one entry per column",
                    code="bad-file",
                    hint="write COLUMN: [value, …], a line each",
                    file=text[1:],
                )
            found |= held
            continue
        name, value = _pair(text, item)
        lists = item.name in ("domains", "bounds")
        found[name] = [part.strip() for part in value.split(",")] if lists else value
    if item.name == "bounds":
        return {name: _ends(name, ends) for name, ends in found.items()}
    return found


def _ends(name: str, ends: Any) -> tuple[float, ...]:
    # Any: texts from the command line, numbers from a file.
    try:
        return tuple(
            int(end) if str(end).strip().lstrip("+-").isdecimal() else float(end) for end in ends
        )
    except (TypeError, ValueError):
        raise InputError(
            f"the bounds of column {name!r} are not numbers",
            code="malformed-option",
            hint=f"write --bounds {name}=0,100",
            column=name,
        ) from None


def _pair(text: str, item: Parameter) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name.strip() or not value.strip():
        raise InputError(
            f"{_names(item)[0]} needs NAME=VALUE, found {text!r}",
            code="malformed-option",
            hint=f"write {_names(item)[0]} {text.partition('=')[0] or 'name'}=…",
        )
    return name.strip(), value.strip()


def _spread(text: str) -> list[str]:
    """Return one text for each combination of the values that parameters list with |.

    >>> _spread("microaggregation=age k=3|5")
    ['microaggregation=age k=3', 'microaggregation=age k=5']
    """
    choices = []
    for word in text.split():
        name, equals, value = word.partition("=")
        choices.append([f"{name}{equals}{one}" for one in value.split("|")])
    return [" ".join(chosen) for chosen in itertools.product(*choices)]
