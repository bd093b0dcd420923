"""Parameters of other classifiers, and scores that are not there: the errors say what to do instead."""

import copy
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

import kproba
from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from kproba.estimators._hints import INSTEAD, NEEDLESS

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
Y = X[:, 0] > 0
GIVEN = {"kernel": "gaussian", "width": 1.0, "random_state": 0}
ESTIMATORS = [LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier]
EXPECTED = {
    "C": "Use ridge=..., about 1/(n*C)",
    "gamma": "Use kernel='gaussian', width=(2*gamma)**-0.5",
    "probability": "Leave it out: all classifiers give probabilities",
    "degree": "Use kernel=kproba.Polynomial(degree=...)",
    "break_ties": "Leave it out: predict is always the argmax",
}


class TestUnknownParameters:
    @pytest.mark.parametrize("name", EXPECTED)
    def test_constructor(self, name):
        with pytest.raises(TypeError) as raised:
            LSPC(**{name: 1})
        message = str(raised.value)
        assert message.startswith(f"LSPC() got an unexpected keyword argument {name!r}. ") and EXPECTED[name] in message
        assert "docs/leaving_svc.md" in message

    @pytest.mark.parametrize("name", EXPECTED)
    def test_set_params(self, name):
        with pytest.raises(ValueError) as raised:
            LSPC().set_params(**{name: 1})
        message = str(raised.value)
        assert message.startswith(f"Invalid parameter {name!r} for estimator LSPC()") and EXPECTED[name] in message

    def test_in_a_search(self):
        search = GridSearchCV(make_pipeline(StandardScaler(), LSPC()), {"lspc__C": [1]}, error_score="raise")
        with pytest.raises(ValueError, match="Use ridge="):
            search.fit(X, Y)

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_no_advice_names_what_there_is_not(self, estimator):
        known = inspect.signature(estimator).parameters
        for name in {*INSTEAD, *NEEDLESS} - set(known):
            with pytest.raises(TypeError) as raised:
                estimator(**{name: 1})
            ours, how = INSTEAD.get(name, ("", ""))
            assert (how if ours in known else "Leave it out") in str(raised.value)

    def test_every_parameter_of_svc_is_explained(self):
        ours = set(inspect.signature(LSPC).parameters)
        assert set(inspect.signature(SVC).parameters) - {"probability"} <= ours | set(INSTEAD) | set(NEEDLESS)

    def test_page_exists(self):
        page = (Path(__file__).parent.parent / "docs" / "leaving_svc.md").read_text()
        assert "## Every parameter" in page

    def test_misspelt(self):
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'kernal'\. Did you mean 'kernel'\?"):
            LSPC(kernal="gaussian")
        with pytest.raises(ValueError, match=r"Did you mean 'kernel'\?"):
            LSPC().set_params(kernal="gaussian")

    def test_no_idea(self):
        with pytest.raises(TypeError, match=r"'objective'\. Its parameters are kernel, width, ridge"):
            LSPC(objective="binary")
        with pytest.raises(ValueError, match=r"Valid parameters are: .*]\.$"):
            LSPC().set_params(objective="binary")

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_constructor_looks_as_before(self, estimator):
        parameters = inspect.signature(estimator).parameters.values()
        assert all(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters)
        assert {each.name for each in parameters} == set(estimator().get_params())
        assert estimator.__init__.__qualname__ == f"{estimator.__name__}.__init__"
        with pytest.raises(TypeError, match="positional arguments"):
            estimator(*range(30))
        with pytest.raises(TypeError, match="multiple values for argument"):
            estimator("auto", **{next(iter(parameters)).name: "auto"})

    def test_subclasses_of_users(self):
        class Mine(LSPC):
            def __init__(self, ridge=0.5, extra=1):
                super().__init__(ridge=ridge)
                self.extra = extra

        class Loose(LSPC):
            def __init__(self, **options):
                super().__init__(**options)

        assert clone(Mine(extra=3)).extra == 3 and Mine().ridge == 0.5 and Loose(ridge=0.1).ridge == 0.1
        for make in (Mine, Loose):
            with pytest.raises(TypeError, match="unexpected keyword argument 'C'"):
                make(C=1)


