"""`discreet collect`: encode, estimate and simulate from the command line."""

import json

import pytest
from typer.testing import CliRunner

from discreet.app.cli.main import build
from discreet.app.collect import encode_file, estimate_file, parse_mechanism, simulate
from discreet.errors import InputError


def test_reports_estimate_the_share_and_hide_the_answers(tmp_path):
    answers = tmp_path / "answers.txt"
    answers.write_text("\n".join(["yes"] * 3000 + ["no"] * 7000))
    runner = CliRunner()
    mechanism = "randomized-response gamma=0.4"
    done = runner.invoke(
        build(), ["collect", "encode", str(answers), "-m", mechanism, "-o", str(tmp_path / "r.csv")]
    )
    assert done.exit_code == 0, done.output
    done = runner.invoke(
        build(), ["collect", "estimate", str(tmp_path / "r.csv"), "-m", mechanism, "--json"]
    )
    found = json.loads(done.output)
    assert found["lower"][0] - 0.02 < 0.3 < found["upper"][0] + 0.02
    # The order of the reports is not that of the answers: yes is not gathered at the top.
    top = (tmp_path / "r.csv").read_text().split()[:3000]
    assert 0.2 < sum(map(int, top)) / 3000 < 0.6


@pytest.mark.parametrize(
    "mechanism",
    [
        "randomized-response",
        "k-ary-randomized-response domain=a,b,c epsilon=2",
        "one-bit-mean maximum=50 epsilon=2",
        "d-bit-flip domain=a,b,c,d d=2",
        "count-mean-sketch domain=a,b width=32 functions=8",
        "unary-encoding domain=a,b,c",
    ],
)
def test_measured_error_is_near_theory(mechanism):
    report = simulate(parse_mechanism(mechanism), 2000, 0.3, 30)
    assert report.coverage >= 0.7
    assert report.measured_error < 2 * report.stated_error


def test_mistakes(tmp_path):
    for text in ("", "nothing x=1", "randomized-response gamma=9"):
        with pytest.raises(InputError):
            parse_mechanism(text)
    with pytest.raises(InputError):
        encode_file(parse_mechanism("randomized-response"), tmp_path / "none", tmp_path / "out.csv")
    (tmp_path / "bad.csv").write_text("x,y\n")
    with pytest.raises(InputError) as caught:
        estimate_file(parse_mechanism("randomized-response"), tmp_path / "bad.csv")
    assert caught.value.code == "malformed-reports"
    (tmp_path / "a.txt").write_text("5\nmany\n")
    with pytest.raises(InputError) as caught:
        encode_file(
            parse_mechanism("one-bit-mean maximum=50"), tmp_path / "a.txt", tmp_path / "out.csv"
        )
    assert caught.value.line == 2
    assert not (tmp_path / "out.csv").exists()
