"""
Exporting a pipeline to ONNX
============================

:func:`kproba.to_onnx` converts a classifier, preprocessing included, to a graph that runs without Python. This example
checks that it returns the same probabilities. It needs ``pip install 'kproba[onnx]' onnxruntime``.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import skl2onnx
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kproba import LSPC, to_onnx

X, y = load_breast_cancer(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
rows = X_new.astype(np.float32)

# %%
# Convert
# -------

model = make_pipeline(StandardScaler(), LSPC(random_state=0)).fit(X, y)
graph = to_onnx(model)
session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
print(f"{len(graph.SerializeToString()) / 1024:.0f} KiB, {len(graph.graph.node)} operators")
for part in (*session.get_inputs(), *session.get_outputs()):
    print(f"{part.name:14s}{part.type:16s}{part.shape}")

# %%
# Check
# -----

label, proba = session.run(["label", "probabilities"], {"X": rows})
in_python = model.predict_proba(rows.astype(np.float64))
print(f"labels that differ: {(label != model.predict(rows)).sum()} of {len(rows)}")
print(f"largest difference between probabilities: {abs(proba - in_python).max():.0e}")

# %%
# Comparison with a calibrated SVC
# --------------------------------
# skl2onnx converts ``CalibratedClassifierCV`` around a pipeline with an SVC without an error. In versions with
# `issue 1246 <https://github.com/onnx/sklearn-onnx/issues/1246>`_ the graph may pass other numbers to the sigmoid than
# those it was fitted on. Whether it does depends on the problem, so check before you deploy; the same check works for
# every graph. Here it is done for two classes of tumours and three classes of wine.

warnings.filterwarnings("ignore", message="Attribute `prob[AB]_` was deprecated", category=FutureWarning)


def by_svc(X, y, rows):
    """Probabilities of a calibrated SVC for the rows, in Python and from its graph."""
    svc = CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC())).fit(X, y)
    graph = skl2onnx.to_onnx(svc, rows[:1], options={"zipmap": False}).SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    return svc.predict_proba(rows.astype(np.float64)), session.run(["probabilities"], {"X": rows})[0]


wines, kinds = load_wine(return_X_y=True)
svc_in_python, svc_proba = by_svc(X, y, rows)
of_wines, wines_proba = by_svc(wines, kinds, wines.astype(np.float32))
print(f"skl2onnx {skl2onnx.__version__}, largest difference between probabilities:", end=" ")
print(f"{abs(svc_proba - svc_in_python).max():.2g} for tumours, {abs(wines_proba - of_wines).max():.2g} for wines")

figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained", sharex=True, sharey=True)
panels = (("kproba.to_onnx, LSPC", in_python, proba), ("skl2onnx, calibrated SVC", svc_in_python, svc_proba))
for ax, (title, python, onnx) in zip(axes, panels):
    ax.axline((0, 0), slope=1, color="0.6", linestyle=":")
    for label, name, colour, marker in ((0, "malignant", "#D55E00", "^"), (1, "benign", "#0072B2", "o")):
        own = y_new == label
        ax.scatter(python[own, 1], onnx[own, 1], s=22, color=colour, marker=marker, alpha=0.6, label=name)
    ax.set(title=title, xlabel="probability of benign in Python", aspect="equal")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("probability of benign in onnxruntime")
axes[0].legend(frameon=False, loc="upper left")
plt.show()
