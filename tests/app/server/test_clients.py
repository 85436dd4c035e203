"""Real clients against real gateways: psql, psycopg, SQLAlchemy, pandas, Java's driver."""

import os
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import psycopg
import pytest
import sqlalchemy

import discreet as dc
from discreet.demo.datasets import population
from tests.app.server.serving import PASSWORD, connect, served_here, user
from tests.servers import jdbc_driver, unavailable

pytestmark = pytest.mark.xdist_group("wire")

STATEMENTS = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT sex, COUNT(*) AS n, SUM(salary) AS total, AVG(salary) AS mean FROM people GROUP BY sex",
    "SELECT AVG(salary) FROM people WHERE age > 30",
    "SELECT sex, MEDIAN(salary) AS m FROM people GROUP BY sex",
    "SELECT sector, COUNT(*) FROM people GROUP BY sector ORDER BY 2 DESC LIMIT 3",
    "SELECT SUM(salary) / COUNT(*) AS ratio FROM people WHERE age < 50",
    "SELECT age >= 40 AS old, COUNT(*) AS n FROM people GROUP BY age >= 40",
]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Addresses of a server whose users stand before different guards."""
    gate = dc.Gateway(
        population(2_000),
        guard=dc.Restriction(k=5),
        policies={
            "user:nora": dc.Perturbation(
                epsilon=1e4, per_query=1.0, bounds={"salary": (0, 500_000)}, keys={"sex": ("female", "male")}
            ),
            "user:ivo": dc.Camouflage(bound=0.3),
            "role:student": dc.Policy(columns=("sex", "age")),
        },
        apart=True,
    )  # fmt: skip
    users = {name: user(name) for name in ("ana", "nora", "ivo")}
    users["stu"] = user("stu", "analyst", "student")
    users["guest"] = user("guest", "nobody")
    folder = tmp_path_factory.mktemp("served")
    with served_here({"people": gate}, users, folder) as at:
        yield at


@pytest.fixture
def client(served):
    with connect(served.postgres) as made:
        yield made


def waited(client):
    """Wait for a result in psycopg's own loop, in which the server's thread can run."""
    (result,) = client.wait(psycopg.generators.execute(client.pgconn))
    return result


def described(client, sql):
    client.pgconn.send_prepare(b"s", sql)
    waited(client)
    client.pgconn.send_describe_prepared(b"s")
    return waited(client)


# -- psycopg ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("who", ["ana", "nora", "ivo"])
@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_described_statement_keeps_its_promise(served, who, sql):
    with connect(served.postgres, who) as client:
        told = described(client, sql.encode())
        promised = [(told.fname(i), told.ftype(i)) for i in range(told.nfields)]
        try:
            given = client.execute(sql).pgresult
        except psycopg.Error as error:
            assert error.sqlstate in ("42501", "53400", "0A000")  # noqa: PT017  # a refusal is as well
            return
        assert promised == [(given.fname(i), given.ftype(i)) for i in range(given.nfields)]
        client.pgconn.send_query_prepared(b"s", [])
        result = waited(client)
        assert result.status == psycopg.pq.ExecStatus.TUPLES_OK
        assert result.get_value(0, 0) == given.get_value(0, 0)


def test_describing_asks_nothing(served):
    with connect(served.postgres, "nora") as client:
        assert described(client, b"SELECT COUNT(*) FROM people WHERE age < 77").nfields == 1
        left = dict(client.execute("EXPLAIN SELECT COUNT(*) FROM people WHERE age < 77").fetchall())
        assert "repeated" not in left


def test_parameters_of_all_kinds_and_binary_results(client):
    for binary in (False, True):
        cursor = client.cursor(binary=binary)
        row = cursor.execute(
            "SELECT COUNT(*) AS n, AVG(salary) AS mean FROM people WHERE age < %s AND sex = %s",
            (40, "female"),
        ).fetchone()
        assert isinstance(row[0], int)
        assert isinstance(row[1], float)
        cursor.execute("SELECT COUNT(*) FROM people WHERE age < %s", (40.5,), binary=binary)
        for _ in range(7):  # psycopg prepares what it sees often
            cursor.execute("SELECT COUNT(*) FROM people WHERE age < %s", (41,))
        assert cursor.fetchone()[0] > 0


def test_a_pipeline(client):
    with client.pipeline():
        cursors = [
            client.execute("SELECT COUNT(*) FROM people WHERE age < %s", (60 + i % 3,))
            for i in range(9)
        ]
    assert len({cursor.fetchone()[0] for cursor in cursors}) == 3
    with pytest.raises(psycopg.errors.InsufficientPrivilege), client.pipeline() as pipe:  # noqa: PT012
        client.execute("SELECT COUNT(*) FROM people")
        client.execute("SELECT salary FROM people")
        pipe.sync()
    assert client.execute("SELECT 1").fetchone() == (1,)


def test_cursors_of_the_server_are_refused_clearly(client):
    client.autocommit = False
    with (
        pytest.raises(psycopg.errors.FeatureNotSupported, match="cursors"),
        client.cursor("c") as cursor,
    ):
        cursor.execute("SELECT COUNT(*) FROM people")
    client.rollback()
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        client.cursor().copy("COPY people TO STDOUT").__enter__()


def test_roles_and_columns(served):
    with (
        connect(served.postgres, "guest") as client,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="role"),
    ):
        client.execute("SELECT COUNT(*) FROM people")
    with connect(served.postgres, "stu") as client:
        assert client.execute("SELECT COUNT(*) FROM people WHERE age < 50").fetchone()[0] > 0
        # A column hidden from a role is as unknown as one that does not exist.
        with pytest.raises(psycopg.errors.UndefinedColumn, match="no column 'salary'"):
            client.execute("SELECT AVG(salary) FROM people")


def test_notices_say_what_answers_are(served):
    heard = []
    for who, sql in (
        ("nora", "SELECT COUNT(*) AS n FROM people WHERE age < 33"),
        ("ivo", "SELECT AVG(salary) AS mean FROM people"),
    ):
        with connect(served.postgres, who) as client:
            client.add_notice_handler(lambda notice: heard.append(notice.message_primary))
            columns = [c.name for c in client.execute(sql).description]
            client.execute(sql)
    assert heard[0].startswith("noisy; n ± ")
    assert "spent epsilon 1" in heard[0]
    assert heard[1].endswith("recorded answer, no cost")
    assert heard[2].startswith("interval")
    assert columns == ["mean_lower", "mean_upper"]


def test_errors_carry_codes(client):
    cases = {
        "SELEKT 1": "42601",
        "SELECT COUNT(*) FROM people WHERE agee < 3": "42703",
        "SHOW nothing": "42704",
        "SELECT salary FROM people": "42501",
        "SET client_encoding TO 'latin1'": "22023",
    }
    for sql, state in cases.items():
        with pytest.raises(psycopg.Error) as caught:
            client.execute(sql)
        assert caught.value.sqlstate == state, sql
    assert client.execute("SELECT 1").fetchone() == (1,)


# -- SQLAlchemy and pandas -------------------------------------------------------------------------
@pytest.fixture
def engine(served):
    made = sqlalchemy.create_engine(
        sqlalchemy.URL.create(
            "postgresql+psycopg", "ana", PASSWORD, "127.0.0.1", served.postgres, "discreet",
            query={"sslmode": "require"},
        )
    )  # fmt: skip
    yield made
    made.dispose()


def test_sqlalchemy_reflects_and_asks(engine):
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_table_names() == ["people"]
    columns = {c["name"]: str(c["type"]) for c in inspector.get_columns("people")}
    assert columns["age"] == "BIGINT"
    assert columns["sex"] == "TEXT"
    assert "name" not in columns
    assert inspector.get_pk_constraint("people")["constrained_columns"] == []
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine)
    people = metadata.tables["people"]
    asked = (
        sqlalchemy.select(people.c.sex, sqlalchemy.func.count())
        .where(people.c.age > 30)
        .group_by(people.c.sex)
    )
    with engine.connect() as connection:
        assert {row[0] for row in connection.execute(asked)} == {"female", "male"}


def test_pandas(engine):
    frame = pd.read_sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", engine)
    assert frame["n"].sum() == 2_000
    asked = sqlalchemy.text("SELECT COUNT(*) AS n FROM people WHERE age < :age")
    assert pd.read_sql(asked, engine, params={"age": 40})["n"].item() > 0


# -- DuckDB ----------------------------------------------------------------------------------------
def test_what_duckdbs_postgres_extension_sends(client):
    # Recorded from version 1.5.5 with pg_use_text_protocol; for DuckDB 2.0 it cannot be had yet.
    assert client.execute("SELECT oid, nspname FROM pg_namespace  ORDER BY oid").fetchall()
    assert client.execute("SELECT to_regclass('duckdb_secrets')").fetchone() == (None,)
    given = client.execute(
        'SELECT "sex", "n" FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) '
        "AS __unnamed_subquery ;"
    )
    assert [column.name for column in given.description] == ["sex", "n"]
    assert sum(n for _, n in given.fetchall()) == 2_000
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        client.execute('SELECT NULL FROM "public"."people" ;')


# -- psql ------------------------------------------------------------------------------------------
def test_psql_and_its_own_commands(served):
    if shutil.which("psql") is None:
        unavailable("psql is not installed: apt-get install postgresql-client")
    commands = [r"\d", r"\dt", r"\d people", r"\d+ people", r"\l", r"\dn", r"\du", r"\df", r"\conninfo", "EXPLAIN SELECT COUNT(*) FROM people"]  # fmt: skip
    given = [part for command in commands for part in ("-c", command)]
    done = subprocess.run(
        ["psql", f"host=127.0.0.1 port={served.postgres} user=ana dbname=discreet sslmode=require", "-A", *given],
        env={**os.environ, "PGPASSWORD": PASSWORD}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "ERROR" not in done.stderr
    assert "Did not find" not in done.stdout + done.stderr
    assert "public|people|table|curator" in done.stdout
    assert "age|bigint||" in done.stdout
    assert "discreet|curator|UTF8" in done.stdout
    assert "guard|restriction" in done.stdout


# -- Java ------------------------------------------------------------------------------------------
def test_jdbc(served, tmp_path):
    driver = jdbc_driver()
    source = Path(__file__).with_name("Clients.java")
    subprocess.run(["javac", "-d", str(tmp_path), str(source)], check=True, timeout=120)
    done = subprocess.run(
        ["java", "-cp", f"{tmp_path}:{driver}", "Clients", str(served.postgres), "ana", PASSWORD],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert "table people" in lines
    assert "column age int8" in lines
    assert not [line for line in lines if line.startswith("key ")]
    assert sum(line.startswith("row ") for line in lines) == 2
    assert "notice exact" in "\n".join(lines)
    assert "described int8 float8" in lines
    prepared = [line for line in lines if line.startswith("prepared ")]
    assert len(prepared) == 5
    assert len(set(prepared)) == 1
    assert [line for line in lines if line.startswith("fetched ")] == [
        "fetched female",
        "fetched male",
    ]
    assert lines[-2:] == ["refused 42501", "valid true"]
