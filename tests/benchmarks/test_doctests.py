"""Examples in the docstrings of the fuzzer and of its referee."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import benchmarks._fuzz as fuzz
from benchmarks._fuzz import truth

MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (fuzz, truth)
    for module in pkgutil.iter_modules(package.__path__)
    if not module.ispkg
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(importlib.import_module(name), optionflags=options).failed == 0


def test_there_are_examples():
    found = [doctest.DocTestFinder().find(importlib.import_module(name)) for name in MODULES]
    assert sum(len(test.examples) for tests in found for test in tests) > 15
