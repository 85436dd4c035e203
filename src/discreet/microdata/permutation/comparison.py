"""The paper's comparison: how wide bounds are under generalisation and under each partition."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.chart import COLOURS, Axis, Series, plot
from discreet.data.atomic import atomic_file
from discreet.errors import InputError
from discreet.microdata.permutation.generalization import Generalized, generalize
from discreet.microdata.permutation.partitions import Demand, Partition, Problem
from discreet.microdata.permutation.workload import Workload
from discreet.page import Page, Section
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import build
from discreet.report import Report, Rows

__all__ = ["Comparison", "Sweep", "compare", "generated", "sweep", "write_page"]

Floats = npt.NDArray[np.float64]
_PARTITIONS = ("sequential", "min-sum", "min-max", "weighted", "local")
_GENERALIZATION = "generalisation"
_SAME_PARTITION = "permutation on it"
#: Smaller errors are drawn as this one: the scale has no zero.
_LEAST = 1e-4


@dataclasses.dataclass(frozen=True)
class Line:
    """The mean relative errors of one way to release."""

    method: str
    groups: int
    arbitrary: tuple[float, ...]
    ranges: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Comparison(Report):
    """Relative errors of AVG: the width of the bounds over the true answer, on average."""

    k: int
    e: float
    column: str
    sizes: tuple[int, ...]
    widths: tuple[float, ...]
    lines: tuple[Line, ...]
    #: Level of each quasi-identifier in the generalised table.
    generalization: dict[str, int] = dataclasses.field(default_factory=dict)

    def rows(self) -> Rows:
        """One line per way to release."""
        header = [
            "method",
            "groups",
            *(f"any {size}" for size in self.sizes),
            *(f"{self.column} {width:g}" for width in self.widths),
        ]
        body = [(line.method, line.groups, *line.arbitrary, *line.ranges) for line in self.lines]
        return header, body

    def __getitem__(self, method: str) -> tuple[float, ...]:
        line = next(line for line in self.lines if line.method == method)
        return (*line.arbitrary, *line.ranges)

    def picture(self) -> str:
        """Draw the errors of both kinds of queries, as SVG."""
        arbitrary = [
            (line.method, size, error)
            for line in self.lines
            for size, error in zip(self.sizes, line.arbitrary, strict=True)
        ]
        ranges = [
            (line.method, width, error)
            for line in self.lines
            for width, error in zip(self.widths, line.ranges, strict=True)
        ]
        left = _chart(arbitrary, "records selected at random")
        return left + _chart(ranges, f"width of the range on {self.column}")


@dataclasses.dataclass(frozen=True)
class Sweep(Report):
    """Relative errors of range queries as the sensitive value follows the attribute less and less."""

    k: int
    e: float
    width: float
    #: Standard deviation of what does not follow from the attribute.
    noise: tuple[float, ...]
    errors: dict[str, tuple[float, ...]]

    def rows(self) -> Rows:
        """One line per way to release."""
        header = ["method", *(f"noise {noise:g}" for noise in self.noise)]
        return header, [(method, *errors) for method, errors in self.errors.items()]

    def picture(self) -> str:
        """Draw the errors against the noise, as SVG."""
        points = [
            (method, noise, error)
            for method, errors in self.errors.items()
            for noise, error in zip(self.noise, errors, strict=True)
        ]
        return _chart(points, "standard deviation of the noise")


def compare(
    dataset: Any,
    *,
    sensitive: str,
    column: str,
    k: int = 5,
    e: float = 0.0,
    partitions: Sequence[str | Partition] = _PARTITIONS,
    sizes: Sequence[int] = (10, 100, 400),
    widths: Sequence[float] = (1, 10, 30),
    queries: int = 300,
    generalization: Literal["finest", "anonymizer"] | Mapping[str, int] = "finest",
    rng: Randomness | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Compare generalisation, permutation on the same groups, and every partition.

    Parameters
    ----------
    dataset
        A dataset, or anything `read` takes; its hierarchies make the generalised table. Any: every
        library has its own frame.
    sensitive, column
        The number that is averaged, and the attribute that range queries are about.
    k, e
        The demand; generalisation has k only.
    partitions
        Names or members.
    sizes, widths, queries
        Sizes of random selections with the number of queries for each, and widths of ranges, of
        which every start is asked.
    generalization
        Whether the generalised table keeps `column` as fine as it can be ("finest", in favour of
        generalisation), is the optimum of `anonymize` for k distinct values, or has given levels.
    rng
        Secure by default.
    progress
        Told which method is measured.
    """
    from discreet.data.dataset import read

    data = read(dataset)
    rng = rng or Randomness.secure()
    names = [*dict.fromkeys([column, *data.schema.quasi])]
    rows = data.arrow([*names, sensitive]).drop_null()
    amounts, places = _numbers(rows, sensitive), _numbers(rows, column)
    if len(amounts) < max(sizes):
        sizes = [size for size in sizes if size <= len(amounts)]
    problem = Problem.of(amounts, Demand(k, e), quasi=places, quasi_names=(column,))
    problem.require_feasible()
    work = [
        *(Workload.arbitrary(len(amounts), size, queries, rng=rng) for size in sizes),
        *(Workload.ranges(places, width=width) for width in widths),
    ]
    hierarchies = {name: found[0] for name in names if (found := data.schema.hierarchies(name))}
    columns = {name: rows.column(name).to_pylist() for name in names}
    classes = problem.classes.astype(np.int64)
    levels = None if isinstance(generalization, str) else generalization
    if generalization == "anonymizer":
        levels = _optimal_levels(data, sensitive, k, [n for n in names if n in hierarchies])
    coarse = generalize(columns, hierarchies, classes, k=k, keep=column, levels=levels)
    lines = _generalized_lines(coarse, work, amounts, len(sizes))
    for done, wanted in enumerate(partitions):
        method: Partition = build(Partition, wanted)
        progress(method.name, done, len(partitions))
        labels = method.groups(problem, rng=rng)
        errors = [float(w.errors(labels, amounts).mean()) for w in work]
        lines.append(_line(_called(wanted), int(labels.max()) + 1, errors, len(sizes)))
    return Comparison(
        k,
        e,
        column,
        tuple(sizes),
        tuple(widths),
        tuple(lines),
        coarse.levels if coarse else {},
    )


