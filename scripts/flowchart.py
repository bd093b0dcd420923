"""Stack the boxes of the flowchart in one column that reads on a phone: choose.svg -> choose_phone.svg.

python scripts/flowchart.py            # write
python scripts/flowchart.py --check    # write nothing; fail if the file is out of date
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

STATIC = Path(__file__).resolve().parents[1] / "docs" / "_static"
WIDE, NARROW = STATIC / "choose.svg", STATIC / "choose_phone.svg"
WIDTH, INDENT, STEM, GAP, LETTERS = 400, 72, 26, 16, 44


class Box(NamedTuple):
    """A rectangle or a line of text: its CSS class, its lines with theirs, and where it leads."""

    kind: str
    lines: list[tuple[str, str]]
    target: str | None = None


def boxes(svg: str) -> list[Box]:
    """The boxes of the chart from top to bottom; words beside arrows are left out."""
    root = ElementTree.fromstring(svg.replace('xmlns="http://www.w3.org/2000/svg"', "", 1))
    found: list[Box] = []
    for each in root:
        if each.tag == "a":
            found.append(Box(each.find("rect").get("class"), _lines(each), each.get("href")))
        elif each.tag == "rect" and each.get("class") == "question":
            found.append(Box("question", []))
        elif each.tag == "text" and each.get("class") == "left":
            found.append(Box("heading", [("left", each.text)]))
        elif each.tag == "text" and not each.get("class"):
            found[-1].lines.append(("", each.text))
    return found


def _lines(link: ElementTree.Element) -> list[tuple[str, str]]:
    """The name of a box, and what it says in lines that fit."""
    texts = [(each.get("class", ""), each.text or "") for each in link.iter("text")]
    says = " ".join(text for kind, text in texts if kind == "small")
    return [line for line in texts if line[0] != "small"] + [("small", line) for line in _folded(says)]


def _folded(text: str) -> list[str]:
    """A long text on two lines, the second one behind its last comma."""
    first, comma, second = text.rpartition(", ")
    return [first + ",", second] if comma and len(text) > LETTERS else [text]


def stacked(svg: str) -> str:
    """The same chart, one box below the other."""
    body, y, stem = [], 12.0, None
    for box in boxes(svg):
        if stem is not None and box.kind in ("question", "end best"):
            body += _no(stem, y)
            stem = None
        x = INDENT if stem is not None and box.kind != "heading" else 8
        if x == INDENT:
            body += [f'<path class="line" d="M{STEM} {y + 30:g}H{x - 2}" marker-end="url(#tip)"/>']
            body += [f'<text x="{(STEM + x) / 2:g}" y="{y + 24:g}" class="small">yes</text>']
        drawn, height = _box(box, x, y)
        body += drawn
        stem = y + height if box.kind == "question" else stem
        y += height + (30 if box.kind in ("end", "on", "out") else GAP)
    return _page(svg, body, y)


def _no(top: float, bottom: float) -> list[str]:
    """The stem from a question to the next one."""
    label = f'<text x="{STEM + 16}" y="{bottom - 10:g}" class="small">no</text>'
    return [f'<path class="line" d="M{STEM} {top:g}V{bottom - 2:g}" marker-end="url(#tip)"/>', label]


def _box(box: Box, x: float, y: float) -> tuple[list[str], float]:
    if box.kind == "heading":
        return [f'<text x="{x}" y="{y + 22:g}" class="left">{escape(box.lines[0][1])}</text>'], 26
    width, height = WIDTH - 8 - x, 20 + 21 * len(box.lines)
    drawn = [f'<rect class="{box.kind}" x="{x}" y="{y:g}" width="{width}" height="{height}" rx="8"/>']
    for number, (kind, text) in enumerate(box.lines):
        place = f'x="{x + width / 2:g}" y="{y + 26 + 21 * number:g}"'
        drawn.append(
            f'<text {place} class="{kind}">{escape(text)}</text>' if kind else f"<text {place}>{escape(text)}</text>"
        )
    return [f'<a href="{box.target}" target="_top">', *drawn, "</a>"] if box.target else drawn, height


def _page(svg: str, body: list[str], height: float) -> str:
    """The chart's own head, from its title to its arrow tips, around the new boxes."""
    head = re.search(r"  <title.*</defs>\n", svg, re.DOTALL)[0]
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" aria-labelledby="title desc">'
    paper = f'  <rect class="paper" width="{WIDTH}" height="{height:g}" rx="12"/>'
    return "\n".join([opening, head + paper, *(f"  {line}" for line in body), "</svg>"]) + "\n"


def main() -> None:
    new = stacked(WIDE.read_text(encoding="utf-8"))
    if NARROW.exists() and NARROW.read_text(encoding="utf-8") == new:
        return
    if "--check" in sys.argv:
        sys.exit(f"out of date: {NARROW.name}; run python scripts/flowchart.py")
    NARROW.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
