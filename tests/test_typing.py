"""Type checkers accept what the documentation shows and refuse what is wrong; annotations name what the code knows."""

import inspect
import json
import subprocess
import sys
import typing
from pathlib import Path

import kproba
from kproba import kernels, links
from kproba import typing as types
from kproba.data import scaling

CALLS = Path(__file__).with_name("typed_calls.py")
PACKAGE = Path(kproba.__file__).parent


def run(*command: object) -> str:
    found = subprocess.run([sys.executable, "-m", *map(str, command)], capture_output=True, text=True, check=False)
    return found.stdout + found.stderr if found.returncode else ""


def test_mypy_strict(tmp_path):
    assert not run("mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}", CALLS)


def test_pyright(tmp_path):
    """basedpyright is Pyright with all that it needs inside its wheel: Pyright's own downloads itself when it runs."""
    settings = {
        "include": [str(CALLS)],
        "typeCheckingMode": "standard",
        "reportUnnecessaryTypeIgnoreComment": "error",
        "extraPaths": [str(PACKAGE.parent)],
    }
    project = tmp_path / "pyrightconfig.json"
    project.write_text(json.dumps(settings))
    assert not run("basedpyright", "--pythonpath", sys.executable, "--project", project)


def names_in(alias) -> set:
    """The strings of the literals of a union."""
    return {name for part in typing.get_args(alias) for name in typing.get_args(part) if isinstance(name, str)}


def test_names_of_kernels():
    assert names_in(types.KernelLike) == {"auto", *kernels.KERNELS} - {"rbf", "poly"}  # which are for those used to SVC


def test_names_of_links_and_scalings():
    assert names_in(types.LinkName) == set(links.LINKS)
    assert names_in(types.ScalingName) == set(scaling.MODES) - {None}


def public_functions() -> dict:
    """Functions, constructors and methods of ours that users call; kernels and exceptions have fields."""
    found = {}
    for module in (kproba, kproba.metrics, kproba.displays, kproba.recipes):
        for name, each in inspect.getmembers(module, callable):
            if each.__module__ != module.__name__ and name not in getattr(module, "__all__", ()):
                continue
            is_plain = not isinstance(each, type) or issubclass(each, kproba.Kernel | Exception)
            members = [] if is_plain else inspect.getmembers(each)
            found |= {name: each} if inspect.isfunction(each) else {f"{name}.{key}": value for key, value in members}
    return {name: f for name, f in found.items() if _is_ours(name.rpartition(".")[2], f)}


def _is_ours(name: str, member) -> bool:
    function = inspect.unwrap(getattr(member, "__func__", member))
    is_public = name == "__init__" or not name.startswith("_")
    return is_public and inspect.isfunction(function) and function.__module__.startswith("kproba")


def test_public_signatures_are_annotated():
    functions = public_functions()
    assert {"LSPC.__init__", "LSPC.fit", "LSPC.predict_proba", "to_onnx", "brier_score"} < set(functions)
    bare = []
    for name, function in functions.items():
        signature = inspect.signature(function)
        given = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
        bare += [f"{name}: {p.name}" for p in given if p.annotation is p.empty]
        bare += [f"{name} ->"] if signature.return_annotation is signature.empty else []
    assert not bare


def test_wheel_has_the_marker():
    """The wheel takes the whole package; a checker ignores annotations without this file."""
    assert (PACKAGE / "py.typed").is_file()
