"""Generate the tables in the README and the docs from the results; with --check, only compare.

A table is between ``<!-- table: NAME -->`` and ``<!-- /table -->``.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
from experiments import reproduction

from . import results, rivals
from .tables_quality import table as means_table

EXPERIMENTS = results.ROOT / "experiments" / "results"
PAGES = (
    "README.md",
    "docs/index.md",
    "docs/benchmarks.md",
    "docs/choose.md",
    "docs/decisions/0021-copies.md",
    "docs/learnt_kernel.md",
    "docs/klr.md",
    "docs/pictures.md",
    "docs/sequences.md",
    "docs/ivm.md",
    "docs/surface.md",
    "docs/scale.md",
    "docs/gpu.md",
    "docs/tags.md",
    "docs/deployment.md",
    "docs/reject.md",
    "docs/probabilities.md",
    "docs/explain.md",
    "docs/mixed.md",
    "docs/model_files.md",
    "docs/command.md",
    "docs/lspc.md",
    "docs/reproduction.md",
)
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- /table -->)", re.DOTALL)


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; all columns but the first are numbers, aligned to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def footer(payload: dict) -> str:
    """One line that says where the numbers come from."""
    s = payload["stamp"]
    names = ("numpy", "scipy", "scikit-learn", "kproba")  # experiments store these without a dictionary
    libraries = s.get("libraries") or {name: s[name] for name in names}
    versions = ", ".join(f"{name} {version}" for name, version in libraries.items() if name != "pandas")
    memory = f", {s['memory_gib']} GiB" if "memory_gib" in s else ""
    where = f"{s['cpu']}, {s['cores']} cores{memory}; Python {s['python']}, {versions}"
    others = sorted(other_commits(payload) - {s["commit"]})
    earlier = f" (some cells: {', '.join(others)})" if others else ""
    return f"*{s['date']}, commit {s['commit']}{earlier}; {where}.*"


def other_commits(found: Any) -> set[str]:
    """The commits of cells and parts of a result, which need not have been measured together."""
    if not isinstance(found, dict):
        return set()
    own = {found["commit"]} if isinstance(found.get("commit"), str) else set()
    parts = re.findall(r"\b[0-9a-f]{12}\b", " ".join(map(str, found.get("commits", {}).values())))
    return own.union(parts, *map(other_commits, found.values()))


def quality(payload: dict) -> str:
    """One row per dataset with the log-loss of every method, the best of the ranked ones in bold."""
    keys = rivals.EVERYONE
    by_rival = {key: means_table(payload["cells"], payload["sets"], [key], "log_loss") for key in keys}
    rows = []
    for name, about in payload["sets"].items():
        losses = {key: found[name][key] for key, found in by_rival.items() if name in found}
        best = min((losses[key] for key in rivals.RANKED if key in losses), default=None)
        texts = [_loss(losses.get(key), best if key in rivals.RANKED else None) for key in keys]
        rows.append([f"{name} ({about['train']})", *texts])
    header = ["log-loss (training rows)", *(payload["rivals"].get(key, key) for key in keys)]
    return markdown(header, rows + quality_summary(payload["summary"], keys))


def quality_summary(summary: dict, keys) -> list[list[str]]:
    """The last rows of the table: ranks, wins, times."""
    if not summary:
        return []
    ranks, seconds = summary["mean_rank"], summary["median_fit_seconds"]
    wins = {"kproba": f"{summary['below_svc']} of {summary['sets']}"}
    return [
        ["**mean rank**", *(f"{ranks[key]:.2f}" if key in ranks else "" for key in keys)],
        ["**datasets with lower log-loss than the tuned SVC**", *(wins.get(key, "") for key in keys)],
        ["**median fit time, s**", *(_seconds(seconds[key]) if key in seconds else "" for key in keys)],
    ]


def headline(payload: dict) -> str:
    """The mean ranks in one sentence, the best method first."""
    summary, names = payload["summary"], payload["rivals"]
    ranks = sorted(summary["mean_rank"].items(), key=lambda rank: rank[1])
    listed = ", ".join(f"{names.get(key, key)} {rank:.1f}" for key, rank in ranks)
    about = f"Test log-loss on {summary['sets']} real datasets with at most 2,000 training rows"
    return f"{about}; an arrow stands for a value beyond the edge. Mean ranks: {listed}."


def learnt_gains(payload: dict) -> str:
    """LSPC() beside CatBoost: on the datasets that chose the constants of the learnt kernel, and on the others."""
    names, keys = list(payload["sets"]), ("kproba", "catboost")
    losses, errors = (
        means_table(payload["cells"], names, keys, measure) for measure in ("log_loss", "calibration_error")
    )
    rows = []
    for title, some in (("chose constants", names[::2]), ("did not", names[1::2]), ("all", names)):
        ours, theirs = (np.array([losses[name][key] for name in some]) for key in keys)
        worst = max(some, key=lambda name: losses[name]["kproba"] / losses[name]["catboost"])
        means = [np.mean([errors[name][key] for name in some]) for key in keys]
        rows.append(
            [
                f"{len(some)} datasets that {title}" if title != "all" else f"all {len(some)}",
                f"{ours.mean():.4f}",
                f"{theirs.mean():.4f}",
                f"{ours.mean() / theirs.mean():.3f}",
                f"{(ours < theirs).sum()} of {len(some)}",
                f"{losses[worst]['kproba'] / losses[worst]['catboost']:.2f} ({worst})",
                *(f"{mean:.4f}" for mean in means),
            ]
        )
    header = ["", "LSPC()", "CatBoost", "ratio", "LSPC() lower", "largest ratio", "calibration error", "CatBoost's"]
    return markdown(header, rows)


def letter(payload: dict) -> str:
    names = {
        "kproba": "kproba LSPC()",
        "surface": "kproba SurfaceKernelClassifier()",
        "svc": "calibrated SVC(C=10, gamma=0.1)",
        "svc_all_cores": "the same, n_jobs=-1",
        "svc_grid": "after a 20-point grid search",
        "svc_grid_all_cores": "the same, n_jobs=-1",
    }
    rows = []
    for key, cell in payload["cells"].items():
        numbers = [f"{cell['log_loss']:.3f}", f"{cell['error']:.4f}", f"{cell['calibration_error']:.4f}"]
        share = f"{payload['time_ratios'][key]:.2f}"
        rows.append([names.get(key, key), *numbers, _seconds(cell["fit_seconds"]), share])
    return markdown(["", "log-loss", "error", "calibration error", "fit, s", "LSPC's time / this time"], rows)


def fit_floor(payload: dict) -> str:
    rows = []
    for dtype, cell in payload["cells"].items():
        for name, seconds in cell["seconds"].items():
            ratio = cell["ratios"].get(name)
            rows.append([f"{dtype}, {name}", f"{seconds:.3f}", "" if ratio is None else f"{ratio:.2f}"])
    return markdown(["fit with given width and ridge", "seconds", "time / floor"], rows)


def explain(payload: dict) -> str:
    """Seconds of explanations and of partial dependence, beside what they are compared with."""
    few, many, dependence = payload["few_rows"], payload["many_rows"], payload["dependence"]
    seconds = few["seconds"]
    rows = [
        [f"`explain`, 3 rows, {few['centers']} centres", f"{seconds['explain']:.2g}", ""],
        ['the same with 100 background rows, `absent="joint"`', f"{seconds['explain, joint']:.2g}", "0"],
        [
            "`shap.KernelExplainer` with these 100 rows",
            f"{seconds['shap']:.0f}",
            f"{few['error']:.0%} of the largest value",
        ],
    ]
    rows += [
        [f"`explain`, 100 rows, 2,000 centres, {name}", f"{cell['seconds']:.2g}", f"{cell['sums_differ_by']:.0e}"]
        for name, cell in many.items()
    ]
    for name, cell in dependence.items():
        both = " ".join(f"{value:.2g}" for value in cell["seconds"].values()).split()
        rows.append(
            [f"`partial_dependence`, 500 rows, 100 values, 2,000 centres, {name}", both[0], f"{cell['differ_by']:.0e}"]
        )
        rows.append(["the same by scikit-learn", both[1], ""])
    return markdown(["30 columns", "seconds", "largest error"], rows)


def predict_floor(payload: dict) -> str:
    rows = []
    for name, cell in payload["cells"].items():
        speeds = cell["rows_per_second"]
        best = max(value for key, value in speeds.items() if key != "model")
        rows.append([name, f"{speeds['model']:,.0f}", f"{best:,.0f}", f"{cell['ratio']:.2f}"])
    return markdown(
        ["predict_proba", "rows per second", "bare computation, rows per second", "time / bare computation"], rows
    )


def oversubscription(payload: dict) -> str:
    """Seconds by the number of threads of an estimator, within joblib and alone."""
    folds, rows, cells = payload["folds"], f"{payload['rows']:,}", payload["cells"]
    names = {
        "loky": f"cross-validation with {folds} folds, worker processes",
        "threading": "the same, worker threads",
        "fit": "one fit that chooses everything",
        "large fit": f"one fit of {rows} rows, parameters given",
    }
    columns = list(next(iter(cells.values())))
    texts = [[text, *(f"{cells[key][column]:.2f}" for column in columns)] for key, text in names.items()]
    return markdown(["seconds", *(f"`{column}`" for column in columns)], texts)


def memory(payload: dict) -> str:
    rows = []
    for key, cell in payload["cells"].items():
        mode, b, n = key.split("/")
        units = [f"{cell['in_b_squared_8']:.2f}", f"{cell['over_allowance']:.2f}"]
        rows.append([mode, f"{int(b):,}", f"{int(n):,}", f"{cell['extra_bytes'] / 2**20:,.0f}", *units])
    return markdown(["fit", "centres b", "rows", "peak, MiB", "peak / 8b² bytes", "peak / allowance"], rows)


def random_problems(payload: dict) -> str:
    """One row per estimator, with the outcomes of its problems."""
    rows = [[name, *(f"{kinds[kind]:,}" for kind in kinds)] for name, kinds in payload["outcomes"].items()]
    total = [sum(kinds[kind] for kinds in payload["outcomes"].values()) for kind in ("fitted", "refused", "failed")]
    rows.append([f"**all {payload['done']:,}**", *(f"**{number:,}**" for number in total)])
    return markdown(["", "fitted", "refused, naming the argument", "failed"], rows)


def fuzzing(payload: dict) -> str:
    """One row: what became of the inputs."""
    kinds = ("inputs", "refused", "predicts", "unfitted", "too wide", "violations")
    header = [
        "inputs",
        "refused",
        "load and predict",
        "never fitted",
        "too wide to try",
        "break a guarantee",
        "slowest, s",
    ]
    return markdown(header, [[*(f"{payload[kind]:,}" for kind in kinds), f"{payload['slowest_s']:.2f}"]])


def onnx_graphs(payload: dict) -> str:
    rows = []
    for name, cell in payload["cells"].items():
        errors = [cell["float64"]["largest"], cell["float32"]["largest"], cell["float32"]["own"]]
        seconds = [cell["seconds"][n][who] for n in ("1000", "1") for who in ("onnxruntime", "predict_proba")]
        times = [f"{1000 * each:.3g}" for each in seconds]
        model = f"{cell['kernel']}, {cell['centers']:,} × {cell['columns']}"
        rows.append([name, model, *(f"{each:.0e}" for each in errors), f"{cell['bytes'] / 2**20:.2f}", *times])
    header = ["", "model", "float64", "float32", "predict_proba of float32", "MiB"]
    return markdown([*header, "1,000 rows, ms", "in Python, ms", "one row, ms", "in Python, ms"], rows)


def centers(payload: dict) -> str:
    rows = []
    for key, cell in payload["cells"].items():
        name, b = key.rsplit("/", 1)
        shown = f"auto ({cell['b']:,})" if b == "auto" else f"{cell['b']:,}"
        rows.append([name, shown, f"{cell['log_loss']:.4f}", f"{cell['error']:.4f}", _seconds(cell["fit_seconds"])])
    return markdown(["dataset", "centres", "log-loss", "error", "fit, s"], rows)


def all_centers(payload: dict) -> str:
    names = {
        "all": '**LSPC(centers="all")**',
        "default": "LSPC()",
        "lightgbm": "LightGBM",
        "all_given": 'LSPC(centers="all"), kernel, width and ridge given',
        "eigenpro": "EigenPro 2.0, {passes} passes",
        "falkon_4000": "Falkon, {centers:,} centres",
        "falkon_8000": "Falkon, {centers:,} centres",
        "nystroem_sgd": "Nystroem({centers:,}) + SGDClassifier",
    }
    rows = []
    for key, cell in payload["cells"].items():
        numbers = [f"{cell['log_loss']:.3f}", f"{cell['error']:.4f}", f"{cell['calibration_error']:.4f}"]
        times = [_seconds(cell["fit_seconds"]), _seconds(cell["cpu_seconds"])]
        first = _seconds(cell["first_run_cpu_seconds"]) if "first_run_cpu_seconds" in cell else "—"
        rows.append([names[key].format(**cell), *numbers, *times, first, f"{cell['peak_bytes'] / 2**30:.2f}"])
    header = ["log-loss", "error", "calibration error", "fit, s", "CPU, s", "CPU of the first run, s", "peak, GiB"]
    return markdown(["", *header], rows)


def leverage_error(payload: dict) -> str:
    """Errors of 1 − h and log-losses, one row per method of computing the leverages."""
    about, rows = payload["leverage"], []
    for name, cell in about["cells"].items():
        errors = [f"{100 * cell[key]:.2g} %" for key in ("rms", "mean", "worst")]
        rows.append([name, *errors, f"{cell['loo_log_loss']:.4f}", f"{cell['test_log_loss']:.4f}"])
    header = [f"{about['rows']:,} rows, mean leverage {about['mean_leverage']:.2f}", "error of 1 − h, rms", "mean"]
    return markdown([*header, "worst", "leave-one-out log-loss", "test log-loss"], rows)


def klr_letter(payload: dict) -> str:
    names = {
        "kproba": 'KernelLogisticRegression(solver="newton")',
        "kproba lbfgs": 'the same, solver="lbfgs"',
        "nystroem": "Nystroem + LogisticRegression",
        "plain": "plain L-BFGS on the coefficients",
    }
    rows = [
        [
            label,
            f"{payload['objectives'][key]:.6f}",
            _seconds(payload["seconds"][key]),
            f"{payload['time_ratios'][key]:.2f}",
        ]
        for key, label in names.items()
    ]
    return markdown(["same centres, width and penalty", "objective", "fit, s", "Newton's time / this time"], rows)


def likelihood_seconds(payload: dict) -> str:
    rows = []
    for key, cell in payload["cells"].items():
        name, data, n = key.split(" ")
        for label in ("LSPC", name):
            own = cell[label]
            ratio = f"{own['seconds'] / cell['LSPC']['seconds']:.1f}"
            rows.append([f"{data}, {int(n):,} rows", label, f"{own['log_loss']:.4f}", _seconds(own["seconds"]), ratio])
    return markdown(["default settings", "estimator", "log-loss", "fit, s", "times LSPC"], rows)


def klr_loo(payload: dict) -> str:
    rows = []
    for key, cell in payload["cells"].items():
        name, multiple = key.split("/")
        worst = max(map(abs, cell["approximate"]["differences"]))
        percents = [worst, cell["closed"]["difference_at_best"], cell["closed"]["chosen_excess"]]
        seconds = [f"{cell['seconds'][key]:.1f}" for key in ("approximate", "refits")]
        rows.append(
            [f"{name}, {multiple} × median", str(cell["classes"]), *(f"{100 * p:.2f} %" for p in percents), *seconds]
        )
    header = [
        "200 rows, 7 ridges",
        "classes",
        "error, worst λ",
        "error of the closed form, best λ",
        "excess loss of the λ it chooses",
        "fits and leave-one-out, s",
        "refits, s",
    ]
    return markdown(header, rows)


def loo_trust(payload: dict) -> str:
    rows = []
    for name, found in payload["summary"].items():
        differences = [f"{found['largest']:.2f}", f"{found['mean']:.4f}"]
        losses = [f"{found[key]:.3f}" for key in ("loo", "oof", "new")]
        ratios = [found[f"{key}_over_new"] for key in ("loo", "oof")]
        spread = [f"{each['mean']:.2f} ({each['least']:.2f}–{each['most']:.2f})" for each in ratios]
        rows.append([f"`{name}`", *differences, *losses, *spread])
    header = [
        "",
        "largest difference from refits",
        "mean difference",
        "log-loss of `loo_proba_`",
        "of `oof_proba_`",
        "of new rows",
        "`loo_proba_` / new rows, mean (least–most)",
        "`oof_proba_` / new rows",
    ]
    return markdown(header, rows)


def more_rows(payload: dict) -> str:
    """Log-loss and seconds of each method, one row for each set and number of rows."""
    names, rows = payload["rivals"], []
    for key in _by_rows(payload["cells"]):
        cells = [payload["cells"].get(f"{key}/{rival}") for rival in names]
        rows.append([key.replace("/", ", "), *_losses_and_seconds(cells)])
    if "million" in payload:
        found = payload["million"]
        cells = [found["cells"].get(rival) for rival in names]
        rows.append([f"{found['rows']:,} × 28 (truth {found['truth']:.4f})", *_losses_and_seconds(cells, 4)])
    return markdown(["", *names.values(), *(f"{name}, s" for name in names.values())], rows)


def copies(payload: dict) -> str:
    """What leave-one-out removes of equal rows, one row for each generated table."""
    rows = []
    for name, found in payload["cases"].items():
        odds = "∞" if found["odds"] is None else f"{found['odds']:.1f}"
        cells = [cell for key, cell in found.items() if key not in ("odds", "truth")]
        losses = [f"{cell['new']:.3f} ({cell['oof']:.3f})" for cell in cells]
        rows.append([name, odds, f"{found['truth']:.3f}", *losses])
    keys = [key for key in next(iter(payload["cases"].values())) if key not in ("odds", "truth")]
    return markdown(["", "odds", "truth", *keys], rows)


def more_splits(payload: dict) -> str:
    """Two methods on many splits, one row for each table."""
    ours, theirs = payload["rivals"].values()
    rows = []
    for name, found in payload["summary"].items():
        losses, ratio = found["log_loss"].values(), f"{found['ratio']:.3f} ± {found['error'] / _second(found):.3f}"
        lower = f"{found['lower']} of {found['splits']}"
        seconds = [_seconds(each) for each in found["seconds"].values()]
        rows.append([name, *(f"{loss:.4f}" for loss in losses), ratio, lower, *seconds, f"{found['time_ratio']:.1f}"])
    header = ["", ours, theirs, "ratio", f"{ours} lower", f"{ours}, s", f"{theirs}, s", "ratio of times"]
    return markdown(header, rows)


def _second(found: dict) -> float:
    return list(found["log_loss"].values())[1]


def _by_rows(cells: dict) -> list[str]:
    """The keys "set/rows" of cells "set/rows/rival": sets as they come first, each by its number of rows."""
    keys = list(dict.fromkeys(key.rsplit("/", 1)[0] for key in cells))
    sets = list(dict.fromkeys(key.split("/")[0] for key in keys))
    return sorted(keys, key=lambda key: (sets.index(key.split("/")[0]), int(key.split("/")[1])))


def _losses_and_seconds(cells: list[dict | None], digits: int = 3) -> list[str]:
    best = min(cell["log_loss"] for cell in cells if cell)
    losses = [f"{cell['log_loss']:.{digits}f}" if cell else "—" for cell in cells]
    bold = [f"**{text}**" if cell and cell["log_loss"] == best else text for cell, text in zip(cells, losses)]
    return [*bold, *(_seconds(cell["fit_seconds"]) if cell else "—" for cell in cells)]


def time_of_rows(payload: dict) -> str:
    """Log-loss and seconds of each method, one row for each number of rows; the last row is an estimate."""
    names, rows = payload["rivals"], []
    for key in _by_rows(payload["cells"]):
        cells = [payload["cells"].get(f"{key}/{rival}") for rival in names]
        cells = [cell and cell | {"fit_seconds": cell["seconds"]} for cell in cells]
        what, n = key.split("/")
        rows.append([f"{int(n):,} rows, {what}", *_losses_and_seconds(cells, 4)])
    if (far := payload["estimate"]) is not None:
        found = f"{far['hours']:,.1f} hours on {far['cores']:,} cores, {far['dollars']:,.0f} dollars"
        rows.append([f"{far['rows']:.0e} rows, estimated: {found}", *["—"] * (2 * len(names))])
    header = [f"truth {payload['truth']:.4f}", *names.values(), *(f"{name}, s" for name in names.values())]
    return markdown(header, rows)


def ivm_svc(payload: dict) -> str:
    names = {
        "kproba": "**ImportVectorMachine()**",
        "kproba_given": "the same with given width and ridge",
        "svc C=1": "SVC(C=1)",
        "svc C=10": "SVC(C=10)",
        "svc_all_cores": "the same, n_jobs=-1",
        "svc_tuned": "SVC after a grid search",
    }
    rows = []
    for name, found in payload["sets"].items():
        for key, cell in found["cells"].items():
            losses = [f"{cell['log_loss']:.3f}", f"{cell['error']:.4f}", f"{cell['points']:,}"]
            times = [_seconds(cell["fit_seconds"]), f"{1000 * cell['predict_seconds']:.1f}"]
            rows.append([f"{name} ({found['train']:,}): {names.get(key, key)}", *losses, *times])
    return markdown(["", "log-loss", "error", "points", "fit, s", "predict, ms"], rows)


def ivm_search(payload: dict) -> str:
    """Worst and mean over the twenty problems, subsets of candidates, and exponents of the cost."""
    rows = [
        ["one-step instead of exact search, 20 problems: objective, worst", f"{100 * payload['worst_excess']:+.2f} %"],
        ["the same, mean", f"{100 * payload['mean_excess']:+.2f} %"],
        ["the same, time ratio (median)", f"{payload['median_time_ratio']:.2f}"],
    ]
    for size, cell in payload["candidates"].items():
        excess = f"{100 * cell['excess']:+.2f} %"
        rows.append([f"{size} candidates per step: objective relative to all candidates", excess])
    for key, label in (("cost_all_candidates", "all candidates"), ("cost_subset", "200 candidates")):
        cost = payload[key]
        exponents = f"n^{cost['exponent_of_n']:.2f}·q^{cost['exponent_of_q']:.2f}"
        rows.append([f"time of a one-step search, {label}", exponents])
    return markdown(["search", "measured"], rows)


def size_2010(payload: dict) -> str:
    """Errors, and training times relative to LSPC, for the smallest, a medium and the largest number of rows."""
    rows = []
    for name, found in payload["datasets"].items():
        for point in found["fig7"][:: max(1, (len(found["fig7"]) - 1) // 2)]:
            methods = point["methods"]
            errors = [reproduction.with_error(row["error_percent"]) for row in methods.values()]
            base = methods["LSPC"]["training_seconds"]["mean"]
            times = [
                f"{methods[key]['training_seconds']['mean'] / base:.1f}"
                for key in ("LSPC(full)", "KLR", "KLR, plain L-BFGS")
            ]
            rows.append([f"{name}, n = {point['n']:,} (draws: {point['draws']})", *errors, *times])
    methods = list(next(iter(payload["datasets"].values()))["fig7"][0]["methods"])
    return markdown(
        [
            "",
            *(f"error %, {m}" for m in methods),
            *(f"time / LSPC, {m}" for m in ("LSPC(full)", "KLR", "plain L-BFGS")),
        ],
        rows,
    )


def ivm_2001(payload: dict) -> str:
    """The numbers that 2001 prints, beside those of its path and of a new search at the λ that the path chose."""
    keys = ("lambda_2001", "import_points", "tuning_error", "test_error")
    rows = []
    for name, title in (("two_classes", "two classes, N = 200"), ("three_classes", "three classes, N = 300")):
        found = payload[name]
        for who, part in (("2001", payload["paper"][name]), ("path", found), ("new search", found["new_search"])):
            rows.append([f"{title}: {who}", *(f"{part[key]:.3g}" if key in part else "—" for key in keys)])
        rows.append([f"{title}: Bayes", "—", "—", "—", f"{found['bayes_error']:.3g}"])
    svm = payload["svm"]
    rows.append(
        ["two classes, N = 200: SVM", "—", f"{svm['support_vectors']} support vectors", "—", f"{svm['test_error']:.3g}"]
    )
    return markdown(["", "λ of 2001", "import points", "tuning error", "test error"], rows)


def textbook_28(payload: dict) -> str:
    """The two classifiers of the chapter, and the truth."""
    keys = ("absolute_error_to_truth", "error_percent", "log_loss", "training_seconds")
    rows = []
    for name in ("logistic regression", "LSPC", "truth"):
        found = payload["methods"][name]
        rows.append([name, *(f"{found[key]['mean']:.3g}" if key in found else "—" for key in keys)])
    return markdown(["", "mean difference to the truth", "error, %", "log-loss", "training, s"], rows)


def family(payload: dict) -> str:
    """One row per dataset: log-loss and times of the four classifiers."""
    rows = []
    for name, found in payload["sets"].items():
        cells = found["cells"].values()
        best = min(cell["log_loss"] for cell in cells)
        losses = [_loss(cell["log_loss"], best) for cell in cells]
        fits = [_seconds(cell["fit_seconds"]) for cell in cells]
        predict = [f"{1000 * cell['predict_seconds']:.1f}" for cell in cells]
        rows.append([f"{name} ({found['train']:,}, {found['classes']} classes)", *losses, *fits, *predict])
    names = list(next(iter(payload["sets"].values()))["cells"])
    header = [what.format(name) for what in ("log-loss {}", "fit {}, s", "predict {}, ms") for name in names]
    return markdown(["dataset (rows, classes)", *header], rows)


def skc_2013(payload: dict) -> str:
    """One row per dataset and metric: the paper's columns, then ours."""
    rows = []
    for name, found in payload["sets"].items():
        paper, cells = payload["paper"]["table_1"][name], found["methods"]
        for k, measure in enumerate(("accuracy", "loss_log", "loss_surf")):
            from_paper = [f"{paper[column][k]:g}" for column in ("NBC", "SVM", "NM", "PSO")]
            digits = 1 if measure == "accuracy" else 3
            ours = [f"{cell[measure]['mean']:.{digits}f}" for cell in cells.values()]
            ours[-1] += f" ± {cells['exact, default'][measure]['standard_error']:.{digits}f}"
            rows.append([f"{name}, {measure}", *from_paper, *ours])
    from_paper = [f"2013 {column}" for column in ("NBC", "SVM", "NM", "PSO")]
    return markdown(["10 folds", *from_paper, *next(iter(payload["sets"].values()))["methods"]], rows)


