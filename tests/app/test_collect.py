"""`discreet collect`: encode, estimate and simulate from the command line."""

import functools
import json

import pytest
from typer.testing import CliRunner

from discreet.app.cli.main import build
from discreet.app.cli.members import parse_member
from discreet.app.collect import encode_file, estimate_file, simulate
from discreet.dp.local import LocalMechanism
from discreet.errors import InputError

parse_mechanism = functools.partial(parse_member, LocalMechanism)


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
    found = json.loads(done.stdout)
    assert found["lower"][0] - 0.02 < 0.3 < found["upper"][0] + 0.02
    # The order of the reports is not that of the answers: yes is not gathered at the top.
    top = (tmp_path / "r.csv").read_text().splitlines()[1:3001]
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
        "forced-response p=0.5",
    ],
)
def test_measured_error_is_near_theory(mechanism):
    report = simulate(parse_mechanism(mechanism), 2000, 0.3, 30)
    assert report.coverage >= 0.8
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


def _written(tmp_path, mechanism, lines):
    (tmp_path / "answers.txt").write_text("\n".join(lines))
    encode_file(parse_mechanism(mechanism), tmp_path / "answers.txt", tmp_path / "r.csv")
    return tmp_path / "r.csv"


@pytest.mark.parametrize(
    ("made", "read"),
    [
        ("k-ary-randomized-response domain=a,b,c", "k-ary-randomized-response domain=a,b"),
        ("k-ary-randomized-response domain=a,b,c", "k-ary-randomized-response domain=b,a,c"),
        ("unary-encoding domain=a,b,c epsilon=2", "unary-encoding domain=a,b,c epsilon=1"),
        ("d-bit-flip domain=a,b,c d=2", "unary-encoding domain=a,b,c,d"),
    ],
)
def test_reports_of_other_settings_are_refused(tmp_path, made, read):
    file = _written(tmp_path, made, ["a", "b"] * 20)
    with pytest.raises(InputError) as caught:
        estimate_file(parse_mechanism(read), file)
    assert caught.value.code == "malformed-reports"


@pytest.mark.parametrize(
    ("mechanism", "line"),
    [
        ("randomized-response", "2"),
        ("randomized-response", "0,1"),
        ("k-ary-randomized-response domain=a,b,c", "3"),
        ("k-ary-randomized-response domain=a,b,c", "-1"),
        ("unary-encoding domain=a,b,c", "0,1"),
        ("unary-encoding domain=a,b,c", "0,1,7"),
        ("d-bit-flip domain=a,b,c d=2", "0,0,1,1"),
        ("d-bit-flip domain=a,b,c d=2", "0,3,1,1"),
        ("count-mean-sketch domain=a,b width=2 functions=4", "4,0,1"),
        ("one-bit-mean maximum=5", "0.5"),
    ],
)
def test_a_report_that_nobody_could_send_is_refused(tmp_path, mechanism, line):
    (tmp_path / "r.csv").write_text(line + "\n")
    with pytest.raises(InputError) as caught:
        estimate_file(parse_mechanism(mechanism), tmp_path / "r.csv")
    assert caught.value.code == "malformed-reports"


def test_the_hash_functions_of_a_collection_travel_with_its_reports(tmp_path):
    sketch = "count-mean-sketch domain=a,b epsilon=8 width=64 functions=16"
    file = _written(tmp_path, sketch, ["a"] * 900 + ["b"] * 100)
    found = estimate_file(parse_mechanism(sketch), file)  # a new salt is drawn here, and put aside
    assert found.lower[0] < 0.9 < found.upper[0]
    assert found.estimate[0] > 0.8


def test_large_epsilon_warns_in_words():
    runner = CliRunner()
    call = ["collect", "simulate", "--rounds", "2", "--respondents", "50", "-m"]
    for mechanism, words in [
        ("unary-encoding domain=a,b epsilon=2", "above 1"),
        ("unary-encoding domain=a,b epsilon=12", "above 10"),
        ("forced-response", '"no" is certainly true'),
    ]:
        assert words in runner.invoke(build(), [*call, mechanism]).stderr
    assert "caution" not in runner.invoke(build(), [*call, "unary-encoding domain=a,b"]).stderr
