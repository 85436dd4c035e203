"""A joint table where every message takes 20 ms longer: wall seconds beside those without.

python benchmarks/joint_latency.py [--cells 10000] [--milliseconds 20]

Owners are processes over TLS on this machine, as in `joint.py`. Each reaches the others, and the
analyst reaches them, through a relay that holds every byte back for as long as a network would.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import tempfile
import time
from pathlib import Path

from joint import RULES, owner

import discreet as dc
from discreet.protocols.joint.local import await_listening, free_ports, launch
from discreet.protocols.transport.client import address_of

#: Run by every program that starts with it in its path: connections go to the relays.
_REDIRECT = """
import json, os, socket
real, there = socket.create_connection, json.loads(os.environ["JOINT_RELAYS"])
def redirected(address, *more, **options):
    host, port = address
    return real((host, there.get(str(port), port)), *more, **options)
socket.create_connection = redirected
"""


async def _carry(reader, writer, delay: float) -> None:
    """Pass on what arrives, each piece so many seconds after it did."""
    due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            at, piece = await due.get()
            await asyncio.sleep(max(at - time.monotonic(), 0))
            writer.write(piece)
            if not piece:
                writer.close()
                return

    task = asyncio.create_task(deliver())
    try:
        while piece := await reader.read(1 << 18):
            due.put_nowait((time.monotonic() + delay, piece))
    except OSError:
        pass
    due.put_nowait((time.monotonic() + delay, b""))
    await asyncio.wait([task])


async def _serve(relays: dict[int, int], delay: float) -> None:
    async def one(port: int, at: int) -> None:
        async def connected(reader, writer) -> None:
            there = await asyncio.open_connection("127.0.0.1", port)
            for either in (writer, there[1]):
                either.get_extra_info("socket").setsockopt(
                    socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
                )
            await asyncio.gather(_carry(reader, there[1], delay), _carry(there[0], writer, delay))

        server = await asyncio.start_server(connected, "127.0.0.1", at)
        await server.serve_forever()

    await asyncio.gather(*(one(*pair) for pair in relays.items()))


def relay(relays: dict[int, int], delay: float) -> None:
    """Run the relays until this process is ended."""
    asyncio.run(_serve(relays, delay))


def asked(joint: dc.Joint) -> tuple[float, int]:
    """Return the wall seconds of the second question, and its rounds."""
    sql = "SELECT high, low, COUNT(*), SUM(value) FROM joint GROUP BY high, low"
    joint.ask(sql)  # the first question also imports what it needs
    start = time.monotonic()
    found = joint.ask(sql)
    return time.monotonic() - start, found.transcript["owner1"]["rounds"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--milliseconds", type=float, default=20.0)
    given = parser.parse_args()
    with (
        dc.Joint.local(
            [owner(given.cells, seed) for seed in range(3)],
            name="joint",
            keys={"high": range(given.cells // 100), "low": range(100)},
            measures={"value": {"bound": 1e12}},
            rules=RULES,
        ) as joint,
        tempfile.TemporaryDirectory() as folder,
    ):
        near, rounds = asked(joint)
        parties = joint._closing
        ports = [address_of(joint.policy.parties[name].address)[1] for name in parties.processes]
        relays = dict(zip(ports, free_ports(len(ports)), strict=True))
        Path(folder, "sitecustomize.py").write_text(_REDIRECT)
        more = {
            "JOINT_RELAYS": json.dumps(relays),
            "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]),
        }
        relaying = multiprocessing.get_context("fork").Process(
            target=relay, args=(relays, given.milliseconds / 1000), daemon=True
        )
        relaying.start()
        for name, process in parties.processes.items():
            process.terminate()
            process.wait()
            words = ["joint", "owner", f"{name}.yaml", "--as", name, "--ledger", f"{name}.db"]
            parties.processes[name] = launch(parties.folder, name, words, more)
        await_listening(parties.folder, parties.processes)
        os.environ.update(more)
        exec(_REDIRECT, {})  # the analyst is in this process
        far, _ = asked(joint)
        relaying.terminate()
    print(
        f"{given.cells:,} cells, {rounds} rounds: {near:.2f} s wall, "
        f"{far:.2f} s with {given.milliseconds:g} ms in every direction"
    )


if __name__ == "__main__":
    main()
