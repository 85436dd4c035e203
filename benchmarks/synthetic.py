"""Synthetic Adult: what each method keeps and costs, beside the figures of other tools.

Run with DISCREET_DATA set; prints one line per method, means over seeds. CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd

import discreet as dc
from discreet.dp.spending import concentrated_budget
from discreet.microdata.judgement import Unpaired
from discreet.microdata.utilities.marginals import Marginals
from discreet.microdata.utilities.pmse_ratio import PMSERatio
from discreet.microdata.utilities.propensity import Propensity
from discreet.microdata.utilities.train_on_synthetic import TrainOnSynthetic

AGES = [17, 22, 27, 32, 37, 42, 47, 52, 57, 62, 67, 75, 91]


def adult() -> tuple[pd.DataFrame, pd.DataFrame, dict]:
    """Return 24,129 records, 6,033 others, and public domains from the hierarchies' leaves."""
    folder = Path(os.environ["DISCREET_DATA"]) / "adult"
    frame = pd.read_csv(folder / "adult.csv", sep=";")
    domains: dict = {"age": {"cuts": AGES}}
    for name in frame.columns:
        if name != "age":
            lines = (folder / f"adult_hierarchy_{name}.csv").read_text().split("\n")
            domains[name] = [line.split(";")[0] for line in lines if line]
    order = np.random.default_rng(0).permutation(len(frame))
    return frame.iloc[order[:24_129]], frame.iloc[order[24_129:]], domains


def uniques(train: pd.DataFrame, made: pd.DataFrame) -> float:
    """Return the share of unique records that come again."""
    alone = train[~train.duplicated(keep=False)]
    return len(alone.merge(made.drop_duplicates(), how="inner")) / len(alone)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--risk", action="store_true")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    train, holdout, domains = adult()
    roles = dict.fromkeys(train.columns, "quasi")
    data = dc.read(train, roles=roles, domains=domains)
    others = dc.read(holdout, roles=roles)
    concentrated_budget(1.0, 1e-9)  # imports the accountant
    methods = {
        "cart leaf 5": dc.CART(min_leaf=5),
        "cart leaf 50": dc.CART(min_leaf=50),
        "mst": dc.MST(epsilon=1, delta=1e-9),
        "aim": dc.AIM(epsilon=1, delta=1e-9),
    }
    measures = [Marginals(), Propensity(), PMSERatio(), TrainOnSynthetic("salary-class")]
    print("method | CPU s | tv2 | worst pair | tv3 | U | pMSE ratio | accuracy (real) | uniques")
    for name, method in methods.items():
        if given.only and given.only not in name:
            continue
        rows = []
        for _ in range(given.seeds):
            start = time.process_time()
            made = dc.synthesize(data, method, n=len(train))
            took = time.process_time() - start
            found = dc.utility(data, Unpaired(made.dataset), measures=measures, holdout=others)
            table, model = found["marginals"].facts, found["train-on-synthetic"].facts
            row = [took, table["tv2"], table["worst tv2"], table["tv3"]]
            row += [found["propensity"].facts["U"], found["pmse-ratio"].facts["ratio"]]
            row += [model["release"], model["original"], uniques(train, made.frame)]
            if given.risk:
                facts = {f.measure: f.facts for f in made.risk().found.findings}
                row += [facts["membership"][k] for k in ("AUC", "low", "high", "TPR at 1 % FPR")]
            rows.append(row)
        for row in rows if given.risk else []:
            print("  membership AUC", [round(v, 3) for v in row[9:]])
        mean = np.mean(rows, axis=0)
        print(name, "|", " | ".join(f"{value:.4f}" for value in mean), flush=True)


if __name__ == "__main__":
    main()
