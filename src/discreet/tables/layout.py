"""A released table as people lay it out: one attribute down, another across."""

from __future__ import annotations

from discreet.data.table import Table
from discreet.report import Rows, shown
from discreet.tables.protected_table import ProtectedTable

__all__ = ["layout", "legend", "published_text", "sides"]

#: Larger tables are shown from the top.
_ROWS, _CODES = 400, 40
#: What fits a terminal.
_LINES, _ACROSS = 40, 10
_MARK = "c"


def legend(release: ProtectedTable) -> str:
    """Return what the marks in the layout mean."""
    if release.protected.prints_intervals:
        return "Two numbers: the value lies between them."
    if release.withholds:
        return "c: withheld, confidential or to protect another cell."
    return "Values were changed to protect contributors; see below how."


def layout(release: ProtectedTable) -> Rows:
    """Return a cross table where there are two attributes, else one line per cell."""
    table = release.table
    if len(table.dimensions) == 2 and min(len(d.codes) for d in table.dimensions) <= _CODES:
        return _cross(release)
    cells = range(min(len(table), _ROWS))
    return [*table.by, "value"], [[*table.labels(cell), _text(release, cell)] for cell in cells]


def _text(release: ProtectedTable, cell: int) -> str:
    """Return what is printed for a cell."""
    protected, frame = release.protected, release._frame
    if not protected.withheld[cell]:
        return shown(float(frame["value"][cell]))
    if protected.prints_intervals:
        return f"{shown(float(frame['lower'][cell]))} – {shown(float(frame['upper'][cell]))}"
    return _MARK


def sides(table: Table) -> tuple[int, int]:
    """Return which attribute goes down and which across: the longer one down."""
    if len(table.dimensions) < 2:
        return 0, 0
    longer = len(table.dimensions[1].codes) > len(table.dimensions[0].codes)
    return (1, 0) if longer else (0, 1)


def _cross(release: ProtectedTable) -> Rows:
    table = release.table
    down, right = sides(table)
    rows, columns = table.dimensions[down], table.dimensions[right]
    used = sorted(set(table.codes[:, down].tolist()))[:_ROWS]
    across = sorted(set(table.codes[:, right].tolist()))
    place = {(int(code[down]), int(code[right])): cell for cell, code in enumerate(table.codes)}
    # Totals come last, as people read tables.
    used, across = [*used[1:], *used[:1]], [*across[1:], *across[:1]]
    header = [f"{rows.name} \\ {columns.name}", *(columns.codes[c] for c in across)]
    body = [
        [rows.codes[r], *(_text(release, place[r, c]) if (r, c) in place else "" for c in across)]
        for r in used
    ]
    return header, body


def published_text(release: ProtectedTable) -> str:
    r"""Return what is published as text that fits a terminal, values set to the right.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet import demo
    >>> table = dc.tabulate(demo.salaries(), by=["sector", "region"], measure="salary")
    >>> release = table.protect(rules=[dc.MinimumFrequency(3)], method=dc.Suppression())
    >>> print(published_text(release).splitlines()[0])
    sector \ region        BCN      TGN      Total
    """
    header, body = layout(release)
    labels = len(header) - 1 if header[-1] == "value" else 1
    if len(header) > _ACROSS:
        kept = [*range(_ACROSS - 1), len(header) - 1]
        header = [str(header[c]) for c in kept]
        body = [[row[c] for c in kept] for row in body]
    lines = [header, *body[:_LINES]]
    width = [max(len(str(line[c])) for line in lines) for c in range(len(header))]
    text = "\n".join(
        "  ".join(
            str(cell).ljust(width[c]) if c < labels else str(cell).rjust(width[c])
            for c, cell in enumerate(line)
        ).rstrip()
        for line in lines
    )
    return text if len(body) <= _LINES else f"{text}\n… {len(body) - _LINES:,} more"
