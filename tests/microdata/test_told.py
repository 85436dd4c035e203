"""What evidence and pages tell: nothing from which a withheld value can be computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc


def coded(folder: Path, highest: int) -> tuple[dict[str, Any], str]:
    """Release a file whose one large salary is top-coded."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(
        {"region": rng.choice(list("NSEW"), 200), "pay": rng.integers(10, 99, 200) * 100}
    )
    rows.loc[17, "pay"] = highest
    people = dc.read(rows, roles={"region": "quasi", "pay": "confidential"}, name="people")
    dc.mask(people, [dc.TopCoding("pay", value=10_000)]).write(folder)
    return json.loads((folder / "evidence.json").read_text()), (folder / "report.html").read_text()


def test_figures_of_a_masked_release_do_not_tell_a_top_coded_value(tmp_path):
    """Whoever reruns the program with every possible salary saw the same losses for one only."""
    one, two = (coded(tmp_path / str(pay), pay) for pay in (40_000, 87_654))
    assert one[0]["loss"] == two[0]["loss"]
    lost = [page[page.index("What was lost") :] for _, page in (one, two)]
    assert lost[0] == lost[1]
    for name, risk in one[0]["risk"].items():  # attackers are drawn; hundredths are told
        if isinstance(risk, float):
            assert risk == round(risk, 2)
            assert risk == pytest.approx(two[0]["risk"][name], abs=0.05)


@pytest.mark.parametrize(
    "model", [dc.TCloseness("ill", 0.6), dc.BetaLikeness("ill", 5.0)], ids=lambda m: m.name
)
def test_the_illness_of_a_suppressed_record_is_not_in_the_distance_of_the_others(model, tmp_path):
    found = []
    for ill in ("flu", "gout", "none"):
        rng = np.random.default_rng(1)
        rows = pd.DataFrame(
            {"age": rng.integers(20, 60, 60), "ill": rng.choice(["flu", "gout", "none"], 60)}
        )
        rows.loc[17, ["age", "ill"]] = [97, ill]
        people = dc.read(
            rows,
            roles={"age": "quasi", "ill": "confidential"},
            hierarchies={"age": {"widths": [5, 10, 20]}},
            name="people",
        )
        method = dc.Generalization(suppression=0.1)
        safe = dc.anonymize(people, [dc.KAnonymity(5), model], method=method)
        assert safe.suppressed == 1
        safe.write(tmp_path / ill)
        found.append(json.loads((tmp_path / ill / "evidence.json").read_text())["risk"]["checks"])
        assert not np.isnan(safe.checks[1].value)  # the curator sees it
    assert found[0] == found[1] == found[2]


def test_starred_records_are_left_out_of_the_new_count():
    """NOT a AND b is not NOT (a AND b): with two keys nothing was counted, and all seemed well."""
    rows = pd.DataFrame(
        {
            "age": [20] * 5 + [30] * 5 + [97],
            "sex": ["f"] * 5 + ["m"] * 5 + ["f"],
            "ill": ["hiv"] * 5 + ["flu", "gout", "flu", "none", "flu", "x"],
        }
    )
    people = dc.read(
        rows,
        roles={"age": "quasi", "sex": "quasi", "ill": "confidential"},
        hierarchies={
            "age": {"widths": [10]},
            "sex": dc.Hierarchy.from_levels({"any": ["f", "m"]}),
        },
        name="people",
    )
    for keep in (False, True):
        method = dc.Generalization(suppression=0.1, keep=keep)
        safe = dc.anonymize(people, [dc.KAnonymity(5)], method=method)
        (check,) = safe.checks
        assert (check.records, check.classes, check.value) == (10, 2, 5.0)
        assert "in 1 of 2 classes everybody has the same ill" in safe.verdict


