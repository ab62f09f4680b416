"""Tables for LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["latex_table"]

SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
}


def latex_table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    r"""Return a table with booktabs' rules; the first two columns are text, the others figures.

    Examples
    --------
    >>> print(latex_table(["Method", "Measure", "cat"], [["a_b", "PCK", "1.0"]], "5 %."))
    % needs \usepackage{booktabs,graphicx}
    \begin{table}
    \centering
    \caption{5 \%.}
    \resizebox{\textwidth}{!}{%
    \begin{tabular}{llr}
    \toprule
    Method & Measure & cat \\
    \midrule
    a\_b & PCK & 1.0 \\
    \bottomrule
    \end{tabular}}
    \end{table}
    <BLANKLINE>
    """
    lines = [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escaped(caption)}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{ll{'r' * (len(heads) - 2)}}}",
        r"\toprule",
        _line(heads),
        r"\midrule",
        *(_line(row) for row in rows),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(map(_escaped, cells)) + r" \\"


def _escaped(text: str) -> str:
    # Two hyphens in a row would be a dash, where they begin an option.
    return "".join(SPECIAL.get(letter, letter) for letter in text).replace("--", "-{}-")
