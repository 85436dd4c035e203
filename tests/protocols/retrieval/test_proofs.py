"""Large proofs: thousands of keys, thousands of lies, load, timing, crashes."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from discreet.attacks.timing import Timing
from discreet.errors import DiscreetError, RefusedError
from discreet.protocols.retrieval.checking import aimed, find, is_proven, proven
from discreet.protocols.retrieval.schemes.chor import Chor
from discreet.protocols.retrieval.schemes.dpf import DPF
from discreet.protocols.retrieval.schemes.simple_pir import SimplePIR
from discreet.protocols.retrieval.statement import BLOCKS
from discreet.randomness import Randomness
from tests.protocols.retrieval.served import PUBLISHER, asker, built, people, serving
from tests.protocols.transport.parties import free_ports

READER = PUBLISHER.reader


class Home:
    """Asks the servers of a table inside this process, many keys at a time."""

    def __init__(self, table, scheme, seed=1):
        self.table, self.scheme = table, scheme
        self.state, self.part = table.statement, table.statement.part("main")
        self.shapes = self.part.shapes(scheme.arithmetic)
        self.rng = Randomness.seeded(seed)
        self.public = {
            block: table.public(self.part, block) if scheme.needs_hint else None for block in BLOCKS
        }

    def fetch(self, keys):
        """Return the targets, and for each key the answers of all servers by block."""
        targets = [find(self.part, key, self.scheme.arithmetic, self.rng) for key in keys]
        return targets, *self._answered(targets)

    def _answered(self, targets):
        asked = [
            {
                block: self.scheme.ask(
                    self.shapes[block], target.slots[block], rng=self.rng, public=self.public[block]
                )
                for block in BLOCKS
            }
            for target in targets
        ]
        answers = [{block: [] for block in BLOCKS} for _ in targets]
        for block in BLOCKS:
            held = self.table.block(self.part, block, self.scheme.arithmetic)
            for server in range(self.scheme.parties):
                given = [one[block].questions[server] for one in asked]
                found = self.scheme.answer(self.shapes[block], held, given)
                for one, answer in zip(answers, found, strict=True):
                    one[block].append(answer)
        return asked, answers

    def read(self, target, asked, answers, spoil=lambda answers: answers):
        """Return the value of a key; the second answers may be spoiled too."""
        standing = is_proven(self.state, self.part, target, self.sums(asked, answers), READER)
        aim = aimed(self.part, target, standing, self.scheme.arithmetic, self.rng)
        if aim.slots != target.slots:
            (asked,), (answers,) = self._answered([aim])
            answers = spoil(answers)
        record = self.sums(asked, answers)["filter"]
        beside = self.scheme.beside(
            self.shapes["filter"], asked["filter"], answers["filter"], self.public["filter"]
        )
        return proven(self.state, self.part, target, standing, aim, record, beside, READER)

    def sums(self, asked, answers):
        return {
            block: self.scheme.read(
                self.shapes[block], asked[block], answers[block], self.public[block]
            )
            for block in BLOCKS
        }

    def get_many(self, keys):
        return [self.read(*one) for one in zip(*self.fetch(keys), strict=True)]


def right_on(home, rows, many, step=64):
    drawn = np.random.default_rng(5)
    names = people(rows)["name"].tolist()
    for _ in range(0, many, step):
        numbers = drawn.integers(0, rows, step)
        is_there = drawn.random(step) < 0.5
        keys = [
            int(n) * 7 + (3 if there else 4) for n, there in zip(numbers, is_there, strict=True)
        ]
        for value, n, there in zip(home.get_many(keys), numbers, is_there, strict=True):
            assert (value[0] == names[n]) if there else value is None


@pytest.mark.parametrize("scheme", [DPF(), Chor(servers=3), SimplePIR()], ids=str)
def test_random_keys_present_and_absent(tmp_path, scheme):
    table = built(tmp_path, rows=700, schemes=(scheme.name,))
    right_on(Home(table, scheme), 700, 128)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "many"), [(DPF(), 10_000), (Chor(), 10_000), (SimplePIR(), 1000)]
)
def test_ten_thousand_keys_of_65536(tmp_path, scheme, many):
    table = built(tmp_path, rows=1 << 16, schemes=(scheme.name,))
    right_on(Home(table, scheme), 1 << 16, many)


def lies(home, keys, trials, drawn):
    """Count lies that were noticed: one byte changed, another row's answer, a forged absence."""
    rows = home.fetch(keys)
    caught = 0
    for trial in range(trials):
        number = trial % len(keys)
        target, asked, answers = (part[number] for part in rows)
        changed = {block: list(found) for block, found in answers.items()}
        kind = trial % 3
        other = rows[2][(number + 1) % len(keys)]
        if kind == 0:
            block = BLOCKS[drawn.integers(3)]
            body = bytearray(changed[block][0])
            body[drawn.integers(len(body))] ^= int(drawn.integers(1, 256))
            changed[block][0] = bytes(body)
        elif kind == 1:  # the answer to somebody else's question
            changed["filter"] = other["filter"]
        else:  # "absent": a range that does not list the key, signed but of another number
            changed["directory"] = other["directory"]
        neighbour = rows[0][(number + 1) % len(keys)]
        if kind == 2 and neighbour.slots["directory"] == target.slots["directory"]:
            caught += 1  # two keys of one range: nothing was changed
            continue
        with contextlib.suppress(RefusedError):
            home.read(target, asked, changed)
            continue
        caught += 1
    return caught


