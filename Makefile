# make demo    set everything up and train the spectral-radius network
# make test    set everything up and run all the tests
# make help    the other targets

PYTHON ?= python3
ARGS ?=
WORKERS ?= 2

VENV ?= .venv
PEERS := .venv-peers
BIN := $(VENV)/bin
# The stamps are named after what they hold, so `make test` after `make demo` adds only the rest.
DEMO := $(VENV)/.installed-demo
DEV := $(VENV)/.installed-dev
PEERED := $(PEERS)/.installed

INSTALL := -m pip install --quiet --disable-pip-version-check
SOURCES := pyproject.toml setup.py $(wildcard primal/base/_fast.c primal/base/fast/*.[ch])

.DEFAULT_GOAL := help
.PHONY: help demo test versions lint types layers bench bench-eager peers clean

help:
	@echo 'make demo     train the spectral-radius network      ARGS="--steps 100 --out DIR"'
	@echo 'make test     run all the tests                      ARGS="tests/ir -x"'
	@echo 'make versions the tests a version of Python can fail, under the other supported ones'
	@echo 'make lint     ruff'
	@echo 'make types    mypy, strict on primal/ir and primal/ops'
	@echo 'make layers   the direction of imports'
	@echo 'make bench    measure beside JAX                     ARGS="import eager_add"'
	@echo 'make bench-eager  eager calls beside NumPy and JAX   ARGS="floor sort"'
	@echo 'make peers    the environment of the libraries that bench compares with'
	@echo 'make clean    remove the environments and caches'
	@echo 'PYTHON=python3.12 picks the interpreter (3.11 or newer), read when .venv is made.'

demo: $(DEMO)
	@$(BIN)/python examples/spectral_radius.py $(ARGS)

test: $(DEV)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

versions: $(DEV)
	@$(BIN)/python -m tools.versions

lint: $(DEV)
	@$(BIN)/ruff check $(ARGS) .

types: $(DEV)
	@$(BIN)/mypy $(ARGS)

layers: $(DEV)
	@$(BIN)/lint-imports --no-cache $(ARGS)
	@$(BIN)/python -m pytest -q tests/layers

bench: $(DEMO) $(PEERED)
	@$(BIN)/python benchmarks/run.py $(ARGS)

bench-eager: $(DEMO) $(PEERED)
	@$(BIN)/python benchmarks/eager_table.py $(ARGS)

peers: $(PEERED)

$(DEMO): $(SOURCES)
	@$(call environment,$(VENV))
	@echo 'Installing Primal into $(VENV) (the first time takes a few minutes) ...'
	@$(BIN)/python $(INSTALL) --editable '.[demo]'
	@touch $@

$(DEV): $(DEMO)
	@echo 'Installing the development tools into $(VENV) ...'
	@$(BIN)/python $(INSTALL) --editable '.[dev]'
	@touch $@

# PyTorch is a guest in one column: where it cannot be had the tables say so and go on.
$(PEERED): Makefile
	@$(call environment,$(PEERS))
	@echo 'Installing the peers into $(PEERS) ...'
	@$(PEERS)/bin/python $(INSTALL) jax==0.10.2 jaxlib==0.10.2 'numpy>=2.0'
	@$(PEERS)/bin/python $(INSTALL) torch==2.13.0 \
	    || echo 'PyTorch could not be installed: its column stays empty.'
	@touch $@

clean:
	rm -rf $(VENV) $(PEERS) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find primal tests benchmarks examples -name __pycache__ -type d -exec rm -rf {} +

# Makes the virtual environment $(1), also over one whose making was interrupted.
define environment
{ $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
    echo 'Primal needs Python 3.11 or newer and $(PYTHON) is not:' \
         'name another one, make PYTHON=python3.12 ...' >&2; exit 1; }; } && \
{ $(1)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(1); }
endef
