"""Texts that name people leave in no column and by no method, unless somebody vouches for them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.data.person_names import named_people

DOCTORS = ["Anna Schmidt", "Peter Maier", "Li Wei", "Joan Sanz"]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ("doctor", DOCTORS),
        ("x", DOCTORS),
        ("x", ["Dr. Miller", "Dr. Sanz", "Prof. Li"]),
        ("x", ["Smith, J.", "Miller, A. B.", "van der Berg, C."]),
        ("surgeon", ["Miller", "Jones", "Smith"]),
        ("employee", ["Anna Schmidt", "Bo Ek"]),
        ("x", ["Dr.Berger", "berger, anna", "Dr.Huber"]),
        ("x", ["A.Berger", "K.Huber"]),
        ("x", ["berger, anna", "huber, karl-heinz"]),
        ("x", ["anna.berger", "karl.huber", "li.wei"]),
        ("behandelnder", ["Berger", "Huber", "Maier"]),
        ("Einweiser", ["Berger", "Huber", "Maier"]),
        ("Zuweiser", ["Berger", "Huber", "Maier"]),
        ("x", ["Anna Schmidt", "王伟", "Иван Петров", "محمد علي", "김철수", "राम शर्मा"]),
        ("x", ["Γιώργος Παπάς", "שרה כהן", "Li Wei", "ნინო ბერიძე"]),
        ("x", ["王伟", "李娜", "张敏", "刘洋", "陈静"]),
        ("x", ["김철수", "이영희", "박민수"]),
        ("doctor", ["Berger", "王伟", "Петров", "علي"]),
    ],
)
def test_names_are_seen(column, texts):
    assert named_people(column, texts) == "look like names of people"


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ("city", ["New York", "Los Angeles"]),
        ("ward", ["Ward A", "Ward B", "Ward C"]),
        ("shift", ["Team North", "Team South"]),
        ("blood", ["Type A", "Type B"]),
        ("kind", ["Type A", "Group B"]),
        ("doctor", ["Yes", "No"]),
        ("contact", ["cellular", "telephone", "unknown"]),
        ("work", ["Private", "Self-emp-inc", "Federal-gov"]),
        ("x", ["I25.1", "J18"]),
        ("x", ["ضغط الدم", "مرض السكر", "فقر الدم"]),
        ("x", ["北京", "上海", "广州", "深圳"]),
        ("x", ["高血压", "糖尿病", "肺炎", "哮喘"]),
        ("x", ["нет", "yes", "да", "no"]),
        ("x", ["высокий риск", "high risk", "高"]),
        ("x", ["cough, fever", "fever, rash", "rash, cough"]),
        ("x", ["basic.4y", "high.school", "university.degree", "unknown"]),
        ("x", ["shop.example.com", "mail.com", "news.com"]),
        ("Einweisungsart", ["Notfall", "Geplant", "Verlegung"]),
        ("x", []),
    ],
)
def test_what_names_nobody_is_left_alone(column, texts):
    assert named_people(column, texts) is None


def people(role, **more):
    source = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": source.integers(20, 80, 80),
            "doctor": source.choice(DOCTORS, 80),
            "pay": source.permutation(80) * 100,
        }
    )
    roles = {"age": "quasi", "doctor": role, "pay": "confidential"}
    return dc.read(frame, roles=roles, name="people", **more)


WAYS = {
    "suppressed": lambda data: dc.anonymize(data, dc.KAnonymity(3), method=dc.LocalSuppression()),
    "partitioned": lambda data: dc.anonymize(data, dc.KAnonymity(3), method=dc.Mondrian()),
    "swapped": lambda data: dc.mask(data, [dc.DataSwapping("doctor")]),
    "drawn": lambda data: dc.synthesize(data, dc.CART(min_leaf=10)),
    "permuted": lambda data: dc.permute(data, sensitive="pay", k=3, e=100),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("role", ["quasi", "other"])
def test_names_of_few_people_leave_only_where_vouched_for(way, role):
    with pytest.raises(dc.InputError) as caught:
        WAYS[way](people(role))
    assert caught.value.code == "identifying-values"
    assert caught.value.column == "doctor"
    assert not any(name in str(caught.value) for name in DOCTORS)
    assert WAYS[way](people(role, vouch=["doctor"])) is not None


def test_declared_values_and_pseudonyms_leave():
    assert WAYS["suppressed"](people("quasi", domains={"doctor": DOCTORS}))
    assert dc.mask(people("other"), [dc.Pseudonyms("doctor")])


def test_addresses_of_few_people_leave_by_no_method():
    data = people("quasi")
    frame = data.frame.assign(doctor=[f"d{n % 3}@ward.org" for n in range(80)])
    mailed = dc.read(frame, roles={"age": "quasi", "doctor": "quasi", "pay": "confidential"})
    for way in WAYS.values():
        with pytest.raises(dc.InputError, match="e-mail addresses"):
            way(mailed)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("ana\u200b@exam\u200bple.org", "e-mail addresses"),
        ("ana (at) example.org", "e-mail addresses"),
        ("ana＠example．org", "e-mail addresses"),
        ("１２３４５６７８９０", "numbers of persons"),
        ("https://example.org/ana", "web addresses"),
        ("2001:db8::ff00:42:8329", "network addresses"),
        ("00:1A:2B:3C:4D:5E", "network addresses"),
    ],
)
def test_addresses_are_seen_as_a_reader_sees_them(text, what):
    frame = pd.DataFrame({"age": [20, 30] * 10, "x": [text] * 20})
    data = dc.read(frame, roles={"age": "quasi", "x": "other"})
    with pytest.raises(dc.InputError, match=what):
        dc.anonymize(data, dc.KAnonymity(2), method=dc.Mondrian())


def test_codes_that_all_differ_are_no_confidential_values():
    frame = pd.DataFrame({"age": [20, 30] * 15, "case": [f"C{n:04d}" for n in range(30)]})
    data = dc.read(frame, roles={"age": "quasi", "case": "confidential"})
    with pytest.raises(dc.InputError, match="codes that nearly all differ"):
        dc.anonymize(data, dc.KAnonymity(2), method=dc.Mondrian())
