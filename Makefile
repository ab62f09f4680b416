# `make demo` and `make test` are all that a fresh machine with Python needs.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INPUTS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test suite test-anndata test-minimum docs dist lint check mutants format bench paper clean

help:
	@echo "make demo    install frot with plotting into .venv and run its demo"
	@echo "make test    install what the tests need, then lint, type-check and test on all cores"
	@echo "make test-anndata  only the tests with anndata and scanpy, in .venv-anndata"
	@echo "make test-minimum  the tests with the oldest versions that pyproject.toml allows, in .venv-minimum"
	@echo "make docs    build the site with its gallery into docs/_build/html"
	@echo "make dist    build the wheel and the source archive into dist/ and check them"
	@echo "make lint    ruff, pyright and the order of imports only"
	@echo "make check ROOM=costs  lint, types, doctests and tests of one room"
	@echo "make mutants ROOM=problem OPTIONS=\"--file bounds.py --n 30\"  do its tests notice changed operators?"
	@echo "make format  let ruff rewrite what it can"
	@echo "make bench   run every script in benchmarks/"
	@echo "make paper   run every experiment that there is data for; verdicts into docs/, figures into out/"
	@echo "make clean   remove the environments, caches and build outputs"

# A stamp per set of extras: whoever only wants the demo does not wait for the test tools.
$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv/.demo: $(INPUTS) | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable ".[plot]"
	@touch $@

.venv/.test: $(INPUTS) | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable ".[test]"
	@touch $@ .venv/.demo .venv/.docs .venv/.paper

.venv/.docs: $(INPUTS) | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable ".[docs]"
	@touch $@ .venv/.demo

.venv/.paper: $(INPUTS) | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable ".[paper]"
	@touch $@ .venv/.demo

demo: .venv/.demo
	$(BIN)/frot demo

# anndata and scanpy do not take the pandas that all else is tested with.
CELLS := .venv-anndata/bin/python

.venv-anndata/.ready: pyproject.toml constraints-anndata.txt
	$(PYTHON) -m venv .venv-anndata
	$(CELLS) -m pip --disable-pip-version-check --quiet install --no-compile \
		--constraint constraints-anndata.txt --editable ".[test-anndata]" \
		|| { echo "make: .venv-anndata cannot be installed, and so AnnData is not tested" >&2; exit 1; }
	@touch $@

# The type checker takes one core of the two that the tests have at least.
test:
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=line lint suite test-anndata

suite: .venv/.test
	$(BIN)/python -m pytest -n auto

test-anndata: .venv-anndata/.ready
	$(CELLS) -m pytest -q tests/selection/test_anndata.py tests/selection/test_h5ad.py

# The lower bounds of pyproject.toml, with the oldest Python there is (make test-minimum OLDEST=...).
# The oldest scikit-learn cannot read the names of columns of polars 2.
OLDEST ?= python3.10
LOWEST := .venv-minimum/bin/python
LOWEST_EXTRAS := plot tables torch dask selection correspondence

.venv-minimum/.ready: pyproject.toml .ci/minimum.py
	$(OLDEST) -m venv .venv-minimum
	$(LOWEST) -m pip --disable-pip-version-check --quiet install packaging tomli
	$(LOWEST) .ci/minimum.py $(LOWEST_EXTRAS) > .venv-minimum/lowest.txt
	$(LOWEST) -m pip --disable-pip-version-check --quiet install -r .venv-minimum/lowest.txt \
		pytest pytest-timeout pytest-xdist hypothesis array-api-strict scikit-image "polars<2"
	$(LOWEST) -m pip --disable-pip-version-check --quiet install --no-deps --editable .
	@touch $@

# Warnings of libraries that are years old are not ours to mend.
test-minimum: .venv-minimum/.ready
	$(LOWEST) -m pytest -n auto -W default --ignore=tests/docs --ignore=tests/browser

# Examples that have not changed are not run again.
docs: .venv/.docs
	$(BIN)/python -m sphinx -W --keep-going -j auto -b html docs docs/_build/html
	@echo "The site is docs/_build/html/index.html"

dist: .venv/.test
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo --no-cache

# One room: make check ROOM=costs. The tests of _base are tests/base.
FILES = src/frot/$(ROOM) tests/$(ROOM:_%=%)
check: .venv/.test
	$(BIN)/ruff check $(FILES)
	$(BIN)/ruff format --check $(FILES)
	$(BIN)/pyright $(FILES)
	$(BIN)/python -m pytest -q -n auto $(FILES)

# Do the tests of a room notice changed operators? make mutants ROOM=problem OPTIONS="--file bounds.py".
mutants: .venv/.test
	$(BIN)/python .ci/mutants.py $(ROOM) $(OPTIONS)

format: .venv/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.test
	@set -e; for script in benchmarks/*.py; do \
		case "$$script" in */_*) continue ;; esac; \
		echo "== $$script"; $(BIN)/python "$$script"; \
	done

# Options for all experiments: make paper OPTIONS="--pairs 10". The page is out/index.html.
paper: .venv/.paper
	$(BIN)/python experiments --verdicts docs/paper_verdicts.md $(OPTIONS)

clean:
	rm -rf .venv .venv-anndata .venv-minimum build dist docs/_build docs/auto_examples docs/api/generated .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests benchmarks experiments -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
