"""How Sphinx builds the site: ``sphinx-build -W docs site``."""

import click
from sphinx.application import Sphinx

import compression_eval
from compression_eval import __version__
from compression_eval.cli import main
from compression_eval.terminal import LateGroup

# Public names are imported on first use; autodoc sees only those that were.
for name in compression_eval.__all__:
    setattr(compression_eval, name, getattr(compression_eval, name))
# So are commands, which the extension for click looks for in this mapping.
context = click.Context(main)
for group in (main, main.get_command(context, "probes")):
    assert isinstance(group, LateGroup)  # noqa: S101
    group.commands = {name: group.get_command(context, name) for name in group.late}  # type: ignore[misc]

project = "compression_eval"
project_copyright = author = "The compression_eval developers"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
]
exclude_patterns = ["findings/*"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}

html_theme = "furo"
html_title = "compression_eval"
html_theme_options = {"top_of_page_buttons": []}


def setup(app: Sphinx) -> None:
    """Keep the stars of patterns in help texts from being read as markup."""

    def escape(_app: Sphinx, _context: click.Context, lines: list[str]) -> None:
        lines[:] = [line.replace("*", "\\*") for line in lines]

    for part in ("description", "options", "epilog"):
        app.connect(f"sphinx-click-process-{part}", escape)
