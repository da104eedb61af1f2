# Each target does its own set-up: a virtual environment in .venv, made once and kept fresh by a stamp.
# Needs only Python 3.11 or newer, and the package index that pip is set up for.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# One more than cores: tests of clusters wait for other processes.
JOBS ?= 3

# Tests start many processes; each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test lint types imports pytest versions fuzz bench site clean

help: ## Show this list.
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: $(VENV)/stamp-apps ## k-means on a real data set, on a local cluster of 4 workers.
	$(BIN)/python -m spartan_ng.apps.demo

test: lint types imports pytest ## Lint, types, import directions, tests.

lint: $(VENV)/stamp-test ## Format and lint (ruff).
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/stamp-test ## Types (mypy strict).
	$(BIN)/mypy

imports: $(VENV)/stamp-test ## Import directions (import-linter).
	$(BIN)/lint-imports

pytest: $(VENV)/stamp-test ## Tests only: a part of each table's cases and of slow tests, drawn anew; OPTIONS=--whole asks all, CI=true all slow ones.
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q $(OPTIONS)

versions: $(VENV)/stamp-dev ## Tests on every Python from 3.11 to 3.14 that is installed (tox); OPTIONS="-e 3.13 -- tests/graph" some.
	$(BIN)/tox run $(OPTIONS)

fuzz: $(VENV)/stamp-test ## Random NumPy programs against NumPy, without end; OPTIONS="--seconds 600 --workers 3" and the like.
	$(BIN)/python -m tests.fuzz $(or $(OPTIONS),--programs 1000000)

bench: $(VENV)/stamp-bench ## Benchmarks side by side; writes benchmarks/RESULTS.md. NAMES="a b" picks some.
	$(BIN)/python -m benchmarks $(NAMES)

site: $(VENV)/stamp-test ## The documents as a site, in build/site.
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site

clean: ## Remove the environment and what tools left.
	rm -rf $(VENV) build dist *.egg-info spartan_ng/*/*.so spartan_ng/api/core/*.so .mypy_cache .ruff_cache .pytest_cache .tox .import_linter_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

# One extra installs the package itself, editable, and compiles what is compiled; what says how installs again.
$(VENV)/stamp-%: pyproject.toml setup.py spartan_ng/api/core/_quick.c spartan_ng/system/_faults.c spartan_ng/kernels/_dots.c spartan_ng/kernels/_sorts.c spartan_ng/kernels/_sorts.h $(wildcard spartan_ng/api/core/plain/*.h) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@
