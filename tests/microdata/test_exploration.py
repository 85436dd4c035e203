"""The risk–utility map: the front, the files, and doing a candidate again."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.microdata.exploration import Candidate, _marked
from discreet.microdata.jobs.mask import Mask
from discreet.registry import build


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.integers(18, 90, 200), "job": rng.choice(list("abc"), 200)})
    return dc.read(frame, roles={"age": "quasi", "job": "quasi"}, types={"age": "numeric"})


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
@settings(max_examples=80, deadline=None)
def test_the_front_is_what_nobody_beats(places):
    found = _marked([Candidate(str(i), r, x, False, ()) for i, (r, x) in enumerate(places)])
    for one, (risk, loss) in zip(found, places, strict=True):
        beaten = any(r <= risk and x <= loss and (r, x) != (risk, loss) for r, x in places)
        assert one.front is not beaten


def test_methods_and_parameters_side_by_side(people, tmp_path):
    seen = []
    found = dc.frontier(
        people,
        [
            *(dc.Microaggregation(["age", "job"], k=k) for k in (3, 10)),
            [dc.PRAM("job", retention=0.5), dc.Rounding("age", 10)],
            dc.Microaggregation(["age", "job"], k=5000),
        ],
        progress=lambda stage, done, total: seen.append((done, total)),
    )
    assert seen[-1] == (4, 4)
    names = [c.name for c in found.candidates]
    assert names[0] == "microaggregation k=3"
    assert found[names[3]].problem and not found[names[3]].front  # noqa: PT018
    assert found[names[1]].risk < found[names[0]].risk
    assert len(found.front) >= 2
    folder = found.write(tmp_path / "map")
    assert {p.name for p in folder.iterdir()} == {"map.html", "map.svg", "map.json", "map.csv"}
    assert json.loads((folder / "map.json").read_text())["candidates"][0]["name"] == names[0]
    assert "<svg" in (folder / "map.html").read_text()
    with pytest.raises(dc.InputError, match="microaggregation k=3"):
        found["microaggregation k=33"]


def test_a_choice_is_done_again_from_the_policy(people):
    way = [dc.Microaggregation("age", k=4), dc.GlobalRecoding("job", rare=70)]
    found = dc.frontier(people, {"mine": way})
    said = json.loads(json.dumps(found.policy("mine")))["releases"][0]
    job = build(Mask, {said["kind"]: {"methods": said["methods"]}})
    assert job.methods == tuple(way)
    again = job.run(people).frame
    pd.testing.assert_frame_equal(again, dc.mask(people, way).frame)


def test_finished_releases_take_part(people):
    safe = dc.mask(people, dc.Rounding("age", 20))
    found = dc.frontier(people, {"rounded": safe, "raw": []})
    assert found["rounded"].risk < found["raw"].risk
    assert found["raw"].loss == 0
