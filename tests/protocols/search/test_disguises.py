"""Disguises hide as much as their papers say, and no more than they are measured to."""

import itertools

import numpy as np
import pytest

from discreet.attacks.absence import Absence
from discreet.attacks.intersection import Intersection
from discreet.attacks.predecessor import Predecessor
from discreet.errors import InputError
from discreet.protocols.search._base import Vocabulary, folded
from discreet.protocols.search.crowds import Crowds
from discreet.protocols.search.declaration import read_vocabulary
from discreet.protocols.search.goopir import Goopir
from discreet.protocols.search.peers import Peers, projective_plane
from discreet.protocols.search.track_me_not import TrackMeNot
from discreet.randomness import Randomness

WORDS = Vocabulary.zipf(20_000)


def test_buckets_keep_the_cap_and_the_attacker_is_rarely_right():
    risk = Goopir(cap=0.2).evaluate(WORDS, rng=Randomness.seeded(1))
    assert risk.right <= 0.17
    assert risk.worst <= 0.2
    assert risk.repeated == risk.right
    assert 40 <= risk.overhead <= 50


def test_the_attacker_is_as_often_right_as_is_computed():
    buckets = Goopir(cap=0.2).prepare(WORDS)
    drawn = WORDS.draw(20_000, Randomness.seeded(2))
    guesses = [buckets.members[buckets.numbers[place]][0] for place in drawn]
    right = np.mean([guess == place for guess, place in zip(guesses, drawn, strict=True)])
    assert abs(right - Goopir(cap=0.2).evaluate(WORDS, rng=Randomness.seeded(1)).right) < 0.01


def test_every_term_is_in_one_bucket_and_repeating_gains_nothing():
    buckets = Goopir(cap=0.2).prepare(Vocabulary.zipf(500))
    assert sorted(itertools.chain.from_iterable(buckets.members)) == list(range(500))
    for term in ("term0", "term77", "term499"):
        searches = [set(buckets.disguise(term)) for _ in range(3)]
        assert term in searches[0]
        assert not Intersection().run(searches, truth=term).succeeded


def test_spellings_that_an_engine_cannot_tell_apart_are_no_decoys():
    words = Vocabulary.of(
        {
            "HIV": 5,
            "hiv": 5,
            "lupus": 9,
            "Crème": 3,
            "creme": 3,
            "hiv-test": 2,
            "hiv test": 2,
            "gout": 5,
        }
    )
    buckets = Goopir(cap=0.6, k=2).prepare(words)
    for number, members in enumerate(buckets.members):
        forms = {folded(words.terms[place]) for place in members}
        assert len(forms) >= 2
        assert buckets.inside(number).max() <= 0.6 * buckets.inside(number).sum()
    # All spellings are sent together, and any of them asks for all.
    assert {"HIV", "hiv"} <= set(buckets.disguise("hiv"))
    assert buckets.disguise(" Hiv ") == buckets.disguise("HIV")
    with pytest.raises(InputError, match="no bucket hides it"):
        Goopir(cap=0.5, k=2).prepare(Vocabulary.of({"HIV": 3, "hiv": 3, "gout": 4}))


def test_vocabularies_add_up_what_is_listed_twice_and_name_what_is_wrong(tmp_path):
    file = tmp_path / "words.csv"
    file.write_text("term,count\nflu,3\ngout,5\nflu,4\n")
    words = read_vocabulary(file)
    assert words.terms == ("flu", "gout")
    assert words.weights[0] == 7 / 12
    for line in ("qq,abc", ",4"):
        file.write_text(f"term,count\nflu,3\n{line}\n")
        with pytest.raises(InputError, match="record 2") as caught:
            read_vocabulary(file)
        assert caught.value.code == "vocabulary-counts"


def test_fresh_decoys_are_broken_by_two_repeats():
    drawn = np.random.default_rng(3)
    hits = 0
    for _ in range(300):
        searches = [{"0", *map(str, drawn.integers(1, 20_000, 7))} for _ in range(2)]
        hits += Intersection().run(searches, truth="0").succeeded
    assert hits / 300 >= 0.9


def test_mistakes_are_named():
    with pytest.raises(InputError, match="no bucket hides it"):
        Goopir(cap=0.2).prepare(Vocabulary.of({"a": 9, "b": 1}))
    with pytest.raises(InputError, match="not in the vocabulary"):
        Goopir().prepare(Vocabulary.zipf(100)).disguise("gout")
    with pytest.raises(InputError, match="above zero"):
        Vocabulary.of({"a": 0})
    with pytest.raises(InputError, match="collude"):
        Crowds(members=4, colluding=3)


@pytest.mark.parametrize("members", [8, 12, 20])
def test_crowds_follow_the_formula(members):
    crowd = Crowds(members=members, colluding=3)
    risk = crowd.evaluate(WORDS, rng=Randomness.seeded(4))
    assert abs(risk.right - crowd.posterior) < 0.02
    assert crowd.is_probably_innocent == (members >= 0.75 / 0.25 * 4)


def test_paths_formed_again_name_the_author():
    crowd, rng = Crowds(members=12, colluding=2), Randomness.seeded(5)
    seen = [one for one in (crowd.seen(crowd.path(3, rng)) for _ in range(1500)) if one is not None]
    assert Predecessor().run(seen, members=12, truth=3).succeeded


def test_the_predecessor_attack_grows_with_the_paths_that_are_formed():
    crowd, rng = Crowds(members=12, colluding=3), Randomness.seeded(8)
    curve = []
    for paths in (1, 10, 100):
        hits = 0
        for trial in range(60):
            author = trial % 9
            seen = [crowd.seen(crowd.path(author, rng)) for _ in range(paths)]
            known = [one for one in seen if one is not None]
            hits += bool(known) and Predecessor().run(known, members=12, truth=author).succeeded
        curve.append(hits / 60)
    # Of the paths that are formed once, about half pass a colluder, who is right in half of them.
    assert 0.1 < curve[0] < 0.45
    assert curve[0] < curve[1] < curve[2]
    assert curve[2] > 0.95


@pytest.mark.parametrize("order", [2, 3, 5, 7])
def test_any_two_users_share_one_space(order):
    spaces = projective_plane(order)
    users = order**2 + order + 1
    assert len(spaces) == users
    for one, two in itertools.combinations(range(users), 2):
        assert sum(one in space and two in space for space in spaces) == 1


@pytest.mark.parametrize("order", [2, 3])
def test_absence_names_whoever_never_submits_and_nobody_else(order):
    rng = Randomness.seeded(6)
    trials = 200
    naive, shipped = Peers(order=order, submits_own=False), Peers(order=order)
    users = naive.users
    hits = [
        sum(
            Absence().run(peers.submitters(n % users, 300, rng), users, n % users).succeeded
            for n in range(trials)
        )
        / trials
        for peers in (naive, shipped)
    ]
    assert hits[0] >= 0.95
    chance = 1 / users
    assert hits[1] <= chance + 3 * (chance * (1 - chance) / trials) ** 0.5


def test_made_searches_are_told_from_real_ones():
    for bursts in (False, True):
        risk = TrackMeNot(bursts=bursts).evaluate(WORDS, rng=Randomness.seeded(7))
        assert risk.auc > 0.9
