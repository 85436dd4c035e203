"""What attacks by a server that lies have in common: answers that it changes, and who believes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.errors import RefusedError

__all__ = ["NOTICED", "Change", "LookUp", "believed"]

#: What a server makes of an answer before it sends it.
Change = Callable[[bytes], bytes]
#: A user looks a key up through a server that changes its answers. Any: the value that is believed.
LookUp = Callable[[Change], Any]

#: What `believed` returns where the user refused the answer.
NOTICED = object()


def believed(look_up: LookUp, change: Change) -> Any:
    """Return what the user believes after a lie, or `NOTICED`. Any: a value of the table.

    >>> believed(lambda change: change(b"150"), lambda body: b"9" + body[1:])
    b'950'
    """
    try:
        return look_up(change)
    except RefusedError:
        return NOTICED
