"""How many questions are answered: for one client, for all, and in bounded memory."""

import contextlib
import functools
import socket

import pytest

from discreet.errors import RefusedError
from discreet.protocols.retrieval import rate_limit
from discreet.protocols.retrieval.rate_limit import RateLimit
from discreet.protocols.transport import client
from tests.protocols.retrieval.served import asker, built, serving


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def limited(**options):
    clock = Clock()
    options = {"rate": 10, "burst": 20, "each": 4, "each_burst": 8} | options
    return RateLimit(**options, clock=clock), clock


def answered(limit, client, tries=100):
    """Return how many of some questions are answered."""
    done = 0
    for _ in range(tries):
        with contextlib.suppress(RefusedError):
            limit.pay(client, 1)
            done += 1
    return done


def test_a_flood_of_one_client_leaves_the_others_their_part():
    limit, clock = limited()
    assert answered(limit, "10.0.0.1") == 8
    assert answered(limit, "10.0.0.2") == 8
    clock.now += 1
    assert answered(limit, "10.0.0.1", 10_000) == 4
    assert answered(limit, "10.0.0.2", 4) == 4


def test_all_clients_together_have_a_limit():
    limit, clock = limited()
    assert sum(answered(limit, f"10.0.0.{n}") for n in range(10)) == 20
    clock.now += 1
    assert sum(answered(limit, f"10.0.0.{n}") for n in range(10)) == 10


def test_several_questions_are_answered_together_or_not_at_all():
    limit, _ = limited()
    with pytest.raises(RefusedError, match="one client is answered 4") as caught:
        limit.pay("ana", 9)
    assert caught.value.code == "rate-limit"
    limit.pay("ana", 8)


def test_a_network_is_one_client():
    limit, _ = limited()
    assert sum(answered(limit, f"2001:db8::{n:x}") for n in range(10)) == 8
    assert answered(limit, "::ffff:10.0.0.1") == 8
    assert answered(limit, "10.0.0.1") == 0


def test_memory_is_bounded_and_nobody_is_forgotten_to_be_free_again(monkeypatch):
    monkeypatch.setattr(rate_limit, "_MOST_CLIENTS", 4)
    limit, clock = limited(rate=1e6, burst=1e6)
    assert all(answered(limit, f"10.0.0.{n}") == 8 for n in range(4))
    # There is room for no more: strangers share what one may ask, and push nobody out.
    assert sum(answered(limit, f"10.0.1.{n}") for n in range(50)) == 8
    assert answered(limit, "10.0.0.0") == 0
    assert len(limit._clients) == 4
    clock.now += 2
    assert answered(limit, "10.0.2.1") == 8
    assert len(limit._clients) == 1


def test_a_flood_from_one_address_does_not_keep_another_from_looking_up(tmp_path, monkeypatch):
    table = built(tmp_path, rows=40)
    with serving([table.folder.parent] * 2, tmp_path, rate=0.001) as (addresses, pins, servings):
        for one in servings:
            one._limit = RateLimit(rate=0.001, burst=1000, each=0.001, each_burst=64)
        with asker(addresses, pins) as flood:
            flood.get(3)
            answered_still = 0
            with contextlib.suppress(RefusedError):
                for _ in range(40):
                    flood.get(3)
                    answered_still += 1
            assert 25 < answered_still < 40
            with pytest.raises(RefusedError, match="one client"):
                flood.get_many([3] * 64)
        elsewhere = functools.partial(socket.create_connection, source_address=("127.0.0.2", 0))
        monkeypatch.setattr(client.socket, "create_connection", elsewhere)
        with asker(addresses, pins) as other:
            assert other.get(10)["name"] == "person 1"
