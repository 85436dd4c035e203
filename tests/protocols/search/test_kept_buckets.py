"""Buckets outlive their vocabulary: a changed one names nobody's repeated search."""

import json

import numpy as np
import pytest

from discreet.attacks.intersection import Intersection
from discreet.errors import InputError
from discreet.protocols.search import Vocabulary
from discreet.protocols.search.goopir import Goopir
from discreet.protocols.search.kept_buckets import KeptBuckets

GOOPIR = Goopir(cap=0.2)
COUNTS = {f"term{n}": 1000.0 / n for n in range(1, 5001)}


def recounted(seed=1):
    drawn = np.random.default_rng(seed).uniform(0.9, 1.1, len(COUNTS))
    return {term: count * one for (term, count), one in zip(COUNTS.items(), drawn, strict=True)}


def named(before, after):
    """Return how many terms two searches name, one before and one after the change."""
    return sum(
        Intersection()
        .run([set(before.disguise(term)), set(after.disguise(term))], truth=term)
        .succeeded
        for term in COUNTS
    )


def test_buckets_that_are_not_kept_are_given_away_by_a_new_count():
    before, after = (GOOPIR.prepare(Vocabulary.of(counts)) for counts in (COUNTS, recounted()))
    assert named(before, after) > 0.5 * len(COUNTS)


@pytest.mark.parametrize("case", ["recounted", "one more", "many more", "fewer"])
def test_kept_buckets_only_grow(tmp_path, case):
    changed = {
        "recounted": recounted(),
        "one more": {**COUNTS, "more": 1.5},
        "many more": {**recounted(), **{f"more{n}": 1.0 + n for n in range(50)}},
        "fewer": {term: count for term, count in COUNTS.items() if not term.endswith("7")},
    }[case]
    file = tmp_path / "words.csv.buckets"
    before = GOOPIR.resume(Vocabulary.of(COUNTS), file)
    after = GOOPIR.resume(Vocabulary.of(changed), file)
    assert before.members == GOOPIR.prepare(Vocabulary.of(COUNTS)).members
    assert all(set(before.disguise(term)) <= set(after.disguise(term)) for term in COUNTS)
    assert named(before, after) == 0
    for number, bucket in enumerate(after.members):
        inside = after.inside(number)
        assert len(bucket) >= GOOPIR.k
        assert inside.max() <= GOOPIR.cap * inside.sum() * (1 + 1e-9)
    assert {term for bucket in KeptBuckets(file).read() for term in bucket} == {*COUNTS, *changed}


def test_a_stricter_cap_joins_buckets(tmp_path):
    file, words = tmp_path / "buckets", Vocabulary.of(COUNTS)
    before = GOOPIR.resume(words, file)
    after = Goopir(cap=0.15, k=12).resume(words, file)
    assert all(set(before.disguise(term)) <= set(after.disguise(term)) for term in COUNTS)
    assert all(
        len(bucket) >= 12 and after.inside(number).max() <= 0.15001 * after.inside(number).sum()
        for number, bucket in enumerate(after.members)
    )


@pytest.mark.parametrize("content", ["", "{}", "[1]", "[[1]]", '[["a"], ["a"]]'])
def test_a_spoiled_file_is_named_and_not_written_over(tmp_path, content):
    file = tmp_path / "buckets"
    file.write_text(content)
    with pytest.raises(InputError) as caught:
        GOOPIR.resume(Vocabulary.of(COUNTS), file)
    assert caught.value.code == "kept-buckets"
    assert file.read_text() == content


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "no-folder").write_text("")
    with pytest.raises(InputError):
        GOOPIR.resume(Vocabulary.of(COUNTS), tmp_path / "no-folder" / "buckets")


def test_a_word_that_is_added_as_advised_changes_no_search(tmp_path):
    from typer.testing import CliRunner

    from discreet.app.cli.main import build

    words = tmp_path / "words.csv"

    def written(counts):
        words.write_text("term,count\n" + "".join(f"{t},{c}\n" for t, c in counts.items()))
        called = ["search", "disguise", "term500", "--vocabulary", str(words), "--json"]
        done = CliRunner().invoke(build(), called)
        return json.loads(done.stdout)["query"]

    before = written(COUNTS)
    assert written({"more": 900.5, **recounted()}) == before


def test_a_file_may_be_named_by_a_text(tmp_path):
    words = Vocabulary.of({f"w{n}": 1.0 for n in range(40)})
    made = Goopir(k=4).resume(words, str(tmp_path / "kept"))
    assert made.members == Goopir(k=4).resume(words, tmp_path / "kept").members
