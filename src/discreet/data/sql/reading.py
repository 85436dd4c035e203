"""From text to trees, within bounds: what would take the parser too long never reaches it.

The parser goes back and reads again where a word may mean several things. Where such words follow
each other, every one of them doubles or quadruples the work: twenty joins without a condition
would keep a processor busy for minutes. Text and nesting are bounded for the same reason.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections import Counter
from collections.abc import Sequence
from typing import cast

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from discreet.data.sql.letters import is_unicode
from discreet.data.sql.spelling import POSTGRES
from discreet.errors import RefusedError

__all__ = ["DEEPEST", "LONGEST", "explained", "read_statements"]

#: A statement beyond this size or nesting is refused before it is parsed.
LONGEST = 20_000
DEEPEST = 60
#: Words that the parser goes back for, and how often a statement may hold any of them.
MOST = (
    ((TokenType.JOIN, TokenType.STRAIGHT_JOIN), 15),
    ((TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH), 4),
    ((TokenType.L_BRACE,), 4),
    ((TokenType.L_BRACKET,), 50),
)
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
#: What the parser raises over hostile text; it has not understood it then.
_STUMBLES = (SqlglotError, RecursionError, ValueError, AttributeError, TypeError, IndexError)
# It announces on its logger what it could not parse; the refusal says it already.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


def read_statements(sql: str, dialect: Dialect = POSTGRES) -> list[exp.Expression]:
    """Return the trees of the statements in a text, or refuse it.

    Examples
    --------
    >>> [tree.key for tree in read_statements("SELECT 1; SELECT 2")]
    ['select', 'select']
    >>> read_statements("SELECT 1 FROM t" + " JOIN t" * 20)
    Traceback (most recent call last):
    discreet.errors.RefusedError: the statement holds JOIN 20 times; use it at most 15 times [too-complex]
    """
    if "\x00" in sql:
        raise RefusedError(
            "the statement holds a zero byte, which no text can hold",
            code="syntax",
            hint="leave it out",
        )
    if len(sql) > LONGEST:
        raise _too_complex()
    if not is_unicode(sql):
        raise RefusedError(
            "the statement holds half a character, which no text can hold",
            code="syntax",
            hint="send it as UTF-8",
        )
    try:
        tokens = dialect.tokenize(sql)
    except _STUMBLES as error:
        raise _not_sql(error) from None
    _require_bounds(tokens, dialect)
    try:
        trees = dialect.parser().parse(tokens, sql)
    except _STUMBLES as error:
        raise _not_sql(error) from None
    return [cast("exp.Expression", tree) for tree in trees if tree is not None]


_EXPLAIN = re.compile(r"\s*explain\s+(?=[(]*\s*(select|with)\b)", re.IGNORECASE)


def explained(sql: str) -> str | None:
    """Return the question that EXPLAIN is asked about; None where the question itself is asked.

    Examples
    --------
    >>> explained("EXPLAIN SELECT COUNT(*) FROM people")
    'SELECT COUNT(*) FROM people'
    >>> explained("SELECT COUNT(*) FROM people")
    """
    match = _EXPLAIN.match(sql)
    return None if match is None else sql[match.end() :]


def _require_bounds(tokens: Sequence[Token], dialect: Dialect) -> None:
    kinds = [token.token_type for token in tokens]
    counts = Counter(kinds)
    for some, most in MOST:
        held = sum(counts[kind] for kind in some)
        if held > most:
            word = next(token.text.upper() for token in tokens if token.token_type in some)
            raise RefusedError(
                f"the statement holds {word} {held} times",
                code="too-complex",
                hint=f"use it at most {most} times",
            )
    depth = deepest = 0
    for kind in kinds:
        if kind in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif kind in _CLOSING:
            depth -= 1
    # Types inside types are read by compiled code that does not watch its stack.
    nested = dialect.parser_class.NESTED_TYPE_TOKENS
    types = sum(
        kind == TokenType.LT and before in nested for before, kind in itertools.pairwise(kinds)
    )
    if deepest + counts[TokenType.NOT] // 2 + types > DEEPEST:
        raise _too_complex()


def _too_complex() -> RefusedError:
    return RefusedError(
        "the statement is too long or nested too deeply",
        code="too-complex",
        hint=f"stay below {LONGEST} characters and {DEEPEST} levels",
    )


def _not_sql(error: Exception) -> RefusedError:
    found = getattr(error, "errors", None)
    place = "check spelling, quotes and parentheses"
    if found:
        place = f"look at line {found[0].get('line')}, column {found[0].get('col')}"
    return RefusedError("the statement is not valid SQL", code="syntax", hint=place)
