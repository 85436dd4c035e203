"""Rows are looked up through real servers over TLS; wrong servers are noticed."""

import concurrent.futures
import dataclasses
import itertools
import shutil
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from discreet.data.dataset import read
from discreet.errors import DiscreetError, EngineError, InfeasibleError, InputError, RefusedError
from discreet.protocols.retrieval.asking import Retrieval
from discreet.protocols.retrieval.entries import key_of
from discreet.protocols.retrieval.schemes.chor import Chor
from discreet.protocols.retrieval.signing import Publisher
from discreet.protocols.retrieval.statement import Statement
from discreet.protocols.retrieval.table import RetrievalTable
from discreet.protocols.transport import Message
from tests.protocols.retrieval.served import PUBLISHER, asker, built, people, serving


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    return built(folder, secondary={"city": 120}, schemes=("dpf", "simple-pir"))


@pytest.mark.parametrize(
    ("scheme", "servers"),
    [("auto", 1), ("auto", 2), ("auto", 3), ("chor", 2), ("simple-pir", 1), ("whole-table", 1)],
)
def test_rows_are_found_and_absent_ones_are_proven(table, tmp_path, scheme, servers):
    truth = people(300).set_index("id")
    with (
        serving([table.folder.parent] * servers, tmp_path) as (addresses, pins, _),
        asker(addresses, pins, scheme=scheme) as retrieval,
    ):
        for key in (3, 3 + 7 * 299, 3 + 7 * 150):
            row = retrieval.get(key)
            assert row == {"id": key, **truth.loc[key].to_dict()}
        assert retrieval.get(4) is None
        found = retrieval.get_many([10, 5, 17])
        assert found["id"].tolist() == [10, 17]
        assert retrieval.why


@pytest.mark.parametrize(
    ("scheme", "servers"), [("dpf", 2), ("chor", 3), ("simple-pir", 1), ("whole-table", 1)]
)
def test_secondary_keys_with_no_one_and_many_matches(tmp_path, scheme, servers):
    truth = people(150)
    truth.loc[77, "city"] = "REU"
    table = built(tmp_path, data=truth, secondary={"city": 60}, schemes=("dpf", "simple-pir"))
    with (
        serving([table.folder.parent] * servers, tmp_path) as (addresses, pins, servings),
        asker(addresses, pins, batch=40, scheme=scheme) as retrieval,
    ):
        asked = []
        for city, many in (("TGN", None), ("REU", 1), ("LLE", None), ("nowhere", 0)):
            found = retrieval.where(city=city)
            expected = truth[truth.city == city]
            assert many in (None, len(expected))
            assert sorted(found["id"]) == sorted(expected["id"])
            assert found.columns.tolist() == ["id", "name", "city", "pay"]
            asked.append(servings[0].counters.questions)
        # As many questions for a city that nobody lives in.
        assert len({b - a for a, b in itertools.pairwise(asked)}) == 1
        with pytest.raises(InputError, match="not a secondary key"):
            retrieval.where(pay=1)


def test_frames_come_back_in_the_library_that_is_asked_for(table, tmp_path):
    import polars as pl

    with (
        serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _),
        asker(addresses, pins, library="polars") as retrieval,
    ):
        assert isinstance(retrieval.get_many([3]), pl.DataFrame)
        assert retrieval.get_many([]).height == 0


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_keys_in_a_series_bring_a_frame_of_its_library(table, tmp_path, library):
    import polars as pl
    import pyarrow as pa

    keys = {"pandas": pd.Series([3, 4]), "polars": pl.Series([3, 4]), "pyarrow": pa.array([3, 4])}
    other = "polars" if library == "pandas" else "pandas"
    with (
        serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _),
        asker(addresses, pins, library=other) as retrieval,
    ):
        found = retrieval.get_many(keys[library])
    assert type(found).__module__.startswith(library)
    assert len(found) == 1


