"""The first step of a fit: columns scaled, kernels made ready, and what would go wrong with them said."""

from __future__ import annotations

from typing import NamedTuple

from ..data.rows import Rows
from ..data.sampling import subsample
from ..data.scaling import Scaling
from ..kernels import Kernel, Precomputed, as_kernels
from ..threads import n_workers
from ._reading import Training


class Prepared(NamedTuple):
    """Scaled rows, those of them that a search sees, the kernels to choose from, and the scaling."""

    rows: Rows
    few: Rows
    kernels: list[Kernel]
    scaling: Scaling | None


def prepare(model, data: Training, most_rows: int | None = None) -> Prepared:
    """The rows of a fit as kernels take them; a search sees at most so many of them."""
    kernels = [Precomputed(training=data.inputs)] if model._is_precomputed else as_kernels(model.kernel)
    scaling = model._fit_scaling(data.rows, kernels)
    rows = scaled_rows(data.rows, scaling)
    few = rows if most_rows is None else subsample(rows, most_rows, data.seed)
    kernels = [kernel.prepared(few.X, n_workers(model.n_jobs), model.verbose) for kernel in kernels]
    model._check_units(few, kernels, scaling, data.seed)
    return Prepared(rows, few, kernels, scaling)


def scaled_rows(rows: Rows, scaling: Scaling | None) -> Rows:
    """The rows with their columns scaled; None leaves them as they are."""
    return rows if scaling is None else rows.replace_inputs(scaling(rows.X))
