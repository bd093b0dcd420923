"""The folders of the package: lower ones never import higher ones, lazily or not, and no imports go in a circle."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_spec = importlib.util.spec_from_file_location("structure", ROOT / "scripts" / "structure.py")
structure = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(structure)

#: From the lowest to the highest; those in one line do not import each other.
LAYERS = (
    ("exceptions", "io", "messages", "version"),
    ("progress", "threads", "arrays"),
    ("data",),
    ("validation",),
    ("kernels", "links"),
    ("basis",),
    ("solvers",),
    ("problems",),
    ("search",),
    ("typing", "papers"),
    ("metrics", "features", "estimators"),
    ("decisions", "recipes", "pipelines", "explanations"),
    ("report", "onnx_export"),
    ("displays",),
    ("persist",),
    ("",),  # the public names
    ("cli",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


@pytest.fixture(scope="module")
def edges():
    return structure.imports()


def top(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]


def test_every_folder_has_a_layer(edges):
    assert {top(module) for module in edges} == set(LEVEL)


def test_lower_folders_do_not_import_higher_ones(edges):
    wrong = [
        f"{module} imports {target}"
        for module, targets in edges.items()
        for target in targets
        if LEVEL[top(target)] >= LEVEL[top(module)] and top(target) != top(module)
    ]
    assert wrong == []


def test_no_circles(edges):
    assert structure.cycles(edges) == [] and structure.cycles(structure.by_folder(edges)) == []


def test_few_files_at_the_top():
    assert len(list((ROOT / "src" / "kproba").glob("*.py"))) <= 13


def pictures() -> list[list[str]]:
    """The lines of the pictures in CONTRIBUTING.md: the folders, and the way of a row through a fit."""
    parts = (ROOT / "CONTRIBUTING.md").read_text().split("```text\n")[1:]
    return [part.partition("```")[0].splitlines() for part in parts]


def test_the_map_names_every_folder():
    named = {word.removesuffix("/").removesuffix(".py") for line in pictures()[0] for word in line.split()}
    assert set(LEVEL) - {""} <= named


def test_the_walk_of_a_row():
    walk = [tuple(line.split()[:2]) for line in pictures()[1]]
    entered = structure.walk_of_a_fit()[1]
    assert [step for step in walk if step not in entered] == []
    assert [entered.index(step) for step in walk] == sorted(entered.index(step) for step in walk)
