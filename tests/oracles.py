"""Textbook versions in ten lines of float64 each. Slow and plain: the fast paths are tested against them."""

from __future__ import annotations

import numpy as np


def gaussian(X, Z, width):
    return np.array([[np.exp(-np.sum((x - z) ** 2) / (2 * width**2)) for z in Z] for x in X])


def laplacian(X, Z, width):
    return np.array([[np.exp(-np.sum(np.abs(x - z)) / width) for z in Z] for x in X])


def one_hot(y, c):
    return np.eye(c)[y]


def lspc_textbook(X, y, X_new, width, ridge):
    """Textbook Fig. 28.5: the class's own centres, ridge not divided by n, outputs rounded and normalised."""
    c = y.max() + 1
    k, K = gaussian(X, X, width), gaussian(X_new, X, width)
    coef, outputs = [], []
    for label in range(c):
        own = y == label
        ky = k[:, own]
        theta = np.linalg.solve(ky.T @ ky + ridge * np.eye(own.sum()), ky.T @ own.astype(float))
        coef.append(theta)
        outputs.append(np.maximum(0, K[:, own] @ theta))
    outputs = np.array(outputs).T
    return coef, outputs / outputs.sum(axis=1, keepdims=True)


def lspc_2010_fig3(X, y, width, ridge):
    """2010 Fig. 3: sums over samples and pairs of centres written out; H + λI with H divided by n."""
    n, c = len(X), y.max() + 1
    coef = []
    for label in range(c):
        own = X[y == label]
        phi = gaussian(X, own, width)
        H = sum(np.outer(p, p) for p in phi) / n
        h = gaussian(own, own, width).sum(axis=0) / n
        coef.append(np.linalg.solve(H + ridge * np.eye(len(own)), h))
    return coef


def ridge_solution(phi, targets, weight, penalty, ridge):
    """(ΦᵀWΦ + NλP)θ = ΦᵀWT with N the total weight."""
    weighted = phi.T * weight
    return np.linalg.solve(weighted @ phi + weight.sum() * ridge * penalty, weighted @ targets)


def loo_by_refitting(phi, targets, weight, penalty, ridge):
    """Refit n times, each time with one unit of one row's weight left out; basis and total ridge stay."""
    scores, total = np.empty_like(targets), weight.sum()
    for i in range(len(phi)):
        less = weight.copy()
        less[i] -= min(1.0, weight[i])
        weighted = phi.T * less
        theta = np.linalg.solve(weighted @ phi + total * ridge * penalty, weighted @ targets)
        scores[i] = phi[i] @ theta
    return scores


def similarity_solution(phi, Y, L, penalty, ridge, rkhs):
    """2010 Eq. 4 as one (bc) × (bc) system over φ(x, y) = k(x, z)·L(y, y')."""
    n, b = phi.shape
    c = Y.shape[1]
    H = np.kron(L @ L, phi.T @ phi / n)
    h = (phi.T @ Y @ L / n).T.ravel()
    P = np.kron(L, penalty) if rkhs else np.eye(b * c)
    # L may be singular: the pseudo-inverse picks the solution without components that carry no score
    alpha = np.linalg.pinv(H + ridge * P, rcond=1e-13) @ h
    return alpha.reshape(c, b).T @ L


def clip_link(scores):
    """2011 Eq. 6, row by row."""
    out = []
    for row in scores:
        rounded = [max(0.0, s) for s in row]
        total = sum(rounded)
        out.append([r / total for r in rounded] if total > 0 else [1 / len(row)] * len(row))
    return np.array(out)
