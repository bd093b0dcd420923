"""What the package index, pip and those who cite it are told."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

import kproba

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = "https://example.org/kproba"


def script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def told(monkeypatch):
    """The metadata that is made with an address of the repository, or without."""

    def told(repository: str) -> dict:
        monkeypatch.setenv("KPROBA_REPOSITORY", repository)
        metadata: dict = {}
        script("metadata").Metadata(str(ROOT), {}).update(metadata)
        return metadata

    return told


def test_links_of_the_readme_lead_into_the_repository_at_the_version(told):
    metadata = told(f"{REPOSITORY}/")
    text = metadata["readme"]["text"]
    targets = re.findall(r'(?:\]\(|src=")([^)"]+)', text)
    assert len(targets) > 30 and all(each.startswith("https://") for each in targets)
    assert f"({REPOSITORY}/blob/v{kproba.__version__}/docs/choose.md)" in text
    assert f'src="{REPOSITORY}/raw/v{kproba.__version__}/docs/_static/report.png"' in text
    assert metadata["urls"]["Source"] == REPOSITORY and len(metadata["urls"]) == 4


def test_without_an_address_no_address_is_made_up(told):
    metadata = told("")
    assert "urls" not in metadata
    assert metadata["readme"]["text"] == (ROOT / "README.md").read_text(encoding="utf-8")


def test_absolute_links_stay():
    text = "[a](https://a.org) [b](#b) [c](docs/c.md#d)"
    assert script("metadata").absolute(text, "R", "v1") == "[a](https://a.org) [b](#b) [c](R/blob/v1/docs/c.md#d)"


def test_lowest_versions_are_those_of_all_that_users_install():
    found = script("lowest").lowest(PROJECT)
    assert set(found) >= {re.split(r"[>\[]", each)[0] for each in PROJECT["dependencies"]}
    assert re.fullmatch(r"[\d.]+", found["dask"]) and "pytest" not in found


def test_an_upper_bound_is_refused_until_somebody_says_what_it_means():
    with pytest.raises(ValueError, match=r"numpy<3: .* as in numpy>=1.26"):
        script("lowest").lowest({"dependencies": ["numpy<3"], "optional-dependencies": {}})


def test_citation_names_this_version():
    assert f"\nversion: {kproba.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
