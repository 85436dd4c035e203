"""A stranger's policy: what it may read, write, connect to, and that it ends in errors of ours."""

from __future__ import annotations

import copy
import itertools
import json
import random
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

from discreet.app.policy.access import permitted_policy
from discreet.app.policy.document import parse
from discreet.app.policy.load import validate
from discreet.app.policy.run import check_policy, run_policy
from discreet.data.keys import write_key_file
from discreet.errors import DiscreetError, InfeasibleError, InputError
from discreet.registry import families, members

POLICY = """\
data:
  source: people.csv
  unit: id
  roles: {id: identifier, region: quasi, age: quasi, sector: other, salary: confidential}
  hierarchies:
    region: {file: region.hrc, total: Land}
    age: {widths: [10, 20]}
releases:
  - name: salaries
    kind: table
    by: [sector, region]
    measure: salary
    rules: [{minimum-frequency: 3}]
  - name: records
    kind: anonymize
    models: [{k-anonymity: 2}]
    quasi: [region, age]
"""
#: Every other section of a policy and kind of release, and what a ledger is given.
WIDE = """\
data:
  source: people.csv
  unit: id
  roles: {id: identifier, region: quasi, age: quasi, sector: other, salary: confidential}
  hierarchies:
    region: {file: region.hrc, total: Land}
  vouch: [age]
  domains: {age: {bounds: [0, 120]}, sector: [IT, Fin, Agr], salary: {bounds: [0, 10000]}}
ledger: memory.db
snapshot: "2026"
audience: public
about: {title: People, units: {salary: EUR}, pdf: false}
releases:
  - {name: drawn, kind: synthesize, method: {cart: {min_leaf: 5}}, sets: 2}
  - {name: private, kind: synthesize, method: {mst: {epsilon: 1.0, delta: 1.0e-6}}}
  - {name: masked, kind: mask, methods: [{rank-swapping: {columns: [age], p: 5}}]}
  - {name: permuted, kind: permutation, sensitive: salary, k: 3, e: 100}
  - {name: counts, kind: table, by: [region, sector], method: {top-down: {rho: 1.0}}}
gateways:
  - {name: people, kind: gateway, guard: {restriction: {k: 3}}, ledger: asked.db, head: head.txt}
retrieval:
  - {name: codes, kind: retrieval-table, key: region, columns: [sector], schemes: [dpf], servers: {a: "localhost:7001", b: "localhost:7002"}}
joint:
  relation: people
  parties:
    a: {address: "localhost:7001", certificate: a.crt}
    b: {address: "localhost:7002", certificate: b.crt}
    c: {address: "localhost:7003", certificate: c.crt}
    analyst: {certificate: analyst.crt}
  owners: [a, b, c]
  nodes: [a, b, c]
  analysts: [analyst]
  keys: {sector: [IT, Fin, Agr]}
  rules: [{minimum-frequency: 3}]
search:
  vocabulary: words.csv
  index: articles.db
  disguise: {goopir: {cap: 0.2}}
server: {port: 5433, certificate: server.crt, key: server.key}
"""
SMALL = POLICY[: POLICY.index("  - name: records")]


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "policy"
    place.mkdir()
    write_data(place)
    (place / "policy.yaml").write_text(POLICY)
    return place


def write_data(place: Path) -> None:
    lines = ["id,region,age,sector,salary"]
    for n in range(60):
        sector = ["IT", "Fin", "Agr"][n % 7 % 3]
        lines.append(f"{n},0{1 + n % 4},{20 + n % 40},{sector},{1000 + (n * 7919) % 5000}")
    (place / "people.csv").write_text("\n".join(lines) + "\n")
    (place / "region.hrc").write_text("North\n@01\n@02\nSouth\n@03\n@04\n")


