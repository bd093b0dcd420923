"""One BLAS thread for the tests: their matrices are small, and threads that wait for each other cost more.

Hypothesis draws the same few examples in every run; ``KPROBA_HYPOTHESIS=thorough`` (``make thorough``) draws many new
ones each time. Kernels are learnt in few steps.
"""

import os
import threading

import numpy  # noqa: F401  (the limit reaches the libraries that are loaded)
import pytest
import scipy.linalg  # noqa: F401
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from kproba.estimators import _learning
from kproba.search.learnt import many_rows, outer_folds, steps

threadpool_limits(1, user_api="openmp")
# threadpoolctl lets only the thread that limits BLAS first change the limit again while it lives: this one ends here
_limiting = threading.Thread(target=threadpool_limits, args=(1, "blas"))
_limiting.start()
_limiting.join()

slow_draws = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
settings.register_profile("default", derandomize=True, max_examples=10, deadline=None, database=None)
settings.register_profile(
    "thorough", max_examples=400, deadline=None, print_blob=True, suppress_health_check=slow_draws
)
settings.load_profile(os.environ.get("KPROBA_HYPOTHESIS", "default"))


@pytest.fixture(scope="module", autouse=True)
def few_steps():
    """Learn kernels in few steps on small samples; test_learnt_kernel.py and the examples in docs take more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outer_folds, "MARKS", (6, 14))
        patch.setattr(outer_folds, "FOLDS", ((1000, 3),))
        patch.setattr(_learning, "MANY_FOLDS", 3)
        patch.setattr(outer_folds, "FIT_ROWS", 150)
        patch.setattr(steps, "SAMPLES", ())
        patch.setattr(steps, "SAMPLE_ROWS", 100)
        patch.setattr(steps, "WARM_UP", 6)
        patch.setattr(steps, "STEP", 0.25)
        patch.setattr(steps, "REFINE_ROWS", 150)
        patch.setattr(steps, "REFINE_STEPS", 5)
        patch.setattr(steps, "CHAIN_ROWS", 150)
        patch.setattr(steps, "CHAIN_STEPS", 5)
        patch.setattr(many_rows, "LARGE_SAMPLE", 300)
        yield
