"""Files appear complete or not at all, whoever else writes there."""

import os
import stat
import subprocess
import sys
import threading

import pytest

from kproba import LSPC, save, write_report
from kproba.data.writers import ProbabilityWriter
from kproba.io import AtomicFile, check_folder, check_output


def test_appears_when_complete(tmp_path):
    path = tmp_path / "a.bin"
    with AtomicFile(path) as file:
        file.write(b"abc")
        assert not path.exists()
    assert path.read_bytes() == b"abc" and os.listdir(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError, MemoryError])
def test_any_exception_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "a.bin"
    path.write_bytes(b"before")
    with pytest.raises(error), AtomicFile(path) as file:
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failure_of_the_last_steps(tmp_path, step, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="no space left"), AtomicFile(tmp_path / "a.bin") as file:
        file.write(b"half")
    assert os.listdir(tmp_path) == []


def test_two_writers_of_one_file(tmp_path):
    """Each writes all of its own; the one that finishes last stays."""
    path, barrier = tmp_path / "a.bin", threading.Barrier(8)

    def write(letter):
        with AtomicFile(path) as file:
            barrier.wait()
            for _ in range(200):
                file.write(letter * 100)

    threads = [threading.Thread(target=write, args=(bytes([65 + k]),)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = path.read_bytes()
    assert len(found) == 20_000 and len(set(found)) == 1
    assert os.listdir(tmp_path) == ["a.bin"]


def test_long_names(tmp_path):
    path = tmp_path / ("ü" * 120 + ".csv")
    with AtomicFile(path) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"


class TestPermissions:
    def test_new_files_follow_the_umask(self, tmp_path):
        before = os.umask(0o027)
        try:
            with AtomicFile(tmp_path / "a") as file:
                file.write(b"x")
            (tmp_path / "b").write_bytes(b"x")
        finally:
            os.umask(before)
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"]
        assert modes == [0o640, 0o640]

    @pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
    def test_replaced_files_keep_theirs(self, tmp_path, mode):
        path = tmp_path / "a"
        path.write_bytes(b"x")
        path.chmod(mode)
        with AtomicFile(path) as file:
            (part,) = set(os.listdir(tmp_path)) - {"a"}
            assert stat.S_IMODE((tmp_path / part).stat().st_mode) == mode  # private while it is written, too
            file.write(b"y")
        assert stat.S_IMODE(path.stat().st_mode) == mode and path.read_bytes() == b"y"


class TestLinks:
    def test_a_link_to_a_file_stays(self, tmp_path):
        (tmp_path / "folder").mkdir()
        real, link = tmp_path / "folder" / "real.csv", tmp_path / "link.csv"
        real.write_bytes(b"before")
        link.symlink_to(real)
        with AtomicFile(link) as file:
            file.write(b"after")
        assert link.is_symlink() and real.read_bytes() == b"after"

    def test_a_link_to_nothing_makes_the_file(self, tmp_path):
        (tmp_path / "link").symlink_to("real")
        with AtomicFile(tmp_path / "link") as file:
            file.write(b"x")
        assert (tmp_path / "real").read_bytes() == b"x" and (tmp_path / "link").is_symlink()

    def test_the_temporary_name_cannot_be_planted(self, tmp_path, monkeypatch):
        """Even somebody who knew the name could not make us write to a file of his choice."""
        (tmp_path / "precious").write_bytes(b"precious")
        monkeypatch.setattr("secrets.token_hex", lambda n: "known")
        (tmp_path / ".a.known.part").symlink_to("precious")
        with pytest.raises(FileExistsError):
            AtomicFile(tmp_path / "a")
        assert (tmp_path / "precious").read_bytes() == b"precious" and (tmp_path / ".a.known.part").is_symlink()


class TestChecks:
    def test_refused(self, tmp_path):
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").write_text("x")
        os.mkfifo(tmp_path / "pipe")
        for name, error, message in (
            ("nowhere/a", FileNotFoundError, "the directory .*nowhere does not exist; create it first"),
            ("file/a", FileNotFoundError, "does not exist; create it first"),
            ("folder", IsADirectoryError, "is a directory; pass the name of a file"),
            ("new/", IsADirectoryError, "is a directory"),
            ("pipe", OSError, "is a device or a pipe"),
        ):
            with pytest.raises(error, match=message):
                check_output(f"{tmp_path}/{name}")
        with pytest.raises(NotADirectoryError, match=r"checkpoint='x': .*file is not a directory"):
            check_folder(tmp_path / "file" / "deep" / "folder", "checkpoint='x'")
        assert check_folder(tmp_path / "a" / "b") == os.path.realpath(tmp_path / "a" / "b")
        assert sorted(os.listdir(tmp_path)) == ["file", "folder", "pipe"]

    def test_no_permission(self, tmp_path, monkeypatch):
        (tmp_path / "old").write_text("x")
        monkeypatch.setattr(os, "access", lambda path, how: os.path.isdir(path))
        with pytest.raises(PermissionError, match="old' is read-only"):
            check_output(tmp_path / "old")
        monkeypatch.setattr(os, "access", lambda path, how: False)
        for check in (check_output, check_folder):
            with pytest.raises(PermissionError, match="no permission to write to the directory"):
                check(tmp_path / "new")

    def test_before_the_work(self, tmp_path):
        """Models that are not fitted would fail in the work."""
        nowhere = tmp_path / "nowhere" / "a"
        with pytest.raises(FileNotFoundError, match="does not exist"):
            write_report(LSPC(), [[1.0]], [0], nowhere)
        with pytest.raises(FileNotFoundError, match="does not exist"):
            save(LSPC(), nowhere)
        with pytest.raises(FileNotFoundError, match="does not exist"):
            ProbabilityWriter(nowhere.with_suffix(".csv"), [0, 1])


def test_killed_half_way(tmp_path):
    """Nothing of a process that was killed stands under the name of the file."""
    path = tmp_path / "a.bin"
    path.write_bytes(b"before")
    script = f"""
import os, signal
from kproba.io import AtomicFile
with AtomicFile({str(path)!r}) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert path.read_bytes() == b"before"
