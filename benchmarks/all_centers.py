"""All 16,000 rows of letter as centres beside others that do as much work -> results/all_centers.json.

Every contender fits in a process of its own, which tells its peak memory.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier

from kproba import LSPC
from kproba.data.rows import Rows
from kproba.links import fit_link

from . import leverage_error, results, rivals
from .letter import load_letter
from .memory import resident
from .rivals import eigenpro, falkon
from .tables_quality import measure

AS_THEY_COME = ("all", "default", "lightgbm")
GIVEN_OURS = ("all_given", "eigenpro", "falkon_4000", "falkon_8000", "nystroem_sgd")
PARTS = ("ridge", "leverage")
#: Rows whose leverages are compared with exact ones, and the steps of the ridge around the one that was chosen.
LEVERAGE_ROWS, RIDGE_STEPS = 8000, (10**-0.5, 1.0, 10**0.5)
#: Ridges of Falkon in units of ours, penalties of the stochastic gradients, and their Nyström features.
FALKON_RIDGES, SGD_PENALTIES, COMPONENTS = (0.1, 0.01, 0.001), (1e-5, 1e-6), 2000
#: EigenPro is looked at after every so many passes; it ends after so many looks without gain or times our seconds.
PASSES, PATIENCE, TIMES_OURS = 5, 4, 3.0
NOTE = (
    "Official split. all: LSPC('laplacian', centers='all'), default: LSPC(), lightgbm: LGBMClassifier(), each as it "
    "comes. The others are given the scaled columns, kernel and width that 'all' chose, for nothing; all_given, LSPC "
    "once more, has the ridge too, and its leave-one-out scores and link from the same rows as ever. eigenpro and "
    "falkon are "
    "re-implementations in NumPy after the papers (2019, 2017), because the packages cannot be installed from the "
    "index; both keep kernel values in float32. Their passes or ridge, and the same calibrated link as ours, come from "
    "a first run on nine tenths of the rows, judged by the last tenth, whose time is first_run_seconds; fit_seconds "
    "are those of the second run, on all rows. "
    f"EigenPro's runs end after {TIMES_OURS:g} times our seconds at the latest. nystroem_sgd: Nystroem({COMPONENTS}) "
    "and SGDClassifier(loss='log_loss'), its penalty chosen alike. fit_seconds are of the wall, cpu_seconds of all "
    "threads; peak_bytes is the most that the process held. ridge: leave-one-out losses of all rows around the ridge "
    "that a sample chose. leverage: errors of 1 - h in shares of it, and log-losses after calibration by leave-one-out "
    "scores of the exact solution that take these leverages."
)


class Data(NamedTuple):
    """Rows, and labels as numbers."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @classmethod
    def load(cls, folder, rows: int | None) -> Data:
        X, y, X_test, y_test = load_letter(folder)
        classes, y = np.unique(y, return_inverse=True)
        return cls(X[:rows], y[:rows], X_test, np.searchsorted(classes, y_test))

    def scaled(self, scaling) -> Data:
        return Data(scaling(self.X), self.y, scaling(self.X_test), self.y_test)

    def parted(self) -> Data:
        """Nine tenths of the training rows, and one tenth in place of the test."""
        few, most = np.split(np.random.default_rng(0).permutation(len(self.y)), [len(self.y) // 10])
        return Data(self.X[most], self.y[most], self.X[few], self.y[few])

    @property
    def targets(self) -> np.ndarray:
        return np.eye(self.y.max() + 1)[self.y]

    def measured(self, proba) -> dict:
        return measure(self.y_test, proba, np.arange(proba.shape[1]))

    def calibrated(self, scores):
        """Our link fitted on scores of the rows in place of the test, and its log-loss there."""
        link = fit_link("auto", scores, Rows.of(self.X_test, self.y_test, np.ones(len(scores)), scores.shape[1]))
        return self.measured(link.probabilities(scores))["log_loss"], link


class Chosen(NamedTuple):
    """What LSPC(centers="all") settled on, and its seconds."""

    scaling: Any
    kernel: Any
    ridge: float
    seconds: float


def clocked(fit: Callable) -> tuple[Any, dict]:
    """What is fitted, in what time, and the most that the process ever held."""
    cpu = time.process_time()
    model, seconds = results.timed(fit)
    cpu = time.process_time() - cpu
    return model, {"fit_seconds": seconds, "cpu_seconds": cpu, "peak_bytes": resident()[1]}


def first_run(cell: dict) -> dict:
    """What it took to choose passes or ridge, and the link, on nine tenths of the rows."""
    return {"first_run_seconds": cell["fit_seconds"], "first_run_cpu_seconds": cell["cpu_seconds"]}


def as_it_comes(name: str, data: Data, kept: Path) -> dict:
    fits: dict[str, Callable] = {
        "all": lambda: LSPC(kernel="laplacian", centers="all", random_state=0).fit(data.X, data.y),
        "default": lambda: LSPC(random_state=0).fit(data.X, data.y),
        "lightgbm": lambda: rivals.get("lightgbm").fit(data.X, data.y, np.zeros(data.X.shape[1], dtype=bool)),
    }
    model, cell = clocked(fits[name])
    cell |= data.measured(model.predict_proba(data.X_test))
    if name == "all":
        kept.write_bytes(pickle.dumps(Chosen(model.scaling_, model.kernel_, model.ridge_, cell["fit_seconds"])))
    if name != "lightgbm":
        cell |= {"kernel": model.kernel_.name, "width": model.width_, "ridge": model.ridge_}
        cell["centers"] = len(model.coef_)
    return cell


def with_everything_given(data: Data, chosen: Chosen) -> dict:
    model = LSPC(kernel=chosen.kernel, ridge=chosen.ridge, centers="all", scaling=None, random_state=0)
    _, cell = clocked(lambda: model.fit(data.X, data.y))
    return cell | data.measured(model.predict_proba(data.X_test)) | {"centers": len(model.coef_)}


def looks_of_eigenpro(data: Data, chosen: Chosen) -> tuple[list, str]:
    """Log-loss and link after every few passes over nine tenths of the rows, and what ended them."""
    part, looks = data.parted(), []
    features, start = chosen.kernel(part.X_test, part.X), time.perf_counter()
    run = eigenpro.epochs(chosen.kernel, part.X, part.targets)
    while time.perf_counter() - start < TIMES_OURS * chosen.seconds:
        coef = next(islice(run, PASSES - 1, None))
        looks.append(part.calibrated(features @ coef))
        losses = [loss for loss, _ in looks]
        if min(losses[-PATIENCE:]) > min(losses):
            return looks, "no more gain"
    return looks, "time"


def with_eigenpro(data: Data, chosen: Chosen) -> dict:
    """As many passes as were best for nine tenths of the rows, within the time."""
    (looks, ended_by), first = clocked(lambda: looks_of_eigenpro(data, chosen))
    best = int(np.argmin([loss for loss, _ in looks]))
    passes = PASSES * (best + 1)
    fit = eigenpro.epochs(chosen.kernel, data.X, data.targets)
    coef, cell = clocked(lambda: next(islice(fit, passes - 1, None)))
    scores = chosen.kernel(data.X_test, data.X) @ coef
    cell |= data.measured(looks[best][1].probabilities(scores))
    return cell | first_run(first) | {"passes": passes, "first_run_ended_by": ended_by}


def with_falkon(data: Data, chosen: Chosen, n_centers: int) -> dict:
    def scores(of: Data, ridge):
        centers, coef = falkon.solve(chosen.kernel, of.X, of.targets, ridge, n_centers)
        return chosen.kernel(of.X_test, centers) @ coef

    part, ridges = data.parted(), [factor * chosen.ridge for factor in FALKON_RIDGES]
    looks, first = clocked(lambda: {ridge: part.calibrated(scores(part, ridge)) for ridge in ridges})
    ridge = min(looks, key=lambda r: looks[r][0])
    found, cell = clocked(lambda: scores(data, ridge))
    cell |= data.measured(looks[ridge][1].probabilities(found))
    return cell | first_run(first) | {"ridge": ridge, "centers": n_centers}


def with_nystroem(data: Data, chosen: Chosen) -> dict:
    width = chosen.kernel.width
    kernels = {"laplacian": ("laplacian", 1.0 / width), "gaussian": ("rbf", 0.5 / width**2)}
    kernel, gamma = kernels[chosen.kernel.name]

    def fit(of: Data, penalty):
        features = Nystroem(kernel, gamma=gamma, n_components=min(COMPONENTS, len(of.X)), random_state=0).fit(of.X)
        model = SGDClassifier(loss="log_loss", alpha=penalty, n_jobs=-1, random_state=0)
        model.fit(features.transform(of.X), of.y)
        return lambda X: model.predict_proba(features.transform(X))

    part = data.parted()
    losses, first = clocked(lambda: {a: part.measured(fit(part, a)(part.X_test))["log_loss"] for a in SGD_PENALTIES})
    penalty = min(losses, key=losses.__getitem__)
    proba, cell = clocked(lambda: fit(data, penalty))
    return cell | data.measured(proba(data.X_test)) | first_run(first) | {"penalty": penalty, "centers": COMPONENTS}


def around_ridge(data: Data, chosen: Chosen) -> dict[str, float]:
    """Leave-one-out losses of all rows at the chosen ridge and beside it."""
    ridges = [chosen.ridge * step for step in RIDGE_STEPS]
    model = LSPC(kernel=chosen.kernel, ridge=ridges, centers="all", scaling=None, random_state=0).fit(data.X, data.y)
    tried = model.search_results_
    last = tried["rows"] == tried["rows"].max()
    return {f"{ridge:.3g}": loss for ridge, loss in zip(tried["ridge"][last], tried["loss"][last])}


def point(name: str, data: Data, kept: Path) -> dict:
    """One contender in this process."""
    if name in AS_THEY_COME:
        return as_it_comes(name, data, kept)
    chosen = pickle.loads(kept.read_bytes())
    data = data.scaled(chosen.scaling)
    if name == "leverage":
        X, y = data.X[:LEVERAGE_ROWS], data.y[:LEVERAGE_ROWS]
        return leverage_error.compared(X, y, data.X_test, data.y_test, chosen.kernel, chosen.ridge)
    if name == "ridge":
        return around_ridge(data, chosen)
    if name.startswith("falkon"):
        return with_falkon(data, chosen, min(int(name.removeprefix("falkon_")), len(data.y) // 2))
    others = {"all_given": with_everything_given, "eigenpro": with_eigenpro, "nystroem_sgd": with_nystroem}
    return others[name](data, chosen)


def in_fresh_process(name: str, kept: Path, args) -> dict:
    command = [sys.executable, "-m", "benchmarks.all_centers", "--point", name, str(kept)]
    for option, value in (("--data-dir", args.data_dir), ("--rows", args.rows)):
        command += [option, str(value)] if value is not None else []
    done = subprocess.run(command, capture_output=True, text=True, cwd=results.ROOT, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--point", nargs=2, metavar=("NAME", "FILE"), help="fit one contender in this process")
    parser.add_argument("--rows", type=int, help="only so many training rows, for a trial")
    names = (*AS_THEY_COME, *GIVEN_OURS, *PARTS)
    help_only = "run these anew, and 'all', whose choice they take; keep the others' cells"
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=help_only)
    args = parser.parse_args(argv)
    if args.point:
        cell = point(args.point[0], Data.load(args.data_dir, args.rows), Path(args.point[1]))
        print(json.dumps(cell, default=float))
        return
    payload: dict[str, Any] = {"cells": {}} | (results.read("all_centers", args.out) or {}) | {"note": NOTE}
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "chosen.pickle"
        for name in (name for name in names if name == "all" or name in args.only):
            cell = in_fresh_process(name, kept, args)
            print(f"{name}: {cell}", file=sys.stderr, flush=True)
            (payload if name in PARTS else payload["cells"])[name] = cell
            payload["cells"] = {key: payload["cells"][key] for key in names if key in payload["cells"]}
            results.write("all_centers", payload, args.out)


if __name__ == "__main__":
    main()
