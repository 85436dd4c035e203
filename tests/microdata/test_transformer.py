"""Masking as a step of a scikit-learn pipeline."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import discreet as dc
from discreet.errors import InputError

PEOPLE = pd.DataFrame({"age": [20, 42, 22, 40], "pay": [10, 20, 30, 90]}, index=[7, 5, 3, 1])


def masking(**said):
    return dc.MaskingTransformer([dc.Microaggregation("age", k=2)], **said)


def test_rows_stay_where_they_are():
    found = masking().fit_transform(PEOPLE)
    assert found["age"].tolist() == [21, 41, 21, 41]
    assert found["pay"].tolist() == PEOPLE["pay"].tolist()
    assert found.index.tolist() == [7, 5, 3, 1]


def test_arrays_stay_arrays_and_output_can_be_set():
    step = dc.MaskingTransformer([dc.Microaggregation("x0", k=2)])
    found = step.fit_transform(PEOPLE.to_numpy())
    assert isinstance(found, np.ndarray)
    assert found[:, 0].tolist() == [21, 41, 21, 41]
    polars = masking().set_output(transform="polars").fit_transform(pl.from_pandas(PEOPLE))
    assert isinstance(polars, pl.DataFrame)
    assert masking().fit(PEOPLE).get_feature_names_out().tolist() == ["age", "pay"]


def test_in_a_pipeline_and_cloned():
    pipeline = make_pipeline(clone(masking()), LinearRegression())
    pipeline.fit(PEOPLE, [1, 2, 3, 4])
    assert pipeline.predict(PEOPLE).shape == (4,)


def test_what_changes_the_records_is_refused():
    with pytest.raises(InputError) as caught:
        dc.MaskingTransformer([dc.Sampling(0.5)]).fit(PEOPLE)
    assert caught.value.code == "records-dropped"
    with pytest.raises(InputError) as caught:
        masking().fit(PEOPLE).transform(PEOPLE[["age"]])
    assert caught.value.code == "other-columns"
    with pytest.raises(InputError) as caught:
        masking().fit([1, 2])
    assert caught.value.code == "not-a-table"


def test_frames_have_the_accessor():
    import discreet.app.accessor  # noqa: F401

    roles = {"age": "quasi", "pay": "confidential"}
    for frame in (PEOPLE, pl.from_pandas(PEOPLE)):
        assert frame.discreet.describe().records == 4
        safe = frame.discreet.anonymize(dc.KAnonymity(2), roles=roles, method=dc.Mondrian())
        assert isinstance(safe.frame, type(frame))
        assert len(frame.discreet.tabulate(["age"]).value) == 5
        assert len(frame.discreet.mask([dc.TopCoding("pay", 50)], roles=roles).frame) == 4
