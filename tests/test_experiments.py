"""The papers' experiments run end to end in their quick form, and say what the papers say."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def experiment(monkeypatch):
    """Imports experiments.NAME whether or not pytest was started as a module."""
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"experiments.{name}")


def check_stamp(content):
    wanted = {"date", "python", "numpy", "scipy", "scikit-learn", "kproba", "commit", "cpu", "cores"}
    assert wanted <= set(content["stamp"])


@pytest.fixture(scope="module")
def toy_2010(tmp_path_factory):
    """The folder of one quick run."""
    folder = tmp_path_factory.mktemp("toy_2010")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        importlib.import_module("experiments.toy_2010").main(["--quick", "--out", str(folder)])
    return folder


def test_toy_2010(toy_2010):
    content = json.loads((toy_2010 / "toy_2010.json").read_text())
    check_stamp(content)
    assert {p.name for p in toy_2010.glob("*.png")} == {f"toy_2010_{k}.png" for k in ("fig4", "fig5", "fig6", "path")}
    methods = {name: {key: v["mean"] for key, v in row.items()} for name, row in content["methods"].items()}
    assert set(methods) == {"truth", "LSPC", "LSPC(full)", "LSPC() default", "KLR"}
    for row in methods.values():
        assert row["squared_error_to_truth"] < 0.06
        assert row["error_percent"] < methods["truth"]["error_percent"] + 4.0
        assert row["log_loss"] >= methods["truth"]["log_loss"] - 0.02


def test_toy_2010_far_from_the_data(toy_2010):
    """2010 Sec. 3.1: rounding makes one class certain far away; the default stays between the prior and the truth."""
    far = json.loads((toy_2010 / "toy_2010.json").read_text())["far_points"][0]
    assert max(far["LSPC"]) > 0.95
    assert 0.5 < far["LSPC() default"][2] < 0.8 and min(far["LSPC() default"]) > 0.05


def test_toy_2011(experiment, tmp_path):
    """2011 Sec. 3: many parameters are negative, few outputs are; rounding parameters distorts the curve."""
    experiment("toy_2011").main(["--quick", "--out", str(tmp_path)])
    content = json.loads((tmp_path / "toy_2011.json").read_text())
    check_stamp(content)
    assert (tmp_path / "toy_2011_fig1.png").stat().st_size > 10_000
    methods = {name: {key: v["mean"] for key, v in row.items()} for name, row in content["methods"].items()}
    assert methods["LSPC"]["squared_error_to_truth"] > 5 * methods["LSPC-new"]["squared_error_to_truth"]
    assert methods["LSPC'"]["percent_of_parameters_negative"] > 20
    assert 0 < methods["LSPC'"]["percent_of_outputs_negative"] < 20
    assert methods["LSPC"]["percent_of_parameters_negative"] == 0
    for name in ("LSPC-new", "LSPC", "LSPC() default"):
        assert methods[name]["percent_of_outputs_negative"] == 0


@pytest.fixture
def letters(tmp_path):
    """Four classes that are easy to tell apart, under the name of a real set."""
    random = np.random.RandomState(0)
    y = np.repeat(np.array(list("ABCD")), 200)
    X = random.standard_normal((800, 3)) + 4.0 * np.eye(4, 3)[np.repeat(np.arange(4), 200)]
    np.savez(tmp_path / "letter.npz", X=X, y=y)
    return tmp_path


def test_size_2010(experiment, letters):
    experiment("size_2010").main(
        ["--quick", "--data-dir", str(letters), "--out", str(letters), "--datasets", "letter", "--workers", "2"]
    )
    content = json.loads((letters / "size_2010.json").read_text())
    check_stamp(content)
    found = content["datasets"]["letter"]
    assert [point["n"] for point in found["fig7"]] == [100, 200]
    assert [point["c"] for point in found["fig8"]] == [2, 4]
    for point in found["fig7"] + found["fig8"]:
        for row in point["methods"].values():
            assert row["error_percent"]["mean"] < 20
            assert row["training_seconds"]["mean"] >= 0
    assert sum(content["commits"].values()) == 3  # of two points in each figure, one is in both
    assert (letters / "fig7.png").exists() and (letters / "fig8.png").exists()


def test_size_2010_draws_disjoint_rows(experiment, letters):
    pool = experiment("size_2010").Pool("letter", letters)
    X, y, X_test, y_test = pool.draw(n=10, c=3, seed=0)
    assert np.bincount(y).tolist() == [3, 3, 3]
    assert np.bincount(y_test).tolist() == [100, 100, 100]
    assert not set(map(tuple, X)) & set(map(tuple, X_test))


def test_size_2010_freezes_what_was_chosen(experiment, letters):
    """Training with what was chosen gives the chosen model, and plain L-BFGS the same KLR."""
    from benchmarks.rivals.plain_klr import PlainKLR

    size_2010 = experiment("size_2010")
    X, y, X_test, _ = size_2010.Pool("letter", letters).draw(n=80, c=4, seed=0)
    for make in size_2010.METHODS.values():
        chosen = make(len(y), 0).fit(X, y)
        again = size_2010.frozen(chosen).fit(X, y).predict_proba(X_test)
        np.testing.assert_allclose(again, chosen.predict_proba(X_test), atol=1e-6)
    plain = PlainKLR(width=chosen.width_, ridge=chosen.ridge_).fit(X, y)
    assert (plain.predict(X_test) == chosen.predict(X_test)).mean() > 0.98


def test_similarity_2010(experiment, letters):
    """A matrix for every number of rows, and a test against the identity."""
    options = ["--quick", "--data-dir", str(letters), "--out", str(letters), "--datasets", "letter"]
    experiment("similarity_2010").main(options)
    content = json.loads((letters / "similarity_2010.json").read_text())
    check_stamp(content)
    cells = content["datasets"]["letter"]["2"]
    assert set(cells) == {"identity", "similar", "shuffled"}
    assert 0 <= cells["similar"]["log_loss"]["paired_p_against_identity"] <= 1


def test_digits_2010(experiment, letters):
    """Every variant is judged on rows that it has not seen."""
    (letters / "letter.npz").rename(letters / "usps.npz")
    module = experiment("digits_2010")
    module.main(["--quick", "--data-dir", str(letters), "--out", str(letters), "--datasets", "usps"])
    content = json.loads((letters / "digits_2010.json").read_text())
    check_stamp(content)
    variants = content["datasets"]["usps"]
    assert set(variants) == set(module.VARIANTS) and not list(letters.glob(".digits*"))
    assert variants["LSPC"]["error_percent"]["mean"] < 20


def test_ivm_2001(experiment, tmp_path):
    """The textbook's mixture stands in by one of its kind: rows, and the means that they are drawn around."""
    from kproba.data.toys import mixtures_2001

    toy = mixtures_2001(n_per_class=100, random_state=0)
    means = np.concatenate([each.means for each in toy.conditionals])
    np.savez(tmp_path / "esl_mixture.npz", X=toy.X, y=toy.y, means=means)
    experiment("ivm_2001").main(["--quick", "--data-dir", str(tmp_path), "--out", str(tmp_path)])
    content = json.loads((tmp_path / "ivm_2001.json").read_text())
    check_stamp(content)
    assert content["two_classes"]["test_error"] < content["two_classes"]["bayes_error"] + 0.08
    assert content["two_classes"]["import_points"] < content["svm"]["support_vectors"]
    assert content["two_classes"]["new_search"]["lambda_2001"] == content["two_classes"]["lambda_2001"]
    assert content["three_classes"]["test_error"] < content["three_classes"]["bayes_error"] + 0.1
    assert {p.name for p in tmp_path.glob("*.png")} == {f"ivm_fig{k}.png" for k in (1, 2, 3, 4)}


