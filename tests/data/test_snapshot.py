"""Fingerprints of rows: keyed, blind to order, and the same on every engine."""

from __future__ import annotations

import datetime
import decimal
import random

import pyarrow as pa
import pytest

from discreet.data.engines import Engine, connect
from discreet.data.snapshot import fingerprint_rows

KEY = b"secret of a ledger"
UTC = datetime.UTC
ROWS = pa.table(
    {
        "text": ["a", "", None, 'x,"\ny', "ü🙂e\u0301"],
        "whole": [1, -(2**62), None, 2**53 + 1, 0],
        "real": [0.1, None, 1e-300, -1.7976931348623157e308, 1 / 3],
        "round": [1.0, -0.0, 2.0**53, 1e20, None],
        "odd": pa.array([float("inf"), -float("inf"), 5e-324, None, 0.5]),
        "none": pa.array([float("nan"), 1.0, None, -float("nan"), 0.3]),
        "single": pa.array([0.1, 2.5, None, 1e30, -1.0], pa.float32()),
        "money": pa.array(
            [decimal.Decimal("1.50"), None, decimal.Decimal("-0.01"), decimal.Decimal(7)] * 1
            + [decimal.Decimal("123456.78")],
            pa.decimal128(12, 2),
        ),
        "yes": [True, False, None, True, False],
        "day": [datetime.date(2020, 2, 29), None, *[datetime.date(1900, 1, 1)] * 3],
        "time": [datetime.datetime(2020, 2, 29, 1, 2, 3, 456789), None]  # noqa: DTZ001
        + [datetime.datetime(1999, 12, 31, 23, 0, 0, 500000)] * 3,  # noqa: DTZ001
        "zoned": pa.array(
            [datetime.datetime(2020, 2, 29, 1, 2, 3, 456789, UTC), None]
            + [datetime.datetime(1969, 12, 31, 23, 59, 59, 1, UTC)] * 3,
            pa.timestamp("us", "UTC"),
        ),
    }
)


def test_the_same_on_every_engine(engine: Engine):
    with connect("duckdb://") as here:
        expected = fingerprint_rows(here.load(ROWS), key=KEY)
        assert fingerprint_rows(engine.load(ROWS), key=KEY) == expected
        for name in ROWS.column_names:
            alone = fingerprint_rows(here.load(ROWS), [name], key=KEY)
            assert fingerprint_rows(engine.load(ROWS), [name], key=KEY) == alone, name


def test_order_of_rows_and_columns_does_not_matter(duckdb_engine: Engine):
    places = list(range(ROWS.num_rows))
    random.Random(1).shuffle(places)
    turned = ROWS.take(places).select(sorted(ROWS.column_names, reverse=True))
    made = [fingerprint_rows(duckdb_engine.load(rows), key=KEY) for rows in (ROWS, turned)]
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": ["x", "y"]}, {"a": ["x", "y", "y"]}),
        ({"a": ["x", "y"]}, {"a": ["x", "z"]}),
        ({"a": ["x", "y"]}, {"b": ["x", "y"]}),
        ({"a": ["x", None]}, {"a": ["x", "-"]}),
        ({"a": ["x", None]}, {"a": ["x", ""]}),
        ({"a": ["1:x"], "b": ["y"]}, {"a": ["1"], "b": ["x1:y"]}),
        ({"a": ["x", "y"], "b": [1, 2]}, {"a": ["x", "y"], "b": [2, 1]}),
        ({"a": [0.1]}, {"a": [0.1 + 2**-56]}),
        ({"a": [float("nan")]}, {"a": [float("inf")]}),
        ({"a": []}, {"a": [None]}),
        ({"a": ["x", "x"]}, {"a": ["x"]}),
    ],
)
def test_whatever_changes_shows(duckdb_engine: Engine, one, other):
    made = {fingerprint_rows(duckdb_engine.load(pa.table(rows)), key=KEY) for rows in (one, other)}
    assert len(made) == 2


def test_a_fingerprint_is_of_the_columns_that_are_named(duckdb_engine: Engine):
    wide, narrow = ROWS, ROWS.select(["text", "real"])
    assert fingerprint_rows(duckdb_engine.load(wide), ["real", "text"], key=KEY) == (
        fingerprint_rows(duckdb_engine.load(narrow), key=KEY)
    )
