"""What stands behind one number: its runs by key, their curves, terms and confusion, settings, versions, and the command."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from everynode.experiments.analysis import CellResult, ExperimentResult, value
from everynode.experiments.experiment import Cell, Experiment, Over
from everynode.experiments.run_spec import Run
from everynode.experiments.statistics import Summary, summarise
from everynode.experiments.store import store_path
from everynode.objective_names import NOT_OF_THE_PAPER
from everynode.report import svg
from everynode.report.html import Html, h, join, scroll
from everynode.report.text import DASH, as_printed, count, decimals, interval, number, p_value

#: Points of a training curve that are drawn.
CURVE_POINTS = 90
#: Digits of a run key that are shown; `everynode results show` takes them.
KEY_DIGITS = 12
#: How the terms are called in the paper.
TERMS = {
    "ce": "CE",
    "mi": "MI",
    "tv": "TV",
    "cvg": "CVG",
    **NOT_OF_THE_PAPER,
    "preg": "P-reg",
    "total": "total",
}
#: What the runs of a cell differ in: its name, and the entry of their records.
DIFFER: dict[Over, tuple[str, str]] = {
    "seeds": ("seed", "seed"),
    "folds": ("fold", "fold"),
    "splits": ("split", "split_seed"),
    "once": ("seed", "seed"),
}
SCORES = {
    f"{part}_{name}": f"{words} {what}"
    for name, what in {
        "accuracy": "accuracy, %",
        "macro_f1": "macro F1",
        "nll": "negative log-likelihood",
        "ece": "calibration error",
    }.items()
    for part, words in {"test": "test", "val": "validation"}.items()
}


@dataclass(frozen=True)
class Source:
    """Where the numbers come from: records by key, the planned runs by key, the curves of a run; the store, if commands must be told."""

    records: Mapping[str, dict[str, Any]]
    runs: Mapping[str, Run]
    curve: Callable[[str], dict[str, list[float]]]
    store: Path | None = None

    def show(self, key: str) -> str:
        """The command that shows a run."""
        return shlex.join(
            [
                "everynode",
                "results",
                "show",
                key[:KEY_DIGITS],
                *(["--store", str(self.store)] if self.store else []),
            ]
        )

    def reproduce(self, outcome: ExperimentResult, cell: Cell | None = None) -> str:
        """The command that makes the runs of an experiment (or of a cell and of the one with which it is compared), or shows them again."""
        experiment, each = outcome.experiment, outcome.each
        words = ["everynode", "reproduce", experiment.id, "--preset", outcome.preset]
        if each != experiment.count and experiment.over != "once":
            words += ["--folds" if experiment.over == "folds" else "--seeds", str(each)]
        if cell is not None:
            words += _place(cell, experiment.cells())
        if self.store and self.store == store_path(self.store.parent):
            words += ["--out", str(self.store.parent)]
        return shlex.join(words)

    def versions(self, keys: Sequence[str]) -> list[str]:
        """The versions with which runs were made, everynode's together where all others are the same."""
        found: dict[str, set[str]] = {}
        for record in map(self.records.__getitem__, keys):
            inner = record["versions"]
            others = f"(protocol {inner['protocol']}), torch {inner['torch']}, Python {record['python']}, {record['system']}"
            others += f", {record['cpu']}" if "cpu" in record else ""  # younger than 0.13
            found.setdefault(others, set()).add(record["version"])
        return [
            f"everynode {', '.join(sorted(ours, key=_by_number))} {others}"
            for others, ours in sorted(found.items())
        ]


def _place(cell: Cell, cells: Sequence[Cell]) -> list[str]:
    """The flags that single out a cell and the one with which it is compared; those that would leave out nothing more are not given."""
    words: list[str] = []
    row = [cell.row] if cell.against is None else [cell.row, cell.against]
    places = {"--graphs": ("dataset", [cell.dataset]), "--rows": ("row", row)}
    places |= {"--columns": ("column", [cell.column]), "--panels": ("panel", [cell.panel])}
    for flag, (attribute, names) in places.items():
        fewer = [other for other in cells if getattr(other, attribute) in names]
        if len(fewer) < len(cells) and not any(
            "," in name for name in names
        ):  # at a comma the command would cut the name
            words += [flag, ",".join(names)]
            cells = fewer
    return words


def _by_number(version: str) -> list[tuple[bool, int, str]]:
    """A key by which 0.9.0 comes before 0.10.0, whatever else a version consists of."""
    return [
        (part.isdigit(), int(part) if part.isdigit() else 0, part) for part in version.split(".")
    ]


