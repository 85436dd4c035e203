"""Group disclosure: what a whole group has in common is known of each of its members."""

import itertools

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


def test_sums_need_protection_by_as_many_people_of_average_size_as_lack():
    # Nine of ten ill people have flu: one other is one too few for n = 2.
    frame = pd.DataFrame({"d": ["flu"] * 9 + ["gout"], "cost": [10.0] * 9 + [40.0]})
    read = dc.read(frame, roles={"d": "confidential", "cost": "other"})
    found = dc.GroupDisclosure(2).judge(dc.tabulate(read, ["d"], "cost"))
    assert found.sensitive.tolist() == [False, True, False]
    # The total is the margin: 130 by ten people, so that one who lacks counts 13.
    assert found.lower.tolist() == [0, 13, 0]
    counted = dc.GroupDisclosure(2).judge(dc.tabulate(read, ["d"]))
    assert counted.lower.tolist() == [0, 1, 0]
    # Where everybody's cost is zero a person counts one.
    free = dc.read(frame.assign(cost=0.0), roles={"d": "confidential", "cost": "other"})
    assert dc.GroupDisclosure(3).judge(dc.tabulate(free, ["d"], "cost")).lower.tolist() == [0, 2, 0]


@pytest.mark.parametrize("statistic", ["mean", "sum"])
def test_shares_are_judged_like_counts(statistic):
    table = dc.tabulate(data(ill="confidential"), ["age", "sex"], "ill", statistic)
    release = table.protect([dc.MinimumFrequency(2)])
    cells = release.published.set_index(["age", "sex"])
    assert np.isnan(cells.value["51", "F"])
    assert cells.value["Total", "Total"] > 0
    amounts = people().assign(pay=np.arange(41) + 0.5)
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


def shares(groups, low=0, high=1, **more):
    """People of whom some have the higher of two values, per group."""
    rows = [
        (group, high if number < having else low)
        for group, people, having in groups
        for number in range(people)
    ]
    frame = pd.DataFrame(rows, columns=["g", "ill"]).assign(**more)
    return dc.read(frame, roles={"g": "quasi", "ill": "confidential"}, name="ill")


#: All of A and all of B are ill: withheld together, and alone, they have as many ill as people.
TWO_FULL = [("A", 10, 10), ("B", 10, 10), ("C", 50, 20), ("D", 60, 30)]


@pytest.mark.parametrize("values", [(0, 1), (1, 2), (0, 100), (-1, 1)])
@pytest.mark.parametrize("statistic", ["sum", "mean"])
def test_no_more_than_all_people_have_a_value(statistic, values):
    """Two groups of which all are ill hid each other, though nobody else can be ill in them."""
    low, high = values
    table = dc.tabulate(shares(TWO_FULL, low, high), ["g"], "ill", statistic)
    release = table.protect([dc.MinimumFrequency(3)])
    assert [rule.name for rule in release.rules] == ["minimum-frequency", "group-disclosure"]
    hidden = set(release.cells.g[release.cells.value.isna()])
    assert {"A", "B"} < hidden
    left = release.audit(exact=True).intervals.set_index("g")
    # What everybody knows bounds it above; below two people at least may be well.
    assert (left.upper[["A", "B"]] == 10 * high).all()
    assert (left.lower[["A", "B"]] <= 8 * high + 2 * low).all()
    # The control: as amounts, which have no end, the two protect each other.
    plain = table.replace(least=None, most=None, whole=None)
    marked = plain.replace(
        status=np.array([0, 2, 2, 0, 0], np.int8), lower=np.full(5, 2.0), upper=np.zeros(5)
    )
    shown = np.array([True, False, False, True, True])
    assert dc.audit_table(marked, published=shown).safe
    bounded = marked.replace(least=table.least, most=table.most)
    assert not dc.audit_table(bounded, published=shown).safe


@pytest.mark.parametrize("values", [(0, 1), (1, 2)])
@pytest.mark.parametrize("having", [0, 1])
def test_what_everybody_has_is_not_published(values, having):
    """Of 1 and 2 the second value was not known where everybody has 2."""
    data = shares([(group, 10, 10 * having) for group in "ABC"], *values)
    if (values, having) == ((1, 2), 0):
        values = (0, 1)  # of which everybody has 1
    table = dc.tabulate(data, ["g"], "ill", "mean")
    assert table.most.max() == 30 * values[1]
    with pytest.raises(dc.InfeasibleError) as error:
        table.protect([dc.MinimumFrequency(3)])
    assert error.value.code == "sensitive-grand-total"