def skc_2013_times(payload: dict) -> str:
    """One row per dataset: the paper's seconds and ours."""
    rows = []
    for name, found in payload["sets"].items():
        cells = {method: cell["fit_seconds"]["mean"] for method, cell in found["methods"].items()}
        solver, fell = found["methods"]["exact"]["solver_seconds"]["mean"], found["methods"]
        short = [f"{fell[m]['shortfall']['mean']:.4f}" for m in ("nelder-mead", "swarm")]
        from_paper = [f"{value:g}" for value in payload["paper"]["table_2_seconds_SVM_NM_PSO"][name]]
        ours = [_seconds(cells[m]) for m in ("SVM", "nelder-mead", "swarm", "exact", "exact, default")]
        ratio = f"1/{cells['swarm'] / cells['exact']:.0f}"
        rows.append([name, *from_paper, *ours, f"{1000 * solver:.1f} ms", ratio, *short])
    ours = ["SVM", "Nelder–Mead", "swarm", "exact", "exact, default", "exact, solver alone", "exact / swarm"]
    from_paper = ["2013 SVM", "2013 NM", "2013 PSO"]
    return markdown(
        ["seconds of a fit", *from_paper, *ours, "NM, below the maximum by", "swarm, below the maximum by"], rows
    )


def skc_2013_sizes(payload: dict) -> str:
    """One row per size and method."""
    rows = []
    for name, found in payload["sizes"].items():
        for method, cell in found["methods"].items():
            away = f"{cell['distance_to_truth']:.4f}" if "distance_to_truth" in cell else "—"
            losses = [f"{cell['accuracy']:.1f}", f"{cell['loss_log']:.4f}", f"{cell['loss_surf']:.4f}"]
            rows.append([f"{name}, {method}", *losses, away, _seconds(cell["fit_seconds"])])
    best = payload["true posterior"]
    rows.append(
        ["the true posterior", f"{best['accuracy']:.1f}", f"{best['loss_log']:.4f}", f"{best['loss_surf']:.4f}"]
    )
    rows[-1] += ["0", "—"]
    return markdown(["", "accuracy", "Loss_log", "Loss_surf", "distance to the truth", "fit, s"], rows)


