"""Arrays of other libraries: the same model as NumPy's, computed where they lie.

array_api_strict has no more than the standard promises; PyTorch is met where it is installed.
"""

import pickle
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from kproba import (
    LSPC,
    ImportVectorMachine,
    KernelLogisticRegression,
    SurfaceKernelClassifier,
    explain,
    explanations,
    messages,
)
from kproba.arrays import Device, choose, is_tensor, to_numpy
from kproba.basis import device_basis, device_moments
from kproba.basis.basis import Basis
from kproba.basis.device_basis import DeviceBasis
from kproba.data import scaling as data_scaling
from kproba.data.encoding import Part
from kproba.data.hashing import row_keys
from kproba.data.rows import Rows
from kproba.data.scaling import fit_scaling, scaled_rows
from kproba.data.sources import Chunk, TensorSource
from kproba.data.summary import Summary
from kproba.estimators import _reading
from kproba.exceptions import ConvergenceWarning
from kproba.explanations import shapley
from kproba.explanations.shapley import KernelSum
from kproba.kernels import Additive, Gaussian, Laplacian, Learnt, Linear, Matern, Pairs, Polynomial
from kproba.kernels import base as kernels_base
from kproba.kernels.given import FromCallable
from kproba.links import calibrated, fit_link
from kproba.links.calibrated import DeviceSoftmaxFit, SoftmaxFit
from kproba.problems import device_likelihood, least_squares, leave_one_out
from kproba.problems.device_likelihood import DeviceDesign, design_on
from kproba.problems.least_squares import LeastSquares
from kproba.problems.likelihood import Likelihood
from kproba.problems.surface import Surface
from kproba.search.learnt import many_rows
from kproba.search.learnt.device_sample import scores_of_others
from kproba.search.learnt.objective import Objective
from kproba.search.learnt.outer_folds import learn
from kproba.search.learnt.parameters import Layout
from kproba.solvers import device_iterative_dual
from kproba.solvers.device_dual import DeviceDual
from kproba.solvers.device_iterative_dual import DeviceIterativeDual
from kproba.solvers.dual import Dual
from oracles import gaussian


def _torch_tensor(X):
    return pytest.importorskip("torch").asarray(X)


LIBRARIES = {"strict": array_api_strict.asarray, "torch": _torch_tensor}


@pytest.fixture(params=LIBRARIES)
def tensor(request):
    if request.param == "torch":
        pytest.importorskip("torch")
    return LIBRARIES[request.param]


@pytest.fixture
def data():
    X, y = make_classification(700, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=0)
    return X, np.array(["low", "mid", "top"])[y]


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(_reading, "sample_size", lambda d: 300)


@pytest.fixture
def rows(data):
    X, y = data
    weight = np.random.RandomState(1).randint(1, 4, len(y)).astype(float)
    return Rows.of(X, np.unique(y, return_inverse=True)[1], weight, 3)


KERNELS = [
    Gaussian(1.5),
    Laplacian(3.0),
    *(Matern(1.5, nu) for nu in (0.5, 1.5, 2.5)),
    Linear(),
    Polynomial(2.0),
    Additive(1.5),
    Pairs(1.5),
    Learnt(tuple(np.linspace(0.1, 1.0, 6).tolist()), (2.0, 3.0, 1.0), (0.5, 0.3, 0.7, 0.2)),
]


