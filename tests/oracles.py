"""Textbook versions in ten lines of float64 each. Slow and plain: the fast paths are tested against them."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import factorial

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import norm


def gaussian(X, Z, width):
    return np.array([[np.exp(-np.sum((x - z) ** 2) / (2 * width**2)) for z in Z] for x in X])


def laplacian(X, Z, width):
    return np.array([[np.exp(-np.sum(np.abs(x - z)) / width) for z in Z] for x in X])


def mixed_kernel(rows, others, width, centers):
    """exp(−Σ_j Δ_j/σ): |x − z| of numbers with the centre for None, plus 1 if one of them is None; else [x ≠ z]."""

    def differ(x, z, center):
        if center is None:  # a category
            return float(x != z)
        x, z, one_is_missing = (center if x is None else x), (center if z is None else z), (x is None) != (z is None)
        return abs(x - z) + one_is_missing

    return np.array([[np.exp(-sum(map(differ, r, o, centers)) / width) for o in others] for r in rows])


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


def left_out(X, labels, weight):
    """The weight (n, n) that all rows lose when each row is left out: one copy of draws, all copies of duplicates.

    Duplicates that contradict each other lose a copy each. Weights that are not all whole numbers count no copies.
    """
    X, labels = np.asarray(X), np.nan_to_num(np.reshape(labels, (len(weight), -1)), nan=2.0)
    counted, unit = np.asarray(weight) > 0, one_unit(weight)
    copies = np.where(counted, weight / np.where(counted, unit, 1.0), 0.0)
    equal = np.array([[same_row(a, b) for b in X] for a in X])
    same = equal & np.array([[same_row(a, b) for b in labels] for a in labels])
    contradicts = ((equal & ~same) & counted).any(axis=1)
    first = [i for i in np.flatnonzero(counted) if not (equal[i] & counted)[:i].any()]
    draws = are_draws(X[first], (equal @ copies)[first], contradicts[first])
    return np.where((contradicts | draws)[:, None], np.diag(unit), weight * same)


def one_unit(weight):
    """The weight of one copy of each row."""
    return np.minimum(weight, 1.0) if all(float(w).is_integer() for w in weight) else np.asarray(weight, float)


def repeat_by_chance(X, copies):
    """Whether, for some variable, the odds that two rows agree in it are at most 50 times as large if they agree in all
    others: a column, or an indicator with all others that no row has beside it."""
    pairs = np.outer(copies, copies)
    np.fill_diagonal(pairs, copies * (copies - 1.0))
    everyone = np.outer(copies, copies) / copies.sum() ** 2
    marks = [column == column.max() if len(np.unique(column)) == 2 else None for column in X.T]
    for j, own in enumerate(marks):
        if len(np.unique(X[:, j])) == 1:
            continue
        others = [k for k, mark in enumerate(marks) if own is not None and mark is not None and not (own & mark).any()]
        part = np.isin(np.arange(X.shape[1]), [j, *others])
        same, rest = ((X[:, None, who] == X[:, who]).all(axis=2) for who in (part, ~part))
        agree = everyone[same].sum()
        if pairs[rest & same].sum() * (1 - agree) <= 50 * agree * pairs[rest & ~same].sum():
            return True
    return False


def are_draws(X, copies, contradicts):
    """Whether copies of distinct rows are draws.

    They are if ten rows or fewer have three copies on average, or if half of all copies are of repeated rows, a tenth
    of which contradict each other, and they repeat by chance, or if there are three copies on average and the rows are
    half of all combinations of values, of which no column has more than 50. In the last two cases no column may tell
    half of the rows apart with values that are on no regular grid; in the second, this does not count for a single
    column and three copies.
    """
    repeated, many = copies > 1.0 + 1e-9, copies.mean() > 3.0 - 1e-9
    if not repeated.any() or (many and len(X) <= 10):
        return repeated.any()
    disagree = 2 * copies[repeated].sum() >= copies.sum() and contradicts.sum() >= 0.1 * repeated.sum()
    values = [np.unique(column) for column in X.T]
    values = [each for each in values if len(each) > 1]
    gaps = [np.diff(each) / np.diff(each).min() for each in values]
    regular = [np.abs(gap - gap.round()).max() <= 1e-3 and gap.sum() <= 10 * (len(gap) + 1) for gap in gaps]
    apart = any(len(v) > max(2, len(X) / 2) and not even for v, even in zip(values, regular))
    sizes, marks = [len(each) for each in values if len(each) > 2], []
    for column in X.T:
        if len(np.unique(column)) == 2:  # an indicator is one more value of others that exclude it
            own = set(np.flatnonzero(column == column.max()))
            marks.append([]) if all(own & set().union(*group) for group in marks) else None
            next(group for group in marks if not own & set().union(*group)).append(own)
    sizes += [len(group) + (len(set().union(*group)) < len(X)) for group in marks]
    filled = many and np.prod(sizes, dtype=float) <= 2 * len(X) and max([*sizes, *map(len, marks)], default=0) <= 50
    disagree = disagree and repeat_by_chance(X, copies)
    return (disagree and many and len(values) == 1) if apart else disagree or filled


def one_copy(weight):
    """The weight (n, n) that all rows lose if each row that is left out loses one copy."""
    return np.diag(one_unit(weight))


def loo_by_refitting(phi, targets, weight, penalty, ridge, removed=None):
    """Refit n times, each time without one row, or without the weights ``removed[i]``; basis and total ridge stay."""
    removed = left_out(phi, targets, weight) if removed is None else removed
    scores, total = np.empty_like(targets), weight.sum()
    for i, less in enumerate(weight - removed):
        weighted = phi.T * less
        theta = np.linalg.solve(weighted @ phi + total * ridge * penalty, weighted @ targets)
        scores[i] = phi[i] @ theta
    return scores


def class_wise_loo_by_refitting(X, y, weight, width, ridge, rkhs, clip_parameters, removed=None):
    """Refit n times without a row, and without its class's centre if no copy of the row is left in it."""
    total, c, scores = weight.sum(), y.max() + 1, np.zeros((len(X), y.max() + 1))
    for i, rest in enumerate(weight - (left_out(X, y, weight) if removed is None else removed)):
        for label in range(c):
            own = np.unique(X[(y == label) & (rest > 0)], axis=0)
            if not len(own):
                continue
            phi, penalty = gaussian(X, own, width), gaussian(own, own, width) if rkhs else np.eye(len(own))
            A = (phi.T * rest) @ phi + total * ridge * penalty
            theta = np.linalg.lstsq(A, (phi.T * rest) @ (y == label), rcond=None)[0]
            theta = np.maximum(theta, 0) if clip_parameters else theta
            scores[i, label] = (gaussian(X[[i]], own, width) @ theta).item()
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


