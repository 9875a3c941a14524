# `make run` and `make test` are all the set-up there is: each makes .venv and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find src native -type f -not -name '*.pyc' 2>/dev/null)
# Python's tools say nothing while they work: a line every five seconds says that it goes on, and with what.
busy = ( while sleep 5; do echo "  … still at it: $(1)"; done & beat=$$!; $(2); code=$$?; kill $$beat; exit $$code )
install = $(call busy,packages are fetched and the kernel is compiled,\
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(1))

.PHONY: run test docs wheels clean

run: .venv/installed
	$(BIN)/headwork solve two-heads
	@echo
	@echo "headwork is in .venv: call $(BIN)/headwork (or: . $(BIN)/activate), $(BIN)/headwork --help shows what it can do."

test: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto

# The documentation as a site, in site/. Material asks every build to move to its successor unless it is told not to.
docs: .venv/installed-test
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=src $(BIN)/mkdocs build --strict

# Takes long: the kernel is compiled four times, its tests run in eight fresh environments, three of them emulated.
wheels: .venv-wheels/installed
	.venv-wheels/bin/python wheels/build.py dist
	.venv-wheels/bin/python wheels/try_out.py dist

.venv-wheels/installed: wheels/requirements.txt
	$(PYTHON) -m venv .venv-wheels
	.venv-wheels/bin/python -m pip install --quiet --disable-pip-version-check -r wheels/requirements.txt
	@touch $@

clean:
	rm -rf .venv .venv-wheels build dist site

# Said before the long work: pip asks for the version when the kernel is compiled.
NEW_ENOUGH := import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	"headwork needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ": give another, PYTHON=python3.13")

.venv/bin/python:
	@$(PYTHON) -c '$(NEW_ENOUGH)'
	@echo "Making a virtual environment in .venv"
	@$(call busy,Python is copied,$(PYTHON) -m venv .venv)

.venv/installed: .venv/bin/python $(SOURCES)
	@echo "Installing headwork into .venv: one or two minutes, most of it the C++ compiler's"
	@$(call install,.)
	@touch $@

.venv/installed-test: .venv/bin/python $(SOURCES)
	@echo "Installing headwork and its test tools into .venv: some minutes"
	@$(call install,'.[test]')
	@touch $@ .venv/installed