def digits_of(experiment: Experiment, cell: CellResult) -> int:
    """How many decimals a cell has: counts have none, an accuracy among times those of accuracies."""
    if cell.cell.task == "describe" and not cell.cell.metric.endswith("homophily"):
        return 0
    return (
        1 if cell.cell.metric.endswith("accuracy") and experiment.unit != "%" else experiment.digits
    )


def printed(experiment: Experiment, cell: CellResult) -> str:
    """The paper's number of a cell, with the decimals that its table has."""
    assert cell.cell.published is not None
    return as_printed(
        cell.cell.published,
        max(digits_of(experiment, cell), _decimals(experiment, cell.cell.metric)),
    )


@cache
def _decimals(experiment: Experiment, metric: str) -> int:
    return decimals(cell.published for cell in experiment.cells() if cell.metric == metric)


def limits(found: Summary, cell: CellResult) -> tuple[float, float]:
    """The ends of a 95% interval; those of few accuracies may be wider than all there is. NaN where one run alone cannot tell."""
    if not cell.cell.metric.endswith("accuracy") or math.isnan(found.low):
        return found.low, found.high
    return max(0.0, found.low), min(100.0, found.high)


def metric_name(metric: str) -> str:
    """What a cell's number is.

    >>> metric_name("test_accuracy"), metric_name("statistics.node_homophily")
    ('test accuracy, %', 'node homophily')
    """
    return SCORES.get(metric) or metric.rpartition(".")[2].replace("_", " ")


def place_name(experiment: Experiment, cell: CellResult) -> str:
    """A cell by its place."""
    column = f"{experiment.x} {cell.cell.column}" if experiment.x else cell.cell.column
    return " · ".join(part for part in (cell.cell.panel, cell.cell.row, column) if part)


def panel(outcome: ExperimentResult, cell: CellResult, ident: str, source: Source) -> Html:
    """The side panel of a cell, which its button opens without any script."""
    experiment = outcome.experiment
    records = [source.records[key] for key in cell.keys]
    fine = [record for record in records if "error" not in record]
    close = h(
        "button",
        "×",
        popovertarget=ident,
        popovertargetaction="hide",
        aria_label="Close",
        class_="close",
    )
    head = h(
        "header",
        h(
            "div",
            h("p", experiment.title, class_="over"),
            h("h3", place_name(experiment, cell), id=f"{ident}-h"),
        ),
        close,
    )
    body = (
        _facts(experiment, cell),
        _diagnostic(experiment, cell),
        _curves(experiment, cell, source),
        _selected(fine),
        _confusion(fine),
        _runs(experiment, cell, records),
        _settings(cell, source),
        h("h4", "Make it again"),
        h("p", h("code", source.reproduce(outcome, cell.cell), class_="command")),
        h("p", "One run: ", h("code", source.show(cell.keys[0]), class_="command"))
        if cell.keys
        else None,
    )
    return h(
        "div",
        head,
        body,
        popover="auto",
        id=ident,
        class_="panel",
        role="dialog",
        aria_labelledby=f"{ident}-h",
    )


def facts(experiment: Experiment, cell: CellResult) -> list[tuple[str, str]]:
    """Everything that is known of a number, in words."""
    digits, found, gain = digits_of(experiment, cell), cell.summary, cell.gain
    rows = []
    if found is not None:
        rows.append((metric_name(cell.cell.metric), number(found.mean, digits)))
        if found.count > 1:
            rows.append(("standard deviation", number(found.std, digits)))
            if experiment.over == "folds" and cell.on_these is not None:
                rows.append(
                    ("95% interval on these folds", interval(*limits(cell.on_these, cell), digits))
                )
                rows.append(
                    ("and for what others would give", interval(*limits(found, cell), digits))
                )
            else:
                rows.append(("95% interval of the mean", interval(*limits(found, cell), digits)))
    if cell.cell.published is not None:
        rows.append(("in the paper", printed(experiment, cell)))
    if cell.verdict:
        rows.append(("verdict", cell.verdict))
    if gain is not None and gain.count > 1:
        rows.append(
            (
                f"gain over {cell.cell.against}, {gain.count} pairs",
                number(gain.mean, digits, sign=True),
            )
        )
        rows.append(("its 95% interval", interval(gain.low, gain.high, digits)))
        rows.append(("significance after Holm", p_value(cell.p_holm)))
        if cell.published_gain is not None:
            rows.append(("that gain in the paper", number(cell.published_gain, digits, sign=True)))
    if cell.remark:
        rows.append(("objective", cell.remark))
    rows.append(("runs", f"{len(cell.keys)} of {cell.planned}"))
    if cell.diverged:
        rows.append(("diverged, without a value", str(cell.diverged)))
    return rows


