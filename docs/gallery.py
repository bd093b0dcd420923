"""What the gallery tells the examples that it runs."""

from __future__ import annotations


def arguments(gallery_conf, script_vars) -> list[str]:
    """Options of an example: figures stay open for the gallery, and what would take long is made small."""
    return ["--show"] if script_vars["src_file"].endswith("demo.py") else ["--quick", "--show"]
