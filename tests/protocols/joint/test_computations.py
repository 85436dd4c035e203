"""Computations that owners agreed on: sums, products, alignment, regression, clusters."""

from __future__ import annotations

import dataclasses
import threading
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli import main as cli
from discreet.errors import DiscreetError, EngineError, InfeasibleError, InputError, RefusedError
from discreet.ledger.entry import Draft
from discreet.ledger.opening import open_ledger
from discreet.protocols.joint.noise import NoisePlan, lacking
from discreet.protocols.joint.rehearsal import rehearse_protocol
from discreet.protocols.joint.verification import verify_ledgers
from discreet.randomness import Randomness
from tests.protocols.joint import forked
from tests.protocols.joint.here import here


def costs(owners, seed=1, n=30):
    rng = np.random.default_rng(seed)
    return [pd.DataFrame({"cost": rng.integers(1, 100, n).astype(float)}) for _ in range(owners)]


def offered(owners, protocol, **more):
    columns = {f"owner{place + 1}": ["cost"] for place in range(owners)}
    return {"protocol": protocol, "columns": columns, "bounds": {"cost": 100.0}} | more


def test_sums_by_nodes_and_by_an_aggregator_over_tls():
    frames = costs(4)
    agreed = {
        "shares": offered(4, "secure-sum"),
        "masks": offered(4, {"secure-sum": {"by": "aggregator"}}),
        "groups": offered(4, {"joint-k-means": {"k": 2}}),
    }
    with here(frames, dealer=True, computations=agreed) as joint:
        for name in ("shares", "masks"):
            found = joint.run(name)
            assert found["count"].tolist() == [120]
            assert found["sum"].tolist() == [pd.concat(frames).cost.sum()]
        clusters = joint.cluster()
        assert clusters["sizes"].sum() == 120
        assert "that record" in clusters.caution
        checked = verify_ledgers(list(joint.files.values()))
        assert checked.agrees, checked.findings
        assert checked.sessions == 3
        for file in joint.files.values():  # nothing of an owner's part is written anywhere
            with open_ledger(file, read_only=True) as ledger:
                text = " ".join(str(entry.details) for entry in ledger.entries())
            assert all(str(frame.cost.sum()) not in text for frame in frames)
        # A table of the same records could tell its one withheld cell by the sum.
        with pytest.raises(InputError):
            joint.run("nothing")
        with pytest.raises(InputError):
            joint.regress()


def test_a_sum_after_a_table_and_a_table_after_a_sum_are_refused():
    frames = [frame.assign(icd="A") for frame in costs(3)]
    stated = {
        "keys": {"icd": ["A", "B"]},
        "measures": {"cost": {"bound": 1e5}},
        "computations": {"all": offered(3, "secure-sum")},
    }
    sql = "SELECT icd, SUM(cost) FROM stays GROUP BY icd"
    for first, second in (("ask", "run"), ("run", "ask")):
        with here(frames, dealer=True, **stated) as joint:
            asked = {"ask": lambda j=joint: j.ask(sql), "run": lambda j=joint: j.run("all")}
            asked[first]()
            with pytest.raises(RefusedError) as caught:
                asked[second]()
            assert caught.value.code == "joint-history"


@pytest.mark.parametrize("copied", [False, True])
def test_of_two_clusterings_of_a_column_one_is_opened(copied):
    # With the bound 100 the record at 48.5 is in the lower cluster, with 95 in the upper one: the
    # two centres would tell its value.
    rng = np.random.default_rng(3)
    frames = [
        pd.DataFrame({"v": np.r_[rng.uniform(5, 30, 30), rng.uniform(60, 90, 30)].round(2)})
        for _ in range(3)
    ]
    frames[1].loc[0, "v"] = 48.5
    frames = [frame.assign(twice=2 * frame.v) for frame in frames]
    agreed = {
        name: {
            "protocol": {"joint-k-means": {"k": 2, "steps": 1}},
            "columns": {f"owner{place + 1}": [column] for place in range(3)},
            "bounds": {column: bound},
        }
        for name, column, bound in (
            ("wide", "v", 100.0),
            ("narrow", *(("twice", 190.0) if copied else ("v", 95.0))),
        )
    }
    with here(frames, dealer=True, computations=agreed) as joint:
        joint.run("wide")
        joint.run("wide")
        with pytest.raises(RefusedError) as caught:
            joint.run("narrow")
        assert caught.value.code == "joint-history"


def test_an_owner_whose_part_is_sensitive_takes_no_part():
    frames = costs(5)
    frames[1] = pd.DataFrame({"cost": [5.0, 6.0]})  # two contributors
    agreed = {
        "shares": offered(5, "secure-sum"),
        "masks": offered(5, {"secure-sum": {"by": "aggregator"}}),
    }
    with here(frames, dealer=True, computations=agreed) as joint:
        with pytest.raises(RefusedError) as caught:
            joint.run("shares")
        assert caught.value.code == "part-sensitive"
        found = joint.run("masks")
        assert found["owners"].tolist() == [4]
        assert found["sum"].tolist() == [pd.concat([frames[0], *frames[2:]]).cost.sum()]


