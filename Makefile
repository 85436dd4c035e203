# Two commands are all a newcomer needs: make demo, make test.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test test-slow docs bench serve wheel clean
.DEFAULT_GOAL := demo

# Reinstalls only when the declared dependencies change.
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing discreet and what it needs (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	@echo "compiling what the demonstration needs (about a minute, once)"
	@$(BIN)/discreet demo --rows 300 --output $(VENV)/first-run | grep '^[0-9]*\. ' || echo "it will be compiled when first used"
	@touch $@

demo: $(STAMP)         ## protect, release, ask and attack embedded data; writes an HTML report
	@$(BIN)/discreet demo

test: $(STAMP)         ## everything CI runs
	@scripts/system-packages
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/check

test-slow: $(STAMP)    ## the tests marked slow as well
	@scripts/system-packages
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/check --slow

docs: $(STAMP)         ## the manual, as HTML
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: $(STAMP)        ## the headline figures; results belong in docs/benchmarks.md
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

serve: $(STAMP)        ## the query gateway for POLICY (default: the demonstration's)
	@$(BIN)/discreet serve $(or $(POLICY),)

wheel: $(STAMP)        ## the wheel to install elsewhere, in dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/discreet-*.whl

clean:
	rm -rf $(VENV) docs/_build out
