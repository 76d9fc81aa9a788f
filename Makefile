# make figures   regenerate every figure into out/figures
# make test      run all tests
# Both make .venv first, and install again only when setup.cfg or pyproject.toml changed.

PYTHON ?= python3
BIN = .venv/bin
STAMP = .venv/installed

.PHONY: figures test clean

figures: $(STAMP)
	$(BIN)/perfmodel figures -o out/figures

test: $(STAMP)
	$(BIN)/python -m pytest

$(STAMP): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "perfmodel needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make virtual environments: apt-get install python3-venv, or make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

clean:
	rm -rf .venv out build dist perfmodel.egg-info .pytest_cache .hypothesis
	find perfmodel figures data tests -name __pycache__ -type d -prune -exec rm -rf {} +
