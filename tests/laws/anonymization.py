"""Laws of methods of anonymisation: the promise holds in the file that is written."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

import discreet as dc
from discreet.data.dataset import Dataset
from discreet.microdata.methods._base import Anonymization, Outcome
from discreet.microdata.models import Model
from discreet.microdata.models._base import Group
from discreet.progress import Progress, silent
from tests.laws import people
from tests.laws.parameters import examples

PROMISES: tuple[tuple[Model, ...], ...] = (
    (dc.KAnonymity(3),),
    (dc.KAnonymity(2), dc.LDiversity("ill", 2)),
)


def released(data: Dataset, models: Sequence[Model], method: Anonymization) -> Any:
    try:
        return dc.anonymize(data, models=models, method=method)
    except dc.EngineError as error:  # the check of the result found it out
        raise AssertionError(f"{method} breaks {models}: {error}") from error


def the_promise_holds_in_the_file(member: type[Anonymization]) -> None:
    rows = people.frame()
    for method in examples(member):
        for models in PROMISES:
            try:
                release = released(people.dataset(rows), models, method)
            except dc.InputError as error:
                # A method may refuse a model it cannot keep, but never the least of them.
                assert error.code == "model-not-supported", f"{method} cannot be judged: {error}"
                assert models != PROMISES[0], f"{method} keeps no promise at all"
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = Path(release.write(Path(folder) / "out"))
                records = people.read_back(path)
                people.assert_nobody_is_named(path, rows)
            assert "name" not in records[0]
            assert len(records) + release.suppressed >= len(rows)
            whole = tuple(rows["ill"])
            keys = [tuple(record[name] for name in people.QUASI) for record in records]
            wildcard = release.outcome.wildcard
            for own in keys:
                if release.outcome.starred and set(own) == {"*"}:
                    continue
                alike = [
                    record
                    for record, key in zip(records, keys, strict=True)
                    if fits(own, key, wildcard)
                ]
                group = Group(tuple(record["ill"] for record in alike), whole)
                for model in models:
                    assert model.defined(group), f"{method}: {own} breaks {model} in the file"


def fits(own: tuple[str, ...], other: tuple[str, ...], wildcard: bool) -> bool:
    """Whether two records look alike; in one reading a missing value looks like every other."""
    return all(a == b or (wildcard and "" in (a, b)) for a, b in zip(own, other, strict=True))


def the_input_is_not_touched(member: type[Anonymization]) -> None:
    rows = people.frame(2)
    copy, data = rows.copy(deep=True), people.dataset(rows)
    before = data.arrow()
    for method in examples(member):
        released(data, PROMISES[0], method)
        pd.testing.assert_frame_equal(rows, copy)
        assert data.arrow().equals(before), f"{method} changed its input"


def values_it_does_not_generalise_stay(member: type[Anonymization]) -> None:
    """Confidential values belong to the same records as before: nothing is moved between people."""
    rows = people.frame(3, missing=False).assign(pay=lambda r: [float(n) for n in range(len(r))])
    for method in examples(member):
        found = released(people.dataset(rows), PROMISES[0], method).frame
        known = rows.set_index("pay")["ill"]
        assert all(known[pay] == ill for pay, ill in zip(found["pay"], found["ill"], strict=True))


def the_order_of_rows_does_not_matter(member: type[Anonymization]) -> None:
    if not member.blind_to_order:
        return
    rows = people.frame(4)
    mixed = rows.sample(frac=1, random_state=1, ignore_index=True)
    columns = [*people.QUASI, "pay", "ill"]
    for method in examples(member):
        one, two = (
            people.as_sorted(released(people.dataset(r), PROMISES[0], method).frame, columns)
            for r in (rows, mixed)
        )
        assert one == two, f"{method} depends on the order of the rows"


LAWS = (
    the_promise_holds_in_the_file,
    the_input_is_not_touched,
    values_it_does_not_generalise_stay,
    the_order_of_rows_does_not_matter,
)


@dataclasses.dataclass(frozen=True)
class _Stars(Anonymization):
    """Replaces every key by a star: safe, and the beginning of broken methods."""

    def columns(self, dataset: Dataset) -> dict[str, list[Any]]:
        return dict.fromkeys(people.QUASI, ["*"] * len(dataset))

    def anonymize(
        self,
        dataset: Dataset,
        models: Sequence[Model],
        *,
        quasi: Sequence[str],
        progress: Progress = silent,
    ) -> Outcome:
        return Outcome(dataset.with_columns(self.columns(dataset)), 0.0, "none")


@dataclasses.dataclass(frozen=True)
class Idle(_Stars):
    """Changes nothing."""

    name: ClassVar[str] = "idle"

    def columns(self, dataset: Dataset) -> dict[str, list[Any]]:
        return {"job": dataset.arrow(["job"]).column(0).to_pylist()}


@dataclasses.dataclass(frozen=True)
class Narrow(_Stars):
    """Keeps the promise for an intruder who knows the job alone."""

    name: ClassVar[str] = "narrow"

    def anonymize(self, *given: Any, **named: Any) -> Outcome:
        return dataclasses.replace(super().anonymize(*given, **named), key_sets=(("job",),))

    def columns(self, dataset: Dataset) -> dict[str, list[Any]]:
        return {"job": ["*"] * len(dataset)}


@dataclasses.dataclass(frozen=True)
class Moving(_Stars):
    """Gives each record the illness of the next."""

    name: ClassVar[str] = "moving"

    def columns(self, dataset: Dataset) -> dict[str, list[Any]]:
        ill = dataset.arrow(["ill"]).column(0).to_pylist()
        return {**super().columns(dataset), "ill": [*ill[1:], ill[0]]}


@dataclasses.dataclass(frozen=True)
class ByPlace(_Stars):
    """Makes classes of the first rows and of the others, and claims not to look at the order."""

    name: ClassVar[str] = "by-place"

    def columns(self, dataset: Dataset) -> dict[str, list[Any]]:
        half = len(dataset) // 2
        halves = ["first"] * half + ["second"] * (len(dataset) - half)
        return {**super().columns(dataset), "region": halves}


@dataclasses.dataclass(frozen=True)
class Emptying(_Stars):
    """Takes a record out of every table of the engine."""

    name: ClassVar[str] = "emptying"

    def anonymize(self, dataset: Dataset, *given: Any, **named: Any) -> Outcome:
        engine: Any = dataset.engine
        found = engine._connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        for (table,) in found:
            engine._connection.execute(f'DELETE FROM "{table}" WHERE rowid = 0')
        return super().anonymize(dataset, *given, **named)


BROKEN = {
    Idle: the_promise_holds_in_the_file,
    Narrow: the_promise_holds_in_the_file,
    Emptying: the_input_is_not_touched,
    Moving: values_it_does_not_generalise_stay,
    ByPlace: the_order_of_rows_does_not_matter,
}