def refused(folder: Path, text: str, **options: object) -> InputError:
    (folder / "policy.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        check_policy(folder / "policy.yaml", **options)
    return caught.value


# -- reading the document ------------------------------------------------------------------------
def test_nesting_is_an_error_and_not_the_end_of_the_process():
    # In a process of its own: the recursive composer ends it with a segmentation fault.
    code = (
        "from discreet.app.policy.document import parse\n"
        "from discreet.errors import InputError\n"
        "for text in ('a: ' + '[' * 40_000 + ']' * 40_000, '{a: ' * 20_000, '- ' * 40_000):\n"
        "    try: parse(text)\n"
        "    except InputError as error: print(error.code, error.line)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["policy-too-deep 1"] * 3


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: " + "1:1" * 20_000, "policy-value"),
        ("a: [" + "1," * 200_000 + "]", "policy-too-large"),
        ("a: !!bool perhaps", "policy-value"),
        ("a: !!timestamp soon", "policy-value"),
        ("a: !!int ''", "policy-value"),
        ("data: {source: a.csv}\nextensions: 7", "policy-invalid"),
        ("data: ''", "policy-invalid"),
        ("data: {source: ' '}", "policy-invalid"),
        ("data: {source: a.csv}\nextensions: [[a]]", "policy-invalid"),
        ("data: {source: a.csv}\nreleases: [{name: a, kind: [table]}]", "policy-invalid"),
        ("data: {source: a.csv}\nreleases: [{name: a, kind: {table: 1}}]", "policy-invalid"),
    ],
)
def test_documents_that_ended_in_other_errors(text, code):
    with pytest.raises(InputError) as caught:
        validate(parse(text))
    assert caught.value.code == code


@pytest.mark.parametrize(
    "text",
    ["".join(f"k{n}: {n}\n" for n in range(40_000)), "releases:\n" + "- {a: 1}\n" * 20_000],
    ids=["keys", "entries"],
)
def test_thousands_of_mistakes_are_counted_and_not_all_told(text):
    """Looking for the likeliest word took a tenth of a millisecond for each of 40,000 keys."""
    document, start = parse("data: {source: a.csv}\n" + text), time.process_time()
    with pytest.raises(InputError) as caught:
        validate(document)
    assert time.process_time() - start < 2
    assert len(caught.value.facts["mistakes"]) < 110


@pytest.mark.parametrize(
    "name",
    [
        "record.json", "policy.yaml", "reports", "REPORTS", "..", ".hidden", "a/b", "a\\b", "con",
        "NUL.txt", "com1", "a.", "a ", "-o", "a\nb", "a\0b", "x" * 101, "~", "*",
    ],
)  # fmt: skip
def test_names_that_no_folder_may_have(name):
    entry = {"name": name, "kind": "describe"}
    for section in ("releases", "reports"):
        text = yaml.safe_dump({"data": {"source": "a.csv"}, section: [entry]})
        with pytest.raises(InputError) as caught:
            validate(parse(text))
        assert caught.value.line is not None


def test_two_entries_do_not_share_a_folder():
    reports = "reports: [{name: Salaries, kind: describe}]\n"
    with pytest.raises(InputError, match="used twice"):
        validate(parse(SMALL + reports))


# -- files ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("source: people.csv", "source: ../people.csv"),
        ("source: people.csv", "source: link.csv"),
        ("source: people.csv", "source: x://../../people.csv"),
        ("file: region.hrc", "file: ../region.hrc"),
        ("measure: salary", "measure: salary\n    key: ../secret.key"),
        ("measure: salary", "measure: salary\n    method: {cell-key: {key: ../secret.key}}"),
        ("measure: salary", "measure: salary\n    curator: ../page.html"),
        ("measure: salary", "measure: salary\n    apriori: ../a.hst"),
        ("k-anonymity: 2", "k-map: {k: 2, population: ../people.csv}"),
        ("source: people.csv", "source: duckdb:///../people.db#people"),
        ("source: people.csv", "source: people.csv\n  engine: duckdb:///new.db"),
        ("source: people.csv", "source: spark://local#people"),
    ],
)
def test_files_outside_the_folder_are_refused_with_their_line(folder, old, new):
    write_data(folder.parent)
    write_key_file(folder.parent / "secret.key")
    (folder / "link.csv").symlink_to(folder.parent / "people.csv")
    before = {path.name for path in folder.parent.rglob("*")}
    error = refused(folder, POLICY.replace(old, new))
    assert error.code == "not-allowed"
    assert error.line is not None
    assert "--allow" in str(error.hint) or "reports" in str(error.hint)
    assert {path.name for path in folder.parent.rglob("*")} == before


def test_the_caller_allows_files_and_folders(folder):
    write_data(folder.parent)
    text = SMALL.replace("people.csv", "../people.csv")
    (folder / "policy.yaml").write_text(text)
    for allow in (folder.parent / "people.csv", folder.parent):
        assert check_policy(folder / "policy.yaml", allow=[allow]).done
    refused(folder, text, allow=[folder.parent / "other"])


