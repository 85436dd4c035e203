"""Consistent tables over a tree of places: errors against baselines, and time and memory by size.

python benchmarks/top_down.py error [seeds]
python benchmarks/top_down.py size LEAVES SEX AGE      records in Parquet to the written release
python benchmarks/top_down.py rest LEAVES SEX AGE      the same with noise from a table, to time the rest
python benchmarks/top_down.py census [blocks]
python benchmarks/top_down.py coverage [populations]
python benchmarks/top_down.py plan [repeats]
python benchmarks/top_down.py attacks [runs] [releases]
"""

from __future__ import annotations

import contextlib
import io
import itertools
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from discreet.dp.accountant import Accountant
from discreet.dp.hierarchical import measurement
from discreet.dp.hierarchical.basis import Basis
from discreet.dp.hierarchical.budget import allocate, level_shares
from discreet.dp.hierarchical.estimation import gathered_from, linear_estimate, whole_estimate
from discreet.dp.hierarchical.measurement import Measurements, measure
from discreet.dp.hierarchical.tree import Spine
from discreet.dp.noise import add_gaussian
from discreet.progress import silent
from discreet.randomness import Randomness
from discreet.tables.methods._shares import read_shares
from discreet.tables.simulation import discrete_gaussian

#: Shares of the specification, alike at every level; those of the method favour cells of the last one.
QUERIES = {(): 0.3, (0,): 0.15, (1,): 0.15, (0, 1): 0.4}


def population(seed: int, sizes: tuple[int, ...], shape: tuple[int, int], people: float) -> Any:
    """Draw nested places of unequal size, and people by sex and age in the smallest."""
    rng = np.random.default_rng(seed)
    parents, rate = [], np.ones(1)
    for above, below in itertools.pairwise(sizes):
        extra = rng.multinomial(below - above, rng.dirichlet(np.full(above, 5.0)))
        parents.append(np.repeat(np.arange(above), extra + 1))
        rate = rate[parents[-1]] * rng.gamma(1.0, 1.0, below)
    basis = Basis(shape)
    # Ages differ between places, and many places are small.
    cells = rng.gamma(0.35, 1.0, (sizes[-1], basis.cells)) * rate[:, None]
    return Spine(tuple(parents)), basis, rng.poisson(cells * people / cells.sum())


def levels_of(spine: Spine, leaves: Any) -> list[Any]:
    found = [leaves]
    for number in range(spine.depth - 1, 0, -1):
        found.insert(0, np.asarray(spine.add_up(found[0], number)))
    return found


def errors(found: list[Any], truth: list[Any]) -> list[tuple[float, float]]:
    """Return per level the mean absolute error of totals and of cells."""
    return [
        (float(np.abs((a - b).sum(axis=1)).mean()), float(np.abs(a - b).mean()))
        for a, b in zip(found, truth, strict=True)
    ]


def whole(measured: Measurements, *, gathers: bool = True, passes: Any = "totals-first") -> Any:
    known = gathered_from(measured) if gathers else None
    return list(whole_estimate(measured, known, passes=passes, rng=Randomness.secure()))


