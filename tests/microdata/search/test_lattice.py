"""The search against exhaustive search, on random files, hierarchies, models and metrics."""

import math
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from tests.microdata import brute_force as brute

METRICS = ("loss", "discernibility", "aecs", "entropy")


@st.composite
def hierarchies(draw):
    """A random nested hierarchy: value → codes at every level, the last one shared by all."""
    leaves = draw(st.integers(1, 5))
    height = draw(st.integers(1, 3))
    groups, rows = list(range(leaves)), [[f"v{i}"] for i in range(leaves)]
    for level in range(1, height):
        merged = {g: draw(st.integers(0, 2)) for g in sorted(set(groups))}
        groups = [merged[g] for g in groups]
        for row, group in zip(rows, groups, strict=True):
            row.append(f"l{level}g{group}")
    return {row[0]: (*row, "*") for row in rows}


@st.composite
def files(draw):
    quasi = [f"q{j}" for j in range(draw(st.integers(1, 3)))]
    tables = {q: draw(hierarchies()) for q in quasi}
    size = draw(st.integers(4, 24))
    records = [
        {
            **{q: draw(st.sampled_from(sorted(tables[q]))) for q in quasi},
            "s": draw(st.sampled_from("abc")),
        }
        for _ in range(size)
    ]
    return quasi, tables, records


@st.composite
def promises(draw):
    """A model of the library and the same model by brute force."""
    kind = draw(st.sampled_from(range(9)))
    k = draw(st.integers(1, 5))
    x = draw(st.sampled_from([0.05, 0.2, 0.35, 0.6, 1.0]))
    return [
        (dc.KAnonymity(k), partial(brute.k_anonymous, k=k)),
        (dc.LDiversity("s", 2), partial(brute.distinct_diverse, column="s", l=2)),
        (
            dc.LDiversity("s", 1 + x, kind="entropy"),
            partial(brute.entropy_diverse, column="s", l=1 + x),
        ),
        (
            dc.LDiversity("s", 2, kind="recursive", c=1 + 2 * x),
            partial(brute.recursive_diverse, column="s", l=2, c=1 + 2 * x),
        ),
        (dc.TCloseness("s", x), partial(brute.t_close, column="s", t=x)),
        (
            dc.TCloseness("s", x, distance="ordered"),
            partial(brute.t_close_ordered, column="s", t=x),
        ),
        (
            dc.BetaLikeness("s", 2 * x, kind="basic"),
            partial(brute.beta_like, column="s", beta=2 * x, enhanced=False),
        ),
        (
            dc.BetaLikeness("s", 2 * x),
            partial(brute.beta_like, column="s", beta=2 * x, enhanced=True),
        ),
        (dc.DeltaDisclosure("s", 2 * x), partial(brute.delta_disclosed, column="s", delta=2 * x)),
    ][kind]


def as_dataset(file):
    quasi, tables, records = file
    rows = pa.table({c: [r[c] for r in records] for c in (*quasi, "s")})
    return dc.read(
        rows,
        roles={**dict.fromkeys(quasi, "quasi"), "s": "confidential"},
        hierarchies={q: dc.Hierarchy.from_levels(list(tables[q].values())) for q in quasi},
    )


@settings(max_examples=120, deadline=None)
@given(
    files(),
    st.lists(promises(), min_size=1, max_size=3),
    st.sampled_from(METRICS),
    st.sampled_from([0.0, 0.1, 0.3, 0.6, 1.0]),
)
def test_finds_the_optimum_over_all_nodes(file, chosen, metric, share):
    from discreet.microdata.frequency_set import FrequencySet
    from discreet.microdata.search.attribute import attribute
    from discreet.microdata.search.lattice import optimum
    from discreet.microdata.search.metrics import FAMILY

    quasi, tables, records = file
    models = [model for model, _ in chosen]
    rows = pa.table({c: [r[c] for r in records] for c in (*quasi, "s")})
    counted = rows.group_by([*quasi, "s"]).aggregate([([], "count_all")])
    table = FrequencySet.from_table(counted.rename_columns([*quasi, "s", "count"]), quasi, ["s"])
    trees = {q: dc.Hierarchy.from_levels(list(tables[q].values())) for q in quasi}
    attributes = [attribute(c, trees[c.name]) for c in table.quasi]
    limit = int(share * len(records) + 1e-9)
    expected = brute.exhaustive(records, quasi, tables, [p for _, p in chosen], metric, limit)
    try:
        found = optimum(table, attributes, models, FAMILY.get(metric)(), limit=limit)
    except dc.InfeasibleError:
        assert expected is None
        return
    assert expected is not None
    assert math.isclose(found.score, expected, rel_tol=1e-9, abs_tol=1e-9)
    assert found.suppressed <= limit


