"""Gaussian hidden Markov models, one per sequence, and the likelihoods of many sequences under many models.

hmmlearn fits the models. The likelihoods are computed here: the forward recursion runs frame by frame for all sequences
and models at once, so a step is one matrix product and a few elementwise operations.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass, replace

import joblib
import numpy as np
from scipy.special import logsumexp

from ..data.items import Sequences
from ..exceptions import DegenerateModelWarning
from ..messages import needed, warn
from ..progress import Progress
from ..threads import fill_tiles, row_slices

COVARIANCES = ("diag", "spherical", "full", "tied")
#: Initial probability of staying in a state.
STICKY = 0.8
#: Added to the counts of initial states and transitions, so that unseen ones keep a positive probability.
PSEUDO_COUNT = 0.1
MAX_ITERATIONS, TOLERANCE = 20, 1e-2
#: Sequences per job; fewer than two jobs are not worth a process.
SEQUENCES_PER_JOB = 64
#: If the scaled probabilities of a step fall below this, the recursion is repeated in logarithms.
UNDERFLOW = 1e-200


@dataclass(frozen=True)
class Spec:
    """Model settings. The prior on variances is worth ``prior_frames`` frames of ``prior_variance``."""

    n_states: int
    covariance_type: str
    prior_variance: float
    prior_frames: float


@dataclass(frozen=True)
class Models:
    """m models with S states and d coefficients.

    ``start`` (m, S), ``transition`` (m, S, S), ``mean`` (m, S, d), and the covariances: diagonals (m, S, d) or full
    matrices (m, S, d, d).
    """

    start: np.ndarray
    transition: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        return self.start, self.transition, self.mean, self.covariance

    def taken(self, index) -> Models:
        return Models(*(part[index] for part in self.parts))

    @classmethod
    def stacked(cls, models: list[Models]) -> Models:
        return cls(*(np.concatenate(parts) for parts in zip(*(each.parts for each in models))))


def fit_models(X: Sequences, spec: Spec, workers: int = 1, verbose: int = 0) -> tuple[Models, np.ndarray]:
    """One model per sequence, and log p(x|λ_x) per frame (n,). Many sequences are fitted in several processes."""
    _hmmlearn()
    parts = row_slices(len(X), 1, SEQUENCES_PER_JOB)
    jobs = (joblib.delayed(_fit_part)(list(X[part]), spec) for part in parts)
    parallel = joblib.Parallel(n_jobs=min(workers, len(parts)), return_as="generator")
    models, own, degenerate = [], [], 0
    with Progress(verbose, len(parts), "hidden Markov models") as progress:
        for fitted, likelihoods, failures in parallel(jobs):
            models.append(fitted)
            own += likelihoods
            degenerate += failures
            progress.step()
    if degenerate:
        warn(
            f"kernel: the hidden Markov models of {degenerate} of {len(X)} sequences could not be fitted and were "
            f"replaced by a single Gaussian. Try fewer states than n_states={spec.n_states} or a larger "
            f"prior_variance than {spec.prior_variance:g}.",
            DegenerateModelWarning,
        )
    return Models.stacked(models), np.array(own)


def _fit_part(sequences: list[np.ndarray], spec: Spec) -> tuple[Models, list[float], int]:
    """The models of some sequences, their likelihoods, and how many were replaced by a single Gaussian."""
    logger = logging.getLogger("hmmlearn.base")
    before, logger.disabled = logger.disabled, True  # with a prior the likelihood may decrease, which hmmlearn logs
    try:
        fits = [_fitted(frames, spec) for frames in sequences]
    finally:
        logger.disabled = before
    found = [fit or _fallback(frames, spec) for fit, frames in zip(fits, sequences)]
    return Models.stacked([model for model, _ in found]), [own for _, own in found], fits.count(None)


def _fitted(frames: np.ndarray, spec: Spec) -> tuple[Models, float] | None:
    """The model of one sequence and its log-likelihood per frame; None if the fit failed."""
    middle = frames.mean(axis=0)
    frames = frames - middle  # sums of squares cancel when the data is far from zero
    start = _one_gaussian(frames, spec)
    weight = spec.prior_frames + (frames.shape[1] if start.covariance.ndim == 4 else 1)
    model = _hmmlearn().GaussianHMM(
        spec.n_states,
        covariance_type=spec.covariance_type,
        covars_prior=_prior_sum(frames.shape[1], spec),
        covars_weight=weight,
        startprob_prior=1.0 + PSEUDO_COUNT,
        transmat_prior=1.0 + PSEUDO_COUNT,
        n_iter=MAX_ITERATIONS,
        tol=TOLERANCE * len(frames),
        init_params="",
    )
    model.startprob_, model.transmat_ = start.start[0], start.transition[0]
    model.means_ = np.array([part.mean(axis=0) for part in np.array_split(frames, spec.n_states)])
    model.covars_ = _as_hmmlearn(start.covariance[0], spec.covariance_type)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = model.fit(frames).score(frames) / len(frames)
    except (ValueError, np.linalg.LinAlgError):
        return None
    found = _models_of(model)
    found = replace(found, mean=found.mean + middle)
    return (found, own) if _is_sound(found) and np.isfinite(own) else None


def _fallback(frames: np.ndarray, spec: Spec) -> tuple[Models, float]:
    model = _one_gaussian(frames, spec)
    return model, float(log_likelihoods(Sequences(frames, [len(frames)]), model)[0, 0]) / len(frames)


def _models_of(model) -> Models:
    """A fitted hmmlearn model as arrays."""
    covariance = model.covars_
    covariance = covariance[:: len(covariance) // model.n_components]  # drops hmmlearn's copies of spherical ones
    if model.covariance_type in ("diag", "spherical"):
        covariance = np.diagonal(covariance, axis1=1, axis2=2)
    return Models(*(part[None] for part in (model.startprob_, model.transmat_, model.means_, covariance)))


def _is_sound(models: Models) -> bool:
    if not all(np.isfinite(part).all() for part in models.parts):
        return False
    if models.covariance.ndim == 3:
        return bool((models.covariance > 0).all())
    return bool((np.linalg.eigvalsh(models.covariance) > 0).all())


def _one_gaussian(frames: np.ndarray, spec: Spec) -> Models:
    """A model whose states all have the mean and covariance of the whole sequence, including the prior."""
    T, d = frames.shape
    s, away = spec.n_states, frames - frames.mean(axis=0)
    stay = STICKY if s > 1 else 1.0
    transition = np.full((s, s), (1.0 - stay) / max(1, s - 1))
    np.fill_diagonal(transition, stay)
    if spec.covariance_type in ("diag", "spherical"):
        total = np.square(away).sum(axis=0)
        total = np.full(d, total.mean()) if spec.covariance_type == "spherical" else total
    else:
        total = away.T @ away
    covariance = (total + _prior_sum(d, spec)) / (T + spec.prior_frames)
    alike = [np.tile(part, (1, s, *[1] * part.ndim)) for part in (frames.mean(axis=0), covariance)]
    return Models(np.full((1, s), 1.0 / s), transition[None], *alike)


def _prior_sum(d: int, spec: Spec):
    """The prior's contribution to the sums of squares."""
    total = spec.prior_frames * spec.prior_variance
    return total if spec.covariance_type in ("diag", "spherical") else total * np.eye(d)


