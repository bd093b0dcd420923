"""The forms of kernel logistic regression in the papers: penalties, intercept, base class, plain gradients."""

import warnings

import numpy as np
import onnxruntime
import pytest
from hypothesis import assume, given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

import kproba
from kproba import ConditionWarning, ConvergenceWarning, KernelLogisticRegression, recipes
from kproba.basis.basis import Basis
from kproba.data.rows import Rows
from kproba.data.sources import ArraySource
from kproba.data.toys import three_classes_2010
from kproba.estimators import _reading
from kproba.kernels import Gaussian
from kproba.papers.plain_sgd import PlainSGD
from kproba.problems.likelihood import Likelihood, RowSpace
from oracles import fitted_klr, gaussian, klr_fit, klr_loo, klr_objective, one_hot, stochastic_ascent
from strategies import tables

RNG = np.random.default_rng(0)
N, WIDTH = 28, 1.5
X = RNG.normal(size=(N, 3))
WEIGHT = RNG.integers(1, 4, size=N).astype(float)
LABELS = {c: (X[:, [0]] * np.linspace(-1, 1, c) + 2.0 * RNG.normal(size=(N, c))).argmax(axis=1) for c in (2, 3)}
CENTERS = X[:4]
FORMS = [
    {"penalty": penalty, "fit_intercept": intercept, "coding": coding}
    for penalty in ("rkhs", "parameters")
    for intercept in (True, False)
    for coding in ("symmetric", "base-class")
]
FORM_NAMES = [" ".join(map(str, form.values())) for form in FORMS]
each_form = pytest.mark.parametrize("form", FORMS, ids=FORM_NAMES)


def model(**changes):
    given = {"kernel": "gaussian", "width": WIDTH, "ridge": 1e-2, "centers": CENTERS, "scaling": None, "tol": 1e-14}
    return KernelLogisticRegression(**{**given, **changes})


def oracle(form, y, ridge):
    """The arguments of the oracles for one form."""
    penalty = gaussian(CENTERS, CENTERS, WIDTH) if form["penalty"] == "rkhs" else np.eye(len(CENTERS))
    options = {"intercept": form["fit_intercept"], "base": form["coding"] == "base-class"}
    return (gaussian(X, CENTERS, WIDTH), penalty, one_hot(y, y.max() + 1), WEIGHT, ridge), options


@each_form
@pytest.mark.parametrize("c", LABELS)
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 1e-1])
def test_against_dense_newton(form, c, ridge):
    y = LABELS[c]
    fitted = model(ridge=ridge, **form).fit(X, y, WEIGHT)
    given, options = oracle(form, y, ridge)
    best, _ = klr_fit(*given, **options)
    assert_allclose(fitted.predict_proba(X), softmax(best, axis=1), rtol=0, atol=1e-6 if ridge == 0.0 else 1e-7)
    scores = fitted.basis_.scores(X, fitted.coef_) + fitted.intercept_
    assert_allclose(scores[:, -1] if options["base"] else scores.sum(axis=1), 0.0, atol=1e-9)
    theta, weight = fitted.coef_, WEIGHT / WEIGHT.sum()
    found, wanted = (
        -weight @ np.log(P[np.arange(N), y]) + 0.5 * ridge * np.vdot(coef, given[1] @ coef)
        for P, coef in ((fitted.predict_proba(X), theta), (softmax(best, axis=1), klr_fit(*given, **options)[1][:4]))
    )
    # the symmetric oracle leaves a constant common to all classes at zero, so its coefficients sum to zero as ours do
    assert found == pytest.approx(wanted, rel=1e-10)
    assert options["intercept"] or (fitted.intercept_ == 0).all()


@each_form
@pytest.mark.parametrize(("c", "ridge"), [(2, 1e-2), (3, 1e-2), (3, 0.0)])
def test_leave_one_out_against_refits(form, c, ridge):
    y = LABELS[c]
    fitted = model(ridge=ridge, loo=True, **form).fit(X, y, WEIGHT)
    given, options = oracle(form, y, ridge)
    assert_allclose(fitted.loo_proba_, softmax(klr_loo(*given, **options), axis=1), rtol=0, atol=1e-3)


@each_form
def test_weights_equal_repeated_rows(form):
    y, count = LABELS[3], WEIGHT.astype(int)
    weighted = model(loo=True, **form).fit(X, y, count)
    repeated = model(loo=True, **form).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=0, atol=1e-9)
    assert_allclose(np.repeat(weighted.loo_proba_, count, axis=0), repeated.loo_proba_, rtol=0, atol=1e-9)


@pytest.fixture
def streamed(monkeypatch):
    """Rows of three classes as a source, about half of which are a sample in memory; and as arrays."""
    monkeypatch.setattr(_reading, "sample_size", lambda d: 100)
    toy = three_classes_2010(1000, random_state=0)
    return ArraySource(toy.X, toy.y), toy


