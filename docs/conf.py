"""How Sphinx builds these pages; `make docs` runs it."""

from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import sparsestep

project = "sparsestep"
author = "the sparsestep developers"
project_copyright = author
version = release = sparsestep.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
# The study's tables are included in a page.
exclude_patterns = ["_build", "study"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autosummary_generate = True
# The list beside a class has no room for its name before every method.
toc_object_entries_show_parents = "hide"
# The docstrings list attributes themselves, and the template the methods.
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    # Pictures, what is printed, and pages; not whatever the last line of a block evaluates to.
    "capture_repr": ("_repr_html_",),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "sparsestep"
html_static_path = ["_static"]
html_css_files = ["sparsestep.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    # The field for a search would push six links onto two lines.
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# A page without pages below it needs no column to list them.
html_sidebars = {page.stem: [] for page in Path(__file__).parent.glob("*.md")}
html_math_renderer = "mathml"


def _inline(writer, node):
    """A formula within a sentence."""
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(writer, node):
    """A formula on a line of its own."""
    writer.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    """Write formulas as MathML: unlike MathJax it needs no script from another site."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
