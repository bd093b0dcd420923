"""What the package index is told and pyproject.toml does not say: hatchling runs this when it builds kproba.

The address of the repository comes from KPROBA_REPOSITORY, which the release workflow sets, and from nowhere else. With
it, the metadata has links, and the links and pictures of the README lead there from the page on the package index.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r'(\]\(|src=")(?![a-z]+:|#)([^)"]+)')


def absolute(text: str, repository: str, tag: str) -> str:
    """The page with links into the repository: pictures as they are, everything else to be read there."""
    kinds = {'src="': "raw", "](": "blob"}
    return LINK.sub(lambda found: f"{found[1]}{repository}/{kinds[found[1]]}/{tag}/{found[2]}", text)


def urls(repository: str, tag: str) -> dict[str, str]:
    pages = {"Documentation": "tree/{}/docs", "Changelog": "blob/{}/CHANGELOG.md", "Issues": "issues"}
    return {"Source": repository, **{name: f"{repository}/{page.format(tag)}" for name, page in pages.items()}}


class Metadata(MetadataHookInterface):
    def update(self, metadata: dict) -> None:
        repository = os.environ.get("KPROBA_REPOSITORY", "").rstrip("/")
        text, version = (
            (Path(self.root) / name).read_text(encoding="utf-8") for name in ("README.md", "src/kproba/version.py")
        )
        tag = "v" + re.findall(r'^__version__ = "(.+)"$', version, re.MULTILINE)[0]
        if repository:
            text, metadata["urls"] = absolute(text, repository, tag), urls(repository, tag)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
