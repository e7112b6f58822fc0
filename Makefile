# `make` alone prints these lines:
# make run               the tour of the example, 80 lines; FOLDER=path: of a folder of yours
# make test              all tests of the library, the daemon, the commands and other editors
# make check             lint, types, test and test-vscode: what CI runs
# make lint              format and lint of Python, as they are
# make types             mypy and basedpyright, both strict
# make generate          schemas, pages and TypeScript types, from their sources (CONTRIBUTING says which)
# make docs              every exchange of docs/protocol.md in full, into build/docs (not committed; tests read it)
# make fresh             whether `make generate` changes nothing
# make test-vscode       the VS Code extension in a real VS Code; wants Node.js with npm, fetches the rest once
# make prepare-vscode    fetches what test-vscode runs in
# make mutate-vscode     whether those tests notice deliberate breakages (a quarter of an hour)
# make test-assistants   the profiles beside the real Claude Code, Codex, opencode, Gemini CLI (npm, 1.2 GB, ten minutes)
# make setting-docs      what Gemini CLI and opencode say of their settings, into settings.docs.json of their rooms
# make coverage          the branches that each suite covers; fails below 95 % of the library
# make fuzz              the property tests with fifty times their examples (TIMES=5 TESTS=tests/context/turn)
# make torture           the ledger under faults, everything else under attack; some of it needs root
# make bench             every promise beside a peer or a floor of the same run (benchmarks/README.md)
# make models            the newest packages that the model registry is made from, then the registry
# make lock              the versions of the development environment, from pyproject.toml
# make changelog         the fragments of changes/ into CHANGELOG.md (VERSION=0.2.0)
# make clean             removes .venv and all caches

# a process that may not keep what it compiled compiles again what it imports: of pytest's workers each all tests,
# of the daemons and commands that tests start each all of Nexus
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV   := .venv
ifeq ($(OS),Windows_NT)
BIN    := $(VENV)/Scripts
else
BIN    := $(VENV)/bin
endif
STAMP  := $(VENV)/.installed
LOCK   := requirements-dev.lock
# for two cores: while a test waits for a daemon, an editor or the disk, another one computes
WORKERS := 3
SERVERS := tests/mcp_servers/node_modules/.package-lock.json

.PHONY: help run test test-assistants setting-docs test-vscode prepare-vscode mutate-vscode check lint types mypy pyright coverage fuzz bench torture generate docs models fresh lock changelog clean

help:
	@sed -n 's/^# make /make /p' $(firstword $(MAKEFILE_LIST))

run: $(STAMP)
	@$(BIN)/python examples/tour.py $(FOLDER)

test: $(STAMP) $(SERVERS) docs
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

test-vscode: $(STAMP) docs
	@command -v npm >/dev/null || { echo "The tests of the VS Code extension need Node.js 20 or later with npm"; exit 1; }
	node vscode-extension/scripts/e2e.mjs

# real MCP servers; without npm their tests are skipped
$(SERVERS): tests/mcp_servers/package-lock.json
	@if command -v npm >/dev/null; then npm ci --silent --ignore-scripts --prefix tests/mcp_servers || echo "their tests are skipped"; \
		else echo "npm is not here: the tests of real MCP servers are skipped"; fi

# what this cannot fetch, test-vscode tries again
prepare-vscode: docs
	-node vscode-extension/scripts/e2e.mjs --prepare

# installs them into $XDG_CACHE_HOME/nexus-assistants; ASSISTANTS="--only codex --record" narrows and records
test-assistants: $(STAMP)
	nice $(BIN)/python -m tests.assistants $(ASSISTANTS)

# installs Gemini CLI and opencode there, too, and reads what they say of their settings
setting-docs: $(STAMP)
	nice $(BIN)/python -m tests.assistants.setting_docs

mutate-vscode: $(STAMP)
	@command -v npm >/dev/null || { echo "The tests of the VS Code extension need Node.js 20 or later with npm"; exit 1; }
	node vscode-extension/scripts/mutate.mjs

check: lint types test test-vscode

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: mypy pyright

mypy: $(STAMP)
	$(BIN)/mypy

pyright: $(STAMP)
	$(BIN)/basedpyright

# the library by its own tests alone, then both packages by all other tests; processes of their own are not counted
coverage: $(STAMP) docs
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile tests/context --cov=nexus_context --cov-report=
	$(BIN)/python -m coverage report --fail-under=95
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile tests --ignore tests/context --cov=nexus_daemon --cov=nexus_context --cov-report=
	$(BIN)/python -m coverage report

# SEED=N draws again what the run with this seed drew
fuzz: TIMES := 50
fuzz: TESTS := tests
fuzz: $(STAMP)
	nice $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --fuzz $(TIMES) $(if $(SEED),--fuzz-seed $(SEED)) $(TESTS)

bench: $(STAMP)
	$(BIN)/python -m benchmarks

torture: $(STAMP) docs
	$(BIN)/python -m tests.torture

generate: $(STAMP)
	$(BIN)/python -m nexus_context.config.generate
	PYTHONPATH=tests $(BIN)/python scripts/update_pages.py
	$(BIN)/python scripts/update_models.py

docs: $(STAMP)
	PYTHONPATH=tests $(BIN)/python scripts/build_docs.py

models: $(STAMP)
	rm -rf .registries
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest .registries \
		litellm genai-prices openai anthropic google-genai
	$(BIN)/python scripts/update_models.py

# whether the generated files are those of their source
fresh: generate
	git diff --exit-code -- context/nexus_context/config context/nexus_context/tokens docs README.md vscode-extension/src

lock: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group release
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-emit-index-url \
		--no-header --extra embeddings --group test --group lint --output-file $(LOCK) pyproject.toml

changelog: $(STAMP)
	@test -n "$(VERSION)" || { echo "Which version? make changelog VERSION=0.2.0"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group release
	$(BIN)/towncrier build --yes --version $(VERSION)

$(STAMP): pyproject.toml $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Nexus needs Python 3.11 or later; found $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Nexus and its tools into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

clean:
	rm -rf $(VENV) build/docs .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis
