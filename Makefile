# One command from a fresh machine: every target makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DOCS_INSTALLED := $(VENV)/.installed-docs
BENCH_INSTALLED := $(VENV)/.installed-bench

BROWSER := $(firstword $(wildcard /usr/bin/chromium /usr/bin/chromium-browser))

.PHONY: help demo serve page browser test test-all lint bench docs doctest site release reproduce clean

help:
	@echo "make demo      train SpectraKAN and FNO on droplets, compare, write demo.html"
	@echo "make serve     a page where trained operators run beside their solvers"
	@echo "make page      the same page for any static host, models inside the browser, in build/page (needs npm)"
	@echo "make test      lint, types, import rules and the quick tests"
	@echo "make test-all  the same and the slow proofs"
	@echo "make lint      lint, types and import rules alone"
	@echo "make bench     speed and memory against peers, written to benchmarks/RESULTS.md"
	@echo "make reproduce run the campaign: the paper's tables, cell by cell (TABLES=main for one)"
	@echo "make docs      check the examples in docstrings and documents, build the site with its links checked"
	@echo "make release   wheel, source archive, SBOM and checksums in dist/"

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(DOCS_INSTALLED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	@touch $@

$(BENCH_INSTALLED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	@touch $@

demo: $(INSTALLED)
	$(BIN)/spectrakan demo

serve: $(INSTALLED)
	$(BIN)/spectrakan serve

page: $(INSTALLED)
	$(BIN)/python tools/make_page.py build/page

# The tests in a browser need Chromium, and npm for the static page: Debian's packages where this user may install them.
browser:
	@missing="$(if $(BROWSER),,chromium) $$(command -v npm >/dev/null || echo npm)"; \
	if [ -n "$$(echo $$missing)" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing; \
	  else echo "not installed:$$missing; the tests in a browser will be skipped"; fi; fi

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=src:. $(BIN)/lint-imports

test: lint doctest
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -m "not slow" tests

# The browser's tests measure frames and latency: they run alone, after the others.
test-all: lint doctest site browser
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 tests --ignore=tests/browser
	OMP_NUM_THREADS=1 $(BIN)/pytest tests/browser

docs: doctest site

# The site under build/site: warnings are errors, links and anchors are checked.
site: $(DOCS_INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --clean

# Wheel, source archive, list of parts and checksums under dist/, from this checkout alone.
release: $(INSTALLED)
	$(BIN)/python tools/make_release.py

doctest: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/pytest -q --doctest-modules --doctest-glob='*.md' -o testpaths= --ignore=docs/examples src/spectrakan README.md docs

reproduce: $(INSTALLED)
	$(BIN)/python -m experiments $(TABLES)

bench: $(BENCH_INSTALLED)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
