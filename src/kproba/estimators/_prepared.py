"""The first step of a fit: scale the columns, prepare the kernels and check that they suit the rows."""

from __future__ import annotations

from ..data.sampling import subsample
from ..data.scaling import scaled_rows
from ..kernels import JointKernel, Kernel, Precomputed, as_kernels
from ..search.choose import Prepared
from ..threads import n_workers
from ._learning import learn_kernel, learns_kernel, rows_that_may_choose
from ._reading import Training


def prepare(model, data: Training, most_rows: int | None = None) -> Prepared:
    """Scale the rows and prepare the kernels; the search uses at most ``most_rows`` of the rows."""
    kernels: list[Kernel]
    kernels = [Precomputed(training=data.inputs)] if model._is_precomputed else as_kernels(model.kernel)
    kernels = [_bound(kernel, model).for_codes(data.rows.categorical) for kernel in kernels]
    scaling = model._fit_scaling(data.rows, kernels)
    rows = scaled_rows(data.rows, scaling, model.device_)
    model._check_units(rows, kernels, scaling, data.seed)
    learnt = None
    if learns_kernel(model, rows):
        learnt, scaling = learn_kernel(model, scaling, data)
        kernels, rows = model._variants(learnt.kernel), scaled_rows(data.rows, scaling, model.device_)
    few = rows if most_rows is None else subsample(rows_that_may_choose(rows, learnt), most_rows, data.seed)
    kernels = [kernel.prepared(few.X, n_workers(model.n_jobs), model.verbose) for kernel in kernels]
    return Prepared(rows, few, kernels, scaling, learnt)


def _bound(kernel: Kernel, model) -> Kernel:
    """The kernel with the labels of the classes, if it compares rows together with their classes."""
    if not isinstance(kernel, JointKernel):
        return kernel
    if not model._takes_joint_kernels:
        raise TypeError(
            f"kernel=JointKernel(...) compares rows with their classes, which {type(model).__name__} does not support; "
            "use LSPC, or a kernel of the rows alone."
        )
    return kernel.bound(model.classes_.tolist())
