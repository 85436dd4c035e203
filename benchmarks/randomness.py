"""Seconds for a million secure normals, beside numpy's generator, which an attacker can predict."""

from __future__ import annotations

import resource
import time

import numpy as np

from discreet.randomness import Randomness


def best(call: object, rounds: int = 9) -> float:
    times = []
    for _ in range(rounds):
        started = time.process_time()
        call()  # type: ignore[operator]
        times.append(time.process_time() - started)
    return min(times)


def main(size: int = 1_000_000) -> None:
    secure, numpy_generator = Randomness.secure(), np.random.default_rng()
    ours, theirs = (
        best(lambda: secure.normal(size)),
        best(lambda: numpy_generator.normal(size=size)),
    )
    print(f"secure normals   {ours * 1000:6.1f} ms CPU for {size:,}  (bar: about 50)")
    print(f"numpy normals    {theirs * 1000:6.1f} ms CPU; ratio {ours / theirs:.1f}")
    print(f"permutation      {best(lambda: secure.permutation(size)) * 1000:6.1f} ms CPU")
    print(f"memory peak      {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:6.0f} MB")


if __name__ == "__main__":
    main()