class TestParts:
    @pytest.mark.parametrize("kernel", KERNELS, ids=str)
    def test_features_and_matrix(self, kernel, rows, tensor):
        device, Z = Device.of(tensor(rows.X)), rows.X[:40]
        basis = DeviceBasis.of(Basis(kernel, Z), device)
        others = rows.X[40:]  # a distance of zero is rounding, and ν = 1/2 takes its root
        assert_allclose(device.get(basis(tensor(others))), kernel(others, Z), atol=1e-10, rtol=1e-10)
        assert_allclose(np.tril(device.get(basis.gram_on_device())), np.tril(kernel.gram(Z)), atol=1e-10, rtol=1e-10)

    @pytest.mark.parametrize("d", [1, 6, 130])
    @pytest.mark.parametrize("tags", [False, True])
    def test_steps_of_a_learnt_kernel(self, d, tags, tensor):
        """Loss and gradient of leave-one-out, with one column that has nearly all of the weight as well."""
        random = np.random.default_rng(d)
        X, labels = random.normal(size=(40, d)), random.integers(0, 2, (40, 3)) if tags else random.integers(0, 3, 40)
        rows = Rows.of(X, labels, random.uniform(0.5, 2.0, 40), 3)
        layout = Layout(d, 0 if tags else 3)
        here, there = (
            Objective(rows, np.zeros(sum(layout.sizes.values())), layout, 30, device)
            for device in (None, Device.of(tensor(X)))
        )
        for weight in (0.0, 5.0):
            x = 0.3 * random.normal(size=sum(layout.sizes.values()))
            layout.split(x)["weights"][0] += weight
            for objective in (here, there):
                objective.load(np.arange(5, 35))
            (loss, gradient), (expected, slopes) = there(x), here(x)
            assert loss == pytest.approx(expected, rel=1e-5)
            assert_allclose(gradient, slopes, atol=1e-5)

    def test_a_sample_without_a_factor(self, tensor):
        """Ten copies of a row without noise have a singular kernel matrix."""
        rows = Rows.of(np.zeros((10, 2)), np.arange(10) % 2, np.ones(10), 2)
        layout = Layout(2, 2)
        objective = Objective(rows, np.zeros(sum(layout.sizes.values())), layout, 10, Device.of(tensor(rows.X)))
        objective.load(np.arange(10))
        with pytest.raises(np.linalg.LinAlgError):
            objective(layout.join({"noise": -np.inf}))

    def test_the_loss_of_a_link(self, tensor):
        random = np.random.default_rng(0)
        scores, prior = random.normal(0.3, 0.5, (50, 3)), np.array([0.2, 0.3, 0.5])
        scores[0] = -20.0  # below what the exponential resolves
        parts = scores, np.eye(3)[random.integers(0, 3, 50)], random.uniform(0.5, 2.0, 50), prior
        here, there = SoftmaxFit(*parts), DeviceSoftmaxFit(*parts, Device.of(tensor(scores)))
        for x in (np.zeros(8), random.normal(size=8)):
            (value, slopes), (expected, gradient) = there.loss(x), here.loss(x)
            assert value == pytest.approx(expected, rel=1e-12)
            assert_allclose(slopes, gradient, atol=1e-12)

    def test_a_link_of_many_rows_is_fitted_on_the_device(self, rows, tensor, monkeypatch):
        monkeypatch.setattr(calibrated, "CELLS_ON_DEVICE", 0)
        scores = 0.7 * rows.targets() + np.random.default_rng(0).normal(0.1, 0.2, (len(rows), 3))
        here, there = (fit_link("auto", scores, rows, device) for device in (None, Device.of(tensor(scores))))
        assert_allclose(there.probabilities(scores), here.probabilities(scores), atol=1e-5)

    def test_scaled_rows(self, rows, tensor, monkeypatch):
        scaling = fit_scaling("quantile", rows)
        expected = scaled_rows(rows, scaling).X
        monkeypatch.setattr(data_scaling, "MANY_VALUES", 0)
        found = scaled_rows(rows, scaling, Device.of(tensor(rows.X))).X
        assert isinstance(found, np.ndarray) and not np.array_equal(found, rows.X)
        assert_allclose(found, expected, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("change", ["nothing", "copies", "a rare class"])
    def test_sample_of_a_tensor(self, change, tensor):
        """The sample of the first chunk is that of NumPy, whether the device orders it or cannot."""
        random = np.random.default_rng(0)
        X, y = random.normal(size=(3000, 3)).astype(np.float32), random.integers(0, 2, 3000)
        if change == "copies":
            X[1000:] = X[random.integers(0, 60, 2000)]
        if change == "a rare class":
            y[7:900:300] = 5
        chunks = [Chunk(each, y, None, 0) for each in (X, tensor(X))]
        here, there = (Summary(500, 3).add(chunk).rows(np.array([0, 1, 5]), None)[0] for chunk in chunks)
        order = np.argsort(here.keys), np.argsort(there.keys)
        for name in ("X", "labels", "weight", "keys"):
            a, b = (getattr(each, name)[place] for each, place in zip((here, there), order))
            assert_array_equal(a, b)

    def test_learns_the_same_kernel(self, rows, tensor):
        here, there = learn(rows, 0), learn(rows, 0, device=Device.of(tensor(rows.X)))
        assert (here.fold == there.fold).all() and here.n_steps == there.n_steps
        assert_allclose(there.kernel.weights, here.kernel.weights, rtol=0.1)
        assert there.noise == pytest.approx(here.noise, rel=0.1)
        device = Device.of(tensor(rows.X))
        losses = [many_rows.leave_one_out_loss(here.kernel, here.noise, rows, device=each) for each in (None, device)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)

    @pytest.mark.parametrize("many", [8, 10_000])
    def test_moments(self, rows, tensor, many, monkeypatch):
        """In strips or at once, in one batch or in several, with weights."""
        monkeypatch.setattr(device_moments, "MANY_CENTERS", many)
        monkeypatch.setattr(device_basis.DeviceBasis, "block_bytes", 8 * 37 * 100)
        basis = Basis(Gaussian(1.5), rows.X[:37])
        there, here = DeviceBasis.of(basis, Device.of(tensor(rows.X))).moments(rows), basis.moments(rows)
        assert_allclose(np.tril(there.H), np.tril(here.H), rtol=1e-11)
        assert_allclose(there.h, here.h, rtol=1e-11)
        assert_allclose(there.totals, here.totals)
        assert there.n == pytest.approx(here.n)
        assert there.H.flags.f_contiguous

    def test_float32_moments_are_positive_definite(self, tensor):
        """Without the mean of the features, products in float32 resolve what float64 does."""
        X = np.random.RandomState(0).standard_normal((4000, 3)).astype(np.float32)
        rows = Rows.of(X, np.arange(4000) % 2, np.ones(4000), 2)
        basis = Basis(Gaussian(8.0), X[:60])
        there = DeviceBasis.of(basis, Device.of(tensor(X))).moments(rows).symmetric()
        phi = gaussian(X.astype(float), X[:60].astype(float), 8.0)
        exact, plain = phi.T @ phi, phi.astype(np.float32).T @ phi.astype(np.float32)
        assert np.abs(there - exact).max() < 0.2 * np.abs(plain - exact).max()

    @pytest.mark.parametrize("kernel", [Gaussian(1.5), Laplacian(3.0), Pairs(1.5), KERNELS[-1]], ids=str)
    def test_sums_in_integers(self, kernel, rows, tensor, monkeypatch):
        """Batches of rows with and without weights, in any order: the matrix of features rounded to 24 bits."""
        monkeypatch.setattr(Device, "has_integer_products", True)
        X, Z = rows.X.astype(np.float32), rows.X[:40].astype(np.float32)
        basis = DeviceBasis.of(Basis(kernel, Z), Device.of(tensor(X)))
        weight = np.repeat([1.0, 2.5, 1.0], [300, 100, 300])
        total = basis.running_moments(3)
        for part in (slice(0, 300), slice(300, 400), slice(400, 700)):
            total = basis.add_part(total, Part(tensor(X[part]), rows.labels[part], weight[part], 3))
        there = total.to_numpy()
        phi, targets = kernel(X.astype(float), Z.astype(float)), np.eye(3)[rows.labels]
        assert_allclose(np.tril(there.H), np.tril(phi.T @ (weight[:, None] * phi)), rtol=1e-5, atol=1e-5)
        assert_allclose(there.h, phi.T @ (weight[:, None] * targets), rtol=1e-5, atol=1e-5)
        assert_allclose(there.totals, weight @ targets)

    def test_sums_in_integers_have_no_negative_eigenvalue(self, tensor, monkeypatch):
        """Of a wide kernel, whose matrix is indefinite in float32."""
        X = np.random.RandomState(0).standard_normal((4000, 3)).astype(np.float32)
        basis = DeviceBasis.of(Basis(Gaussian(8.0), X[:60]), Device.of(tensor(X)))
        eigenvalues = []
        for exact in (True, False):
            monkeypatch.setattr(Device, "has_integer_products", exact)
            part = Part(tensor(X), np.zeros(4000, dtype=int), np.ones(4000), 1)
            H = basis.add_part(basis.running_moments(1), part).to_numpy().symmetric()
            eigenvalues.append(np.linalg.eigvalsh(H)[0] / 4000)
        assert eigenvalues[0] > -1e-14 and eigenvalues[1] < -1e-11

    def test_precision_of_sums_follows_the_penalty(self, tensor, monkeypatch):
        X = np.random.RandomState(0).standard_normal((200, 6)).astype(np.float32)
        basis = DeviceBasis.of(Basis(Gaussian(2.0), X[:50]), Device.of(tensor(X)))
        least = float(np.linalg.eigvalsh(Gaussian(2.0).gram(X[:50].astype(float)))[0])
        for exact, resolved in ((False, device_basis.RESOLVED), (True, device_basis.RESOLVED_EXACTLY)):
            monkeypatch.setattr(Device, "has_integer_products", exact)
            for factor, use_float64 in ((0.5, True), (2.0, False)):
                assert basis.for_sums(factor * resolved / least, True).use_float64 == use_float64

    def test_scores_by_a_learnt_kernel(self, rows, tensor):
        """Of rows that are held out, and leave-one-out with some rows as centres."""
        kernel, device, few = KERNELS[-1], Device.of(tensor(rows.X)), rows.take(np.arange(200))
        G = kernel.gram(few.X.astype(np.float32).astype(float)) + np.diag(0.3 / few.weight)
        expected = kernel(rows.X[200:].astype(np.float32).astype(float), few.X.astype(np.float32).astype(float))
        expected = expected @ np.linalg.solve(G, few.targets())
        found = scores_of_others(device, kernel, 0.3 / few.weight, few.X, few.targets(), rows.X[200:])
        assert_allclose(found, expected, atol=1e-9)
        centers = np.arange(0, 200, 2)
        losses = [many_rows.leave_one_out_loss(kernel, 0.3, few, centers, device=each) for each in (None, device)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_dual(self, rows, tensor, weighted, monkeypatch):
        monkeypatch.setattr("kproba.solvers.device_dual.COLUMNS", 64)
        Z, k = rows.X[:150], 3
        weight = rows.weight[:150] if weighted else np.ones(150)
        sums = rows.targets()[:150] * weight[:, None]
        device, K = Device.of(tensor(Z)), Gaussian(1.5).gram(Z)
        matrix = device.put(K)
        there = DeviceDual(device, matrix, weight, sums)
        for ridge in (1e-3, 1.0):  # asked twice: the matrix must be as it was
            (found,), (exact,) = there.path([ridge]), Dual(K, weight, sums).path([ridge])
            assert found.fitted.shape == (150, k)
            assert_allclose(found.fitted, exact.fitted, atol=1e-10)
            assert_allclose(found.leverage, exact.leverage, atol=1e-10)
            assert_allclose(found.coef(), exact.coef(), rtol=1e-6, atol=1e-7)

    @pytest.mark.parametrize("rkhs", [True, False])
    def test_primal_path_and_leave_one_out(self, rows, tensor, rkhs):
        here = LeastSquares(rows, Basis(Gaussian(1.5), rows.X[:50]), rkhs)
        there = here.on(Device.of(tensor(rows.X)))
        for a, b in zip(here.path([1e-2, 1e-4]), there.path([1e-2, 1e-4])):
            assert_allclose(a.held_out, b.held_out, atol=1e-9)
            assert_allclose(a.coef(), b.coef(), rtol=1e-6, atol=1e-7)

    def test_a_matrix_that_is_not_definite(self, tensor):
        device = Device.of(tensor(np.ones((2, 2))))
        assert device.cholesky(device.put(np.array([[1.0, 2.0], [2.0, 1.0]]))) is None


GIVEN = {"kernel": "gaussian", "width": 1.5, "scaling": "standard", "random_state": 0}
MODELS = {
    "lspc": LSPC(**GIVEN, ridge=1e-3, centers=60),
    "lspc all": LSPC(**GIVEN, ridge=1e-3, centers="all"),
    "lspc auto": LSPC(random_state=0),
    "lspc class": LSPC(**GIVEN, ridge=1e-3, centers="class", link="clip"),
    "lspc callable": LSPC(kernel=lambda X, Z: (X @ Z.T + 1.0) ** 2, ridge=1e-2, centers=30),
    "surface": SurfaceKernelClassifier(**GIVEN),
    "klr": KernelLogisticRegression(**GIVEN, ridge=1e-3, centers=60, tol=1e-9),
    "ivm": ImportVectorMachine(**GIVEN, ridge=1e-3),
}


def test_keys_are_those_of_numpy(tensor):
    X = np.random.RandomState(0).standard_normal((50, 7))
    X[3] = X[4] = 0.0
    X[4, 2] = -0.0
    for rows in (X, X.astype(np.float32)):
        np.testing.assert_array_equal(row_keys(tensor(rows)), row_keys(rows))


class TestEstimators:
    @pytest.mark.parametrize("name", MODELS)
    def test_same_model_as_numpy(self, name, data, tensor):
        X, y = data
        here, there = (MODELS[name].__class__(**MODELS[name].get_params()) for _ in range(2))
        here.fit(X, y)
        there.fit(tensor(X), y)
        assert isinstance(there.coef_, np.ndarray) and isinstance(there.predict_proba(tensor(X)), np.ndarray)
        assert_allclose(there.predict_proba(tensor(X)), here.predict_proba(X), atol=1e-8)
        assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-8)
        assert hasattr(there, "loo_proba_") == hasattr(here, "loo_proba_")
        if hasattr(here, "loo_proba_"):
            assert_allclose(there.loo_proba_, here.loo_proba_, atol=1e-8)
        np.testing.assert_array_equal(there.predict(tensor(X)), here.predict(X))

    @pytest.mark.parametrize("name", ["lspc", "surface", "klr", "ivm"])
    def test_same_model_from_rows_that_stay_on_the_device(self, name, data, tensor, small_sample, monkeypatch):
        monkeypatch.setattr(TensorSource.__init__, "__kwdefaults__", {"chunk_bytes": 5000})
        X, y = data
        weight = np.random.RandomState(1).randint(1, 4, len(y)).astype(float)
        here, there = (MODELS[name].__class__(**MODELS[name].get_params()) for _ in range(2))
        here.fit(X, y, weight)
        there.fit(tensor(X), y, tensor(weight))
        assert not hasattr(there, "loo_proba_")
        assert_allclose(there.predict_proba(tensor(X)), here.predict_proba(X), atol=1e-8)

    def test_labels_may_be_tensors(self, data, tensor):
        X, y = data
        codes = np.unique(y, return_inverse=True)[1]
        model = MODELS["lspc"].fit(tensor(X), tensor(codes))
        assert model.classes_.tolist() == [0, 1, 2]

    def test_float32(self, data, tensor):
        X, y = data[0].astype(np.float32), data[1]
        proba = MODELS["lspc"].fit(tensor(X), y).predict_proba(tensor(X))
        assert proba.dtype == np.float64
        in_full = X.astype(np.float64)
        assert_allclose(proba, MODELS["lspc"].fit(in_full, y).predict_proba(in_full), atol=1e-3)

    def test_partial_fit(self, data, tensor):
        X, y = data
        given = {"kernel": "gaussian", "width": 1.5, "ridge": 1e-3, "scaling": None, "centers": X[:50], "link": "clip"}
        model = LSPC(**given)
        for part in (slice(0, 300), slice(300, 700)):
            model.partial_fit(tensor(X[part]), y[part], classes=np.unique(y))
            model = pickle.loads(pickle.dumps(model))
        assert_allclose(model.predict_proba(X), LSPC(**given).fit(X, y).predict_proba(X), atol=1e-8)

    def test_pickled_model_needs_no_device(self, data, tensor):
        X, y = data
        model = MODELS["lspc"].fit(tensor(X), y)
        state = pickle.dumps(model)
        assert b"torch" not in state.replace(b"torch", b"", 1)  # its name, in device_, and nothing of the library
        assert_allclose(pickle.loads(state).predict_proba(X), model.predict_proba(tensor(X)), atol=1e-10)


class TestErrors:
    def test_not_a_number(self, data, tensor, small_sample):
        X, y = data
        X = X.copy()
        X[650, 2] = np.nan
        with pytest.raises(ValueError, match=r"NaN in column 2, row 650 of X on"):
            LSPC().fit(tensor(X), y)
        model = MODELS["lspc"].fit(data[0], y)
        with pytest.raises(ValueError, match="contains NaN"):
            model.predict_proba(tensor(X))

    def test_wrong_columns(self, data, tensor):
        model = MODELS["lspc"].fit(*data)
        with pytest.raises(ValueError, match="X has 2 features, but LSPC is expecting 6"):
            model.predict_proba(tensor(np.ones((3, 2))))
        with pytest.raises(ValueError, match="1 dimension"):
            model.predict_proba(tensor(np.ones(3)))

    def test_lengths(self, data, tensor, small_sample):
        with pytest.raises(ValueError, match="700 rows but y has 699"):
            LSPC().fit(tensor(data[0]), data[1][1:])

    def test_tensor_on_another_device(self, data):
        X = array_api_strict.asarray(data[0], device=array_api_strict.Device("device1"))
        with pytest.raises(ValueError, match="X is on device1, but device='cpu'"):
            LSPC(device="cpu").fit(X, data[1])
        model = LSPC(**GIVEN, ridge=1e-3, centers=60).fit(X, data[1])  # where it lies
        assert model.device_ == Device("array_api_strict", "device1")

    def test_no_gpu(self, data):
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            pytest.skip("there is a GPU")
        with pytest.raises(RuntimeError, match=r"finds no GPU\. Use device=None"):
            LSPC(device="cuda").fit(*data)

    def test_no_torch(self, data, monkeypatch):
        def missing(name):
            raise ImportError(name)

        monkeypatch.setattr(messages, "import_module", missing)
        with pytest.raises(ImportError, match=r"pip install 'kproba\[torch\]'"):
            LSPC(device="cuda").fit(*data)

    def test_unknown_device(self, data):
        with pytest.raises(ValueError, match=r"device must be None, 'cpu', 'cuda' .*, got 'tpu'"):
            LSPC(device="tpu").fit(*data)


class TestChoice:
    def test_numpy_stays(self, data):
        assert choose(None, data[0]) is None and choose("cpu", data[0]) is None
        assert not is_tensor(data[0]) and to_numpy(data[0]) is data[0]

    def test_the_type_alone_names_any_number(self):
        torch = pytest.importorskip("torch")
        assert choose("cpu", torch.ones(2, 2)) == Device("torch", "cpu")

    def test_gradients_and_half_precision(self, data):
        torch = pytest.importorskip("torch")
        X = torch.tensor(data[0], requires_grad=True)
        assert LSPC(**GIVEN, ridge=1e-3).fit(X, data[1]).predict_proba(X).shape == (700, 3)
        assert Device("torch", "cpu").floats(torch.ones(2, dtype=torch.bfloat16)).dtype == torch.float32
        assert Device("torch", "cpu").floats(torch.ones(2, dtype=torch.int64)).dtype == torch.float64


BY_COLUMN = [kernel for kernel in KERNELS if not isinstance(kernel, Matern | Polynomial)]


class TestExplanations:
    @pytest.mark.parametrize("kernel", BY_COLUMN, ids=str)
    @pytest.mark.parametrize("independent", [True, False])
    def test_same_values_as_numpy(self, kernel, independent, rows, tensor, monkeypatch):
        monkeypatch.setattr(shapley, "DEVICE_TILE_BYTES", 4000)
        X, Z, background = rows.X[:5], rows.X[5:30], rows.X[30:34]
        coef, groups = np.linspace(-1.0, 1.0, 50).reshape(25, 2), [(0, 4), (1,), (2,), (3, 5)]
        terms = kernel.by_column(6)
        here, there = (
            KernelSum.of(terms, Z, coef, shapley.Arrays(device)).explain(X, background, independent, groups)
            for device in (None, Device.of(tensor(X)))
        )
        for one, other in zip(here, there):
            assert isinstance(other, np.ndarray)
            assert_allclose(other, one, atol=1e-10)

    def test_of_a_model(self, data, tensor):
        X, y = data
        clf = LSPC(kernel="gaussian", width=1.5, ridge=1e-3, centers=40, random_state=0).fit(X, y)
        here, there = explain(clf, X[:5]), explain(clf, tensor(X[:5]), background=tensor(clf.centers_))
        assert_allclose(there.values, here.values, atol=1e-10)
        assert_allclose(there.data, X[:5])
        frozen = explanations.fix_rows(clf, tensor(X[:5]))
        assert_allclose(frozen.predict_proba(tensor(X[:5])), here.probabilities, atol=1e-8)


class TestAllRowsWithoutTheirMatrix:
    """Conjugate gradients on a device, against the dense solution in float64."""

    @pytest.fixture(autouse=True)
    def _few_sampled(self, monkeypatch):
        monkeypatch.setattr(device_iterative_dual, "SAMPLED", 30)
        monkeypatch.setattr(device_iterative_dual, "LEAF_ROWS", 40)

    @staticmethod
    def both(tensor, kernel, ridge, seed, n=120, is_weighted=True):
        rng = np.random.default_rng(seed)
        X, weight, T = rng.standard_normal((n, 3)), np.ones(n), rng.random((n, 2))
        if is_weighted:
            weight = rng.integers(1, 4, n) + rng.random(n)
        sums, device = T * weight[:, None], Device.of(tensor(X))
        there = DeviceIterativeDual(X, kernel, weight, sums, seed, device=device)
        return next(iter(there.path([ridge]))), next(iter(Dual(kernel.gram(X), weight, sums).path([ridge])))

    @settings(max_examples=20, deadline=None)
    @given(
        kernel=st.sampled_from([Gaussian, Laplacian]),
        width=st.floats(0.3, 5.0),
        ridge=st.sampled_from([0.1, 1.0, 10.0]),
        seed=st.integers(0, 10_000),
        is_weighted=st.booleans(),
    )
    def test_dense_solution(self, kernel, width, ridge, seed, is_weighted):
        found, exact = self.both(array_api_strict.asarray, kernel(width), ridge, seed, is_weighted=is_weighted)
        # residuals of the targets are at most 1e-4 of their norm, which is about 7
        assert_allclose(found.fitted, exact.fitted, atol=2e-3)
        assert_allclose(found.coef(), exact.coef(), atol=2e-3 / ridge * 5)
        off = found.leverage - exact.leverage
        assert np.sqrt(np.mean(off**2)) < 0.06 and abs(off.mean()) < 0.02

    @pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(2.0), Matern(1.0, 1.5)], ids=str)
    def test_libraries(self, tensor, kernel):
        found, exact = self.both(tensor, kernel, 0.5, 0)
        assert_allclose(found.fitted, exact.fitted, atol=2e-3)
        assert np.sqrt(np.mean((found.leverage - exact.leverage) ** 2)) < 0.05

    def test_float64_where_float32_does_not_resolve_the_ridge(self, monkeypatch):
        """A wide kernel and a small ridge: the residual in float32 stays above its tolerance."""
        args = array_api_strict.asarray, Gaussian(6.0), 1e-3, 0, 400
        found, exact = self.both(*args)
        assert_allclose(found.fitted, exact.fitted, atol=1e-3)
        monkeypatch.setattr(device_iterative_dual.System, "__init__", _only_rounded(device_iterative_dual.System))
        with pytest.warns(ConvergenceWarning, match="columns above their tolerance"):
            self.both(*args)

    def test_says_that_it_did_not_converge(self, monkeypatch):
        monkeypatch.setattr(device_iterative_dual, "MOST_PRODUCTS", 2)
        with pytest.warns(ConvergenceWarning, match="after 2 products"):
            self.both(array_api_strict.asarray, Laplacian(0.5), 1e-3, 0)

    def test_features_that_do_not_fit_are_computed_again(self, monkeypatch):
        expected = self.both(array_api_strict.asarray, Gaussian(1.0), 0.5, 0)[0]
        monkeypatch.setattr(Device, "free_bytes", 0.0)
        found = self.both(array_api_strict.asarray, Gaussian(1.0), 0.5, 0)[0]
        assert_allclose(found.leverage, expected.leverage, rtol=1e-10)

    def test_progress_counts_products(self):
        steps = []
        X = np.random.default_rng(0).standard_normal((60, 2))
        device, progress = Device.of(array_api_strict.asarray(X)), SimpleNamespace(step=steps.append)
        dual = DeviceIterativeDual(X, Laplacian(1.0), np.ones(60), X, device=device, progress=progress)
        next(iter(dual.path([0.1])))
        assert steps and all("times the tolerance" in each for each in steps)

    def test_leaves_partition_the_rows(self):
        X = np.random.default_rng(0).standard_normal((101, 2))
        found = device_iterative_dual.leaves(X, 10)
        assert sorted(np.concatenate(found).tolist()) == list(range(101)) and max(map(len, found)) <= 10
        assert len(device_iterative_dual.leaves(np.ones((30, 2)), 10)) == 4  # equal rows are divided too

    def test_estimator(self, data, tensor, monkeypatch):
        """The public way: more centres than the dense form may have."""
        monkeypatch.setattr(least_squares, "fits", lambda device, b: False)
        X, y = data
        params = {"kernel": "laplacian", "width": 4.0, "ridge": 1e-3, "centers": "all", "random_state": 0}
        there, here = LSPC(**params).fit(tensor(X), y), LSPC(**params).fit(X, y)
        assert isinstance(there.coef_, np.ndarray)
        assert_allclose(there.decision_function(X), here.decision_function(X), atol=0.1)
        assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=0.02)
        assert log_loss(y, there.loo_proba_) == pytest.approx(log_loss(y, here.loo_proba_), rel=0.03)

    def test_products_in_tiles(self, tensor, monkeypatch):
        monkeypatch.setattr(kernels_base, "BLOCK_BYTES", 8 * 50**2)
        X = np.random.default_rng(0).standard_normal((130, 4))
        device, V = Device.of(tensor(X)), np.random.default_rng(1).random((70, 3))
        for kernel in (Gaussian(1.5), Laplacian(2.0), Matern(1.0, 2.5)):
            found = kernel.times_on_device(device, tensor(X), tensor(X[:70]), tensor(V))
            assert_allclose(device.get(found), kernel(X, X[:70]) @ V, rtol=1e-6, atol=1e-6)


