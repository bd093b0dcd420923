"""What each type in a model file may hold: the notation, and that every line of the declarations is about something."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import kproba
from kproba.features.column_kinds import ColumnKinds
from kproba.kernels import Learnt
from kproba.links import CalibratedTags, Clip, PerTag, Ratio, Sigmoid, Softmax
from kproba.persist import audit
from kproba.persist.rules import ABSENT, accepts, check_declared, holds

FILES = sorted((Path(__file__).parent / "model_files").glob("*.kproba"))


@pytest.mark.parametrize(
    ("spec", "good", "bad"),
    [
        ("float > 0 <= 1", [0.5, 1.0], [0.0, 1.5, np.nan, 1, "1", None, ABSENT]),
        ("float[n]", [np.ones(3), np.ones(0, "f4")], [np.ones((3, 1)), np.array([np.nan]), np.ones(3, int), [1.0]]),
        ("number[nn]", [np.ones((2, 2), bool)], [np.ones((2, 3)), np.array([["a"]])]),
        ("int[2n] >= 0 < c", [np.zeros((2, 5), int)], [np.zeros((3, 5), int), np.full((2, 5), 4), np.full((2, 5), -1)]),
        ("moderate[n]", [np.full(2, -1e74)], [np.full(2, -1e76), np.full(2, np.inf)]),
        ("scale[n]", [np.full(2, -1e-139)], [np.zeros(2), np.full(2, 1e141)]),
        ("float64[n]", [np.ones(2)], [np.ones(2, np.float32), np.ones(2, ">f8")]),
        ("nan64[n]", [np.full(2, np.nan)], [np.ones(2, np.float32)]),
        (range(1, 5), [1, np.int8(4)], [0, 5, True, 1.0, "1"]),
        ((None, str), [None, "a"], [ABSENT, 1]),
        ((ABSENT, str), [ABSENT, "a"], [None]),
        (object, [None, 1], [ABSENT]),
        ({"a", "b"}, ["a"], ["c", 1, []]),
        ([str], [[], ["a"]], [["a", 1], ("a",)]),
        ({str: range(3)}, [{}, {"a": 2}], [{"a": 3}, {1: 1}, []]),
        ({}, [{}], [{"a": 1}, None]),
        (callable, [len], [1, ABSENT]),
    ],
)  # fmt: skip
def test_notation(spec, good, bad):
    assert all(accepts(spec, value, c=4) for value in good)
    assert not any(accepts(spec, value, c=4) for value in bad)


def test_equal_letters_are_equal_sizes():
    class Thing:
        a, b = np.ones((2, 3)), np.ones(3)

    check_declared(Thing(), [holds(Thing, a="float[nd]", b="float[d]")])
    with pytest.raises(
        kproba.ModelFileError, match=r"Thing: b is not float\[n\], but an array of float64 of shape \(3,\)"
    ):
        check_declared(Thing(), [holds(Thing, a="float[nd]", b="float[n]")])
    with pytest.raises(kproba.ModelFileError, match="Thing: c is missing"):
        check_declared(Thing(), [holds(Thing, c=(None, str))])
    with pytest.raises(kproba.ModelFileError, match="Thing: a is larger"):
        check_declared(Thing(), [holds(Thing, relations=[("a is larger", lambda thing: thing.a.size <= thing.b.size)])])


@pytest.mark.parametrize(
    ("spec", "value", "fault"),
    [
        ({str: range(3)}, {"a": 3}, "a dict from a str to an integer from 0 to 2"),
        ({str: range(3)}, [], "a dict from a str to an integer from 0 to 2, but a list"),
        ({}, {"a": 3}, "an empty dict, but a dict"),
        ([str], [1], "a list in which each value is a str"),
        ({"b", "a"}, "c", "'a' or 'b', but 'c'"),
        ((ABSENT, None, str), 1, "None or a str, but 1"),
        (callable, 1, "callable, but 1"),
    ],
)
def test_faults_say_what_was_expected_and_found(spec, value, fault):
    class Thing:
        a = value

    with pytest.raises(kproba.ModelFileError, match=f"^Thing: a is not {re.escape(fault)}.$"):
        check_declared(Thing(), [holds(Thing, a=spec)])


def fitted_objects():
    """Objects of all declared types, as they are checked."""
    found = []
    original = audit.check

    def spy(obj):
        found.append(obj)
        original(obj)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "check", spy)
        for path in FILES:
            kproba.load(path)
    X = np.random.default_rng(0).normal(size=(30, 3))
    columns = ColumnTransformer([("a", StandardScaler(), [0])], remainder="passthrough")
    columns._name_to_fitted_passthrough = {}  # which some versions of scikit-learn have
    steps = [MaxAbsScaler(), MinMaxScaler(), PCA(2), PowerTransformer(), QuantileTransformer(n_quantiles=10), columns]
    steps += [RobustScaler(), SimpleImputer(), StandardScaler(), TruncatedSVD(2), VarianceThreshold(), OneHotEncoder()]
    found += [step.fit(X) for step in [*steps, FunctionTransformer(), FeatureUnion([("a", StandardScaler())])]]
    words = TfidfVectorizer().fit(["some words", "other words"])
    bag = kproba.BagOfFeatures(n_words=2, random_state=0).fit([X[:10], X[10:]])
    X = np.random.default_rng(0).normal(size=(100, 2))
    found.append(kproba.LSPC(random_state=0).fit(X, X[:, 0] > 0))  # which has what a learnt kernel adds
    found.append(ColumnKinds().fit(pytest.importorskip("pandas").DataFrame({"a": ["x", "y"]})))
    return [*found, kproba.PictureDescriptors(), words, words._tfidf, bag, bag._lookup]


def test_every_optional_attribute_exists():
    """An attribute that may be absent would never be checked if it were misspelt."""
    pytest.importorskip("skrub")
    objects = fitted_objects()
    for obj in objects:
        audit.check(obj)
    for declared in audit._DECLARATIONS:
        own = [obj for obj in objects if declared in audit._declarations_for(type(obj))]
        optional = [name for name, (spec, _) in declared.rules.items() if isinstance(spec, tuple) and ABSENT in spec]
        for name in (*optional, *declared.when):
            assert any(hasattr(obj, name) for obj in own), f"{name} of {declared.kinds}"


@pytest.mark.parametrize("tags", [False, True])
def test_links_give_the_probabilities_that_the_parameter_promises(tags):
    X = np.random.default_rng(0).normal(size=(20, 2))
    clf = kproba.LSPC(link="none", width=1.0, ridge=0.1).fit(X, X > 0 if tags else X[:, 0] > 0)
    audit.check(clf)
    with pytest.raises(kproba.ModelFileError, match="its link matches its classes"):
        audit.check(clf.set_params(link="clip"))


def test_links_of_tags():
    constant = np.array([2, 2])
    one, pair = np.full(2, 0.5), np.ones((2, 2))
    tags = CalibratedTags(prior=one, slope=pair, sharpness=one, offset=one, span=pair, constant=constant)
    audit.check(tags)
    for link in (Clip(), Ratio(), Softmax(), Sigmoid()):
        audit.check(PerTag(link, constant))
    for link in (PerTag(Clip(), constant), tags, None, Clip):
        with pytest.raises(kproba.ModelFileError, match="PerTag: link is not a link of classes"):
            audit.check(PerTag(link, constant))


@pytest.mark.parametrize(
    "factors", [((1.0, 1.0),) * 2, ((1.0, 1.0), (1.0, 1.0), (1.0,)), ((1.0, 1.0), (1.0, 0.0), (1.0, 1.0))]
)
def test_factors_of_a_learnt_kernel(factors):
    """Three tuples with a positive number for each column, or none, as in files of earlier versions."""
    kernel = Learnt((1.0, 0.5), (1.0,) * 3, (1.0,) * 4)
    audit.check(kernel)
    object.__setattr__(kernel, "factors", ((1.0, 0.9), (1.1, 1.0), (1.0, 1.0)))
    audit.check(kernel)
    object.__setattr__(kernel, "factors", factors)
    with pytest.raises(kproba.ModelFileError, match="factors"):
        audit.check(kernel)
