"""The hidden Markov kernel: compares sequences by how well each one's model explains the other."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..data.items import Sequences, Table
from ..validation import check_choice, check_count
from .base import Untiled
from .hidden_markov import COVARIANCES, Models, Spec, fit_models, log_likelihoods
from .radial import DivergenceKernel


@dataclass(frozen=True)
class HiddenMarkovKernel(Untiled, DivergenceKernel):
    """exp(−D(x, z)/2σ²) for two sequences, each modelled by a small Gaussian hidden Markov model.

    With λ_x the model of x and T_x its number of frames,
    D(x, z) = ½(log p(x|λ_x) − log p(x|λ_z))/T_x + ½(log p(z|λ_z) − log p(z|λ_x))/T_z: the log-likelihood lost per
    frame, in nats, under the other sequence's model. Rows are sequences: a list of (frames × coefficients) arrays, or
    :class:`kproba.Sequences`. Each sequence's model is fitted once, by hmmlearn (``kproba[sequences]``).

    Its matrices may be indefinite. If so, they are projected to PSD by setting negative eigenvalues to zero, for new
    sequences too. The estimator's ``negative_share_`` is the share of the spectrum removed; above one percent there is
    a warning.

    Parameters
    ----------
    n_states : int, default=3
        Number of states of each model; every sequence needs at least as many frames.
    covariance_type : {"diag", "spherical", "full", "tied"}, default="diag"
        As in hmmlearn; "tied" is one covariance for all states.
    width : float, optional
        The σ above; chosen from the data if None.
    prior_variance, prior_frames : float, default=1.0 and 32.0
        Prior of every state, worth ``prior_frames`` frames of variance ``prior_variance``. Coefficients are scaled to
        unit variance over all frames unless ``scaling=None``. Short sequences benefit from a strong prior.

    References
    ----------
    D is the symmetric distance of B.-H. Juang and L. R. Rabiner (1985), A probabilistic distance measure for hidden
    Markov models; P. Moreno, P. Ho and N. Vasconcelos (2003), A Kullback-Leibler divergence based kernel for SVM
    classification in multimedia applications, make a kernel of such a divergence. Yamada et al. (2011) refer to
    G. Wichern et al. (2010), Segmentation, indexing and retrieval of environmental and natural sounds.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> low, high = rng.normal(0, 1, (20, 2)), rng.normal(3, 1, (30, 2))
    >>> HiddenMarkovKernel(n_states=2, width=3.0)([low, high], [low]).round(2)
    array([[1.  ],
           [0.55]])
    """

    n_states: int = 3
    covariance_type: str = "diag"
    width: Any = None
    prior_variance: float = 1.0
    prior_frames: float = 32.0
    name: ClassVar[str] = "hidden Markov"
    compares: ClassVar[str] = "sequences of frames"
    extra: ClassVar[str] = "sequences"
    is_definite: ClassVar[bool] = False
    is_projected: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        check_count("n_states", self.n_states)
        check_choice("covariance_type", self.covariance_type, COVARIANCES)
        for name in ("prior_variance", "prior_frames"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0.0 < float(value) < np.inf:
                raise ValueError(f"{name}={value!r} must be a positive number.")

    @property
    def _spec(self) -> Spec:
        return Spec(int(self.n_states), self.covariance_type, float(self.prior_variance), float(self.prior_frames))

    def read(self, X) -> Sequences:
        sequences = Sequences.of(X)
        lengths, least = sequences.lengths, max(2, self.n_states)
        if lengths.min() < least:
            number = int(np.argmin(lengths))
            raise ValueError(
                f"X: sequence {number} has {lengths[number]} frame(s), but a model with n_states={self.n_states} needs "
                f"at least {least}; use fewer states or remove short sequences."
            )
        return sequences

    def prepared(self, X, workers: int = 1, verbose: int = 0):
        """Fit the models of all sequences at once."""
        self._comparisons(X).fit(X, workers, verbose)
        return self

    def pairs(self, X, Z, workers: int = 1):
        """D (n, b), cached if all sequences belong to the same collection."""
        X, Z = self.read(X), self.read(Z)
        X, Z = X.within(Z), Z.within(X)
        of_x, of_z = self._comparisons(X), self._comparisons(Z)
        of_x.fit(X, workers)
        of_z.fit(Z, workers)
        if of_x is of_z:
            loss, back = of_x.losses(X, Z, workers), of_x.losses(Z, X, workers)
        else:
            loss = of_x.own_of(X) - _mean_log_likelihood(X, of_z.models(Z), workers)
            back = of_z.own_of(Z) - _mean_log_likelihood(Z, of_x.models(X), workers)
        return np.maximum(0.5 * (loss + back.T), 0.0)

    def _comparisons(self, X: Sequences) -> Comparisons:
        return X.memory.entry(self._spec, lambda: Comparisons(len(X.collection), self._spec))


class Comparisons:
    """Cache for a collection of sequences: their models, and how well each model explains the other sequences.

    ``own`` (n,) is log p(x|λ_x)/T_x, NaN for sequences without a model yet; ``table`` holds log p(x|λ_z)/T_x.
    """

    def __init__(self, n: int, spec: Spec):
        self.own, self.spec, self.table = np.full(n, np.nan), spec, Table(n)
        self._models: Models | None = None

    def models(self, X: Sequences) -> Models:
        assert self._models is not None
        return self._models.taken(X.places)

    def own_of(self, X: Sequences) -> np.ndarray:
        return self.own[X.places, None]

    def fit(self, X: Sequences, workers: int, verbose: int = 0) -> None:
        """Fit the models of those sequences that do not have one yet."""
        with X.memory.lock:
            missing = np.unique(X.places[np.isnan(self.own[X.places])])
            if not len(missing):
                return
            found, own = fit_models(X.collection[missing], self.spec, workers, verbose)
            if self._models is None:
                self._models = Models(*(np.zeros((len(self.own), *part.shape[1:])) for part in found.parts))
            for whole, part in zip(self._models.parts, found.parts):
                whole[missing] = part
            self.own[missing] = own

    def losses(self, X: Sequences, Z: Sequences, workers: int) -> np.ndarray:
        """The loss per frame of each x under the model of each z of the same collection (n, b)."""
        return self.own_of(X) - self.table.block(X, Z, lambda X, Z: _mean_log_likelihood(X, self.models(Z), workers))

    def taken(self, places: np.ndarray) -> Comparisons:
        """The cache for a subset of the collection."""
        some = Comparisons(len(places), self.spec)
        some.own, some._models = self.own[places], None if self._models is None else self._models.taken(places)
        return some


def _mean_log_likelihood(X: Sequences, models: Models, workers: int) -> np.ndarray:
    """log p(x|model)/T (n, m)."""
    return log_likelihoods(X, models, workers) / X.lengths[:, None]
