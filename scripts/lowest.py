"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

`make lowest` installs the wheel with them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
#: What only those who work on kproba install.
OWN = ("bench", "test", "docs", "mutation", "dev", "fuzz")
LOWEST = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?>=([\w.]+)$")


def lowest(project: dict) -> dict[str, str]:
    """Name -> lowest version, of the dependencies and of every extra that a user can ask for."""
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for name in extras if name not in OWN for each in extras[name])]
    return dict(_lowest(each) for each in wanted if not each.startswith("kproba["))


def _lowest(requirement: str) -> tuple[str, str]:
    found = LOWEST.fullmatch(requirement)
    if found is None:
        raise ValueError(f"{requirement}: a requirement has a lowest version and nothing else, as in numpy>=1.26.")
    return found[1], found[2]


def main() -> None:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    print("\n".join(f"{name}=={version}" for name, version in lowest(project).items()))


if __name__ == "__main__":
    main()
