"""Group disclosure: what a whole group has in common is known of each of its members."""

import numpy as np
import pandas as pd
import pytest

import discreet as dc

#: The slides' table "attribute disclosure example", as people: of 4 women aged 51 all have cancer.
SLIDES = [(50, "F", 11, 3), (50, "M", 7, 2), (51, "F", 4, 4), (51, "M", 10, 4), (52, "F", 9, 5)]


def people(slides=SLIDES) -> pd.DataFrame:
    rows = []
    for age, sex, number, ill in slides:
        rows += [(str(age), sex, "cancer")] * ill + [(str(age), sex, "none")] * (number - ill)
    frame = pd.DataFrame(rows, columns=["age", "sex", "disease"])
    return frame.assign(ill=(frame.disease == "cancer").astype(int))


def data(**roles):
    given = {"age": "quasi", "sex": "quasi", "disease": "other", "ill": "other"}
    return dc.read(people(), roles=given | roles)


def test_the_table_of_the_slides_is_not_published():
    table = dc.tabulate(data(disease="confidential"), by=["age", "sex", "disease"])
    release = table.protect([dc.MinimumFrequency(2)])
    assert [rule.name for rule in release.rules] == ["minimum-frequency", "group-disclosure"]
    cells = release.published.set_index(["age", "sex", "disease"])
    assert np.isnan(cells.value["51", "F", "cancer"])
    # The code that nobody of the group has would tell as much.
    assert np.isnan(cells.value["51", "F", "none"])
    assert release.audit().safe
    audit = release.audit(exact=True).intervals.set_index(["age", "sex", "disease"])
    assert audit.lower["51", "F", "cancer"] <= 4 - 2
    # Nothing tells which cell was added.
    assert list(release.published.age) == sorted(
        release.published.age, key=lambda a: (a != "Total", a)
    )
    # Without the role, and with n = 0, the table is published as it is: the rule is what protects.
    plain = dc.tabulate(data(), by=["age", "sex", "disease"]).protect([dc.MinimumFrequency(2)])
    assert not plain.protected.withheld.any()
    off = table.protect([dc.MinimumFrequency(2), dc.GroupDisclosure(0)])
    assert not off.protected.withheld.any()


def test_codes_that_a_group_lacks_are_those_it_lacks():
    """The most frequent codes were added, all of which the group had: none = 60 - 60 was told."""
    frame = pd.DataFrame(
        {"age": ["51"] * 90 + ["52"] * 90, "d": ["c1", "c2", "c3"] * 30 + ["c1", "n1", "n2"] * 30}
    )
    kinds = dc.Hierarchy.from_levels({"cancer": ["c1", "c2", "c3"], "none": ["n1", "n2"]})
    roles = {"age": "quasi", "d": "confidential"}
    people = dc.read(frame, roles=roles, hierarchies={"d": kinds}, name="ill")
    release = dc.tabulate(people, by=["age", "d"]).protect([dc.MinimumFrequency(3)])
    cells = release.published.set_index(["age", "d"]).value
    lacking = [("51", "none"), ("51", "n1"), ("51", "n2")]
    assert cells[lacking].isna().all()
    left = release.audit(exact=True).intervals.set_index(["age", "d"])
    assert (left.upper[lacking] >= 1).all()


@pytest.mark.parametrize("statistic", ["mean", "sum"])
def test_shares_are_judged_like_counts(statistic):
    table = dc.tabulate(data(ill="confidential"), ["age", "sex"], "ill", statistic)
    release = table.protect([dc.MinimumFrequency(2)])
    cells = release.published.set_index(["age", "sex"])
    assert np.isnan(cells.value["51", "F"])
    assert cells.value["Total", "Total"] > 0
    amounts = people().assign(pay=2.5)
    read = dc.read(amounts, roles={"pay": "confidential", "disease": "other"})
    other = dc.tabulate(read, ["sex"], "pay").protect([dc.MinimumFrequency(2)])
    assert len(other.rules) == 1  # not of 0 and 1


