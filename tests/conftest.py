"""One BLAS thread for the tests: their matrices are small, and threads that wait for each other cost more.

Hypothesis draws the same few examples in every run; ``KPROBA_HYPOTHESIS=thorough`` (``make thorough``) draws many new
ones each time. Kernels are learnt in few steps.
"""

import os
import threading

import numpy  # noqa: F401  (the limit reaches the libraries that are loaded)
import scipy.linalg  # noqa: F401
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from kproba.search.learnt import outer_folds

threadpool_limits(1, user_api="openmp")
# threadpoolctl lets only the thread that limits BLAS first change the limit again while it lives: this one ends here
_limiting = threading.Thread(target=threadpool_limits, args=(1, "blas"))
_limiting.start()
_limiting.join()

# Kernels are learnt in few steps and folds; test_learnt_kernel.py takes as many as users do.
outer_folds.MARKS, outer_folds.FOLDS = (20, 40), ((1000, 4),)

slow_draws = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
settings.register_profile("default", derandomize=True, max_examples=10, deadline=None, database=None)
settings.register_profile(
    "thorough", max_examples=400, deadline=None, print_blob=True, suppress_health_check=slow_draws
)
settings.load_profile(os.environ.get("KPROBA_HYPOTHESIS", "default"))
