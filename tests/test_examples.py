"""Every example runs from start to end."""

import runpy
import sys
from pathlib import Path

import pytest

#: how to run an example in seconds, where it has options
QUICK = {"image_tags", "sound_events", "splice_junctions", "spoken_digits"}
EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path, monkeypatch, capsys):
    options = ["--quick", "--out", str(tmp_path)] if path.stem in QUICK else [str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [str(path), *options])
    runpy.run_path(str(path), run_name="__main__")
    assert list(tmp_path.glob("*.png"))
    assert "log-loss" in capsys.readouterr().out
