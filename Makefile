# One command each; `make` alone lists them. Everything happens in this folder, nothing needs root.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

VENV := .venv
PYTHON := $(VENV)/bin/python
# The interpreter that creates the virtual environment (default: the first one from 3.11 on)
PYTHON3 ?=
# `make setup TORCH=cuda` takes PyTorch with CUDA
TORCH ?=
# Processes for tests and known answers: one more than two cores, since tests wait for files now and then
JOBS ?= 3
# Further arguments of whatever is called
ARGS ?=

# How many times more random networks `make properties` tries
FACTOR ?= 20

# pytest rewrites the assertions of 600 files and keeps the result, whatever the environment says
CACHED := PYTHONDONTWRITEBYTECODE=

# Your own data, KIND:PATH
DATA ?=

# Known answers: their folder, the cases of `make kat`, and those of WHAT=kat-selection
KAT ?= ../shared/kat
QAT_V2 ?= ../shared/qat-v2
KAT_SOFTWARE ?= ../shared/kat-software
KAT_GLOBS ?= *
KAT_SELECTION := max78000-mnist max78000-cifar-10 opt-*-mnist pooling* mlp* burnin* conv1x1 nonsquare*
# Cases of the selection that are not for MAX78000
KAT_BEYOND := ai87

RUNTIME := $(VENV)/.installed
DEVELOPMENT := $(VENV)/.installed-dev

# A virtual environment that does not run (Python was replaced, a copied folder) is made anew
ifneq ($(shell $(PYTHON) -c 'print("runs")' 2>/dev/null),runs)
.PHONY: $(RUNTIME) $(DEVELOPMENT)
endif

.PHONY: help setup demo mine rtl-demo software-demo clean test test-fast lint format docs kat emulator-kat software-kat properties fuzz mistakes mutants faults measure

