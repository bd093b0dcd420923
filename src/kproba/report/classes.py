"""How well each class is told from all others."""

from dataclasses import dataclass

import numpy as np

from .judged import Judged
from .measures import thinned

#: Number of points of a curve.
MOST_POINTS = 150


@dataclass(frozen=True)
class ClassFacts:
    """One class against all others; curves are None and areas NaN if either side has no rows."""

    name: str
    rows: int
    recall: float
    precision: float
    auc: float
    average_precision: float
    roc: tuple[np.ndarray, np.ndarray] | None
    precision_recall: tuple[np.ndarray, np.ndarray] | None


def class_facts(k: int, name: str, rows: Judged, predicted: np.ndarray) -> ClassFacts:
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    own, chosen = rows.codes == k, predicted == k
    recall = float(chosen[own].mean()) if own.any() else np.nan
    precision = float(own[chosen].mean()) if chosen.any() else np.nan
    if own.all() or not own.any():
        return ClassFacts(name, int(own.sum()), recall, precision, np.nan, np.nan, None, None)
    p = rows.proba[:, k]
    false, true, _ = roc_curve(own, p)
    precisions, recalls, _ = precision_recall_curve(own, p)
    return ClassFacts(
        name,
        int(own.sum()),
        recall,
        precision,
        float(roc_auc_score(own, p)),
        float(average_precision_score(own, p)),
        thinned(false, true, MOST_POINTS),
        thinned(recalls[::-1], precisions[::-1], MOST_POINTS),
    )
