"""Least squares over the records or columns of several owners."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet.errors import InfeasibleError, InputError, RefusedError
from discreet.protocols.arithmetic.shares import Shares
from discreet.protocols.arithmetic.solving import BITS, solve
from discreet.protocols.joint.learned import FOLLOW, NO_TWO_NODES, Leakage
from discreet.protocols.joint.methods._leverage import require_no_single_record
from discreet.protocols.joint.methods.matrix_product import product_in_parts
from discreet.protocols.joint.protocol import Inputs, Outcome, Protocol, Seat, Split
from discreet.protocols.joint.seat import Cast
from discreet.registry import parameter

__all__ = ["PER_COLUMN", "JointRegression", "require_determined"]

Floats = npt.NDArray[np.float64]
_MOST_COLUMNS = 20
#: A regression needs so many records for each of its columns.
PER_COLUMN = 10
#: Binary digits of standardised columns divided by √n: sums of their products stay within ±1. What is
#: cut to fewer digits afterwards must be small: a cut is wrong with a chance of its size / 2^63.
_FINE = {"gram": 29, "coefficients": 18}


@dataclasses.dataclass(frozen=True)
class JointRegression(Protocol):
    """Fit a linear regression to columns that owners hold of the same records.

    The last column of the last owner is explained by all others. Owners standardise their own
    columns; products between owners are made in parts with masks of a dealer; three nodes solve the
    equations on shares. Opened are coefficients, their errors and R², beside mean and standard
    deviation of each column; with `open="gram"` all correlations are opened, which is more precise.

    Examples
    --------
    >>> from discreet.protocols.joint.rehearsal import rehearse_protocol
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(0, 3, (200, 2))
    >>> y = (x @ [2.0, -1.0] + 5 + rng.normal(0, 1, 200))[:, None]
    >>> found = rehearse_protocol(JointRegression(), {"a": x, "b": y}).shown
    >>> found["coefficients"].round(1).tolist()  # the constant first
    [5.0, 2.0, -1.0]
    """

    name: ClassVar[str] = "joint-regression"
    reference: ClassVar[str] = "Du, Han and Chen (2004), SDM; Karr et al. (2009), JOS 25"
    split: ClassVar[Split] = "vertical"
    linear: ClassVar[bool] = True

    open: Literal["coefficients", "gram"] = parameter(
        "coefficients", help="open coefficients only, or all correlations"
    )

    @property
    def needs_nodes(self) -> bool:
        """Equations are solved on shares."""
        return True

    @property
    def needs_dealer(self) -> bool:
        """Masks of products are dealt."""
        return True

    def admit(self, records: Floats) -> None:
        """Refuse columns that single a record out: the fit would go through it.

        A column that is 1 for one person and 0 for all others has that person's value as its
        coefficient. The leverage of a record says how far the fit follows it.
        """
        if len(records) < 2:
            return  # refused for its number of records, as everybody is told
        require_no_single_record(records - records.mean(axis=0))

    def play(self, seat: Seat) -> Outcome:
        """Return the regression, at the nodes."""
        if seat.records is not None:
            self.admit(seat.records)
        size = self.width(seat.cast)
        if size < 2 or size > _MOST_COLUMNS + 1:
            raise InputError(
                f"a regression of {size} columns is not computed together",
                code="joint-regression",
                hint=f"offer 2 to {_MOST_COLUMNS + 1} columns",
            )
        rows, summary = self.summaries(seat, size)
        gram = self.correlations(seat, rows, summary)
        if not seat.is_node:
            return Outcome()
        assert gram is not None
        if self.open == "gram":
            opened = seat.open(gram, f"all correlations of {size} columns") / 4.0**self.fine
            return Outcome({**fitted(opened, summary, rows), "correlations": opened})
        found = self._solved(seat, gram, size)
        return Outcome(unstandardised(*found, summary, rows))

    def width(self, cast: Cast) -> int:
        """Return the number of columns, the explained one among them."""
        return sum(map(len, cast.bounds.values()))

    def summaries(self, seat: Seat, size: int) -> tuple[int, Floats]:
        """Tell everybody the number of records, the means and the standard deviations."""
        cast = seat.cast
        if seat.is_owner:
            assert seat.records is not None
            stated = np.stack([seat.records.mean(axis=0), seat.records.std(axis=0)])
            seat.announce("number of records, means and deviations of columns", stated.size)
            body = np.concatenate([[float(len(seat.records))], stated.ravel()])
            for peer in cast.everybody:
                if peer != seat.name:
                    seat.wire.send(peer, "opened summaries", body.astype("<f8").tobytes())
        found, rows = [], set()
        for owner in cast.owners:
            width = len(cast.bounds[owner])
            if owner == seat.name:
                values = body
            else:
                said = seat.wire.receive(owner, "opened summaries", size=8 * (1 + 2 * width))
                values = np.frombuffer(said, dtype="<f8")
            rows.add(float(values[0]))
            found.append(values[1:].reshape(2, width))
        number = int(rows.pop())
        if rows:
            raise RefusedError(
                "the owners hold different numbers of records",
                code="not-aligned",
                hint="align the records of the owners first",
            )
        summary = np.concatenate(found, axis=1)
        require_determined(number, summary)
        meaning = "number of records, means and deviations of columns"
        seat.wire.transcript.open(meaning, summary.tobytes(), cells=int(summary.size))
        if not seat.is_owner:
            seat.announce(meaning, int(summary.size))
        return number, summary

    @property
    def fine(self) -> int:
        """Binary digits of standardised columns."""
        return _FINE[self.open]

    def _standardised(self, seat: Seat) -> npt.NDArray[np.int64] | None:
        if not seat.is_owner:
            return None
        assert seat.records is not None
        centred = seat.records - seat.records.mean(axis=0)
        unit = centred / np.linalg.norm(centred, axis=0)
        return np.asarray(np.rint(unit * 2.0**self.fine).astype(np.int64))

    def correlations(self, seat: Seat, rows: int, summary: Floats) -> Shares | None:
        """Return a node's part of the matrix of correlations, in whole numbers."""
        cast, mine = seat.cast, self._standardised(seat)
        starts = np.cumsum([0, *(len(cast.bounds[owner]) for owner in cast.owners)])
        size = summary.shape[1]
        block = np.zeros((size, size), dtype=np.uint64)
        for a, b in itertools.combinations(range(len(cast.owners)), 2):
            pair = cast.owners[a], cast.owners[b]
            if seat.name not in (*pair, cast.dealer):
                continue
            part = product_in_parts(seat, *pair, mine if seat.name in pair else None, rows)
            if part is not None:
                at = slice(starts[a], starts[a + 1]), slice(starts[b], starts[b + 1])
                block[at] = part
                block[at[::-1]] = part.T
        if seat.is_owner:
            assert mine is not None
            place = cast.owners.index(seat.name)
            own = slice(starts[place], starts[place + 1])
            block[own, own] = mine.view(np.uint64).T @ mine.view(np.uint64)
        parts = seat.gather(block if seat.is_owner else None, (size, size))
        return sum(parts[1:], parts[0]) if parts else None

    @staticmethod
    def _solved(seat: Seat, gram: Shares, size: int) -> tuple[Floats, Floats, float]:
        """Open standardised coefficients, the diagonal of the inverse, and R²."""
        node = seat.node
        coarse = node.truncate(gram, 2 * _FINE["coefficients"] - BITS)
        inside = coarse[: size - 1, : size - 1]
        along = coarse[: size - 1, size - 1 : size]
        unit = node.constant(np.eye(size - 1, dtype=np.int64) << BITS)
        right = Shares(
            np.concatenate([along.own, unit.own], axis=1),
            np.concatenate([along.next, unit.next], axis=1),
        )
        found, small = solve(node, inside, right)
        if seat.open_bits(small, "which columns follow nearly from those before").any():
            raise InfeasibleError(
                "a column follows nearly from the others, and the regression is not determined",
                code="near-singular",
                hint="leave it out, or open the correlations",
            )
        products = node.multiply(found[:, 0], along[:, 0]).reshape(1, -1)
        explained = node.truncate(products.sum(axis=1), BITS)
        diagonal = found[np.arange(size - 1), 1 + np.arange(size - 1)]
        shown = Shares(
            np.concatenate([found.own[:, 0], diagonal.own, explained.own]),
            np.concatenate([found.next[:, 0], diagonal.next, explained.next]),
        )
        meaning = "coefficients, their errors and R²"
        opened = seat.open(shown, meaning) / 2.0**BITS
        return opened[: size - 1], opened[size - 1 : -1], float(opened[-1])

    def plain(self, inputs: Inputs) -> Mapping[str, Floats]:
        """Return the fit of all columns side by side."""
        whole = np.concatenate(list(inputs.values()), axis=1)
        summary = np.stack([whole.mean(axis=0), whole.std(axis=0)])
        found = fitted(np.corrcoef(whole.T), summary, len(whole))
        more = {"correlations": np.corrcoef(whole.T)} if self.open == "gram" else {}
        return {**found, **more}

    def leakage(self) -> Leakage:
        """Return what each party learns."""
        what = "number of records, mean and deviation of each column; " + (
            "all correlations" if self.open == "gram" else "coefficients, their errors and R²"
        )
        return Leakage.of(
            ("owner", "the others' columns under masks used once", "what is opened, if it is told"),
            ("node", f"{what}; uniformly random words",
             "what these say with its own columns: where R² is near 1, the explained value of each record"),
            ("dealer", "number of records, mean and deviation of each column", "nothing else"),
            ("analyst", what, "what these say"),
            assumes=(FOLLOW, NO_TWO_NODES, "the dealer puts its masks together with nobody"),
        )  # fmt: skip


