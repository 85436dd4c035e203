"""The linear and integer programs of the house, on HiGHS; the only file that imports a solver."""

from __future__ import annotations

import dataclasses
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.errors import EngineError
from discreet.progress import OutOfTimeError, require_time, seconds_left

__all__ = ["LinearProgram", "Solution", "solve_integer"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_DUAL, _PRIMAL = 1, 4


@dataclasses.dataclass(frozen=True)
class Solution:
    """What a program came to: its optimum, or that it has none."""

    #: "optimal", "infeasible", "unbounded" or "stopped" (time limit, with `x` where one was found).
    status: str
    objective: float = np.nan
    x: Floats = dataclasses.field(default_factory=lambda: np.zeros(0), repr=False)
    #: Proven lower bound of an integer program.
    bound: float = np.nan
    #: Pivots that an integer program took.
    work: int = 0


class LinearProgram:
    """A linear program kept warm: costs and bounds change, the basis stays.

    Minimises `cost` · x subject to `matrix` x within row bounds and x within column bounds. One that
    is `restarted` often from a basis of before chooses its pivots in a cheaper way.

    Examples
    --------
    >>> program = LinearProgram(
    ...     sparse.csc_matrix([[1.0, 1.0]]),
    ...     rows=(np.array([4.0]), np.array([4.0])),
    ...     columns=(np.zeros(2), np.array([3.0, 3.0])),
    ...     cost=np.array([1.0, 2.0]),
    ... )
    >>> program.solve().x.tolist()
    [3.0, 1.0]
    """

    def __init__(
        self,
        matrix: sparse.csc_matrix,
        *,
        rows: tuple[Floats, Floats],
        columns: tuple[Floats, Floats],
        cost: Floats,
        restarted: bool = False,
    ) -> None:
        self._highs = _quiet()
        self._highs.setOptionValue("presolve", "off")
        if restarted:
            # Steepest edges are computed anew with each basis given, reference weights are not.
            self._highs.setOptionValue("simplex_dual_edge_weight_strategy", 1)
        self._strategy = 0
        self._matrix = matrix
        _pass(self._highs, matrix, rows, columns, cost, np.zeros(len(cost), dtype=bool))
        #: Pivots so far: a measure of work that is the same on every machine.
        self.work = 0

    def set_cost(self, columns: Ints, cost: Floats) -> None:
        """Change the cost of some columns; one named twice has the same cost both times."""
        if len(columns):
            at, first = _once(columns)
            changed = self._highs.changeColsCost(len(at), at, np.asarray(cost, np.float64)[first])
            _require(changed, "the solver refused the costs")

    def set_bounds(self, columns: Ints, lower: Floats, upper: Floats) -> None:
        """Change the bounds of some columns; one named twice has the same bounds both times."""
        if len(columns):
            at, first = _once(columns)
            ends = (np.asarray(end, np.float64)[first] for end in (lower, upper))
            changed = self._highs.changeColsBounds(len(at), at, *ends)
            _require(changed, "the solver refused the bounds")

    def add_row(self, columns: Ints, coefficients: Floats, lower: float, upper: float) -> None:
        """Add a constraint on some columns."""
        self._highs.addRow(
            lower,
            upper,
            len(columns),
            columns.astype(np.int32),
            np.ascontiguousarray(coefficients, np.float64),
        )

    def solve(self, *, primal: bool = False) -> Solution:
        """Minimise from the last basis; `primal` where only costs have changed."""
        strategy = _PRIMAL if primal else _DUAL
        if strategy != self._strategy:
            self._highs.setOptionValue("simplex_strategy", strategy)
            self._strategy = strategy
        left = seconds_left()
        if left is not None:
            require_time()
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + left)
        self._highs.run()
        status = self._highs.getModelStatus()
        if left is not None and status == highspy.HighsModelStatus.kTimeLimit:
            raise OutOfTimeError
        if status == highspy.HighsModelStatus.kUnknown:
            # A basis gone numerically bad: start over from none.
            self._highs.clearSolver()
            self._highs.run()
            status = self._highs.getModelStatus()
        self.work += max(int(self._highs.getInfo().simplex_iteration_count), 0)
        if status == highspy.HighsModelStatus.kOptimal:
            x = np.array(self._highs.getSolution().col_value)
            return Solution("optimal", float(self._highs.getObjectiveValue()), x)
        if status == highspy.HighsModelStatus.kInfeasible:
            return Solution("infeasible")
        if status in (
            highspy.HighsModelStatus.kUnbounded,
            highspy.HighsModelStatus.kUnboundedOrInfeasible,
        ):
            return Solution("unbounded")
        raise EngineError(
            f"the linear programming solver stopped with {status}", code="solver-failed"
        )

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the bounds of the columns as they stand now."""
        now = self._highs.getLp()
        return np.array(now.col_lower_), np.array(now.col_upper_)

    def whole(self, *, gap: float = 0.0, nodes: int | None = None) -> Solution:
        """Solve the program as it stands now, without rows added since, in whole numbers."""
        now = self._highs.getLp()
        return solve_integer(
            self._matrix,
            rows=(np.array(now.row_lower_), np.array(now.row_upper_)),
            columns=(np.array(now.col_lower_), np.array(now.col_upper_)),
            cost=np.array(now.col_cost_),
            integer=np.ones(self._matrix.shape[1], dtype=bool),
            gap=gap,
            nodes=nodes,
        )

    def basis(self) -> Any:
        """Return where the last solution stands, for a program of the same shape to start from.

        Any: highspy has no annotations.
        """
        return self._highs.getBasis()

    def start(self, basis: Any) -> None:
        """Start the next solution from a basis of another program. Any: highspy's own."""
        _require(self._highs.setBasis(basis), "the solver refused the basis")

    def ray(self) -> Floats | None:
        """Return weights of the rows under which they contradict the bounds, where they just did."""
        _, there, ray = self._highs.getDualRay()
        return np.array(ray) if there else None

    def duals(self) -> Floats:
        """Return the reduced costs of the columns at the last optimum."""
        return np.array(self._highs.getSolution().col_dual)


