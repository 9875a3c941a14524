# `make run` and `make test` are all the set-up there is: each makes .venv and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find src native -type f -not -name '*.pyc' 2>/dev/null)

.PHONY: run test clean

run: .venv/installed
	$(BIN)/headwork solve two-heads

test: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto

clean:
	rm -rf .venv build dist

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet .
	touch $@

.venv/installed-test: .venv/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet '.[test]'
	touch $@ .venv/installed
