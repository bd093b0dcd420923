"""Checkpoints that were cut off, changed or written by others are refused with one clear error."""

import io
import os
import shutil
import zipfile

import numpy as np
import pytest

from kproba import LSPC, CheckpointError, cli
from kproba.basis.moments import Moments
from kproba.data import checkpoint
from kproba.data.checkpoint import Checkpoint
from kproba.data.sources import ArraySource
from kproba.estimators import _reading

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = (X[:, 0] + RNG.normal(size=600) > 0).astype(int)
GIVEN = {"kernel": "gaussian", "width": 2.0, "ridge": 1e-3, "centers": 20, "link": "clip", "random_state": 0}


def source(y=Y):
    return ArraySource(X, y, chunk_bytes=100 * 3 * 8)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(Checkpoint.__init__, "__defaults__", (0.0,))
    monkeypatch.setattr(_reading, "sample_size", lambda d: 100)


@pytest.fixture
def interrupted(tmp_path, monkeypatch):
    """A checkpoint of a fit that was interrupted after 300 rows."""
    folder, add, seen = tmp_path / "sums", Moments.add, []

    def stop(self, *args, **kwargs):
        seen.append(1)
        if len(seen) > 3:
            raise KeyboardInterrupt
        return add(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Moments, "add", stop)
        with pytest.raises(KeyboardInterrupt):
            LSPC(**GIVEN).fit(source(), checkpoint=folder)
    assert sorted(os.listdir(folder)) == ["seed.npz", "sums-0.npz"]
    return folder


def refused(folder, match="") -> str:
    with pytest.raises(CheckpointError, match=match) as found:
        LSPC(**GIVEN).fit(source(), checkpoint=folder)
    assert "Delete the folder" in str(found.value) and str(folder) in str(found.value)
    return str(found.value)


def test_resumes(interrupted):
    resumed = LSPC(**GIVEN).fit(source(), checkpoint=interrupted)
    np.testing.assert_array_equal(resumed.coef_, LSPC(**GIVEN).fit(source()).coef_)
    assert not list(interrupted.iterdir())


@pytest.mark.parametrize("name", ["sums-0.npz", "seed.npz"])
def test_cut_off_at_any_length(interrupted, name):
    whole = (interrupted / name).read_bytes()
    for size in sorted({0, 1, 4, 22, 31, 32, 33, len(whole) // 2, len(whole) - 33, len(whole) - 32, len(whole) - 1}):
        (interrupted / name).write_bytes(whole[:size])
        refused(interrupted, rf"{name} is damaged")
    (interrupted / name).write_bytes(whole + b"\0")
    refused(interrupted, rf"{name} is damaged")
    (interrupted / name).write_bytes(whole)
    LSPC(**GIVEN).fit(source(), checkpoint=interrupted)


@pytest.mark.parametrize("name", ["sums-0.npz", "seed.npz"])
def test_every_flipped_byte_is_seen(interrupted, name):
    """Read alone: a fit for each would take long."""
    path, whole = interrupted / name, (interrupted / name).read_bytes()
    saved = Checkpoint(interrupted)
    assert saved.read(path) is not None
    for place in {*range(0, len(whole), 61), *range(len(whole) - 40, len(whole))}:
        changed = bytearray(whole)
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(changed)
        with pytest.raises(CheckpointError, match="is damaged"):
            saved.read(path)


def test_another_row_number(interrupted):
    """It used to resume in the wrong place, without a word."""
    path = interrupted / "sums-0.npz"
    whole, row = path.read_bytes(), np.load(path)["row"]
    assert row == 300
    with np.load(path) as held, open(interrupted / "other", "wb") as file:
        np.savez(file, **{**dict(held), "row": np.int64(500)})
    os.replace(interrupted / "other", path)
    refused(interrupted, "is damaged")
    before, after = io.BytesIO(), io.BytesIO()
    for buffer, number in ((before, 300), (after, 500)):
        np.save(buffer, np.int64(number))
    tampered = whole.replace(before.getvalue(), after.getvalue())
    assert tampered != whole
    path.write_bytes(tampered)
    refused(interrupted, "is damaged")


def test_other_rows(interrupted):
    """The same shape, other labels: the sums before are of another table."""
    with pytest.raises(CheckpointError, match="holds the sums of another fit"):
        LSPC(**GIVEN).fit(source(1 - Y), checkpoint=interrupted)


def test_another_version(interrupted, monkeypatch):
    monkeypatch.setattr(checkpoint, "__version__", "9.9")
    message = refused(interrupted, r"was written by kproba \d+\.\d+\.\d+, and this is 9\.9")
    assert "seed.npz" in message


def test_another_format(interrupted, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    refused(interrupted, "was written by kproba")


def test_without_a_checksum_of_old(interrupted):
    for name in ("seed.npz", "sums-0.npz"):
        path = interrupted / name
        path.write_bytes(path.read_bytes()[:-32])
        refused(interrupted, "another version of kproba")


def test_missing_contents(interrupted):
    path = interrupted / "sums-0.npz"
    with np.load(path) as held:
        contents = {name: held[name] for name in held if name not in ("row", "format", "kproba")}
    Checkpoint(interrupted).write(path, contents)
    refused(interrupted, r"sums-0\.npz lacks 'row'")


def test_not_a_file(interrupted):
    (interrupted / "sums-0.npz").unlink()
    (interrupted / "sums-0.npz").mkdir()
    refused(interrupted, "cannot be read")


def test_missing_files_begin_anew(interrupted):
    whole = LSPC(**GIVEN).fit(source()).coef_
    (interrupted / "sums-0.npz").unlink()
    np.testing.assert_array_equal(LSPC(**GIVEN).fit(source(), checkpoint=interrupted).coef_, whole)


def test_leftovers_of_a_killed_writer_are_deleted(interrupted):
    for name in (".sums-0.npz.0123456789abcdef.part", ".seed.npz.0123456789abcdef.part"):
        (interrupted / name).write_bytes(b"half")
    (interrupted / "mine.txt").write_text("kept")
    LSPC(**GIVEN).fit(source(), checkpoint=interrupted)
    assert os.listdir(interrupted) == ["mine.txt"]


def test_the_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotADirectoryError, match=r"checkpoint=.*is not a directory"):
        LSPC(**GIVEN).fit(source(), checkpoint=tmp_path / "file")


def test_the_command_says_so(tmp_path, capsys):
    lines = [f"{a:.6f},{b:.6f},{c}" for (a, b), c in zip(X[:, :2], Y)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *lines]))
    words = ["fit", str(tmp_path / "t.csv"), "--target", "y", "--model", str(tmp_path / "m.kproba")]
    (tmp_path / "c").mkdir()
    for contents in (b"", b"PK\x03\x04", b"\x93NUMPY"):
        (tmp_path / "c" / "seed.npz").write_bytes(contents)
        assert cli.main([*words, "--checkpoint", str(tmp_path / "c")]) == cli.BAD_INPUT
        shown = capsys.readouterr().err
        assert "seed.npz is damaged" in shown and "Traceback" not in shown
    assert not (tmp_path / "m.kproba").exists()
    (tmp_path / "file").write_text("x")
    assert cli.main([*words, "--checkpoint", str(tmp_path / "file" / "c")]) == cli.BAD_INPUT
    assert "--checkpoint" in capsys.readouterr().err


def test_the_file_is_still_a_zip(interrupted):
    """Anybody can look into it."""
    with zipfile.ZipFile(interrupted / "sums-0.npz") as found:
        assert "row.npy" in found.namelist()
    shutil.rmtree(interrupted)