def joint_solution(kernel, X, y, weight, centers, classes, ridge, total=None):
    """2010 Eq. 2 with the model of Eq. 4, term by term: α (b, c) for a kernel over pairs of a row and a class."""
    pairs = [(z, k) for z in centers for k in classes]
    phi = np.array([[[kernel(x, z, k, k2) for z, k2 in pairs] for k in classes] for x in X])  # (n, c, bc)
    H = sum(w * phi[i, k][:, None] * phi[i, k] for i, w in enumerate(weight) for k in range(len(classes)))
    h = sum(w * phi[i, classes.index(y[i])] for i, w in enumerate(weight))
    total = sum(weight) if total is None else total
    return np.linalg.solve(H + total * ridge * np.eye(len(pairs)), h).reshape(len(centers), len(classes))


def joint_scores(kernel, X, centers, classes, alpha):
    """2010 Eq. 4."""
    return np.array(
        [
            [
                sum(alpha[i, j] * kernel(x, z, k, k2) for i, z in enumerate(centers) for j, k2 in enumerate(classes))
                for k in classes
            ]
            for x in X
        ]
    )


def clip_link(scores):
    """2011 Eq. 6, row by row."""
    out = []
    for row in scores:
        rounded = [max(0.0, s) for s in row]
        total = sum(rounded)
        out.append([r / total for r in rounded] if total > 0 else [1 / len(row)] * len(row))
    return np.array(out)