def test_a_value_that_everybody_has_is_not_published():
    """Only of 0, 1 and 2 it was known to be one of two values."""
    data = shares([(group, 10, 10) for group in "ABC"], 0, 100)
    with pytest.raises(dc.InfeasibleError) as error:
        dc.tabulate(data, ["g"], "ill", "mean").protect([dc.MinimumFrequency(3)])
    assert error.value.code == "sensitive-grand-total"


#: Scores from 0 to 3 per group: all of A and B have 3, all of E have 0, of F one has 2.
SCORES = {"A": [3] * 10, "B": [3] * 9, "C": [0, 2] * 12, "D": [1, 3] * 9, "E": [0] * 11, "F": [3] * 9 + [2]}  # fmt: skip


@pytest.mark.parametrize("scale", [(0, 1), (1, 1), (-5, 2)])
@pytest.mark.parametrize("statistic", ["sum", "mean"])
def test_a_score_at_its_end_is_not_published(statistic, scale):
    """A mean of 3 was published, where scores go from 0 to 3."""
    low, step = scale
    rows = [(group, low + step * score) for group, scores in SCORES.items() for score in scores]
    frame = pd.DataFrame(rows, columns=["g", "score"])
    read = dc.read(frame, roles={"g": "quasi", "score": "confidential"})
    table = dc.tabulate(read, ["g"], "score", statistic)
    assert table.steps == 3
    release = table.protect([dc.MinimumFrequency(3)])
    cells = release.published.set_index("g").value
    assert cells[["A", "B", "E", "F"]].isna().all()
    assert cells[["Total"]].notna().all()
    left = release.audit(exact=True).intervals.set_index("g")
    for group in "ABEF":
        number = len(SCORES[group])
        if group == "E":  # two people at least may have more than the least
            assert left.upper[group] >= number * low + 2 * step
        else:
            assert left.lower[group] <= number * (low + 3 * step) - 2 * step
        assert number * low <= left.lower[group] <= left.upper[group] <= number * (low + 3 * step)
    # Of pay, or of scores without the role, nobody knows the ends.
    plain = dc.read(frame, roles={"g": "quasi", "score": "other"})
    assert dc.tabulate(plain, ["g"], "score", statistic).most is None
    pay = dc.read(
        frame.assign(score=frame.score * 50), roles={"g": "quasi", "score": "confidential"}
    )
    assert dc.tabulate(pay, ["g"], "score", statistic).most is None


def test_weighted_shares_are_judged_too():
    data = shares(TWO_FULL, w=[1.0, 2.5] * 65)
    table = dc.tabulate(data, ["g"], "ill", "mean", weight="w")
    release = table.protect([dc.MinimumFrequency(3)])
    assert {"A", "B"} < set(release.cells.g[release.cells.value.isna()])


@pytest.mark.parametrize("seed", range(4))
def test_counts_beside_shares_do_not_tell_who_is_ill(seed):
    """By every table of shares that agrees with what is printed, each sensitive one may differ."""
    rng = np.random.default_rng(seed)
    people = rng.integers(3, 7, 5).tolist()
    having = [int(rng.choice([0, n, n, rng.integers(0, n + 1)])) for n in people]
    data = shares([*zip("ABCDE", people, having, strict=True), ("F", 9, 4)])
    table = dc.tabulate(data, ["g"], "ill")
    cells = table.protect([dc.MinimumFrequency(3)]).published.set_index("g").value
    hidden = [code for code in "ABCDEF" if np.isnan(cells[code])]
    number = dict(zip("ABCDEF", [*people, 9], strict=True))
    true = dict(zip("ABCDEF", [*having, 4], strict=True))
    rest = cells["Total"] - np.nansum([cells[code] for code in "ABCDEF"])
    every = itertools.product(*(range(number[code] + 1) for code in hidden))
    left = np.array([one for one in every if sum(one) == rest])
    for place, code in enumerate(hidden):
        if true[code] > number[code] - 2:
            assert left[:, place].min() <= number[code] - 2
        if true[code] < 2:
            assert left[:, place].max() >= 2


