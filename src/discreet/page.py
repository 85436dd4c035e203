"""Standalone HTML pages for reports: text, tables and pictures in one file.

Everything that comes from data is escaped; pictures are drawn to SVG here, so that the page loads
nothing from anywhere and can be mailed, archived or printed. Only a long table brings a script, which
searches its lines; where scripts do not run, the table is there whole.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence
from typing import Any

from discreet.report import Report, Rows, shown

__all__ = ["Page", "Pivot", "Section"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --soft: #5b6b7b; --line: #d9e0e7; --mark: #0b6e75; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --soft: #9aa8b5; --line: #34404c; --mark: #5cc4cb; --paper: #12181f; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .4rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
p { margin: .5rem 0; max-width: 46rem; } .soft, caption, footer { color: var(--soft); font-size: .9rem; }
.verdict { border-left: 4px solid var(--mark); padding: .5rem .9rem; margin: 1rem 0; font-weight: 600; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; font-size: .93rem; }
th, td { padding: .3rem .75rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; } td.n, th.n { text-align: right; }
figure { margin: .8rem 0; background: #fff; padding: .5rem; border-radius: 4px; overflow-x: auto; } figcaption { color: #5b6b7b; font-size: .9rem; }
tbody th { font-weight: normal; } tbody.total th, tbody.total td { font-weight: 600; }
.searched tbody.total + tbody.parts { display: table-row-group !important; } .search { display: block; margin: .6rem 0; } .search input { font: inherit; }
.pivot thead th { position: sticky; top: 0; background: var(--paper); } tbody.total:has(input:not(:checked)) + tbody.parts { display: none; }
@media print { tbody.total:has(input) + tbody.parts { display: table-row-group; } tbody input, .search { display: none; } tr[hidden] { display: table-row; } .wide { overflow: visible; }
  body { font-size: 10pt; max-width: none; margin: 0; padding: 0; } h2 { break-after: avoid; } tr, figure, .form { break-inside: avoid; } footer { break-before: avoid; } figure svg { max-width: 100%; height: auto; } pre { white-space: pre-wrap; }
  table { font-size: var(--fit, 8.5pt); max-width: 100%; } th, td { padding: .2rem .35rem; } .w, .pivot th { overflow-wrap: anywhere; } .pivot .n { white-space: nowrap; overflow-wrap: normal; } h2 + p { break-after: avoid; } }
@page { size: A4; margin: 18mm 16mm; }
.form table { width: 100%; } .form tbody td { height: 2.6rem; vertical-align: bottom; } .form th, .form td { width: 40%; } .form th:first-child, .form td:first-child { width: 20%; }
pre { overflow-x: auto; background: color-mix(in srgb, var(--line) 40%, transparent); padding: .7rem .9rem; border-radius: 4px; font-size: .88rem; }
"""

#: Tables of more lines than this can be searched.
_LONG = 40
#: Puts a field above each long table that hides the lines without its words, and counts the others.
_SEARCH = """<script>
for (const table of document.querySelectorAll("table.long")) {
  const lines = [...table.tBodies].flatMap(body => [...body.rows]);
  const label = document.createElement("label"), field = document.createElement("input"), found = document.createElement("output");
  field.type = "search"; label.className = "search"; label.append("Find lines: ", field, " ", found);
  field.oninput = () => {
    const word = field.value.trim().toLowerCase();
    for (const line of lines) line.hidden = !line.textContent.toLowerCase().includes(word);
    table.classList.toggle("searched", word !== "");
    found.textContent = word && `${lines.filter(line => !line.hidden).length} of ${lines.length} lines`;
  };
  table.parentNode.before(label);
}
</script>"""

#: In points: letters of tables on paper, the smallest that can be read, what a sheet has room for,
#: and what stands beside a column; how wide a bold letter is, of its height.
_PRINTED, _SMALLEST, _SHEET, _PADDING, _LETTER = 8.5, 5.0, 504, 8.4, 0.7
#: Letters of a word that stays whole on paper.
_WORD = 20
#: What scrolls can be reached and scrolled by keyboard.
_WIDE = "<div class='wide{more}' tabindex='0' role='region' aria-label='table: {title}'>"
_RIGHT = " class='n'"
#: How a long table begins; text from data never holds it, because quotes are escaped.
_LONG_TABLE = "<table class='long"


@dataclasses.dataclass(frozen=True)
class Pivot:
    """A table with sub-totals: each group of lines folds away under the line of its total.

    Examples
    --------
    >>> groups = [(["IT", "9"], [["software", "5"], ["support", "4"]]), (["Total", "9"], [])]
    >>> Pivot(["sector", "value"], labels=1, groups=groups).lines()[1]
    ['software', '5']
    """

    header: Sequence[str]
    #: How many columns name a line; the others hold values, set to the right.
    labels: int
    #: The line of a sub-total, and the lines of its parts.
    groups: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]]

    def lines(self) -> list[Sequence[str]]:
        """Return all lines, sub-totals before their parts."""
        return [line for head, parts in self.groups for line in (head, *parts)]


@dataclasses.dataclass(frozen=True)
class Section:
    """One part of a page: a heading and what stands under it, in this order."""

    title: str
    text: str = ""
    table: Report | Rows | Pivot | None = None
    #: An SVG drawing, from `discreet.chart`.
    picture: str | None = None
    caption: str = ""
    #: Shown as it is, in a fixed-width block.
    code: str = ""
    #: The table is a form to be filled in by hand, with room to write.
    is_form: bool = False


