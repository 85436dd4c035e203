"""What MST and AIM share: a budget, public domains, and records drawn from a graphical model."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from discreet.dp.accountant import gaussian_event
from discreet.dp.graphical.estimation import Model
from discreet.dp.graphical.sampling import sampled
from discreet.dp.spending import Spending, concentrated_budget
from discreet.errors import InputError
from discreet.microdata.synthesizers._base import (
    Budget,
    Fitted,
    Kind,
    Synthesizer,
    released_columns,
    require_pairs,
)
from discreet.microdata.synthesizers._tables import Coding, Tables, codings
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["PrivateSynthesizer"]


@dataclasses.dataclass(frozen=True)
class PrivateSynthesizer(Synthesizer):
    """Base of the synthesizers whose promise is (ε, δ)-differential privacy of one record."""

    protection: ClassVar[Literal["dp", "measured", "statistics"]] = "dp"
    seedable: ClassVar[bool] = False

    epsilon: float = parameter(help="privacy loss of one record", above=0)
    delta: float = parameter(1e-9, help="chance beyond it", above=0, below=1)
    bins: int = parameter(
        32,
        help="bins of a column that only bounds are declared of",
        low=1,
        high=10_000,
        kw_only=True,
    )
    missing: tuple[str, ...] = parameter(
        (), help="columns in which values may be missing", kw_only=True
    )

    def __post_init__(self) -> None:
        given = (self.missing,) if isinstance(self.missing, str) else tuple(self.missing)
        object.__setattr__(self, "missing", given)
        super().__post_init__()

    @property
    def inference(self) -> Kind:
        """No rule combines estimates: the noise is not what the rules are about."""
        return "none"

    @property
    def promise(self) -> str:
        """The promise in words."""
        return (
            f"({self.epsilon:g}, {self.delta:g})-differential privacy for one record added or "
            "removed, whatever an attacker knows of the others"
        )

    def budget(self) -> Budget:
        """Return the grant: ρ of zero-concentrated differential privacy that stays within (ε, δ)."""
        rho = concentrated_budget(float(self.epsilon), float(self.delta))
        return Budget(float(self.epsilon), float(self.delta), rho, {gaussian_event(rho): 1})

    def check(self, dataset: Dataset) -> None:
        """Check that every column has a public domain."""
        super().check(dataset)
        columns = len(released_columns(dataset))
        require_pairs(columns, columns * (columns - 1) // 2)
        self.budget()
        self._require_size(self._codings(dataset))

    def _require_size(self, coded: list[Coding]) -> None:
        """Raise an InputError where a table of the method would be too large."""

    def _codings(self, dataset: Dataset) -> list[Coding]:
        names = released_columns(dataset)
        return codings(dataset, names, bins=self.bins, missing=self.missing)

    def prepare(self, dataset: Dataset) -> None:
        """Check values against the domains, and that nobody owns two records."""
        with self.tables(dataset) as tables:
            tables.require_inside()
        unit = dataset.unit
        if unit is not None and dataset.frequencies([unit]).num_rows < len(dataset):
            raise InputError(
                f"somebody owns several records (unit {unit!r}), and the promise is about one",
                code="several-records",
                hint="give each unit one record first, such as by aggregating",
                column=unit,
            )

    @contextlib.contextmanager
    def tables(self, dataset: Dataset, *, of: Dataset | None = None) -> Iterator[Tables]:
        """Give counts of a dataset by its own public codes, or by those of another one."""
        tables = Tables(dataset, self._codings(of or dataset))
        try:
            yield tables
        finally:
            tables.close()

    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Fitted:
        """Measure marginals with noise and estimate a model from them."""
        del rng  # noise and choices come from OpenDP
        spending = Spending(self.budget().rho)
        with self.tables(dataset) as tables:
            model, tried = self._modelled(tables, spending, progress)
        return _Drawn(list(tables.codings), model, spending, tried)

    @abc.abstractmethod
    def _modelled(
        self, tables: Tables, spending: Spending, progress: Progress
    ) -> tuple[Model, list[str]]:
        """Return the model, and the tables measured beyond single columns, in words."""


class _Drawn(Fitted):
    """A model of noisy marginals; drawing from it costs nothing more."""

    def __init__(
        self, coded: list[Coding], model: Model, spending: Spending, tables: list[str]
    ) -> None:
        self._coded, self._model = coded, model
        self.spending = spending
        self.size = max(1, round(model.beliefs.total))
        self.notes = {
            "tables measured": tables,
            "model cells": model.beliefs.tree.cells,
            "rho spent": float(spending.spent),
        }

    def draw(self, n: int, *, rng: Randomness) -> pa.Table:
        """Return n records."""
        import pyarrow as pa

        codes = sampled(self._model.beliefs, n, rng=rng)
        return pa.table(
            {
                one.name: one.decoded(codes[:, place], rng=rng)
                for place, one in enumerate(self._coded)
            }
        )
