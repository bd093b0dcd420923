"""Sets of labels by hand: few rows, and every number worked out."""

import re
import warnings

import numpy as np
import pytest

from kproba import conformal_sets
from kproba.data.labels import label_codes
from kproba.decisions.conformal import _quantile, _scores, check_options, sets_from_codes
from kproba.exceptions import FewRowsWarning

PROBA = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.25, 0.25, 0.5]])


def test_scores():
    np.testing.assert_array_equal(_scores(PROBA, "lac", None), 1.0 - PROBA)
    np.testing.assert_allclose(_scores(PROBA, "aps", None), [[0.5, 0.8, 1.0], [1.0, 0.9, 0.7], [0.75, 1.0, 0.5]])


def test_all_labels_have_the_probability_one():
    proba = np.random.default_rng(0).dirichlet(np.ones(5), size=200).astype(np.float32).astype(np.float64)
    assert (_scores(proba, "aps", None).max(axis=1) == 1.0).all()
    np.testing.assert_array_equal(_scores(np.zeros((1, 2)), "aps", None), 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_quantile_of_one_holds_every_label(dtype):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1.0, 600)
    proba, wrong = np.c_[p, 1.0 - p], (rng.random(600) > p).astype(int)
    assert conformal_sets(proba[:300], wrong[:300], proba[300:].astype(dtype), 0.99, method="aps").all()


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_single_and_double_precision_together(method):
    proba = np.tile([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]], (50, 1))
    y, single = np.tile([1, 0], 50), proba.astype(np.float32)
    expected = conformal_sets(proba, y, proba, 0.9, labels=range(3), method=method)
    assert expected[np.arange(100), y].mean() == 1.0
    for known, new in ((proba, single), (single, proba), (single, single)):
        found = conformal_sets(known, y, new, 0.9, labels=range(3), method=method)
        np.testing.assert_array_equal(found, expected)


def test_equally_probable_labels_come_in_their_order():
    found = _scores(np.tile([0.01, 0.03], 25)[None], "aps", None)[0]
    np.testing.assert_allclose(found[1::2], 0.03 * np.arange(1, 26))
    np.testing.assert_allclose(found[::2], 0.75 + 0.01 * np.arange(1, 26))


def test_random_shares_are_one_a_row():
    shares = np.random.RandomState(3).uniform(size=(3, 1))
    found = _scores(PROBA, "aps", np.random.RandomState(3))
    np.testing.assert_allclose(found, _scores(PROBA, "aps", None) - shares * PROBA)


@pytest.mark.parametrize(
    ("coverage", "expected"),
    [(0.1, 0.1), (0.2, 0.1), (0.21, 0.2), (0.5, 0.3), (0.6, 0.3), (0.8, 0.4), (0.81, np.inf), (0.99, np.inf)],
)
def test_quantile(coverage, expected):
    assert _quantile(np.array([0.4, 0.1, 0.3, 0.2]), coverage) == expected


def test_quantile_of_whole_numbers_but_for_rounding():
    own = np.arange(1.0, 10.0)
    assert _quantile(own, 0.7 + 1e-12) == 7.0  # 10 · 0.7 is 7, not 8
    assert _quantile(own, 0.7 + 1e-9) == 8.0
    assert _quantile(np.empty(0), 0.5) == np.inf
    many = np.random.default_rng(0).permutation(1.0 + np.arange(999))
    assert [_quantile(many, k / 1000) for k in range(1, 1000)] == list(range(1, 1000))


KNOWN = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
NEW = np.array([[0.95, 0.05], [0.5, 0.5], [0.35, 0.65]])


def test_sets_hold_labels_up_to_the_quantile():
    # scores of the rows' own labels: .1, .2, .3, .4; the third is the quantile
    found = conformal_sets(KNOWN, ["a", "a", "b", "b"], NEW, coverage=0.6, allow_empty=True)
    np.testing.assert_array_equal(found, [[True, False], [False, False], [False, False]])
    found = conformal_sets(KNOWN, ["a", "a", "b", "b"], NEW, coverage=0.8, allow_empty=True)
    np.testing.assert_array_equal(found, [[True, False], [False, False], [False, True]])


