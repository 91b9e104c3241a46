"""The report: one self-contained HTML page of all tables and figures, with the runs behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from everynode.datasets.files import Root
from everynode.experiments.analysis import CellResult, ExperimentResult, analyze
from everynode.experiments.experiment import Cell, Experiment, plan_all, versions_of
from everynode.experiments.exports import ExportedRuns
from everynode.experiments.run_spec import Run
from everynode.experiments.store import Store
from everynode.report.figures import bar_plot, line_plots, maps
from everynode.report.html import Child, Html, command, document, h, layout, links, prose, small
from everynode.report.overview import headline, overview
from everynode.report.panel import panel
from everynode.report.reading import reading
from everynode.report.source import Source
from everynode.report.tables import listing, matrix, means
from everynode.report.text import count

#: What distinguishes the runs of a cell, in words.
OVER = {
    "seeds": "seeds on one split",
    "folds": "folds, one seed each",
    "splits": "random splits, one seed each",
    "once": "one run each",
}
PAPER = "https://arxiv.org/abs/2211.16631"


def page_of_store(
    store: Store | ExportedRuns,
    preset: str,
    root: Root,
    *,
    seeds: int | None = None,
    folds: int | None = None,
    named: Path | None = None,
) -> tuple[str, list[ExperimentResult]]:
    """Return the page of every experiment that has a run in the store, and the outcomes.

    Parameters
    ----------
    store : Store or ExportedRuns
        The runs.
    preset : str
        The preset of the runs to show.
    root : Root
        The folder of the public graphs.
    seeds, folds : int, optional
        The number of runs of a cell, if not ten.
    named : Path, optional
        The store in the commands on the page; None: the default one.
    """
    records = store.records()
    plans = plan_all(preset, seeds, folds, root, versions_of(records.values()))
    return page(plans, preset, records, store.curve, named)


def is_page(file: Path) -> bool:
    """Whether a file is a page of everynode, by its title; an empty file counts as one."""
    with file.open("rb") as opened:
        head = opened.read(2000)
    return not head or b"<title>everynode: " in head


def page(
    plans: Mapping[Experiment, Mapping[Cell, Sequence[Run]]],
    preset: str,
    records: Mapping[str, dict[str, Any]],
    curve: Callable[[str], dict[str, list[float]]],
    store: Path | None = None,
) -> tuple[str, list[ExperimentResult]]:
    """Return the page of planned experiments, and the outcomes of the ones with runs.

    The same input gives the same text. ``records`` and ``curve`` are by run key.
    """
    runs = {run.key: run for plan in plans.values() for own in plan.values() for run in own}
    source = Source(records, runs, curve, store)
    outcomes = [analyze(experiment, preset, plan, records) for experiment, plan in plans.items()]
    started = [outcome for outcome in outcomes if outcome.done]
    not_run = [outcome for outcome in outcomes if not outcome.done]
    titles = {outcome.experiment.id: outcome.experiment.title for outcome in started}
    titles |= {"reading": "How to read it"}
    body = layout(
        "report",
        titles,
        _head(preset, source, started, titles),
        overview(started),
        [_section(outcome, source) for outcome in started],
        _not_run(not_run, source),
        reading(started),
    )
    return document("everynode: the paper's tables and figures", body), started


def _head(
    preset: str, source: Source, outcomes: Sequence[ExperimentResult], titles: Mapping[str, str]
) -> Html:
    """Build the top of the page: a summary that a reader takes in at a glance."""
    shown = sorted({key for outcome in outcomes for cell in outcome.cells for key in cell.keys})
    others = len(source.records) - len(shown)
    rest = (
        f" {count(others, 'further run')} of the store belong to no table here: another preset,"
        " other versions, or other commands."
        if others
        else ""
    )
    paper = h("a", "“Every Node Counts”", href=PAPER)
    guide = h("a", "how to read it", href="#reading")
    about = f", computed again with the preset `{preset}`, beside the paper's own numbers. "
    versions = "; ".join(source.versions(shown)) or "nothing yet"
    runs = f"{count(len(shown), 'run')}.{rest} Every number opens the runs behind it: see "
    return h(
        "section",
        h("h1", "Every Node Counts, run again"),
        h(
            "p",
            ("The tables and figures of ", paper, prose(about)),
            headline(outcomes),
            class_="lead",
        ),
        h("p", runs, guide, "."),
        h("details", h("summary", "Versions and machines"), small("Made with ", versions, ".")),
        h("details", h("summary", "Contents"), links(titles), class_="contents"),
        class_="head",
    )


def _section(outcome: ExperimentResult, source: Source) -> Html:
    experiment = outcome.experiment
    ids = {cell: f"{experiment.id}-{index}" for index, cell in enumerate(outcome.cells)}
    unit = "test accuracy in %" if experiment.unit == "%" and experiment.view != "maps" else ""
    meta = (experiment.reference, unit, OVER[experiment.over], count(outcome.done, "run"))
    return h(
        "section",
        h("h2", experiment.title),
        h("p", " · ".join(filter(None, meta)), class_="quiet"),
        h("p", prose(experiment.about)),
        h("p", command(source.reproduce(outcome))),
        _views(outcome, ids, source),
        _print_tables(outcome),
        listing(experiment, outcome.cells, ids) if experiment.view != "maps" else None,
        [panel(outcome, cell, ids[cell], source) for cell in outcome.cells if cell.keys],
        id=experiment.id,
        class_="experiment",
    )


def _views(outcome: ExperimentResult, ids: Mapping[CellResult, str], source: Source) -> Child:
    """Build the tables or figures of an experiment."""
    experiment, panels = outcome.experiment, outcome.panels()
    if experiment.view == "maps":
        return maps(outcome.cells, ids, source)
    if experiment.view == "lines":
        return line_plots(experiment, panels, ids)
    if experiment.view == "bars":
        return bar_plot(experiment, outcome.cells, ids)
    tables = [
        matrix(experiment, cells, ids, _panel_title(experiment, name))
        for name, cells in panels.items()
    ]
    return [line_plots(experiment, panels, ids) if experiment.x else None, tables]


def _print_tables(outcome: ExperimentResult) -> list[Html]:
    """Build the numbers of a figure as tables for print, where nothing can be clicked."""
    experiment = outcome.experiment
    if experiment.view not in ("lines", "bars"):
        return []
    panels = {
        name: [cell for cell in cells if cell.keys] for name, cells in outcome.panels().items()
    }
    return [
        means(experiment, cells, f"{_panel_title(experiment, name)}: mean ± std")
        for name, cells in panels.items()
        if cells
    ]


def _panel_title(experiment: Experiment, panel: str) -> str:
    return f"{experiment.title}{f', {panel}' if panel else ''}"


def _not_run(outcomes: Sequence[ExperimentResult], source: Source) -> Html | None:
    if not outcomes:
        return None
    entries = [
        h("li", f"{outcome.experiment.title}: ", command(source.reproduce(outcome)))
        for outcome in outcomes
    ]
    return h(
        "section",
        h("h2", "Not run"),
        h("p", "The store has no run of these yet."),
        h("ul", entries),
        id="not-run",
    )