def test_an_aggregator_that_too_few_stay_with_says_why():
    # It said to start owners that were there, and had refused.
    frames = costs(4)
    frames[1] = frames[3] = pd.DataFrame({"cost": [5.0, 6.0]})
    agreed = {"masks": offered(4, {"secure-sum": {"by": "aggregator"}})}
    with here(frames, dealer=True, computations=agreed) as joint:
        with pytest.raises(EngineError) as caught:
            joint.run("masks")
        assert caught.value.code == "too-few-owners"
        assert str(caught.value).count("sensitive by itself") == 2
        assert "owner2" in str(caught.value)
        assert "start" not in str(caught.value)


def people(seed=3, n=160):
    rng = np.random.default_rng(seed)
    ids = [f"p{place}" for place in range(n)]
    x = rng.normal(0, 3, (n, 2))
    y = 4 + x @ [2.0, -1.0] + rng.normal(0, 1, n)
    bank = pd.DataFrame({"person": ids, "debt": x[:, 0], "income": x[:, 1]})
    office = pd.DataFrame({"person": ids, "hours": y}).sample(frac=1, random_state=seed)
    return bank.iloc[10:], office.iloc[: n - 10].reset_index(drop=True)


VERTICAL = {
    "columns": {"owner1": ["debt", "income"], "owner2": ["hours"]},
    "bounds": {"debt": 40.0, "income": 40.0, "hours": 80.0},
    "aligned": "persons",
}


@pytest.mark.parametrize("through", ["owners", "dealer"])
def test_two_owners_align_and_regress(through):
    bank, office = people()
    agreed = {
        "persons": {
            "protocol": {"alignment": {"through": through}},
            "columns": {"owner1": ["person"], "owner2": ["person"]},
        },
        "fit": {"protocol": "joint-regression", **VERTICAL},
        "products": {"protocol": "matrix-product", **VERTICAL},
    }
    whole = bank.merge(office, on="person")
    x = np.column_stack([np.ones(len(whole)), whole[["debt", "income"]]])
    with here([bank, office], dealer=True, computations=agreed) as joint:
        with pytest.raises(RefusedError) as caught:
            joint.regress()
        assert caught.value.code == "not-aligned"
        assert joint.align()["common"].tolist() == [len(whole)]
        found = joint.regress()
        expected = np.linalg.lstsq(x, whole.hours.to_numpy(), rcond=None)[0]
        assert np.abs(found["coefficients"] - expected).max() < 1e-3
        assert [line[1] for line in found.rows()[1]][:3] == ["constant", "debt", "income"]
        products = joint.run("products")["product"]
        assert np.allclose(products[:, 0], x[:, 1:].T @ whole.hours.to_numpy(), rtol=1e-6)
        checked = verify_ledgers(list(joint.files.values()))
        assert checked.agrees, checked.findings


def test_products_that_tell_one_record_are_refused():
    bank, office = people()
    agreed = {
        "persons": {
            "protocol": {"alignment": {"through": "dealer"}},
            "columns": {"owner1": ["person"], "owner2": ["person"]},
        },
        "products": {"protocol": "matrix-product", **VERTICAL},
    }
    # One person in common: the product is that person's value times one's own.
    few = office[office.person.isin(["p12"]) | ~office.person.isin(bank.person)]
    rare = bank.assign(debt=(bank.person == "p12").astype(float))
    for lists in ([bank, few], [rare, office]):
        with here(lists, dealer=True, computations=agreed) as joint:
            joint.align()
            with pytest.raises(RefusedError) as caught:
                joint.run("products")
            assert caught.value.code == "high-leverage"
            assert len(verify_ledgers(list(joint.files.values())).opened) == 1


def test_products_of_columns_that_differ_in_one_record_are_not_both_made():
    bank, office = people()
    ids = bank.person[10:20].tolist()
    bank = bank.assign(
        four=bank.person.isin(ids[:4]) * 1.0,
        five=bank.person.isin(ids[:5]) * 1.0,
        eight=bank.person.isin(ids[:8]) * 1.0,
    )
    agreed = {
        "persons": {
            "protocol": {"alignment": {"through": "dealer"}},
            "columns": {"owner1": ["person"], "owner2": ["person"]},
        }
    } | {
        name: {
            "protocol": protocol,
            "columns": {"owner1": [name], "owner2": ["hours"]},
            "bounds": {name: 1.0, "hours": 80.0},
            "aligned": "persons",
        }
        for name, protocol in (
            ("four", "scalar-product"),
            ("five", "joint-regression"),
            ("eight", "scalar-product"),
        )
    }
    with here([bank, office], dealer=True, computations=agreed) as joint:
        joint.align()
        first = joint.run("four")["product"]
        with pytest.raises(RefusedError) as caught:
            joint.run("five")
        assert caught.value.code == "high-leverage"
        joint.run("eight")
        assert np.array_equal(joint.run("four")["product"], first)


