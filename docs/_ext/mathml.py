"""Formulas as MathML, which browsers draw themselves: no script, no font and no network needed."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import pick_math_environment
from docutils.utils.math.latex2mathml import tex2mathml

# Sizes by hand, which docutils does not take everywhere.
SIZES = re.compile(r"\\(?:[Bb]igg?[lr]?|textstyle)(?![a-zA-Z])")


def to_mathml(code: str, as_block: bool) -> str:
    """Return a formula as MathML."""
    code = SIZES.sub("", code).replace(r"\dots", r"\ldots")
    if as_block and pick_math_environment(code).startswith("align") and r"\begin" not in code:
        code = rf"\begin{{align*}}{code}\end{{align*}}"
    return tex2mathml(code, as_block=as_block)


def visit_inline(self: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(to_mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.math_block) -> None:
    """Write a formula of its own, which scrolls by itself where the page is narrow."""
    formula = to_mathml(node.astext(), as_block=True)
    self.body.append(f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer as ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
