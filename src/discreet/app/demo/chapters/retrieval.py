"""Retrieval: one look-up seen from both sides, and searches under disguises."""

from __future__ import annotations

import contextlib
import socket
import tempfile
from pathlib import Path

import pandas as pd

from discreet.app.demo.stage import Stage
from discreet.page import Section
from discreet.protocols.retrieval.asking import Retrieval
from discreet.protocols.retrieval.serving import Serving
from discreet.protocols.retrieval.signing import Publisher
from discreet.protocols.retrieval.table import RetrievalTable
from discreet.protocols.search._base import Vocabulary, search_risk
from discreet.protocols.transport import Identity, Message, Server, answer_requests
from discreet.randomness import Randomness

TITLE = "Retrieval: look something up, and nobody learns what"
ORDER = 60

_DRUGS = {
    "N02BE01": ("paracetamol", "analgesic"),
    "C07AB02": ("metoprolol", "beta-blocker"),
    "C07AB03": ("atenolol", "beta-blocker"),
    "N05AN01": ("lithium", "antipsychotic"),
    "J05AF10": ("entecavir", "antiviral"),
    "L01EA01": ("imatinib", "antineoplastic"),
}
_ASKED = ("N05AN01", "N02BE01", "Z99ZZ99")


def run(stage: Stage) -> None:
    """Publish a register of drugs, look one up through two servers, and show what each saw."""
    drugs = pd.DataFrame(
        [(code, *rest) for code, rest in _DRUGS.items()], columns=["code", "name", "class"]
    )
    publisher = Publisher(Randomness.secure().bytes(32))
    seen: list[tuple[str, ...]] = []
    with contextlib.ExitStack() as stack:
        # Keys of servers that live for a moment are not left behind.
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        table = RetrievalTable.build(
            drugs,
            key="code",
            secondary={"class": 2},
            folder=place / "drugs",
            publisher=publisher,
            publishable=True,
            name="drugs",
        )
        servers, views = _served(stack, table, place / "certificates")
        retrieval = stack.enter_context(
            Retrieval(
                list(servers),
                table="drugs",
                pins=list(servers.values()),
                publisher=publisher.reader.public,
            )
        )
        for code in _ASKED:
            for view in views:
                view.clear()
            row = retrieval.get(code)
            found = "proven absent" if row is None else str(row["name"])
            one, other = (f"{view[-1][:8].hex()}…" for view in views)
            seen.append((code, found, one, other))
        size = len(views[0][-1])
    header = ("asked for", "found", "server a saw", "server b saw")
    stage.say(
        f"    Two servers answered {len(_ASKED)} look-ups ({retrieval.scheme.name}). Each saw {size} "
        "bytes, different every time, whatever was asked:"
    )
    stage.show((header, seen))
    stage.section(
        Section(
            TITLE,
            text="A user fetches rows by key from two servers. Each sees random bytes of the same "
            "length; rows, and the absence of one, are proven by the publisher's signature. Both "
            "servers together would learn the key.",
            table=(header, seen),
        )
    )
    risk = search_risk(Vocabulary.zipf(2000), rng=Randomness.secure())
    stage.say("\n    Where a database does not help, searches can be disguised; what that hides:")
    stage.show(risk)
    stage.section(
        Section(
            "Searches under disguises: how often an attacker is right",
            text="right: about one search; repeated: after the same search was repeated.",
            table=risk,
        )
    )


def _served(
    stack: contextlib.ExitStack, table: RetrievalTable, place: Path
) -> tuple[dict[str, str], list[list[bytes]]]:
    """Start two servers; return their addresses with pins, and lists of what each will see."""
    found: dict[str, str] = {}
    views: list[list[bytes]] = []
    for name in ("a", "b"):
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        identity = Identity.new(place, name)
        serving, view = Serving({"drugs": table.folder.parent}), list[bytes]()

        def answer(
            peer: str, message: Message, serving: Serving = serving, view: list[bytes] = view
        ) -> Message:
            view.append(bytes(message.body)[1:])  # the first byte only says which server it is
            return serving.answer(peer, message)

        handle = answer_requests(answer, limit=serving.limit)
        stack.enter_context(Server(address, identity=identity, clients=None, handle=handle))
        found[address] = identity.pin
        views.append(view)
    return found, views
