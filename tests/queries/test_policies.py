"""Guards by user, role and column, and those that may not stand together."""

import pytest

import discreet as dc
from discreet.demo.datasets import salaries
from discreet.errors import InputError, RefusedError

EXACT, RANGES = dc.Restriction(k=3), dc.Camouflage(bound=0.3)
NOISY = dc.Perturbation(epsilon=1.0, per_query=0.1, bounds={"salary": (0, 600_000)})
SUM, COUNT = "SELECT SUM(salary) FROM people", "SELECT COUNT(*) FROM people WHERE sector = 'IT'"


def test_a_column_has_its_own_guard():
    with dc.Gateway(salaries(), guard=EXACT, policies={"column:salary": RANGES}) as gate:
        assert gate.ask(COUNT).kind == "exact"
        assert gate.ask(SUM).kind == "interval"
        assert gate.ask("SELECT COUNT(*) FROM people WHERE salary > 100000").kind == "interval"
        assert gate.explain(SUM).guard == "camouflage"


def test_a_users_own_guard_comes_first_and_hidden_columns_stay_hidden():
    policies = {
        "column:salary": NOISY,
        "user:ana": EXACT,
        "role:student": dc.Policy(columns=("sector",)),
    }
    with dc.Gateway(salaries(), guard=EXACT, policies=policies) as gate:
        assert gate.ask(SUM, user="ana").kind == "exact"
        assert gate.ask(SUM, user="bob").kind == "noisy"
        assert gate.ask(SUM, user="eve", roles=["student"]).code == "unknown-column"
        assert gate.ask(COUNT, user="eve", roles=["student"]).kind == "exact"


def test_a_question_over_two_guards_is_refused():
    policies = {"column:salary": RANGES, "column:sector": NOISY}
    with dc.Gateway(salaries(), guard=EXACT, policies=policies) as gate:
        told = gate.ask("SELECT SUM(salary) FROM people WHERE sector = 'IT'")
        assert told.code == "different-guards"


def test_the_guard_of_one_column_does_not_answer_about_another():
    # SUM(bonus) is exact beside SUM(salary) only if the salary's guard answers about both.
    frame = salaries().arrow().to_pandas()
    frame["bonus"] = [float((place * 37) % 101) for place in range(len(frame))]
    roles = dict.fromkeys(frame, "quasi") | {"salary": "confidential", "bonus": "confidential"}
    people = dc.read(frame, roles=roles, name="people")
    default = dc.Perturbation(
        epsilon=1.0, per_query=0.1, bounds={"salary": (0, 600_000), "bonus": (0, 100)}
    )
    with dc.Gateway(people, guard=default, policies={"column:salary": EXACT}) as gate:
        for both in (
            "SELECT SUM(salary), SUM(bonus) FROM people",
            "SELECT SUM(bonus) FROM people HAVING SUM(salary) > 0",
            "SELECT sector, SUM(bonus) FROM people GROUP BY sector ORDER BY SUM(salary)",
            "SELECT SUM(salary) FROM people WHERE bonus > 50",
        ):
            assert gate.ask(both).code == "different-guards", both
        assert gate.ask("SELECT SUM(bonus) FROM people").kind == "noisy"
        assert gate.ask("SELECT COUNT(*), SUM(salary) FROM people").kind == "exact"


@pytest.mark.parametrize(
    "policies",
    [
        {"user:ana": RANGES},
        {"role:student": RANGES},
        {"column:salary": RANGES, "user:ana": EXACT},
        {"column:salary": RANGES, "role:a": dc.Camouflage(bound=0.5)},
    ],
)
def test_sure_answers_that_narrow_each_other_are_not_given(policies):
    with pytest.raises(InputError) as caught:
        dc.Gateway(salaries(), guard=EXACT, policies=policies)
    assert caught.value.code == "guards-not-together"
    with dc.Gateway(salaries(), guard=EXACT, policies=policies, apart=True) as gate:
        assert gate.ask(SUM, user="ana").kind in ("exact", "interval")


