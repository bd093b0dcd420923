"""The first step of a fit: scale the columns, prepare the kernels and check that they suit the rows."""

from __future__ import annotations

from typing import NamedTuple

from ..data.rows import Rows
from ..data.sampling import subsample
from ..data.scaling import Scaling
from ..kernels import Kernel, Precomputed, as_kernels
from ..threads import n_workers
from ._reading import Training


class Prepared(NamedTuple):
    """Scaled rows, the subset used in the search, the candidate kernels, and the scaling."""

    rows: Rows
    few: Rows
    kernels: list[Kernel]
    scaling: Scaling | None


def prepare(model, data: Training, most_rows: int | None = None) -> Prepared:
    """Scale the rows and prepare the kernels; the search uses at most ``most_rows`` of the rows."""
    kernels = [Precomputed(training=data.inputs)] if model._is_precomputed else as_kernels(model.kernel)
    scaling = model._fit_scaling(data.rows, kernels)
    rows = scaled_rows(data.rows, scaling)
    few = rows if most_rows is None else subsample(rows, most_rows, data.seed)
    kernels = [kernel.prepared(few.X, n_workers(model.n_jobs), model.verbose) for kernel in kernels]
    model._check_units(few, kernels, scaling, data.seed)
    return Prepared(rows, few, kernels, scaling)


def scaled_rows(rows: Rows, scaling: Scaling | None) -> Rows:
    """The rows with their columns scaled; None leaves them unchanged."""
    return rows if scaling is None else rows.replace_inputs(scaling(rows.X))