@each_form
@pytest.mark.parametrize("ridge", [0.0, 1e-2])
def test_a_source_equals_memory(streamed, form, ridge):
    source, toy = streamed
    given = {"ridge": ridge, "centers": toy.X[:5], "tol": 1e-14, **form}
    stream, memory = model(**given).fit(source), model(**given).fit(toy.X, toy.y)
    assert stream.n_iter_ > 1
    assert_allclose(stream.predict_proba(toy.X), memory.predict_proba(toy.X), rtol=0, atol=1e-5)


@each_form
def test_tags_equal_two_class_problems(form):
    Y = np.column_stack([LABELS[2], X[:, 1] + RNG.normal(size=N) > 0]).astype(int)
    tags = model(loo=True, **form).fit(X, Y)
    for tag in range(2):
        alone = model(loo=True, **form).fit(X, Y[:, tag])
        assert_allclose(tags.predict_proba(X)[:, tag], alone.predict_proba(X)[:, 1], rtol=0, atol=1e-6)
        assert_allclose(tags.loo_proba_[:, tag], alone.loo_proba_[:, 1], rtol=0, atol=1e-3)


@each_form
def test_model_files_and_graphs(form, tmp_path):
    fitted = model(**form).fit(X, LABELS[3])
    kproba.save(fitted, tmp_path / "model.kproba")
    loaded = kproba.load(tmp_path / "model.kproba")
    assert loaded.get_params().keys() == fitted.get_params().keys()
    assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    graph = kproba.to_onnx(fitted, dtype="float64").SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    assert_allclose(session.run(["probabilities"], {"X": X})[0], fitted.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", ["rkhs", "parameters"])
def test_centres_of_classes(intercept, penalty):
    y = LABELS[3]
    fitted = model(centers="class", fit_intercept=intercept, penalty=penalty, tol=1e-10, loo=True).fit(X, y)
    own = fitted.basis_.owner[:, None] == np.arange(3)
    assert (fitted.coef_[~own] == 0).all()
    K = fitted.basis_.gram() if penalty == "rkhs" else np.eye(N)
    scores = fitted.basis_.scores(X, fitted.coef_) + fitted.intercept_
    best = fitted_klr(fitted.basis_(X), K, y, 1e-2, own, intercept)
    assert klr_objective(scores, y, fitted.coef_, K, 1e-2) == pytest.approx(best, rel=1e-8)
    assert np.isfinite(fitted.loo_proba_).all()


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
@each_form
def test_other_solvers(form, solver):
    y = LABELS[3]
    found, newton = (model(solver=each, tol=1e-9, max_iter=1000, **form).fit(X, y) for each in (solver, "newton"))
    assert_allclose(found.predict_proba(X), newton.predict_proba(X), rtol=0, atol=1e-3)


@each_form
def test_the_search_finds_a_good_model(form):
    toy, test = three_classes_2010(120, random_state=0), three_classes_2010(1000, random_state=1)
    fitted = KernelLogisticRegression(kernel="gaussian", random_state=0, **form).fit(toy.X, toy.y)
    assert fitted.score(test.X, test.y) > 0.75


def test_parameters_penalty_learns_no_kernel():
    """The gradient of leave-one-out is that of the RKHS penalty."""
    toy = three_classes_2010(120, random_state=0)
    fitted = KernelLogisticRegression(penalty="parameters", random_state=0).fit(toy.X, toy.y)
    assert fitted.kernel_.name in ("gaussian", "laplacian")


class TestWithoutPenalty:
    @pytest.mark.filterwarnings("ignore::kproba.ConditionWarning")
    @pytest.mark.parametrize("solver", ["newton", "lbfgs", "sgd"])
    def test_separable_classes_warn_and_end(self, solver):
        y = (X[:, 0] > 0).astype(int)
        with pytest.warns(ConvergenceWarning, match=r"separable in this basis.*\(ridge=0\)"):
            fitted = model(ridge=0, centers="all", solver=solver, tol=1e-4, max_iter=1000).fit(X, y)
        P = fitted.predict_proba(X)
        assert (P.argmax(axis=1) == y).all() and np.isfinite(fitted.coef_).all()
        assert -np.log(P[np.arange(N), y]).mean() < 1e-3

    @pytest.mark.filterwarnings("ignore::kproba.ConditionWarning")
    def test_a_separable_tag_warns(self):
        with pytest.warns(ConvergenceWarning, match="separable"):
            model(ridge=0, kernel="linear", width="auto", tol=1e-4).fit(X, np.column_stack([X[:, 0] > 0, LABELS[2]]))

    @pytest.mark.filterwarnings("ignore::kproba.ConditionWarning")
    def test_a_separable_source_warns(self, streamed):
        _, toy = streamed
        with pytest.warns(ConvergenceWarning, match="separable"):
            fitted = model(ridge=0, centers=toy.X[:5], kernel="linear", width="auto", tol=1e-4).fit(
                ArraySource(toy.X, (toy.X[:, 0] > 0).astype(int))
            )
        assert fitted.n_iter_ < 50

    def test_a_singular_basis_warns(self):
        """Equal coefficients of equal centres: the maximum is not unique, and rounding would choose it."""
        with pytest.warns(ConditionWarning, match="singular to working precision"):
            fitted = model(ridge=0, centers=np.repeat(CENTERS, 2, axis=0), tol=1e-8).fit(X, LABELS[3])
        once = model(ridge=0, tol=1e-8).fit(X, LABELS[3])
        assert_allclose(fitted.predict_proba(X), once.predict_proba(X), rtol=0, atol=1e-3)

    def test_other_classes_do_not(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = model(ridge=0, loo=True).fit(X, LABELS[3])
        assert fitted.ridge_ == 0.0

    def test_among_other_ridges(self):
        fitted = model(ridge=[1e-1, 1e-2, 0.0]).fit(X, LABELS[3])
        assert len(fitted.search_results_["loss"]) == 3
        stream = model(ridge=[1e-1, 1e-2, 0.0], tol=1e-8).fit(ArraySource(X, LABELS[3]))
        assert stream.ridge_ in (1e-1, 1e-2, 0.0)


def test_2010_tends_to_equal_probabilities_far_away():
    """2010 Sec. 3.1: outside the training region, KLR gives exp(0) = 1 to every class."""
    toy = three_classes_2010(random_state=0)
    fitted = recipes.klr_2010(len(toy.y), random_state=0).fit(toy.X, toy.y)
    assert_allclose(fitted.predict_proba([[100.0, 100.0], [-1e6, 3.0]]), 1 / 3, rtol=0, atol=1e-12)


def test_what_lambda_multiplies_in_2010():
    """Σ −log p + λ Σ θ² over c − 1 classes, as minFunc's penalised likelihood."""
    toy = three_classes_2010(60, random_state=0)
    y = toy.y - 1
    fitted = recipes.klr_2010(60, width=1.0, scaling=None, ridge=2 * 0.1 / 60, tol=1e-12).fit(toy.X, y)
    K = gaussian(toy.X, fitted.centers_, 1.0)
    _, theta = klr_fit(K, np.eye(60), one_hot(y, 3), np.ones(60), 2 * 0.1 / 60, intercept=False, base=True)
    found, best = (
        -np.log(softmax(K @ coef, axis=1)[np.arange(60), y]).sum() + 0.1 * np.square(coef).sum()
        for coef in (fitted.coef_, theta)
    )
    assert found == pytest.approx(best, rel=1e-9)


class TestPlainGradients:
    def test_is_the_textbooks(self):
        """Fig. 28.1, step by step, from the same start and the same rows."""
        y, steps = LABELS[3], 3
        fitted = recipes.klr_textbook(max_iter=steps, random_state=3).fit(X, y)
        seed = fitted._seed()
        random = np.random.default_rng(seed)
        start = random.standard_normal((N, 2))
        draws = np.concatenate([random.choice(N, size=N, p=np.full(N, 1 / N)) for _ in range(steps)])
        order = np.argsort([np.flatnonzero((fitted.centers_ == x).all(axis=1))[0] for x in X])
        contrasts = kproba.problems.losses.Multinomial(3)
        phi = gaussian(X[order], X[order], 1.0)
        theta = stochastic_ascent(phi, y[order], contrasts.scores(start), draws, 0.1)
        assert_allclose(fitted.coef_, theta, rtol=0, atol=1e-11)
        assert fitted.n_iter_ == steps

    @pytest.mark.filterwarnings("ignore::kproba.FewRowsWarning", "ignore::kproba.ConvergenceWarning")
    def test_ends_when_a_step_is_tiny(self):
        """As soon as all rows drawn in a pass are sure of their class."""
        solver = PlainSGD(step_size=100.0)
        x, y = np.array([[0.0], [1.0], [9.0], [10.0]]), [0, 0, 1, 1]
        fitted = recipes.klr_textbook(solver=solver, max_iter=10**6, random_state=0).fit(x, y)
        assert fitted.n_iter_ < 100

    def test_approximates_the_truth(self):
        """Fig. 28.3: close to the true posteriors."""
        random = np.random.default_rng(0)
        y = np.repeat(np.arange(3), 30)
        x = random.normal(size=90) + np.array([-3.0, 0.0, 3.0])[y]
        fitted = recipes.klr_textbook(max_iter=100, random_state=0).fit(x[:, None], y)
        grid = np.linspace(-4, 4, 81)
        truth = softmax(-0.5 * np.square(grid[:, None] - [-3.0, 0.0, 3.0]), axis=1)
        assert np.abs(fitted.predict_proba(grid[:, None]) - truth).mean() < 0.12

    def test_weights_are_frequencies(self):
        """A row of weight zero is never drawn, and the scale of the weights does not matter."""
        y, weight = LABELS[3], np.where(np.arange(N) < 20, 1.0, 0.0)
        one, other = (recipes.klr_textbook(max_iter=5, random_state=0).fit(X, y, k * weight) for k in (1.0, 1e3))
        assert_allclose(one.coef_, other.coef_, rtol=0, atol=1e-10)
        assert len(one.coef_) == 20

    def test_needs_memory(self):
        with pytest.raises(ValueError, match="solver='plain-sgd' needs all rows in memory"):
            model(solver="plain-sgd").fit(ArraySource(X, LABELS[3]))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("penalty", "parameter", r"penalty must be one of 'rkhs', 'parameters', got 'parameter'"),
        ("coding", "base", r"coding must be one of 'symmetric', 'base-class', got 'base'"),
        ("fit_intercept", "no", r"fit_intercept must be True or False, got 'no'"),
        ("fit_intercept", 1, r"fit_intercept must be True or False, got 1"),
        ("ridge", -1.0, r"ridge must be a positive number or zero, a list of these, or 'auto', got -1\.0"),
    ],
)
def test_bad_values(name, value, message):
    with pytest.raises(ValueError, match=message):
        model(**{name: value}).fit(X, LABELS[3])


