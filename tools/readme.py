"""Write the tables of README and docs, and the pictures, from ``results/``; with ``--check``, say whether they are up to date.

A page asks for a table with ``<!-- name:begin -->`` and ``<!-- name:end -->``; what stands between is written here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial

from tables.common import ROOT, pages
from tables.comparisons import demo_table, results_table, stock_loop_table
from tables.decisions import clean_table, sets_table, suggestions_table, suspicious_table
from tables.engine import same_gat_table, same_table, same_training_table
from tables.files import (
    average_calibration_table,
    calibration_table,
    held_out_table,
    own_table,
    page_network_table,
    reading_table,
)
from tables.llms import llms
from tables.paper import described_table, paper_table, redo_table, verdicts
from tables.pictures import maps, picture, regrets
from tables.races import candidates_table, race_table, safe_table
from tables.scale import (
    cost_table,
    disk_table,
    minibatch_table,
    plan_table,
    processes_table,
    two_hosts_table,
)
from tables.speed import (
    arxiv_table,
    cheaper_table,
    folds_table,
    full_speed_table,
    machine_table,
    memory_table,
    numbers,
    price_table,
    speed_table,
)
from tables.start import start_table
from tables.systems import (
    enc_table,
    systems_counts,
    systems_folds_table,
    systems_picture,
    systems_table,
)
from tables.terms import (
    class_prior_table,
    last_point_table,
    prior_table,
    recipe_table,
    weights_table,
)
from tables.tuning import choices_table, standard_error_table, tuned_counts, tuned_table
from tables.unseen import (
    cells_table,
    constants_table,
    few_labels_table,
    shares_table,
    unseen_table,
)

#: The experiments whose tables stand beside the paper's, under their own names.
REPRODUCED = (
    "datasets", "semi-supervised", "depth", "homophilic", "heterophilic", "tv-vs-preg", "labels-per-class", "mi-vs-tv", "halves", "weights",
    "run-times", "readings",
)  # fmt: skip
TABLES: dict[str, Callable[[], str]] = {
    "arxiv": arxiv_table,
    "authors": partial(paper_table, "semi-supervised", "authors"),
    "authors-heterophilic": partial(paper_table, "heterophilic", "authors"),
    "calibration": calibration_table,
    "sets": sets_table,
    "suggestions": suggestions_table,
    "suspicious": suspicious_table,
    "clean": clean_table,
    "calibration-500": average_calibration_table,
    "candidates": candidates_table,
    "cheaper": cheaper_table,
    "choices": choices_table,
    "class-prior": class_prior_table,
    "cost": cost_table,
    "demo": demo_table,
    "disk": disk_table,
    "folds": folds_table,
    "full": full_speed_table,
    "held-out": held_out_table,
    "last-point": last_point_table,
    "machine": machine_table,
    "memory": memory_table,
    "minibatch": minibatch_table,
    "numbers": numbers,
    "own": own_table,
    "page-network": page_network_table,
    "paper-terms": partial(paper_table, "semi-supervised", "paper-terms"),
    "plan": plan_table,
    "price": price_table,
    "prior": prior_table,
    "processes": processes_table,
    "race": race_table,
    "reading": reading_table,
    "recipe": recipe_table,
    "redo": redo_table,
    "results": results_table,
    "safe": safe_table,
    "same": same_table,
    "same-gat": same_gat_table,
    "same-training": same_training_table,
    "speed": speed_table,
    "systems": systems_table,
    "systems-counts": systems_counts,
    "systems-depth": partial(systems_table, "depth"),
    "systems-enc": enc_table,
    "systems-folds": systems_folds_table,
    "standard-error": standard_error_table,
    "start": start_table,
    "stock-loop": stock_loop_table,
    "stock-loop-validation": partial(stock_loop_table, with_validation=True),
    "three-lines": weights_table,
    "tuned": tuned_table,
    "tuned-counts": tuned_counts,
    "tuned-heterophilic": partial(paper_table, "heterophilic", "tuned"),
    "tuned-homophilic": partial(paper_table, "homophilic", "tuned"),
    "tuned-public": partial(paper_table, "semi-supervised", "tuned"),
    "two-hosts": two_hosts_table,
    "unseen": unseen_table,
    "unseen-cells": cells_table,
    "unseen-constants": constants_table,
    "unseen-few-labels": few_labels_table,
    "unseen-class-shares": shares_table,
    "verdicts": verdicts,
    **{name: partial(described_table, name) for name in REPRODUCED},
}
MARKED = re.compile(r"(<!-- (?P<name>[\w-]+):begin -->\n).*?(<!-- (?P=name):end -->)", re.DOTALL)


def filled(text: str, page: str) -> str:
    """The text with every marked table made anew."""
    asked = re.findall(r"<!-- ([\w-]+):begin -->", text)
    if unknown := [name for name in asked if name not in TABLES]:
        raise SystemExit(
            f"{page} asks for {', '.join(unknown)}; the tables are {', '.join(TABLES)}."
        )
    fresh, places = MARKED.subn(lambda m: f"{m[1]}{TABLES[m['name']]()}\n{m[3]}", text)
    if places != len(asked):
        raise SystemExit(f"{page}: a table begins and does not end ({', '.join(asked)}).")
    return fresh


def main() -> int:
    check, stale = "--check" in sys.argv, []
    for path in pages():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        fresh = filled(text, name)
        if fresh != text:
            stale.append(name)
            if not check:
                path.write_text(fresh, encoding="utf-8")
    index = ROOT / "docs/llms.txt"
    if not index.exists() or index.read_text(encoding="utf-8") != llms():
        stale.append("docs/llms.txt")
        if not check:
            index.write_text(llms(), encoding="utf-8")
    if check:
        if stale:
            print(f"{', '.join(stale)}: not what results/ say; run python tools/readme.py.")
        return int(bool(stale))
    picture()
    maps()
    regrets()
    systems_picture()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
