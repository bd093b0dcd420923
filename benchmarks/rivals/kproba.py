"""LSPC as it comes."""

from kproba import LSPC

from . import OneHot, Prepared

name = "kproba LSPC()"


def fit(X, y, categorical):
    prepare = OneHot(X, categorical)
    return Prepared(prepare, LSPC(random_state=0).fit(prepare(X), y))
