"""A population: persons in households, as plausible as a page of code can make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.demo import codes
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["population_arrow"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_FIRST = [
    "Anna",
    "Bo",
    "Clara",
    "David",
    "Emma",
    "Farid",
    "Greta",
    "Hugo",
    "Ines",
    "Jan",
    "Klara",
    "Lukas",
    "Maria",
    "Nils",
    "Olga",
    "Pablo",
    "Quim",
    "Rosa",
    "Sven",
    "Tara",
    "Umar",
    "Vera",
    "Willem",
    "Xenia",
    "Yusuf",
    "Zoe",
    "Arnau",
    "Berta",
    "Carles",
    "Dolors",
]
_LAST = [
    "Alder",
    "Berg",
    "Castell",
    "Dahl",
    "Esteve",
    "Ferrer",
    "Garcia",
    "Holm",
    "Ivanov",
    "Jansen",
    "Keller",
    "Lund",
    "Meyer",
    "Novak",
    "Olsen",
    "Puig",
    "Quint",
    "Roca",
    "Serra",
    "Torres",
    "Ulrich",
    "Vidal",
    "Weber",
    "Young",
    "Zhang",
]
#: Share of households with one, two … six persons.
_HOUSEHOLDS = (0.36, 0.31, 0.14, 0.12, 0.05, 0.02)
#: Share of each schooling among adults born early and late; the order of `codes.EDUCATION`.
_SCHOOL_OLD = (0.04, 0.22, 0.26, 0.20, 0.16, 0.07, 0.04, 0.01)
_SCHOOL_YOUNG = (0.01, 0.03, 0.11, 0.27, 0.20, 0.23, 0.12, 0.03)
_SCHOOL_PAY = (0.62, 0.70, 0.78, 0.95, 1.00, 1.25, 1.50, 1.80)
#: Cases per thousand at ages 10, 30, 50, 70 and 90, in the order of `codes.DIAGNOSES`.
_ILLNESS = {
    "Diabetes": (2, 8, 45, 120, 130),
    "Heart disease": (1, 4, 35, 150, 260),
    "Cancer": (1, 4, 18, 70, 90),
    "Back pain": (3, 60, 120, 110, 70),
    "Asthma": (70, 45, 35, 35, 30),
    "Depression": (8, 70, 75, 50, 60),
    "Addiction": (1, 22, 20, 8, 2),
    "Influenza": (60, 35, 30, 40, 55),
    "HIV": (0.1, 3, 3, 1, 0.1),
}


def population_arrow(n: int, *, seed: int = 1) -> pa.Table:
    """Return n persons in households as an Arrow table; the same seed gives the same persons.

    >>> people = population_arrow(1000)
    >>> people.num_rows, people.column_names[:4]
    (1000, ['person_id', 'household_id', 'name', 'region'])
    """
    import pyarrow as pa

    if n < 1:
        raise InputError(
            f"a population of {n} persons cannot be made", code="bad-size", hint="ask for 1 or more"
        )
    rng = np.random.default_rng(seed)
    household, rank, households = _households(rng, n)
    land_of, town_of = _homes(rng, households)
    age = _ages(rng, household, rank, households)
    sex = _sexes(rng, rank)
    school = _schooling(rng, age)
    sector, occupation = _work(rng, age, school)
    salary = _salaries(rng, age, sex, school, sector, occupation, land_of[household])
    diagnosis = _diagnoses(rng, age, sex)
    first, last = rng.integers(0, len(_FIRST), n), rng.integers(0, len(_LAST), households)
    names = [f"{a} {b}" for a in _FIRST for b in _LAST]
    return pa.table(
        {
            "person_id": pa.array(np.arange(1, n + 1)),
            "household_id": pa.array(household + 1),
            "name": _text(first * len(_LAST) + last[household], names),
            "region": _text(town_of[household], codes.region().leaves),
            "sector": _text(sector, [*_divisions()[0], codes.NOT_WORKING]),
            "occupation": _text(occupation, _flat(codes.OCCUPATIONS)),
            "age": pa.array(age),
            "sex": _text(sex, ("female", "male")),
            "education": _text(school, _flat(codes.EDUCATION)),
            "salary": pa.array(salary),
            "diagnosis": _text(diagnosis, ["No diagnosis", *_ILLNESS]),
        }
    )


def _text(places: Ints, words: Any) -> pa.Array:
    import pyarrow as pa

    index = pa.array(places.astype(np.int32))
    return pa.DictionaryArray.from_arrays(index, pa.array(list(words))).dictionary_decode()


def _flat(groups: dict[str, list[str]]) -> list[str]:
    return [code for group in groups.values() for code in group]


def _pick(rng: np.random.Generator, size: int, shares: Any) -> Ints:
    cumulative = np.cumsum(np.asarray(shares, dtype=np.float64))
    drawn = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    places: Ints = np.minimum(drawn, len(cumulative) - 1).astype(np.int64)
    return places


def _households(rng: np.random.Generator, n: int) -> tuple[Ints, Ints, int]:
    """Return each person's household, the rank in it (0 its head), and how many there are."""
    sizes = _pick(rng, n, _HOUSEHOLDS) + 1
    ends = np.cumsum(sizes)
    households = int(np.searchsorted(ends, n)) + 1
    household = np.repeat(np.arange(households), sizes[:households])[:n]
    starts = ends[:households] - sizes[:households]
    return household, np.arange(n) - starts[household], households


