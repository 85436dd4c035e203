"""A million comparisons of 64 bits: CPU seconds of all parties here and in SPU's ABY3, in one run.

    python benchmarks/joint_spu.py --spu OTHER/bin/python

SPU 0.9.5 brings versions of its own of numpy and others, so it lives in another environment
(`pip install spu`), whose interpreter is given. Its three parties share one process, as ours do here.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import numpy as np


def values(n):
    rng = np.random.default_rng(1)
    return rng.integers(-(2**60), 2**60, n), rng.integers(-(2**60), 2**60, n)


def of_spu(n: int) -> None:
    """Print the CPU seconds of a comparison less those of an addition, which only moves numbers."""
    import jax
    import spu
    import spu.utils.simulation as simulation

    jax.config.update("jax_enable_x64", True)
    a, b = values(n)
    parties = simulation.Simulator.simple(3, spu.ProtocolKind.ABY3, spu.FieldType.FM64)
    spent = []
    for work in (lambda x, y: x + y, lambda x, y: x < y):
        run = simulation.sim_jax(parties, work)
        run(a[:10], b[:10])
        start = time.process_time()
        found = run(a, b)
        spent.append(time.process_time() - start)
    assert (np.asarray(found).astype(bool) == (a < b)).all()
    print(spent[1] - spent[0])


def of_discreet(n: int) -> float:
    """Return the CPU seconds of three nodes, with the sharing."""
    from discreet.protocols.arithmetic import less, rehearse, split
    from discreet.protocols.arithmetic.comparison import unpack
    from discreet.randomness import Randomness

    a, b = values(n)
    rng = Randomness.secure()
    start = time.process_time()
    x, y = split(a, rng=rng), split(b, rng=rng)
    found, _ = rehearse(
        lambda node: node.open_bits(less(node, x[node.index], y[node.index]), "flags")
    )
    spent = time.process_time() - start
    assert (unpack(found[0], n).astype(bool) == (a < b)).all()
    return spent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--comparisons", type=int, default=1_000_000)
    parser.add_argument("--spu", help="the interpreter of an environment with SPU")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        of_spu(given.comparisons)
        return
    own = of_discreet(given.comparisons)
    print(f"{given.comparisons:,} comparisons: {own:.2f} CPU s, all three nodes")
    if given.spu:
        words = [given.spu, __file__, "--inside", "--comparisons", str(given.comparisons)]
        told = subprocess.run(words, capture_output=True, text=True, check=True)
        other = float(told.stdout.split()[-1])
        print(f"  SPU, ABY3: {other:.2f} CPU s, all parties; we take {own / other:.2f} of it")
    else:
        print("  give --spu to compare with SPU", file=sys.stderr)


if __name__ == "__main__":
    main()
