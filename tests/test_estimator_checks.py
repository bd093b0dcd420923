"""scikit-learn's own contract, with no expected failures."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier, recipes
from kproba.estimators import ivm, surface

ESTIMATORS = [
    LSPC(),
    *[LSPC(link=link) for link in ("clip", "none")],
    LSPC(link="clip-parameters", kernel="gaussian"),
    *[LSPC(centers=centers) for centers in (5, ("class", 3))],
    LSPC(centers="class", kernel="gaussian", width="median"),
    LSPC(selection="cv", folds=2, kernel="gaussian"),
    LSPC(penalty="parameters", solver="eigen", scaling="standard"),
    recipes.lspc_2010(),
    recipes.lspc_new_2011(),
    KernelLogisticRegression(),
    KernelLogisticRegression(solver="lbfgs", centers=("class", 5), kernel="gaussian", width="median", ridge=0.01),
    KernelLogisticRegression(
        solver="sgd", tol=0.1, max_iter=1000, centers=5, kernel="gaussian", width="median", ridge=0.01
    ),
    KernelLogisticRegression(
        penalty="parameters", fit_intercept=False, coding="base-class", kernel="gaussian", width="median", ridge=0.01
    ),
    ImportVectorMachine(),
    ImportVectorMachine(kernel="gaussian", width="median", ridge=0.1, search="exact", max_points=3),
    ImportVectorMachine(kernel="gaussian", width="median", ridge=0.01, candidates=5),
    ImportVectorMachine(kernel="gaussian", width="median", ridge=(0.1, 0.01), refit=False, max_points=5),
    SurfaceKernelClassifier(),
    SurfaceKernelClassifier(
        link="clip", selection="cv", folds=2, centers="random", kernel="gaussian", width=(0.5, 1.0)
    ),
    SurfaceKernelClassifier(link="none", centers="class-k-means", kernel="laplacian", width="median"),
    SurfaceKernelClassifier(solver="nelder-mead", max_iter=500, n_restarts=1, width=1.0, link="clip", n_centers=8),
    SurfaceKernelClassifier(solver="swarm", max_iter=100, width=1.0, link="clip", n_centers=8),
]


@pytest.fixture(scope="module", autouse=True)
def few_widths():
    """The contract holds for whatever the search finds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ivm, "WIDTHS", (1.2, 2.5))
        patch.setattr(surface, "WIDTHS", (0.6, 2.5))
        yield


@pytest.mark.filterwarnings("ignore::kproba.ConditionWarning")
@pytest.mark.filterwarnings("ignore::kproba.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::kproba.FewRowsWarning")  # tables of categories are rounded to few values
@parametrize_with_checks(ESTIMATORS)
def test_estimator_contract(estimator, check):
    check(estimator)
