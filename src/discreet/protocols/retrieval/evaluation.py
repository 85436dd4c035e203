"""What each scheme costs and hides, measured on a published table."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.protocols.retrieval.hints import packed_size, public_of
from discreet.protocols.retrieval.published import Published
from discreet.protocols.retrieval.schemes import FAMILY
from discreet.protocols.retrieval.schemes._base import Public, Scheme, Shape
from discreet.protocols.retrieval.statement import BLOCKS
from discreet.protocols.retrieval.views import view_test
from discreet.randomness import Randomness
from discreet.report import Report, Rows

if TYPE_CHECKING:
    from discreet.page import Page

__all__ = ["RetrievalRisk", "SchemeRisk", "retrieval_risk"]

#: A block on which views are compared: what a server sees depends on nothing but the size.
_TRIED = Shape(columns=192, width=64)


@dataclasses.dataclass(frozen=True)
class SchemeRisk(Report):
    """What one scheme costs and hides."""

    scheme: str
    servers: int
    assumption: str
    #: How well two rows are told apart by one server's view; 0.5 is chance.
    auc: float | None
    standard_error: float | None
    #: Whether all servers together learn the row.
    broken_by: str
    up: int
    down: int
    hint: int
    #: CPU of one server for one look-up, and the same against reading the table once.
    milliseconds: float
    ratio: float


@dataclasses.dataclass(frozen=True)
class RetrievalRisk(Report):
    """Schemes side by side for one table."""

    table: str
    records: int
    size: int
    schemes: tuple[SchemeRisk, ...]

    def rows(self) -> Rows:
        """Return one line for each scheme."""
        names = ["scheme", "servers", "broken_by", "auc", "standard_error", "up", "down", "hint"]
        names += ["milliseconds", "ratio", "assumption"]
        return names, [[getattr(one, name) for name in names] for one in self.schemes]

    def page(self) -> Page:
        """Return the comparison as a page with a picture."""
        from discreet.page import Page, Section

        return Page(
            "Schemes of private retrieval compared",
            (
                Section("Figures", table=self),
                Section(
                    "Privacy against cost",
                    text="Bytes and server time of one look-up, by who must collude to learn the key.",
                    picture=_picture(self),
                ),
            ),
            lead=f"{self.table}: {self.records:,} records, {self.size:,} bytes.",
        )


def retrieval_risk(
    table: Published, *, views: int = 600, rng: Randomness | None = None
) -> RetrievalRisk:
    """Measure every scheme that a published table was built for.

    Parameters
    ----------
    table
        A version of a published table.
    views
        How many questions the classifier sees.
    rng
        Where questions come from; secure by default.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> from discreet.protocols.retrieval.signing import Publisher
    >>> from discreet.protocols.retrieval.table import RetrievalTable
    >>> drugs = pd.DataFrame(
    ...     {"code": ["N02BE01", "C07AB02"], "name": ["paracetamol", "metoprolol"]}
    ... )
    >>> table = RetrievalTable.build(
    ...     drugs,
    ...     key="code",
    ...     folder=tempfile.mkdtemp() + "/drugs",
    ...     publisher=Publisher(bytes(32)),
    ...     publishable=True,
    ... )
    >>> [scheme.scheme for scheme in retrieval_risk(table, views=40).schemes]
    ['chor', 'dpf', 'whole-table']
    """
    source = rng or Randomness.secure()
    state = table.statement
    found = [
        _measured(table, scheme(), views, source)
        for scheme in FAMILY.members().values()
        if scheme.arithmetic in state.arithmetics
    ]
    size = sum(length for name, (_, length) in state.files.items() if name.endswith(".bin"))
    return RetrievalRisk(state.table, state.rows, size, tuple(found))


def _measured(table: Published, scheme: Scheme, views: int, rng: Randomness) -> SchemeRisk:
    part = table.statement.part("main")
    shapes = part.shapes(scheme.arithmetic)
    publics = {block: table.public(part, block) if scheme.needs_hint else None for block in BLOCKS}
    cpu, base = [], []
    questions = {
        block: scheme.ask(
            shapes[block], _some(shapes[block]), rng=rng, public=publics[block]
        ).questions[0]
        for block in BLOCKS
    }
    for _ in range(3):
        cpu.append(_seconds(table, scheme, questions))
        base.append(_linear(table, scheme))
    test = None
    if scheme.question_size(_TRIED):
        test = view_test(
            scheme, _TRIED, ([5], [150]), views=views, rng=rng, public=_tried_public(scheme)
        )
    hint = sum(packed_size(shapes[b]) for b in BLOCKS) if scheme.needs_hint else 0
    alone = scheme.parties == 1
    return SchemeRisk(
        scheme=scheme.name,
        servers=scheme.parties,
        assumption=scheme.assumption,
        auc=None if test is None else round(test.auc, 3),
        standard_error=None if test is None else round(test.standard_error, 3),
        broken_by="nobody" if alone else f"all {scheme.parties} servers together",
        up=sum(scheme.question_size(shapes[block]) for block in BLOCKS),
        down=sum(scheme.answer_size(shapes[block]) for block in BLOCKS),
        hint=hint,
        milliseconds=round(1000 * min(cpu), 3),
        ratio=round(min(cpu) / max(min(base), 1e-9), 2),
    )


def _some(shape: Shape) -> Sequence[int]:
    return [part * shape.segment for part in range(shape.segments)]


def _tried_public(scheme: Scheme) -> Public | None:
    if not scheme.needs_hint:
        return None
    return public_of(np.zeros((_TRIED.width, _TRIED.columns), np.int8), bytes(16))


def _seconds(table: Published, scheme: Scheme, questions: dict[str, bytes]) -> float:
    part = table.statement.part("main")
    shapes = part.shapes(scheme.arithmetic)
    started = time.process_time()
    for block in BLOCKS:
        held = table.block(part, block, scheme.arithmetic)
        scheme.answer(shapes[block], held, [questions[block]])
    return time.process_time() - started


def _linear(table: Published, scheme: Scheme) -> float:
    """Return the CPU seconds of reading what a look-up reads, once."""
    from discreet.protocols.retrieval.kernels.xor import total

    part = table.statement.part("main")
    started = time.process_time()
    for block in BLOCKS:
        total(table.block(part, block, scheme.arithmetic).view(np.uint64))
    return time.process_time() - started


def _picture(risk: RetrievalRisk) -> str:
    """Return bytes and server time of each scheme, coloured by who must collude to break it."""
    from discreet.chart import Axis, bars

    measures = {"up": "bytes up", "down": "bytes down", "milliseconds": "server CPU ms"}
    drawn = []
    for field, words in measures.items():
        lines = {
            one.scheme: {f"broken by {one.broken_by}": max(float(getattr(one, field)), 1e-3)}
            for one in risk.schemes
        }
        drawn.append(bars(lines, Axis(words, is_log=True), title=words))
    return "".join(drawn)
