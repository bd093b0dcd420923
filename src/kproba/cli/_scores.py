"""Measures of probabilities in words: what a model achieves, beside what the class shares alone achieve."""

from typing import Any

import numpy as np

from ..data.labels import label_codes
from ..report.measures import measured
from . import _text
from ._target import label_named

#: Measures of the ranking and of the decisions, and their names.
DECISIONS = {"auc": "AUC", "average_precision": "average precision", "f1": "F1"}


def positive_class(option: str | None, counts: dict[Any, int]) -> Any:
    """The class that --positive names; otherwise, of two classes, the rarer (the last if there is none)."""
    if option is not None:
        return label_named("--positive", option, counts)
    if len(counts) != 2:
        return None
    return min(reversed(list(counts)), key=lambda label: counts[label])


def scores(y, proba: np.ndarray, classes, positive=None, weight=None) -> dict[str, Any]:
    """Error and log-loss beside those of the class shares, AUC, average precision, F1 and the confusion matrix."""
    codes = label_codes(y, classes)
    hits = np.eye(len(classes))[codes]
    shares = np.average(hits, axis=0, weights=weight)
    own = np.log(np.maximum(proba[np.arange(len(codes)), codes], np.finfo(float).eps))
    found = {
        "error": float(np.average(proba.argmax(axis=1) != codes, weights=weight)),
        "log_loss": float(-np.average(own, weights=weight)),
        "class_shares": {
            "answer": classes[int(shares.argmax())],
            "error": float(1.0 - shares.max()),
            "log_loss": float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum()),
        },
    }
    return found | decisions(codes, proba, classes, positive, weight)


def decisions(codes: np.ndarray, proba: np.ndarray, classes, positive=None, weight=None) -> dict[str, Any]:
    """AUC, average precision and F1 of the positive class, otherwise their means over the classes (one against the
    rest), and the confusion matrix: a row for each class, a column for each prediction."""
    from sklearn.metrics import average_precision_score, confusion_matrix, f1_score, roc_auc_score

    labels, predicted = np.arange(len(classes)), proba.argmax(axis=1)
    judged = labels if positive is None else np.flatnonzero(np.asarray(classes) == positive)
    known = [k for k in judged if 0 < (codes == k).sum() < len(codes)]
    ranking = {
        name: _mean([score(codes == k, proba[:, k], sample_weight=weight) for k in known])
        for name, score in (("auc", roc_auc_score), ("average_precision", average_precision_score))
    }
    f1 = [f1_score(codes == k, predicted == k, sample_weight=weight, zero_division=0.0) for k in judged]
    counts = confusion_matrix(codes, predicted, labels=labels)
    return ranking | {"f1": _mean(f1), "positive": positive, "confusion": counts.tolist()}


def measures(y, proba, classes, positive=None) -> dict[str, Any]:
    """The measures of the report, with the calibration error by its whole name, and those of decisions."""
    codes, proba = label_codes(y, classes), np.asarray(proba, dtype=np.float64)
    found = {
        "calibration_error" if name == "calibration" else name: value for name, value in measured(codes, proba).items()
    }
    return found | decisions(codes, proba, classes, positive)


def in_words(found: dict) -> list[str]:
    """What a model achieves beside the class shares, in two lines."""
    base = found["class_shares"]
    own, shares = (_text.percents(found["error"], base["error"]), _text.figures(found["log_loss"], base["log_loss"]))
    first = f"error {own[0]}, always answering {_text.printable(base['answer'])} {own[1]}; "
    second = ", ".join(f"{words} {_text.figure(found[name])}" for name, words in DECISIONS.items())
    return [f"{first}log-loss {shares[0]}, class shares {shares[1]}", f"{second} {averaged(found['positive'])}"]


def averaged(positive) -> str:
    return "(mean over the classes)" if positive is None else f"(of {_text.printable(positive)})"


def confusion_table(classes, confusion, most: int = 10) -> str:
    """The confusion matrix as text; with many classes, the most frequent confusions."""
    names = [_text.printable(label) for label in classes]
    if len(names) <= most:
        rows = [[name, *map(str, row)] for name, row in zip(names, confusion)]
        return _text.columns(["true class \\ predicted", *names], rows)
    counts = np.array(confusion) * (1 - np.eye(len(names), dtype=int))
    pairs = [divmod(int(place), len(names)) for place in np.argsort(-counts, axis=None, kind="stable")[:most]]
    rows = [[names[i], names[j], str(counts[i, j])] for i, j in pairs if counts[i, j]]
    return _text.columns(["true class", "predicted", "rows"], rows)


def _mean(values: list) -> float:
    return float(np.mean(values)) if values else float("nan")
