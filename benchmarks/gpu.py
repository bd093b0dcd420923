"""One GPU: a million rows on it, ten million from the host, all of mnist as centres, tables -> results/gpu.json.

Needs PyTorch with CUDA. Each part is measured beside the bare products that its maths needs, in the same run, or beside
the CPU of the machine; rivals need xRFM and TorchKM.
``--lightgbm`` adds LightGBM's figures on mnist, on any machine, to a file that is there already.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import partial

import numpy as np
from sklearn.metrics import log_loss

from kproba import LSPC, KernelLogisticRegression, SurfaceKernelClassifier
from kproba.arrays import Device, to_numpy
from kproba.basis.basis import Basis, MomentsOf
from kproba.basis.device_basis import DeviceBasis
from kproba.data.all_rows import AllRows
from kproba.data.encoding import Part
from kproba.data.sources import TensorSource
from kproba.kernels import Gaussian
from kproba.kernels.radial import manhattan_on_device
from kproba.metrics import calibration_error
from kproba.solvers.device_iterative_dual import DeviceIterativeDual

from . import results
from .rivals import askotch

NOTE = (
    "million: rows on the GPU. 'floor' is squared distances by one product, exp and a float32 product a block, with "
    "the sum in float64; 'sums' is H, h and n of all rows; 'given' a whole fit with width and ridge given, 'default' "
    "one with everything chosen. laplacian: distances of 26,000 rows of 70 columns and 10,000 centres. ten_million: "
    "float32 rows in host memory; 'floor' is features and the whole product, "
    "'precision' a fit of some rows in float32 and in float64, with the width, ridge and centres of the model of all "
    "rows. askotch: another solver of the same system, "
    "without leverages, implemented by us and with one setting only. "
    "all_rows, two_million: ten columns, every row a centre beside 10,000 centres, width and ridge chosen. "
    "mnist: pixels divided by 255, every row a centre, the ridge chosen on 20,000 of them. precision_of_sums: "
    "131,072 normal rows of 28 columns, 2,000 centres: smallest eigenvalue and mean error of the diagonal over n. "
    "tables: fits with defaults on the GPU and on the CPU of the same machine. rivals: 10,000 rows of electricity, the "
    "others test. Medians of repeats after one call that does not count, except where a fit takes many seconds."
)
BLOCK = 131_072
PARTS = (
    "million",
    "laplacian",
    "mnist",
    "all_rows",
    "askotch",
    "two_million",
    "ten_million",
    "precision_of_sums",
    "tables",
    "rivals",
)


def posterior(X: np.ndarray) -> np.ndarray:
    """Probability of the second class: a smooth function of a few columns."""
    return 1.0 / (1.0 + np.exp(-2.0 * X[:, 0] - 3.0 * np.sin(2.0 * X[:, 1]) - 2.0 * X[:, 2] * X[:, 3]))


def normal_rows(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows in float32 whose labels follow the posterior."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d), dtype=np.float32)
    return X, (random.random(n) < posterior(X)).astype(np.int64)


def bare(torch, X, Z, width: float) -> None:
    """Features and float32 products of all rows, block by block."""
    total = torch.zeros((len(Z), len(Z)), dtype=torch.float64, device=X.device)
    zz = (Z * Z).sum(dim=1)
    for start in range(0, len(X), BLOCK):
        part = X[start : start + BLOCK]
        phi = torch.addmm(zz[None], part, Z.T, alpha=-2.0).add_((part * part).sum(dim=1)[:, None])
        phi.mul_(-0.5 / width**2).exp_()
        total += phi.T @ phi


def synchronised(torch, f):
    """A function that returns when the GPU has finished."""

    def call():
        found = f()
        torch.cuda.synchronize()
        return found

    return call


def million(torch, rows: int, repeats: int) -> dict:
    """1M × 28 rows on the GPU, 1,000 centres."""
    X, y = normal_rows(rows, 28)
    there, width = torch.asarray(X, device="cuda"), 5.0
    basis = DeviceBasis.of(Basis(Gaussian(width), X[:1000]), Device.of(there))
    everything = AllRows(TensorSource(there, y, None), rows, rows, np.array([0, 1]), np.ones(2))
    given = {"kernel": "gaussian", "width": width, "ridge": 1e-6, "scaling": None, "centers": 1000, "random_state": 0}
    runs = {
        "floor": lambda: bare(torch, there, there[:1000], width),
        "sums": lambda: everything.sum(MomentsOf(basis, everything.encoding(None))),
        "given": lambda: LSPC(**given).fit(there, y),
        "given, link='clip'": lambda: LSPC(**given, link="clip").fit(there, y),
        "default": lambda: LSPC(centers=1000, random_state=0).fit(there, y),
    }
    seconds = results.interleaved({name: synchronised(torch, f) for name, f in runs.items()}, repeats)
    X_test, y_test = normal_rows(50_000, 28, seed=1)
    proba = LSPC(centers=1000, random_state=0).fit(there, y).predict_proba(torch.asarray(X_test, device="cuda"))
    losses = {"default": log_loss(y_test, proba), "truth": log_loss(y_test, posterior(X_test))}
    return {"rows": rows, "seconds": seconds, "ratio": seconds["sums"] / seconds["floor"], "log_loss": losses}


def laplacian(torch, repeats: int) -> dict:
    """Distances of the Laplacian kernel by one kernel of ours and by PyTorch, column after column."""
    X, Z = (torch.randn(n, 70, device="cuda") for n in (26_000, 10_000))
    device = Device.of(X)
    ours, plain = (synchronised(torch, partial(f, device, X, Z)) for f in (manhattan_on_device, by_columns))
    seconds = results.interleaved({"one kernel": ours, "column after column": plain}, repeats)
    return {"seconds": seconds, "largest_difference": float((ours() - plain()).abs().max())}


def by_columns(device, X, Z):
    """What is done where there is no Triton."""
    return manhattan_on_device(_WithoutTriton(device.library, device.name), X, Z)


class _WithoutTriton(Device):
    has_triton = False


def ten_million(torch, rows: int, sample: int, centers: int) -> dict:
    """10M × 70 rows in host memory, 10,000 centres."""
    X, y = normal_rows(rows, 70)
    X_test, y_test = normal_rows(50_000, 70, seed=1)
    warm = {"kernel": "gaussian", "device": "cuda", "random_state": 0}
    LSPC(**warm, centers=500).fit(X[:60_000], y[:60_000])
    model, seconds = results.timed(lambda: LSPC(**warm, centers=centers).fit(X, y))
    found = {"rows": rows, "centers": centers, "seconds": seconds, "width": model.width_, "ridge": model.ridge_}
    found["log_loss"] = {"float32": log_loss(y_test, model.predict_proba(X_test).astype(np.float64))}
    found["log_loss"]["truth"] = log_loss(y_test, posterior(X_test))
    few, start = torch.asarray(X[: 4 * BLOCK], device="cuda"), time.perf_counter()
    bare(torch, few, few[:centers], 8.0)
    torch.cuda.synchronize()
    found["floor_seconds"] = (time.perf_counter() - start) * rows / len(few)
    return found | {"precision": precision(X[:sample], y[:sample], X_test, y_test, model, warm)}


def precision(X, y, X_test, y_test, model, options: dict) -> dict:
    """The same fit in float32 and in float64: scaling, width, ridge and centres as the model of all rows has them."""
    given = options | {"width": model.width_, "ridge": model.ridge_, "centers": model.basis_.centers, "scaling": None}
    X, X_test = model.scaling_(X), model.scaling_(X_test)
    found, proba = {"rows": len(X)}, {}
    for dtype in (np.float32, np.float64):
        name = np.dtype(dtype).name
        fitted = LSPC(**given).fit(X.astype(dtype), y)
        proba[name] = fitted.predict_proba(X_test.astype(dtype)).astype(np.float64)
        found[name] = log_loss(y_test, proba[name])
    return found | {"largest_difference": float(np.abs(proba["float32"] - proba["float64"]).max())}


def all_rows(rows: int) -> dict:
    """Every row a centre, beside 10,000 centres: width and ridge are chosen by both."""
    X, y = normal_rows(rows, 10)
    X_test, y_test = normal_rows(20_000, 10, seed=1)
    options = {"kernel": "gaussian", "scaling": None, "device": "cuda", "random_state": 0}
    LSPC(**options, centers=500).fit(X[:60_000], y[:60_000])
    found = {"rows": rows, "log_loss": {"truth": log_loss(y_test, posterior(X_test))}, "seconds": {}}
    for name, centers in (("10,000 centres", 10_000), ("all rows", "all")):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            model, found["seconds"][name] = results.timed(lambda c=centers: LSPC(**options, centers=c).fit(X, y))
        found["log_loss"][name] = log_loss(y_test, model.predict_proba(X_test))
        found[name] = {"width": model.width_, "ridge": model.ridge_, "warnings": [str(each.message) for each in seen]}
        if hasattr(model, "loo_proba_"):
            found[name]["loo_log_loss"] = log_loss(y, model.loo_proba_)
    return found


def askotch_beside(torch, rows: int, seconds: float = 40.0) -> dict:
    """Relative residuals of conjugate gradients and of ASkotch for the targets alone, against seconds."""
    X, y = normal_rows(rows, 10)
    kernel, ridge = Gaussian(2.5), 4e-7 * rows
    there, Y = torch.asarray(X, device="cuda"), torch.asarray(np.eye(2)[y], device="cuda")
    device, found = Device.of(there), {"rows": rows, "width": 2.5, "total_ridge": ridge}

    def left(alpha) -> float:
        image = kernel.times_on_device(device, there, there, alpha.float()) + ridge * alpha
        return float((Y - image).norm() / Y.norm())

    def block(i, V):
        if V is None:
            return kernel.gram_on_device(device, there[i].double())
        return kernel.times_on_device(device, there[i], there, V.float())

    dual = DeviceIterativeDual(X, kernel, np.ones(rows), np.eye(2)[y], device=device)
    solution, ours = results.timed(lambda: next(iter(dual.path([ridge]))))
    coef = torch.asarray(solution.coef(), device="cuda")
    found["conjugate gradients, with leverages"] = {"seconds": ours, "residual": left(coef)}
    start, looks = time.perf_counter(), []
    for number, alpha in enumerate(askotch.steps(torch, block, rows, Y, ridge, rows // 100), 1):
        if number % 100 == 0:  # the rows of all blocks are those of one product
            looks.append({"products": number // 100, "seconds": time.perf_counter() - start, "residual": left(alpha)})
            if looks[-1]["seconds"] > seconds:
                break
    return found | {"askotch": looks}


def load_mnist(data_dir):
    """X_train, y_train, X_test, y_test with pixels between 0 and 1."""
    from kproba.data.real import load

    table = load("mnist", data_dir)
    X, y = np.asarray(table.X, dtype=np.float32) / 255, np.asarray(table.y)
    train = np.arange(len(y)) < 60_000 if table.is_train is None else np.asarray(table.is_train, dtype=bool)
    return X[train], y[train], X[~train], y[~train]


def mnist(torch, data_dir) -> dict:
    """60,000 rows, all of them centres."""
    X, y, X_test, y_test = load_mnist(data_dir)
    options = {"kernel": "gaussian", "scaling": None, "centers": "all", "device": "cuda", "random_state": 0}
    LSPC(**options).fit(X[:3000], y[:3000])
    model, seconds = results.timed(lambda: LSPC(**options).fit(X, y))
    proba, predicting = results.timed(lambda: model.predict_proba(X_test).astype(np.float64))
    found = {"seconds": seconds, "predict_seconds": predicting, "width": model.width_, "ridge": model.ridge_}
    tried = model.search_results_["stage"] == "ridge"
    found |= {"ridges_tried_on_all_rows": int((tried & (model.search_results_["rows"] == len(X))).sum())}
    found |= {"error": float((proba.argmax(axis=1) != y_test).mean()), "log_loss": log_loss(y_test, proba)}
    loo = model.loo_proba_
    found |= {"loo_error": float((loo.argmax(axis=1) != y).mean()), "loo_log_loss": log_loss(y, loo)}
    return found | {"peak_gib": torch.cuda.max_memory_allocated() / 2**30}


def precision_of_sums(torch) -> dict:
    """What sums in float32 and in integers do to the smallest eigenvalue of H, for a narrow and a wide kernel."""
    X = torch.randn(131_072, 28, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    codes, found = np.zeros(len(X), dtype=int), {}
    for width in (5.0, 12.0):
        basis = DeviceBasis.of(Basis(Gaussian(width), X[:2000].cpu().numpy()), Device.of(X))
        sums = {name: basis.running_moments(1) for name in ("float64", "float32", "integers")}
        for start in range(0, len(X), 16_384):
            part, own = X[start : start + 16_384], codes[start : start + 16_384]
            sums["float64"].add(basis(part.double()), own, np.ones(len(own)))
            sums["float32"].add(basis(part), own, np.ones(len(own)))
            basis.add_part(sums["integers"], Part(part, own, np.ones(len(own)), 1))
        H = {name: torch.asarray(each.to_numpy().symmetric(), device="cuda") / len(X) for name, each in sums.items()}
        found[str(width)] = {
            name: {
                "smallest_eigenvalue": float(torch.linalg.eigvalsh(each)[0]),
                "diagonal_error": float((each - H["float64"]).diagonal().mean()),
                "largest_error": float((each - H["float64"]).abs().max()),
            }
            for name, each in H.items()
        }
    return found


def shuffled(name: str, data_dir) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a table in random order."""
    from kproba.data.real import load

    table = load(name, data_dir)
    order = np.random.default_rng(0).permutation(len(table.y))
    return np.asarray(table.X, dtype=np.float64)[order], np.asarray(table.y)[order]


