"""Nyström features and logistic regression: gamma and C by 3-fold log-loss."""

from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from . import OneHot, Prepared

name = "Nyström + logistic, tuned"


def fit(X, y, categorical):
    prepare = OneHot(X, categorical)
    Z = prepare(X)
    features = Nystroem(n_components=min(500, 2 * len(Z) // 3), random_state=0)
    model = make_pipeline(StandardScaler(), features, LogisticRegression(max_iter=300))
    grid = {
        "nystroem__gamma": [f / Z.shape[1] for f in (0.1, 0.3, 1, 3)],
        "logisticregression__C": [0.1, 1, 10, 100],
    }
    return Prepared(prepare, GridSearchCV(model, grid, cv=3, scoring="neg_log_loss", n_jobs=-1).fit(Z, y))
