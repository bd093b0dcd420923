"""CatBoost as it comes, with its own treatment of categories and missing numbers."""

import numpy as np

from . import Prepared

name = "CatBoost"


def fit(X, y, categorical):
    from catboost import CatBoostClassifier

    columns = np.flatnonzero(categorical).tolist()
    model = CatBoostClassifier(verbose=0, allow_writing_files=False)

    def prepare(X):
        return as_frame(X, columns)

    return Prepared(prepare, model.fit(prepare(X), y, cat_features=columns))


def as_frame(X, columns):
    """CatBoost wants categories as text, and takes no missing ones: they are a category of their own."""
    import pandas as pd

    frame = pd.DataFrame(X)
    for j in columns:
        frame[j] = frame[j].fillna(-1).astype(int).astype(str)
    return frame
