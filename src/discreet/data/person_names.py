"""Texts that look like names of people: "Dr. Miller", "Anna de Vries", "Smith, John"."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["look_like_names"]

_TITLES = frozenset(
    [
        "dr",
        "dra",
        "dres",
        "prof",
        "mr",
        "mrs",
        "ms",
        "miss",
        "sir",
        "herr",
        "frau",
        "sr",
        "sra",
        "srta",
        "mme",
        "mlle",
        "monsieur",
        "madame",
        "don",
        "doña",
        "dott",
        "sig",
        "dhr",
        "mevr",
        "dipl",
        "med",
    ]
)
#: Words that stand within names in small letters.
_PARTICLES = frozenset(
    [
        "von",
        "van",
        "der",
        "den",
        "de",
        "del",
        "della",
        "di",
        "da",
        "dos",
        "das",
        "do",
        "la",
        "le",
        "les",
        "el",
        "al",
        "bin",
        "ibn",
        "y",
        "e",
        "i",
        "zu",
        "zur",
        "ter",
        "ten",
    ]
)
#: A column holds names where so many of its different texts look like one.
_MOST = 0.8


def look_like_names(texts: Sequence[str]) -> bool:
    """Whether most of the different texts of a column look like names of people.

    Names of places and trades look alike ("New York"): it is a reason to ask, not to know.

    >>> look_like_names(["Dr. Miller", "Dr. Sanz", "Prof. Li"])
    True
    >>> look_like_names(["north", "south"]), look_like_names(["I25.1", "J18"])
    (False, False)
    """
    different = {text.strip() for text in texts if text.strip()}
    return len(different) > 1 and sum(map(_is_name, different)) >= _MOST * len(different)


def _is_name(text: str) -> bool:
    words = [word.strip(".") for word in text.replace(",", " ").split()]
    words = [word for word in words if word]
    own = [word for word in words if word.lower() not in _TITLES]
    capital = [word for word in own if word.lower() not in _PARTICLES]
    if not capital or len(words) > 6 or not all(map(_is_capital, capital)):
        return False
    return len(own) < len(words) or len(capital) >= 2


def _is_capital(word: str) -> bool:
    letters = word.replace("-", "").replace("'", "").replace("’", "").replace(".", "")
    return letters.isalpha() and word[0].isupper()
