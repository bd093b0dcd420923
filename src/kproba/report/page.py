"""The HTML page: facts and figures with inline style and script; all network requests are forbidden."""

from __future__ import annotations

from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np

from . import figures
from .facts import (
    HELD_OUT,
    LEAVE_ONE_OUT,
    LEAVE_ONE_OUT_MIXED,
    OF_TRAINING_ROWS,
    OUT_OF_FOLD,
    OUT_OF_FOLD_MIXED,
    TRAINING,
    ClassFacts,
    Facts,
    RowFacts,
    Score,
)
from .markup import as_json, count, escaped, label, number, share
from .measures import MEASURES, Interval

HERE = Path(__file__).parent
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
#: Initial threshold and costs; for a calibrated model, the best threshold at these costs is 1 − 1/10.
THRESHOLD, COST_OF_ERROR, COST_OF_REJECTION = 0.9, 10, 1
EXCESS = "excess log-loss"
NO_BREAK = "\u00a0"
#: Number of pairs of classes listed as most often confused.
MOST_PAIRS = 5


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
    sections = [_fitted(facts), _learnt(facts), _comparison(facts), _calibration(facts), _decisions(facts)]
    main = "".join([_header(facts), *sections, _by_class(facts), _rows(facts)])
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<link rel="icon" href="data:,">\n<title>{escaped(facts.title)}</title>\n'
        f"<style>\n{_asset('page.css')}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#main">Skip to the report</a>\n<main id="main">\n{main}\n{_footer(facts)}</main>\n'
        f'<script type="application/json" id="data">{as_json(_data(facts))}</script>\n'
        f"<script>\n{_asset('page.js')}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _data(facts: Facts) -> dict:
    """Data for the script: thresholds as decrements, with the rows and errors at each."""
    risk = facts.risk
    level = np.rint(risk.thresholds / risk.unit).astype(int)
    names = ("rows", "recall", "precision", "AUC", "average precision")
    return {
        "unit": risk.unit,
        "n": risk.n,
        "start": int(level[0]),
        "down": (-np.diff(level)).tolist(),
        "rows": np.diff(risk.kept, prepend=0).tolist(),
        "wrong": np.diff(risk.wrong, prepend=0).tolist(),
        "classes": [", ".join(f"{n} {v}" for n, v in zip(names, _class_numbers(one))) for one in facts.by_class],
    }


def _class_numbers(one: ClassFacts) -> tuple[str, ...]:
    shares = share(one.recall), share(one.precision)
    return (count(one.rows), *shares, number(one.auc), number(one.average_precision))


#: Description of the rows in the header.
_WHICH = {
    HELD_OUT: "held-out rows",
    OUT_OF_FOLD: "training rows (out of fold)",
    OUT_OF_FOLD_MIXED: "rows (training rows out of fold)",
    LEAVE_ONE_OUT: "training rows (leave-one-out)",
    LEAVE_ONE_OUT_MIXED: "rows (training rows by leave-one-out)",
    TRAINING: "<strong>training rows: results do not apply to new rows</strong>",
}


def _header(facts: Facts) -> str:
    own = facts.scores[0]
    which = _WHICH[facts.on]
    cards = "".join(
        f'<div class="card"><h2>{title}</h2><p class="big">{_shown(getattr(own, name), name)}</p>'
        f'<p class="between">{_between(getattr(own, name), name)}</p></div>'
        for name, title in MEASURES.items()
    )
    trained = f" · fitted on {count(facts.n_train)} rows" if facts.n_train and facts.on not in OF_TRAINING_ROWS else ""
    columns = f" · {count(facts.n_columns)} columns" if facts.n_columns else ""
    notes = "".join(f"<li>{escaped(note)}</li>" for note in facts.notes)
    sections = [section for section in _SECTIONS if section[0] != "learnt" or _has_learnt(facts)]
    links = "".join(f'<a href="#{name}">{text}</a>' for name, text in sections)
    return (
        f'<header><p class="kicker">kproba report</p><h1>{label(facts.title, 120)}</h1>'
        f'<p class="lead">{count(facts.n_rows)} {which} · {len(facts.classes)} classes{columns}{trained}</p>'
        f'<div class="cards">{cards}</div><p class="small">Small numbers are 90 % bootstrap intervals.'
        f'</p><ul class="notes">{notes}</ul><nav aria-label="Sections">{links}</nav></header>'
    )


