"""Models: published examples, brute force, and the bound that the search rests on."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.microdata.classes import Cells, Classes, Domain
from discreet.microdata.models.l_diversity import _at_most

# The patients of Li, Li and Venkatasubramanian (2007), table 3: salaries and diseases.
PATIENTS = pd.DataFrame(
    {
        "zip": ["476**"] * 3 + ["4790*"] * 3 + ["476*"] * 3,
        "salary": [3, 4, 5, 6, 11, 8, 7, 9, 10],
        "disease": [
            "gastric ulcer",
            "gastritis",
            "stomach cancer",
            "gastritis",
            "flu",
            "bronchitis",
            "bronchitis",
            "pneumonia",
            "stomach cancer",
        ],
    }
)
DISEASES = dc.Hierarchy.from_levels(
    {
        "respiratory and digestive": {
            "respiratory infection": ["flu", "pneumonia", "bronchitis"],
            "vascular": ["embolism"],
            "stomach": ["gastric ulcer", "gastritis", "stomach cancer"],
            "colon": ["colitis", "colon cancer"],
        }
    }
)


def patients():
    return dc.read(
        PATIENTS,
        roles={"zip": "quasi", "salary": "confidential", "disease": "confidential"},
        types={"salary": "numeric"},
    )


def test_published_ordered_distances():
    """D[P1, Q] = 0.375 and D[P2, Q] = 0.167 in section 4 of the paper."""
    domain = Domain("salary", tuple(map(str, range(3, 12))), np.full(9, 1 / 9))
    shares = np.zeros((2, 9))
    shares[0, [0, 1, 2]] = 1 / 3
    shares[1, [3, 5, 8]] = 1 / 3
    found = dc.TCloseness("salary", 0.2, distance="ordered").gap(shares, domain)
    assert found == pytest.approx([0.375, 1 / 6])


def test_checks_report_the_worst_class():
    people = patients()
    assert dc.KAnonymity(3).check(people).holds
    assert not dc.KAnonymity(4).check(people).holds
    assert dc.KAnonymity(4).check(people).violating_records == 9
    diverse = dc.LDiversity("disease", 3).check(people)
    assert (diverse.holds, diverse.value, diverse.classes) == (True, 3.0, 3)
    close = dc.TCloseness("salary", 0.375, distance="ordered").check(people)
    assert close.holds
    assert close.value == pytest.approx(0.375)
    assert not dc.TCloseness("salary", 0.37, distance="ordered").check(people).holds


def test_hierarchical_distance_is_the_earth_movers():
    """Against a linear programme on random distributions over the tree."""
    from scipy.optimize import linprog

    tree = dc.Hierarchy.from_levels({"a": ["a1", "a2", "a3"], "b": ["b1", "b2"], "c": ["c1"]})
    values = tuple(sorted(tree.leaves))
    rng = np.random.default_rng(5)
    cost = np.array([[0 if u == v else 0.5 if u[0] == v[0] else 1 for v in values] for u in values])
    m = len(values)
    for _ in range(20):
        p, q = rng.dirichlet(np.full(m, 0.5), 2)
        rows = np.kron(np.eye(m), np.ones(m))
        columns = np.kron(np.ones(m), np.eye(m))
        best = linprog(cost.ravel(), A_eq=np.vstack((rows, columns)), b_eq=np.concatenate((q, p)))
        domain = Domain("x", values, p, tree)
        found = dc.TCloseness("x", 0.2, distance="hierarchical").gap(q[None, :], domain)
        assert found[0] == pytest.approx(best.fun, abs=1e-9)


def test_the_hierarchy_orders_values_that_are_not_numbers():
    grades = dc.Hierarchy.flat(["low", "middle", "high"])
    domain = Domain("grade", ("high", "low", "middle"), np.array([0.0, 1.0, 0.0]), grades)
    model = dc.TCloseness("grade", 0.2, distance="ordered")
    found = model.gap(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), domain)
    assert found == pytest.approx([1.0, 0.5])


def test_hierarchical_distance_needs_a_hierarchy_that_covers():
    model = dc.TCloseness("disease", 0.5, distance="hierarchical")
    with pytest.raises(dc.InputError) as caught:
        model.check(patients())
    assert caught.value.code == "missing-hierarchy"
    assert model.check(dc.read(patients(), hierarchies={"disease": DISEASES})).value < 1


MODELS = [
    dc.KAnonymity(3),
    dc.LDiversity("s", 2),
    dc.LDiversity("s", 1.7, kind="entropy"),
    dc.LDiversity("s", 2, kind="recursive", c=1.5),
    dc.TCloseness("s", 0.25),
    dc.TCloseness("s", 0.25, distance="ordered"),
    dc.TCloseness("s", 0.3, distance="hierarchical"),
    dc.BetaLikeness("s", 0.7, kind="basic"),
    dc.BetaLikeness("s", 0.7),
    dc.DeltaDisclosure("s", 0.9),
]
TREE = dc.Hierarchy.from_levels({"x": ["a", "b"], "y": ["c"]})


def one_class(counts, shares):
    domain = Domain("s", ("a", "b", "c"), np.asarray(shares, float), TREE)
    there = np.flatnonzero(counts)
    cells = Cells(domain, np.zeros(len(there), np.int64), there, np.asarray(counts)[there])
    return Classes(np.array([sum(counts)]), {"s": cells})


@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{m.name}-{m.settings()}"[:60])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_subset_that_keeps_the_promise_is_larger_than_the_bound(model, data):
    counts = data.draw(st.tuples(*[st.integers(0, 4)] * 3).filter(any))
    weights = data.draw(st.tuples(*[st.integers(1, 5)] * 3))
    shares = np.array(weights) / sum(weights)
    bound = int(model.largest(one_class(counts, shares))[0])
    best = 0
    for part in itertools.product(*(range(c + 1) for c in counts)):
        if any(part) and model.satisfied(one_class(part, shares))[0]:
            best = max(best, sum(part))
    assert best <= bound <= sum(counts)
    if model.satisfied(one_class(counts, shares))[0]:
        assert bound == sum(counts)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{m.name}-{m.settings()}"[:60])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_union_of_classes_that_keep_the_promise_keeps_it(model, data):
    weights = data.draw(st.tuples(*[st.integers(1, 5)] * 3))
    shares = np.array(weights) / sum(weights)
    parts = [data.draw(st.tuples(*[st.integers(0, 6)] * 3).filter(any)) for _ in range(2)]
    if all(model.satisfied(one_class(part, shares))[0] for part in parts):
        both = tuple(a + b for a, b in zip(*parts, strict=True))
        assert model.satisfied(one_class(both, shares))[0]


def test_entropy_and_recursive_values():
    classes = one_class((2, 2, 0), (1 / 3, 1 / 3, 1 / 3))
    assert dc.LDiversity("s", 2, kind="entropy").measure(classes)[0] == pytest.approx(2)
    assert dc.LDiversity("s", 2, kind="recursive").measure(classes)[0] == pytest.approx(1)
    assert dc.DeltaDisclosure("s", 5).measure(classes)[0] == math.inf


def test_k_map_counts_the_population():
    sample = pd.DataFrame({"sex": ["f", "m", "m"], "w": [10.0, 2.0, 2.5]})
    roles = {"sex": "quasi", "w": "other"}
    weighted = dc.read(sample, roles=roles, weight="w")
    found = dc.KMap(5).check(weighted)
    assert (found.holds, found.value, found.violating_records) == (False, 4.5, 2)
    people = pd.DataFrame({"sex": ["f"] * 4 + ["m"] * 7})
    found = dc.KMap(5, population=people).check(dc.read(sample, roles=roles))
    assert (found.value, found.violating_records, found.records) == (4.0, 1, 3)
    with pytest.raises(dc.InputError) as caught:
        dc.KMap(5).check(dc.read(sample, roles=roles))
    assert caught.value.code == "missing-population"


def test_k_map_is_enforced_against_a_population():
    tree = dc.Hierarchy.from_levels({"N": ["N1", "N2"], "S": ["S1"]})
    sample = dc.read(
        pd.DataFrame({"region": ["N1", "N2", "S1"]}),
        roles={"region": "quasi"},
        hierarchies={"region": tree},
    )
    people = pd.DataFrame({"region": ["N1"] * 2 + ["N2"] * 3 + ["S1"] * 4})
    safe = dc.anonymize(sample, dc.KMap(4, population=people))
    assert safe.checks[0].value == 4
    assert safe.levels == {"region": 1}
    assert sorted(safe.frame["region"]) == ["N", "N", "S"]


def test_a_missing_value_is_a_value_of_its_own():
    frame = pd.DataFrame({"q": ["a", "a", None, None], "s": ["x", None, "x", "y"]})
    people = dc.read(frame, roles={"q": "quasi", "s": "confidential"})
    assert dc.KAnonymity(2).check(people).holds
    assert dc.LDiversity("s", 2).check(people).holds


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: dc.KAnonymity(0), "parameter-range"),
        (lambda: dc.LDiversity("s", 2.5), "parameter-range"),
        (lambda: dc.TCloseness("s", 1.5), "parameter-range"),
        (lambda: dc.TCloseness("s", 0.5, distance="far"), "parameter-range"),
        (lambda: dc.BetaLikeness("s", 0.0), "parameter-range"),
    ],
)
def test_parameters_out_of_range_are_refused(make, code):
    with pytest.raises(dc.InputError) as caught:
        make()
    assert caught.value.code == code


def test_adult_is_checked(adult_confidential):
    assert dc.KAnonymity(5).check(adult_confidential).value == 1
    assert dc.LDiversity("occupation", 3).check(adult_confidential).value == 1
    assert 0.9 < dc.TCloseness("occupation", 0.2).check(adult_confidential).value <= 1


# -- on the border of each promise ---------------------------------------------------------------
PAIR = Domain("x", ("a", "b"), np.array([0.5, 0.5]))


def of_counts(*counts, domain=PAIR):
    """Classes with given numbers of records per value."""
    rows, values = np.nonzero(np.array(counts))
    held = Cells(domain, rows, values, np.array(counts)[rows, values])
    return Classes(np.array(counts).sum(axis=1), {domain.name: held})


def test_delta_must_not_be_reached():
    classes = of_counts([1, 3])
    reached = float(dc.DeltaDisclosure("x", 5.0).measure(classes)[0])
    assert reached == pytest.approx(math.log(2))
    assert not dc.DeltaDisclosure("x", reached).satisfied(classes)[0]
    assert dc.DeltaDisclosure("x", np.nextafter(reached, 9)).satisfied(classes)[0]
    assert dc.DeltaDisclosure("x", 0.1).measure(of_counts([2, 2]))[0] == 0


def test_values_that_the_file_lacks_can_never_stay():
    domain = Domain("x", ("a", "b", "c"), np.array([0.5, 0.5, 0.0]))
    counts = np.array([[4.0, 4.0, 5.0]])
    for model in (dc.BetaLikeness("x", 1.0), dc.DeltaDisclosure("x", 1.0)):
        assert model.gap(counts / counts.sum(), domain)[0] == np.inf
        assert model.most(counts, domain)[0] == pytest.approx(8.0, abs=1e-6)


def test_what_can_stay_is_exact_on_the_border():
    # Recursive (2, 2): the greatest count stays below twice the second.
    recursive = dc.LDiversity("x", 2, kind="recursive", c=2.0)
    assert recursive.largest(of_counts([4, 2])).tolist() == [5]
    assert recursive.satisfied(of_counts([4, 2], [3, 2])).tolist() == [False, True]
    # At β = 1 a value with share one half may fill a class only up to (1 + ln 2) / 2 of it.
    share = (1 + math.log(2)) / 2
    found = dc.BetaLikeness("x", 1.0).most(np.array([[9.0, 1.0]]), PAIR)
    assert found[0] == pytest.approx(1 / (1 - share))
    # |ln(q/p)| < δ lets it fill exp(δ)/2.
    found = dc.DeltaDisclosure("x", 0.5).most(np.array([[9.0, 1.0]]), PAIR)
    assert found[0] == pytest.approx(1 / (1 - math.exp(0.5) / 2))


def test_entropy_of_two_values_bounds_the_larger():
    found = dc.LDiversity("x", 1.9, kind="entropy").largest(of_counts([90, 10]))
    # The share p at which two values have entropy log 1.9, by a grid.
    p = np.linspace(0.5, 0.999, 200_000)
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    most = p[entropy >= math.log(1.9)].max()
    assert found.tolist() == [int(10 / (1 - most))]
    assert dc.LDiversity("x", 1, kind="entropy").largest(of_counts([90, 10])).tolist() == [100]


def test_nothing_goes_where_every_class_is_close_enough():
    for t in (1.0, 0.5):
        model = dc.TCloseness("x", t, distance="ordered")
        # Over two values the farthest a class can be is one half.
        assert model.most(np.array([[6.0, 0.0]]), PAIR).tolist() == [6.0]
    near = dc.TCloseness("x", 0.25, distance="ordered").most(np.array([[6.0, 2.0]]), PAIR)
    assert near[0] == pytest.approx(8.0)


def test_equal_distance_keeps_as_many_as_its_shares_allow():
    found = dc.TCloseness("x", 0.1, distance="equal").most(np.array([[8.0, 2.0], [5.0, 5.0]]), PAIR)
    # Of eight a and two b three a can stay: 3 of 5 are a tenth above one half.
    assert found == pytest.approx([5.0, 10.0], abs=1e-6)


def test_a_person_with_the_same_value_many_times_shows_one_value():
    # Three people hold six records of one value: nobody's value is in doubt.
    assert _at_most(np.array([[6.0, 0.0]]), np.array([3])) == pytest.approx([1.0])
    # Two of three people hold a, one of them twice over: at most the entropy of 2 to 1.
    share = np.array([2 / 3, 1 / 3])
    expected = math.exp(-(share * np.log(share)).sum())
    assert _at_most(np.array([[2.0, 1.0]]), np.array([3])) == pytest.approx([expected])
    assert _at_most(np.array([[2.0, 1.0, 1.0]]), np.array([4])) == pytest.approx([2 * math.sqrt(2)])


def test_defaults_are_those_of_the_manual():
    assert dc.KAnonymity().k == 5
    told = dc.LDiversity("x"), dc.TCloseness("x"), dc.BetaLikeness("x"), dc.DeltaDisclosure("x")
    assert (told[0].l, told[0].c, told[1].t, told[2].beta, told[3].delta) == (2, 3.0, 0.2, 1.0, 1.0)
