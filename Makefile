# `make demo` and `make test` each set up what they need in .venv/ and run; nothing else is asked
# of the machine than Python >= 3.11, make and the package index.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint clean

demo: .venv/demo
	rm -f demo.db demo.db-wal demo.db-shm
	$(BIN)/gatekeeper run gatekeeper/bundled/tasks.jsonl --generator bundled --policy cst \
		--budget 0.2 --sandbox local --log demo.db --check-all

test: .venv/dev
	$(BIN)/python -m pytest

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis demo.db*

.venv/python:
	@test -n "$(PYTHON)" || { echo "gatekeeper needs Python 3.11 or newer: none was found" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	touch $@

.venv/demo: .venv/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[demo,math]'
	touch $@

.venv/dev: .venv/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[demo,math,openai,dev]'
	touch $@
