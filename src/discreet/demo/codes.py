"""The code lists of the embedded data, as trees."""

from __future__ import annotations

import functools

from discreet.data.hierarchy import Hierarchy

__all__ = ["hierarchies"]

#: Land → share of the population; each has provinces, each of those municipalities.
LANDS = {"North": 0.18, "East": 0.15, "South": 0.22, "West": 0.30, "Isles": 0.15}
PROVINCES, TOWNS = 4, 6

#: Division of → (share of the employed, pay relative to the mean); three levels.
SECTORS: dict[str, dict[str, dict[str, tuple[float, float]]]] = {
    "Goods": {
        "Agriculture": {"Crops": (2.0, 0.62), "Livestock": (1.5, 0.66), "Forestry": (0.5, 0.70)},
        "Manufacturing": {
            "Food": (4.0, 0.80),
            "Machinery": (5.0, 1.10),
            "Chemicals": (2.5, 1.25),
            "Textiles": (1.5, 0.72),
        },
        "Construction": {"Buildings": (4.0, 0.90), "Roads": (2.0, 0.95), "Trades": (4.5, 0.82)},
        "Energy": {"Power": (1.0, 1.40), "Water": (0.8, 1.00)},
    },
    "Services": {
        "Trade": {"Retail": (9.0, 0.70), "Wholesale": (4.0, 1.00), "Vehicles": (2.0, 0.92)},
        "Transport": {"Land transport": (4.0, 0.85), "Air": (0.6, 1.45), "Post": (1.8, 0.78)},
        "Hospitality": {"Hotels": (2.5, 0.64), "Restaurants": (4.5, 0.58)},
        "IT": {"Software": (3.5, 1.55), "Telecom": (1.2, 1.35), "Hosting": (0.8, 1.30)},
        "Finance": {"Banking": (2.5, 1.70), "Insurance": (1.5, 1.50), "Funds": (0.4, 2.40)},
    },
    "Public": {
        "Administration": {"Central": (3.0, 1.15), "Local": (4.5, 1.00)},
        "Schooling": {"Schools": (6.0, 1.02), "Universities": (1.8, 1.20)},
        "Health care": {
            "Hospitals": (6.5, 1.10),
            "Care homes": (4.5, 0.72),
            "Practices": (2.5, 1.30),
        },
    },
}
#: Not in work; a code of its own below the total.
NOT_WORKING = "Not working"

OCCUPATIONS = {
    "Managers": ["Director", "Department head", "Shop manager"],
    "Professionals": ["Engineer", "Physician", "Teacher", "Analyst", "Lawyer"],
    "Clerks": ["Secretary", "Bookkeeper", "Cashier"],
    "Workers": ["Craftsman", "Driver", "Operator", "Cleaner", "Nurse aide"],
    "Not in work": ["Child", "Student", "Pensioner", "Unemployed"],
}
EDUCATION = {
    "Basic": ["No schooling", "Primary", "Lower secondary"],
    "Secondary": ["Upper secondary", "Vocational"],
    "Tertiary": ["Bachelor", "Master", "Doctorate"],
}
DIAGNOSES = {
    "Healthy": ["No diagnosis"],
    "Chronic": ["Diabetes", "Heart disease", "Cancer", "Back pain", "Asthma"],
    "Mental": ["Depression", "Addiction"],
    "Infectious": ["Influenza", "HIV"],
}
#: Divisions of the business register: section → divisions.
ACTIVITIES = {
    "A": ["A01", "A02", "A03"],
    "C": ["C10", "C13", "C20", "C25", "C28", "C29"],
    "F": ["F41", "F42", "F43"],
    "G": ["G45", "G46", "G47"],
    "H": ["H49", "H50", "H51", "H53"],
    "J": ["J58", "J61", "J62"],
    "K": ["K64", "K65", "K66"],
    "M": ["M69", "M70", "M71", "M72"],
}
SIZES = ("1-9", "10-49", "50-249", "250+")


@functools.cache
def region() -> Hierarchy:
    """Return lands, provinces and municipalities."""
    levels = {
        land: {
            f"{land} {place + 1}": [f"{land[0]}{place + 1}{town + 1:02d}" for town in range(TOWNS)]
            for place in range(PROVINCES)
        }
        for land in LANDS
    }
    return Hierarchy.from_levels(levels, name="region")


@functools.cache
def sector() -> Hierarchy:
    """Return the parts of the economy, its sections and divisions; those out of work apart."""
    levels: dict[str, object] = {
        part: {section: list(divisions) for section, divisions in sections.items()}
        for part, sections in SECTORS.items()
    }
    return Hierarchy.from_levels({**levels, NOT_WORKING: []}, name="sector")


@functools.cache
def hierarchies() -> dict[str, Hierarchy]:
    """Return the hierarchy of every coded column of the embedded data, by column.

    >>> hierarchies()["region"]
    Hierarchy(120 values, 4 levels, root 'Total')
    """
    return {
        "region": region(),
        "sector": sector(),
        "occupation": Hierarchy.from_levels(OCCUPATIONS, name="occupation"),
        "education": Hierarchy.from_levels(EDUCATION, name="education"),
        "diagnosis": Hierarchy.from_levels(DIAGNOSES, name="diagnosis"),
        "sex": Hierarchy.flat(["female", "male"], name="sex"),
        "age": Hierarchy.from_intervals(
            width=(5, 10, 20), low=0, high=120, values=range(111), name="age"
        ),
        "activity": Hierarchy.from_levels(ACTIVITIES, name="activity"),
        "size": Hierarchy.flat(SIZES, name="size"),
    }
