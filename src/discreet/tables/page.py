"""Pages and pictures of a released table: one for readers, one for the curator."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.chart import Axis, bars, grid, histogram
from discreet.data.release import Evidence
from discreet.data.table import Table
from discreet.page import Page, Section
from discreet.tables.layout import across_of, left_out, legend, pivot
from discreet.tables.loss_in_words import loss_in_words
from discreet.tables.methods.top_down import TopDown
from discreet.tables.protected_table import ProtectedTable
from discreet.tables.top_down_page import top_down_sections

__all__ = ["curator_page", "release_page"]

#: Larger tables are shown from the top, and drawn by their coarsest codes.
_ROWS, _CODES, _INTERVALS = 400, 40, 400
_COLOURS = {"safe": "#dbe7ea", "changed": "#8fb8de", "withheld": "#b5413a"}


def release_page(release: ProtectedTable) -> Page:
    """Return the page that is published: nothing in it says more than the published cells."""
    evidence = release.evidence()
    sections = [Section("The table", _above(release), table=pivot(release))]
    estimate = release.protected.estimate
    if estimate is not None and isinstance(release.method, TopDown):
        told = top_down_sections(release.method, estimate, release.protected.facts)
        return _released(release, evidence, [*told, *sections])
    if set(release.told) != {"safe"}:  # a picture of one colour shows nothing
        sections.append(
            Section(
                "Where cells are withheld or changed",
                picture=_heat_map(release),
                caption=_caption(release.table),
            )
        )
    widths = _public_widths(release)
    if widths is not None and len(widths):
        sections.append(
            Section(
                "What remains unknown",
                "Anybody can compute from the published cells an interval in which each withheld "
                "value lies. " + _widths_told(widths),
                picture=_several(widths),
            )
        )
    picture = _statuses(release) if len(set(release.told)) > 1 else None
    sections.append(Section("What was lost", "\n".join(loss_in_words(release)), picture=picture))
    return _released(release, evidence, sections)


def _above(release: ProtectedTable) -> str:
    """Return what is to be known before the table is read."""
    missing = left_out(release.table)
    cut = (
        f"\nThe first {len(release.table) - missing:,} of {len(release.table):,} cells are shown; "
        f"{missing:,} are left out here and stand in cells.csv."
    )
    return legend(release) + (cut if missing else "")


def _widths_told(widths: Any) -> str:
    """Return the widths in words; a chart of one bar would say less."""
    if len(set(widths)) == 1:
        return f"Each is {widths[0]:.0%} of its middle wide."
    return "Its width relative to its middle, over all withheld cells:"


def _several(widths: Any) -> str | None:
    if len(set(widths)) == 1:
        return None
    return histogram(widths.tolist(), Axis("width of the interval / its middle"), "cells")


def _released(release: ProtectedTable, evidence: Evidence, sections: list[Section]) -> Page:
    """Return the page with its last section: how it was protected."""
    methods = [("method", release.method.summary())]
    methods += [("rule", rule.summary()) for rule in release.rules]
    sections.append(Section("How it was protected", table=(("", ""), methods)))
    return Page(
        _title(release.table),
        sections,
        verdict=evidence.verdict,
        lead=release.caution
        or "A statistical table, protected so that no single contributor can be recognised in it.",
        footer=f"discreet {evidence.version}, {evidence.time}",
    )


def curator_page(release: ProtectedTable) -> Page:
    """Return the page for the curator: attacks, intervals with needs, exact loss."""
    found = release.audit().intervals
    frame = found.head(_ROWS)
    intervals = list(frame.columns), frame.to_numpy().tolist()
    left_out = len(found) - len(frame)
    cut = f"The first {len(frame):,} of {len(found):,}; {left_out:,} are left out here."
    return Page(
        f"{_title(release.table)}: for the curator only",
        [
            Section(
                "What publishing the sensitive cells would give away",
                table=release.exposures(limit=_ROWS),
            ),
            Section(
                "Feasibility and protection intervals", cut if left_out else "", table=intervals
            ),
            Section("Loss", table=release.loss),
            *_proof(release),
        ],
        verdict=release.caution or release.verdict,
        lead="Holds confidential values. It is not part of the published folder; do not publish it.",
    )


def _proof(release: ProtectedTable) -> list[Section]:
    """Return how near to the cheapest the result is proven to be, where the method knows."""
    known = release.protected.confidential
    if "optimal" not in known:
        return []
    gap = known.get("gap")
    lines = [
        ("the cheapest there is", "proven" if known["optimal"] else "not proven"),
        ("a cheaper one saves at most", "not known" if gap is None else f"{100 * gap:.1f} %"),
        (
            "tells no count to whoever has the program",
            {True: "proven", False: "no: merge categories", None: "not judged"}[
                known.get("deniable")
            ],
        ),
    ]
    return [Section("Cost of protection", table=(("", ""), lines))]


def _title(table: Table) -> str:
    what = {"count": "Number of records", "mean": "Mean", "sum": "Sum"}[table.statistic]
    of = f" of {table.measure}" if table.measure else ""
    return f"{what}{of} by {', '.join(table.by)}"


def _caption(table: Table) -> str:
    lines = _lines(table)
    more = len(set(lines)) - _CODES
    return (
        f"The first {_CODES} lines of the table; {more:,} more are not drawn." if more > 0 else ""
    )


def _lines(table: Table) -> list[str]:
    """Return the name of the line in which each cell stands when one attribute goes across."""
    right = across_of(table)
    down = [d for d in range(len(table.dimensions)) if d != right]
    cells = range(len(table) - left_out(table))
    return [" · ".join(table.labels(cell)[d] for d in down) for cell in cells]


def _heat_map(release: ProtectedTable) -> str:
    table, right = release.table, across_of(release.table)
    lines = _lines(table)
    down = [d for d in range(len(table.dimensions)) if d != right]
    codes = {line: tuple(table.codes[cell, down]) for cell, line in enumerate(lines)}
    order = sorted(codes, key=lambda line: codes[line])[:_CODES]
    kept = set(order)
    across = [""] if right is None else list(table.dimensions[right].codes)
    cells = {}
    for cell, line in enumerate(lines):
        if line in kept:
            column = "" if right is None else table.labels(cell)[right]
            told = str(release.told[cell])
            cells[line, column] = (_COLOURS[told], told)
    titles = " · ".join(table.by[d] for d in down), "" if right is None else table.by[right]
    return grid(cells, order, across, legend=_legend(release), titles=titles)


def _legend(release: ProtectedTable) -> dict[str, str]:
    """Return the colours that occur."""
    return {status: colour for status, colour in _COLOURS.items() if status in set(release.told)}


def _public_widths(release: ProtectedTable) -> Any:
    """Return relative widths of what anybody can compute from the published cells alone."""
    from discreet.tables.published import audit_published

    if not release.withholds or int(release.protected.withheld.sum()) > _INTERVALS:
        return None
    hierarchies = {d.name: d.hierarchies for d in release.table.dimensions}
    counts = release.table.statistic == "count" and not any(
        rule.name == "zero-cells" for rule in release.rules
    )
    audit = audit_published(release.published, hierarchies, counts=counts)
    lower, upper = (audit.intervals[name].to_numpy() for name in ("lower", "upper"))
    middle = np.abs(lower + upper) / 2
    ok = np.isfinite(middle) & (middle > 0)
    return ((upper - lower)[ok] / middle[ok]).round(3)


def _statuses(release: ProtectedTable) -> str:
    """Draw how many cells of each status there are, by the first attribute's coarsest codes."""
    table = release.table
    dimension = table.dimensions[0]
    counts = {
        status: np.bincount(table.codes[release.told == status, 0], minlength=len(dimension.codes))
        for status in _legend(release)
    }
    lines = {
        dimension.codes[code]: {status: int(number[code]) for status, number in counts.items()}
        for code in range(min(len(dimension.codes), _CODES))
    }
    return bars(lines, Axis("cells", is_whole=True), colours=_COLOURS, title=dimension.name)
