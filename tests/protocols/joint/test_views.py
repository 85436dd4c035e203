"""What one party saw of 6,000 rows: a classifier of the hidden values does no better than chance.

For each protocol and each party, everything that arrived in one run is cut into blocks of one item
(word, point, code or ciphertext) per row; a linear classifier learns the hidden values of half of the
rows from the bits of all blocks together. That gives one area under the curve per view, which must
lie within three standard errors of 0.5. One view in 370 would miss this by chance: with fresh
randomness one of these two dozen views would in one run of about fifteen. Sources are seeded, so
what passed once passes again, and no seed was changed to make it pass. Single blocks are judged too, all
of a view at once (Bonferroni, 1 in 1,000).

Only what is opened is left out; messages of comparisons, whose words hold bits of several rows, are taken
apart first. Small rings are listed in `test_small_rings`.
"""

from __future__ import annotations

import hmac

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata

import discreet as dc
from discreet.protocols.arithmetic import negative, rehearse, split
from discreet.protocols.arithmetic.comparison import _MASKS, unpack
from discreet.protocols.fragments.products import ControlledProduct
from discreet.protocols.joint.methods._curve import new_secret
from discreet.protocols.joint.rehearsal import rehearse_protocol
from discreet.randomness import Randomness
from discreet.registry import members
from tests.protocols.joint.rehearsed import policy_for, rehearse_table

ROWS = 6000
HALF = ROWS // 2
#: Of an area under the curve by chance, over the half that did not teach.
ERROR = np.sqrt((HALF + 1) / (12 * (HALF / 2) ** 2))


