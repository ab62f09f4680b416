"""Cells of a few days with two types, and groups of genes of which one is noise."""

import numpy as np

GROUPS = {"one": ["g0", "g1", "g2"], "two": ["g3", "g4", "g5"], "noise": ["g6", "g7"]}


def planted(n=40, days=2, seed=0, form=np.asarray):
    """Return a table and what is known of its cells; types are coupled to themselves."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n * days) % 2
    state = np.where(kind, 1.5, -1.5)[:, None] + 0.4 * rng.normal(size=(n * days, 1))
    signal = state * np.array([1.0, 0.5, -1.0, 0.8, 1.0, -0.6])
    X = np.hstack([signal, np.zeros((n * days, 2))]) + 0.6 * rng.normal(size=(n * days, 8))
    obs = {
        "day": np.repeat(np.arange(3, 3 + days), n),
        "kind": np.array(["stem", "blood"])[kind],
        "growth": np.where(kind, 3.0, 1.0),
    }
    return form(X), obs, [f"g{at}" for at in range(8)]
