"""Attacks on what a release wrote, tried before it is handed over; they read the written files.

Whoever receives the files can try the same, so nothing is given away by telling what came of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from discreet.attacks.register_linkage import RegisterLinkage
from discreet.data.hierarchy import Hierarchy
from discreet.data.release import Evidence, Release
from discreet.errors import DiscreetError
from discreet.registry import members
from discreet.report import shown
from discreet.verification.reading import inside, open_file

__all__ = ["Attempt", "attempts", "measured_attempts", "told_measures"]

#: Larger results are not attacked here, and the document says so.
_RECORDS, _CELLS = 1_000_000, 400


class Attempt(NamedTuple):
    """One attack, what its attacker has, and what came of it."""

    attack: str
    knows: str
    found: str


def attempts(release: Release, folder: Path, confidential: Sequence[str] = ()) -> list[Attempt]:
    """Attack the files of a release; `confidential` are columns that nobody is to learn."""
    found: list[Attempt] = []
    for promise in release.promises():
        if promise.get("kind") == "records":
            found += _on_records(folder, promise, confidential)
        elif promise.get("kind") == "table" and promise.get("withholds"):
            found.append(_on_table(folder, promise))
    return found


# Any, below: promises are plain data.
def _on_records(
    folder: Path, promise: Mapping[str, Any], confidential: Sequence[str]
) -> Iterator[Attempt]:
    for keys in promise.get("keys", ()):
        knows = f"the released values of {', '.join(keys)} of everybody"
        if promise["records"] > _RECORDS or promise.get("reading") == "wildcard":
            why = (
                "missing values match all others" if promise["records"] <= _RECORDS else "too many"
            )
            yield Attempt("linkage with a register", knows, f"not tried here: {why}")
            continue
        file = open_file(inside(folder, promise["file"]))
        rows = [dict(zip(file.columns, row, strict=True)) for row in file.rows()]
        # Suppressed records that were kept have no values left to link.
        rows = [row for row in rows if any(row[key] != "*" for key in keys)]
        attack = RegisterLinkage(keys=tuple(keys))
        linked = attack.run(rows, rows)
        alone = round((linked.upper or 0.0) * len(rows))
        control = "; it works on unprotected records" if attack.control().succeeded else ""
        yield Attempt(
            "linkage with a register",
            knows,
            f"finds {alone:,} of {len(rows):,} records alone with their values{control}",
        )
        for column in confidential:
            if column in file.columns and column not in keys:
                yield _homogeneous(rows, keys, column)


def _homogeneous(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], column: str) -> Attempt:
    values: dict[tuple[Any, ...], set[Any]] = defaultdict(set)
    people: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        key = tuple(row[name] for name in keys)
        values[key].add(row[column])
        people[key] += 1
    told = sum(people[key] for key, several in values.items() if len(several) == 1)
    return Attempt(
        f"classes in which {column} is the same for all",
        f"{', '.join(keys)} of one person",
        f"learns {column} of {told:,} of {len(rows):,} records",
    )


def measured_attempts(evidence: Evidence) -> list[Attempt]:
    """Return the attacks that were tried when a release was made, as its evidence states them."""
    risk = evidence.risk
    found = [Attempt(name, does, came) for name, came, does in told_measures(risk, "risk")]
    learned, ordered, insiders = (risk.get(n) for n in ("definetti", "ordering", "insiders"))
    file = "the released file"
    if learned:
        came = f"right for {learned['accuracy']:.1%}; guessing the commonest value, for {learned['baseline']:.1%}"
        found.append(Attempt("learning the column from all groups", file, came))
    if ordered:
        came = f"right for {ordered['accuracy']:.1%}; blind guessing for {ordered['baseline']:.1%}"
        found.append(Attempt(f"ordering each group by {ordered['strongest']}", file, came))
    if insiders and insiders["insiders"]:
        most, share = insiders["insiders"][-1], insiders["exposed"][-1]
        knows = f"what {most} members of each group have"
        found.append(Attempt("insiders take their own values away", knows, f"exposes {share:.1%}"))
    return found


def told_measures(values: Mapping[str, Any], family: str) -> list[tuple[str, str, str]]:
    """Return the measures of a family among values: name, value, and what the measure is."""
    known = members(family)
    body = []
    for name, value in values.items():
        member = known.get(name.partition(":")[0])
        parts = value.items() if isinstance(value, Mapping) else [("", value)]
        told = [
            f"{word} {shown(one)}".strip()
            for word, one in parts
            if isinstance(one, int | float | str)
        ]
        if member is not None and told:
            body.append((name, ", ".join(told), member.summary()))
    return body


def _on_table(folder: Path, promise: Mapping[str, Any]) -> Attempt:
    """Solve the published sums for every withheld cell."""
    from discreet.tables.published import audit_published

    attack, knows = "solving all published sums for each withheld cell", "the published table"
    hidden = int(promise["withheld"])
    if not hidden:
        return Attempt(attack, knows, "nothing is withheld")
    if hidden > _CELLS:
        return Attempt(attack, knows, f"not tried here: {hidden:,} cells are withheld")
    home = inside(folder, promise["folder"]) if promise.get("folder") else folder
    trees = {
        name: tuple(Hierarchy.from_pairs(inside(home, file)) for file in files)
        for name, files in promise["hierarchies"].items()
    }
    try:
        intervals = audit_published(inside(home, "cells.csv"), trees).intervals
    except DiscreetError as error:
        return Attempt(attack, knows, f"not tried here: {error.message}")
    width = (intervals["upper"] - intervals["lower"]).to_numpy()
    middle = (intervals["upper"] + intervals["lower"]).abs().to_numpy() / 2
    exact = int((width <= 1e-9 * middle.clip(min=1.0)).sum())
    told = f"finds {exact:,} of {len(width):,} exactly"
    shares = [w / m for w, m in zip(width.tolist(), middle.tolist(), strict=True) if m > 0]
    if shares:
        told += f"; the narrowest interval is {100 * min(shares):.0f} % of its middle wide"
    return Attempt(attack, knows, told)