def surface_floor(payload: dict) -> str:
    """A fit of a million rows relative to its floor, and the solver alone."""
    rows = [["bare computation of features and products", _seconds(payload["seconds"]["floor"]), "1"]]
    rows += [[name, _seconds(payload["seconds"][name]), f"{ratio:.2f}"] for name, ratio in payload["ratios"].items()]
    solver = 1000 * max(payload["solver"]["seconds"])
    rows.append([f"the exact solver alone, {payload['classes']} classes, one core", f"{solver:.0f} ms", "—"])
    return markdown([f"{payload['rows']:,} rows, {payload['centers']} centres", "seconds", "time / floor"], rows)


def surface_centers(payload: dict) -> str:
    """One row per dataset and method of choosing centres, one column per number of centres."""
    rows = []
    for name, about in payload["sets"].items():
        for mode in payload["modes"]:
            cells = [payload["cells"].get(f"{name}/{mode}/{r}", []) for r in payload["centers"]]
            means = [f"{sum(c['log_loss'] for c in found) / len(found):.3f}" if found else "—" for found in cells]
            rows.append([f"{name} ({about['train']:,} rows, {about['classes']} classes), {mode}", *means])
    return markdown(["log-loss", *(f"r = {r:,}" for r in payload["centers"])], rows)


