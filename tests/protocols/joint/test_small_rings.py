"""On small rings every value of every mask is tried: a view has one distribution whatever the inputs.

Reducing modulo 4 commutes with sums and products, so the code itself, given masks 0 to 3 and looked at
modulo 4, is the protocol over the ring of four elements; bits are looked at modulo 2. All values of all
masks stand side by side in one array. A view is what a party holds and what arrived, and may depend on
the inputs only through what the party is to learn: what is simulated from that alone has then exactly
the same distribution.
"""

from __future__ import annotations

import dataclasses
import itertools
import threading

import numpy as np
import pytest

import discreet as dc
from discreet.protocols.arithmetic.node import Node
from discreet.protocols.arithmetic.rehearsal import rehearse
from discreet.protocols.arithmetic.shares import BitShares, Shares
from discreet.protocols.fragments.products import ControlledProduct
from discreet.protocols.joint.methods import _aggregation, matrix_product
from discreet.protocols.joint.methods.matrix_product import product_in_parts
from discreet.protocols.joint.protocol import Outcome
from discreet.protocols.joint.rehearsal import rehearse_protocol


def digits(count, base):
    """Return all tuples of so many digits, one row for each place."""
    each = np.arange(base**count)
    return [(each // base**place % base).astype(np.uint64) for place in range(count)]


def distributions(columns, base):
    """Return how often each view occurs, for each given."""
    given, seen = columns
    views = {}
    keys = np.stack([np.asarray(one) % np.uint64(base) for one in seen], axis=1)
    of = np.stack([np.asarray(one) % np.uint64(base) for one in given], axis=1)
    for case in np.unique(of, axis=0):
        found, times = np.unique(keys[(of == case).all(axis=1)], axis=0, return_counts=True)
        views[tuple(case.tolist())] = (found.tolist(), times.tolist())
    return views


def require_same(views, told=lambda case: ()):
    """See that the view has one distribution for all inputs that tell the party the same."""
    for one, other in itertools.combinations(views, 2):
        if told(one) == told(other):
            assert views[one] == views[other], (one, other)


class Listed(Node):
    """A node whose masks are listed instead of drawn."""

    streams = ()

    def _mask(self, size):
        own, after = self.streams[self.index], self.streams[(self.index + 1) % 3]
        return own[:size], after[:size]


def shared(secret, first, second, kind, node, **more):
    parts = (
        first,
        second,
        secret ^ first ^ second if kind is BitShares else secret - first - second,
    )
    return kind(parts[node], parts[(node + 1) % 3], **more)


def gate(operation, kind, base, monkeypatch, *, naive=False):
    """Return for each node its view of one product of two shared numbers."""
    x, y, a, b, c, d, *streams = digits(9, base)
    if naive:
        streams = [np.zeros_like(x)] * 3
    monkeypatch.setattr("discreet.protocols.arithmetic.node._BLOCK", 1 << 22)
    monkeypatch.setattr(Listed, "streams", streams)
    monkeypatch.setattr("discreet.protocols.arithmetic.rehearsal.Node", Listed)
    more = {"size": x.size} if kind is BitShares else {}
    held = [(shared(x, a, b, kind, i, **more), shared(y, c, d, kind, i, **more)) for i in range(3)]
    found, rings = rehearse(lambda node: operation(node, *held[node.index]))
    whole = [found[0].own, found[0].next, found[1].next]
    right = (
        whole[0] ^ whole[1] ^ whole[2] ^ (x & y)
        if kind is BitShares
        else sum(whole[1:], whole[0]) - x * y
    )
    assert not (right % np.uint64(base)).any()
    for i in range(3):
        body = np.frombuffer(dict(rings[i].view)["product" if kind is Shares else "and"], "<u8")
        own, other = held[i]
        seen = (own.own, own.next, other.own, other.next, streams[i], streams[(i + 1) % 3], body)
        yield distributions(((x, y), seen), base)


@pytest.mark.parametrize(
    ("operation", "kind"), [(Node.multiply, Shares), (Node.both, BitShares)], ids=["ring", "bits"]
)
def test_a_node_sees_the_same_of_every_product(operation, kind, monkeypatch):
    # Sums, comparisons, tables, regressions and clusters on shares consist of these.
    for views in gate(operation, kind, 2, monkeypatch):
        assert len(views) == 4
        require_same(views)
    control = list(gate(operation, kind, 2, monkeypatch, naive=True))
    with pytest.raises(AssertionError):  # the same messages without masks
        require_same(control[0])


def test_a_node_sees_the_same_of_every_number_that_is_shared(monkeypatch):
    from discreet.protocols.arithmetic import split

    secret, first, second = digits(3, 4)
    drawn = iter([first, second])

    class Drawn:
        def words(self, size):
            found = next(drawn)
            assert found.size == size
            return found

    parts = split(secret, rng=Drawn())
    for part in parts:
        views = distributions(((secret,), (part.own, part.next)), 4)
        assert len(views) == 4
        require_same(views)


@dataclasses.dataclass(frozen=True)
class Small(dc.MatrixProduct):
    """The product of whole numbers of one record, not scaled by bounds."""

    def play(self, seat):
        mine = None if seat.records is None else seat.records.astype(np.int64)
        part = product_in_parts(seat, *seat.cast.owners, mine, 1)
        return self.added(seat, part, 1, 0)


@dataclasses.dataclass(frozen=True)
class SmallControlled(Small):
    """The same, opened to the controller."""

    def added(self, seat, part, rows, bits):
        return ControlledProduct().added(seat, part, rows, bits)


@pytest.mark.parametrize("protocol", [Small(), SmallControlled()], ids=["owners", "clouds"])
@pytest.mark.parametrize("naive", [False, True])
def test_owners_see_the_same_of_every_product(protocol, naive, monkeypatch):
    # Two masks and a summand of two values each.
    base = 2

    def numbered(seat, *owners):
        seeds = bytes(32), b"\1" + bytes(31)
        for owner, seed in zip(owners, seeds, strict=True):
            seat.wire.send(owner, "seed", seed)
        return seeds

    monkeypatch.setattr(matrix_product, "deal_seeds", numbered)
    rows = {"a": ([], []), "b": ([], []), "dealer": ([], [])}
    for x, y, *masks in itertools.product(range(base), repeat=5):
        chosen = [0, 0, masks[2]] if naive else masks

        def dealt(seed, rows_, columns, chosen=chosen):
            return np.full((rows_, columns), chosen[seed[0]], dtype=np.uint64)

        monkeypatch.setattr(matrix_product, "_masks", dealt)
        summand = np.array([chosen[2]], dtype=np.uint64)
        monkeypatch.setattr("discreet.randomness.Randomness.words", lambda self, size, s=summand: s)
        run = rehearse_protocol(protocol, {"a": [[float(x)]], "b": [[float(y)]]})
        for party, (given, seen) in rows.items():
            words = [0, 0, 0]
            arrived = [
                int(np.frombuffer(body[-8:], "<u8")[0])
                for _, label, body in run.views[party]
                if label in ("masked columns", "opened", "masks")
            ]
            words[: len(arrived)] = arrived
            own = {"a": [x, chosen[0]], "b": [y, chosen[1]], "dealer": chosen[:2]}[party]
            given.append([x, y])
            seen.append([*own, *words])
    learns = {
        "a": lambda case: (case[0], case[0] * case[1] if type(protocol) is Small else 0),
        "b": lambda case: case[1],
        "dealer": lambda case: case[0] * case[1] if type(protocol) is SmallControlled else 0,
    }
    caught = []
    for party, columns in rows.items():
        views = distributions(
            tuple(list(np.array(side, dtype=np.uint64).T) for side in columns), base
        )
        assert len(views) == base**2
        try:
            require_same(views, learns[party])
        except AssertionError:
            caught.append(party)
    assert caught == (["a", "b"] if naive else [])


@dataclasses.dataclass(frozen=True)
class SmallSum(dc.SecureSum):
    """Parts as they are, one word for every value of all masks."""

    def play(self, seat):
        if seat.is_owner:
            _aggregation.contribute(seat, seat.records[:, 0].astype(np.int64), 2)
            return Outcome()
        _aggregation.aggregate(seat, SIZE, 2, "the sum")
        return Outcome()


OWNERS = "abc"
SIZE = 2**9


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("naive", [False, True])
def test_an_aggregator_sees_the_same_of_parts_with_the_same_sum(leaves, naive, monkeypatch):
    # Three parts, three masks of two owners each and three of one owner: nine bits.
    *parts, ab, ac, bc, a, b, c = digits(9, 2)
    masks = {"ab": ab, "ac": ac, "bc": bc, "a": a, "b": b, "c": c}
    here, whose = threading.local(), {}
    contribute, between = _aggregation.contribute, _aggregation._between

    def contributing(seat, own, stay):
        here.name = seat.name
        contribute(seat, own, stay)

    def agreeing(name, other, *rest):
        here.pair = "".join(sorted((name, other)))
        try:
            return between(name, other, *rest)
        finally:
            here.pair = None

    def listed(secret, size):
        assert size == SIZE
        pair = getattr(here, "pair", None)
        if pair is None:  # an owner's own mask, whose secret the aggregator puts together later
            whose.setdefault(secret, getattr(here, "name", None))
        found = masks[pair or whose[secret]]
        return np.zeros_like(found) if naive else found

    monkeypatch.setattr(_aggregation, "contribute", contributing)
    monkeypatch.setattr(_aggregation, "_between", agreeing)
    monkeypatch.setattr(_aggregation, "_stream", listed)
    inputs = {o: part[:, None].astype(float) for o, part in zip(OWNERS, parts, strict=True)}
    gone = {"dies_after": {"c": 2}} if leaves else {}
    run = rehearse_protocol(SmallSum(by="aggregator"), inputs, **gone)
    arrived = {
        who: np.frombuffer(body, "<u8")
        for who, label, body in run.views["dealer"]
        if label == "masked part"
    }
    stayed = OWNERS[:2] if leaves else OWNERS
    assert "".join(sorted(arrived)) == stayed
    # Beside the parts it learns the own masks of those who stayed, and the key of one who left.
    learned = [masks[one] for one in (*stayed, *(["ac", "bc"] if leaves else []))]
    views = distributions((parts, [*arrived.values(), *learned]), 2)
    total = [OWNERS.index(one) for one in stayed]
    if naive:
        with pytest.raises(AssertionError):
            require_same(views, lambda case: sum(case[place] for place in total) % 2)
    else:
        require_same(views, lambda case: sum(case[place] for place in total) % 2)
        # The key and the own mask of one owner together would tell its part.
        if leaves:
            both = distributions((parts, [*arrived.values(), *learned, ab]), 2)
            with pytest.raises(AssertionError):
                require_same(both, lambda case: sum(case[place] for place in total) % 2)