def tables(data_dir, only=None, before: dict | None = None) -> dict:
    """Fits with defaults on the GPU and on the CPU of the same machine; ``only`` these, the others as ``before``."""
    letter, covertype = shuffled("letter", data_dir), shuffled("covertype_93k", data_dir)
    fits = {
        "LSPC, letter, 16,000 rows": (LSPC, letter, 16_000),
        "LSPC, letter, 1,000 rows": (LSPC, letter, 1000),
        "surface, covertype_93k, 10,000 rows": (SurfaceKernelClassifier, covertype, 10_000),
        "surface, covertype_93k, 80,000 rows": (SurfaceKernelClassifier, covertype, 80_000),
        "KLR, letter, 3,000 rows": (KernelLogisticRegression, letter, 3000),
        "KLR, letter, 10,000 rows": (KernelLogisticRegression, letter, 10_000),
    }
    for kind in (LSPC, SurfaceKernelClassifier):
        kind(device="cuda", random_state=0).fit(letter[0][:500], letter[1][:500])
    found = dict(before or {})
    for name in only or fits:
        found[name] = on_both(*fits[name])
    return found


def on_both(kind, table, n: int) -> dict:
    """Seconds and test log-loss of a fit on n rows."""
    (X, y), found = table, {}
    for device in ("cuda", "cpu"):
        model, seconds = results.timed(lambda device=device: kind(device=device, random_state=0).fit(X[:n], y[:n]))
        proba = model.set_params(device="cuda").predict_proba(X[n:])
        found[device] = {"seconds": seconds, "log_loss": log_loss(y[n:], proba)}
        print(kind.__name__, n, device, found[device], file=sys.stderr, flush=True)
    return found


