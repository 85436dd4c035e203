"""The schema and the plain-text statements that the parser is tested with."""

from __future__ import annotations

from pathlib import Path

from discreet.data.schema import Role
from discreet.data.sql import Catalog, Field, Join

FIXTURES = Path(__file__).parent / "fixtures"
CATALOG = Catalog(
    "people",
    (
        Field("id", "integer", Role.IDENTIFIER),
        Field("name", "text", Role.IDENTIFIER),
        Field("age", "integer", Role.QUASI),
        Field("sector", "text", Role.QUASI),
        Field("region", "text", Role.QUASI),
        Field("born", "date", Role.QUASI),
        Field("member", "boolean", Role.OTHER),
        Field("salary", "integer", Role.CONFIDENTIAL),
        Field("bonus", "number", Role.CONFIDENTIAL),
    ),
    unit="id",
    lookups={"regions": (Field("code", "text"), Field("label", "text"))},
    joins=(Join("regions", "region", "code"),),
)


def refused() -> list[tuple[str, str]]:
    """Return code and statement of each refused line."""
    found, code = [], ""
    for line in (FIXTURES / "refused.sql").read_text(encoding="utf-8").splitlines():
        if line.startswith("-- code: "):
            code = line.removeprefix("-- code: ")
        elif line and not line.startswith("--"):
            found.append((code, line))
    return found


def accepted() -> list[tuple[str, str]]:
    """Return statement and question of each accepted line."""
    lines = (FIXTURES / "accepted.sql").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line and not line.startswith("--")]
    return [
        (statement, question.removeprefix("-> "))
        for statement, question in zip(lines[::2], lines[1::2], strict=True)
    ]
