"""Laws of masking methods: they change what they say, in the file that is written, and nothing else."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

import discreet as dc
from discreet.data.dataset import Dataset
from discreet.microdata.masking._base import ColumnMasking, Masking
from discreet.randomness import Randomness
from tests.laws import people
from tests.laws.parameters import examples, some


def tried(member: type[Masking], examples: Any = examples) -> tuple[Any, ...]:
    """Return the method's examples, on numbers where it works on numbers, else on categories."""
    return examples(
        member,
        columns=("pay", "age") if member.numeric else ("region", "job"),
        identifiers=("name",),
        household="home",
        bounds={"pay": (0.0, 100.0), "age": (0.0, 100.0)},
    )


def masked(method: Masking, data: Dataset, seed: int = 1) -> pd.DataFrame:
    return method.mask(data, rng=Randomness.seeded(seed)).numbered().arrow().to_pandas()


def only_what_it_changes_is_changed(member: type[Masking]) -> None:
    rows = people.frame(1)
    data = people.dataset(rows)
    before = data.arrow().to_pandas()
    for method in tried(member):
        after = masked(method, data).set_index("name", drop=False)
        if "name" in method.changes:
            after.index = before["name"]
        known = before.set_index("name", drop=False)
        assert set(after.index) <= set(known.index), f"{method} made up people"
        assert method.drops_records or len(after) == len(known), f"{method} lost people"
        others = [name for name in data.columns if name not in method.changes]
        for name in others:
            one, two = known.loc[after.index, name], after[name]
            same = (one == two) | (one.isna() & two.isna())
            assert same.all(), f"{method} changed {name}, which it does not say"


def the_input_is_not_touched(member: type[Masking]) -> None:
    rows = people.frame(2)
    copy, data = rows.copy(deep=True), people.dataset(rows)
    before = data.arrow()
    for method in tried(member):
        masked(method, data)
        pd.testing.assert_frame_equal(rows, copy)
        assert data.arrow().equals(before), f"{method} changed its input"


def something_is_changed(member: type[Masking]) -> None:
    """A method with its typical parameters protects somebody."""
    data = people.dataset(people.frame(3))
    before = data.arrow().to_pandas()
    for method in tried(member):
        after = masked(method, data)
        same = len(before) == len(after) and all(
            [_value(x) for x in before[name]] == [_value(x) for x in after[name]]
            for name in data.columns
        )
        assert not same, f"{method} leaves everything as it was"


def missing_values_stay_missing(member: type[Masking]) -> None:
    if not member.keeps_missing:
        return
    rows = people.frame(4)
    for method in tried(member):
        found = masked(method, people.dataset(rows))
        for name in method.changes:
            assert np.array_equal(found[name].isna(), rows[name].isna()), f"{method}: {name}"


def what_is_drawn_comes_from_the_source(member: type[Masking]) -> None:
    data = people.dataset(people.frame(5))
    for method in tried(member):
        one, two = masked(method, data, 7), masked(method, data, 7)
        if member.seedable:
            assert one.equals(two), f"{method} draws from another source"
        if not method.is_random:
            assert one.equals(masked(method, data, 8)), f"{method} does not say that it draws"
        release = dc.mask(data, [method], rng=Randomness.seeded(7))
        assert release.randomness == ("seeded" if method.is_random else "none"), f"{method}"


def the_order_of_rows_does_not_matter(member: type[Masking]) -> None:
    if not member.blind_to_order:
        return
    rows = people.frame(6)
    mixed = rows.sample(frac=1, random_state=3, ignore_index=True)
    for method in tried(member):
        if method.is_random:  # what is drawn goes by the place
            continue
        one, two = (masked(method, people.dataset(r)).sort_values("name") for r in (rows, mixed))
        columns = ["name", *method.changes]
        assert people.as_sorted(one, columns) == people.as_sorted(two, columns), (
            f"{method} depends on the order of the rows"
        )


def the_file_holds_what_was_released(member: type[Masking]) -> None:
    rows = people.frame(7)
    for method in tried(member, examples=some):
        release = dc.mask(people.dataset(rows), [method])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(release.write(Path(folder) / "out"))
            records = people.read_back(path)
            people.assert_nobody_is_named(path, rows)
        frame = release.frame
        assert list(records[0]) == list(frame.columns)
        written = pd.DataFrame(records)
        for name in frame.columns:
            assert values(written[name]) == values(frame[name]), f"{method}: {name} in the file"


def values(column: pd.Series) -> list[Any]:
    """Return values in an order of their own, numbers as numbers; missing ones as empty text."""
    return sorted((_value(x) for x in column), key=lambda x: (isinstance(x, str), x))


def _value(x: Any) -> Any:
    if x is None or x == "" or x != x:
        return ""
    try:
        return round(float(x), 6)
    except ValueError:
        return str(x)


def it_says_how_to_grow(member: type[Masking]) -> None:
    for method in tried(member):
        assert method.settings()["name"] == member.name
        further = method.stronger()
        assert further is None or (type(further) is type(method) and further != method)