def out_of_core(payload: dict) -> str:
    """One row per fit, then the parts of the floor."""
    rows, shape = [], f"{payload['rows']:,} × {payload['columns']} rows, {payload['centers']:,} centres"
    for name, cell in payload["cells"].items():
        if name not in payload["modes"]:
            rows.append([f"floor: {name}", _seconds(cell["seconds"]), *["—"] * 6])
            continue
        memory = [f"{cell[key] / 2**20:,.0f}" for key in ("peak_bytes", "growth_bytes")]
        loss = f"{cell['log_loss']:.4f} ({cell['bayes_log_loss']:.4f})"
        over = [f"{cell[key]:.2f}" for key in ("over_float64_floor", "over_floor")]
        speed = [*over, f"{cell['rows_per_second']:,.0f}"]
        rows.append([f"LSPC, {name}", _seconds(cell["seconds"]), *speed, *memory, loss])
    header = [
        "seconds",
        "time / floor, float64",
        "float32",
        "rows per second",
        "peak, MiB",
        "added by the fit, MiB",
        "log-loss (best possible)",
    ]
    return markdown([shape, *header], rows)


def out_of_core_2m(payload: dict) -> str:
    """The same for fewer rows and centres, where reading and calibration take a larger share."""
    return out_of_core(payload)


