"""Tables and servers for tests of private retrieval."""

from __future__ import annotations

import contextlib

import numpy as np
import pandas as pd

from discreet.protocols.retrieval.asking import Retrieval
from discreet.protocols.retrieval.serving import Serving
from discreet.protocols.retrieval.signing import Publisher
from discreet.protocols.retrieval.table import RetrievalTable
from discreet.protocols.transport import Identity, Server, answer_requests
from tests.protocols.transport.parties import free_ports

PUBLISHER = Publisher(bytes(range(32)))
CITIES = ["TGN", "BCN", "GRO", "LLE", "REU"]


def people(rows, seed=1):
    drawn = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": np.arange(rows) * 7 + 3,
            "name": [f"person {n}" for n in range(rows)],
            "city": [CITIES[n] for n in drawn.integers(0, 4, rows)],
            "pay": drawn.integers(10, 90, rows) * 1000.0,
        }
    )


def built(folder, rows=300, data=None, **options):
    options = {"key": "id", "publishable": True, "name": "people"} | options
    return RetrievalTable.build(
        people(rows) if data is None else data,
        folder=folder / "people",
        publisher=PUBLISHER,
        **options,
    )


@contextlib.contextmanager
def serving(folders, place, answer=None, rate=10_000.0, idle=300.0):
    """Serve a folder at each of some servers; give addresses, pins and the servings."""
    with contextlib.ExitStack() as stack:
        addresses, pins, servings = [], [], []
        for number, (folder, port) in enumerate(
            zip(folders, free_ports(len(folders)), strict=True)
        ):
            identity = Identity.new(place, f"server-{port}-{number}")
            one = Serving({"people": folder}, rate=rate, burst=100_000)
            said = one.answer if answer is None else answer(number, one)
            address = f"127.0.0.1:{port}"
            stack.enter_context(
                Server(
                    address,
                    identity=identity,
                    clients=None,
                    handle=answer_requests(said, limit=one.limit, idle=idle),
                )
            )
            addresses.append(address)
            pins.append(identity.pin)
            servings.append(one)
        yield addresses, pins, servings


def asker(addresses, pins, **options):
    return Retrieval(
        addresses, table="people", pins=pins, publisher=PUBLISHER.reader.public, **options
    )