def test_a_key_of_no_key_set_is_looked_at_and_named():
    rows = pd.DataFrame(
        {
            "age": [20, 30] * 50,
            "ill": ["flu", "flu", "gout", "gout"] * 25,
            "mail": [f"ana{n}@example.org" for n in range(100)],
        }
    )
    roles = {"age": "quasi", "ill": "confidential", "mail": "quasi"}
    method = dc.LocalSuppression(missing="category", key_sets=(("age",),))
    with pytest.raises(dc.InputError) as caught:
        dc.anonymize(dc.read(rows, roles=roles), dc.KAnonymity(2), method=method)
    assert caught.value.code == "identifying-values"
    people = dc.read(rows, roles=roles, vouch=["mail"])
    safe = dc.anonymize(people, dc.KAnonymity(2), method=method)
    assert "mail leaves as it is" in safe.verdict


def test_measures_that_count_the_original_values_are_not_published(tmp_path):
    """The entropy of the original keys told which of them a class was made of."""
    rows = pd.DataFrame({"area": ["A1", "A1", "A2", "A3", "B1", "B2", "B2", "B3"]})
    tree = dc.Hierarchy.from_levels({"A": ["A1", "A2", "A3"], "B": ["B1", "B2", "B3"]})
    people = dc.read(rows, roles={"area": "quasi"}, hierarchies={"area": tree}, name="people")
    for metric in ("loss", "entropy"):
        safe = dc.anonymize(people, dc.KAnonymity(4), method=dc.Generalization(metric=metric))
        assert safe.loss.measures["entropy"] > 0  # the curator sees it
        safe.write(tmp_path / metric)
        told = (tmp_path / metric / "evidence.json").read_text()
        assert json.loads(told)["loss"]["measures"].get("entropy") is None
        page = (tmp_path / metric / "report.html").read_text()
        assert "bits that a reader lacks" not in page or metric == "entropy"
        assert f">{safe.loss.measures['entropy']:.3g}<" not in page


def test_ends_of_declared_widths_are_nobody_s_values():
    """The intervals began at the least value of the file, which a suppressed person had."""
    rng = np.random.default_rng(0)
    pay = [*rng.integers(40_000, 99_000, 200), 13_377]
    people = dc.read(
        pd.DataFrame({"pay": pay}),
        roles={"pay": "quasi"},
        hierarchies={"pay": {"widths": [10_000, 20_000]}},
    )
    safe = dc.anonymize(people, dc.KAnonymity(5), method=dc.Generalization(suppression=0.05))
    assert safe.suppressed == 1
    assert all(int(label.split("-")[0]) % 10_000 == 0 for label in safe.frame["pay"])


@pytest.mark.parametrize("lonely", [3_000, 23_000])
def test_cuts_between_clusters_do_not_depend_on_few_people(lonely):
    rng = np.random.default_rng(0)
    pay = rng.integers(40_000, 99_000, 200)
    cuts = [
        dc.read(
            pd.DataFrame({"pay": [*pay, *more]}),
            roles={"pay": "quasi"},
            hierarchies={"pay": {"kmeans": 5, "low": 0, "high": 100_000}},
        )
        .schema.hierarchies("pay")[0]
        .children("Total")
        for more in ([], [lonely])
    ]
    assert cuts[0] == cuts[1]


def test_the_verdict_says_that_the_choice_of_classes_may_tell():
    rows = pd.DataFrame({"zip": ["1", "1", "2", "2", "2", "2"], "ill": list("aabcde")})
    people = dc.read(rows, roles={"zip": "quasi", "ill": "confidential"})
    both = [dc.KAnonymity(2), dc.LDiversity("ill", 2)]
    assert "chosen by looking at ill" in dc.anonymize(people, both, method=dc.Mondrian()).verdict
    alone = dc.anonymize(people, dc.KAnonymity(2), method=dc.Mondrian())
    assert "chosen by" not in alone.verdict


@pytest.mark.parametrize("width", [3e29, 1e40, 1e300])
def test_widths_beyond_the_digits_of_decimals_are_one_interval(width):
    frame = pd.DataFrame({"age": [1, 2, 3, 4, 5] * 4})
    data = dc.read(frame, roles={"age": "quasi"}, hierarchies={"age": {"widths": [width]}})
    release = dc.anonymize(data, [dc.KAnonymity(20)], method=dc.Generalization(suppression=0))
    assert release.frame.age.nunique() == 1
