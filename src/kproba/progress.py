"""Progress bars for long fits, shown if ``verbose`` is set."""

from __future__ import annotations

from typing import Any, Self

from .messages import needed


class Progress:
    """Counts steps, and shows them with tqdm if ``verbose``."""

    def __init__(self, verbose: bool | int, total: int | None = None, title: str = "kproba"):
        self._bar = _bar(total=total, desc=title, unit="step", leave=total is not None) if verbose else None

    def step(self, text: str | None = None, n: int = 1) -> None:
        """Count ``n`` steps; with a total, the bar shows the remaining time."""
        if self._bar is not None:
            if text:
                self._bar.set_postfix_str(text)
            self._bar.update(n)

    def finish(self) -> None:
        """Count the remaining steps, if there were fewer than expected."""
        if self._bar is not None and self._bar.total:
            self._bar.update(self._bar.total - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc) -> None:
        self.close()


class RowProgress(Progress):
    """Counts rows; if ``verbose``, shows rows per second and, if their number is known, the remaining time."""

    def __init__(self, verbose: bool | int, total: int | None, title: str, done: int = 0):
        options = {"desc": title, "unit": "row", "unit_scale": True, "initial": done}
        self._bar = _bar(total=total, **options) if verbose else None

    def rows(self, n: int) -> None:
        self.step(n=n)


def _bar(**options: Any) -> Any:
    return needed("tqdm.auto", "verbose requires tqdm for the progress bar", "progress").tqdm(**options)
