"""LightGBM as it comes, with its own treatment of categories and missing cells."""

import numpy as np

from . import Prepared

name = "LightGBM"


def fit(X, y, categorical):
    from lightgbm import LGBMClassifier

    columns = np.flatnonzero(categorical).tolist()
    model = LGBMClassifier(verbose=-1).fit(X, y, categorical_feature=columns or "auto")
    return Prepared(np.asarray, model)