def _homes(rng: np.random.Generator, households: int) -> tuple[Ints, Ints]:
    land = _pick(rng, households, list(codes.LANDS.values()))
    # Municipalities of very different size: few towns, many villages.
    province = _pick(rng, households, [0.4, 0.3, 0.2, 0.1])
    town = _pick(rng, households, [0.45, 0.25, 0.14, 0.09, 0.05, 0.02])
    return land, (land * codes.PROVINCES + province) * codes.TOWNS + town


def _ages(rng: np.random.Generator, household: Ints, rank: Ints, households: int) -> Ints:
    head = np.clip(18 + rng.gamma(4.2, 8.4, households), 18, 100)
    size = np.bincount(household, minlength=households)
    # Families have parents of working age.
    head = np.where(size > 2, 24 + 36 * rng.beta(2.2, 2.0, households), head)
    age: Floats = head[household]
    partner = rank == 1
    age[partner] += rng.normal(-1.5, 4.5, int(partner.sum()))
    child = rank >= 2
    gap = rng.normal(29, 5.5, int(child.sum()))
    age[child] -= np.clip(gap, 17, 45)
    # A birth still to come, or a child long moved out, is a younger sibling instead.
    away = child & ((age < 0) | (age > 28))
    age[away] = 20 * rng.random(int(away.sum()))
    years: Ints = np.clip(np.where(partner, np.maximum(age, 18), age), 0, 105).astype(np.int64)
    return years


def _sexes(rng: np.random.Generator, rank: Ints) -> Ints:
    sex = rng.integers(0, 2, len(rank))
    partner = np.flatnonzero(rank == 1)
    other = rng.random(len(partner)) < 0.96
    sex[partner[other]] = 1 - sex[partner[other] - 1]
    return sex


def _schooling(rng: np.random.Generator, age: Ints) -> Ints:
    old = _pick(rng, len(age), _SCHOOL_OLD)
    young = _pick(rng, len(age), _SCHOOL_YOUNG)
    share_young = np.clip((85 - age) / 60, 0, 1)
    school = np.where(rng.random(len(age)) < share_young, young, old)
    # Nobody has finished what takes longer than a life so far.
    longest = np.searchsorted([6, 12, 16, 18, 19, 21, 23, 27], age, side="right")
    finished: Ints = np.minimum(school, np.maximum(longest - 1, 0))
    return finished


