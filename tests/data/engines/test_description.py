"""Descriptions and suggested roles are the same on every engine."""

from discreet import demo
from discreet.data.dataset import read
from discreet.data.describe import describe
from discreet.data.infer import infer_schema


def test_every_engine_describes_alike(engine):
    rows = demo.population_arrow(400)
    here = describe(read(rows, name="people"))
    there = describe(read(rows, name="people", engine=engine))
    assert there == here
    assert there.exposure.records == 400
    schema = infer_schema(engine.load(rows))
    assert schema.unit == "person_id"
    assert {c.name: c.role for c in schema.columns} == {c.name: c.role for c in here.columns}
