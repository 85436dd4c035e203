"""Reports: plain data, frames, text, HTML."""

import dataclasses
import datetime
import enum
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.report import Report, plain, shown, text_table


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass(frozen=True)
class Sample(Report):
    """A sample & its <parts>."""

    name: str
    share: float
    _hidden: int = 0
    secret: int = dataclasses.field(default=1, repr=False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64("nan"), None),
        (math.inf, None),
        (np.int64(3), 3),
        (np.array([1.0, np.nan]), [1.0, None]),
        (Colour.RED, "red"),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (Path("a/b"), "a/b"),
        (pa.array([1, None]), [1, None]),
        (pd.DataFrame({"a": [1]}), [{"a": 1}]),
        (pl.DataFrame({"a": [1]}), [{"a": 1}]),
        ({1: {2}}, {"1": [2]}),
        (Sample("x", 0.5), {"name": "x", "share": 0.5}),
    ],
)
def test_plain_is_what_json_holds(value, expected):
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)


def test_hidden_fields_appear_nowhere():
    sample = Sample("x", 0.25, _hidden=987654, secret=123456)
    for text in (
        str(sample),
        sample._repr_html_(),
        json.dumps(sample.to_dict()),
        str(sample.to_frame()),
    ):
        assert "987654" not in text
        assert "123456" not in text


def test_html_is_escaped():
    text = Sample("<script>alert(1)</script>", 0.1)._repr_html_()
    assert "<script>" not in text
    assert "A sample &amp; its &lt;parts&gt;." in text


def test_frame_has_one_line_per_field():
    frame = Sample("x", 0.5).to_frame()
    assert frame.iloc[:, 0].tolist() == ["name", "share"]


@given(st.lists(st.tuples(st.text(max_size=8), st.integers() | st.none()), max_size=8))
def test_text_tables_keep_every_row(rows):
    text = text_table(["a", "b"], rows)
    if not any(ch in name for name, _ in rows for ch in "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"):
        assert len(text.split("\n")) == len(rows) + 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1234.5, "1,234.50"),
        (-math.inf, "−∞"),
        (float("nan"), "–"),
        ((1, "a"), "1, a"),
        (np.int8(4), "4"),
    ],
)
def test_shown(value, text):
    assert shown(value) == text
