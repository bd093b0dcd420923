"""The leave-one-out log-loss of a sample as a function of all parameters, and its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.special import expit

from ...data.rows import Rows
from ...links import log_softplus, positive_prior
from .pairs import SamplePairs
from .parameters import START, Layout

#: Widths (standard deviations) of the prior of weights, widths and mixture around their start. Those of the link are
#: the penalties of :class:`~kproba.links.SoftmaxFit`.
SPREAD = {"weights": 1.0, "widths": 2**0.5, "mixture": 2.0}
LINK_PENALTY = {"tilt": 1.0, "offset": 0.2, "sharpness": 0.1}


class LeaveOneOut(NamedTuple):
    """Exact leave-one-out of ridge regression with kernel matrix G = K + ν/w (METHODS §7): Γ = G⁻¹, α = ΓY."""

    scores: np.ndarray
    inverse: np.ndarray
    alpha: np.ndarray
    blocks: list[np.ndarray] | None

    @classmethod
    def of(cls, G: np.ndarray, Y: np.ndarray, blocks: list[np.ndarray] | None = None) -> LeaveOneOut:
        """Leave out single rows, s = Y − α/γ with γ = diag Γ, or the rows of each block together: Y − Γ_gg⁻¹α_g.

        Only the upper triangle of G is read; G is overwritten by its inverse.
        """
        factor, info = linalg.lapack.dpotrf(G.T, lower=1, overwrite_a=1, clean=0)
        if info:
            raise np.linalg.LinAlgError("The kernel matrix of a sample is not positive definite.")
        inverse = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)[0].T
        np.copyto(inverse, inverse.T, where=np.tri(len(Y), k=-1, dtype=bool))
        found = cls(Y, inverse, inverse @ Y, blocks)
        return found._replace(scores=Y - found._divided(found.alpha))

    def _divided(self, values: np.ndarray) -> np.ndarray:
        """values/γ, or Γ_gg⁻¹·values_g for every block."""
        if self.blocks is None:
            return values / np.diagonal(self.inverse)[:, None]
        out = np.empty_like(values)
        for rows in self.blocks:
            out[rows] = linalg.solve(self.inverse[np.ix_(rows, rows)], values[rows], assume_a="pos")
        return out

    def gradient(self, R: np.ndarray) -> np.ndarray:
        """∂L/∂K (m, m) in float32, from R = ∂L/∂s: Γ(Bαᵀ − (Beᵀ)Γ), made symmetric, with B = R/γ and e = α/γ.

        METHODS §7. Of Beᵀ only the diagonal counts, or its blocks, because the rest never meets a row's own score.
        """
        B, e = self._divided(R), self._divided(self.alpha)
        if self.blocks is None:
            pulled = np.einsum("ik,ik->i", B, e)[:, None] * self.inverse
        else:
            pulled = np.empty_like(self.inverse)
            for rows in self.blocks:
                pulled[rows] = (B[rows] @ e[rows].T) @ self.inverse[rows]
        inner = (B @ self.alpha.T - pulled).astype(np.float32)
        whole = self.inverse.astype(np.float32) @ inner
        return 0.5 * (whole + whole.T)


@dataclass(frozen=True)
class ClassLoss:
    """Log-loss of class scores through the calibrated softmax (:class:`~kproba.links.CalibratedSoftmax`)."""

    prior: np.ndarray
    n: float

    def __call__(self, part: dict, s: np.ndarray, Y: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray, dict]:
        """The loss of scores s (m, c), its gradient by s, and by the parameters of the link."""
        prior, kappa = self.prior, float(np.exp(part["sharpness"][0]))
        slope = np.exp(part["slope"] + part["tilt"])
        q = s + (1.0 - s.sum(axis=1, keepdims=True)) * prior
        rise = log_softplus(kappa * q) - log_softplus(kappa * prior)
        logits = np.log(prior) + slope * rise + part["offset"]
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        targets = Y + (prior - Y) / (self.n + 1.0)
        loss = float(share @ (np.log(total[:, 0]) - np.einsum("ik,ik->i", targets, logits)))

        residual = share[:, None] * (p - targets)
        of_q, of_prior = slope_of_log_softplus(kappa * q), slope_of_log_softplus(kappa * prior)
        by_q = residual * slope * (kappa * of_q)
        by_slope = slope * np.einsum("ik,ik->k", residual, rise)
        by_sharpness = slope @ np.einsum("ik,ik->k", residual, kappa * (q * of_q - prior * of_prior))
        by_link = {"sharpness": by_sharpness, "slope": by_slope.sum(), "tilt": by_slope, "offset": residual.sum(axis=0)}
        return loss, by_q - (by_q @ prior)[:, None], by_link


@dataclass(frozen=True)
class TagLoss:
    """Mean log-loss over tags, with one slope and sharpness for all of them; the last score is the constant's."""

    prior: np.ndarray
    n: float

    def __call__(self, part: dict, s: np.ndarray, Y: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray, dict]:
        prior, kappa, slope = self.prior, float(np.exp(part["sharpness"][0])), float(np.exp(part["slope"][0]))
        q = s[:, :-1] + (1.0 - s[:, -1:]) * prior
        both = ((q, 1.0), (1.0 - q, -1.0), (prior, -1.0), (1.0 - prior, 1.0))
        rise = sum(sign * log_softplus(kappa * z) for z, sign in both)
        by_kappa = sum(sign * kappa * z * slope_of_log_softplus(kappa * z) for z, sign in both)
        odds = slope * rise + np.log(prior / (1.0 - prior))
        targets = Y[:, :-1] + (prior - Y[:, :-1]) / (self.n + 1.0)
        weight = share[:, None] / len(prior)
        loss = float(np.sum(weight * (np.logaddexp(0.0, odds) - targets * odds)))

        residual = weight * (expit(odds) - targets)
        by_q = residual * slope * kappa * (slope_of_log_softplus(kappa * q) + slope_of_log_softplus(kappa * (1.0 - q)))
        by_scores = np.hstack([by_q, -(by_q @ prior)[:, None]])
        by_link = {"sharpness": slope * np.sum(residual * by_kappa), "slope": slope * np.sum(residual * rise)}
        return loss, by_scores, by_link