def error(seeds: int) -> None:
    """Print errors of every form at ρ = 0.5 on populations like that of the specification."""
    sizes, rho = (1, 10, 200, 3_000, 30_000), 0.5
    splits = {"even": level_shares("even", 5), "leaf-heavy": (0.05, 0.1, 0.15, 0.3, 0.4)}
    every: dict[str, list[Any]] = {}
    for seed in range(seeds):
        spine, basis, leaves = population(seed, sizes, (2, 8), 584_000)
        truth = levels_of(spine, leaves)
        every.setdefault("people", []).append(leaves.sum())
        every.setdefault("empty", []).append((leaves == 0).mean())
        alike = [{query: part / 5 for query, part in QUERIES.items()} for _ in sizes]
        measured = measure(spine, basis, leaves, allocate(rho, alike))
        every.setdefault("even, same shares at all levels", []).append(
            errors(whole(measured), truth)
        )
        for name, split in splits.items():
            given = {str(level): share for level, share in enumerate(split)}
            shares = read_shares(given, "marginals", list(given), ["sex", "age"])
            measured = measure(spine, basis, leaves, allocate(rho, shares))
            forms = {
                f"{name}, own": whole(measured, gathers=False),
                f"{name}, gathered": whole(measured),
                f"{name}, gathered, one pass": whole(measured, passes="one"),
                f"{name}, linear": [basis.backward(x) for x in linear_estimate(measured).estimate],
            }
            for form, found in forms.items():
                every.setdefault(form, []).append(errors(found, truth))
        noisy = add_gaussian(leaves, scale=allocate(rho, [{(): 1.0}]).measures[0].scale)
        every.setdefault("bottom-up, signed", []).append(errors(levels_of(spine, noisy), truth))
        cut = levels_of(spine, np.maximum(noisy, 0))
        every.setdefault("bottom-up, cut at zero", []).append(errors(cut, truth))
        every.setdefault("cut: total off by", []).append(
            abs(cut[0].sum() - leaves.sum()) / leaves.sum()
        )
        print(f"seed {seed} done", flush=True)
    for name, found in every.items():
        array = np.array(found, dtype=float)
        mean, se = array.mean(axis=0), array.std(axis=0, ddof=1) / np.sqrt(max(len(found), 1))
        if mean.ndim == 0:
            print(f"{name:34s} {mean:.4g}")
        else:
            line = "  ".join(
                f"{t:8.3f}±{e:.3f} / {c:7.4f}" for (t, c), (e, _) in zip(mean, se, strict=True)
            )
            print(f"{name:34s} {line}")
    _verdicts({name: np.array(found, dtype=float) for name, found in every.items()})


def _verdicts(every: dict[str, Any]) -> None:
    """Print what the issue asks of these errors; columns are totals and cells."""
    mean = {name: found.mean(axis=0) for name, found in every.items()}
    signed = mean["bottom-up, signed"]
    for split in ("even", "leaf-heavy"):
        ours, own = mean[f"{split}, gathered"], mean[f"{split}, own"]
        apart = every[f"{split}, gathered"] - every[f"{split}, own"]
        error = apart.std(axis=0, ddof=1) / np.sqrt(len(apart))
        one = mean[f"{split}, gathered, one pass"]
        print(f"{split}:")
        print("  totals of levels 1 and 2 / bottom-up's:", (ours[1:3, 0] / signed[1:3, 0]).round(4))
        print(f"  leaf cells / bottom-up's: {ours[-1, 1] / signed[-1, 1]:.3f}")
        print("  gathered / own, totals:", (ours[1:, 0] / own[1:, 0]).round(3))
        print(
            "  gathered - own, standard errors:",
            (apart.mean(axis=0)[2:] / error[2:])[:, 0].round(1),
        )
        print("  totals first / one pass, totals:", (ours[1:, 0] / one[1:, 0]).round(3))


class Laps:
    """CPU seconds of each step, and of the noise within them."""

    def __init__(self, *, simulated: bool = False) -> None:
        self.steps: dict[str, float] = {}
        self.noise = 0.0
        rng = Randomness.seeded(1)

        def drawn(values: Any, *, scale: float, **options: Any) -> Any:
            if simulated:
                return discrete_gaussian(values, scale, rng)
            return add_gaussian(values, scale=scale, **options)

        def timed(*given: Any, **options: Any) -> Any:
            start = time.process_time()
            found = drawn(*given, **options)
            self.noise += time.process_time() - start
            return found

        measurement.add_gaussian = timed

    def __call__(self, name: str, step: Any) -> Any:
        """Run a step and note what it took."""
        start = time.process_time()
        found = step()
        self.steps[name] = time.process_time() - start
        return found