def test_centres_of_a_column_that_one_record_dominates_are_not_told():
    frames = [frame.assign(cost=frame.cost / 100) for frame in costs(3)]
    frames[1].loc[0, "cost"] = 1e6
    agreed = {"groups": offered(3, {"joint-k-means": {"k": 1}})}
    agreed["groups"]["bounds"] = {"cost": 1e7}
    rules = ["minimum-frequency", {"p-percent": 10}]
    with here(frames, dealer=True, computations=agreed, rules=rules) as joint:
        with pytest.raises(RefusedError) as caught:
            joint.cluster()
        assert caught.value.code == "part-sensitive"
        assert not verify_ledgers(list(joint.files.values())).opened


def test_sums_that_differ_in_one_record_are_not_both_offered():
    frames = [frame.assign(part=frame.cost) for frame in costs(3)]
    frames[1].loc[5, "part"] = 0.0
    agreed = {"all": offered(3, "secure-sum"), "part": offered(3, "secure-sum")}
    agreed["part"]["columns"] = {owner: ["part"] for owner in agreed["all"]["columns"]}
    agreed["part"]["bounds"] = {"part": 100.0}
    with pytest.raises(InputError) as caught, here(frames, dealer=True, computations=agreed):
        pass
    assert caught.value.code == "undeclared-part"


def test_noise_is_charged_in_every_ledger_before_anything_leaves():
    agreed = {"noisy": offered(3, {"secure-sum": {"epsilon": 0.2}})}
    with here(costs(3), dealer=True, computations=agreed, budget=1.6) as joint:
        first, second = joint.run("noisy"), joint.run("noisy")
        # Differences of two draws have deviations of 10 and of 100,000 cents: both are zero in 2 of
        # 10 million runs.
        assert (first["sum"], first["count"]) != (second["sum"], second["count"])
        with pytest.raises(RefusedError) as caught:
            joint.run("noisy")
        assert caught.value.code == "budget-exhausted"
        for name in ("owner1", "owner2", "owner3"):
            with open_ledger(joint.files[name], read_only=True) as ledger:
                spent = [e.details["charges"] for e in ledger.entries() if "charges" in e.details]
            assert len(spent) == 2
            assert spent[0] == {"dataset": {NoisePlan.of(0.2, [1, 10_000], shares=3).event: 1}}


def test_noise_of_all_owners_is_as_large_as_central_noise():
    plan = NoisePlan.of(0.2, [1], shares=4)
    assert plan.deviations[0] ** 2 * 4 == pytest.approx((1 / 0.2) ** 2)
    with pytest.raises(InputError) as caught:
        NoisePlan.of(1.0, [1], shares=2)
    assert caught.value.code == "noise-too-small"


def test_the_sum_of_discrete_gaussians_is_within_the_bound():
    # By convolution: how far two parts are from one discrete Gaussian of twice the variance.
    for variance in (1.0, 2.0):
        places = np.arange(-60, 61)
        one = np.exp(-(places**2) / (2 * variance))
        two = np.convolve(one / one.sum(), one / one.sum(), mode="same")
        central = np.exp(-(places**2) / (4 * variance))
        middle = np.abs(places) <= 12
        ratio = np.abs(np.log(two[middle] / (central / central.sum())[middle])).max()
        assert 0 < ratio <= lacking(variance, 2)


def test_sums_survive_owners_that_leave_at_every_stage():
    rng = np.random.default_rng(4)
    parts = {f"o{n}": rng.integers(0, 100, (8, 2)).astype(float) for n in range(5)}
    protocol = dc.SecureSum(by="aggregator")
    for first in range(5):
        for second in range(5):
            found = rehearse_protocol(protocol, parts, dies_after={"o1": first, "o3": second})
            stayed = [
                "o0",
                "o2",
                "o4",
                *(["o1"] if first > 2 else []),
                *(["o3"] if second > 2 else []),
            ]
            assert found.shown["owners"].tolist() == [len(stayed)]
            assert np.allclose(found.shown["sum"], sum(parts[o].sum(axis=0) for o in stayed))
    # Three of five leave: nothing is opened.
    gone = {"o1": 2, "o3": 2, "o4": 2}
    found = rehearse_protocol(protocol, parts, dies_after=gone)
    assert not found.shown
    assert found.failed["dealer"].code == "too-few-owners"
    assert not found.transcripts["dealer"].opened


def test_fewer_than_half_of_the_owners_cannot_be_asked_to_stay():
    # Else an aggregator could tell some owners that a victim stayed, and the others that it left,
    # and put both of its secrets together.
    for threshold in (1, 2, 6):
        with pytest.raises(InputError):
            dc.SecureSum(by="aggregator", threshold=threshold).stay(5)
    assert [dc.SecureSum().stay(n) for n in (2, 3, 4, 5)] == [2, 2, 3, 3]


