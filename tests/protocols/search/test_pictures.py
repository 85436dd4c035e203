"""Pages of what is hidden and what it costs."""

from discreet.protocols.retrieval.evaluation import retrieval_risk
from discreet.protocols.search import Vocabulary, search_risk
from discreet.protocols.search.pictures import search_page
from discreet.randomness import Randomness
from tests.protocols.retrieval.served import built


def test_disguises_are_drawn():
    words = Vocabulary.zipf(300)
    page = search_page(search_risk(words, rng=Randomness.seeded(1)), words).html()
    assert page.count("<svg") == 3


def test_schemes_are_drawn(tmp_path):
    table = built(tmp_path, rows=30, schemes=("dpf", "simple-pir"))
    page = retrieval_risk(table, views=40).page().html()
    assert page.count("<svg") == 3
    assert "simple-pir" in page
