"""What a guard costs and what it leaves open, over a workload: refusals, widths, noise, time, risk."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.schema import Role
from discreet.data.sql import finish, parse
from discreet.dp.mechanisms import FAMILY as MECHANISMS
from discreet.errors import DiscreetError, InputError
from discreet.progress import Progress, silent
from discreet.queries.gateway import Gateway
from discreet.queries.guards._base import Guard, aggregate
from discreet.randomness import Randomness
from discreet.report import Report, Rows

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.page import Page
    from discreet.queries.answer import Answer

__all__ = ["Comparison", "GuardFigures", "evaluate", "generated", "recorded"]


@dataclasses.dataclass(frozen=True)
class GuardFigures(Report):
    """One guard over one workload: loss of utility, risk and time."""

    guard: str
    questions: int
    refused: float
    exact: float
    #: Median of (upper - lower) / |truth| over all cells answered by an interval.
    interval_width: float | None
    #: Share of intervals that hold the truth.
    truth_inside: float | None
    #: Median of |noisy - truth| / |truth|.
    relative_error: float | None
    #: Mean of the noise in theoretical standard deviations, and its variance over theory's: 0, 1.
    noise_mean: float | None
    noise_variance: float | None
    #: Share of errors within the told 95 % error: 0.95 in theory.
    within_95: float | None
    epsilon_spent: float | None
    #: What an attacker is left with: smallest set, inverse width or ε, by the guard's kind.
    risk: str
    median_ms: float
    p95_ms: float


@dataclasses.dataclass(frozen=True)
class Comparison(Report):
    """Guards compared over the same questions."""

    questions: int
    guards: tuple[GuardFigures, ...]

    def rows(self) -> Rows:
        """One line per guard."""
        names = [field.name for field in dataclasses.fields(GuardFigures)]
        return names, [[getattr(g, name) for name in names] for g in self.guards]

    def page(self) -> Page:
        """Return the comparison as a page with a picture."""
        from discreet.page import Page, Section

        return Page(
            "Guards compared",
            (
                Section("Figures", table=self),
                Section(
                    "Loss of utility",
                    text="Share refused, relative width of intervals and relative error of noise.",
                    picture=_picture(self),
                ),
            ),
            lead=f"{self.questions} questions, put to each guard from an empty ledger.",
        )


def evaluate(
    dataset: Dataset,
    guards: Mapping[str, Guard],
    workload: Sequence[str],
    *,
    user: str = "evaluation",
    progress: Progress = silent,
) -> Comparison:
    """Put a workload to each guard, from an empty ledger, and compare answers with the truth.

    For the curator: the truth is computed, and only differences and shares are reported.

    Examples
    --------
    >>> from discreet.demo import salaries
    >>> from discreet.queries.guards.restriction import Restriction
    >>> asked = ["SELECT SUM(salary) FROM people", "SELECT AVG(salary) FROM people WHERE age < 0"]
    >>> found = evaluate(salaries(), {"k=3": Restriction(k=3)}, asked).guards[0]
    >>> found.questions, found.refused
    (2, 0.5)
    """
    if not guards or not workload:
        raise InputError(
            "nothing to evaluate", code="empty-workload", hint="give guards and questions"
        )
    measured = []
    for number, (name, guard) in enumerate(guards.items()):
        progress("guards", number, len(guards))
        # Nothing of a rehearsal leaves, so that another ledger's mark does not matter.
        with Gateway(dataclasses.replace(dataset, origin=None), guard=guard) as gate:
            measured.append(_measured(name, gate, workload, user))
    return Comparison(len(workload), tuple(measured))


def generated(dataset: Dataset, count: int, *, rng: Randomness) -> list[str]:
    """Return random questions of the kinds people ask: counts, sums and averages of groups.

    Conditions are on public columns and their commonest values.

    Examples
    --------
    >>> from discreet.demo import salaries
    >>> len(generated(salaries(), 5, rng=Randomness.seeded(1)))
    5
    """
    public = [c.name for c in dataset.schema.columns if c.role in (Role.QUASI, Role.OTHER)]
    types = dataset.relation.schema
    measures = [
        f"{function}({_quoted(c.name)})"
        for c in dataset.schema.columns
        if c.role == Role.CONFIDENTIAL and str(types.field(c.name).type).startswith(("int", "dou"))
        for function in ("SUM", "AVG")
    ]
    values = {name: _values(dataset, name) for name in public}
    public = [name for name in public if values[name]]
    if not public:
        raise InputError(
            "there is no public column to put conditions on",
            code="no-public-column",
            hint="give some column the role quasi",
        )
    found: dict[str, None] = {}
    for _ in range(50 * count):
        what = _one(["COUNT(*)", *measures], rng)
        chosen = [public[i] for i in rng.permutation(len(public))[: _below(2, rng) + 1]]
        where = [_condition(name, values[name], rng) for name in chosen]
        key = _one(public, rng) if _below(10, rng) < 3 else None
        shown = f"{_quoted(key)}, {what} AS x" if key else f"{what} AS x"
        # A question in SQL, as a person would type it: it passes the gateway's parser like any.
        sql = f"SELECT {shown} FROM {_quoted(dataset.name)} WHERE " + " AND ".join(where)  # noqa: S608
        found[sql + (f" GROUP BY {_quoted(key)}" if key else "")] = None
        if len(found) == count:
            break
    return list(found)


def recorded(path: str | Path) -> list[str]:
    """Return the questions of an exported ledger, in their order, refused ones too."""
    found: dict[str, None] = {}
    try:
        with Path(path).open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    found[str(json.loads(line)["question"])] = None
                except (ValueError, KeyError, TypeError):
                    raise InputError(
                        "the line is not an entry of a ledger",
                        code="malformed-export",
                        hint="write it with `discreet ledger export`",
                        file=path,
                        line=number,
                    ) from None
    except FileNotFoundError:
        raise InputError("there is no such file", code="missing-file", file=path) from None
    return [question for question in found if question]


# -- measuring -------------------------------------------------------------------------------------
@dataclasses.dataclass
class _Seen:
    kinds: list[str] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)
    widths: list[float] = dataclasses.field(default_factory=list)
    inside: list[bool] = dataclasses.field(default_factory=list)
    relative: list[float] = dataclasses.field(default_factory=list)
    scaled: list[float] = dataclasses.field(default_factory=list)
    within: list[bool] = dataclasses.field(default_factory=list)
    epsilon: float = 0.0


def _measured(name: str, gate: Gateway, workload: Sequence[str], user: str) -> GuardFigures:
    seen = _Seen()
    for sql in workload:
        started = time.perf_counter()
        try:
            answer = gate.ask(sql, user=user)
        except DiscreetError:
            seen.kinds.append("refused")
            continue
        seen.seconds.append(time.perf_counter() - started)
        seen.kinds.append(answer.kind)
        seen.epsilon += answer.spent.get("epsilon", 0.0)
        if answer.kind in ("interval", "noisy"):
            _compare(gate, sql, answer, seen)
    times = sorted(seen.seconds) or [math.nan]
    deviations = seen.scaled
    return GuardFigures(
        guard=name,
        questions=len(workload),
        refused=_share(kind == "refused" for kind in seen.kinds) or 0.0,
        exact=_share(kind == "exact" for kind in seen.kinds) or 0.0,
        interval_width=_median(seen.widths),
        truth_inside=_share(seen.inside),
        relative_error=_median(seen.relative),
        noise_mean=statistics.fmean(deviations) if deviations else None,
        noise_variance=statistics.fmean(d * d for d in deviations) if deviations else None,
        within_95=_share(seen.within),
        epsilon_spent=seen.epsilon or None,
        risk=_risk(gate.guard, seen.epsilon),
        median_ms=times[len(times) // 2] * 1e3,
        p95_ms=times[len(times) * 95 // 100] * 1e3,
    )


def _compare(gate: Gateway, sql: str, answer: Answer, seen: _Seen) -> None:
    """Add the differences between an answer and the truth."""
    query = parse(sql, gate.catalog)
    raw = gate.data.fetch(query, {f"m{n}": aggregate(m) for n, m in enumerate(query.measures)})
    truth = dict(_by_key(query, finish(query, raw)))
    assert answer.table is not None
    for key, row in _by_key(query, answer.table):
        exact = truth.get(key, {})
        for output in query.outputs:
            if (output.reference or "").startswith("k"):
                continue
            value = exact.get(output.label)
            if value is None and key not in truth:
                value = 0  # a declared group that nobody is in
            if value is None:
                continue
            _cell(float(value), row, output.label, answer, gate.guard, seen)


def _cell(
    truth: float, row: Mapping[str, Any], label: str, answer: Answer, guard: Guard, seen: _Seen
) -> None:
    low, high = row.get(f"{label}_lower"), row.get(f"{label}_upper")
    if low is not None and high is not None:
        seen.inside.append(low <= truth <= high)
        if truth:
            seen.widths.append((high - low) / abs(truth))
        return
    noisy = row.get(label)
    if answer.kind != "noisy" or noisy is None:
        return
    error = float(noisy) - truth
    if truth:
        seen.relative.append(abs(error) / abs(truth))
    told = answer.error_95.get(label)
    if told:
        seen.within.append(abs(error) <= told)
        seen.scaled.append(error / (told * _deviation_of_error(guard)))


def _deviation_of_error(guard: Guard) -> float:
    """Return the noise's standard deviation, as a multiple of the half-width of its 95 %."""
    wide = MECHANISMS.get(getattr(guard, "mechanism", "laplace"))().noise(
        epsilon=1.0, sensitivity=1_000_000
    )
    return wide.deviation / wide.error_95


