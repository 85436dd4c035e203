"""Attacks on disguised searches: what they reach against each disguise is what its page says."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.protocols.search._base import Vocabulary
from discreet.protocols.search.goopir import Goopir
from discreet.protocols.search.peers import Peers
from discreet.protocols.search.track_me_not import TrackMeNot
from discreet.randomness import Randomness


def frequencies(words):
    return dict(zip(words.terms, words.weights.tolist(), strict=True))


def test_frequencies_name_no_term_of_a_bucket_more_often_than_the_cap():
    words = Vocabulary.zipf(20_000)
    buckets = Goopir(cap=0.2).prepare(words)
    truths = [words.terms[place] for place in words.draw(4000, Randomness.seeded(1))]
    found = dc.Prior(cap=0.2).run(
        [buckets.disguise(term) for term in truths], frequencies(words), truths
    )
    assert not found.succeeded
    # Three standard errors of 4,000 searches.
    assert found.upper <= 0.17 + 3 * (0.17 * 0.83 / 4000) ** 0.5


def phrases(size=4000, words=1500):
    """Return pairs of words and how often people search for each pair."""
    drawn = np.random.default_rng(2)
    weights = 1.0 / np.arange(1, words + 1)
    chosen = drawn.choice(words, (size, 2), p=weights / weights.sum())
    pairs = dict.fromkeys((f"term{a}", f"term{b}") for a, b in chosen)
    return {pair: 1.0 / (n + 1) for n, pair in enumerate(pairs)}


def test_words_that_fit_together_are_named_unless_phrases_are_disguised_whole():
    together = phrases()
    whole = Vocabulary.of({" ".join(pair): weight for pair, weight in together.items()})
    single: dict[str, float] = {}
    for pair, weight in together.items():
        for word in pair:
            single[word] = single.get(word, 0.0) + weight
    words = Vocabulary.of(single)
    by_word, by_phrase = (Goopir(cap=0.2).prepare(one) for one in (words, whole))
    truths = [tuple(whole.terms[place].split()) for place in whole.draw(600, Randomness.seeded(3))]
    attack = dc.Coherence(cap=0.2)
    loose = attack.run(
        [[by_word.disguise(word) for word in truth] for truth in truths], together, truths
    )
    known = {(" ".join(pair),): weight for pair, weight in together.items()}
    names = [(" ".join(truth),) for truth in truths]
    kept = attack.run([[by_phrase.disguise(*name)] for name in names], known, names)
    firsts = [truth[0] for truth in truths]
    one_word = dc.Prior().run([by_word.disguise(w) for w in firsts], frequencies(words), firsts)
    assert loose.succeeded
    assert not kept.succeeded
    assert kept.upper <= 1.5 * one_word.upper


@pytest.mark.parametrize("bursts", [False, True])
def test_made_searches_are_told_from_real_ones_as_the_page_says(bursts):
    features, is_real, _ = TrackMeNot(bursts=bursts)._history(
        Vocabulary.zipf(20_000), Randomness.seeded(4)
    )
    found = dc.RealOrFake().run(features, is_real)
    assert found.succeeded
    assert found.upper > 0.9
    # Searches whose kind was drawn by lot are not told apart: the classifier is honest.
    lot = np.random.default_rng(5).permutation(is_real)
    assert abs(dc.RealOrFake().run(features, lot).upper - 0.5) < 0.05


@pytest.mark.parametrize("order", [2, 3, 5])
def test_linked_searches_name_their_author_unless_a_topic_keeps_to_one_space(order):
    peers, drawn = Peers(order=order), np.random.default_rng(6)
    named = {"by lot": 0, "one space": 0}
    for _ in range(100):
        author = int(drawn.integers(peers.users))
        mine = [space for space in peers.spaces if author in space]
        # One colluding reader in each of the author's spaces: all that is read is put together.
        readers = {next(user for user in space if user != author) for space in mine}
        spaces = [mine[n] for n in drawn.integers(0, len(mine), 6)]
        named["by lot"] += dc.LinkedSpaces().run(spaces, readers, author).succeeded
        # With one other honest user in the space, the author is one of two or more.
        named["one space"] += dc.LinkedSpaces().run(spaces[:1] * 6, readers, author).succeeded
    assert named["by lot"] >= 90
    # Of order + 1 users of a space one colludes.
    assert named["one space"] == 0
