"""Random problems over all estimators and parameters -> results/random_problems.json.

Whatever is drawn, a model gives probabilities or an error that names the argument at fault. The seed is all there is
to a problem: ``python -m benchmarks.random_problems --seed 123`` draws problem 123 again and prints it with what
became of it. A run that is interrupted goes on where it was.
"""

from __future__ import annotations

import re
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from kproba.exceptions import KprobaWarning
from kproba.kernels import Gaussian, Matern
from kproba.search.widths import TimesMedian

from . import results

PROBLEMS, EVERY, LIMIT_SECONDS = 10_000, 100, 30.0
NOTE = (
    "Each problem is an estimator with random parameters (one in eight has a value that makes no sense) and a random "
    "table: 2 to 60 rows, 1 to 6 columns, few values, ties, copies under other labels, constant columns, scales from "
    "1e-300 to 1e300, ten types of numbers and containers, eight types of labels, tags with missing values, and "
    "weights from 5e-324 to 1e308. Checked: finite probabilities within [0, 1] whose rows sum to one to float64 "
    "precision, also leave-one-out; predict is their argmax; errors are ValueError or TypeError and name an argument; "
    "no warnings but those of kproba, of convergence, and scikit-learn's that y may be a regression; no problem "
    "takes more than 30 seconds of a core."
)
#: How often each estimator is drawn: one fit of the last two with nothing given takes half a second.
SHARES = {LSPC: 0.4, KernelLogisticRegression: 0.25, ImportVectorMachine: 0.15, SurfaceKernelClassifier: 0.2}
#: What stands for a parameter where nobody checks it.
NONSENSE = (-1, 0, -0.5, np.nan, np.inf, "nonsense", None, [], (), {}, True, 1.5, "Auto", b"auto", [1.0, -1.0])
FIT_ARGUMENTS = ("X", "y", "sample_weight", "classes", "tuning", "checkpoint")


class Problem(NamedTuple):
    """A model, what it is fitted on, and new rows (None where only its own are predicted)."""

    model: Any
    X: Any
    y: Any
    weight: np.ndarray | None
    new: np.ndarray | None
    fit: str

    def describe(self) -> str:
        about = f"{type(self.X).__name__} {np.shape(self.X)} {getattr(self.X, 'dtype', '')}"
        labels = f"{np.asarray(self.y).dtype} {np.shape(self.y)}"
        weight = "" if self.weight is None else f", weights {self.weight.min():.3g} to {self.weight.max():.3g}"
        model = re.sub(r"\s+", " ", self.model.__repr__(N_CHAR_MAX=2000))
        return f"{self.fit} {model} on {about}, y {labels}{weight}"


