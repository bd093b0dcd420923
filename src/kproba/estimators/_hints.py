"""Hints in error messages: parameters of other classifiers, and missing fitted attributes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from sklearn.exceptions import NotFittedError

from ..messages import did_you_mean

#: Parameters of SVC and other classifiers: the corresponding parameter here, and how to set it.
INSTEAD = {
    "C": ("ridge", "Use ridge=..., about 1/(n*C), or leave it out: the default selects it"),
    "alpha": ("ridge", "Use ridge=..., or leave it out: the default selects it"),
    "gamma": ("width", "Use kernel='gaussian', width=(2*gamma)**-0.5, or leave it out: the default selects it"),
    "length_scale": ("width", "Use width=..., or leave it out: the default selects it"),
    "degree": ("kernel", "Use kernel=kproba.Polynomial(degree=...)"),
    "coef0": ("kernel", "Use kernel=kproba.Polynomial(coef0=...)"),
    "n_components": ("centers", "Use centers=..."),
}
#: Parameters without a counterpart here, with the reason.
NEEDLESS = {
    "probability": "all classifiers give probabilities",
    "break_ties": "predict is always the argmax of predict_proba",
    "decision_function_shape": "decision_function has one column for two classes, and one per class for more",
    "shrinking": "there is no working set",
    "cache_size": "there is no working set",
    "tol": "the solution is exact",
    "max_iter": "the solution is exact",
    "nu": "there is no margin",
}
#: Attributes that a fit sets if it computes leave-one-out scores, and if it has learnt the kernel.
LEFT_OUT = ("loo_scores_", "loo_proba_")
LEARNT = ("oof_proba_", "feature_importances_", "fold_importances_", "learning_curve_")
PAGE = "docs/leaving_svc.md lists the counterpart of every SVC parameter."


def advice_on(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown parameter; empty if there is none.

    >>> advice_on("kernal", ["kernel", "width"])
    "Did you mean 'kernel'?"
    """
    ours, how = INSTEAD.get(name, (None, ""))
    if ours is not None and ours in known:
        return f"{how}. {PAGE}"
    if ours is not None or name in NEEDLESS:
        return f"Leave it out: {NEEDLESS.get(name, 'there is no counterpart')}. {PAGE}"
    meant = did_you_mean(name, known).strip(" ()")
    return meant[:1].upper() + meant[1:]


def explain_unknown_parameters(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap the constructor so that its error for an unknown parameter suggests what to use instead."""
    parameters = inspect.signature(init).parameters
    known = [name for name in parameters if name != "self"]
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return init  # a user's subclass, which passes unknown parameters on

    @functools.wraps(init)  # keeps the constructor's signature, which scikit-learn and editors read
    def explained(self: Any, *args: Any, **kwargs: Any) -> None:
        unknown = [name for name in kwargs if name not in known]
        if unknown:
            advice = advice_on(unknown[0], known) or f"Its parameters are {', '.join(known)}."
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {unknown[0]!r}. {advice}")
        init(self, *args, **kwargs)

    return explained


def why_missing(estimator: Any, name: str) -> AttributeError:
    """The error for an attribute of :data:`LEFT_OUT` or :data:`LEARNT` if the fit did not set it."""
    kind = type(estimator).__name__
    if "coef_" not in vars(estimator):
        return NotFittedError(f"This {kind} instance is not fitted yet; fit sets {name}.")
    why = _why_not_learnt(estimator) if name in LEARNT else _why_no_leave_one_out(estimator, name)
    return AttributeError(f"{kind} has no {name}: {why}", name=name, obj=estimator)


def _why_no_leave_one_out(estimator: Any, name: str) -> str:
    on_request = "loo" in estimator.get_params(deep=False)
    in_memory = "call fit with an array in memory" + (" and loo=True" if on_request else "")
    otherwise = f"{in_memory}, or predict held-out rows, for example with sklearn.model_selection.cross_val_predict."
    if name == "loo_proba_" and not estimator.link_.gives_probabilities:
        return "link='none' gives no probabilities; use another link, or loo_scores_."
    if "_partial" in vars(estimator):
        return f"partial_fit keeps sums over the rows, not scores of single rows; {otherwise}"
    if "_is_summed_up" in vars(estimator):
        return f"the fit summed over a source of rows or a large table and kept no scores of single rows; {otherwise}"
    return "leave-one-out was not needed to select parameters, so it was not computed; use loo=True."


def _why_not_learnt(estimator: Any) -> str:
    if "learning_curve_" not in vars(estimator):
        return "the kernel was not learnt, which needs kernel='auto', width='auto' and 100 distinct dense rows."
    if not estimator.link_.gives_probabilities:
        return "link='none' gives no probabilities; use another link."
    return "the fit summed over the rows and kept none of them; hold some out instead."