_SECTIONS = (
    ("fitted", "Fitted model"),
    ("learnt", "Learnt kernel"),
    ("beside", "Comparison with baselines"),
    ("calibration", "Calibration"),
    ("decide", "Rejecting uncertain rows"),
    ("classes", "Classes"),
    ("rows", "Rows to review"),
)


def _shown(value: Interval, name: str) -> str:
    return share(value.value) if name == "error" else number(value.value)


def _between(value: Interval, name: str) -> str:
    if name == "error":
        return f"{100 * value.low:.1f} to {100 * value.high:.1f} %"
    return f"{value.low:.3f} to {value.high:.3f}"


def _section(identity: str, *parts: str) -> str:
    title = dict(_SECTIONS)[identity]
    head = f'<section id="{identity}" aria-labelledby="{identity}-h"><h2 id="{identity}-h">{title}</h2>'
    return "".join([head, *parts, "</section>"])


def _figure(drawing: str, caption: str, title: str = "", css: str = "") -> str:
    head = f"<h3>{title}</h3>" if title else ""
    below = f"<figcaption>{caption.replace(' %', NO_BREAK + '%')}</figcaption>" if caption else ""
    return f'<figure class="{css}">{head}{drawing}{below}</figure>'


def _scrolled(table: str, name: str, css: str = "scroll") -> str:
    """A scrollable, keyboard-accessible box for tables that are too wide for a phone."""
    return f'<div class="{css}" tabindex="0" role="region" aria-label="{escaped(name)}">{table}</div>'


def _fitted(facts: Facts) -> str:
    pairs = "".join(f"<div><dt>{escaped(name)}</dt><dd>{label(text, 200)}</dd></div>" for name, text in facts.fitted)
    return _section("fitted", f'<dl class="facts">{pairs}</dl>', _search(facts), _path(facts))


def _search(facts: Facts) -> str:
    if not facts.panels:
        return ""
    n = sum(len(panel.loss) for panel in facts.panels)
    drawings = "".join(
        f"<div><h4>{escaped(panel.title)}</h4>{drawing}</div>"
        for panel, drawing in zip(facts.panels, figures.search_figures(facts.panels))
    )
    is_map = any(panel.is_map for panel in facts.panels)
    caption = (
        f"{count(n)} candidates were compared by leave-one-out or on held-out training rows. "
        + ("Each cell is one candidate, coloured by its loss; " if is_map else "Each point is one candidate; ")
        + ("the ring marks the choice. " if is_map else "the dotted line marks the choice. ")
        + "Widths refer to scaled columns. If a candidate was evaluated again on more rows, the last loss is shown."
    )
    legend = figures.search_legend(facts.panels) if is_map else ""
    return _figure(f'<div class="panels">{drawings}</div>{legend}', caption, "Hyperparameter search")


def _path(facts: Facts) -> str:
    if facts.path is None:
        return ""
    drawings = "".join(f"<div>{drawing}</div>" for drawing in figures.path_figures(facts.path))
    caption = (
        "The path goes from the largest ridge λ (right) to the smallest. The dotted line marks the λ chosen on "
        "held-out tuning rows."
    )
    return _figure(f'<div class="panels">{drawings}</div>', caption, "Number of import points")


def _has_learnt(facts: Facts) -> bool:
    return facts.importances is not None or facts.curve is not None


def _learnt(facts: Facts) -> str:
    """What the model has learnt about its columns, and how far it went."""
    if not _has_learnt(facts):
        return ""
    return _section("learnt", '<div class="pair">', _importances(facts), _curve(facts), "</div>")


