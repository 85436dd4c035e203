"""Links between parties: what is refused, and that nothing hangs."""

from __future__ import annotations

import contextlib
import functools
import socket
import ssl
import threading
import time

import numpy as np
import pytest

from discreet.errors import DiscreetError, EngineError, InputError, RefusedError
from discreet.protocols.transport import (
    Agreement,
    Identity,
    Mesh,
    Message,
    Server,
    Transcript,
    answer_requests,
    connect,
    request,
)
from discreet.protocols.transport.client import address_of, raise_error
from discreet.protocols.transport.frames import HEAD, pack, read_fields, read_head
from discreet.protocols.transport.mesh import Waiting
from tests.protocols.transport.parties import certificates, free_address, identities


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    return identities(tmp_path_factory.mktemp("keys"), "a", "b", "c", "stranger")


@contextlib.contextmanager
def serving(known, handle, *, clients=("a", "b", "c"), time_limit=5.0, **more):
    address = free_address()
    allowed = None if clients is None else certificates({n: known[n] for n in clients})
    with Server(
        address, identity=known["a"], clients=allowed, handle=handle, time_limit=time_limit, **more
    ):
        yield address


def echo(peer, message):
    if message.label == "fail":
        raise RefusedError("not for you", code="no", hint="ask less")
    return Message("echo", {"peer": peer}, message.body)


def test_requests_are_answered_in_turn_and_errors_come_back_as_themselves(known):
    with (
        serving(known, answer_requests(echo, limit=1 << 20)) as address,
        connect(address, pin=known["a"].pin, identity=known["b"]) as link,
    ):
        body = bytes(range(256)) * 4000
        answer = request(link, "x", body=body, limit=1 << 20)
        assert answer.fields == {"peer": "b"}
        assert bytes(answer.body) == body
        with pytest.raises(
            RefusedError, match="the other side says: not for you; the other side says: ask less"
        ):
            request(link, "fail")
        assert request(link, "x", limit=0).label == "echo"
        with pytest.raises(RefusedError) as caught:
            request(link, "x", body=bytes(9), limit=8)
        assert caught.value.code == "message-too-long"


def test_users_without_a_name_are_answered_where_the_server_lets_them(known):
    with (
        serving(known, answer_requests(echo, limit=9), clients=None) as address,
        connect(address, pin=known["a"].pin) as link,
    ):
        assert request(link, "x", body=b"q", limit=9).fields == {"peer": "127.0.0.1"}


def test_many_connections_of_one_address_end_none_of_another(known, monkeypatch):
    with (
        serving(known, answer_requests(echo, limit=9), clients=None, connections=4) as address,
        contextlib.ExitStack() as stack,
    ):

        def connected(host):
            elsewhere = functools.partial(plainly, source_address=(host, 0))
            monkeypatch.setattr(socket, "create_connection", elsewhere)
            link = stack.enter_context(connect(address, pin=known["a"].pin))
            assert request(link, "x", limit=9).fields == {"peer": host}
            return link

        plainly = socket.create_connection
        # The other user is silent longest, and keeps the place.
        other = connected("127.0.0.2")
        for _ in range(12):
            connected("127.0.0.1")
        assert request(other, "x", limit=9).label == "echo"


def test_too_long_a_request_is_refused_with_a_reason(known):
    with (
        serving(known, answer_requests(echo, limit=100)) as address,
        connect(address, pin=known["a"].pin, identity=known["b"]) as link,
        pytest.raises(RefusedError) as caught,
    ):
        request(link, "x", body=bytes(101), limit=200)
    assert caught.value.code == "message-too-long"


@pytest.mark.parametrize("case", ["server", "client", "no certificate"])
def test_another_certificate_than_the_pinned_one_is_refused(known, case):
    pin = known["b"].pin if case == "server" else known["a"].pin
    identity = {"server": known["b"], "client": known["stranger"]}.get(case)
    with (
        serving(known, answer_requests(echo, limit=9)) as address,
        pytest.raises((RefusedError, EngineError)) as caught,
        connect(address, pin=pin, identity=identity, time_limit=5) as link,
    ):
        request(link, "x")
    assert caught.value.code in {"wrong-pin", "party-gone"}
    assert case != "server" or caught.value.code == "wrong-pin"