@pytest.mark.parametrize(
    "method", [dc.CellKey(), dc.RecordNoise(), dc.ControlledTabularAdjustment()]
)
def test_noise_on_shares_is_not_called_safe(method):
    """A share near one, changed by less than a fifth, is one: nobody has more than all."""
    table = dc.tabulate(shares(TWO_FULL), ["g"], "ill", "mean")
    assert not table.protect([dc.MinimumFrequency(3)], method).is_safe


def test_intervals_of_means_do_not_end_at_zero_where_people_may_have_less():
    """Cells without a negative sum ended at a mean of 0, which excluded sums that the audit allowed."""
    groups = [("p", "u", [1, 1, 1, 0, 0]), ("p", "v", [0, 0, 1]), ("q", "u", [-1, 0, 0, 1])]
    groups += [("q", "v", [1, 1, 1]), ("r", "u", [1, 0, 0]), ("r", "v", [1, 1, 0, 0])]
    rows = [(a, b, m) for a, b, several in groups for m in several]
    frame = pd.DataFrame(rows, columns=["a", "b", "m"])
    read = dc.read(frame, roles={"a": "quasi", "b": "quasi", "m": "confidential"})
    table = dc.tabulate(read, ["a", "b"], "m", "mean")
    assert table.value.min() == 0
    release = table.protect([dc.MinimumFrequency(3)], dc.Intervals())
    hidden = release.published[release.published.value.isna()]
    assert (hidden.lower < 0).all()


def test_intervals_of_shares_count_what_lies_above_all_people_for_nothing():
    table = dc.tabulate(shares(TWO_FULL), ["g"], "ill")
    cells = table.protect([dc.MinimumFrequency(3)], dc.Intervals()).published.set_index("g")
    assert (cells.lower[["A", "B"]] <= 8).all()


#: Least and greatest value of a measure, and how far apart two of its values are at least.
SCALES = [(0, 1, 1), (1, 2, 1), (0, 3, 1), (-1, 1, 1), (0, 100, 100), (1, 5, 2)]


def scored(seed):
    """Return groups of people with values of a scale, of whom many groups have one value, or nearly."""
    rng = np.random.default_rng(seed)
    low, high, step = SCALES[seed % len(SCALES)]
    between = np.arange(low, high + 1, step)
    rows = []
    for a, b in itertools.product("pqr", "uv"):
        n = int(rng.integers(3, 5))
        most, least = [high] * n, [low] * n
        several = rng.choice(between, n).tolist()
        kind = [most, least, several, [*most[1:], several[0]]][rng.integers(4)]
        rows += [(a, b, value) for value in kind]
    rows += [("p", "u", low), ("p", "u", high)]  # both ends are found
    return pd.DataFrame(rows, columns=["a", "b", "m"]), (low, high, step)


def possible(published, by, number, scale, reach):
    """Return every table of sums that agrees with what is printed: a row for each, the inner cells."""
    low, high, step = scale
    inner = list(number)
    ranges = [np.arange(low * n, high * n + 1, step) for n in number.values()]
    every = np.array(list(itertools.product(*ranges)))
    for row in published.to_dict("records"):
        parts = [place for place, cell in enumerate(inner) if covers(row, by, cell)]
        times = sum(number[inner[place]] for place in parts) if "count" in row else 1
        ends = (row["value"] - reach, row["value"] + reach)
        if np.isnan(row["value"]):
            ends = row.get("lower", -np.inf) * times, row.get("upper", np.inf) * times
        elif not reach:
            ends = row["value"] * times, row["value"] * times
        found = every[:, parts].sum(axis=1)
        every = every[(found >= ends[0] - 1e-6) & (found <= ends[1] + 1e-6)]
    return every


def covers(row, by, cell):
    """Whether an inner cell counts into a printed one."""
    return all(row[name] in ("Total", code) for name, code in zip(by, cell, strict=True))


