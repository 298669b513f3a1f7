# One command from a fresh machine: every target makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BENCH_INSTALLED := $(VENV)/.installed-bench

.PHONY: help demo test test-all lint bench docs reproduce clean

help:
	@echo "make demo      train SpectraKAN and FNO on droplets, compare, write demo.html"
	@echo "make test      lint, types, import rules and the quick tests"
	@echo "make test-all  the same and the slow proofs"
	@echo "make lint      lint, types and import rules alone"
	@echo "make bench     speed and memory against peers, written to benchmarks/RESULTS.md"
	@echo "make reproduce run the campaign: the paper's tables, cell by cell (TABLES=main for one)"
	@echo "make docs      check the examples in docstrings and documents"

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(BENCH_INSTALLED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	@touch $@

demo: $(INSTALLED)
	$(BIN)/spectrakan demo

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=src:. $(BIN)/lint-imports

test: lint docs
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -m "not slow" tests

test-all: lint docs
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 tests

docs: $(INSTALLED)
	$(BIN)/pytest -q --doctest-modules --doctest-glob='*.md' -o testpaths= src/spectrakan README.md docs

reproduce: $(INSTALLED)
	$(BIN)/python -m experiments $(TABLES)

bench: $(BENCH_INSTALLED)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
