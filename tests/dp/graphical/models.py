"""Small random models, and their marginals by brute force over the full table."""

import numpy as np

from discreet.dp.graphical.domain import Sizes, clique, spread, summed


def random_model(rng, *, cyclic=None):
    """Sizes and potentials on random cliques; `cyclic` closes them to a ring."""
    columns = int(rng.integers(1, 6))
    sizes = Sizes(tuple(int(n) for n in rng.integers(1, 4, columns)))
    if cyclic is None:
        cyclic = rng.random() < 0.4
    if cyclic and columns > 2:
        cliques = {clique((n, (n + 1) % columns)) for n in range(columns)}
    else:
        cliques = set()
    for _ in range(int(rng.integers(1, 5))):
        many = int(rng.integers(1, min(columns, 3) + 1))
        cliques.add(clique(rng.choice(columns, many, replace=False).tolist()))
    return sizes, {own: rng.normal(0, 2, sizes.shape(own)) for own in sorted(cliques)}


def full_table(sizes, potentials, total):
    every = tuple(range(len(sizes)))
    logs = np.zeros(sizes.codes)
    for own, table in potentials.items():
        logs = logs + spread(table, own, every)
    shares = np.exp(logs - logs.max())
    return shares * total / shares.sum()


def brute(table, attributes):
    return summed(table, tuple(range(table.ndim)), attributes)
