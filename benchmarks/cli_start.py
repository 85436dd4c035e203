"""CPU time of `discreet --help` beside that of `import typer`, which is the least it could need."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds: int = 15) -> None:
    commands = {
        "import typer": [sys.executable, "-c", "import typer"],
        "discreet --help": [sys.executable, "-m", "discreet", "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):  # in turns, so that a busy machine slows both alike
        for name, command in commands.items():
            times[name].append(cpu_seconds(command))
    middle = {name: statistics.median(values) for name, values in times.items()}
    for name, seconds in middle.items():
        print(f"{name:16} {seconds * 1000:7.1f} ms CPU")
    print(f"ratio            {middle['discreet --help'] / middle['import typer']:7.2f}  (bar: 4)")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"memory peak      {peak:7.1f} MB")


if __name__ == "__main__":
    main()
