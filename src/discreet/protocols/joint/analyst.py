"""The one who asks: a question to all parties, one answer that the nodes agree on."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from sqlglot import exp

from discreet.errors import EngineError
from discreet.protocols.joint.computing import Opened
from discreet.protocols.joint.contacts import Contacts
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.demand import Demand, read_demand
from discreet.protocols.joint.result import JointTable, assembled
from discreet.protocols.transport.client import request
from discreet.protocols.transport.frames import Message
from discreet.protocols.transport.link import Link

__all__ = ["Joint"]


Answer = TypeVar("Answer")
#: Failures that tell less than others of the same run: a party that waited for a lost one left too.
_FOLLOWS = {"party-timeout": 1, "party-missing": 2, "party-gone": 3}


def quoted(name: str) -> str:
    """Return a name as SQL writes it, whatever it contains."""
    return exp.to_identifier(name, quoted=True).sql(dialect="postgres")


def everywhere(
    pool: ThreadPoolExecutor, work: Callable[[str], Answer], names: Sequence[str]
) -> list[Answer]:
    """Do the same at all parties; of several failures raise the one that the others follow from.

    Where one party is lost, those who wait for it leave, and are lost to others in turn.
    """
    running = [pool.submit(work, name) for name in names]
    errors = [(one.exception(), name) for one, name in zip(running, names, strict=True)]
    found = [(error, name) for error, name in errors if error is not None]
    if found:
        # A party does not report the loss of itself: who names it, is this side.
        raise min(
            found,
            key=lambda one: (
                _FOLLOWS.get(getattr(one[0], "code", ""), 0),
                one[1] not in str(one[0]),
            ),
        )[0]
    return [one.result() for one in running]


class Joint:
    """Owners that compute together, as an analyst reaches them.

    Parameters
    ----------
    policy
        What all parties agreed on.
    as_
        Which party asks.
    key
        Its private key; by default the file beside its certificate.

    Examples
    --------
    >>> import pandas as pd
    >>> hospitals = [
    ...     pd.DataFrame({"icd": ["A", "A", "A", "B"], "cost": [10, 12, 11, 900]}),
    ...     pd.DataFrame({"icd": ["A", "A", "A", "B"], "cost": [13, 11, 12, 5]}),
    ...     pd.DataFrame({"icd": ["A", "A", "A"], "cost": [9, 10, 12]}),
    ... ]
    >>> with Joint.local(hospitals, name="stays", keys=["icd"], measures=["cost"]) as joint:
    ...     table = joint.ask(
    ...         "SELECT icd, COUNT(*) AS n, SUM(cost) AS cost FROM stays GROUP BY icd"
    ...     )
    >>> print(table)
    icd  n  cost  status
    A    9  100   safe
    B             withheld
    """

    def __init__(
        self, policy: JointPolicy, as_: str = "analyst", *, key: str | Path | None = None
    ) -> None:
        self.policy = policy
        self._contacts = Contacts(policy, as_, key)
        self._closing: Any = None

    @classmethod
    def local(cls, data: Sequence[Any], **options: Any) -> Joint:
        """Start all parties as processes on this machine; see `local.start` for the options.

        For demonstrations and tests: whoever calls it holds the records of every owner.
        """
        from discreet.protocols.joint.local import start

        parties = start(data, **options)
        joint = cls(parties.policy)
        joint._closing = parties
        return joint

    def ask(self, sql: str, *, totals: bool = False) -> JointTable:
        """Return the joint answer to `SELECT keys, COUNT, SUM, AVG … [WHERE …] GROUP BY keys`.

        With `totals` also over the last key, the last two keys, and so on: each is opened where the
        withheld cells in it are safe taken together, since a total tells their sum.
        """
        demand = read_demand(sql, self.policy, totals=totals)
        session = secrets.token_hex(16)
        names = sorted({*self.policy.owners, *self.policy.nodes})
        cells = len(demand.shown(self.policy))
        rows = len(demand.opened())
        limit = cells * (1 + 8 * rows)
        waits = 3 * self.policy.time_limit
        links: dict[str, Link] = {}
        with ThreadPoolExecutor(len(names)) as pool, contextlib.ExitStack() as stack:

            def call(name: str) -> None:
                links[name] = stack.enter_context(
                    self._contacts.call(name, session=session, purpose="ask")
                )

            def ask(name: str, label: str, body: bytes = b"", limit: int = 0) -> Message:
                fields = {"totals": totals}
                return request(links[name], label, fields, body, limit=limit, time_limit=waits)

            everywhere(pool, call, names)
            everywhere(pool, lambda name: ask(name, "prepare", sql.encode()), names)
            answers = everywhere(pool, lambda name: ask(name, "run", limit=limit), names)
        return self._agreed(demand, dict(zip(names, answers, strict=True)), cells, rows)

    def _agreed(
        self, demand: Demand, answers: dict[str, Message], cells: int, rows: int
    ) -> JointTable:
        bodies = {bytes(answers[node].body) for node in self.policy.nodes}
        try:
            if len(bodies) != 1:
                raise ValueError("bodies")
            opened = Opened.from_bytes(bodies.pop(), cells=cells, rows=rows)
        except ValueError:
            raise EngineError(
                "the nodes do not agree on what was opened",
                code="nodes-disagree",
                hint="compare their ledgers: discreet joint verify A.db B.db C.db",
            ) from None
        transcripts = {name: answers[name].fields.get("transcript", {}) for name in sorted(answers)}
        ordered = {name: transcripts[name] for name in self.policy.nodes} | transcripts
        return assembled(demand, self.policy, opened.withheld, opened.values, ordered)

    def table(
        self, by: str | Sequence[str], measure: str | None = None, *, totals: bool = True
    ) -> JointTable:
        """Return counts, and sums of a measure, by some keys, with their totals."""
        keys = ", ".join(quoted(key) for key in ([by] if isinstance(by, str) else by))
        what = f"{keys}, COUNT(*) AS count" + (
            "" if measure is None else f", SUM({quoted(measure)}) AS sum"
        )
        relation = quoted(self.policy.relation)
        return self.ask(f"SELECT {what} FROM {relation} GROUP BY {keys}", totals=totals)  # noqa: S608 - names are quoted, and every party reads it by whitelist

    def sum(self, measure: str) -> JointTable:
        """Return the sum of a measure over all records, under the same rules as a table."""
        relation = quoted(self.policy.relation)
        return self.ask(f"SELECT COUNT(*) AS count, SUM({quoted(measure)}) AS sum FROM {relation}")  # noqa: S608 - as above

    @property
    def ledgers(self) -> tuple[Path, ...]:
        """Ledgers of the parties that `local` started; elsewhere each party has its own."""
        return () if self._closing is None else tuple(self._closing.ledgers.values())

    def close(self) -> None:
        """Stop the processes that `local` started."""
        if self._closing is not None:
            self._closing.close()
            self._closing = None

    def __enter__(self) -> Joint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