def test_files_of_the_folder_say_whom_to_trust(tmp_path, monkeypatch):
    # What `retrieve build` and `retrieve serve` write there is found without being named.
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError, match="identifying"):
        RetrievalTable.build(read(people(20), name="people"), key="id", columns=["name"])
    assert not list(tmp_path.iterdir())
    made = read(people(20), name="people", roles={"id": "other", "name": "other"})
    table = RetrievalTable.build(made, key="id", columns=["name"])
    place = tmp_path / "certificates"
    place.mkdir()
    folder = table.folder.parent
    assert folder == Path("published/people")
    with pytest.raises(InputError, match="holds 0 certificates"):
        Retrieval(["https://a:1", "https://b:1"], table="people")
    with (
        serving([folder] * 2, place) as (addresses, pins, _),
        Retrieval([f"https://{one}" for one in addresses], table="people") as retrieval,
        # One server behind two addresses has one certificate.
        Retrieval([addresses[0], addresses[0]], table="people") as doubled,
    ):
        assert retrieval.get(10) == {"id": 10, "name": "person 1"}
        assert {retrieval._pins[n] for n in (0, 1)} == set(pins)
        with pytest.raises(RefusedError) as caught:
            doubled.get(10)
        assert caught.value.code == "wrong-pin"
    (folder / "publisher.pub").unlink()
    with pytest.raises(InputError, match="no publisher's key"):
        Retrieval(addresses, table="people")


def test_look_ups_outlive_the_version_they_began_with(tmp_path):
    # An old version that expired is asked for no longer, without an error.
    table = built(tmp_path, rows=60, secondary={"city": 40}, expires=0.0)
    with (
        serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, servings),
        asker(addresses, pins) as retrieval,
    ):
        for look_up in (
            lambda: retrieval.get(3),
            lambda: retrieval.get_many([3, 10]),
            lambda: retrieval.where(city="TGN"),
        ):
            assert look_up() is not None
            before = retrieval.statement.version
            table = table.update(people(60).head(1), publisher=PUBLISHER, publishable=True)
            for one in servings:
                one.look(force=True)
                one.look(force=True)
            assert look_up() is not None
            assert retrieval.statement.version == before + 1


def test_updates_are_seen_and_the_old_version_is_served_beside(tmp_path):
    first = built(tmp_path, rows=200, secondary={"city": 90}, schemes=("dpf", "simple-pir"))
    folder = first.folder.parent
    with (
        serving([folder] * 2, tmp_path) as (addresses, pins, servings),
        serving([folder], tmp_path) as (one_address, one_pin, one_serving),
        asker(addresses, pins) as retrieval,
        asker(one_address, one_pin, scheme="simple-pir") as alone,
    ):
        assert retrieval.get(3)["name"] == alone.get(3)["name"] == "person 0"
        assert retrieval.get(1) is None
        changed = pd.DataFrame(
            {"id": [3, 1], "name": ["new", "born"], "city": ["REU", "REU"], "pay": [1.0, 2.0]}
        )
        second = first.update(changed, deleted=[10], publisher=PUBLISHER, publishable=True)
        assert (second.statement.version, second.statement.rows) == (2, 200)
        for one in (*servings, *one_serving):
            one.look(force=True)
        for client in (retrieval, alone):
            client.get(3)  # the old version; its answer names the newer one
        # Hints of what did not change are kept, and that of the delta table is patched.
        before, whole = alone.received, second.statement.files["main-delta-add-2.hint"][1]
        for client in (retrieval, alone):
            assert client.get(3)["name"] == "new"
            assert client.get(1)["name"] == "born"
            assert client.get(10) is None
            assert client.get(17)["name"] == "person 2"
        assert alone.received - before < whole // 2
        assert sorted(retrieval.where(city="REU")["id"]) == [1, 3]
        third = second.update(deleted=[1], publisher=PUBLISHER)
        assert third.lookup("main", 1) is None
        assert third.lookup("main", 3)[0] == "new"
        third.verify()
        # What did not change is the same file.
        assert (third.folder / "main-filter-xor-1.bin").samefile(
            first.folder / "main-filter-xor-1.bin"
        )