def _importances(facts: Facts) -> str:
    found = facts.importances
    if found is None:
        return ""
    n_shown = len(found.names)
    which = f"The {n_shown} most important of {count(found.n_columns)} columns. " if n_shown < found.n_columns else ""
    caption = (
        f"{which}The share of each column in the distances of the kernel, which says how much the predictions depend "
        "on it. Whiskers are the range over kernels learnt without one of the folds each."
    )
    return _figure(figures.importance_figure(found), caption, "Importances of the columns")


def _curve(facts: Facts) -> str:
    if facts.curve is None:
        return ""
    caption = (
        'The <span class="ink right">leave-one-out loss</span> of samples of rows is what the steps minimise, and the '
        '<span class="ink wrong">out-of-fold loss</span>, of rows that took no part in them, decides how many to take: '
        "the dotted line. The first number of steps weights all columns equally."
    )
    return _figure(figures.curve_figure(facts.curve), caption, "Losses by number of steps")


def _comparison(facts: Facts) -> str:
    names = ("model", *MEASURES.values(), EXCESS)
    head = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in names)
    rows = "".join(_score_row(place, score) for place, score in enumerate(facts.scores))
    # explicit roles survive the stacked layout on phones
    table = f'<table class="scores" role="table"><thead><tr role="row">{head}</tr></thead><tbody>{rows}</tbody></table>'
    drawings = "".join(
        f"<div><h4>{title}</h4>{figures.score_figure(facts.scores, name, title)}</div>"
        for name, title in MEASURES.items()
    )
    caption = (
        "Lower is better for all measures. Bars are 90 % intervals from 1,000 resamples. These are the same for all "
        "models, so differences are more precise than the bars suggest: excess log-loss is the difference from the "
        "evaluated model. “By chance” is the calibration error of a perfectly calibrated model on this many rows. "
        "Arrows mark values beyond the axis."
    )
    return _section(
        "beside",
        _scrolled(table, "Scores of all models"),
        _figure(f'<div class="panels two">{drawings}</div>', caption),
    )


def _score_row(place: int, score: Score) -> str:
    cells = [
        f"<b>{_shown(getattr(score, name), name)}</b> <small>{_between(getattr(score, name), name)}</small>"
        for name in MEASURES
    ]
    cells[-1] += f"<small>by chance {score.calibration_by_chance:.3f}</small>"
    cells.append(_excess(score.excess))
    titles = (*MEASURES.values(), EXCESS)
    body = "".join(f'<td role="cell" data-name="{title}">{cell}</td>' for title, cell in zip(titles, cells))
    name = f'<span class="key m{place}"></span>{escaped(score.name)}'
    return f'<tr role="row"><th scope="row" role="rowheader">{name}</th>{body}</tr>'


def _excess(value: Interval | None) -> str:
    if value is None:
        return "–"
    text = f"<b>{value.value:+.3f}</b> <small>{value.low:+.3f} to {value.high:+.3f}</small>"
    return text.replace("-", "−")


def _calibration(facts: Facts) -> str:
    lowest = float(facts.histogram.edges[0])
    return _section(
        "calibration",
        '<div class="pair">',
        _figure(
            figures.reliability_figure(facts.reliability, lowest),
            "How many of the predictions with a given probability are correct? On the dotted line, probabilities are "
            "calibrated; below it the model is overconfident, above it underconfident. The band is a 90 % Jeffreys "
            "interval; larger dots have more rows.",
            "Reliability diagram",
        ),
        _figure(
            figures.histogram_figure(facts.histogram),
            'Number of <span class="ink right">right</span> and <span class="ink wrong">wrong</span> predictions by '
            "probability. Errors should be on the left.",
            "Confidence",
        ),
        "</div>",
    )


def _decisions(facts: Facts) -> str:
    caption = (
        "The most confident predictions are kept; the other rows are rejected, for example for a person to decide. If "
        "the curve falls to the left, the probabilities show which predictions are safe. If they are calibrated, the "
        "cheapest threshold is close to 1 − cost of a rejection / cost of an error. A threshold chosen on these rows "
        "does slightly worse on new rows."
    )
    return _section(
        "decide",
        '<div class="pair">',
        _figure(figures.risk_figure(facts.risk), "", "Risk and coverage"),
        f'<div class="panel">{_controls(facts)}{_decision_numbers(facts)}</div>',
        f'</div><p class="small below">{caption}</p>',
    )


