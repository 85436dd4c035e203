"""The proxy: the reader's results are those of an undisguised search, the engine sees buckets alone."""

from __future__ import annotations

import contextlib
import http.server
import json
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from discreet.app.policy.access import permitted_policy
from discreet.errors import EngineError, InputError
from discreet.protocols.search import Vocabulary
from discreet.protocols.search.backends import FullTextIndex, SearchService, any_of
from discreet.protocols.search.crowds import Crowds
from discreet.protocols.search.goopir import Goopir
from discreet.protocols.search.proxy import Proxy
from discreet.protocols.search.track_me_not import TrackMeNot
from discreet.randomness import Randomness

WORDS = [f"word{n}" for n in range(300)] + ["São Paulo", "O'Hara", 'the "cold"', "naïve"]


def index(folder: Path, documents: int = 400) -> Path:
    rng = np.random.default_rng(1)
    file = folder / "articles.db"
    with sqlite3.connect(file) as base:
        base.execute(
            "CREATE VIRTUAL TABLE articles USING fts5(title, body, tokenize='porter unicode61')"
        )
        for n in range(documents):
            words = rng.choice(WORDS, 12, p=weights())
            base.execute("INSERT INTO articles VALUES (?, ?)", [f"article {n}", " ".join(words)])
    base.close()
    return file


def weights() -> np.ndarray:
    found = 1 / np.arange(1, len(WORDS) + 1)
    return found / found.sum()


def vocabulary() -> Vocabulary:
    return Vocabulary.of(dict(zip(WORDS, 1000 * weights(), strict=True)))