def test_a_delta_table_that_is_full_says_so(tmp_path):
    table = built(tmp_path, rows=20, places=3)
    with pytest.raises(InfeasibleError, match="4 rows changed"):
        table.update(deleted=[3, 10, 17, 24], publisher=PUBLISHER)


class Lies:
    """Changes answers of one server."""

    def __init__(self, change):
        self.change = change
        self.seen = []

    def __call__(self, number, one):
        def answer(peer, message):
            self.seen.append((number, message.label, len(message.body)))
            reply = one.answer(peer, message)
            if number == 0 and reply.label == "answer":
                body = bytearray(reply.body)
                self.change(body)
                return Message(reply.label, reply.fields, bytes(body))
            return reply

        return answer


def test_a_lying_server_is_noticed_and_learns_nothing(table, tmp_path):
    drawn = np.random.default_rng(4)

    def flip(body):
        body[drawn.integers(len(body))] ^= 1 << drawn.integers(8)

    lies = Lies(flip)
    with (
        serving([table.folder.parent] * 2, tmp_path, lies) as (addresses, pins, _),
        asker(addresses, pins) as retrieval,
    ):
        texts = set()
        for _ in range(60):
            with pytest.raises(RefusedError) as caught:
                retrieval.get(3)
            texts.add(str(caught.value))
        assert len(texts) == 1
        # What the servers see next is the same as after a right answer.
        asked = [entry for entry in lies.seen if entry[1] == "ask"]
        assert len(asked) == 240  # two messages to each of two servers
        assert len({size for _, _, size in asked}) == 2


@pytest.mark.parametrize("keys", [[3], [4], [3, 4, 10]])
def test_spoiled_answers_to_questions_about_nothing_fail_too(table, tmp_path, keys):
    # Else a server could count how many of a batch are asked for something.
    def flip(body):
        body[-10] ^= 1

    lies = Lies(flip)
    with (
        serving([table.folder.parent] * 2, tmp_path, lies) as (addresses, pins, _),
        asker(addresses, pins, batch=4) as retrieval,
        pytest.raises(RefusedError, match="not what the publisher signed"),
    ):
        retrieval.get_many(keys)
    assert len([entry for entry in lies.seen if entry[1] == "ask"]) == 4


def test_a_table_without_decoys_is_refused_whatever_the_key(tmp_path, monkeypatch):
    with monkeypatch.context() as older:
        plain = Statement.content
        older.setattr(
            Statement,
            "content",
            lambda self: plain(
                dataclasses.replace(
                    self, parts=tuple(dataclasses.replace(p, decoys=None) for p in self.parts)
                )
            ),
        )
        table = built(tmp_path, rows=20)
    with serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _):
        for key in (3, 4):
            with asker(addresses, pins) as retrieval, pytest.raises(RefusedError) as caught:
                retrieval.get(key)
            assert caught.value.code == "old-table"


def test_another_table_behind_one_server_is_noticed(table, tmp_path):
    other = built(tmp_path, rows=290, secondary={"city": 120}, schemes=("dpf", "simple-pir"))
    with (
        serving([table.folder.parent, other.folder.parent], tmp_path) as (addresses, pins, _),
        asker(addresses, pins) as retrieval,
        pytest.raises(RefusedError, match="same version"),
    ):
        retrieval.get(3)


def test_a_secondary_key_without_values_is_refused(tmp_path):
    rows = people(5).assign(city=pd.array([None] * 5, "string"))
    with pytest.raises(InputError) as caught:
        RetrievalTable.build(
            rows, folder=tmp_path / "people", publisher=PUBLISHER, key="id", publishable=True,
            secondary={"city": 2},
        )  # fmt: skip
    assert (caught.value.code, caught.value.column) == ("empty-secondary", "city")