@pytest.mark.parametrize("statistic", ["sum", "mean"])
def test_sums_by_a_confidential_attribute_tell_it_too(statistic):
    """Women aged 51 in one cell alone, and none beside it: all of them have cancer."""
    read = dc.read(people().assign(pay=np.arange(41) + 10.0), roles={"disease": "confidential"})
    table = dc.tabulate(read, ["age", "sex", "disease"], "pay", statistic)
    release = table.protect([dc.MinimumFrequency(2)])
    cells = release.published.set_index(["age", "sex", "disease"])
    assert np.isnan(cells.value["51", "F", "cancer"])
    assert np.isnan(cells.value["51", "F", "none"])
    assert release.audit().safe


def test_subtotals_of_a_confidential_attribute_are_withheld_with_their_parts():
    pairs = [("Total", ""), ("ill", "Total"), ("well", "Total")]
    pairs += [("flu", "ill"), ("cancer", "ill"), ("fit", "well")]
    rows = [("a", "flu")] * 6 + [("a", "cancer")] * 7 + [("a", "fit")] * 9 + [("b", "fit")] * 8
    rows += [("c", "flu")] * 5 + [("c", "cancer")] * 6 + [("c", "fit")] * 4
    read = dc.read(
        pd.DataFrame(rows, columns=["g", "d"]),
        hierarchies={"d": dc.Hierarchy.from_pairs(pairs)},
        roles={"g": "quasi", "d": "confidential"},
    )
    release = dc.tabulate(read, ["g", "d"]).protect([dc.MinimumFrequency(3)])
    cells = release.published.set_index(["g", "d"])
    assert cells.value[[("b", "ill"), ("b", "well"), ("b", "fit")]].isna().all()
    assert release.audit().safe


def test_counts_and_means_by_a_confidential_attribute():
    """What is left out of one table would tell what is withheld in the other."""
    read = dc.read(people().assign(pay=np.arange(41) + 10.0), roles={"disease": "confidential"})
    by = ["age", "sex", "disease"]
    tables = [dc.tabulate(read, by), dc.tabulate(read, by, "pay", "mean")]
    release = dc.protect(tables, [dc.MinimumFrequency(2)])
    for cells in (part.published.set_index(by) for part in release.releases):
        assert np.isnan(cells.value["51", "F", "cancer"])
        assert np.isnan(cells.value["51", "F", "none"])


def test_all_but_fewer_than_n():
    for missing, n, found in [
        (0, 1, True),
        (1, 1, False),
        (1, 2, True),
        (2, 2, False),
        (2, 3, True),
    ]:
        rows = [("Total", "Total", 20), ("Total", "x", 20 - missing), ("Total", "y", missing)]
        rows += [("g", "Total", 20), ("g", "x", 20 - missing), ("g", "y", missing)]
        frame = pd.DataFrame([r for r in rows if r[2]], columns=["g", "d", "n"])
        table = dc.Table.from_cells(
            frame, ["g", "d"], "n", count="n", statistic="count", confidential=["d"]
        )
        rule = dc.GroupDisclosure(n)
        judged = rule.completed(table)
        assert rule.judge(judged).sensitive[judged.cell("g", "x")] == found
        if found and not missing:
            # Of one code alone everybody knows that all have it.
            assert len(judged.dimensions[1].codes) == 2 or judged.value[judged.cell("g", "y")] == 0


def test_empty_cells_of_records_can_be_sensitive():
    table = dc.tabulate(data(), by=["age", "sex", "disease"])
    with pytest.raises(dc.InputError):
        table.cell("51", "F", "none")
    release = table.protect([dc.ZeroCells(empty=True), dc.MinimumFrequency(2)])
    cells = release.published.set_index(["age", "sex", "disease"])
    assert np.isnan(cells.value["51", "F", "none"])
    assert np.isnan(cells.value["52", "M", "none"])
    assert release.audit().safe