def an_unknown_column_is_named(member: type[Masking]) -> None:
    data = people.dataset(people.frame(8))
    for method in tried(member):
        if not isinstance(method, ColumnMasking):
            continue
        lacking = data.select([name for name in data.columns if name not in method.columns])
        try:
            dc.mask(lacking, [method])
        except dc.InputError as error:
            assert error.code == "unknown-column", f"{method}: {error}"
        else:
            raise AssertionError(f"{method} masks a column that is not there")


LAWS = (
    only_what_it_changes_is_changed,
    the_input_is_not_touched,
    something_is_changed,
    missing_values_stay_missing,
    what_is_drawn_comes_from_the_source,
    the_order_of_rows_does_not_matter,
    the_file_holds_what_was_released,
    it_says_how_to_grow,
    an_unknown_column_is_named,
)


@dataclasses.dataclass(frozen=True)
class _Shift(ColumnMasking):
    """Adds one to numbers, from which broken methods start."""

    numeric: ClassVar[bool] = True

    def apply(self, rows: Any, *, schema: Any, rng: Randomness) -> Mapping[str, Any]:
        return {
            name: pa.array(self.shifted(rows, name, rng), pa.float64()) for name in self.columns
        }

    def shifted(self, rows: Any, name: str, rng: Randomness) -> list[float | None]:
        return [None if x is None else x + 1.0 for x in rows.column(name).to_pylist()]


@dataclasses.dataclass(frozen=True)
class Spilling(_Shift):
    """Changes a column it does not name."""

    name: ClassVar[str] = "spilling"

    def mask(self, dataset: Dataset, **given: Any) -> Dataset:
        return super().mask(dataset, **given).with_columns({"ill": ["flu"] * len(dataset)})


@dataclasses.dataclass(frozen=True)
class Harmless(_Shift):
    """Changes nothing."""

    name: ClassVar[str] = "harmless"

    def shifted(self, rows: Any, name: str, rng: Randomness) -> list[float | None]:
        return rows.column(name).to_pylist()  # type: ignore[no-any-return]


@dataclasses.dataclass(frozen=True)
class Inventing(_Shift):
    """Fills in what is missing."""

    name: ClassVar[str] = "inventing"

    def shifted(self, rows: Any, name: str, rng: Randomness) -> list[float | None]:
        return [0.0 if x is None else x + 1.0 for x in rows.column(name).to_pylist()]


@dataclasses.dataclass(frozen=True)
class OwnNoise(_Shift):
    """Draws from a source of its own."""

    name: ClassVar[str] = "own-noise"
    random: ClassVar[bool] = True

    def shifted(self, rows: Any, name: str, rng: Randomness) -> list[float | None]:
        drawn = iter(Randomness.secure().uniform(rows.num_rows))
        return [None if x is None else x + next(drawn) for x in rows.column(name).to_pylist()]


@dataclasses.dataclass(frozen=True)
class ByPlace(_Shift):
    """Adds the number of the row, and claims not to look at the order."""

    name: ClassVar[str] = "by-place"
    blind_to_order: ClassVar[bool] = True

    def shifted(self, rows: Any, name: str, rng: Randomness) -> list[float | None]:
        return [None if x is None else x + n for n, x in enumerate(rows.column(name).to_pylist())]


@dataclasses.dataclass(frozen=True)
class Naming(ColumnMasking):
    """Writes names into the column it masks."""

    name: ClassVar[str] = "naming"

    @property
    def reads(self) -> tuple[str, ...]:
        return ("name",)

    def apply(self, rows: Any, *, schema: Any, rng: Randomness) -> Mapping[str, Any]:
        return dict.fromkeys(self.columns, rows.column("name").combine_chunks())


@dataclasses.dataclass(frozen=True)
class Overwriting(_Shift):
    """Masks the dataset it was given, too."""

    name: ClassVar[str] = "overwriting"

    def mask(self, dataset: Dataset, **given: Any) -> Dataset:
        made = super().mask(dataset, **given)
        object.__setattr__(dataset, "relation", made.select(dataset.columns).relation)
        return made


@dataclasses.dataclass(frozen=True)
class Standing(_Shift):
    """Calls itself the next stronger method."""

    name: ClassVar[str] = "standing"

    def stronger(self) -> Any:
        return self


@dataclasses.dataclass(frozen=True)
class Tolerant(_Shift):
    """Leaves out columns that are not there, without a word."""

    name: ClassVar[str] = "tolerant"

    def require(self, dataset: Dataset) -> None:
        pass

    def mask(self, dataset: Dataset, **given: Any) -> Dataset:
        there = tuple(name for name in self.columns if name in dataset.columns)
        return dataclasses.replace(self, columns=there).mask(dataset, **given) if there else dataset


BROKEN = {
    Spilling: only_what_it_changes_is_changed,
    Harmless: something_is_changed,
    Inventing: missing_values_stay_missing,
    OwnNoise: what_is_drawn_comes_from_the_source,
    ByPlace: the_order_of_rows_does_not_matter,
    Overwriting: the_input_is_not_touched,
    Standing: it_says_how_to_grow,
    Tolerant: an_unknown_column_is_named,
    Naming: the_file_holds_what_was_released,
}
