"""The demonstration's chapter: the attack finds fewer people after the release than before."""

import json

from discreet.app.demo.chapters import microdata
from discreet.app.demo.stage import Stage


def test_the_attack_before_and_after(tmp_path):
    said = []
    stage = Stage(tmp_path, 300, said.append)
    microdata.run(stage)
    evidence = json.loads((tmp_path / "microdata" / "evidence.json").read_text())
    assert evidence["settings"]["method"]["name"] == "generalization"
    assert evidence["verdict"].startswith("safe under: every class has at least 5 people")
    table = stage.sections[0].table[1]
    for _, raw, released in table:
        assert raw > 0.9
        assert released < 0.3
    assert any("<svg" in (section.picture or "") for section in stage.sections)
    assert len(said) >= 5
