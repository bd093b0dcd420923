"""Warnings of kproba, as classes that you can filter or turn into errors, and errors about files."""

from __future__ import annotations

import sklearn.exceptions


class KprobaWarning(UserWarning):
    """Base class of all kproba warnings."""


class CheckpointError(ValueError):
    """A checkpoint is damaged, or belongs to another version or fit; the message names the file and what to do."""


class ConditionWarning(KprobaWarning):
    """A linear system was (nearly) singular; the message says how it was solved."""


class ConvergenceWarning(KprobaWarning, sklearn.exceptions.ConvergenceWarning):
    """A fit stopped before it converged; the message says how far it got and what to do.

    Filters for scikit-learn's ``ConvergenceWarning`` match it too.
    """


class DegenerateModelWarning(KprobaWarning):
    """The model of a single sequence could not be fitted; the message says what is used instead."""


class EncodingGuessWarning(KprobaWarning):
    """A text file is not Unicode, so its encoding was guessed; the message says which one is used."""


class FewRowsWarning(KprobaWarning):
    """A class or the calibration set has too few rows; the message says what follows from that."""


class IndefiniteKernelWarning(KprobaWarning):
    """A kernel matrix had negative eigenvalues, which were set to zero; the message says how large they were."""


class ModelFileWarning(KprobaWarning):
    """A model file was written by other versions of its libraries; the message lists them."""


class UnreadableWarning(KprobaWarning):
    """A column has values that cannot be read as the others; the message names it and shows what it contains."""


class ModelFileError(ValueError):
    """A model cannot be saved, or a model file cannot be loaded; the message says why."""


class NothingKeptWarning(KprobaWarning):
    """No threshold guarantees the requested error; the message says why and what to do."""


class TargetWarning(KprobaWarning):
    """``y`` has a valid but unusual form; the message says how it was interpreted."""


class UnseenWarning(KprobaWarning):
    """New rows lack values that all training rows have, or mostly have other categories; the message names them."""


class UnitsWarning(KprobaWarning):
    """The units of the columns or of the width make the kernel nearly constant or diagonal; the message says which."""
