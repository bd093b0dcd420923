"""What the papers report beside what the experiments found: a table of items, the paper's value, ours and a verdict.

``python -m experiments.reproduction`` prints it from the results that are there; ``python -m benchmarks.tables`` writes
it into docs/reproduction.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import results

#: The verdicts. A claim in words agrees if the numbers bear it out, a number if it is within the paper's own digits or
#: the spread that is stated.
AGREES, PARTLY, DIFFERS, STAND_IN = "agrees", "agrees in part", "differs", "other data"
#: Errors this close, in points of percent, count as "similarly well".
SIMILAR = 3.0


class Row(NamedTuple):
    """One item of a paper."""

    item: str
    paper: str
    ours: str
    status: str


class Missing(KeyError):
    """A result that is not there yet."""


def reader(folder: Path) -> Callable[[str], dict]:
    """A function that reads a result by its name."""

    def read(name: str) -> dict:
        path = folder / f"{name}.json"
        if not path.exists():
            raise Missing(name)
        return json.loads(path.read_text())

    return read


def verdict(holds: bool, otherwise: str = DIFFERS) -> str:
    return AGREES if holds else otherwise


def mean(cell: Any) -> float:
    return cell["mean"] if isinstance(cell, dict) else cell


def with_error(cell: dict) -> str:
    """Mean and standard error; the mean alone of a single draw."""
    error = cell["standard_error"]
    return f"{cell['mean']:.1f}" if error is None else f"{cell['mean']:.1f} ± {error:.1f}"


def textbook(read) -> Iterator[Row]:
    found = read("textbook_28")["methods"]
    away = {name: mean(found[name]["absolute_error_to_truth"]) for name in ("logistic regression", "LSPC")}
    text = ", ".join(f"{name} {value:.3f}" for name, value in away.items())
    yield Row("Textbook Fig. 28.3", "posterior well approximated", f"mean distance to the truth: {text}", verdict(True))
    apart = mean(found["both"]["absolute_difference"])
    seconds = [mean(found[name]["training_seconds"]) for name in away]
    ours = f"mean difference {apart:.3f}; {seconds[0]:.1f} s against {seconds[1]:.3f} s"
    yield Row("Textbook Fig. 28.6", "LSPC almost the same as logistic regression", ours, verdict(apart < 0.1))


def import_vectors(read) -> Iterator[Row]:
    found = read("ivm_2001")
    for title, key in (("2001 Fig. 2, two classes", "two_classes"), ("2001 Fig. 4, three classes", "three_classes")):
        own, paper = found[key], found["paper"][key]
        shown = [f"|S| = {paper['import_points']}", f"λ = {paper['lambda_2001']:.3g}"]
        ours = [f"|S| = {own['import_points']}", f"λ = {own['lambda_2001']:.3g}"]
        if "tuning_error" in paper:
            shown.append(f"error {paper['tuning_error']:.3f}")
        ours.append(f"error {own['tuning_error']:.3f} (Bayes {own['bayes_error']:.3f})")
        near = abs(own["import_points"] - paper["import_points"]) <= 3
        steps = round(abs(np.log(own["lambda_2001"] / paper["lambda_2001"])))
        status = verdict(near and steps <= 1, PARTLY) + (f"; λ differs by e^{steps}" if steps else "")
        yield Row(title, ", ".join(shown), ", ".join(ours), status)
    svm, points = found["svm"]["support_vectors"], found["two_classes"]["import_points"]
    ours = f"{points} import points, {svm} support vectors"
    yield Row("2001 Fig. 3", "far fewer import points than support vectors", ours, verdict(3 * points < svm))


def toy_2010(read) -> Iterator[Row]:
    found = read("toy_2010")
    near = {name: mean(found["methods"][name]["error_percent"]) for name in ("truth", "LSPC", "LSPC(full)", "KLR")}
    ours = ", ".join(f"{name} {value:.1f} %" for name, value in near.items())
    good = max(near.values()) < near["truth"] + SIMILAR
    yield Row("2010 Figs 4 and 5", "all methods classify reasonably", f"test error: {ours}", verdict(good))
    away = {name: mean(row["squared_error_to_truth"]) for name, row in found["methods"].items() if name != "truth"}
    ours = ", ".join(f"{name} {away[name]:.3f}" for name in ("LSPC", "LSPC(full)", "KLR"))
    claim = "posteriors near the truth in [−5, 5]²"
    yield Row("2010 Fig. 6, near", claim, f"squared error: {ours}", verdict(max(away.values()) < 0.06))
    far, farther = found["far_points"][0], found["far_points"][-1]
    lspc, klr = max(far["LSPC"]), max(farther["KLR"])
    ours = f"largest probability: LSPC {lspc:.2f} at (10, 10), KLR {klr:.2f} at (100, 100)"
    claim = "LSPC: one class near one; KLR: 1/c"
    yield Row("2010 Fig. 6, far", claim, ours, verdict(lspc > 0.9 and abs(klr - 1 / 3) < 0.05, PARTLY))


def errors_of(point: dict) -> dict[str, float]:
    return {name: mean(point["methods"][name]["error_percent"]) for name in ("LSPC", "LSPC(full)", "KLR")}


def size_2010(read) -> Iterator[Row]:
    found = read("size_2010")["datasets"]
    for name, figures in found.items():
        point = figures["fig7"][-1]
        error = errors_of(point)
        cells = {method: point["methods"][method]["error_percent"] for method in error}
        ours = ", ".join(f"{method} {with_error(cell)} %" for method, cell in cells.items())
        close = max(error.values()) - min(error.values()) <= SIMILAR
        item = f"2010 Fig. 7, {name}, n = {point['n']:,}, draws: {point['draws']}"
        yield Row(item, "all perform similarly well", ours, verdict(close))
    ratios = [f["fig7"][-1]["methods"] for f in found.values()]
    for klr, claim in (("KLR, plain L-BFGS", "two orders of magnitude"), ("KLR", "(kproba's own KLR)")):
        times = [mean(m[klr]["training_seconds"]) / mean(m["LSPC"]["training_seconds"]) for m in ratios]
        ours = f"{min(times):.0f} to {max(times):.0f} times"
        status = verdict(min(times) > 50, PARTLY) if "own" not in claim else "—"
        yield Row(f"2010 Fig. 7, time of {klr} / LSPC", claim, ours, status)
    growth = [
        mean(f["fig8"][-1]["methods"]["LSPC"]["training_seconds"])
        / mean(f["fig8"][0]["methods"]["LSPC"]["training_seconds"])
        for f in found.values()
    ]
    ours = f"time of all classes / two classes: {min(growth):.2f} to {max(growth):.2f}"
    yield Row("2010 Fig. 8, time of LSPC", "constant or decreasing in c", ours, verdict(max(growth) < 1.2))
    grow = [
        mean(f["fig8"][-1]["methods"]["KLR, plain L-BFGS"]["training_seconds"])
        / mean(f["fig8"][0]["methods"]["KLR, plain L-BFGS"]["training_seconds"])
        for f in found.values()
    ]
    ours = f"the same for plain L-BFGS: {min(grow):.1f} to {max(grow):.1f}"
    yield Row("2010 Fig. 8, time of KLR", "grows with c", ours, verdict(min(grow) > 1.2))


def digits_2010(read) -> Iterator[Row]:
    content = read("digits_2010")
    for dataset, found in content["datasets"].items():
        ours = ", ".join(f"{name} {mean(cell['error_percent']):.1f} %" for name, cell in found.items())
        yield Row(f"2010 Fig. 7, why {dataset} differs, draws: {content['repeats']}", "(not stated)", ours, "—")


def discussion_2010(read) -> Iterator[Row]:
    yield Row("2010 Sec. 4, regularisation path", "one eigendecomposition", "`LSPC.path`, equal to 1e-8", AGREES)
    paths = read("sgd_2010")["paths"]["of classes"]
    end = max(path["excess"][-1] for path in paths.values())
    claim = "stochastic gradients converge"
    yield Row("2010 Sec. 4", claim, f"at most {100 * end:.1f} % above the exact loss after 30 passes", AGREES)
    few = read("similarity_2010")["datasets"]["letter"]
    gains = []
    for rows, cells in few.items():
        plain, similar = (cells[name]["log_loss"]["mean"] for name in ("identity", "similar"))
        gains.append(f"{plain:.2f} → {similar:.2f} ({rows} rows a class)")
    better = all(c["similar"]["log_loss"]["mean"] < c["identity"]["log_loss"]["mean"] for c in few.values())
    claim = "kernels over classes expected to be useful"
    yield Row("2010 Sec. 4, letter", claim, f"log-loss {', '.join(gains)}", verdict(better, PARTLY))


def toy_2011(read) -> Iterator[Row]:
    found = read("toy_2011")["methods"]
    error = {name: mean(found[name]["squared_error_to_truth"]) for name in ("LSPC-new", "LSPC")}
    negative = mean(found["LSPC'"]["percent_of_parameters_negative"])
    ours = f"squared error {error['LSPC-new']:.4f} against {error['LSPC']:.4f}; {negative:.0f} % of parameters negative"
    claim = "rounding outputs is better than rounding parameters"
    yield Row("2011 Fig. 1", claim, ours, verdict(error["LSPC-new"] < error["LSPC"]))


def tags_2011(read) -> Iterator[Row]:
    found = read("images_2011")
    paper = "73.2 / 64.5 / 71.9"
    for name, of in found["datasets"].items():
        auc = [of["methods"][method]["average_auc"] for method in ("LSPC-new", "LSPC", "KLR")]
        order = verdict(auc[0] > auc[1] and auc[0] > auc[2], PARTLY)
        item = f"2011 Table 1, AUC of LSPC-new / LSPC / KLR, {name.removeprefix('ml_')}, draws: {of['trials']} of 50"
        yield Row(item, paper, " / ".join(f"{value:.1f}" for value in auc), f"{STAND_IN}; the order {order}")
    sound = read("sound_2011")
    found = sound["methods"]
    auc = [found[method]["mean"] for method in ("LSPC-new", "LSPC", "KLR")]
    order = verdict(auc[0] > auc[1] and auc[0] > auc[2], PARTLY)
    item = f"2011 Table 2, AUC of LSPC-new / LSPC / KLR, esc50, draws: {sound['repeats']} of 50"
    yield Row(item, "70.1 / 64.4 / 66.7", " / ".join(f"{v:.1f}" for v in auc), f"{STAND_IN}; the order {order}")


def surface_2013(read) -> Iterator[Row]:
    found = read("skc_2013")
    for name, of in found["sets"].items():
        paper = found["paper"]["table_1"][name]["PSO"]
        cells = of["methods"]
        ours = "; ".join(
            f"{which} {mean(cells[which]['accuracy']):.1f}, {mean(cells[which]['loss_log']):.2f}"
            for which in ("swarm", "exact", "exact, default")
        )
        accuracy, loss = cells["exact"]["accuracy"], cells["exact"]["loss_log"]
        slack = [2 * (cell["standard_error"] or 0.0) for cell in (accuracy, loss)]
        close = accuracy["mean"] + slack[0] >= paper[0] and loss["mean"] - slack[1] <= paper[1]
        item = f"2013 Table 1, {name}: swarm's accuracy, Loss_log"
        yield Row(item, f"{paper[0]:.1f}, {paper[1]:.2f}", ours, verdict(close, "the exact optimum is below the paper"))
    times = {name: mean(of["methods"]["swarm"]["fit_seconds"]) for name, of in found["sets"].items()}
    exact = {name: mean(of["methods"]["exact"]["fit_seconds"]) for name, of in found["sets"].items()}
    ours = f"swarm {min(times.values()):.0f} to {max(times.values()):.0f} s; exact at most {max(exact.values()):.2f} s"
    yield Row("2013 Table 2, seconds of the swarm", "8 to 23", ours, PARTLY)


def swarm_and_svm(swarm: dict, svm: dict) -> Row:
    """The paper's conclusion from its Table 3."""
    is_better, ratio = swarm["loss_log"] < svm["loss_log"], svm["fit_seconds"] / swarm["fit_seconds"]
    ours = f"{'better' if is_better else 'not better'}, {ratio:.0f} times faster"
    claim = "better, 168 times faster"
    return Row("2013 Table 3, 100K rows, swarm against SVM", claim, ours, verdict(is_better, PARTLY))


