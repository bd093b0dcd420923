"""Links from scores to probabilities, whose rows are non-negative and sum to one.

A link takes raw scores S (n, c), the least-squares estimates of the class posteriors. ``decision`` returns values whose
order determines the prediction, ``probabilities`` normalises them, and ``log_probabilities`` returns the logarithms,
without underflow if the link allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax

from .data.rows import Rows

NAMES = ("auto", "clip", "clip-parameters", "none", "softmax")
#: Links that are fitted on held-out scores.
CALIBRATED = ("auto", "softmax")


@dataclass(frozen=True)
class Clip:
    """Sets negative scores to zero and normalises rows; all zeros give 1/c (2011 Eq. 6, 2010 Eq. 3).

    >>> import numpy as np
    >>> Clip().probabilities(np.array([[0.6, 0.2, -0.1], [-1.0, -1.0, -2.0]])).round(3)
    array([[0.75 , 0.25 , 0.   ],
           [0.333, 0.333, 0.333]])
    """

    def decision(self, scores: np.ndarray) -> np.ndarray:
        return self.probabilities(scores)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        positive = np.maximum(scores, 0.0)
        largest = positive.max(axis=1, keepdims=True)
        # dividing by the largest first keeps tiny scores from underflowing in the sum
        positive = np.divide(positive, largest, out=np.ones_like(positive), where=largest > 0)
        return positive / positive.sum(axis=1, keepdims=True)

    def log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """−inf if a score is not positive."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities(scores))


@dataclass(frozen=True)
class Ratio:
    """Scores divided by their sum (LSPC′, 2011 Eq. 5); they may be negative or exceed one, so they are not
    probabilities.

    >>> import numpy as np
    >>> Ratio().decision(np.array([[0.8, -0.3]]))
    array([[ 1.6, -0.6]])
    """

    def decision(self, scores: np.ndarray) -> np.ndarray:
        total = scores.sum(axis=1, keepdims=True)
        uniform = np.full_like(scores, 1.0 / scores.shape[1])
        return np.divide(scores, total, out=uniform, where=np.abs(total) > np.finfo(scores.dtype).tiny)


@dataclass(frozen=True)
class Softmax:
    """p = exp(f)/Σexp(f), for scores fitted as log-probabilities (2001 Eq. 7, textbook Eq. 28.1).

    >>> import numpy as np
    >>> Softmax().probabilities(np.array([[0.0, np.log(3.0)]])).round(2)
    array([[0.25, 0.75]])
    """

    def decision(self, scores: np.ndarray) -> np.ndarray:
        return scores

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        return softmax(scores)

    def log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        return log_softmax(scores, axis=1)


@dataclass(frozen=True)
class Sigmoid:
    """p = 1/(1 + exp(−f)) for each tag independently; scores are log-odds.

    >>> import numpy as np
    >>> Sigmoid().probabilities(np.array([[0.0, np.log(3.0)]])).round(2)
    array([[0.5 , 0.75]])
    """

    def decision(self, scores: np.ndarray) -> np.ndarray:
        return scores

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        return expit(scores)

    def log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        return log_expit(scores)


@dataclass(frozen=True)
class CalibratedSoftmax:
    """p ∝ exp(log π + a·(ψ(q) − ψ(π)) + o·g), fitted on leave-one-out scores.

    g = ΣS is near one within the data and zero far away; q = S + (1 − g)π completes the scores with the class prior π,
    so that they sum to one. ψ(q) = log softplus(κq) is linear in q for small κ, where p ∝ exp(βq), and log q₊ for large
    κ, where p ∝ q₊^a, a smooth version of the papers' clipping. There is one slope a and one offset o per class. Scores
    of zero give exactly the prior. Just outside the data, scores may exceed the range the link was fitted on, so q is
    clipped to that range, ``span``, and g to [0, 1].
    """

    prior: np.ndarray
    slope: np.ndarray
    sharpness: float
    offset: np.ndarray
    span: tuple[float, float] = (-np.inf, np.inf)

    def decision(self, scores: np.ndarray) -> np.ndarray:
        g = np.clip(scores.sum(axis=1, keepdims=True), 0.0, 1.0)
        q = np.clip(complete_by_prior(scores, self.prior), *self.span)
        rise = log_softplus(self.sharpness * q) - log_softplus(self.sharpness * self.prior)
        return np.log(self.prior) + self.slope * rise + g * self.offset

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        return softmax(self.decision(scores))

    def log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        return log_softmax(self.decision(scores), axis=1)


