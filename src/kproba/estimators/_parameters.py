"""Parameters that several classifiers share: their checks, and what they mean for a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from ..data.items import Items
from ..data.rows import Rows
from ..data.scaling import MODES as SCALINGS
from ..kernels import as_kernels
from ..messages import did_you_mean
from ..search.pose import CenterChoice, is_given
from ..search.widths import TimesMedian
from ..validation import LARGEST_RIDGE, check_choice, check_folds, check_given_centers, check_positive

F = TypeVar("F", bound=Callable[..., Any])


def documented_fit(fit: F) -> F:
    """Give ``fit`` the docstring that it has in every classifier."""
    fit.__doc__ = """Fit the classifier.

        Parameters
        ----------
        X : array, frame or CSR matrix of shape (n, d), a list of what the kernel compares, or a source of rows
            A source is a memory map, a Dask array or frame, or what :func:`kproba.open_rows` returns. Rows in memory
            are one too if they are more than 50,000: then a sample of them decides, and all are summed up.
        y : array of shape (n,), or a matrix (n, n_tags) of 0 and 1 for a multi-label problem
            A missing tag is NaN, None or pandas' NA: then the row does not count for it. Files bring their own labels.
        sample_weight : array of shape (n,), optional
            Weight of each row. An integer weight equals so many copies of the row.
        classes : sequence, optional
            Classes that the model shall know beside those in y.
        checkpoint : path of a folder, optional
            Where the sums so far are kept while a source is read; the same call goes on from there.

        Returns
        -------
        self
        """
    return fit


def check_search_parameters(model) -> None:
    """Refuse kernels, widths and ways to compare them that have no meaning, before any work is done."""
    as_kernels(model.kernel)
    check_choice("selection", model.selection, ("loo", "cv"))
    check_choice("scaling", model.scaling, SCALINGS)
    if not (isinstance(model.loo, bool | np.bool_) and model.loo) and model.loo != "auto":
        raise ValueError(f"loo={model.loo!r} is not known; use 'auto' or True.")
    if not isinstance(model.width, TimesMedian):
        check_positive("width", model.width, words=("auto", "median"))
    check_folds(model.folds)


def check_ridge_and_centers(model) -> None:
    check_positive("ridge", model.ridge, words=("auto",), largest=LARGEST_RIDGE)
    _check_center_mode(model.centers)


def check_centers_against(model, rows: Rows, n_given: int) -> None:
    """Refuse centres that do not go with the rows."""
    if isinstance(model.centers, int | np.integer) and model.centers > n_given:
        raise ValueError(
            f"centers={model.centers} is more than the {n_given} rows of X that have a positive weight; "
            f"use centers='all' or a smaller number."
        )
    if is_given(model.centers) and not isinstance(rows.X, Items):
        check_given_centers(model.centers, rows.X.shape[1], model._is_precomputed)


def center_choice(model, scaling) -> CenterChoice:
    """What ``centers`` says, with points that the user gave scaled as the rows are."""
    return CenterChoice(model.centers, model._given_centers(scaling) if is_given(model.centers) else None)


def knows_number_of(centers) -> bool:
    """Whether the number of centres is known before the rows are."""
    return isinstance(centers, str | Integral) and centers != "class"


def scores_of_all(loo) -> Iterator[str]:
    """Why ``loo`` needs all rows in memory, if it does."""
    if loo != "auto":
        yield "loo=True keeps the scores of all rows in memory; a source of rows has no room for them."


def center_for_every_row(centers) -> Iterator[str]:
    """Why ``centers`` needs all rows in memory, if it does."""
    if isinstance(centers, str) and centers != "auto":
        yield (
            f"centers={centers!r} has a centre for every row, which a source of rows has no room for; use "
            "'auto', a number, or an array of points."
        )


def _check_center_mode(centers) -> None:
    known = "'auto', 'all', 'class', ('class', number), a whole number, or an array of points"
    if isinstance(centers, str):
        if centers not in ("auto", "all", "class"):
            hint = did_you_mean(centers, ("auto", "all", "class"))
            raise ValueError(f"centers={centers!r} is not known{hint}; use {known}.")
    elif (
        centers is None
        or isinstance(centers, bool)
        or (isinstance(centers, Real) and not isinstance(centers, Integral))
    ):
        raise TypeError(f"centers must be {known}; got {centers!r}.")
    elif isinstance(centers, Integral):
        if int(centers) < 1:
            raise ValueError(f"centers={centers}: at least one centre is needed.")
    elif isinstance(centers, tuple) and (
        len(centers) != 2 or centers[0] != "class" or not isinstance(centers[1], Integral) or centers[1] < 1
    ):
        raise ValueError(f"centers={centers!r} is not known; use {known}.")