def test_products_are_exact_whatever_the_dealer_sends_is_independent_of_the_records():
    rng = np.random.default_rng(6)
    sizes = []
    for n in (50, 5000):
        x, y = rng.uniform(-1, 1, (n, 5)), rng.uniform(-1, 1, (n, 6))
        found = rehearse_protocol(dc.MatrixProduct(), {"a": x, "b": y})
        assert np.abs(found.shown["product"] - x.T @ y).max() < 1e-6 * n
        sent = found.transcripts["dealer"].to_dict()["sent"]
        sizes.append(sum(one["bytes"] for one in sent.values()))
    assert sizes[0] == sizes[1] < 1000


def test_regressions_that_are_not_determined_are_not_opened():
    rng = np.random.default_rng(7)
    x = rng.normal(0, 1, (200, 1))
    parts = {"a": x, "b": x + rng.normal(0, 1e-3, (200, 1)), "c": rng.normal(0, 1, (200, 1))}
    for way in ("coefficients", "gram"):
        nearly = parts if way == "coefficients" else parts | {"b": x * 2}
        with pytest.raises(InfeasibleError):
            rehearse_protocol(dc.JointRegression(open=way), nearly)
    with pytest.raises(RefusedError):
        rehearse_protocol(dc.JointRegression(), {one: v[:20] for one, v in parts.items()})