def command_stream(payload: dict) -> str:
    """One row per command."""
    counts = {"fit, a quarter of the rows": payload["rows"] // 4, "fit in memory": payload["small_rows"]}
    rows = []
    for name, cell in payload["cells"].items():
        size = f"{cell['file_bytes'] / 2**20:,.0f}" if "file_bytes" in cell else "—"
        loss = f"{cell['log_loss']:.4f}" if "log_loss" in cell else "—"
        n_rows, peak = counts.get(name, payload["rows"]), f"{cell['peak_bytes'] / 2**20:,.0f}"
        rows.append([name, f"{n_rows:,}", size, _seconds(cell["seconds"]), peak, loss])
    frame = f"all rows as a pandas frame: {payload['frame_bytes'] / 2**20:,.0f} MiB"
    return markdown([frame, "rows", "file, MiB", "seconds", "peak, MiB", "log-loss, new rows"], rows)


def scaling(payload: dict) -> str:
    """One row per size; the last row of each part has the exponents."""
    rows = []
    for key, slope in payload["exponents"].items():
        axis, what = key.split("/")
        for name, cell in payload["cells"].items():
            if name.startswith(f"{key}/"):
                size, memory = int(name.rsplit("/", 1)[1]), cell["growth_bytes"] / 2**20
                allowed = f"{cell['promised_bytes'] / 2**20:,.0f}" if "promised_bytes" in cell else "—"
                text = f"{_SCALED.get(what, what)}, {size:,} {axis}"
                rows.append([text, _seconds(cell["seconds"]), f"{memory:,.0f}", allowed])
        letter = {"rows": "n", "centres": "b", "columns": "d", "classes": "c"}[axis]
        powers = ["—" if slope[k] is None else f"{letter}^{slope[k]:.2f}" for k in ("seconds", "growth")]
        rows.append([f"*{_SCALED.get(what, what)}: growth*", *powers, "—"])
    return markdown(["", "seconds", "added memory, MiB", "promised, MiB"], rows)


_SCALED = {"clip": 'fit, link="clip"', "auto": "fit, default link"}


def cluster(payload: dict) -> str:
    """One row per method of computing the same sums."""
    differences = payload["differences"]
    off = {"cluster": "cluster and one process", "cluster, a worker killed": "a worker killed and undisturbed"}
    rows = []
    for name, seconds in payload["seconds"].items():
        found = f"{differences[off[name]] / payload['largest_coefficient']:.1e}" if name in off else "—"
        rows.append([name, _seconds(seconds), f"{payload['ratios'][name]:.2f}", found])
    shape = (
        f"{payload['rows']:,} × {payload['columns']} rows, {payload['centers']:,} centres, {payload['workers']} cores"
    )
    return markdown([shape, "seconds", "time / one process", "largest difference / largest coefficient"], rows)


_GPU_RUNS = {
    "floor": "features and products",
    "sums": "sums of all rows",
    "given": "fit with given width and ridge",
    "given, link='clip'": "the same without calibration",
    "default": "fit, everything chosen",
}


def gpu(payload: dict) -> str:
    """One row per run, with the floor of each part."""
    one, ten, mnist = payload["million"], payload["ten_million"], payload["mnist"]
    shape = f"{one['rows']:,} × 28 rows on the {payload['gpu']}, 1,000 centres"
    rows = [
        [f"{shape}: {_GPU_RUNS.get(name, name)}", f"{seconds:.3f}", f"{seconds / one['seconds']['floor']:.2f}", "—"]
        for name, seconds in one["seconds"].items()
    ]
    rows[-1][-1] = _loss_and_best(one["log_loss"], "default")
    for name, seconds in payload.get("laplacian", {}).get("seconds", {}).items():
        rows.append([f"Laplacian distances, 26,000 × 70 rows, 10,000 centres: {name}", f"{seconds:.4f}", "—", "—"])
    shape = f"{ten['rows']:,} × 70 rows from the host, {ten['centers']:,} centres"
    rows.append([f"{shape}: features and the whole product", _seconds(ten["floor_seconds"]), "1.00", "—"])
    ratio = f"{ten['seconds'] / ten['floor_seconds']:.2f}"
    rows.append([f"{shape}: fit", f"{ten['seconds']:.1f}", ratio, _loss_and_best(ten["log_loss"], "float32")])
    rows += [_digits("mnist, 60,000 rows, all of them centres: fit", mnist)]
    for name in ("all_rows", "two_million"):
        rows += _all_rows(payload[name]) if name in payload else []
    if "askotch" in payload:
        rows += _solvers(payload["askotch"])
    if "lightgbm_on_mnist" in payload:
        rows += [_digits("mnist: LightGBM, defaults, on the CPU of another machine", payload["lightgbm_on_mnist"])]
    for name, cell in payload.get("tables", {}).items():
        for device, place in (("cuda", "the GPU"), ("cpu", "the CPU beside it")):
            rows.append(
                [f"{name}: fit on {place}", _seconds(cell[device]["seconds"]), "—", f"{cell[device]['log_loss']:.4f}"]
            )
    for name, cell in payload.get("rivals", {}).items():
        error = f", calibration error {cell['calibration_error']:.3f}"
        rows.append(
            [f"electricity, 10,000 rows: {name}", _seconds(cell["seconds"]), "—", f"{cell['log_loss']:.4f}{error}"]
        )
    return markdown(["", "seconds", "time / floor", "test log-loss"], rows)


def _all_rows(cell: dict) -> list[list[str]]:
    return [
        [
            f"{cell['rows']:,} × 10 rows, {name} as centres: fit".replace("centres as centres", "centres"),
            _seconds(seconds),
            "—",
            _loss_and_best(cell["log_loss"], name),
        ]
        for name, seconds in cell["seconds"].items()
    ]


def _solvers(cell: dict) -> list[list[str]]:
    """Conjugate gradients beside the last look at the other solver."""
    both = {
        "conjugate gradients and leverages": cell["conjugate gradients, with leverages"],
        "ASkotch (our own implementation, untuned; stopped)": cell["askotch"][-1],
    }
    return [
        [
            f"the same system of {cell['rows']:,} rows: {name}",
            _seconds(each["seconds"]),
            "—",
            f"residual {each['residual']:.1e}",
        ]
        for name, each in both.items()
    ]


def _loss_and_best(losses: dict, name: str) -> str:
    return f"{losses[name]:.4f} (best possible {losses['truth']:.4f})"


def _digits(name: str, cell: dict) -> list[str]:
    return [name, _seconds(cell["seconds"]), "—", f"{cell['log_loss']:.4f}, error {100 * cell['error']:.2f} %"]


def passes(payload: dict) -> str:
    """One row per model and dataset."""
    rows = []
    for name, cell in payload["cells"].items():
        some, every = cell["by_passes"], cell.get("in_memory")
        sizes = [f"{cell['rows']:,}", f"{cell['sample']:,}", str(cell["classes"])]
        here = ["—"] * 3
        if every is not None:
            here = [f"{every['log_loss']:.4f}", str(every["points"]), _seconds(every["seconds"])]
        there = [f"{some['log_loss']:.4f}", str(some["points"]), _seconds(some["seconds"]), str(some["passes"])]
        rows.append([name, *sizes, *here, *there])
    memory, by_passes = (
        [f"{name} {where}" for name in ("log-loss", "points", "s")] for where in ("in memory", "by passes")
    )
    return markdown(["", "rows", "sample", "classes", *memory, *by_passes, "passes"], rows)


def on_paper(payload: dict) -> str:
    """What more rows would take, extrapolated linearly from the measurements."""
    cell, rows = payload["cells"]["width and ridge given"], payload["rows"]
    core_seconds, read = payload["threads"] * cell["seconds"] / rows, 2 * payload["file_bytes"] / rows
    on_gpu = results.read("gpu")
    out = []
    for n in (10**9, 10**12):
        hours = n * core_seconds / 3600
        gpu_hours = (
            "—"
            if on_gpu is None
            else f"{n * on_gpu['million']['seconds']['sums'] / on_gpu['million']['rows'] / 3600:,.2g}"
        )
        out.append(
            [f"{n:.0e}".replace("+", ""), f"{hours:,.0f}", f"{hours / 1000:,.2g}", gpu_hours, f"{n * read / 1e12:,.2g}"]
        )
    head = ["core-hours", "hours on 1,000 cores", "hours on one H200, rows on the GPU", "TB read in two passes"]
    return markdown([f"rows of {payload['columns']} columns, {payload['centers']:,} centres", *head], out)


def interruptions(payload: dict) -> str:
    """The cost of three kills."""
    seconds = payload["seconds"]
    rows = [
        ["fit without a checkpoint, s", _seconds(seconds["no checkpoint"])],
        [f"fit with one every {payload['every_seconds']:g} s, s", _seconds(seconds["checkpoint"])],
        [f"killed {payload['kills']} times and finished, s", _seconds(seconds["killed"])],
        ["rows summed again", f"{100 * payload['sums_repeated']:.0f} %"],
        ["rows sampled again", f"{100 * payload['look_repeated']:.0f} %"],
        ["difference between coefficients", f"{payload['largest_difference']:g}"],
        ["checkpoint on disk, MiB", f"{payload['checkpoint_bytes'] / 2**20:.1f}"],
    ]
    shape = f"{payload['rows']:,} × {payload['columns']} rows, {payload['centers']:,} centres"
    return markdown([shape, "measured"], rows)


def tags(payload: dict) -> str:
    """All tags at once compared with one SVC per tag, whose time is scaled from some tags to all."""
    names = {
        "kproba": "kproba LSPC(), all tags at once",
        "svc": "OneVsRestClassifier(CalibratedClassifierCV(SVC(), ensemble=False))",
        "svc_ensemble": "the same with ensemble=True, the default",
    }
    rows = []
    for key, cell in payload["cells"].items():
        whole, over, same = cell["of_all_tags"], cell["over_kproba"], cell["drawn"]
        times = [
            str(cell["of_tags"]),
            f"{whole['seconds']:,.1f}",
            f"{whole['cpu_seconds']:,.1f}",
            f"{over['seconds']:.0f}",
        ]
        figures = [f"{same[name]:.3f}" for name in ("auc", "average_precision")]
        rows.append([names.get(key, key), *times, f"{over['cpu_seconds']:.0f}", *figures, f"{same['log_loss']:.4f}"])
    of_all = payload["cells"]["kproba"]["both_halves"]
    rows.append(
        [f"LSPC on the {of_all['tags']} tags of both halves", *[""] * 5]
        + [f"{of_all[name]:.3f}" for name in ("auc", "average_precision")]
        + [f"{of_all['log_loss']:.4f}"]
    )
    times = ["tags timed", f"s, {payload['tags']} tags", "CPU s", "time / LSPC", "CPU / LSPC"]
    return markdown([f"{payload['train']:,} images", *times, "AUC", "average precision", "log-loss"], rows)


def images_2011(payload: dict) -> str:
    """2011 Table 1: mean AUC in percent with its standard deviation; best and comparable ones in bold."""
    rows, words = [], []
    for name, found in payload["datasets"].items():
        methods, short = list(found["methods"]), name.removeprefix("ml_")
        rows.append([f"*{short}, {found['in_place_of_surf']} in the place of SURF's words; {found['trials']} draws*"])
        rows[-1] += [""] * len(methods)
        for tag, cells in found["auc_percent"].items():
            texts = (f"{cells[m]['mean']:.1f} ({cells[m]['std']:.1f})" for m in methods)
            marked = (f"**{text}**" if cells[m]["best"] else text for m, text in zip(methods, texts))
            rows.append([f"{short}: {tag}", *marked])
        of = [found["methods"][m] for m in methods]
        rows.append([f"*{short}: average*", *(f"{each['average_auc']:.1f}" for each in of)])
        seconds = (f"{each['training_seconds']['mean']:.2f}" for each in of)
        rows.append(["*training time, one model per tag, CPU s*", *seconds])
        rows.append([f"*time of plain KLR ({found['plain_seconds']:.1f} s) / this*"])
        rows[-1] += [f"{found['plain_seconds'] / each['training_seconds']['mean']:.1f}" for each in of]
        words.append(_not_better(short, found))
    return f"{markdown(['2011 Table 1', *methods], rows)}\n\n{' '.join(words)}"


def _not_better(name: str, found: dict) -> str:
    """In words: where LSPC-new is not ahead, and what the default reaches."""
    parts = [
        f"no better than {other} on {len(tags)} of {len(found['tags'])} tags"
        for other, tags in found["not_better"].items()
        if tags
    ]
    what = " and ".join(parts) if parts else "better than both others on every tag"
    return f"On {name}, LSPC-new is {what}; `LSPC()` has a mean AUC of {found['default_auc']:.1f} on the first draw."


def sound_2011(payload: dict) -> str:
    """2011 Table 2: mean AUC in percent over tags and trials with its standard deviation, and training times."""
    methods = payload["methods"]
    texts = (f"{cell['mean']:.1f} ({cell['std']:.1f})" for cell in methods.values())
    marked = [f"**{text}**" if cell["best"] else text for text, cell in zip(texts, methods.values())]
    seconds = [f"{cell['training_seconds']['mean']:.3f}" for cell in methods.values()]
    spread = [f"{cell['std_of_trials']:.2f}" for cell in methods.values()]
    rows = [["AUC", *marked], ["standard deviation of the trial means", *spread], ["training time, CPU s", *seconds]]
    table = markdown([f"{payload['repeats']} draws of {payload['training']} clips", *methods], rows)
    leader = max(methods, key=lambda name: methods[name]["mean"])
    p = methods["LSPC-new"]["paired_p_against_best"]
    if leader == "LSPC-new" or p is None:
        return table
    return f"{table}\n\nLSPC-new is *not* the best here: {leader} is ahead of it, with p = {p:.2g} in a paired t-test."


def similarity_2010(payload: dict) -> str:
    """Log-loss and error by the number of rows of a class, for every matrix."""
    names = {"identity": "none", "similar": "of similar classes", "shuffled": "the same, shuffled"}
    rows = []
    for dataset, by_rows in payload["datasets"].items():
        for number, cells in by_rows.items():
            losses = [f"{cells[key]['log_loss']['mean']:.3f}" for key in names]
            errors = [f"{cells[key]['error_percent']['mean']:.1f}" for key in names]
            p = cells["similar"]["log_loss"]["paired_p_against_identity"]
            rows.append([f"{dataset}, {number} rows a class", *losses, f"{p:.1g}", *errors])
    header = [*(f"log-loss, {text}" for text in names.values()), "p", *(f"error %, {text}" for text in names.values())]
    return markdown(["kernel over the classes:", *header], rows)


def digits_2010(payload: dict) -> str:
    """The error of every variant, and what it chose on the first draw."""
    sets = payload["datasets"]
    rows = []
    for name in next(iter(sets.values())):
        cells = [found[name] for found in sets.values()]
        chosen = [f"σ = {cell['width'][0]:.3g}, λ = {cell['ridge'][0]:.2g}" for cell in cells]
        errors = [reproduction.with_error(cell["error_percent"]) for cell in cells]
        rows.append([name, *(text for pair in zip(errors, chosen) for text in pair)])
    header = [text for dataset in sets for text in (f"{dataset}, error %", "chosen")]
    return markdown([f"n = {payload['training_rows']:,}, draws: {payload['repeats']}", *header], rows)


def optimum_2013(payload: dict) -> str:
    """Measures of held-out and training rows for every change of the recipe."""
    rows = []
    for name, found in payload["sets"].items():
        accuracy, log, surf = found["paper_swarm"]
        rows.append([f"{name}, the paper's swarm", f"{accuracy:.1f}", f"{log:.2f}", f"{surf:.2f}", "—"])
        for key, cell in found["variants"].items():
            values = [cell[measure]["mean"] for measure in ("loss_log", "loss_surf", "training_loss_surf")]
            rows.append([f"{name}, {key}", f"{cell['accuracy']['mean']:.1f}", *(f"{value:.3f}" for value in values)])
    return markdown(["exact solver", "accuracy", "Loss_log", "Loss_surf", "Loss_surf, training rows"], rows)


def boosting_2013(payload: dict) -> str:
    """Measures of every method on every set."""
    rows = []
    for name, found in payload["sets"].items():
        for method, cell in found["methods"].items():
            values = [f"{cell['accuracy']['mean']:.1f}", *(f"{cell[m]['mean']:.3f}" for m in ("loss_log", "loss_surf"))]
            more = [f"{cell['centers']['mean']:.0f}", _seconds(cell["seconds"]["mean"])]
            rows.append([f"{name} ({found['rows']:,} rows, {found['classes']} classes), {method}", *values, *more])
    return markdown(["", "accuracy", "Loss_log", "Loss_surf", "centres", "CPU s"], rows)


def sequences(payload: dict) -> str:
    """Error and log-loss of every method on every task."""
    names = {"svc": "calibrated SVC, same kernel", "dtw": "k-NN, DTW"}
    names |= {"KernelLogisticRegression": "KLR", "ImportVectorMachine": "IVM", "SurfaceKernelClassifier": "surface"}
    rows = []
    for name, task in payload["tasks"].items():
        cells = task["cells"]
        best = min(cell["log_loss"] for cell in cells.values())
        rows.append([f"{name}: log-loss", *(_loss(cell["log_loss"], best) for cell in cells.values())])
        rows.append([f"{name}: error", *(f"{100 * cell['error']:.1f} %" for cell in cells.values())])
        rows.append([f"{name}: CPU s", *(_seconds(cell["cpu_seconds"]) for cell in cells.values())])
    header = [names.get(key, key) for key in next(iter(payload["tasks"].values()))["cells"]]
    matrix = payload["matrix"]
    seconds = _seconds(statistics.median(matrix["seconds"]))
    about = f"Computing a kernel matrix of {matrix['rows']} Japanese vowels, including the models, takes {seconds} s."
    return f"{markdown(['', *header], rows)}\n\n{about}"


def examples(payload: dict) -> str:
    """Seconds of every example."""
    names = payload["seconds"]
    return markdown(["`python examples/…`", "seconds"], [[f"`{name}.py`", _seconds(s)] for name, s in names.items()])


def command(payload: dict) -> str:
    """One row per dataset: mean log-loss and error, the lowest log-loss in bold; then ranks, wins and times."""
    found, rows = payload["summary"], []
    methods = list(found["mean_rank"])
    for name, cells in found["means"].items():
        best = min(cell["log_loss"] for cell in cells.values())
        texts = [f"{_loss(cells[m]['log_loss'], best)} ({100 * cells[m]['error']:.1f} %)" for m in methods]
        rows.append([f"{name} ({payload['sets'][name]['train']:,} rows, {found['splits'][name]} splits)", *texts])
    wins = {m: f"{sum(by_set.values())} of {sum(found['splits'].values())}" for m, by_set in found["wins"].items()}
    rows += [
        ["**mean rank**", *(f"{found['mean_rank'][m]:.2f}" for m in methods)],
        ["**splits in which the command has the lower log-loss**", *(wins.get(m, "") for m in methods)],
        ["**median fit time, s**", *(_seconds(found["median_fit_seconds"][m]) for m in methods)],
    ]
    return markdown(["log-loss and error (training rows)", "`kproba fit`", *methods[1:]], rows)


def mixed(payload: dict) -> str:
    """One row per table: mean log-loss, the lowest in bold; then the mean of all, and times."""
    found, rows = payload["summary"], []
    methods = list(found["mean"])
    for name, cells in found["means"].items():
        texts = [_loss(cells[m], min(cells.values())) for m in methods]
        rows.append([f"{name} ({payload['sets'][name]['train']:,} rows, {found['splits'][name]} splits)", *texts])
    rows += [
        ["**mean**", *(f"{found['mean'][m]:.3f}" for m in methods)],
        ["**median fit time, s**", *(_seconds(found["median_fit_seconds"][m]) for m in methods)],
    ]
    if ratios := found.get("median_fit_ratio"):
        rows.append(["**median of fit time / CatBoost's**", *(f"{ratios[m]:.1f}" for m in methods)])
    return markdown(["log-loss (training rows)", *methods], rows)


def first_minutes(payload: dict) -> str:
    """Measurements and their limits."""
    imports, most = payload["imports"], payload["limits"]
    demo = payload["demo"]
    rows = [["`kproba demo`, seconds", _seconds(demo["median_seconds"]), f"{most['demo_seconds']:.0f}"]]
    rows += [["`kproba demo`, CPU seconds", _seconds(demo["mean_cpu_seconds"]), ""]]
    for kind, word in (("wall", "seconds"), ("cpu", "CPU seconds")):
        ours, theirs = (imports["seconds"][module][kind] for module in ("kproba", "sklearn"))
        rows += [
            [f"`import kproba`, {word}", f"{ours:.2f}", ""],
            [f"`import sklearn`, {word}", f"{theirs:.2f}", ""],
            ["ratio of the two", f"{imports['ratios'][kind]:.2f}", f"{most['import_ratio']:.1f}"],
        ]
    return markdown(["", "measured", "limit"], rows)


def reject(payload: dict) -> str:
    """One row per dataset and calibration method."""
    rows = []
    for name, found in payload["sets"].items():
        for method, cell in found["methods"].items():
            held = ["—"] * 5
            if "held" in cell:
                clearly = str(cell["clearly_broken"]) if "clearly_broken" in cell else "—"
                error = "—" if cell["error"] is None else f"{cell['error']:.3f}"
                counts = [f"{cell['held']} of {found['splits']}", clearly, str(cell["nothing_kept"])]
                held = [*counts, f"{cell['kept']:.2f}", error]
            covered = f"{cell['covered']:.4f} ± {cell['covered_se']:.4f}"
            sets = [covered, f"{cell['size']:.2f}", f"{cell['fits']:.0f}", f"{1000 * cell['fit_s']:.0f}"]
            size = "" if "rows" in name else f", {found['train']:,} rows"
            how = method.split(",")[0] if method.endswith(name.split(", ")[-1]) else method
            rows.append([f"{name}{size}, max_error={found['max_error']:g}: {how}", *held, *sets])
    header = [
        "held",
        "clearly broken",
        "all rejected",
        "kept",
        "error of rows kept",
        "covered",
        "set size",
        "fits",
        "ms",
    ]
    return markdown(["", *header], rows)


def reject_simulated(payload: dict) -> str:
    """One row per kind of rows and guarantee, one column per number of rows: shares kept by the two rules."""
    kinds: dict[str, dict[str, str]] = {}
    for key, cell in payload["simulated"].items():
        kind, n, max_error = key.split("/")
        (ours, held), (theirs, _) = cell["ours"], cell["Geifman and El-Yaniv"]
        row = kinds.setdefault(f"{kind}, max_error={float(max_error):g}", {})
        row[n] = f"{ours:.2f} / {theirs:.2f} ({100 * held:.1f} %)"
    sizes = list(next(iter(kinds.values())))
    header = ["kept: ours / Geifman and El-Yaniv (guarantee held)", *(f"{int(n):,} rows" for n in sizes)]
    return markdown(header, [[kind, *row.values()] for kind, row in kinds.items()])


TABLES = (
    oversubscription,
    command,
    mixed,
    first_minutes,
    reject,
    reject_simulated,
    examples,
    tags,
    images_2011,
    sound_2011,
    similarity_2010,
    digits_2010,
    optimum_2013,
    boosting_2013,
    sequences,
    out_of_core,
    out_of_core_2m,
    command_stream,
    scaling,
    cluster,
    gpu,
    passes,
    on_paper,
    interruptions,
    skc_2013,
    skc_2013_times,
    skc_2013_sizes,
    surface_floor,
    surface_centers,
    family,
    size_2010,
    ivm_2001,
    textbook_28,
    quality,
    headline,
    letter,
    all_centers,
    leverage_error,
    fit_floor,
    predict_floor,
    explain,
    memory,
    random_problems,
    fuzzing,
    onnx_graphs,
    centers,
    klr_letter,
    likelihood_seconds,
    klr_loo,
    loo_trust,
    more_rows,
    copies,
    more_splits,
    time_of_rows,
    learnt_gains,
    ivm_svc,
    ivm_search,
)
RENDERERS = {f.__name__: f for f in TABLES}
#: Tables that show part of a result with another name.
SOURCES = {
    "headline": "quality",
    "skc_2013_times": "skc_2013",
    "leverage_error": "all_centers",
    "learnt_gains": "quality",
    "on_paper": "out_of_core",
    "reject_simulated": "reject",
}
#: A sentence for readers in a hurry; the table itself, with its stamp, is on the page of the benchmarks.
WITHOUT_STAMP = {"headline"}


#: The names of all tables; that of the papers' items is made from many results.
NAMES = {*RENDERERS, "reproduction"}


def render(text: str, folder: Path | str = results.RESULTS) -> str:
    """The page with its tables filled; a table without a result is left unchanged."""

    def fill(match: re.Match) -> str:
        opening, name, closing = match.groups()
        if name == "reproduction":
            folder_of = EXPERIMENTS if Path(folder) == results.RESULTS else Path(folder)
            table, commits = reproduction.as_markdown(folder_of), reproduction.stamps(folder_of)
            return f"{opening}\n{table}\n\n*{commits}.*\n\n{closing}"
        if name not in RENDERERS:
            raise ValueError(f"There is no table {name!r}; the known tables are {', '.join(RENDERERS)}.")
        source = SOURCES.get(name, name)
        payload = results.read(source, folder) or results.read(source, EXPERIMENTS)
        if payload is None:
            return match.group(0)
        try:
            table = RENDERERS[name](payload)
        except KeyError as missing:  # measured before the table had this column: the other tables are still renewed
            print(f"{source}.json has no {missing}: the table {name} stays, measure it again", file=sys.stderr)
            return match.group(0)
        stamp = "" if name in WITHOUT_STAMP else f"{footer(payload)}\n\n"
        return f"{opening}\n{table}\n\n{stamp}{closing}"

    return MARKED.sub(fill, text)


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is out of date")
    parser.add_argument("--root", type=Path, default=results.ROOT, help="folder with the pages")
    parser.add_argument("--results", type=Path, default=results.RESULTS, help="folder with the JSON files")
    args = parser.parse_args(argv)
    stale = []
    for path in (args.root / page for page in PAGES):
        if not path.exists():
            continue
        old = path.read_text(encoding="utf-8")
        new = render(old, args.results)
        if new != old:
            stale.append(path.name)
            if not args.check:
                path.write_text(new, encoding="utf-8")
    if args.check and stale:
        sys.exit(f"out of date: {', '.join(stale)}; run python -m benchmarks.tables")


def _loss(value: float | None, best: float | None = None) -> str:
    if value is None:
        return "—"
    return f"**{value:.3f}**" if value == best else f"{value:.3f}"


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


if __name__ == "__main__":
    main()
