"""Attacks by servers of private retrieval: they fail against real servers and users over TLS."""

from __future__ import annotations

import contextlib
import shutil
import time

import numpy as np
import pytest
from tests.protocols.retrieval.served import PUBLISHER, asker, built, people, serving

import discreet as dc
from discreet.errors import InputError, RefusedError
from discreet.protocols.retrieval.hints import public_of
from discreet.protocols.retrieval.schemes._base import Shape
from discreet.protocols.retrieval.schemes.chor import Chor
from discreet.protocols.retrieval.schemes.simple_pir import SimplePIR
from discreet.protocols.retrieval.serving import Serving
from discreet.protocols.transport import Message
from discreet.randomness import Randomness

SERVERS = {"dpf": 2, "simple-pir": 1, "whole-table": 1}


class Corrupt:
    """Servers whose answers pass through a change before they are sent."""

    def __init__(self, lying):
        self.lying = lying
        self.change = bytes
        #: Of a look-up's two rounds those whose answers are changed.
        self.turns = (0, 1)
        self.seen = []

    def __call__(self, number, one):
        def answer(peer, message):
            self.seen.append((number, message.label, len(message.body)))
            reply = one.answer(peer, message)
            is_turn = message.fields.get("r") in self.turns
            if number in self.lying and is_turn and reply.label == "answer":
                return Message(reply.label, reply.fields, self.change(bytes(reply.body)))
            return reply

        return answer


@contextlib.contextmanager
def corrupted(folder, place, scheme, lying=(0, 1)):
    """Give a user and the corrupt servers that the user asks."""
    corrupt = Corrupt(lying)
    with (
        serving([folder] * SERVERS[scheme], place, corrupt) as (addresses, pins, _),
        asker(addresses, pins, scheme=scheme) as retrieval,
    ):
        assert retrieval.get(3)["name"] == "person 0"
        yield retrieval, corrupt


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = built(tmp_path_factory.mktemp("table"), rows=300, schemes=tuple(SERVERS))
    return made.folder.parent


@pytest.mark.parametrize("scheme", SERVERS)
def test_lies_are_not_believed(folder, tmp_path, scheme):
    with corrupted(folder, tmp_path, scheme, lying=(0,)) as (retrieval, corrupt):
        truth = retrieval.get(10)

        def look_up(change):
            corrupt.change = change
            return retrieval.get(10)

        found = dc.LyingServer(trials=40).run(look_up, truth)
    assert (found.succeeded, found.refused) == (False, 40)


@pytest.mark.parametrize("scheme", SERVERS)
def test_rows_cannot_be_denied(folder, tmp_path, scheme):
    with corrupted(folder, tmp_path, scheme) as (retrieval, corrupt):

        def look_up(change):
            corrupt.change = change
            return retrieval.get(10)

        for absent in (4, 11, 10**9):
            captured = []
            corrupt.change = lambda body, kept=captured: kept.append(body) or body
            assert retrieval.get(absent) is None
            found = dc.ForgedAbsence().run(look_up, captured)
            assert not found.succeeded
            # Everybody gets the same whole table, so an answer to somebody else is right.
            assert found.refused == (1 if scheme == "whole-table" else 2)


def test_older_versions_are_not_believed(tmp_path):
    first = built(tmp_path, rows=80)
    before = tmp_path / "before"
    shutil.copytree(first.folder.parent, before)
    changed = people(80).head(1).assign(name="new")
    first.update(changed, publisher=PUBLISHER, publishable=True)
    old = Serving({"people": before}, rate=10_000.0, burst=100_000)
    taken = ["nothing"]

    def stale(number, one):
        def answer(peer, message):
            if taken[0] == "everything":
                return old.answer(peer, message)
            reply = one.answer(peer, message)
            if taken[0] == "answers" and message.label == "ask":
                asked = Message("ask", {**message.fields, "v": 1}, message.body)
                return Message("answer", reply.fields, old.answer(peer, asked).body)
            return reply

        return answer

    with (
        serving([first.folder.parent] * 2, tmp_path, stale) as (addresses, pins, _),
        asker(addresses, pins) as retrieval,
    ):
        assert retrieval.get(3)["name"] == "new"

        def look_up(form):
            taken[0] = form
            with contextlib.suppress(InputError):  # the servers say that they lost a version
                return retrieval.get(3)["name"]
            return retrieval.get(3)["name"]

        found = dc.StaleVersion().run(look_up, stale="person 0")
    assert (found.succeeded, found.refused) == (False, 2)