class Drawing:
    """Random choices of everything a problem has."""

    def __init__(self, seed: int):
        self.seed, self.rng = seed, np.random.default_rng(seed)

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def one(self, *options):
        return options[self.rng.integers(len(options))]

    def usual(self, usual, *others, share: float = 0.5):
        """The usual value, or one of the others."""
        return usual if self.chance(share) else self.one(*others)

    def problem(self) -> Problem:
        kinds, shares = list(SHARES), list(SHARES.values())
        kind = kinds[self.rng.choice(len(kinds), p=shares)]
        n, d = int(self.rng.integers(2, 61)), int(self.rng.integers(1, 7))
        X = self.table(n, d)
        y = self.tags(n) if self.chance(0.15) else self.labels(n)
        self.copy_rows(X, y)
        fit = self.usual("fit", "partial_fit", "classes", share=0.9) if y.ndim == 1 else "fit"
        given = self.parameters(kind, X, y)
        if self.chance(0.9):
            given |= agreeing(given, y.ndim == 2, fit)
            X = np.abs(X) if given["kernel"] in ("chi2", "intersection") else X
        if self.chance(1 / 8):
            given[self.one(*sorted({*given, "n_jobs", "random_state"}))] = self.one(*NONSENSE)
        return self.as_given(kind(**given), X, y, self.weights(n), fit)

    # tables -----------------------------------------------------------------------------------------------------

    def table(self, n: int, d: int) -> np.ndarray:
        X = np.column_stack([self.column(n) for _ in range(d)]).astype(np.float64)
        return X * self.scale() if self.chance(0.7) else X * [self.scale() for _ in range(d)]

    def scale(self) -> float:
        return self.usual(1.0, 10.0 ** self.rng.uniform(-300, 300), 10.0 ** self.rng.uniform(-12, 12), share=0.7)

    def column(self, n: int) -> np.ndarray:
        draw: Callable[[], Any] = self.one(
            lambda: self.rng.normal(size=n),
            lambda: self.rng.normal(size=n).round(),
            lambda: self.rng.integers(0, 2, n),
            lambda: self.rng.integers(-2, 3, n),
            lambda: np.full(n, self.one(0.0, 1.0, -3.7)),
            lambda: self.rng.normal(size=n) + self.one(0.0, 1e3, 1e6, -1e9),
            lambda: np.where(self.rng.random(n) < 0.1, 1e6, self.rng.normal(size=n)),
            lambda: self.rng.standard_cauchy(n),
        )
        return draw()

    def copy_rows(self, X: np.ndarray, y: np.ndarray) -> None:
        """Overwrite some rows by copies of others, which keep their labels or get those of others."""
        if self.chance(0.3):
            n = len(X)
            which = self.rng.integers(0, n, n // 2)
            X[which] = X[self.rng.integers(0, n, n // 2)]
            if self.chance(0.5):
                y[which] = y[self.rng.integers(0, n, n // 2)]

    def labels(self, n: int) -> np.ndarray:
        c = min(n, self.usual(2, 3, 4, 7, 20, share=0.5))
        codes = np.concatenate([np.arange(c), self.rng.integers(0, c, n - c)])
        if self.chance(0.2):  # classes of one row
            codes[c:] = 0
        self.rng.shuffle(codes)
        words = np.array([f"class {i:02d}" for i in range(c)])
        names: list[np.ndarray] = [np.arange(c), words, words.astype(object), np.arange(c) - 5]
        names += [np.arange(c) * 1.0, np.arange(c) * 10**12, np.arange(c).astype(np.int8)]
        return self.one(*names, np.arange(c) % 2 == 0)[codes]

    def tags(self, n: int) -> np.ndarray:
        Y = (self.rng.random((n, int(self.rng.integers(2, 5)))) < self.usual(0.4, 0.1, 0.9)).astype(float)
        if self.chance(0.4):
            Y[self.rng.random(Y.shape) < 0.2] = np.nan
        return Y

    def weights(self, n: int) -> np.ndarray | None:
        draw: Callable[[], Any] = self.one(
            lambda: self.rng.integers(0, 4, n),
            lambda: self.rng.integers(1, 4, n),
            lambda: self.rng.uniform(0, 2, n),
            lambda: 10.0 ** self.rng.uniform(-30, 15, n),
            lambda: np.full(n, self.one(1e14, 1e-14)),
            lambda: self.one(10.0 ** self.rng.uniform(-300, 300, n), np.full(n, self.one(1e308, 5e-324))),
            lambda: np.where(self.rng.random(n) < 0.5, 0.0, 1.0),
            lambda: np.where(self.rng.random(n) < 0.2, self.one(1e308, 1e15, 1e6, 1e-6, 1e-15, 1e-40, 5e-324), 1.0),
            lambda: np.where(self.rng.random(n) < 0.1, self.one(-1.0, np.nan, np.inf), 1.0),
        )
        return None if self.chance(0.6) else np.asarray(draw(), dtype=np.float64)

    def as_given(self, model, X: np.ndarray, y: np.ndarray, weight, fit: str) -> Problem:
        """The table as one of many types."""
        if isinstance(model.kernel, str) and model.kernel == "precomputed":
            return Problem(model, self.gram(X), y, weight, None, "fit")
        y = self.one(pd.Series, pd.Categorical, list)(y) if y.ndim == 1 and self.chance(0.1) else y
        X, is_plain = self.container(self.typed(X))
        new = None
        if is_plain:
            rows = np.asarray(X, dtype=np.float64)
            move = 0.3 * rows.std(axis=0) * self.rng.normal(size=rows.shape) if np.abs(rows).max() < 1e100 else 0.0
            far = rows[:2] * 1e3 if np.abs(rows).max() < 1e100 else rows[:2] * 0.0
            new = np.vstack([rows + move, far, 0.0 * rows[:1]])
        return Problem(model, X, y, weight, new, fit)

    def gram(self, X: np.ndarray) -> np.ndarray:
        size = np.abs(X).max() or 1.0
        Z = X / size
        return np.exp(-np.square(Z[:, None] - Z).sum(axis=2)) * self.usual(1.0, 1e-8, 1e8)

    def typed(self, X: np.ndarray) -> np.ndarray:
        low = self.usual(np.float64, np.float32, np.float16, bool, np.int8, np.int64, object, share=0.5)
        if low is np.float64 or low is object:
            return X.astype(low)
        if low is bool:
            return np.median(X, axis=0) < X
        largest = float(np.finfo(low).max if np.issubdtype(low, np.floating) else np.iinfo(np.int8).max)
        return np.clip(X, -largest, largest).astype(low)

    def container(self, X: np.ndarray) -> tuple[Any, bool]:
        """X as users have it, and whether plain rows can be predicted by the model too."""
        if self.chance(0.6):
            return X, True
        if X.dtype != object and X.dtype != np.float16 and self.chance(0.4):
            return self.one(sparse.csr_array, sparse.csc_matrix, sparse.coo_array)(X), False
        read_only = X.copy()
        read_only.flags.writeable = False
        return self.one((X.tolist(), True), (pd.DataFrame(X), True), (np.asfortranarray(X), True), (read_only, True))

    # parameters -------------------------------------------------------------------------------------------------

    def parameters(self, kind, X: np.ndarray, y: np.ndarray) -> dict:
        classes = [] if y.ndim == 2 else np.unique(y).tolist()
        shared = {
            "kernel": self.kernel(),
            "width": self.usual(1.0, "median", "auto", [0.5, 2.0], TimesMedian((0.5, 1.0)), self.extreme(), share=0.6),
            "scaling": self.usual("auto", "robust", "standard", None),
            "class_weight": self.usual(
                None, "balanced", {each: self.one(0.0, 0.5, 2.0) for each in classes}, share=0.8
            ),
            "n_jobs": self.usual(1, None, 2, share=0.9),
            "random_state": self.seed,
        }
        return shared | getattr(self, f"_{kind.__name__.lower()}")(X, classes)

    def extreme(self) -> float:
        return self.one(1e-3, 1e3, 1e-12, 1e12, 1e-100, 1e100, 1e-300, 1e300)

    def kernel(self):
        names = ("laplacian", "matern12", "matern32", "matern52", "linear", "polynomial", "precomputed", "chi2")
        others = (Gaussian(), Gaussian(2.0), Matern(1.0, 1.5), bounded_kernel, "intersection", "auto")
        return self.usual("gaussian", *names, *others, share=0.4)

    def ridge(self, word: str):
        return self.usual(1e-2, word, 1.0, 1e-6, [1e-4, 1e-1], 0.1, self.extreme(), share=0.4)

    def centers(self, X: np.ndarray):
        some = X[self.rng.integers(0, len(X), int(self.rng.integers(1, 6)))]
        number = int(self.rng.integers(1, len(X) + 2))
        return self.usual("auto", "all", "class", ("class", number), number, some, some + 1.0, share=0.3)

    def _searched(self, X) -> dict:
        return {
            "ridge": self.ridge("auto"),
            "centers": self.centers(X),
            "selection": self.usual("loo", "cv", share=0.8),
            "folds": self.one(2, 3, 5, 50),
            "loo": self.one("auto", True),
        }

    def _lspc(self, X, classes) -> dict:
        A = self.rng.normal(size=(len(classes), len(classes)))
        return self._searched(X) | {
            "link": self.usual("auto", "softmax", "clip", "clip-parameters", "none"),
            "penalty": self.one("auto", "rkhs", "parameters"),
            "solver": self.usual("auto", "cholesky", "eigen", "cg", "sgd", share=0.6),
            "passes": self.one(1, 3),
            "class_similarity": self.usual(None, A @ A.T, np.eye(len(classes)), A, np.ones_like(A), share=0.9),
        }

    def _kernellogisticregression(self, X, classes) -> dict:
        return self._searched(X) | {
            "solver": self.usual("auto", "newton", "lbfgs", "sgd", share=0.6),
            "tol": self.one(1e-4, 1e-2, 1e-8),
            "max_iter": self.one(100, 1, 10),
        }

    def _importvectormachine(self, X, classes) -> dict:
        return {
            "ridge": self.usual(self.ridge("path"), 1e-2, share=0.5),
            "search": self.usual("one-step", "exact", share=0.8),
            "tol": self.one(1e-3, 1e-2, 1e-6),
            "lookback": self.one(1, 3),
            "max_points": self.one("auto", None, 1, 5),
            "candidates": self.one("auto", "all", 3),
            "tuning_fraction": self.one(0.25, 0.5, 0.01, 0.99),
            "tuning_loss": self.one("log-loss", "error"),
        }

    def _surfacekernelclassifier(self, X, classes) -> dict:
        some = X[self.rng.integers(0, len(X), int(self.rng.integers(1, 6)))]
        return {
            "n_centers": self.usual(5, "auto", 1, 200),
            "solver": self.usual("exact", "nelder-mead", "swarm", share=0.8),
            "centers": self.usual("random", "auto", "k-means", "class-k-means", some),
            "link": self.usual("auto", "softmax", "clip", "none"),
            "selection": self.usual("loo", "cv", share=0.8),
            "folds": self.one(2, 5, 50),
            "max_iter": self.one(1, 50),
            "n_restarts": self.one(1, 2),
            "loo": self.one("auto", True),
        }


def bounded_kernel(X, Z):
    """A user's own kernel, which takes whatever comes."""
    X, Z = (each.toarray() if sparse.issparse(each) else np.asarray(each, dtype=float) for each in (X, Z))
    return np.tanh(X) @ np.tanh(Z).T + 1.0


def agreeing(given: dict, tags: bool, fit: str) -> dict:
    """What has to change so that parameters that exclude each other do not meet: most fits should get somewhere."""
    changes: dict[str, Any] = {}
    own = not callable(given["kernel"]) and given["kernel"] in ("chi2", "intersection")
    if own or callable(given["kernel"]):
        changes["scaling"] = None
    if tags:
        changes["class_weight"] = None
    centers = given.get("centers")
    if isinstance(given["kernel"], str) and given["kernel"] == "precomputed" and not isinstance(centers, int):
        changes["centers"] = "random" if "n_centers" in given else "auto"
    elif tags and isinstance(centers, str) and centers == "class-k-means":
        changes["centers"] = "k-means"
    if fit != "fit":
        changes |= {"loo": "auto", "centers": "auto", "solver": None, "candidates": "auto", "search": "one-step"}
        changes |= {"class_weight": None, "solver": "exact" if "n_centers" in given else "auto"}
    changes |= _agreeing_solver({**given, **changes}, tags) if "link" in given and "penalty" in given else {}
    return {name: value for name, value in changes.items() if name in given}


def _agreeing_solver(given: dict, tags: bool) -> dict:
    """The same for what LSPC's solvers take."""
    changes: dict[str, Any] = {}
    if tags or given["link"] == "clip-parameters" or given["solver"] in ("cg", "sgd"):
        changes["class_similarity"] = None
    elif given["class_similarity"] is not None:
        changes["centers"] = "all"
    if given["solver"] == "cg":
        changes |= {"centers": "all", "penalty": "rkhs", "kernel": "gaussian"}
    if given["solver"] == "sgd":
        changes |= {"centers": "auto", "link": "clip" if given["link"] == "clip-parameters" else given["link"]}
    return changes


# what must hold ---------------------------------------------------------------------------------------------------


class BrokenPromiseError(AssertionError):
    """A model that does what no model may."""


def require(condition, what: str) -> None:
    if not condition:
        raise BrokenPromiseError(what)


def check_probabilities(proba: np.ndarray, tags: bool, where: str) -> None:
    require(np.isfinite(proba).all(), f"{where}: not finite")
    require(proba.size == 0 or (proba.min() >= 0 and proba.max() <= 1), f"{where}: outside [0, 1]")
    if not tags:
        away = np.abs(proba.sum(axis=1, dtype=np.float64) - 1.0).max(initial=0.0)
        slack = 4 * proba.shape[1] * np.finfo(np.float64).eps
        require(away <= slack, f"{where}: rows sum to one only to within {away:.1e}")


def check_model(model, X, where: str) -> None:
    """Decisions, probabilities and predictions of the rows of X."""
    tags = model.predict(X).ndim == 2
    decision = model.decision_function(X)
    require(np.isfinite(decision).all(), f"{where}: decision_function is not finite")
    if not hasattr(model, "predict_proba"):
        return
    proba = model.predict_proba(X)
    check_probabilities(proba, tags, f"{where}: predict_proba")
    decided = (proba > 0.5).astype(int) if tags else model.classes_[proba.argmax(axis=1)]
    require(np.array_equal(model.predict(X), decided), f"{where}: predict is not the argmax of predict_proba")
    again = model.predict_proba(X)
    require(np.array_equal(proba, again), f"{where}: predict_proba differs from call to call")


def fitted(problem: Problem):
    """The fitted model."""
    model, X, y, weight = problem.model, problem.X, problem.y, problem.weight
    if problem.fit == "fit":
        return model.fit(X, y, weight)
    classes = np.unique(np.asarray(y))
    if problem.fit == "classes" or not hasattr(model, "partial_fit"):
        return model.fit(X, y, weight, classes=classes)
    some = X.iloc if isinstance(X, pd.DataFrame) else X if hasattr(X, "tocsr") else np.asarray(X)
    some = some.tocsr() if hasattr(some, "tocsr") else some
    labels, half = np.asarray(y), (len(y) + 1) // 2
    for part in (slice(0, half), slice(half, len(labels))):
        model.partial_fit(some[part], labels[part], classes, None if weight is None else weight[part])
    return model


def checked(problem: Problem) -> None:
    """Fit and check; an error or a :class:`BrokenPromiseError` says what is wrong."""
    model = fitted(problem)
    check_model(model, problem.X, "training rows")
    if hasattr(model, "loo_proba_"):
        check_probabilities(model.loo_proba_, np.ndim(problem.y) == 2, "loo_proba_")
        require(len(model.loo_proba_) == np.shape(problem.X)[0], "loo_proba_: not a row for every row")
    if problem.new is not None:
        check_model(model, problem.new, "new rows")


class Outcome(NamedTuple):
    """How a problem ended: "fitted", "refused" or "failed", why, what was warned of, and after how long."""

    kind: str
    why: str
    warned: list[str]
    seconds: float


def run(problem: Problem) -> Outcome:
    start, kind, why = time.process_time(), "fitted", ""
    with warnings.catch_warnings(record=True) as caught, time_limit(LIMIT_SECONDS):
        warnings.simplefilter("always")
        try:
            checked(problem)
        except BrokenPromiseError as error:
            kind, why = "failed", str(error)
        except (ValueError, TypeError) as error:
            kind, why = ("refused" if named_argument(str(error), problem.model) else "failed"), told(error)
        except Exception as error:
            kind, why = "failed", told(error)
    foreign = [w for w in caught if not _is_expected(w)]
    if foreign and kind != "failed":
        first = foreign[0]
        kind, why = "failed", f"{first.category.__name__}: {first.message} ({_inside(first.filename)}:{first.lineno})"
    return Outcome(kind, why, [w.category.__name__ for w in caught], time.process_time() - start)


def _is_expected(warning) -> bool:
    """Whether a warning is kproba's, of convergence, or what scikit-learn tells every classifier of many classes."""
    return issubclass(warning.category, KprobaWarning | ConvergenceWarning) or (
        "could represent a regression problem" in str(warning.message)
    )


def named_argument(message: str, model) -> str:
    """The parameter of the model or argument of fit that a message names first; "" if none, as NumPy and BLAS do."""
    names = (*model.get_params(deep=False), *FIT_ARGUMENTS)
    found = re.search(rf"(?<![\w'])({'|'.join(map(re.escape, names))})(?![\w'])", message)
    return found[1] if found else ""


def told(error: Exception) -> str:
    """The message, and for what nobody meant to raise the line it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "kproba" in f.filename and "benchmarks" not in f.filename] or frames
    return f"{type(error).__name__}: {error} ({_inside(own[-1].filename)}:{own[-1].lineno})"


def _inside(filename: str) -> str:
    """A path without the folders of this machine."""
    return re.sub(r".*?((kproba|numpy|scipy|sklearn|benchmarks)/)", r"\1", filename.replace("src/", ""))


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """An alarm after so much time of this process, where the system has one: others may keep it waiting."""

    def ring(*_):
        raise TimeoutError(f"took more than {seconds:g} s")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# the run ----------------------------------------------------------------------------------------------------------


def empty() -> dict:
    names = [kind.__name__ for kind in SHARES]
    outcomes = {name: {"fitted": 0, "refused": 0, "failed": 0} for name in names}
    return {"done": 0, "outcomes": outcomes, "failures": [], "refusals": {}, "warnings": {}, "seconds": 0.0}


def add(payload: dict, seed: int, problem: Problem, outcome: Outcome) -> None:
    payload["outcomes"][type(problem.model).__name__][outcome.kind] += 1
    if outcome.kind == "failed":
        failure = {"seed": seed, "why": outcome.why[:400], "problem": problem.describe()[:600]}
        payload["failures"].append(failure)
        print(f"\nseed {seed}: {failure['why']}", file=sys.stderr, flush=True)
    if outcome.kind == "refused":
        name = named_argument(outcome.why, problem.model)
        seen = payload["refusals"].setdefault(name, {"count": 0, "first_seed": seed})
        seen["count"] += 1
    payload["warnings"] = dict(Counter(payload["warnings"]) + Counter(set(outcome.warned)))
    payload["seconds"] += outcome.seconds
    payload["done"] = seed + 1


def begun(count: int, folder) -> dict:
    """What an interrupted run of the same code left, or nothing."""
    found = results.read("random_problems", folder)
    same = found is not None and found["stamp"]["commit"] == results.commit() and found["problems"] == count
    return {key: value for key, value in found.items() if key in empty()} if same and found["done"] < count else empty()


def measure(count: int, folder) -> dict:
    payload, settings = begun(count, folder), {"note": NOTE, "problems": count}
    first, start = payload["done"], time.perf_counter()
    try:
        for seed in range(first, count):
            problem = Drawing(seed).problem()
            add(payload, seed, problem, run(problem))
            if payload["done"] % EVERY == 0:
                results.write("random_problems", settings | payload, folder)
                left = (time.perf_counter() - start) / (payload["done"] - first) * (count - payload["done"])
                shown = f"{payload['done']:,} of {count:,}, {len(payload['failures'])} failed, {left:.0f} s left"
                print(f"\r{shown}", end="   ", file=sys.stderr, flush=True)
    finally:
        results.write("random_problems", settings | payload, folder)
    print(file=sys.stderr)
    return payload


def replay(seed: int) -> None:
    """One problem, with everything that there is to say of it."""
    problem = Drawing(seed).problem()
    print(problem.describe())
    outcome = run(problem)
    print(f"{outcome.kind} in {outcome.seconds:.3f} s: {outcome.why}", *outcome.warned, sep="\n")
    if outcome.kind == "failed":
        checked(Drawing(seed).problem())  # once more, for the traceback


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--problems", type=int, default=PROBLEMS, help=f"how many; default {PROBLEMS:,}")
    parser.add_argument("--seed", type=int, help="draw this problem alone, and write nothing")
    args = parser.parse_args(argv)
    with threadpool_limits(1):
        if args.seed is not None:
            return replay(args.seed)
        payload = measure(args.problems, args.out)
    if payload["failures"]:
        sys.exit(f"{len(payload['failures'])} of {args.problems} problems failed; replay one by --seed")
    return None


if __name__ == "__main__":
    main()