def records_of(spine: Spine, leaves: Any, shape: tuple[int, int], folder: Path) -> Any:
    """Write one row per person to Parquet; return the file and the hierarchies' pairs and codes."""
    import pyarrow as pa
    from pyarrow import parquet

    names = [[f"{level}-{number}" for number in range(n)] for level, n in enumerate(spine.sizes)]
    row, cell = np.nonzero(leaves)
    person = np.repeat(np.arange(len(row)), leaves[row, cell])
    codes = {
        "block": (row[person], names[-1]),
        "sex": (cell[person] // shape[1], [f"s{n}" for n in range(shape[0])]),
        "age": (cell[person] % shape[1], [f"a{n}" for n in range(shape[1])]),
    }
    columns = {
        name: pa.DictionaryArray.from_arrays(index.astype(np.int32), pa.array(texts))
        for name, (index, texts) in codes.items()
    }
    table = pa.table({name: column.cast(pa.string()) for name, column in columns.items()})
    parquet.write_table(table, folder / "people.parquet")
    pairs = [(names[0][0], "")]
    for level, above in enumerate(spine.parents):
        pairs += zip(names[level + 1], (names[level][parent] for parent in above), strict=True)
    return pairs, codes["sex"][1], codes["age"][1]


def size(leaves_number: int, shape: tuple[int, int], *, simulated: bool = False) -> None:
    """Print CPU seconds of noise and of the rest, and the memory peak, from records to files."""
    # What is imported and compiled once is not part of the growth.
    with contextlib.redirect_stdout(io.StringIO()):
        _size(50, shape, simulated=simulated)
    _size(leaves_number, shape, simulated=simulated)


def _size(leaves_number: int, shape: tuple[int, int], *, simulated: bool) -> None:
    import discreet as dc

    inner = [1, *(max(round(leaves_number ** (k / 4)), 2) for k in (1, 2, 3)), leaves_number]
    spine, _, leaves = population(1, tuple(inner), shape, 5.0 * leaves_number)
    lap, clock = Laps(simulated=simulated), time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs, sexes, ages = records_of(spine, leaves, shape, folder)
        del leaves
        tree = lap("hierarchy", lambda: dc.Hierarchy.from_pairs(pairs))
        trees = {"block": tree, "sex": dc.Hierarchy.flat(sexes), "age": dc.Hierarchy.flat(ages)}
        roles = dict.fromkeys(trees, "quasi")
        source = folder / "people.parquet"
        data = lap("read", lambda: dc.read(source, hierarchies=trees, roles=roles, name="people"))
        made = lap("codes", lambda: dc.tabulate(data, by=list(trees), large=True))
        method = dc.TopDown(rho=1.0, spine="block")
        print(made.effort(method), flush=True)
        release = lap("count, measure, estimate", lambda: made.protect(method=method))
        written = lap("write", lambda: release.write(folder / "out"))
        bytes_written = sum(file.stat().st_size for file in written.iterdir())
    rest = sum(lap.steps.values()) - lap.noise
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in lap.steps.items())
    print(
        f"{leaves_number:,} leaves x {shape[0] * shape[1]} cells: noise {lap.noise:.1f} CPU s, rest "
        f"{rest:.1f} CPU s ({1e6 * rest / leaves_number:.1f} us per leaf; {steps}), "
        f"{time.perf_counter() - clock:.0f} s, peak {peak:.2f} GB, {bytes_written / 2**20:.1f} MiB"
    )


#: The bureau's eleven queries, over (institutional levels, group quarters, voting age, Hispanic,
#: race). Here everybody lives in a household, so that the first two attributes have one value.
ELEVEN = (
    (), (4,), (3,), (2,), (0,), (1,), (3, 4), (2, 4), (2, 3), (2, 3, 4), (0, 1, 2, 3, 4),
)  # fmt: skip


