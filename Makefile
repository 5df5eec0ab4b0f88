# Every target sets up what it needs in .venv; you need only Python 3.11 or later, a C++ compiler and make.
#   make demo       protect a bundled example and show the result
#   make serve      open the web page for users who do not program (SERVE=FOLDER names its folder)
#   make test       the tests, on WORKERS processes (2)
#   make coverage   the same tests, with the lines that they run: a quarter slower
#   make test-long  the longer suites, each with its own target: web, databases, r, docs, adversary, killed (make test-web, ...)
#   make check      lint, format, types, layers
#   make sanitize   tests of the compiled core with every memory access checked
#   make bench      speed and quality figures
#   make adversary  ten thousand strange tables attacked from their files (ADVERSARY="--seed 7" uses a seed)
#   make docs       the manual, in site/
#   make wheel      the installable package, in dist/: it needs no compiler
#   make wheelhouse the package and all it needs, in wheelhouse/ with hashes: to install without internet
# To use an existing environment: make check BIN=/path/to/bin/ SETUP=

SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN ?= $(VENV)/bin/
SETUP ?= $(VENV)/.dev
PIP = $(BIN)python -m pip --disable-pip-version-check --quiet
TEST_OPTIONS ?=
WORKERS ?= 2
# Separate suites: a browser, database servers, R, every example of the manual, attacks on strange tables, and
# killed runs.
LONG := web databases r docs adversary killed
# The compiled core: every target that needs it compiles changed sources again.
CORE := CMakeLists.txt $(wildcard src/core/*)
# The build uses the installed packages, not an isolated environment; setuptools and wheel build Spark, which has no wheels.
BUILD_TOOLS = cmake ninja setuptools wheel $(shell sed -n 's/^requires = \[\(.*\)\].*/\1/p' pyproject.toml | tr -d ',')
INSTALL = $(PIP) install $(BUILD_TOOLS) && $(PIP) install --no-build-isolation --editable

.DEFAULT_GOAL := help
.PHONY: help demo serve test coverage test-long $(LONG:%=test-%) check sanitize format bench adversary docs wheel wheelhouse clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(if $(SETUP),$(VENV)/.runtime)
	@$(BIN)cellguard demo

SERVE ?= cellguard-page
serve: $(if $(SETUP),$(VENV)/.web)
	@mkdir -p "$(SERVE)"
	@$(BIN)cellguard serve "$(SERVE)"

test: $(SETUP)
	$(BIN)python -m pytest --numprocesses=$(WORKERS) $(LONG:%=--ignore=tests/%) $(TEST_OPTIONS)

coverage: TEST_OPTIONS += --cov --cov-report=term:skip-covered
coverage: test

# One process for each suite that starts its own server.
test-long: $(LONG:%=test-%)
test-web test-databases test-r: WORKERS = 0
$(LONG:%=test-%): test-%: $(SETUP)
	$(BIN)python -m pytest --numprocesses=$(WORKERS) tests/$* $(TEST_OPTIONS)

check: $(SETUP)
	@failed=0; for command in "ruff check --quiet ." "ruff format --check ." "mypy" "lint-imports"; do \
	    echo "$$command"; $(BIN)$$command || failed=1; \
	done; exit $$failed

# The sanitizers' libraries must be loaded before Python; leaks are not reported, as Python does not free all its memory.
sanitize: $(SETUP)
	PATH="$(abspath $(BIN)):$$PATH" cmake -S . -B build/sanitize -G Ninja -DCELLGUARD_SANITIZE=ON \
	    -DCMAKE_BUILD_TYPE=Debug -DPython_EXECUTABLE="$(abspath $(BIN))/python" \
	    -Dnanobind_DIR="$$($(BIN)python -m nanobind --cmake_dir)" --log-level=WARNING
	PATH="$(abspath $(BIN)):$$PATH" env --unset=MAKEFLAGS cmake --build build/sanitize  # Ninja cannot use make's job server
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	    $(BIN)python tests/with_core.py build/sanitize/_core.*.so -q -p no:cacheprovider $(SANITIZED)

SANITIZED = tests/property/test_core_fuzz.py \
    tests/unit/core $(addprefix tests/unit/engine/,closest/test_cholesky.py closest/test_newton_systems.py space counts) tests/unit/methods/test_rounding_areas.py \
    --deselect tests/unit/methods/test_rounding_areas.py::test_levels_are_met  # a minute without optimisation

# A date of its own, and no path of this machine in the core: two builds of one commit have the same bytes.
export SOURCE_DATE_EPOCH ?= 1735689600
wheel: $(SETUP)
	$(BIN)python -m pip --disable-pip-version-check wheel --no-deps --no-build-isolation --wheel-dir dist .

# In an office: python -m pip install --no-index --find-links wheelhouse --require-hashes -r wheelhouse/requirements.txt
wheelhouse: wheel
	rm -rf wheelhouse && mkdir wheelhouse
	$(BIN)python -m pip --disable-pip-version-check download --quiet --dest wheelhouse --only-binary :all: \
	    --find-links dist "cellguard[web,excel] @ file://$(abspath $(firstword $(wildcard dist/cellguard-*.whl)))"
	$(BIN)python packaging/list_hashes.py wheelhouse > wheelhouse/requirements.txt

format: $(SETUP)
	$(BIN)ruff format .
	$(BIN)ruff check --fix .
	@if command -v clang-format > /dev/null; then clang-format -i src/core/*.cpp src/core/*.hpp; fi

bench: $(SETUP) $(if $(SETUP),$(VENV)/.bench)
	$(BIN)python bench/run.py $(BENCH)

adversary: $(SETUP)
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)python -m adversary.campaign $(ADVERSARY)

docs: $(SETUP)
	$(BIN)mkdocs build --strict

clean:
	rm -rf .venv build dist site wheelhouse .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

# A stamp per set of dependencies; a changed pyproject.toml or source of the core installs again.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Print one clear sentence instead of a page of CMake errors.
COMPILER = command -v "$${CXX:-c++}" >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || { \
    echo "A compiler for C++20 is needed to build cellguard: install g++ or clang++ (a wheel needs none)."; exit 1; }

# Compile modules as an installer does for a wheel: otherwise every start does so if Python may not write beside them.
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