def test_every_parameter_that_names_a_file_says_so():
    words = ("_file", "key_file")
    for family in families():
        for cls in members(family).values():
            for item in cls.parameters():
                if item.name.endswith(words) or item.help.lower().startswith(("file ", "key file")):
                    assert item.file, (family, cls.name, item.name)


def test_views_of_a_strangers_database_read_no_files(folder):
    import duckdb

    (folder.parent / "secret.txt").write_text("secret")
    with duckdb.connect(str(folder / "people.db")) as base:
        base.execute(f"CREATE VIEW v AS SELECT * FROM read_text('{folder.parent}/secret.txt')")
        base.execute("CREATE TABLE t AS SELECT range AS a FROM range(9)")
    text = "data: {source: 'duckdb:///people.db#%s'}\nreports: [{name: d, kind: describe}]\n"
    assert refused(folder, text % "v").code == "not-allowed"
    (folder / "policy.yaml").write_text(text % "t")
    record = check_policy(folder / "policy.yaml")
    assert [item.file for item in record.inputs] == ["people.db"]


@pytest.mark.parametrize("encoding", ["zip", "hex", "rot13", "idna", "undefined", "no\0such"])
def test_encodings_that_are_none_of_texts(folder, encoding):
    text = SMALL.replace("unit: id", f"encoding: {json.dumps(encoding)}")
    assert refused(folder, text).code == "unknown-encoding"


# -- connections ---------------------------------------------------------------------------------
@pytest.fixture
def listener():
    """A server that asks for a password in clear text and keeps what it is sent."""
    heard: list[bytes] = []

    def talk(client: socket.socket) -> None:
        size, code = struct.unpack("!II", client.recv(8))
        if code == 80877103:  # asks for TLS
            client.sendall(b"N")
            size, code = struct.unpack("!II", client.recv(8))
        heard.append(client.recv(size - 8))
        client.sendall(b"R" + struct.pack("!II", 8, 3))
        heard.append(client.recv(1000))

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            heard.append(b"connected")
            with client:
                try:
                    talk(client)
                except (OSError, struct.error):
                    continue

    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1], heard
    server.close()


def test_no_credential_of_the_environment_reaches_a_named_host(folder, listener, monkeypatch):
    pytest.importorskip("psycopg")
    port, heard = listener
    (folder / "pass").write_text("*:*:*:*:hunter3\n")
    (folder / "pass").chmod(0o600)
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    monkeypatch.setenv("PGPASSFILE", str(folder / "pass"))
    monkeypatch.setenv("PGOPTIONS", "-c search_path=mine")
    server = f"postgresql://ana@127.0.0.1:{port}/db"
    text = f"data: {{source: '{server}#people'}}\n"
    error = refused(folder, text)
    assert error.code == "not-allowed"
    assert error.line == 1
    assert not heard
    for extra in ("?sslmode=disable", "?hostaddr=127.0.0.1", "?passfile=/etc/passwd"):
        (folder / "policy.yaml").write_text(text.replace("/db#", f"/db{extra}#"))
        with pytest.raises(InputError):
            permitted_policy(folder / "policy.yaml", allow=[server])
    assert not heard

    (folder / "policy.yaml").write_text(text + "reports: [{name: d, kind: describe}]\n")
    with pytest.raises(DiscreetError) as caught:
        check_policy(folder / "policy.yaml", allow=[server])
    assert caught.value.code == "cannot-connect"
    assert heard
    assert not any(b"hunter" in said or b"search_path" in said for said in heard)

    with pytest.raises(DiscreetError):
        check_policy(folder / "policy.yaml", allow=[server], password="given by the caller")
    assert any(b"given by the caller" in said for said in heard)


# -- the record and its folder -------------------------------------------------------------------
def test_the_copy_holds_no_password_and_stays_yaml(folder):
    from discreet.app.policy.copy import published_text

    for text in (
        "data: {source: 'postgresql://ana:pa:ss@w@h/db#t'}  # postgresql://bo:pass@h/db\n",
        '{data: {source: "postgresql://ana:pass%20w@h/db#t"}, server: {users: {}}}',
        'data:\n  source: "postgresql://ana:pa ss\'w@h/db?sslpassword=pass#t"\nserver: {port: 1}\n',
        'data: {source: "\\x70ostgresql://ana:pass@h/db#t"}\n',
    ):
        copy = published_text(text)
        assert "pass" not in copy.replace("sslpassword", ""), copy
        assert set(parse(copy).data) == {"data"}
        assert "ana@h/db" in parse(copy).data["data"]["source"]