def sweep(
    *,
    k: int = 5,
    e: float = 0.0,
    records: int = 600,
    width: float = 10,
    noise: Sequence[float] = (3, 10, 30, 100, 300, 1000),
    partitions: Sequence[str | Partition] = _PARTITIONS,
    rng: Randomness | None = None,
    progress: Progress = silent,
) -> Sweep:
    """Repeat range queries on generated people whose loss follows their age more and more loosely.

    Losses are those of `generated`.
    """
    rng = rng or Randomness.secure()
    errors: dict[str, list[float]] = {}
    for done, deviation in enumerate(noise):
        progress("noise", done, len(noise))
        age, loss = generated(records, deviation, rng=rng)
        problem = Problem.of(loss, Demand(k, e), quasi=age, quasi_names=("age",))
        work = [Workload.ranges(age, width=width)]
        classes = problem.classes.astype(np.int64)
        coarse = generalize({"age": age.tolist()}, {}, classes, k=k, keep="age")
        for line in _generalized_lines(coarse, work, loss, 0):
            errors.setdefault(line.method, []).append(line.ranges[0])
        for wanted in partitions:
            labels = build(Partition, wanted).groups(problem, rng=rng)
            found = float(work[0].errors(labels, loss).mean())
            errors.setdefault(_called(wanted), []).append(found)
    return Sweep(k, e, width, tuple(noise), {m: tuple(found) for m, found in errors.items()})


