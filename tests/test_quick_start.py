"""What is imported when: public names on first use, and a command only what it needs."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import kproba
from kproba import cli

HEAVY = ("numpy", "scipy", "sklearn", "pandas", "pyarrow", "skrub")


def imported_by(code: str) -> set[str]:
    """The modules that a fresh process has imported after some code."""
    program = f"import sys\n{code}\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    return set(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr.split())


def test_importing_the_package_imports_nothing_else():
    assert not imported_by("import kproba; dir(kproba)") & set(HEAVY)


@pytest.mark.parametrize("words", [["--help"], ["--version"], []])
def test_help_imports_no_libraries(words):
    code = f"from kproba import cli\ntry:\n    cli.main({words})\nexcept SystemExit:\n    pass"
    assert not imported_by(code) & set(HEAVY)


def test_predict_does_not_import_other_commands():
    found = imported_by("from kproba import cli; cli.main(['predict', 'none.csv'])")
    others = ("compare", "demo", "evaluate", "fit", "report")
    assert "kproba.cli.predict" in found
    assert not found & {f"kproba.cli.{name}" for name in others}
    assert not found & {"skrub", "kproba.report", "kproba.explanations"}


def test_type_checkers_see_the_names_that_exist():
    tree = ast.parse(Path(kproba.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {(node.module, alias.name) for node in block.body for alias in node.names}
    known = {(module, name) for name, module in kproba._MODULE_OF.items()}
    assert {each for each in seen if each[0]} == known
    assert {name for _, name in seen} == set(kproba.__all__)


def test_public_names():
    assert set(kproba.__all__) <= set(dir(kproba))
    for name in kproba.__all__:
        assert getattr(kproba, name) is vars(kproba)[name]  # found once
    assert kproba.kernels.Gaussian is kproba.Gaussian
    with pytest.raises(AttributeError, match="has no attribute 'SVC'"):
        kproba.SVC  # noqa: B018


def test_commands_are_summarised_by_the_first_line_of_their_module():
    found = {name: import_module(f"kproba.cli.{name}").__doc__.partition("\n\n")[0] for name in cli.COMMANDS}
    assert found == cli.COMMANDS
