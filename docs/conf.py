"""How the documentation site is built: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

import kproba

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "kproba"
author = "The kproba developers"
copyright = "The kproba developers"
version = release = kproba.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
exclude_patterns = ["_templates"]
nitpicky = False

# ---------------------------------------------------------------- pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# ---------------------------------------------------------------- the Python interface
autosummary_generate = True
autodoc_typehints = "none"  # docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # autodoc lists them
autodoc_default_options = {"members": True, "inherited-members": True, "undoc-members": False}
templates_path = ["_templates"]

# ---------------------------------------------------------------- the gallery
matplotlib.use("Agg")
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "reset_argv": "gallery.arguments",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "parallel": 2,
    "download_all_examples": False,
    "show_memory": False,
    "default_thumb_file": str(HERE / "_static" / "logo.svg"),  # of examples that were not run
    "min_reported_time": 1_000_000,  # how long examples take is in benchmarks/results
    "remove_config_comments": True,
}

# ---------------------------------------------------------------- the look
html_theme = "furo"
html_title = "kproba"
html_static_path = ["_static"]
html_logo = html_favicon = "_static/logo.svg"
html_show_sphinx = False
html_css_files = ["site.css"]
html_math_renderer = "mathml"


def without_scikit_learn(app, what, name, obj, skip, options) -> bool:
    """Leave out methods that every estimator inherits: their docstrings point into scikit-learn's own pages."""
    return skip or (getattr(obj, "__module__", None) or "").startswith("sklearn.")


def setup(app) -> None:
    app.connect("autodoc-skip-member", without_scikit_learn)
