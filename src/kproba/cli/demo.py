"""A first look: fit and evaluate a model on a built-in dataset, and write a report.

Fits scikit-learn's handwritten digits, compares LSPC with other classifiers and writes an HTML report. Nothing is
downloaded.

examples:
  kproba demo
  kproba demo --out first-look.html
"""

import os
from time import perf_counter

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .. import LSPC
from . import _frames, _text
from ._scores import measures


def add_options(command) -> None:
    command.add_argument("--out", default="kproba-demo.html", help="HTML report to write (default: %(default)s)")


def run(args) -> None:
    from .. import write_report

    _frames.check_output("--out", args.out)
    data = load_digits()
    X, X_new, y, y_new = train_test_split(data.data, data.target, test_size=0.5, random_state=0, stratify=data.target)
    _text.remark(args, f"handwritten digits: {len(y)} training rows, {len(y_new)} new ones, {X.shape[1]} pixels\n")
    models = {
        "kproba LSPC": LSPC(random_state=0),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "calibrated SVC": CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), ensemble=False),
    }
    found = {name: _measured(model, X, y, X_new, y_new) for name, model in models.items()}
    rows = [
        [name, f"{f['log_loss']:.3f}", _text.percent(f["error"]), f"{f['fit_seconds']:.2f}"]
        for name, f in found.items()
    ]
    model = models["kproba LSPC"]
    out = os.path.abspath(args.out)
    names = [str(name) for name in data.feature_names]
    write_report(model, X_new, y_new, out, X_train=X, y_train=y, names=names, title="Handwritten digits: a first look")
    loo_loss = -np.log(model.loo_proba_[np.arange(len(y)), np.searchsorted(model.classes_, y)]).mean()
    text = _text.columns(["on new rows", "log-loss", "error", "fit, s"], rows)
    text += f"\n\nThe leave-one-out log-loss that selected LSPC's parameters is {loo_loss:.3f}: optimistic on few rows."
    text += f"\nReport: {out}"
    _text.answer(args, {"methods": found, "report": out}, text)


def _measured(model, X, y, X_new, y_new) -> dict:
    start = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - start
    return measures(y_new, model.predict_proba(X_new), model.classes_) | {"fit_seconds": seconds}
