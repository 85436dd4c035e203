"""Large and small letters: one table for every engine.

Engines disagree on letters whose counterpart is two letters (ß is SS or ẞ or stays), depends on
the language (İ) or on the place in a word (Σ at its end), and PostgreSQL asks the server's locale.
Here a letter becomes the one letter that Unicode gives for it, and stays where there is none. The
scripts are those that have been complete for decades, so that no version of Unicode changes them.
"""

from __future__ import annotations

import re

__all__ = ["LOWER", "UPPER", "is_unicode", "lowered"]

#: ASCII, Latin, Greek and Coptic, Cyrillic, Armenian, and Latin and Greek with further marks.
_SCRIPTS = (
    (0x41, 0x7A), (0xB5, 0x24F), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x586),
    (0x1E00, 0x1EFF), (0x1F00, 0x1FFF),
)  # fmt: skip


def _known(code: int) -> bool:
    return any(first <= code <= last for first, last in _SCRIPTS)


def _pairs(*, upper: bool) -> tuple[str, str]:
    letters, partners = [], []
    for first, last in _SCRIPTS:
        for letter in map(chr, range(first, last + 1)):
            partner = letter.upper() if upper else letter.lower()
            if partner != letter and len(partner) == 1 and _known(ord(partner)):
                letters.append(letter)
                partners.append(partner)
    return "".join(letters), "".join(partners)


#: Letters, and what each becomes.
UPPER = _pairs(upper=True)
LOWER = _pairs(upper=False)
_LOWERED = str.maketrans(*LOWER)
#: Codes that stand for halves of characters in UTF-16, and for nothing in a text.
_HALVES = re.compile("[\ud800-\udfff]")


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8; JSON can carry halves of characters, which cannot.

    >>> is_unicode("ß"), is_unicode(chr(0xD800))
    (True, False)
    """
    return text.isascii() or _HALVES.search(text) is None


def lowered(text: str) -> str:
    """Return a text in small letters.

    >>> lowered("STRASSE ÉTÉ ΩΜΈΓΑΣ")
    'strasse été ωμέγασ'
    >>> lowered("İ") == "İ"  # two letters in Unicode: it stays
    True
    """
    return text.translate(_LOWERED)
