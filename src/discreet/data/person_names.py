"""Texts that look like names of people: "Dr. Miller", "Anna de Vries", "Smith, John"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from discreet.data.names import meaning

__all__ = ["look_like_names", "named_people"]

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


#: What a column's name says that people's names are not: "city" holds places, "religion" faiths.
_OTHER_THINGS = ("quasi", "confidential", "ordinal", "group")


def named_people(column: str, texts: Iterable[str]) -> str | None:
    """Return in words that the texts of a column are names of people, if they look like it.

    The column's name is believed: "city" holds places, and surnames alone are enough in "surgeon".

    >>> named_people("by", ["Ana Sanz", "Li Wei"]), named_people("surgeon", ["Li", "May", "Roy"])
    ('look like names of people', 'look like names of people')
    >>> named_people("city", ["New York", "San Jose"]), named_people("ward", ["Ward A", "Ward B"])
    (None, None)
    """
    of_people = any(meaning(column, kind) for kind in ("staff", "called", "person"))
    if not of_people and any(meaning(column, kind) for kind in _OTHER_THINGS):
        return None
    different = {text.strip() for text in texts if text.strip()}
    if look_like_names(different) or (of_people and _are_surnames(different)):
        return "look like names of people"
    return None


def look_like_names(texts: Iterable[str]) -> bool:
    """Whether most of the different texts of a column look like names of people.

    Names of places and trades look alike ("New York"): it is a reason to ask, not to know.

    >>> look_like_names(["Dr. Miller", "Dr. Sanz", "Prof. Li"])
    True
    >>> look_like_names(["north", "south"]), look_like_names(["I25.1", "J18"])
    (False, False)
    """
    different = _written({text.strip() for text in texts if text.strip()})
    if len(different) < 2 or sum(map(_is_name, different)) < _MOST * len(different):
        return False
    # A word that all have says what they are ("Ward North", "Ward South"); people differ.
    return not set.intersection(*({*_own(text)} for text in different))


#: "Dr.Berger" and "A.Berger": what is written together.
_GLUED = re.compile(rf"(?i)\b({'|'.join(sorted(_TITLES))}|[^\W\d_])\.(?=[^\W\d_]{{2}})")
#: "berger, anna" and "anna.berger", in small letters.
_SMALL = re.compile(r"([^\W\d_-]{2,}(?:-[^\W\d_]{2,})?)(?:, ?|\.)([^\W\d_-]{2,}(?:-[^\W\d_]{2,})?)")


def _written(texts: set[str]) -> set[str]:
    """Return texts as names are mostly written: words apart, with capital letters."""
    apart = {_GLUED.sub(r"\1. ", text) for text in texts}
    small = {text: found for text in apart if (found := _SMALL.fullmatch(text)) and text.islower()}
    # In lists ("cough, fever", "fever, rash") a word stands in either place; in names it does not.
    if {found[1] for found in small.values()} & {found[2] for found in small.values()}:
        return apart
    return {
        f"{small[text][1]} {small[text][2]}".title() if text in small else text for text in apart
    }


def _are_surnames(different: set[str]) -> bool:
    """Whether texts are single words with a capital letter, more than yes, no and unknown."""
    like = [text for text in different if text.isalpha() and text.istitle()]
    return len(like) > 2 and len(like) >= _MOST * len(different)


def _own(text: str) -> list[str]:
    """Return the words of a text that are no titles; initials keep their dot."""
    words = text.replace(",", " ").split()
    return [word for word in words if word.strip(".").lower() not in _TITLES | {""}]


def _is_name(text: str) -> bool:
    own = _own(text)
    titled = len(own) < len(text.replace(",", " ").split())
    capital = [word for word in own if word.strip(".").lower() not in _PARTICLES]
    if not capital or len(own) > 5 or not all(map(_is_capital, capital)):
        return False
    # A single letter is an initial only with its dot: "Type A" is nobody.
    return titled or sum(len(word) > 1 for word in capital) >= 2


def _is_capital(word: str) -> bool:
    letters = word.replace("-", "").replace("'", "").replace("’", "").replace(".", "")
    return letters.isalpha() and word[0].isupper()
