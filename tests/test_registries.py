"""What every registered kernel, link and solver has to fulfil, and the lists of their names.

A new entry of a registry is tested here without a further line.
"""

import importlib.util
import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnxruntime
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kproba
from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier, to_onnx
from kproba.basis.moments import Moments
from kproba.estimators import klr, lspc, surface
from kproba.kernels import KERNELS, Radial
from kproba.kernels.base import n_rows
from kproba.links import LINKS, Link
from kproba.papers.surface_solvers import SOLVERS as SURFACE
from kproba.persist import types
from kproba.solvers.path import Path as SolverPath
from kproba.solvers.registry import LIKELIHOOD, PATHS

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("names", ROOT / "scripts" / "names.py")
names = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(names)

ESTIMATORS = LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier
RNG = np.random.default_rng(3)
Y = np.arange(24) % 3
VECTORS = RNG.normal(size=(24, 2)) + np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[Y]
SEQUENCES = [level + 0.5 * RNG.normal(size=(6, 2)) for level in VECTORS]
#: Rows for every kind of data that a kernel may compare.
ROWS = {
    "vectors": VECTORS,
    "histograms": np.abs(VECTORS),
    "kernel matrices": np.exp(-0.5 * np.square(VECTORS[:, None] - VECTORS[None]).sum(axis=2)),
    "sequences of frames": SEQUENCES,
    "time series": SEQUENCES,
    "strings, lists of words and sets": [
        "".join(RNG.choice(list("abc"), 12, p=np.roll([0.8, 0.1, 0.1], k))) for k in Y
    ],
}


def onnx_proba(model, X):
    graph = to_onnx(model, dtype="float64").SerializeToString()
    return onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"]).run(["probabilities"], {"X": X})[0]


def check_kept(model, X, path):
    """The model predicts the same after it was saved and loaded."""
    kproba.save(model, path)
    assert_array_equal(kproba.load(path).decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("name", KERNELS)
class TestKernels:
    def fitted(self, name):
        X = ROWS[KERNELS[name].compares]
        return LSPC(kernel=name, random_state=0).fit(X, Y), X

    def test_is_a_kernel(self, name):
        """Values of all pairs, the same in one piece and in two, from inputs that stay as they are."""
        clf, X = self.fitted(name)
        kernel, Z = clf.basis_.kernel, clf.basis_.centers
        if name == "precomputed":
            return
        rows = clf._check_inputs(X, reset=False)
        rows = rows if clf.scaling_ is None else clf.scaling_(rows)
        values = kernel(rows, Z)
        assert values.shape == (24, n_rows(Z)) and np.isfinite(values).all()
        assert_allclose(kernel.evaluator(Z)(rows[:5]), values[:5], rtol=1e-9, atol=1e-12)
        gram = kernel.gram(Z)
        assert_array_equal(gram, gram.T)
        assert not kernel.is_definite or np.linalg.eigvalsh(gram)[0] > -1e-9 * np.abs(gram).max()

    def test_separates_and_is_kept(self, name, tmp_path):
        clf, X = self.fitted(name)
        proba = clf.predict_proba(X)
        assert_allclose(proba.sum(axis=1), 1.0)
        assert clf.score(X, Y) > 0.6
        check_kept(clf, X, tmp_path / "m.kproba")

    def test_onnx(self, name):
        clf, X = self.fitted(name)
        if "onnx_scores" in vars(type(KERNELS[name])):
            assert_allclose(onnx_proba(clf, X), clf.predict_proba(X), atol=1e-9)
        else:
            with pytest.raises(TypeError, match=r"cannot be converted to ONNX.*'gaussian'"):
                to_onnx(clf)


@pytest.mark.parametrize("name", LINKS)
class TestLinks:
    def fitted(self, name, tags):
        y = (VECTORS @ np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]) > 1.0).astype(int) if tags else Y
        return LSPC(kernel="gaussian", width=2.0, ridge=1e-2, link=name, random_state=0).fit(VECTORS, y), VECTORS

    @pytest.mark.parametrize("tags", [False, True])
    def test_gives_probabilities_or_says_so(self, name, tags, tmp_path):
        clf, X = self.fitted(name, tags)
        check_kept(clf, X, tmp_path / "m.kproba")
        if not LINKS[name].gives_probabilities:
            with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
                clf.predict_proba(X)
            assert f"link='{name}' returns raw outputs" in str(caught.value.__cause__)
            with pytest.raises(ValueError, match=f"link='{name}', which gives no probabilities"):
                to_onnx(clf)
            return
        proba = clf.predict_proba(X)
        assert ((proba >= 0) & (proba <= 1)).all() and (tags or np.allclose(proba.sum(axis=1), 1.0))
        assert_array_equal(clf.predict(X), proba > 0.5 if tags else clf.classes_[proba.argmax(axis=1)])
        assert_allclose(np.exp(clf.predict_log_proba(X)), proba, atol=1e-12)
        assert_allclose(onnx_proba(clf, X), proba, atol=1e-9)

    def test_is_fitted_on_held_out_scores_if_calibrated(self, name):
        assert hasattr(self.fitted(name, False)[0], "loo_scores_") or not LINKS[name].is_calibrated

    def test_surface(self, name):
        clf = SurfaceKernelClassifier(n_centers=4, width=2.0, link=name, random_state=0)
        if LINKS[name].rounds_coefficients:
            with pytest.raises(ValueError, match=rf"link must be one of .*, got '{name}'"):
                clf.fit(VECTORS, Y)
        else:
            assert clf.fit(VECTORS, Y).score(VECTORS, Y) > 0.6


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("has_penalty", [False, True])
@pytest.mark.parametrize("centers", [None, np.array([0, 2, 3])])
def test_paths_solve_the_system(name, has_penalty, centers):
    phi, targets = RNG.normal(size=(30, 5)), RNG.normal(size=(30, 2))
    moments, inside = Moments.of(phi, targets), slice(None) if centers is None else centers
    penalty = np.eye(5)[inside][:, inside] * 2.0 + 0.1 if has_penalty else None
    path = PATHS[name].of(moments, centers, penalty)
    for ridge in (0.3, 5.0):
        system = (phi.T @ phi)[inside][:, inside] + ridge * (np.eye(len(phi.T[inside])) if penalty is None else penalty)
        factor, expected = path.at(ridge), np.linalg.inv(system)
        assert_allclose(factor.solve(moments.h[inside]), expected @ moments.h[inside], rtol=1e-6)
        assert_allclose(factor.inverse(), expected, rtol=1e-6, atol=1e-9)
        leverage = np.einsum("ij,jk,ik->i", phi[:, inside], expected, phi[:, inside])
        assert_allclose(factor.leverage(path.project(phi[:, inside])), leverage, rtol=1e-6)


