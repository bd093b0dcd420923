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


def minimised_2010(Phi, labels, ridge, max_iter=MOST_STEPS):
    """θ (b, c − 1) of the paper's objective: the last class has the score zero, there are no constants, and the ridge
    is λ/2 Σ θ² beside the mean log-loss."""
    shape = Phi.shape[1], labels.max()

    def value_and_gradient(x):
        theta = x.reshape(shape)
        loss, R = log_loss_and_slope(np.hstack([Phi @ theta, np.zeros((len(Phi), 1))]), labels)
        return loss + 0.5 * ridge * np.vdot(theta, theta), (Phi.T @ R[:, :-1] + ridge * theta).ravel()

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter}
    found = minimize(value_and_gradient, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(shape)


class PlainKLR(ClassifierMixin, BaseEstimator):
    """The baseline of 2010: all rows as centres, a Gaussian kernel on standardised columns, width and ridge given."""

    def __init__(self, width=1.0, ridge=1e-2, max_iter=MOST_STEPS):
        self.width = width
        self.ridge = ridge
        self.max_iter = max_iter

    def fit(self, X, y):
        self.classes_, labels = np.unique(y, return_inverse=True)
        self.scaler_ = StandardScaler().fit(X)
        self.centers_ = self.scaler_.transform(X)
        K = gaussian(self.centers_, self.centers_, self.width)
        self.coef_ = minimised_2010(K, labels, self.ridge, self.max_iter)
        return self

    def predict(self, X):
        F = gaussian(self.scaler_.transform(X), self.centers_, self.width) @ self.coef_
        return self.classes_[np.hstack([F, np.zeros((len(F), 1))]).argmax(axis=1)]