def ivm_derivatives(phi, penalty, y, weight, rho, theta):
    """2001 Eq. 7 and 9 with one column a class: objective, gradient and Hessian, row by row; θ is (a, c)."""
    value = 0.5 * rho * np.sum(theta * (penalty @ theta))
    gradient = rho * penalty @ theta
    H = rho * np.kron(penalty, np.eye(theta.shape[1]))
    for features, label, w in zip(phi, y, weight):
        f = features @ theta
        p = np.exp(f - f.max()) / np.exp(f - f.max()).sum()
        value -= w * np.log(p[label])
        gradient += w * np.outer(features, p - np.eye(len(p))[label])
        H += w * np.kron(np.outer(features, features), np.diag(p) - np.outer(p, p))
    return value, gradient, H


def ivm_newton(phi, penalty, y, weight, rho, theta, steps):
    """2001 Eq. 5; the classes' common direction makes the Hessian singular, and the least-norm step leaves it alone."""
    for _ in range(steps):
        _, gradient, H = ivm_derivatives(phi, penalty, y, weight, rho, theta)
        theta = theta - np.linalg.lstsq(H, gradient.ravel(), rcond=1e-13)[0].reshape(theta.shape)
    return theta, ivm_derivatives(phi, penalty, y, weight, rho, theta)[0]


def ivm_features(K, S):
    """A constant and the kernel columns of S; the constant is not penalised."""
    penalty = np.zeros((len(S) + 1, len(S) + 1))
    penalty[1:, 1:] = K[np.ix_(S, S)]
    return np.column_stack([np.ones(len(K)), K[:, S]]), penalty


def ivm_by_scipy(K, S, y, weight, rho):
    """The minimum of the objective for given import points, by a general optimiser."""
    phi, penalty = ivm_features(K, S)
    shape = (phi.shape[1], y.max() + 1)

    def objective(flat):
        value, gradient, _ = ivm_derivatives(phi, penalty, y, weight, rho, flat.reshape(shape))
        return value, gradient.ravel()

    return minimize(objective, np.zeros(shape).ravel(), jac=True, method="BFGS", options={"gtol": 1e-9}).fun


def ivm_candidates(K, S, y, weight, rho, steps):
    """2001 B2 (many steps) and B2* (one step): each candidate in turn, from the fitted model of S."""
    theta, _ = ivm_newton(*ivm_features(K, S), y, weight, rho, np.zeros((len(S) + 1, y.max() + 1)), 30)
    start = np.vstack([theta, np.zeros(theta.shape[1])])
    candidates = [row for row in range(len(K)) if row not in S]
    return {row: ivm_newton(*ivm_features(K, [*S, row]), y, weight, rho, start, steps)[1] for row in candidates}


def ivm_path(K, y, weight, rhos, tol):
    """2001 C1–C5 with r = 1 and the exact B2: the import points at each λ, kept on the way down."""
    S, found = [], []
    for rho in rhos:
        value, converged = ivm_by_scipy(K, S, y, weight, rho), False
        while not converged:
            values = ivm_candidates(K, S, y, weight, rho, 10)
            best = min(values, key=values.get)
            S, converged, value = [*S, best], abs(values[best] - value) < tol * abs(values[best]), values[best]
        found.append(S)
    return found


def klr_objective(F, y, theta, K, ridge):
    """Mean log-loss of scores F plus λ/2 Σ θᵀKθ (2001 Eq. 9, divided by n)."""
    return np.mean(logsumexp(F, axis=1) - F[np.arange(len(y)), y]) + 0.5 * ridge * np.vdot(theta, K @ theta)