def test_textbook_28(experiment, tmp_path):
    """Both methods come close to the truth, and to each other."""
    experiment("textbook_28").main(["--quick", "--out", str(tmp_path)])
    content = json.loads((tmp_path / "textbook_28.json").read_text())
    check_stamp(content)
    found = {name: {key: v["mean"] for key, v in row.items()} for name, row in content["methods"].items()}
    for name in ("logistic regression", "LSPC"):
        assert found[name]["absolute_error_to_truth"] < 0.06
        assert found[name]["error_percent"] < found["truth"]["error_percent"] + 3.0
    assert found["both"]["absolute_difference"] < 0.06
    assert {p.name for p in tmp_path.glob("*.png")} == {f"textbook_fig28_{k}.png" for k in (3, 4, 6)}


def test_run_hands_the_options_on(experiment, monkeypatch):
    run, seen = experiment("run"), []
    monkeypatch.setattr(run.reproduction, "as_text", lambda folder: "")
    monkeypatch.setattr(run, "EXPERIMENTS", {"one": seen.append, "two": seen.append})
    run.main(["--quick", "--data-dir", "somewhere"])
    assert seen == [["--quick", "--data-dir", "somewhere"]] * 2
    with pytest.raises(SystemExit):
        run.main(["--nonesuch"])