def blocks_of(together: np.ndarray | None) -> list[np.ndarray] | None:
    """The rows of each group; None if there are no groups."""
    if together is None:
        return None
    number = np.unique(together, return_inverse=True)[1].ravel()
    return np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1])


def loss_of(rows: Rows, n: float) -> ClassLoss | TagLoss:
    """The loss of the rows; targets are drawn towards the prior by the weight of one row among n."""
    return (TagLoss if rows.is_multilabel else ClassLoss)(positive_prior(rows), n)


def slope_of_log_softplus(z: np.ndarray) -> np.ndarray:
    """d/dz log log(1 + eᶻ), which is 1 to working precision below −30."""
    bounded = np.maximum(z, -30.0)
    small = np.exp(-np.abs(bounded))
    softplus = np.maximum(bounded, 0.0) + np.log1p(small)
    return np.where(z < -30.0, 1.0, np.where(bounded > 0, 1.0, small) / ((1.0 + small) * softplus))


class Objective:
    """Leave-one-out log-loss of samples of ``rows``, minus the logarithm of the prior over their number."""

    def __init__(self, rows: Rows, start: np.ndarray, layout: Layout, m: int):
        self.rows, self.layout, self.start = rows, layout, layout.split(start)
        self.loss = loss_of(rows, rows.total_weight)
        self.pairs = SamplePairs(m, layout.n_columns, layout.has_sums)
        self._G = np.empty((m, m))
        self._blocks: list[np.ndarray] | None = None

    def load(self, sample: np.ndarray) -> None:
        """Take the rows of a sample."""
        self.pairs.load(self.rows.X[sample])
        self._Y, self._weight = self.rows.targets(sample), self.rows.weight[sample]
        together = self.rows.together
        self._blocks = None if together is None else blocks_of(together[sample])

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss and gradient of the sample that is loaded."""
        part, pairs, G = self.layout.split(x), self.pairs, self._G
        values = pairs.values(part["weights"], part["widths"])
        amplitudes, noise = np.exp(part["mixture"]), float(np.exp(part["noise"][0])) / self._weight
        G.reshape(-1)[pairs.upper] = amplitudes.astype(np.float32) @ values.each
        np.fill_diagonal(G, amplitudes @ values.at_zero + noise)
        found = LeaveOneOut.of(G, self._Y, self._blocks)
        loss, R, by_link = self.loss(part, found.scores, self._Y, self._weight / self._weight.sum())
        V = found.gradient(R)
        diagonal = np.diagonal(V)
        v, trace = 2.0 * V.reshape(-1)[pairs.upper], float(diagonal.sum())
        of_kernel = pairs.gradient(values, v, trace, part["weights"], part["widths"], part["mixture"])
        gradient = self.layout.join({**of_kernel, "noise": diagonal @ noise, **by_link})
        surprise, by_prior = self._surprise(part)
        n = self.rows.total_weight
        return loss + surprise / n, gradient + by_prior / n

    def _surprise(self, part: dict) -> tuple[float, np.ndarray]:
        """Minus the logarithm of the prior, and its gradient."""
        value, gradient = 0.0, {}
        for name, spread in SPREAD.items():
            away = part[name] - (part[name].mean() if name == "weights" else self.start[name])
            value += float(away @ away) / (2.0 * spread**2)
            gradient[name] = away / spread**2
        for name, penalty in LINK_PENALTY.items():
            away = part[name] - (START["sharpness"] if name == "sharpness" else 0.0)
            value += penalty * float(away @ away)
            gradient[name] = 2.0 * penalty * away
        return value, self.layout.join(gradient)
