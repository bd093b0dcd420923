"""Kernel logistic regression as the 2010 paper trains it: L-BFGS on the coefficients themselves, from zero."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler

#: minFunc, which the paper used, stops after so many steps.
MOST_STEPS = 500


def gaussian(X, Z, width) -> np.ndarray:
    squares = np.square(X).sum(axis=1)[:, None] - 2.0 * X @ Z.T + np.square(Z).sum(axis=1)
    return np.exp(np.minimum(-squares / (2.0 * width**2), 0.0))


def log_loss_and_slope(F, labels):
    """Mean log-loss of scores, and its derivative by the scores."""
    own, total = np.arange(len(F)), logsumexp(F, axis=1)
    R = np.exp(F - total[:, None])
    R[own, labels] -= 1.0
    return float(np.mean(total - F[own, labels])), R / len(F)


def minimised(Phi, K, labels, ridge, max_iter=MOST_STEPS):
    """SciPy's result for mean log-loss plus λ/2 Σ θᵀKθ over θ (b, c) and free constants (c,), one after the other."""
    b, c = len(K), labels.max() + 1

    def value_and_gradient(x):
        theta = x[: b * c].reshape(b, c)
        loss, R = log_loss_and_slope(Phi @ theta + x[b * c :], labels)
        pull = ridge * (K @ theta)
        return loss + 0.5 * np.vdot(theta, pull), np.concatenate([(Phi.T @ R + pull).ravel(), R.sum(axis=0)])

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter}
    return minimize(value_and_gradient, np.zeros((b + 1) * c), jac=True, method="L-BFGS-B", options=options)


class PlainKLR(ClassifierMixin, BaseEstimator):
    """All rows as centres, a Gaussian kernel on standardised columns, width and ridge given."""

    def __init__(self, width=1.0, ridge=1e-2, max_iter=MOST_STEPS):
        self.width = width
        self.ridge = ridge
        self.max_iter = max_iter

    def fit(self, X, y):
        self.classes_, labels = np.unique(y, return_inverse=True)
        self.scaler_ = StandardScaler().fit(X)
        self.centers_ = self.scaler_.transform(X)
        K = gaussian(self.centers_, self.centers_, self.width)
        x = minimised(K, K, labels, self.ridge, self.max_iter).x
        self.coef_, self.intercept_ = np.split(x.reshape(-1, len(self.classes_)), [len(K)])
        return self

    def predict(self, X):
        F = gaussian(self.scaler_.transform(X), self.centers_, self.width) @ self.coef_ + self.intercept_
        return self.classes_[F.argmax(axis=1)]
