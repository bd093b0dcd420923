"""Import points for rows that do not fit into memory: a sample proposes them, and sums over all rows decide.

Near given coefficients, J of all rows is almost quadratic, and one pass sums its value, gradient and curvature. A pass
covers the points of the model and the most promising candidates of a sample. The candidates that decrease the quadratic
most are added one after the other (2001 B2*), and its minimum over all points is where the next pass starts. So a round
of the search and a Newton step (2001 Eq. 5) share a pass. No array here is as long as the rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import blas

from ...arrays import Device, is_tensor, to_numpy
from ...basis.basis import Basis
from ...basis.device_basis import DeviceBasis, basis_on
from ...data.all_rows import AllRows
from ...data.encoding import Encoding
from ...data.hashing import equal_rows, row_keys
from ...data.sweep import Statistic
from ...threads import one_blas_thread, row_slices
from ..losses import Multinomial
from .model import MAX_STEPS, NEGLIGIBLE_LOSS, ImportModel, Task, bordered
from .path import Growth, PathPoint, Settings, change, grow
from .search import Pool

#: Number of points chosen on the sample alone: they change J so much that a sample is enough.
FIRST_POINTS = 32
#: A round adds at most BATCH points, or the share BATCH_SHARE of the existing ones if that is more.
BATCH, BATCH_SHARE = 16, 0.5
#: Number of candidate rows of the sample per round, and the maximum that the user can ask for.
CANDIDATES, MOST_CANDIDATES = 1000, 4000
#: The sample proposes this many spare candidates for every point that a round may add with two classes, and fewer with
#: more classes, whose curvature has quadratic cost.
SPARE_CANDIDATES = 2.0
#: Maximum number of coefficients in a pass, whose sums have half its square of entries; candidates beyond it are left
#: out.
MOST_COEFFICIENTS = 3000
#: The final Newton step predicts a decrease below this share of J. As it is exact, another step, which would cost a
#: pass, would gain only about the square of it.
LAST_STEP = 1e-12
#: Objectives of all rows that differ by less than this share count as equal; maximum halvings of a step that increases
#: J.
LEVEL, HALVINGS = 1e-12, 10
#: Copies of the features needed to process a block of rows.
COPIES = 3
_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class OrthonormalBasis:
    """Ψ(x) = (1, L⁻¹Φ(x)) with K_SS = LLᵀ: a constant, and functions that are orthonormal in the RKHS."""

    basis: Basis
    lower: np.ndarray

    @property
    def n_columns(self) -> int:
        return 1 + len(self.lower)

    def __call__(self, X):
        """Features Ψ (n, q + 1), always in float64, on the device of the basis."""
        if isinstance(self.basis, DeviceBasis):
            return self._on_device(self.basis.device, X)
        psi = np.ones((len(X), self.n_columns))
        if len(self.lower):
            phi = self.basis(X.astype(np.float64, copy=False))
            psi[:, 1:] = linalg.solve_triangular(self.lower, phi.T, lower=True, overwrite_b=True, check_finite=False).T
        return psi

    def _on_device(self, device: Device, X):
        X, xp = device.to_float64(self.basis.to_device(X)), device.xp
        one = xp.ones_like(X[:, :1])
        if not len(self.lower):
            return one
        half = device.solve_lower(device.put(self.lower), self.basis(X).mT)
        return xp.concat([one, half.mT], axis=1)


@dataclass
class LossSums:
    """Σ wᵢ loss(Uᵢ), its gradient (a, k) in β, and for each pair p ≥ r of g columns of U the sum of w C_pr ψψᵀ (a, a).

    For p = r only the lower triangle is valid. g is k, or 1 if all columns share one curvature.
    """

    loss: float
    gradient: np.ndarray
    curvature: np.ndarray

    @classmethod
    def zeros(cls, a: int, k: int, g: int) -> LossSums:
        return cls(0.0, np.zeros((a, k)), np.zeros((g * (g + 1) // 2, a, a)))

    def add(self, psi: np.ndarray, loss: float, slope: np.ndarray, C: np.ndarray) -> LossSums:
        """Add some rows in place: Ψ (n, a), their loss, its gradient (n, k) and its curvature C (n, g, g)."""
        self.loss += loss
        if is_tensor(psi):
            return self._add_on_device(Device.of(psi), psi, slope, C)
        self.gradient += blas.dgemm(1.0, psi.T, slope.T, trans_b=1)
        for (p, r), total in zip(_pairs(C.shape[1]), self.curvature):
            # the transpose of a total is Fortran-ordered, so the product is accumulated without a copy
            if p == r:
                root = psi * np.sqrt(C[:, p, p, None])
                blas.dsyrk(1.0, root.T, beta=1.0, c=total.T, lower=0, overwrite_c=1)
            else:
                blas.dgemm(1.0, (psi * C[:, p, r, None]).T, psi.T, beta=1.0, c=total.T, trans_b=1, overwrite_c=1)
        return self

    def _add_on_device(self, device: Device, psi, slope: np.ndarray, C: np.ndarray) -> LossSums:
        """The same for features on a device; only the small sums are copied back."""
        self.gradient += device.get(psi.mT @ device.put(slope))
        for (p, r), total in zip(_pairs(C.shape[1]), self.curvature):
            total += device.get((psi * device.put(C[:, p, r, None])).mT @ psi)
        return self

    def __add__(self, other: LossSums) -> LossSums:
        return LossSums(self.loss + other.loss, self.gradient + other.gradient, self.curvature + other.curvature)

    def hessian(self) -> np.ndarray:
        """∂²/∂β² (ag, ag); β_jp has index jg + p."""
        (n_pairs, a, _), g = self.curvature.shape, 1
        while g * (g + 1) // 2 < n_pairs:
            g += 1
        H = np.empty((a, g, a, g))
        for (p, r), total in zip(_pairs(g), self.curvature):
            H[:, p, :, r] = np.tril(total) + np.tril(total, -1).T if p == r else total
            H[:, r, :, p] = H[:, p, :, r]
        return H.reshape(a * g, a * g)


def _pairs(k: int) -> list[tuple[int, int]]:
    return [(p, r) for p in range(k) for r in range(p + 1)]


@dataclass(frozen=True)
class LossSumsOf(Statistic):
    """The statistic loss, gradient and curvature at β (a, k) of the rows of a source."""

    features: OrthonormalBasis
    beta: np.ndarray
    loss: Multinomial
    encoding: Encoding

    @property
    def device(self):
        return self.features.basis.device

    @property
    def identity(self):
        basis = self.features.basis
        return "losses", basis.kernel, basis.centers, self.features.lower, self.beta, self.encoding

    def on_one_thread(self) -> LossSumsOf:
        features = self.features
        return replace(self, features=replace(features, basis=replace(features.basis, workers=1)))

    def zero(self) -> LossSums:
        a, k = self.beta.shape
        return LossSums.zeros(a, k, k)

    def add(self, total: LossSums, chunk) -> LossSums:
        a, k = self.beta.shape
        basis, chunk = self.features.basis, chunk._replace(X=self.features.basis.to_device(chunk.X))
        for part in self.encoding.parts(chunk, 8 * (COPIES * a + 3 * k * k), basis.block_bytes):
            psi = self.features(part.X)
            U = basis.apply(psi, self.beta) if is_tensor(psi) else blas.dgemm(1.0, self.beta.T, psi.T).T
            loss, P = self.loss.evaluate(U, part.codes, part.weight)
            slope = part.weight[:, None] * self.loss.residual(P, part.codes)
            total.add(psi, loss, slope, part.weight[:, None, None] * self.loss.curvature(P))
        return total


@dataclass
class FirstRows:
    """The index of the first row equal to each point."""

    first: np.ndarray

    def __add__(self, other: FirstRows) -> FirstRows:
        return FirstRows(np.minimum(self.first, other.first))


@dataclass(frozen=True)
class FirstRowsOf(Statistic):
    """The statistic that finds the rows equal to ``points`` (q, d), for sources whose chunks know their start."""

    points: np.ndarray

    @property
    def identity(self):
        return "first rows", self.points

    def zero(self) -> FirstRows:
        return FirstRows(np.full(len(self.points), np.iinfo(np.int64).max))

    def add(self, total: FirstRows, chunk) -> FirstRows:
        keys, own = row_keys(chunk.X), row_keys(self.points)
        for k in np.flatnonzero(total.first > chunk.start):
            rows = np.flatnonzero(keys == own[k])
            if len(rows):
                equal = equal_rows(to_numpy(chunk.X), rows, self.points, np.full(len(rows), k))
                total.first[k] = min([total.first[k], *(chunk.start + rows[equal][:1])])
        return total


class Expansion(NamedTuple):
    """J near β (a, k): its value, gradient (a, k) and Hessian (ag, ag), with g = k, or g = 1, which stands for H⊗I."""

    value: float
    gradient: np.ndarray
    hessian: np.ndarray

    @classmethod
    def of(cls, sums: LossSums, beta: np.ndarray, ridge: float) -> Expansion:
        """The sums plus the penalty ρ/2‖β‖², which excludes the constants."""
        gradient, H = sums.gradient.copy(), sums.hessian()
        gradient[1:] += ridge * beta[1:]
        diagonal = np.einsum("ii->i", H)
        diagonal[len(H) // len(beta) :] += ridge
        diagonal += len(H) * _EPS * diagonal.max()  # determines the constant of a certain class
        return cls(sums.loss + 0.5 * ridge * float(np.vdot(beta[1:], beta[1:])), gradient, H)

    def transformed(self, T: np.ndarray) -> Expansion:
        """The expansion in other, possibly fewer, coordinates β', where β = Tᵀβ' with T (a', a)."""
        return Expansion(self.value, T @ self.gradient, _both_sides(self.hessian, T))

    def step(self) -> tuple[np.ndarray, float]:
        """H⁻¹ applied to the gradient (a, k), and the predicted decrease of J."""
        flat = self.gradient.ravel()
        step = linalg.cho_solve(linalg.cho_factor(self.hessian, lower=True), flat)
        return step.reshape(self.gradient.shape), 0.5 * float(flat @ step)

    def eliminate_first(self, a: int) -> Expansion:
        """The expansion in the other coordinates, with the first a minimised out (a Schur complement)."""
        first = a * (len(self.hessian) // len(self.gradient))
        lower = np.linalg.cholesky(self.hessian[:first, :first])
        half = linalg.solve_triangular(lower, self.hessian[:first, first:], lower=True)
        rest = linalg.solve_triangular(lower, self.gradient[:a].reshape(first, -1), lower=True)
        gradient = self.gradient[a:] - (half.T @ rest).reshape(self.gradient[a:].shape)
        return Expansion(
            self.value - 0.5 * float(np.vdot(rest, rest)), gradient, self.hessian[first:, first:] - half.T @ half
        )


def _both_sides(H: np.ndarray, T: np.ndarray) -> np.ndarray:
    """(T⊗I)H(T⊗I)ᵀ for H (ak, ak) and T (a', a)."""
    b, a = T.shape
    k = len(H) // a
    half = (T @ H.reshape(a, k * a * k)).reshape(b * k, a * k)
    return (T @ half.T.reshape(a, k * b * k)).reshape(b * k, b * k)


def best_first(candidates: Expansion, resolution: float) -> Iterator[tuple[int, float]]:
    """Candidates in greedy order, each with its decrease of the quadratic given those before it.

    A block Cholesky factorisation that pivots on the largest ½g̃ᵀS⁻¹g̃ (2001 B2*).
    """
    m = len(candidates.gradient)
    g = len(candidates.hessian) // m
    T, t = candidates.hessian.reshape(m, g, m, g).copy(), candidates.gradient.reshape(m, g, -1).copy()
    sizes = np.einsum("lplp->l", T)
    is_open = sizes > 0
    while is_open.any():
        own = np.einsum("lplr->lpr", T)
        is_open &= np.einsum("lpp->l", own) > resolution * sizes
        usable = np.where(is_open[:, None, None], own, np.eye(g))
        decrease = 0.5 * np.einsum("lpc,lpc->l", t, np.linalg.solve(usable, t))
        best = int(np.argmax(np.where(is_open, decrease, -np.inf)))
        if not (is_open[best] and decrease[best] > 0):
            return
        yield best, float(decrease[best])
        is_open[best] = False
        lower = np.linalg.cholesky(usable[best])
        side = linalg.solve_triangular(lower, T[best].reshape(g, m * g), lower=True)
        T -= (side.T @ side).reshape(m, g, m, g)
        t -= (side.T @ linalg.solve_triangular(lower, t[best], lower=True)).reshape(t.shape)


def on_sample(model: ImportModel, columns: np.ndarray, inner: np.ndarray) -> Expansion:
    """The expansion in additional columns (n, m) on the model's own rows, with the mean curvature of the classes.

    ``inner`` (m, m) are their inner products in the RKHS.
    """
    task, a = model.task, model.psi.shape[1]
    slope, curvature = task.slope(model.P), task.rows.weight * task.loss.mean_curvature(model.P)
    sums = LossSums.zeros(a + columns.shape[1], slope.shape[1], 1)
    for rows in row_slices(len(task), 8 * COPIES * len(sums.gradient)):
        sums.add(np.hstack([model.psi[rows], columns[rows]]), 0.0, slope[rows], curvature[rows, None, None])
    here = Expansion.of(sums, _padded(model.beta, columns.shape[1]), model.ridge)
    here.hessian[a:, a:] += model.ridge * (inner - np.eye(len(inner)))
    return here.eliminate_first(a)


class Proposal(NamedTuple):
    """Rows of the sample, first the points of the model and then candidates, with the factor of their kernel matrix."""

    rows: list[int]
    lower: np.ndarray


def propose(model: ImportModel, pool: Pool, most: int) -> Proposal:
    """The points of a model of the sample, and the candidates that would be best next if the sample were all rows."""
    new = pool.residuals(model, slice(None)).normalised()
    if not len(new.rows):  # the points already span every row
        return Proposal(model.chosen, model.lower)
    inner = new.columns[new.rows] / np.sqrt(new.squared_norm)[:, None]
    order = (best for best, _ in best_first(on_sample(model, new.columns, inner), model.task.resolution))
    picked, corner = _independent(inner, order, most, model.task.resolution)
    rows = new.rows[picked]
    lower = bordered(model.lower, model.psi[rows, 1:].T, corner * np.sqrt(new.squared_norm[picked])[:, None])
    return Proposal([*model.chosen, *rows.tolist()], lower)


def _independent(inner: np.ndarray, order: Iterable[int], most: int, resolution: float) -> tuple[list[int], np.ndarray]:
    """The first of ``order`` that are linearly independent, and the factor of their inner products."""
    picked: list[int] = []
    corner = np.zeros((0, 0))
    for best in order:
        side = linalg.solve_triangular(corner, inner[picked, best], lower=True) if picked else np.zeros(0)
        squared_norm = inner[best, best] - side @ side
        if squared_norm > resolution:
            corner = bordered(corner, side[:, None], np.array([[np.sqrt(squared_norm)]]))
            picked.append(best)
        if len(picked) == most:
            break
    return picked, corner


class StreamedSearch:
    """The search for import points on all rows, at one ridge λ.

    ``task`` has the rows of the sample, ``all_rows`` makes the passes, and ``n_passes`` counts them. ``values`` are the
    objectives after every point, as predicted by the sample and then by the quadratics of all rows.
    """

    def __init__(
        self, task: Task, ridge: float, settings: Settings, all_rows: AllRows, encoding: Encoding, device=None
    ):
        self.task, self.settings, self.all_rows, self.encoding = task, settings, all_rows, encoding
        self.device = device
        self.mean_ridge, self.ridge = ridge, ridge * all_rows.total_weight
        self.chosen: list[int] = []
        self.lower = np.zeros((0, 0))
        # without points, the best constants are the logarithms of the class frequencies, kept above zero
        self.beta = task.loss.columns(np.log(np.maximum(task.rows.prior, _EPS)))[None]
        self.before, self.value_before = self.beta, np.inf
        self.values: list[float] = []
        self.n_passes = 0

    def run(self, candidates, seed: int, growth: Growth) -> tuple[ImportModel, PathPoint]:
        """Add points until the stopping rule holds, then converge; returns the model on the sample and its path
        point."""
        start = time.perf_counter()
        with one_blas_thread():
            self._begin(Pool(self.task, candidates, seed))
        gain, is_cut = self._grow(candidates, seed)
        value = self._converge()
        growth.entries += [(self.mean_ridge, q, value) for q, value in enumerate(self.values)]
        q, seconds = len(self.chosen), time.perf_counter() - start
        point = PathPoint(self.mean_ridge, value, q, np.nan, np.nan, seconds, self.beta, gain, is_cut)
        return self._on_sample(), point

    def _on_sample(self) -> ImportModel:
        """A model with the same points and coefficients on the rows of the sample."""
        ridge = self.mean_ridge * self.task.rows.total_weight
        return ImportModel(self.task, ridge, self.chosen, self.lower, self.beta)

    def _begin(self, pool: Pool) -> None:
        """Choose the first points by the search of 2001 on the sample."""
        model, unit = self._on_sample(), self.all_rows.total_weight / self.task.rows.total_weight

        def note():
            self.values.append(unit * model.value)

        model.converge()
        note()
        grow(model, pool, replace(self.settings, max_points=min(FIRST_POINTS, self._n_points_left())), note)
        self.chosen, self.lower, self.beta = model.chosen, model.lower, model.beta

    def _grow(self, candidates, seed: int) -> tuple[float, bool]:
        """Add points, one round per pass; returns the last relative change and whether ``max_points`` was reached."""
        gain = np.nan
        size = int(np.clip(0 if isinstance(candidates, str) else candidates, CANDIDATES, MOST_CANDIDATES))
        while self._n_points_left() > 0:
            batch = min(self._n_points_left(), max(BATCH, round(BATCH_SHARE * len(self.chosen))))
            proposal = self._propose(Pool(self.task, size, seed + self.n_passes), batch)
            if len(proposal.rows) == len(self.chosen):
                return gain, False
            here = self._expand(proposal)
            added, gain = self._take(here, proposal, batch)
            # candidates are fresh, so if the rule holds for the best of them, there are no better ones
            is_perfect = here.value <= NEGLIGIBLE_LOSS * self.all_rows.total_weight
            if added < min(batch, self.settings.lookback + 1) or is_perfect:
                return gain, False
        return gain, True

    def _n_points_left(self) -> int:
        """How many more points may be added."""
        most = len(self.task) if self.settings.max_points is None else self.settings.max_points
        return most - len(self.chosen)

    def _propose(self, pool: Pool, batch: int) -> Proposal:
        a, k = self.beta.shape
        wanted, affordable = round((1.0 + SPARE_CANDIDATES / k) * batch), MOST_COEFFICIENTS // k - a
        return propose(self._on_sample(), pool, min(wanted, max(affordable, batch)))

    def _expand(self, proposal: Proposal) -> Expansion:
        """One pass: J of all rows near β. While J has increased since the last pass, β moves half way back."""
        for _ in range(HALVINGS):
            here = self._pass(proposal)
            if here.value <= self.value_before + LEVEL * max(here.value, NEGLIGIBLE_LOSS * self.all_rows.total_weight):
                break
            self.beta = 0.5 * (self.beta + self.before)
        self.value_before = here.value
        return here

    def _pass(self, proposal: Proposal) -> Expansion:
        q, m = len(self.chosen), len(proposal.rows) - len(self.chosen)
        here = Basis(self.task.kernel, self.task.points(proposal.rows), workers=self.task.workers)
        basis = basis_on(here, self.device)
        beta = _padded(self.beta, m)
        assert isinstance(self.task.loss, Multinomial)
        statistic = LossSumsOf(OrthonormalBasis(basis, proposal.lower), beta, self.task.loss, self.encoding)
        sums = self.all_rows.sum(statistic, f"{q} import points, {m} candidates")
        self.n_passes += 1
        return Expansion.of(sums, beta, self.ridge)

    def _take(self, here: Expansion, proposal: Proposal, batch: int) -> tuple[int, float]:
        """Add the best candidates up to the stopping rule and move to the minimum; returns their number and the
        change."""
        a = 1 + len(self.chosen)
        corner = proposal.lower[a - 1 :, a - 1 :]
        # the residual of each candidate, normalised
        rest = here.eliminate_first(a).transformed(corner / np.linalg.norm(corner, axis=1, keepdims=True))
        self._correct(rest.value)
        picked, gain = [], np.nan
        for best, decrease in best_first(rest, self.task.resolution):
            picked.append(best)
            self.values.append(self.values[-1] - decrease)
            gain, share = change(self.values, self.settings.lookback)
            if len(picked) == batch or gain < share * self.settings.tol:
                break
        self._join(proposal, picked, here)
        return len(picked), gain

    def _correct(self, value: float) -> None:
        """Replace the last value by the exact one, and shift the earlier ones equally so that they stay comparable."""
        off = value - self.values[-1]
        self.values = [each + off for each in self.values]

    def _join(self, proposal: Proposal, picked: list[int], here: Expansion) -> None:
        """Add candidates to the model, and take a Newton step for all points together."""
        q = len(self.chosen)
        corner, T = _orthonormal(proposal.lower[q:, q:][picked])
        self.lower = bordered(self.lower, proposal.lower[q:, :q][picked].T, corner)
        self.chosen = [*self.chosen, *(proposal.rows[q + best] for best in picked)]
        self._step(here.transformed(linalg.block_diag(np.eye(q + 1), T)))

    def _step(self, here: Expansion) -> float:
        """Take a Newton step; returns the predicted decrease."""
        step, promised = here.step()
        self.before = _padded(self.beta, len(step) - len(self.beta))
        self.beta = self.before - step
        return promised

    def _converge(self) -> float:
        """Newton's method for the current points, one pass per step; returns the objective."""
        for _ in range(MAX_STEPS):
            here = self._expand(Proposal(self.chosen, self.lower))
            promised = self._step(here)
            if promised <= LAST_STEP * max(here.value, NEGLIGIBLE_LOSS * self.all_rows.total_weight):
                break
        self._correct(here.value - promised)
        return self.values[-1]


def _padded(beta: np.ndarray, m: int) -> np.ndarray:
    """β with zeros for m more points."""
    return np.vstack([beta, np.zeros((m, beta.shape[1]))])


def _orthonormal(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A lower triangular M with positive diagonal and orthonormal rows Q such that MQ = rows."""
    if not len(rows):
        return np.zeros((0, 0)), rows
    Q, R = linalg.qr(rows.T, mode="economic")
    sign = np.where(np.diag(R) < 0, -1.0, 1.0)
    return R.T * sign, (Q * sign).T