def census(blocks: int) -> None:
    """Run the proportions of the 2020 redistricting data on six levels with eleven queries."""
    inner = (1, 6, 60, 600, 4_000, blocks)
    spine, _, leaves = population(5, inner, (4, 7), 6.0 * blocks)
    basis = Basis((1, 1, 2, 2, 7))
    totals = (None, 3773 / 4097, 3126 / 4097, 1567 / 4102, 1705 / 4099, None)
    shares = []
    for share, total in zip(level_shares("census", 6), totals, strict=True):
        own = 1 / len(ELEVEN) if total is None else total
        rest = (1 - own) / (len(ELEVEN) - 1)
        shares.append({q: share * (own if q == () else rest) for q in ELEVEN})
    budget = allocate(2.56, shares)
    measured = measure(spine, basis, leaves, budget, exact={1: ()})
    levels = whole(measured)
    for number in range(1, spine.depth):
        assert (spine.add_up(levels[number], number) == levels[number - 1]).all()
        assert (levels[number] >= 0).all()
    states = levels_of(spine, leaves)[1].sum(axis=1)
    assert (levels[1].sum(axis=1) == states).all()
    epsilon = Accountant("zcdp", 1e-10).epsilon(budget.events())
    print(
        f"{blocks:,} blocks x {basis.cells} cells, {len(budget.measures)} measurements "
        f"({len(ELEVEN)} queries a level): whole, non-negative, consistent, state totals exact; "
        f"rho = {budget.rho:.4f}, epsilon = {epsilon:.2f} at delta = 1e-10"
    )
    for found, true in zip(levels, levels_of(spine, leaves), strict=True):
        off = np.abs((found - true).sum(axis=1)).mean()
        print(
            f"  {len(found):9,} places: totals off by {off:.2f}, cells {np.abs(found - true).mean():.3f}"
        )


def coverage(populations: int) -> None:
    """Print how often 95 % intervals hold the truth, of the signed and of the whole table."""
    import discreet as dc
    from discreet.data.table import Dimension
    from discreet.tables.methods._places import Places

    places = [f"{a}-{b}-{c}" for a in range(5) for b in range(10) for c in range(20)]
    pairs = [("Land", ""), *((f"{a}", "Land") for a in range(5))]
    pairs += [(f"{a}-{b}", f"{a}") for a in range(5) for b in range(10)]
    pairs += [(name, name.rpartition("-")[0]) for name in places]
    trees = {
        "region": dc.Hierarchy.from_pairs(pairs),
        "sex": dc.Hierarchy.flat(["f", "m"]),
        "age": dc.Hierarchy.flat([f"a{n}" for n in range(8)]),
    }
    where = Places.of(tuple(Dimension.of(n, t) for n, t in trees.items()), 0)
    rng = np.random.default_rng(1)
    for integer in (False, True):
        method, inside, every = dc.TopDown(rho=0.5, integer=integer), 0, 0
        for _ in range(populations):
            leaves = rng.poisson(rng.gamma(0.35, 4.0, (1000, 16)))
            measured = method.task_of(where).measure(leaves, silent)
            found = method.estimate(measured, where, rng=Randomness.secure())
            rows = where.gathered(tuple(levels_of(where.spine, leaves)))
            truth = where.cube(rows.astype(float))
            low, high = found.bounds
            inside += int(((low <= truth) & (truth <= high)).sum())
            every += truth.size
        print(f"integer={integer}: {inside / every:.4f} of {every:,} cells and totals")


