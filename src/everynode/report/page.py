"""The report: one self-contained HTML page of all tables and figures, each number with the runs behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everynode.data.files import Root
from everynode.experiments.declare import Cell, Experiment, plan_all
from everynode.experiments.outcome import CellOutcome, Outcome, conclude
from everynode.experiments.run import Run
from everynode.experiments.store import Store
from everynode.report.cell import Source, command, panel
from everynode.report.figures import bar_plot, line_plots, maps
from everynode.report.html import Child, Html, bar, document, h, prose, scroll
from everynode.report.tables import SIGNIFICANT, badge, kind, listing, matrix
from everynode.report.text import DASH, count

#: What the runs of a cell differ in, in words.
OVER = {"seeds": "seeds on one split", "folds": "folds, one seed each", "splits": "random splits, one seed each", "once": "one run each"}
#: The order in which verdicts are counted.
VERDICTS = ("reproduced", "same", "better", "short", "differs")


def page_of_store(
    store: Store, preset: str, root: Root, *, seeds: int | None = None, folds: int | None = None
) -> tuple[str, list[Outcome]]:
    """The page of all experiments that have a run in the store, and what they say."""
    return page(plan_all(preset, seeds, folds, root), preset, store.records(), store.curve)


def page(
    plans: Mapping[Experiment, Mapping[Cell, Sequence[Run]]],
    preset: str,
    records: Mapping[str, dict[str, Any]],
    curve: Callable[[str], dict[str, list[float]]],
) -> tuple[str, list[Outcome]]:
    """The page of planned experiments from records and curves by run key, and what the experiments say. The same input, the same text."""
    runs = {run.key: run for plan in plans.values() for made in plan.values() for run in made}
    source = Source(records, runs, curve)
    outcomes = [conclude(experiment, preset, plan, records) for experiment, plan in plans.items()]
    there, absent = ([o for o in outcomes if bool(o.done) is wanted] for wanted in (True, False))
    shown = sorted({key for outcome in there for cell in outcome.cells for key in cell.keys})
    sections = [_section(outcome, source) for outcome in there]
    main = h("main", _head(preset, source, shown), _overview(there), _reading(), sections, _absent(absent), id="top")
    return document("everynode: the paper's tables and figures", bar("report"), h("div", _contents(there), main, class_="layout")), there


def _contents(outcomes: Sequence[Outcome]) -> Html:
    links = [h("li", h("a", o.experiment.title, href=f"#{o.experiment.id}")) for o in outcomes]
    first = [h("li", h("a", "How to read it", href="#reading"))]
    return h("nav", h("p", "Contents", class_="over"), h("ol", first, links), aria_label="Contents")


def _head(preset: str, source: Source, shown: Sequence[str]) -> Html:
    lead = (
        "The tables and figures of the paper “Every Node Counts” (arXiv 2211.16631), computed by `everynode` with the preset "
        f"`{preset}`, beside the numbers that the paper prints. Every number opens: behind it are the runs it comes from, each with the "
        "hash under which the store keeps it."
    )
    others = len(source.records) - len(shown)
    rest = f" {count(others, 'further run')} of the store belong to no table here: another preset, other versions, or other commands."
    return h(
        "section",
        h("h1", "Every Node Counts, run again"),
        h("p", prose(lead), class_="lead"),
        h("p", f"{count(len(shown), 'run')}.{rest if others else ''}"),
        h("p", "Made with ", "; ".join(source.versions(shown)) or "nothing yet", ".", class_="small"),
        class_="head",
    )


def _overview(outcomes: Sequence[Outcome]) -> Html | None:
    """How far each experiment is, and how its numbers compare with the paper's."""
    if not outcomes:
        return None
    rows = []
    for outcome in outcomes:
        tally = Counter(kind(cell.verdict) for cell in outcome.cells if cell.verdict)
        done, planned = (sum(counts) for counts in zip(*((len(cell.keys), cell.planned) for cell in outcome.cells), strict=True))
        share = 100 * done // planned
        progress = (h("span", h("span", style=f"width:{share}%"), class_="meter", aria_hidden="true"), f"{share}%")
        verdicts = [badge(f"{verdict} {tally[verdict]}") for verdict in VERDICTS if tally[verdict]]
        entries = (h("td", outcome.experiment.reference), h("td", progress, data_v=share), h("td", verdicts or DASH, data_v=len(verdicts)))
        rows.append(h("tr", h("th", h("a", outcome.experiment.title, href=f"#{outcome.experiment.id}"), scope="row"), entries))
    heads = [h("th", text, scope="col") for text in ("experiment", "in the paper", "runs", "our numbers beside the paper's")]
    caption = "All experiments at a glance"
    table = h("table", h("caption", caption), h("thead", h("tr", heads)), h("tbody", rows), class_="plain overview")
    return h("section", scroll(table, caption), id="overview")


