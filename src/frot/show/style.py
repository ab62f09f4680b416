"""The style of all pictures: figures, colours, short names."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import TYPE_CHECKING, Any

from frot._base.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which stays distinct under every common colour blindness.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A8A8A"
INK, FAINT = "#333333", "#C9CDD2"
# Matplotlib's backends that have windows, as their names begin.
WINDOWS = ("tk", "qt", "gtk", "wx", "macosx")
_hidden: ContextVar[bool] = ContextVar("hidden", default=False)


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure that shows itself in notebooks.

    Where pyplot was imported and has windows, it is pyplot's, so that ``plt.show()`` shows it.
    """
    look: dict[str, Any] = {"figsize": (width, height), "layout": "constrained"}
    pyplot = sys.modules.get("matplotlib.pyplot")
    # Windows are for the main thread alone.
    shown = threading.current_thread() is threading.main_thread() and not _hidden.get()
    if shown and pyplot is not None and pyplot.get_backend().lower().startswith(WINDOWS):
        return pyplot.figure(**look)
    figure: Any = require("matplotlib.figure", "plot").Figure(**look)
    # A notebook draws figures of pyplot by itself, and any other object by this method.
    figure._repr_png_ = lambda: png(figure)
    return figure


@contextmanager
def no_windows() -> Iterator[None]:
    """Make figures for files: pyplot does not know of them."""
    before = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(before)


def png(figure: Figure, clear: bool = False, colours: int | None = None) -> bytes:
    """Return the figure as the bytes of a .png file, on a white ground or on none.

    With `colours`, 256 at most, it has a third of the bytes; colour maps need more.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144, transparent=clear)
    if colours is not None:
        image = require("PIL.Image", "plot")
        # The one of Pillow's methods that keeps how clear a pixel is.
        few = image.open(buffer).quantize(colours, method=image.Quantize.FASTOCTREE)
        buffer = io.BytesIO()
        few.save(buffer, "png", optimize=True)
    return buffer.getvalue()


def tidy(axes: Axes) -> Axes:
    """Remove what carries no information: the upper and right frame, the dark ticks."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GREY)
    axes.tick_params(colors=INK, labelsize=9)
    axes.xaxis.label.set_fontsize(10)
    axes.yaxis.label.set_fontsize(10)
    return axes


def legend_above(axes: Axes, columns: int) -> None:
    """Name what is drawn, above the axes, where no point can be behind the legend."""
    axes.legend(
        ncols=columns, frameon=False, fontsize=9, handlelength=1.2, handletextpad=0.4,
        loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2,
    )  # fmt: skip


def legend_below(figure: Any, *panels: Axes, columns: int, size: float = 10.0, **more: Any) -> None:
    """Name what is drawn on some panels, once, below all of the figure."""
    named = [panel.get_legend_handles_labels() for panel in panels]
    handles, labels = (list(chain(*parts)) for parts in zip(*named, strict=True))
    look = {"loc": "outside lower center", "frameon": False, "fontsize": size, "ncols": columns}
    figure.legend(handles, labels, **look, **more)


def colour_bar(image: Any, axes: Any, label: str, **place: Any) -> None:
    """Say beside the axes which colour is which number."""
    first = axes if hasattr(axes, "figure") else axes[0]
    look = {"shrink": 0.7, "pad": 0.015, "aspect": 24} | place
    bar = first.figure.colorbar(image, ax=axes, **look)
    bar.set_label(label, fontsize=9, color=INK)
    bar.ax.tick_params(colors=INK, labelsize=8)
    bar.outline.set_visible(False)


def shorten(name: str, length: int = 28) -> str:
    """Cut a long name in the middle, since both of its ends tell names apart.

    Examples
    --------
    >>> shorten("HALLMARK_OXIDATIVE_PHOSPHORYLATION", 20)
    'HALLMARK_O…HORYLATION'
    >>> shorten("age")
    'age'
    """
    name = " ".join(name.split())
    if len(name) > length:
        half = length // 2
        name = f"{name[:half]}…{name[len(name) - half :]}"
    return name


def plain(text: str) -> str:
    r"""Keep matplotlib from reading the user's dollar signs as mathematics."""
    return text.replace("$", r"\$")
