# make figures   regenerate every figure into out/figures
# make test      run all tests
# make peers     compare with other models (benchmarks/README.md); writes benchmarks/peers.csv
# The first two make .venv first, and install again only when setup.cfg or pyproject.toml changed.

PYTHON ?= python3
BIN = .venv/bin
STAMP = .venv/installed

.PHONY: figures test peers clean

figures: $(STAMP)
	$(BIN)/perfmodel figures -o out/figures

test: $(STAMP)
	$(BIN)/python -m pytest

# Peers other than the trees are optional: without them their rows are left out.
peers: .venv-peers/installed
	-$(MAKE) --keep-going .venv-nvmatmul/installed .venv-aiconfigurator/installed
	.venv-peers/bin/python benchmarks/peers.py

.venv-%/installed: benchmarks/requirements-%.txt setup.cfg
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check -r $< || \
	  { rm -rf .venv-$*; exit 1; }
	touch $@

$(STAMP): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "perfmodel needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make virtual environments: apt-get install python3-venv, or make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

clean:
	rm -rf .venv .venv-* out build dist perfmodel.egg-info .pytest_cache .hypothesis
	find perfmodel figures data tests -name __pycache__ -type d -prune -exec rm -rf {} +