@dataclass(frozen=True)
class PerTag:
    """A two-class link for every tag. Scores (n, L + G) are those of the tags, then the constants (tag plus not-tag).

    ``constant`` (L,) is the column of the constant for each tag.
    """

    link: Clip | Ratio
    constant: np.ndarray

    def _each(self, function, scores: np.ndarray) -> np.ndarray:
        tags = scores[:, : len(self.constant)]
        pairs = np.stack([scores[:, self.constant] - tags, tags], axis=2)
        return function(pairs.reshape(-1, 2)).reshape(pairs.shape)

    def decision(self, scores: np.ndarray) -> np.ndarray:
        """Positive if a tag is more likely than not."""
        return np.diff(self._each(self.link.decision, scores), axis=2)[:, :, 0]

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The probability of each tag (n, L)."""
        assert isinstance(self.link, Clip)
        return self._each(self.link.probabilities, scores)[:, :, 1]

    def log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """−inf if the score of a tag is not positive."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities(scores))


@dataclass(frozen=True)
class CalibratedTags:
    """The calibrated softmax of every tag against "not this tag", all tags at once.

    ``prior`` and ``sharpness`` are (L,). ``slope`` (2, L) is for not-tag and tag, ``span`` (2, L) the smallest and
    largest q. ``offset`` (L,) is added to the log-odds. ``constant`` (L,) is the column of the constant for each tag.
    """

    prior: np.ndarray
    slope: np.ndarray
    sharpness: np.ndarray
    offset: np.ndarray
    span: np.ndarray
    constant: np.ndarray

    def decision(self, scores: np.ndarray) -> np.ndarray:
        """Log-odds of the tags (n, L)."""
        g = np.clip(scores[:, self.constant], 0.0, 1.0)
        q = complete_tags(scores, self.prior, self.constant)
        # not-tag is completed to 1 − q, and both are clipped to the same span
        pairs = (np.clip(1.0 - q, *self.span), 1.0 - self.prior), (np.clip(q, *self.span), self.prior)
        rises = [log_softplus(self.sharpness * x) - log_softplus(self.sharpness * prior) for x, prior in pairs]
        odds = self.slope[1] * rises[1] - self.slope[0] * rises[0] + g * self.offset
        return odds + np.log(self.prior / (1.0 - self.prior))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The probability of each tag (n, L)."""
        return expit(self.decision(scores))

    def log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        return log_expit(self.decision(scores))


def in_blocks(function, scores: np.ndarray, n_rows: int = 4096) -> np.ndarray:
    """Apply ``function`` to scores in blocks of rows, because links need several temporaries of the size of their
    input."""
    n_rows = min(n_rows, max(16, TAG_CELLS // max(1, scores.shape[1])))
    if len(scores) <= n_rows:
        return function(scores)
    return np.concatenate([function(scores[start : start + n_rows]) for start in range(0, len(scores), n_rows)])


def complete_by_prior(scores: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """q = S + (1 − g)π: scores completed with the prior, so that rows sum to one."""
    return scores + (1.0 - scores.sum(axis=1, keepdims=True)) * prior


def complete_tags(scores: np.ndarray, prior: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """The same for tags (n, L): g is the constant's score, and not-tag is completed to 1 − q."""
    return scores[:, : len(prior)] + (1.0 - scores[:, constant]) * prior


def positive_prior(rows: Rows) -> np.ndarray:
    """The prior, kept half a row away from zero (and, for tags, from one) so that its logarithm is finite."""
    edge = 0.5 / ((rows.tag_weight if rows.is_multilabel else rows.total_weight) + 1.0)
    return np.clip(rows.prior, edge, 1.0 - edge)


def softmax(logits: np.ndarray) -> np.ndarray:
    """exp(f)/Σexp(f), with the largest f subtracted first (textbook, p. 324)."""
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def log_softplus(z: np.ndarray) -> np.ndarray:
    """log log(1 + eᶻ), which is z to working precision below −30."""
    return np.where(z < -30.0, z, np.log(_softplus(np.maximum(z, -30.0))))


def _softplus(z: np.ndarray) -> np.ndarray:
    return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))


