"""Guards compared over a workload: shares, widths and noise against theory, recorded questions."""

import json

import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli.main import build
from discreet.demo.datasets import population, salaries
from discreet.errors import InputError
from discreet.queries.evaluation import evaluate, generated, recorded


def test_noise_is_as_theory_says_and_intervals_hold_the_truth():
    people = population(1_000)
    asked = generated(people, 60, rng=dc.Randomness.seeded(3))
    assert len(set(asked)) == 60
    found = evaluate(
        people,
        {
            "exact": dc.Restriction(k=5),
            "interval": dc.Camouflage(bound=0.3),
            "noise": dc.Perturbation(
                epsilon=1e5, per_query=1.0, bounds={"salary": (0, 500_000)}, complete=("salary",)
            ),
        },
        asked,
    )
    exact, interval, noise = found.guards
    assert 0 < exact.refused < 1
    assert exact.refused + exact.exact == pytest.approx(1)
    assert exact.relative_error is None
    assert interval.truth_inside == 1.0
    assert interval.interval_width > 0
    assert noise.within_95 > 0.8
    assert abs(noise.noise_mean) < 0.6
    assert 0.3 < noise.noise_variance < 3
    assert noise.epsilon_spent > 0
    html = found.page().html()
    assert "<svg" in html
    assert "Guards compared" in html


def test_recorded_questions_are_asked_again(tmp_path):
    with dc.Gateway(salaries(), guard=dc.Restriction(k=3)) as gate:
        gate.ask("SELECT SUM(salary) FROM people", user="ana")
        gate.ask(
            "SELECT AVG(salary) FROM people WHERE region = 'TGN' AND sector = 'Fin'", user="bob"
        )
        exported = gate.ledger.export(tmp_path / "export.jsonl")
    asked = recorded(exported)
    assert len(asked) == 2
    (figures,) = evaluate(salaries(), {"same": dc.Restriction(k=3)}, asked).guards
    assert (figures.refused, figures.exact) == (0.5, 0.5)
    (tmp_path / "bad.jsonl").write_text('{"question": "x"}\n[]\n')
    with pytest.raises(InputError, match="not an entry"):
        recorded(tmp_path / "bad.jsonl")
    with pytest.raises(InputError):
        evaluate(salaries(), {}, asked)


def test_the_command(tmp_path):
    (tmp_path / "people.csv").write_text(
        "sector,age,salary\n"
        + "".join(f"{'IT' if i % 2 else 'HC'},{20 + i % 30},{1000 * i}\n" for i in range(1, 121))
    )
    (tmp_path / "policy.yaml").write_text(
        "data: {source: people.csv, name: people, roles: {sector: quasi, age: quasi, salary: confidential}}\n"
        "gateways: [{name: strict, kind: gateway, guard: {restriction: {k: 4}}}]\n"
    )
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        build(),
        ["gateway", "evaluate", str(tmp_path / "policy.yaml"), "--guard", "restriction: {k: 20}", "--questions", "30", "--html", str(page), "--json"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [g["guard"] for g in told["guards"]] == ["strict", "restriction: {k: 20}"]
    assert told["guards"][0]["refused"] <= told["guards"][1]["refused"]
    assert "<svg" in page.read_text()