@pytest.mark.parametrize("scheme", SERVERS)
def test_what_follows_a_spoiled_answer_tells_nothing(folder, tmp_path, scheme):
    with corrupted(folder, tmp_path, scheme, lying=(0,)) as (retrieval, corrupt):

        def look_up(key, change):
            corrupt.seen.clear()
            for spoil in (change, bytes):
                corrupt.change = spoil
                with contextlib.suppress(RefusedError):
                    retrieval.get((3, 4)[key])
            return tuple(sorted(corrupt.seen))

        assert not dc.SelectiveFailure().run(look_up).succeeded


def complaints(retrieval, corrupt, keys):
    """Return whether complaints about spoiled answers tell two keys apart, for each round."""

    def look_up(key, change):
        corrupt.change = change
        try:
            retrieval.get(keys[key])
        except RefusedError:
            return "complains"
        return "is content"

    found = []
    for turn in (0, 1):
        corrupt.turns = (turn,)
        found.append(dc.SelectiveFailure(parts=32).run(look_up).succeeded)
    return found


@pytest.mark.parametrize("scheme", SERVERS)
def test_complaints_do_not_tell_whether_a_key_is_there(folder, tmp_path, scheme):
    with corrupted(folder, tmp_path, scheme, lying=(0,)) as (retrieval, corrupt):
        assert complaints(retrieval, corrupt, (3, 4)) == [False, False]


@pytest.mark.parametrize("scheme", SERVERS)
def test_complaints_do_not_tell_where_a_key_lies(tmp_path, scheme):
    # Every record that an answer tells is checked, wanted or not.
    folder = built(tmp_path, rows=3000, schemes=tuple(SERVERS)).folder.parent
    with corrupted(folder, tmp_path, scheme, lying=(0,)) as (retrieval, corrupt):
        assert retrieval.statement.part("main").shapes("add")["filter"].rows > 1
        assert complaints(retrieval, corrupt, (3, 7 * 2000 + 3)) == [False, False]


def test_vectors_and_secrets_are_not_used_twice():
    rng = Randomness.secure()
    shape = Shape(columns=512, width=8)
    one, two = (Chor().ask(shape, [slot], rng=rng) for slot in (77, 300))
    for first, second in zip(one.questions, two.questions, strict=True):
        assert not dc.ReusedVector().run(first, second, known=77, truth=300).succeeded
    public = public_of(np.zeros((8, 512), np.int8), bytes(16))
    one, two = (SimplePIR().ask(shape, [s], rng=rng, public=public) for s in (77, 300))
    assert not dc.ReusedSecret().run(one.questions[0], two.questions[0], truth=300).succeeded


class Worn:
    """Draws the same secret every time, and fresh noise."""

    def __init__(self):
        self.noise = Randomness.seeded(1)

    def bytes(self, size):
        return Randomness.seeded(7).bytes(size)

    def __getattr__(self, name):
        return getattr(self.noise, name)


def test_vectors_and_secrets_that_are_used_twice_are_read():
    shape = Shape(columns=512, width=8)
    one, two = (Chor().ask(shape, [slot], rng=Worn()) for slot in (77, 300))
    assert dc.ReusedVector().run(one.questions[1], two.questions[1], known=77, truth=300).succeeded
    public = public_of(np.zeros((8, 512), np.int8), bytes(16))
    one, two = (SimplePIR().ask(shape, [s], rng=Worn(), public=public) for s in (77, 300))
    assert dc.ReusedSecret().run(one.questions[0], two.questions[0], truth=300).succeeded


def test_all_servers_together_know_the_row_and_all_but_one_do_not():
    questions = (
        Chor(servers=3).ask(Shape(columns=512, width=8), [300], rng=Randomness.secure()).questions
    )
    assert dc.ColludingServers().run(questions, truth=300).succeeded
    for left in range(3):
        some = [question for n, question in enumerate(questions) if n != left]
        assert not dc.ColludingServers().run(some, truth=300).succeeded


def test_times_of_a_server_tell_no_row():
    scheme, shape = Chor(), Shape(columns=4096, width=64)
    block = np.zeros((4096, 64), np.uint8)
    places = list(range(0, 4096, 64))
    asked = [scheme.ask(shape, [n], rng=Randomness.secure()).questions[1] for n in places]
    taken = np.full(len(places), np.inf)
    for _ in range(5):
        for n in np.random.default_rng(1).permutation(len(places)):
            started = time.thread_time()
            scheme.answer(shape, block, [asked[n]])
            taken[n] = min(taken[n], time.thread_time() - started)
    # The slow proof is stricter; here a busy machine must not matter.
    assert not dc.Timing(level=1e-6).run(taken.tolist(), places).succeeded