@pytest.mark.parametrize("seed", range(6))
def test_clusters_are_lloyds_in_every_split(seed):
    # The same records over owners by rows, by columns, and value by value.
    rng = np.random.default_rng(seed)
    n, d, k = 240, int(rng.integers(2, 5)), int(rng.integers(2, 5))
    x = rng.normal(rng.choice([-5.0, 0.0, 5.0], (n, d)), 1.0) * 10.0 ** rng.integers(-2, 3, d)
    bound = np.abs(x).max(axis=0)
    x[:3] = bound  # every owner has a record at the bounds, which a rehearsal takes from records
    whose = rng.integers(0, 3, (n, d))
    splits = {
        dc.JointKMeans(k=k, least=1): {o: x[place::3] for place, o in enumerate("abc")},
        dc.VerticalKMeans(k=k, least=1): {"a": x[:, :1], "b": x[:, 1:]},
        dc.ArbitraryKMeans(k=k, least=1): {
            o: np.where(whose == place, x, np.nan) for place, o in enumerate("abc")
        },
    }
    centres = (np.arange(k)[:, None] + 0.5) / k * bound
    for _ in range(50):  # Lloyd, written once more
        nearest = ((x[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        centres = np.array(
            [x[nearest == j].mean(axis=0) if (nearest == j).any() else centres[j] for j in range(k)]
        )
    sizes = np.bincount(nearest, minlength=k)
    for protocol, given in splits.items():
        found = rehearse_protocol(protocol, given).shown
        assert found["sizes"].tolist() == sizes.tolist(), protocol
        off = np.abs(found["centres"] - centres)[sizes > 0] / bound
        assert off.max() < 1e-5, protocol


#: The second of four clusters has three records in one step, and none in the end.
EMPTIED = np.array(
    [[10.0, 10], [-2, -1], [-5, -8], [7, 1], [7, -2], [7, -4], [-10, 10], [-6, 7], [-1, 8]]
)


def test_the_centre_of_a_cluster_that_became_empty_is_not_told():
    # It is the mean of records that are elsewhere now, and nothing judged how few they were.
    odd = (np.arange(9) % 2 == 1)[:, None]
    no = np.full_like(EMPTIED, np.nan)
    splits = {
        dc.JointKMeans(k=4, least=1): {"a": EMPTIED, "b": EMPTIED[:0]},
        dc.VerticalKMeans(k=4, least=1): {"a": EMPTIED[:, :1], "b": EMPTIED[:, 1:]},
        dc.ArbitraryKMeans(k=4, least=1): {
            "a": np.where(odd, EMPTIED, no), "b": np.where(odd, no, EMPTIED)
        },
    }  # fmt: skip
    for protocol, given in splits.items():
        found = rehearse_protocol(protocol, given).shown
        assert found["sizes"].tolist() == [5, 0, 3, 1], protocol
        assert np.isnan(found["centres"]).tolist() == [[one == 1] * 2 for one in range(4)], protocol
        assert np.isnan(protocol.plain(given)["centres"][1]).all()


def test_a_result_over_tls_says_what_is_unknown():
    frames = [pd.DataFrame({"cost": [10.0, 11, 12, 13]})] * 2
    with here(frames, computations={"groups": offered(2, {"joint-k-means": {"k": 2}})}) as joint:
        found = joint.cluster()
    assert found["sizes"].tolist() == [8, 0]
    assert np.isnan(found["centres"][1, 0])
    assert found["centres"][0, 0] == pytest.approx(11.5, abs=1e-5)
    assert found.rows()[1][1][-1] == "unknown"
    assert found.to_dict()["values"]["centres"][1] == [None]


def test_values_scattered_over_owners_lie_with_one_each_or_nothing_is_opened():
    x = np.array([[1.0], [1.2], [0.8], [8.0], [8.2], [7.8]] * 2)
    mine = np.arange(12) < 6
    a, b = np.where(mine[:, None], x, np.nan), np.where(mine[:, None], np.nan, x)
    assert rehearse_protocol(dc.ArbitraryKMeans(k=2), {"a": a, "b": b}).shown["sizes"].sum() == 12
    for wrong in (x, np.where(np.arange(12)[:, None] == 7, np.nan, b)):  # twice, and not at all
        with pytest.raises(RefusedError) as caught:
            rehearse_protocol(dc.ArbitraryKMeans(k=2), {"a": a, "b": wrong})
        assert caught.value.code == "not-split"
    # Six values in a cluster, three for the other owner: with four asked for, nothing is opened.
    with pytest.raises(RefusedError) as caught:
        rehearse_protocol(dc.ArbitraryKMeans(k=2, least=4), {"a": a, "b": b})
    assert caught.value.code == "small-cluster"


def test_values_scattered_over_owners_are_clustered_over_tls():
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(10, 1, 40), rng.normal(80, 1, 40)])
    mine = rng.random(80) < 0.5
    frames = [pd.DataFrame({"cost": np.where(one, x, np.nan)}) for one in (mine, ~mine)]
    agreed = {
        "groups": offered(2, {"arbitrary-k-means": {"k": 2}}),
        "sum": offered(2, "secure-sum"),
    }
    with pytest.raises(InputError), here(frames, computations=agreed):
        pass  # a sum takes no missing value
    del agreed["sum"]
    with here(frames, computations=agreed) as joint:
        found = joint.cluster()
        assert found["sizes"].tolist() == [40, 40]
        assert np.allclose(found["centres"].ravel(), [x[:40].mean(), x[40:].mean()], atol=1e-3)
        meanings = [one["meaning"] for one in found.opened]
        assert [one for one in meanings if "whether" not in one] == [
            "which centres are of too few values",
            "sums and sizes of the clusters",
        ]
        checked = verify_ledgers(list(joint.files.values()))
        assert checked.agrees, checked.findings


def test_a_product_without_a_third_party_is_the_product_of_the_ring():
    rng = np.random.default_rng(6)
    for n, p, q in ((1, 1, 1), (70, 3, 2), (3, 50, 1)):  # two batches; two texts
        given = {"a": rng.uniform(-9, 9, (n, p)), "b": rng.uniform(-1, 1, (n, q))}
        alone = rehearse_protocol(dc.PaillierProduct(), given)
        assert set(alone.transcripts) == {"a", "b"}
        dealt = rehearse_protocol(dc.MatrixProduct(), given).shown["product"]
        assert (alone.shown["product"] == dealt).all()
        sent = [len(body) // 768 for _, label, body in alone.views["b"] if "columns" in label]
        assert max(sent) <= 64  # nobody waits for more than 64 encryptions
        assert np.allclose(dealt, given["a"].T @ given["b"], atol=1e-5 * n)


def test_numbers_under_paillier():
    from discreet.protocols.joint.methods._paillier import KEY_BITS, new_key

    key, rng = new_key(), Randomness.seeded(2)
    assert key.public.n.bit_length() == KEY_BITS
    assert str(key.p) not in repr(key)
    tried = [0, 1, -1, 2**200, -(2**200)]
    texts = [key.encrypt(one, rng) for one in tried]
    assert [key.decrypt(one) for one in texts] == tried
    weights = [3, -2, 7, 0, 1]
    parts = [
        key.public.weighted(texts[:2], weights[:2]),
        key.public.weighted(texts[2:], weights[2:]),
    ]
    found = key.public.total(parts, rng)
    assert key.decrypt(found) == sum(w * one for w, one in zip(weights, tried, strict=True))
    # Encrypted anew: the same sum is another number every time.
    assert found != key.public.total(parts, rng)
    assert key.encrypt(5, rng) != key.encrypt(5, rng)


def test_small_clusters_end_the_computation():
    parts = {one: np.array([[0.1], [0.2], [0.1], [9.0 if one == "a" else 0.2]]) for one in "abc"}
    with pytest.raises(RefusedError) as caught:
        rehearse_protocol(dc.JointKMeans(k=2), parts)
    assert caught.value.code == "small-cluster"


def test_two_records_of_one_person_are_not_aligned():
    with pytest.raises(InputError) as caught:
        rehearse_protocol(dc.Alignment(), {"a": [b"x", b"x"], "b": [b"x"]})
    assert caught.value.code == "identifier-twice"


def test_the_first_owner_guesses_values_from_karrs_product_and_not_from_masks():
    # Values 0 and 1 of the second owner, guessed from what arrives at the first.
    rng = np.random.default_rng(8)
    n = 400
    x, y = rng.normal(0, 1, (n, 2)), rng.integers(0, 2, (n, 1)).astype(float)
    given = {"a": x, "b": y}
    right = {}
    for share in (0.1, 0.5, 0.8):
        rest = rehearse_protocol(dc.KarrProduct(share=share), given, rng=Randomness.seeded(1))
        guess = rest.outcomes["a"].kept["rest"] > 0.5 * (1 - share)
        right[share] = float((guess == (y > 0.5)).mean())
    assert right[0.1] > 0.95
    assert right[0.1] > right[0.5] > right[0.8] > 0.5
    found = rehearse_protocol(dc.MatrixProduct(), given, rng=Randomness.seeded(1))
    masked = next(body for _, label, body in found.views["a"] if label == "masked columns")
    guess = np.frombuffer(masked, "<i8")[:, None] > 0
    # 400 coins: six standard errors.
    assert abs(float((guess == (y > 0.5)).mean()) - 0.5) < 6 * 0.025


@pytest.mark.parametrize(
    "change",
    [
        {"columns": {"owner1": ["cost"], "nobody": ["cost"]}},
        {"columns": {"owner1": ["cost"]}},
        {"columns": {"owner1": ["cost"], "owner2": []}},
        {"columns": {"owner1": ["cost"], "owner2": ["other"]}},
        {"bounds": {}},
        {"aligned": "nothing"},
        {"protocol": {"secure-sum": {"epsilon": 1}}},
        {"protocol": "no-such"},
    ],
)
def test_computations_that_cannot_be_made_are_refused(change):
    with (
        pytest.raises(InputError),
        here(costs(2), computations={"c": offered(2, "secure-sum") | change}),
    ):
        pass
    with pytest.raises(InputError), here(costs(2), computations={"c": offered(2, "alignment")}):
        pass


@pytest.mark.parametrize("cost", [None, np.nan, -1.0, 101.0, "text"])
def test_owners_see_when_they_start_that_columns_do_not_fit(cost):
    frames = costs(2)
    frames[0] = frames[0].astype(object)
    frames[0].loc[0, "cost"] = cost
    if cost == "text":
        frames[0] = frames[0].astype(str)
    with (
        pytest.raises(InputError) as caught,
        here(frames, computations={"c": offered(2, "secure-sum")}),
    ):
        pass
    assert caught.value.code == "beyond-bound"


def test_records_of_one_person_are_one_contribution():
    # Five records of two persons: rules and noise see two contributors.
    frames = [
        pd.DataFrame({"who": ["a", "a", "a", "b", "b"], "cost": [10.0, 20, 30, 5, 5]}),
        pd.DataFrame({"who": list("cdefgh"), "cost": [1.0, 2, 3, 4, 5, 6]}),
    ]
    agreed = {"c": offered(2, "secure-sum")}
    with here(frames, unit="who", computations=agreed) as joint:
        with pytest.raises(RefusedError) as caught:
            joint.run("c")
        assert caught.value.code == "part-sensitive"
    with here(frames[1:] * 2, unit="who", computations=agreed) as joint:
        assert joint.run("c")["count"].tolist() == [12]
    tight = {"c": offered(2, "secure-sum", bounds={"cost": 40.0})}
    with pytest.raises(InputError), here(frames, unit="who", computations=tight):
        pass
    with (
        pytest.raises(InputError),
        here(frames, unit="who", computations={"c": offered(2, "joint-k-means")}),
    ):
        pass


def test_changed_records_are_refused_and_the_same_repeated():
    frames = costs(2)
    with here(frames, computations={"c": offered(2, "secure-sum")}) as joint:
        assert joint.run("c")["sum"].tolist() == joint.run("c")["sum"].tolist()
        with open_ledger(joint.files["owner1"]) as ledger:
            entry = next(e for e in ledger.entries() if e.details.get("stage") == "computing")
            details = {**entry.details, "session": "old", "inputs": {"cost": "other"}}
            ledger.record(Draft("stays", "analyst", "joint", "q", "old", "p", details))
        with pytest.raises(RefusedError) as caught:
            joint.run("c")
        assert caught.value.code == "joint-history"


def test_the_commands_run_a_computation_with_processes_that_are_killed():
    frames = costs(4)
    agreed = {"sum": offered(4, {"secure-sum": {"by": "aggregator"}})}
    with dc.Joint.local(
        frames, name="stays", keys={}, measures={}, computations=agreed, time_limit=20
    ) as joint:
        folder = joint._closing.folder
        joint._closing.processes["owner2"].kill()
        joint._closing.processes["owner2"].wait()
        words = ["joint", "run", str(folder / "owner1.yaml"), "sum", "--learned"]
        done = CliRunner().invoke(cli.build(), words)
        assert done.exit_code == 0, done.output
        left = pd.concat([frames[0], *frames[2:]]).cost.sum()
        assert f"{left:,.0f}" in done.output
        assert "aggregator" in done.output
        joint._closing.processes["owner3"].kill()
        joint._closing.processes["owner3"].wait()
        with pytest.raises(EngineError) as caught:
            joint.run("sum")
        assert caught.value.code == "too-few-owners"
        assert len(verify_ledgers(joint.ledgers).opened) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_owners_killed_at_random_moments(seed):
    """The sum is exact for those who stayed, or there is an error and nothing is opened.

    Ten runs, two kills each, at moments over a part of a run, the whole, or twice its length. Some
    victims die before they sent their part and some after it, or the moments were not those of a run.
    """
    rng = np.random.default_rng(seed)
    frames = costs(5, seed=seed)
    agreed = {"sum": offered(5, {"secure-sum": {"by": "aggregator"}})}
    with dc.Joint.local(
        frames, name="stays", keys={}, measures={}, computations=agreed, time_limit=8
    ) as joint:
        sums, parties = [frame.cost.sum() for frame in frames], joint._closing
        joint.run("sum")  # what a first run imports is not its length
        took = np.inf
        left_out = counted = 0
        for scale in (0, 0.5, 1, 2, 0.3, 1, 2, 0.3, 1, 2, 0.5):
            victims = rng.choice(5, 2, replace=False)
            timers = [
                threading.Timer(moment, parties.processes[f"owner{v + 1}"].kill)
                for v, moment in zip(victims, rng.uniform(0, scale * min(took, 8), 2), strict=True)
                if scale
            ]
            before = len(verify_ledgers(joint.ledgers).opened)
            for timer in timers:
                timer.start()
            began = time.monotonic()
            try:
                found = joint.run("sum")["sum"][0]
                # On a busy machine one run says little of the next; waiting for the dead adds to it.
                took = min(took, time.monotonic() - began)
            except DiscreetError:
                found = None
            for timer in timers:
                timer.join()
            if not scale:
                continue
            possible = [
                sum(s for place, s in enumerate(sums) if place not in gone)
                for gone in ([], [victims[0]], [victims[1]], list(victims))
            ]
            if found is None:
                assert len(verify_ledgers(joint.ledgers).opened) == before
            else:
                assert found in possible
                left_out += found != possible[0]
                counted += found != possible[3]
            for victim in victims:
                parties.processes[f"owner{victim + 1}"].wait()
                parties.restart(f"owner{victim + 1}")
        assert left_out
        assert counted


@pytest.mark.slow
@pytest.mark.parametrize("first", range(forked.STAGES))
def test_two_owners_killed_at_every_stage_of_a_sum_of_100000_words(first, tmp_path):
    """Both leave before or after each of their messages, twice: 100 kills in all.

    The sum is that of the owners whose part had arrived, to the last word.
    """
    rng = np.random.default_rng(first)
    known = forked.known_parties(tmp_path)
    parts = {o: rng.integers(0, 100, (1, 99_999)).astype(float) for o in forked.OWNERS}
    for second in range(forked.STAGES):
        for _ in range(2):
            dies = dict(
                zip(rng.choice(forked.OWNERS, 2, replace=False), (first, second), strict=True)
            )
            found = forked.run_sum(known, parts, dies)
            # The part is the third message; without the fourth three others put the masks together.
            stayed = [o for o in parts if dies.get(o, 4) > 2]
            assert found["owners"].tolist() == [len(stayed)]
            assert (found["sum"] == sum(parts[o][0] for o in stayed)).all()
            assert found["opened"] == 1
    three = dict.fromkeys(forked.OWNERS[:3], first)
    found = forked.run_sum(known, parts, three)
    if first == forked.STAGES - 1:
        assert (found["sum"] == sum(one[0] for one in parts.values())).all()
    else:
        assert (found["error"], found["opened"]) == ("too-few-owners", 0)


def test_keys_that_nobody_signed_are_refused():
    parts = {f"o{n}": np.ones((4, 1)) for n in range(3)}

    class Forging(dc.SecureSum):
        def play(self, seat):
            if seat.name == "o1":
                seat = dataclasses.replace(seat, sign=lambda message: b"forged")
            return super().play(seat)

    found = rehearse_protocol(Forging(by="aggregator"), parts, dies_after={"o9": 0})
    assert not found.shown
    assert {error.code for name, error in found.failed.items() if name in ("o0", "o2")} == {
        "wrong-signature"
    }


@pytest.mark.parametrize(
    ("way", "columns", "error"),
    [
        ("gram", [["AGI", "EMCONTRB", "FEDTAX"], ["STATETAX", "PTOTVAL", "POTHVAL"]], 1e-6),
        ("coefficients", [["AFNLWGT", "EMCONTRB", "FEDTAX"], ["STATETAX", "POTHVAL"]], 1e-3),
    ],
)
def test_a_regression_on_the_census_split_by_columns(data_folder, way, columns, error):
    census = pd.read_csv(data_folder / "casc" / "census.csv")
    parts = {f"o{n}": census[names].to_numpy(float) for n, names in enumerate(columns)}
    parts["last"] = census[["FICA"]].to_numpy(float)
    found = rehearse_protocol(dc.JointRegression(open=way), parts).shown["coefficients"]
    x = np.column_stack([np.ones(len(census)), *list(parts.values())[:-1]])
    central = np.linalg.lstsq(x, census["FICA"].to_numpy(float), rcond=None)[0]
    # In units of standardised columns: dollars against weights say little of precision.
    scale = x.std(axis=0) / census["FICA"].std()
    assert np.abs((found - central) * scale)[1:].max() < error


def test_a_regression_on_the_census_split_by_records(data_folder):
    census = pd.read_csv(data_folder / "casc" / "census.csv")
    whole = census[["AFNLWGT", "EMCONTRB", "FEDTAX", "POTHVAL", "FICA"]].to_numpy(float)
    parts = {f"o{n}": whole[n::3] for n in range(3)}
    x = np.column_stack([np.ones(len(whole)), whole[:, :-1]])
    central = np.linalg.lstsq(x, whole[:, -1], rcond=None)[0]
    scale = x.std(axis=0) / whole[:, -1].std()
    for way, error in (("gram", 1e-6), ("coefficients", 1e-3)):
        found = rehearse_protocol(dc.HorizontalRegression(open=way), parts).shown["coefficients"]
        assert np.abs((found - central) * scale)[1:].max() < error


def test_columns_that_hardly_vary_are_not_regressed_on_in_fixed_point():
    # Rehearsed bounds are the largest values: here 2,000 and a million times a deviation.
    rng = np.random.default_rng(9)
    x = rng.normal(0, 1, (600, 1))
    whole = np.hstack([x, 2 * x + rng.normal(0, 0.1, (600, 1))])
    central = np.polyfit(whole[:, 0], whole[:, 1], 1)[0]
    for away, fits in ((2_000.0, True), (1e6, False)):
        moved = whole + np.array([away, 0])
        parts = {"a": moved[:300], "b": moved[300:]}
        if fits:
            found = rehearse_protocol(dc.HorizontalRegression(open="gram"), parts).shown
            assert found["coefficients"][1] == pytest.approx(central, abs=1e-5)
            continue
        with pytest.raises(InfeasibleError) as caught:
            rehearse_protocol(dc.HorizontalRegression(), parts)
        assert caught.value.code == "bounds-too-wide"


def test_owners_with_the_same_columns_regress_over_tls():
    bank, office = people()
    records = bank.merge(office, on="person").drop(columns="person")
    frames = [records.iloc[:60], records.iloc[60:]]
    names = ["debt", "income", "hours"]
    offer = {
        "columns": {"owner1": names, "owner2": names},
        "bounds": {"debt": 40.0, "income": 40.0, "hours": 80.0},
    }
    agreed = {"fit": {"protocol": "horizontal-regression", **offer}}
    with here(frames, computations=agreed) as joint:
        found = joint.regress()
        x = np.column_stack([np.ones(len(records)), records[["debt", "income"]]])
        expected = np.linalg.lstsq(x, records.hours.to_numpy(), rcond=None)[0]
        assert np.abs(found["coefficients"] - expected).max() < 1e-3
        assert [line[1] for line in found.rows()[1]][:3] == ["constant", "debt", "income"]
        checked = verify_ledgers(list(joint.files.values()))
        assert checked.agrees, checked.findings
    # Less its own part, an owner has the regression of the other: which must be one by itself.
    few = [records, records.iloc[:29]]
    rare = [records, records.iloc[:60].assign(debt=[1.0] + [0.0] * 59)]
    for lists, code in ((few, "part-sensitive"), (rare, "high-leverage")):
        with here(lists, computations=agreed) as joint:
            with pytest.raises(RefusedError) as caught:
                joint.regress()
            assert caught.value.code == code
            assert verify_ledgers(list(joint.files.values())).opened == ()


def test_laplace_noise_is_added_in_full_by_every_owner():
    plan = dc.SecureSum(epsilon=0.5, law="laplace").noise(3, (100.0,))
    assert plan.deviations == (4.0, 40_000.0)  # half of epsilon for each of two numbers
    assert plan.event.startswith("pure 0.5")
    parts = {o: np.full((50, 1), 20.0) for o in "abc"}
    protocol = dc.SecureSum(epsilon=0.5, law="laplace")
    drawn = [rehearse_protocol(protocol, parts).shown["count"][0] - 150 for _ in range(60)]
    # The variance of three times Laplace noise of scale 4 is 96, of one 32; of 60 draws it is off by
    # half once in a thousand.
    assert 45 < np.var(drawn) < 250


@pytest.mark.slow
def test_the_distribution_of_sums_with_noise_in_parts_is_the_central_one():
    from scipy.stats import chi2

    from discreet.dp.mechanisms.gaussian import Gaussian

    plan = NoisePlan.of(0.2, [1], shares=5)
    n = 100_000
    added = np.zeros(n, dtype=np.int64)
    for _ in range(5):
        source = Gaussian().noise(epsilon=1 / plan.deviations[0], sensitivity=1)
        added += np.array(source.draw([0] * n))
    places = np.arange(-60, 61)
    central = np.exp(-(places**2) / (2 * 25.0))
    expected = n * central / central.sum()
    found = np.array([(added == place).sum() for place in places])
    many = expected > 20
    statistic = ((found[many] - expected[many]) ** 2 / expected[many]).sum()
    assert statistic < chi2.ppf(1 - 1e-4, many.sum() - 1)
    assert np.std(added) <= 1.01 * 5.0
    assert plan.rho <= 0.02 * (1 + 1e-9)  # what the central mechanism costs
