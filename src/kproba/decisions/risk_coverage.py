"""The risk–coverage curve: the error among the rows kept, as a function of how many are kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta


@dataclass(frozen=True)
class RiskCoverage:
    """Rows kept and errors among them at each distinct threshold, from the highest threshold down.

    Thresholds are multiples of ``unit``, where one is given: then counts are exact at every multiple of it.
    """

    thresholds: np.ndarray
    kept: np.ndarray
    wrong: np.ndarray
    unit: float = 0.0

    @property
    def n(self) -> int:
        return int(self.kept[-1])

    @property
    def coverage(self) -> np.ndarray:
        return self.kept / self.n

    @property
    def error(self) -> np.ndarray:
        return self.wrong / self.kept

    @property
    def area(self) -> float:
        """Mean error over all coverages; small if the rows kept first are right."""
        return float(np.average(self.error, weights=np.diff(self.kept, prepend=0)))

    def at(self, threshold: float) -> tuple[int, int]:
        """Rows at or above the threshold, and errors among them."""
        number = int(np.count_nonzero(self.thresholds >= threshold - 1e-6 * self.unit))
        return (int(self.kept[number - 1]), int(self.wrong[number - 1])) if number else (0, 0)

    def with_bounds(self, confidence: float = 0.95) -> dict[str, np.ndarray]:
        """The arrays thresholds, coverage, error and upper_bound; each bound alone holds with that confidence."""
        return {
            "thresholds": self.thresholds,
            "coverage": self.coverage,
            "error": self.error,
            "upper_bound": error_upper_bound(self.wrong, self.kept, confidence),
        }


def risk_coverage(certainty, wrong, unit: float = 0.0) -> RiskCoverage:
    """Error among the rows kept, for every threshold that separates rows.

    Parameters
    ----------
    certainty : array of shape (n,)
        Rows at or above the threshold are kept: usually the largest probability.
    wrong : bool array of shape (n,)
        Whether the decision for each row is wrong.
    unit : float, default=0.0
        Round ``certainty`` down to multiples of this, so that the curve has fewer points. 0 does not round.

    >>> curve = risk_coverage([0.9, 0.6, 0.6], [False, True, False])
    >>> curve.thresholds, curve.coverage.round(2), curve.error.round(2)
    (array([0.9, 0.6]), array([0.33, 1.  ]), array([0.  , 0.33]))
    >>> curve.at(0.8), curve.at(0.95)
    ((1, 0), (0, 0))
    """
    certainty = np.asarray(certainty, dtype=np.float64)
    if unit:
        certainty = np.floor(certainty / unit + 1e-6) * unit
    n_wrong, last = errors_by_rank(certainty, wrong)
    return RiskCoverage(np.sort(certainty)[::-1][last], last + 1, n_wrong[last], unit)


def errors_by_rank(certainty, wrong) -> tuple[np.ndarray, np.ndarray]:
    """Errors among the k most certain rows for every k, and the index of the last row of each group of ties."""
    certainty, wrong = np.asarray(certainty, dtype=np.float64), np.asarray(wrong, dtype=bool)
    order = np.argsort(-certainty, kind="stable")
    last = np.flatnonzero(np.append(np.diff(certainty[order]) != 0, True))
    return np.cumsum(wrong[order]), last


def error_upper_bound(wrong, kept, confidence: float) -> np.ndarray:
    """Upper bound on the error rate after ``wrong`` errors in ``kept`` rows.

    The exact one-sided bound of Clopper and Pearson (1934).

    >>> error_upper_bound(0, 299, 0.95).round(4), error_upper_bound(3, 3, 0.95)
    (np.float64(0.01), np.float64(1.0))
    """
    wrong, kept = np.asarray(wrong), np.asarray(kept)
    free = wrong < kept
    return np.where(free, beta.ppf(confidence, wrong + 1, np.where(free, kept - wrong, 1)), 1.0)[()]
