"""HTTP/JSON over a real gateway: tokens, answers, refusals, and whatever schemathesis thinks of."""

import asyncio
import base64
import contextlib
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import argon2
import httpx
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings

import discreet as dc
from discreet.app.server.desk import Rate, User
from discreet.app.server.gateways import Desk
from discreet.app.server.http import Tokens, build_http
from discreet.app.server.metrics import Metrics
from discreet.demo.datasets import salaries

pytestmark = pytest.mark.xdist_group("wire")

USERS = {
    "ana": User("ana", ("analyst",), password=argon2.PasswordHasher(1, 8, 1).hash("s3cret")),
    "guest": User("guest", (), password=argon2.PasswordHasher(1, 8, 1).hash("s3cret")),
}
TOKENS = Tokens(b"k" * 32)


def make_app():
    gate = dc.Gateway(salaries(), guard=dc.Restriction(k=3))
    metrics = Metrics()
    desk = Desk({gate.dataset.name: gate}, rate=Rate(1e6, 10**6), metrics=metrics)
    return build_http(desk, USERS, ThreadPoolExecutor(2), TOKENS, metrics)


HEADERS = {"Authorization": f"Bearer {TOKENS.issue('ana').token}"}


@contextlib.contextmanager
def running():
    """Serve a fresh application on loopback and yield its address."""
    server = uvicorn.Server(uvicorn.Config(make_app(), port=0, log_config=None, lifespan="off"))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


@pytest.fixture
def client():
    with running() as address, httpx.Client(base_url=address) as made:
        yield made


@pytest.fixture(scope="module")
def address():
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def interface(address):
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


def test_a_token_is_given_for_a_password_only(client):
    assert client.post("/token", auth=("ana", "s3cret")).status_code == 200
    for auth in (("ana", "wrong"), ("nobody", "s3cret"), ("ana", "")):
        assert client.post("/token", auth=auth).status_code == 401
    for header in ("", "Basic", "Basic !!!", "Basic " + base64.b64encode(b"\xff\xfe").decode()):
        assert client.post("/token", headers={"Authorization": header}).status_code == 401


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "a.b",
        TOKENS.issue("ana").token[:-1] + "0x",
        TOKENS.issue("ghost").token,
        Tokens(b"other").issue("ana").token,
    ],
    # Tokens hold the time, and every worker must call a test by the same name.
    ids=["short", "no-token", "longer", "nobody", "other-key"],
)
def test_false_tokens_are_refused(client, token):
    assert (
        client.post(
            "/ask",
            json={"sql": "SELECT COUNT(*) FROM people"},
            headers={"Authorization": f"Bearer {token}"},
        ).status_code
        == 401
    )


def test_old_tokens_are_refused(client, monkeypatch):
    token = TOKENS.issue("ana").token
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 7200)
    assert TOKENS.user(token) is None


def test_answers_say_what_they_are(client):
    body = client.post(
        "/ask",
        json={
            "sql": "SELECT SUM(salary) AS total FROM people WHERE sector = $1",
            "parameters": ["HC"],
        },
        headers=HEADERS,
    ).json()
    assert (body["kind"], body["columns"], body["rows"]) == ("exact", ["total"], [[482000]])
    assert body["notices"] == ["exact"]
    again = client.post(
        "/ask",
        json={"sql": "SELECT SUM(salary) AS total FROM people WHERE sector = 'HC'"},
        headers=HEADERS,
    ).json()
    assert again["facts"]["repeated"] is True


def test_refusals_mistakes_and_roles(client):
    refused = client.post(
        "/ask",
        json={"sql": "SELECT AVG(salary) FROM people WHERE sector = 'Fin' AND region = 'TGN'"},
        headers=HEADERS,
    )
    assert refused.status_code == 403
    assert "150000" not in refused.text
    assert client.post(
        "/ask", json={"sql": "SELECT * FROM people"}, headers=HEADERS
    ).status_code in (403, 422)
    assert client.post("/ask", json={"sql": "not sql at all ((("}, headers=HEADERS).status_code in (
        403,
        422,
    )
    assert (
        client.post(
            "/ask", content=b"{", headers={**HEADERS, "Content-Type": "application/json"}
        ).status_code
        == 400
    )
    guest = {"Authorization": f"Bearer {TOKENS.issue('guest').token}"}
    assert (
        client.post("/ask", json={"sql": "SELECT COUNT(*) FROM people"}, headers=guest).json()[
            "error"
        ]
        == "role-missing"
    )


