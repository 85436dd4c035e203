"""Sphinx configuration; writes the reference pages from the registry and the commands' own help."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import reference_pages  # noqa: E402

import discreet  # noqa: E402

project = "discreet"
author = "the discreet authors"
release = version = discreet.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "discreet"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
autosummary_generate = False
numpydoc_show_class_members = False
autodoc_typehints = "none"
suppress_warnings = ["myst.header"]

reference_pages.write(HERE / "reference" / "generated")
