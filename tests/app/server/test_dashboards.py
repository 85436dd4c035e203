"""The corpus of dashboards' statements: most are answered, the rest say what to ask instead."""

import re

import psycopg
import pytest

from discreet.app.server.postgres.sqlstates import sqlstate_of
from discreet.errors import RefusedError
from tests.app.server.dashboards import corpus, outcomes

PARSER = re.compile(r"\b(DPIPE|STAR|TIMESTAMPTRUNC|STRPOSITION|NEQ|GTE|LTE|ANONYMOUS|BRACKET)\b")


def test_the_corpus_is_large_and_names_its_sources():
    cases = corpus()
    assert len(cases) >= 200
    assert len({case.sql for case in cases}) == len(cases)
    tools = {case.tool for case in cases}
    assert tools == {"Metabase", "Superset", "Grafana", "Tableau", "Power BI"}
    assert all(case.source for case in cases)


@pytest.fixture(scope="module")
def found():
    return outcomes("perturbation", corpus())


def test_most_statements_of_dashboards_are_answered(found):
    answered = sum(code == "answered" for code, _, _ in found)
    assert answered >= 0.8 * len(found)


def test_the_others_are_refused_in_words_that_help(found):
    for case, (code, message, hint) in zip(corpus(), found, strict=True):
        if code == "answered":
            continue
        assert hint, case.sql
        assert not PARSER.search(f"{message} {hint}"), message
        assert code not in ("not-computable", "refused"), case.sql


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("unsupported-clause", "0A000"),
        ("unsupported-expression", "0A000"),
        ("not-a-select", "0A000"),
        ("type-mismatch", "42804"),
        ("no-aggregate", "42501"),
        ("identifier-column", "42501"),
        ("too-few-records", "42501"),
        ("not-grouped", "42803"),
        ("budget-exhausted", "53400"),
        ("unknown-column", "42703"),
    ],
)
def test_what_is_not_offered_is_told_from_what_is_not_allowed(code, state):
    assert sqlstate_of(RefusedError("no", code=code)) == state
    assert psycopg.errors.lookup(state) is not None
