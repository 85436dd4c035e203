"""A large epsilon is called so in words wherever a budget is set."""

import pandas as pd
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli.main import build
from discreet.dp.caution import caution, cautions


def test_members_and_what_is_in_them():
    assert cautions(dc.Perturbation(epsilon=1.0)) == ()
    (words,) = cautions(dc.Perturbation(epsilon=20.0))
    assert words.startswith("perturbation: epsilon = 20 is above 10")
    assert cautions({"a": [dc.DPTableNoise(epsilon=2.0)], "b": 3}) == ("dp-noise: " + caution(2.0),)
    assert "above 1:" in dc.Perturbation(epsilon=2.0).caution
    assert "above 10:" in dc.DPNoise("age", epsilon=11.0, bounds={"age": (0, 100)}).caution
    assert "above 10:" in dc.UnaryEncoding(("a", "b"), epsilon=11.0).caution


def test_tables_commands_and_policies(tmp_path):
    frame = pd.DataFrame({"g": list("aabbbbcc")})
    table = dc.tabulate(dc.read(frame), ["g"])
    loud = table.protect(method=dc.DPTableNoise(epsilon=12.0))
    assert "above 10" in loud.evidence().verdict
    quiet = table.protect(method=dc.DPTableNoise(epsilon=1.0))
    assert "above" not in quiet.evidence().verdict
    frame.to_csv(tmp_path / "people.csv", index=False)
    call = ["table", str(tmp_path / "people.csv"), "--by", "g", "--method", "dp-noise epsilon=3"]
    assert "epsilon = 3 is above 1" in CliRunner().invoke(build(), call).stderr
    (tmp_path / "policy.yaml").write_text(
        "data:\n  source: people.csv\nreleases:\n  - name: t\n    kind: table\n    by: [g]\n"
        "    method: {name: dp-noise, epsilon: 30}\n"
    )
    done = CliRunner().invoke(build(), ["check", str(tmp_path / "policy.yaml")])
    assert "epsilon = 30 is above 10" in done.stderr, repr(done)


def test_losses_stated_as_rho_and_grants_of_a_ledger(tmp_path):
    """Consistent tables set ρ, and a ledger the budget of all releases together."""
    assert cautions(dc.TopDown(rho=0.001)) == ()
    (words,) = cautions(dc.TopDown(rho=0.5))
    assert words.startswith("top-down: epsilon = 6.8")
    assert "above 10" in dc.TopDown(rho=5.0).caution
    call = ["ledger", "grant", str(tmp_path / "ledger.db"), "people", "--epsilon"]
    assert "epsilon = 12 is above 10" in CliRunner().invoke(build(), [*call, "12"]).stderr
    assert "above" not in CliRunner().invoke(build(), [*call, "1"]).stderr