def generated(records: int, deviation: float, *, rng: Randomness) -> tuple[Floats, Floats]:
    """Return ages, and losses that follow them: 1,000 + 20 · (age − 17) plus noise, in steps of 25."""
    age = rng.integers(17, 91, records).astype(np.float64)
    loss = 25 * np.rint((1000 + 20 * (age - 17) + rng.normal(records, 0.0, deviation)) / 25)
    return age, loss


def write_page(path: str | Path, comparisons: Sequence[Comparison], swept: Sweep | None) -> Path:
    """Write tables and pictures as one HTML page."""
    sections = [
        Section(
            f"k = {one.k}, e = {one.e:g}",
            text="Mean relative error of AVG: the width of the bounds over the true answer.",
            table=one,
            picture=one.picture(),
            caption="Relative error, on a logarithmic scale.",
        )
        for one in comparisons
    ]
    if swept is not None:
        sections.append(
            Section(
                "Correlation",
                text=f"Generated people; ranges of width {swept.width:g}, k = {swept.k}, e = {swept.e:g}.",
                table=swept,
                picture=swept.picture(),
                caption="The less noise, the more the value follows from the attribute.",
            )
        )
    page = Page("Generalisation and permutation compared", sections)
    with atomic_file(path) as file:
        file.write_text(page.html(), encoding="utf-8")
    return Path(path)


def _optimal_levels(data: Any, sensitive: str, k: int, quasi: list[str]) -> Mapping[str, int]:
    # Any: a `Dataset`.
    from discreet.microdata.anonymization import anonymize
    from discreet.microdata.models.l_diversity import LDiversity

    if not quasi:
        raise InputError(
            "the anonymiser needs hierarchies of the quasi-identifiers",
            code="no-hierarchies",
            hint="give hierarchies, or leave out generalization",
        )
    return anonymize(data, [LDiversity(sensitive, k)], quasi=quasi, verify=False).levels


def _numbers(rows: Any, name: str) -> Floats:
    # Any: pyarrow has no annotations.
    import pyarrow as pa

    try:
        found: Floats = rows.column(name).cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"column {name!r} is not made of numbers",
            code="not-a-number",
            hint="compare a numeric column by ranges of a numeric column",
            column=name,
        ) from None
    return found


def _generalized_lines(
    coarse: Generalized | None, work: Sequence[Workload], amounts: Floats, sizes: int
) -> list[Line]:
    if coarse is None:
        return []
    groups = int(coarse.labels.max()) + 1
    measures: dict[str, Callable[[Workload], Floats]] = {
        _GENERALIZATION: lambda w: w.generalized_errors(coarse.labels, amounts, coarse.spans),
        _SAME_PARTITION: lambda w: w.errors(coarse.labels, amounts),
    }
    return [
        _line(name, groups, [float(measure(w).mean()) for w in work], sizes)
        for name, measure in measures.items()
    ]


def _line(method: str, groups: int, errors: Sequence[float], sizes: int) -> Line:
    return Line(method, groups, tuple(errors[:sizes]), tuple(errors[sizes:]))


def _called(wanted: str | Partition) -> str:
    """Return a name, with the parameters that differ from their defaults."""
    if isinstance(wanted, str):
        return wanted
    changed = [
        f"{item.name}={getattr(wanted, item.name)}"
        for item in wanted.parameters()
        if getattr(wanted, item.name) != item.default
    ]
    return f"{wanted.name} ({', '.join(changed)})" if changed else wanted.name


def _chart(points: Sequence[tuple[str, float, float]], title: str) -> str:
    """Draw (method, selected, error), both on logarithmic scales."""
    methods = list(dict.fromkeys(method for method, _, _ in points))
    series = [
        Series(
            method,
            [(size, max(error, _LEAST)) for name, size, error in points if name == method],
            COLOURS[number % len(COLOURS)],
        )
        for number, method in enumerate(methods)
    ]
    across, up = Axis(title, is_log=True), Axis("relative error", is_log=True)
    return plot(series, across, up, size=(300, 260))