def test_reproduction_says_what_is_there(experiment, toy_2010):
    """A row for every claim of a result, and one for every result that is missing."""
    reproduction = experiment("reproduction")
    rows = {row.item: row for row in reproduction.rows(toy_2010)}
    assert rows["2010 Figs 4 and 5"].status == "agrees" and "LSPC(full)" in rows["2010 Figs 4 and 5"].ours
    assert rows["boosting_2013"].status == "not run: boosting_2013"
    table = reproduction.as_markdown(toy_2010).splitlines()
    assert len(table) == 2 + len(reproduction.rows(toy_2010)) and all(line.startswith("| ") for line in table)
    assert "toy_2010: commit" in reproduction.stamps(toy_2010)


def test_every_result_is_in_the_table(experiment):
    """The results of the repository are complete and from this version of the experiments."""
    statuses = [row.status for row in experiment("reproduction").rows()]
    assert not [status for status in statuses if status.startswith(("not run", "the results are"))]


def test_optimum_2013(experiment, tmp_path):
    from kproba.data.toys import clouds_2013

    toy = clouds_2013(60, spread=2.0, random_state=0)
    np.savez(tmp_path / "glass.npz", X=toy.X, y=toy.y)
    experiment("optimum_2013").main(["--quick", "--data-dir", str(tmp_path), "--out", str(tmp_path), "--sets", "glass"])
    content = json.loads((tmp_path / "optimum_2013.json").read_text())
    check_stamp(content)
    found = content["sets"]["glass"]["variants"]
    assert len(found) == 7 and all(cell["accuracy"]["mean"] > 50 for cell in found.values())


def test_skc_2013(experiment, tmp_path):
    """Two well-known sets stand in by generated ones; the paper's solvers stop short of the exact maximum."""
    from kproba.data.toys import clouds_2013

    for name, seed in (("pima", 0), ("glass", 1)):
        toy = clouds_2013(300, random_state=seed)
        np.savez(tmp_path / f"{name}.npz", X=toy.X, y=toy.y)
    options = ["--data-dir", str(tmp_path), "--out", str(tmp_path), "--sets", "pima", "glass"]
    experiment("skc_2013").main(["--quick", *options])
    content = json.loads((tmp_path / "skc_2013.json").read_text())
    check_stamp(content)
    for found in content["sets"].values():
        cells = found["methods"]
        assert cells["exact"]["shortfall"]["mean"] < 1e-8 < cells["swarm"]["shortfall"]["mean"]
        assert cells["exact"]["solver_seconds"]["mean"] < cells["swarm"]["fit_seconds"]["mean"]
        assert set(found["level_with_paper"]) == {"accuracy", "loss_log", "loss_surf"}
    sizes = json.loads((tmp_path / "skc_2013_sizes.json").read_text())
    best = sizes["true posterior"]["loss_log"]
    for cell in sizes["sizes"]["300 generated rows"]["methods"].values():
        assert cell["loss_log"] > best - 0.05 and 0 < cell["distance_to_truth"] < 0.5
    assert "SVM" in sizes["sizes"]["300 generated rows"]["methods"] and not list(tmp_path.glob(".skc*"))
    experiment("skc_2013").main(["--quick", *options, "--tables", "1", "--defaults"])
    again = json.loads((tmp_path / "skc_2013.json").read_text())
    assert set(again["commits"]) == {"paper's methods", "default"}
    for name, found in content["sets"].items():
        own = again["sets"][name]["methods"]
        assert own["swarm"] == found["methods"]["swarm"] and list(own) == list(found["methods"])
        assert own["exact, default"]["loss_log"] == found["methods"]["exact, default"]["loss_log"]


def test_boosting_2013(experiment, tmp_path):
    """Stages fit the residuals of those before them, so the loss on training rows grows with every one."""
    from kproba import Gaussian
    from kproba.data.toys import clouds_2013

    toy, module = clouds_2013(400, random_state=0), experiment("boosting_2013")
    np.savez(tmp_path / "magic.npz", X=toy.X, y=toy.y)
    module.main(["--quick", "--data-dir", str(tmp_path), "--out", str(tmp_path), "--sets", "magic"])
    content = json.loads((tmp_path / "boosting_2013.json").read_text())
    check_stamp(content)
    assert set(content["sets"]["magic"]["methods"]) > {"one stage", "boosted, rate 1"}
    Y = np.eye(2)[toy.y - toy.y.min()]
    outputs = module.staged(module.boost(toy.X, Y, Gaussian(width=2.0), 10, 1.0, 4, seed=0), toy.X)
    losses = [np.square(Y - output).sum() for output in outputs]
    assert all(np.diff(losses) < 0)
    np.testing.assert_allclose(outputs.sum(axis=2), 1.0, atol=1e-9)


