"""The comparison on generated people, as table, picture and command."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli import main as cli
from discreet.microdata.permutation.comparison import compare, sweep, write_page
from discreet.microdata.permutation.generalization import generalize
from discreet.randomness import Randomness


@pytest.fixture(scope="module")
def comparison():
    rng = Randomness.seeded(2)
    age = rng.integers(17, 91, 600)
    loss = np.rint(1000 + 20 * (age - 17) + rng.normal(600, 0, 300)).astype(int)
    data = dc.read(
        pa.table({"age": age, "loss": loss}), roles={"age": "quasi", "loss": "confidential"}
    )
    return compare(data, sensitive="loss", column="age", queries=20, rng=rng)


def test_permutation_beats_generalisation_on_the_same_groups(comparison):
    ours, theirs = comparison["permutation on it"], comparison["generalisation"]
    assert all(a <= b for a, b in zip(ours, theirs, strict=True))
    assert comparison["weighted"][0] < comparison["sequential"][0]
    assert comparison.rows()[0] == ["method", "groups", "any 10", "any 100", "any 400",
                                    "age 1", "age 10", "age 30"]  # fmt: skip


def test_the_sweep_shows_when_generalisation_catches_up(comparison, tmp_path):
    swept = sweep(records=400, noise=(3, 300), rng=Randomness.seeded(1))
    assert set(swept.errors) >= {"generalisation", "weighted", "local", "sequential"}
    assert swept.errors["sequential"][0] > swept.errors["weighted"][0]
    page = write_page(tmp_path / "page.html", [comparison], swept).read_text()
    assert page.count("<svg") == 3
    assert "Correlation" in page


def test_generalisation_without_hierarchy_uses_the_narrowest_intervals():
    age = np.repeat(np.arange(20, 40), 3)
    classes = np.tile(np.arange(3), 20)
    assert generalize({"age": age}, {}, classes, k=3, keep="age").levels == {"age": 1}
    assert generalize({"age": age}, {}, classes, k=4, keep="age") is None


def test_commands(tmp_path):
    runner = CliRunner()
    data = dc.read(
        pa.table({"age": list(range(20, 60)) * 5, "sex": ["f", "m"] * 100,
                  "pay": [(i * 37) % 90 for i in range(200)]})
    )  # fmt: skip
    data.write(tmp_path / "people.csv")
    out = tmp_path / "out"
    made = runner.invoke(
        cli.build(),
        ["permute", str(tmp_path / "people.csv"), "-s", "pay", "-k", "4", "-e", "20", "-o", str(out),
         "-p", "local columns=age width=10", "--quasi", "age,sex", "--json"],
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    assert json.loads((out / "evidence.json").read_text())["settings"]["partition"]["width"] == 10
    sql = "SELECT sex, AVG(pay) AS m, COUNT(*) AS n FROM people WHERE age < 40 GROUP BY sex ORDER BY sex"
    asked = runner.invoke(cli.build(), ["ask", "--release", str(out), sql, "--json"])
    assert asked.exit_code == 0, asked.output
    answer = json.loads(asked.output)
    assert answer["kind"] == "interval"
    assert [row["n_lower"] for row in answer["rows"]] == [50, 50]
    explained = runner.invoke(
        cli.build(), ["ask", "--release", str(out), sql, "--explain", "--dialect", "spark"]
    )
    assert "`row_id` = `g` + `h`" in explained.output
    compared = runner.invoke(
        cli.build(),
        ["permute", "compare", "--queries", "5", "--no-sweep", "-o", str(tmp_path / "c.html")],
    )
    assert compared.exit_code == 0, compared.output
    assert "permutation on it" in compared.output
    assert "<svg" in (tmp_path / "c.html").read_text()


def test_a_refused_query_says_why(tmp_path):
    rows = pa.table({"a": [1, 2, 3, 4], "pay": [1, 2, 3, 4]})
    safe = dc.permute(dc.read(rows, roles={"a": "quasi"}), sensitive="pay", k=2)
    safe.write(tmp_path / "out")
    done = CliRunner().invoke(
        cli.build(), ["ask", "--release", str(tmp_path / "out"), "SELECT pay FROM data"]
    )
    assert done.exit_code != 0
    assert done.exception.code == "not-answerable"