@pytest.mark.parametrize("scheme", [DPF(), SimplePIR()], ids=str)
@pytest.mark.parametrize("block", BLOCKS)
def test_a_spoiled_part_fails_alike_for_present_and_absent_keys(tmp_path, scheme, block):
    # Else the user's complaint, or silence, would tell the server whether the key is there.
    home = Home(built(tmp_path, rows=200, schemes=(scheme.name,)), scheme)

    def spoil(answers):
        body = bytearray(answers[block][0])
        body[7::64] = bytes(one ^ 0x80 for one in body[7::64])
        return {**answers, block: [bytes(body), *answers[block][1:]]}

    for key, is_there in ((3 + 7 * 50, True), (4 + 7 * 50, False), (10**9, False)):
        (target,), (asked,), (answers,) = home.fetch([key])
        assert (home.read(target, asked, answers) is not None) == is_there
        with pytest.raises(RefusedError) as failure:
            home.read(target, asked, spoil(answers), spoil)
        assert failure.value.code == "bad-answer"


def test_every_lie_is_noticed(tmp_path):
    table = built(tmp_path, rows=900)
    keys = [3 + 7 * n for n in range(0, 900, 90)]
    assert lies(Home(table, DPF()), keys, 300, np.random.default_rng(3)) == 300


@pytest.mark.slow
def test_ten_thousand_lies_are_noticed(tmp_path):
    table = built(tmp_path, rows=5000)
    keys = [3 + 7 * n for n in range(0, 5000, 50)]
    assert lies(Home(table, DPF()), keys, 10_000, np.random.default_rng(3)) == 10_000


def test_rows_of_an_older_version_are_noticed(tmp_path):
    first = built(tmp_path, rows=80)
    second = first.update(people(80).head(1).assign(name="new"), publisher=PUBLISHER)
    old, new = Home(first, DPF()), Home(second, DPF())
    target, asked, answers = (part[0] for part in new.fetch([3]))
    assert new.read(target, asked, answers)[0] == "new"
    block = first.block(old.part, "delta", "xor")
    stale = [
        DPF().answer(new.shapes["delta"], block, [question])[0]
        for question in asked["delta"].questions
    ]
    with pytest.raises(RefusedError):
        new.read(target, asked, answers | {"delta": stale})


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [Chor(), DPF(), SimplePIR()], ids=str)
def test_the_time_of_a_server_does_not_depend_on_the_row(tmp_path, scheme):
    table = built(tmp_path, rows=20_000, schemes=(scheme.name,))
    home = Home(table, scheme)
    shape = home.shapes["filter"]
    held = np.array(table.block(home.part, "filter", scheme.arithmetic))
    taken = np.full(200, np.inf)
    keys = [3 + 7 * n for n in range(0, 20_000, 100)]
    # In no order: where a question lies in memory shows in its time, and must not go with the row.
    slots = [[100 * int(n)] for n in np.random.default_rng(2).permutation(200)]
    if scheme.arithmetic == "xor":
        slots = [find(home.part, key, "xor", home.rng).slots["filter"] for key in keys]
    asked = [scheme.ask(shape, one, rng=home.rng, public=home.public["filter"]) for one in slots]
    for _ in range(9):
        for n in np.random.default_rng(1).permutation(200):
            started = time.thread_time()
            scheme.answer(shape, held, [asked[n].questions[0]])
            taken[n] = min(taken[n], time.thread_time() - started)
    places = [one[0] for one in slots]
    assert not Timing(level=0.001).run(taken.tolist(), places).succeeded


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
    from discreet.protocols.retrieval.serving import Serving
    from discreet.protocols.transport import Message

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
