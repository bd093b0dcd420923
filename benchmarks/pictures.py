"""Draw dot plots of the results -> results/*.svg; with --check, only compare.

A picture without a result, or of a result that is not complete, is left as it is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from . import results, rivals
from .dots import Axis, plot
from .tables_quality import table as means_table

Rows = Mapping[str, Mapping[str, float]]
MEASURES = ("log_loss", "fit_seconds")
SECONDS = Axis("seconds of a fit, tuning and calibration included", 0.03, 300, (0.1, 1, 10, 100))
RATIO = Axis("log-loss relative to {}; further right is worse", 0.5, 4, (0.5, 0.7, 1, 1.5, 2, 3, 4), 1)


def quality(payload: dict) -> tuple[Rows, Rows, dict[str, str]]:
    """The ranked methods on tables of at most 2,000 rows."""
    names = {key: payload["rivals"].get(key, key).removeprefix("kproba ") for key in rivals.RANKED}
    return *_means(payload, names), names


def command(payload: dict) -> tuple[Rows, Rows, dict[str, str]]:
    """``kproba fit`` and other classifiers on tables with words, dates and missing values."""
    same_marks = ("calibrated SVC", "logistic regression", "LightGBM", "CatBoost")  # as in the picture of ``quality``
    first, *others = payload["summary"]["mean_rank"]
    names = {first: "kproba fit"} | {key: key for key in sorted(others, key=lambda key: _place(key, same_marks))}
    return *_means(payload, names), names


def family(payload: dict) -> tuple[Rows, Rows, dict[str, str]]:
    """The four classifiers of kproba, on one split each."""
    cells = {name: found["cells"] for name, found in payload["sets"].items()}
    rows = ({name: {key: cell[m] for key, cell in row.items()} for name, row in cells.items()} for m in MEASURES)
    return *rows, {key: key for key in next(iter(cells.values()))}


def mixed(payload: dict) -> tuple[Rows, Rows, dict[str, str]]:
    """LSPC on frames with strings and gaps, and others; the means are those of the table."""
    names = {key: key for key in ("LSPC", "LSPC behind skrub", "hist gradient boosting", "CatBoost")}
    return *_means(payload, names), names


def _place(key: str, order: tuple[str, ...]) -> int:
    return order.index(key) if key in order else len(order)


def _means(payload: dict, keys) -> tuple[Rows, Rows]:
    """Means over the splits that all methods have finished."""
    return tuple(means_table(payload["cells"], payload["sets"], keys, measure) for measure in MEASURES)


SOURCES = {"quality": quality, "family": family, "command": command, "mixed": mixed}


def drawn(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and text of every picture."""
    for name, source in SOURCES.items():
        payload = results.read(name, folder)
        losses, seconds, names = source(payload) if payload else ({}, {}, {})
        if losses:
            yield f"{name}_log_loss.svg", log_losses(losses, names)
            yield f"{name}_seconds.svg", fit_seconds(seconds, names)


def log_losses(rows: Rows, names: Mapping[str, str]) -> str:
    """Log-losses relative to the first method; the datasets on which it leads furthest are on top."""
    first = next(iter(names))
    ratios = {name: {key: value / row[first] for key, value in row.items()} for name, row in rows.items()}
    best = {name: min(value for key, value in row.items() if key != first) for name, row in ratios.items()}
    ordered = {name: ratios[name] for name in sorted(best, key=best.__getitem__, reverse=True)}
    axis = RATIO._replace(label=RATIO.label.format(names[first]))
    return plot(f"Log-loss on {len(rows)} datasets, relative to {names[first]}", ordered, names, axis)


def fit_seconds(rows: Rows, names: Mapping[str, str]) -> str:
    """Seconds of a fit; the datasets on which the first method takes longest are on top."""
    first = next(iter(names))
    ordered = dict(sorted(rows.items(), key=lambda row: row[1][first], reverse=True))
    return plot(f"Seconds of a fit on {len(rows)} datasets", ordered, names, SECONDS)


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a picture is out of date")
    parser.add_argument("--results", type=Path, default=results.RESULTS, help="folder with the JSON files")
    args = parser.parse_args(argv)
    pictures = {args.results / name: text for name, text in drawn(args.results)}
    stale = [path for path, text in pictures.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if args.check and stale:
        sys.exit(f"out of date: {', '.join(path.name for path in stale)}; run python -m benchmarks.pictures")
    for path in stale:
        path.write_text(pictures[path], encoding="utf-8")


if __name__ == "__main__":
    main()
