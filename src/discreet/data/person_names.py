"""Texts that look like names of people: "Dr. Miller", "Anna de Vries", "Smith, John"."""

from __future__ import annotations

import re
import unicodedata
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
#: With one of these begin the names of most people in China, Taiwan, Korea and Japan.
_FAMILIES = frozenset(
    "王李张張刘劉陈陳杨楊黄黃赵趙吴吳周徐孙孫马馬朱胡郭何林高罗羅郑鄭梁谢謝宋唐许許韩韓邓鄧冯馮曹彭曾肖萧蕭田董潘袁蔡蒋蔣余"
    "于杜叶葉程魏苏蘇吕呂丁任卢盧姚沈钟鍾姜崔谭譚陆陸范汪廖石金韦韋贾賈夏付傅方邹鄒熊白孟秦邱侯江尹薛阎段雷龙龍黎史陶贺賀毛郝顾"
    "顧龚龔邵万萬覃武钱錢戴严嚴莫孔向常佐鈴田渡伊中山小加吉斎松井木清森池橋阿石近後藤村長岡岩原三今"
    "김이박최정강조윤장임한오서신권황안송류유전홍고문양손배백허남심노하곽성차주우구민진나지엄채원천방공현함변염여추도소석선설마길"
)
#: Scripts that write names without spaces between them, and without capital letters.
_UNSPACED = ("CJK", "HANGUL")
#: Scripts in which names begin with a capital letter.
_CASED = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN")


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
    # Kinds of things are written in one script; whom a column names, in that of each.
    mixed = len({_script(text) for text in different}) > 1
    like = sum(_is_name(text) or _is_name_elsewhere(text, mixed=mixed) for text in different)
    if len(different) < 2 or like < _MOST * len(different):
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
    scripts = {_script(text) for text in different}
    like = [
        text
        for text in different
        if (text.isalpha() and text.istitle())
        or (_is_uncased(text) and (len(scripts) > 1 or _is_name_elsewhere(text, mixed=False)))
    ]
    return len(like) > 2 and len(like) >= _MOST * len(different)


def _is_uncased(text: str) -> bool:
    return _are_letters(text) and _script(text) not in _CASED


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


def _is_name_elsewhere(text: str, *, mixed: bool) -> bool:
    """Whether a text is a name in a script without capital letters.

    Two to four words are one only beside names in other scripts: "ضغط الدم" is an illness.
    """
    script = _script(text)
    if script in _UNSPACED:
        own = text.replace("·", "").replace(" ", "")
        return 2 <= len(own) <= 4 and (own[0] in _FAMILIES or (mixed and own.isalpha()))
    if not mixed or script in _CASED:
        return False
    parts = text.replace("-", " ").replace(".", " ").split()
    return 2 <= len(parts) <= 4 and all(map(_are_letters, parts))


def _are_letters(word: str) -> bool:
    """Whether a word is of letters and the marks that some scripts put on them."""
    return all(unicodedata.category(letter)[0] in "LM" for letter in word)


def _script(text: str) -> str:
    """Return the script of the first letter of a text, by the first word of its Unicode name."""
    letter = next((letter for letter in text if letter.isalpha()), " ")
    script = unicodedata.name(letter, "").partition(" ")[0]
    return "CJK" if script in ("HIRAGANA", "KATAKANA") else script


def _is_capital(word: str) -> bool:
    letters = word.replace("-", "").replace("'", "").replace("’", "").replace(".", "")
    return letters.isalpha() and word[0].isupper()
