"""Protocols of owners rehearsed in one process: CPU seconds of all parties together, and bytes.

python benchmarks/joint_protocols.py
"""

from __future__ import annotations

import time

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


def main() -> None:
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
    found = measure("product 5 × 6, 100,000 records", dc.MatrixProduct(), {"a": x, "b": y})
    print(f"  largest error {np.abs(found.shown['product'] - x.T @ y).max():.2g}")
    measure("scalar product, 100,000 records", dc.ScalarProduct(), {"a": x[:, :1], "b": y[:, :1]})
    people = [b"person %d" % n for n in range(150_000)]
    lists = {"a": people[:100_000], "b": people[50_000:]}
    measure("alignment of 100,000 and 100,000, dealer", dc.Alignment(through="dealer"), lists)
    some = {name: persons[::10] for name, persons in lists.items()}
    measure("alignment of 10,000 and 10,000, curve", dc.Alignment(), some)
    z = rng.normal(size=(10_000, 6))
    target = (z @ rng.normal(size=6) + rng.normal(size=10_000))[:, None]
    split = {"a": z[:, :3], "b": z[:, 3:], "c": target}
    for opened in ("gram", "coefficients"):
        protocol = dc.JointRegression(open=opened)
        found = measure(f"regression of 7 columns, {opened}", protocol, split)
        error = np.abs(found.shown["coefficients"] - protocol.plain(split)["coefficients"]).max()
        print(f"  largest error {error:.2g}")


if __name__ == "__main__":
    main()
