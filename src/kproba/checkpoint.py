"""Partial sums on disk, so that a long pass over rows can be killed and go on where it was."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from .moments import Moments

#: Seconds between two checkpoints: losing that much is bearable, and writing takes far less.
EVERY = 30.0


class Checkpoint:
    """A folder with the seed of a fit, and the sums of the rows up to some row.

    ``fingerprint`` is what the sums depend on. Files are replaced as a whole, so that a reader never meets half of one.
    """

    def __init__(self, folder, every: float = EVERY):
        self.folder, self.every, self._last = Path(folder), every, time.monotonic()
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

    def load(self, fingerprint: str) -> tuple[Moments, int] | None:
        """The sums so far and the row to go on with; None if there are none yet."""
        path = self.folder / "sums.npz"
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as held:
            if str(held["fingerprint"]) != fingerprint:
                raise ValueError(
                    f"checkpoint={str(self.folder)!r} holds the sums of another fit (other rows or parameters); "
                    "name another folder, or delete this one if it is not needed any more."
                )
            moments = Moments(np.asfortranarray(held["H"]), held["h"], held["totals"], float(held["n"]))
            return moments, int(held["row"])

    def save(self, moments: Moments, row: int, fingerprint: str) -> None:
        """Write the sums of all rows before ``row``, if it is time."""
        if time.monotonic() - self._last < self.every:
            return
        sums = {"H": moments.H, "h": moments.h, "totals": moments.totals, "n": np.float64(moments.n)}
        held: dict[str, Any] = {**sums, "row": np.int64(row), "fingerprint": np.str_(fingerprint)}
        self._replace(self.folder / "sums.npz", lambda file: np.savez(file, **held))
        self._last = time.monotonic()

    def finish(self) -> None:
        """The model is fitted: the sums have served."""
        for name in ("sums.npz", "seed.json"):
            (self.folder / name).unlink(missing_ok=True)

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