def fitted_klr(Phi, K, y, ridge, own=None, intercept=True):
    """The smallest value of that objective, by SciPy in coordinates where the penalty is the identity."""
    n, c = len(y), y.max() + 1
    blocks = [np.arange(len(K)) if own is None else np.flatnonzero(own[:, j]) for j in range(c)]
    # K = RRᵀ with the directions of rounding errors left out: their scores are zero
    values, vectors = zip(*(np.linalg.eigh(K[np.ix_(rows, rows)]) for rows in blocks))
    keep = [v > 1e-13 * v.max() for v in values]
    white = [Phi[:, rows] @ V[:, k] / np.sqrt(v[k]) for rows, v, V, k in zip(blocks, values, vectors, keep)]
    ends = np.cumsum([w.shape[1] for w in white])

    def value_and_gradient(x):
        parts = np.split(x[:-c], ends[:-1])
        F = np.column_stack([w @ part for w, part in zip(white, parts)]) + x[-c:]
        P = np.exp(F - logsumexp(F, axis=1, keepdims=True))
        R = (P - np.eye(c)[y]) / n
        value = np.mean(logsumexp(F, axis=1) - F[np.arange(n), y]) + 0.5 * ridge * x[:-c] @ x[:-c]
        return value, np.concatenate(
            [*(w.T @ r for w, r in zip(white, R.T)), intercept * R.sum(axis=0)]
        ) + ridge * np.append(x[:-c], np.zeros(c))

    options = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 50}
    return minimize(value_and_gradient, np.zeros(ends[-1] + c), jac=True, method="L-BFGS-B", options=options).fun


def surface_loss(phi, Y, weight, A):
    """2013 Eq. 4 over the total weight, row by row; the last row of A holds the constants (Eq. 2)."""
    total = 0.0
    for row, target, w in zip(phi, Y, weight):
        f = row @ A[:-1] + A[-1]
        total += w * (target @ f - 0.5 * f @ f)
    return total / weight.sum()


def nelder_mead_step(points, F):
    """2013 Algorithm 1, one loop, for points in falling order of F; the same order afterwards."""
    values = [F(e) for e in points]
    e0, worst = points[:-1].mean(axis=0), points[-1]
    er = 2 * e0 - worst
    if F(er) > values[-2]:
        et = e0 + 2 * (e0 - worst)
        points[-1] = et if F(et) > F(er) else er
    else:
        ec = worst + 0.5 * (e0 - worst)
        if F(ec) >= values[-2]:
            points[-1] = ec
        else:
            points[1:] = points[0] + 0.5 * (points[1:] - points[0])
    return points[np.argsort([-F(e) for e in points], kind="stable")]


def hmm_log_likelihood(frames, start, transition, mean, variance):
    """log p(x | model) with diagonal covariances: the forward recursion in logarithms, one state at a time."""
    density = [-0.5 * ((frames - m) ** 2 / v + np.log(2 * np.pi * v)).sum(axis=1) for m, v in zip(mean, variance)]
    alpha = np.log(start) + [d[0] for d in density]
    for t in range(1, len(frames)):
        alpha = np.array([np.logaddexp.reduce(alpha + np.log(transition[:, j])) + d[t] for j, d in enumerate(density)])
    return np.logaddexp.reduce(alpha)


def spectrum(x, z, n):
    """The cosine of the counts of substrings of length n."""
    counts = [Counter(s[i : i + n] for i in range(len(s) - n + 1)) for s in (x, z)]
    product = sum(counts[0][part] * counts[1][part] for part in counts[0])
    return product / np.sqrt(np.prod([sum(v * v for v in c.values()) for c in counts], dtype=float))


def clipped(K, k_new):
    """A kernel matrix without its negative eigenvalues, and new rows of features that go with it."""
    values, vectors = np.linalg.eigh(K)
    kept = vectors[:, values > 0]
    return kept * values[values > 0] @ kept.T, k_new @ kept @ kept.T