def test_the_record_names_key_files_and_is_keyed(folder):
    key = write_key_file(folder / "secret.key")
    (folder / "policy.yaml").write_text(SMALL + "    key: secret.key\n")
    records = [
        run_policy(folder / "policy.yaml", folder / out, fingerprint_key=given)
        for out, given in (("a", b"k" * 32), ("b", b"k" * 32), ("c", None))
    ]
    files = [{item.file: item.fingerprint for item in record.inputs} for record in records]
    assert set(files[0]) == {"people.csv", "region.hrc", "secret.key"}
    assert files[0] == files[1] != files[2]
    assert key.read_text().strip() not in (folder / "a" / "record.json").read_text()
    assert stat.S_IMODE((folder / "a" / "record.json").stat().st_mode) == 0o600


def test_only_keeps_the_other_releases_and_their_record(folder):
    out = folder / "out"
    whole = run_policy(folder / "policy.yaml", out)
    part = run_policy(folder / "policy.yaml", out, only=("salaries",))
    assert [item.name for item in part.done] == ["salaries", "records"]
    assert [run.time for run in part.earlier] == [whole.time]
    assert part.done[1] == whole.done[1]
    assert (out / "records" / "evidence.json").exists()


def test_files_of_earlier_releases_go_and_foreign_files_are_refused(folder):
    out = folder / "out"
    run_policy(folder / "policy.yaml", out)
    (folder / "policy.yaml").write_text(SMALL)
    run_policy(folder / "policy.yaml", out)
    assert {p.name for p in out.iterdir()} == {"salaries", "record.json", "policy.yaml"}
    (out / "notes.txt").write_text("mine")
    with pytest.raises(InputError) as caught:
        run_policy(folder / "policy.yaml", out)
    assert caught.value.code == "foreign-files"
    assert (out / "notes.txt").read_text() == "mine"


def test_curator_pages_of_a_policy_are_reports(folder):
    (folder / "policy.yaml").write_text(SMALL + "    curator: page.html\n")
    run_policy(folder / "policy.yaml", folder / "out")
    assert (folder / "out" / "reports" / "page.html").exists()
    assert not (folder / "page.html").exists()


# -- what check says -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("    age: {widths: [10, 20]}\n", "", "missing-hierarchy"),
        ("k-anonymity: 2", "k-anonymity: 2000", "too-few-records"),
        ("measure: salary", "measure: salary\n    key: missing.key", "key-not-found"),
    ],
)
def test_what_release_cannot_do_fails_check(folder, old, new, code):
    (folder / "policy.yaml").write_text(POLICY.replace(old, new))
    for attempt in (check_policy, lambda path: run_policy(path, folder / "out")):
        with pytest.raises((InputError, InfeasibleError)) as caught:
            attempt(folder / "policy.yaml")
        assert caught.value.code == code
    assert not (folder / "out").exists()


# -- generated -----------------------------------------------------------------------------------
_WORDS = [
    None, True, -1, 0, 3, 1e308, float("nan"), "", "a", "people.csv", "../people.csv", "/etc/passwd",
    "duckdb:///x.db#t", "duckdb:////etc/passwd#t", "postgresql://127.0.0.1:1/x#t", "table", "\0",
    "~/.pgpass", "é" * 300, [], {}, [[]], [1, "a"], {"a": 1}, {"name": "table"}, "2024-01-01", "region",
    "salary", "zip", ",", "file:///etc/passwd", "*.csv", "suppression", {"k-anonymity": 3},
]  # fmt: skip


def mutated(source: random.Random) -> str:
    data = yaml.safe_load(source.choice([POLICY, WIDE]))
    for _ in range(source.randint(1, 3)):
        holders = [data]
        for holder in holders:
            inner = holder.values() if isinstance(holder, dict) else holder
            holders += [one for one in inner if isinstance(one, dict | list) and one]
        holder = source.choice(holders)
        place = source.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        kind = source.randrange(4)
        if kind == 0:
            del holder[place]
        elif kind == 1 and isinstance(holder, dict):
            holder[str(source.choice(_WORDS))] = copy.deepcopy(holder[place])
        else:
            # A copy: a word put into itself by a later change would have no end.
            holder[place] = copy.deepcopy(source.choice(_WORDS))
        if not data:
            break
    text = yaml.safe_dump(data, allow_unicode=True)
    if source.random() < 0.2:
        place = source.randrange(len(text))
        text = text[:place] + source.choice("{[:&*!%@`\t\"'") + text[place + 1 :]
    return text


