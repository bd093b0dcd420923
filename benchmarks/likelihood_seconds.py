"""What the likelihood costs beside least squares, with default settings -> results/likelihood_seconds.json.

The import vector machine with 26 classes on 2,000 rows of letter, and kernel logistic regression on 60,000 rows of
covertype_93k and of mnist, each beside LSPC on the same rows.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.metrics import log_loss

from kproba import LSPC, ConvergenceWarning, ImportVectorMachine, KernelLogisticRegression

from . import results
from .klr_loo import drawn

#: Estimator, data set and number of training rows.
CASES = (
    (ImportVectorMachine, "letter", 2000),
    (KernelLogisticRegression, "covertype_93k", 60_000),
    (KernelLogisticRegression, "mnist", 60_000),
)
TEST_ROWS = 4000


def cell(estimator, X, y, n: int) -> dict:
    """Seconds of a fit, those of all its threads, and the log-loss of the other rows."""
    model, busy = estimator(random_state=0), time.process_time()
    _, seconds = results.timed(lambda: model.fit(X[:n], y[:n]))
    busy = time.process_time() - busy
    loss = log_loss(y[n:], model.predict_proba(X[n:]), labels=model.classes_)
    return {"seconds": seconds, "cpu_seconds": busy, "log_loss": float(loss), "centers": len(model.centers_)}


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=[name for _, name, _ in CASES])
    parser.add_argument("--rows", type=int, help="fewer training rows than usual")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore", ConvergenceWarning)
    cells = {}
    for estimator, name, usual in CASES:
        if name not in args.sets:
            continue
        n = min(usual, args.rows or usual)
        X, y = drawn(name, args.data_dir, n + TEST_ROWS)
        known = np.isin(y, np.unique(y[:n]))
        found = {each.__name__: cell(each, X[known], y[known], n) for each in (LSPC, estimator)}
        own, other = (found[each.__name__]["seconds"] for each in (estimator, LSPC))
        cells[f"{estimator.__name__} {name} {n}"] = found | {"times_lspc": own / other}
        print(name, found, f"{own / other:.2f} x LSPC", file=sys.stderr, flush=True)
    results.write("likelihood_seconds", {"cells": cells}, args.out)


if __name__ == "__main__":
    main()
