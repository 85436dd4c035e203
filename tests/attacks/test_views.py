"""Attacks given a party's view: they succeed on the naive form and fail on what is shipped."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.errors import InputError
from discreet.protocols.joint.rehearsal import rehearse_protocol
from discreet.randomness import Randomness


def masked(found, party="a"):
    return np.frombuffer(
        next(body for _, label, body in found.views[party] if label == "masked columns"), "<u8"
    )


def test_masks_are_not_used_twice():
    x = np.ones((3, 1))
    runs = [
        rehearse_protocol(dc.MatrixProduct(), {"a": x, "b": np.array([[v], [1.0], [1.0]])})
        for v in (0.25, 0.75)
    ]
    # By chance once in 2^64 runs.
    assert not dc.ReusedMask().run(*map(masked, runs), known=0, truth=1 << 28).succeeded


def test_a_projection_leaks_and_a_mask_does_not():
    rng = np.random.default_rng(2)
    y = rng.permutation(np.repeat([0.0, 1.0], 200))[:, None]
    given = {"a": rng.normal(size=(400, 2)), "b": y}
    karr = rehearse_protocol(dc.KarrProduct(share=0.2), given, rng=Randomness.seeded(1))
    assert dc.ProjectionLeak().run(karr.outcomes["a"].kept["rest"], y).succeeded
    shipped = rehearse_protocol(dc.MatrixProduct(), given)
    # 400 coins: 0.75 is ten standard errors away.
    assert not dc.ProjectionLeak().run(masked(shipped).view(np.int64).astype(float), y).succeeded


def test_chosen_columns_read_a_product_and_no_regression():
    rng = np.random.default_rng(3)
    secret = rng.uniform(1, 100, (40, 1))

    def product(x):
        return rehearse_protocol(dc.MatrixProduct(), {"a": x, "b": secret}).shown["product"]

    def regression(x):
        # Constant and coefficient of a column that is one for a single person are its value.
        return rehearse_protocol(protocol(), {"a": x, "b": secret}).shown["coefficients"].sum()

    class Naive(dc.JointRegression):
        def admit(self, records):
            """Take whatever is offered."""

    truth = float(secret[7, 0])
    attack = dc.ChosenColumns()
    assert attack.run(product, records=40, person=7, truth=truth).succeeded
    protocol = Naive
    assert attack.run(regression, records=40, person=7, truth=truth).succeeded
    protocol = dc.JointRegression
    found = attack.run(regression, records=40, person=7, truth=truth)
    assert (found.succeeded, found.refused) == (False, 1)


def test_owners_that_subtract_their_part_learn_nothing_of_shipped_tables():
    # Two contributors beside one's own, one of them large: judged on the total alone it passes.
    assert dc.OwnPart().run(total=960.0, count=4, own=[20.0, 30.0], truth=900.0).succeeded
    assert not dc.OwnPart().run(total=None, count=None, own=[20.0, 30.0], truth=900.0).succeeded


def test_the_drop_out_trick_fails_with_every_threshold_that_is_allowed():
    for owners in range(2, 8):
        stay = dc.SecureSum(by="aggregator").stay(owners)
        for first in range(1, owners):
            told = {"stayed": list(range(1, first + 1)), "left": list(range(first + 1, owners + 1))}
            assert not dc.DropOutTrick().run(told, threshold=stay).succeeded
        with pytest.raises(InputError):
            dc.SecureSum(by="aggregator", threshold=stay - 1 or owners + 1).stay(owners)
