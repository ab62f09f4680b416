# `make demo` and `make test` are all that a fresh machine with Python needs.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INPUTS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench clean

help:
	@echo "make demo    install frot with plotting into .venv and run its demo"
	@echo "make test    install what the tests need, then lint, type-check and test on all cores"
	@echo "make lint    ruff, pyright and the order of imports only"
	@echo "make format  let ruff rewrite what it can"
	@echo "make bench   run every script in benchmarks/"
	@echo "make clean   remove .venv, caches and build outputs"

# A stamp per set of extras: whoever only wants the demo does not wait for the test tools.
$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv/.demo: $(INPUTS) | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable ".[plot]"
	@touch $@

.venv/.test: $(INPUTS) | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable ".[test]"
	@touch $@ .venv/.demo

demo: .venv/.demo
	$(BIN)/frot demo

test: lint
	$(BIN)/python -m pytest -n auto

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo --no-cache

format: .venv/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.test
	@set -e; for script in benchmarks/*.py; do \
		case "$$script" in */_*) continue ;; esac; \
		echo "== $$script"; $(BIN)/python "$$script"; \
	done

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
