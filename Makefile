# Everything runs in .venv, made on first use. `make demo` and `make test` need Python 3.11+ and a C++ compiler
# (or `pip install ascsim[zig]`), and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= 2

.PHONY: demo test lint unit slow bench docs clean

demo: $(STAMP)
	$(BIN)/ascsim demo

test: lint unit

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(STAMP)

lint: $(STAMP)
	$(BIN)/python docs/make_reference.py --check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(STAMP)
	$(BIN)/pytest -n $(JOBS) -m "not slow"

slow: $(STAMP)
	$(BIN)/pytest -n $(JOBS) -m slow

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

docs: $(STAMP)
	$(BIN)/python docs/make_reference.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist
