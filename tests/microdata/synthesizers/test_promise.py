"""The promise of MST and AIM: what is charged, by two accountants, and a test that looks for leaks."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import discreet as dc
from discreet.dp.accountant import Accountant
from discreet.dp.grant import Grant
from discreet.dp.spending import Spending
from discreet.ledger.opening import open_ledger
from discreet.microdata.synthesizers._tables import Tables, codings
from discreet.progress import silent

EPSILON, DELTA = 1.0, 1e-3


def any_setting(rng):
    """A method with a random budget, and a small file of random columns with public domains."""
    make = dc.MST if rng.random() < 0.5 else dc.AIM
    method = make(
        epsilon=float(10 ** rng.uniform(-1.5, 1)), delta=float(10 ** rng.uniform(-12, -3))
    )
    columns = int(rng.integers(1, 4))
    codes = [[f"v{n}" for n in range(int(rng.integers(1, 4)))] for _ in range(columns)]
    size = int(rng.integers(columns, 40))
    rows = pd.DataFrame({f"c{n}": rng.choice(known, size) for n, known in enumerate(codes)})
    domains = {f"c{n}": known for n, known in enumerate(codes)}
    roles = dict.fromkeys(rows.columns, "quasi")
    return method, dc.read(rows, roles=roles, domains=domains, name="people")


def assert_charged(method, data, monkeypatch):
    """The sum of OpenDP's maps is what the ledger was charged, and that is within the grant."""
    opened = []
    inside = Spending.__init__

    def remembered(self, rho):
        inside(self, rho)
        opened.append(self)

    monkeypatch.setattr(Spending, "__init__", remembered)
    with open_ledger() as ledger:
        ledger.set_grant("people", Grant(method.epsilon, method.delta, "zcdp").to_dict())
        made = dc.synthesize(data, method, n=5, ledger=ledger)
        charged = ledger.spent("people", "dataset")
    monkeypatch.undo()
    (spending,) = opened
    total = sum(map(Fraction, spending.costs))
    rho = Fraction(made.spent.rho)
    assert total == spending.spent <= rho
    # The floats of the maps stop short of the charge by their own rounding, and by nothing else.
    assert float(total) == pytest.approx(float(rho), rel=1e-9), method
    assert dict(charged) == dict(made.events())
    exact = Accountant("zcdp", method.delta).epsilon(charged)
    assert exact <= method.epsilon
    assert exact == pytest.approx(method.epsilon, rel=1e-5)
    # The accountant looks at a list of orders, so that it stays a little above the best of all.
    best = written_out(made.spent.rho, method.delta)
    assert best * (1 - 1e-6) <= exact <= 1.1 * best


def written_out(rho, delta):
    """ε of ρ at δ by the formula of Canonne, Kamath and Steinke (2020), over a fine grid of orders."""
    order = 1 + np.geomspace(1e-3, 1e7, 200_000)
    bound = order * rho + (np.log(1 / (order * delta))) / (order - 1) + np.log1p(-1 / order)
    return float(bound[bound > 0].min())


def test_the_ledger_is_charged_what_the_maps_add_up_to(monkeypatch):
    rng = np.random.default_rng(1)
    for _ in range(8):
        assert_charged(*any_setting(rng), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_the_ledger_is_charged_what_the_maps_add_up_to_in_1000_settings(part, monkeypatch):
    rng = np.random.default_rng((2, part))
    for _ in range(250):
        assert_charged(*any_setting(rng), monkeypatch)


def shown(make, domain, runs):
    """Return what a released model says of the rare value, for a file with and one without it."""
    found = []
    for rows in (["a"] * 20 + ["b"], ["a"] * 20):
        known = domain(rows)
        data = dc.read(pd.DataFrame({"x": rows}), roles={"x": "quasi"}, domains={"x": known})
        method = make(epsilon=EPSILON, delta=DELTA)
        tables = Tables(data, codings(data, ["x"], bins=2, missing=[]))
        grant = method.budget().rho
        seen = np.full(runs, -np.inf)
        for run in range(runs):
            model, _ = method._modelled(tables, Spending(grant), silent)
            if len(known) > 1:
                seen[run] = model.beliefs.marginal((0,))[1] - model.beliefs.marginal((0,))[0] / 1e6
        found.append(seen)
    return found


def leaks(one, two):
    """Whether outputs tell neighbours apart beyond (ε, δ), beyond doubt.

    The event of the largest excess of likelihood, P − e^ε Q, is chosen on one half of the runs and
    tested on the other half, in both directions, by exact binomial intervals (error 1e-4).
    """
    half = len(one) // 2
    for with_one, without in ((one, two), (two, one)):
        cuts = np.unique(np.concatenate([with_one[:half], without[:half]]))
        for side in (1, -1):
            excess = [
                (side * with_one[:half] >= side * cut).mean()
                - math.exp(EPSILON) * (side * without[:half] >= side * cut).mean()
                for cut in cuts[:: max(1, cuts.size // 200)]
            ]
            cut = cuts[:: max(1, cuts.size // 200)][int(np.argmax(excess))]
            hits = [int((side * s[half:] >= side * cut).sum()) for s in (with_one, without)]
            many = len(one) - half
            least = scipy.stats.beta.ppf(1e-4, hits[0], many - hits[0] + 1) if hits[0] else 0.0
            most = (
                scipy.stats.beta.ppf(1 - 1e-4, hits[1] + 1, many - hits[1])
                if hits[1] < many
                else 1.0
            )
            if least > math.exp(EPSILON) * most + DELTA:
                return True
    return False


def public(rows):
    return ["a", "b"]


def from_the_records(rows):
    return sorted(set(rows))


def test_neighbours_are_not_told_apart_and_a_leaking_domain_is():
    assert not leaks(*shown(dc.MST, public, 300))
    assert leaks(*shown(dc.MST, from_the_records, 60))


def test_the_search_for_leaks_finds_half_the_noise():
    rng = np.random.default_rng(1)
    deviation = 1 / math.sqrt(2 * dc.MST(epsilon=EPSILON, delta=DELTA).budget().rho)
    for noise, is_leak in ((deviation, False), (deviation / 4, True)):
        one, two = (centre + rng.normal(0, noise, 20_000) for centre in (1, 0))
        assert leaks(one, two) is is_leak


@pytest.mark.slow
@pytest.mark.parametrize("make", [dc.MST, dc.AIM])
def test_neighbours_are_not_told_apart_in_20000_runs(make):
    assert not leaks(*shown(make, public, 20_000))
    assert leaks(*shown(make, from_the_records, 200))
