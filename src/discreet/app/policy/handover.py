"""The document that goes with a release: what it is, what was done, what it promises, in words.

It is made from what the release itself states (its evidence) and what the curator wrote under
`about:`; no record and no withheld value is read for it. As a PDF it needs the extra `documents`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.app.policy.attempts import Attempt, attempts, measured_attempts, told_measures
from discreet.data.declared import HierarchySource
from discreet.data.hierarchy_builders import DATE_LEVELS
from discreet.errors import EngineError
from discreet.microdata.anonymized import explained
from discreet.page import Page, Section
from discreet.registry import members
from discreet.tables.layout import legend, pivot
from discreet.tables.loss_in_words import loss_in_words
from discreet.tables.release import LinkedRelease, TableRelease

if TYPE_CHECKING:
    from discreet.app.policy.model import About
    from discreet.data.release import Evidence, Release
    from discreet.data.source import Source

__all__ = ["NO_PDF", "handover_page", "write_handover"]

_ROLES = {
    "identifier": "identifies people, or held back",
    "quasi": "others may know it",
    "confidential": "to be protected",
    "other": "under no promise",
}
_ATTACKERS = {
    "outsider": "somebody who knows the published cells and nothing of any contributor",
    "contributors": "somebody who contributed to a cell and knows that contribution exactly",
}
_COLUMN_HEAD = ("column", "what it is", "what was done")
#: Longer and wider tables are for the screen.
_LINES, _COLUMNS = 80, 9
#: Why the document is a page alone.
NO_PDF = (
    "no PDF was written beside the page: pip install 'discreet[documents]' (and the Debian package "
    "libpango-1.0-0), or write `pdf: false` under `about:`"
)
#: Pages of the document are counted.
_PRINT = """
@page { @bottom-right { content: counter(page) " / " counter(pages); font-size: 9pt; color: #5b6b7b; } }
"""


def handover_page(
    name: str, release: Release, *, about: About, source: Source, folder: Path
) -> Page:
    """Return the document of one release, which was written into a folder."""
    evidence = release.evidence()
    confidential = [column for column, role in source.roles.items() if str(role) == "confidential"]
    sections = [
        Section("About this release", table=(("", ""), _said(about))),
        *_tables(release, about),
        Section("What was done to each column", table=_columns(evidence, source)),
        *_unchanged(evidence, release.promises()),
        *_protection(evidence),
        *_loss(evidence, release, about),
        _attacks(
            [*attempts(release, folder, confidential), *measured_attempts(evidence)], evidence
        ),
        Section(
            "Signatures",
            table=(
                ("role", "name", "date and signature"),
                [("prepared by", "", ""), ("checked by", "", ""), ("released by", "", "")],
            ),
            is_form=True,
        ),
    ]
    return Page(
        f"Hand-over: {about.title or name}",
        sections,
        verdict=evidence.verdict,
        lead=f"discreet {evidence.version}, {evidence.time[:16].replace('T', ' ')} UTC; "
        f"kind of release: {evidence.kind}",
        footer="The verdict speaks of the promises named above. It is no legal opinion: whether "
        "the data are anonymous in law depends on who receives them and what they can know.",
    )


def _said(about: About) -> list[tuple[str, str]]:
    words = {
        "purpose": about.purpose,
        "source": about.source,
        "period": about.period,
        "contact": about.contact,
        "legal basis": about.legal_basis,
        "conditions of use": about.conditions,
    }
    return [(word, text or "not stated") for word, text in words.items()]


# Any, below: evidence is plain data.
def _columns(evidence: Evidence, source: Source) -> tuple[Sequence[str], list[Sequence[Any]]]:
    """Return what each column is and what happened to it."""
    settings = evidence.settings
    if settings.get("by"):
        return _COLUMN_HEAD, _columns_of_table(settings, source)
    body: list[Sequence[Any]] = []
    for name, role in source.roles.items():
        word = _ROLES[str(role)]
        done = _treatment(name, str(role), evidence)
        if settings.get("levels", {}).get(name):
            done = _coarser(settings["levels"][name], source.hierarchies.get(name))
        body.append((name, word, done))
    if source.rest is not None:
        done = _treatment("", str(source.rest), None)
        body.append(("all other columns", _ROLES[str(source.rest)], done))
    return _COLUMN_HEAD, body


def _columns_of_table(settings: Mapping[str, Any], source: Source) -> list[Sequence[Any]]:
    """Return what a table shows of columns; those that are in no cell are not named."""
    listed = settings["by"]
    by = {name for one in listed for name in ([one] if isinstance(one, str) else one)}
    measure, statistic = settings.get("measure"), settings.get("statistic", "sum")
    body: list[Sequence[Any]] = []
    for name, role in source.roles.items():
        if name in by:
            body.append((name, _ROLES[str(role)], "the table is broken down by it"))
        elif name == measure:
            body.append((name, _ROLES[str(role)], f"published as {statistic}s in cells"))
    return [*body, ("all other columns", "", "not part of the table")]


def _coarser(level: int, tree: Any) -> str:
    """Return in words how far a column was made coarser. Any: one hierarchy or several."""
    tree = tree[0] if isinstance(tree, tuple) and tree else tree
    if isinstance(tree, HierarchySource):
        periods = [period for period in DATE_LEVELS if period in (tree.dates or ())]
        if tree.widths and level <= len(tree.widths):
            return f"made coarser: intervals of {tree.widths[level - 1]:g}"
        if periods and level <= len(periods):
            return f"made coarser: the {periods[level - 1]} only"
        if tree.prefixes and level <= len(tree.prefixes):
            return f"made coarser: the first {_characters(tree.prefixes[level - 1])}"
        if tree.redact and level <= tree.redact:
            return f"made coarser: without the last {_characters(level)}"
        if tree.widths or periods or tree.prefixes or tree.redact:  # only the root is above
            return "hidden: all values are one"
    return f"made coarser, to level {level} of its hierarchy"


def _characters(many: int) -> str:
    return "character" if many == 1 else f"{many} characters"


def _treatment(name: str, role: str, evidence: Evidence | None) -> str:
    """Return in words what was done to a column of records."""
    settings: Mapping[str, Any] = evidence.settings if evidence is not None else {}
    not_covered = evidence.risk.get("not covered", {}) if evidence is not None else {}
    gone = (*settings.get("identifiers removed", ()), *settings.get("dropped", ()))
    if name in gone or role == "identifier":
        return "removed"
    levels = settings.get("levels", {})
    if name in levels:
        level = levels[name]
        return "released as it is" if level == 0 else f"made coarser, to level {level}"
    if name in not_covered.get("unchanged", ()) or name in not_covered.get("unprotected", ()):
        return "released unchanged; no promise is about it"
    kind = evidence.kind if evidence is not None else ""
    if kind == "permutation":
        moved = f"values changed hands within groups of at least {settings.get('k_reached')}"
        return moved if name == settings.get("sensitive") else "released as it is"
    methods = settings.get("methods", ())
    by = [str(method.get("name")) for method in methods if name in _named(method)]
    if kind == "synthetic":
        # A method that names columns draws these alone.
        drawn = not any(method.get("columns") for method in methods) or by
        return "drawn anew from a model of the records" if drawn else "released as it is"
    if by:
        return f"changed by {', '.join(by)}"
    if name in settings.get("quasi", ()):
        return "made coarser, as far as each class needs it"
    return "released under the promises below"


def _named(method: Mapping[str, Any]) -> set[str]:
    """Return the texts that a method's parameters hold, among them the columns it changes."""
    found: set[str] = set()
    for value in method.values():
        several = value if isinstance(value, list | tuple | Mapping) else [value]
        found.update(one for one in several if isinstance(one, str))
    return found


def _protection(evidence: Evidence) -> list[Section]:
    checks = evidence.risk.get("checks", ())
    sections = []
    if checks:
        body = [
            (check.get("promise", ""), "yes" if check.get("holds") else "NO", check.get("value"))
            for check in checks
        ]
        sections.append(Section("Promises", table=(("promise", "holds", "measured"), body)))
    rules = evidence.settings.get("rules", ())
    if rules:
        words = [_words(rule, "rule") for rule in rules]
        method = evidence.settings.get("method")
        if isinstance(method, Mapping):
            words.append(_words({"name": method.get("name")}, "table-method"))
        sections.append(Section("Protection", table=(("", ""), words)))
    guess = evidence.risk.get("guess within the class")
    if isinstance(guess, float):
        text = (
            "Somebody who knows every column that others may know, of everybody, and guesses "
            f"within the class names the right record for {guess:.1%} of the records."
        )
        sections.append(Section("Risk", text=text))
    attacker = evidence.risk.get("attacker")
    if attacker:
        text = f"The strongest attacker considered: {_ATTACKERS.get(attacker, attacker)}."
        sections.append(Section("Risk", text=text))
    return sections


def _words(declared: Mapping[str, Any], family: str) -> tuple[str, str]:
    """Return a rule or method with its parameters, and what it does in a sentence."""
    name = str(declared.get("name"))
    inner = ", ".join(f"{key} {value}" for key, value in declared.items() if key != "name")
    known = members(family).get(name)
    return f"{name} ({inner})" if inner else name, known.summary() if known else ""


def _tables(release: Release, about: About) -> list[Section]:
    """Return the tables themselves, where they fit a document."""
    found = []
    for one in _parts(release):
        measure = str(one.table.measure or "")
        unit = f" ({about.units[measure]})" if about.units.get(measure) else ""
        unit = "" if unit.strip() in measure else unit  # the column's name says it
        title = f"The table: {one.title()}{unit}"
        whole = pivot(one)
        if len(whole.lines()) > _LINES or len(whole.header) > _COLUMNS:
            cells = f"It has {len(one.table):,} cells, too many for this document: all of them are "
            found.append(Section(title, cells + "in report.html and cells.csv of the release."))
        else:
            found.append(Section(title, legend(one), table=whole))
    return found


def _parts(release: Release) -> tuple[TableRelease, ...]:
    """Return the tables of a release, if it is one of tables."""
    if isinstance(release, LinkedRelease):
        return release.releases
    return (release,) if isinstance(release, TableRelease) else ()


def _unchanged(evidence: Evidence, promises: Sequence[Mapping[str, Any]]) -> list[Section]:
    """Return which columns of records leave as they are."""
    if evidence.kind != "microdata":
        return []
    kept = [name for name, level in evidence.settings.get("levels", {}).items() if level == 0]
    not_covered = evidence.risk.get("not covered", {})
    free = list(not_covered.get("unchanged", ()))
    bare = [name for name in not_covered.get("unprotected", ()) if name not in free]
    coarser = evidence.settings.get("levels")
    held = [
        name
        for promise in promises
        for name in promise.get("columns", ())
        if coarser and name not in coarser and name not in (*free, *bare)
    ]
    lines = []
    if kept:
        lines.append(
            f"{', '.join(kept)}: with the values that were recorded; the promises below count them "
            "among what others may know."
        )
    if held:
        lines.append(
            f"{', '.join(held)}: with the values that were recorded, under the promises below."
        )
    if bare:
        lines.append(
            f"{', '.join(bare)}: with the values that were recorded, within classes of people who look "
            "alike; no promise says that values within a class differ."
        )
    if free:
        lines.append(
            f"{', '.join(free)}: with the values that were recorded, and no promise is about them: "
            "whoever knows such a value of somebody may find their record by it."
        )
    return [Section("Columns released unchanged", "\n".join(lines or ["None."]))]


def _loss(evidence: Evidence, release: Release, about: About) -> list[Section]:
    loss = evidence.loss
    lines = []
    if loss.get("records") and "suppressed" in loss:
        share = loss["suppressed"] / loss["records"]
        lines.append(
            f"{loss['suppressed']:,} of {loss['records']:,} records ({share:.1%}) were left out."
        )
    for one in _parts(release):
        if len(_parts(release)) > 1:
            lines.append(f"{one.title()}:")
        lines += loss_in_words(one, about.units.get(str(one.table.measure), ""))
    if "mean_range" in loss:
        lines.append(
            f"On average the values of a group span {loss['mean_range']:.1%} of the range of "
            f"{evidence.settings.get('sensitive')}; what is asked of parts of groups has bounds."
        )
    measures = loss.get("measures", {})
    table: Any = explained(measures) if measures else None
    measured = told_measures(loss, "utility")
    if table is None and measured:
        table = (("measure", "value", "what it says"), measured)
    if not lines and table is None:
        lines.append("Not measured for this kind of release.")
    return [Section("What was lost", text="\n".join(lines), table=table)]


def _attacks(tried: Sequence[Attempt], evidence: Evidence) -> Section:
    text = "Before the release appeared, its files were read again by code that had no part in making them"
    promised = evidence.risk.get("checks") or evidence.kind in ("table", "permutation")
    text += ", and every promise above was counted anew." if promised else "."
    if not tried:
        return Section("Attacks tried", f"{text}\nNo further attack fits this kind of release.")
    header = ("attack", "what the attacker has or does", "what came of it")
    return Section("Attacks tried", text, table=(header, [tuple(one) for one in tried]))


def write_handover(page: Page, folder: Path, name: str, *, pdf: bool | None) -> list[Path]:
    """Write the document as HTML and as PDF; return the files.

    `pdf` None writes one where the extra is installed; True demands it.
    """
    text = page.html().replace("</style>", _PRINT + "</style>", 1)
    target = folder / f"{name}.html"
    target.write_text(text, encoding="utf-8")
    if pdf is False:
        return [target]
    try:
        import weasyprint
    except (ModuleNotFoundError, OSError):
        if pdf is None:
            return [target]
        raise EngineError(
            "writing a PDF needs the extra 'documents'",
            code="missing-extra",
            hint="pip install 'discreet[documents]' (and the Debian package libpango-1.0-0), or "
            "write `pdf: false` under `about:`",
        ) from None
    document = weasyprint.HTML(string=text, url_fetcher=_no_fetch)
    document.write_pdf(str(target.with_suffix(".pdf")))
    return [target, target.with_suffix(".pdf")]


def _no_fetch(url: str, *_: Any, **__: Any) -> Any:
    """Refuse to load anything: a document holds all it shows. Any: the library's own call shape."""
    raise ValueError(f"a hand-over document loads nothing, asked for {url[:80]}")
