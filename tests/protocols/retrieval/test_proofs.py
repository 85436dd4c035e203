"""Large proofs: thousands of keys, thousands of lies, load, timing, crashes."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from discreet.attacks.timing import Timing
from discreet.errors import DiscreetError, RefusedError
from discreet.protocols.retrieval.asking import Retrieval
from discreet.protocols.retrieval.checking import find
from discreet.protocols.retrieval.schemes import simple_pir
from discreet.protocols.retrieval.schemes.chor import Chor
from discreet.protocols.retrieval.schemes.dpf import DPF
from discreet.protocols.retrieval.schemes.simple_pir import SimplePIR
from discreet.protocols.retrieval.schemes.whole_table import WholeTable
from discreet.protocols.retrieval.serving import Serving
from discreet.protocols.transport import Message
from discreet.randomness import Randomness
from tests.protocols.retrieval.served import PUBLISHER, asker, built, people, serving
from tests.protocols.retrieval.test_schemes import kept_rows
from tests.protocols.transport.parties import free_ports


class Home(Retrieval):
    """A user whose servers are in this process: the same messages and checks, without a network."""

    def __init__(self, table, scheme, **options):
        addresses = [f"home:{n + 1}" for n in range(scheme.parties)]
        public = PUBLISHER.reader.public
        options |= {"pins": addresses, "publisher": public, "scheme": scheme}
        super().__init__(addresses, table="people", **options)
        self.serving = Serving({"people": table.folder.parent}, rate=1e9, burst=10**9)
        #: What becomes of an answer on the way: server, its message, and the answer.
        self.spoil = unspoiled
        #: Everything that the servers were sent.
        self.seen = []

    def _wait(self):
        pass  # nobody here looks at a clock

    def _link(self, server):
        return self._links.setdefault(server, Inside(self, server))


def unspoiled(server, asked, body):
    return body


class Inside:
    """A link to a server in this process."""

    def __init__(self, home, server):
        self.home, self.server = home, server

    def send(self, message):
        home = self.home
        home.seen.append((self.server, message.label, message.fields, len(message.body)))
        self.reply = home.serving.answer("", message)
        if message.label == "ask":
            body = home.spoil(self.server, message, bytes(self.reply.body))
            self.reply = Message(self.reply.label, self.reply.fields, body)

    def receive(self, *, limit, time_limit=None):
        assert len(self.reply.body) <= limit
        return self.reply

    def abort(self):
        pass

    close = abort


def right_on(home, rows, many, step=64):
    drawn = np.random.default_rng(5)
    names = people(rows)["name"].tolist()
    for _ in range(0, many, step):
        numbers = drawn.integers(0, rows, step)
        is_there = drawn.random(step) < 0.5
        keys = [
            int(n) * 7 + (3 if there else 4) for n, there in zip(numbers, is_there, strict=True)
        ]
        found = home.get_many(keys).set_index("id")["name"].to_dict()
        wanted = {
            key: names[n] for key, n, there in zip(keys, numbers, is_there, strict=True) if there
        }
        assert found == wanted


SCHEMES = [DPF(), *(Chor(servers=n) for n in (2, 3, 4, 5)), SimplePIR(), WholeTable()]


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_random_keys_present_and_absent(tmp_path, scheme):
    table = built(tmp_path, rows=700, schemes=(scheme.name,), places=64)
    right_on(Home(table, scheme), 700, 64)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [DPF(), Chor(), Chor(servers=5), SimplePIR()], ids=str)
def test_ten_thousand_keys_of_65536(tmp_path, scheme, monkeypatch):
    monkeypatch.setattr(simple_pir, "public_rows", kept_rows)
    table = built(tmp_path, rows=1 << 16, schemes=(scheme.name,), places=256)
    right_on(Home(table, scheme, batch=64), 1 << 16, 10_000)


def other_servers(table, scheme):
    """Return a server that stayed behind the version of a table, and one of another table."""
    folder = table.folder.parent
    rows = table.statement.rows
    shutil.copytree(folder, folder.parent / "before")
    changed = people(rows)[::9].assign(name="new")
    table.update(changed, publisher=PUBLISHER, publishable=True)
    other = people(rows).assign(name="somebody else")
    made = built(folder.parent / "other", data=other, schemes=(scheme.name,), places=64)
    made.update(changed, publisher=PUBLISHER, publishable=True)
    places = {"older": folder.parent / "before", "another table": made.folder.parent}
    return {
        name: Serving({"people": place}, rate=1e9, burst=10**9) for name, place in places.items()
    }


def noticed(home, lie, key, others, drawn):
    """Return whether a lie about a key was noticed; None if it changed nothing."""
    turn, liar = (int(drawn.integers(n)) for n in (2, home.scheme.parties))
    # By how much the sum of the answers changes: the shares of a right sum are not a lie.
    moved = 0

    def spoil(server, asked, body):
        nonlocal moved
        if asked.fields["r"] != turn:
            return body
        if lie == "a byte":
            made = bytearray(body)
            if server == liar:
                made[drawn.integers(len(made))] ^= int(drawn.integers(1, 256))
        elif lie in ("another row", "forged absence"):  # from all servers, so that it adds up
            made = others[lie][turn, server]
        else:
            version = 1 if lie == "older" else 2
            fields = {**asked.fields, "v": version}
            made = others[lie].answer("", Message("ask", fields, asked.body)).body
        moved ^= int.from_bytes(made) ^ int.from_bytes(body)
        return bytes(made)

    home.seen.clear()
    home.spoil = spoil
    try:
        home.get(key)
    except RefusedError as error:
        return error.code == "bad-answer" and moved != 0
    finally:
        home.spoil = unspoiled
    return None if moved == 0 else False


def answers_about(home, key):
    """Return the answers to an honest look-up, by round and server."""
    kept = {}

    def keep(server, asked, body):
        kept[asked.fields["r"], server] = body
        return body

    home.spoil = keep
    home.get(key)
    home.spoil = unspoiled
    return kept


LIES = ("a byte", "another row", "a byte", "older", "forged absence", "a byte", "another table")


def lies(table, scheme, trials):
    """Tell so many lies of five kinds; return how many were noticed."""
    others = other_servers(table, scheme)
    home, drawn = Home(table, scheme), np.random.default_rng(3)
    # Rows that were changed, rows that were not, and keys that are absent.
    keys = [3 + 7 * n for n in range(0, table.statement.rows, 5)] + [4, 11, 10**9]
    assert home.get(3)["name"] == "new"
    home.seen.clear()
    home.get(3)
    usual = list(home.seen)
    told = caught = 0
    for trial in range(10 * trials):
        lie = LIES[trial % len(LIES)]
        key, neighbour = (keys[int(n)] for n in drawn.choice(len(keys), 2, replace=False))
        if lie == "another row":
            others[lie] = answers_about(home, neighbour)
        elif lie == "forged absence":
            others[lie] = answers_about(home, 10**9 + trial)
        found = noticed(home, lie, key, others, drawn)
        # What a user sends is the same after a lie as after the truth.
        assert home.seen == usual
        told += found is not None
        caught += bool(found)
        if told == trials:
            break
    assert told == trials
    return caught


@pytest.mark.parametrize("scheme", [DPF(), SimplePIR()], ids=str)
@pytest.mark.parametrize("turn", [0, 1])
def test_a_spoiled_answer_fails_alike_for_present_and_absent_keys(tmp_path, scheme, turn):
    # Else the user's complaint, or silence, would tell the server whether the key is there.
    home = Home(built(tmp_path, rows=200, schemes=(scheme.name,), places=64), scheme)

    def spoil(server, asked, body):
        made = bytearray(body)
        if server == 0 and asked.fields["r"] == turn:
            made[7::64] = bytes(one ^ 0x80 for one in made[7::64])
        return bytes(made)

    for key, is_there in ((3 + 7 * 50, True), (4 + 7 * 50, False), (10**9, False)):
        home.spoil = unspoiled
        assert (home.get(key) is not None) == is_there
        home.spoil = spoil
        with pytest.raises(RefusedError) as failure:
            home.get(key)
        assert failure.value.code == "bad-answer"


class Traced(Home):
    """Notes every function that the user runs between the first answers and the second message."""

    calls: list

    def _all(self, fields, bodies, size):
        sys.setprofile(None)
        found = super()._all(fields, bodies, size)
        self.calls = []
        if fields["r"] == 0:
            sys.setprofile(self._note)
        else:
            self.calls, self.between = [], self._before
        self._before = self.calls
        return found

    def _note(self, frame, event, _):
        if event == "call":
            self.calls.append(frame.f_code.co_name)


@pytest.mark.parametrize("scheme", [DPF(), Chor(), SimplePIR()], ids=str)
def test_a_user_does_the_same_whatever_the_first_answers_say(tmp_path, scheme):
    # A server with a clock saw the second message leave later for keys that are not there.
    table = built(tmp_path, rows=200, schemes=(scheme.name,), places=64)
    changed = people(200)[:20].assign(name="new")
    table = table.update(changed, deleted=[150], publisher=PUBLISHER, publishable=True)
    home = Traced(table, scheme)
    home.get(3)
    traces = {}
    for key in (3, 150, 3 + 7 * 100, 3 + 7 * 101, 4, 11, 10**9):
        home.get(key)
        traces[key] = home.between
    assert len(traces[3]) > 20
    assert all(trace == traces[3] for trace in traces.values())


LIED_TO = [DPF(), Chor(servers=3), SimplePIR(), WholeTable()]


@pytest.mark.parametrize("scheme", LIED_TO, ids=str)
def test_every_lie_is_noticed(tmp_path, scheme):
    table = built(tmp_path / "right", rows=300, schemes=(scheme.name,), places=64)
    assert lies(table, scheme, 60) == 60


@pytest.mark.slow
@pytest.mark.parametrize("scheme", LIED_TO, ids=str)
def test_ten_thousand_lies_are_noticed(tmp_path, scheme):
    table = built(tmp_path / "right", rows=500, schemes=(scheme.name,), places=64)
    assert lies(table, scheme, 2500) == 2500  # for each of four schemes


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [Chor(), DPF(), SimplePIR()], ids=str)
def test_the_time_of_a_server_does_not_depend_on_the_row(tmp_path, scheme):
    table = built(tmp_path, rows=20_000, schemes=(scheme.name,))
    part, rng = table.statement.part("main"), Randomness.seeded(1)
    shape = part.shapes(scheme.arithmetic)["filter"]
    public = table.public(part, "filter") if scheme.needs_hint else None
    held = np.array(table.block(part, "filter", scheme.arithmetic))
    drawn = np.random.default_rng(1)

    def asked(number):
        slots = [number]
        if scheme.arithmetic == "xor":
            slots = find(part, 3 + 7 * number, "xor", rng).slots["filter"]
        return slots[0], scheme.ask(shape, slots, rng=rng, public=public).questions[0]

    def seconds(question):
        started = time.thread_time()
        scheme.answer(shape, held, [question])
        return time.thread_time() - started

    places, questions = zip(*(asked(100 * n) for n in range(200)), strict=True)
    taken = np.full(200, np.inf)
    for _ in range(9):
        # Another order each time: when a question is measured in a round shows in its time.
        for n in drawn.permutation(200):
            taken[n] = min(taken[n], seconds(questions[n]))
    assert not Timing(level=0.001).run(taken.tolist(), places).succeeded
    # Two rows, thousands of fresh questions in random order.
    rows = drawn.integers(0, 2, 3000).tolist()
    taken = [seconds(asked((5, 19_999)[row])[1]) for row in rows]
    assert not Timing(level=0.001).run(taken, rows).succeeded


@pytest.mark.slow
def test_sixteen_clients_at_once(tmp_path):
    table = built(tmp_path, rows=20_000)
    names = people(20_000)["name"].tolist()
    wrong, done = [], [0]
    until = time.monotonic() + float(os.environ.get("DISCREET_LOAD_SECONDS", "20"))
    with serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _):

        def work(seed):
            drawn = np.random.default_rng(seed)
            with asker(addresses, pins) as retrieval:
                while time.monotonic() < until:
                    n = int(drawn.integers(20_000))
                    try:
                        if retrieval.get(3 + 7 * n)["name"] != names[n]:
                            wrong.append(n)
                        done[0] += 1
                    except DiscreetError as error:
                        wrong.append(str(error))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert not wrong, wrong[:3]
    assert done[0] > 100


@pytest.mark.slow
def test_a_server_that_is_killed_is_named_and_clients_recover(tmp_path):
    from discreet.protocols.services.retrieval_table import RetrievalTableService

    ports = free_ports(2)
    (tmp_path / "policy.yaml").write_text(
        f"""
