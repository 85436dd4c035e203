"""Covariances over fragments: each database keeps its columns, the controller gets the sums."""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import yaml

from discreet.data.addresses import database_file, duckdb_address
from discreet.errors import InputError, RefusedError
from discreet.protocols.fragments.circle import CONTROLLER, Circle
from discreet.protocols.fragments.clouds import Clouds
from discreet.protocols.fragments.products import ControlledProduct, Multiplier
from discreet.protocols.joint.learned import Leakage
from discreet.protocols.joint.local import await_listening, free_ports, launch, stop
from discreet.protocols.transport.client import request
from discreet.protocols.transport.identity import Identity
from discreet.protocols.transport.link import Link
from discreet.protocols.transport.server import Server
from discreet.protocols.transport.transcript import Transcript
from discreet.report import Report, Rows

if TYPE_CHECKING:
    import pandas

__all__ = ["DATABASE", "Covariances", "covariances"]

Floats = npt.NDArray[np.float64]
#: Tells a program beside a database which one it is; an address may hold a password.
DATABASE = "DISCREET_FRAGMENT_DATABASE"


@dataclasses.dataclass(frozen=True, eq=False)
class Covariances(Report):
    """Covariances over fragments, and the bytes that the controller sent and received for them."""

    frame: pandas.DataFrame
    controller_bytes: int
    leakage: Leakage

    def rows(self) -> Rows:
        """Return one line for each column."""
        lines = [(name, *map(float, row)) for name, row in self.frame.iterrows()]
        return ("column", *map(str, self.frame.columns)), lines


def covariances(
    fragments: Clouds, columns: Sequence[str], *, circle: Circle | str | Path | None = None
) -> Covariances:
    """Return the covariances of some columns, wherever they are.

    The program beside each database multiplies its own columns, and with the program beside another
    those of both, under masks that the controller deals as seeds: what the controller sends and
    receives does not grow with the records. Without a `circle` these programs are started here.
    """
    import pandas as pd

    held: dict[int, list[str]] = {}
    for name in dict.fromkeys(columns):
        where = [place for place, cloud in enumerate(fragments.clouds) if name in cloud.columns]
        if not where:
            raise InputError(f"there is no column {name!r}", code="unknown-column")
        held.setdefault(where[0], []).append(name)
    if fragments.records < 2 or not held:
        raise InputError(
            "covariances need two records and a column", code="too-few-records",
            hint="name columns of a relation with more records",
        )  # fmt: skip
    named = list(dict.fromkeys(columns))
    frame = pd.DataFrame(np.nan, index=named, columns=named)
    with contextlib.ExitStack() as stack:
        if circle is None:
            circle = stack.enter_context(_started(fragments))
        elif not isinstance(circle, Circle):
            circle = Circle.read(circle)
        if circle.relation != fragments.relation or len(circle.clouds) != len(fragments.clouds):
            raise InputError(
                "the circle is of other fragments", code="circle",
                hint=f"name {fragments.relation} and its {len(fragments.clouds)} databases in order",
            )  # fmt: skip
        controller = stack.enter_context(_Controller(circle))
        blocks = {
            place: controller.columns(place, names, fragments) for place, names in held.items()
        }
        for place, names in held.items():
            frame.loc[names, names] = blocks[place].own
            for other in (one for one in held if one > place):
                found = controller.product(blocks[place], blocks[other])
                found = found / (fragments.records - 1)
                frame.loc[names, held[other]] = found
                frame.loc[held[other], names] = found.T
        total = controller.bytes
    return Covariances(frame, total, ControlledProduct().leakage())


@dataclasses.dataclass(frozen=True, eq=False)
class _Block:
    """What one database said of its columns."""

    cloud: str
    own: Floats
    scales: Floats