def fitted(case):
    """Models without leave-one-out scores, and what their errors say."""
    large = np.repeat(X, 2, axis=0)
    return {
        "not needed": (LSPC(ridge=0.1, link="clip", centers=9, **GIVEN).fit(X, Y), "not computed; use loo=True"),
        "klr": (KernelLogisticRegression(ridge=0.1, **GIVEN).fit(X, Y), "not computed; use loo=True"),
        "surface": (SurfaceKernelClassifier(link="clip", **GIVEN).fit(X, Y), "not computed; use loo=True"),
        "partial_fit": (
            LSPC(ridge=0.1, centers=9, **GIVEN).partial_fit(large, Y.repeat(2), [0, 1]),
            "partial_fit keeps",
        ),
        "summed up": (
            LSPC(ridge=0.1, centers=9, **GIVEN).fit(X, Y, classes=[0, 1]),
            "in memory and loo=True, or predict",
        ),
        "ivm": (
            ImportVectorMachine(ridge=0.1, **GIVEN).fit(X, Y, classes=[0, 1]),
            "with an array in memory, or predict",
        ),
    }[case]


class TestLeaveOneOut:
    @pytest.mark.parametrize("case", ["not needed", "klr", "surface", "partial_fit", "summed up", "ivm"])
    @pytest.mark.parametrize("name", ["loo_proba_", "loo_scores_"])
    def test_why_it_is_missing(self, case, name):
        model, why = fitted(case)
        with pytest.raises(AttributeError, match=why) as raised:
            getattr(model, name)
        assert str(raised.value).startswith(f"{type(model).__name__} has no {name}: ")
        assert not hasattr(model, name) and getattr(model, name, 7) == 7 and name not in dir(model)
        check_is_fitted(model)

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_before_the_fit(self, estimator):
        with pytest.raises(NotFittedError, match="not fitted yet; fit sets loo_proba_"):
            _ = estimator().loo_proba_
        assert not hasattr(estimator(), "loo_proba_")
        with pytest.raises(NotFittedError):
            check_is_fitted(estimator())

    def test_link_without_probabilities(self):
        model = LSPC(ridge=0.1, link="none", loo=True, **GIVEN).fit(X, Y)
        assert model.loo_scores_.shape == (40, 2)
        with pytest.raises(
            AttributeError, match="link='none' gives no probabilities; use another link, or loo_scores_"
        ):
            _ = model.loo_proba_

    def test_next_fit_forgets_the_reason(self):
        model = fitted("summed up")[0].fit(X, Y)
        assert model.loo_proba_.shape == (40, 2)
        with pytest.raises(AttributeError, match="partial_fit keeps"):
            _ = model.partial_fit(X, Y).loo_proba_

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
    @pytest.mark.parametrize("case", ["not needed", "summed up", "partial_fit"])
    def test_copies(self, copied, case):
        model, why = fitted(case)
        with pytest.raises(AttributeError, match=why):
            _ = copied(model).loo_proba_
        np.testing.assert_array_equal(copied(model).predict_proba(X), model.predict_proba(X))
        assert not hasattr(clone(model), "coef_")

    @pytest.mark.parametrize("case", ["not needed", "summed up", "partial_fit"])
    def test_model_files(self, case, tmp_path):
        model, why = fitted(case)
        kproba.save(model, tmp_path / "model.kproba")
        with pytest.raises(AttributeError, match=why):
            _ = kproba.load(tmp_path / "model.kproba").loo_proba_

    def test_other_attributes_raise_as_before(self):
        with pytest.raises(AttributeError, match="'LSPC' object has no attribute 'predict_probas'"):
            _ = LSPC().predict_probas
        with pytest.raises(AttributeError, match="no attribute 'predict_proba'") as raised:
            _ = LSPC(link="none").predict_proba
        assert "link='none'" in str(raised.value.__cause__)
        empty = LSPC.__new__(LSPC)  # as when a pickle is read
        assert not hasattr(empty, "link_") and not hasattr(empty, "loo_proba_")