data: {{source: people.csv, roles: {{id: other, name: other}}}}
retrieval:
  - {{name: people, kind: retrieval-table, key: id, columns: [name],
      servers: {{a: "127.0.0.1:{ports[0]}", b: "127.0.0.1:{ports[1]}"}}}}
""",
        encoding="utf-8",
    )
    people(50)[["id", "name"]].to_csv(tmp_path / "people.csv", index=False)
    command = [sys.executable, "-m", "discreet", "retrieve"]
    policy = str(tmp_path / "policy.yaml")
    subprocess.run([*command, "build", policy], check=True, capture_output=True)

    def start(name):
        return subprocess.Popen(
            [*command, "serve", policy, "--server", name],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    running = {name: start(name) for name in "ab"}
    service = RetrievalTableService(
        key="id", servers={n: f"127.0.0.1:{p}" for n, p in zip("ab", ports, strict=True)}
    )
    try:
        retrieval = None
        for _ in range(200):
            try:
                context = service.asking(tmp_path, name="people")
                retrieval = context.__enter__()
                assert retrieval.get(3)["name"] == "person 0"
                break
            except DiscreetError:
                time.sleep(0.2)
        assert retrieval is not None
        running["b"].send_signal(signal.SIGKILL)
        running["b"].wait()
        with pytest.raises(DiscreetError) as caught:
            retrieval.get(3)
        assert str(ports[1]) in str(caught.value)
        running["b"] = start("b")
        for _ in range(200):
            try:
                assert retrieval.get(10)["name"] == "person 1"
                break
            except DiscreetError:
                time.sleep(0.2)
        assert retrieval.get(17)["name"] == "person 2"
        context.__exit__(None, None, None)
    finally:
        for one in running.values():
            one.kill()
            one.wait()


@pytest.mark.slow
def test_ten_thousand_fuzzed_messages_are_refused(tmp_path):
    table = built(tmp_path, rows=100, schemes=("dpf", "simple-pir"))
    one = Serving({"people": table.folder.parent}, rate=1e9, burst=10**9)
    drawn = np.random.default_rng(6)
    values = [
        "people",
        0,
        1,
        2,
        "main",
        "dpf",
        "chor",
        -1,
        10**12,
        None,
        [],
        {},
        "x" * 50,
        0.5,
        True,
    ]
    refused = 0
    for _ in range(10_000):
        label = ["ask", "hint", "statement", "metrics", "", "x"][drawn.integers(6)]
        fields = {
            name: values[drawn.integers(len(values))] for name in "tvpsnfor" if drawn.random() < 0.8
        }
        try:
            one.answer("", Message(label, fields, drawn.bytes(int(drawn.integers(0, 2000)))))
        except DiscreetError:
            refused += 1
    assert refused > 6000