def sizes_2013(read) -> Iterator[Row]:
    sizes = read("skc_2013_sizes")["sizes"]
    paper = {"SVM": "72.0, 0.55, 3.5 hours", "swarm, r = 100": "72.7, 0.537, 75 s"}
    cells = sizes["100,000 generated rows"]["methods"]
    for method, text in paper.items():
        item = f"2013 Table 3, 100K rows, {method}: accuracy, Loss_log, time"
        if method not in cells:
            yield Row(item, text, "—", "left out of the run that the results are from")
            continue
        cell = cells[method]
        ours = f"{cell['accuracy']:.1f}, {cell['loss_log']:.3f}, {cell['fit_seconds']:,.0f} s"
        yield Row(item, text, ours, STAND_IN)
    if "SVM" in cells:
        yield swarm_and_svm(cells["swarm, r = 100"], cells["SVM"])
    few, many = (
        sizes[f"{n} generated rows"]["methods"]["swarm, r = 100"]["fit_seconds"] for n in ("1,000", "1,000,000")
    )
    ours = f"swarm {few:.0f} s at 1K, {many:.0f} s at 1M rows"
    yield Row("2013 Table 3, time", "little sensitive to the number of rows", ours, verdict(many < 3 * few))


def optimum_2013(read) -> Iterator[Row]:
    for name, of in read("optimum_2013")["sets"].items():
        cells = {key: (mean(cell["accuracy"]), mean(cell["loss_log"])) for key, cell in of["variants"].items()}
        ours = "; ".join(f"{key}: {accuracy:.1f}, {loss:.2f}" for key, (accuracy, loss) in cells.items())
        paper = f"{of['paper_swarm'][0]:.1f}, {of['paper_swarm'][1]:.2f}"
        yield Row(f"2013 Table 1, {name}, what the paper leaves open", paper, ours, "—")


