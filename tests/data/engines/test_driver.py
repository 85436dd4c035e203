"""Rows that leave an engine are counted, and refused before they are fetched if too many."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sqlglot

import discreet as dc
from discreet.data.engines import Engine
from discreet.data.engines.driver import metering
from discreet.data.jobs.describe import DescribeJob
from discreet.errors import EngineError, InputError
from discreet.microdata.jobs.anonymize import Anonymize
from discreet.microdata.jobs.mask import Mask
from discreet.tables.jobs.table import TableJob

ROLES = {"place": "quasi", "age": "quasi", "pay": "confidential"}


def people(rows: int = 20_000) -> pa.Table:
    number = np.arange(rows)
    return pa.table(
        {
            "place": [f"place {n % 500:04}" for n in number.tolist()],
            "age": number % 90,
            "pay": number * 1.5,
        }
    )


@pytest.fixture
def limited(engine: Engine):
    """Let little into Python while a test runs; engines are shared by all."""
    before = engine.driver_limit
    yield engine
    engine.driver_limit = before


def test_too_many_records_are_refused_with_their_size(limited: Engine):
    data = dc.read(people(), engine=limited, roles=ROLES)
    limited.driver_limit = 100_000
    with metering() as meter, pytest.raises(EngineError) as caught:
        data.frame  # noqa: B018 - reading it is the work
    error = caught.value
    assert error.code == "too-large-for-driver"
    assert error.facts["rows"] == 20_000
    # Ten letters, the place of a text, and two numbers of 64 bits.
    assert error.facts["bytes"] == pytest.approx(20_000 * (10 + 5 + 16), rel=0.01)
    assert "20,000 records of about 620.0 kB" in str(error)
    assert sum(part.rows for part in meter.outflow().parts) < 10  # counts alone
    limited.driver_limit = 1_000_000
    assert len(data.frame) == 20_000


def test_combinations_are_counted_only_where_rows_would_be_too_many(limited: Engine):
    data = dc.read(people(), engine=limited, roles=ROLES)
    limited.driver_limit = 20_000
    assert data.frequencies(["place"]).num_rows == 500
    with pytest.raises(EngineError, match="4,500 combinations of values") as caught:
        data.frequencies(["place", "age"])
    assert caught.value.facts["rows"] == 4_500


def test_what_leaves_is_counted_by_kind(engine: Engine):
    data = dc.read(people(500), engine=engine, roles=ROLES)
    with metering() as meter:
        data.arrow(["age"])
        data.frequencies(["age"])
        data.aggregate(sqlglot.parse_one("SELECT COUNT(*) FROM data"))
    found = {part.kind: part.rows for part in meter.outflow().parts}
    assert found == {"records": 500, "frequency sets": 90, "aggregates": 1}
    data.arrow(["age"])
    assert meter.outflow().total == 591  # only what it ran for


def test_files_have_a_limit_of_their_own(tmp_path):
    people(1000).to_pandas().to_csv(tmp_path / "people.csv", index=False)
    data = dc.read(tmp_path / "people.csv", roles=ROLES, driver_limit="10kB")
    other = dc.read(tmp_path / "people.csv", roles=ROLES)
    assert len(other.frame) == 1000
    with pytest.raises(EngineError, match="too-large-for-driver"):
        data.frame  # noqa: B018 - reading it is the work
    with pytest.raises(InputError, match="read first"):
        dc.read(data, driver_limit="1GB")
    data.engine.close()


@pytest.mark.parametrize("given", ["much", "0", "-1GB", "", True, "1 XB"])
def test_sizes_that_make_no_sense_are_explained(given):
    with pytest.raises(InputError) as caught:
        dc.read(pd.DataFrame({"a": [1]}), driver_limit=given)
    assert caught.value.code == "parameter-range"


def test_jobs_say_beforehand_what_they_fetch():
    data = dc.read(people(), roles=ROLES)
    described = DescribeJob().rows_out(data)
    assert [(part.kind, part.at_most) for part in described.parts] == [("aggregates", True)]
    assert described.total == 4
    masked = Mask(methods=(dc.Microaggregation("pay", k=3),)).rows_out(data)
    assert [(p.kind, p.rows, p.bytes) for p in masked.parts] == [("records", 20_000, 320_000)]
    coded = Mask(methods=(dc.TopCoding("pay", 100),)).rows_out(data)
    assert coded.total == 1
    cells = TableJob(by=("place", "age"), measure="pay", rules=(dc.MinimumFrequency(3),))
    assert [(p.kind, p.rows) for p in cells.rows_out(data).parts] == [("cells", 4_500)]
    classes = Anonymize(models=(dc.KAnonymity(2),), method=dc.Mondrian())
    data = dc.read(people(), roles=ROLES | {"place": "other"})
    with metering() as meter:
        said = classes.rows_out(data)
    assert [(p.kind, p.rows) for p in said.parts] == [("frequency sets", 90)]
    # Texts of a column that leaves as it is are looked at once each; no record is fetched.
    assert {part.kind for part in meter.outflow().parts} <= {"aggregates", "frequency sets"}


def test_what_a_job_says_is_what_it_fetches():
    data = dc.read(people(), roles=ROLES | {"place": "other"})
    job = Mask(methods=(dc.Microaggregation("pay", k=3),))
    with metering() as meter:
        job.run(data)
    found = {part.kind: part.rows for part in meter.outflow().parts}
    (said,) = job.rows_out(data).parts
    assert found["records"] == said.rows


def test_jobs_that_would_fetch_too_much_say_so_before(tmp_path):
    people().to_pandas().to_csv(tmp_path / "people.csv", index=False)
    data = dc.read(tmp_path / "people.csv", roles=ROLES, driver_limit="100kB")
    job = Mask(methods=(dc.Microaggregation("pay", k=3),))
    for attempt in (job.rows_out, job.run):
        with pytest.raises(EngineError) as caught:
            attempt(data)
        assert caught.value.code == "too-large-for-driver"
    data.engine.close()