def test_empty_sets_get_the_most_probable_label():
    found = conformal_sets(KNOWN, ["a", "a", "b", "b"], NEW, coverage=0.6)
    np.testing.assert_array_equal(found, [[True, False], [True, False], [False, True]])


def test_labels_name_the_columns():
    by_name = conformal_sets(KNOWN, ["x", "x", "b", "b"], NEW, 0.8, labels=["x", "b"], allow_empty=True)
    np.testing.assert_array_equal(by_name, [[True, False], [False, False], [False, True]])
    with pytest.raises(ValueError, match=re.escape("proba_calibration has 2 columns but there are 3 labels; list all")):
        conformal_sets(KNOWN, ["a", "a", "b", "b"], NEW, labels=["a", "b", "c"])


def test_options_reach_the_sets():
    y = np.array([0, 0, 1, 1])
    options = {"method": "aps", "randomize": True, "allow_empty": True}
    found = conformal_sets(KNOWN, y, NEW, 0.7, random_state=4, **options)
    np.testing.assert_array_equal(found, sets_from_codes(KNOWN, y, NEW, 0.7, "aps", False, True, True, 4))
    random = np.random.RandomState(4)
    own = _scores(KNOWN, "aps", random)[np.arange(4), y]
    np.testing.assert_array_equal(found, _scores(NEW, "aps", random) <= _quantile(own, 0.7))
    plain = conformal_sets(KNOWN, y, NEW, 0.7, method="aps", allow_empty=True)
    np.testing.assert_array_equal(plain, _scores(NEW, "aps", None) <= 0.9)
    # the without randomize nothing is taken off, whatever the seed
    same = sets_from_codes(KNOWN, y, NEW, 0.4, "aps", False, True, random_state=4)
    np.testing.assert_array_equal(same, _scores(NEW, "aps", None) <= 0.7)


