"""Protocols of owners rehearsed in one process: CPU seconds of all parties together, and bytes.

    python benchmarks/joint_protocols.py [--curve 100000]

With the package openmined-psi installed, the same alignment is made with it in the same run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import discreet as dc
from discreet.protocols.joint.rehearsal import rehearse_protocol


def measure(what, protocol, inputs, **options):
    """Print CPU seconds of all parties and the largest number of bytes that one of them sent."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = rehearse_protocol(protocol, inputs, **options)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    sent = {
        name: sum(one["bytes"] for one in transcript.to_dict()["sent"].values())
        for name, transcript in found.transcripts.items()
    }
    third = sent.get("dealer")
    print(f"{what}: {cpu:.2f} CPU s, {wall:.2f} s wall, at most {max(sent.values()):,} bytes sent"
          + (f", dealer {third:,}" if third is not None else ""))  # fmt: skip
    return found


def openmined(first, second) -> None:
    """Print the CPU seconds of the same alignment in openmined-psi, which reveals the intersection."""
    try:
        import private_set_intersection.python as psi
    except ImportError:
        return
    cpu = time.process_time()
    client, server = (made.CreateWithNewKey(True) for made in (psi.client, psi.server))
    rate, second = 1e-9, [one.decode() for one in second]
    setup = server.CreateSetupMessage(rate, len(first), second, psi.DataStructure.RAW)
    request = client.CreateRequest([one.decode() for one in first])
    found = client.GetIntersection(setup, server.ProcessRequest(request))
    cpu = time.process_time() - cpu
    print(f"  openmined-psi: {cpu:.2f} CPU s, {len(found):,} in common")


def between_processes(parts, *columns) -> None:
    """Print how long a sum takes over TLS, also when two of five owners are killed, and a product."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.protocols.joint import forked

    with tempfile.TemporaryDirectory() as folder:
        known, turns = forked.known_parties(folder), 5
        took = {}
        for what, dies in {"all stay": {}, "two are killed": {"o1": 2, "o3": 3}}.items():
            runs = [forked.run_sum(known, parts, dies)["seconds"] for _ in range(turns)]
            took[what] = [sorted(side)[turns // 2] for side in zip(*runs, strict=True)]
            print(f"sum of 100,000 words between processes, {what}: {took[what][0]:.2f} s wall, "
                  f"{took[what][1]:.2f} CPU s of the aggregator")  # fmt: skip
        products = [forked.run_product(known, *columns)["seconds"][0] for _ in range(turns)]
        print(
            f"scalar product of 100,000 between processes: {sorted(products)[turns // 2]:.3f} s wall"
        )
    ratios = [b / a for a, b in zip(took["all stay"], took["two are killed"], strict=True)]
    print(f"  recovery takes {ratios[0]:.2f} of the wall and {ratios[1]:.2f} of the CPU seconds")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--curve", type=int, default=10_000, help="persons aligned on the curve")
    curve = parser.parse_args().curve
    rng = np.random.default_rng(1)
    parts = {f"o{n}": rng.integers(0, 100, (1, 100_000)).astype(float) for n in range(5)}
    whole = measure(
        "sum of 100,000 words, 5 owners, aggregator", dc.SecureSum(by="aggregator"), parts
    )
    assert (whole.shown["sum"] == sum(one[0] for one in parts.values())).all()
    measure("the same, two owners leave", dc.SecureSum(by="aggregator"), parts,
            dies_after={"o1": 2, "o3": 3})  # fmt: skip
    measure("the same by nodes", dc.SecureSum(), parts)
    x, y = rng.uniform(-1, 1, (100_000, 5)), rng.uniform(-1, 1, (100_000, 6))
    between_processes({owner: one[:, 1:] for owner, one in parts.items()}, x[:, :1], y[:, :1])
    found = measure("product 5 × 6, 100,000 records", dc.MatrixProduct(), {"a": x, "b": y})
    print(f"  largest error {np.abs(found.shown['product'] - x.T @ y).max():.2g}")
    measure("scalar product, 100,000 records", dc.ScalarProduct(), {"a": x[:, :1], "b": y[:, :1]})
    people = [b"person %d" % n for n in range(150_000)]
    lists = {"a": people[:100_000], "b": people[50_000:]}
    measure("alignment of 100,000 and 100,000, dealer", dc.Alignment(through="dealer"), lists)
    some = {name: persons[:: 100_000 // curve] for name, persons in lists.items()}
    measure(f"alignment of {curve:,} and {curve:,}, curve", dc.Alignment(), some)
    openmined(*some.values())
    few = {"a": x[:1000], "b": y[:1000]}
    measure("Paillier product 5 × 6, 1,000 records", dc.PaillierProduct(), few)
    groups = rng.normal(rng.choice([1.0, 5.0, 9.0], (10_000, 1)), 0.5, (10_000, 4))
    whose = rng.integers(0, 3, groups.shape)
    scattered = {o: np.where(whose == n, groups, np.nan) for n, o in enumerate("abc")}
    clusters = dc.ArbitraryKMeans()
    found = measure("k-means of 10,000 × 4 scattered values, k = 3", clusters, scattered)
    error = np.abs(found.shown["centres"] - clusters.plain(scattered)["centres"]).max()
    print(f"  largest error {error:.2g}")
    z = rng.normal(size=(10_000, 6))
    target = (z @ rng.normal(size=6) + rng.normal(size=10_000))[:, None]
    split = {"a": z[:, :3], "b": z[:, 3:], "c": target}
    for opened in ("gram", "coefficients"):
        protocol = dc.JointRegression(open=opened)
        found = measure(f"regression of 7 columns, {opened}", protocol, split)
        error = np.abs(found.shown["coefficients"] - protocol.plain(split)["coefficients"]).max()
        print(f"  largest error {error:.2g}")
    rows = np.hstack([z, target])
    parts = {"a": rows[::3], "b": rows[1::3], "c": rows[2::3]}
    for opened in ("gram", "coefficients"):
        protocol = dc.HorizontalRegression(open=opened)
        found = measure(f"regression of 7 columns, by records, {opened}", protocol, parts)
        error = np.abs(found.shown["coefficients"] - protocol.plain(parts)["coefficients"]).max()
        print(f"  largest error {error:.2g}")


if __name__ == "__main__":
    main()
