"""The warnings kproba gives, so that users can filter or escalate them by class; and the errors of files."""

from __future__ import annotations

import sklearn.exceptions


class KprobaWarning(UserWarning):
    """Parent of every warning of this package."""


class CheckpointError(ValueError):
    """A checkpoint is damaged, or of another version or fit; the message says which file and what to do."""


class ConditionWarning(KprobaWarning):
    """A linear system was singular or nearly so; the message says what was done about it."""


class ConvergenceWarning(KprobaWarning, sklearn.exceptions.ConvergenceWarning):
    """A fit ended before it had converged; the message says how far it came and what to do.

    A filter for scikit-learn's warning of this name works for it too.
    """


class DegenerateModelWarning(KprobaWarning):
    """A small model of a row could not be fitted; the message says what stands in for it."""


class FewRowsWarning(KprobaWarning):
    """A class, or a set of calibration rows, has too few rows for what is asked; the message says what follows."""


class IndefiniteKernelWarning(KprobaWarning):
    """A kernel matrix had negative eigenvalues, which were set to zero; the message says how much that was."""


class ModelFileWarning(KprobaWarning):
    """A model file was written by other versions; the message says which."""


class UnreadableWarning(KprobaWarning):
    """A column of new rows holds nothing that the model can read; the message says which and what it has."""


class ModelFileError(ValueError):
    """A model cannot be saved to a file, or a file cannot be loaded; the message says what is wrong with it."""


class NothingKeptWarning(KprobaWarning):
    """No threshold keeps the promised error; the message says what was found and what to do."""


class TargetWarning(KprobaWarning):
    """y is of a form that can be fitted but is hardly meant; the message says what it was taken for."""


class UnitsWarning(KprobaWarning):
    """Columns or a width are in units that leave the kernel next to nothing to see; the message says which."""