#: Where a policy may name something of the machine, and what a stranger would name there.
_PLACES = [
    ("source: people.csv", "source: {}"),
    ("file: region.hrc", "file: {}"),
    ("measure: salary", "measure: salary\n    key: {}"),
    ("measure: salary", "measure: salary\n    curator: {}"),
    ("measure: salary", "measure: salary\n    apriori: {}"),
    ("k-anonymity: 2", "k-map: {{k: 2, population: {}}}"),
    ("unit: id", "unit: id\n  engine: {}"),
    ("releases:", "ledger: {}\nreleases:"),
    ("ledger: memory.db", "ledger: {}"),
    ("ledger: asked.db", "ledger: {}"),
    ("audience: public", "sign: {}"),
    ("head: head.txt", "head: {}"),
    ("certificate: a.crt", "certificate: {}"),
    ("vocabulary: words.csv", "vocabulary: {}"),
    ("index: articles.db", "index: {}"),
    ("key: server.key", "key: {}"),
]
_NAMED = [
    "../../etc/passwd", "/etc/shadow", "/proc/self/environ", "/dev/zero", "/dev/stdin", "~/.pgpass",
    "file:///etc/passwd", "http://127.0.0.1:9/x.csv", "s3://bucket/people.parquet", "\\\\host\\share",
    "postgresql://ana@127.0.0.1:9/db#people", "spark://127.0.0.1:9#people", "duckdb:////tmp/x.db#t",
    "people.csv/../../people.csv", "*", "people.csv#salary", "data:text/csv,a", "|id", "$HOME/x.csv",
]  # fmt: skip
#: What means nothing to a path and is taken for the name of a file in the policy's own folder.
_INSIDE = {
    "~/.pgpass", "file:///etc/passwd", "http://127.0.0.1:9/x.csv", "s3://bucket/people.parquet",
    "\\\\host\\share", "people.csv#salary", "data:text/csv,a", "|id", "$HOME/x.csv",
}  # fmt: skip
#: Documents that are out to exhaust the reader.
_BOMBS = [
    "a: &a [1, 1]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)),
    "&a [*a]", "? {a: [}\n", "<<: *x", "!!python/object/apply:os.system [id]", "%YAML 9.9\n---\na: 1",
    "a: " + "'" * 99_999, "a: 0x" + "f" * 90_000, "---\n" * 30_000, "a: |\n" + " x\n" * 60_000,
    "[" * 200, "a: 1e" + "9" * 5_000, "a: 1_" * 9_000, "\ufeff\ufeffdata: 1", "a: \x85b\u2028c",
]  # fmt: skip


def reaching(third: int | None) -> list[tuple[int, int]]:
    """Return which place names what: a third of the pairs has every place and every name."""
    pairs = itertools.product(range(len(_PLACES)), range(len(_NAMED)))
    return [(p, n) for p, n in pairs if third is None or (p + n) % 3 == third]


def hostile(third: int | None = None) -> list[str]:
    """Return policies that reach for files, servers and memory that are not theirs."""
    found = []
    for place, name in reaching(third):
        old, new = _PLACES[place]
        text = POLICY if old in POLICY else WIDE
        found.append(text.replace(old, new.format(json.dumps(_NAMED[name]))))
    return found + _BOMBS


