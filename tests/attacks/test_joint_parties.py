"""Attacks by and on parties of joint computations, tried on what is shipped."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.protocols.joint.here import here
from tests.protocols.transport.parties import certificates, free_address, identities

import discreet as dc
from discreet.errors import RefusedError
from discreet.protocols.joint.rehearsal import rehearse_protocol
from discreet.protocols.transport.client import connect, request
from discreet.protocols.transport.frames import Message, pack, read_head
from discreet.protocols.transport.server import Server, answer_requests


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    return identities(tmp_path_factory.mktemp("keys"), "a", "b", "impostor")


def test_an_impostor_hears_nothing(known):
    heard = []

    def listen(peer, message):
        heard.append(bytes(message.body))
        return Message("ok")

    def call(pin):
        address = free_address()
        clients = certificates({"b": known["b"]})
        with (
            Server(address, identity=known["impostor"], clients=clients,
                   handle=answer_requests(listen, limit=64), time_limit=5.0),
            connect(address, pin=pin, identity=known["b"], time_limit=5) as link,
        ):  # fmt: skip
            request(link, "shares", body=b"secret")
        return heard

    attack = dc.SubstitutedCertificate()
    assert not attack.run(lambda: call(known["a"].pin)).succeeded
    assert heard == []
    assert attack.run(lambda: call(known["impostor"].pin)).succeeded  # who pins the impostor


def test_a_message_is_taken_once():
    head, _ = pack(Message("inputs", {}, b"12345678"), number=0)
    due = iter(range(2))

    def deliver(message):
        return read_head(message, number=next(due), limit=64)[1] == 8

    assert not dc.ReplayedMessage().run(deliver, head).succeeded


def test_two_runs_one_record_apart_are_not_both_opened():
    ages = pd.DataFrame({"icd": ["A"] * 9, "cost": [100, 110, 120, 90, 95, 105, 99, 101, 98]})
    frames = [ages, ages, ages]
    agreed = {"keys": {"icd": ["A", "B"]}, "measures": {"cost": {"bound": 1e6}}}
    sql = "SELECT icd, SUM(cost) AS cost FROM stays GROUP BY icd"
    opened = []
    with here(frames, **agreed, conditions={"cost": "integer"}) as joint:
        for condition in ("", " WHERE cost < 120"):
            try:
                frame = joint.ask(sql.replace(" GROUP", f"{condition} GROUP")).frame
                opened.append(dict(zip(frame.icd, frame.cost, strict=True)))
            except RefusedError:
                opened.append(None)
    assert opened[0]["A"] == 3 * ages.cost.sum()
    assert not dc.DifferenceOfRuns().run(*opened, truth=360.0).succeeded


def test_uniform_words_do_not_lean_towards_what_they_hide():
    rng = np.random.default_rng(3)
    large = rng.integers(0, 2, 2000).astype(bool)
    y = np.where(large, 900.0, 10.0)[:, None]
    run = rehearse_protocol(dc.MatrixProduct(), {"a": np.ones((2000, 1)), "b": y})
    seen = np.frombuffer(
        next(body for _, label, body in run.views["a"] if label == "masked columns"), "<u8"
    )
    # Four standard errors: by chance once in 16,000 runs.
    assert not dc.FloatMask().run(seen, large).succeeded


def test_noise_with_the_covariance_of_the_data_stays():
    rng = np.random.default_rng(6)
    truth = rng.normal(size=(1500, 2)) @ rng.normal(size=(2, 20)) * 10
    half = np.linalg.cholesky(np.cov(truth.T) + 1e-6 * np.eye(20))
    noisy = truth + rng.normal(size=truth.shape) @ half.T
    variance = float(np.cov(truth.T).diagonal().mean())
    assert not dc.SpectralNoise().run(noisy, variance, truth).succeeded
