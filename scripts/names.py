"""Write the names of kernels, links and solvers from their registries into the docs, docstrings and annotations.

    python scripts/names.py            # write
    python scripts/names.py --check    # write nothing; fail if a file is out of date

In a page, a table is between ``<!-- names: TABLE -->`` and ``<!-- /names -->``. In Python files, the script finds the
lists by the lines around them.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from pathlib import Path

from kproba.estimators import klr, lspc, surface
from kproba.kernels import KERNELS, Kernel
from kproba.links import LINKS
from kproba.papers.surface_solvers import SOLVERS as SURFACE
from kproba.solvers import box_qp

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "src/kproba/"
PAGES = ("docs/lspc.md", "docs/klr.md", "docs/surface.md", "docs/sequences.md")
ESTIMATORS = {"lspc": lspc.SOLVERS, "klr": klr.SOLVERS, "surface": SURFACE, "ivm": {}}
MARKED = re.compile(r"(<!-- names: (\w+) -->\n).*?(<!-- /names -->)", re.DOTALL)


def grouped(registry: dict) -> dict[tuple[str, ...], object]:
    """Names of the same object together, the first one being the one that lists show."""
    found: list[tuple[list[str], object]] = []
    for name, entry in registry.items():
        same = next((names for names, other in found if other == entry and entry is not None), None)
        found.append(([name], entry)) if same is None else same.append(name)
    return {tuple(names): entry for names, entry in found}


def main_names(registry: dict) -> list[str]:
    """All names but second ones, such as "rbf"; "auto" counts as a name of its own."""
    firsts = [names[0] for names in grouped({name: each for name, each in registry.items() if name != "auto"})]
    return ["auto", *firsts] if "auto" in registry else firsts


def summary(entry: object) -> str:
    """The first paragraph of a docstring, as Markdown."""
    text = " ".join((inspect.getdoc(entry) or "").split("\n\n")[0].split())
    return re.sub(r":\w+:`[~.\w]*?(\w+)`", r"`\1`", text).replace("``", "`").replace("|", "\\|")


def named(names: tuple[str, ...]) -> str:
    return ", ".join(f'`"{name}"`' for name in names)


def table(header: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *rows])


def kernel_table() -> str:
    rows = []
    for names, kind in grouped({name: type(kernel) for name, kernel in KERNELS.items()}).items():
        flags = kind.has_width, kind.runs_on_devices, "onnx_scores" in vars(kind)
        rows.append([named(names), kind.compares, summary(kind), *("yes" if flag else "" for flag in flags)])
    return table(["`kernel`", "compares", "what it computes", "width", "device", "ONNX"], rows)


def item_table() -> str:
    special = {names: kernel for names, kernel in grouped(KERNELS).items() if kernel.compares != Kernel.compares}
    special = {names: kernel for names, kernel in special.items() if names != ("precomputed",)}
    rows = [
        [kernel.compares, f"`{type(kernel).__name__}`", named(names), kernel.extra and f"`kproba[{kernel.extra}]`"]
        for names, kernel in special.items()
    ]
    return table(["rows", "kernel", "name", "needs"], [*rows, ["any objects", "a function of two lists", "", ""]])


def link_table() -> str:
    return table(["`link`", "what it does"], [[named(names), summary(link)] for names, link in grouped(LINKS).items()])


def solver_table(registry: dict) -> str:
    """Without "auto", unless it is another name of a solver."""
    rows = [[named(names), summary(entry)] for names, entry in grouped(registry).items() if entry is not None]
    return table(["`solver`", "what it does"], rows)


TABLES = {
    "kernels": kernel_table,
    "items": item_table,
    "links": link_table,
    "lspc_solvers": lambda: solver_table(lspc.SOLVERS),
    "klr_solvers": lambda: solver_table(klr.SOLVERS),
    "surface_solvers": lambda: solver_table({**SURFACE, "exact": box_qp.maximise}),
}


def quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def kernel_paragraph() -> str:
    """The names by what they compare, for docstrings."""
    groups: dict[str, list[str]] = {}
    for name in main_names(KERNELS):
        groups.setdefault(KERNELS[name].compares, []).append(f'``"{name}"``')
    parts = [", ".join(groups.pop(Kernel.compares))]
    parts += [f"for {compares} {' and '.join(names)}" for compares, names in groups.items()]
    text = f'The names are ``"auto"``, {"; ".join(parts)}.'
    return textwrap.fill(text, 120, initial_indent=" " * 8, subsequent_indent=" " * 8) + "\n"


def renewed_estimator(text: str, solvers: dict, links: list[str]) -> str:
    """An estimator's file with the names in its docstring and its annotations."""
    text = re.sub(r"        The names are .*?\.\n(?=    \w)", lambda _: kernel_paragraph(), text, flags=re.DOTALL)
    for parameter, names in (("solver", main_names(solvers) if solvers else []), ("link", links)):
        text = re.sub(rf"(\n    {parameter} : {{)[^}}]*(}})", lambda m, n=names: f"{m[1]}{quoted(n)}{m[2]}", text)
        text = re.sub(
            rf"(\n        {parameter}: Literal\[)[^]]*(\])", lambda m, n=names: f"{m[1]}{quoted(n)}{m[2]}", text
        )
    return text


def renewed_types(text: str) -> str:
    lines = "".join(f'        "{name}",\n' for name in ["auto", *main_names(KERNELS)])
    text = re.sub(r"(KernelLike: TypeAlias = \(\n    Literal\[\n).*?(    \])", rf"\1{lines}\2", text, flags=re.DOTALL)
    return re.sub(r"(LinkName: TypeAlias = Literal\[)[^]]*", rf"\1{quoted(main_names(LINKS))}", text)


def renewed() -> dict[Path, tuple[str, str]]:
    """File -> its text as it is, and as the registries say."""
    found = {}
    for page in (ROOT / name for name in PAGES):
        text = page.read_text(encoding="utf-8")
        found[page] = text, MARKED.sub(lambda m: f"{m[1]}\n{TABLES[m[2]]()}\n\n{m[3]}", text)
    for name, solvers in ESTIMATORS.items():
        path = ROOT / SOURCE / "estimators" / f"{name}.py"
        text, links = path.read_text(encoding="utf-8"), surface.OWN_LINKS if name == "surface" else LINKS
        found[path] = text, renewed_estimator(text, solvers, main_names(links))
    types = ROOT / SOURCE / "typing.py"
    found[types] = types.read_text(encoding="utf-8"), renewed_types(types.read_text(encoding="utf-8"))
    return found


def main() -> None:
    stale = {path: new for path, (old, new) in renewed().items() if old != new}
    if "--check" in sys.argv and stale:
        sys.exit(f"out of date: {', '.join(path.name for path in stale)}; run python scripts/names.py")
    for path, new in stale.items():
        path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