def hidden():
    """Return what must not be learned; half of the rows are large, in both halves."""
    rng = np.random.default_rng(3)
    halves = [rng.permutation(np.repeat([False, True], HALF // 2)) for _ in range(2)]
    return np.concatenate(halves)


def area(bits, large):
    """Return the area under the curve of a linear classifier on these bits of every row."""
    bits = bits.astype(np.float32) - 0.5
    first, labels = bits[:HALF], large[:HALF]
    direction = first[labels].mean(axis=0) - first[~labels].mean(axis=0)
    ranks, rest = rankdata(bits[HALF:] @ direction), large[HALF:]
    n = int(rest.sum())
    return float((ranks[rest].sum() - n * (n + 1) / 2) / (n * (HALF - n)))


def bits_of(items):
    return np.unpackbits(np.ascontiguousarray(items).view(np.uint8).reshape(ROWS, -1), axis=1)


#: What all parties may see.
OPENED = ("opened", "flags", "values", "pattern")
PADDED = ROWS + -ROWS % 64


def compared(label, words):
    """Return the bits of every row in a message of a comparison, number by number."""
    level = int(label.removeprefix("level ")) if label.startswith("level") else -1
    # Two conjunctions of a level travel together, but for the last.
    for part in np.split(words, 2 if 0 <= level < 5 else 1):
        for step in reversed(range(level + 1)):
            shift, mask = np.uint64(1 << step), _MASKS[step]
            part = np.concatenate([part & mask, (part >> shift) & mask])
        if part.size % PADDED:
            continue  # compared are other numbers than those of the rows
        apart = part.reshape(64, -1, PADDED // 64).transpose(1, 0, 2).reshape(-1, PADDED)
        yield from (bits_of(one) for one in apart[:, :ROWS])


def blocks(view, *, lead=0, columns=1):
    """Return the bits of each block of one item per row.

    Numbers that come before the rows are `lead`; inputs have so many `columns` side by side.
    """
    found = []
    for _, label, body in view:
        words = np.frombuffer(body[: len(body) // 8 * 8], "<u8")
        if label.startswith(OPENED):
            continue
        if label.startswith(("level", "carry-save", "generate")):
            found += compared(label, words)
            continue
        if label in ("and", "or"):  # packed: one bit of each row
            if words.size % (PADDED // 64) == 0:
                packed = words.reshape(-1, PADDED // 64)
                found += [unpack(one, ROWS).astype(np.uint8)[:, None] for one in packed]
            continue
        side = columns if label == "inputs" else 1
        size = lead + side * ROWS
        starts = range(0, len(words) - size + 1, size)
        found += [bits_of(words[start + lead : start + size]) for start in starts]
    return found


def judged(found, large):
    """Return by how many standard errors all blocks of a view together, and the worst, tell."""
    whole = area(np.concatenate(found, axis=1), large)
    worst = max(abs(area(one, large) - 0.5) for one in found)
    return abs(whole - 0.5) / ERROR, worst / norm.isf(0.001 / 2 / len(found)) / ERROR


def require_chance(found, large):
    whole, worst = judged(found, large)
    assert whole <= 3, f"{whole:.1f} standard errors"
    assert worst <= 1


def values(large):
    rng = np.random.default_rng(4)
    found = np.where(large, 0.9, 0.1) + rng.uniform(-0.05, 0.05, ROWS)
    found[:2] = 1.0  # bounds are public
    return found, rng.uniform(0, 1, ROWS)


def columns(large):
    """Every row is a column of one record of three owners; the second's are hidden."""
    secret, other = values(large)
    return {"a": other[None], "b": secret[None], "c": other[None]}


def records(large):
    """The same, with six records for each owner, so that no cluster is too small."""
    return {one: np.repeat(found, 6, axis=0) for one, found in columns(large).items()}


def rows(large):
    """Every row is a record of which two owners hold one column; the second's is hidden."""
    secret, other = values(large)
    return {"a": other[:, None], "b": secret[:, None]}


def first_hidden(large):
    """The same with the hidden column at the first owner."""
    secret, other = values(large)
    return {"a": secret[:, None], "b": other[:, None]}


def scattered(large):
    """Of two columns the second is hidden; the first is scattered over the owners."""
    secret, other = values(large)
    mine, none = np.arange(ROWS) % 2 == 0, np.full(ROWS, np.nan)
    b = np.column_stack([np.where(mine, np.nan, other), secret])
    return {"a": np.column_stack([np.where(mine, other, np.nan), none]), "b": b}


PROTOCOLS = {
    "secure-sum by nodes": (dc.SecureSum(), columns, {"lead": 1}),
    "secure-sum by aggregator": (dc.SecureSum(by="aggregator"), columns, {"lead": 1}),
    "scalar-product": (dc.ScalarProduct(), rows, {}),
    "scalar-product, first owner": (dc.ScalarProduct(), first_hidden, {}),
    "matrix-product": (dc.MatrixProduct(), rows, {}),
    "matrix-product, first owner": (dc.MatrixProduct(), first_hidden, {}),
    "joint-regression": (dc.JointRegression(), rows, {}),
    "joint-regression, first owner": (dc.JointRegression(), first_hidden, {}),
    "joint-k-means": (dc.JointKMeans(k=1, steps=1), records, {"lead": 1}),
    "vertical-k-means": (dc.VerticalKMeans(k=2, steps=1), rows, {}),
    "arbitrary-k-means": (dc.ArbitraryKMeans(k=2, steps=2), scattered, {"columns": 2}),
    "covariances of fragments": (ControlledProduct(), rows, {}),
    "covariances of fragments, first cloud": (ControlledProduct(), first_hidden, {}),
}


def views(name, rng):
    """Return the blocks that arrived at each party that does not hold what is hidden."""
    protocol, shape, cut = PROTOCOLS[name]
    large = hidden()
    run = rehearse_protocol(protocol, shape(large), rng=rng)
    holder = "a" if shape is first_hidden else "b"
    found = {party: blocks(view, **cut) for party, view in run.views.items() if party != holder}
    return {party: seen for party, seen in found.items() if seen}, large


@pytest.mark.parametrize("name", PROTOCOLS)
def test_one_view_of_6000_rows_tells_nothing(name):
    found, large = views(name, Randomness.seeded(11))
    assert found
    for seen in found.values():
        require_chance(seen, large)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_same_view_tells_everything_where_masks_are_zero(name, monkeypatch):
    # So the classifier looks at the places where the hidden values would be.
    monkeypatch.setattr(Randomness, "words", lambda self, size: np.zeros(size, dtype=np.uint64))
    found, large = views(name, Randomness.seeded(11))
    assert max(judged(seen, large)[0] for seen in found.values()) > 6


def test_every_protocol_that_hides_is_judged():
    tried = {type(protocol) for protocol, _, _ in PROTOCOLS.values()}
    hiding = {one for one in members("protocol").values() if one.hides}
    rest = {dc.Alignment, dc.HorizontalRegression, dc.JointTable, dc.PaillierProduct}
    assert hiding - tried == rest  # judged below


@pytest.mark.parametrize("naive", [pytest.param(False, marks=pytest.mark.slow), True])
def test_one_view_of_a_joint_table_of_6000_cells_tells_nothing(naive, monkeypatch):
    large = hidden()
    codes = [f"c{place}" for place in range(ROWS)]
    frames = [
        pd.DataFrame({"icd": np.repeat(codes, 3), "cost": np.repeat(np.where(large, big, 1), 3)})
        for big in (10**6, 1, 1)
    ]
    stated = {"rules": [{"minimum-frequency": 3}, {"p-percent": 15}], "keys": {"icd": codes}}
    policy = policy_for(3, measures={"cost": {"bound": 1e11}}, **stated)
    if naive:
        monkeypatch.setattr(Randomness, "words", lambda self, size: np.zeros(size, np.uint64))
    seen = {}
    sql = "SELECT icd, COUNT(*) AS n, SUM(cost) AS cost FROM stays GROUP BY icd"
    rehearse_table(frames, sql, policy, views=seen, rng=Randomness.seeded(12))
    found = {name: judged(blocks(view), large) for name, view in seen.items() if name != "owner1"}
    assert set(found) == {"owner2", "owner3"}
    if naive:
        assert max(whole for whole, _ in found.values()) > 6
    else:
        assert all(whole <= 3 and worst <= 1 for whole, worst in found.values()), found


@pytest.mark.parametrize("through", ["owners", "dealer"])
def test_what_arrives_in_an_alignment_tells_nothing_of_the_persons(through):
    # Hidden is what the identifier begins with; the owner's list is in that order.
    large = np.repeat([False, True], HALF)
    persons = [b"%s%d" % (b"rare" if one else b"usual", n) for n, one in enumerate(large)]
    protocol = dc.Alignment(through=through)
    run = rehearse_protocol(protocol, {"a": [b"x"], "b": persons}, rng=Randomness.seeded(13))
    if through == "dealer":
        key = next(body for _, label, body in run.views["b"] if label == "key")
        order = np.argsort([hmac.digest(key, one, "sha256")[:16] for one in persons])
        label, viewer = "codes", "dealer"
    else:
        source = Randomness.seeded(13)
        _, second = source.spawn(), source.spawn()  # what "b" drew: its secret and its order
        new_secret(second)
        order, label, viewer = second.permutation(ROWS), "points", "a"
    body = next(body for who, said, body in run.views[viewer] if (who, said) == ("b", label))
    places = np.arange(ROWS, dtype=">u4")
    mixed = np.random.default_rng(1).permutation(ROWS)
    seen = np.concatenate([bits_of(np.frombuffer(body, np.uint8)), bits_of(places)], axis=1)
    require_chance([seen[mixed]], large[order][mixed])
    naive = bits_of(np.frombuffer(b"".join(one.ljust(12) for one in persons), np.uint8))
    assert judged([naive[mixed]], large[mixed])[0] > 6
    assert judged([bits_of(places)[mixed]], large[mixed])[0] > 6  # a list sent as it lies


@pytest.mark.parametrize("naive", [False, True])
def test_shares_of_6000_sums_of_products_tell_nothing(naive, monkeypatch):
    # Of 21 columns an owner shares 441 sums of products: fourteen runs are a view of 6,000.
    if naive:
        monkeypatch.setattr(Randomness, "words", lambda self, size: np.zeros(size, np.uint64))
    protocol, sums, arrived = dc.HorizontalRegression(open="gram"), [], {"a": [], "c": []}
    for run in range(14):
        rng = np.random.default_rng(run)
        given = {one: rng.normal(0, 1, (220, 21)) for one in "abc"}
        whole = np.concatenate(list(given.values()))
        unit = (given["b"] - whole.mean(axis=0)) / whole.std(axis=0)
        sums.append((unit.T @ unit).ravel())
        views = rehearse_protocol(protocol, given, rng=Randomness.seeded(15 + run)).views
        for party, listed in arrived.items():
            bodies = [b for who, label, b in views[party] if (who, label) == ("b", "inputs")]
            listed.append(np.frombuffer(bodies[-1], "<u8").reshape(2, -1))
    secret = np.concatenate(sums)[:ROWS]
    halves = np.split(secret, 2)
    large = np.concatenate([half > np.median(half) for half in halves])
    found = {
        party: judged([bits_of(one[:ROWS]) for one in np.concatenate(listed, axis=1)], large)
        for party, listed in arrived.items()
    }
    if naive:
        assert max(whole for whole, _ in found.values()) > 6
    else:
        assert all(whole <= 3 and worst <= 1 for whole, worst in found.values()), found


@pytest.mark.slow
def test_encrypted_columns_of_6000_rows_tell_nothing():
    large = hidden()
    run = rehearse_protocol(dc.PaillierProduct(), first_hidden(large), rng=Randomness.seeded(14))
    body = b"".join(body for _, label, body in run.views["b"] if label == "encrypted columns")
    require_chance([bits_of(np.frombuffer(body, np.uint8))], large)


def test_the_classifier_catches_masks_that_are_real_or_used_twice():
    large = hidden()
    rng = np.random.default_rng(8)
    numbers = np.where(large, 900.0, 10.0)
    real = (numbers + rng.normal(0, 400, ROWS)).view(np.uint64)
    twice = np.where(large, 900, 10).astype(np.uint64) + np.uint64(12345)
    fresh = numbers.astype(np.uint64) + Randomness.seeded(2).words(ROWS)
    assert area(bits_of(real), large) > 0.5 + 6 * ERROR
    assert area(bits_of(twice), large) > 0.99
    require_chance([bits_of(fresh)], large)
    # One of a hundred blocks is enough.
    noise = [bits_of(Randomness.seeded(place).words(ROWS)) for place in range(100)]
    require_chance(noise, large)
    for leak in (real, twice):
        assert judged([*noise[:50], bits_of(leak), *noise[50:]], large)[0] > 3


def test_messages_of_comparisons_are_taken_apart_row_by_row():
    large = hidden()
    parts = split(np.where(large, 5, 0), rng=Randomness.seeded(3))
    _, rings = rehearse(lambda node: negative(node, parts[node.index]) and None)
    views = [[one for one in ring.view if one[0] != "key"] for ring in rings]
    for view in views:
        found = blocks([("", *one) for one in view])
        assert len(found) == 2 + 5 * 2 + 1
        require_chance(found, large)
    # What the three nodes sent is a sharing: put together, each row's block is of its own number.
    words = [np.frombuffer(view[0][1], "<u8") for view in views]
    (whole,) = compared("carry-save", words[0] ^ words[1] ^ words[2])
    x, y, z = (part.own for part in parts)
    assert (whole == bits_of((x ^ z) & (y ^ z))).all()