def bag_of_features(items, words, n_neighbors, spread):
    """Counts of words, each descriptor shared among its nearest words by exp(−d²/2s²)."""
    counts = np.zeros((len(items), len(words)))
    for row, item in zip(counts, items):
        for descriptor in item:
            square = np.array([np.sum((descriptor - word) ** 2) for word in words])
            nearest = np.argsort(square, kind="stable")[:n_neighbors]
            weight = np.exp(-square[nearest] / (2 * spread**2))
            row[nearest] += weight / weight.sum()
    return counts


def tags_by_rows(phi, Y, weight, penalty, ridge, X=None):
    """Least squares of tags of which some are missing (NaN), one tag at a time on the rows that have it.

    Coefficients (b, L) of the tags and of their constants, and the leave-one-out scores of both (n, L); where a row
    lacks a tag, its score by the model itself.
    """
    coef, loo, removed = [], [], left_out(phi if X is None else X, Y, np.where(np.isnan(Y).all(axis=1), 0.0, weight))
    for tag in Y.T:
        has = ~np.isnan(tag)
        targets = np.column_stack([tag[has], np.ones(has.sum())])
        coef.append(ridge_solution(phi[has], targets, weight[has], penalty, ridge))
        scores = phi @ coef[-1]
        scores[has] = loo_by_refitting(phi[has], targets, weight[has], penalty, ridge, removed[np.ix_(has, has)])
        loo.append(scores)
    return (np.stack(part, axis=-1).transpose(1, 0, 2) for part in (coef, loo))


def same_row(a, b):
    """Equality of rows, decided value by value; −0 equals 0."""
    return all(x == z for x, z in zip(a, b))


def merged_rows(X, labels, weight):
    """Rows of positive weight as (row, label, part that leave-one-out takes) -> summed weight, by comparing values."""
    out: dict[tuple, float] = {}
    for x, label, w in zip(X, labels, weight):
        if w > 0:
            key = tuple(x + 0.0), tuple(np.atleast_1d(label)), min(w, 1.0)
            out[key] = out.get(key, 0.0) + w
    return out


def kernel_ridge(K, K_new, targets, weight, ridge):
    """Dual form on all rows, copies included: scores K_new(K + NλW⁻¹)⁻¹T, and the system; weights are positive."""
    A = K + weight.sum() * ridge * np.diag(1.0 / weight)
    return K_new @ np.linalg.solve(A, targets), A


def kernel_ridge_loo(K, targets, weight, ridge, removed):
    """Scores of every row by a refit without it, and the systems; the total ridge stays."""
    total, scores, systems = weight.sum(), np.empty_like(targets), []
    for i, less in enumerate(weight - removed):
        left = np.flatnonzero(less > 0)
        systems.append(K[np.ix_(left, left)] + total * ridge * np.diag(1.0 / less[left]))
        scores[i] = K[i, left] @ np.linalg.solve(systems[-1], targets[left])
    return scores, systems


def class_wise(kernel, X, y, weight, X_new, Z, owner, ridge, rkhs, total=None):
    """2010 Eq. 7: every class on its own centres; a class without any has a score of zero. Scores and systems."""
    total = weight.sum() if total is None else total
    scores, systems = np.zeros((len(X_new), owner.max() + 1)), []
    for label in np.unique(owner):
        own = Z[owner == label]
        phi, P = kernel(X, own), kernel(own, own) if rkhs else np.eye(len(own))
        systems.append((phi.T * weight) @ phi + total * ridge * P)
        theta = np.linalg.solve(systems[-1], (phi.T * weight) @ (y == label))
        scores[:, label] = kernel(X_new, own) @ theta
    return scores, systems


def class_wise_loo(kernel, X, y, weight, Z, owner, ridge, rkhs):
    """Without a row, its centre goes too unless a copy of the row in its class is left; and the systems."""
    scores, systems = np.zeros((len(X), owner.max() + 1)), []
    for i, less in enumerate(weight - left_out(X, y, weight)):
        alive = [any(same_row(z, x) for x in X[(less > 0) & (y == c)]) for z, c in zip(Z, owner)]
        keep = np.array([kept or not (c == y[i] and same_row(z, X[i])) for kept, z, c in zip(alive, Z, owner)])
        found = class_wise(kernel, X, y, less, X[i : i + 1], Z[keep], owner[keep], ridge, rkhs, weight.sum())
        scores[i, : found[0].shape[1]] = found[0][0]
        systems += found[1]
    return scores, systems


