"""Without an extra: what does not need it works, and what does says which one to install."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

EXTRAS = (
    *("catboost", "dask", "distributed", "hmmlearn", "lightgbm", "matplotlib", "onnx", "onnxruntime", "openpyxl"),
    *("pandas", "polars", "pyarrow", "skimage", "shap", "skl2onnx", "skops", "skrub", "torch", "tqdm", "tslearn"),
)
#: A process in which these modules cannot be found.
WITHOUT = """
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Nowhere())
import numpy as np
import kproba
from kproba import cli
from kproba.search.learnt import outer_folds
outer_folds.MARKS = (20, 30)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
X, y = np.random.default_rng(0).normal(size=(40, 6)), np.arange(40) % 2
sequences = [x[:, None] for x in X]
"""


#: Extras that are hidden -> code that needs one of them -> the name of the extra. Processes take long to start.
NEEDED = {
    ("pandas", "skrub"): {
        "cli.main(['fit', 'x.csv', '--target', 'y'])": "tables",
        "kproba.LSPC(categorical_features=['a']).fit(kproba.open_rows('x.csv', target='y'))": "tables",
    },
    ("skl2onnx", "pyarrow"): {
        "kproba.to_onnx(make_pipeline(StandardScaler(), kproba.LSPC()).fit(X, y))": "onnx",
        "kproba.open_rows('x.csv', target='y')": "files",
    },
    ("skrub", "onnx", "matplotlib", "shap", "tqdm", "skimage", "tslearn", "hmmlearn", "torch"): {
        "cli.main(['fit', 'x.csv', '--target', 'y'])": "tables",
        "cli.main(['compare', 'x.csv', '--target', 'y', '--folds', '2'])": "tables",
        "kproba.to_onnx(kproba.LSPC().fit(X, y))": "onnx",
        "kproba.displays.ReliabilityDisplay.from_predictions(y, np.full((40, 2), 0.5))": "plot",
        "kproba.explain(kproba.LSPC(width=1.0).fit(X, y), X).to_shap()": "shap",
        "kproba.LSPC(verbose=1).fit(X, y)": "progress",
        "kproba.PictureDescriptors().fit_transform([np.zeros((64, 64))])": "pictures",
        "kproba.LSPC(kernel=kproba.GlobalAlignment()).fit(sequences, y)": "alignment",
        "kproba.LSPC(kernel=kproba.HiddenMarkovKernel()).fit(sequences, y)": "sequences",
        "kproba.LSPC(device='cuda').fit(X, y)": "torch",
    },
}
#: Runs one piece of code after the other, and says what each wrote to standard error.
ONE_BY_ONE = """
import contextlib, io, json, traceback
shown = []
for code in {codes!r}:
    with contextlib.redirect_stderr(io.StringIO()) as stream:
        try:
            exec(code)
        except Exception:
            traceback.print_exc()
    shown.append(stream.getvalue())
print(json.dumps(shown))
"""


def without(modules, code: str, folder) -> subprocess.CompletedProcess:
    program = WITHOUT.format(modules=tuple(modules)) + code
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("modules", NEEDED, ids=",".join)
def test_error_names_the_extra(modules, tmp_path):
    (tmp_path / "x.csv").write_text("a,y\n" + "1,p\n2,q\n" * 8)
    needed = NEEDED[modules]
    found = without(modules, ONE_BY_ONE.format(codes=list(needed)), tmp_path)
    assert found.returncode == 0, found.stderr
    for (code, extra), shown in zip(needed.items(), json.loads(found.stdout.splitlines()[-1])):
        assert f"pip install 'kproba[{extra}]'" in shown, (code, shown)


def test_what_needs_no_extra_works_without_any(tmp_path):
    code = """
model = kproba.LSPC().fit(X, y)
assert "LSPC" in model._repr_html_()
kproba.save(model, "m.kproba")
assert (kproba.load("m.kproba").predict(X) == model.predict(X)).all()
kproba.write_report(model, X, y, "page.html")
assert cli.main(["demo", "--quiet"]) == 0
cli.main(["--help"])
"""
    found = without(EXTRAS, code, tmp_path)
    assert found.returncode == 0, found.stderr
    assert "kproba compare people.csv" in found.stdout
    assert {"page.html", "kproba-demo.html"} <= {path.name for path in tmp_path.iterdir()}
