"""Peers on sockets: results arrive, spaces are shared as the plane says, and absence names nobody."""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from discreet.attacks.absence import Absence
from discreet.errors import EngineError, InputError, RefusedError
from discreet.protocols.joint.local import free_ports
from discreet.protocols.search.backends import FullTextIndex
from discreet.protocols.search.peering import PeerMember
from discreet.protocols.search.peers import Peers
from discreet.protocols.search.sealing import Opener, Sealer
from discreet.protocols.search.spaces import keeper_of
from discreet.protocols.transport import Message, request
from discreet.protocols.transport.identity import read_certificate
from tests.protocols.search.test_crowd import Noted, entries
from tests.protocols.search.test_proxy import index, undisguised
from tests.protocols.transport.parties import identities


@contextlib.contextmanager
def peers(folder, order, backend, *, submits_own=True, rhythm=None):
    plane = Peers(order=order)
    names = [f"p{n:02}" for n in range(plane.users)]
    known = identities(folder, *names)
    listed = entries(folder, known)
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                PeerMember(
                    name,
                    listed,
                    backend(name),
                    identity=known[name],
                    spaces=plane.spaces,
                    submits_own=1 / plane.users if submits_own else 0.0,
                    rhythm=rhythm,
                )
            )
            for name in names
        ]


def submitted(members, author, searches, drawn):
    """Return who submits each of some searches of an author; readers come in random order."""
    log = members[0]._backend.log
    start = len(log)
    for number in range(searches):
        place = members[author].post(f"{number}")
        if place is None:
            members[author]._ask_engine(b"own")
            continue
        space, _ = place
        users = [n for n, one in enumerate(members) if space in one._mine]
        for user in drawn.permutation(users):
            members[user].read(space)
        members[author].read(space)
        assert members[author].fetch(place) == []
    return [int(name[1:]) for name in log[start:]]


@pytest.mark.parametrize("order", [2, 3, 5])
def test_any_two_members_share_one_space_that_neither_keeps(tmp_path, order):
    with peers(tmp_path, order, lambda name: Noted(name, [])) as members:
        for a, one in enumerate(members):
            assert all(one._keepers[space] != one.name for space in one._mine)
            for other in members[a + 1 :]:
                assert len(set(one._mine) & set(other._mine)) == 1


def test_results_come_back_from_a_peer(tmp_path):
    file = index(tmp_path, 40)
    with peers(tmp_path, 2, lambda _: FullTextIndex(file), rhythm=0.2) as members:
        for one in members[:3]:
            assert one.search("word3").documents == undisguised(file, "word3")


def test_a_peer_that_goes_away_is_waited_for_no_longer_than_the_limit(tmp_path):
    with peers(tmp_path, 2, lambda name: Noted(name, [])) as members:
        place = None
        while place is None:
            place = members[0].post("gout")
        with pytest.raises(EngineError) as caught:
            members[0].fetch(place)
        assert caught.value.code == "party-timeout"
        keeper = next(one for one in members if one.name == members[0]._keepers[place[0]])
        keeper.close()
        with pytest.raises(EngineError):
            members[0].read(place[0])


def test_only_one_reader_submits_and_only_the_author_gets_the_answer(tmp_path):
    log: list[str] = []
    with peers(tmp_path, 3, lambda name: Noted(name, log), submits_own=False) as members:
        place = members[4].post("gout")
        readers = [one for one in members if place[0] in one._mine and one is not members[4]]
        first, *later = readers
        assert first.read(place[0]) == 1
        assert [one.read(place[0]) for one in later] == [0] * len(later)
        assert log == [first.name]
        assert members[4].read(place[0]) == 1
        assert members[4].fetch(place) == []
        assert members[4].read(place[0]) == 0


def test_keepers_see_sealed_posts_of_one_length(tmp_path):
    with peers(tmp_path, 2, lambda name: Noted(name, []), submits_own=False) as members:
        held = []
        for term in ("gout", "a far longer search than the other one"):
            space, number = members[1].post(term)
            keeper = next(one for one in members if one.name == members[1]._keepers[space])
            held.append(keeper._kept._posts[space][number].sealed)
    assert len({len(sealed) for sealed in held}) == 1
    assert all(b"gout" not in sealed and b"search" not in sealed for sealed in held)


def test_a_post_that_cannot_be_opened_holds_up_no_other(tmp_path):
    log: list[str] = []
    with peers(tmp_path, 2, lambda name: Noted(name, log), submits_own=False) as members:
        space = next(iter(members[0]._mine))
        members[0]._asked(space, "post", body=b"no sealed search")
        place = None
        while place is None or place[0] != space:
            place = members[0].post("gout")
        reader = next(one for one in members[1:] if space in one._mine)
        assert reader.read(space) >= 1
        assert set(log) == {reader.name}