def klr_fit(phi, penalty, targets, weight, ridge, steps=200, intercept=True, base=False):
    """Newton's method for kernel logistic regression with a free constant: scores of the rows, and coefficients.

    The classes' common direction is singular, and the least-norm step leaves it alone; halved until it descends. With
    ``base`` the last class has the score zero (2001 Eq. 7).
    """
    n, b = phi.shape
    c, rho = targets.shape[1], weight.sum() * ridge
    Phi, P = np.column_stack([phi, np.ones((n, int(intercept)))]), np.zeros((b + intercept, b + intercept))
    P[:b, :b] = rho * penalty
    C = np.eye(c, c - base)

    def value(theta):
        F = Phi @ theta @ C.T
        return weight @ (logsumexp(F, axis=1) - np.sum(targets * F, axis=1)) + 0.5 * np.sum(theta * (P @ theta))

    theta = np.zeros((b + intercept, c - base))
    for _ in range(steps):
        F = Phi @ theta @ C.T
        p = np.exp(F - logsumexp(F, axis=1, keepdims=True))
        gradient = (Phi.T * weight) @ (p - targets) @ C + P @ theta
        H = np.kron(P, np.eye(c - base))
        for row, q, w in zip(Phi, p, weight):
            H += w * np.kron(np.outer(row, row), C.T @ (np.diag(q) - np.outer(q, q)) @ C)
        step, t = np.linalg.lstsq(H, gradient.ravel(), rcond=1e-14)[0].reshape(theta.shape), 1.0
        while value(theta - t * step) > value(theta) and t > 1e-10:
            t /= 2
        theta = theta - t * step
        if np.sum(step * gradient) < 1e-14 * max(1.0, value(theta)):
            break
    return Phi @ theta @ C.T, theta @ C.T


def klr_loo(phi, penalty, targets, weight, ridge, removed=None, **form):
    """Scores of every row by a refit without it; basis and total ridge stay."""
    scores = np.empty_like(targets)
    for i, less in enumerate(weight - (left_out(phi, targets, weight) if removed is None else removed)):
        theta = klr_fit(phi, penalty, targets, less, ridge * weight.sum() / less.sum(), **form)[1]
        scores[i] = np.append(phi[i], 1.0)[: len(theta)] @ theta
    return scores


def stochastic_ascent(phi, y, theta, rows, step):
    """Textbook Fig. 28.1: for each row drawn, θ ← θ + ε(δ − q)φ."""
    for i in rows:
        q = np.exp(phi[i] @ theta)
        theta = theta + step * np.outer(phi[i], np.eye(theta.shape[1])[y[i]] - q / q.sum())
    return theta


def surface_by_scipy(phi, Y, weight):
    """2013 Eq. 4 under its constraints by a general optimiser: the largest value."""
    Phi, c = np.column_stack([phi, np.ones(len(phi))]), Y.shape[1]
    share, total = weight / weight.sum(), np.append(np.zeros(phi.shape[1]), 1.0)
    H, h = (Phi.T * share) @ Phi, (Phi.T * share) @ Y

    def minus(flat):
        A = flat.reshape(-1, c)
        return 0.5 * np.sum(A * (H @ A)) - np.sum(h * A), (H @ A - h).ravel()

    sums = {"type": "eq", "fun": lambda x: x.reshape(-1, c).sum(axis=1) - total}
    start = np.repeat(total[:, None] / c, c, axis=1).ravel()
    options = {"ftol": 1e-14, "maxiter": 1000}
    bounds = [(-1, 1)] * start.size
    return -minimize(minus, start, jac=True, method="SLSQP", bounds=bounds, constraints=[sums], options=options).fun