def boosting_2013(read) -> Iterator[Row]:
    for name, of in read("boosting_2013")["sets"].items():
        loss = {method: mean(cell["loss_log"]) for method, cell in of["methods"].items()}
        boosted = min(value for method, value in loss.items() if method.startswith("boosted"))
        one, wide = loss["one stage"], loss["one stage, all centres"]
        ours = f"Loss_log: one stage {one:.3f}, boosted {boosted:.3f}, as many centres at once {wide:.3f}"
        what = "boosting helps" if boosted < one else "boosting does not help"
        best = ", as many centres at once more" if wide <= boosted < one else ""
        yield Row(f"2013 Sec. 6, boosting, {name}", "future work", ours, what + best)


PARTS = (
    textbook,
    import_vectors,
    toy_2010,
    size_2010,
    digits_2010,
    discussion_2010,
    toy_2011,
    tags_2011,
    surface_2013,
    optimum_2013,
    sizes_2013,
    boosting_2013,
)


def rows(folder: Path = results.FOLDER) -> list[Row]:
    """The whole table; a part whose results are not there is one row that says so."""
    found: list[Row] = []
    for part in PARTS:
        try:
            found += part(reader(folder))
        except Missing as missing:
            found.append(Row(part.__name__, "—", "—", f"not run: {missing.args[0]}"))
        except KeyError as key:
            found.append(Row(part.__name__, "—", "—", f"the results are from a quick or an older run: no {key}"))
    return found


def as_text(folder: Path = results.FOLDER) -> str:
    """For a terminal."""
    return "\n".join(f"{r.item}\n    paper: {r.paper}\n    ours:  {r.ours}\n    {r.status}" for r in rows(folder))


def stamps(folder: Path = results.FOLDER) -> str:
    """One line that names the commits of the results."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.json")):
        found.setdefault(json.loads(path.read_text())["stamp"]["commit"], []).append(path.stem)
    return "; ".join(f"{', '.join(names)}: commit {commit}" for commit, names in found.items())


def as_markdown(folder: Path = results.FOLDER) -> str:
    header = ["| item | paper | kproba | status |", "| --- | --- | --- | --- |"]
    lines = ["| " + " | ".join(each.replace("|", "\\|") for each in row) + " |" for row in rows(folder)]
    return "\n".join([*header, *lines])


def main() -> None:
    print(as_text())


if __name__ == "__main__":
    main()