def plan(repeats: int) -> None:
    """Print predicted over simulated errors of the signed estimate, and what targets cost."""
    import discreet as dc
    from discreet.data.table import Dimension
    from discreet.tables.methods._places import Places
    from discreet.tables.methods._planning import least_loss

    trees = {
        "region": dc.Hierarchy.from_levels(
            {"Land": {f"r{i}": [f"r{i}{j}" for j in range(4 + i)] for i in range(5)}}
        ),
        "sex": dc.Hierarchy.flat(["f", "m"]),
        "age": dc.Hierarchy.flat(["0-17", "18-64", "65+"]),
    }
    places = Places.of(tuple(Dimension.of(n, t) for n, t in trees.items()), 0)
    spine, basis, rng = places.spine, places.basis, Randomness.seeded(1)
    leaves = np.zeros((spine.sizes[-1], basis.cells), dtype=np.int64)
    for split in ("even", "leaf-heavy", {"0": 0.1, "1": 0.0, "2": 0.9}):
        for exact in ({}, {"1": "total"}):
            settings: dict[str, Any] = {"split": split, "invariants": exact}
            task = dc.TopDown(rho=0.3, **settings).task_of(places)
            predicted = dc.TopDown.plan(trees, rho=0.3, **settings).errors
            seen = np.zeros((3, 4))
            for _ in range(repeats):
                noise = lambda values, scale: discrete_gaussian(values, scale, rng)  # noqa: E731
                fitted = linear_estimate(task.measure(leaves, silent, noise))
                for level in range(3):
                    cells = basis.backward(fitted.estimate[level])
                    for number, query in enumerate(((), (0,), (1,), (0, 1))):
                        seen[level, number] += np.abs(basis.answers(cells, query)).mean() / repeats
            told = np.array([list(predicted[str(level)].values()) for level in range(3)])
            known = told == 0
            ratio = np.where(known, 1.0, told / np.where(known, 1.0, seen))
            print(
                f"{split}, exact {exact}: predicted / simulated {ratio.min():.3f} to {ratio.max():.3f}"
            )
    draw = np.random.default_rng(2)
    for number in range(5):
        targets = {(1, ()): draw.uniform(1, 4), (2, (0,)): draw.uniform(2, 6), (0, ()): 3.0}
        start = [dict.fromkeys(((), (0,), (1,), (0, 1)), 1 / 12) for _ in range(3)]
        found, _ = least_loss(spine, basis, start, targets)
        others = []
        for _ in range(8):
            parts = draw.dirichlet(np.ones(12)).reshape(3, 4)
            random = [dict(zip(start[0], map(float, row), strict=True)) for row in parts]
            others.append(least_loss(spine, basis, random, targets)[0])
        print(f"targets {number}: rho {found:.5f}, best of 8 other starts {min(others):.5f}")


def attacks(runs: int, releases: int) -> None:
    """Print what is told from exact tables and after noise."""
    from tests.attacks.test_published_tables import found_over, release, told

    from discreet.attacks._tables import identity
    from discreet.attacks.membership_in_tables import MembershipInTables
    from discreet.attacks.reconstruction import Reconstruction, segregated_people

    for rho in (0.02, 0.1, 1.0):
        right, bound = told(rho, runs)
        print(f"presence, rho = {rho}: right {right:.4f}, at most {bound:.4f} ({runs:,} runs)")
    people, left_out = segregated_people(2)
    exact = Reconstruction().run(identity, people, left_out, rows=16)
    print(
        f"reconstruction, exact: {exact.found:.3f} of {exact.asked:,} unique people, "
        f"{exact.blind:.3f} of {exact.control:,} left out"
    )
    for rho in (0.1, 1.0):
        found, blind, error = found_over(rho, 400, releases)
        print(
            f"reconstruction, rho = {rho}: {found:.4f} against {blind:.4f}, standard error of one "
            f"release {error:.4f}, mean of {releases} releases"
        )
    for name, publish in (("exact", identity), ("0.1", release(0.1)), ("1", release(1.0))):
        right = MembershipInTables().run(publish, people, left_out).lower
        print(f"membership, {name}: right {right:.3f}")


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or ["size", "10000", "2", "4"]
    numbers = list(map(int, rest))
    if what == "size":
        size(numbers[0], (numbers[1], numbers[2]))
    elif what == "rest":
        size(numbers[0], (numbers[1], numbers[2]), simulated=True)
    elif what == "attacks":
        attacks(*(numbers or [3000, 20]))
    else:
        ways = {"error": (error, 5), "census": (census, 100_000), "coverage": (coverage, 10)}
        way, default = {**ways, "plan": (plan, 2000)}[what]
        way(*(numbers or [default]))
