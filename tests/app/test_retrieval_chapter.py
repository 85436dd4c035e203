"""The demonstration's chapter: both servers see something else every time, and rows are found."""

from discreet.app.demo.chapters import retrieval
from discreet.app.demo.stage import Stage


def test_one_look_up_seen_from_both_sides(tmp_path):
    said = []
    stage = Stage(tmp_path, 300, said.append)
    retrieval.run(stage)
    rows = stage.sections[0].table[1]
    assert [found for _, found, _, _ in rows] == ["lithium", "paracetamol", "proven absent"]
    assert len({view for row in rows for view in row[2:]}) == 2 * len(rows)
    assert stage.sections[1].table.disguises
