"""Count, sum and mean of the same records: any two of a cell tell the third."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc


def records(seed, size=90):
    rng = np.random.default_rng(seed)
    return dc.read(
        pd.DataFrame(
            {
                "g": rng.choice(list("abcdef"), size, p=[0.4, 0.25, 0.2, 0.1, 0.03, 0.02]),
                "h": rng.choice(list("xyz"), size, p=[0.6, 0.3, 0.1]),
                "x": np.round(rng.lognormal(4, 1, size)),
            }
        )
    )


def test_means_do_not_tell_withheld_counts():
    """Two single persons hide each other's sums, and their number, 2, would tell both counts."""
    frame = pd.DataFrame(
        {"g": list("ab") + ["c"] * 4 + ["d"] * 5, "x": [10, 20, 5, 6, 7, 8, 15, 16, 17, 18, 3]}
    )
    table = dc.tabulate(dc.read(frame), ["g"], "x", "mean")
    release = table.protect(
        [dc.MinimumFrequency(3)], dc.Suppression(attacker="outsider", objective="value")
    )
    told = release.cells["count"]
    left = told[0] - np.nansum(told[1:])
    assert left > np.isnan(told).sum()
    assert release.audit().safe
    assert dc.audit_published(release.published, total="Total").safe
    # With the two alone withheld everybody would know that one stands behind each.
    both = release.published
    both["value"] = [*table.mean[:1], np.nan, np.nan, *table.mean[3:]]
    both["count"] = [11, np.nan, np.nan, 4, 5]
    audit = dc.audit_published(both, total="Total")
    assert not audit.safe
    assert "how many records stand behind 2 of 2" in audit.verdict


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
@pytest.mark.parametrize("seed", range(3))
def test_a_cell_is_withheld_in_all_measures_or_in_none(seed, attacker, tmp_path):
    people = records(seed)
    tables = [
        dc.tabulate(people, ["g", "h"]),
        dc.tabulate(people, ["g", "h"], "x"),
        dc.tabulate(people, ["g", "h"], "x", "mean"),
    ]
    rules = [dc.MinimumFrequency(3), dc.PPercent(20)]
    release = dc.protect(tables, rules, dc.Suppression(attacker=attacker))
    assert release.audit().safe
    shown = [
        set(map(tuple, cells[cells["value"].notna()][["g", "h"]].values.tolist()))
        for cells in release.cells
    ]
    assert shown[0] == shown[1] == shown[2]
    assert len(shown[0]) < len(release.cells[0])
    for one in release.releases:
        assert one.audit(attacker=attacker, exact=True).safe
    folder = release.write(tmp_path / "out")
    assert len([path for path in folder.iterdir() if path.is_dir()]) == 3


def test_counts_and_sums_without_means_are_protected_each_for_itself():
    people = records(1)
    tables = [dc.tabulate(people, ["g", "h"]), dc.tabulate(people, ["g", "h"], "x")]
    release = dc.protect(tables, [dc.MinimumFrequency(3)], dc.Suppression())
    assert all(one.audit(exact=True).safe for one in release.releases)


def test_other_methods_refuse_several_measures():
    people = records(1)
    tables = [dc.tabulate(people, ["g"]), dc.tabulate(people, ["g"], "x")]
    with pytest.raises(dc.InputError, match="different things"):
        dc.protect(tables, [dc.MinimumFrequency(3)], dc.ControlledRounding())


def _turnover(**more):
    """Five firms in each of three sectors, and one alone; of sector A only F0 tells its turnover."""
    frame = pd.DataFrame(
        {
            "firm": [f"F{n}" for n in range(16)],
            "sector": list("AAAAABBBBBCCCCCD"),
            "turnover": [77_123.0, None, None, None, None, *[10.0, 20, 30, 40, 50] * 2, None],
        }
    )
    roles = {"firm": "identifier", "sector": "quasi", "turnover": "confidential"}
    return dc.read(frame, roles=roles, name="firms", **more)


@pytest.mark.parametrize("unit", [None, "firm"])
@pytest.mark.parametrize("statistic", ["sum", "mean"])
def test_whoever_has_no_value_is_no_contributor(unit, statistic):
    """Four firms without a value hid nothing of the fifth, whose turnover was printed as safe."""
    table = dc.tabulate(_turnover(unit=unit), ["sector"], "turnover", statistic)
    assert table.count.tolist() == [11, 1, 5, 5]  # nobody in D has a value
    release = table.protect([dc.MinimumFrequency(3)])
    cells = release.cells.set_index("sector")
    assert cells.status["A"] == "primary"
    assert cells.value["B"] == (150.0 if statistic == "sum" else 30.0)


def test_numbers_behind_means_are_those_of_records_with_a_value():
    """Counts of records and the numbers behind means differ, and are withheld together."""
    data = _turnover()
    tables = [
        dc.tabulate(data, ["sector"]),
        dc.tabulate(data, ["sector"], "turnover"),
        dc.tabulate(data, ["sector"], "turnover", "mean"),
    ]
    release = dc.protect(tables, [dc.MinimumFrequency(3)], dc.Suppression())
    assert release.audit().safe
    counts, sums, means = (one.cells.set_index("sector") for one in release.releases)
    for cells in (counts, sums, means):
        assert np.isnan(cells.value["A"])
    assert np.isnan(counts.value["D"])  # one firm
    assert means["count"]["B"] == 5


def test_measures_of_which_one_is_the_sum_of_others_are_refused():
    """Exports, domestic turnover and turnover were protected each for itself, and called safe."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"g": rng.choice(list("abc"), 40), "home": rng.lognormal(4, 1, 40)})
    frame["abroad"] = rng.lognormal(3, 1, 40)
    frame["all"] = frame.home + frame.abroad
    frame["twice"] = 2 * frame.home
    frame["more"] = frame.home + 5
    read = dc.read(frame)

    def protected(*measures, count=False):
        tables = [dc.tabulate(read, ["g"], measure) for measure in measures]
        tables += [dc.tabulate(read, ["g"])] if count else []
        return dc.protect(tables, [dc.PPercent(1), dc.MinimumFrequency(2)])

    for measures, count in [(("home", "abroad", "all"), False), (("home", "more"), True)]:
        with pytest.raises(dc.InputError, match="follows from the others") as error:
            protected(*measures, count=count)
        assert error.value.code == "related-measures"
    assert protected("home", "abroad", "twice").releases
    assert protected("home", "more").releases
