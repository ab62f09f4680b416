"""Blocks of a vision transformer in an ONNX graph: sums of tokens, and how tokens lie in the image.

A graph does not say which of its tensors are tokens. Sums of two tensors that both come from the
image are candidates; the network is run once on an empty image, and those that have a vector for
every patch, as wide as the patches' own, are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = ["as_grid", "block_ends", "candidates", "is_tokens"]

# What comes out of them is about sizes, not about the image.
_SIZES = frozenset(("Shape", "Size", "ConstantOfShape", "Range"))
_ATTENTION = frozenset(
    ("Softmax", "Attention", "MultiHeadAttention", "GroupQueryAttention", "QAttention")
)
# Tokens of no cell: of the class, and registers.
_MOST_OTHERS = 64


def candidates(graph: Any, source: str) -> list[str]:
    """Return the sums of two tensors that both come from the image, in the order of the graph."""
    made = {source}
    found = []
    for node in graph.node:
        if node.op_type in _SIZES or not made.intersection(node.input):
            continue
        made.update(node.output)
        if node.op_type == "Add" and all(name in made for name in node.input):
            found.append(node.output[0])
    return found


def is_tokens(shape: Sequence[int], patches: Sequence[int]) -> bool:
    """Whether a tensor has a vector for every patch: (1, n, c), where patches are (1, c, h, w).

    Examples
    --------
    >>> is_tokens((1, 197, 64), (1, 64, 14, 14)), is_tokens((1, 197, 256), (1, 64, 14, 14))
    (True, False)
    """
    _, channels, h, w = patches
    if len(shape) != 3 or shape[0] != 1 or shape[2] != channels:
        return False
    return 0 <= shape[1] - h * w <= _MOST_OTHERS


def block_ends(graph: Any, sums: Sequence[str]) -> list[str]:
    """Return the sums that leave a block: those that the next attention begins from, and the last.

    A block adds twice, what attention found and what a small network makes of each token. All sums
    are returned where there is no attention.
    """
    maker = {output: node for node in graph.node for output in node.output}
    attends = [_passes(maker, after, {before}) for before, after in pairwise(sums)]
    if not any(attends):
        return list(sums)
    return [one for one, next_ in zip(sums, [*attends, True], strict=True) if next_]


def _passes(maker: Mapping[str, Any], end: str, stop: set[str]) -> bool:
    """Whether there is attention on the way from some tensors to one behind them."""
    seen, left = set(stop), [end]
    while left:
        node = maker.get(left.pop())
        if node is None:
            continue
        if node.op_type in _ATTENTION:
            return True
        fresh = [name for name in node.input if name not in seen]
        seen.update(fresh)
        left += fresh
    return False


def as_grid(tokens: np.ndarray, patches: np.ndarray) -> np.ndarray:
    """Return tokens (1, n, c) as a map (c, h, w); those that come before the cells' are cut.

    Examples
    --------
    >>> tokens = np.arange(5.0).reshape(1, 5, 1)
    >>> as_grid(tokens, np.zeros((1, 1, 2, 2))).tolist()
    [[[1.0, 2.0], [3.0, 4.0]]]
    """
    h, w = patches.shape[2:]
    cells = tokens[0, tokens.shape[1] - h * w :]
    return np.ascontiguousarray(cells.T.reshape(-1, h, w))