def weighted_quantile(x, weight, level):
    """The smallest value whose share of the weight reaches the level, value by value."""
    for value in sorted(x):
        if weight[x <= value].sum() >= (level - 1e-12) * weight.sum():
            return value
    raise AssertionError


def robust_scaling(X, weight, X_new):
    """Median and quartile range, squashed smoothly beyond three of these; two values become 0 and 1."""
    out = np.empty_like(X_new, dtype=float)
    for j, column in enumerate(X.T):
        low, middle, high = (weighted_quantile(column, weight, level) for level in (0.25, 0.5, 0.75))
        if len(set(column)) <= 2:
            out[:, j] = (X_new[:, j] - column.min()) / ((column.max() - column.min()) or 1.0)
            continue
        spread = high - low if high > low else column.max() / 2 - column.min() / 2
        z = (X_new[:, j] - middle) / spread
        out[:, j] = z / np.sqrt(1 + (z / 3) ** 2)
    return out


def quantile_scaling(X, weight, X_new):
    """Normal scores of the ranks of robust values, those of ties in their middle, over the normal quartile range."""
    Z, Z_new = np.round(robust_scaling(X, weight, X), 9), robust_scaling(X, weight, X_new)
    for j, column in enumerate(Z.T):
        values = np.unique(column)
        if len(values) <= 2:
            continue
        below, ties = (np.array([weight[test(column, v)].sum() for v in values]) for test in (np.less, np.equal))
        scores = np.clip(norm.ppf((below + ties / 2) / weight.sum()), -3, 3) / (norm.ppf(0.75) - norm.ppf(0.25))
        Z_new[:, j] = np.interp(Z_new[:, j], values, scores)
    return Z_new


def standard_scaling(X, weight, X_new):
    """Mean zero and variance one, in long doubles; a constant column becomes zero."""
    share, constant = (weight / weight.sum()).astype(np.longdouble), (X[:1] == X).all(axis=0)
    mean = np.where(constant, X[0], share @ X.astype(np.longdouble))
    deviation = np.sqrt(share @ np.square(X - mean))
    return ((X_new - mean) / np.where(constant, 1.0, deviation)).astype(float)


def weighted_klr_objective(F, targets, weight, theta, K, ridge):
    """Weighted mean log-loss of scores F plus λ/2 Σ θᵀKθ."""
    loss = weight @ (logsumexp(F, axis=1) - np.sum(targets * F, axis=1)) / weight.sum()
    return loss + 0.5 * ridge * np.vdot(theta, K @ theta)


def calibrated_softmax(scores, link):
    """One row of scores by the formula of the link: p ∝ exp(log π + a·(ψ(q) − ψ(π)) + o·g), ψ(q) = log softplus(κq).

    Then one more row, drawn from the prior, has its share in the result.
    """
    g = sum(scores)
    logits = []
    for s, prior, slope, offset in zip(scores, link.prior, link.slope, link.offset):
        q = min(max(s + (1 - g) * prior, link.span[0]), link.span[1])
        there, here = (np.log(np.logaddexp(0.0, link.sharpness * each)) for each in (q, prior))
        logits.append(np.log(prior) + slope * (there - here) + offset * min(max(g, 0.0), 1.0))
    return (1.0 - link.doubt) * np.exp(np.array(logits) - logsumexp(logits)) + link.doubt * link.prior / sum(link.prior)


def learnt_kernel(X, Z, weights, widths, mixture, factors=()):
    """The mixture of four kernels over weighted columns, pair by pair (METHODS §7); each has weights of its own."""
    first, second, third = np.asarray(weights) * (np.array(factors) if factors else np.ones((3, 1)))
    u = np.square(third) / np.sum(np.square(third))
    K = np.empty((len(X), len(Z)))
    for i, x in enumerate(X):
        for k, z in enumerate(Z):
            D = np.abs(x - z)
            E = u * np.exp(-third * D / widths[2])
            pairs = sum(E[j] * E[m] for j in range(len(E)) for m in range(len(E)) if m != j)
            whole = max(1.0 - np.sum(u**2), 2e-3)
            near = np.exp(-np.sum(first * D) / widths[0]), np.exp(-np.sum((second * D / widths[1]) ** 2))
            terms = *near, E.sum(), pairs / whole
            K[i, k] = np.dot(mixture, terms)
    return K