def rivals(data_dir) -> dict:
    """Two libraries of kernel machines on the GPU and histogram boosting on the CPU, as far as they are installed."""
    X, y = shuffled("electricity", data_dir)
    y, n, found = np.unique(y, return_inverse=True)[1], 10_000, {}
    scale = X[:n].std(axis=0) + 1e-12
    Z = ((X - X[:n].mean(axis=0)) / scale).astype(np.float32)
    makers = {"LSPC": ours, "xRFM": xrfm, "TorchKM": torchkm, "histogram boosting": boosting}
    for name, fit in makers.items():
        try:
            predict, seconds = results.timed(lambda fit=fit: fit(Z[:n], y[:n]))
            proba = np.asarray(predict(Z[n:]), dtype=np.float64)
            loss, error_of_calibration = log_loss(y[n:], proba), calibration_error(y[n:], proba)
            found[name] = {"seconds": seconds, "log_loss": loss, "calibration_error": error_of_calibration}
        except Exception as error:  # a rival that is not installed or fails is reported as such
            found[name] = {"failed": f"{type(error).__name__}: {error}"[:200]}
        print(name, found[name], file=sys.stderr, flush=True)
    return found


def ours(X, y):
    return LSPC(device="cuda", random_state=0).fit(X, y).predict_proba


