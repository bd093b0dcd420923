"""Links of the guides: files and headings that they name are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def slugs(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def is_there(target: str, page: Path) -> bool:
    name, _, anchor = target.partition("#")
    found = (page.parent / name).resolve() if name else page
    return found.exists() and (not anchor or anchor in slugs(found))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|data)="([^"]+)"', text)
    lost = [target for target in targets if not target.startswith(("http:", "https:")) and not is_there(target, page)]
    assert not lost


def test_the_flowchart_leads_to_guides():
    chart = ROOT / "docs" / "_static" / "choose.svg"
    targets = re.findall(r'href="\.\./([^"]+)"', chart.read_text(encoding="utf-8"))
    assert len(targets) > 10
    assert all(is_there(target.replace(".html", ".md"), ROOT / "docs" / "choose.md") for target in targets)


def test_the_readme_names_every_guide():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    guides = {page.name for page in ROOT.glob("docs/*.md")} - {"index.md"}
    assert {name for name in guides if f"(docs/{name})" not in readme} == set()
