"""The one loop that adds jitter to a system until it can be factored."""

import numpy as np
import pytest

from kproba.problems.import_vectors.model import lower_factor
from kproba.solvers.box_qp import _lower
from kproba.solvers.cholesky import jittered_factor, kernel_factor, rounding_level, smallest_jitter


def test_smallest_jitter():
    tried = []

    def decompose(jitter):
        tried.append(jitter)
        return "factor" if jitter > 50.0 else None

    assert smallest_jitter(decompose, 1.0) == ("factor", 100.0)
    assert tried == [0.0, 1.0, 10.0, 100.0]


@pytest.mark.parametrize("level", [1.0, np.nan])
def test_no_endless_loop(level):
    with pytest.raises(np.linalg.LinAlgError, match="NaN or infinity"):
        smallest_jitter(lambda jitter: None, level)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("decompose", [kernel_factor, lower_factor, _lower])
def test_systems_that_are_not_finite(decompose, value):
    with pytest.raises(np.linalg.LinAlgError, match="NaN or infinity"):
        decompose(np.array([[value, 0.0], [0.0, 1.0]]))


def test_a_system_of_zeros_gets_jitter():
    lower = jittered_factor(np.zeros((2, 2)), 0.0)
    assert np.isfinite(lower).all() and (np.diagonal(lower) > 0).all()


def test_factors_of_singular_systems():
    """Of a matrix of rank one: exact up to the jitter, which is at rounding level."""
    ones = np.ones((5, 5))
    for lower in (kernel_factor(ones), lower_factor(ones), _lower(ones)):
        np.testing.assert_allclose(np.tril(lower) @ np.tril(lower).T, ones, atol=100 * rounding_level(np.ones(5)))
