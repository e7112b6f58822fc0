# make run   the main job on the example workspace, through a real daemon
# make test  everything that a test can say
# make test-vscode  the VS Code extension in a real VS Code; wants Node.js with npm, fetches the rest once
# make mutate-vscode  whether those tests notice thirteen deliberate breakages of the extension, each alone (a quarter of an hour)
# make check format, lint, strict types, tests: what CI runs
# make bench speed beside the npm JSON servers, conversations beside other libraries, the ledger beside a bare database, agents
# make torture  the ledger under faults, and everything else under attack (docs/durability.md, docs/security.md); some of it needs root
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: run test test-vscode mutate-vscode check lint types bench torture generate clean

run: $(STAMP)
	@$(BIN)/python examples/tour.py

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-vscode: $(STAMP)
	@command -v npm >/dev/null || { echo "The tests of the VS Code extension need Node.js 20 or later with npm"; exit 1; }
	node vscode-extension/scripts/e2e.mjs

mutate-vscode: $(STAMP)
	@command -v npm >/dev/null || { echo "The tests of the VS Code extension need Node.js 20 or later with npm"; exit 1; }
	node vscode-extension/scripts/mutate.mjs

check: lint types test

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py
	$(BIN)/python -m benchmarks.instructions
	$(BIN)/python -m benchmarks.conversation
	$(BIN)/python -m benchmarks.ledger
	$(BIN)/python -m benchmarks.agents

torture: $(STAMP)
	$(BIN)/python -m tests.torture

generate: $(STAMP)
	$(BIN)/python -m nexus_context.config.generate
	PYTHONPATH=tests $(BIN)/python -m support.protocol_page

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Nexus needs Python 3.11 or later; found $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Nexus and its tools into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group test --group lint
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