def close_models(estimator, solvers, atol, **options):
    """Every solver comes near the first one."""
    fits = {name: estimator(solver=name, width=2.0, random_state=0, **options).fit(VECTORS, Y) for name in solvers}
    expected = next(iter(fits.values())).predict_proba(VECTORS)
    for name, clf in fits.items():
        assert_allclose(clf.predict_proba(VECTORS), expected, atol=atol, err_msg=name)


def test_solvers_of_least_squares():
    close_models(LSPC, lspc.SOLVERS, atol=0.02, ridge=1e-1, centers="all", kernel="gaussian", link="clip")


def test_solvers_of_the_likelihood():
    close_models(KernelLogisticRegression, LIKELIHOOD, atol=0.02, ridge=1e-2, kernel="gaussian")


@pytest.mark.parametrize("name", SURFACE)
def test_solvers_of_the_surface_loss(name):
    clf = SurfaceKernelClassifier(n_centers=4, width=2.0, solver=name, max_iter=200, n_restarts=1, random_state=0)
    coef = np.vstack([clf.fit(VECTORS, Y).coef_, clf.intercept_])
    assert np.abs(coef).max() <= 1.0 + 1e-9
    assert_allclose(coef.sum(axis=1), [*[0.0] * 4, 1.0], atol=1e-6)
    assert clf.shortfall_ > -1e-9 and clf.score(VECTORS, Y) > 0.6


@dataclass(frozen=True)
class Cauchy(Radial):
    """1/(1 + ‖x − z‖²/σ²)."""

    name: ClassVar[str] = "cauchy"

    def of_pairs(self, pairs):
        pairs /= self.width**2
        pairs += 1.0
        return np.reciprocal(pairs, out=pairs)

    def slope(self, pairs):
        return 2.0 * np.square(self.of_pairs(pairs)) / self.width**2

    def onnx_scores(self, X, Z, coef):
        return 1.0 / (X.squared_distances(Z) / self.width**2 + 1.0) @ coef


