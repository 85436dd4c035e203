"""Pages of consistent tables: the promise, the shares of the budget, errors and bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.chart import Axis, bars
from discreet.page import Section
from discreet.tables.methods._planning import expected_errors
from discreet.tables.methods._shares import query_name
from discreet.tables.methods._tree_estimate import TreeEstimate
from discreet.tables.methods.top_down import TopDown
from discreet.tables.simulation import Simulation, simulate

__all__ = ["top_down_sections"]

#: Larger trees are not planned again for a page.
_NODES = 200_000


def top_down_sections(
    method: TopDown, estimate: TreeEstimate, facts: Mapping[str, Any]
) -> list[Section]:
    """Return what readers should know of a consistent table. Any: facts of its evidence."""
    sections = [_promise(facts), _shares(facts)]
    if sum(estimate.places.spine.sizes) <= _NODES:
        sections.append(_errors(method, estimate, facts))
    found = simulate(method, estimate, tuple(map(str, facts["levels"])))
    if found is not None:
        sections += [_comparison(found), _bias(found)]
    elif estimate.whole is not None:
        text = "The table is too large to be protected again for this page."
        sections.append(Section("Bias by size of the place", text))
    return sections


def _promise(facts: Mapping[str, Any]) -> Section:
    text = (
        "Whoever sees this table, whatever else they know, learns nearly the same whether or not "
        f"any one person is in it: {facts['promise']}. Every number is the best reading of noisy "
        "counts; the columns lower_95 and upper_95 hold the true count 95 times in 100."
    )
    lines = [
        ("ρ (zCDP), the sum of OpenDP's own figures", facts["rho"]),
        (f"ε at δ = {facts['delta']:g}", round(facts["epsilon"], 3)),
        ("outside the promise", _invariants(facts)),
    ]
    return Section("The promise", text, table=(("", ""), lines))


def _invariants(facts: Mapping[str, Any]) -> str:
    named = ", ".join(
        f"{'totals' if query == 'total' else f'counts by {query}'} of level {name}"
        for name, query in facts["invariants"].items()
    )
    return f"{named}: published exactly" if named else "nothing"


def _shares(facts: Mapping[str, Any]) -> Section:
    rows = [
        (
            one["level"],
            one["query"],
            round(100 * one["rho"] / facts["rho"], 2),
            round(one["scale"], 3),
        )
        for one in facts["measurements"]
    ]
    lines: dict[str, dict[str, float]] = {str(level): {} for level in facts["levels"]}
    for level, query, share, _ in rows:
        lines[str(level)][query] = share
    return Section(
        "How the budget is spent",
        "Each level of the tree is measured by itself, with noise of the given standard deviation.",
        table=(("level", "query", "share %", "standard deviation of the noise"), rows),
        picture=bars(lines, Axis("percent of the budget")),
    )


def _errors(method: TopDown, estimate: TreeEstimate, facts: Mapping[str, Any]) -> Section:
    places, task = estimate.places, method.task_of(estimate.places)
    names = [dimension.name for dimension in places.attributes]
    asked = list(dict.fromkeys(one.query for one in task.budget.measures))
    variances = [task.budget.variances(level) for level in range(places.spine.depth)]
    errors = expected_errors(places.spine, places.basis, variances, asked, task.exact)
    rows: Sequence[Sequence[Any]] = [
        (level, *(round(float(error), 2) for error in line))
        for level, line in zip(facts["levels"], errors, strict=True)
    ]
    return Section(
        "How exact it is",
        "Expected absolute error of a cell, of the best linear estimate on which the intervals rest. "
        "It follows from the noise alone.",
        table=(("level", *(query_name(query, names) for query in asked)), rows),
    )


def _comparison(found: Simulation) -> Section:
    rows = [
        (name, *(f"{total:.2f} / {cell:.2f}" for total, cell in errors))
        for name, errors in found.errors.items()
    ]
    return Section(
        "Beside simpler ways",
        "Mean absolute error of totals of places / of single cells, per level, when this published "
        "table is taken for the truth and protected again with the same budget. Bottom-up spends "
        "all of it on the smallest places; dp-noise adds Laplace noise to every cell and total.",
        table=(("", *(f"level {level}" for level in found.levels)), rows),
    )


def _bias(found: Simulation) -> Section:
    rows = [(name, count, round(error, 2)) for name, count, error in found.bias]
    return Section(
        "Bias by size of the place",
        "Counts cannot be negative, which moves some people from large places to empty ones. Mean "
        "signed error of the totals of the smallest places, simulated in the same way:",
        table=(("people in the place", "places", "mean error"), rows),
    )
