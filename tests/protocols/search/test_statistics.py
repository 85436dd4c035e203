"""Searches before the product's own gateway: it sees whole buckets, the reader gets one group."""

import pytest

import discreet as dc
from discreet.app.cli.commands.search import _connected
from discreet.app.policy.access import permitted_policy
from discreet.demo.datasets import salaries
from discreet.errors import InputError
from discreet.protocols.search.statistics import StatisticalGateway
from tests.app.server.test_http import running

STATEMENT = "SELECT sector, COUNT(*) AS n FROM people WHERE sector IN ({terms}) GROUP BY sector"


def policy(folder, address):
    sectors = sorted(set(salaries().arrow(["sector"]).column("sector").to_pylist()))
    words = "".join(f"{sector},10\n" for sector in sectors)
    (folder / "words.csv").write_text("term,count\n" + words)
    (folder / "policy.yaml").write_text(
        f"search: {{vocabulary: words.csv, gateway: '{address}', user: ana,\n"
        f"  statement: '{STATEMENT}', disguise: {{goopir: {{cap: 0.5, k: 2}}}}}}\n"
    )
    return permitted_policy(folder / "policy.yaml", allow=[address])[0].search


def test_the_gateway_sees_buckets_and_the_reader_gets_the_group(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_PASSWORD", "s3cret")
    asked = []
    plain = dc.Client.ask

    def listening(self, sql, parameters=()):
        asked.append(tuple(parameters))
        return plain(self, sql, parameters)

    monkeypatch.setattr(dc.Client, "ask", listening)
    truth = salaries().arrow(["sector"]).column("sector").to_pylist()
    with running() as address:
        search = policy(tmp_path, address)
        buckets = search.disguise.prepare(dc.Vocabulary.of(dict.fromkeys(sorted(set(truth)), 10)))
        with search.open(_connected) as proxy:
            for sector in sorted(set(truth)):
                found = proxy.search(sector).documents
                assert found == [{"sector": sector, "n": truth.count(sector)}]
                # The same statement for every term of the bucket.
                assert asked[-1] == buckets.disguise(sector)
                assert len(asked[-1]) >= 2


def test_a_gateway_needs_a_user_and_a_statement_with_terms(tmp_path):
    with pytest.raises(InputError) as caught:
        StatisticalGateway(lambda *_: [], "SELECT COUNT(*) FROM people")
    assert caught.value.code == "missing-terms"
    (tmp_path / "policy.yaml").write_text("search: {gateway: 'https://host:8433', user: ana}\n")
    with pytest.raises(InputError) as caught:
        permitted_policy(tmp_path / "policy.yaml", allow=["https://host:8433"])
    assert "asked by a user, with a statement" in str(caught.value)
    (tmp_path / "policy.yaml").write_text("search: {gateway: 'https://host:8433', index: a.db}\n")
    with pytest.raises(InputError, match="an index, to a service or to a gateway"):
        permitted_policy(tmp_path / "policy.yaml", allow=["https://host:8433"])
