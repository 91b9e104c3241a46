# Every target makes the virtual environment it needs. `make demo` and `make test` are all a newcomer has to know.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
# Many small runs want one thread each: two on two busy cores spin while they wait.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test test-long lint bench reproduce torture docs gallery clean

help:
	@echo "make demo    two CSV files in; labels, leaderboard and page out; then ENC against cross-entropy (3 minutes)"
	@echo "make test    the tests (a few minutes on two idle cores)"
	@echo "make test-long   the tests that kill processes, start clusters and browsers, and install the package"
	@echo "make lint    ruff and mypy"
	@echo "make docs    the documentation site, into build/docs"
	@echo "make bench   side by side with stock PyG"
	@echo "make torture   fuzzed files, hostile models, kills, full disks, shared stores (hours; continues where it stopped)"
	@echo "make clean   remove the virtual environment and caches"
	@echo "make reproduce   the paper's tables and figures (about three days on two cores, because the runs in results/ are taken over first; REPRODUCE='--max-run-minutes 2' for the short runs only)"

$(READY): pyproject.toml constraints.txt
	@echo "Installing everynode and what it needs into $(VENV): up to 2.2 GB, which takes some minutes."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $(READY)

demo: $(READY)
	@echo "1. Two CSV files in: 400 people, who writes to whom, and the team of a third of them."
	$(BIN)/everynode fit --nodes examples/people.csv --edges examples/links.csv --label team --weight messages --time-limit 40s --out runs/demo/fit
	@head -4 runs/demo/fit/predictions.csv
	@echo "2. ENC against cross-entropy on the bundled citation graph, three seeds."
	$(BIN)/everynode compare citeseer --seeds 3 --out runs/demo
	@echo "Open runs/demo/fit/report.html. Next, your own graph: $(BIN)/everynode fit --nodes nodes.csv --edges edges.csv --label label"

# Compiled tests are kept: the next run, and each process that a test starts, begins sooner.
test test-long: export PYTHONDONTWRITEBYTECODE :=
test: $(READY)
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m "not long"

# They kill processes at random moments: on a busy machine one may miss, and runs again.
test-long: $(READY)
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m long --reruns 2 --reruns-delay 1

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/hadolint Dockerfile

reproduce: $(READY)
	$(BIN)/everynode results merge results/runs-paper.csv results/tsne-paper.json
	$(BIN)/everynode reproduce all $(REPRODUCE)
	$(BIN)/everynode results export results/runs-paper.csv --preset paper --add
	$(BIN)/everynode results export results/tsne-paper.json --preset paper --experiment tsne --add
	$(BIN)/everynode results tables results/tables-paper.json --store results/runs-paper.csv
	$(BIN)/python tools/readme.py

bench: $(READY)
	$(BIN)/everynode bench $(BENCH)

torture: $(READY)
	$(BIN)/python -m tools.torture $(TORTURE)
	$(BIN)/python -m tools.torture.page

# The generated pages are made anew: the page of a name that is gone would be a warning.
docs: $(READY)
	rm -rf docs/generated
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs auto docs build/docs

# The outputs and pictures of docs/gallery, made anew.
gallery: $(READY)
	$(BIN)/python tools/gallery.py

# Not runs/, which may hold days of work.
clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis
