"""Parameters shared by several classifiers: their checks and their meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import cleandoc
from numbers import Integral, Real
from textwrap import indent
from typing import Any, TypeVar

import numpy as np

from ..data.items import Items
from ..data.rows import Rows
from ..data.scaling import MODES as SCALINGS
from ..kernels import as_kernels
from ..messages import did_you_mean
from ..search.pose import CenterChoice, is_given
from ..search.widths import TimesMedian
from ..validation import LARGEST_RIDGE, check_choice, check_count, check_given_centers, check_positive
from ._base import KernelClassifier
from ._reading import Training
from ._sanity import refuse_more_than_memory

F = TypeVar("F", bound=Callable[..., Any])


def documented_fit(fit: F) -> F:
    """Give ``fit`` the docstring that the classifiers share; its own docstring describes further parameters."""
    more = indent("\n" + cleandoc(fit.__doc__), " " * 8) if fit.__doc__ else ""
    fit.__doc__ = f"""Fit the classifier.

        Parameters
        ----------
        X : array, frame or CSR matrix of shape (n, d), a list of objects that the kernel compares, or a source of rows
            A source is a memory map, a Dask array or frame, or the result of :func:`kproba.open_rows`. More than 50,000
            rows in memory are treated like a source: a sample selects the parameters, and sums over all rows fit them.
        y : array of shape (n,), or a 0/1 matrix of shape (n, n_tags) for a multi-label problem
            A missing tag is NaN, None or pandas' NA; the row is then ignored for that tag. Leave y out if X is opened
            from files with a target column.
        sample_weight : array of shape (n,), optional
            Row weights. An integer weight k is equivalent to k copies of the row. Weights that are not all whole
            numbers say how much a row matters.{more}
        classes : sequence, optional
            Classes in addition to those that occur in y.
        checkpoint : path of a folder, optional
            Where to save partial sums while a source is read. If the fit is interrupted, repeat the call to resume it.
        groups : array of shape (n,), optional
            Rows that belong together, such as the visits of one patient: they share a fold and are left out together
            in everything that selects the model or calibrates its probabilities.

        Returns
        -------
        self
        """
    return fit


def check_search_parameters(model) -> None:
    """Raise an error for an invalid kernel, width or selection method before any work is done."""
    as_kernels(model.kernel)
    check_choice("selection", model.selection, ("loo", "cv"))
    check_choice("scaling", model.scaling, SCALINGS)
    if not (isinstance(model.loo, bool | np.bool_) and model.loo) and model.loo != "auto":
        raise ValueError(f"loo must be 'auto' or True, got {model.loo!r}.")
    if not isinstance(model.width, TimesMedian):
        check_positive("width", model.width, words=("auto", "median"))
    check_count("folds", model.folds, least=2)


def scores_of_all(loo) -> Iterator[str]:
    """Why ``loo`` needs all rows in memory, if it does."""
    if loo != "auto":
        yield "loo=True keeps the scores of all rows in memory, which a source of rows may exceed; use loo='auto'."


class CenterClassifier(KernelClassifier):
    """Base class of LSPC and kernel logistic regression, which have a ridge and choose their centres among the rows."""

    ridge: Any
    centers: Any
    loo: Any
    selection: Any
    folds: Any

    @property
    def _is_rkhs(self) -> bool:
        """Whether the penalty is that of the functions, not of the coefficients."""
        raise NotImplementedError

    def _ridge_unit(self, size: float) -> float:
        """The unit of the ridge when k(x, x) is about ``size``."""
        return size if self._is_rkhs else size**2

    def _n_folds(self, data: Training) -> int | None:
        """Number of folds that select the parameters; None for leave-one-out."""
        return int(self.folds) if self.selection == "cv" or data.has_groups else None

    @property
    def _has_own_centers(self) -> bool:
        """Whether each class has centres of its own."""
        return self.centers == "class" if isinstance(self.centers, str) else isinstance(self.centers, tuple)

    @property
    def _knows_number_of_centers(self) -> bool:
        """Whether the number of centres follows from the number of rows."""
        return isinstance(self.centers, str | Integral) and self.centers not in ("class", "local")

    def _choice_of_centers(self, scaling) -> CenterChoice:
        """The choice that ``centers`` stands for; the user's points are scaled like the rows."""
        return CenterChoice(self.centers, self._given_centers(scaling) if is_given(self.centers) else None)

    def _reasons_for_memory(self) -> Iterator[str]:
        yield from super()._reasons_for_memory()
        yield from scores_of_all(self.loo)
        if isinstance(self.centers, str) and self.centers not in ("auto", "local"):
            yield (
                f"centers={self.centers!r} makes every row a centre, which is too many for a source of rows; use "
                "'auto', a number, or an array of points."
            )

    def _check_ridge_and_centers(
        self, or_zero: bool = False, names: tuple[str, ...] = ("auto", "all", "class")
    ) -> None:
        """Raise an error for an invalid ridge, or for centres not among the ``names`` and not given otherwise."""
        check_positive("ridge", self.ridge, words=("auto",), largest=LARGEST_RIDGE, or_zero=or_zero)
        _check_center_mode(self.centers, names)

    def _check_centers_against(self, rows: Rows, n_given: int, makes_squares: bool) -> None:
        """Raise an error for centres that do not match the rows, or whose square matrix does not fit in memory."""
        if isinstance(self.centers, int | np.integer) and self.centers > n_given:
            raise ValueError(
                f"centers={self.centers} is more than the {n_given} rows of X with positive weight; "
                f"use centers='all' or a smaller number."
            )
        if is_given(self.centers) and not isinstance(rows.X, Items):
            check_given_centers(self._given_points(), rows.X.shape[1], self._is_precomputed)
        if makes_squares and self.device_ is None:
            refuse_more_than_memory(round(CenterChoice(self.centers).density(rows.n_distinct) * rows.n_distinct))


def _check_center_mode(centers, names: tuple[str, ...]) -> None:
    known = f"{', '.join(map(repr, names))}, ('class', number), an integer, or an array of points"
    if isinstance(centers, str):
        if centers not in names:
            hint = did_you_mean(centers, names)
            raise ValueError(f"centers must be {known}, got {centers!r}{hint}.")
    elif (
        centers is None
        or isinstance(centers, bool)
        or (isinstance(centers, Real) and not isinstance(centers, Integral))
    ):
        raise TypeError(f"centers must be {known}, got {centers!r}.")
    elif isinstance(centers, Integral):
        if int(centers) < 1:
            raise ValueError(f"centers={centers}: at least one centre is needed.")
    elif isinstance(centers, tuple) and (
        len(centers) != 2 or centers[0] != "class" or not isinstance(centers[1], Integral) or centers[1] < 1
    ):
        raise ValueError(f"centers must be {known}, got {centers!r}.")
