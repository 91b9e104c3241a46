"""The side panel of a number: its runs, curves, terms, confusion, settings and commands."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everynode.experiments.analysis import CellResult, ExperimentResult, value
from everynode.experiments.experiment import Experiment, Over
from everynode.experiments.statistics import summarize
from everynode.report.cell import SCORES, cell_facts, digits_of, metric_name, place_name
from everynode.report.confusion import confusion_table
from everynode.report.curves import curve_plots, term_name, terms_of
from everynode.report.html import Html, command, facts, h, join, small, table
from everynode.report.source import KEY_DIGITS, Source
from everynode.report.text import DASH, count, number, setting_lines

#: What distinguishes the runs of a cell: its name, and the entry of their records.
DIFFER: dict[Over, tuple[str, str]] = {
    "seeds": ("seed", "seed"),
    "folds": ("fold", "fold"),
    "splits": ("split", "split_seed"),
    "once": ("seed", "seed"),
}


def panel(outcome: ExperimentResult, cell: CellResult, ident: str, source: Source) -> Html:
    """Build the side panel of a cell; the cell's button opens it without a script."""
    experiment = outcome.experiment
    records = [source.records[key] for key in cell.keys]
    finished = [record for record in records if "error" not in record]
    close = h(
        "button",
        "×",
        popovertarget=ident,
        popovertargetaction="hide",
        aria_label="Close",
        class_="close",
    )
    title = h("h3", place_name(experiment, cell), id=f"{ident}-h")
    head = h("header", h("div", h("p", experiment.title, class_="over"), title), close)
    body = (
        facts(cell_facts(experiment, cell)),
        _diagnostic(experiment, cell),
        _curves(experiment, cell, source),
        _selected_epoch(finished),
        _confusion(finished),
        _runs(experiment, cell, records),
        _settings(cell, source),
        h("h4", "Run it again"),
        h("p", command(source.reproduce(outcome, cell.cell))),
        h("p", "One run: ", command(source.show(cell.keys[0]))) if cell.keys else None,
    )
    return h(
        "div",
        head,
        body,
        popover="auto",
        id=ident,
        class_="panel",
        role="dialog",
        aria_labeledby=f"{ident}-h",
    )


def _diagnostic(experiment: Experiment, cell: CellResult) -> Html | None:
    if cell.oracle is None:
        return None
    mean = number(cell.oracle.mean, digits_of(experiment, cell))
    text = f" the mean is {mean} if the test nodes select each run's epoch."
    return h("p", h("b", "Diagnostic, not a result:"), text, class_="diagnostic")


def _curves(experiment: Experiment, cell: CellResult, source: Source) -> Html | None:
    """Draw the training curves of the first run that did not diverge."""
    key = next((key for key in cell.keys if "error" not in source.records[key]), None)
    if key is None or "best_epoch" not in source.records[key]:
        return None
    record, curve = source.records[key], source.curve(key)
    if not curve:
        return small("No training curves: these runs come from an export, which has none.")
    word, entry = DIFFER[experiment.over]
    run = f"{word} {record.get(entry)}, run {key[:KEY_DIGITS]}"
    note = (
        f"One run, {run}. Terms are shown before weighting. The dashed line is the epoch that"
        " validation selected."
    )
    plots = curve_plots(curve, int(record["best_epoch"]), run)
    return join(h("h4", "Training curves"), small(note), plots)


def _selected_epoch(records: Sequence[Mapping[str, Any]]) -> Html | None:
    """Build a table of the means over the runs at the epoch that validation selected."""
    rows: list[tuple[str, list[float], int]] = []
    for name, (title, metric) in SCORES.items():
        values = [record[name] for record in records if record.get(name) is not None]
        rows.append((title, [metric.factor * value for value in values], metric.digits))
    terms = [record.get("terms", {}) for record in records]
    for name in terms_of(dict.fromkeys(name for own in terms for name in own)):
        title = "total of the weighted terms" if name == "total" else f"{term_name(name)} (term)"
        rows.append((title, [float(own[name]) for own in terms if name in own], 3))
    body = []
    for title, values, digits in rows:
        if values:
            summary = summarize(values)
            texts = (number(summary.mean, digits), number(summary.std, digits))
            body.append([h("th", title, scope="row"), *(h("td", text) for text in texts)])
    if not body:
        return None
    built = table(["", "mean", "std"], body, "At the selected epoch", caption=False)
    return join(h("h4", "At the selected epoch"), built)


def _confusion(records: Sequence[Mapping[str, Any]]) -> Html | None:
    tables = [record["confusion"] for record in records if record.get("confusion")]
    if not tables:
        return None
    classes = range(len(tables[0]))
    total = [[sum(counts[i][j] for counts in tables) for j in classes] for i in classes]
    note = f"Test nodes, summed over {count(len(tables), 'run')}."
    return confusion_table(total, [str(i) for i in classes], note)


def _runs(
    experiment: Experiment, cell: CellResult, records: Sequence[Mapping[str, Any]]
) -> Html | None:
    """Build a table of the runs; a column that no run has is left out."""
    if not records:
        return None
    word, entry = DIFFER[experiment.over]
    metric, digits = cell.cell.metric, digits_of(experiment, cell)
    shown = "test_accuracy" if metric == "positions" else metric
    score = "test, %" if shown == "test_accuracy" else metric_name(shown)
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        word: lambda r: str(r.get(entry, DASH)),
        score: lambda r: number(_value(r, shown), digits),
        "validation, %": lambda r: number(_value(r, "val_accuracy"), 1),
        "best epoch": lambda r: str(r.get("best_epoch", DASH)),
        "epochs": lambda r: str(r.get("epochs", DASH)),
        "seconds": lambda r: number(r.get("seconds"), 1),
    }
    finished = [dict(record) for record in records if "error" not in record]
    used = {
        name: column
        for name, column in columns.items()
        if name == word or any(column(record) != DASH for record in finished)
    }
    rows = []
    for record in map(dict, records):
        key = h("td", h("code", record["key"][:KEY_DIGITS], class_="key"))
        if "error" in record:
            width = max(1, len(used) - 1)
            text = h("td", f"diverged: {record['error']}", colspan=width, class_="diverged")
            rows.append([key, h("td", columns[word](record)), text])
        else:
            rows.append([key, *(h("td", column(record)) for column in used.values())])
    built = table(["run", *used], rows, "Runs", look="plain sortable", caption=False)
    return join(h("h4", "Runs"), built)


def _value(record: dict[str, Any], metric: str) -> float | None:
    try:
        return value(record, metric)
    except (KeyError, TypeError):
        return None


def _settings(cell: CellResult, source: Source) -> Html | None:
    if not cell.keys:
        return None
    run = source.runs[cell.keys[0]]
    identity = {
        "dataset": run.dataset,
        "split": run.split,
        "per_class": run.per_class,
        "objective": run.objective,
        "task": run.task,
        "graph_digest": f"{run.graph_digest[:KEY_DIGITS]}…",
    }
    pairs = [(name, value) for name, value in identity.items() if value is not None]
    if run.task not in ("describe", "tsne-input"):
        pairs += dataclasses.asdict(run.settings).items()
    return join(
        h("h4", "Settings"),
        h("pre", setting_lines(pairs), class_="settings"),
        h("h4", "Versions"),
        [small(text) for text in source.versions(cell.keys)],
    )
