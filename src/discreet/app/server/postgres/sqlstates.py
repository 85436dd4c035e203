"""SQLSTATE of each failure: what is not offered (0A000) is told from what is not allowed (42501)."""

from __future__ import annotations

from discreet.errors import DiscreetError, EngineError, InfeasibleError, InputError, RefusedError

__all__ = ["sqlstate_of"]

_SQLSTATES: dict[type[DiscreetError], str] = {
    InputError: "42601",
    RefusedError: "42501",
    InfeasibleError: "22023",
    EngineError: "58000",
}
_BY_CODE = {
    "syntax": "42601",
    "not-sql": "42601",
    "several-statements": "42601",
    "unknown-column": "42703",
    "ambiguous-column": "42702",
    "unknown-relation": "42P01",
    "catalog-name": "42P01",
    "no-relation": "42P01",
    "taken-name": "42P07",
    "unknown-position": "42P10",
    "not-grouped": "42803",
    "misplaced-aggregate": "42803",
    "type-mismatch": "42804",
    "malformed-date": "22007",
    "malformed-literal": "22P02",
    "malformed-limit": "22023",
    "malformed-quantile": "22023",
    "large-number": "22003",
    "no-value": "22000",
    "unknown-statement": "26000",
    "repeated-statement": "42P05",
    "unknown-portal": "34000",
    "unknown-setting": "42704",
    "malformed-parameter": "22P02",
    "missing-parameter": "08P01",
    "wrong-parameters": "08P01",
    "unsupported-encoding": "22023",
    "transaction-failed": "25P02",
    "too-many-statements": "53400",
    "rate-limited": "53400",
    "budget-exhausted": "53400",
    "too-complex": "54001",
    "outer-too-large": "54000",
    "outer-failed": "42804",
    "busy": "40001",
    "statement-timeout": "57014",
    "interrupted": "57014",
    "malformed-setting": "22023",
    # What is not offered, in contrast to what is refused to protect somebody (42501).
    **dict.fromkeys(
        (
            "constant-aggregate", "interval-outside", "misplaced-subquery", "no-copy", "no-cursors",
            "not-a-select", "not-linear", "star", "unnamed-column", "unsafe-cast", "unsafe-division",
            "unsupported-aggregate", "unsupported-cast", "unsupported-clause", "unsupported-distinct",
            "unsupported-expression", "unsupported-join", "unsupported-noise", "unsupported-source",
            "unsupported-subquery", "unbounded-product",
        ),
        "0A000",
    ),
}  # fmt: skip


def sqlstate_of(error: DiscreetError) -> str:
    """Return PostgreSQL's code of a failure: by what happened, else by its kind."""
    by_kind = (state for kind, state in _SQLSTATES.items() if isinstance(error, kind))
    return _BY_CODE.get(error.code) or next(by_kind, "XX000")
