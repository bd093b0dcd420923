"""A progress bar for long fits, shown when the user asks for it by ``verbose``."""

from __future__ import annotations


class Progress:
    """Counts steps; with ``verbose`` it shows them by tqdm."""

    def __init__(self, verbose: bool | int, total: int | None = None, title: str = "kproba"):
        self._bar = _tqdm()(total=total, desc=title, unit="step", leave=True) if verbose else None

    def step(self, text: str | None = None) -> None:
        if self._bar is not None:
            if text:
                self._bar.set_postfix_str(text)
            self._bar.update()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc) -> None:
        self.close()


def _tqdm():
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("verbose needs tqdm for its progress bar: pip install 'kproba[progress]'") from error
    return tqdm
