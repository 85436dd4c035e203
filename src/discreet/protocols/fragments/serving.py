"""The program beside a database: it multiplies the columns of its fragment with those of others."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.data.engines import connect
from discreet.errors import DiscreetError, EngineError, InputError, RefusedError
from discreet.protocols.fragments.circle import CONTROLLER, Circle
from discreet.protocols.fragments.clouds import ROW_ID, order_of, selected
from discreet.protocols.fragments.products import Multiplier
from discreet.protocols.transport.frames import Message
from discreet.protocols.transport.link import Link
from discreet.protocols.transport.server import Server, answer_requests

__all__ = ["CloudServer"]

_REQUEST_LIMIT = 1 << 16
Floats = npt.NDArray[np.float64]


class CloudServer:
    """Answers the controller about one fragment; its columns stay here.

    Parameters
    ----------
    circle
        The controller and all such programs.
    name
        Which of them this is.
    database
        The database beside it.
    key
        Its private key; by default the file beside its certificate.
    """

    def __init__(
        self, circle: Circle, name: str, database: str, key: str | Path | None = None
    ) -> None:
        if name not in circle.clouds:
            raise InputError(
                f"{name!r} is no database of the circle",
                code="unknown-party",
                hint="choose one of " + ", ".join(circle.clouds),
            )
        self._multiplier, self._database, self._circle = (
            Multiplier(circle, name, key), database, circle,
        )  # fmt: skip
        self._held: dict[str, Floats] = {}
        self._lock = threading.Lock()
        contacts = self._multiplier.contacts
        self._server = Server(
            str(circle.parties[name].address),
            identity=contacts.identity,
            clients=contacts.certificates,
            handle=self._handle,
            time_limit=circle.time_limit,
        )

    def _handle(self, link: Link) -> None:
        session, purpose = self._multiplier.take(link)
        if purpose == "stream":
            return
        if link.peer != CONTROLLER:
            raise RefusedError("only the controller asks", code="message-unexpected")
        answers = {"columns": self._columns, "multiply": self._multiply}

        def answer(peer: str, message: Message) -> Message:
            del peer
            if message.label not in answers:
                raise RefusedError("there is no such request", code="message-unexpected")
            try:
                return answers[message.label](session, message.fields)
            except (KeyError, TypeError, ValueError):
                raise RefusedError("the request is malformed", code="message-malformed") from None

        try:
            answer_requests(answer, limit=_REQUEST_LIMIT, idle=self._circle.time_limit)(link)
        finally:
            with self._lock:
                self._held.pop(session, None)

    def _columns(self, session: str, fields: Mapping[str, Any]) -> Message:
        """Read columns, less their means; return their covariances and how large they are."""
        names = [str(one) for one in fields["columns"]]
        values = self._read(names, bytes.fromhex(fields["order"]), int(fields["records"]))
        values = values - values.mean(axis=0)
        scales = np.maximum(np.abs(values).max(axis=0), 1e-300)
        with self._lock:
            self._held[session] = values / scales
        own = values.T @ values / (len(values) - 1)
        return Message("columns", {}, np.concatenate([scales[None], own]).astype("<f8").tobytes())

    def _read(self, names: list[str], order: bytes, records: int) -> Floats:
        """Return columns in the order of the records, which the controller's seed tells."""
        relation = self._circle.relation
        try:
            with contextlib.closing(connect(self._database)) as engine:
                query = selected(relation, [*names, ROW_ID])
                table = engine.aggregate(query, {relation: engine.table(relation)})
            rows = table.column(ROW_ID).to_numpy()
            columns = [table.column(name).to_pylist() for name in names]
        except DiscreetError:
            # What an engine says of a failure may quote a record.
            raise EngineError(
                "the fragment could not be read",
                code="cloud-failed",
                hint="see that the database runs and holds the fragment",
            ) from None
        if len(rows) != records or not np.array_equal(np.sort(rows), np.arange(records)):
            raise InputError(
                "the fragment has other rows than when it was split",
                code="fragment-changed",
                hint="split the relation again",
            )
        for name, column in zip(names, columns, strict=True):
            fits = all(isinstance(one, bool | int | float | np.number) or _is_decimal(one)
                       for one in column)  # fmt: skip
            if not fits or not np.isfinite(np.asarray(column, dtype=np.float64)).all():
                raise InputError(
                    f"column {name!r} has a value that is missing or no number",
                    code="no-number",
                    column=name,
                    hint="choose columns of numbers without gaps",
                )
        found = np.empty((records, len(names)))
        values = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)
        found[order_of(order, records)[rows]] = values
        return found

    def _multiply(self, session: str, fields: Mapping[str, Any]) -> Message:
        """Take part in the product with another cloud's columns."""
        first, second = (str(one) for one in fields["clouds"])
        widths = [int(one) for one in fields["widths"]]
        with self._lock:
            own = self._held[session]
        name = self._multiplier.name
        others = {first, second} - {name}
        if name not in (first, second) or not others <= set(self._circle.clouds) - {name}:
            raise RefusedError("the product is not of this database", code="message-unexpected")
        if len(others) != 1 or widths[(first, second).index(name)] != own.shape[1]:
            raise RefusedError("the product is not of these columns", code="message-unexpected")
        self._multiplier.multiply(f"{session} {first} {second}", (first, second), widths, own)
        return Message("multiplied")

    def close(self) -> None:
        """Stop listening."""
        self._server.close()

    def __enter__(self) -> CloudServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_decimal(value: object) -> bool:
    import decimal

    return isinstance(value, decimal.Decimal)