def _facts(experiment: Experiment, cell: CellResult) -> Html:
    return h(
        "dl",
        [h("div", h("dt", name), h("dd", text)) for name, text in facts(experiment, cell)],
        class_="facts",
    )


def _diagnostic(experiment: Experiment, cell: CellResult) -> Html | None:
    if cell.oracle is None:
        return None
    shown = number(cell.oracle.mean, digits_of(experiment, cell))
    text = f" had each run's epoch been chosen by its test accuracy, the mean would read {shown}."
    return h("p", h("b", "Diagnostic, not a result:"), text, class_="diagnostic")


def _curves(experiment: Experiment, cell: CellResult, source: Source) -> Html | None:
    """Of one run: the first that did not diverge."""
    key = next((key for key in cell.keys if "error" not in source.records[key]), None)
    if key is None or "best_epoch" not in source.records[key]:
        return None
    record, curve = source.records[key], source.curve(key)
    if not curve:
        return h(
            "p",
            "Without training curves: these runs were taken over from an export, which has none.",
            class_="small",
        )
    word, entry = DIFFER[experiment.over]
    of = f"{word} {record.get(entry)}, run {key[:KEY_DIGITS]}"
    note = f"One run, {of}. Terms before they are weighted; the dashed line is the epoch that validation chose."
    return join(
        h("h4", "Training curves"),
        h("p", note, class_="small"),
        curve_plots(curve, int(record["best_epoch"]), of),
    )


def curve_plots(curve: Mapping[str, Sequence[float]], best: int, of: str) -> Html:
    """The terms and the validation metrics of a training over its epochs; ``best``: the epoch to point at; ``of``: which training."""
    epochs = svg.thin(min(map(len, curve.values())), CURVE_POINTS, keep=[best])
    terms = {TERMS[name]: [curve[name][e] for e in epochs] for name in TERMS if name in curve}
    if len(terms) == 2:  # one term with weight 1 is the total
        terms.pop("total", None)
    plots = [
        svg.curves(
            epochs,
            terms,
            label=f"Terms over epochs, {of}",
            x_label="epoch",
            y_label="terms of the loss",
            mark=best,
        )
    ]
    for name in sorted(
        (name for name in curve if name.startswith("val_")), key=lambda name: name != "val_loss"
    ):
        title, factor = (
            f"validation {name.removeprefix('val_').replace('_', ' ')}",
            1 if name == "val_loss" else 100,
        )
        values = {title: [factor * curve[name][e] for e in epochs]}
        plots.append(svg.curves(epochs, values, label=f"{title.capitalize()} over epochs, {of}", x_label="epoch",
                                y_label=f"{title}, %" if factor > 1 else title, mark=best))  # fmt: skip
    legend = [h("li", svg.swatch(i, "curve"), name) for i, name in enumerate(terms)]
    return join(h("ul", legend, class_="legend"), h("div", plots, class_="plots"))


def _selected(records: Sequence[Mapping[str, Any]]) -> Html | None:
    """Means over the runs of what was measured at the epoch that validation chose."""
    rows = []
    for name, title in SCORES.items():
        found = [value(dict(record), name) for record in records if record.get(name) is not None]
        if found:
            rows.append((title, found, name.endswith("accuracy")))
    for name, title in TERMS.items():
        found = [
            float(record["terms"][name]) for record in records if name in record.get("terms", {})
        ]
        if found:
            rows.append(
                (
                    f"{title} (term)" if name != "total" else "total of the weighted terms",
                    found,
                    False,
                )
            )
    if not rows:
        return None
    body = []
    for title, found, percent in rows:
        made = summarise(found)
        mean, std = (number(v, 1) if percent else number(v, 3) for v in (made.mean, made.std))
        body.append(h("tr", h("th", title, scope="row"), h("td", mean), h("td", std)))
    head = h(
        "thead",
        h(
            "tr",
            h("th", "", scope="col"),
            h("th", "mean", scope="col"),
            h("th", "std", scope="col"),
        ),
    )
    return join(
        h("h4", "At the selected epoch"),
        scroll(h("table", head, h("tbody", body), class_="plain"), "At the selected epoch"),
    )


