"""The one who asks: a question to all parties, one answer that the nodes agree on."""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from discreet.audit.rules import Rule
from discreet.errors import DiscreetError, EngineError, InputError
from discreet.protocols.joint.computing import Opened
from discreet.protocols.joint.contacts import Contacts
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.demand import Demand, read_demand
from discreet.protocols.joint.methods.joint_table import JointTable
from discreet.protocols.joint.outcome import JointResult, read_shown, result_of
from discreet.protocols.joint.protocol import Protocol
from discreet.protocols.joint.result import JointAnswer, assembled
from discreet.protocols.transport.client import request
from discreet.protocols.transport.frames import Message
from discreet.protocols.transport.link import Link

__all__ = ["Joint"]


Answer = TypeVar("Answer")
_RESULT_LIMIT = 1 << 24
#: Failures that tell less than others of the same run: a party that waited for a lost one left too.
_FOLLOWS = {"party-timeout": 1, "party-missing": 2, "party-gone": 3}


def _disagreeing() -> EngineError:
    return EngineError(
        "the parties do not agree on what was opened",
        code="nodes-disagree",
        hint="compare their ledgers: discreet joint verify A.db B.db C.db",
    )


def everywhere(
    pool: ThreadPoolExecutor,
    work: Callable[[str], Answer],
    names: Sequence[str],
    *,
    may_leave: Collection[str] = (),
    left: dict[str, DiscreetError] | None = None,
) -> dict[str, Answer]:
    """Do the same at all parties; of several failures raise the one that the others follow from.

    Parties in `may_leave` that are lost, or take no part, are left out, and `left` is told why.

    Where one party is lost, those who wait for it leave, and are lost to others in turn.
    """
    running = [pool.submit(work, name) for name in names]
    errors = [(one.exception(), name) for one, name in zip(running, names, strict=True)]
    found = []
    for error, name in errors:
        if name in may_leave and _takes_no_part(error):
            (left if left is not None else {}).setdefault(name, error)
        elif error is not None:
            found.append((error, name))
    if found:
        # A party does not report the loss of itself: who names it, is this side.
        raise min(
            found,
            key=lambda one: (
                _FOLLOWS.get(getattr(one[0], "code", ""), 0),
                one[1] not in str(one[0]),
            ),
        )[0]
    return {
        name: one.result()
        for one, name in zip(running, names, strict=True)
        if one.exception() is None
    }


def _takes_no_part(error: BaseException | None) -> TypeGuard[DiscreetError]:
    """Whether this is the error of a party that the others can do without."""
    return isinstance(error, EngineError) or getattr(error, "code", "") == "part-sensitive"


