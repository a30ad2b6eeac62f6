# Two commands do everything on a fresh machine with Python 3.11 or newer:
#   make demo    install, run the main job on embedded data, say where the results are
#   make test    install, run everything CI runs
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Modules are compiled when they are first used: the environment holds twenty thousand of them.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
EXTRAS := dev,all

.PHONY: setup setup-test demo test check-full house clean

setup: $(VENV)/.core

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install --no-compile --constraint constraints.txt --editable '.[mujoco]'
	touch $@

setup-test: $(VENV)/.test

# All at once: what `setup` installs is part of it.
$(VENV)/.test: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install --no-compile --constraint constraints.txt --editable '.[$(EXTRAS)]'
	touch $(VENV)/.core $@

demo: setup
	$(BIN)/pubc demo

# Types are checked beside the first tests. A file stays on one worker, so that what it prepares is
# made once; the order of files is that of tests/conftest.py. Four workers keep two cores busy,
# since many tests wait; what all of them load is compiled before, once.
test: setup-test
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy & types=$$!; \
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -W ignore -c \
	  "import d3rlpy, matplotlib.pyplot, onnxruntime, ray, tests.reliability.test_faults, torch, zarr" \
	  2>/dev/null; \
	$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder -m "not slow and not gpu"; \
	tests=$$?; wait $$types && exit $$tests

# Longer checks than CI can afford; the last result is recorded in docs/dev/check-full.md.
check-full: setup-test
	$(BIN)/pytest -m "slow"

# Figures on the source: sizes of files and folders, circles of imports, repetition.
house: setup
	$(BIN)/python -m tests.house

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