def _divisions() -> tuple[list[str], Floats, Floats]:
    rows = [
        (division, *weights)
        for sections in codes.SECTORS.values()
        for divisions in sections.values()
        for division, weights in divisions.items()
    ]
    names, shares, pay = zip(*rows, strict=True)
    return list(names), np.array(shares), np.array(pay)


def _work(rng: np.random.Generator, age: Ints, school: Ints) -> tuple[Ints, Ints]:
    names, shares, pay = _divisions()
    n = len(age)
    chance = np.interp(
        age, [15, 18, 25, 35, 55, 62, 66, 75], [0, 0.3, 0.74, 0.86, 0.83, 0.6, 0.12, 0]
    )
    working = rng.random(n) < chance * np.interp(school, [0, 4, 7], [0.75, 1.0, 1.1])
    # The better schooled are more often where pay is better.
    low, high = shares / np.sqrt(pay), shares * pay**1.5
    tertiary = school >= 5
    sector = np.where(tertiary, _pick(rng, n, high), _pick(rng, n, low))
    sector[~working] = len(names)
    groups = list(codes.OCCUPATIONS.values())
    offsets = np.cumsum([0, *(len(group) for group in groups)])
    group = np.where(
        tertiary, _pick(rng, n, [0.16, 0.62, 0.16, 0.06]), _pick(rng, n, [0.05, 0.08, 0.31, 0.56])
    )
    sizes = np.array([len(group_) for group_ in groups])
    occupation = offsets[group] + np.floor(rng.random(n) * sizes[group]).astype(np.int64)
    idle = np.select([age < 16, age < 26, age >= 62], [0, 1, 2], 3)
    return sector, np.where(working, occupation, offsets[4] + idle)


def _salaries(
    rng: np.random.Generator,
    age: Ints,
    sex: Ints,
    school: Ints,
    sector: Ints,
    occupation: Ints,
    land: Ints,
) -> Ints:
    pay = np.append(_divisions()[2], 0.0)
    n = len(age)
    by_age = np.interp(age, [16, 25, 40, 52, 66, 75], [0.45, 0.75, 1.05, 1.15, 1.08, 0.9])
    manager = occupation < len(codes.OCCUPATIONS["Managers"])
    mean = 31_000 * pay[sector] * by_age * np.array(_SCHOOL_PAY)[school]
    mean *= np.where(manager, 1.6, 1.0) * np.where(sex == 0, 0.93, 1.0)
    mean *= np.array([1.0, 0.86, 0.94, 1.12, 0.98])[land]
    salary = mean * np.exp(rng.normal(-0.06, 0.35, n))
    # A few earn without measure: a Pareto tail with infinite variance.
    rich = rng.random(n) < np.where(manager, 0.08, 0.012)
    salary = np.where(rich, salary * (1 + rng.pareto(1.7, n)), salary)
    pension = 17_000 * np.array(_SCHOOL_PAY)[school] * np.exp(rng.normal(0, 0.25, n))
    retired = (sector == len(pay) - 1) & (age >= 62)
    salary = np.where(retired, pension, salary)
    return (np.round(salary / 10) * 10).astype(np.int64)


def _diagnoses(rng: np.random.Generator, age: Ints, sex: Ints) -> Ints:
    ages = np.arange(106)
    rates = np.stack([np.interp(ages, [10, 30, 50, 70, 90], r) / 1000 for r in _ILLNESS.values()])
    by_sex = np.ones((2, len(_ILLNESS)))
    names = list(_ILLNESS)
    by_sex[1, names.index("Heart disease")] = 1.4
    by_sex[0, names.index("Depression")] = 1.5
    by_sex[1, names.index("HIV")] = 2.5
    # One draw per person against the running sum of the rates of its age and sex.
    table = np.cumsum(rates.T[None] * by_sex[:, None, :], axis=2)
    drawn = rng.random(len(age))
    diagnosis = np.zeros(len(age), dtype=np.int64)
    below = np.zeros(len(age))
    for place in range(len(names)):
        above = table[sex, age, place]
        diagnosis[(drawn >= below) & (drawn < above)] = place + 1
        below = above
    return diagnosis
