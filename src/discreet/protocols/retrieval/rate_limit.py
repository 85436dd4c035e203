"""How many questions a server answers: over all clients, and for each, so that one cannot use up the rest."""

from __future__ import annotations

import dataclasses
import ipaddress
import threading
import time
from collections.abc import Callable

from discreet.errors import RefusedError

__all__ = ["RateLimit"]

#: Clients that are told apart at once; more share one allowance.
_MOST_CLIENTS = 4096
#: An IPv6 network of this length belongs to one customer, who has all of its addresses.
_NETWORK = 64


@dataclasses.dataclass
class _Allowance:
    """Questions that may still be asked, filled up at a rate."""

    left: float
    filled: float

    def fill(self, now: float, rate: float, burst: float) -> float:
        self.left = min(burst, self.left + (now - self.filled) * rate)
        self.filled = now
        return self.left


class RateLimit:
    """Refuses more questions than a rate allows, over all clients and for each one.

    Parameters
    ----------
    rate, burst
        Questions per second over all clients, and how many may come at once.
    each, each_burst
        The same for one client.
    clock
        Seconds.

    Examples
    --------
    >>> limit = RateLimit(rate=10, burst=20, each=5, each_burst=10, clock=lambda: 0.0)
    >>> limit.pay("10.0.0.1", 10), limit.pay("10.0.0.2", 1)
    (None, None)
    >>> limit.pay("10.0.0.1", 1)
    Traceback (most recent call last):
    discreet.errors.RefusedError: one client is answered 5 questions per second ...
    """

    def __init__(
        self,
        *,
        rate: float,
        burst: float,
        each: float,
        each_burst: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate, self._burst = rate, burst
        self._each, self._each_burst = each, each_burst
        self._clock = clock
        self._lock = threading.Lock()
        self._all = _Allowance(burst, clock())
        self._clients: dict[str, _Allowance] = {}
        self._others = _Allowance(each_burst, clock())

    def pay(self, client: str, many: int) -> None:
        """Take so many questions from what a client and all clients may still ask, or refuse them."""
        with self._lock:
            now = self._clock()
            own = self._allowance(_network(client), now)
            if many > own.fill(now, self._each, self._each_burst):
                raise RefusedError(
                    f"one client is answered {self._each:g} questions per second, and this one asks more",
                    code="rate-limit",
                    hint="wait a second and ask again",
                )
            # Refused questions cost nobody anything: else a flood would still use up what is for all.
            if many > self._all.fill(now, self._rate, self._burst):
                raise RefusedError(
                    "the server answers no more questions at the moment",
                    code="rate-limit",
                    hint="wait a second and ask again",
                )
            own.left -= many
            self._all.left -= many

    def _allowance(self, client: str, now: float) -> _Allowance:
        """Return what a client may ask; who comes when the table is full shares with others who did."""
        if client not in self._clients:
            if len(self._clients) >= _MOST_CLIENTS:
                self._forget(now)
            if len(self._clients) >= _MOST_CLIENTS:
                return self._others
            self._clients[client] = _Allowance(self._each_burst, now)
        return self._clients[client]

    def _forget(self, now: float) -> None:
        """Forget clients whose allowance is whole again: nothing is remembered of them anyway."""
        self._clients = {
            client: held
            for client, held in self._clients.items()
            if held.fill(now, self._each, self._each_burst) < self._each_burst
        }


def _network(client: str) -> str:
    """Return by what a client is told apart: its name or IPv4 address, or its IPv6 network.

    >>> _network("10.0.0.1"), _network("2001:db8::7"), _network("ana")
    ('10.0.0.1', '2001:db8::/64', 'ana')
    """
    try:
        address = ipaddress.ip_address(client.partition("%")[0])
    except ValueError:
        return client
    if not isinstance(address, ipaddress.IPv6Address):
        return client
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _NETWORK), strict=False))
