"""Statements built to exhaust stack or patience: refused or read soon, and nothing crashes."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys

import pytest

from discreet.data.sql import Catalog, Field
from discreet.data.sql.statement import read_statement
from discreet.errors import RefusedError

#: What is repeated up to the largest text, between what comes before and after.
NESTED = {
    "minus": ("SELECT ", "- ", "1"),
    "not": ("SELECT COUNT(*) FROM people WHERE ", "NOT\t", "true"),
    "plus": ("SELECT ", "1+", "1"),
    "and": ("SELECT COUNT(*) FROM people WHERE ", "age=1 AND ", "age=2"),
    "or": ("SELECT COUNT(*) FROM people WHERE ", "age=1 OR ", "age=2"),
    "equal": ("SELECT COUNT(*) FROM people WHERE ", "age=", "1"),
    "cast": ("SELECT age", "::int", ""),
    "types": ("SELECT age::", "ARRAY<", "int"),
    "dots": ("SELECT age", ".age", ""),
    "union": ("SELECT 1", " UNION SELECT 1", ""),
    "arrow": ("SELECT f(", "x->", "x)"),
    "assignment": ("SELECT ", "a:=", "1"),
    "power": ("SELECT ", "2^", "1"),
    "maps": ("SELECT age::", "MAP<", "int"),
    "straight joins": ("SELECT 1 FROM people", " STRAIGHT_JOIN people", " ON 1=1"),
    "joins": ("SELECT 1 FROM people", " JOIN people", " ON 1=1"),
    "calls": ("SELECT COUNT(*) FROM people WHERE ", "f( t LIMIT ", "1"),
    "objects": ("SELECT ", "{ a LIMIT ", "1"),
    "interval": ("SELECT ", "INTERVAL ", "1"),
    "case": ("SELECT ", "CASE\nWHEN ", "a"),
    "parentheses": ("SELECT ", "(", "1"),
    "from": ("", "FROM ", "people"),
    "in": ("SELECT age", " IN age", ""),
    "braces": ("SELECT ", "{", "1"),
    "bang": ("SELECT ", "!", "age"),
    "root": ("SELECT ", "|/ ", "4"),
    "any": ("SELECT age = ", "ANY ", "age"),
    "zone": ("SELECT age", " AT TIME ZONE age", ""),
    "index": ("SELECT age", "[1]", ""),
    "describe": ("", "DESCRIBE ", "people"),
    "common": ("", "WITH a AS (SELECT 1) ", "SELECT 1"),
}

PROBE = """
import json, os, sys, threading
from discreet.data.sql import Catalog, Field, parse
from discreet.errors import RefusedError

catalog = Catalog("people", (Field("age", "integer"),))

def ask(before, again, after):
    most = (19_900 - len(before) - len(after)) // len(again)
    for times in (50, 300, most):
        try:
            parse(before + again * times + after, catalog)
        except RefusedError:
            pass
    os._exit(7)

ended = {}
for name, given in json.loads(sys.argv[1]).items():
    child = os.fork()
    if child == 0:
        # In a thread, whose stack is smaller; one that fails does not get to the end of `ask`.
        thread = threading.Thread(target=ask, args=given)
        thread.start()
        thread.join()
        os._exit(1)
    ended[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(ended))
"""
SURVIVED = 7


@pytest.fixture(scope="module")
def ended():
    """How a process of its own ended for each nesting: a crash would end the tests themselves."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(NESTED)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.xdist_group("nesting")
@pytest.mark.parametrize("name", NESTED)
def test_no_nesting_brings_the_process_down(name, ended):
    assert ended[name] == SURVIVED


@pytest.mark.parametrize("sql", ["SELECT age{}", "SELECT SUM(age{}) FROM people"])
def test_work_grows_with_the_length_of_a_chain_not_with_its_square(sql):
    """4,000 casts after each other took six seconds, as each looked at all below it."""
    catalog = Catalog("people", (Field("age", "integer"),))
    calls = []
    for times in (30, 60, 120):
        count = itertools.count()
        sys.setprofile(lambda _frame, event, _given, count=count: event == "call" and next(count))
        try:
            with contextlib.suppress(RefusedError):
                read_statement(sql.format("::int" * times), catalog)
        finally:
            sys.setprofile(None)
        calls.append(next(count))
    assert calls[2] - calls[1] < 2.5 * (calls[1] - calls[0])


WORDS = """SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET FETCH JOIN STRAIGHT_JOIN LEFT CROSS NATURAL ON USING
LATERAL UNION ALL EXCEPT WITH RECURSIVE AS VALUES ( ) [ ] { } , . : :: ; + - * / ^ = < > || -> ~ ! @
AND OR NOT IS NULL IN EXISTS ANY BETWEEN LIKE ESCAPE CASE WHEN THEN ELSE END CAST INTERVAL DATE
TIMESTAMP AT TIME ZONE COLLATE ARRAY ROW STRUCT MAP OVER PARTITION FILTER WITHIN DISTINCT
TABLESAMPLE PIVOT UNPIVOT FOR ONLY IF EXTRACT SUBSTRING numeric int t a f( 1 'x' "q" UNNEST QUALIFY
MATCH_RECOGNIZE CONNECT PRIOR ASOF DESCRIBE EXPLAIN CREATE INSERT MERGE"""

REPEATED = """
import random, sys
from discreet.data.sql.reading import read_statements
from discreet.errors import RefusedError

words, chance = sys.argv[2].split(), random.Random(int(sys.argv[1]))
for number in range(400):
    phrase = " ".join(chance.choice(words) for _ in range(chance.randint(1, 5))) + " "
    start = chance.choice(["SELECT ", "SELECT 1 FROM t ", "SELECT 1 FROM t WHERE ", "SELECT f(", ""])
    for times in (12, 40, 19_000 // len(phrase)):
        try:
            read_statements(start + phrase * times)
        except RefusedError:
            pass
print("survived")
"""


@pytest.mark.parametrize("seed", range(3))
def test_repeated_words_are_read_or_refused_at_last(seed):
    """What doubles its work with each word would not come to an end."""
    done = subprocess.run(
        [sys.executable, "-c", REPEATED, str(seed), WORDS],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "survived\n", "")
