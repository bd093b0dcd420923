"""The benchmarks' own machinery: stamped files, tables, and modules that import without their rivals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import (
    all_centers,
    command,
    dots,
    first_minutes,
    fuzzing,
    interruptions,
    many_rows,
    pictures,
    random_problems,
    results,
    rivals,
    scaling,
    tables,
    tables_quality,
)
from benchmarks.rivals import eigenpro, falkon

from kproba import LSPC, open_rows
from kproba.data.real import RealSet
from kproba.kernels import Laplacian

MODULES = (
    "tables_quality",
    "letter",
    "tags",
    "all_centers",
    "fit_floor",
    "predict_floor",
    "explain",
    "memory",
    "onnx_graphs",
    "oversubscription",
    "centers",
    "run",
    "tables",
    "pictures",
    "out_of_core",
)


def quality_payload() -> dict:
    """Two sets, one seed; LSPC wins the first and is second on the other."""
    losses = {"one": (0.1, 0.2, 0.3, 0.4, 0.5), "two": (0.2, 0.1, 0.3, 0.4, 0.5)}
    cells = {
        f"{name}/0/{rival}": {"log_loss": loss, "fit_seconds": 1.0 + (rival == "svc")}
        for name, row in losses.items()
        for rival, loss in zip(rivals.RANKED, row)
    }
    payload = {
        "sets": {"one": {"train": 2000}, "two": {"train": 90}},
        "cells": cells,
        "rivals": {"svc": "SVC"},
    }
    return payload | {"summary": tables_quality.summary(payload)}


def test_write_stamps_rounds_and_leaves_no_temporary_file(tmp_path):
    path = results.write("x", {"a": np.float64(1 / 3), "b": [np.int64(2)], "stamp": "old"}, tmp_path)
    content = json.loads(path.read_text())
    assert content["a"] == 0.333333
    assert content["b"] == [2]
    assert {"date", "cpu", "cores", "memory_gib", "python", "libraries", "commit"} == set(content["stamp"])
    assert content["stamp"]["libraries"]["numpy"] == np.__version__
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_write_that_fails_keeps_the_old_file(tmp_path):
    results.write("x", {"a": 1}, tmp_path)
    with pytest.raises(ValueError):
        results.write("x", {"a": float("nan")}, tmp_path)
    assert results.read("x", tmp_path)["a"] == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_stamp_names_neither_machine_nor_folders():
    import getpass
    import platform

    text = json.dumps(results.stamp())
    assert str(results.ROOT) not in text
    assert platform.node() not in text or not platform.node()
    assert f"/{getpass.getuser()}" not in text


def test_read_of_nothing_is_none(tmp_path):
    assert results.read("nothing", tmp_path) is None


def test_interleaved_calls_every_function_in_turn():
    calls: list[str] = []
    found = results.interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 2)
    assert calls == ["a", "b"] * 3
    assert min(found.values()) >= 0
    assert results.median_time(lambda: None, 3) >= 0


def test_summary_counts_ranks_wins_and_times():
    summary = quality_payload()["summary"]
    assert summary["mean_rank"]["kproba"] == 1.5
    assert summary["mean_rank"]["catboost"] == 5
    assert summary["below_svc"] == 1
    assert summary["fit_time_over_svc"] == {"median": 0.5, "worst": 0.5, "worst_set": "one", "sets": 1}


def test_summary_leaves_unfinished_sets_out_and_says_so():
    payload = quality_payload()
    del payload["cells"]["two/0/catboost"]
    summary = tables_quality.summary(payload)
    assert summary["sets"] == 1
    assert summary["incomplete"] == ["two"]


def test_tables_fill_the_markers_and_check_tells_stale_pages(tmp_path):
    results.write("quality", quality_payload(), tmp_path / "results")
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- table: quality -->\nold\n<!-- /table -->\nafter <!-- table: letter -->\n")
    arguments = ["--root", str(tmp_path), "--results", str(tmp_path / "results")]
    with pytest.raises(SystemExit, match="out of date"):
        tables.main([*arguments, "--check"])
    assert "old" in page.read_text()
    tables.main(arguments)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after <!-- table: letter -->\n")
    assert "old" not in text
    assert "| one (2000) | **0.100** | 0.200 |" in text
    assert "| **mean rank** | 1.50 | 1.50 |" in text
    assert "1 of 2" in text
    tables.main([*arguments, "--check"])


def test_table_without_a_result_stays_and_an_unknown_one_is_refused(tmp_path):
    text = "<!-- table: letter -->\nkept\n<!-- /table -->"
    assert tables.render(text, tmp_path) == text
    with pytest.raises(ValueError, match="no table 'other'"):
        tables.render("<!-- table: other -->\n<!-- /table -->", tmp_path)


def test_table_of_a_result_without_a_column_stays_and_says_so(tmp_path, capsys):
    results.write("letter", {"cells": {"kproba": {"log_loss": 0.1}}}, tmp_path)
    text = "<!-- table: letter -->\nkept\n<!-- /table -->"
    assert tables.render(text, tmp_path) == text
    assert "letter.json has no 'error'" in capsys.readouterr().err


def test_headline_ranks_the_methods_and_has_no_stamp(tmp_path):
    results.write("quality", quality_payload(), tmp_path)
    text = tables.render("<!-- table: headline -->\n<!-- /table -->", tmp_path)
    assert "2 real datasets" in text and "kproba 1.5, SVC 1.5, nystroem 3.0" in text
    assert "commit" not in text


def test_pictures_are_drawn_and_check_tells_stale_ones(tmp_path):
    results.write("quality", quality_payload(), tmp_path)
    arguments = ["--results", str(tmp_path)]
    with pytest.raises(SystemExit, match=r"out of date: quality_log_loss.svg, quality_seconds.svg"):
        pictures.main([*arguments, "--check"])
    pictures.main(arguments)
    pictures.main([*arguments, "--check"])
    text = (tmp_path / "quality_log_loss.svg").read_text(encoding="utf-8")
    assert text.index(">one<") < text.index(">two<")  # where kproba leads furthest is on top
    ElementTree.fromstring(text)


def test_pictures_are_those_of_the_results():
    pictures.main(["--check"])


def test_marks_stand_where_their_values_are():
    axis = dots.Axis("x", 0.1, 10, (0.1, 1, 10), reference=1)
    ends = [axis.place(value) for value in (0.1, 10)]
    assert axis.place(1) == pytest.approx(np.mean(ends))  # a logarithmic axis
    assert [axis.place(value) for value in (0.01, 100)] == ends
    assert [axis.beyond(value) for value in (0.01, 0.1, 10, 100)] == ["below", "", "", "above"]


def test_a_picture_escapes_names_and_leaves_out_missing_values():
    rows = {"a_b": {"<x>": 1.0, "y": 2.0}, "c": {"y": 100.0}}
    text = dots.plot("T & U", rows, {"<x>": "<x>", "y": "y"}, dots.Axis("label", 0.1, 10, (0.1, 1, 10), 1))
    marks = [each.get("fill") for each in ElementTree.fromstring(text).iter() if each.get("class") == "marks"]
    assert marks.count("#0072B2") == 2 and marks.count("#D55E00") == 3  # one of them in the legend
    assert "T &amp; U" in text and ">a b<" in text


def test_the_footer_names_the_commits_of_cells_that_were_measured_earlier():
    stamp = results.stamp() | {"commit": "0123456789ab"}
    cells = {"a": {"commit": "0123456789ab"}, "b": {"c": {"commit": "ba9876543210"}}}
    assert "commit 0123456789ab;" in tables.footer({"stamp": stamp, "cells": {"a": cells["a"]}})
    assert "commit 0123456789ab (some cells: ba9876543210);" in tables.footer({"stamp": stamp, "cells": cells})
    parts = {"first": "0123456789ab", "second": "ffffffffffff (half), 0123456789ab (the rest)"}
    assert "(some cells: ffffffffffff);" in tables.footer({"stamp": stamp, "commits": parts})


def test_every_table_renders(tmp_path):
    quality_numbers = {"log_loss": 0.1, "error": 0.01, "calibration_error": 0.002, "fit_seconds": 12.0}
    payloads = {
        "letter": {"cells": {"kproba": quality_numbers}, "time_ratios": {"kproba": 1.0}},
        "fit_floor": {"cells": {"float64": {"seconds": {"floor": 1.0, "rkhs": 1.2}, "ratios": {"rkhs": 1.2}}}},
        "predict_floor": {
            "cells": {
                "gaussian float64": {
                    "rows_per_second": {"model": 1e5, "floor, all rows": 1.2e5},
                    "ratio": 1.2,
                }
            }
        },
        "memory": {"cells": {"clip/1000/10000": {"extra_bytes": 2**25, "in_b_squared_8": 4.2, "over_allowance": 0.4}}},
        "centers": {"cells": {"letter/auto": {**quality_numbers, "b": 2594}}},
    }
    for name, payload in payloads.items():
        results.write(name, payload, tmp_path)
        rendered = tables.render(f"<!-- table: {name} -->\n<!-- /table -->", tmp_path)
        header = rendered.splitlines()[2]
        assert all(line.count("|") == header.count("|") for line in rendered.splitlines() if line.startswith("|"))
        assert rendered.count("\n|") == 3 + (name == "fit_floor")


@pytest.fixture
def data_dir(tmp_path):
    """Three easy classes under the names of real sets."""
    random = np.random.RandomState(0)
    y = np.arange(400) % 3
    X = random.standard_normal((400, 3)) + 3.0 * np.eye(3)[y]
    for name in ("letter", "pima"):
        np.savez(tmp_path / f"{name}.npz", X=X, y=np.array(list("ABC"))[y], is_train=np.arange(400) < 300)
    return tmp_path


SMALL_RUNS = {
    "onnx_graphs": ["--sets", "iris", "pima", "--repeats", "1"],
    "klr_letter": ["--rows", "150", "--centers", "40", "--repeats", "1"],
    "likelihood_seconds": ["--sets", "letter", "--rows", "150"],
    "klr_loo": ["--rows", "40", "--sets", "pima"],
    "more_rows": ["--sets", "pima", "--rows", "120", "--rivals", "kproba", "--million", "300"],
    "copies": ["--seeds", "1", "--cases", "3,000 rows in 144 cells", "noise, 300 rows twice"],
    "more_splits": [
        "--small",
        "pima",
        "letter",
        "--small-seeds",
        "0",
        "1",
        "--large",
        "--rivals",
        "kproba",
        "svc_untuned",
    ],
    "loo_trust": ["--refit-rows", "15", "--train", "110", "--splits", "1", "--sets", "pima"],
    "ivm_search": ["--quick", "--sets", "pima"],
    "ivm_svc": ["--sets", "pima", "--rows", "150", "--repeats", "1"],
    "surface_floor": ["--rows", "3000", "--repeats", "1"],
    "surface_centers": ["--sets", "pima", "--centers", "5", "20", "--seeds", "1"],
    "family": ["--sets", "pima", "letter", "--repeats", "1"],
    "reject": ["--sets", "pima", "--splits", "2"],
    "random_problems": ["--problems", "20"],
    "command": ["--sets", "pima", "--splits", "1", "--only", "kproba LSPC", "logistic regression"],
}


MANY_ROWS = ("out_of_core", "scaling", "cluster", "interruptions", "command_stream", "time_of_rows")


def in_this_process(module, task, threads):
    """A task as its process would answer it: a new process for each would mostly import modules."""
    benchmark = import_module(f"benchmarks.{module}")
    run = benchmark.command if module == "command_stream" else benchmark.TASKS[task["what"]]
    return json.loads(json.dumps(run(task | {"threads": threads})))


@pytest.mark.parametrize("name", MANY_ROWS)
def test_quick_run_of_many_rows_writes_what_its_table_shows(name, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("distributed")
    if name not in ("cluster", "interruptions"):  # those have processes to kill
        monkeypatch.setattr(many_rows, "in_fresh_process", in_this_process)
    threads = "2" if name == "cluster" else "1"  # which are workers there; threads of BLAS crawl beside other tests
    own = ["--rivals", "kproba"] if name == "time_of_rows" else []  # the others need not be installed
    import_module(f"benchmarks.{name}").main(["--quick", "--threads", threads, "--out", str(tmp_path), *own])
    rendered = tables.render(f"<!-- table: {name} -->\n<!-- /table -->", tmp_path)
    assert rendered.count("\n|") > 3
    if name == "interruptions":
        assert results.read(name, tmp_path)["identical"]
    if name == "cluster":
        assert results.read(name, tmp_path)["differences"]["a worker killed and undisturbed"] < 1e-8


def test_fuzzing_adds_up_its_seeds_and_goes_on_where_it_was(tmp_path):
    done = {"inputs": 30, "refused": 28, "predicts": 1, "violations": 1, "slowest_s": 5.0}
    (tmp_path / "r1.json").write_text(json.dumps(done))
    options = ["--plain", "--runs", "30", "--seeds", "2", "--folder", str(tmp_path), "--out", str(tmp_path)]
    fuzzing.main(options)
    found = results.read("fuzzing", tmp_path)
    assert found["inputs"] == 60 and found["violations"] == 1 and found["slowest_s"] == 5.0
    assert sum(found[kind] for kind in fuzzing.KINDS) == 60 and not found["guided"]
    assert "| 60 |" in tables.render("<!-- table: fuzzing -->\n<!-- /table -->", tmp_path)


def test_blocks_of_rows_depend_on_their_number_alone(tmp_path):
    pytest.importorskip("pyarrow")
    with many_rows.generated_files(60_000, tmp_path) as folder:
        (chunk,) = open_rows(folder, target="label").chunks()
    expected = [many_rows.block(0), many_rows.block(1, 10_000)]
    np.testing.assert_array_equal(chunk.X, np.concatenate([X for X, _ in expected]))
    np.testing.assert_array_equal(chunk.y, np.concatenate([y for _, y in expected]))
    assert [path.name for path in tmp_path.iterdir()] == ["rows-60000"]


def test_exponent_is_the_slope_of_the_logarithms():
    assert scaling.exponent([1, 10, 100], [5.0, 500.0, 50_000.0]) == pytest.approx(2.0)
    assert scaling.exponent([7], [1.0]) is None


def test_rows_summed_again_are_those_between_the_checkpoint_and_the_kill():
    attempts = [{"from_row": 0, "to_row": 40}, {"from_row": 30, "to_row": 70}, {"from_row": 70, "to_row": 100}]
    assert interruptions.repeated(attempts, [45.0, 60.0]) == 15.0


@pytest.mark.parametrize("name", SMALL_RUNS)
def test_small_run_writes_what_its_table_shows(name, data_dir):
    arguments = [*SMALL_RUNS[name], "--data-dir", str(data_dir), "--out", str(data_dir)]
    import_module(f"benchmarks.{name}").main(arguments)
    rendered = tables.render(f"<!-- table: {name} -->\n<!-- /table -->", data_dir)
    assert rendered.count("\n|") > 3


def test_all_centers_in_this_process(data_dir):
    """Every contender but LightGBM, which a test environment need not have."""
    data, kept, payload = all_centers.Data.load(data_dir, None), data_dir / "chosen.pickle", {"cells": {}}
    for name in ("all", "default", *all_centers.GIVEN_OURS):
        payload["cells"][name] = cell = all_centers.point(name, data, kept)
        assert cell["error"] < 0.2 and cell["peak_bytes"] > 0
    payload |= {name: all_centers.point(name, data, kept) for name in ("ridge", "leverage")}
    assert len(payload["ridge"]) == 3 and payload["leverage"]["cells"]["float32"]["rms"] < 1e-4
    assert payload["leverage"]["cells"]["128 probes"]["rms"] < payload["leverage"]["cells"]["8 probes"]["rms"]
    results.write("all_centers", payload, data_dir)
    for name, rows in (("all_centers", 7), ("leverage_error", 7)):
        assert tables.render(f"<!-- table: {name} -->\n<!-- /table -->", data_dir).count("\n|") == 2 + rows


def test_rivals_after_their_papers_solve_what_they_should():
    random = np.random.default_rng(0)
    X, kernel = random.standard_normal((150, 3)), Laplacian(width=1.0)
    Y = random.standard_normal((150, 2))
    coef = next(islice(eigenpro.epochs(kernel, X, Y), 300, None))
    assert np.abs(kernel.gram(X) @ coef - Y).max() < 0.01  # it interpolates in the end
    centers, coef = falkon.solve(kernel, X, Y, 1e-2, 60)
    Phi, K = kernel(X, centers), kernel.gram(centers)
    expected = np.linalg.solve(Phi.T @ Phi + 1.5 * K, Phi.T @ Y)
    assert np.abs(Phi @ (coef - expected)).max() < 1e-3


class TestRandomProblems:
    def test_a_seed_is_a_problem(self):
        one, other = (random_problems.Drawing(7).problem() for _ in range(2))
        assert one.describe() == other.describe()
        np.testing.assert_array_equal(np.asarray(one.y), np.asarray(other.y))

    def test_goes_on_where_it_was(self, tmp_path, monkeypatch):
        monkeypatch.setattr(random_problems, "run", lambda problem: random_problems.Outcome("fitted", "", [], 0.1))
        whole = random_problems.measure(30, tmp_path)
        interrupted = iter([None] * 12 + [KeyboardInterrupt])

        def run(problem):
            if (stop := next(interrupted, None)) is not None:
                raise stop
            return random_problems.Outcome("fitted", "", [], 0.1)

        monkeypatch.setattr(random_problems, "run", run)
        with pytest.raises(KeyboardInterrupt):
            random_problems.measure(30, tmp_path / "other")
        assert results.read("random_problems", tmp_path / "other")["done"] == 12
        again = random_problems.measure(30, tmp_path / "other")
        assert again["done"] == 30 and again["outcomes"] == whole["outcomes"]

    @pytest.mark.parametrize(
        "broken, why",
        [
            (lambda X: np.full((len(X), 2), np.nan), "not finite"),
            (lambda X: np.full((len(X), 2), [1.5, -0.5]), "outside"),
            (lambda X: np.full((len(X), 2), [0.5, 0.5 + 1e-9]), "sum to one"),
            (lambda X: np.full((len(X), 2), [0.9, 0.1]), "argmax"),
        ],
    )
    def test_what_no_model_may_do_is_noticed(self, broken, why, monkeypatch):
        X, y = np.arange(6.0)[:, None], np.arange(6) // 3
        model = LSPC(kernel="gaussian", width=1.0, ridge=0.1)
        problem = random_problems.Problem(model, X, y, None, None, "fit")
        assert random_problems.run(problem).kind == "fitted"
        monkeypatch.setattr(model, "predict_proba", broken)
        monkeypatch.setattr(model, "predict", lambda X: np.ones(len(X), dtype=int))
        outcome = random_problems.run(problem)
        assert outcome.kind == "failed" and why in outcome.why

    def test_errors_have_to_name_the_argument(self):
        model = LSPC()
        assert random_problems.named_argument("ridge=-1 must be positive", model) == "ridge"
        assert random_problems.named_argument("array must not contain infs or NaNs", model) == ""


def test_command_gets_words_dates_and_gaps():
    names = np.array(["size", "date", "day", "period"])
    X, flags = np.array([[1.0, 0, 0, 0], [np.nan, 0, 0, 0.5], [2.0, 0, 0, 1]]), np.array([True, False, False, False])
    extra = {"categories": np.array(["small|big", "", "", ""])}
    frame = command.frame_of(RealSet("electricity", X, np.array(list("aba")), names, None, flags, extra))
    assert list(frame["size"].fillna("")) == ["big", "", "c2"]
    assert list(frame["time"]) == ["1996-05-07 00:00", "1996-05-07 00:30", "1996-05-07 01:00"]
    assert list(frame.columns) == ["size", "time", "class"]
    soil = pd.DataFrame(
        {"Wilderness_Area1": [1, 0], "Wilderness_Area2": [0, 1], "Soil_Type1": [0, 1], "Soil_Type2": [1, 0]}
    )
    assert command.with_soil_in_words(soil).to_numpy().tolist() == [
        ["Wilderness_Area1", "Soil_Type2"],
        ["Wilderness_Area2", "Soil_Type1"],
    ]


def test_first_minutes_of_this_interpreter(tmp_path):
    """What a fresh environment is measured by, on the one that is there."""
    payload = {
        "demo": {"median_seconds": 2.0, "mean_cpu_seconds": 3.0},
        "limits": {"demo_seconds": 30.0, "import_ratio": 1.5},
    }
    payload |= {"imports": first_minutes.imports(Path(sys.executable), 1, ("json", "sklearn"))}
    times = payload["imports"]["seconds"]
    assert payload["imports"]["ratios"]["wall"] == times["json"]["wall"] / times["sklearn"]["wall"] < 1
    times["kproba"] = times["json"]
    results.write("first_minutes", payload, tmp_path)
    assert "| `kproba demo`, seconds | 2.00 | 30 |" in tables.render(
        "<!-- table: first_minutes -->\n<!-- /table -->", tmp_path
    )


def test_guard_lets_nobody_out(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(first_minutes.GUARD)
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    for reach in ("socket.create_connection(('127.0.0.1', 9))", "socket.getaddrinfo('localhost', 9)"):
        found = subprocess.run(
            [sys.executable, "-c", f"import socket; {reach}"], env=env, capture_output=True, text=True
        )
        assert "there is no network here" in found.stderr


def test_page_has_every_table():
    pages = "".join((results.ROOT / page).read_text(encoding="utf-8") for page in tables.PAGES)
    assert {name for _, name, _ in tables.MARKED.findall(pages)} == tables.NAMES


def test_split_drops_small_classes_for_everybody():
    y = np.repeat(["a", "b", "rare"], [60, 50, 10])
    table = SimpleNamespace(X=np.arange(120.0)[:, None], y=y, is_categorical=None)
    data = tables_quality.split(table, seed=0)
    assert data.dropped == ["rare"]
    assert set(data.y_train) == set(data.y_test) == {0, 1}
    assert len(data.y_train) == tables_quality.train_size(110)
    assert not set(data.X_train.ravel()) & set(data.X_test.ravel())
    assert max(data.X_train.max(), data.X_test.max()) < 110


def test_one_hot_uses_one_column_for_two_values_and_medians_for_missing_numbers():
    X = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 3.0], [0.0, 2.0, np.nan]])
    prepare = rivals.OneHot(X, [True, True, False])
    expected = [[0, 1, 0, 0, 1], [1, 0, 1, 0, 3], [0, 0, 0, 1, 2]]
    np.testing.assert_array_equal(prepare(X), expected)


@pytest.mark.parametrize("name", MODULES)
def test_module_imports_and_has_main(name):
    assert callable(import_module(f"benchmarks.{name}").main)


@pytest.mark.parametrize("key", rivals.EVERYONE)
def test_rival_has_a_name_and_a_fit(key):
    rival = rivals.get(key)
    assert isinstance(rival.name, str)
    assert callable(rival.fit)


@pytest.mark.parametrize("key", ["kproba", "svc_untuned", "lightgbm", "catboost"])
def test_rival_gives_probabilities_of_a_mixed_table(key):
    if key in ("lightgbm", "catboost"):
        pytest.importorskip(key)
        pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), rng.integers(0, 3, 60)])
    X[0, 0] = X[1, 1] = np.nan
    y = np.arange(60) % 2
    cell = tables_quality.run_cell(rivals.get(key), tables_quality.Split(X, y, X, y, np.array([False, True]), []))
    assert 0 < cell["log_loss"] < 2
    assert 0 <= cell["calibration_error"] <= 1


def test_tags(tmp_path):
    """A small set stands in; the table says on how many tags the rivals were timed."""
    random = np.random.default_rng(0)
    X = (random.random((240, 30)) < 0.3).astype(np.float32)
    Y = (X @ random.standard_normal((30, 8)) + random.standard_normal((240, 8)) > 1.0).astype(np.int8)
    Y[:, 7] = 0
    np.savez(tmp_path / "ml_corel5k.npz", X=X, y=Y, is_train=np.arange(240) < 160)
    import_module("benchmarks.tags").main(["--data-dir", str(tmp_path), "--out", str(tmp_path), "--tags", "2"])
    found = results.read("tags", tmp_path)
    assert found["tags"] == 8 and len(found["drawn"]) == 2 and found["cells"]["kproba"]["both_halves"]["tags"] == 7
    svc = found["cells"]["svc"]
    assert np.isclose(svc["of_all_tags"]["seconds"], 4 * (svc["fit_seconds"] + svc["predict_seconds"]), rtol=1e-3)
    assert tables.tags(found).count("|") > 40


def test_table_of_images():
    cells = {"LSPC-new": {"mean": 80.0, "std": 1.0, "best": True}, "KLR": {"mean": 70.0, "std": 1.0, "best": False}}
    methods = {name: {"average_auc": 75.0, "training_seconds": {"mean": 0.5}} for name in cells}
    found = {"tags": ["sky"], "auc_percent": {"sky": cells}, "methods": methods, "plain_seconds": 30.0, "trials": 2}
    found |= {"in_place_of_surf": "colours", "not_better": {"KLR": []}, "default_auc": 90.0}
    text = tables.images_2011({"repeats": 2, "datasets": {"ml_tiny": found}})
    assert "| tiny: sky | **80.0 (1.0)** | 70.0 (1.0) |" in text and "| 60.0 | 60.0 |" in text
    assert "colours in the place of SURF's words; 2 draws" in text and "LSPC-new is better than both others" in text
    found["not_better"] = {"KLR": ["sky"]}
    text = tables.images_2011({"repeats": 2, "datasets": {"ml_tiny": found}})
    assert "LSPC-new is no better than KLR on 1 of 1 tags; `LSPC()` has a mean AUC of 90.0" in text


def test_oversubscription(tmp_path, monkeypatch):
    """On few rows, by threads alone: processes take seconds to start."""
    module = import_module("benchmarks.oversubscription")
    monkeypatch.setattr(module, "BACKENDS", ("threading",))
    monkeypatch.setattr(module, "load_breast_cancer", lambda **_: (np.eye(40, 2), np.arange(40) % 2))
    module.main(["--out", str(tmp_path), "--repeats", "1", "--rows", "50"])
    found = results.read("oversubscription", tmp_path)
    found["cells"] = {"loky": found["cells"]["threading"], **found["cells"]}
    assert "| one fit of 50 rows, parameters given |" in tables.oversubscription(found) and found["stamp"]["cores"] >= 1
