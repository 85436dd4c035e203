"""Headline figures of two trees, in turns: none of the newer may be more than 10 % slower.

    python benchmarks/house.py --old ../old          a checkout of the older commit
    python benchmarks/house.py                       this tree alone

Each case runs in a process of its own, first once to compile and fill caches, then `--rounds` times,
old and new in turns so that a busy machine slows both alike. Figures are the least CPU seconds of
the work itself (for commands: of the whole process); the ratio is new to old.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("DISCREET_DATA", HERE / ".." / "shared" / "data")).resolve()

#: What comes before a case's own lines; `work` is timed, in the second call.
BEFORE = """
import time
from pathlib import Path
import numpy as np
import pandas as pd
import pyarrow as pa
import discreet as dc

DATA = Path({data!r})

def instance(name):
    folder = DATA / "tables" / name
    cells = pd.read_csv(folder / "cells.csv", keep_default_na=False)
    by = list(cells.columns[: cells.columns.get_loc("value")])
    trees = {{}}
    for column in by:
        pairs = pd.read_csv(folder / f"hier_{{column}}.csv", keep_default_na=False, dtype=str)
        trees[column] = dc.Hierarchy.from_pairs(pairs.itertuples(index=False, name=None))
    return dc.Table.from_cells(
        cells.astype(dict.fromkeys(by, str)), by=by, value="value", count="freq", hierarchies=trees,
        contributions=["max1", "max2"], primary="primary", lower="lpl", upper="upl", cost="cost",
    )
"""
AFTER = """
work()
began = time.process_time()
work()
print(time.process_time() - began)
"""
CASES = {
    "suppression, fast": """
table = instance("ent_act_product")
def work():
    table.protect(method=dc.Suppression(effort="fast", objective="value", attacker="outsider"))
""",
    "suppression, contributors": """
table = instance("insee_act_nuts2")
def work():
    table.protect(method=dc.Suppression(effort="balanced", objective="value"))
""",
    "audit, exact": """
from discreet.audit.intervals import audit_table
table = instance("synth_25x37")
hidden = table.protect(method=dc.Suppression(effort="fast", attacker="outsider")).cells["status"]
shown = (hidden == "safe").to_numpy()
def work():
    audit_table(table, published=shown, exact=True)
""",
    "anonymize Adult": """
names = ["age", "education", "marital-status", "native-country", "occupation", "race", "salary-class", "sex", "workclass"]
trees = {n: dc.Hierarchy.from_arx(DATA / "adult" / f"adult_hierarchy_{n}.csv") for n in names}
people = dc.read(DATA / "adult" / "adult.csv", roles=dict.fromkeys(names, "quasi"), hierarchies=trees).materialize()
method = dc.Generalization(suppression=0.05, metric="loss")
def work():
    dc.anonymize(people, [dc.KAnonymity(5)], method=method)
""",
    "MDAV": """
from discreet.microdata.masking.microaggregation import partition
points = np.random.default_rng(1).normal(size=(50_000, 4))
def work():
    partition(points, 3)
""",
    "decisions of the gateway": """
rng = np.random.default_rng(1)
n = 20_000
rows = pa.table({
    "sector": [f"s{i}" for i in rng.integers(0, 20, n)], "region": [f"r{i}" for i in rng.integers(0, 50, n)],
    "age": rng.integers(18, 90, n), "salary": np.round(rng.lognormal(10.3, 0.6, n)),
})
roles = {"sector": "quasi", "region": "quasi", "age": "quasi", "salary": "confidential"}
people = dc.read(rows, roles=roles, name="people")
def work():
    draw = np.random.default_rng(2)
    with dc.Gateway(people, guard=dc.Restriction(k=5)) as gate:
        for _ in range(250):
            low, high = np.sort(draw.integers(18, 90, 2))
            where = f"age BETWEEN {low} AND {high} AND sector = 's{draw.integers(0, 20)}'"
            gate.ask(f"SELECT SUM(salary) FROM people WHERE {where}", user="a")
""",
}  # fmt: skip
COMMANDS = {
    "discreet --help": ["--help"],
    "discreet table …": ["table", "{folder}/rows.csv", "--by", "a", "--by", "b", "--measure", "v", "--rule", "minimum-frequency=3"],
}  # fmt: skip


def environment(tree: Path) -> dict[str, str]:
    """Return an environment in which Python imports discreet from a tree."""
    return {**os.environ, "PYTHONPATH": str(tree / "src")}


def case(tree: Path, name: str) -> float:
    """Return the CPU seconds of one case."""
    code = BEFORE.format(data=str(DATA)) + CASES[name] + AFTER
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, env=environment(tree), capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{name} fails in {tree.name}:\n{done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def command(tree: Path, name: str, folder: str) -> float:
    """Return the CPU seconds of one command, from start to end."""
    words = [word.format(folder=folder) for word in COMMANDS[name]]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = [sys.executable, "-m", "discreet", *words]
    done = subprocess.run(run, env=environment(tree), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} fails in {tree.name}:\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=Path, help="a checkout of the older commit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", help="a case, by its name", choices=[*CASES, *COMMANDS])  # fmt: skip
    given = parser.parse_args()
    trees = [given.old.resolve(), HERE] if given.old else [HERE]
    slower = []
    with tempfile.TemporaryDirectory() as folder:
        rows = [f"{'xyz'[i % 3]},{'pqrs'[i % 4]},{1 + i % 17}" for i in range(400)]
        Path(folder, "rows.csv").write_text("a,b,v\n" + "\n".join(rows) + "\n")
        for name in given.only or [*CASES, *COMMANDS]:
            if name in CASES and not DATA.is_dir():
                print(f"{name:28} needs the public data; set DISCREET_DATA")
                continue
            measure = (lambda tree, name=name: case(tree, name)) if name in CASES else (lambda tree, name=name: command(tree, name, folder))  # fmt: skip
            best = dict.fromkeys(trees, float("inf"))
            for tree in trees:
                measure(tree)  # compiles
            for _ in range(given.rounds):
                for tree in trees:
                    best[tree] = min(best[tree], measure(tree))
            line = f"{name:28} " + "  ".join(f"{seconds:8.3f} s" for seconds in best.values())
            if given.old:
                ratio = best[HERE] / best[trees[0]]
                line += f"   ratio {ratio:5.2f}"
                if ratio > 1.1:
                    slower.append(name)
            print(line, flush=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"memory peak {peak:.0f} MB")
    if slower:
        raise SystemExit("more than 10 % slower: " + ", ".join(slower))


if __name__ == "__main__":
    main()
