#!/usr/bin/env bash
# Make results/ anew: the comparisons of the README. Interrupted, it goes on where it stopped (the runs are in runs/results/runs.db).
set -euo pipefail
cd "$(dirname "$0")/.."
everynode=${EVERYNODE:-.venv/bin/everynode}
compare() {
  "$everynode" compare "$1" --backbone "$2" --seeds 10 --out runs/results --json > "results/.part.json"
  mv results/.part.json "results/compare-$1-$2.json"
}
for graph in citeseer cora; do
  for backbone in gcn gat gcnii; do
    compare "$graph" "$backbone"
  done
done
compare pubmed gcn