@settings(max_examples=20, deadline=None)
@given(files(), st.lists(promises(), min_size=1, max_size=2), st.sampled_from([0.0, 0.2, 0.6]))
def test_released_records_keep_every_model_by_an_independent_check(file, chosen, share):
    quasi, _, records = file
    dataset = as_dataset(file)
    for method in (dc.Generalization(suppression=share), dc.Mondrian(), dc.Mondrian(relaxed=True)):
        try:
            safe = dc.anonymize(dataset, [model for model, _ in chosen], method=method)
        except (dc.InfeasibleError, dc.InputError) as error:
            # l-diversity says before the search that a file lacks values
            assert isinstance(error, dc.InfeasibleError) or error.code == "too-few-values"  # noqa: PT017
            continue
        out = safe.frame.to_pylist()
        assert len(out) == len(records) - safe.suppressed
        for group in brute.classes(out, quasi):
            assert all(promise(group, records) for _, promise in chosen)


@settings(max_examples=8, deadline=None)
@given(files(), st.randoms(use_true_random=False), st.sampled_from(METRICS))
def test_the_order_of_the_records_plays_no_part(file, random, metric):
    quasi, tables, records = file
    shuffled = list(records)
    random.shuffle(shuffled)
    for method in (
        dc.Generalization(suppression=0.2, metric=metric),
        dc.Mondrian(),
        dc.LocalSuppression(),
        dc.LocalSuppression(spare=True),
        dc.LocalSuppression(missing="category"),
    ):
        found = [
            dc.anonymize(as_dataset((quasi, tables, rows)), dc.KAnonymity(2), method=method)
            for rows in (records, shuffled)
        ]
        assert found[0].score == found[1].score
        assert found[0].suppressed == found[1].suppressed
        assert found[0].levels == found[1].levels
        # Which of several records with the same keys is chosen may depend on the order.
        shown = quasi if isinstance(method, dc.LocalSuppression) else [*quasi, "s"]
        assert sorted(map(str, found[0].frame.select(shown).to_pylist())) == sorted(
            map(str, found[1].frame.select(shown).to_pylist())
        )


CASES = {
    # metric, suppression: score, suppressed records, node
    ("loss", 0.0): (0.573151, 0, (0, 4, 1, 1, 3, 2, 2, 1, 0)),
    ("loss", 0.05): (0.241932, 1346, (0, 3, 0, 0, 2, 1, 1, 2, 0)),
    ("discernibility", 0.0): (33_627_534, 0, None),
    ("discernibility", 0.05): (7_220_555, 105, None),
}


@pytest.mark.parametrize(("metric", "share"), CASES)
def test_arx_optimum_on_adult(adult, metric, share):
    score, suppressed, node = CASES[metric, share]
    method = dc.Generalization(suppression=share, metric=metric)
    safe = dc.anonymize(adult, dc.KAnonymity(5), method=method)
    assert safe.score == pytest.approx(score, abs=5e-7)
    assert safe.suppressed == suppressed
    if node is not None:
        assert tuple(safe.levels.values()) == node
    assert safe.frame.groupby(list(safe.quasi)).size().min() >= 5


@pytest.mark.parametrize(
    ("model", "score"),
    [(dc.LDiversity("occupation", 3), 0.171702), (dc.TCloseness("occupation", 0.2), 0.815003)],
    ids=["l-diversity", "t-closeness"],
)
def test_arx_optimum_on_adult_with_a_confidential_column(adult_confidential, model, score):
    safe = dc.anonymize(
        adult_confidential, [dc.KAnonymity(5), model], method=dc.Generalization(suppression=0.05)
    )
    assert safe.score == pytest.approx(score, abs=5e-7)
    assert safe.safe


def test_more_bits_than_one_word_holds():
    """Fifteen columns of 64 values need 90 bits of key."""
    import numpy as np

    rng = np.random.default_rng(1)
    columns = {f"c{j:02}": [f"v{i}" for i in rng.integers(0, 64, 300)] for j in range(15)}
    tree = dc.Hierarchy.flat([f"v{i}" for i in range(64)])
    data = dc.read(
        pa.table(columns),
        roles=dict.fromkeys(columns, "quasi"),
        hierarchies=dict.fromkeys(columns, tree),
    )
    safe = dc.anonymize(data, dc.KAnonymity(2))
    assert brute.classes(safe.frame.to_pylist(), list(columns))
    assert min(len(c) for c in brute.classes(safe.frame.to_pylist(), list(columns))) >= 2
    assert sum(level == 0 for level in safe.levels.values()) <= 1


def test_lattices_beyond_memory_are_refused_with_a_way_out():
    columns = {f"c{j}": ["a", "b"] * 3 for j in range(30)}
    tree = dc.Hierarchy.flat(["a", "b"])
    data = dc.read(
        pa.table(columns),
        roles=dict.fromkeys(columns, "quasi"),
        hierarchies=dict.fromkeys(columns, tree),
    )
    with pytest.raises(dc.InputError, match="Mondrian") as caught:
        dc.anonymize(data, dc.KAnonymity(2))
    assert caught.value.code == "lattice-too-large"
