"""Laws of synthesizers: records like those of the file, of nobody in particular, drawn anew each time."""

from __future__ import annotations

import dataclasses
import logging
import re
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.data.dataset import Dataset
from discreet.errors import RefusedError
from discreet.microdata.synthesizers._base import Fitted, Synthesizer
from discreet.randomness import Randomness
from tests.laws import people
from tests.laws.parameters import examples, some

SIZE = 240


def data(seed: int = 1, order: Any = None) -> Dataset:
    rows = people.frame(seed, SIZE)
    # Amounts that follow from the age alone would be refused beside it.
    wave = np.arange(SIZE)
    rows["bonus"] = (0.1 * rows["age"] + np.sin(wave % 7 * 7)).round(1)
    rows["debt"] = (0.05 * rows["age"] + np.cos(wave % 5 * 3) + 1).round(1)
    if order is not None:
        rows = rows.iloc[order].reset_index(drop=True)
    read = people.dataset(rows)
    return read.replace(
        roles={"home": "identifier", "bonus": "confidential", "debt": "other"},
        domains={
            "region": [*people.REGIONS.leaves, None],
            "age": {"cuts": list(range(0, 101, 20))},
            "pay": {"bounds": [0.0, 100.0]},
            "bonus": {"bounds": [0.0, 12.0]},
            "debt": {"bounds": [0.0, 12.0]},
            "ill": ["flu", "cold", "gout", "none"],
            "weight": list(range(2, 9)),
        },
        types={"weight": "nominal"},
    )


def tried(member: type[Synthesizer], examples: Any = examples) -> tuple[Any, ...]:
    return examples(
        member, epsilon=5.0, delta=1e-6, columns=("debt", "bonus"), confidential=("bonus",),
        missing=("pay",),
    )  # fmt: skip


def drawn(method: Any, source: Dataset, seed: int = 1, n: int | None = None) -> pa.Table:
    rng = Randomness.seeded(seed)
    fitted = method.fit(source, rng=rng)
    return fitted.draw(fitted.size if n is None else n, rng=rng)


def size_of(method: Any, n: int) -> int:
    return SIZE if method.corresponds else n


def columns_and_types_are_those_of_the_file(member: type[Synthesizer]) -> None:
    source = data()
    hidden = {*source.schema.identifiers}
    wanted = [name for name in source.columns if name not in hidden]
    kinds = source.arrow().schema
    for method in tried(member):
        rows = drawn(method, source, n=size_of(method, 50))
        assert rows.column_names == wanted, f"{method}: {rows.column_names}"
        assert rows.num_rows == size_of(method, 50), f"{method} drew {rows.num_rows} records"
        for name in wanted:
            one, two = rows.schema.field(name).type, kinds.field(name).type
            assert one == two, f"{method}: {name} is {one} and was {two}"


def values_are_possible_ones(member: type[Synthesizer]) -> None:
    """Codes are codes of the file; numbers lie within the public limits, or those of the file."""
    source = data(2)
    before = source.arrow()
    for method in tried(member):
        rows = drawn(method, source, 2)
        for name in ("region", "job", "ill"):
            known = set(before.column(name).to_pylist())
            assert set(rows.column(name).to_pylist()) <= known | {None}, f"{method}: {name}"
        for name, (low, high) in {"age": (0, 100), "pay": (0, 100)}.items():
            values = [v for v in rows.column(name).to_pylist() if v is not None]
            free = method.protection == "statistics"
            assert free or (min(values) >= low and max(values) <= high), f"{method}: {name}"


def the_order_of_rows_does_not_matter(member: type[Synthesizer]) -> None:
    if not member.seedable or member.corresponds:
        return
    order = np.random.default_rng(3).permutation(SIZE)
    for method in tried(member):
        one, two = (drawn(method, source, 4) for source in (data(3), data(3, order)))
        assert one.equals(two), f"{method} depends on the order of the rows"


def what_is_drawn_comes_from_the_source(member: type[Synthesizer]) -> None:
    source = data(4)
    for method in tried(member, examples=some):
        one, two, other = (drawn(method, source, seed) for seed in (5, 5, 6))
        assert not member.seedable or one.equals(two), f"{method} draws from another source"
        assert not one.equals(other), f"{method} draws nothing"


def files_differ_and_are_refused_when_seeded(member: type[Synthesizer]) -> None:
    source = data(5)
    for method in tried(member, examples=some):
        made = dc.synthesize(source, method, m=2, rng=Randomness.seeded(1))
        one, two = (file.arrow() for file in made.files)
        assert not one.equals(two), f"{method}: two files are one"
        with tempfile.TemporaryDirectory() as folder, pytest.raises(RefusedError):
            made.write(Path(folder) / "out")


def nobody_is_named(member: type[Synthesizer]) -> None:
    source = data(6)
    for method in tried(member, examples=some)[:1]:
        made = dc.synthesize(source, method)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(made.write(Path(folder) / "out"))
            people.assert_nobody_is_named(path, people.frame(6, SIZE))
        assert made.keeps
        assert made.promise
        assert made.synthesizer.inference in ("simple", "proper", "fully", "partially", "none")