@pytest.mark.parametrize(
    ("guard", "policies"),
    [
        (EXACT, {"column:salary": RANGES}),
        (RANGES, {"column:total": EXACT}),
        (RANGES, {"column:total": dc.Camouflage(bound=0.01)}),
    ],
)
def test_columns_that_tell_of_each_other_have_guards_that_go_together(guard, policies):
    # Exact sums of the total are exact sums of the salary.
    frame = salaries().arrow().to_pandas()
    roles = dict.fromkeys(frame, "quasi") | {"salary": "confidential", "total": "confidential"}
    people = dc.read(frame.assign(total=1.1 * frame["salary"] + 10), roles=roles, name="people")
    with pytest.raises(InputError) as caught:
        dc.Gateway(people, guard=guard, policies=policies)
    assert caught.value.code == "guards-not-together"
    with dc.Gateway(people, guard=guard, policies={"column:total": NOISY}) as gate:
        assert gate.ask(SUM).kind in ("exact", "interval")


@pytest.mark.parametrize(
    ("first", "then"),
    [(EXACT, RANGES), (RANGES, EXACT), (RANGES, dc.Camouflage(bound=0.01))],
    ids=["exact, intervals", "intervals, exact", "other intervals"],
)
def test_what_the_ledger_holds_goes_together_with_the_guard(first, then, tmp_path):
    def opened(guard, **settings):
        return dc.Gateway(salaries(), guard=guard, ledger=tmp_path / "ledger.db", **settings)

    with opened(first) as gate:
        gate.ask("SELECT COUNT(*) FROM people")
    with opened(then):
        pass  # nothing was told of a confidential column
    with opened(first) as gate:
        assert not gate.ask(SUM).refused
    with pytest.raises(RefusedError) as caught:
        opened(then)
    assert caught.value.code == "guards-not-together"
    for guard, settings in ((first, {}), (NOISY, {}), (then, {"apart": True})):
        with opened(guard, **settings) as gate:
            assert not gate.ask(SUM).refused


def test_gateways_that_are_open_together_tell_of_a_column_in_one_way(tmp_path):
    place = tmp_path / "ledger.db"
    with (
        dc.Gateway(salaries(), guard=EXACT, ledger=place) as exact,
        dc.Gateway(salaries(), guard=RANGES, ledger=place) as ranges,
    ):
        assert exact.ask(SUM, user="ana").kind == "exact"
        assert ranges.ask(SUM, user="bob").code == "guards-not-together"
        assert ranges.ask("SELECT COUNT(*) FROM people", user="bob").kind == "interval"
    with dc.Gateway(salaries(), guard=EXACT, ledger=place) as exact:
        assert exact.ask(SUM, user="ana").repeated


def test_an_answer_that_met_another_on_its_way_is_not_told(tmp_path, monkeypatch):
    place = tmp_path / "ledger.db"
    with (
        dc.Gateway(salaries(), guard=EXACT, ledger=place) as exact,
        dc.Gateway(salaries(), guard=RANGES, ledger=place) as ranges,
    ):
        decided = ranges._deciding.decided

        def late(*asked):  # the other gateway answers while this one decides
            assert exact.ask(SUM).kind == "exact"
            return decided(*asked)

        monkeypatch.setattr(ranges._deciding, "decided", late)
        for _ in range(2):  # nor is it told from the ledger
            assert ranges.ask(SUM, user="bob").code == "guards-not-together"


@pytest.mark.parametrize("policies", [{"user:ana": NOISY}, {"role:b": dc.Restriction(k=5)}])
def test_noise_and_other_ks_may_stand_together(policies):
    with dc.Gateway(salaries(), guard=EXACT, policies=policies) as gate:
        assert gate.ask(SUM).kind == "exact"


@pytest.mark.parametrize(
    ("policies", "code"),
    [
        ({"ana": EXACT}, "malformed-policy"),
        ({"column:": EXACT}, "malformed-policy"),
        ({"column:wage": EXACT}, "unknown-column"),
        ({"column:salary": dc.Policy(columns=("sector",))}, "malformed-policy"),
    ],
)
def test_mistakes_are_named(policies, code):
    with pytest.raises(InputError) as caught:
        dc.Gateway(salaries(), guard=EXACT, policies=policies)
    assert caught.value.code == code