def _reading() -> Html:
    """What the signs mean, in plain words."""
    entries: dict[str, Child] = {
        "85.3 ± 0.6": "Mean and standard deviation over a cell's runs. Each run's epoch is chosen on validation nodes; its test nodes are "
        "scored once, after that.",
        "84.9 to 85.7": "The 95% interval of the mean (Student's). Runs over seeds are independent. The ten folds of a graph share "
        "training nodes, so intervals over folds are widened after Nadeau and Bengio. Seeds and folds are never pooled.",
        "verdict": [
            h(
                "p",
                badge("reproduced"),
                " The paper's number lies in our interval; over folds, in the one that is not widened, since its "
                "mean is of the same ten folds.",
            ),
            h("p", badge("better by 1.2"), " Our whole interval lies above it; the amount is that of the means."),
            h("p", badge("short by 1.2"), " Our whole interval lies below it."),
            h("p", badge("same"), badge("differs by +3"), " For counts of a graph, which have no interval."),
            h(
                "p",
                "No verdict: fewer than five runs or not all ten folds, a cell that is not complete or of which a run diverged, ENC "
                "without a term or with one more, other machines' times.",
            ),
        ],
        "gain +1.9*": "The mean difference from the row without the term, run by run on the same seeds or folds. The star: "
        f"p < {SIGNIFICANT} after Holm's correction, with which false claims in a whole table are as rare as in a single test; cells "
        "that are not complete have none, and count as tests. Folds are corrected for their overlap; random splits, whose test nodes "
        "overlap too, are not.",
        "without CVG": "The settings give this term no weight; tuning may choose that. With “no term” it is plain cross-entropy.",
        "with consistency": "The settings also give weight to terms that the paper does not have.",
        "7 of 10 runs": "The cell is not complete: its number may still move.",
        "diverged": "Such a run's loss became infinite or not a number. It is counted, and has no value.",
        "diagnostic": "“Best test epoch” is what choosing each run's epoch by test accuracy would have shown. It is not a result, since "
        "nobody has test labels when choosing: it shows how much that mistake would embellish.",
    }
    listed = [h("div", h("dt", name), h("dd", text)) for name, text in entries.items()]
    return h("section", h("h2", "How to read it"), h("dl", listed, class_="reading"), id="reading")


def _section(outcome: Outcome, source: Source) -> Html:
    experiment = outcome.experiment
    ids = {cell: f"{experiment.id}-{index}" for index, cell in enumerate(outcome.cells)}
    what = "test accuracy in %" if experiment.unit == "%" and experiment.view != "maps" else ""
    meta = (experiment.reference, what, OVER[experiment.over], count(outcome.done, "run"))
    return h(
        "section",
        h("h2", experiment.title),
        h("p", " · ".join(filter(None, meta)), class_="quiet"),
        h("p", prose(experiment.about)),
        h("p", h("code", command(experiment, outcome.preset, outcome.each), class_="command")),
        _views(outcome, ids, source),
        listing(experiment, outcome.cells, ids) if experiment.view != "maps" else None,
        [panel(experiment, outcome.preset, cell, ids[cell], source) for cell in outcome.cells if cell.keys],
        id=experiment.id,
        class_="experiment",
    )


def _views(outcome: Outcome, ids: Mapping[CellOutcome, str], source: Source) -> Child:
    experiment, panels = outcome.experiment, outcome.panels()
    if experiment.view == "maps":
        return maps(outcome.cells, ids, source)
    if experiment.view == "lines":
        return line_plots(experiment, panels, ids)
    if experiment.view == "bars":
        return bar_plot(experiment, outcome.cells, ids)
    tables = [matrix(experiment, cells, ids, f"{experiment.title}{f', {name}' if name else ''}") for name, cells in panels.items()]
    return [line_plots(experiment, panels, ids) if experiment.x else None, tables]


def _absent(outcomes: Sequence[Outcome]) -> Html | None:
    if not outcomes:
        return None
    entries = [h("li", f"{o.experiment.title}: ", h("code", command(o.experiment, o.preset, o.each), class_="command")) for o in outcomes]
    return h("section", h("h2", "Not run"), h("p", "No run of these is in the store yet."), h("ul", entries), id="not-run")
