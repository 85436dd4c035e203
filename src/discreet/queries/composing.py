"""Answers to the questions of one statement, put together into one."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from discreet.data.dataset import to_library
from discreet.errors import RefusedError
from discreet.queries.answer import Answer, Explanation, ResultColumn

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["beside_spent", "explained_together", "refused_together", "together"]

#: What an answer is that was computed from several: the least sure of them.
_LEAST_SURE = ("noisy", "interval", "exact")
_TYPES = {"int": "bigint", "uint": "bigint", "double": "double", "float": "double", "decimal": "numeric"}  # fmt: skip


def together(answers: Sequence[Answer], table: pa.Table, library: str | None) -> Answer:
    """Return the answer to a statement: its rows, and what its questions cost together."""
    kinds = {answer.kind for answer in answers}
    kind = next((k for k in _LEAST_SURE if k in kinds), "exact")
    numbers = [answer.number for answer in answers if answer.number is not None]
    return Answer(
        kind=kind,
        frame=None if library is None else to_library(table, library),
        columns=tuple(
            ResultColumn(field.name, _type(str(field.type)), kind) for field in table.schema
        ),
        spent=_added([answer.spent for answer in answers]),
        left=dict(answers[-1].left) if answers else {},
        withheld=sum(answer.withheld for answer in answers),
        question="; ".join(answer.question for answer in answers),
        guard=answers[-1].guard if answers else "",
        number=max(numbers, default=None),
        repeated=bool(answers) and all(answer.repeated for answer in answers),
        composed=True,
        aggregates=sum(answer.aggregates for answer in answers),
        table=table,
    )


def refused_together(error: RefusedError, answers: Sequence[Answer]) -> Answer:
    """Return why answered questions could not be put together, and what they have cost."""
    return Answer(
        kind="refused",
        frame=None,
        reason=error.message,
        hint=error.hint or "",
        code=error.code,
        spent=_added([answer.spent for answer in answers]),
        left=dict(answers[-1].left) if answers else {},
        question="; ".join(answer.question for answer in answers),
        guard=answers[-1].guard if answers else "",
    )


def beside_spent(refusal: Answer, answers: Sequence[Answer]) -> Answer:
    """Return the refusal of one question of a statement, with what those before it have cost."""
    if not answers:
        return refusal
    return dataclasses.replace(refusal, spent=_added([answer.spent for answer in answers]))


def explained_together(told: Sequence[Explanation], guard: str) -> Explanation:
    """Return what a statement would cost: all of its questions, or why one is refused."""
    if len(told) == 1:
        return told[0]
    if not told:
        return Explanation(guard, "exact")
    refused = [one for one in told if one.kind == "refused"]
    if refused:
        return refused[0]
    kinds = {one.kind for one in told}
    return Explanation(
        guard=told[0].guard,
        kind=next((k for k in _LEAST_SURE if k in kinds), told[0].kind),
        reason=f"{len(told)} questions are asked; what is done with their answers is free",
        cost=_added([one.cost for one in told if not one.repeated]),
        left=dict(told[-1].left),
        repeated=all(one.repeated for one in told),
        question="; ".join(one.question for one in told),
    )


def _added(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    sums: collections.Counter[str] = collections.Counter()
    for part in parts:
        sums.update(part)
    return {name: round(value, 12) for name, value in sums.items()}


def _type(arrow: str) -> str:
    for start, name in _TYPES.items():
        if arrow.startswith(start):
            return name
    if arrow.startswith("timestamp"):
        return "timestamp"
    return {"bool": "boolean", "date32[day]": "date"}.get(arrow, "text")
