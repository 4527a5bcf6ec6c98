# Every target makes its own environment from what pyproject.toml declares.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Where there is no C compiler, the package index has one.
ifeq ($(shell command -v cc || command -v gcc),)
WITH_COMPILER := $(PIP) ziglang && zig="$$(echo $(CURDIR)/.venv/lib/*/site-packages/ziglang/zig) cc" && CC="$$zig" LDSHARED="$$zig -shared"
endif
COMPILED := setup.py src/sparsestep/solvers/annealing.pyx src/sparsestep/solvers/kernels.h

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint types docs wheel bench bench-rivals bench-tables bench-check exactness fuzz oldest clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-13s %s\n", $$1, $$2}' Makefile

demo: .venv/.installed-plain ## the method on the diabetes data, compared with the lasso
	$(BIN)/sparsestep demo

# pytest comes last, so that its closing line closes the output.
test: lint types ## everything that must pass: style, types, tests and docstring examples
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

lint: .venv/.installed-dev ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.installed-dev ## mypy, strict, on src
	$(BIN)/mypy

docs: .venv/.installed-docs ## the documentation, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

wheel: .venv/bin/python ## a wheel for Python 3.11 and later, in dist
	$(WITH_COMPILER) $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

bench: .venv/.installed-dev ## the benchmarks, one after the other
	@set -e; for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file; done

# R takes part if it is installed: apt install r-cran-glmnet r-cran-doparallel.
bench-rivals: .venv/.installed-bench ## other libraries on the same problems: tables and picture in docs
	PYTHONPATH=benchmarks $(BIN)/python -m rivals.run $(ARGS)
	PYTHONPATH=benchmarks $(BIN)/python -m rivals.table
	PYTHONPATH=benchmarks $(BIN)/python -m rivals.plot

bench-tables: .venv/.installed-bench ## ways of choosing alpha on real tables: tables and picture in docs
	PYTHONPATH=benchmarks $(BIN)/python -m real_tables.run $(ARGS)
	PYTHONPATH=benchmarks $(BIN)/python -m real_tables.page
	PYTHONPATH=benchmarks $(BIN)/python -m real_tables.plot

bench-check: .venv/.installed-dev ## what got slower than the base of the branch, or than BASE=revision
	PYTHONPATH=benchmarks $(BIN)/python -m check.run $(if $(BASE),--base $(BASE)) $(ARGS)

exactness: .venv/.installed-dev ## the long comparisons with the literal loop
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -m exactness

fuzz: .venv/.installed-dev ## hostile input by chance, for FUZZ_MINUTES (60 by default)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -s -m fuzz tests/test_fuzz.py

oldest: ## the tests with the oldest versions of what the package depends on
	$(PYTHON) -m venv --clear .venv-oldest
	sed -n 's/^  "\([a-z0-9-]*\)>=\([0-9.]*\)",$$/\1==\2.*/p' pyproject.toml > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-oldest/constraints.txt --editable '.[dev]'
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -n 2

clean: ## remove the environment and everything generated
	rm -rf .venv .venv-oldest build dist src/sparsestep/solvers/annealing.c src/sparsestep/solvers/*.so src/*.egg-info docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst sparsestep-demo.html .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed-plain: pyproject.toml $(COMPILED) | .venv/bin/python
	$(WITH_COMPILER) $(PIP) --editable .
	@touch $@

.venv/.installed-%: pyproject.toml $(COMPILED) | .venv/bin/python
	$(WITH_COMPILER) $(PIP) --editable '.[$*]'
	@touch $@
