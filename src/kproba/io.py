"""Files that are complete or not there: the one way in which this package writes to disk."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from typing import BinaryIO

#: Characters of the target's name in that of its temporary file: names are limited to 255 bytes.
_NAME = 40


def check_output(path: str | os.PathLike, what: str | None = None) -> str:
    """The file that a write to ``path`` will make or replace, or an error that says why it cannot.

    Call it before long work: what would fail at the end fails at once. A symbolic link is followed, as ``open``
    does: the file that it points to is replaced and the link stays. ``what`` is how a message names the path.
    """
    given = os.path.expanduser(os.fsdecode(path))
    what = f"path={os.fsdecode(path)!r}" if what is None else what
    target = os.path.realpath(given)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{what}: there is no directory {folder}; make it first.")
    if os.path.isdir(target) or given.endswith(os.sep):
        raise IsADirectoryError(f"{what} is a directory; give the name of a file.")
    if os.path.exists(target) and not os.path.isfile(target):
        raise OSError(f"{what} is a device or a pipe, not a regular file; give the name of a file.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{what}: you may not write to the directory {folder}; name another one.")
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise PermissionError(f"{what} is read-only; name another file, or change its permissions.")
    return target


def check_folder(path: str | os.PathLike, what: str | None = None) -> str:
    """The directory ``path``, which can be written to or can be made; otherwise an error that says why not."""
    folder = os.path.realpath(os.path.expanduser(os.fsdecode(path)))
    what = f"path={os.fsdecode(path)!r}" if what is None else what
    there = folder
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise NotADirectoryError(f"{what}: {there} is not a directory; name another one.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"{what}: you may not write to the directory {there}; name another one.")
    return folder


class AtomicFile:
    """A file that takes the place of ``path`` once it is complete, and leaves no trace if it never is.

    ``file`` is open for reading and writing in binary mode. It lies beside the target under a random name that no
    other process can guess or hold (``O_EXCL``), so two writers of one path each write a whole file and the last one
    stays. ``commit`` flushes it to disk and renames it; ``discard`` deletes it. As a context manager it commits, or
    discards after any exception.

    A new file has the permissions that ``open`` would give it; one that replaces another keeps the other's.
    """

    def __init__(self, path: str | os.PathLike):
        self._target = check_output(path)
        folder, name = os.path.split(self._target)
        self._temporary = os.path.join(folder, f".{name[:_NAME]}.{secrets.token_hex(8)}.part")
        mode = _permissions(self._target)
        # never more open than the file that it replaces, not even while it is written
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
        """Put the file in its place; if that fails it is discarded."""
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
            os.replace(self._temporary, self._target)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Delete what has been written, unless it was committed or discarded before."""
        with suppress(OSError):  # a full disk fails again here, and the first failure is the one to report
            self.file.close()
        with suppress(FileNotFoundError):
            os.unlink(self._temporary)


def _permissions(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def is_same_file(one: str | os.PathLike, other: str | os.PathLike) -> bool:
    """Whether two paths, which need not exist, lead to the same file."""
    return os.path.realpath(os.path.expanduser(one)) == os.path.realpath(os.path.expanduser(other))
