# Every target sets up what it needs in .venv, from nothing but Python 3.11 or later and make.
#   make demo    protect a bundled example and show the result
#   make test    all tests, with coverage
#   make check   lint, format, types, layers
#   make bench   speed and quality figures
#   make adversary  ten thousand strange tables attacked from their files (ADVERSARY="--seed 7" goes on with a seed)
#   make docs    the manual, in site/
# To use an environment that is already there: make check BIN=/path/to/bin/ SETUP=

SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN ?= $(VENV)/bin/
SETUP ?= $(VENV)/.dev
PIP = $(BIN)python -m pip --disable-pip-version-check --quiet
TEST_OPTIONS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench adversary docs clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(if $(SETUP),$(VENV)/.runtime)
	@$(BIN)cellguard demo

test: $(SETUP)
	$(BIN)python -m pytest --cov --cov-report=term:skip-covered $(TEST_OPTIONS)

check: $(SETUP)
	@failed=0; for command in "ruff check --quiet ." "ruff format --check ." "mypy" "lint-imports"; do \
	    echo "$$command"; $(BIN)$$command || failed=1; \
	done; exit $$failed

format: $(SETUP)
	$(BIN)ruff format .
	$(BIN)ruff check --fix .

bench: $(SETUP) $(if $(SETUP),$(VENV)/.bench)
	OMP_NUM_THREADS=1 $(BIN)python bench/run.py $(BENCH)

adversary: $(SETUP)
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)python -m adversary.campaign $(ADVERSARY)

docs: $(SETUP)
	$(BIN)mkdocs build --strict

clean:
	rm -rf .venv build dist site .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

# A stamp per set of dependencies; a changed pyproject.toml installs again.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV) (once, a minute or two) ..."
	$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV) with the tools of development (once, a few minutes) ..."
	$(PIP) install --editable '.[dev]'
	@touch $@ $(VENV)/.runtime

$(VENV)/.bench: pyproject.toml $(SETUP)
	$(PIP) install --editable '.[dev,bench]'
	@touch $@
