"""Real sets: the folder, the variable, OpenML as the last resort, and errors that say what to do."""

import numpy as np
import pytest

from kproba.data import real
from kproba.data.real import load


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv("KPROBA_DATA", raising=False)


@pytest.fixture
def folder(tmp_path):
    np.savez(
        tmp_path / "tiny.npz",
        X=np.arange(6.0).reshape(3, 2),
        y=np.array(["a", "b", "a"]),
        feature_names=np.array(["u", "v"]),
        is_train=np.array([True, True, False]),
        is_categorical=np.array([False, True]),
        groups=np.array([1, 2, 2]),
    )
    np.savez(tmp_path / "bare.npz", X=np.eye(2), y=np.arange(2))
    np.savez(tmp_path / "no_labels.npz", X=np.eye(2))
    return tmp_path


def test_reads_what_is_there(folder):
    tiny = load("tiny", folder)
    assert tiny.name == "tiny"
    assert tiny.X.shape == (3, 2) and tiny.y.tolist() == ["a", "b", "a"]
    assert tiny.feature_names.tolist() == ["u", "v"]
    assert tiny.is_train.tolist() == [True, True, False]
    assert tiny.is_categorical.tolist() == [False, True]
    assert tiny.extra["groups"].tolist() == [1, 2, 2]


def test_what_is_not_there_is_none(folder):
    bare = load("bare", str(folder))
    assert bare.feature_names is None and bare.is_train is None and bare.is_categorical is None
    assert bare.extra == {}


def test_environment_variable_and_its_rank(folder, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("other")
    np.savez(other / "tiny.npz", X=np.zeros((1, 1)), y=np.zeros(1))
    monkeypatch.setenv("KPROBA_DATA", str(other))
    assert load("tiny").X.shape == (1, 1)
    assert load("tiny", folder).X.shape == (3, 2)


@pytest.mark.parametrize("where", ["there", "nowhere"])
def test_missing_file_says_what_to_do(folder, where):
    place = folder if where == "there" else folder / "nowhere"
    with pytest.raises(FileNotFoundError, match="--data-dir") as caught:
        load("letter", place)
    assert "letter.npz" in str(caught.value) and "KPROBA_DATA" in str(caught.value)
    assert ("tiny" in str(caught.value)) == (where == "there")


def test_file_without_labels(folder):
    with pytest.raises(ValueError, match="no array y"):
        load("no_labels", folder)


def test_pickles_are_refused(folder):
    np.savez(folder / "objects.npz", X=np.array([{}], dtype=object), y=np.zeros(1))
    with pytest.raises(ValueError, match="allow_pickle"):
        load("objects", folder)


def test_name_unknown_to_openml():
    with pytest.raises(ValueError, match="'nonesuch' is not known on OpenML") as caught:
        load("nonesuch")
    assert "--data-dir" in str(caught.value) and "KPROBA_DATA" in str(caught.value)


class FakeBunch:
    data, target, feature_names = np.eye(2), np.arange(2), ["u", "v"]


def test_openml_is_asked_by_number(monkeypatch):
    asked = {}

    def fetch(**given):
        asked.update(given)
        return FakeBunch

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    letter = load("letter")
    assert asked["data_id"] == real.OPENML["letter"]
    assert letter.X.shape == (2, 2) and letter.feature_names.tolist() == ["u", "v"]


def test_no_network_says_what_to_do(monkeypatch):
    def fetch(**given):
        raise OSError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(OSError, match=r"no route.*--data-dir"):
        load("letter")