def _confusion(records: Sequence[Mapping[str, Any]]) -> Html | None:
    found = [record["confusion"] for record in records if record.get("confusion")]
    if not found:
        return None
    size = len(found[0])
    total = [[sum(matrix[i][j] for matrix in found) for j in range(size)] for i in range(size)]
    note = f"Test nodes, summed over {count(len(found), 'run')}. Rows are true classes, columns predicted ones; shades are shares of a row."
    return join(
        h("h4", "Confusion matrix"),
        h("p", note, class_="small"),
        confusion_table(total, [str(i) for i in range(size)]),
    )


def confusion_table(counts: Sequence[Sequence[int]], names: Sequence[str]) -> Html:
    """True classes by predicted ones; shades are shares of a row."""
    head = h(
        "thead",
        h(
            "tr",
            h("th", "true \\ predicted", scope="col"),
            [h("th", name, scope="col") for name in names],
        ),
    )
    body = []
    for name, row in zip(names, counts, strict=True):
        whole = sum(row) or 1
        body.append(
            h("tr", h("th", name, scope="row"), [_shaded(n, round(100 * n / whole)) for n in row])
        )
    return scroll(h("table", head, h("tbody", body), class_="confusion"), "Confusion matrix")


def _shaded(n: int, share: int) -> Html:
    return h("td", str(n), style=f"--s:{share}%" if share else None)


def _runs(
    experiment: Experiment, cell: CellResult, records: Sequence[Mapping[str, Any]]
) -> Html | None:
    if not records:
        return None
    word, entry = DIFFER[experiment.over]
    metric, digits = cell.cell.metric, digits_of(experiment, cell)
    shown = "test_accuracy" if metric == "positions" else metric
    getters: dict[str, Callable[[dict[str, Any]], str]] = {
        word: lambda r: str(r.get(entry, DASH)),
        "test, %" if shown == "test_accuracy" else metric_name(shown): lambda r: number(
            _value(r, shown), digits
        ),
        "validation, %": lambda r: number(_value(r, "val_accuracy"), 1),
        "best epoch": lambda r: str(r.get("best_epoch", DASH)),
        "epochs": lambda r: str(r.get("epochs", DASH)),
        "seconds": lambda r: number(r.get("seconds"), 1),
    }
    fine = [dict(record) for record in records if "error" not in record]
    used = {
        name: get
        for name, get in getters.items()
        if name == word or any(get(record) != DASH for record in fine)
    }
    rows = []
    for record in map(dict, records):
        key = h("td", h("code", record["key"][:KEY_DIGITS], class_="key"))
        if "error" in record:
            text = f"diverged: {record['error']}"
            rows.append(
                h(
                    "tr",
                    key,
                    h("td", getters[word](record)),
                    h("td", text, colspan=max(1, len(used) - 1), class_="diverged"),
                )
            )
        else:
            rows.append(h("tr", key, [h("td", get(record)) for get in used.values()]))
    head = h(
        "thead", h("tr", h("th", "run", scope="col"), [h("th", name, scope="col") for name in used])
    )
    return join(
        h("h4", "Runs"), scroll(h("table", head, h("tbody", rows), class_="plain sortable"), "Runs")
    )


def _value(record: dict[str, Any], metric: str) -> float | None:
    try:
        return value(record, metric)
    except (KeyError, TypeError):
        return None


def _settings(cell: CellResult, source: Source) -> Html | None:
    if not cell.keys:
        return None
    run = source.runs[cell.keys[0]]
    where = {
        "dataset": run.dataset,
        "split": run.split,
        "per_class": run.per_class,
        "objective": run.objective,
        "task": run.task,
    }
    where |= {"graph_digest": f"{run.graph_digest[:KEY_DIGITS]}…"}
    settings = {} if run.task in ("describe", "tsne-input") else dataclasses.asdict(run.settings)
    both = {**{k: v for k, v in where.items() if v is not None}, **settings}
    listed = "\n".join(f"{name} = {_setting(found)}" for name, found in both.items())
    made = [h("p", text, class_="small") for text in source.versions(cell.keys)]
    return join(h("h4", "Settings"), h("pre", listed, class_="settings"), h("h4", "Versions"), made)


def _setting(found: Any) -> str:
    return f"{found:g}" if isinstance(found, float) else str(found)
