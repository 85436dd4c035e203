"""Permutation: exact quasi-identifiers, values that change hands, answers with sure bounds."""

from __future__ import annotations

from sqlglot import condition

from discreet.app.demo.stage import Stage
from discreet.microdata.permutation.permute import permute
from discreet.page import Section

TITLE = "Permutation: ask anything about groups, learn nothing about persons"
ORDER = 45

_QUERIES = (
    "SELECT AVG(salary) AS mean FROM people WHERE age BETWEEN 30 AND 39",
    "SELECT sex, COUNT(*) AS n, AVG(salary) AS mean FROM people GROUP BY sex ORDER BY sex",
    "SELECT COUNT(*) AS rich FROM people WHERE salary > 60000 AND age < 40",
)


def run(stage: Stage) -> None:
    """Permute the salaries, ask with bounds, and attack."""
    people = stage.people.where(condition("salary > 0"))  # nobody hides among those without pay
    safe = permute(people, sensitive="salary", k=5, e=2000, progress=stage.progress)
    assert safe.facts is not None
    assert safe.risk is not None
    stage.say(
        f"    Salaries changed hands inside {safe.facts.groups:,} groups of at least "
        f"{safe.facts.k_reached} different values that span at least {safe.facts.e_reached:,.0f}."
    )
    asked: list[tuple[str, ...]] = []
    for query in _QUERIES:
        answer = safe.ask(query)
        stage.say(f"\n    {query}")
        stage.show(answer.rows())
        header, body = answer.rows()
        first = dict(zip(header, body[0], strict=True))
        name = next(column for column in reversed(header) if column.endswith("_lower"))
        word = name.removesuffix("_lower")
        ends = [f"{first[f'{word}_{end}']:,.0f}" for end in ("lower", "upper", "estimate")]
        asked.append((query, *ends))
    stage.say("\n    The truth lies inside every interval; estimates are model-based. The risk:")
    stage.show(safe.risk)
    stage.section(
        Section(
            TITLE,
            text="Every quasi-identifier stays exact; inside a group the salaries are dealt out at "
            "random. Bounds come from the two released tables alone and always hold the truth.",
            table=(("query", "lower", "upper", "estimate"), asked),
        )
    )
    stage.section(Section("What an attacker gains from the permuted file", table=safe.risk))
    safe.write(stage.folder / "permuted")