def test_an_older_version_than_before_is_refused(tmp_path):
    first = built(tmp_path, rows=50)
    with serving([first.folder.parent] * 2, tmp_path) as (addresses, pins, _):
        first.update(deleted=[3], publisher=PUBLISHER)
        with asker(addresses, pins) as retrieval:
            # A server that forgot the newest version cannot make the client forget it.
            retrieval.get(10)
            retrieval._state = dataclasses.replace(retrieval._state, version=9)
            retrieval._newest = 10
            with pytest.raises(RefusedError, match="older"):
                retrieval.get(10)


def test_an_older_version_is_refused_after_a_new_start_too(tmp_path):
    # Each call of the command is a new process: what it has seen must outlive it.
    first = built(tmp_path, rows=50)
    before = tmp_path / "before"
    shutil.copytree(first.folder.parent, before)
    first.update(deleted=[3], publisher=PUBLISHER)
    seen = tmp_path / "seen.txt"
    with (
        serving([first.folder.parent] * 2, tmp_path) as (addresses, pins, _),
        asker(addresses, pins, seen=seen) as retrieval,
    ):
        assert retrieval.get(3) is None
    with serving([before] * 2, tmp_path) as (addresses, pins, _):
        with asker(addresses, pins, seen=seen) as retrieval, pytest.raises(RefusedError) as caught:
            retrieval.get(3)
        assert caught.value.code == "stale-version"
        seen.write_text("two")
        with asker(addresses, pins, seen=seen) as retrieval, pytest.raises(InputError):
            retrieval.get(3)


def test_another_table_of_the_same_publisher_name_and_version_is_refused(tmp_path):
    first, other = built(tmp_path / "a", rows=50), built(tmp_path / "b", rows=60)
    seen = tmp_path / "seen.txt"
    for table in (first, other, first):
        with (
            serving([table.folder.parent] * 2, table.folder.parent) as (addresses, pins, _),
            asker(addresses, pins, seen=seen) as retrieval,
        ):
            if table is first:
                assert retrieval.get(3)["name"] == "person 0"
                continue
            with pytest.raises(RefusedError) as caught:
                retrieval.get(3)
            assert caught.value.code == "another-table"
    seen.write_text("1\n")  # as older versions wrote it
    with (
        serving([other.folder.parent] * 2, other.folder.parent) as (addresses, pins, _),
        asker(addresses, pins, seen=seen) as retrieval,
    ):
        assert retrieval.get(3)["name"] == "person 0"
    assert seen.read_text() == f"1 {other.statement.root}\n"


def test_whole_floats_are_found_as_integers():
    assert key_of(2.0**62, "integer", "id") == 2**62
    assert key_of(np.float32(2.0**62), "integer", "id") == 2**62
    with pytest.raises(InputError):
        key_of(float("inf"), "integer", "id")


def test_a_statement_names_no_file_elsewhere(table):
    wrong = [
        {"files": {"../x.bin": ("", 0)}},
        {"parts": (dataclasses.replace(table.statement.parts[0], name="../x"),)},
        {"base": "1/../../x"},
    ]
    for change in wrong:
        made = dataclasses.replace(table.statement, **change)
        with pytest.raises(RefusedError):
            Statement.read(made.signed(PUBLISHER), "people")


@pytest.mark.parametrize("batch", [0, -1, 65])
def test_batches_that_no_server_answers_are_refused_at_home(batch):
    with pytest.raises(InputError, match="1 to 64"):
        asker(["a:1"], ["sha256:0"], batch=batch)


def test_a_publisher_who_is_somebody_else_is_refused(table, tmp_path):
    with serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _):
        stranger = Publisher(bytes(32)).reader.public
        with (
            Retrieval(addresses, table="people", pins=pins, publisher=stranger) as retrieval,
            pytest.raises(RefusedError, match="not signed"),
        ):
            retrieval.get(3)


