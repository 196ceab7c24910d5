# Needs Python 3.11 or later and make; everything else goes into .venv. `make help` lists the targets.
PYTHON ?= python3
DESIGN ?= gallery/designs/llama-3.1-405b.yaml
PYTEST ?=
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help env lab report page test test-launch properties lint calibrate validation bench bench-desk gallery walkthroughs pictures clean

help:        ## list the targets
	@sed -n 's/^\([a-z-]*\): .*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "make %-12s %s\n", $$1, $$2}'

env: $(READY)        ## make the environment in .venv

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "scantling needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(BIN)/python -c 'import pip' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV) || { \
	  echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; rm -rf $(VENV); exit 1; }
	@echo "Installing scantling and what it needs into $(VENV); the first time takes about a minute."
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

lab: $(READY)        ## the design desk in JupyterLab, on DESIGN
	@$(BIN)/scantling lab $(DESIGN)

page: $(READY)        ## the desk as a web page, without code
	@$(BIN)/scantling page $(DESIGN)

report: $(READY)        ## the report of DESIGN, into build/
	@$(BIN)/scantling report $(DESIGN) -o build

test: $(READY)        ## every test, two processes at a time; those in a browser need Chromium and run alone
	@sh .ci/chromium; export CHROMIUM="$$(sh .ci/chromium --find)"; \
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not browser" $(PYTEST) || exit $$?; \
	$(BIN)/python -m pytest -m browser $(PYTEST) || [ $$? -eq 5 ]

test-launch: $(READY)        ## launch kits before the frameworks' own parsers, and trained on CPU: heavy, 20 minutes
	@PYTHON=$(PYTHON) sh tests/launch/install
	@mkdir -p build; touch build/launch.jsonl; code=0; \
	LAUNCH_JUDGES=1 LAUNCH_RESULTS=$(CURDIR)/build/launch.jsonl $(BIN)/python -m pytest -v -m launch tests/decide/test_plan_rules.py tests/launch/test_launch_judges.py tests/launch/test_launch_train.py $(PYTEST) || code=$$?; \
	$(BIN)/python tests/launch/record.py build/launch.jsonl; exit $$code

DESIGNS ?= 10000
properties: $(READY)        ## 10,000 designs drawn at random, and what must hold for each: about 30 minutes
	@$(BIN)/python tests/random_designs.py $(DESIGNS)

lint: $(READY)        ## ruff over the tree: rules, and the format at 100 columns
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .

validation: $(READY)        ## predicted beside published: gallery/validation/ and the accuracy table of the README
	@$(BIN)/python -m scantling.evidence.validate.page
	@$(BIN)/python -m scantling_widgets.validation_page

calibrate: $(READY)        ## fit the few constants on published runs again
	@$(BIN)/python -m scantling.evidence.calibrate.throughput
	@$(BIN)/python -m scantling.evidence.calibrate.memory

bench: $(READY)        ## how fast an assessment and a search are
	@$(BIN)/python -m scantling.evidence.bench

bench-desk: $(READY)        ## how fast the desk follows a slider
	@CHROMIUM="$$(sh .ci/chromium --find)" $(BIN)/python -m scantling_widgets.bench

gallery: $(READY)        ## every design of gallery/ assessed and rendered again, beside what was published
	@$(BIN)/python -m scantling_widgets.gallery
	@$(BIN)/python -m scantling_widgets.validation_page

walkthroughs: $(READY)        ## the walkthroughs and reference notebooks executed and rendered: gallery/walkthroughs/, gallery/reference/
	@$(BIN)/python -m scantling_widgets.walkthroughs gallery/walkthroughs
	@$(BIN)/python -m scantling_widgets.reference gallery/reference

pictures: $(READY)        ## the pictures of the desk in the README, light and dark
	@CHROMIUM="$$(sh .ci/chromium --find)" SCANTLING_PICTURES=gallery/pictures $(BIN)/python -m pytest -q tests/browser -k pictures_of

clean:        ## remove what was built, the environment too
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
