# make demo        run the main example on simulated trainings, without Docker
# make check       run the tests that need no engine, in a minute: no slow ones, fewer examples and cases
# make test        run all tests, on a real engine if one answers
# make test-cluster  move jobs between three real Swarm nodes on this machine; needs root
# make test-engines  start Podman, systemd, containerd and Slurm beside Docker, and run the same tests over each; root
# make test-engines-v2  run the same tests over cgroups, systemd and Docker in an emulated machine with cgroup v2; root
# make faults      break moves between three Swarm nodes in all ways; needs root, 25 minutes
# make lint        check style, types and import contracts
# make package     build wheel and sdist into dist/, and try them in empty environments; a minute
# make docs        write the generated parts of man pages and completions
# make bench       measure costs against docker stats, times and precision, and print them
# make bench-contention  measure what waiting trainings cost the first in line; needs root
# make live        compare policies on real containers, and with dl-sim; takes 15 minutes
# make record      type README's six commands beside real trainings, and draw the terminal; a minute
# make live-cluster  move real trainings between three Swarm nodes on this machine; root, 6 minutes
# make strangers   see who is worse off than under Docker alone: on 500 simulated hosts, and on a real one
# make traces      run random lists of jobs, and public cluster traces (TRACES=directory), under all policies, simulated
# make live-strangers  the same on a real one for ten minutes under each of six arms; takes 70 minutes
# make live-full   all lists of samples/live under all arms, three times; takes a night
# make trust       try all that SECURITY.md promises, and print what held; root, 45 minutes
# make load        run the pipe over 200 containers that come and go: SECONDS=1800 CONTAINERS=200; root
# make fuzz        try every parser with hostile input, ten minutes each: SECONDS=600 PARSERS="log plan"
# make papers      run the papers' experiments over twenty seeds: samples/papers/results.md
# make test-v2     run the pipe in an emulated machine with cgroup v2; needs root, takes 10 minutes
# make test-units  run the systemd units in an emulated machine; needs root, takes 15 minutes

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder

# Hundreds of tests sync small files: in memory they need not wait for a disk. 500 MB, until the end.
MEMORY := $(shell test -w /dev/shm && df -Pk /dev/shm | awk 'NR == 2 && $$4 > 2000000 { print $$6 }')
KEPT := -o tmp_path_retention_policy=failed -o tmp_path_retention_count=1

# A virtual environment holds absolute paths: set it up again in a checkout that has moved.
MOVED := $(shell test -e $(BIN)/dl-plan && ! grep -qF '$(CURDIR)/$(BIN)/' $(BIN)/dl-plan && echo yes)
ifdef MOVED
.PHONY: $(addprefix $(VENV)/,bin/python .run .plots .test .lint .release)
endif

# Tests start many processes: let them find what is compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: fuzz demo check test test-cluster test-engines test-engines-v2 faults test-v2 test-units lint package bench bench-contention live live-full live-cluster live-strangers strangers traces papers record \
  load trust docs clean

$(VENV)/bin/python:
	@$(if $(MOVED),echo "$(VENV) was made in another place: setting it up again")
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "dltools needs Python 3.11 or later; set PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) \
	  || { echo "python3-venv is needed (Debian: apt install python3-venv)" >&2; exit 1; }

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.plots: $(VENV)/.run
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plots]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,interop,plots,cri]'
	@touch $@ $(VENV)/.run $(VENV)/.plots

$(VENV)/.lint: $(VENV)/.test
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lint]'
	@touch $@

$(VENV)/.release: $(VENV)/.test
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	@touch $@

demo: $(VENV)/.plots
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh samples/demo.sh

check: $(VENV)/.test
	@TMPDIR=$${TMPDIR:-$(MEMORY)} DLTOOLS_TESTS=quick $(BIN)/python -m pytest -q \
	  -m "not slow and not engine" $(PARALLEL) --durations=10 $(KEPT) $(PYTEST_ARGS)

