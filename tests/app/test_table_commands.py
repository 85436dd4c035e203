"""`discreet table` and `discreet audit`: what people type and what they see."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli import main as cli
from tests.tables.instances import salaries


@pytest.fixture
def people(tmp_path):
    salaries().frame.to_parquet(tmp_path / "people.parquet", index=False)
    return tmp_path


def run(*words):
    return CliRunner().invoke(cli.build(), [str(word) for word in words])


TABLE = ["--by", "sector,region", "--measure", "salary"]
RULES = ["--rule", "p-percent=10", "--rule", "minimum-frequency=3"]


def test_table_is_written_and_audited_from_its_file(people):
    out = people / "out"
    done = run(
        "table", people / "people.parquet", *TABLE, *RULES, "--method", "suppression", "-o", out,
        "--unit", "id", "--curator", people / "curator.html",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "safe" in done.output
    for withheld in ("852000", "852,000", "335000", "335,000"):
        assert withheld not in done.output
    cells = pd.read_csv(out / "cells.csv")
    assert set(cells.columns) == {"sector", "region", "value", "status", "conf_status"}
    checked = run("audit", out / "cells.csv", "--json")
    assert checked.exit_code == 0
    found = json.loads(checked.stdout)
    assert found["safe"]
    assert len(found["intervals"]) == cells.value.isna().sum() == 6
    assert "6.4 %" in (people / "curator.html").read_text()


def test_what_is_not_safe_is_written_only_if_said_so(people):
    """It was written, and the command ended as if all was well."""
    rounded = ["--method", "conventional-rounding base=1000", "-o", people / "out"]
    words = ["table", people / "people.parquet", *TABLE, *RULES, *rounded]
    refused = run(*words)
    assert refused.exception.code == "unsafe-release"
    assert not (people / "out").exists()
    assert run(*words, "--unsafe").exit_code == 0
    assert "This release is not safe" in (people / "out" / "report.html").read_text()


def test_audit_tells_what_can_be_computed(people):
    path = people / "published.csv"
    path.write_text("row,value\nTotal,10\na,\nb,6\n")
    # Nothing printed shows that Total is one.
    assert run("audit", path).exception.code == "unproven-total"
    done = run("audit", path, "--total", "Total", "--intervals", people / "intervals.csv")
    assert done.exit_code == 3
    assert "not safe" in done.output
    assert pd.read_csv(people / "intervals.csv").lower.tolist() == [4]


def test_explain_shows_the_attack(people):
    done = run("table", people / "people.parquet", *TABLE, *RULES, "--explain")
    assert "within 6.4 %" in done.output
    assert "nothing was written" in done.output


def test_compare_and_new_key(people):
    done = run("table", "compare", people / "people.parquet", *TABLE, *RULES, "--json")
    lines = json.loads(done.stdout)["methods"]
    assert {"suppression", "controlled-rounding", "cell-key"} <= {line["method"] for line in lines}
    key = people / "secret.key"
    assert run("table", "new-key", key).exit_code == 0
    assert key.stat().st_mode & 0o077 == 0
    again = run("table", "new-key", key)
    assert isinstance(again.exception, dc.InputError)
    done = run(
        "table", people / "people.parquet", "--by", "sector", "--rule", "minimum-frequency=3",
        "--method", f"cell-key deviation=3 variance=1.5 key={key}", "-o", people / "noisy",
    )  # fmt: skip
    assert done.exit_code == 0, done.exception
    assert str(key) not in (people / "noisy" / "evidence.json").read_text()


def test_ready_made_cells_and_linked_tables(people):
    # B and C are many protection levels apart, so no key makes C the cheaper one.
    frame = pd.DataFrame(
        {"act": ["Total", "A", "B", "C"], "v": [630.0, 10, 20, 600], "p": [0, 1, 0, 0], "l": 3.0}
    )
    frame.to_csv(people / "cells.csv", index=False)
    done = run(
        "table", people / "cells.csv", "--by", "act", "--value", "v", "--column", "primary=p",
        "--column", "lower=l", "--column", "upper=l",
        "--method", "suppression objective=value attacker=outsider", "-o", people / "ready",
    )  # fmt: skip
    assert done.exit_code == 0, done.exception
    assert pd.read_csv(people / "ready" / "cells.csv").value.isna().tolist() == [0, 1, 1, 0]
    done = run(
        "table", people / "people.parquet", "--by", "sector,region", "--by", "sector",
        "--measure", "salary", *RULES, "-o", people / "linked",
    )  # fmt: skip
    assert done.exit_code == 0, done.exception
    assert (people / "linked" / "2-sector" / "cells.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rule", "p-precent=10"], "p-precent"),
        (["--rule", "p-percent=x"], "must be a number"),
        (["--rule", "p-percent=10", "--method", "suppresion"], "suppresion"),
        ([], "without a rule"),
        (["--rule", "p-percent=10", "--hierarchy", "region"], "does not name a hierarchy"),
        (["--rule", "p-percent=10", "--statistic", "median"], "one of sum, mean"),
        (["--rule", "dominance=1,75,3"], "found 3 values"),
    ],
)
def test_mistakes_are_named(people, words, message):
    done = run("table", people / "people.parquet", *TABLE, *words)
    assert isinstance(done.exception, dc.InputError)
    assert message in str(done.exception)


def test_policy_releases_a_table(people):
    policy = people / "policy.yaml"
    policy.write_text(
        "data:\n  source: people.parquet\n  unit: id\n"
        "releases:\n  - name: salaries\n    kind: table\n    by: [sector, region]\n"
        "    measure: salary\n    rules:\n      - p-percent: 10\n      - minimum-frequency: 3\n"
        "    method: {suppression: {objective: count}}\n"
    )
    assert run("check", policy).exit_code == 0
    done = run("release", policy, "-o", people / "released")
    assert done.exit_code == 0, done.exception
    files = {path.name for path in (people / "released").rglob("cells.csv")}
    assert files == {"cells.csv"}
    policy.write_text(policy.read_text().replace("salary", "salry"))
    assert isinstance(run("check", policy).exception, dc.InputError)


def test_apriori_files_say_what_is_sensitive_and_what_stays(tmp_path):
    rows = ["r,c,v,n"]
    inner = {("X", "A"): 3, ("X", "B"): 6, ("Y", "A"): 7, ("Y", "B"): 16}
    for r in ("X", "Y", "Total"):
        for c in ("A", "B", "Total"):
            part = sum(v for (i, j), v in inner.items() if r in (i, "Total") and c in (j, "Total"))
            rows.append(f"{r},{c},{part},{part}")
    (tmp_path / "cells.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "given.hst").write_text("X,A,u\nX,A,pl,2,2\nY,B,p\n")
    words = ["table", tmp_path / "cells.csv", "--by", "r,c", "--value", "v", "--column", "count=n"]
    words += ["--apriori", tmp_path / "given.hst"]
    done = run(*words, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    cells = pd.read_csv(tmp_path / "out" / "cells.csv").set_index(["r", "c"])
    assert cells.loc[("X", "A"), "status"] == "withheld"
    assert cells.loc[("Y", "B"), "value"] == 16
    refused = run(*words, "--method", "controlled-rounding=5")
    assert refused.exception.code == "apriori-never"


def test_audit_names_totals_and_refuses_without_any(tmp_path):
    frame = pd.DataFrame(
        {
            "row": ["1", "1", "1", "2", "2", "2", "3", "3", "3", "Alle", "Alle", "Alle"],
            "column": ["1", "2", "everything"] * 4,
            "value": [None, None, 7, None, None, 3, 3, 3, 6, 9, 7, 16],
        }
    )
    frame.to_csv(tmp_path / "cells.csv", index=False)
    shown = run("audit", tmp_path / "cells.csv")
    assert shown.exit_code == 0
    assert "row: Alle" in shown.output
    inner = frame[(frame.row != "Alle") & (frame.column != "everything")]
    inner.to_csv(tmp_path / "none.csv", index=False)
    refused = run("audit", tmp_path / "none.csv")
    assert isinstance(refused.exception, dc.InputError)
    assert refused.exception.code == "no-equations"


def test_the_same_key_gives_the_same_pattern(people):
    key = people / "secret.key"
    assert run("table", "new-key", key).exit_code == 0
    withheld = []
    for name in ("one", "two"):
        done = run(
            "table", people / "people.parquet", *TABLE, *RULES,
            "--method", f"suppression key={key}", "-o", people / name,
        )  # fmt: skip
        assert done.exit_code == 0, done.exception
        withheld.append(pd.read_csv(people / name / "cells.csv")["status"].tolist())
    assert withheld[0] == withheld[1]
    assert str(key) not in (people / "one" / "evidence.json").read_text()


def test_several_statistics_are_protected_together(people):
    out = people / "several"
    done = run(
        "table", people / "people.parquet", "--by", "sector", "--measure", "salary",
        "--also", "count,mean", "--rule", "minimum-frequency=4", "-o", out,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    parts = sorted(path for path in out.iterdir() if path.is_dir())
    shown = [pd.read_csv(part / "cells.csv").dropna(subset="value")["sector"] for part in parts]
    assert len(parts) == 3
    assert list(shown[0]) == list(shown[1]) == list(shown[2])
    for wrong, code in [
        (["--measure", "salary", "--also", "median"], "unknown-statistic"),
        (["--also", "mean"], "statistics-without-measure"),
    ]:
        failed = run(
            "table", people / "people.parquet", "--by", "sector", *wrong,
            "--rule", "minimum-frequency=4", "-o", people / "none",
        )  # fmt: skip
        assert failed.exception.code == code