def loo_without_groups(K, Y, noise, groups):
    """Scores of each row by kernel ridge regression on the rows of all other groups; ``noise`` (n,) is ν/w."""
    scores = np.empty_like(Y)
    for g in np.unique(groups):
        out, kept = groups == g, groups != g
        coef = np.linalg.solve(K[np.ix_(kept, kept)] + np.diag(noise[kept]), Y[kept])
        scores[out] = K[np.ix_(out, kept)] @ coef
    return scores


def slopes_by_differences(f, x, step):
    """Derivatives of f at x by differences of fourth order."""
    found = np.empty_like(x)
    for i in range(len(x)):
        e = np.zeros_like(x)
        e[i] = step
        found[i] = (8 * (f(x + e) - f(x - e)) - (f(x + 2 * e) - f(x - 2 * e))) / (12 * step)
    return found


def shapley_by_subsets(f, x, background):
    """Shapley values (d, c) of f at x over all subsets; absent columns are averaged over the rows of the background."""
    d, subsets = len(x), list(product((False, True), repeat=len(x)))
    value = {S: f(np.where(S, x, background)).mean(axis=0) for S in subsets}
    values = np.zeros((d, len(value[subsets[0]])))
    for S in subsets:
        for j in np.flatnonzero(~np.array(S)):
            share = factorial(sum(S)) * factorial(d - sum(S) - 1) / factorial(d)
            values[j] += share * (value[(*S[:j], True, *S[j + 1 :])] - value[S])
    return values, value[subsets[0]]


def chance_of_hits(p, hits):
    """Two-sided probability of a number of independent hits at least as far out, by convolution of all rows."""
    mass = np.ones(1)
    for each in p:
        mass = np.convolve(mass, [1.0 - each, each])
    return min(1.0, 2.0 * min(mass[: hits + 1].sum(), mass[hits:].sum()))


def distance_of_numbers(a, b):
    """Largest difference of the shares of values up to any value."""
    a, b = np.asarray(a), np.asarray(b)
    return max(abs((a <= cut).mean() - (b <= cut).mean()) for cut in [*a, *b])


def local_scores(kernel, regions, shared, X, Y, noise, X_new) -> np.ndarray:
    """Σ_r g_r(x)·f_r(x): each region has kernel k between its own rows, and k(x, z)k(z, z)⁻¹k(z, x') elsewhere."""
    lift = lambda Z: kernel(Z, shared) @ np.linalg.pinv(kernel(shared, shared), hermitian=True)  # noqa: E731
    Q, K, same = lift(X) @ kernel(shared, X), kernel(X, X), (X[:, None] == X[None]).all(axis=2)
    out = np.zeros((len(X_new), Y.shape[1]))
    for (where, _), (new, gate) in zip(regions.inside(X), regions.inside(X_new)):
        own = np.isin(np.arange(len(X)), where)
        G = np.where((own[:, None] & own) | same, K, Q) + noise * np.eye(len(X))
        to_rows = np.where(own, kernel(X_new[new], X), lift(X_new[new]) @ kernel(shared, X))
        out[new] += gate[:, None] * (to_rows @ np.linalg.solve(G, Y))
    return out


def local_leave_one_out(kernel, regions, shared, X, Y, noise, with_copies=False) -> np.ndarray:
    """The score of each row by the local models without it, or without all rows that are equal to it."""
    numbers = np.arange(len(X))
    rest = [~np.array([same_row(x, z) for z in X]) if with_copies else numbers != i for i, x in enumerate(X)]
    return np.vstack([local_scores(kernel, regions, shared, X[r], Y[r], noise, X[[i]]) for i, r in enumerate(rest)])
