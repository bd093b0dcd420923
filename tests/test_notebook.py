"""What a notebook shows of an estimator: scikit-learn's block, with no link to pages that do not exist."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import kproba
from kproba import LSPC, RejectOption

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)
PLAIN = [
    getattr(kproba, name)
    for name in kproba.__all__
    if isinstance(getattr(kproba, name), type) and issubclass(getattr(kproba, name), BaseEstimator)
]
ESTIMATORS = [make(LSPC(), max_error=0.3) if make is RejectOption else make() for make in PLAIN]


class Links(HTMLParser):
    def __init__(self, page: str):
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name == "href"]


def block(estimator) -> str:
    bundle = estimator._repr_mimebundle_()
    assert bundle["text/plain"] == repr(estimator)
    assert estimator._repr_html_().startswith("<style>")
    return bundle["text/html"]


def test_there_are_classifiers_and_transformers():
    assert len(PLAIN) >= 8 and {True, False} == {is_classifier(each) for each in ESTIMATORS}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_a_block_has_the_parameters_and_no_links(estimator):
    page = block(estimator)
    assert type(estimator).__name__ in page
    assert ("Not fitted" in page) == get_tags(estimator).requires_fit
    for name in estimator.get_params(deep=False):
        assert name in page
    assert Links(page).found == []


@pytest.mark.parametrize(
    "estimator", [each for each in ESTIMATORS if is_classifier(each)], ids=lambda each: type(each).__name__
)
def test_a_block_of_a_fitted_one(estimator):
    page = block(estimator.fit(X, Y))
    assert "Not fitted" not in page and "Fitted" in page
    assert Links(page).found == []


@pytest.mark.parametrize("fitted", [False, True])
def test_a_pipeline_links_the_steps_of_others_alone(fitted):
    pipe = make_pipeline(StandardScaler(), RejectOption(LSPC(width=1.0, ridge=0.1), threshold=0.5))
    page = block(pipe.fit(X, Y) if fitted else pipe)
    for name in ("RejectOption", "LSPC", "StandardScaler"):
        assert name in page
    links = Links(page).found
    assert links and not any(re.search("kproba|lspc|reject", link, re.IGNORECASE) for link in links)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_defaults_are_not_shown(estimator):
    given = "estimator=LSPC(), max_error=0.3" if isinstance(estimator, RejectOption) else ""
    assert repr(estimator) == f"{type(estimator).__name__}({given})"