@dataclasses.dataclass(frozen=True)
class Page:
    """A report for people.

    Examples
    --------
    >>> page = Page("Salaries", verdict="safe", sections=(Section("Cells", table=(["n"], [[3]])),))
    >>> "<h1>Salaries</h1>" in page.html()
    True
    """

    title: str
    sections: Sequence[Section]
    verdict: str = ""
    lead: str = ""
    footer: str = ""

    def html(self) -> str:
        """Return the page."""
        head = (
            "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
            "<meta name='viewport' content='width=device-width, initial-scale=1'>"
            f"<title>{html.escape(self.title)}</title><style>{_STYLE}</style></head><body><main>"
            f"<h1>{html.escape(self.title)}</h1>"
        )
        lead = f"<p class='soft'>{html.escape(self.lead)}</p>" if self.lead else ""
        verdict = f"<div class='verdict'>{html.escape(self.verdict)}</div>" if self.verdict else ""
        footer = f"<footer>{html.escape(self.footer)}</footer>" if self.footer else ""
        body = "".join(_section(section) for section in self.sections)
        search = _SEARCH if _LONG_TABLE in body else ""
        return f"{head}{lead}{verdict}{body}</main>{footer}{search}</body></html>"


def _section(section: Section) -> str:
    parts = [f"<h2>{html.escape(section.title)}</h2>"]
    parts += [f"<p>{html.escape(line)}</p>" for line in section.text.splitlines() if line.strip()]
    if isinstance(section.table, Pivot):
        parts.append(_wide(section, _pivot(section.table)))
    elif section.table is not None:
        rows = section.table.rows() if isinstance(section.table, Report) else section.table
        parts.append(_wide(section, _table(*rows)))
    if section.picture is not None:
        caption = (
            f"<figcaption>{html.escape(section.caption)}</figcaption>" if section.caption else ""
        )
        parts.append(f"<figure>{section.picture}{caption}</figure>")
    if section.code:
        parts.append(f"<pre>{html.escape(section.code)}</pre>")
    return "".join(parts)


def _wide(section: Section, table: str) -> str:
    """Return a table that scrolls, under a name of its own."""
    title = html.escape(section.title, quote=True)
    return f"{_WIDE.format(title=title, more=' form' * section.is_form)}{table}</div>"


def _table(header: Sequence[str], body: Sequence[Sequence[Any]]) -> str:
    right = [
        all(isinstance(row[c], int | float) or row[c] is None for row in body) and bool(body)
        for c in range(len(header))
    ]
    marks = {(True, False): _RIGHT, (False, True): " class='w'"}
    mark = [
        marks.get((right[c], not right[c] and _is_broken(header, body, c)), "")
        for c in range(len(header))
    ]
    head = "".join(
        f"<th scope='col'{mark[c]}>{html.escape(str(h))}</th>" if h else "<td></td>"
        for c, h in enumerate(header)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{mark[c]}>{html.escape(shown(v))}</td>" for c, v in enumerate(row))
        + "</tr>"
        for row in body
    )
    top = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    begin = f"{_LONG_TABLE}'>" if len(body) > _LONG else "<table>"
    return f"{begin}{top}<tbody>{rows}</tbody></table>"


def _is_broken(header: Sequence[str], body: Sequence[Sequence[Any]], column: int) -> bool:
    """Whether a column has a word that a sheet has no room for, so that it is broken there."""
    texts = (str(header[column]), *(shown(row[column]) for row in body))
    return any(len(word) > _WORD for text in texts for word in text.split())


def _pivot(pivot: Pivot) -> str:
    """Return a table whose groups fold by a box to tick, without a script; it is printed whole."""
    head = "".join(
        f"<th scope='col'{'' if c < pivot.labels else _RIGHT}>{html.escape(text)}</th>"
        for c, text in enumerate(pivot.header)
    )
    body = []
    # Without parts to fold, lines are records of the table but for the last, which adds them up.
    is_flat = not any(parts for _, parts in pivot.groups)
    for number, (total, parts) in enumerate(pivot.groups, start=1):
        fold = ""
        if parts:
            label = html.escape(f"show the parts of {total[0].strip()}", quote=True)
            fold = f"<input type='checkbox' checked aria-label='{label}'> "
        kind = "line" if is_flat and number < len(pivot.groups) else "total"
        body.append(f"<tbody class='{kind}'>{_line(total, pivot.labels, fold)}</tbody>")
        if parts:
            lines = "".join(_line(line, pivot.labels) for line in parts)
            body.append(f"<tbody class='parts'>{lines}</tbody>")
    begin = f"{_LONG_TABLE} pivot'" if len(pivot.lines()) > _LONG else "<table class='pivot'"
    begin += f" style='--fit: {fit:.1f}pt'>" if (fit := _fit(pivot)) < _PRINTED else ">"
    return f"{begin}<thead><tr>{head}</tr></thead>{''.join(body)}</table>"


def _fit(pivot: Pivot) -> float:
    """Return the size of letters in points at which no number of a table is cut on a sheet of A4."""
    widths = [max(map(len, column)) for column in zip(pivot.header, *pivot.lines(), strict=True)]
    room = _SHEET - _PADDING * len(widths)
    return max(room / (_LETTER * max(sum(widths), 1)), _SMALLEST)


def _line(values: Sequence[str], labels: int, fold: str = "") -> str:
    cells = [
        f"<th scope='row'>{fold if c == 0 else ''}{html.escape(value)}</th>"
        if c < labels
        else f"<td{_RIGHT}>{html.escape(value)}</td>"
        for c, value in enumerate(values)
    ]
    return f"<tr>{''.join(cells)}</tr>"