def xrfm(X, y):
    import torch
    from xrfm import xRFM

    model, cut = xRFM(device=torch.device("cuda"), tuning_metric="brier", verbose=False), len(X) * 4 // 5
    parts = (torch.asarray(each, device="cuda") for each in (X[:cut], y[:cut, None], X[cut:], y[cut:, None]))
    model.fit(*parts)
    return lambda new: to_numpy(model.predict_proba(torch.asarray(new, device="cuda")))


def torchkm(X, y):
    from torchkm import TorchKMLogit

    model = TorchKMLogit(device="cuda", probability=True).fit(X, y)
    return model.predict_proba


def boosting(X, y):
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0).fit(X, y).predict_proba


def lightgbm_on_mnist(data_dir) -> dict:
    """LightGBM with its defaults, on the CPU."""
    from lightgbm import LGBMClassifier

    X, y, X_test, y_test = load_mnist(data_dir)
    model, seconds = results.timed(lambda: LGBMClassifier(verbose=-1, random_state=0).fit(X, y))
    proba = model.predict_proba(X_test)
    error = float((proba.argmax(axis=1) != y_test).mean())
    return {"seconds": seconds, "error": error, "log_loss": log_loss(y_test, proba), "stamp": results.stamp()}


def measured(args) -> dict:
    """Everything that needs the GPU."""
    import torch

    before = results.read("gpu", args.out) or {}
    payload = {"note": NOTE, "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    parts = {
        "million": lambda: million(torch, args.rows // 10, args.repeats),
        "laplacian": lambda: laplacian(torch, args.repeats),
        "mnist": lambda: mnist(torch, args.data_dir),
        "all_rows": lambda: all_rows(args.rows // 20),
        "askotch": lambda: askotch_beside(torch, args.rows // 20),
        "two_million": lambda: all_rows(args.rows // 5),
        "ten_million": lambda: ten_million(torch, args.rows, args.rows // 20, args.centers),
        "precision_of_sums": lambda: precision_of_sums(torch),
        "tables": lambda: tables(args.data_dir, args.tables, before.get("tables")),
        "rivals": lambda: rivals(args.data_dir),
    }
    payload = before | payload if args.parts else payload
    for name in args.parts or parts:
        payload[name] = parts[name]()
        payload["commits"] = payload.get("commits", {}) | {name: results.commit()}  # parts may be run one at a time
        print(name, payload[name], file=sys.stderr, flush=True)
        results.write("gpu", payload, args.out)  # a part that fails loses no others
    return payload


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--centers", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--parts", nargs="*", choices=PARTS)
    parser.add_argument("--tables", nargs="*", help="only these fits of the part 'tables'")
    parser.add_argument("--lightgbm", action="store_true", help="only LightGBM on mnist, added to the file")
    args = parser.parse_args(argv)
    if args.lightgbm:
        before = results.read("gpu", args.out) or {}
        payload = before | {"lightgbm_on_mnist": lightgbm_on_mnist(args.data_dir)}
        results.write("gpu", payload, args.out, stamped=before.get("stamp"))
        return
    results.write("gpu", measured(args), args.out)


if __name__ == "__main__":
    main()
