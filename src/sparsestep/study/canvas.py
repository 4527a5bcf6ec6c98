"""What the study's pictures share: colours, and files that are the same on every run."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "GREY",
    "INK",
    "LETTERS",
    "PALE",
    "blank",
    "inline_svg",
    "png",
    "style",
    "svg",
]

# Of Okabe and Ito's colours, which people with colour blindness tell apart.
COLOURS = {
    "OLS": "#8C8C8C",
    "Ridge": "#E69F00",
    "Lasso": "#56B4E9",
    "SCAD": "#009E73",
    "MC+": "#CC79A7",
    "SparseStep": "#0072B2",
}
LETTERS = {"OLS": "O", "Ridge": "R", "Lasso": "L", "SCAD": "C", "MC+": "M", "SparseStep": "S"}
# Values that no other colour has: on a page, `inline_svg` gives them the page's own colours.
INK, GREY, PALE = "#222223", "#707071", "#CBCBCC"
_OF_THE_PAGE = {INK: "var(--ink)", GREY: "var(--soft)", PALE: "var(--rule)"}


@contextmanager
def style() -> Iterator[None]:
    """Settings under which pictures are drawn and saved, whatever the user's own are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                # Without a salt the names of the parts of an SVG differ from run to run.
                "svg.hashsalt": "sparsestep",
                "font.size": 9.0,
                "text.color": INK,
                "axes.labelcolor": INK,
                "axes.edgecolor": INK,
                "xtick.color": INK,
                "ytick.color": INK,
                "text.parse_math": False,
            }
        )
        yield


def blank(width: float, height: float, *, constrained: bool = False) -> Figure:
    """An empty figure of a size in inches, known to no window and no list of figures."""
    figure = Figure((width, height), layout="constrained" if constrained else None)
    FigureCanvasAgg(figure)
    return figure


def svg(figure: Figure, *, transparent: bool = False) -> str:
    """The figure as SVG, with letters as outlines: the same bytes wherever it is drawn."""
    buffer = io.StringIO()
    if figure.get_layout_engine() is not None:
        # Labels find their places while they are drawn, and the layout follows them.
        figure.draw_without_rendering()
    figure.savefig(
        buffer, format="svg", transparent=transparent, metadata={"Date": None, "Creator": None}
    )
    return buffer.getvalue()


def png(figure: Figure) -> bytes:
    """The figure as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160, metadata={"Software": None})
    return buffer.getvalue()


def inline_svg(figure: Figure, name: str, title: str) -> str:
    """The figure as a piece of a page: names of its parts made unique, colours the page's own."""
    text = svg(figure, transparent=True)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<defs/>", "", text, flags=re.S)
    text = re.sub(r'<g id="[a-z0-9]+_\d+"', "<g", text)
    text = re.sub(r'(\sid="|"#|url\(#)', rf"\g<1>{name}-", text)
    for colour, variable in _OF_THE_PAGE.items():
        text = text.replace(colour.lower(), variable)
    # The page gives the width; the height follows from the view box.
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return text.replace("<svg", f'<svg role="img" aria-label="{title}"', 1)
