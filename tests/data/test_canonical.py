"""A value has one form, when it is counted and when it is written."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dc
from discreet.errors import InputError

ROLES = {"a": "quasi", "ill": "confidential"}
TWINS: dict[str, list[Any]] = {
    "not a number and missing": [float("nan"), None, float("nan"), None],
    "zero and minus zero": [0.0, -0.0, 0.0, -0.0],
    "composed and decomposed": ["Zoé", "Zoe\u0301", "Zoé", "Zoe\u0301"],
}
METHODS = [
    dc.Mondrian(),
    dc.LocalSuppression(),
    dc.LocalSuppression(missing="category"),
    dc.MicroaggregationToK(),
]


def _sizes(column: pa.ChunkedArray) -> list[int]:
    """Count bit by bit, as any reader of the file may."""
    found: dict[str, int] = {}
    for value in column.to_pylist():
        found[repr(value)] = found.get(repr(value), 0) + 1
    return sorted(found.values())


def _table(values: list[Any]) -> pa.Table:
    kind = pa.string() if isinstance(values[0], str) else pa.float64()
    return pa.table({"a": pa.array(values, kind), "ill": ["flu", "gout"] * 2})


def _written(release: Any, folder: Path) -> pa.Table:
    release.write(folder)
    (file,) = folder.glob("*.parquet")
    return parquet.read_table(file)


@pytest.mark.parametrize("values", TWINS.values(), ids=TWINS.keys())
@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.name}-{getattr(m, 'missing', '')}")
def test_what_is_one_class_in_memory_is_one_in_the_file(
    values: list[Any], method: dc.Anonymization, tmp_path: Path
) -> None:
    parquet.write_table(_table(values), tmp_path / "people.parquet")
    for source in (_table(values), tmp_path / "people.parquet"):
        data = dc.read(source, roles=ROLES, types={"a": "nominal"})
        safe = dc.anonymize(data, [dc.KAnonymity(4)], method=method)
        rows = _written(safe, tmp_path / f"out{type(source).__name__}")
        assert _sizes(rows.column("a")) == [4]


def test_codes_and_empty_texts_stay_apart() -> None:
    codes = pa.table({"a": ["01", "1", "", None], "ill": list("wxyz")})
    data = dc.read(codes, roles=ROLES)
    assert dc.KAnonymity(2).check(data).value == 1
    assert dc.KAnonymity(2).check(data).classes == 4
    assert data.arrow(["a"]).column(0).to_pylist() == ["01", "1", "", None]


def test_masking_writes_no_minus_zero(tmp_path: Path) -> None:
    frame = pa.table({"a": [-0.4, 0.4, 0.3, -0.3], "ill": list("wxyz")})
    data = dc.read(frame, roles=ROLES)
    rows = _written(dc.mask(data, [dc.Rounding("a", 1.0)]), tmp_path / "out")
    assert _sizes(rows.column("a")) == [4]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, "1", 2.5, "x"]}),
        pl.DataFrame({"a": pl.Series([1, "1", 2.5, "x"], dtype=pl.Object)}),
    ],
    ids=["pandas", "polars"],
)
def test_numbers_beside_texts_are_refused(frame: Any) -> None:
    with pytest.raises(InputError) as error:
        dc.read(frame)
    assert error.value.code == "mixed-types"


@pytest.mark.parametrize("name", ["count", "weight", "population", "size", "from", "to", "n", "k0"])
def test_a_column_may_have_any_name(name: str) -> None:
    frame = pd.DataFrame({name: ["a", "a", "b", "b"], "ill": list("wxyz")})
    data = dc.read(
        frame,
        roles={name: "quasi", "ill": "confidential"},
        hierarchies={name: dc.Hierarchy.from_levels({"Total": ["a", "b"]})},
    )
    assert dc.KAnonymity(2).check(data).holds
    for method in (dc.Generalization(), *METHODS):
        assert dc.anonymize(data, [dc.KAnonymity(2)], method=method).safe
    models = [dc.KAnonymity(2), dc.LDiversity("ill", 2), dc.KMap(2, population=frame)]
    assert dc.anonymize(data, models).safe
    assert dc.describe(data).exposure is not None
    assert dc.risk(data)["re-identification"].facts["smallest class"] == 2


def test_the_name_of_row_numbers_is_taken() -> None:
    with pytest.raises(InputError) as error:
        dc.read(pd.DataFrame({"__row": [1]}))
    assert error.value.code == "name-taken"


def test_time_spans_are_refused_clearly() -> None:
    frame = pd.DataFrame({"a": [datetime.timedelta(days=2)] * 2, "ill": ["x", "y"]})
    data = dc.read(frame, roles=ROLES)
    assert dc.describe(data).records == 2
    with pytest.raises(InputError) as error:
        dc.KAnonymity(2).check(data)
    assert error.value.code == "unsupported-type"
    assert "days or seconds" in str(error.value)


def test_an_empty_text_is_a_key_like_any_other() -> None:
    frame = pd.DataFrame({"a": ["", "", "b", "b"], "ill": list("wxyz")})
    data = dc.read(frame, roles=ROLES)
    for method in METHODS:
        safe = dc.anonymize(data, [dc.KAnonymity(2)], method=method)
        assert sorted(safe.frame["a"]) == ["", "", "b", "b"]


def test_categories_of_suppressed_records_are_gone() -> None:
    words = ["a", "a", "a", "secret"]
    tree = dc.Hierarchy.from_levels({"Total": ["a", "secret"]})
    frames: list[Any] = [
        pd.DataFrame({"a": pd.Categorical(words), "ill": list("wxyz")}),
        pl.DataFrame({"a": pl.Series(words, dtype=pl.Enum(["a", "secret"])), "ill": list("wxyz")}),
        pl.DataFrame({"a": pl.Series(words, dtype=pl.Categorical), "ill": list("wxyz")}),
        pa.table({"a": pa.array(words).dictionary_encode(), "ill": list("wxyz")}),
    ]
    for frame in frames:
        data = dc.read(frame, roles=ROLES, hierarchies={"a": tree})
        method = dc.Generalization(suppression=0.5, highest={"a": 0})
        safe = dc.anonymize(data, [dc.KAnonymity(2)], method=method)
        assert safe.suppressed == 1
        out = safe.frame
        if isinstance(out, pd.DataFrame):
            assert list(out["a"].cat.categories) == ["a"]
        elif isinstance(out, pl.DataFrame):
            assert "secret" not in repr(out["a"].dtype)
            assert "secret" not in repr(out.to_arrow().column("a").combine_chunks())
        else:
            assert "secret" not in repr(out.column("a").combine_chunks())


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf"), None])
def test_weights_that_are_none_are_refused(wrong: float | None) -> None:
    frame = pd.DataFrame({"a": [1, 2], "w": [1.0, wrong]})
    with pytest.raises(InputError) as error:
        dc.read(frame, roles={"a": "quasi", "w": "other"}, weight="w")
    assert error.value.code == "bad-weight"
