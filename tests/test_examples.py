"""Every example runs from start to end, as a script and as a page of the gallery."""

import ast
import runpy
import sys
from pathlib import Path

import matplotlib
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
#: those that write their picture into a folder, or show it
WITH_OPTIONS = [path for path in EXAMPLES if "argparse" in path.read_text()]

pytestmark = pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")


@pytest.fixture
def run(monkeypatch):
    """Run an example as its own program, without a screen; gives the number of its open figures."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def run(path, *options) -> int:
        monkeypatch.setattr(sys, "argv", [str(path), *options])
        runpy.run_path(str(path), run_name="__main__")
        return len(plt.get_fignums())

    yield run
    plt.close("all")


def quick(path) -> list[str]:
    return ["--quick"] if '"--quick"' in path.read_text() else []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, run, tmp_path, capsys):
    assert run(path, *quick(path), "--out", str(tmp_path))
    printed, pictures = capsys.readouterr().out, list(tmp_path.glob("*.png"))
    assert printed
    if path in WITH_OPTIONS:
        assert pictures and "log-loss" in printed


def test_example_that_shows_its_picture_writes_none(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = next(path for path in WITH_OPTIONS if path.stem == "splice_junctions")
    assert run(path, "--quick", "--show")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_a_title(path):
    title, underline, *_ = ast.get_docstring(ast.parse(path.read_text())).splitlines()
    assert underline == "=" * len(title)
