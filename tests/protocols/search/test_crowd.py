"""Members of a crowd on sockets: results arrive, paths are kept, and colluders see what theory says."""

from __future__ import annotations

import collections
import contextlib
import json
import math
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from discreet.errors import EngineError, InputError, RefusedError
from discreet.protocols.joint.local import free_ports
from discreet.protocols.search.backends import Backend, FullTextIndex
from discreet.protocols.search.crowd import CrowdMember
from discreet.protocols.search.member import MemberEntry
from discreet.protocols.transport import Message, connect, request
from tests.protocols.search.test_proxy import index, undisguised
from tests.protocols.transport.parties import identities


class Noted(Backend):
    """An engine that finds nothing and notes who asked."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    def search(self, terms):
        self.log.append(self.name)
        return []

    def matching(self, documents, term):
        return list(documents)

    def close(self):
        pass


class Spy(CrowdMember):
    """Works for the attacker: notes who forwards a path to it first."""

    seen: dict[bytes, str]

    def answer(self, peer, message):
        self.seen.setdefault(bytes(message.body), peer)
        return super().answer(peer, message)


def entries(folder, known):
    ports = free_ports(len(known))
    return {
        name: MemberEntry(str(one.certificate), f"127.0.0.1:{port}")
        for (name, one), port in zip(known.items(), ports, strict=True)
    }


@contextlib.contextmanager
def crowd(folder, names, backend, *, spies=(), pf=0.75):
    known = identities(folder, *names)
    members = entries(folder, known)
    seen: dict[bytes, str] = {}
    with contextlib.ExitStack() as stack:
        made = {}
        for name in names:
            kind = Spy if name in spies else CrowdMember
            made[name] = stack.enter_context(
                kind(name, members, backend(name), identity=known[name], pf=pf)
            )
            made[name].seen = seen
        yield made, seen, members, known


def test_results_come_back_through_the_crowd_and_paths_are_kept(tmp_path):
    file, log = index(tmp_path, 40), []

    class Index(FullTextIndex):
        def __init__(self, name):
            super().__init__(file)
            self.name = name

        def search(self, terms):
            log.append(self.name)
            return super().search(terms)

    with crowd(tmp_path, ["ana", "bo", "cy", "di"], Index) as (members, *_):
        for _ in range(5):
            assert members["ana"].search("word3").documents == undisguised(file, "word3")
    assert len(set(log)) == 1  # one path as long as the member runs


def test_who_ends_a_path_is_drawn_alike(tmp_path):
    """The engine sees random members: each of three ends about a third of 60 paths."""
    log: list[str] = []
    names = ["ana", "bo", "cy"]
    with crowd(tmp_path, names, lambda name: Noted(name, log)) as (members, *_):
        for _ in range(60):
            ana = members["ana"]
            ana._own = ana._hop()
            ana.search("x")
    # A third of 60 each, with a standard deviation of 3.7: none is left out in 1e10 runs.
    assert all(0 < log.count(name) < 45 for name in names)


def predecessors(folder: Path, paths: int) -> tuple[float, int]:
    names = [f"m{n}" for n in range(12)]
    log: list[str] = []
    with crowd(folder, names, lambda name: Noted(name, log), spies=names[-3:]) as (
        members,
        seen,
        *_,
    ):
        ana = members["m0"]
        for number in range(paths):
            ana._own = ana._hop()
            ana.search(f"{number}")
    counts = collections.Counter(seen.values())
    return counts["m0"] / counts.total(), counts.total()


def test_colluders_name_the_author_as_often_as_theory_says(tmp_path):
    found, many = predecessors(tmp_path, 80)
    expected = 1 - 0.75 * (12 - 3 - 1) / 12
    # Six standard deviations of a share of so many paths.
    assert abs(found - expected) < 6 * math.sqrt(0.25 / many)


@pytest.mark.slow
def test_colluders_name_the_author_as_often_as_theory_says_in_many_paths(tmp_path):
    found, many = predecessors(tmp_path, 6_000)
    assert many > 3_000
    assert abs(found - 0.5) < 0.02


def test_strangers_and_wrong_messages_are_refused(tmp_path):
    log: list[str] = []
    with crowd(tmp_path, ["ana", "bo", "cy"], lambda name: Noted(name, log)) as (
        _,
        _,
        members,
        known,
    ):
        stranger = identities(tmp_path, "eve")["eve"]
        with (
            # The connection ends, with word of the certificate or, if closed sooner, without.
            pytest.raises((EngineError, RefusedError)),
            connect(members["bo"].address, pin=known["bo"].pin, identity=stranger) as link,
        ):
            request(link, "search", {"path": "0" * 32}, b"x", limit=100)
        with connect(members["bo"].address, pin=known["bo"].pin, identity=known["ana"]) as link:
            for label, fields in (
                ("search", {}),
                ("search", {"path": 7}),
                ("other", {"path": "0" * 32}),
            ):
                link.send(Message(label, fields, b"x"))
                assert link.receive(limit=100).fields["code"] == "message-malformed"
    assert log == []
    with pytest.raises(InputError):
        CrowdMember("ana", members, Noted("a", log), identity=known["bo"], pf=0.75)
    with pytest.raises(InputError):
        CrowdMember("zoe", members, Noted("a", log), identity=known["bo"], pf=0.75)


def test_a_member_that_answers_nonsense_is_refused(tmp_path):
    class Liar(CrowdMember):
        def answer(self, peer, message):
            return Message("found", {}, b"{}")

    known = identities(tmp_path, "ana", "bo", "cy")
    members = entries(tmp_path, known)
    log: list[str] = []
    with (
        CrowdMember("ana", members, Noted("ana", log), identity=known["ana"], pf=0.75) as ana,
        Liar("bo", members, Noted("bo", log), identity=known["bo"], pf=0.75),
    ):
        ana._own.who = "bo"
        with pytest.raises(RefusedError):
            ana.search("x")
        ana._own.who = "cy"
        with pytest.raises(EngineError) as caught:
            ana.search("x")
        assert caught.value.code == "party-missing"


def test_a_path_leads_round_a_member_that_is_away(tmp_path):
    log: list[str] = []
    names = ["ana", "bo", "cy", "di", "ed"]
    with crowd(tmp_path, names, lambda name: Noted(name, log)) as (members, *_):
        ana = members["ana"]
        # First the author's own hop, then one of a forwarder: ana → bo → cy, who ends it.
        members["bo"]._next["ana", ana._own.path] = toward_cy = ana._hop()
        toward_cy.who, ana._own.who = "cy", "bo"
        members["cy"]._next["bo", toward_cy.path] = None
        before = ana._own.path
        ana.search("x")
        assert log == ["cy"]
        members["cy"].close()
        for _ in range(2):
            ana.search("x")
        # Who forwards to it draws another; before it the path stays.
        assert (ana._own.who, ana._own.path, toward_cy.who != "cy") == ("bo", before, True)
        assert len(log) == 3
        assert log[1] == log[2]
        members["bo"].close()
        for _ in range(2):
            ana.search("x")
        assert ana._own.who not in ("bo", "cy")
        assert ana._own.path != before
        assert len(log) == 5


class Broken(Noted):
    def search(self, terms):
        self.log.append(self.name)
        raise EngineError("the engine is away", code="party-gone")


def test_a_member_that_answers_with_an_error_is_replaced_and_the_path_before_it_stays(tmp_path):
    log: list[str] = []
    names = ["ana", "bo", "cy", "di", "ed"]

    def engine(name):
        return (Broken if name == "cy" else Noted)(name, log)

    with crowd(tmp_path, names, engine) as (members, *_):
        ana = members["ana"]
        members["bo"]._next["ana", ana._own.path] = toward_cy = ana._hop()
        toward_cy.who, ana._own.who = "cy", "bo"
        members["cy"]._next["bo", toward_cy.path] = None
        before = ana._own.path
        for _ in range(3):
            with contextlib.suppress(EngineError):  # its path may end at cy once more
                ana.search("x")
        assert toward_cy.who != "cy"
        assert (ana._own.who, ana._own.path) == ("bo", before)


def test_a_member_that_hands_on_errors_for_good_is_replaced(tmp_path):
    class Hostile(CrowdMember):
        def answer(self, peer, message):
            raise EngineError("run this", code="path-failed")

    known = identities(tmp_path, "ana", "bo", "cy", "di")
    members = entries(tmp_path, known)
    log: list[str] = []
    with contextlib.ExitStack() as stack:
        made = {
            name: stack.enter_context(
                (Hostile if name == "bo" else CrowdMember)(
                    name, members, Noted(name, log), identity=known[name], pf=0.01
                )
            )
            for name in known
        }
        ana = made["ana"]
        ana._own.who = "bo"
        for _ in range(2):
            with pytest.raises(EngineError, match="bo says: run this"):
                ana.search("x")
        assert ana._own.who != "bo"


def test_an_engine_that_fails_has_paths_formed_a_few_times_only(tmp_path):
    log: list[str] = []
    names = ["ana", "bo", "cy", "di", "ed", "flo", "gus"]
    with crowd(tmp_path, names, lambda name: Broken(name, log), pf=0.5) as (members, *_):
        ana, hops = members["ana"], set()
        for _ in range(12):
            hops.add(ana._own.path)
            with pytest.raises(EngineError, match="the engine is away"):
                ana.search("x")
        assert ana._own.path in hops
        assert ana._own.redrawn <= 3


@pytest.mark.parametrize("term", [None, 7, "flu\0"])
def test_what_is_no_term_is_refused_before_anything_is_sent(tmp_path, term):
    log: list[str] = []
    with (
        crowd(tmp_path, ["ana", "bo", "cy"], lambda name: Noted(name, log)) as (members, *_),
        pytest.raises(InputError, match="without control characters"),
    ):
        members["ana"].search(term)
    assert log == []


def test_members_as_processes(tmp_path):
    index(tmp_path, 40)
    known = identities(tmp_path, "ana", "bo", "cy")
    ports = free_ports(3)
    listed = "".join(
        f"    {name}: {{certificate: {Path(one.certificate).name}, address: '127.0.0.1:{port}'}}\n"
        for (name, one), port in zip(known.items(), ports, strict=True)
    )
    text = f"search:\n  index: articles.db\n  disguise: crowds\n  port: 0\n  members:\n{listed}"
    (tmp_path / "policy.yaml").write_text(text)
    with contextlib.ExitStack() as stack:
        urls = []
        for name in known:
            command = [
                sys.executable,
                "-m",
                "discreet",
                "search",
                "member",
                str(tmp_path / "policy.yaml"),
            ]
            command += ["--as", name, "--key", str(known[name].key)]
            running = stack.enter_context(
                subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            )
            stack.callback(running.terminate)
            urls.append(running.stderr)
        told = [stream.readline().split(" on ")[1].split(" ")[0] for stream in urls]
        for url in told:
            answer = json.load(urllib.request.urlopen(f"{url}search?q=word3", timeout=120))
            assert answer["documents"] == undisguised(tmp_path / "articles.db", "word3")
