"""One BLAS thread for the tests: their matrices are small, and threads that wait for each other cost more."""

import numpy  # noqa: F401  (the limit reaches the libraries that are loaded)
import scipy.linalg  # noqa: F401
from threadpoolctl import threadpool_limits

threadpool_limits(1)
