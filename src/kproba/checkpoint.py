"""Sums on disk, so that long passes over rows can be killed and go on where they were."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import joblib
import numpy as np

#: Seconds between two checkpoints: losing that much is bearable, and writing takes far less.
EVERY = 30.0


class Checkpoint:
    """A folder with the seed of a fit, and the sums of each of its passes up to some row.

    A fit asks for its passes in the same order whenever it runs, so those that are complete need not be made again.
    Files are replaced as a whole: a reader never meets half of one.
    """

    def __init__(self, folder, every: float = EVERY):
        self.folder, self.every, self._last, self._n_passes = Path(folder), every, time.monotonic(), 0
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(f"checkpoint={str(folder)!r} cannot be made a folder ({error}); name another one.") from error

    def seed(self, fresh: int) -> int:
        """The seed with which the fit began, or ``fresh`` if it begins now."""
        path = self.folder / "seed.json"
        if path.exists():
            return int(json.loads(path.read_text())["seed"])
        self._replace(path, lambda file: file.write(json.dumps({"seed": fresh}).encode()))
        return fresh

    def next_pass(self, identity) -> Pass:
        """The sums of the pass that comes next; ``identity`` is what they depend on."""
        path = self.folder / f"sums-{self._n_passes}.npz"
        self._n_passes += 1
        return Pass(self, path, joblib.hash(identity), is_first=self._n_passes == 1)

    def finish(self) -> None:
        """The model is fitted: the sums have served."""
        # a process that was killed while it wrote has left a temporary file
        for pattern in ("sums-*.npz", ".sums-*", "seed.json", ".seed.json-*"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)

    def is_time(self) -> bool:
        return time.monotonic() - self._last >= self.every

    def write(self, path: Path, held: dict[str, Any]) -> None:
        self._replace(path, lambda file: np.savez(file, **held))
        self._last = time.monotonic()

    def _replace(self, path: Path, write) -> None:
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise


class Pass:
    """One pass over the rows: what it has summed up, on disk."""

    def __init__(self, checkpoint: Checkpoint, path: Path, fingerprint: str, is_first: bool):
        self._checkpoint, self._path, self._fingerprint, self._is_first = checkpoint, path, fingerprint, is_first

    def load(self, kind: type) -> tuple[Any, int] | None:
        """The total so far, a dataclass of this kind, and the row to go on with; None if there is none yet."""
        if not self._path.exists():
            return None
        with np.load(self._path, allow_pickle=False) as held:
            if str(held["fingerprint"]) == self._fingerprint:
                parts = {field.name: held[field.name] for field in fields(kind)}
                total = kind(**{name: part if part.ndim else part.item() for name, part in parts.items()})
                return total, int(held["row"])
        if self._is_first:
            raise ValueError(
                f"checkpoint={str(self._checkpoint.folder)!r} holds the sums of another fit (other rows or other "
                "parameters); name another folder, or delete this one if it is not needed any more."
            )
        return None  # a later pass depends on what came before it, down to the rounding: made anew

    def save(self, total: Callable[[], Any], row: int, always: bool = False) -> None:
        """Write the total of all rows before ``row``, if it is time."""
        if not always and not self._checkpoint.is_time():
            return
        found = total()
        held: dict[str, Any] = {field.name: getattr(found, field.name) for field in fields(found)}
        self._checkpoint.write(self._path, {**held, "row": np.int64(row), "fingerprint": np.str_(self._fingerprint)})
