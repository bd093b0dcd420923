"""Support vector machine with scikit-learn's own C and gamma, calibrated by folds."""

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from . import OneHot, Prepared
from .svc import calibrated

name = "SVC, calibrated"


def fit(X, y, categorical):
    prepare = OneHot(X, categorical)
    return Prepared(prepare, calibrated(make_pipeline(StandardScaler(), SVC()), prepare(X), y))
