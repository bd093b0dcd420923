"""What to do instead: parameters of other classifiers, and leave-one-out scores that a fit did not keep."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from sklearn.exceptions import NotFittedError

from ..messages import did_you_mean

#: Parameters of SVC, and of others that people come from: the one that stands for them here, and how to set it.
INSTEAD = {
    "C": ("ridge", "Use ridge=..., about 1/(n*C), or leave it out: the default chooses it"),
    "alpha": ("ridge", "Use ridge=..., or leave it out: the default chooses it"),
    "gamma": ("width", "Use kernel='gaussian', width=(2*gamma)**-0.5, or leave it out: the default chooses it"),
    "length_scale": ("width", "Use width=..., or leave it out: the default chooses it"),
    "degree": ("kernel", "Use kernel=kproba.Polynomial(degree=...)"),
    "coef0": ("kernel", "Use kernel=kproba.Polynomial(coef0=...)"),
    "n_components": ("centers", "Use centers=..."),
}
#: And those that nothing stands for, with the reason.
NEEDLESS = {
    "probability": "there are always probabilities",
    "break_ties": "predict is always the argmax of predict_proba",
    "decision_function_shape": "decision_function has one column for two classes, and one for each of several",
    "shrinking": "there is no working set",
    "cache_size": "there is no working set",
    "tol": "the solution is exact",
    "max_iter": "the solution is exact",
    "nu": "there is no margin",
}
PAGE = "docs/leaving_svc.md lists every parameter of SVC and what it is here."


def advice_on(name: str, known: Iterable[str]) -> str:
    """What to do about a parameter that is not among the known ones; nothing where we have no idea.

    >>> advice_on("kernal", ["kernel", "width"])
    "Did you mean 'kernel'?"
    """
    ours, how = INSTEAD.get(name, (None, ""))
    if ours is not None and ours in known:
        return f"{how}. {PAGE}"
    if ours is not None or name in NEEDLESS:
        return f"Leave it out: {NEEDLESS.get(name, 'there is nothing like it')}. {PAGE}"
    meant = did_you_mean(name, known).strip(" ()")
    return meant[:1].upper() + meant[1:]


def explain_unknown_parameters(init: Callable[..., None]) -> Callable[..., None]:
    """The constructor, whose error for a parameter that it does not have says what to use instead."""
    parameters = inspect.signature(init).parameters
    known = [name for name in parameters if name != "self"]
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return init  # a subclass of the user's, which passes on what it does not know

    @functools.wraps(init)  # the signature stays that of the constructor, for scikit-learn and for editors
    def explained(self: Any, *args: Any, **kwargs: Any) -> None:
        unknown = [name for name in kwargs if name not in known]
        if unknown:
            advice = advice_on(unknown[0], known) or f"Its parameters are {', '.join(known)}."
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {unknown[0]!r}. {advice}")
        init(self, *args, **kwargs)

    return explained


def why_no_leave_one_out(estimator: Any, name: str) -> AttributeError:
    """The error for ``loo_scores_`` or ``loo_proba_`` where a fit has not set it."""
    kind, fitted = type(estimator).__name__, vars(estimator)
    if "coef_" not in fitted:
        return NotFittedError(f"This {kind} instance is not fitted yet; fit sets {name}.")
    on_request = "loo" in estimator.get_params(deep=False)
    in_memory = "use fit with an array in memory" + (" and loo=True" if on_request else "")
    otherwise = f"{in_memory}, or predict rows that were held out, as sklearn.model_selection.cross_val_predict does."
    if name == "loo_proba_" and estimator.link == "none":
        why = "link='none' gives no probabilities; use another link, or loo_scores_."
    elif "_partial" in fitted:
        why = f"partial_fit keeps sums over the rows, and no scores of single rows; {otherwise}"
    elif "_is_summed_up" in fitted:
        why = f"the fit summed up a source of rows, or a large table, and kept no scores of single rows; {otherwise}"
    else:
        why = "nothing had to be chosen by leave-one-out, so it was not computed; use loo=True."
    return AttributeError(f"{kind} has no {name}: {why}", name=name, obj=estimator)