def test_default_coverage_is_95_percent():
    y = np.zeros(19, dtype=int)
    known = np.column_stack([np.linspace(0.05, 0.95, 19), np.linspace(0.95, 0.05, 19)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = conformal_sets(known, y, [[0.05, 0.95], [0.049, 0.951]], labels=[0, 1], allow_empty=True)
    np.testing.assert_array_equal(found, [[True, True], [False, True]])


def test_classes_have_quantiles_of_their_own():
    found = sets_from_codes(KNOWN, np.array([0, 0, 1, 1]), NEW, 0.6, "lac", True, True)
    # quantiles .2 of class a, .4 of class b
    np.testing.assert_array_equal(found, [[True, False], [False, False], [False, True]])


def test_too_few_rows_warn():
    message = (
        "coverage=0.9 needs 9 calibration rows, but there are 4: every label will be in every set. "
        "Use more rows or a lower coverage."
    )
    with pytest.warns(FewRowsWarning) as caught:
        found = conformal_sets(KNOWN, [0, 0, 1, 1], NEW, 0.9)
    assert [str(w.message) for w in caught] == [message]
    assert found.all()


def test_few_rows_of_some_classes_warn():
    known, y = np.tile(KNOWN[:, [0, 1, 1]] / 2, (3, 1)), np.array([0] * 9 + [1, 1, 2])
    new = np.full((1, 3), 1 / 3)
    ends = "will be in every set. Use more rows or a lower coverage."
    with pytest.warns(FewRowsWarning) as caught:
        conformal_sets(known, y, new, 0.9, by_class=True)
    takes = "coverage=0.9 needs 9 calibration rows of each class, but there are 1:"
    assert [str(w.message) for w in caught] == [f"{takes} the labels of 2 classes {ends}"]
    y[-2:] = 0
    with pytest.warns(FewRowsWarning) as caught:
        conformal_sets(known, y, new, 0.8, labels=[0, 1, 2], by_class=True)
    takes = "coverage=0.8 needs 4 calibration rows of each class, but there are 0:"
    assert [str(w.message) for w in caught] == [f"{takes} the labels of 2 classes {ends}"]
    y[-5:] = [1, 2, 2, 2, 2]
    with pytest.warns(FewRowsWarning) as caught:
        conformal_sets(known, y, new, 0.8, by_class=True)
    takes = "coverage=0.8 needs 4 calibration rows of each class, but there are 1:"
    assert [str(w.message) for w in caught] == [f"{takes} the label of one class {ends}"]


def test_few_rows_of_two_classes_warn():
    with pytest.warns(FewRowsWarning) as caught:
        conformal_sets(KNOWN, [0, 0, 1, 1], NEW, 0.75, by_class=True)
    assert str(caught[0].message).startswith(
        "coverage=0.75 needs 3 calibration rows of each class, but there are 2: the labels of 2 classes will be"
    )


def test_codes_of_labels_in_any_order():
    assert label_codes(["b", "a", "c"], np.array(["c", "a", "b"])).tolist() == [2, 1, 0]
    assert label_codes([3, 1], np.array([1, 2, 3])).tolist() == [2, 0]


@pytest.mark.parametrize(("y", "found"), [(["a", "d"], "'d'"), (["0"], "'0'"), (["b", "aa", "d"], "'aa'")])
def test_unknown_labels_are_named(y, found):
    message = f"^y has the label {found}, which is not among \\['a', 'b'\\]\\.$"
    with pytest.raises(ValueError, match=message):
        label_codes(y, np.array(["a", "b"]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((PROBA, [0, 1, 2, 0], PROBA), "proba_calibration has 3 rows but y has 4 labels."),
        (
            (PROBA, [0, 1, 1], PROBA),
            "proba_calibration has 3 columns but there are 2 labels; list all classes in `labels`.",
        ),
        ((PROBA, [0, 1, 2], NEW), "proba_new has 2 columns but there are 3 labels; list all classes in `labels`."),
        (
            (PROBA, PROBA, PROBA),
            "y has shape (3, 3); give one label per row. Multi-label targets are not supported.",
        ),
    ],
)
def test_shapes_are_checked(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        conformal_sets(*arguments)


def test_arrays_are_checked_by_name():
    with pytest.raises(ValueError, match="Input proba_calibration contains NaN"):
        conformal_sets(PROBA * np.nan, [0, 1, 2], PROBA)
    with pytest.raises(ValueError, match="Input proba_new contains NaN"):
        conformal_sets(PROBA, [0, 1, 2], PROBA * np.nan)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        conformal_sets(PROBA[:0], [], PROBA)
    assert conformal_sets(PROBA, [0, 1, 2], PROBA[:0], 0.5).shape == (0, 3)
    one = conformal_sets(PROBA[:1], [1], PROBA, 0.5, labels=[0, 1, 2], allow_empty=True)
    np.testing.assert_array_equal(one, PROBA >= 0.3)
    half = np.array([[0.1, 0.9], [0.1, 0.9]], dtype=np.float16)
    same = conformal_sets(half, [0, 1], half.astype(float), 0.6, allow_empty=True)
    np.testing.assert_array_equal(same, np.ones((2, 2), bool))  # 1 − p is not rounded to half precision
    integers = conformal_sets([[1, 0], [0, 1]], [0, 1], [[1, 0]], 0.5)
    np.testing.assert_array_equal(integers, [[True, False]])


@pytest.mark.parametrize("name", ["by_class", "allow_empty", "randomize"])
def test_switches_are_booleans(name):
    options = {"by_class": False, "allow_empty": np.True_, "randomize": False, name: 1}
    with pytest.raises(TypeError, match=f"^{name}=1 must be True or False\\.$"):
        check_options(0.5, "aps", **options)


@pytest.mark.parametrize(
    ("coverage", "method", "randomize", "message"),
    [
        (1.5, "lac", False, r"^coverage must be .*\(0, 1\), got 1\.5\.$"),
        (0.5, "raps", False, r"^method must be one of 'lac', 'aps', got 'raps'"),
        (0.5, "lac", True, "^randomize=True requires method='aps'; the scores of 'lac' are not randomized.$"),
    ],
)
def test_options_are_checked(coverage, method, randomize, message):
    with pytest.raises(ValueError, match=message):
        conformal_sets(PROBA, [0, 1, 2], PROBA, coverage, method=method, randomize=randomize)


def test_good_options_pass():
    check_options(0.5, "aps", False, True, True)
    check_options(0.5, "lac", True, np.False_, False)
