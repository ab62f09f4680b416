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
    markup = tex2mathml(code, as_block=as_block)
    # Angle brackets are as high as the letters between them, not as the sums beside them.
    return re.sub(r"<mo[^>]*>([⟨⟩])</mo>", r'<mo stretchy="false">\1</mo>', markup)


# Relations and signs between which a formula within a line may be broken.
BREAKS = re.compile(r"(?:\\(?:le|ge|in|to)(?![a-zA-Z])|(?<![_^=])=|(?<=\s)[+-](?=\s))")


def pieces(code: str) -> list[str]:
    """Cut a formula before its relations and signs, outside of all brackets: browsers do not."""
    parts, start = [], 0
    for place in BREAKS.finditer(code):
        before = code[: place.start()]
        opened = sum(before.count(mark) for mark in "{([") + len(re.findall(r"\\langle", before))
        closed = sum(before.count(mark) for mark in "})]") + len(re.findall(r"\\rangle", before))
        if opened == closed and place.start() - start > 12:
            parts.append(code[start : place.start()])
            start = place.start()
    parts.append(code[start:])
    # An operator that begins a piece keeps its spaces if something is before it.
    return [parts[0], *(f"{{}} {piece}" for piece in parts[1:])]


def visit_inline(self: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    parts = [to_mathml(part, as_block=False) for part in pieces(node.astext())]
    self.body.append("<wbr>".join(parts))
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