@dataclass(frozen=True)
class Squares(Link):
    """Squared scores, normalised."""

    def probabilities(self, scores):
        squares = np.square(np.maximum(scores, 1e-9))
        return squares / squares.sum(axis=1, keepdims=True)

    def onnx_probabilities(self, scores):
        positive = scores.maximum(1e-9)
        return positive * positive / (positive * positive).sum()


@dataclass(frozen=True)
class Inverse:
    matrix: np.ndarray

    def solve(self, h):
        return self.matrix @ h

    def leverage(self, phi):
        return np.einsum("ij,jk,ik->i", phi, self.matrix, phi)


@dataclass(frozen=True)
class InversePath(SolverPath):
    """The inverse of the system."""

    H: np.ndarray
    penalty: np.ndarray | None

    def at(self, ridge):
        return Inverse(np.linalg.inv(self.H + ridge * (np.eye(len(self.H)) if self.penalty is None else self.penalty)))


class TestOneLineIsEnough:
    """A class and its line in the registry: everything else follows."""

    @pytest.fixture(autouse=True)
    def registered(self, monkeypatch):
        monkeypatch.setitem(KERNELS, "cauchy", Cauchy())
        monkeypatch.setitem(LINKS, "squares", Squares)
        monkeypatch.setitem(PATHS, "inverse", InversePath)
        monkeypatch.setitem(lspc.SOLVERS, "inverse", InversePath)
        types._listed_classes.cache_clear()
        yield
        types._listed_classes.cache_clear()

    @pytest.mark.parametrize("y", [Y, np.stack([Y == 1, Y == 2], axis=1).astype(int)], ids=["classes", "tags"])
    def test_model(self, y, tmp_path):
        clf = LSPC(kernel="cauchy", link="squares", solver="inverse", random_state=0).fit(VECTORS, y)
        assert isinstance(clf.kernel_, Cauchy) and clf.score(VECTORS, y) > 0.6
        assert_allclose(onnx_proba(clf, VECTORS), clf.predict_proba(VECTORS), atol=1e-9)
        check_kept(clf, VECTORS, tmp_path / "m.kproba")

    @pytest.mark.parametrize("parameter, name", [("kernel", "cauchy"), ("link", "squares"), ("solver", "inverse")])
    def test_names(self, parameter, name):
        with pytest.raises(ValueError, match=f"{parameter} must be one of .*'{name}'.*, got 'none such'"):
            LSPC(**{parameter: "none such"}).fit(VECTORS, Y)
        assert any(f'"{name}"' in new for path, (_, new) in names.renewed().items() if path.name == "lspc.md")
        assert any(f'"{name}"' in new for path, (_, new) in names.renewed().items() if path.name == "lspc.py")


class TestNames:
    def test_files_are_up_to_date(self):
        stale = [path.name for path, (old, new) in names.renewed().items() if old != new]
        assert stale == [], "run python scripts/names.py"

    def test_every_table_is_on_a_page(self):
        text = "".join((ROOT / page).read_text() for page in names.PAGES)
        assert sorted(re.findall(r"<!-- names: (\w+) -->", text)) == sorted(names.TABLES)
        for name in {*KERNELS, *LINKS, *PATHS, *klr.SOLVERS, *SURFACE}:
            assert f'`"{name}"`' in text

    @pytest.mark.parametrize(
        ("estimator", "parameter", "known"),
        [
            *((each, "kernel", ["auto", *names.main_names(KERNELS)]) for each in ESTIMATORS),
            (LSPC, "link", LINKS),
            (SurfaceKernelClassifier, "link", surface.OWN_LINKS),
            (LSPC, "solver", lspc.SOLVERS),
            (KernelLogisticRegression, "solver", klr.SOLVERS),
            (SurfaceKernelClassifier, "solver", SURFACE),
        ],
    )  # fmt: skip
    def test_docstrings_name_what_is_accepted(self, estimator, parameter, known):
        (text,) = re.findall(rf"^{parameter} : .*?(?=^\w)", inspect.getdoc(estimator), re.DOTALL | re.MULTILINE)
        text = text[text.index("The names are") :] if parameter == "kernel" else re.search(r"\{(.*)\}", text)[1]
        assert set(re.findall(r'"([\w-]+)"', text)) == set(known)
