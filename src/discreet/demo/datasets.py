"""The embedded data as datasets, roles and hierarchies declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.demo.codes import hierarchies

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["businesses", "population", "salaries"]


def population(n: int = 10_000, *, seed: int = 1) -> Dataset:
    """Return n persons in households as a dataset called `people`.

    >>> people = population(200)
    >>> people.schema.identifiers, people.schema.confidential
    (('person_id', 'household_id', 'name'), ('salary', 'diagnosis'))
    """
    from discreet.data.dataset import read
    from discreet.demo.people import population_arrow

    known = hierarchies()
    quasi = ("region", "sector", "occupation", "age", "sex", "education")
    return read(
        population_arrow(n, seed=seed),
        name="people",
        roles={
            "person_id": "identifier",
            "household_id": "identifier",
            "name": "identifier",
            **dict.fromkeys(quasi, "quasi"),
            "salary": "confidential",
            "diagnosis": "confidential",
        },
        hierarchies={name: known[name] for name in (*quasi, "diagnosis")},
        unit="person_id",
    ).replace(library="pandas")


def businesses(n: int = 5_000, *, seed: int = 1) -> Dataset:
    """Return n firms as a dataset called `firms`, whose unit is the holding."""
    from discreet.data.dataset import read
    from discreet.demo.register import businesses_arrow

    known = hierarchies()
    return read(
        businesses_arrow(n, seed=seed),
        name="firms",
        roles={
            "firm_id": "identifier",
            "holding": "identifier",
            "activity": "quasi",
            "region": "quasi",
            "size": "quasi",
            "employees": "confidential",
            "turnover": "confidential",
            "weight": "other",
        },
        hierarchies={name: known[name] for name in ("activity", "region", "size")},
        unit="holding",
    ).replace(library="pandas")


def salaries() -> Dataset:
    """Return the fifteen persons of the introductory example as a dataset called `people`."""
    from discreet.data.dataset import read
    from discreet.demo.examples import salaries_arrow

    return read(
        salaries_arrow(),
        name="people",
        roles={
            "id": "identifier",
            "sector": "quasi",
            "region": "quasi",
            "salary": "confidential",
        },
        unit="id",
    ).replace(library="pandas")
