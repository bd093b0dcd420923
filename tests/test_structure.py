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
    ("exceptions", "io", "messages", "progress", "threads", "version", "arrays"),
    ("data",),
    ("kernels", "links"),
    ("basis", "validation"),
    ("solvers",),
    ("problems",),
    ("search",),
    ("typing", "papers"),
    ("metrics", "features", "estimators"),
    ("decisions", "recipes"),
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
    return (module.split(".") + [""])[1]


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