def _as_hmmlearn(covariance: np.ndarray, covariance_type: str) -> np.ndarray:
    """Covariances (S, …) in hmmlearn's shape for the type."""
    return {"spherical": lambda c: c[:, 0], "tied": lambda c: c[0]}.get(covariance_type, lambda c: c)(covariance)


def _hmmlearn():
    return needed("hmmlearn.hmm", "HiddenMarkovKernel requires hmmlearn", "sequences")


def log_likelihoods(X: Sequences, models: Models, workers: int = 1) -> np.ndarray:
    """log p(x | model) of every sequence under every model (n, m)."""
    out = np.empty((len(X), len(models)))
    recursion = Forward(models)
    order = np.argsort(-X.lengths, kind="stable")  # so that the sequences of a tile have similar lengths

    def fill(tile):
        out[order[tile]] = recursion(X[order[tile]])

    # a step uses about four such arrays, which should stay in the cache
    fill_tiles(fill, len(X), 4 * 8 * len(models) * models.start.shape[1], workers)
    return out


class Forward:
    """The forward recursion under m models, α_t(j) = b_j(x_t) Σ_i α_{t−1}(i) a_ij, rescaled to sum to one at each step.

    Log-densities are linear in ψ(x) = (1, x, x²), or (1, x, xxᵀ) for full covariances, so one product with the
    coefficients of all states and models gives them all.
    """

    def __init__(self, models: Models):
        self.m, self.s, d = models.mean.shape
        self.origin = models.mean.mean(axis=(0, 1))  # keeps squares from cancelling when the data is far from zero
        self.whole = models.covariance.ndim == 4
        self.pairs = np.triu_indices(d)
        with np.errstate(divide="ignore"):
            self.start, self.log_start = models.start.T, np.log(models.start.T)
            # (S, S, m): the values of one transition are contiguous over models
            self.transition = np.ascontiguousarray(models.transition.transpose(1, 2, 0))
            self.log_transition = np.log(self.transition)
        coefficients = self._of_whole(models) if self.whole else self._of_diagonals(models)
        self.coefficients = np.ascontiguousarray(coefficients.transpose(2, 1, 0)).reshape(-1, self.s * self.m)

    def _of_diagonals(self, models: Models) -> np.ndarray:
        mean, precision = models.mean - self.origin, 1.0 / models.covariance
        constant = np.sum(mean**2 * precision + np.log(2.0 * np.pi * models.covariance), axis=2)
        return np.concatenate([-0.5 * constant[:, :, None], mean * precision, -0.5 * precision], axis=2)

    def _of_whole(self, models: Models) -> np.ndarray:
        mean, precision = models.mean - self.origin, np.linalg.inv(models.covariance)
        pull = np.einsum("msij,msj->msi", precision, mean)
        constant = np.einsum("msi,msi->ms", mean, pull) + np.linalg.slogdet(2.0 * np.pi * models.covariance)[1]
        i, j = self.pairs
        square = np.where(i == j, -0.5, -1.0) * precision[:, :, i, j]  # both triangles of the matrix
        return np.concatenate([-0.5 * constant[:, :, None], pull, square], axis=2)

    def _features(self, frames: np.ndarray) -> np.ndarray:
        x = frames - self.origin
        square = x[:, self.pairs[0]] * x[:, self.pairs[1]] if self.whole else x**2
        return np.hstack([np.ones((len(x), 1)), x, square])

    def __call__(self, X: Sequences) -> np.ndarray:
        """log p(x | model) (n, m) for sequences sorted by decreasing length."""
        lengths, features = X.lengths, self._features(X.frames)
        starts = np.cumsum(lengths) - lengths
        total = np.zeros((len(X), self.m))
        alpha, lost = np.empty((0, self.s, self.m)), np.zeros((len(X), self.m), dtype=bool)
        for t in range(lengths[0]):
            n = int(np.count_nonzero(lengths > t))
            density = (features[starts[:n] + t] @ self.coefficients).reshape(n, self.s, self.m)
            peak = density.max(axis=1)
            density -= peak[:, None]
            np.exp(density, out=density)
            density *= self.start if t == 0 else self._step(alpha[:n])
            scale = density.sum(axis=1)
            lost[:n] |= ~(scale > UNDERFLOW)
            with np.errstate(divide="ignore", invalid="ignore"):
                alpha = density / scale[:, None]
                total[:n] += peak + np.log(scale)
        for i, j in np.argwhere(lost):
            total[i, j] = self._by_logarithms(features[starts[i] : starts[i] + lengths[i]], j)
        return total

    def _step(self, alpha: np.ndarray) -> np.ndarray:
        """Σ_i α(i) a_ij (n, S, m)."""
        moved = alpha[:, :1] * self.transition[0]
        for i in range(1, self.s):
            moved += alpha[:, i : i + 1] * self.transition[i]
        return moved

    def _by_logarithms(self, features: np.ndarray, model: int) -> float:
        """The recursion of one sequence under one model in logarithms, for scaled probabilities that underflow."""
        density = (features @ self.coefficients).reshape(-1, self.s, self.m)[:, :, model]
        alpha = self.log_start[:, model] + density[0]
        for row in density[1:]:
            alpha = logsumexp(alpha[:, None] + self.log_transition[:, :, model], axis=0) + row
        return float(logsumexp(alpha))
