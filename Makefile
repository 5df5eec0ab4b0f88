# Every target sets up what it needs in .venv, from nothing but Python 3.11 or later, a C++ compiler and make.
#   make demo       protect a bundled example and show the result
#   make serve      open the page for people who do not program (SERVE=FOLDER names its folder)
#   make test       the tests, with coverage, on WORKERS processes (2)
#   make test-long  the suites that take longer, named apart: web, databases, r, docs, adversary, killed (make test-web, ...)
#   make check      lint, format, types, layers
#   make sanitize   tests of the compiled core with every access to memory checked
#   make bench      speed and quality figures
#   make adversary  ten thousand strange tables attacked from their files (ADVERSARY="--seed 7" goes on with a seed)
#   make docs       the manual, in site/
#   make wheel      what is installed elsewhere, in dist/: runs without a compiler
# To use an environment that is already there: make check BIN=/path/to/bin/ SETUP=

SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN ?= $(VENV)/bin/
SETUP ?= $(VENV)/.dev
PIP = $(BIN)python -m pip --disable-pip-version-check --quiet
TEST_OPTIONS ?=
WORKERS ?= 2
# Suites of their own: a browser, database servers, R, every example of the manual, a campaign of strange tables, and
# runs that are killed.
LONG := web databases r docs adversary killed
# The compiled core: a changed source is compiled again by whatever needs it.
CORE := CMakeLists.txt $(wildcard src/core/*)
# The build sees what is installed, not an environment of its own; setuptools and wheel build Spark, which has no wheels.
BUILD_TOOLS = cmake ninja setuptools wheel $(shell sed -n 's/^requires = \[\(.*\)\].*/\1/p' pyproject.toml | tr -d ',')
INSTALL = $(PIP) install $(BUILD_TOOLS) && $(PIP) install --no-build-isolation --editable

.DEFAULT_GOAL := help
.PHONY: help demo serve test test-long $(LONG:%=test-%) check sanitize format bench adversary docs wheel clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(if $(SETUP),$(VENV)/.runtime)
	@$(BIN)cellguard demo

SERVE ?= cellguard-page
serve: $(if $(SETUP),$(VENV)/.web)
	@mkdir -p "$(SERVE)"
	@$(BIN)cellguard serve "$(SERVE)"

test: $(SETUP)
	$(BIN)python -m pytest --numprocesses=$(WORKERS) --cov --cov-report=term:skip-covered \
	    $(LONG:%=--ignore=tests/%) $(TEST_OPTIONS)

# One process each where a suite has a server of its own.
test-long: $(LONG:%=test-%)
test-web test-databases test-r: WORKERS = 0
$(LONG:%=test-%): test-%: $(SETUP)
	$(BIN)python -m pytest --numprocesses=$(WORKERS) tests/$* $(TEST_OPTIONS)

check: $(SETUP)
	@failed=0; for command in "ruff check --quiet ." "ruff format --check ." "mypy" "lint-imports"; do \
	    echo "$$command"; $(BIN)$$command || failed=1; \
	done; exit $$failed

# The sanitizers' libraries must be there before Python is; Python itself does not give back all of its memory.
sanitize: $(SETUP)
	PATH="$(abspath $(BIN)):$$PATH" cmake -S . -B build/sanitize -G Ninja -DCELLGUARD_SANITIZE=ON \
	    -DCMAKE_BUILD_TYPE=Debug -DPython_EXECUTABLE="$(abspath $(BIN))/python" \
	    -Dnanobind_DIR="$$($(BIN)python -m nanobind --cmake_dir)" --log-level=WARNING
	PATH="$(abspath $(BIN)):$$PATH" cmake --build build/sanitize
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	    $(BIN)python tests/with_core.py build/sanitize/_core.*.so -q -p no:cacheprovider $(SANITIZED)

SANITIZED = tests/property/test_core_fuzz.py \
    tests/unit/core $(addprefix tests/unit/engine/,closest/test_cholesky.py closest/test_newton_systems.py space counts) tests/unit/methods/test_rounding_areas.py \
    --deselect tests/unit/methods/test_rounding_areas.py::test_levels_are_met  # a minute without optimisation

wheel: $(SETUP)
	$(BIN)python -m pip --disable-pip-version-check wheel --no-deps --no-build-isolation --wheel-dir dist .

format: $(SETUP)
	$(BIN)ruff format .
	$(BIN)ruff check --fix .

bench: $(SETUP) $(if $(SETUP),$(VENV)/.bench)
	$(BIN)python bench/run.py $(BENCH)

adversary: $(SETUP)
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)python -m adversary.campaign $(ADVERSARY)

docs: $(SETUP)
	$(BIN)mkdocs build --strict

clean:
	rm -rf .venv build dist site .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

# A stamp per set of dependencies; a changed pyproject.toml or source of the core installs again.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One clear sentence instead of a page of CMake.
COMPILER = command -v "$${CXX:-c++}" >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || { \
    echo "A compiler for C++20 is needed to build cellguard: install g++ or clang++ (a wheel needs none)."; exit 1; }

# As an installer does for a wheel: otherwise every start compiles all modules where Python must not write beside them.
BYTECODE = $(BIN)python -m compileall -q src/cellguard

$(VENV)/.runtime: pyproject.toml $(CORE) | $(VENV)/bin/python
	@$(COMPILER)
	@echo "Setting up $(VENV) (once, a minute or two) ..."
	@$(INSTALL) .
	@$(BYTECODE)
	@touch $@

$(VENV)/.dev: pyproject.toml $(CORE) | $(VENV)/bin/python
	@$(COMPILER)
	@echo "Setting up $(VENV) with the tools of development (once, a few minutes) ..."
	@$(INSTALL) '.[dev]'
	@$(BYTECODE)
	@touch $@ $(VENV)/.runtime $(VENV)/.web

$(VENV)/.web: pyproject.toml $(CORE) | $(VENV)/bin/python
	@echo "Setting up $(VENV) with the page (once, a minute or two) ..."
	@$(INSTALL) '.[web]'
	@touch $@

$(VENV)/.bench: pyproject.toml $(SETUP)
	@$(INSTALL) '.[dev,bench]'
	@touch $@