test: $(VENV)/.test
	@TMPDIR=$${TMPDIR:-$(MEMORY)} $(BIN)/python -m pytest -q $(PARALLEL) --durations=10 $(KEPT) $(PYTEST_ARGS)

test-cluster: $(VENV)/.test
	@PYTHONPATH=tests $(BIN)/python -c 'from helpers.containers import build_image; build_image()'
	@tests/cluster/nodes run $(BIN)/python -m pytest -q tests/cluster $(PYTEST_ARGS)

test-engines: $(VENV)/.test
	@tests/engines/each
	@tests/contract/run

test-engines-v2:
	@tests/contract/run bare-v2 docker-v2

faults: $(VENV)/.test
	@PYTHONPATH=tests $(BIN)/python -c 'from helpers.containers import build_image; build_image()'
	@PYTHONPATH=tests tests/cluster/nodes run $(BIN)/python tests/cluster/faults.py

test-v2:
	@tests/emulated/pipe-v2.sh

test-units:
	@tests/emulated/units-v2.sh

lint: $(VENV)/.lint
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

package: $(VENV)/.release
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist
	@$(BIN)/twine check --strict dist/*
	@DLTOOLS_PACKAGES=dist $(BIN)/python -m pytest -q tests/packaging $(PYTEST_ARGS)

bench: $(VENV)/.test
	@$(BIN)/python tests/bench/probe.py
	@$(BIN)/python tests/bench/extract.py
	@$(BIN)/python tests/bench/plan.py
	@$(BIN)/python tests/bench/curves.py
	@$(BIN)/python tests/bench/sim.py
	@$(BIN)/python tests/bench/day.py

bench-contention: $(VENV)/.test
	@samples/torch/build
	@$(BIN)/python tests/bench/contention.py

live: $(VENV)/.plots
	@samples/torch/build
	@samples/serving/build
	@$(BIN)/python samples/live/run --arms noop,flowcon,srtf,fair-rotate samples/live/three.toml
	@$(BIN)/python samples/live/run --arms noop,dqoes-fixed,dqoes samples/live/dqoes.toml

record: $(VENV)/.run
	@samples/torch/build
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python samples/record/run

live-cluster: $(VENV)/.run
	@samples/digits/build
	@CPUS=0.5 IMAGES=dltools-digits tests/cluster/nodes run \
	  $(BIN)/python samples/cluster/run samples/cluster/six.toml

live-full: $(VENV)/.plots
	@samples/torch/build
	@samples/serving/build
	@$(BIN)/python samples/live/run --repeat 3 $(addprefix samples/live/,$(addsuffix .toml, \
	  three one-thread silent endless tradl dqoes five ten long-epochs))

live-strangers: $(VENV)/.plots
	@samples/torch/build
	@$(BIN)/python samples/strangers/run

strangers: $(VENV)/.test $(VENV)/.plots
	@$(BIN)/python tests/bench/strangers.py
	@$(BIN)/dl-sim -p noop -p flowcon -p srtf --jobs samples/strangers/everybody.toml
	@samples/torch/build
	@$(BIN)/python samples/strangers/run --seconds 150 --arms flowcon,srtf,fair-rotate \
	  samples/strangers/everybody.toml

traces: $(VENV)/.test
	@$(BIN)/python tests/bench/traces.py $(TRACES)

papers: $(VENV)/.run
	@$(BIN)/python samples/papers/papers.py > samples/papers/results.md.part
	@mv samples/papers/results.md.part samples/papers/results.md
	@cat samples/papers/results.md

trust: $(VENV)/.test
	@$(BIN)/python tests/trust/run.py

load: $(VENV)/.test
	@$(BIN)/python tests/trust/load.py $(or $(SECONDS),1800) $(or $(CONTAINERS),200)

fuzz: $(VENV)/.test
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]' \
	  || echo "atheris does not install here: hypothesis alone" >&2
	@$(BIN)/python tests/trust/fuzz.py $(or $(SECONDS),600) $(PARSERS)

docs: $(VENV)/.run
	@PYTHONPATH=tests $(BIN)/python -m docs.generate

clean:
	rm -rf $(VENV) demo.png build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