def _controls(facts: Facts) -> str:
    step = "any" if facts.risk.unit < 1e-5 else f"{facts.risk.unit:g}"
    costs = "".join(
        f'<label>{text} <input type="number" id="{name}" min="0" step="any" value="{value}"></label>'
        for text, name, value in (
            ("Cost of an error", "cost-error", COST_OF_ERROR),
            ("Cost of a rejection", "cost-rejection", COST_OF_REJECTION),
        )
    )
    return (
        '<div class="controls"><label for="threshold">Keep predictions with a probability of at least</label>'
        f'<div class="together"><input type="range" id="threshold" min="0" max="1" step="0.001" value="{THRESHOLD}" '
        f'aria-describedby="decision"><input type="number" id="exact" min="0" max="1.0001" step="{step}" '
        f'value="{THRESHOLD}" aria-label="Exact threshold"></div><div class="together">{costs}</div>'
        '<button type="button" id="cheapest">Go to the cheapest threshold</button></div>'
    )


def _decision_numbers(facts: Facts) -> str:
    """The numbers at the initial threshold; the script updates them."""
    n, (kept, wrong) = facts.risk.n, facts.risk.at(THRESHOLD)
    cost = wrong * COST_OF_ERROR + (n - kept) * COST_OF_REJECTION
    risk = f"{100 * wrong / kept:.2f} %" if kept else "–"
    numbers = (
        ("coverage", "coverage", f"{100 * kept / n:.1f} %"),
        ("risk-kept", "error among rows kept", risk),
        ("mistakes", "errors among rows kept", count(wrong)),
        ("rejected", "rejected rows", count(n - kept)),
        ("cost", "cost per row", f"{cost / n:.4f}"),
        ("cost-all", "total cost", f"{cost:.2f}"),
    )
    cells = "".join(f'<div><dt>{title}</dt><dd id="{name}">{text}</dd></div>' for name, title, text in numbers)
    return (
        f'<dl class="numbers">{cells}</dl><output id="decision" class="small" for="threshold exact cost-error '
        'cost-rejection"></output><noscript><p class="small">The slider needs JavaScript; the numbers above are for a '
        "threshold of 0.9.</p></noscript>"
    )


def _by_class(facts: Facts) -> str:
    roc, recall = figures.class_figures(facts)
    chosen = figures.first_class(facts)
    options = "".join(figures.class_option(place, one, chosen) for place, one in enumerate(facts.by_class))
    chooser = (
        f'<p class="chooser"><label for="class">Class</label> <select id="class">{options}</select> '
        f'<output id="class-numbers" for="class">{escaped(_data(facts)["classes"][chosen])}</output></p>'
    )
    matrix = _scrolled(figures.confusion_table(facts), "Confusion matrix")
    return _section(
        "classes",
        _figure(matrix, _confusion_caption(facts), "Confusion matrix", "wide"),
        chooser,
        '<div class="pair">',
        _figure(roc, "The selected class against all others; thin lines are the other classes.", "ROC"),
        _figure(
            recall,
            "The dashed line is the share of the selected class, which is the precision of guessing.",
            "Precision–recall",
        ),
        "</div>",
        _class_table(facts),
    )


def _confusion_caption(facts: Facts) -> str:
    text = (
        "Rows are true classes, columns predicted ones. Colours show shares of a row: blue is right, orange is wrong."
    )
    shown = figures.shown_classes(facts.confusion)
    if len(shown) < len(facts.classes):
        text += f" Only the {len(shown)} of {len(facts.classes)} classes with the most errors are shown."
    off = facts.confusion - np.diag(np.diagonal(facts.confusion))
    pairs = [divmod(int(k), len(off)) for k in np.argsort(-off, axis=None, kind="stable")[:MOST_PAIRS]]
    named = [
        f"{label(facts.classes[i], 24)} predicted as {label(facts.classes[j], 24)} ({count(int(off[i, j]))})"
        for i, j in pairs
        if off[i, j]
    ]
    return text + (f" Most often: {', '.join(named)}." if named and len(facts.classes) > 2 else "")


