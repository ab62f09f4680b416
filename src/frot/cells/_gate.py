r"""The gate: which groups are coherent with others, told without labels and without permutations.

Group l matches each cell i with the nearest cell j(i) of the other day. Another group k is its
witness: are the matches of neighbours in k close to each other in k? With A the graph of the ten
nearest neighbours of cells of one day in k, and D the squared distances of cells of the other,

.. math:: T_{lk} = \sum_{ii'} A_{ii'}\, D_{j(i) j(i')}

is small where both follow what both days have in common. Noise, or a nuisance of l alone, leaves
T where permuted matches have it, whose mean and variance are known in closed form (Mantel, 1967):

.. math::
    \mathrm{E}\,T = \frac{A_0 D_0}{n (n - 1)}, \quad
    \mathrm{E}\,T^2 = \frac{2 A_2 D_2}{n (n - 1)}
    + \frac{4 (A_1 - A_2) (D_1 - D_2)}{n (n - 1) (n - 2)}
    + \frac{(A_0^2 + 2 A_2 - 4 A_1) (D_0^2 + 2 D_2 - 4 D_1)}{n (n - 1) (n - 2) (n - 3)}

with :math:`A_0 = \sum A_{ij}`, :math:`A_1 = \sum_i (\sum_j A_{ij})^2`, :math:`A_2 = \sum A_{ij}^2`,
and the same of D, which squared distances have without being formed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree

from frot.cells._blocks import Block

__all__ = ["coherence", "mantel_z"]

NEIGHBOURS = 10
# Cells of a day that are looked at: z of groups that belong together is beyond any threshold then.
LOOKED_AT = 1_000
# Groups that share more of the genes of the smaller one do not bear witness for each other: what
# they have in common may be the noise of those genes.
IN_COMMON = 0.2


def coherence(blocks: Sequence[Block], seed: int = 0) -> np.ndarray:
    """Return z of every group (rows) with every other as its witness, shape (L, L).

    Each is the smaller of both directions; minus infinity where a group is no witness: for itself,
    and for one that it shares genes with.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cells, noise = rng.normal(size=(2, 300, 2)), rng.normal(size=(2, 300, 2))
    >>> def block(name, values):
    ...     noisy = values + 0.1 * rng.normal(size=values.shape)
    ...     return Block(name, *noisy, (name,), None, 1.0, 1.0, np.ones(1), 2)
    >>> z = coherence([block("a", cells), block("b", cells), block("c", noise)])
    >>> z.max(axis=1) > 4.0
    array([ True,  True, False])
    """
    rng = np.random.default_rng(seed)
    n, m = (len(side) for side in (blocks[0].source, blocks[0].target))
    some, others = (
        np.sort(rng.choice(size, min(size, LOOKED_AT), replace=False)) for size in (n, m)
    )
    sides = [
        (block.source[some][:, : block.signal], block.target[others][:, : block.signal])
        for block in blocks
    ]
    trees = [(KDTree(first), KDTree(second)) for first, second in sides]
    there = [tree[1].query(side[0])[1] for tree, side in zip(trees, sides, strict=True)]
    back = [tree[0].query(side[1])[1] for tree, side in zip(trees, sides, strict=True)]
    z = np.empty((len(blocks), len(blocks)))
    for k, ((first, second), (tree, other)) in enumerate(zip(sides, trees, strict=True)):
        z[:, k] = np.minimum(
            mantel_z(_neighbours(tree), second[np.stack(there)]),
            mantel_z(_neighbours(other), first[np.stack(back)]),
        )
    z[_share_genes(blocks)] = -np.inf
    return z


def _share_genes(blocks: Sequence[Block]) -> np.ndarray:
    genes = [set(block.genes) for block in blocks]
    return np.array(
        [[len(one & two) > IN_COMMON * min(len(one), len(two)) for two in genes] for one in genes]
    )


def _neighbours(tree: KDTree) -> sparse.csr_array:
    """Return the symmetric graph of nearest neighbours."""
    n = int(tree.n)
    k = min(NEIGHBOURS + 1, n)
    near = tree.query(tree.data, k=k)[1].reshape(n, k)
    graph = sparse.csr_array(
        (np.ones(near.size), near.ravel(), np.arange(0, near.size + 1, k)), shape=(n, n)
    )
    graph = graph + graph.T
    # Of equal cells each may be found before itself.
    graph.setdiag(0.0)
    graph.eliminate_zeros()
    graph.data[:] = 1.0
    return graph


def mantel_z(graph: sparse.csr_array, points: np.ndarray) -> np.ndarray:
    """Return how far neighbours are closer than permuted points would be, in standard deviations.

    Parameters
    ----------
    graph : sparse array of shape (n, n)
        Symmetric, nothing on its diagonal.
    points : array of shape (..., n, d)

    Returns
    -------
    array of shape (...)

    Examples
    --------
    >>> line = sparse.diags_array([np.ones(99), np.ones(99)], offsets=[-1, 1]).tocsr()
    >>> points = np.arange(100.0)[:, None]
    >>> shuffled = np.random.default_rng(0).permutation(points)
    >>> mantel_z(line, np.stack([points, shuffled])).round(1)
    array([10.1, -0.9])
    """
    n = points.shape[-2]
    if n < 4:
        return np.zeros(points.shape[:-2])
    points = points - points.mean(axis=-2, keepdims=True)
    squares = np.einsum("...nd,...nd->...n", points, points)
    degree = graph.sum(axis=1)
    flat = np.moveaxis(points, -2, 0).reshape(n, -1)
    smooth = np.moveaxis((graph @ flat).reshape(n, *points.shape[:-2], points.shape[-1]), 0, -2)
    found = 2.0 * (squares @ degree - np.einsum("...nd,...nd->...", points, smooth))
    of_graph = degree.sum(), np.square(degree).sum(), np.square(graph.data).sum()
    total, fourth = squares.sum(axis=-1), np.square(squares).sum(axis=-1)
    second = np.einsum("...nd,...ne->...de", points, points)
    of_points = (
        2.0 * n * total,
        n**2 * fourth + 3.0 * n * total**2,
        2.0 * n * fourth + 2.0 * total**2 + 4.0 * np.square(second).sum(axis=(-2, -1)),
    )
    mean, variance = _moments(n, of_graph, of_points)
    spread = np.sqrt(np.maximum(variance, 1e-12 * np.maximum(mean, 1e-300) ** 2))
    return (mean - found) / spread


def _moments(
    n: int, graph: tuple[float, ...], points: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the sum over edges under permutation of the points."""
    (a0, a1, a2), (d0, d1, d2) = graph, points
    pairs, triples = n * (n - 1.0), n * (n - 1.0) * (n - 2.0)
    mean = a0 * d0 / pairs
    square = (
        2.0 * a2 * d2 / pairs
        + 4.0 * (a1 - a2) * (d1 - d2) / triples
        + (a0**2 + 2.0 * a2 - 4.0 * a1) * (d0**2 + 2.0 * d2 - 4.0 * d1) / (triples * (n - 3.0))
    )
    return mean, square - mean**2
