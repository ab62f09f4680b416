"""The frame of every page: one file, nothing fetched, a title above and a footer below."""

from __future__ import annotations

from string import Template

__all__ = ["shell"]


def shell(style: str, script: str, body: str) -> Template:
    """Return a page to be filled with $title, $subtitle, $footer and what `body` names.

    Examples
    --------
    >>> "<p>4</p>" in shell("", "", "<p>$x</p>").substitute(title="", subtitle="", footer="", x=4)
    True
    """
    return Template(
        f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>$title</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>$title</h1>
<p class="soft">$subtitle</p>
{body}
<footer>$footer</footer>
</main>
<script>{script}</script>
</body>
</html>
"""
    )
