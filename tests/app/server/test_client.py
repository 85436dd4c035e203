"""The client and `discreet ask --server` against a real server over TLS."""

import os

import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli.main import build
from discreet.demo.datasets import salaries
from discreet.errors import EngineError, InputError, RefusedError
from tests.app.server.serving import PASSWORD, served_here, user

pytestmark = pytest.mark.xdist_group("wire")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    gate = dc.Gateway(salaries(), guard=dc.Restriction(k=3))
    users = {"ana": user("ana"), "guest": user("guest", "nobody")}
    with served_here({"people": gate}, users, folder) as addresses:
        yield f"https://127.0.0.1:{addresses.http}", folder / "server.crt"


def make(place, name="ana", password=PASSWORD):
    return dc.Client(place[0], user=name, password=password, certificate=place[1])


def test_answers_are_those_of_the_gateway(place):
    with make(place) as client:
        answer = client.ask("SELECT sector, COUNT(*) AS n FROM people GROUP BY sector ORDER BY 1")
        assert answer.kind == "exact"
        assert answer.frame.to_dict("list") == {"sector": ["Fin", "HC", "IT"], "n": [3, 6, 6]}
        assert client.ask("SELECT COUNT(*) FROM people WHERE sector = $1", ["IT"]).value() == 6
        assert "salary" in client.relations()["people"]


def test_refusals_and_mistakes_say_why(place):
    with make(place) as client:
        refused = client.ask(
            "SELECT AVG(salary) FROM people WHERE sector = 'Fin' AND region = 'TGN'"
        )
        assert refused.refused
        assert refused.reason
        assert "150" not in str(refused)
        mistaken = client.ask("SELECT AVG(wage) FROM people")
        assert mistaken.code == "unknown-column"


def test_who_asks_is_checked(place):
    with make(place, password="wrong") as client, pytest.raises(InputError) as caught:
        client.ask("SELECT COUNT(*) FROM people")
    assert caught.value.code == "unauthorized"
    with make(place, "guest") as client:
        assert client.ask("SELECT COUNT(*) FROM people").code == "role-missing"


def test_an_unknown_certificate_and_a_plain_line_are_refused(place):
    client = dc.Client(place[0], user="ana", password=PASSWORD)
    with client, pytest.raises(EngineError) as caught:
        client.ask("SELECT COUNT(*) FROM people")
    assert caught.value.code == "untrusted-certificate"
    with pytest.raises(RefusedError):
        dc.Client("http://gateway.example:8433", user="ana", password="x")
    with pytest.raises(InputError):
        dc.Client("gateway.example", user="ana", password="x")


def test_a_file_that_is_no_certificate_is_explained(place, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        dc.Client(place[0], user="ana", password=PASSWORD, certificate=tmp_path / "none.pem")
    (tmp_path / "text.pem").write_text("not a certificate")
    with pytest.raises(InputError, match="holds no certificate"):
        dc.Client(place[0], user="ana", password=PASSWORD, certificate=tmp_path / "text.pem")


def test_an_expired_token_is_renewed(place):
    with make(place) as client:
        client.ask("SELECT COUNT(*) FROM people")
        client._token = "old.token"
        assert client.ask("SELECT COUNT(*) FROM people").value() == 15


def test_the_command(place, monkeypatch):
    monkeypatch.setitem(os.environ, "DISCREET_PASSWORD", PASSWORD)
    base = ["ask", "--server", place[0], "--user", "ana", "--certificate", str(place[1])]
    ran = CliRunner().invoke(build(), [*base, "SELECT COUNT(*) AS n FROM people"])
    assert ran.exit_code == 0, ran.output
    assert "15" in ran.output
    told = CliRunner().invoke(
        build(), [*base, "--explain", "SELECT COUNT(*) FROM people WHERE sector = 'IT'"]
    )
    assert "restriction" in told.output
    both = CliRunner().invoke(build(), ["ask", "SELECT 1"])
    assert both.exit_code != 0
