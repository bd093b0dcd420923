"""Figures of the package's structure: how a fit moves through it, and who imports whom.

    python scripts/structure.py

A hand-off is a place, in ``LSPC().fit``, where one file calls a method of the estimator that another file defines.
Import edges are between modules of kproba, lazy imports included.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "src" / "kproba"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports() -> dict[str, set[str]]:
    """Module -> the modules of kproba that it imports, anywhere in its code, except for type checkers alone."""
    modules = {module_name(path): path for path in ROOT.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        found[name] = {target for target in _targets(ast.parse(path.read_text()), package, modules) if target != name}
    return found


def _targets(tree: ast.AST, package: str, modules: dict[str, Path]):
    for node in _running(tree):
        if isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{source}.{alias.name}"
                if whole in modules or source in modules:
                    yield whole if whole in modules else source
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)


def _running(tree: ast.AST):
    """All nodes but those below ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if (
            isinstance(node, ast.If)
            and "TYPE_CHECKING" in ast.unparse(node.test)
            and "not" not in ast.unparse(node.test)
        ):
            continue
        yield node
        yield from _running(node)


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other in a circle (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in edges.get(name, ()):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = [stack.pop()]
            while group[-1] != name:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for name in edges:
        if name not in index:
            visit(name)
    return found


def by_folder(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """The same between the folders and the files at the top."""
    whole: dict[str, set[str]] = defaultdict(set)
    for name, targets in edges.items():
        for target in targets:
            one, two = _top(name), _top(target)
            if one != two:
                whole[one].add(two)
    return whole


def _top(name: str) -> str:
    return ".".join(name.split(".")[:2])


def walk_of_a_fit() -> tuple[int, list[tuple[str, str]]]:
    """Hand-offs of a fit, and the functions of the package with their files, in the order in which it enters them."""
    from sklearn.datasets import load_iris

    from kproba import LSPC

    X, y = load_iris(return_X_y=True)
    model = LSPC(random_state=0, n_jobs=1)
    entered: dict[tuple[str, str], None] = {}
    handed = set()

    def watch(frame, event, argument):
        path, caller = frame.f_code.co_filename, frame.f_back
        if event != "call" or not path.startswith(str(ROOT)):
            return
        entered[str(Path(path).relative_to(ROOT)), frame.f_code.co_qualname] = None
        if frame.f_locals.get("self") is model and caller is not None:
            place = caller.f_code.co_filename, caller.f_lineno
            if place[0] != path and place[0].startswith(str(ROOT)):
                handed.add((*place, frame.f_code.co_name))

    sys.setprofile(watch)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(None)
    return len(handed), list(entered)


def main() -> None:
    edges = imports()
    handed, entered = walk_of_a_fit()
    groups, tops = cycles(edges), by_folder(edges)
    lines = sum(len(path.read_text().splitlines()) for path in ROOT.rglob("*.py"))
    print(f"files at the top: {len(list(ROOT.glob('*.py')))}")
    print(f"hand-offs of an LSPC fit: {handed}")
    print(f"files touched by it: {len({path for path, _ in entered})}")
    print(f"import edges per module: {sum(map(len, edges.values())) / len(edges):.1f}")
    print(f"largest cycle of modules: {max(map(len, groups), default=0)}")
    print(f"largest cycle of folders: {max(map(len, cycles(tops)), default=0)}")
    print(f"lines: {lines}")


if __name__ == "__main__":
    main()