def solve_integer(
    matrix: sparse.csc_matrix,
    *,
    rows: tuple[Floats, Floats],
    columns: tuple[Floats, Floats],
    cost: Floats,
    integer: npt.NDArray[np.bool_],
    time_limit: float | None = None,
    nodes: int | None = None,
    gap: float = 0.0,
    start: Floats | None = None,
) -> Solution:
    """Minimise with some columns integer; report the proven bound beside the best found.

    The search ends after so many seconds or, the same on every machine, so many nodes of its tree.

    >>> best = solve_integer(
    ...     sparse.csc_matrix([[2.0, 3.0]]),
    ...     rows=(np.array([4.0]), np.array([np.inf])),
    ...     columns=(np.zeros(2), np.ones(2) * 9),
    ...     cost=np.array([1.0, 1.4]),
    ...     integer=np.array([True, True]),
    ... )
    >>> np.abs(best.x).tolist(), best.objective
    ([2.0, 0.0], 2.0)
    """
    highs = _quiet()
    left = seconds_left()
    if left is not None:
        require_time()
        time_limit = left if time_limit is None else min(left, time_limit)
    if time_limit is not None:
        highs.setOptionValue("time_limit", float(max(time_limit, 0.01)))
    if nodes is not None:
        highs.setOptionValue("mip_max_nodes", nodes)
    highs.setOptionValue("mip_rel_gap", gap)
    _pass(highs, matrix, rows, columns, cost, integer)
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = [float(value) for value in start]
        highs.setSolution(solution)
    highs.run()
    status = highs.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return Solution("infeasible")
    if status in (
        highspy.HighsModelStatus.kUnbounded,
        highspy.HighsModelStatus.kUnboundedOrInfeasible,
    ):
        return Solution("unbounded")
    info = highs.getInfo()
    found = info.primal_solution_status == 2  # kSolutionStatusFeasible
    x = np.array(highs.getSolution().col_value) if found else np.zeros(0)
    objective = float(highs.getObjectiveValue()) if found else np.nan
    bound = float(info.mip_dual_bound)
    done = status == highspy.HighsModelStatus.kOptimal
    work = max(int(info.simplex_iteration_count), 0)
    return Solution("optimal" if done else "stopped", objective, x, bound, work)


def _once(columns: Ints) -> tuple[npt.NDArray[np.int32], Ints]:
    """Return columns in order, each once, and where they stood: the solver takes no others."""
    at, first = np.unique(columns, return_index=True)
    return at.astype(np.int32), first


def _quiet() -> Any:
    # Any: highspy has no annotations.
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    # One thread: the caller decides what runs beside what, and results repeat.
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("parallel", "off")
    highs.setOptionValue("random_seed", 0)
    return highs


def _pass(
    highs: Any,
    matrix: sparse.csc_matrix,
    rows: tuple[Floats, Floats],
    columns: tuple[Floats, Floats],
    cost: Floats,
    integer: npt.NDArray[np.bool_],
) -> None:
    """Hand a model over, in arrays: through the solver's own objects that takes as long as solving.

    Any: highspy has no annotations.
    """
    sizes = matrix.shape[1], matrix.shape[0], matrix.nnz
    by_columns = 1
    minimise = 1
    ends = (np.ascontiguousarray(end, np.float64) for end in (*columns, *rows))
    status = highs.passModel(
        *sizes,
        *(by_columns, minimise, 0.0),
        *(np.ascontiguousarray(cost, np.float64), *ends),
        *(matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)),
        np.ascontiguousarray(matrix.data, np.float64),
        integer.astype(np.int32),
    )
    _require(status, "the solver refused the model")


def _require(status: Any, message: str) -> None:
    if status == highspy.HighsStatus.kError:
        raise EngineError(message, code="solver-failed")
