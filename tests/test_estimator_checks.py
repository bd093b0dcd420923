"""scikit-learn's own contract, with no expected failures."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kproba import LSPC, recipes

ESTIMATORS = [
    LSPC(),
    *[LSPC(link=link) for link in ("softmax", "clip", "clip-parameters", "none")],
    *[LSPC(centers=centers) for centers in ("all", "class", 5, ("class", 3))],
    LSPC(selection="cv", folds=2),
    LSPC(penalty="parameters", solver="eigen", scaling="standard"),
    recipes.lspc_2010(),
    recipes.lspc_new_2011(),
]


@pytest.mark.filterwarnings("ignore::kproba.ConditionWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_contract(estimator, check):
    check(estimator)