def require_determined(rows: int, summary: Floats) -> None:
    """Refuse too few records, and columns that are constant."""
    size = summary.shape[1]
    if rows < PER_COLUMN * size or not (summary[1] > 0).all():
        raise RefusedError(
            f"a regression of {size} columns needs {PER_COLUMN * size} records, and columns "
            "that are not constant",
            code="too-few-records",
            hint="offer fewer columns",
        )


def fitted(correlations: Floats, summary: Floats, rows: int) -> dict[str, Floats]:
    """Return the regression that a matrix of correlations determines."""
    inside, along = correlations[:-1, :-1], correlations[:-1, -1]
    if np.linalg.cond(inside) > 1e10:
        raise InfeasibleError(
            "a column follows from the others, and the regression is not determined",
            code="near-singular",
            hint="leave it out",
        )
    inverse = np.linalg.inv(inside)
    slopes = inverse @ along
    return unstandardised(slopes, np.diag(inverse), float(slopes @ along), summary, rows)


def unstandardised(
    slopes: Floats, diagonal: Floats, explained: float, summary: Floats, rows: int
) -> dict[str, Floats]:
    """Return coefficients in the columns' own units, the constant first, their errors and R²."""
    means, deviations = summary
    explained = min(explained, 1.0)
    ratio = deviations[-1] / deviations[:-1]
    found = slopes * ratio
    constant = means[-1] - found @ means[:-1]
    free = max(rows - len(slopes) - 1, 1)
    errors = ratio * np.sqrt(np.maximum(diagonal, 0) * (1 - explained) / free)
    return {
        "coefficients": np.concatenate([[constant], found]),
        "errors": errors,
        "r-squared": np.array([explained]),
    }
