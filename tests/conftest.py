"""One BLAS thread for the tests: their matrices are small, and threads that wait for each other cost more."""

import threading

import numpy  # noqa: F401  (the limit reaches the libraries that are loaded)
import scipy.linalg  # noqa: F401
from threadpoolctl import threadpool_limits

threadpool_limits(1, user_api="openmp")
# threadpoolctl lets only the thread that limits BLAS first change the limit again while it lives: this one ends here
_limiting = threading.Thread(target=threadpool_limits, args=(1, "blas"))
_limiting.start()
_limiting.join()