class _Controller:
    """The controller's side: it asks, deals masks, and counts what passes through its links."""

    def __init__(self, circle: Circle) -> None:
        self._circle = circle
        self._multiplier = Multiplier(circle, CONTROLLER)
        self._session = secrets.token_hex(16)
        self._links: dict[str, Link] = {}
        self._transcripts = [Transcript(CONTROLLER)]
        contacts = self._multiplier.contacts
        self._server = Server(
            str(circle.parties[CONTROLLER].address),
            identity=contacts.identity,
            clients=contacts.certificates,
            handle=lambda link: self._multiplier.take(link) and None,
            time_limit=circle.time_limit,
        )

    def _ask(self, cloud: str, label: str, fields: dict[str, Any], limit: int = 0) -> Any:
        if cloud not in self._links:
            link = self._multiplier.contacts.call(cloud, session=self._session, purpose="ask")
            asking = self._transcripts[0]
            link.keep(sent=asking.sent(cloud), received=asking.received(cloud))
            self._links[cloud] = link
        waits = 3 * self._circle.time_limit
        return request(self._links[cloud], label, fields, limit=limit, time_limit=waits)

    def columns(self, place: int, names: list[str], fragments: Clouds) -> _Block:
        """Have a database read its columns; return their covariances and scales."""
        cloud, width = self._circle.clouds[place], len(names)
        # Padded: not even the digits of their number make a message longer.
        fields = {"columns": names, "order": fragments.clouds[place].seed.hex(),
                  "records": f"{fragments.records:020d}"}  # fmt: skip
        answer = self._ask(cloud, "columns", fields, limit=8 * (width + 1) * width)
        try:
            found = np.frombuffer(answer.body, dtype="<f8").reshape(width + 1, width)
        except ValueError:
            raise RefusedError("a database answers nonsense", code="message-malformed") from None
        return _Block(cloud, found[1:], found[0])

    def product(self, x: _Block, y: _Block) -> Floats:
        """Return the sums of products of the columns of two databases."""
        clouds, widths = (x.cloud, y.cloud), [len(x.scales), len(y.scales)]
        fields = {"clouds": list(clouds), "widths": widths}
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(self._ask, cloud, "multiply", fields) for cloud in clouds]
            try:
                outcome, transcript = self._multiplier.multiply(
                    f"{self._session} {clouds[0]} {clouds[1]}", clouds, widths
                )
            finally:
                said = [one.exception() for one in asked]
            for error in filter(None, said):
                raise error
        self._transcripts.append(transcript)
        return outcome.shown["product"] * np.outer(x.scales, y.scales)

    @property
    def bytes(self) -> int:
        """What was sent and received so far."""
        return sum(
            way["bytes"]
            for transcript in self._transcripts
            for direction in ("sent", "received")
            for way in transcript.to_dict()[direction].values()
        )

    def __enter__(self) -> _Controller:
        return self

    def __exit__(self, *_: object) -> None:
        for link in self._links.values():
            link.close()
        self._server.close()


@contextlib.contextmanager
def _started(fragments: Clouds) -> Iterator[Circle]:
    """Start the program of each database as a process on this machine, and end it."""
    folder = Path(tempfile.mkdtemp(prefix="discreet-fragments-"))
    names = [f"cloud{place + 1}" for place in range(len(fragments.clouds))]
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in (CONTROLLER, *names):
            Identity.new(folder, name)
        ports = free_ports(1 + len(names))
        stated = {
            "relation": fragments.relation,
            "parties": {
                name: {"address": f"127.0.0.1:{port}", "certificate": f"{name}.crt"}
                for name, port in zip((CONTROLLER, *names), ports, strict=True)
            },
        }
        file = folder / "circle.yaml"
        file.write_text(yaml.safe_dump(stated, sort_keys=False), encoding="utf-8")
        for name, cloud in zip(names, fragments.clouds, strict=True):
            words = ["fragments", "cloud", file.name, "--as", name]
            processes[name] = launch(folder, name, words, {DATABASE: _absolute(cloud.address)})
        await_listening(folder, processes)
        yield Circle.read(file)
    finally:
        stop(processes, folder)


def _absolute(address: str) -> str:
    """Return the address as a process in another folder understands it."""
    if not address.startswith("duckdb:"):
        return address
    file = database_file(address)
    if file is None:
        return address
    return duckdb_address(Path(file).resolve(), settings=urlsplit(address).query)
