# Every target makes the virtual environment it needs. `make demo` and `make test` are all a newcomer has to know.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
# Many small runs want one thread each: two on two busy cores spin while they wait.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test lint bench reproduce torture clean

help:
	@echo "make demo    ENC against cross-entropy on the bundled graph, a saved model and a page (minutes)"
	@echo "make test    the tests"
	@echo "make lint    ruff and mypy"
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
	$(BIN)/everynode compare citeseer --seeds 10 --out runs/demo
	$(BIN)/everynode train citeseer --out runs/demo/model
	$(BIN)/everynode report runs/demo --out runs/demo/report.html
	@echo "Next, your own graph: $(BIN)/everynode fit --nodes nodes.csv --edges edges.csv (README, docs/own-graphs.md)"

test: $(READY)
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

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

# Not runs/, which may hold days of work.
clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis
