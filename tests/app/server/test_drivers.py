"""Other clients' drivers against a real gateway: psycopg 2, asyncpg, pg8000, pgcli, JDBC metadata."""

import asyncio
import datetime
import os
import ssl
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import discreet as dc
from tests.app.server.dashboards import people
from tests.app.server.serving import PASSWORD, served_here, user
from tests.servers import jdbc_driver, postgres_server

pytestmark = pytest.mark.xdist_group("wire")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    gate = dc.Gateway(
        people(500),
        guard=dc.Restriction(k=5),
        policies={
            "user:nora": dc.Perturbation(
                epsilon=10.0, per_query=0.5, user_epsilon=5.0, period="month", bounds={"salary": (0, 500_000)}
            ),
        },
    )  # fmt: skip
    users = {name: user(name) for name in ("ana", "nora")}
    with served_here({"people": gate}, users, tmp_path_factory.mktemp("drivers")) as at:
        yield at


def settings(served, who="ana"):
    return {
        "host": "127.0.0.1", "port": served.postgres, "user": who, "password": PASSWORD,
        "database": "discreet",
    }  # fmt: skip


def unchecked() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# -- asyncpg ---------------------------------------------------------------------------------------
def test_asyncpg_sends_parameters_as_the_columns_need(served):
    asyncpg = pytest.importorskip("asyncpg")

    async def ask():
        client = await asyncpg.connect(**settings(served), ssl=unchecked())
        try:
            younger = await client.fetchval("SELECT COUNT(*) FROM people WHERE age < $1", 40)
            listed = await client.fetchval(
                "SELECT COUNT(*) FROM people WHERE sex = ANY($1) AND age < $2",
                ["female", "male"],
                40,
            )
            dated = await client.fetchval(
                "SELECT COUNT(*) FROM people WHERE hired >= $1 AND born < $2 AND remote = $3",
                datetime.datetime(2000, 1, 1),  # noqa: DTZ001  # columns without a zone
                datetime.date(2020, 1, 1),
                True,
            )
            halved = await client.fetch(
                "SELECT sex, AVG(hours) AS mean FROM people WHERE hours > $1 GROUP BY sex LIMIT $2",
                21.5,
                2,
            )
            prepared = await client.prepare("SELECT COUNT(*) FROM people WHERE region = $1")
            kinds = [kind.name for kind in prepared.get_parameters()]
            async with client.transaction():
                share = await client.fetch(
                    "SELECT sex, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY sex"
                )
            return younger, listed, dated, halved, kinds, share
        finally:
            await client.close()

    younger, listed, dated, halved, kinds, share = asyncio.run(ask())
    assert younger == listed > 0
    assert dated > 0
    assert len(halved) == 2
    assert kinds == ["text"]
    assert sum(float(row["share"]) for row in share) == pytest.approx(1)


# -- pg8000 ----------------------------------------------------------------------------------------
def test_pg8000(served):
    native = pytest.importorskip("pg8000.native")
    given = settings(served)
    with native.Connection(
        given["user"], host=given["host"], port=given["port"], password=PASSWORD,
        database="discreet", ssl_context=unchecked(),
    ) as client:  # fmt: skip
        ((younger,),) = client.run("SELECT COUNT(*) FROM people WHERE age < :age", age=40)
        ((listed,),) = client.run(
            "SELECT COUNT(*) FROM people WHERE age < :age AND sex = ANY(:sexes)",
            age=40, sexes=["female", "male"],
        )  # fmt: skip
        assert younger == listed > 0
        ((text,),) = client.run("SELECT COUNT(*) FROM people WHERE age < :age", age="40")
        assert text == younger


# -- psycopg 2 -------------------------------------------------------------------------------------
def test_psycopg2(served):
    psycopg2 = pytest.importorskip("psycopg2")
    client = psycopg2.connect(**settings(served), sslmode="require")
    try:
        cursor = client.cursor()
        cursor.execute(
            "SELECT remote, COUNT(*) FILTER (WHERE sex = %s) AS women, COUNT(*) AS n FROM public.people"
            " WHERE age < %s AND sex IN %s AND sex = ANY(%s) GROUP BY remote",
            ("female", 200, ("female", "male"), ["female", "male"]),
        )
        assert cursor.fetchall()
        assert [column.name for column in cursor.description] == ["remote", "women", "n"]
        client.commit()
        with pytest.raises(psycopg2.errors.FeatureNotSupported):
            cursor.execute("SELECT sector, array_agg(age) FROM people GROUP BY sector")
        client.rollback()
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            cursor.execute("SELECT salary FROM people")
    finally:
        client.close()


# -- psycopg 3: what sessions show -----------------------------------------------------------------
def test_errors_budget_and_settings(served):
    import psycopg

    given = settings(served, "nora")
    given["dbname"] = given.pop("database")
    with psycopg.connect(**given, sslmode="require", autocommit=True) as client:
        budget = client.execute("SHOW discreet.budget").fetchall()
        assert [(line[1], line[3]) for line in budget] == [("user", 5.0), ("dataset", 10.0)]
        assert budget[0][2] == datetime.datetime.now(datetime.UTC).strftime("%Y-%m")
        assert budget[0][6] == 10  # questions at 0.5
        client.execute("SET discreet.errors = on")
        assert client.execute("SHOW discreet.errors").fetchone() == ("on",)
        answer = client.execute(
            "SELECT sex, COUNT(*) AS n, AVG(salary) AS pay FROM people GROUP BY sex"
        )
        names = [column.name for column in answer.description]
        assert names == ["sex", "n", "n_error_95", "pay", "pay_error_95"]
        row = answer.fetchall()[0]
        assert row[2] > 0
        # An average is told to two digits of its error.
        unit = 10 ** (len(str(int(row[4]))) - 2)
        assert row[3] % unit == 0
        client.execute("SET discreet.errors = off")
        assert len(client.execute("SELECT COUNT(*) FROM people").description) == 1
        told = dict(client.execute("EXPLAIN SELECT COUNT(*) FROM people WHERE age < 50").fetchall())
        assert int(told["questions like this one left"]) == 8
        with pytest.raises(psycopg.Error) as caught:
            client.execute("SET discreet.wrong = 1")
        assert caught.value.sqlstate == "42704"
        assert client.execute("SELECT current_user, current_schema").fetchone() == (
            "nora",
            "public",
        )
        assert client.execute("SELECT now() IS NOT NULL").fetchone() == (True,)
        client.execute("SET TIME ZONE 'UTC'")
        assert client.execute("SHOW TIME ZONE").fetchone() == ("UTC",)


# -- pgcli -----------------------------------------------------------------------------------------
def test_pgcli_asks_and_completes(served):
    pytest.importorskip("pgcli")
    address = f"postgresql://ana@127.0.0.1:{served.postgres}/discreet?sslmode=require"
    script = "\\d people\n\\dt\nSELECT sex, COUNT(*) AS n FROM people GROUP BY sex;\n\\q\n"
    done = subprocess.run(
        [sys.executable, "-c", "from pgcli.main import cli; cli()", address, "--no-password",
         "--less-chatty", "--warn", "off", "--pgclirc", os.devnull],
        env={**os.environ, "PGPASSWORD": PASSWORD, "TERM": "dumb", "LC_ALL": "C.UTF-8"},
        input=script, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    told = done.stdout + done.stderr
    assert "female" in told, told[-2000:]
    assert "bigint" in told
    assert "Traceback" not in told, told[-6000:]


def test_pgcli_finds_what_it_completes_with(served):
    executor = pytest.importorskip("pgcli.pgexecute")
    made = executor.PGExecute(
        database="discreet", user="ana", password=PASSWORD, host="127.0.0.1", port=served.postgres,
        dsn=f"postgresql://ana@127.0.0.1:{served.postgres}/discreet?sslmode=require",
    )  # fmt: skip
    try:
        completes(made)
    finally:
        made.conn.close()


def completes(made):
    assert "public" in made.schemata()
    assert ("public", "people") in [tuple(row) for row in made.tables()]
    names = {row.name if hasattr(row, "name") else row[2] for row in made.table_columns()}
    assert {"age", "sex"} <= names
    assert "person_id" not in names
    assert list(made.views()) == []
    assert list(made.foreignkeys()) == []
    assert list(made.functions()) is not None
    assert list(made.datatypes()) is not None
    assert "discreet" in made.databases()


# -- JDBC ------------------------------------------------------------------------------------------
def test_jdbc_metadata_answers_what_postgresql_answers(served, tmp_path):
    driver = jdbc_driver()
    source = Path(__file__).with_name("Metadata.java")
    subprocess.run(["javac", "-d", str(tmp_path), str(source)], check=True, timeout=300)

    def called(*arguments: str) -> dict[str, str]:
        done = subprocess.run(
            ["java", "-cp", f"{tmp_path}:{driver}", "Metadata", *arguments],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return dict(line.split(" ", 1) for line in done.stdout.splitlines())

    ours = called(str(served.postgres), "ana", PASSWORD, "require", "discreet")
    failed = {name: told for name, told in ours.items() if told.startswith("FAILED")}
    with postgres_server(tmp_path) as address:
        parts = urlsplit(address)
        theirs = called(str(parts.port), str(parts.username), "", "disable", parts.path.strip("/"))
    missing = {n: t for n, t in failed.items() if not theirs[n].startswith("FAILED")}
    assert missing == {}
    shapes = {n: t.rpartition(" rows ")[0] for n, t in theirs.items() if t.startswith("columns")}
    other = {n for n, t in shapes.items() if ours[n].rpartition(" rows ")[0] != t}
    assert other == set()
    assert len(ours) > 150
