"""The sets themselves, where they are; the numbers are those of the studies."""

import numpy as np
import pytest

from frot.datasets import NAMES, available, load_expression, load_hallmark
from frot.datasets.catalogue import HALLMARK, find, folders

CLASSES = {
    "colon": (40, 22),
    "leukemia": (47, 25),
    "prostate_ge": (50, 52),
    "gli_85": (26, 59),
    "alon": (22, 40),
    "golub": (47, 25),
    "singh": (50, 52),
    "chowdary": (62, 42),
    "gravier": (111, 57),
    "pomeroy": (21, 39),
    "leukemia_gsea": (24, 24),
}


@pytest.mark.parametrize("name", NAMES)
def test_every_set_has_the_classes_of_its_study(name):
    if name not in available():
        pytest.skip(f"the data set {name} is not there")
    data = load_expression(name)
    assert tuple(data.counts.values()) == CLASSES[name]
    assert np.isfinite(data.X).all()
    assert data.X.flags.c_contiguous
    assert data.citation
    assert data.licence
    assert data.source.startswith("https://")


def test_hallmark_sets_match_the_genes_of_leukemia():
    if "leukemia_gsea" not in available() or find(HALLMARK, folders()) is None:
        pytest.skip("the data sets leukemia_gsea and hallmark are not there")
    groups = load_hallmark(load_expression("leukemia_gsea").feature_names, min_size=15)
    assert len(groups.names) == 50
    assert len(groups.flat) > len(set(groups.flat.tolist()))
    assert "HALLMARK_P53_PATHWAY" in groups.names
