"""Fragments answer as the whole relation does, and no cloud holds a forbidden pair."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
import stat

import numpy as np
import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli import main as cli
from discreet.attacks.record_order import RecordOrder
from discreet.errors import DiscreetError, EngineError, InfeasibleError, InputError, RefusedError
from discreet.protocols.fragments.asking import Fragments
from discreet.protocols.fragments.circle import Circle
from discreet.protocols.fragments.clouds import ROW_ID
from discreet.protocols.fragments.colouring import colour
from discreet.protocols.fragments.serving import CloudServer
from discreet.protocols.joint.contacts import Contacts
from discreet.protocols.joint.local import free_ports
from discreet.protocols.transport import Identity, request

ROLES = {"name": "identifier", "zip": "quasi", "age": "quasi", "debt": "confidential"}


def people(n=400, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "name": [f"p{place}" for place in range(n)],
            "zip": rng.choice(list("abcdef"), n),
            "age": rng.integers(20, 70, n),
            "debt": rng.permutation(n) + 0.5,
            "score": rng.normal(0, 1, n),
        }
    )


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clouds")
    clouds = [f"duckdb:///{folder}/{name}.db" for name in "abc"]
    data = dc.read(people(), name="people", roles=ROLES)
    found = dc.fragment(
        data, clouds, keys=folder / "keys.json", forbidden=[("zip", "age"), ("debt", "zip")]
    )
    return folder, found


STATEMENTS = [
    "SELECT zip, COUNT(*) AS n FROM people GROUP BY zip ORDER BY zip",
    "SELECT zip, SUM(debt) AS debt, AVG(age) AS age FROM people GROUP BY zip ORDER BY zip",
    "SELECT COUNT(*) AS n, SUM(debt) AS debt FROM people WHERE zip = 'a' AND age > 40 AND debt > 99",
    "SELECT COUNT(*) AS n FROM people WHERE zip = 'a' OR age > 60",
    "SELECT name, debt FROM people WHERE age = 33 AND zip = 'b' ORDER BY name",
    "SELECT MIN(debt) AS low, MAX(score) AS high FROM people WHERE name = 'p7'",
    "SELECT COUNT(*) AS n FROM people WHERE age > 900 AND debt > 0",
    "SELECT COUNT(*) AS n FROM people",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_answers_equal_the_central_ones(split, sql):
    require_central(split[1], sql)


def require_central(fragments, sql):
    import duckdb

    with duckdb.connect() as connection:
        connection.register("people", people())
        central = connection.execute(sql).fetch_df()
    found = fragments.ask(sql)
    assert list(found.frame.columns) == list(central.columns)
    assert len(found.frame) == len(central)
    for name in central:
        ours, theirs = found.frame[name].tolist(), central[name].tolist()
        assert ours == pytest.approx(theirs) if central[name].dtype != object else ours == theirs


def test_no_cloud_holds_a_forbidden_pair(split):
    import duckdb

    folder, fragments = split
    for name, columns in zip("abc", fragments.columns, strict=False):
        with duckdb.connect(str(folder / f"{name}.db"), read_only=True) as connection:
            rows = connection.execute("SELECT * FROM people").fetch_df()
        assert set(rows.columns) == {*columns, ROW_ID}
        assert not {"name", "debt"} <= set(columns)
        assert not {"zip", "age"} <= set(columns)
        assert not {"zip", "debt"} <= set(columns)
    mode = stat.S_IMODE((folder / "keys.json").stat().st_mode)
    assert mode == 0o600


@pytest.fixture
def two_databases(postgres_url):
    """Two databases of one server, as two clouds would have them."""
    import psycopg

    names = [f"cloud_{secrets.token_hex(4)}" for _ in range(2)]
    with psycopg.connect(postgres_url, autocommit=True) as server:
        for name in names:
            server.execute(f'CREATE DATABASE "{name}"')
        yield [f"{postgres_url.rpartition('/')[0]}/{name}" for name in names]
        for name in names:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def test_clouds_may_be_postgresql(two_databases, tmp_path):
    import psycopg

    data = dc.read(people(), name="people", roles=ROLES)
    fragments = dc.fragment(
        data,
        [*two_databases, f"duckdb:///{tmp_path}/c.db"],
        keys=tmp_path / "keys.json",
        forbidden=[("zip", "age"), ("debt", "zip")],
    )
    for sql in STATEMENTS:
        require_central(fragments, sql)
    found = fragments.covariances(["age", "debt", "score"])
    assert np.allclose(found.frame, people()[["age", "debt", "score"]].cov(), rtol=1e-4, atol=1e-3)
    for address, columns in zip(two_databases, fragments.columns, strict=False):
        with psycopg.connect(address) as cloud:
            known = cloud.execute(
                "SELECT table_name, column_name FROM information_schema.columns "
                "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
            ).fetchall()
        assert set(known) == {("people", name) for name in (*columns, ROW_ID)}
        assert not {"name", "debt"} <= set(columns)
        assert not {"zip", "age"} <= set(columns)


def test_lists_of_rows_hide_how_many_are_wanted(split):
    _, fragments = split
    asked = fragments.ask("SELECT name, debt FROM people WHERE name = 'p7' AND debt > 0").asked
    fetched = [said for several in asked.values() for said in several if " rows" in said]
    assert fetched
    assert all(said.endswith(("of 64 rows", "of 128 rows")) for said in fetched)


def test_a_question_that_is_repeated_lists_the_same_rows(split, monkeypatch):
    _, fragments = split
    sent = []
    fetch = Fragments.fetch

    def spy(self, cloud, query):
        sent.append(query.sql())
        return fetch(self, cloud, query)

    monkeypatch.setattr(Fragments, "fetch", spy)
    said = []
    for _ in range(2):
        sent.clear()
        fragments.ask("SELECT name, debt FROM people WHERE name = 'p7' AND debt > 0")
        said.append([one for one in sent if " IN (" in one])
    assert said[0] == said[1] != []


@contextlib.contextmanager
def beside(fragments, folder):
    """Yield the circle of programs beside the databases, which run in threads here."""
    names = ["controller", *(f"cloud{place}" for place in range(len(fragments.clouds)))]
    for name in names:
        Identity.new(folder, name)
    entries = {
        name: {"address": f"127.0.0.1:{port}", "certificate": f"{name}.crt"}
        for name, port in zip(names, free_ports(len(names)), strict=True)
    }
    file = folder / "circle.yaml"
    stated = {"relation": fragments.relation, "parties": entries, "time_limit": 20.0}
    file.write_text(yaml.safe_dump(stated, sort_keys=False))
    circle = Circle.read(file)
    with contextlib.ExitStack() as stack:
        for name, cloud in zip(names[1:], fragments.clouds, strict=True):
            stack.enter_context(CloudServer(circle, name, cloud.address))
        yield file


def apart(folder, n):
    folder.mkdir()
    return dc.fragment(
        dc.read(people(n), name="people"),
        [f"duckdb:///{folder}/{name}.db" for name in "abc"],
        keys=folder / "keys.json",
        forbidden=[("age", "debt"), ("age", "score"), ("debt", "score")],
    )


def test_covariances_and_bytes_of_the_controller(tmp_path, monkeypatch):
    columns = ["age", "debt", "score"]
    sizes = []
    for n in (200, 4000):
        fragments = apart(tmp_path / str(n), n)
        with beside(fragments, tmp_path / str(n)) as circle:
            # The controller asks no database itself, so no column can reach it.
            monkeypatch.setattr(Fragments, "fetch", None)
            found = fragments.covariances(columns, circle=circle)
        assert np.allclose(found.frame, people(n)[columns].cov(), rtol=1e-4, atol=1e-3)
        sizes.append(found.controller_bytes)
    assert sizes[0] == sizes[1] < 4000


def test_programs_beside_the_databases_are_started_where_none_run(split):
    _, fragments = split
    found = fragments.covariances(["age", "debt"])
    assert np.allclose(found.frame, people()[["age", "debt"]].cov(), rtol=1e-4, atol=1e-3)


def test_what_the_programs_beside_databases_refuse(tmp_path):
    fragments = apart(tmp_path / "f", 50)
    with beside(fragments, tmp_path / "f") as circle:
        with pytest.raises(InputError) as caught:
            fragments.covariances(["age", "zip"], circle=circle)
        assert caught.value.code == "no-number"
        changed = dataclasses.replace(fragments, records=49)
        with pytest.raises(InputError) as caught:
            changed.covariances(["age", "debt"], circle=circle)
        assert caught.value.code == "fragment-changed"
        with pytest.raises(InputError):
            dataclasses.replace(fragments, relation="other").covariances(["age"], circle=circle)
        # One cloud asks another in the controller's place.
        known = Circle.read(circle)
        link = Contacts(known, "cloud0").call("cloud1", session="s", purpose="ask")
        with link, pytest.raises(RefusedError):
            request(link, "columns", {"columns": ["debt"], "order": "00", "records": "50"})
    with pytest.raises(EngineError):
        fragments.covariances(["age", "debt"], circle=circle)
    for wrong in ("", "relation: people", "relation: people\nparties: {controller: a.crt}"):
        circle.write_text(wrong)
        with pytest.raises(InputError):
            Circle.read(circle)


def test_fragments_cannot_be_linked_by_the_order_of_their_rows(split):
    import duckdb

    folder, fragments = split
    orders = []
    whole = people().reset_index()
    for name, columns in zip("ab", fragments.columns, strict=False):
        with duckdb.connect(str(folder / f"{name}.db"), read_only=True) as connection:
            rows = connection.execute("SELECT * FROM people ORDER BY ALL").fetch_df()
        rows = rows.sort_values(ROW_ID)
        unique = next(one for one in ("name", "debt", "score") if one in columns)
        orders.append(whole.set_index(unique)["index"].loc[rows[unique]].to_numpy())
    assert not RecordOrder().run(*orders).succeeded
    assert RecordOrder().control().succeeded


def test_quasi_identifiers_that_single_people_out_are_kept_apart(tmp_path):
    data = dc.read(people(), name="people", roles=ROLES)
    found = dc.fragment(
        data, [f"duckdb:///{tmp_path}/{name}.db" for name in "ab"], keys=tmp_path / "k.json",
        risk=lambda columns: 1.0 if len(columns) > 1 else 0.0,
    )  # fmt: skip
    assert not any({"zip", "age"} <= set(columns) for columns in found.columns)


def test_what_cannot_be_kept_apart_or_asked_is_refused(split, tmp_path):
    folder, fragments = split
    triangle = [("a", "b"), ("b", "c"), ("a", "c")]
    with pytest.raises(InfeasibleError):
        colour("abc", triangle, 2)
    assert len(colour("abc", triangle, 3)) == 3
    for wrong in ([("a", "z")], [("a", "a")]):
        with pytest.raises(InputError):
            colour("abc", wrong, 2)
    for sql in (
        "DELETE FROM people",
        "SELECT * FROM people JOIN other USING (zip)",
        "SELECT COUNT(*) FROM other",
        "SELECT salary FROM people",
        "SELECT zip FROM people WHERE age IN (SELECT age FROM people)",
        "SELECT FROM WHERE",
    ):
        with pytest.raises((InputError, RefusedError)):
            fragments.ask(sql)
    with pytest.raises(DiscreetError):
        dc.fragment(people(), ["duckdb:///x.db", "duckdb:///y.db"], keys=folder / "keys.json")
    (tmp_path / "no.json").write_text(json.dumps({"clouds": 3}))
    with pytest.raises(InputError):
        Fragments.open(tmp_path / "no.json")


def test_the_commands(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    words = ["fragments", "split", str(tmp_path / "people.csv"), str(tmp_path / "keys.json"),
             "--forbid", "name,debt"]  # fmt: skip
    for name in "ab":
        words += ["--cloud", f"duckdb:///{tmp_path}/{name}.db"]
    done = CliRunner().invoke(cli.build(), words)
    assert done.exit_code == 0, done.output
    sql = "SELECT COUNT(*) AS n FROM people WHERE name = 'p1' AND debt > 0"
    done = CliRunner().invoke(
        cli.build(), ["fragments", "ask", str(tmp_path / "keys.json"), sql, "--learned"]
    )
    assert done.exit_code == 0, done.output
    assert "controller" in done.output


def test_a_table_that_is_there_is_not_written_over(tmp_path):
    # Two names of one database held both fragments in turn, and the first was lost.
    frame = pd.DataFrame({"name": list("abc"), "zip": list("xyz"), "income": [1, 2, 3]})
    one = tmp_path / "one.db"
    (tmp_path / "link.db").symlink_to(one)
    pair = [("name", "income")]
    for other in ("link.db", "./one.db"):
        clouds = [f"duckdb:///{one}", f"duckdb:///{tmp_path}/{other}"]
        one.unlink(missing_ok=True)
        with pytest.raises(InputError) as caught:
            dc.fragment(frame, clouds, keys=tmp_path / "keys.json", forbidden=pair)
        assert caught.value.code == "table-exists"
        assert not (tmp_path / "keys.json").exists()
    clouds = [f"duckdb:///{tmp_path}/new.db", f"duckdb:///{one}"]
    with pytest.raises(InputError):
        dc.fragment(frame, clouds, keys=tmp_path / "keys.json", forbidden=pair)
    named = frame.rename(columns={"zip": "FRAGMENT_ROW"})
    with pytest.raises(InputError) as caught:
        dc.fragment(named, [f"duckdb:///{tmp_path}/{n}.db" for n in "xy"],
                    keys=tmp_path / "keys.json", forbidden=pair)  # fmt: skip
    assert caught.value.code == "column-exists"


def test_what_tells_a_confidential_column_is_kept_apart_like_it(tmp_path):
    rng = np.random.default_rng(4)
    income = rng.lognormal(8, 0.5, 400).round(2)
    frame = pd.DataFrame(
        {
            "name": [f"p{n}" for n in range(400)],
            "zip": rng.choice(list("abcd"), 400),
            "income": income,
            "due": (0.3 * income).round(),
            "icd": rng.choice(list("ABC"), 400),
        }
    ).assign(text=lambda f: f.icd.map({"A": "flu", "B": "cold", "C": "gout"}))
    clouds = [f"duckdb:///{tmp_path}/{name}.db" for name in "ab"]
    pairs = [("name", "income"), ("icd", "name")]
    kept = dc.fragment(dc.read(frame, name="people"), clouds, keys=tmp_path / "k", forbidden=pairs)
    (beside,) = [set(one) for one in kept.columns if "name" in one]
    assert beside == {"name", "zip"}
