"""The pages: every block of code runs, links lead somewhere, and the reference names everything public.

Blocks of Python are doctests, which `make test` collects from the pages themselves; here are the other kinds.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from pkgutil import resolve_name

import pytest

import kproba
from kproba import cli

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of every fenced block; a directive of the site, which is no code, is left out."""
    found = [(language.strip(), text) for _, language, text in FENCE.findall(page.read_text())]
    return [(language, text) for language, text in found if not language.startswith("{")]


def commands(page: Path) -> list[str]:
    """Lines behind a prompt."""
    shell = [text for language, text in blocks(page) if language == "console"]
    return [line[2:] for text in shell for line in text.splitlines() if line.startswith("$ ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_of_a_kind_that_runs(page):
    for language, text in blocks(page):
        if language == "text" and page.stem == "CONTRIBUTING":
            continue  # pictures of the code, which test_structure.py checks
        assert language in ("python", "console", "sh"), f"{page.name}: nothing runs this block:\n{text}"
        if language == "python":
            assert text.startswith(">>> ") and text.endswith("\n\n"), f"{page.name}: this is no doctest:\n{text}"


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_commands_run(page, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for line in commands(page):
        assert status(line) == 0, f"{page.name}: {line}\n{capfd.readouterr().err}"


def status(line: str) -> int:
    """Exit status of a line that begins with ``python``, or with ``kproba``, which need not be imported again."""
    program, *words = shlex.split(line, comments=True)
    assert program in ("kproba", "python"), line
    return cli.main(words) if program == "kproba" else subprocess.run([sys.executable, *words], timeout=300).returncode


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_targets_of_make_are_there(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {words[1] for words in shell(page) if words[0] == "make"} <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pip_is_asked_for_this_folder_and_for_extras_that_there_are(page):
    """`pip install kproba` in a block would be copied, and find nothing until kproba is published."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for words in shell(page):
        assert words[0] in ("make", "pip"), f"{page.name}: {' '.join(words)}"
        if words[0] == "pip":
            found = re.fullmatch(r"\.(?:\[([a-z,]+)\])?", words[-1])
            assert found and words[1] == "install", f"{page.name}: {' '.join(words)}"
            assert set(filter(None, (found[1] or "").split(","))) <= set(extras)


def shell(page: Path) -> list[list[str]]:
    """The words of every line of a block of shell, without comments."""
    texts = [text for language, text in blocks(page) if language == "sh"]
    return [shlex.split(line, comments=True) for text in texts for line in text.splitlines()]


def slugs(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def is_there(target: str, page: Path) -> bool:
    name, _, anchor = target.partition("#")
    found = (page.parent / name).resolve() if name else page
    return found.exists() and (not anchor or anchor in slugs(found))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    text = FENCE.sub("", page.read_text())
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|data)="([^"]+)"', text)
    assert [each for each in targets if not each.startswith("http") and not is_there(each, page)] == []


@pytest.mark.parametrize("name", ["choose.svg", "choose_phone.svg"])
def test_the_flowchart_leads_to_guides(name):
    chart = (ROOT / "docs" / "_static" / name).read_text()
    targets = re.findall(r'href="\.\./([^"]+)"', chart)
    assert len(targets) > 10
    assert all(is_there(each.replace(".html", ".md"), ROOT / "docs" / "choose.md") for each in targets)


def test_the_flowchart_for_phones_is_that_of_the_wide_one():
    subprocess.run([sys.executable, ROOT / "scripts" / "flowchart.py", "--check"], check=True)


def test_the_readme_names_every_guide():
    readme = (ROOT / "README.md").read_text()
    of_the_site = {"index.md", "api.md", "contributing.md", "changelog.md", "security.md"}
    assert {page.name for page in ROOT.glob("docs/*.md") if f"(docs/{page.name})" not in readme} == of_the_site


def test_reference_is_complete():
    """Every public name is on the page of the API, the warnings in one block."""
    page = (ROOT / "docs" / "api.md").read_text()
    listed = set(re.findall(r"^   ([\w.]+)$", page, re.MULTILINE))
    public = set(kproba.__all__) - {"metrics", "displays"} - set(vars(kproba.exceptions))
    assert public <= listed
    for name in listed:
        resolve_name(f"kproba.{name}")
