"""Calls that the documentation shows, as a user writes them: test_typing.py has type checkers read this file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kproba
from kproba import (
    LSPC,
    BagOfFeatures,
    ChiSquared,
    Gaussian,
    HiddenMarkovKernel,
    ImportVectorMachine,
    JointKernel,
    Kernel,
    KernelLogisticRegression,
    Laplacian,
    Matern,
    PictureDescriptors,
    Polynomial,
    RejectOption,
    SequenceFeatures,
    Sequences,
    Spectrum,
    SurfaceKernelClassifier,
    TimesMedian,
    conformal_sets,
    displays,
    load,
    metrics,
    open_rows,
    recipes,
    save,
    to_onnx,
    write_probabilities,
    write_report,
)
from kproba.data.toys import three_classes_2010
from kproba.typing import KernelLike, RidgeLike

Floats = NDArray[np.float64]


def overlap(A: Floats, B: Floats) -> Floats:
    common: Floats = np.minimum(A[:, None], B[None]).sum(axis=2)
    return common


def kernels() -> list[KernelLike]:
    chosen: list[KernelLike] = ["auto", "gaussian", "precomputed", "chi2", Gaussian(), Gaussian(2.0), overlap]
    chosen += [
        Laplacian(width=1),
        Matern(width=3.0, nu=2.5),
        Polynomial(degree=2),
        ChiSquared(),
        Spectrum(length=(2, 4)),
    ]
    chosen += [HiddenMarkovKernel(n_states=2), lambda A, B: A @ B.T, JointKernel(lambda A, y, B, z: A @ B.T)]
    return chosen


def least_squares(points: Floats) -> list[LSPC]:
    rng = np.random.RandomState(0)
    models = [LSPC(), LSPC(random_state=0), LSPC(random_state=rng), LSPC(random_state=None), LSPC(verbose=True)]
    models += [LSPC(kernel=kernel) for kernel in kernels()]
    models += [LSPC("laplacian", 2.0, 1e-3), LSPC(kernel=overlap), LSPC(kernel=lambda A, B: A @ B.T, scaling=None)]
    models += [LSPC(width=1), LSPC(width=np.float64(2)), LSPC(width="median"), LSPC(width=TimesMedian((0.5, 1.0)))]
    models += [LSPC(width=[0.5, 1, 2], ridge=[1e-4, 1e-2]), LSPC(width=(1.0, 2.0), ridge=np.logspace(-6, 0, 7))]
    models += [LSPC(ridge=1e-3), LSPC(ridge=1), LSPC(ridge=np.float32(1e-3)), LSPC(centers=np.int64(9))]
    models += [LSPC(centers="all"), LSPC(centers=500), LSPC(centers=("class", 30)), LSPC(centers=points)]
    models += [LSPC(centers=[[0.0, 1.0]]), LSPC(scaling=None), LSPC(scaling="standard"), LSPC(loo=True, n_jobs=-1)]
    models += [LSPC(class_weight="balanced"), LSPC(class_weight={"a": 2, "b": 0.5}), LSPC(class_weight={0: 1, 1: 9})]
    models += [LSPC(class_similarity=np.eye(3)), LSPC(class_similarity=[[1, 0], [0, 1]]), LSPC(device="cuda:1")]
    models += [LSPC(solver="cg", centers="all"), LSPC(solver="sgd", passes=5), LSPC(selection="cv", folds=2)]
    models += [LSPC(link=link, penalty=penalty) for link in ("auto", "clip") for penalty in ("rkhs", "parameters")]
    return [*models, recipes.lspc_2010(random_state=0), recipes.lspc_new_2011()]


def others() -> list[KernelLogisticRegression | ImportVectorMachine | SurfaceKernelClassifier]:
    path: RidgeLike = [1.0, 0.1]
    return [
        KernelLogisticRegression(solver="lbfgs", tol=1e-6, max_iter=1000, ridge=1e-3),
        KernelLogisticRegression(kernel=Gaussian(), width=2, ridge=path, centers=("class", 5), scaling=None),
        ImportVectorMachine(ridge=0.1, max_points=None, candidates="all"),
        ImportVectorMachine(ridge="path", max_points=20, candidates=50, tuning_loss="error", tuning_fraction=0.5),
        ImportVectorMachine(width=TimesMedian(), ridge=path, search="exact", lookback=1, tol=1e-4),
        SurfaceKernelClassifier(n_centers=40, centers="k-means", solver="swarm", max_iter=500, n_restarts=1),
        SurfaceKernelClassifier(centers=np.zeros((3, 2)), link="none", kernel="laplacian", class_weight="balanced"),
    ]


def classify(X: Floats, y: NDArray[np.int64]) -> Floats:
    """Every method returns what its name says, and a fit the estimator itself."""
    clf: LSPC = LSPC(ridge=1e-3).fit(X, y, sample_weight=np.ones(len(y)))
    clf = clf.partial_fit(X, y).partial_fit(X, y, classes=[0, 1, 2], sample_weight=[1.0] * len(y))
    labels: NDArray[Any] = clf.predict(X)
    decision: Floats = clf.decision_function(X) + clf.predict_log_proba(X)
    accuracy: float = clf.score(X, labels, sample_weight=None)
    machine: ImportVectorMachine = ImportVectorMachine().fit(X, y, tuning=(X, y))
    held_out: Floats = clf.loo_proba_ + clf.loo_scores_ + machine.loo_proba_
    kernel: Kernel = clf.kernel_
    coefficients: Floats = clf.path(X, y).coef + clf.path(X, y, [1e-3, 0.1], sample_weight=np.ones(len(y))).coef
    tried: NDArray[Any] = clf.search_results_["loss"]
    shown = (clf.classes_, clf.n_features_in_, clf.coef_, clf.centers_, clf.width_, clf.ridge_, clf.scaling_, clf.link_)
    print(
        accuracy,
        kernel.name,
        coefficients,
        tried,
        shown,
        machine.import_indices_,
        machine.path_,
        clf.get_params()["ridge"],
    )
    proba: Floats = clf.predict_proba(X) + decision + held_out
    return proba


def doubt(X: Floats, y: NDArray[np.int64]) -> NDArray[Any]:
    for option in (
        RejectOption(LSPC(), max_error=0.01, confidence=0.9, calibration="loo"),
        RejectOption(LSPC(), cost=0.2, reject_label=-1),
        RejectOption(LSPC(), cost=[[0, 1, 0.3], [5, 0, 0.3]], cv=3),
        RejectOption(LSPC(), threshold=0),
    ):
        clf: RejectOption = option.fit(X, y)
        sets = clf.predict_set(X, 0.9, method="aps", by_class=True, as_labels=True)
        print(
            clf.rejects(X), clf.curve_of(X, y)["error"], sets, clf.threshold_, clf.coverage_, clf.predict_log_proba(X)
        )
    found: NDArray[Any] = conformal_sets([[0.9, 0.1]], ["a"], [[0.5, 0.5]], coverage=0.6, labels=["a", "b"])
    return found


def products(X: Floats, y: NDArray[np.int64], folder: Path) -> None:
    rows = open_rows(folder / "train.parquet", target="y", columns=["a", "b"], dtype="float32")
    clf = LSPC(centers=150).fit(rows, classes=["a", "b"], checkpoint=folder)
    other = SurfaceKernelClassifier().fit(open_rows([str(folder / "a.csv"), "b.csv"], "y", "weight"))
    write_probabilities(other, rows, folder / "out.parquet", verbose=1)
    save(clf, folder / "model.kproba")
    again: LSPC = load("model.kproba", max_bytes=1 << 30)
    graph: bytes = to_onnx(again, X[:3], dtype="float64").SerializeToString()
    report: Path = write_report(clf, X, y, folder / "report.html", on="leave-one-out", names=["a", "b"], title="Mine")
    print(graph, report, kproba.__version__)


def judge(X: Floats, y: NDArray[np.int64], proba: Floats) -> float:
    loss = metrics.brier_score(y, proba) + metrics.surface_loss(y, proba, labels=[0, 1], sample_weight=np.ones(3))
    bins = metrics.reliability_bins(y, proba, n_bins=10, strategy="uniform", of="all")
    thresholds = metrics.tag_thresholds([[1, 0]], [[0.5, 0.5]], maximize="youden")
    report = metrics.tag_report([[1, 0]], [[0.5, 0.5]], names=["sun", "sea"])
    displays.ReliabilityDisplay.from_estimator(LSPC().fit(X, y), X, y, name="mine", marker="x").plot()
    displays.ConfidenceHistogramDisplay.from_predictions(y, proba, labels=[0, 1])
    displays.ScoresDisplay.from_predictions(y, {"ours": proba, "theirs": proba})
    displays.RiskCoverageDisplay.from_predictions(y, proba, confidence=0.9)
    displays.SearchMapDisplay.from_estimator(LSPC().fit(X, y))
    displays.ImportanceDisplay.from_estimator(LSPC().fit(X, y), names=["a", "b"], most=5).plot()
    displays.KernelLearningDisplay.from_estimator(LSPC().fit(X, y)).plot()
    print(bins.confidence, thresholds, report.macro.auc, three_classes_2010(100, random_state=0).posterior(X))
    return loss + metrics.calibration_error(y, proba)


def parts(pictures: list[Any]) -> Floats:
    descriptors = PictureDescriptors("sift", step=4, max_side=None, n_jobs=2).fit(pictures).transform(pictures)
    frames = SequenceFeatures(reach=1).fit(descriptors).transform(Sequences(np.zeros((5, 2)), lengths=[2, 3]))
    bag = BagOfFeatures(50, assignment="hard", normalize="l1", scaling="standard", random_state=0).fit(descriptors)
    words: Floats = bag.transform(frames) + bag.words_
    return words


def mistakes(X: Floats) -> None:
    """What checkers have to refuse: they complain about a comment below that nothing calls for."""
    LSPC(scaling=3)  # type: ignore
    LSPC(C=10)  # type: ignore
    LSPC(folds="two")  # type: ignore
    LSPC(width={})  # type: ignore
    LSPC(class_weight=[1, 2])  # type: ignore
    KernelLogisticRegression(max_iter="many")  # type: ignore
    ImportVectorMachine(max_points=[1])  # type: ignore
    SurfaceKernelClassifier(random_state="seed")  # type: ignore
    RejectOption(LSPC(), max_error="low")  # type: ignore
    labels: str = LSPC().predict(X)  # type: ignore
    print(labels, metrics.brier_score(X))  # type: ignore
