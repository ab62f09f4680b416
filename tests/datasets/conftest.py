import numpy as np
import pytest

from frot.datasets import _expression
from frot.datasets.catalogue import Entry, File, digest_of_arrays, digest_of_file


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """Keep the tests from the cache and the settings of whoever runs them."""
    monkeypatch.delenv("FROT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def small(nowhere, monkeypatch, tmp_path):
    """Two sets in the catalogue and at a public address: mat by its bytes, npz by its arrays."""
    from scipy.io import savemat

    public = tmp_path / "public"
    public.mkdir()
    X, y = np.arange(12.0).reshape(4, 3), np.array(["a", "a", "b", "b"])
    savemat(public / "Small.mat", {"X": X, "Y": [[-1], [-1], [1], [1]]})
    np.savez(public / "small.npz", X=X.astype("f4"), y=y, genes=["TP53", "MYC", "TP53"])
    url = (public / "Small.mat").as_uri()
    told = ("a description", "a citation", "a licence")
    entries = {
        "mat": Entry(
            (File("small.mat", url, digest_of_file(public / "Small.mat")),), X.shape, *told
        ),
        "npz": Entry(
            (File("small.npz", "https://example.org/small.RData", digest_of_arrays(X, y), True),),
            X.shape,
            *told,
        ),
    }
    monkeypatch.setattr(_expression, "CATALOGUE", entries)
    return public
