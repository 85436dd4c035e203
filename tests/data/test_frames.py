"""Frames come back in the types that went in, column by column."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pytest

from discreet.data.dataset import read
from discreet.errors import InputError


def pandas_frame() -> pd.DataFrame:
    instants = pd.to_datetime(["2020-01-01 10:00", None, "2021-07-03 00:30"])
    return pd.DataFrame(
        {
            "int8": np.array([1, 2, 3], "int8"),
            "maybe": pd.array([1, None, 2**60 + 1], dtype="Int64"),
            "yes": pd.array([True, None, False], dtype="boolean"),
            "code": pd.Categorical(["a", None, "b"], categories=["b", "a", "z"], ordered=True),
            "number code": pd.Categorical([1, 2, 1]),
            "object": pd.Series(["x", None, "y"], dtype=object),
            "text": ["p", "", None],
            "real": np.array([1.5, np.nan, np.inf], "float32"),
            "day": [datetime.date(2020, 1, 1), None, datetime.date(2021, 1, 1)],
            "time": instants,
            "zoned": instants.tz_localize("Europe/Madrid"),
            "exact": [decimal.Decimal("1.10"), None, decimal.Decimal("2.25")],
            "large": np.array([1, 2, 2**63 + 5], "uint64"),
            "nanoseconds": instants.astype("datetime64[ns]"),
            "arrow": pd.array([1, None, 3], dtype="int64[pyarrow]"),
        }
    )


def polars_frame() -> pl.DataFrame:
    instant = [datetime.datetime(2020, 1, 1)] * 3  # noqa: DTZ001
    return pl.DataFrame(
        {
            "category": pl.Series(["a", "b", None], dtype=pl.Categorical),
            "enum": pl.Series(["x", "y", "x"], dtype=pl.Enum(["x", "y", "z"])),
            "int8": pl.Series([1, 2, None], dtype=pl.Int8),
            "large": pl.Series([1, 2, 2**63 + 5], dtype=pl.UInt64),
            "time": pl.Series(instant).cast(pl.Datetime("ms")),
            "zoned": pl.Series(instant).dt.replace_time_zone("Europe/Madrid"),
            "real": pl.Series([1.0, None, float("inf")], dtype=pl.Float32),
            "text": ["a", None, ""],
            "exact": pl.Series([decimal.Decimal("1.1"), None, None]),
        }
    )


def arrow_table() -> pa.Table:
    return pa.table(
        {
            "code": pa.array(["a", "b"]).dictionary_encode(),
            "large": pa.array(["a", None], pa.large_string()),
            "nanoseconds": pa.array([1000, 2000], pa.timestamp("ns")),
            "int8": pa.array([1, None], pa.int8()),
        }
    )


def test_pandas_types():
    frame = pandas_frame()
    pd.testing.assert_frame_equal(read(frame).frame, frame)
    chosen = read(frame).select(["maybe", "code"]).where(_condition()).frame
    assert chosen["maybe"].dtype == "Int64"
    assert chosen["maybe"].tolist() == [2**60 + 1]
    assert chosen["code"].dtype == frame["code"].dtype


def _condition():
    from sqlglot import condition

    return condition("maybe > 5")


def test_polars_types():
    frame = polars_frame()
    polars.testing.assert_frame_equal(read(frame).frame, frame)
    polars.testing.assert_frame_equal(read(frame.lazy()).frame, frame)


def test_arrow_types():
    table = arrow_table()
    assert read(table).frame.equals(table)


def test_changed_values_are_never_lost_to_the_old_type():
    frame = pandas_frame()
    coarse = read(frame).recode({"code": {"a": "a or b", "b": "a or b"}, "maybe": {1: "one"}})
    out = coarse.frame
    assert out["code"].tolist()[0] == "a or b"
    assert out["maybe"].tolist()[0] == "one"
    assert coarse.schema["maybe"].type.value == "nominal"
    wide = read(frame).with_columns({"int8": np.array([1000, 2, 3])}).frame
    assert wide["int8"].tolist() == [1000, 2, 3]
    ordered = polars_frame()
    out = read(ordered).recode({"enum": {"x": "new"}}).frame
    assert out["enum"].to_list() == ["new", "y", "new"]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.Series([], dtype="int64"), "b": pd.Series([], dtype="object")}),
        pd.DataFrame({"a": [1]}),
        pd.DataFrame({"a": [None, None]}),
    ],
    ids=["no rows", "one row", "all missing"],
)
def test_small_frames(frame):
    data = read(frame)
    assert len(data) == len(frame)
    assert list(data.frame.columns) == list(frame.columns)
    assert len(data.frame) == len(frame)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, "x"]}),
        pd.DataFrame({"a": [1j, 2j]}),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        {"a": [1]},
        object(),
    ],
    ids=["mixed", "complex", "twice", "dict", "object"],
)
def test_what_cannot_be_read_is_told(frame):
    with pytest.raises(InputError):
        read(frame)