def test_a_server_that_is_gone_is_named_and_may_come_back(table, tmp_path):
    with serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _):
        retrieval = asker(addresses, pins, time_limit=5)
        assert retrieval.get(3)
    with pytest.raises(EngineError) as caught:
        retrieval.get(3)
    assert addresses[0] in str(caught.value)
    with pytest.raises(EngineError, match="does not answer"):
        retrieval.get(3)


def test_a_user_who_was_silent_for_long_is_answered(table, tmp_path, monkeypatch):
    # Servers end silent connections; a user who comes back must not get an error for it.
    monkeypatch.setattr("discreet.protocols.retrieval.asking._IDLE", 0.1)
    with (
        serving([table.folder.parent] * 2, tmp_path, idle=0.2) as (addresses, pins, _),
        asker(addresses, pins) as retrieval,
    ):
        assert retrieval.get(3)
        time.sleep(0.5)
        assert retrieval.get(10)


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ({}, b""),
        ({"t": "people"}, b""),
        ({"t": "people", "v": "1"}, b""),
        ({"t": "people", "v": 1, "p": 3}, b""),
        ({"t": "people", "v": 1, "p": "main", "s": ["dpf"], "n": 1}, b""),
        ({"t": "people", "v": 1, "p": "main", "s": "dpf", "n": 10**9}, b""),
        ({"t": "people", "v": 1, "p": "main", "s": "dpf", "n": -1}, b""),
        ({"t": "people", "v": 1, "p": "main", "s": "dpf", "n": 1}, b"short"),
    ],
)
@pytest.mark.parametrize("label", ["ask", "hint", "statement", "nonsense"])
def test_wrong_messages_are_refused(table, tmp_path, label, fields, body):
    from discreet.protocols.retrieval.serving import Serving

    one = Serving({"people": table.folder.parent})
    if label == "statement" and fields.get("t") == "people":
        one.answer("", Message(label, fields, body))
        return
    with pytest.raises(DiscreetError):
        one.answer("", Message(label, fields, body))


def test_fetching_everything_is_answered_once_from_memory_that_is_there(table):
    from discreet.protocols.retrieval.serving import Serving

    one = Serving({"people": table.folder.parent})
    fields = {"t": "people", "v": 1, "s": "whole-table", "r": 1}
    with pytest.raises(InputError, match="1 to 1 questions"):
        one.answer("", Message("ask", {**fields, "n": 64}))
    for turn in (0, 1):
        answers = [one.answer("", Message("ask", {**fields, "r": turn})).body for _ in range(2)]
        # Strangers who do not read their answers hold no copies of the table.
        assert answers[0] is answers[1]
        assert answers[0].readonly


def test_everything_is_fetched_once_for_many_keys(table, tmp_path):
    with (
        serving([table.folder.parent], tmp_path) as (addresses, pins, servings),
        asker(addresses, pins, scheme="whole-table", batch=2) as retrieval,
    ):
        assert retrieval.get_many([3, 4, 10, 17, 24])["id"].tolist() == [3, 10, 17, 24]
        assert servings[0].counters.questions == 2  # one in each round
        assert len(retrieval.where(city="TGN")) > 10
        assert servings[0].counters.questions == 6


def test_a_lost_connection_is_made_anew(table, tmp_path):
    # A server that has to make room ends connections; users notice nothing.
    with (
        serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _),
        asker(addresses, pins) as retrieval,
    ):
        assert retrieval.get(3)
        retrieval._links[1].abort()
        assert retrieval.get(10)


def test_threads_may_share_a_client(table, tmp_path):
    with (
        serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _),
        asker(addresses, pins, time_limit=5.0) as retrieval,
        concurrent.futures.ThreadPoolExecutor(4) as threads,
    ):
        keys = [3 + 7 * n for n in range(24)]
        assert [row["id"] for row in threads.map(retrieval.get, keys)] == keys


