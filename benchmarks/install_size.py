"""How large an installed core is, and what each extra adds: bytes on disk by distribution.

Reads the metadata of the environment it runs in; nothing is installed. Markers are evaluated for this
machine.
"""

from __future__ import annotations

import importlib.metadata as metadata
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def name_of(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def needed(requirements: list[str]) -> set[str]:
    """Return distributions and all that they need, as far as they are installed."""
    found: set[str] = set()
    stack = [(item.name, tuple(item.extras)) for item in map(Requirement, requirements)]
    while stack:
        name, wanted = stack.pop()
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        found.add(name_of(name))
        for text in distribution.requires or ():
            item = Requirement(text)
            chosen = [{"extra": one} for one in wanted] or [{"extra": ""}]
            applies = item.marker is None or any(item.marker.evaluate(one) for one in chosen)
            if applies and name_of(item.name) not in found:
                stack.append((item.name, tuple(item.extras)))
    return found


def size(name: str) -> int:
    files = metadata.distribution(name).files or ()
    places = {Path(str(file.locate())) for file in files}
    return sum(place.stat().st_size for place in places if place.is_file())


def main() -> None:
    core = needed(PROJECT["dependencies"])
    sizes = {name: size(name) for name in core}
    print(f"core: {sum(sizes.values()) / 1e6:,.0f} MB in {len(core)} distributions")
    for name in sorted(sizes, key=lambda one: -sizes[one])[:12]:
        print(f"  {name}: {sizes[name] / 1e6:,.0f} MB")
    for extra, listed in PROJECT["optional-dependencies"].items():
        if extra == "dev":
            continue
        more = needed(listed) - core
        print(f"{extra}: {sum(map(size, more)) / 1e6:,.0f} MB more ({', '.join(sorted(more))})")


if __name__ == "__main__":
    main()
