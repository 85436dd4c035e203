"""What commands show: reports, progress and errors, for people and, with --json, for programs."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.errors import DiscreetError
from discreet.progress import Progress, silent, told, watched

if TYPE_CHECKING:
    from discreet.report import Report, Rows

__all__ = ["JsonOption", "done", "fail", "note", "progress", "show"]

#: Every command takes it; what has no result says with it what was done.
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

# Work shorter than this shows no bar: it would only flicker.
_PATIENCE = 2.0


def show(
    result: Report | Rows | str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    as_json: bool = False,
    title: str | None = None,
) -> None:
    """Print a report, a table or a text to standard output."""
    from discreet.report import Report, plain, text_table

    if as_json:
        if isinstance(result, tuple):
            header, body = result
            result_data: Any = [dict(zip(header, row, strict=True)) for row in body]
        else:
            result_data = result
        print(json.dumps(plain(result_data), indent=2, ensure_ascii=False))
        return
    if title and sys.stdout.isatty():
        _rich(stderr=False).print(f"\n[bold]{title}[/bold]")
    elif title:
        print(f"\n{title}")
    print(text_table(*result) if isinstance(result, tuple) else str(result))
    if isinstance(result, Report):
        sys.stdout.flush()


def done(text: str, *, as_json: bool, **facts: object) -> None:
    """Say that something was done, or is ready: a note for people, one line of JSON for programs."""
    if not as_json:
        note(text)
        return
    from discreet.report import plain

    # A program waits for the line of a server, which prints no other.
    print(json.dumps(plain(facts), ensure_ascii=False), flush=True)


def note(text: str) -> None:
    """Tell the person something that is not the result: goes to standard error."""
    print(text, file=sys.stderr)


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """Yield a callback that draws a bar once work takes longer than two seconds."""
    if not sys.stderr.isatty():
        with told(note):
            yield silent
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    bars = Bars(*columns, console=_rich(stderr=True), transient=True)
    tasks: dict[str, Any] = {}
    started, drawn = time.monotonic(), False

    def step(stage: str, done: int, total: int) -> None:
        nonlocal drawn
        if not drawn and time.monotonic() - started < _PATIENCE:
            return
        if not drawn:
            bars.start()
            drawn = True
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total)
        bars.update(tasks[stage], completed=done, total=total)

    try:
        with told(note), watched(step):
            yield step
    finally:
        if drawn:
            bars.stop()


def fail(error: DiscreetError, *, as_json: bool = False) -> int:
    """Print an error in one block and return the exit code of its branch."""
    from discreet.report import plain

    if as_json:
        print(json.dumps(plain(error.to_dict()), indent=2, ensure_ascii=False), file=sys.stderr)
        return error.exit_code
    kind = {2: "cannot be done as asked", 3: "refused", 4: "not feasible", 5: "the engine failed"}
    lines = [f"{kind.get(error.exit_code, 'failed')}: {error.message}"]
    if error.where:
        lines.append(f"  where: {error.where}")
    lines.extend(f"  {mistake}" for mistake in error.facts.get("mistakes", ()))
    if error.hint:
        lines.append(f"  do:    {error.hint}")
    lines.append(f"  code:  {error.code}")
    print("\n".join(lines), file=sys.stderr)
    return error.exit_code


def _rich(*, stderr: bool) -> Any:
    # Any: rich is imported only where something is drawn.
    from rich.console import Console

    return Console(stderr=stderr)