class Logged(FullTextIndex):
    """An index that keeps what it was asked, as its owner could."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.log: list[tuple[str, ...]] = []

    def search(self, terms):
        self.log.append(tuple(terms))
        return super().search(terms)


def undisguised(file: Path, term: str) -> list[dict[str, str]]:
    base = sqlite3.connect(file)
    rows = base.execute(
        "SELECT title, body FROM articles WHERE articles MATCH ? ORDER BY rowid", [any_of([term])]
    ).fetchall()
    base.close()
    return [{"title": title, "body": body} for title, body in rows]


@pytest.mark.parametrize("disguise", [Goopir(), TrackMeNot()], ids=lambda one: one.name)
def test_the_reader_gets_what_an_open_search_finds(tmp_path, disguise):
    file = index(tmp_path)
    with Proxy(FullTextIndex(file), disguise, vocabulary()) as proxy:
        for term in [*WORDS[::25], *WORDS[-4:]]:
            assert proxy.search(term).documents == undisguised(file, term)


@pytest.mark.slow
def test_a_thousand_searches_are_the_same_and_show_whole_buckets(tmp_path):
    thousand(tmp_path, 1_000)


def test_searches_show_whole_buckets(tmp_path):
    thousand(tmp_path, 60)


def thousand(folder: Path, many: int) -> None:
    file = index(folder)
    backend, words = Logged(file), vocabulary()
    buckets = Goopir().prepare(words)
    asked = [words.terms[place] for place in words.draw(many, Randomness.seeded(4))]
    with Proxy(backend, Goopir(), words) as proxy:
        for term in asked:
            assert proxy.search(term).documents == undisguised(file, term)
    assert len(backend.log) == many
    # Every term of a bucket is asked for exactly as often as the others: nothing for a χ² to find.
    seen = Counter(term for terms in backend.log for term in terms)
    for bucket in buckets.members:
        assert len({seen[words.terms[place]] for place in bucket}) == 1


def test_nothing_is_sent_for_a_term_that_nothing_hides(tmp_path):
    backend = Logged(index(tmp_path, 3))
    with Proxy(backend, Goopir(), vocabulary()) as proxy:
        with pytest.raises(InputError) as caught:
            proxy.search("my rare disease")
        assert caught.value.code == "term-unknown"
        assert "rare" not in str(caught.value)
    assert backend.log == []


def test_made_searches_follow_a_real_one_by_themselves(tmp_path, monkeypatch):
    class Soon(TrackMeNot):
        """Minutes become hundredths of a second."""

        def prepare(self, vocabulary):
            cover = super().prepare(vocabulary)
            later = type(cover).later
            monkeypatch.setattr(
                type(cover), "later", lambda self, rng: [(t / 6e4, x) for t, x in later(self, rng)]
            )
            return cover

    backend = Logged(index(tmp_path, 3))
    with Proxy(backend, Soon(rate=8), vocabulary()) as proxy:
        proxy.search("word0")
        assert backend.log[0] == ("word0",)
        until = time.monotonic() + 20
        while len(backend.log) < 9 and time.monotonic() < until:
            time.sleep(0.01)
    assert len(backend.log) == 9
    assert len(set(backend.log[1:])) > 1


def test_closing_does_not_wait_for_searches_planned_later(tmp_path):
    backend = Logged(index(tmp_path, 3))
    with Proxy(backend, TrackMeNot(rate=5), vocabulary()) as proxy:
        proxy.search("word0")
    assert len(backend.log) <= 6


def test_times_of_made_searches():
    rng = Randomness.seeded(3)
    spread, near = (TrackMeNot(rate=100, bursts=b).prepare(vocabulary()) for b in (False, True))
    far = [delay for delay, _ in spread.later(rng)]
    assert len(far) == 100
    assert max(far) > 3_000
    assert max(delay for delay, _ in near.later(rng)) < 900


def test_a_service_that_drips_is_given_up():
    class Drip(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(200):
                    self.wfile.write(b" ")
                    time.sleep(0.05)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Drip) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        service = SearchService(f"http://127.0.0.1:{server.server_port}/?q={{query}}", seconds=0.5)
        with pytest.raises(EngineError) as caught:
            service.search(["flu"])
        server.shutdown()
    assert caught.value.code == "cannot-search"


def test_crowds_and_peers_are_not_for_one(tmp_path):
    with pytest.raises(InputError) as caught:
        Proxy(FullTextIndex(index(tmp_path, 3)), Crowds(), vocabulary())
    assert caught.value.code == "needs-members"


def test_indexes_that_are_none(tmp_path):
    with pytest.raises(InputError):
        FullTextIndex(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at" * 30)
    with pytest.raises(EngineError):
        FullTextIndex(tmp_path / "text.db")
    with sqlite3.connect(tmp_path / "plain.db") as base:
        base.execute("CREATE TABLE t(a)")
    base.close()
    with pytest.raises(InputError) as caught:
        FullTextIndex(tmp_path / "plain.db")
    assert caught.value.code == "unknown-table"


@pytest.mark.parametrize("made", ["a, b UNINDEXED", "a, content=''", 'a, content=""'])
def test_indexes_that_cannot_be_looked_through_at_home_are_refused(tmp_path, made):
    """Without its documents nothing would be found, and other columns would find too much."""
    with sqlite3.connect(tmp_path / "x.db") as base:
        base.execute(f"CREATE VIRTUAL TABLE t USING fts5({made})")
    base.close()
    with pytest.raises(InputError) as caught:
        FullTextIndex(tmp_path / "x.db")
    assert caught.value.code == "unsuitable-index"


@pytest.fixture
def service():
    """An engine that answers like OpenSearch, keeps its log, and can be made to misbehave."""
    log: list[str] = []
    documents = [{"title": f"t{n}", "body": f"flu and word{n}"} for n in range(5)]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # the library's name
            path = urllib.parse.unquote_plus(self.path)
            log.append(path)
            if "/moved" in path:
                self.send_response(302)
                self.send_header("Location", "/elsewhere")
                self.end_headers()
                return
            self.send_response(200)
            self.end_headers()
            body = (
                b"<html>"
                if "/page" in path
                else json.dumps(
                    {"hits": {"hits": [{"_source": row} for row in documents]}}
                ).encode()
            )
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", log
    server.shutdown()
    server.server_close()


def test_a_service_by_its_address(service):
    url, log = service
    found = Proxy(SearchService(url + "/find?q={query}"), Goopir(), vocabulary()).search("word3")
    assert [row["title"] for row in found.documents] == ["t3"]
    assert log == ["/find?q=" + Goopir().prepare(vocabulary()).query("word3")]
    for wrong in ("/moved?q={query}", "/page?q={query}"):
        with pytest.raises(EngineError) as caught:
            SearchService(url + wrong).search(["flu"])
        assert caught.value.code == "cannot-search"
    assert not any("elsewhere" in path for path in log)
    for bad in ("http://example.org/?q={query}", "https://example.org/", "file:///etc/{query}"):
        with pytest.raises(InputError):
            SearchService(bad)


POLICY = "search: {vocabulary: words.csv, index: articles.db, port: 0}\n"


def policy(folder: Path, text: str = POLICY) -> Path:
    index(folder)
    rows = [
        f'"{term.replace(chr(34), chr(34) * 2)}",{1000 * weight}'
        for term, weight in zip(WORDS, weights(), strict=True)
    ]
    (folder / "words.csv").write_text("term,count\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (folder / "policy.yaml").write_text(text)
    return folder / "policy.yaml"


def test_a_policy_may_not_name_other_files_or_hosts(tmp_path):
    folder = tmp_path / "policy"
    folder.mkdir()
    url = "https://search.example/?q={query}"
    for text in (
        POLICY.replace("words.csv", "../words.csv"),
        POLICY.replace("articles.db", "../articles.db"),
        f"search: {{vocabulary: words.csv, url: '{url}'}}\n",
    ):
        with pytest.raises(InputError) as caught:
            permitted_policy(policy(folder, text))
        assert caught.value.code == "not-allowed"
        (folder / "articles.db").unlink()
    allowed, _ = permitted_policy(
        policy(folder, f"search: {{vocabulary: words.csv, url: '{url}'}}\n"), allow=[url]
    )
    assert allowed.search.url == url
    for wrong in (
        "search: {vocabulary: words.csv}\n",
        "search: {index: a.db, url: x}\n",
        "search: 7\n",
    ):
        (folder / "articles.db").unlink(missing_ok=True)
        with pytest.raises(InputError):
            permitted_policy(policy(folder, wrong))


def test_the_command_serves_this_machine_alone(tmp_path):
    path = policy(tmp_path)
    command = [sys.executable, "-m", "discreet", "search", "proxy", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            told = running.stderr.readline()
            url = told.split(" on ")[1].split(" ")[0]
            answer = json.load(urllib.request.urlopen(f"{url}search?q=word7", timeout=60))
            assert answer["documents"] == undisguised(tmp_path / "articles.db", "word7")
            assert answer["sent"]["terms"] >= 8
            page = urllib.request.urlopen(f"{url}?q=word7", timeout=60).read().decode()
            assert "article" in page
            loud = json.load(urllib.request.urlopen(f"{url}search?q=%20WORD7", timeout=60))
            assert loud["documents"] == answer["documents"]
            for headers in (
                {"Host": "evil.example"},
                {"Sec-Fetch-Site": "cross-site"},
                {"Origin": "https://evil.example"},
                {"Origin": "null"},
            ):
                asked = urllib.request.Request(f"{url}search?q=word7", headers=headers)
                with pytest.raises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(asked, timeout=60)
                assert caught.value.code == 403
                caught.value.close()
            for asked, code in (
                ("unheard", "term-unknown"),
                ("", "search-length"),
                ("x" * 1001, "search-length"),
            ):
                with pytest.raises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(f"{url}search?q={asked}", timeout=60)
                assert json.load(caught.value)["code"] == code
                caught.value.close()
        finally:
            running.terminate()
            running.wait(60)


@pytest.mark.parametrize("term", [None, 7, "word3\0"])
def test_what_is_no_term_is_refused_before_the_engine_is_asked(tmp_path, term):
    engine = Logged(index(tmp_path, 40))
    with Proxy(engine, Goopir(k=4), vocabulary()) as proxy, pytest.raises(InputError) as caught:
        proxy.search(term)
    assert caught.value.code == "not-a-term"
