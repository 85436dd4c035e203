"""Answers that the ledger holds of other guards, which would narrow intervals or be narrowed by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from discreet.audit.dependences import families
from discreet.data.sql import parse
from discreet.errors import RefusedError
from discreet.ledger.store import Ledger
from discreet.queries.deciding import columns_of
from discreet.queries.guards._base import Guard, Protected

__all__ = ["require_no_other_answers"]


def require_no_other_answers(
    data: Protected,
    ledger: Ledger,
    applying: Mapping[str, Iterable[Guard]],
    kin: Iterable[Mapping[str, str]],
) -> None:
    """Refuse to answer about a column by intervals that sure answers of other settings narrow.

    `applying` are the guards of each confidential column, `kin` the columns that tell of each other.
    What was told before the gateway opened counts as what is told by another guard beside it.
    """
    sure = {
        column: {guard.digest for guard in guards if guard.answers != "noisy"}
        for column, guards in applying.items()
    }
    told = ledger.told_settings(data.name)
    intervals = {guard.digest for guard in data.guards if guard.answers == "interval"}
    intervals |= {settings for kind, settings in told if kind == "interval"}
    everything = {settings for _, settings in told}.union(*sure.values())
    if not intervals or len(everything) < 2:
        return
    for settings, question in ledger.told_questions(data.name):
        for column in columns_of(parse(question, data.catalog)) & data.confidential:
            sure.setdefault(column, set()).add(settings)
    name_of = families((), [(one, name) for family in kin for one, name in family.items()])
    together: dict[str, set[str]] = {}
    for column, settings_of in sure.items():
        together.setdefault(name_of.get(column, column), set()).update(settings_of)
    for column in sorted(sure):
        found = together[name_of.get(column, column)]
        if len(found) > 1 and found & intervals:
            raise RefusedError(
                f"the ledger holds answers about {column!r} under other settings, and intervals "
                "would narrow them or be narrowed by them",
                code="guards-not-together",
                column=column,
                hint="open the records with the guard that answered before, answer about this column "
                "under Perturbation, or vouch that those who were answered do not share: apart=True",
            )
