"""Adult with ARX's hierarchies, for the tests of microdata."""

import pytest

COLUMNS = [
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
]


@pytest.fixture(scope="session")
def adult(data_folder):
    """Adult, all nine columns quasi-identifiers."""
    import discreet as dc

    folder = data_folder / "adult"
    hierarchies = {c: dc.Hierarchy.from_arx(folder / f"adult_hierarchy_{c}.csv") for c in COLUMNS}
    return dc.read(
        folder / "adult.csv", roles=dict.fromkeys(COLUMNS, "quasi"), hierarchies=hierarchies
    )


@pytest.fixture(scope="session")
def adult_confidential(adult):
    """Adult with occupation as confidential column."""
    import discreet as dc

    return dc.read(adult, roles={"occupation": "confidential"})