@pytest.mark.parametrize(
    ("method", "statistic"),
    [
        (dc.Suppression(attacker="outsider"), "sum"),
        (dc.Suppression(attacker="contributors"), "mean"),
        (dc.Intervals(), "sum"),
        (dc.Intervals(), "mean"),
        (dc.RandomRounding(5), "sum"),
        (dc.ControlledRounding(5), "sum"),
        (dc.ConventionalRounding(9), "sum"),
    ],
    ids=lambda one: one if isinstance(one, str) else one.name,
)
def test_everybody_or_nobody_is_never_all_that_is_left(method, statistic):
    """By every table that agrees with a safe publication; an interval of one or two people was safe."""
    judged = 0
    for seed in range(20):
        frame, scale = scored(seed)
        read = dc.read(frame, roles={"a": "quasi", "b": "quasi", "m": "confidential"})
        table = dc.tabulate(read, ["a", "b"], "m", statistic)
        try:
            release = dc.protect(
                table, [dc.MinimumFrequency(3)], method, rng=dc.Randomness.seeded(seed)
            )
        except dc.InfeasibleError:
            continue
        number = {key: len(rows) for key, rows in frame.groupby(["a", "b"])}
        low, high, step = scale
        if (
            not release.is_safe
            or np.prod([(high - low) // step * n + 1 for n in number.values()]) > 1e5
        ):
            continue
        reach = 4 if "rounding" in method.name else 0
        left = possible(release.published, ["a", "b"], number, scale, reach)
        truth = frame.groupby(["a", "b"]).m.sum()
        assert len(left)
        for row in release.published.to_dict("records"):
            parts = [place for place, cell in enumerate(number) if covers(row, ["a", "b"], cell)]
            n = sum(list(number.values())[place] for place in parts)
            true = sum(truth[list(number)[place]] for place in parts)
            sums = left[:, parts].sum(axis=1)
            if true > high * n - 2 * step:
                judged += 1
                assert sums.min() <= high * n - 2 * step, (seed, row)
            if true < low * n + 2 * step:
                judged += 1
                assert sums.max() >= low * n + 2 * step, (seed, row)
    assert judged


def aged(c, f, role):
    """Counts by age and disease: of those aged 51 c people have one, and f the other."""
    rows = [("51", "c", c), ("51", "f", f), ("52", "c", 6), ("52", "f", 7), ("53", "c", 5)]
    rows += [("53", "f", 7)]
    frame = pd.DataFrame([(a, d) for a, d, n in rows for _ in range(n)], columns=["age", "ill"])
    return dc.tabulate(dc.read(frame, roles={"age": "quasi", "ill": role}), ["age", "ill"])


@pytest.mark.parametrize(
    ("role", "rules"),
    [
        ("confidential", [dc.MinimumFrequency(3)]),
        ("quasi", [dc.MinimumFrequency(3), dc.ZeroCells(empty=True)]),
    ],
    ids=["group-disclosure", "zero-cells"],
)
@pytest.mark.parametrize(
    "method",
    [
        dc.Intervals(),
        dc.ConventionalRounding(3),
        dc.RandomRounding(3),
        dc.ControlledRounding(3),
        dc.ControlledTabularAdjustment(),
    ],
    ids=lambda method: method.name,
)
def test_what_is_printed_of_nobody_is_printed_of_somebody_too(method, role, rules):
    """An interval from 0, a printed 1 of adjustment and a safe 0 of rounding said: nobody."""
    printed = {0: set(), 1: set(), 2: set()}
    for f, seen in printed.items():
        table = aged(10 - f, f, role)
        for seed in range(6):
            release = dc.protect(table, rules, method, rng=dc.Randomness.seeded(seed))
            if release.is_safe:
                row = release.published.set_index(["age", "ill"]).loc[("51", "f")]
                seen.add(row.lower if np.isnan(row.value) else row.value)
    assert printed[0] <= printed[1] | printed[2]


def test_adjustment_moves_what_all_have():
    """A level that reaches down only was met by staying: ten of ten were printed as ten."""
    table = aged(10, 0, "confidential")
    for seed in range(6):
        release = dc.protect(
            table,
            [dc.MinimumFrequency(3)],
            dc.ControlledTabularAdjustment(),
            rng=dc.Randomness.seeded(seed),
        )
        assert release.is_safe
        value = release.published.set_index(["age", "ill"]).value
        assert abs(value["51", "c"] - 10) >= 2