def test_identifiers_are_not_even_named(client):
    assert set(client.get("/relations", headers=HEADERS).json()["people"]) == {
        "salary",
        "sector",
        "region",
    }


def test_metrics_count_without_values(client):
    client.post(
        "/ask", json={"sql": "SELECT SUM(salary) FROM people WHERE sector = 'HC'"}, headers=HEADERS
    )
    text = client.get("/metrics").text
    assert 'outcome="exact"' in text
    assert "482000" not in text
    assert "salary" not in text


def test_rate_limits():
    rate = Rate(per_second=0.001, burst=2)
    rate.take("ana")
    rate.take("ana")
    with pytest.raises(dc.RefusedError) as caught:
        rate.take("ana")
    assert caught.value.code == "rate-limited"
    rate.take("ben")


def test_the_interface_is_what_it_says(interface):
    operations = [found.ok() for found in interface.get_all_operations()]
    assert len(operations) >= 5
    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
        def conforms(case):
            case.call_and_validate(headers=HEADERS)

        conforms()


# -- the page, budgets, and metrics from elsewhere -------------------------------------------------
def called(app, method, path, *, host="127.0.0.1", **options):
    """Call the application as if from some machine."""

    async def call():
        transport = httpx.ASGITransport(app, client=(host, 50_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as http:
            return await http.request(method, path, **options)

    return asyncio.run(call())


def test_the_page_works_without_any_other_host(client):
    moved = client.get("/", follow_redirects=False)
    assert moved.status_code in (302, 307)
    assert moved.headers["location"] == "/docs"
    page = client.get("/docs")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "//" not in re.sub(r"https?://127\.0\.0\.1\S*", "", page.text).replace("<!--//", "")
    for path in ("/ask", "/token", "/budget", "/relations", "/metrics"):
        assert f"<code>{path}</code>" in page.text


def test_what_is_left_of_budgets_over_http():
    guard = dc.Perturbation(epsilon=1.0, per_query=0.25, bounds={"salary": (0, 500_000)})
    gate, metrics = dc.Gateway(salaries(), guard=guard), Metrics()
    desk = Desk({"people": gate}, rate=Rate(1e6, 10**6), metrics=metrics)
    app = build_http(desk, USERS, ThreadPoolExecutor(2), TOKENS, metrics)
    assert called(app, "GET", "/budget").status_code == 401
    body = {"sql": "SELECT COUNT(*) AS n FROM people", "errors": True}
    told = called(app, "POST", "/ask", json=body, headers=HEADERS).json()
    assert told["columns"] == ["n", "n_error_95"]
    lines = called(app, "GET", "/budget", headers=HEADERS).json()
    assert [(line["scope"], line["left"], line["questions_left"]) for line in lines] == [
        ("user", 0.75, 3),
        ("dataset", 0.75, 3),
    ]
    desk.close()


@pytest.mark.parametrize(
    ("host", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("203.0.113.9", {}, 401),
        ("203.0.113.9", HEADERS, 200),
        ("203.0.113.9", {"Authorization": "Basic " + base64.b64encode(b"ana:s3cret").decode()}, 200),
        ("203.0.113.9", {"Authorization": "Basic " + base64.b64encode(b"ana:wrong").decode()}, 401),
        ("127.0.0.1", {"X-Forwarded-For": "203.0.113.9"}, 401),
    ],
)  # fmt: skip
def test_metrics_from_another_machine_need_a_proof(host, headers, status):
    assert called(make_app(), "GET", "/metrics", host=host, headers=headers).status_code == status
