"""The encoding of text files: detected, or given; and what happens to files that are not text."""

import gzip

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproba import EncodingGuessWarning, cli, open_rows
from kproba.data.encodings import check_encoding, detect
from kproba.data.tables import open_table

FRAME = pd.DataFrame({"größe": [1.5, 2.5, 3.5], "stadt": ["Köln", "Ulm", "Łódź"], "y": ["ja", "nein", "ja"]})


@settings(max_examples=25, deadline=None)
@given(st.text(min_size=1), st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]), st.integers(1, 9))
def test_unicode_is_never_taken_for_something_else(text, name, size):
    """In blocks of any size, which may end in the middle of a character."""
    whole = text.replace("\0", "").encode(name)
    blocks = [whole[:4], *(whole[k : k + size] for k in range(4, len(whole), size))]
    assert whole.decode(detect(blocks)) == whole.decode(name)


@pytest.mark.parametrize("name", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_tables(name, suffix, tmp_path):
    path = tmp_path / f"t{suffix}"
    text = FRAME.to_csv(index=False).encode(name)
    path.write_bytes(gzip.compress(text) if suffix == ".csv.gz" else text)
    pd.testing.assert_frame_equal(open_table(path).whole(), FRAME)


def test_western_european_is_guessed_with_a_warning(tmp_path):
    path, frame = tmp_path / "t.csv", FRAME.iloc[:2]
    frame.to_csv(path, index=False, encoding="cp1252")
    with pytest.warns(EncodingGuessWarning, match=r"t\.csv is not UTF-8 text; it is read as cp1252"):
        pd.testing.assert_frame_equal(open_table(path).whole(), frame)


def test_a_given_encoding_is_used(tmp_path):
    path = tmp_path / "t.csv"
    FRAME.to_csv(path, index=False, encoding="cp1250")
    pd.testing.assert_frame_equal(open_table(path, encoding="cp1250").whole(), FRAME)


def test_rows_of_numbers(tmp_path):
    path = tmp_path / "t.csv"
    FRAME.drop(columns="stadt").to_csv(path, index=False, encoding="utf-16")
    source = open_rows(path, target="y")
    assert source.feature_names == ("größe",) or list(source.feature_names) == ["größe"]


def test_names_of_encodings():
    assert check_encoding("Latin-1", "--encoding") == "iso8859-1"
    with pytest.raises(ValueError, match=r"--encoding utf16x: no such encoding \(did you mean 'utf-16'\?\)"):
        check_encoding("utf16x", "--encoding")


def test_commands(tmp_path, capsys):
    path, model = tmp_path / "t.csv", tmp_path / "m.kproba"
    rows = pd.DataFrame({"stadt": ["Köln", "Łódź"] * 15, "y": ["ja", "nein"] * 15})
    rows.to_csv(path, index=False, encoding="cp1250")
    words = ["fit", str(path), "--target", "y", "--model", str(model), "--estimator", "lspc"]
    assert cli.main([*words, "--encoding", "cp1250"]) == 0
    assert "Köln" in capsys.readouterr().out
    assert cli.main(words) == 0
    assert "note:" in capsys.readouterr().err
    assert cli.main([*words, "--encoding", "utf-8"]) == cli.BAD_INPUT
    assert "it is not utf-8 text" in capsys.readouterr().err
