"""Limited-memory BFGS with a strong-Wolfe line search, used for kernel logistic regression in 2010 Sec. 3.

SciPy's L-BFGS-B runs in the coordinates Z of X = L⁻ᵀZ, where LLᵀ is the least-squares factor. There the Hessian is near
the identity, and tens of steps achieve what takes thousands in the coefficients themselves.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .newton import Optimum, is_optimal


def lbfgs(objective, start, tol: float, max_iter: int) -> Optimum:
    """L-BFGS with strong Wolfe conditions (2010 Sec. 3), in the coordinates of a least-squares factor.

    Steps may gain little just because they are short. If the gradient shows that more can be gained, the descent
    continues with an updated factor.
    """
    point, taken = start, 0
    while taken < max_iter:
        factor = objective.preconditioner(point)
        if taken and is_optimal(objective, point, factor, objective.gradient(point), tol):
            return Optimum(point, True, taken)
        point, n_steps = _descend(objective, point, factor, tol, max_iter - taken)
        taken += max(n_steps, 1)
    factor = objective.preconditioner(point)
    return Optimum(point, is_optimal(objective, point, factor, objective.gradient(point), tol), taken)


def _descend(objective, start, factor, tol: float, max_iter: int):
    """The point where L-BFGS stops, and the number of steps."""
    shape = start.X.shape

    def value_and_gradient(z):
        point = objective.at(start.X + factor.unwhiten(z.reshape(shape)))
        return point.value, factor.whiten(objective.gradient(point)).ravel()

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 0.1 * tol, "gtol": 0.0, "maxcor": 20}
    found = minimize(value_and_gradient, np.zeros(start.X.size), jac=True, method="L-BFGS-B", options=options)
    return objective.at(start.X + factor.unwhiten(found.x.reshape(shape))), found.nit