def test_spaces_of_others_are_closed(tmp_path):
    with peers(tmp_path, 2, lambda name: Noted(name, []), submits_own=False) as members:
        one = members[0]
        foreign = next(space for space in range(7) if space not in one._mine)
        link = one._connect(one._keepers[foreign])
        for label in ("post", "read", "claim", "reply", "drop", "other"):
            with pytest.raises(RefusedError):
                request(link, label, {"space": foreign}, b"x")
        link.close()
        space, number = members[1].post("gout")
        keeper = next(m for m in members if m.name == members[1]._keepers[space])
        reader = next(m.name for m in members[2:] if space in m._mine)
        for label, told in (("reply", "0" * 32), ("reply", number), ("claim", 7), ("claim", "")):
            with pytest.raises(RefusedError):
                keeper.answer(reader, Message(label, {"space": space, "number": told}, b"x"))
        # A post of another user stays, whoever asks to drop it.
        keeper.answer(reader, Message("drop", {"space": space, "number": number}))
        assert number in keeper._kept._posts[space]


def test_a_space_takes_so_many_posts_of_one_user(tmp_path):
    with peers(tmp_path, 2, lambda name: Noted(name, []), submits_own=False) as members:
        codes = []
        for _ in range(60):
            try:
                members[0].post("x")
            except RefusedError as error:
                codes.append(error.code)
        assert set(codes) == {"space-full"}


def test_sealed_messages_are_for_their_readers_and_their_space(tmp_path):
    known = identities(tmp_path, "ana", "bo", "eve")
    shown = {name: read_certificate(known[name].certificate) for name in ("ana", "bo")}
    sealed = Sealer(shown).seal(b"gout", b"1 search")
    ana, eve = Opener(known["ana"].key), Opener(known["eve"].key)
    assert ana.open(sealed, b"1 search", place=0, readers=2) == b"gout"
    drawn = np.random.default_rng(1)
    for _ in range(200):
        place = int(drawn.integers(len(sealed)))
        changed = bytearray(sealed)
        changed[place] ^= int(drawn.integers(1, 256))
        # The part wrapped for the other reader is theirs to check.
        if 65 + 48 <= place < 65 + 2 * 48:
            continue
        with pytest.raises(RefusedError):
            ana.open(bytes(changed), b"1 search", place=0, readers=2)
    for opener, context, place in (
        (ana, b"2 search", 0),
        (ana, b"1 search", 1),
        (eve, b"1 search", 0),
    ):
        with pytest.raises(RefusedError):
            opener.open(sealed, context, place=place, readers=2)


def test_keepers_do_not_use_what_they_keep():
    for order in (2, 3, 5, 7):
        spaces = Peers(order=order).spaces
        assert all(keeper_of(n, line, len(spaces)) not in line for n, line in enumerate(spaces))


def test_a_wrong_number_of_peers_is_named(tmp_path):
    known = identities(tmp_path, "ana", "bo", "cy")
    with pytest.raises(InputError) as caught:
        Peers(order=2).join("ana", entries(tmp_path, known), Noted("a", []), identity=known["ana"])
    assert caught.value.code == "number-of-members"


def named(folder, order, authors, linked, *, submits_own):
    """Return in how many of some groups of linked searches absence names the author."""
    drawn = np.random.default_rng(order)
    log: list[str] = []
    with peers(folder, order, lambda name: Noted(name, log), submits_own=submits_own) as members:
        hits = 0
        for _ in range(authors):
            author = int(drawn.integers(len(members)))
            seen = submitted(members, author, linked, drawn)
            assert len(seen) == linked
            hits += Absence().run(seen, members=len(members), truth=author).succeeded
    return hits / authors


def test_absence_names_peers_who_never_submit_their_own(tmp_path):
    assert named(tmp_path, 2, 3, 60, submits_own=False) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("order", [2, 3])
def test_absence_names_whoever_never_submits_in_many_searches(tmp_path, order):
    assert named(tmp_path, order, 40, 300, submits_own=False) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("order", [2, 3, 5])
def test_absence_names_nobody_as_shipped(tmp_path, order):
    authors = 60
    chance = 1 / Peers(order=order).users
    found = named(tmp_path, order, authors, 300, submits_own=True)
    assert found <= chance + 3 * math.sqrt(chance * (1 - chance) / authors)


@pytest.mark.slow
def test_members_as_processes(tmp_path):
    index(tmp_path, 40)
    names = [f"p{n}" for n in range(7)]
    known = identities(tmp_path, *names)
    listed = "".join(
        f"    {name}: {{certificate: {Path(one.certificate).name}, address: '127.0.0.1:{port}'}}\n"
        for (name, one), port in zip(known.items(), free_ports(7), strict=True)
    )
    (tmp_path / "policy.yaml").write_text(
        "search:\n  index: articles.db\n  disguise: {peers: {order: 2, rhythm: 0.1}}\n  port: 0\n"
        f"  members:\n{listed}"
    )
    with contextlib.ExitStack() as stack:
        streams = []
        for name in names:
            command = [sys.executable, "-m", "discreet", "search", "member"]
            command += [str(tmp_path / "policy.yaml"), "--as", name, "--key", str(known[name].key)]
            running = stack.enter_context(
                subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            )
            stack.callback(running.terminate)
            streams.append(running.stderr)
        told = [stream.readline().split(" on ")[1].split(" ")[0] for stream in streams]
        for url in told[:2]:
            answer = json.load(urllib.request.urlopen(f"{url}search?q=word3", timeout=120))
            assert answer["documents"] == undisguised(tmp_path / "articles.db", "word3")
