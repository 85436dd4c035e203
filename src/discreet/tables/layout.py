"""A released table as people lay it out: one attribute down, another across."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.report import Rows, shown

__all__ = ["layout", "published_text"]

# Wider or longer tables are lists: a crossing that does not fit a screen helps nobody.
_WIDEST = 8
_LONGEST = 40


def layout(frame: Any, by: Sequence[str]) -> Rows:
    """Return the published cells of a table over two attributes as a cross, others as a list.

    Withheld cells show their SDMX confidentiality status: C for sensitive, D for withheld to
    protect another. Any: the frame that a release publishes, in pandas.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = pd.DataFrame(
    ...     {
    ...         "sector": ["Total", "IT", "Fin"],
    ...         "value": [10.0, None, None],
    ...         "conf_status": ["F", "C", "D"],
    ...     }
    ... )
    >>> layout(cells, ["sector"])
    (('sector', 'value'), [('Total', '10'), ('IT', 'C'), ('Fin', 'D')])
    """
    texts = [_cell(row) for row in frame.to_dict("records")]
    codes = [tuple(row) for row in frame[list(by)].itertuples(index=False, name=None)]
    if len(by) == 2:
        across = list(dict.fromkeys(code[1] for code in codes))
        if len(across) <= _WIDEST:
            known = dict(zip(codes, texts, strict=True))
            down = dict.fromkeys(code[0] for code in codes)
            body = [(row, *(known.get((row, column), "") for column in across)) for row in down]
            return (f"{by[0]} \\ {by[1]}", *map(str, across)), body
    return (*by, "value"), [(*code, text) for code, text in zip(codes, texts, strict=True)]


def published_text(frame: Any, by: Sequence[str]) -> str:
    """Return the published cells as text, cut to a screen. Any: a pandas frame."""
    header, body = layout(frame, by)
    lines = [header, *body[:_LONGEST]]
    labels = 1 if str(header[0]).startswith(f"{by[0]} ") else len(by)
    width = [max(len(str(line[c])) for line in lines) for c in range(len(header))]
    text = "\n".join(
        "  ".join(
            str(cell).ljust(width[c]) if c < labels else str(cell).rjust(width[c])
            for c, cell in enumerate(line)
        ).rstrip()
        for line in lines
    )
    return text if len(body) <= _LONGEST else f"{text}\n… {len(body) - _LONGEST:,} more"


def _cell(row: dict[str, Any]) -> str:
    if row.get("conf_status", "F") == "F":
        return shown(row["value"])
    lower, upper = row.get("lower"), row.get("upper")
    if lower is not None and lower == lower:
        return f"{shown(lower)}…{shown(upper)}"
    return str(row["conf_status"])