@pytest.mark.parametrize("centers", ["class", ("class", 2)], ids=str)
def test_base_class_needs_shared_centres(centers):
    with pytest.raises(ValueError, match="coding='base-class' needs centres shared by all classes"):
        model(centers=centers, coding="base-class").fit(X, LABELS[3])


def test_indefinite_kernels_need_no_projection_for_the_penalty_of_parameters():
    fitted = model(kernel=lambda A, B: np.tanh(A @ B.T - 1), width="auto", penalty="parameters").fit(X, LABELS[2])
    assert not hasattr(fitted, "negative_share_")


class TestRowSpace:
    """Folds of 2010 have fewer rows than centres: their models are found in as many dimensions as there are rows."""

    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("base", [True, False])
    @given(table=tables())
    def test_same_scores_as_with_all_columns(self, base, intercept, table):
        X, y, weight = table.counted
        rows = Rows.of(X, y, weight, table.n_classes)
        form = {"tol": 1e-13, "rkhs": False, "intercept": intercept, "base": base}
        problem = Likelihood(rows, Basis(Gaussian(1.5), X), **form)
        inside, ridges = np.arange(0, len(y), 2), [1e-2, 1.0]
        assume(not intercept or len(set(y[1::2])) == table.n_classes)  # a class without rows has no finite intercept
        all_columns = Likelihood(rows.without(inside), problem.basis, **form).path(ridges, loo=False)
        for found, exact in zip(problem.hold_out(inside, ridges), all_columns, strict=True):
            assert_allclose(found.coef(), exact.coef(), atol=1e-5)
            assert_allclose(found.held_out, problem.basis.scores(X[inside], exact.coef()) + exact.intercept, atol=1e-5)

    def test_starts_from_a_solution_of_all_rows(self):
        problem = Likelihood(Rows.of(X, LABELS[3], WEIGHT, 3), Basis(Gaussian(WIDTH), X), tol=1e-13, rkhs=False)
        start, inside = problem.solve(problem.objective(0.1)).point, np.arange(0, N, 2)
        (warm,), (cold,) = (list(problem.hold_out(inside, [0.1], start=point)) for point in (start, None))
        assert_allclose(warm.held_out, cold.held_out, atol=1e-6)

    @pytest.mark.parametrize("solver, kind", [("auto", RowSpace), ("newton", RowSpace), ("lbfgs", None), ("sgd", None)])
    def test_only_where_coordinates_do_not_matter(self, solver, kind, monkeypatch):
        seen = []
        monkeypatch.setattr(RowSpace, "__init__", lambda *_: seen.append(RowSpace) or 1 / 0)
        problem = Likelihood(Rows.of(X, LABELS[3], WEIGHT, 3), Basis(Gaussian(WIDTH), X), solver=solver, rkhs=False)
        if kind is None:
            list(problem.hold_out(np.arange(9), [0.1]))
        else:
            with pytest.raises(ZeroDivisionError):
                list(problem.hold_out(np.arange(9), [0.1]))
        assert seen == ([] if kind is None else [kind])