def _by_key(query: Any, table: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    # Any: a parsed question and an Arrow table.
    keys = [o.label for o in query.outputs if (o.reference or "").startswith("k")]
    for row in table.to_pylist():
        yield tuple(row[key] for key in keys), row


def _risk(guard: Guard, epsilon: float) -> str:
    if (k := getattr(guard, "k", None)) is not None:
        return f"smallest isolated set {k}"
    if (bound := getattr(guard, "bound", None)) is not None:
        return f"inverse width {1 / bound:.3g}"
    if epsilon or hasattr(guard, "epsilon"):
        return f"epsilon {epsilon:.4g}"
    return "as the release"


def _share(values: Any) -> float | None:
    # Any: an iterable of truths.
    found = list(values)
    return sum(found) / len(found) if found else None


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


# -- questions -------------------------------------------------------------------------------------
def _values(dataset: Dataset, name: str) -> list[Any]:
    found = dataset.frequencies([name]).rename_columns(["value", "count"])
    found = found.sort_by([("count", "descending")]).slice(0, 200)
    return [value for value in found.column("value").to_pylist() if value is not None]


def _below(count: int, rng: Randomness) -> int:
    return int(rng.integers(0, count, 1)[0])


def _one(values: Sequence[Any], rng: Randomness) -> Any:
    # Any: a name, or a value of the data.
    return values[_below(len(values), rng)]


def _condition(name: str, values: list[Any], rng: Randomness) -> str:
    value = _one(values, rng)
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = sorted((value, _one(values, rng)))
        return f"{_quoted(name)} BETWEEN {low} AND {high}"
    return f"{_quoted(name)} = '" + str(value).replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _picture(comparison: Comparison) -> str:
    from discreet.chart import Axis, bars

    measures = {
        "refused": "share refused",
        "interval_width": "relative width (median)",
        "relative_error": "relative error (median)",
    }
    drawn = []
    for field, words in measures.items():
        found = {figures.guard: getattr(figures, field) for figures in comparison.guards}
        lines = {guard: {words: value} for guard, value in found.items() if value is not None}
        if lines:
            drawn.append(bars(lines, Axis(), title=words))
    return "".join(drawn)