def test_one_key_is_not_taken_for_several(table, tmp_path):
    with (
        serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _),
        asker(addresses, pins) as retrieval,
        pytest.raises(InputError, match="is one key"),
    ):
        retrieval.get_many("310")


def test_an_answer_that_is_too_long_spoils_no_later_one(table, tmp_path):
    spoil = [True]

    def answer(number, one):
        def said(peer, message):
            reply = one.answer(peer, message)
            return dataclasses.replace(reply, body=bytes(17 << 20)) if spoil else reply

        return said

    with (
        serving([table.folder.parent] * 2, tmp_path, answer) as (addresses, pins, _),
        asker(addresses, pins) as retrieval,
    ):
        with pytest.raises(RefusedError, match="17825792 bytes"):
            retrieval.get(3)
        spoil.clear()
        assert retrieval.get(3)


def test_strangers_do_not_see_others_look_up_in_the_counts(table, tmp_path):
    from discreet.protocols.retrieval.serving import Serving

    one = Serving({"people": table.folder.parent})
    asked = Message("ask", {"t": "people", "v": 1, "s": "whole-table", "r": 1})
    told = [one.answer("", Message("metrics")).fields]
    one.answer("", asked)
    told.append(one.answer("", Message("metrics")).fields)
    assert told[0] == told[1]
    one._counted -= 60
    assert one.answer("", Message("metrics")).fields["questions"] == 1


def test_a_build_that_another_one_overtook_says_so(tmp_path, monkeypatch):
    from discreet.protocols.retrieval import building

    built(tmp_path, rows=5)
    seen = []
    plain = building.versions
    # The first look finds nothing: the other build is not done yet.
    monkeypatch.setattr(
        building,
        "versions",
        lambda folder: [] if seen.append(1) or len(seen) == 1 else plain(folder),
    )
    with pytest.raises(InputError, match="another build published version 1"):
        built(tmp_path, rows=6)


def test_too_many_questions_are_refused(table, tmp_path):
    with (
        serving([table.folder.parent] * 2, tmp_path, rate=0.01) as (addresses, pins, servings),
        asker(addresses, pins) as retrieval,
    ):
        assert retrieval.get(3)
        for one in servings:
            one._limit._all.left = 0.0
        with pytest.raises(RefusedError, match="no more questions"):
            retrieval.get(3)


def test_an_update_judges_the_changed_rows_as_build_does(tmp_path):
    table = built(tmp_path, rows=20)
    changed = people(20).head(2).assign(name="new")
    confidential = {"id": "other", "name": "confidential", "city": "other", "pay": "other"}
    for rows in (changed, read(changed, roles=confidential)):
        with pytest.raises(RefusedError, match="name") as caught:
            table.update(rows, publisher=PUBLISHER)
        assert caught.value.code == "not-publishable"
    assert [path.name for path in table.folder.parent.glob("v*")] == ["v1"]
    other = dict.fromkeys(confidential, "other")
    assert table.update(read(changed, roles=other), publisher=PUBLISHER).statement.version == 2


def test_mistakes_of_the_publisher_are_named(tmp_path):
    frame = people(10)

    def make(data=frame, **options):
        options = {"key": "id", "publishable": True} | options
        return RetrievalTable.build(data, folder=tmp_path / "t", publisher=PUBLISHER, **options)

    with pytest.raises(InputError, match="more than once in column 'city'"):
        make(key="city")
    with pytest.raises(InputError, match="there is no column 'idd'"):
        make(key="idd")
    with pytest.raises(InputError, match="needs records of"):
        make(width=64)
    for wrong in (
        {"places": 0},
        {"places": -1},
        {"layout": "odd"},
        {"expires": -1.0},
        {"expires": float("nan")},
    ):
        with pytest.raises(InputError) as caught:
            make(**wrong)
        assert caught.value.code == f"retrieval-{next(iter(wrong))}"
    assert len(make(columns=["name", "name"]).statement.columns) == 2
    with pytest.raises(InputError, match="no value in some row"):
        make(frame.assign(id=[None, *range(9)]).astype({"id": "Int64"}))
    with pytest.raises(InputError, match="no rows"):
        make(frame.head(0))
    with pytest.raises(InputError, match="a look-up fetches 1"):
        make(secondary={"city": 1})
    with pytest.raises(RefusedError, match="pay: identifying, confidential"):
        make(
            read(frame, roles={"pay": "confidential"}, rest="other"),
            publishable=False,
        )
    make(
        read(frame, roles={"id": "other", "name": "other", "pay": "confidential"}),
        columns=["name"],
        publishable=False,
    )
    assert RetrievalTable.open(tmp_path / "t").statement.columns == (
        ("id", "integer"),
        ("name", "text"),
    )
    with pytest.raises(InputError, match="holds no version 7"):
        RetrievalTable.open(tmp_path / "t", 7)


