"""Checkpoints of partial sums, so that long passes over rows can be interrupted and resumed."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

import joblib
import numpy as np

from ..exceptions import CheckpointError
from ..io import AtomicFile, check_folder
from ..version import __version__

#: Seconds between two checkpoints: little to lose, and writing takes far less.
EVERY = 30.0
#: Version of the file format; increased whenever the meaning of the contents changes.
FORMAT = 1
_DIGEST_BYTES = hashlib.sha256().digest_size


class Checkpoint:
    """A folder with the seed of a fit, and the sums of each of its passes up to some row.

    A fit makes its passes in the same order every time it runs, so completed passes need not be repeated. Every file
    ends with a checksum of its contents, so a truncated or changed file is detected.
    """

    def __init__(self, folder, every: float = EVERY):
        what = f"checkpoint={str(folder)!r}"
        self.folder, self.every = Path(check_folder(folder, what)), every
        self.last, self._n_passes = time.monotonic(), 0
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(f"{what}: the folder cannot be created ({error}); use another one.") from error

    def seed(self, fresh: int) -> int:
        """The seed the fit started with, or ``fresh`` if it starts now."""
        path = self.folder / "seed.npz"
        found = self.read(path)
        if found is not None:
            return int(found["seed"])
        self.write(path, {"seed": np.uint64(fresh)})
        return fresh

    def next_pass(self, identity) -> Pass:
        """The next pass; ``identity`` is everything that its sums depend on."""
        number = self._n_passes
        self._n_passes += 1
        return Pass(self, self.folder / f"sums-{number}.npz", joblib.hash((number, identity)), is_first=number == 0)

    def finish(self) -> None:
        """Delete the files once the model is fitted."""
        for name in ("sums-*.npz", "seed.npz"):
            # a process killed while writing leaves a temporary file behind
            for pattern in (name, f".{name}.*.part"):
                for path in self.folder.glob(pattern):
                    path.unlink(missing_ok=True)

    def write(self, path: Path, held: dict[str, Any]) -> None:
        """Write named arrays and numbers, the version, and a checksum of all of it."""
        with AtomicFile(path) as file:
            np.savez(file, **held, format=np.int64(FORMAT), kproba=np.str_(__version__))
            size = file.seek(0, os.SEEK_END)
            digest = _digest(file, size)
            file.seek(size)
            file.write(digest)
        self.last = time.monotonic()

    def read(self, path: Path) -> dict[str, np.ndarray] | None:
        """The contents of a file; None if it does not exist."""
        try:
            with open(path, "rb") as file:
                if not _is_whole(file):
                    raise self.error(path, "is damaged, or was written by another version of kproba")
                with np.load(file, allow_pickle=False) as held:
                    found = (int(held["format"]), str(held["kproba"]))
                    if found != (FORMAT, __version__):
                        raise self.error(path, f"was written by kproba {found[1]}, but this is {__version__}")
                    return dict(held)
        except FileNotFoundError:
            return None
        except CheckpointError:
            raise
        except Exception as error:  # a file that we did not write can raise anything
            raise self.error(path, f"cannot be read ({type(error).__name__}: {error})") from error

    def error(self, path: Path, why: str) -> CheckpointError:
        return CheckpointError(
            f"checkpoint={str(self.folder)!r}: {path.name} {why}. Delete the folder to restart the fit, or use "
            "another one."
        )


class Pass:
    """The partial sums of one pass over the rows, on disk."""

    def __init__(self, checkpoint: Checkpoint, path: Path, fingerprint: str, is_first: bool):
        self._checkpoint, self._path, self._fingerprint, self._is_first = checkpoint, path, fingerprint, is_first

    def load(self, kind: type) -> tuple[Any, int] | None:
        """The total so far, a dataclass of type ``kind``, and the row to continue from; None if there is none yet."""
        held = self._checkpoint.read(self._path)
        if held is None:
            return None
        for name in ("fingerprint", "row"):
            if name not in held:
                raise self._checkpoint.error(self._path, f"lacks {name!r}")
        if str(held["fingerprint"]) == self._fingerprint:
            parts = {field.name: held[field.name] for field in fields(kind)}
            total = kind(**{name: part if part.ndim else part.item() for name, part in parts.items()})
            return total, int(held["row"])
        if self._is_first:
            raise self._checkpoint.error(
                self._path, "holds the sums of another fit (other rows, chunks of another size or other parameters)"
            )
        return None  # a later pass depends on the earlier ones, including their rounding errors: repeat it

    def save(self, total: Callable[[], Any], row: int, always: bool = False) -> None:
        """Write the total over all rows before ``row``, if a checkpoint is due."""
        if not always and time.monotonic() - self._checkpoint.last < self._checkpoint.every:
            return
        found = total()
        held: dict[str, Any] = {field.name: getattr(found, field.name) for field in fields(found)}
        self._checkpoint.write(self._path, {**held, "row": np.int64(row), "fingerprint": np.str_(self._fingerprint)})


def _is_whole(file: BinaryIO) -> bool:
    """Whether a file ends with the checksum of its contents."""
    size = file.seek(0, os.SEEK_END) - _DIGEST_BYTES
    is_whole = size > 0 and _digest(file, size) == file.read()
    file.seek(0)
    return is_whole


def _digest(file: BinaryIO, size: int) -> bytes:
    """The checksum of the first ``size`` bytes; leaves the file position after them."""
    found = hashlib.sha256()
    file.seek(0)
    while size > 0 and (block := file.read(min(size, 1 << 20))):
        found.update(block)
        size -= len(block)
    return found.digest()