help:
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / && !/^measure-/ { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

##@ Begin

setup: $(RUNTIME) ## create .venv, install what the tools need, compile ahead
	@$(PYTHON) tools/precompile.py

demo: $(RUNTIME) ## train, quantize, synthesize and verify a small network on bundled digits
	@$(PYTHON) tools/demo.py $(ARGS)

mine: $(RUNTIME) ## from your own data to measured firmware: DATA=folder:pictures (ARGS="--epochs 80")
	@$(PYTHON) tools/mine.py '$(DATA)' $(ARGS)

rtl-demo: $(RUNTIME) ## simulate a generated RTL test with Icarus Verilog, and an altered one
	@$(PYTHON) tools/rtl_demo.py $(ARGS)

software-demo: $(RUNTIME) ## the trained digits network on four cores without the accelerator, with a table
	@$(PYTHON) tools/software_demo.py $(ARGS)

clean: ## remove caches and generated projects; keeps .venv, logs and trained networks
	rm -rf build demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

##@ Develop

test: $(DEVELOPMENT) ## run the whole default test suite
	@$(CACHED) $(PYTHON) -m pytest -n $(JOBS) $(ARGS)

test-fast: $(DEVELOPMENT) ## run the tests that take less than ten seconds each
	@$(CACHED) $(PYTHON) -m pytest -n $(JOBS) -m "not slow" $(ARGS)

lint: $(DEVELOPMENT) ## check style, formatting and types
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

format: $(DEVELOPMENT) ## mend formatting and what ruff can mend by itself
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

docs: $(DEVELOPMENT) ## write the generated pages, and the manual as a site into build/docs
	@$(PYTHON) tools/make_docs.py
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --config-file tools/manual/mkdocs.yml --strict --quiet
	@echo "The manual is in build/docs/index.html"

##@ Compare with known answers

kat: $(RUNTIME) $(KAT)/check.py ## check against the known answers (KAT_GLOBS='name*' for some)
	@set -f; $(PYTHON) $(KAT)/check.py --jobs $(JOBS) $(KAT_GLOBS)

emulator-kat: $(DEVELOPMENT) ## execute the recorded words of the known answers in the emulator
	@$(PYTHON) -m tests.emulator.known_answers --kat $(KAT) $(ARGS)

software-kat: $(DEVELOPMENT) ## known answers of programs without the accelerator, in Python and C (KAT_SOFTWARE=DIR)
	@$(PYTHON) -m tests.software.known_answers $(KAT_SOFTWARE) $(ARGS)

##@ Search for defects

properties: $(DEVELOPMENT) ## test many more random networks (FACTOR=20 times the default)
	@AI8X_PROPERTIES=$(FACTOR) $(PYTHON) -m pytest -n $(JOBS) --hypothesis-show-statistics \
		tests/synthesis/test_random_networks.py tests/frontends/test_random_modules.py tests/frontends/test_onnx_nodes.py tests/rtl/test_networks.py \
		tests/training/test_train_script.py tests/training/test_own_data_deployed.py tests/models/test_trained_results.py \
		tests/writing/test_faults.py $(ARGS)

fuzz: $(DEVELOPMENT) ## the loader on thousands of damaged inputs, the readers on 100,000 hostile files, every option on 18
	@$(PYTHON) -m tests.robustness --jobs $(JOBS) $(ARGS)
	@$(PYTHON) -m tests.robustness.readers
	@$(PYTHON) -m tests.robustness.foreign

mistakes: $(DEVELOPMENT) ## twice 200 mistakes as people make them, and 113 in 40 files: what the messages name
	@$(PYTHON) -m tests.robustness.mistakes $(ARGS)
	@$(PYTHON) -m tests.robustness.other_mistakes $(ARGS)

mutants: $(DEVELOPMENT) ## plant defects one at a time in what computes: how many the nearest tests notice
	@$(PYTHON) -m tests.mutants --jobs $(JOBS) $(ARGS)

faults: $(DEVELOPMENT) ## a kill, a full disk, an I/O error and a power cut at every step of writing of each tool
	@$(PYTHON) -m tests.writing.all_tools $(ARGS)
	@$(PYTHON) -m tests.writing.tool_cuts $(ARGS)

##@ Measure

measure: ## tables, benchmarks and long checks: `make measure` lists them, `make measure WHAT=NAME` does one
	@$(if $(WHAT),$(MAKE) --no-print-directory measure-$(WHAT),awk -F ':.*## ' \
		'/^measure-[a-z-]+:/ { printf "  make measure WHAT=%-20s %s\n", substr($$1, 9), $$2 }' Makefile)

measure-%:
	@echo "error: there is nothing to measure with the name $*" >&2; \
		echo "  \`make measure\` lists what there is." >&2; exit 2

measure-recipes: $(DEVELOPMENT) ## command lines of users of the vendor's tools: how many get as far as the data
	@$(PYTHON) -m tests.recipes $(ARGS)

measure-qat-table: $(DEVELOPMENT) ## accuracy of QAT by bits, generation and rule (ARGS="digits", "mnist --data DIR", "net5 --data DIR", "net5-1 --data DIR")
	@$(PYTHON) tools/qat_table.py $(or $(ARGS),digits)

measure-qformat-table: $(RUNTIME) ## accuracy in floating point, 16 and 8 bits on a test set (ARGS="CHECKPOINT --data DIR")
	@$(PYTHON) tools/q15_table.py $(ARGS)

measure-qformat-guard: $(DEVELOPMENT) ## 1,000 extreme inputs for each layer of ten guarded networks: no sum leaves 32 bits
	@$(PYTHON) -m tests.software.q15_extremes $(ARGS)

measure-qformat-benchmarks: $(RUNTIME) ## instructions of kernels of 16 and 8 bits on Cortex-M4 and Cortex-M0+
	@$(PYTHON) benchmarks/q15.py $(ARGS)

measure-arrange-table: $(DEVELOPMENT) ## networks with places by hand, arranged without: cycles, memory, seconds
	@$(PYTHON) -m tests.arranging.table --kat $(KAT) $(ARGS)

measure-arrange-loads: $(DEVELOPMENT) ## random networks that nearly fill the kernel memory: how many get places
	@$(PYTHON) -m tests.arranging.loads $(ARGS)

measure-arrange-properties: $(DEVELOPMENT) ## 2,000 random networks without places: arranged, and executed on the emulated chip
	@AI8X_PROPERTIES=72 $(PYTHON) -m pytest -n $(JOBS) tests/synthesis/test_arrange_random.py $(ARGS)

measure-doors-fuzz: $(DEVELOPMENT) ## 2,000 random networks as strangers write them, imported, against torch (ARGS="--count N --seed N")
	@$(PYTHON) -m tests.frontends.wild_networks $(ARGS)

measure-onnx-nodes: $(DEVELOPMENT) ## node tests of the installed onnx against the results that come with them (ARGS="--only conv", "--list refused")
	@$(PYTHON) -m tests.frontends.onnx_nodes $(ARGS)

measure-handler-faults: $(DEVELOPMENT) ## a fault in each handler of the doors, in each setting of what it makes: the import must notice
	@$(PYTHON) -m tests.frontends.handler_faults

measure-every-function: $(DEVELOPMENT) ## every function of torch and method of its tensors between layers: imported and right, or refused
	@$(PYTHON) -m tests.frontends.every_function

measure-verdicts: $(DEVELOPMENT) ## 2,000 random networks, with and without places: refused, right, wrong and warned of, wrong in silence (ARGS="COUNT SEED")
	@$(PYTHON) -m tests.synthesis.verdicts $(ARGS)

measure-fault-table: $(DEVELOPMENT) ## damage single words of ten networks: what the answer file tells of them
	@$(PYTHON) -m tests.emulator.faults $(ARGS)

measure-remedies: $(DEVELOPMENT) ## 100 broken projects, mended by a client that applies the edits of messages (ARGS="--seed N --show --further")
	@$(PYTHON) -m tests.remedies $(ARGS)

measure-c-faults: $(DEVELOPMENT) build/digits build/mnist ## damage single words in the C of two projects, compile and run them
	@$(PYTHON) -m tests.emulator.c_faults build/digits build/mnist $(ARGS)

measure-proofs: $(DEVELOPMENT) ## prove the words of networks/ with random weights, or recorded ones (ARGS="--kat DIR")
	@$(PYTHON) -m tests.emulator.proofs $(if $(ARGS),$(ARGS),--networks)

measure-proof-faults: $(DEVELOPMENT) ## damage single words of ten networks: refuted with an input, or equivalent
	@$(PYTHON) -m tests.emulator.proof_faults $(ARGS)

measure-compare-projects: $(DEVELOPMENT) ## known answers beside ours, as they are and with planted differences: told in words (ARGS="--step 10")
	@$(PYTHON) -m tests.emulator.compared_projects --kat $(KAT) $(ARGS)

measure-decompile: $(DEVELOPMENT) ## read the recorded words of the known answers back, and compare the loader's (ARGS="--step N")
	@$(PYTHON) -m tests.emulator.decompiled --kat $(KAT) $(ARGS)

measure-explained: $(DEVELOPMENT) ## damage single words of ten networks: how often the explanation names layer and word
	@$(PYTHON) -m tests.emulator.explained $(ARGS)

measure-pages: $(DEVELOPMENT) ## the reports in Chromium: three widths, light and dark, axe-core (needs Chromium and playwright)
	@$(PYTHON) -m tests.commands.pages_in_browser $(ARGS)

measure-manual: $(DEVELOPMENT) ## the commands of README and manual, each page in a fresh folder (ARGS="docs/proof.md")
	@$(PYTHON) -m tests.manual $(ARGS)

measure-terminal: $(DEVELOPMENT) ## each tool in terminals of 80 and 120 columns, and in a pipe: widths of tables, the last line
	@$(PYTHON) -m tests.reading.audit

measure-bit-flips: $(DEVELOPMENT) build/digits build/mnist ## flip each bit of the layer registers and see what the emulator says
	@$(PYTHON) -m tools.bit_flips build/digits build/mnist

measure-core-memory: $(DEVELOPMENT) ## flash and SRAM of networks/: what the loader says, and what the linked programs take
	@$(PYTHON) -m tests.emulator.core_memory

measure-software-benchmarks: $(RUNTIME) ## without the accelerator: instructions of kernels and memory of known networks, or of projects (ARGS="build/mnist ..."; CMSIS_NN=DIR: beside it)
	@$(PYTHON) benchmarks/software.py $(if $(CMSIS_NN),--cmsis-nn $(CMSIS_NN)) $(ARGS)

measure-model-table: $(DEVELOPMENT) ## ordinary networks on each target: correlation with floating point, RAM, flash, cycles (ARGS="--models FILE")
	@$(PYTHON) benchmarks/model_table.py $(ARGS)

measure-software-mlperf: $(RUNTIME) ## the networks of MLPerf Tiny on a Cortex-M4 without the accelerator: memory, instructions
	@$(PYTHON) benchmarks/mlperf_tiny.py $(ARGS)

measure-software-images: $(DEVELOPMENT) ## known answers of the accelerator with --device MCU, compiled for this computer
	@$(PYTHON) -m tests.software.images --kat $(KAT) --jobs $(JOBS) $(ARGS)

measure-software-cores: $(DEVELOPMENT) ## the same results on four cores: trained networks and every operator, as a table
	@$(PYTHON) -m tests.software.same_on_cores $(ARGS)

measure-software-helium: $(DEVELOPMENT) ## Cortex-M55 on QEMU with and without Helium: the same bytes, instructions (needs qemu-system-arm)
	@$(PYTHON) -m tests.software.helium $(ARGS)

measure-software-compilers: $(DEVELOPMENT) ## the same bytes with gcc, clang and zig cc at -O0, -Os, -O3 and with sanitizers
	@$(PYTHON) -m tests.software.compilers $(ARGS)

measure-software-operators: $(DEVELOPMENT) ## every operator and key in C against the simulation, with sanitizers
	@$(PYTHON) -m tests.software.against_simulation $(ARGS)

measure-each-operator: $(DEVELOPMENT) ## a tiny network for each operator and setting on each target without the accelerator, its C run (ARGS="--only TEXT", "--write": into the manual)
	@$(PYTHON) -m tests.software.each_operator $(ARGS)

measure-software-proofs: $(DEVELOPMENT) ## prove the C of networks/ with random weights, of random networks, streams or memory levels (ARGS="--random N", "--streams N", "--levels N"), or of known answers (ARGS="--kat DIR")
	@$(PYTHON) -m tests.software.proofs $(ARGS)

measure-software-proof-faults: $(DEVELOPMENT) ## damage single numbers in the C of ten networks: refuted with an input, or equivalent
	@$(PYTHON) -m tests.software.proof_faults $(ARGS)

measure-software-streams: $(DEVELOPMENT) ## 10,000 hops of 100 random networks with --stream against whole windows, and their products
	@$(PYTHON) -m tests.software.streams $(ARGS)

measure-software-properties: $(DEVELOPMENT) ## 2,000 random networks: plans, executor, and the C of 200 with sanitizers
	@$(PYTHON) -m tests.software.properties $(ARGS)

measure-software-levels: $(DEVELOPMENT) ## 5,000 random networks in random memories: predicted bytes and memory, copies delayed and poisoned
	@$(PYTHON) -m tests.software.level_graphs $(ARGS)

measure-software-schemes: $(DEVELOPMENT) ## each network of networks/ with each scheme forced: the same bytes in C, copies delayed and poisoned
	@$(PYTHON) -m tests.software.forced_schemes $(ARGS)

measure-cost-model: $(DEVELOPMENT) ## predicted and counted instructions of the networks of networks/ (ARGS="--calibrate 72": measure the coefficients first)
	@$(PYTHON) -m tests.software.cost_model $(ARGS)

measure-lowbit-images: $(DEVELOPMENT) ## C of low-bit networks = Python for all test images (ARGS="MODEL.h --data DIR")
	@$(PYTHON) -m tests.software.lowbit_images $(ARGS)

measure-container-fuzz: $(DEVELOPMENT) ## damaged containers and every field one more or less: the same status and outputs in Python and C
	@$(PYTHON) -m tests.software.container_fuzz $(ARGS)

measure-cmsis-images: $(DEVELOPMENT) ## networks/, and known answers of the accelerator, with --device CMSIS-NN (ARGS="--step 1": all)
	@$(PYTHON) -m tests.software.calls_networks
	@$(PYTHON) -m tests.software.images --device CMSIS-NN --schemes resident --step 10 --kat $(KAT) --jobs $(JOBS) $(ARGS)

measure-cmsis-operators: $(DEVELOPMENT) ## every operator, and random networks, with --device CMSIS-NN, with sanitizers
	@$(PYTHON) -m tests.software.calls $(ARGS)

measure-cmsis-benchmarks: $(DEVELOPMENT) ## instructions of programs that call Arm's functions (ARGS="--cmsis-nn DIR": beside the library)
	@$(PYTHON) benchmarks/cmsis_calls.py $(ARGS)

measure-benchmarks: $(RUNTIME) ## measure speed and memory next to a yardstick
	@set -e; for script in benchmarks/*.py; do $(PYTHON) "$$script"; done

measure-kat-selection: $(RUNTIME) $(KAT)/check.py ## the known answers of the basic features on MAX78000
	@set -f; cases=$$($(PYTHON) $(KAT)/check.py --list $(KAT_SELECTION) | grep -vE '$(KAT_BEYOND)') \
		&& $(PYTHON) $(KAT)/check.py --jobs $(JOBS) $$cases

measure-kat-qat: $(DEVELOPMENT) ## the second generation of QAT against known answers (QAT_V2=DIR)
	@$(PYTHON) $(QAT_V2)/check_qat_v2.py . $(ARGS)

build/digits build/mnist:
	@scripts/gen_$(notdir $@).sh

SETUP := requirements.txt pyproject.toml scripts/setup.sh tools/torch_source.py

$(RUNTIME): $(SETUP)
	@PYTHON3="$(PYTHON3)" TORCH="$(TORCH)" scripts/setup.sh $(VENV) emulator
	@$(PYTHON) tools/precompile.py
	@touch $@

# One call of pip for all
$(DEVELOPMENT): $(SETUP)
	@PYTHON3="$(PYTHON3)" TORCH="$(TORCH)" scripts/setup.sh $(VENV) emulator onnx detection datasets encryption serial sweep dev
	@$(PYTHON) tools/precompile.py
	@touch $(RUNTIME) $@

$(KAT)/check.py:
	@echo "error: $(KAT)/check.py is not there" >&2; \
		echo "  Name the folder of the known-answer suite: make kat KAT=/path/to/kat" >&2; exit 1