def test_missing_values_and_other_kinds_come_back(tmp_path):
    import datetime
    import decimal

    import pyarrow as pa

    rows = pa.table(
        {
            "code": ["a", "ü", "x" * 70],
            "day": [datetime.date(2024, 2, 29), None, datetime.date(1, 1, 1)],
            "at": [datetime.datetime.fromisoformat("2024-01-01T12:30"), None, None],
            "flag": [True, None, False],
            "price": [decimal.Decimal("1.50"), None, decimal.Decimal(-7)],
            "x": [float("nan"), None, 1e300],
        }
    )
    table = RetrievalTable.build(
        rows,
        key="code",
        folder=tmp_path / "people",
        publisher=PUBLISHER,
        publishable=True,
        name="people",
    )
    with (
        serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _),
        asker(addresses, pins, library="pyarrow") as retrieval,
    ):
        first = retrieval.get("a")
        assert first["day"] == datetime.date(2024, 2, 29)
        assert first["price"] == decimal.Decimal("1.5")
        assert first["x"] is None  # as everywhere: not a number is missing
        assert set(retrieval.get("ü").values()) == {"ü", None}
        assert retrieval.get_many(["x" * 70, "a"]).num_rows == 2
        with pytest.raises(InputError, match="is not a key"):
            retrieval.get(5)


def test_negative_zero_is_zero(tmp_path):
    frame = pd.DataFrame({"id": [1, 2], "v": [-0.0, 1.0]})
    table = built(tmp_path, data=frame, secondary={"v": 2})
    with (
        serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _),
        asker(addresses, pins) as retrieval,
    ):
        for zero in (0, 0.0, -0.0, "-0.0", "0"):
            assert retrieval.where(v=zero)["id"].tolist() == [1]
        with pytest.raises(InputError, match="is not a key"):
            retrieval.where(v=float("nan"))


def test_every_key_is_found_in_whatever_form_it_was_written(tmp_path):
    import datetime
    import decimal

    import pyarrow as pa

    zone = datetime.timezone(datetime.timedelta(hours=1))
    at = datetime.datetime.fromisoformat("2020-01-01T12:30:00.000005")
    long = decimal.Decimal("12345678901234567890123456789012.345678")
    rows = pa.table(
        {
            "id": [2**53 + 1, 1729384756102938475],
            "text": ["e\u0301", "x"],
            "instant": pa.array([at.replace(tzinfo=zone), None], pa.timestamp("us", tz="+01:00")),
            "time": pa.array([at, None], pa.timestamp("ns")),
            "price": pa.array([long, None], pa.decimal128(38, 6)),
        }
    )
    columns = {"text": 2, "instant": 2, "time": 2, "price": 2}
    table = built(tmp_path, data=rows, secondary=columns)
    with (
        serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _),
        asker(addresses, pins, library="pyarrow") as retrieval,
    ):
        for key in (2**53 + 1, str(2**53 + 1), np.int64(2**53 + 1), decimal.Decimal(2**53 + 1)):
            assert retrieval.get(key)["id"] == 2**53 + 1
        assert retrieval.get("1729384756102938475")["text"] == "x"
        for wrong in (1.5, "1.5", "nan", "inf", "1e999999999", True, None):
            with pytest.raises(InputError, match="is not a key"):
                retrieval.get(wrong)
        forms = {
            "text": ["é", "e\u0301"],
            "instant": [
                at.replace(tzinfo=zone),
                pd.Timestamp(at, tz=zone),
                "2020-01-01T12:30:00.000005+01:00",
                "2020-01-01 11:30:00.000005+00:00",
            ],
            "time": [at, pd.Timestamp(at), "2020-01-01T12:30:00.000005"],
            "price": [long, str(long)],
        }
        for column, values in forms.items():
            for value in values:
                (found,) = retrieval.where(**{column: value}).to_pylist()
                assert (found["instant"], found["price"]) == (at.replace(tzinfo=zone), long)
        # A time without a zone is none of a column with zones, nor the other way round.
        for column, other in (("instant", "time"), ("time", "instant")):
            with pytest.raises(InputError, match="is not a key"):
                retrieval.where(**{column: forms[other][0]})