def no_value_of_the_file_is_told(member: type[Synthesizer]) -> None:
    """Somebody's pay stands in no evidence, page, progress or log; only in the records, if there."""
    source = data(7)
    paid = {f"{value:.2f}" for value in people.frame(7, SIZE)["pay"].dropna()}
    for method in tried(member, examples=some)[:1]:
        told: list[str] = []
        handler = _Words(told)
        root, level = logging.getLogger(), logging.getLogger().level
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        try:
            made = dc.synthesize(source, method, progress=_progress(told))
            with tempfile.TemporaryDirectory() as folder:
                path = Path(made.write(Path(folder) / "out"))
                told.append((path / "evidence.json").read_text())
                # Coordinates of pictures look like pay.
                page = (path / "report.html").read_text()
                told.append(re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL))
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
        words = set(re.findall(r"(?<![\d.])\d+\.\d{2}(?!\d)", " ".join(told)))
        assert not words & paid, f"{method} tells what somebody is paid"


def _progress(words: list[str]) -> Any:
    return lambda *said: words.append(str(said))


class _Words(logging.Handler):
    def __init__(self, words: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._words = words

    def emit(self, record: logging.LogRecord) -> None:
        self._words.append(record.getMessage())


LAWS = (
    columns_and_types_are_those_of_the_file,
    values_are_possible_ones,
    the_order_of_rows_does_not_matter,
    what_is_drawn_comes_from_the_source,
    files_differ_and_are_refused_when_seeded,
    nobody_is_named,
    no_value_of_the_file_is_told,
)


class _Kept(Fitted):
    notes: ClassVar[dict[str, object]] = {}  # type: ignore[misc]  # nothing to tell

    def __init__(self, rows: pa.Table, draw: Any) -> None:
        self._rows, self._draw, self.size = rows, draw, rows.num_rows

    def draw(self, n: int, *, rng: Randomness) -> pa.Table:
        return self._rows.take(self._draw(rng, self._rows.num_rows, n))


@dataclasses.dataclass(frozen=True)
class _Broken(Synthesizer):
    @property
    def keeps(self) -> str:
        return "everything"

    def names(self, source: Dataset) -> list[str]:
        hidden = {*source.schema.identifiers}
        return [name for name in source.columns if name not in hidden]

    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Any = None) -> Fitted:
        rows = dataset.arrow(self.names(dataset)).sort_by("bonus")
        return _Kept(rows, self.rows)

    def rows(self, rng: Randomness, many: int, n: int) -> Any:
        return rng.integers(0, many, n)


@dataclasses.dataclass(frozen=True)
class Verbatim(_Broken):
    """Gives the records out as they are."""

    name: ClassVar[str] = "verbatim"

    def rows(self, rng: Randomness, many: int, n: int) -> Any:
        return np.arange(n) % many


@dataclasses.dataclass(frozen=True)
class Named(_Broken):
    """Keeps the names."""

    name: ClassVar[str] = "named"

    def names(self, source: Dataset) -> list[str]:
        return list(source.columns)


@dataclasses.dataclass(frozen=True)
class FirstRows(_Broken):
    """Draws by the place of records in the file."""

    name: ClassVar[str] = "first-rows"

    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Any = None) -> Fitted:
        return _Kept(dataset.arrow(self.names(dataset)), self.rows)


@dataclasses.dataclass(frozen=True)
class Inventing(_Broken):
    """Gives everybody an illness that nobody has."""

    name: ClassVar[str] = "inventing"

    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Any = None) -> Fitted:
        rows = dataset.arrow(self.names(dataset))
        place = rows.column_names.index("ill")
        ill = pa.array(["dropsy"] * rows.num_rows, rows.schema.field("ill").type)
        return _Kept(rows.set_column(place, "ill", ill), self.rows)


@dataclasses.dataclass(frozen=True)
class Once(_Broken):
    """Draws once and gives the same file again."""

    name: ClassVar[str] = "once"

    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Any = None) -> Fitted:
        rows = dataset.arrow(self.names(dataset)).sort_by("bonus")
        kept = self.rows(rng, rows.num_rows, rows.num_rows)
        return _Kept(rows, lambda _, many, n: kept[:n])


@dataclasses.dataclass(frozen=True)
class Labelled(_Broken):
    """Writes people's names into another column."""

    name: ClassVar[str] = "labelled"

    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Any = None) -> Fitted:
        rows = dataset.arrow([*self.names(dataset), "name"])
        named = rows.column("name").cast(rows.schema.field("job").type)
        place = rows.column_names.index("job")
        return _Kept(rows.set_column(place, "job", named).drop_columns(["name"]), self.rows)


@dataclasses.dataclass(frozen=True)
class Talkative(_Broken):
    """Tells the highest pay in the notes that stand in the evidence."""

    name: ClassVar[str] = "talkative"

    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Any = None) -> Fitted:
        found = super().fit(dataset, rng=rng)
        pay = [value for value in dataset.arrow().column("pay").to_pylist() if value is not None]
        found.notes = {"highest pay": round(max(pay), 2)}
        return found


BROKEN = {
    Verbatim: what_is_drawn_comes_from_the_source,
    Named: columns_and_types_are_those_of_the_file,
    Inventing: values_are_possible_ones,
    Once: files_differ_and_are_refused_when_seeded,
    Labelled: nobody_is_named,
    FirstRows: the_order_of_rows_does_not_matter,
    Talkative: no_value_of_the_file_is_told,
}