def _with_causes(error: EngineError, left: Mapping[str, DiscreetError]) -> EngineError:
    """Return the error of an aggregator whom too few owners stayed with, with what they said."""
    # Those who stayed lost the aggregator when it gave up.
    causes = [one.message for _, one in sorted(left.items())
              if not (one.code == "party-gone" and "says: " in one.message)]  # fmt: skip
    said = "; ".join(causes)
    if not said:
        return error
    return EngineError(f"too few owners stayed to the end: {said}", code=error.code,
                       hint="ask again when these take part")  # fmt: skip


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
        if as_ not in policy.analysts:
            raise InputError(
                f"{as_!r} is no analyst of the policy",
                code="not-an-analyst",
                hint="choose one of " + ", ".join(policy.analysts),
            )
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

    def ask(
        self, question: str | JointTable, *, totals: bool = False, margins: bool = False
    ) -> JointAnswer:
        """Return the joint answer to `SELECT keys, COUNT, SUM, AVG … [WHERE …] GROUP BY keys`.

        Or to the same question as a `JointTable`, whose own `totals` and `margins` count too.

        With `totals` also over the last key, the last two keys, and so on: each is opened where the
        withheld cells in it are safe taken together, since a total tells their sum.

        With `margins` all totals over all keys, and the subtotals of hierarchies: further cells are
        withheld so that the margins tell no sensitive one (secondary suppression).
        """
        if isinstance(question, JointTable):
            totals, margins = totals or question.totals, margins or question.margins
            table = dataclasses.replace(question, totals=totals, margins=margins)
            table.agree(self.policy)
            question = table.sql(self.policy)
        body = question.encode()
        demand = read_demand(question, self.policy, totals=totals, margins=margins)
        names = sorted({*self.policy.owners, *self.policy.nodes})
        cells = len(demand.shown(self.policy))
        rows = len(demand.opened())
        limit = cells * (1 + 8 * rows)
        waits = 3 * self.policy.time_limit
        with ThreadPoolExecutor(len(names)) as pool, contextlib.ExitStack() as stack:
            call, links = self._session(stack)

            def ask(name: str, label: str, body: bytes = b"", limit: int = 0) -> Message:
                fields = {"totals": totals, "margins": margins}
                return request(links[name], label, fields, body, limit=limit, time_limit=waits)

            everywhere(pool, call, names)
            everywhere(pool, lambda name: ask(name, "prepare", body), names)
            answers = everywhere(pool, lambda name: ask(name, "run", limit=limit), names)
        return self._agreed(demand, answers, cells, rows)

    def _session(
        self, stack: contextlib.ExitStack
    ) -> tuple[Callable[[str], None], dict[str, Link]]:
        """Return a function that calls a party in a new session, and the links that it makes."""
        session = secrets.token_hex(16)
        links: dict[str, Link] = {}

        def call(name: str) -> None:
            links[name] = stack.enter_context(
                self._contacts.call(name, session=session, purpose="ask")
            )

        return call, links

    def run(self, name: str) -> JointResult | JointAnswer:
        """Return the result of a computation that the owners agreed on, by its name in the policy.

        One that is a joint table is asked for as any table is.
        """
        agreed = self.policy.computations.get(name)
        if agreed is not None and isinstance(agreed.protocol, JointTable):
            return self.ask(agreed.protocol)
        return self._run(name)

    def _run(self, name: str) -> JointResult:
        """Return the result of a computation that is no table.

        Where the protocol survives drop-outs, owners that are not there are left out.
        """
        computation = self.policy.computations.get(name)
        if computation is None:
            raise InputError(
                f"no computation {name!r} was agreed on",
                code="unknown-computation",
                hint="choose one of " + (", ".join(self.policy.computations) or "none"),
            )
        protocol = computation.protocol
        nodes = self.policy.nodes if protocol.needs_nodes else ()
        dealer = [str(self.policy.dealer)] if protocol.needs_dealer else []
        names = sorted({*computation.owners, *nodes, *dealer})
        may_leave = computation.owners if protocol.survives else ()
        waits = 3 * self.policy.time_limit
        with ThreadPoolExecutor(len(names)) as pool, contextlib.ExitStack() as stack:
            call, links = self._session(stack)

            def prepare(party: str) -> None:
                call(party)
                fields = {"computation": name}
                request(links[party], "prepare computation", fields, time_limit=waits)

            left: dict[str, DiscreetError] = {}
            there = everywhere(pool, prepare, names, may_leave=may_leave, left=left)
            fields = {"present": sorted(there)}

            def play(party: str) -> Message:
                link = links[party]
                limit = _RESULT_LIMIT
                return request(link, "run computation", fields, limit=limit, time_limit=waits)

            try:
                answers = everywhere(pool, play, list(there), may_leave=may_leave, left=left)
            except EngineError as error:
                if error.code != "too-few-owners":
                    raise
                raise _with_causes(error, left) from None
        bodies = {bytes(one.body) for one in answers.values() if one.body}
        try:
            (body,) = bodies
            shown = read_shown(body)
        except (ValueError, RecursionError):
            raise _disagreeing() from None
        transcripts = {party: one.fields.get("transcript", {}) for party, one in answers.items()}
        return result_of(name, computation, shown, transcripts)

    def _only(self, protocol: type[Protocol] | tuple[type[Protocol], ...], name: str | None) -> str:
        """Return the name of the one computation of a kind."""
        kinds = {
            one: c
            for one, c in self.policy.computations.items()
            if isinstance(c.protocol, protocol)
        }
        if name is not None and name in kinds:
            return name
        if name is not None or len(kinds) != 1:
            raise InputError(
                f"the owners agreed on {len(kinds)} computations of this kind"
                + (f", none of them {name!r}" if name is not None else ""),
                code="unknown-computation",
                hint="name one of " + ", ".join(kinds) if kinds else "add it to the policy",
            )
        return next(iter(kinds))

    def regress(self, name: str | None = None) -> JointResult:
        """Return the regression that the owners agreed on; by name where there are several."""
        from discreet.protocols.joint.methods.joint_regression import JointRegression

        return self._run(self._only(JointRegression, name))

    def cluster(self, name: str | None = None) -> JointResult:
        """Return the clusters that the owners agreed on; by name where there are several."""
        from discreet.protocols.joint.methods.arbitrary_k_means import ArbitraryKMeans
        from discreet.protocols.joint.methods.joint_k_means import JointKMeans
        from discreet.protocols.joint.methods.vertical_k_means import VerticalKMeans

        return self._run(self._only((JointKMeans, VerticalKMeans, ArbitraryKMeans), name))

    def align(self, name: str | None = None) -> JointResult:
        """Align the persons of two owners; each keeps which of its own the other has too."""
        from discreet.protocols.joint.methods.alignment import Alignment

        return self._run(self._only(Alignment, name))

    def _agreed(
        self, demand: Demand, answers: dict[str, Message], cells: int, rows: int
    ) -> JointAnswer:
        bodies = {bytes(answers[node].body) for node in self.policy.nodes}
        try:
            if len(bodies) != 1:
                raise ValueError("bodies")
            opened = Opened.from_bytes(bodies.pop(), cells=cells, rows=rows)
        except ValueError:
            raise _disagreeing() from None
        transcripts = {name: answers[name].fields.get("transcript", {}) for name in sorted(answers)}
        ordered = {name: transcripts[name] for name in self.policy.nodes} | transcripts
        return assembled(demand, self.policy, opened.withheld, opened.values, ordered)

    def table(
        self,
        by: str | Sequence[str],
        measure: str | None = None,
        rules: Sequence[Rule] | None = None,
        *,
        where: str = "",
        totals: bool = True,
        margins: bool = False,
    ) -> JointAnswer:
        """Return counts, and sums of a measure, by some keys, with their totals or all margins.

        The owners judge by the rules of their policy. Whoever counts on certain `rules` states them,
        and nothing is asked where the owners agreed on others.
        """
        return self.ask(
            JointTable(
                (by,) if isinstance(by, str) else tuple(by),
                () if measure is None else (measure,),
                where,
                () if rules is None else tuple(rules),
                totals=totals and not margins,
                margins=margins,
            )
        )

    def sum(self, measure: str) -> JointAnswer:
        """Return the sum of a measure over all records, under the same rules as a table."""
        return self.ask(JointTable(measures=(measure,)))

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