def test_a_certificate_that_a_pinned_party_signed_is_not_a_pinned_one(known, tmp_path):
    # Pinned certificates are their own authorities; what they sign must not pass for a party.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    issuer = x509.load_pem_x509_certificate(known["b"].certificate.read_bytes())
    issuer_key = serialization.load_pem_private_key(known["b"].key.read_bytes(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "c")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(issuer.not_valid_before_utc)
        .not_valid_after(issuer.not_valid_after_utc)
        .sign(issuer_key, hashes.SHA256())
    )
    (tmp_path / "f.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "f.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    forged = Identity.read(tmp_path / "f.crt", tmp_path / "f.key")
    with (
        serving(known, answer_requests(echo, limit=9)) as address,
        pytest.raises((RefusedError, EngineError)),
        connect(address, pin=known["a"].pin, identity=forged, time_limit=5) as link,
    ):
        request(link, "x")


def test_missing_party_and_port_in_use_are_said_in_time(known):
    start = time.monotonic()
    with pytest.raises(EngineError) as caught:
        connect(free_address(), pin=known["a"].pin, patience=0.2)
    assert caught.value.code == "party-missing"
    assert time.monotonic() - start < 10
    with serving(known, answer_requests(echo, limit=9)) as address:
        with pytest.raises(InputError) as taken:
            Server(address, identity=known["a"], clients=None, handle=lambda link: None)
        assert taken.value.code == "port-in-use"
    with pytest.raises(InputError):
        address_of("nowhere")


def test_strangers_who_connect_and_say_nothing_shut_nobody_out(known):
    with serving(known, answer_requests(echo, limit=9)) as address, contextlib.ExitStack() as stack:
        for _ in range(150):
            stack.enter_context(socket.create_connection(address_of(address), timeout=5))
        for _ in range(3):
            with connect(address, pin=known["a"].pin, identity=known["b"], time_limit=5) as link:
                assert request(link, "x", body=b"q", limit=9).label == "echo"


def test_a_silent_party_is_given_up(known):
    with (
        serving(known, lambda link: time.sleep(3)) as address,
        connect(address, pin=known["a"].pin, identity=known["b"], time_limit=0.3) as link,
        pytest.raises(EngineError) as caught,
    ):
        request(link, "x")
    assert caught.value.code == "party-timeout"


@pytest.mark.parametrize(
    ("other", "code"),
    [
        (Agreement("p2", ("a", "b")), "policy-differs"),
        (Agreement("p", ("a", "c")), "parties-differ"),
        (Agreement("p", ("a", "b"), version="0.0.0"), "version-differs"),
    ],
)
def test_sessions_are_bound_to_policy_parties_and_version(known, other, code):
    met = []
    agreed = Agreement("p", ("a", "b"))
    with serving(known, lambda link: met.append(agreed.meet(link))) as address:
        with connect(address, pin=known["a"].pin, identity=known["b"]) as link:
            with pytest.raises(RefusedError) as caught:
                other.call(link, session="s", purpose="control")
            assert caught.value.code == code
        with connect(address, pin=known["a"].pin, identity=known["b"]) as link:
            agreed.call(link, session="s", purpose="control")
    assert met == [("s", "control")]


def raw(address, known, content, wait=0.2):
    """Send bytes as a pinned party would not, and return what comes back."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(known["b"].certificate, known["b"].key)
    host, port = address_of(address)
    with (
        socket.create_connection((host, port), timeout=5) as plain,
        context.wrap_socket(plain) as connection,
    ):
        connection.sendall(content)
        with contextlib.suppress(OSError):
            connection.settimeout(wait)
            return connection.recv(1 << 16)
    return b""


def frame(message, number=0):
    return b"".join((*pack(message, number=number), bytes(message.body)))


def test_replayed_and_truncated_and_foreign_frames_are_refused(known):
    seen = []

    def take(peer, message):
        seen.append(message.label)
        return Message("ok")

    with serving(known, answer_requests(take, limit=64), time_limit=1.0) as address:
        one = frame(Message("one"))
        raw(address, known, one + one)  # the second repeats number 0
        raw(address, known, one[:-1])
        raw(address, known, b"GET / HTTP/1.1\r\n\r\n" + bytes(64))
        raw(address, known, frame(Message("one"), number=1))
        raw(address, known, b"dscr\x02" + one[5:])
    assert seen == ["one"]


def test_a_server_outlives_fuzzed_frames(known):
    rng = np.random.default_rng(6)
    seen = []

    def take(peer, message):
        seen.append(message.label)
        return Message("ok")

    whole = frame(Message("label", {"a": 1}, b"body"))
    with serving(known, answer_requests(take, limit=8, idle=0.5), time_limit=0.5) as address:
        for _ in range(60):
            content = bytearray(whole)
            content[rng.integers(0, HEAD)] ^= rng.integers(1, 256)
            raw(address, known, bytes(content), wait=0.01)
        assert seen == []
        with connect(address, pin=known["a"].pin, identity=known["b"], time_limit=5) as link:
            assert request(link, "label", limit=8).label == "ok"


@pytest.mark.parametrize("speaks", [True, False])
def test_silent_strangers_do_not_keep_others_out(known, speaks):
    server = Server(
        free_address(),
        identity=known["a"],
        clients=None,
        handle=answer_requests(lambda peer, message: Message("ok"), limit=8),
        connections=4,
    )
    with server, contextlib.ExitStack() as stack:
        for _ in range(12):
            if speaks:
                link = connect(server.address, pin=known["a"].pin, time_limit=5)
                stack.enter_context(link)
                assert request(link, "x").label == "ok"
            else:  # never begins the handshake
                stack.enter_context(socket.create_connection(address_of(server.address)))
        with connect(server.address, pin=known["a"].pin, time_limit=5) as link:
            assert request(link, "x").label == "ok"


def test_strangers_who_do_not_read_answers_keep_nobody_out(known):
    asked = []

    def answer(peer, message):
        asked.append(message)
        return Message("ok", {}, bytes(32 << 20))

    server = Server(
        free_address(),
        identity=known["a"],
        clients=None,
        handle=answer_requests(answer, limit=8),
        connections=4,
    )
    with server, contextlib.ExitStack() as stack:
        for _ in range(4):
            link = connect(server.address, pin=known["a"].pin, time_limit=5)
            stack.callback(link._connection.close)
            link.send(Message("x"))
        while len(asked) < 4:
            time.sleep(0.01)
        with connect(server.address, pin=known["a"].pin, time_limit=5) as link:
            assert request(link, "x", limit=32 << 20).label == "ok"


def test_fuzzed_frames_never_get_through():
    rng = np.random.default_rng(5)
    whole = frame(Message("label", {"a": 1}, b"body"))
    passed = 0
    for _ in range(10_000):
        content = bytearray(whole)
        for place in rng.integers(0, len(content), rng.integers(1, 4)):
            content[place] = rng.integers(0, 256)
        try:
            header, body = read_head(bytes(content[:HEAD]), number=0, limit=16)
            label, fields = read_fields(bytes(content[HEAD : HEAD + header]))
        except DiscreetError:
            continue
        assert header <= 1 << 16
        assert body <= 16
        assert isinstance(label, str)
        assert isinstance(fields, dict)
        passed += 1
    assert passed < 10_000


def test_errors_from_elsewhere_are_cut_and_are_nobody_elses_words():
    told = {
        "kind": "EngineError",
        "message": "x\x1b[2J" + "y" * 9999,
        "code": "ab",
        "hint": "run z",
    }
    with pytest.raises(EngineError) as caught:
        raise_error(told, "bo")
    assert "\x1b" not in caught.value.message
    assert len(caught.value.message) <= 520
    assert caught.value.message.startswith("bo says: x")
    assert (caught.value.code, caught.value.hint) == ("ab", "bo says: run z")


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "SystemExit"},
        {"kind": ["InputError"]},
        {"message": ["x"]},
        {"hint": {}},
        {"code": 5},
        {"code": "a b\n"},
    ],
)
def test_what_is_no_error_is_refused(wrong):
    told = {"kind": "InputError", "message": "x", "code": "ab", "hint": None}
    with pytest.raises(RefusedError, match="bo answered something else"):
        raise_error({**told, **wrong}, "bo")


def test_a_mesh_of_three_passes_more_than_the_buffers_hold(known):
    names = ("a", "b", "c")
    addresses = {name: free_address() for name in names}
    agreed = Agreement("p", names)
    waiting = {name: Waiting() for name in names}
    transcripts = {name: Transcript(name) for name in names}
    size = 3_000_000
    results = {}

    def run(name):
        def call(peer):
            link = connect(
                addresses[peer], pin=known[peer].pin, identity=known[name], peer=peer, patience=5
            )
            agreed.call(link, session="s", purpose="stream")
            return link

        peers = {peer: (lambda peer=peer: call(peer)) for peer in names if peer != name}
        with Mesh(
            transcripts[name], peers, list(peers), waiting=waiting[name], session="s", time_limit=20
        ) as mesh:
            got = mesh.exchange(
                "big", {p: name.encode() * size for p in peers}, dict.fromkeys(peers, size)
            )
            results[name] = {peer: bytes(body[:1]) for peer, body in got.items()}

    def accept(name):
        def handle(link):
            session, _ = agreed.meet(link)
            waiting[name].offer(session, link, time_limit=20)

        return handle

    allowed = certificates({n: known[n] for n in names})
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(
                Server(addresses[name], identity=known[name], clients=allowed, handle=accept(name))
            )
        threads = [threading.Thread(target=run, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert results == {n: {p: p.encode() for p in names if p != n} for n in names}
    for one in names:
        for other in set(names) - {one}:
            sent = transcripts[one].to_dict()["sent"][other]
            assert sent == transcripts[other].to_dict()["received"][one]
            assert sent["bytes"] > size


def test_keys_are_never_overwritten_and_files_are_checked(tmp_path):
    made = Identity.new(tmp_path, "a")
    assert made.key.stat().st_mode & 0o077 == 0
    with pytest.raises(InputError) as caught:
        Identity.new(tmp_path, "a")
    assert caught.value.code == "key-exists"
    other = Identity.new(tmp_path, "b")
    with pytest.raises(InputError) as mixed:
        Identity.read(made.certificate, other.key)
    assert mixed.value.code == "key-not-found"
    (tmp_path / "x.crt").write_text("no certificate")
    for name, code in {"x.crt": "certificate-malformed", "y.crt": "certificate-not-found"}.items():
        with pytest.raises(InputError) as wrong:
            Identity.read(tmp_path / name, made.key)
        assert wrong.value.code == code


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "", "h\u00f4pital", "a\nb", "-x", "x" * 64])
def test_names_of_parties_are_names_of_files_in_the_folder(tmp_path, name):
    with pytest.raises(InputError) as caught:
        Identity.new(tmp_path / "keys", name)
    assert caught.value.code == "name-malformed"
    assert list(tmp_path.iterdir()) == []
