"""The HTML page: facts and figures with inline style and script; all network requests are forbidden."""

from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np

from .facts import Facts
from .markup import as_json, escaped
from .sections.calibration import calibration
from .sections.classes import by_class, class_texts
from .sections.comparison import comparison
from .sections.fitted import fitted
from .sections.groups import drift, groups
from .sections.header import header
from .sections.reasons import reasons
from .sections.rejection import rejection
from .sections.rows import rows
from .sections.threshold import decisions
from .two_classes import UNIT

HERE = Path(__file__).parent
#: From what everybody reads to what few look up.
SECTIONS = (comparison, calibration, decisions, rejection, by_class, reasons, groups, drift, rows, fitted)


def page(facts: Facts) -> str:
    """The report as an HTML document.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from kproba.report.facts import collect
    >>> X, y = load_iris(return_X_y=True)
    >>> text = page(collect(LogisticRegression(max_iter=500).fit(X[::2], y[::2]), X[1::2], y[1::2]))
    >>> text.splitlines()[:2]
    ['<!doctype html>', '<html lang="en">']
    """
    sections = [section for section in (make(facts) for make in SECTIONS) if section.body]
    main = "".join([header(facts, sections), *(section.html for section in sections)])
    data = f'<script type="application/json" id="data">{as_json(_data(facts))}</script>\n'
    return document(facts.title, main, f"{data}<script>\n{_asset('page.js')}</script>\n")


def document(title: str, main: str, scripts: str = "") -> str:
    """An HTML document with inline style that works offline; without scripts, none can run."""
    allowed = "script-src 'unsafe-inline'; " if scripts else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; {allowed}img-src data:"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<link rel="icon" href="data:,">\n<title>{escaped(title)}</title>\n'
        f"<style>\n{_asset('page.css')}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#main">Skip to the report</a>\n<main id="main">\n{main}\n{_footer()}</main>\n'
        f"{scripts}</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _data(facts: Facts) -> dict:
    """Data for the script."""
    risk = facts.risk
    found: dict = {"reject": {"n": risk.n, **_levels(risk.thresholds, risk.unit, risk.kept, risk.wrong)}}
    if facts.positive is None:
        return found | {"classes": class_texts(facts)}
    each = facts.positive.thresholds
    levels = _levels(each.thresholds, UNIT, each.flagged, each.hits)
    return found | {"cut": {"n": each.n_rows, "positive": each.n_positive, "name": facts.positive.name[:60], **levels}}


def _levels(thresholds: np.ndarray, unit: float, rows: np.ndarray, marked: np.ndarray) -> dict:
    """Thresholds as decrements, with the rows and the marked rows that each adds."""
    level = np.rint(thresholds / unit).astype(int)
    return {
        "unit": unit,
        "start": int(level[0]),
        "down": (-np.diff(level)).tolist(),
        "rows": np.diff(rows, prepend=0).tolist(),
        "marked": np.diff(marked, prepend=0).tolist(),
    }


def _footer() -> str:
    from ..version import __version__

    made_by = f"kproba {__version__}, scikit-learn {version('scikit-learn')}, NumPy {np.__version__}"
    return f'<footer class="small"><p>{made_by} · {date.today().isoformat()} · this file works offline.</p></footer>\n'
