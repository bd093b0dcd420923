"""Limited-memory BFGS with a strong-Wolfe line search, as 2010 Sec. 3 trains kernel logistic regression.

SciPy's L-BFGS-B does the work, in the coordinates Z of X = L⁻ᵀZ where LLᵀ is the least-squares factor: there the
Hessian is near the identity and tens of steps do what takes thousands in the coefficients themselves.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .newton import Optimum


def lbfgs(objective, start, tol: float, max_iter: int) -> Optimum:
    """Minimise from the point ``start`` until steps gain less than ``tol`` times the objective."""
    factor, shape = objective.preconditioner(start), start.X.shape

    def value_and_gradient(z):
        point = objective.at(start.X + factor.half(z.reshape(shape)))
        return point.value, factor.half_transposed(objective.gradient(point)).ravel()

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 0.1 * tol, "gtol": 0.0, "maxcor": 20}
    found = minimize(value_and_gradient, np.zeros(start.X.size), jac=True, method="L-BFGS-B", options=options)
    # status 2 is a line search that rounding errors ended: nothing is left to gain
    return Optimum(objective.at(start.X + factor.half(found.x.reshape(shape))), found.status != 1, found.nit)