def test_nanoseconds_are_refused_where_they_would_be_lost(tmp_path):
    frame = pd.DataFrame({"id": [1], "at": [pd.Timestamp("2020-01-01 00:00:00.000000007")]})
    with pytest.raises(InputError, match="nanoseconds"):
        built(tmp_path, data=frame)


def test_keys_that_are_not_there_cannot_be_deleted(tmp_path):
    table = built(tmp_path, rows=20)
    with pytest.raises(InputError, match="no key 4 to delete"):
        table.update(deleted=[3, 4], publisher=PUBLISHER)
    second = table.update(deleted=[3], publisher=PUBLISHER)
    with pytest.raises(InputError, match="no key 3 to delete"):
        second.update(deleted=[3], publisher=PUBLISHER)


def test_one_row_is_a_table(tmp_path):
    table = built(tmp_path, rows=1)
    assert table.lookup("main", 3)[0] == "person 0"
    assert table.lookup("main", 4) is None


def test_the_order_of_rows_changes_nothing(tmp_path):
    one = RetrievalTable.build(
        people(100),
        key="id",
        folder=tmp_path / "a",
        publisher=PUBLISHER,
        publishable=True,
        name="people",
        secondary={"city": 60},
    )
    two = RetrievalTable.build(
        people(100).sample(frac=1, random_state=1),
        key="id",
        folder=tmp_path / "b",
        publisher=PUBLISHER,
        publishable=True,
        name="people",
        secondary={"city": 60},
    )
    assert one.statement.root == two.statement.root


def test_chor_counts_its_servers(table, tmp_path):
    with (
        serving([table.folder.parent] * 2, tmp_path) as (addresses, pins, _),
        asker(addresses, pins, scheme=Chor(servers=3)) as retrieval,
        pytest.raises(InputError, match="asks 3 servers"),
    ):
        retrieval.get(3)
    with pytest.raises(InputError, match="one server"):
        asker(["a:1", "b:1"], ["sha256:0", "sha256:0"])


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("postgres_engine", marks=pytest.mark.postgres),
        pytest.param("spark_engine", marks=pytest.mark.spark),
    ],
)
def test_engines_agree_byte_for_byte(tmp_path, request, other):
    import pyarrow as pa

    rows = pa.Table.from_pandas(people(200), preserve_index=False)
    tables = [
        RetrievalTable.build(
            read(rows, engine=engine, name="people"),
            key="id",
            secondary={"city": 90},
            folder=tmp_path / name,
            publisher=PUBLISHER,
            publishable=True,
        )
        for name, engine in (("duckdb", None), (other, request.getfixturevalue(other)))
    ]
    assert tables[0].statement.root == tables[1].statement.root
    for file in tables[0].statement.files:
        assert (tables[0].folder / file).read_bytes() == (tables[1].folder / file).read_bytes()