def test_sgd_2010(experiment, tmp_path):
    experiment("sgd_2010").main(["--quick", "--out", str(tmp_path)])
    content = json.loads((tmp_path / "sgd_2010.json").read_text())
    check_stamp(content)
    assert set(content["paths"]) == {"shared", "of classes"}
    for path in (path for paths in content["paths"].values() for path in paths.values()):
        assert len(path["excess"]) == 4 and 0 < path["excess"][-1] < path["excess"][0]
    assert (tmp_path / "sgd_2010.png").exists()


def test_images_2011(experiment, tmp_path, monkeypatch):
    """Table 1 on a small set; an interrupted run goes on where it was."""
    random = np.random.RandomState(0)
    X = random.standard_normal((260, 4))
    Y = (X @ random.standard_normal((4, 3)) + 0.5 * random.standard_normal((260, 3)) > 0.5).astype(np.int8)
    np.savez(tmp_path / "ml_tiny.npz", X=X.astype(np.float32), y=Y, label_names=np.array(["sky", "sea", "sun"]))
    images = experiment("images_2011")
    options = ["--quick", "--data-dir", str(tmp_path), "--out", str(tmp_path), "--datasets", "ml_tiny"]
    with monkeypatch.context() as patch:
        patch.setattr(images, "summary", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            images.main(options)
    with monkeypatch.context() as patch:
        patch.setattr(images, "run_trial", lambda *_: 1 / 0)  # all trials are there already
        images.main(options)
    content = json.loads((tmp_path / "images_2011.json").read_text())
    check_stamp(content)
    assert sum(content["commits"].values()) == 2 and (tmp_path / "images_2011_draws.jsonl").exists()
    found = content["datasets"]["ml_tiny"]
    assert found["trials"] == 2 and found["tags"] == ["sky", "sea", "sun"] and found["test"] == 160
    for cells in found["auc_percent"].values():
        assert all(cell["mean"] > 75 for cell in cells.values()) and any(cell["best"] for cell in cells.values())
    assert set(found["not_better"]) == {"LSPC", "KLR"} and found["default_auc"] > 75
    assert found["in_place_of_surf"] == "columns of the set"


def test_draws_of_other_commits_count(experiment, tmp_path):
    """A later commit goes on where an earlier one stopped, and every draw names its own; other settings begin anew."""
    Trials = experiment("trials").Trials
    Trials("size", tmp_path, {"seed": 0}, "abc").add({"set": "letter", "number": 0})
    later = Trials("size", tmp_path, {"seed": 0}, "def")
    later.add({"set": "letter", "number": 1})
    again = Trials("size", tmp_path, {"seed": 0}, "def")
    assert again.commits == later.commits == {"abc": 1, "def": 1} and len(again.of("letter")) == 2
    assert not Trials("size", tmp_path, {"seed": 1}, "def").done
    Trials("small", tmp_path, {"commit": "abc"}).add({"set": "letter", "number": 0})
    assert not Trials("small", tmp_path, {"commit": "def"}).done


def test_trials_mark_what_is_comparable(experiment):
    spread = np.linspace(-2, 2, 30)
    values = {"a": 80 + spread, "b": 79.9 - spread, "c": 70 + spread}
    assert experiment("trials").comparable_to_best(values) == {"a", "b"}


def test_sound_2011(experiment, tmp_path):
    """Table 2 on a few short sequences of three tags."""
    random = np.random.RandomState(0)
    labels, lengths = np.arange(60) % 3, random.randint(4, 9, 60)
    frames = np.repeat(labels, lengths)[:, None] + 0.7 * random.standard_normal((lengths.sum(), 2))
    np.savez(tmp_path / "esc50_mfcc.npz", X=frames.astype(np.float32), y=labels, lengths=lengths)
    experiment("sound_2011").main(["--quick", "--data-dir", str(tmp_path), "--out", str(tmp_path)])
    content = json.loads((tmp_path / "sound_2011.json").read_text())
    check_stamp(content)
    assert not list(tmp_path.glob(".sound*"))
    assert (content["training"], content["test"], content["tags"], content["repeats"]) == (30, 30, 3, 2)
    assert all(cell["mean"] > 75 for cell in content["methods"].values())
    assert any(cell["best"] for cell in content["methods"].values())