_WATCHED = """
import json, os, signal, sys
from pathlib import Path
sys.path[:0] = json.loads(os.environ["DISCREET_TEST_PATH"])
from tests.app.test_policy_hostile import hostile, mutated
import random
from discreet.app.policy.run import check_policy
import discreet
from discreet.dp.libraries import opendp
from discreet.errors import DiscreetError

code = str(Path(discreet.__file__).parent)  # compiled functions are kept beside their sources
folder, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
texts = hostile(-1 - first if first > -4 else None) if first < 0 else [mutated(random.Random(n)) for n in range(first, first + count)]
check_policy(folder / "policy.yaml")  # imports nearly everything
opendp()  # an import that the limit below interrupts cannot be repeated
home, touched, on = str(folder.resolve()), [], False

def watch(event, arguments):
    if not on:
        return
    if event == "socket.connect":
        touched.append(("connect", str(arguments[1])))
    if event == "open" and isinstance(arguments[0], str | bytes):
        file = os.path.realpath(os.fsdecode(arguments[0]))
        own = file.startswith((home, code, sys.prefix, sys.base_prefix)) or file.endswith((".py", ".pyc", ".so"))
        own = own or file == f"/proc/{os.getpid()}/maps"  # a library looks up which others are loaded
        if not own:
            touched.append(("open", file))

sys.addaudithook(watch)
crashes, told, passed = [], 0, []
def hangs(*_):
    raise TimeoutError("more than two seconds of work")
signal.signal(signal.SIGPROF, hangs)
for seed, text in enumerate(texts):
    (folder / "mutant.yaml").write_bytes(text.encode("utf-8", "replace"))
    on = True
    signal.setitimer(signal.ITIMER_PROF, 2)
    try:
        check_policy(folder / "mutant.yaml")
        passed.append(seed)
    except DiscreetError:
        told += 1
    except Exception as error:
        import traceback
        place = traceback.extract_tb(error.__traceback__)[-1]
        crashes.append((seed, type(error).__name__, str(error)[:80], f"{place.filename}:{place.lineno}"))
    signal.setitimer(signal.ITIMER_PROF, 0)
    on = False
left = sorted(p.name for p in folder.iterdir())
print(json.dumps({"crashes": crashes, "touched": touched, "told": told, "left": left, "passed": passed}))
"""


def watched(folder: Path, first: int, count: int) -> dict:
    import os

    path = json.dumps([str(Path(__file__).parents[2]), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED, str(folder), str(first), str(count)],
        capture_output=True,
        text=True,
        timeout=60 + 2 * count,
        env={**os.environ, "DISCREET_TEST_PATH": path, "PGPASSWORD": "hunter2"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def judge(found: dict, count: int) -> None:
    assert found["crashes"] == []
    assert found["touched"] == []
    assert found["left"] == ["mutant.yaml", "people.csv", "policy.yaml", "region.hrc"]
    assert found["told"] > count // 2


@pytest.mark.parametrize(
    "third", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, None))]
)
def test_hostile_policies_touch_nothing_and_end_in_our_errors(folder, third):
    many = len(hostile(third))
    assert many >= 100
    found = watched(folder, -4 if third is None else -1 - third, many)
    judge(found, many)
    pairs = reaching(third)
    # Some names are those of files that may be made in the folder, however strange they look.
    for number in found["passed"]:
        place, name = pairs[number]
        page = _PLACES[place][1].endswith("curator: {}")  # a name in the folder of reports
        assert page or _NAMED[name] in _INSIDE, (_PLACES[place], _NAMED[name])


def test_mutated_policies_touch_nothing_else_and_end_in_our_errors(folder):
    judge(watched(folder, 0, 100), 100)


@pytest.mark.slow
def test_five_thousand_mutated_policies(folder):
    for first in range(0, 5_000, 500):
        judge(watched(folder, 10_000 + first, 500), 500)


def test_addresses_of_spark_are_allowed_with_their_options_and_paths(tmp_path):
    from discreet.app.policy.access import Access

    def allowed(address: str, *allow: str) -> bool:
        try:
            return Access(tmp_path, allow).file(address, "read") == address
        except InputError as error:
            if error.code != "not-allowed":
                raise
            return False

    master, kept = "spark://host:7077", "spark://host:7077?warehouse=/data"
    assert not allowed(f"{master}#people")
    assert allowed("spark://HOST:7077#people", master)
    assert allowed(f"{kept}#people", kept)
    # Options decide what is read and run: a jar, another warehouse, one that differs in a letter.
    assert not allowed(f"{kept}#people", master)
    assert not allowed(f"{master}#people", kept)
    assert not allowed("spark://host:7077?warehouse=/Data#people", kept)
    assert not allowed(f"{kept}&spark.jars=/tmp/x.jar#people", kept)
    # So does a path: it must lie where files may be read, or be allowed as a whole.
    assert not allowed(f"{master}#/etc/people", master)
    assert not allowed(f"{master}#parquet:/etc/people", master)
    assert not allowed(f"{master}#parquet:{tmp_path}/../people", master)
    assert not allowed(f"{master}#parquet:file:///etc/people", master)
    assert not allowed(f"{master}#s3a://bucket/people", master)
    assert allowed(f"{master}#parquet:{tmp_path}/people", master)
    assert allowed(f"{master}#/etc/people", master, "/etc")
    assert allowed(f"{master}#s3a://bucket/people", f"{master}#s3a://bucket/people")
