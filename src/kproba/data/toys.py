"""The synthetic problems of the papers, each with its exact class posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, softmax
from sklearn.utils import check_random_state


@dataclass(frozen=True)
class Mixture:
    """Σ_k weight_k · N(x; mean_k, diag(variance_k)): ``weights`` (m,), ``means`` and ``variances`` (m, d).

    >>> import numpy as np
    >>> standard = Mixture(np.ones(1), np.zeros((1, 1)), np.ones((1, 1)))
    >>> float(np.exp(standard.log_density([[0.0]])[0]).round(4))
    0.3989
    """

    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    def log_density(self, X: ArrayLike) -> np.ndarray:
        """log p(x) (n,). With logarithms a posterior stays exact when all densities underflow."""
        away = np.asarray(X, dtype=np.float64)[:, None, :] - self.means
        terms = -0.5 * (np.square(away) / self.variances + np.log(2.0 * np.pi * self.variances)).sum(axis=2)
        return logsumexp(terms + np.log(self.weights), axis=1)

    def sample(self, n: int, random) -> np.ndarray:
        """``n`` independent rows (n, d)."""
        part = random.choice(len(self.weights), size=n, p=self.weights)
        return self.means[part] + np.sqrt(self.variances[part]) * random.standard_normal((n, self.means.shape[1]))


@dataclass(frozen=True)
class Toy:
    """A sample ``X`` (n, d), ``y`` (n,) with labels 1 … c, and the distribution it was drawn from."""

    X: np.ndarray
    y: np.ndarray
    conditionals: tuple[Mixture, ...]
    prior: np.ndarray

    def conditional_densities(self, X: ArrayLike) -> np.ndarray:
        """p(x|y) (n, c)."""
        return np.exp(np.column_stack([each.log_density(X) for each in self.conditionals]))

    def density(self, X: ArrayLike) -> np.ndarray:
        """p(x) (n,)."""
        return self.conditional_densities(X) @ self.prior

    def posterior(self, X: ArrayLike) -> np.ndarray:
        """p(y|x) (n, c), exact, in the order of the labels."""
        log_joint = np.column_stack([each.log_density(X) for each in self.conditionals]) + np.log(self.prior)
        return softmax(log_joint, axis=1)


def three_classes_2010(n: int = 200, random_state: int | np.random.RandomState | None = None) -> Toy:
    """Three overlapping classes in the plane (2010 Sec. 3.1, Figs 4–6).

    The priors are 1/4, 1/4 and 1/2; the third class has two components. Labels are drawn from the priors.

    >>> toy = three_classes_2010(random_state=0)
    >>> toy.X.shape, toy.posterior([[0.0, 0.0]]).round(3)
    ((200, 2), array([[0.234, 0.234, 0.533]]))
    """
    conditionals = (
        _mixture([[-2.0, 0.0]]),
        _mixture([[2.0, 0.0]]),
        _mixture([[0.0, -3.0], [0.0, 2.0]], [[4.0, 1.0], [1.0, 4.0]]),
    )
    prior = np.array([0.25, 0.25, 0.5])
    random = check_random_state(random_state)
    return _draw(conditionals, prior, random.multinomial(n, prior), random)


def one_dimension_2011(n_per_class: int = 250, random_state: int | np.random.RandomState | None = None) -> Toy:
    """Two classes on the line, the second on both sides of the first (2011 Sec. 3.1, Fig. 1).

    >>> toy = one_dimension_2011(random_state=0)
    >>> toy.X.shape, toy.posterior([[0.0], [4.0]]).round(3)
    ((500, 1), array([[0.881, 0.119],
           [0.005, 0.995]]))
    """
    conditionals = (_mixture([[0.0]]), _mixture([[-2.0], [2.0]]))
    random = check_random_state(random_state)
    return _draw(conditionals, np.full(2, 0.5), [n_per_class] * 2, random)


def three_classes_textbook(n: int = 90, random_state: int | np.random.RandomState | None = None) -> Toy:
    """Three classes side by side on the line, n/3 rows each (textbook Figs 28.2 and 28.5).

    >>> toy = three_classes_textbook(random_state=0)
    >>> toy.X.shape, toy.posterior([[-1.5]]).round(3)
    ((90, 1), array([[0.5, 0.5, 0. ]]))
    """
    if n % 3:
        raise ValueError(f"n={n}: the three classes have the same number of rows, so n must be a multiple of 3.")
    conditionals = tuple(_mixture([[mean]]) for mean in np.linspace(-3.0, 3.0, 3))
    return _draw(conditionals, np.full(3, 1 / 3), [n // 3] * 3, check_random_state(random_state))


def mixtures_2001(
    n_per_class: int = 100,
    n_classes: int = 2,
    means: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Toy:
    """Classes that are mixtures of ten small Gaussians in the plane (2001 Sec. 4, Figs 2–4).

    The ten means of each class are drawn around its own point, (1, 0), (0, 1) or (−1, −1), and rows around the means
    with variance 1/5. You can pass your own ``means`` (n_classes, m, 2) instead.

    >>> toy = mixtures_2001(n_per_class=50, n_classes=3, random_state=0)
    >>> toy.X.shape, toy.posterior(toy.X).shape
    ((150, 2), (150, 3))
    """
    random = check_random_state(random_state)
    if means is None:
        around = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])[:n_classes]
        means = around[:, None] + random.standard_normal((n_classes, 10, 2))
    conditionals = tuple(_mixture(each, np.full_like(each, 0.2)) for each in np.asarray(means, dtype=float))
    c = len(conditionals)
    return _draw(conditionals, np.full(c, 1.0 / c), [n_per_class] * c, random)


def clouds_2013(
    n: int = 1000,
    n_clouds: int = 6,
    d: int = 8,
    spread: float = 0.66,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Toy:
    """A substitute for the data of 2013 Sec. 5.2, with eight attributes and two classes, which is not available.

    Each class is a mixture of ``n_clouds`` Gaussians around fixed points that do not depend on ``random_state``; the
    best possible accuracy is close to the paper's best, 73 %.

    >>> toy = clouds_2013(1000, random_state=0)
    >>> toy.X.shape, float(toy.posterior(toy.X).max(axis=1).mean().round(2))
    ((1000, 8), 0.73)
    """
    random, fixed = check_random_state(random_state), np.random.RandomState(2013)
    conditionals = tuple(_mixture(spread * fixed.standard_normal((n_clouds, d))) for _ in range(2))
    toy = _draw(conditionals, np.full(2, 0.5), [n - n // 2, n // 2], random)
    order = random.permutation(n)
    return Toy(toy.X[order], toy.y[order], toy.conditionals, toy.prior)


def _mixture(means, variances=None) -> Mixture:
    """Equally weighted Gaussians, by default with unit variance."""
    means = np.array(means)
    variances = np.ones_like(means) if variances is None else np.array(variances)
    return Mixture(np.full(len(means), 1.0 / len(means)), means, variances)


def _draw(conditionals, prior, counts, random) -> Toy:
    X = np.concatenate([each.sample(count, random) for each, count in zip(conditionals, counts)])
    return Toy(X, np.repeat(np.arange(1, len(counts) + 1), counts), conditionals, prior)