def _class_table(facts: Facts) -> str:
    head = ("class", "rows", "recall", "precision", "AUC", "average precision")
    body = []
    for one in facts.by_class:
        values = (one.rows, one.recall, one.precision, one.auc, one.average_precision)
        cells = "".join(_number_cell(value, text) for value, text in zip(values, _class_numbers(one)))
        body.append(f'<tr><th scope="row">{label(one.name)}</th>{cells}</tr>')
    return f"<h3>Class by class</h3>{_sortable('class-table', 'Metrics of each class', head, body)}"


def _number_cell(value: float, text: str) -> str:
    return f'<td class="n" data-v="{value:.9g}">{text}</td>'


def _sortable(identity: str, caption: str, head, body) -> str:
    cells = "".join(
        f'<th scope="col" aria-sort="none"><button type="button">{label(name, 24)}</button></th>' for name in head
    )
    table = (
        f'<table id="{identity}" class="sortable"><caption class="unseen">{escaped(caption)}; click a heading to sort'
        f"</caption><thead><tr>{cells}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )
    return _scrolled(table, caption, "scroll tall")


def _rows(facts: Facts) -> str:
    has_reasons = any(row.reasons for row in (*facts.doubtful, *facts.mistakes))
    reasons = ("reasons",) if has_reasons else ()
    head = ("row", "true", "predicted", "probability", "second", "its probability", *reasons, *facts.columns)
    doubtful = _sortable("doubtful", "Uncertain rows", head, [_row(row, has_reasons) for row in facts.doubtful])
    about_errors = "There are none."
    if facts.mistakes:
        which = f"The {len(facts.mistakes)} most confident of {count(facts.n_mistakes)} errors"
        about_errors = f"{which}: they may have wrong labels or unusual values, or need information the model lacks."
    mistakes = _sortable("mistakes-table", "Confident errors", head, [_row(row, has_reasons) for row in facts.mistakes])
    shown = " The columns on the right are values of X." if facts.columns else ""
    if has_reasons:
        shown = f" Reasons are the columns that add most to the score of the prediction, or take most away.{shown}"
    return _section(
        "rows",
        f'<p class="small">Row numbers start at 0. Click a heading to sort.{shown}</p>',
        f'<h3>Uncertain rows</h3><p class="small">The {len(facts.doubtful)} least confident predictions.</p>',
        doubtful,
        f'<h3>Confident errors</h3><p class="small">{about_errors}</p>',
        mistakes if facts.mistakes else "",
    )


def _row(row: RowFacts, has_reasons: bool) -> str:
    css = "" if row.true == row.predicted else ' class="miss"'
    values = "".join(_value_cell(value) for value in row.values)
    reasons = f"<td>{label(row.reasons, 160)}</td>" if has_reasons else ""
    return (
        f"<tr>{_number_cell(row.number, str(row.number))}<td>{label(row.true, 24)}</td>"
        f"<td{css}>{label(row.predicted, 24)}</td>{_number_cell(row.probability, f'{row.probability:.4f}')}"
        f"<td>{label(row.second, 24)}</td>{_number_cell(row.second_probability, f'{row.second_probability:.4f}')}"
        f"{reasons}{values}</tr>"
    )


def _value_cell(value: str) -> str:
    try:
        return _number_cell(float(value), escaped(value))
    except ValueError:
        return f"<td>{label(value, 24)}</td>"


def _footer(facts: Facts) -> str:
    from ..version import __version__

    made_by = f"kproba {__version__}, scikit-learn {version('scikit-learn')}, NumPy {np.__version__}"
    return f'<footer class="small"><p>{made_by} · {date.today().isoformat()} · this file works offline.</p></footer>\n'