def _log_softplus_slope(z: np.ndarray) -> np.ndarray:
    """z·d/dz log softplus(z), the derivative with respect to log κ."""
    bounded = np.maximum(z, -30.0)
    return np.where(z < -30.0, z, bounded * expit(bounded) / _softplus(bounded))


#: The link has few parameters, so it is fitted on at most this many rows, and about this many rows times classes.
LINK_ROWS, LINK_CELLS = 20_000, 100_000
#: Rows times tags whose links are fitted together, and rows times columns to which a link is applied at a time.
TAG_CELLS = 1 << 16


def fit_link(name: str, held_out: np.ndarray | None, rows: Rows):
    """The link with this name; the calibrated softmax is fitted on held-out scores (n, k) of the rows."""
    if name in CALIBRATED:
        return _fit_tags(held_out, rows) if rows.is_multilabel else _fit_classes(held_out, rows)
    plain = Ratio() if name == "none" else Clip()
    if not rows.is_multilabel:
        return plain
    # if coefficients are clipped, every tag has its own constant
    apart = rows.n_classes + np.arange(rows.n_classes)
    return PerTag(plain, apart if name == "clip-parameters" else rows.constant)


def _fit_classes(held_out, rows: Rows) -> CalibratedSoftmax:
    most = min(LINK_ROWS, max(1000, LINK_CELLS // rows.n_classes))
    some = np.argsort(rows.keys, kind="stable")[:most] if len(rows) > most else slice(None)
    return SoftmaxFit(held_out[some], rows.targets(some), rows.weight[some], positive_prior(rows)).run()


def _fit_tags(held_out, rows: Rows) -> CalibratedTags:
    """Fit tags in groups small enough for the arrays of a step to stay in the cache."""
    prior, width = positive_prior(rows), max(1, TAG_CELLS // len(rows))
    found = []
    for tags in (np.arange(start, min(start + width, len(prior))) for start in range(0, len(prior), width)):
        known = 1.0 if rows.known is None else rows.known[:, tags]
        weight = rows.weight[:, None] * known * np.ones(len(tags))
        columns = held_out[:, tags], held_out[:, rows.constant[tags]]
        found.append(TagsFit(*columns, rows.filled_labels[:, tags], weight, prior[tags]).run())
    slope, sharpness, offset, span = (np.concatenate(parts, axis=-1) for parts in zip(*found))
    return CalibratedTags(prior, slope, sharpness, offset, span, rows.constant)


class SoftmaxFit:
    """The penalised log-loss of the calibrated softmax, minimised over x = (log a, log κ, δ, o).

    The slope of a class is a·e^δ. Two things keep the fit finite on separable scores: targets are shrunk towards the
    prior by the weight of one row, and slopes, offsets and κ have penalties worth about one row.
    """

    slope_penalty = 1.0
    offset_penalty = 0.2
    sharpness_penalty = 0.1
    start = (0.5, 2.0)
    bounds = ((-5.0, 6.0), (-1.0, 6.0), (-4.0, 4.0), (-8.0, 8.0))

    def __init__(self, scores, targets, weight, prior):
        scores = np.clip(scores, -1e3, 1e3)
        self.prior, self.total = prior, weight.sum()
        self.g = np.clip(scores.sum(axis=1, keepdims=True), 0.0, 1.0)
        self.q = complete_by_prior(scores, prior)
        shrinkage = 1.0 / (self.total + 1.0)
        self.targets = (1.0 - shrinkage) * targets + shrinkage * prior
        self.share = (weight / self.total)[:, None]

    def run(self) -> CalibratedSoftmax:
        c = len(self.prior)
        start = np.concatenate([self.start, np.zeros(2 * c)])
        bounds = [*self.bounds[:2], *[self.bounds[2]] * c, *[self.bounds[3]] * c]
        options = {"maxiter": 200 if c <= 100 else 50}
        found = minimize(self.loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        log_a, log_k, delta, offset = self._split(found.x)
        span = float(min(self.q.min(), self.prior.min())), float(max(self.q.max(), self.prior.max()))
        return CalibratedSoftmax(self.prior, np.exp(log_a + delta), float(np.exp(log_k)), offset, span)

    def _split(self, x):
        c = len(self.prior)
        return x[0], x[1], x[2 : 2 + c], x[2 + c :]

    def loss(self, x) -> tuple[float, np.ndarray]:
        """Penalised mean log-loss and its gradient."""
        log_a, log_k, delta, offset = self._split(x)
        slope, kappa = np.exp(log_a + delta), np.exp(log_k)
        rise = log_softplus(kappa * self.q) - log_softplus(kappa * self.prior)
        logits = np.log(self.prior) + slope * rise + self.g * offset
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        norm = p.sum(axis=1, keepdims=True)
        p /= norm
        value = np.sum(self.share * (np.log(norm) - np.sum(self.targets * logits, axis=1, keepdims=True)))

        residual = self.share * (p - self.targets)
        by_slope = slope * np.einsum("ij,ij->j", residual, rise)
        by_kappa = _log_softplus_slope(kappa * self.q) - _log_softplus_slope(kappa * self.prior)
        by_sharpness = slope @ np.einsum("ij,ij->j", residual, by_kappa)
        by_offset = residual.T @ self.g[:, 0]

        penalty = np.array([self.sharpness_penalty, self.slope_penalty, self.offset_penalty]) / self.total
        shift = log_k - self.start[1]
        value += penalty @ [shift**2, delta @ delta, offset @ offset]
        parts = [[by_slope.sum(), by_sharpness + 2 * penalty[0] * shift], by_slope + 2 * penalty[1] * delta]
        return float(value), np.concatenate([*parts, by_offset + 2 * penalty[2] * offset])


class TagsFit:
    """The loss of :class:`SoftmaxFit` for many tags at once, each minimised separately.

    For two classes only the log-odds matter. For given slopes e^(m−e) and e^(m+e) and a given offset d of the log-odds,
    the best log a, δ and o are m, ∓e and ∓d/2, which leaves x = (m, log κ, e, d) for every tag. Damped Newton steps
    with the expected curvature find the minimum; parameters pushed against a bound stay there.
    """

    start = (*SoftmaxFit.start, 0.0, 0.0)
    bounds = np.array([*SoftmaxFit.bounds[:3], (2 * SoftmaxFit.bounds[3][0], 2 * SoftmaxFit.bounds[3][1])]).T[
        :, :, None
    ]
    most_steps, promised, damping = 60, 1e-10, 0.1

    def __init__(self, tag, constant, labels, weight, prior):
        # one row per tag, so that sums run over contiguous memory
        tag, constant, labels, weight = (np.ascontiguousarray(part.T) for part in (tag, constant, labels, weight))
        tag, constant = (np.clip(part, -1e3, 1e3) for part in (tag, constant))
        total = weight.sum(axis=1)
        self.prior, self.total = prior, np.where(total > 0, total, 1.0)  # only penalties, if a tag has no rows
        self.g = np.clip(constant, 0.0, 1.0)
        self.q = tag + (1.0 - constant) * prior[:, None]
        shrinkage = (1.0 / (self.total + 1.0))[:, None]
        self.targets = (1.0 - shrinkage) * labels + shrinkage * prior[:, None]
        self.share = weight / self.total[:, None]
        penalties = SoftmaxFit.sharpness_penalty, 2.0 * SoftmaxFit.slope_penalty, 0.5 * SoftmaxFit.offset_penalty
        self.penalty = np.stack([np.zeros_like(self.total), *(each / self.total for each in penalties)])

    def run(self) -> tuple[np.ndarray, ...]:
        """Slopes (2, L), sharpness (L,), offset (L,) and span (2, L)."""
        x = self._minimum()
        known, less = self.share > 0, np.minimum(self.prior, 1.0 - self.prior)
        smallest, largest = np.minimum(self.q, 1.0 - self.q), np.maximum(self.q, 1.0 - self.q)
        low = np.minimum(smallest.min(axis=1, where=known, initial=0.5), less)
        high = np.maximum(largest.max(axis=1, where=known, initial=0.5), 1.0 - less)
        return np.exp([x[0] - x[2], x[0] + x[2]]), np.exp(x[1]), x[3], np.stack([low, high])

    def _minimum(self) -> np.ndarray:
        n_tags = len(self.prior)
        x, damping = np.tile(np.array(self.start)[:, None], n_tags), np.full(n_tags, self.damping)
        best, todo = np.full((4, n_tags), np.nan), np.arange(n_tags)
        value, gradient, curvature = self.loss(x, todo)
        for _ in range(self.most_steps):
            step = _bounded_step(gradient, curvature, damping, x, self.bounds)
            tried = np.clip(x + step, *self.bounds)
            found = self.loss(tried, todo)
            better = found[0] <= value
            gain = -np.einsum("it,it->t", gradient, tried - x)
            x[:, better], damping = tried[:, better], np.where(better, 0.2 * damping, 10.0 * damping)
            for old, new in zip((value, gradient, curvature), found):
                old[..., better] = new[..., better]
            more = (np.abs(gain) > self.promised) & (damping < 1e8)
            best[:, todo[~more]] = x[:, ~more]
            todo, x, damping, value = todo[more], x[:, more], damping[more], value[more]
            gradient, curvature = gradient[..., more], curvature[..., more]
            if not len(todo):
                break
        best[:, todo] = x
        return best

    def loss(self, x: np.ndarray, tags) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Penalised mean log-loss (t,) of some tags at x (4, t), its gradient (4, t) and expected curvature (4, 4,
        t)."""
        q, share, g, targets = self.q[tags], self.share[tags], self.g[tags], self.targets[tags]
        low, high, kappa = (np.exp(each)[:, None] for each in (x[0] - x[2], x[0] + x[2], x[1]))
        prior = self.prior[tags][:, None]
        up, up_by_kappa = _rise(kappa, q, prior)
        down, down_by_kappa = _rise(kappa, 1.0 - q, 1.0 - prior)
        up, down = high * up, low * down
        difference = up - down
        odds = difference + g * x[3][:, None] + np.log(prior / (1.0 - prior))
        slopes = difference, high * up_by_kappa - low * down_by_kappa, up + down, g  # ∂odds/∂x
        small = np.exp(-np.abs(odds))
        p = np.where(odds > 0, 1.0, small) / (1.0 + small)
        value = np.einsum("ti,ti->t", share, np.maximum(odds, 0.0) + np.log(1.0 + small) - targets * odds)
        residual, spread = share * (p - targets), share * p * (1.0 - p)
        gradient = np.stack([np.einsum("ti,ti->t", residual, slope) for slope in slopes])
        curvature = np.empty((4, 4, len(q)))
        for i, slope in enumerate(slopes):
            weighted = spread * slope
            for j in range(i + 1):
                curvature[i, j] = curvature[j, i] = np.einsum("ti,ti->t", weighted, slopes[j])
        penalty, shift = self.penalty[:, tags], x - np.array([0.0, self.start[1], 0.0, 0.0])[:, None]
        np.einsum("iit->it", curvature)[:] += 2.0 * penalty
        return value + (penalty * shift**2).sum(axis=0), gradient + 2.0 * penalty * shift, curvature


def _rise(kappa: np.ndarray, q: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ψ(q) − ψ(π), and its derivative with respect to log κ."""
    value, slope = _log_softplus_and_slope(kappa * q)
    value_there, slope_there = _log_softplus_and_slope(kappa * prior)
    return value - value_there, slope - slope_there


def _log_softplus_and_slope(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``log_softplus`` and ``_log_softplus_slope`` from a single exponential."""
    bounded = np.maximum(z, -30.0)
    small = np.exp(-np.abs(bounded))
    softplus = np.maximum(bounded, 0.0) + np.log1p(small)
    slope = bounded * np.where(bounded > 0, 1.0, small) / ((1.0 + small) * softplus)
    return np.where(z < -30.0, z, np.log(softplus)), np.where(z < -30.0, z, slope)


def _bounded_step(gradient, curvature, damping, x, bounds) -> np.ndarray:
    """The damped Newton step (4, t) of the parameters that are not pushed against their bounds."""
    is_free = ~(((x <= bounds[0]) & (gradient > 0)) | ((x >= bounds[1]) & (gradient < 0)))
    H = np.moveaxis(curvature * is_free[:, None] * is_free[None], 2, 0)
    diagonal = np.einsum("tii->ti", H)
    diagonal += damping[:, None] * (diagonal + 1e-3 * diagonal.max(axis=1, keepdims=True)) + 1e-300
    diagonal[~is_free.T] = 1.0
    return -np.linalg.solve(H, (gradient * is_free).T[:, :, None])[:, :, 0].T
