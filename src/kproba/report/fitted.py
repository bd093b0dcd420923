"""What was fitted: kernel, width, ridge, link, and the path of an import vector machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.pipeline import Pipeline

from .learnt import final_step

#: Descriptions of links.
LINKS = {
    "CalibratedSoftmax": "softmax, calibrated by leave-one-out",
    "Softmax": "softmax",
    "Clip": "outputs clipped at zero",
}


@dataclass(frozen=True)
class PathFacts:
    """The path of an import vector machine."""

    ridge: np.ndarray
    log_loss: np.ndarray
    error: np.ndarray
    n_points: np.ndarray
    chosen: float


def fitted_of(model) -> tuple[tuple[str, str], ...]:
    final = final_step(model)
    pairs = [("model", repr(final))]
    if isinstance(model, Pipeline) and len(model) > 1:
        pairs.append(("earlier steps", " → ".join(type(step).__name__ for _, step in model.steps[:-1])))
    kernel = getattr(final, "kernel_", None)
    if kernel is not None:
        pairs += _fitted_kernel(final, kernel)
    return tuple(pairs)


def _fitted_kernel(final, kernel) -> list[tuple[str, str]]:
    pairs = [("kernel", kernel.name)]
    if final.width_ is not None:
        pairs.append(("width", f"{final.width_:.4g}"))
    if hasattr(final, "ridge_"):
        pairs.append(("ridge", f"{final.ridge_:.3g}"))
    kind = "import points" if hasattr(final, "import_indices_") else "centres"
    pairs.append((kind, f"{np.shape(final.coef_)[0]:,}"))
    kind = type(final.link_).__name__
    pairs.append(("link", LINKS.get(kind, kind)))
    relevance = getattr(final.scaling_, "relevance", None)
    if final.scaling_ is not None:
        is_weighted = relevance is not None and np.ptp(relevance) > 0
        pairs.append(("columns", "scaled, weighted by relevance" if is_weighted else "scaled"))
    return pairs


def path_of(final) -> PathFacts | None:
    path = getattr(final, "path_", None)
    if not path or len(path["ridge"]) < 2 or not np.isfinite(path["tuning_log_loss"]).all():
        return None
    names = ("ridge", "tuning_log_loss", "tuning_error", "n_points")
    ridge, log_loss, error, n_points = (np.asarray(path[name]) for name in names)
    return PathFacts(ridge, log_loss, error, n_points, float(final.ridge_))
