"""Atomic writes: a file is either complete or absent."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from typing import BinaryIO

#: Number of characters of the target's name in the name of the temporary file; names are limited to 255 bytes.
_NAME = 40


def check_output(path: str | os.PathLike, what: str | None = None) -> str:
    """The file that writing to ``path`` creates or replaces, or an error if it cannot be written.

    Call this before long computations, so that they fail early. Symbolic links are followed as in ``open``: the file
    that a link points to is replaced, and the link stays. ``what`` is the name of the path in error messages.
    """
    given = os.path.expanduser(os.fsdecode(path))
    what = f"path={os.fsdecode(path)!r}" if what is None else what
    target = os.path.realpath(given)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{what}: the directory {folder} does not exist; create it first.")
    if os.path.isdir(target) or given.endswith(os.sep):
        raise IsADirectoryError(f"{what} is a directory; pass the name of a file.")
    if os.path.exists(target) and not os.path.isfile(target):
        raise OSError(f"{what} is a device or a pipe, not a regular file; pass the name of a file.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{what}: no permission to write to the directory {folder}; choose another one.")
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise PermissionError(f"{what} is read-only; choose another file, or change its permissions.")
    return target


def check_folder(path: str | os.PathLike, what: str | None = None) -> str:
    """The directory ``path``, or an error if it can neither be written to nor created."""
    folder = os.path.realpath(os.path.expanduser(os.fsdecode(path)))
    what = f"path={os.fsdecode(path)!r}" if what is None else what
    there = folder
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise NotADirectoryError(f"{what}: {there} is not a directory; choose another one.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"{what}: no permission to write to the directory {there}; choose another one.")
    return folder


class AtomicFile:
    """A temporary file that replaces ``path`` once it is complete, and is deleted otherwise.

    ``file`` is open for reading and writing in binary mode. It is in the same directory as the target, with a random
    name that no other process can guess or already use (``O_EXCL``). If two processes write to one path, each writes a
    complete file and the last one wins. ``commit`` flushes the file to disk and renames it; ``discard`` deletes it. The
    context manager commits, or discards after an exception.

    A new file gets the permissions that ``open`` would give it; a replaced file keeps its permissions.
    """

    def __init__(self, path: str | os.PathLike):
        self._target = check_output(path)
        folder, name = os.path.split(self._target)
        self._temporary = os.path.join(folder, f".{name[:_NAME]}.{secrets.token_hex(8)}.part")
        mode = _permissions(self._target)
        # never more accessible than the file it replaces, not even while it is being written
        self.file: BinaryIO = open(  # noqa: SIM115 - commit and discard close it
            self._temporary, "x+b", opener=lambda name, flags: os.open(name, flags, 0o666 if mode is None else mode)
        )
        if mode is not None:
            with suppress(OSError):  # some file systems have no permissions
                os.chmod(self._temporary, mode)

    def __enter__(self) -> BinaryIO:
        return self.file

    def __exit__(self, kind, error, traceback) -> None:
        self.commit() if kind is None else self.discard()

    def commit(self) -> None:
        """Replace the target; if that fails, discard the file."""
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
            os.replace(self._temporary, self._target)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Delete the file, unless it has been committed or discarded."""
        with suppress(OSError):  # a full disk fails again here; report the first failure
            self.file.close()
        with suppress(FileNotFoundError):
            os.unlink(self._temporary)


def _permissions(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def is_same_file(one: str | os.PathLike, other: str | os.PathLike) -> bool:
    """Whether two paths, which need not exist, refer to the same file."""
    return os.path.realpath(os.path.expanduser(one)) == os.path.realpath(os.path.expanduser(other))