def _only_rounded(system):
    """An initialiser without products in float64."""
    make = system.__init__

    def initialise(self, device, times, times_exactly, *rest):
        make(self, device, times, times, *rest)

    return initialise


class TestLikelihoodOnADevice:
    @pytest.mark.parametrize("tags", [False, True])
    def test_same_path(self, rows, tensor, tags, monkeypatch):
        monkeypatch.setattr(device_likelihood, "FEWEST", 0)
        if tags:
            rows = Rows.of(rows.X, np.eye(3)[rows.labels], rows.weight, 3)
        basis, device = Basis(Gaussian(1.5), rows.X[:60]), Device.of(tensor(rows.X))
        here, there = (
            Likelihood(rows, basis, tol=1e-8),
            Likelihood(rows, basis, tol=1e-8, elsewhere=partial(design_on, device)),
        )
        assert isinstance(there._design, DeviceDesign) and not isinstance(here._design, DeviceDesign)
        for a, b in zip(here.path([1e-2, 1e-3]), there.path([1e-2, 1e-3])):
            assert_allclose(b.coef(), a.coef(), atol=1e-4)
            assert_allclose(b.held_out, a.held_out, atol=1e-4)

    def test_estimator(self, data, tensor, monkeypatch):
        monkeypatch.setattr(device_likelihood, "FEWEST", 0)
        X, y = data
        params = {"kernel": "gaussian", "width": 2.0, "ridge": 1e-3, "random_state": 0}
        there, here = (KernelLogisticRegression(**params).fit(rows, y) for rows in (tensor(X), X))
        assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-3)

    @pytest.mark.parametrize("base", [False, True])
    def test_leave_one_out_by_one_step(self, rows, tensor, base, monkeypatch):
        monkeypatch.setattr(device_likelihood, "FEWEST", 0)
        here = Likelihood(rows, Basis(Gaussian(1.5), rows.X[:60]), tol=1e-10, base=base)
        there = replace(here, elsewhere=partial(design_on, Device.of(tensor(rows.X))))
        called = []
        own = DeviceDesign.spread_of_classes
        monkeypatch.setattr(DeviceDesign, "spread_of_classes", lambda *args: called.append(1) or own(*args))
        objective, some = here.objective(1e-2), np.arange(0, 700, 7)
        point = here.solve(objective).point
        expected = leave_one_out.leave_one_out(objective, point, some, 0.0)
        found = leave_one_out.leave_one_out(there.objective(1e-2), point, some, 0.0)
        assert called and np.abs(expected - objective.loss.scores(point.U)[some]).max() > 0.01
        assert_allclose(found, expected, atol=1e-7)

    @pytest.mark.parametrize("base", [False, True])
    @pytest.mark.parametrize("low_precision", [False, True])
    def test_what_newton_asks_for(self, rows, tensor, base, low_precision, monkeypatch):
        monkeypatch.setattr(device_likelihood, "FEWEST", 0)
        monkeypatch.setattr(device_likelihood, "LOW_PRECISION", 0 if low_precision else 1 << 20)
        device = Device.of(tensor(rows.X))
        here = Likelihood(rows, Basis(Gaussian(1.5), rows.X[:60]), base=base)
        there = replace(here, elsewhere=partial(design_on, device))
        ours, moved = here.objective(1e-2), there.objective(1e-2)
        moved = moved.design.moved(moved)
        random = np.random.default_rng(0)
        X, V = (random.normal(size=(61, ours.loss.n_columns)) for _ in range(2))
        a, b = ours.at(X), moved.at(moved.take_in(X))
        assert b.value == pytest.approx(a.value, rel=1e-10)
        for expected, found in zip(a[:4], moved.hand_out(b)[:4]):
            assert_allclose(found, expected, atol=1e-9)
        assert_allclose(device.get(moved.gradient(b)), ours.gradient(a), atol=1e-7)
        factor, own = ours.preconditioner(a), moved.preconditioner(b)
        assert_allclose(own.weight, factor.weight, rtol=1e-9)
        for name in ("whiten", "unwhiten", "solve"):
            expected = getattr(factor, name)(V)
            assert_allclose(device.get(getattr(own, name)(moved.take_in(V))), expected, rtol=1e-6, atol=1e-8)
            assert_allclose(getattr(own, name)(V), expected, rtol=1e-6, atol=1e-8)  # for those who stay on the CPU
        product = device.get(moved.whitened_product(b, own, moved.take_in(V)))
        assert_allclose(product, ours.whitened_product(a, factor, V), atol=1e-3 if low_precision else 1e-8)
        (_, *numbers), (point, *others) = ours.ray(a, V)(0.3), moved.ray(b, moved.take_in(V))(0.3)
        assert_allclose(others, numbers, rtol=1e-8)
        assert_allclose(device.get(point.X), X + 0.3 * V)

    def test_without_a_ridge_newton_stays_on_the_cpu(self, rows, tensor, monkeypatch):
        monkeypatch.setattr(device_likelihood, "FEWEST", 0)
        problem = Likelihood(
            rows, Basis(Gaussian(1.5), rows.X[:5]), elsewhere=partial(design_on, Device.of(tensor(rows.X)))
        )
        objective = problem.objective(0.0)
        assert objective.design.moved(objective) is objective

    def test_leave_one_out_class_by_class_where_one_needs_more(self, rows, tensor, monkeypatch):
        monkeypatch.setattr(device_likelihood, "FEWEST", 0)
        here = Likelihood(rows, Basis(Gaussian(1.5), rows.X[:60]), tol=1e-10)
        there = replace(here, elsewhere=partial(design_on, Device.of(tensor(rows.X))))
        objective, some = there.objective(1e-2), np.arange(0, 700, 7)
        point = here.solve(here.objective(1e-2)).point
        together = leave_one_out.leave_one_out(objective, point, some, 0.0)
        monkeypatch.setattr(DeviceDesign, "_factored", lambda *args: None)
        assert_allclose(leave_one_out.leave_one_out(objective, point, some, 0.0), together, atol=1e-9)

    def test_few_or_other_rows_stay_on_the_cpu(self, rows):
        assert not DeviceDesign.serves(rows, Basis(Gaussian(1.5), rows.X[:60]))
        many = Rows.of(np.tile(rows.X, (4, 1)), np.tile(rows.labels, 4), np.ones(4 * len(rows)), 3)
        assert DeviceDesign.serves(many, Basis(Gaussian(1.5), rows.X[:60]))
        assert not DeviceDesign.serves(many, Basis(FromCallable(gaussian), rows.X[:60]))


@pytest.mark.parametrize("only_folds", [False, True])
def test_surface_features_on_a_device(rows, tensor, only_folds):
    here = Surface(rows, Basis(Gaussian(1.5), rows.X[:20]), only_folds=only_folds)
    there = here.on(Device.of(tensor(rows.X)))
    assert isinstance(there.basis, DeviceBasis) and there.basis.use_float64 and here.on(None).basis == here.basis
    assert_allclose(there.maximum.coef, here.maximum.coef, atol=1e-6)
    assert_allclose(there.held_out, here.held_out, atol=1e-6)
