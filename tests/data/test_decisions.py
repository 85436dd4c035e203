"""Nothing leaves that nobody decided on, and nothing that names people leaves by being overlooked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.data.decisions import identifying
from discreet.data.infer import infer_schema
from discreet.errors import InputError

N = 40


def column(kind: str) -> list[Any]:
    rng = np.random.default_rng(1)
    made: dict[str, list[Any]] = {
        "e-mail": [f"p{i % 4}@example.org" for i in range(N)],
        "phone": [f"+34 93 {i % 4:03d} 45 67" for i in range(N)],
        "phone at home": [f"093-{4000 + i % 4}" for i in range(N)],
        "iban": [f"ES91 2100 0418 4502 0005 133{i % 4}" for i in range(N)],
        "id": [f"{10_000_000 + i % 4}X" for i in range(N)],
        "coordinates": [f"41.38{i % 4}1, 2.17{i % 4}9" for i in range(N)],
        "free text": [f"the patient came back after {i % 4} long days at sea" for i in range(N)],
        "one e-mail in many notes": ["ok"] * (N - 1) + ["ask ana.b@example.org"],
        "phone in a country": [f"612.34.56.0{i % 4}" for i in range(N)],
        "phone with an area": [f"(555) 123-450{i % 4}" for i in range(N)],
        "phone as a number": [600_000_000 + i % 4 for i in range(N)],
        "card": [f"4111 1111 1111 111{i % 4}" for i in range(N)],
        "network": [f"192.168.1.{i % 4}" for i in range(N)],
        "point": [f"POINT(2.17{i % 4} 41.38)" for i in range(N)],
        "degrees": [f"41°23'0{i % 4}\"N 2°10'05\"E" for i in range(N)],
        "metres": [f"31T 43095{i % 4} 458123{i % 4}" for i in range(N)],
        "metres without zone": [f"43095{i % 4}.5 E, 458123{i % 4}.2 N" for i in range(N)],
        "military grid": [f"31TDF 3095{i % 4} 8123{i % 4}" for i in range(N)],
        "plus code": [f"8FH4952X+{'2345'[i % 4]}X" for i in range(N)],
        "short plus code": [f"952X+{'2345'[i % 4]}X Barcelona" for i in range(N)],
        "numbered wards": [f"{i % 4}T 12 34" for i in range(N)],
        "sums": [f"1000+{i % 4}" for i in range(N)],
        "e-mail in bytes": [f"p{i % 4}@example.org".encode() for i in range(N)],
        "wide e-mail": [f"p{i % 4}＠example.org" for i in range(N)],
        "dates": [f"0{1 + i % 9}/05/1999" for i in range(N)],
        "times": [f"12:30:0{i % 9}" for i in range(N)],
        "amounts": [(i % 9) * 10**6 + 5 for i in range(N)],
        "unique codes": [f"c{i}" for i in range(N)],
        "unique numbers": rng.permutation(N).tolist(),
        "codes": [f"c{i % 4}" for i in range(N)],
        "postcodes": [f"080{i % 9:02d}" for i in range(N)],
        "icd": [f"I{10 + i % 5}.{i % 3}" for i in range(N)],
        "numbers": [i % 7 for i in range(N)],
        "long but few": ["primary school or less"] * (N // 2)
        + ["upper secondary school"] * (N // 2),
    }
    return made[kind]


NAMING = [
    "e-mail",
    "phone",
    "phone at home",
    "iban",
    "id",
    "coordinates",
    "free text",
    "one e-mail in many notes",
    "unique codes",
    "unique numbers",
    "phone in a country",
    "phone with an area",
    "phone as a number",
    "card",
    "network",
    "point",
    "degrees",
    "e-mail in bytes",
    "wide e-mail",
    "metres",
    "metres without zone",
    "military grid",
    "plus code",
    "short plus code",
]
HARMLESS = [
    "numbered wards",
    "sums",
    "dates",
    "times",
    "amounts",
    "codes",
    "postcodes",
    "icd",
    "numbers",
    "long but few",
]


def people(values: list[Any], **more: Any) -> dc.Dataset:
    ages = np.random.default_rng(0).permutation([20, 30] * (N // 2))  # x does not tell them
    frame = pd.DataFrame({"age": ages, "x": values})
    return dc.read(frame, roles={"age": "quasi", "x": "other"}, **more)


@pytest.mark.parametrize("kind", NAMING)
def test_other_does_not_leave_where_it_names_people(kind: str) -> None:
    values = column(kind)
    with pytest.raises(InputError) as error:
        dc.mask(people(values), [dc.Rounding("age", 10)])
    assert error.value.code == "identifying-values"
    assert error.value.column == "x"
    assert not any(str(value) in str(error.value) for value in values if len(str(value)) > 3)
    vouched = dc.mask(people(values, vouch=["x"]), [dc.Rounding("age", 10)])
    assert list(vouched.frame["x"]) == values


@pytest.mark.parametrize("name", ["easting", "Rechtswert", "utm_x", "lat"])
def test_whole_metres_are_coordinates_as_their_name_says(name: str) -> None:
    frame = pd.DataFrame({"age": [20, 30] * 20, name: [430_959 + i % 4 for i in range(N)]})
    with pytest.raises(InputError, match="are coordinates"):
        dc.mask(dc.read(frame, roles={"age": "quasi", name: "other"}), [dc.Rounding("age", 10)])
    coarse = frame.assign(**{name: [41 + i % 4 for i in range(N)]})
    assert dc.mask(dc.read(coarse, roles={"age": "quasi", name: "other"}), []).frame.shape == (N, 2)


@pytest.mark.parametrize("kind", HARMLESS)
def test_codes_that_many_share_may_leave(kind: str) -> None:
    assert identifying(people(column(kind)), ["x"]) == {}
    assert "x" in dc.mask(people(column(kind)), [dc.Rounding("age", 10)]).frame.columns


@pytest.mark.parametrize("kind", ["e-mail", "free text", "one e-mail in many notes", "point"])
def test_confidential_text_that_names_people_is_refused_too(kind: str) -> None:
    data = people(column(kind)).replace(roles={"x": "confidential"})
    with pytest.raises(InputError) as error:
        dc.anonymize(data, dc.KAnonymity(2), method=dc.Mondrian())
    assert error.value.code == "identifying-values"


def releases() -> list[Any]:
    return [
        lambda data: dc.mask(data, [dc.Rounding("age", 10)]),
        lambda data: dc.anonymize(data, dc.KAnonymity(2), method=dc.Mondrian()),
        lambda data: dc.permute(data, sensitive="pay", k=2),
        lambda data: dc.strengthen(data, dc.Rounding("age", 10), until=dc.risk < 0.9),
    ]


@pytest.mark.parametrize("release", releases(), ids=["mask", "anonymize", "permute", "strengthen"])
@pytest.mark.parametrize("roles", [None, {"age": "quasi", "pay": "confidential"}])
def test_no_release_before_every_column_is_decided(release: Any, roles: Any) -> None:
    frame = pd.DataFrame({"age": [20, 30] * 5, "pay": [1, 2] * 5, "shoe": [40, 41] * 5})
    with pytest.raises(InputError) as error:
        release(dc.read(frame, roles=roles))
    assert error.value.code == "undecided-columns"
    assert "shoe" in error.value.facts["columns"]
    for line in ("roles={", "roles: {", "--role shoe="):
        assert line in str(error.value.hint)
    for more in ({"rest": "other"}, {"rest": "identifier"}):
        decided = {"age": "quasi", "pay": "confidential"}
        assert release(dc.read(frame, roles=decided, **more)) is not None


def test_the_list_can_be_pasted() -> None:
    frame = pd.DataFrame({"age": [20, 30] * 5, "shoe size": [40, 41] * 5})
    with pytest.raises(InputError) as error:
        dc.mask(frame, [dc.Rounding("age", 10)])
    line = next(x for x in str(error.value.hint).splitlines() if "Python:" in x)
    roles = eval(line.partition("roles=")[2])  # a literal of our own
    assert dc.mask(dc.read(frame, roles=roles), [dc.Rounding("age", 10)]) is not None


def test_rest_leaves_names_in_the_house() -> None:
    frame = pd.DataFrame({"age": [20, 30], "surname": ["a", "b"], "shoe": [40, 40]})
    data = dc.read(frame, roles={"age": "quasi"}, rest="other")
    assert data.schema.identifiers == ("surname",)
    assert list(dc.mask(data, []).frame.columns) == ["age", "shoe"]


@pytest.mark.parametrize("quasi", [["age", "x"], ["x"], []])
def test_quasi_that_contradicts_the_roles_is_an_error(quasi: list[str]) -> None:
    data = people(column("codes"))
    if not quasi:
        assert dc.anonymize(data, dc.KAnonymity(2), method=dc.Mondrian()).safe
        return
    with pytest.raises(InputError) as error:
        dc.anonymize(data, dc.KAnonymity(2), method=dc.Mondrian(), quasi=quasi)
    assert error.value.code == "contradicting-roles"


@pytest.mark.parametrize("kind", ["e-mail", "phone", "iban", "id", "unique codes"])
def test_no_table_is_crossed_by_values_that_name_people(kind: str) -> None:
    frame = pd.DataFrame({"age": [20, 30] * (N // 2), "x": column(kind)})
    with pytest.raises(InputError) as error:
        dc.tabulate(dc.read(frame, roles={"age": "quasi"}), by=["age", "x"])
    assert (error.value.code, error.value.column) == ("identifying-values", "x")
    for said in ({"roles": {"x": "quasi"}}, {"roles": {"age": "quasi"}, "vouch": ["x"]}):
        assert len(dc.tabulate(dc.read(frame, **said), by=["age", "x"])) > 2  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", HARMLESS)
def test_a_table_is_crossed_by_codes_that_many_share(kind: str) -> None:
    frame = pd.DataFrame({"age": [20, 30] * (N // 2), "x": column(kind)})
    assert len(dc.tabulate(dc.read(frame), by=["age", "x"])) > 2


def test_a_gateway_does_not_know_what_nobody_decided() -> None:
    frame = pd.DataFrame({"age": [20, 30] * 20, "pay": range(40), "debt": range(40)})
    data = dc.read(frame, roles={"age": "quasi", "pay": "confidential"}, name="people")
    with dc.Gateway(data, guard=dc.Restriction(k=3)) as gate:
        assert gate.ask("SELECT AVG(pay) FROM people").kind != "refused"
        assert gate.ask("SELECT SUM(debt) FROM people").refused
    with pytest.raises(InputError) as error:
        dc.Gateway(dc.read(frame, name="people"), guard=dc.Restriction(k=3))
    assert error.value.code == "undecided-columns"


def test_near_unique_weights_are_not_overlooked() -> None:
    frame = pd.DataFrame({"age": [20, 30] * 20, "w": np.arange(40) + 0.5})
    data = dc.read(frame, roles={"age": "quasi"}, weight="w")
    with pytest.raises(InputError) as error:
        dc.mask(data, [dc.Rounding("age", 10)])
    assert (error.value.code, error.value.column) == ("identifying-values", "w")
    assert dc.mask(data, [dc.Rounding("age", 10), dc.Rounding("w", 20)]) is not None


def test_kept_records_that_were_suppressed_say_nothing_at_all() -> None:
    frame = pd.DataFrame({"a": ["x", "x", "x", "z"], "shoe": [40, 40, 40, 99], "ill": list("ffff")})
    data = dc.read(
        frame,
        roles={"a": "quasi", "shoe": "other", "ill": "confidential"},
        hierarchies={"a": dc.Hierarchy.from_levels({"Total": ["x", "z"]})},
    )
    method = dc.Generalization(suppression=0.5, highest={"a": 0}, keep=True)
    out = dc.anonymize(data, dc.KAnonymity(2), method=method).frame
    gone = out[out["a"] == "*"]
    assert len(gone) == 1
    assert gone[["shoe", "ill"]].isna().all().all()


# -- the verdict names what it does not cover ------------------------------------------------------
def test_the_verdict_names_what_is_not_covered() -> None:
    frame = pd.DataFrame(
        {
            "age": [20] * 4 + [30] * 4,
            "shoe": [40, 41] * 4,
            "ill": ["flu", "flu", "flu", "flu", "gout", "flu", None, "gout"],
            "pay": [1, 2, 3, 4, 1, 2, 3, 4],
        }
    )
    data = dc.read(
        frame,
        roles={"age": "quasi", "shoe": "other", "ill": "confidential", "pay": "confidential"},
    )
    safe = dc.anonymize(data, dc.KAnonymity(4), method=dc.Mondrian())
    for words in (
        "shoe leaves as it is",
        "ill, pay are confidential and no model or method is about them",
        "in 1 of 2 classes everybody has the same ill",
    ):
        assert words in safe.verdict
    assert safe.evidence().risk["not covered"]["told"] == {"ill": 1}
    assert "What is not covered" in safe.page()
    models = [dc.KAnonymity(4), dc.LDiversity("ill", 2)]
    diverse = dc.anonymize(data, models, method=dc.Mondrian())
    assert "a missing ill counts as a value in 1 of 1 classes" in diverse.verdict
    assert "pay is confidential" in diverse.verdict
    masked = dc.mask(data, [dc.Rounding("pay", 2)])
    assert "age, shoe leave as they are" in masked.verdict


# -- guesses ---------------------------------------------------------------------------------------
def test_what_a_column_probably_is() -> None:
    rng = np.random.default_rng(1)
    size = 60
    frame = pd.DataFrame(
        {
            "x1": rng.choice(10**9, size, replace=False) + 10**9,
            "lat": rng.random(size) * 90,
            "Longitude": rng.random(size) * 90,
            "x2": [f"{i % 28 + 1:02d}/0{i % 9 + 1}/19{40 + i % 50}" for i in range(size)],
            "patient_name": [f"name {i}" for i in range(size)],
            "patient_no": [f"{i // 2}" for i in range(size)],
        }
    )
    schema = infer_schema(dc.read(frame))
    roles = {c.name: c.role.value for c in schema.columns}
    assert roles["x1"] == "identifier"
    assert roles["lat"] == roles["Longitude"] == "quasi"
    assert (roles["x2"], schema["x2"].type.value) == ("quasi", "date")
    assert schema.unit != "patient_name"
    assert not any(c.decided for c in schema.columns)


# -- domains ---------------------------------------------------------------------------------------
def test_domains_are_declared_once() -> None:
    frame = pd.DataFrame({"sex": ["f"], "age": [30], "pay": [5.0], "region": ["n1"], "x": [1]})
    data = dc.read(
        frame,
        domains={"sex": ["f", "m"], "age": {"cuts": [0, 18, 65, 120]}},
        bounds={"pay": (0, 500_000)},
        hierarchies={"region": dc.Hierarchy.from_levels({"Total": ["n1", "n2"]})},
    )
    schema = data.schema
    assert schema.domain("sex").values == ("f", "m")  # type: ignore[union-attr]
    assert schema.domain("age").range == (0.0, 120.0)  # type: ignore[union-attr]
    assert schema.domain("pay").bounds == (0.0, 500_000.0)  # type: ignore[union-attr]
    assert schema.domain("region").values == ("n1", "n2")  # type: ignore[union-attr]
    assert schema.domain("x") is None
    assert data.replace(library="polars").schema.domain("pay") is not None


@pytest.mark.parametrize("made", [{"rare": 2}, {"redact": 1}, {"prefixes": [1]}])
def test_a_hierarchy_of_the_records_own_values_declares_no_domain(made: dict[str, Any]) -> None:
    frame = pd.DataFrame({"job": ["cook", "cook", "nurse", "queen"]})
    data = dc.read(frame, hierarchies={"job": made})
    assert data.schema.hierarchies("job")[0].observed
    assert data.schema.domain("job") is None
    assert data.schema.hierarchies("job")[0].with_na("unknown").observed
    counted = dc.Hierarchy.from_rare({"cook": 2, "queen": 1}, minimum=2)
    assert dc.read(frame, hierarchies={"job": counted}).schema.domain("job") is None


@pytest.mark.parametrize("made", [{"widths": [10]}, {"cuts": [0, 50, 100]}])
def test_intervals_over_the_records_own_numbers_declare_no_range(made: dict[str, Any]) -> None:
    data = dc.read(pd.DataFrame({"age": [17, 30, 89]}), hierarchies={"age": made})
    assert data.schema.domain("age") is None  # or its ends would be the file's least and largest


@pytest.mark.parametrize(
    "given",
    [
        {"domains": {"x": []}},
        {"domains": {"x": ["a", "a"]}},
        {"domains": {"x": "abc"}},
        {"domains": {"x": {"cuts": [3, 1]}}},
        {"domains": {"x": {"wrong": [1]}}},
        {"bounds": {"x": (3, 1)}},
        {"bounds": {"x": (0, float("inf"))}},
        {"bounds": {"x": (0, float("nan"))}},
        {"bounds": {"x": ("a", "b")}},
        {"bounds": {"x": (1, 2, 3)}},
        {"domains": {"x": [1, 2]}, "bounds": {"x": (0, 1)}},
    ],
)
def test_malformed_domains_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError) as error:
        dc.read(pd.DataFrame({"x": [1]}), **given)
    assert error.value.code == "bad-domain"


def test_a_policy_declares_the_same(tmp_path: Any) -> None:
    from discreet.data.source import Source
    from discreet.registry import build

    pd.DataFrame({"sex": ["f", "m"], "pay": [1, 2], "note": ["a", "b"]}).to_csv(
        tmp_path / "people.csv", index=False
    )
    source = build(
        Source,
        {
            "source": str(tmp_path / "people.csv"),
            "roles": {"sex": "quasi", "pay": "confidential"},
            "rest": "other",
            "vouch": ["note"],
            "domains": {"sex": ["f", "m"]},
            "bounds": {"pay": [0, 100]},
        },
        path=("data",),
    )
    schema = source.open().schema
    assert schema["note"].vouched
    assert schema.undecided == ()
    assert schema.domain("pay").bounds == (0.0, 100.0)
