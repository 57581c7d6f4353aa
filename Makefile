# Two commands: `make demo` and `make test`. Each sets up what it needs; nothing by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint unit wheel clean

demo: $(VENV)/.core
	$(BIN)/tapword demo

test: lint unit wheel

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	$(BIN)/pytest -n auto -q

# The package as a user gets it: a wheel in an empty environment, run from another folder.
wheel: $(VENV)/.dev
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m build --wheel --outdir build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet build/wheel/*.whl
	cd build/wheel && venv/bin/tapword demo

$(VENV)/.core: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tapword needs Python 3.11 or later; try: make PYTHON=python3.12")'
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist
