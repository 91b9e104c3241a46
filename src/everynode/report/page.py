"""The report: one self-contained HTML page of all tables and figures, each number with the runs behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from everynode.datasets.files import Root
from everynode.experiments.analysis import SIGNIFICANT, CellResult, ExperimentResult, analyze
from everynode.experiments.experiment import Cell, Experiment, plan_all, versions_of
from everynode.experiments.exports import ExportedRuns
from everynode.experiments.run_spec import Run
from everynode.experiments.store import Store
from everynode.report.cell import Source, panel
from everynode.report.figures import bar_plot, line_plots, maps
from everynode.report.html import Child, Html, bar, document, h, prose, scroll
from everynode.report.tables import badge, kind, listing, matrix, means
from everynode.report.text import DASH, count

#: What the runs of a cell differ in, in words.
OVER = {
    "seeds": "seeds on one split",
    "folds": "folds, one seed each",
    "splits": "random splits, one seed each",
    "once": "one run each",
}
#: The order in which verdicts are counted.
VERDICTS = ("reproduced", "same", "better", "short", "differs")
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
    """The page of all experiments that have a run in the store, and what they say; ``named``: as which its commands name the store."""
    records = store.records()
    return page(
        plan_all(preset, seeds, folds, root, versions_of(records.values())),
        preset,
        records,
        store.curve,
        named,
    )


def is_page(file: Path) -> bool:
    """Whether a file is a page of everynode, by its title; one that is empty has nothing to lose."""
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
    """The page of planned experiments from records and curves by run key, and what the experiments say. The same input, the same text."""
    runs = {run.key: run for plan in plans.values() for made in plan.values() for run in made}
    source = Source(records, runs, curve, store)
    outcomes = [analyze(experiment, preset, plan, records) for experiment, plan in plans.items()]
    there, absent = ([o for o in outcomes if bool(o.done) is wanted] for wanted in (True, False))
    shown = sorted({key for outcome in there for cell in outcome.cells for key in cell.keys})
    sections = [_section(outcome, source) for outcome in there]
    main = h(
        "main",
        _head(preset, source, shown, there),
        _overview(there),
        sections,
        _absent(absent, source),
        _reading(there),
        id="top",
    )
    return document(
        "everynode: the paper's tables and figures",
        bar("report"),
        h("div", _contents(there), main, class_="layout"),
    ), there


def _contents(outcomes: Sequence[ExperimentResult]) -> Html:
    return h("nav", h("p", "Contents", class_="over"), _links(outcomes), aria_label="Contents")


def _links(outcomes: Sequence[ExperimentResult]) -> Html:
    places = {outcome.experiment.id: outcome.experiment.title for outcome in outcomes} | {
        "reading": "How to read it"
    }
    return h("ol", [h("li", h("a", title, href=f"#{place}")) for place, title in places.items()])


def _head(
    preset: str, source: Source, shown: Sequence[str], outcomes: Sequence[ExperimentResult]
) -> Html:
    """What this is, what came out, and how to go on: no more than a reader takes in at a glance."""
    paper, guide = (
        h("a", "“Every Node Counts”", href=PAPER),
        h("a", "how to read it", href="#reading"),
    )
    lead = (
        "The tables and figures of ",
        paper,
        prose(f", computed again with the preset `{preset}`, beside the paper's own numbers. "),
    )
    others = len(source.records) - len(shown)
    rest = f" {count(others, 'further run')} of the store belong to no table here: another preset, other versions, or other commands."
    made = "; ".join(source.versions(shown)) or "nothing yet"
    return h(
        "section",
        h("h1", "Every Node Counts, run again"),
        h("p", lead, " ".join(_said(outcomes)), class_="lead"),
        h(
            "p",
            f"{count(len(shown), 'run')}.{rest if others else ''} Every number opens the runs behind it: see ",
            guide,
            ".",
        ),
        h(
            "details",
            h("summary", "Versions and machines"),
            h("p", "Made with ", made, ".", class_="small"),
        ),
        h("details", h("summary", "Contents"), _links(outcomes), class_="contents"),
        class_="head",
    )


def _said(outcomes: Sequence[ExperimentResult]) -> list[str]:
    """What all tables together say, in two sentences; what stands in several of them counts once."""
    reached: dict[str, list[bool]] = {"cross-entropy": [], "ENC": [], "some of its terms alone": []}
    for cell in _judged(outcomes):
        whose = {"ce": "cross-entropy", "enc": "ENC"}.get(
            cell.cell.objective, "some of its terms alone"
        )
        reached[whose].append(kind(cell.verdict) != "short")
    told = [
        f"{sum(cells)} of {len(cells)} with {whose}" for whose, cells in reached.items() if cells
    ]
    sentences = (
        [f"Of its accuracies that could be judged, we reach {', '.join(told)}."] if told else []
    )
    if gains := _gains(outcomes):
        ahead, behind = (sum(sign * gain > 0 for gain in gains) for sign in (1, -1))
        sentences.append(
            f"Run by run, its terms are ahead of cross-entropy beyond chance in {ahead} of {len(gains)} comparisons, behind in {behind}."
        )
    return sentences


def _judged(outcomes: Sequence[ExperimentResult]) -> list[CellResult]:
    """The accuracies of the paper that could be judged, but for those of P-reg."""
    judged = {
        (cell.keys, cell.cell.published): cell
        for outcome in outcomes
        for cell in (outcome.cells if outcome.experiment.in_paper else ())
        if cell.verdict and cell.cell.metric == "test_accuracy" and cell.cell.objective != "preg"
    }
    return list(judged.values())


def _gains(outcomes: Sequence[ExperimentResult]) -> list[float]:
    """What the paper's terms gain over cross-entropy, 0 where that is not significant in every table that has it; not over random splits,
    whose p-values are too small.
    """
    found: dict[tuple[tuple[str, ...], ...], float] = {}
    for outcome in outcomes:
        places = {
            (cell.cell.panel, cell.cell.row, cell.cell.column): cell for cell in outcome.cells
        }
        for cell in outcome.cells if outcome.experiment.over != "splits" else ():
            if (
                cell.gain is None
                or cell.p_holm is None
                or cell.cell.against is None
                or not _has_terms(cell)
            ):
                continue
            other = places[cell.cell.panel, cell.cell.against, cell.cell.column]
            if other.cell.objective == "ce":
                pair, gain = (cell.keys, other.keys), cell.gain.mean * cell.significant
                found[pair] = min(gain, found.get(pair, gain), key=abs)
    return list(found.values())


def _has_terms(cell: CellResult) -> bool:
    """Whether a cell's objective has terms of the paper: P-reg, with which it compares, is none."""
    return cell.cell.objective not in ("ce", "preg")


def _overview(outcomes: Sequence[ExperimentResult]) -> Html | None:
    """How far each experiment is, and how its numbers compare with the paper's."""
    if not outcomes:
        return None
    heads = (
        "experiment",
        "runs",
        "without the paper's terms",
        "with them",
        "gains that are significant",
    )
    rows = []
    for outcome in outcomes:
        done, planned = (
            sum(counts)
            for counts in zip(
                *((len(cell.keys), cell.planned) for cell in outcome.cells), strict=True
            )
        )
        share = 100 * done // planned
        progress = [
            h("span", h("span", style=f"width:{share}%"), class_="meter", aria_hidden="true"),
            f"{share}%",
        ]
        progress += [h("span", _why(outcome), class_="why")] if done < planned else []
        groups = [
            [cell for cell in outcome.cells if _has_terms(cell) is own] for own in (False, True)
        ]
        stars = (
            _stars(groups[1]) if outcome.experiment.in_paper else ""
        )  # which are those of its terms
        entries: tuple[Child, ...] = (progress, *map(_verdicts, groups), stars)
        cells = [
            h("td", entry or DASH, data_label=head, class_=None if entry else "none")
            for head, entry in zip(heads[1:], entries, strict=True)
        ]
        rows.append(
            h(
                "tr",
                h(
                    "th",
                    h("a", outcome.experiment.title, href=f"#{outcome.experiment.id}"),
                    scope="row",
                ),
                cells,
            )
        )
    caption = "All experiments at a glance: our numbers beside the paper's"
    top = h("tr", [h("th", text, scope="col") for text in heads])
    table = h(
        "table", h("caption", caption), h("thead", top), h("tbody", rows), class_="plain overview"
    )
    return h("section", scroll(table, caption), id="overview")


def _why(outcome: ExperimentResult) -> str:
    """Why an experiment is not complete."""
    missing = [cell for cell in outcome.cells if not cell.complete]
    if all(cell.cell.task == "time" for cell in missing):
        return "not timed here"
    done = {cell.cell.dataset for cell in outcome.cells if cell.keys}
    without = list(dict.fromkeys(cell.cell.dataset for cell in missing))
    if done.isdisjoint(without):
        return f"without {', '.join(without)}"
    return f"{sum(cell.planned - len(cell.keys) for cell in missing):,} to do"


def _verdicts(cells: Sequence[CellResult]) -> list[Html | None]:
    """How often each verdict was given."""
    tally = Counter(kind(cell.verdict) for cell in cells if cell.verdict)
    return [badge(f"{verdict} {tally[verdict]}") for verdict in VERDICTS if tally[verdict]]


def _stars(cells: Sequence[CellResult]) -> str:
    """How many gains are significant, by their sign."""
    judged = [
        cell.gain.mean * cell.significant for cell in cells if cell.gain and cell.p_holm is not None
    ]
    up, down = (sum(sign * gain > 0 for gain in judged) for sign in (1, -1))
    return f"{up} up, {down} down, of {len(judged)}" if judged else ""


def _reading(outcomes: Sequence[ExperimentResult]) -> Html:
    """What the signs mean, in plain words; those that no cell has are left out."""
    cells = [cell for outcome in outcomes for cell in outcome.cells]
    short = [cell for cell in _judged(outcomes) if kind(cell.verdict) == "short"]
    never = sum(cell.short_at_any_epoch for cell in short)
    even = (
        f" Of the paper's {len(short)} accuracies that are not reached here, {never} would not be even so."
        if short
        else ""
    )
    used = {
        "without CVG": any("no term" in cell.remark or "without" in cell.remark for cell in cells),
        "with consistency": any("with " in cell.remark for cell in cells),
        "7 of 10 runs": any(cell.keys and not cell.complete for cell in cells),
        "diverged": any(cell.diverged for cell in cells),
    }
    entries: dict[str, Child] = {
        "ENC": "The paper's objective: cross-entropy (CE) on the labelled nodes; mutual information (MI), which asks every node to be sure "
        "and the classes to be used evenly; total variation (TV), which asks neighbours that look alike to agree; and cross-validating "
        "gradients (CVG), which asks two halves of the labels to pull the same way. P-reg is an older term, with which TV is compared.",
        "85.3 ± 0.6": "Mean and standard deviation over a cell's runs, at the epoch of each that validation nodes chose. Test accuracy is "
        "looked at after every epoch too, for the diagnostic below; it never chooses anything.",
        "84.9 to 85.7": "The 95% interval of the mean (Student's) on these seeds, or on these folds. The ten folds of a graph share "
        "training nodes, so what other folds would give is less sure: the list and the panel behind a number have a second interval for "
        "that, widened after Nadeau and Bengio, as those of gains and the whiskers of figures are. Seeds and folds are never pooled.",
        "verdict": [
            h(
                "p",
                badge("reproduced"),
                " The paper's number lies in our interval (over folds its mean is of the same ten); by how much it differs is in brackets. "
                "On graphs with few test nodes intervals are so wide that this says little.",
            ),
            h(
                "p",
                badge("better by 1.2"),
                " Our whole interval lies above it; the amount is that of the means.",
            ),
            h("p", badge("short by 1.2"), " Our whole interval lies below it."),
            h(
                "p",
                badge("same"),
                badge("differs by +3"),
                " For counts of a graph, which have no interval.",
            ),
            h(
                "p",
                "The paper's number counts as exact, though it is a mean of runs too: were it one of ten seeds like ours, about one "
                "cell in seven would lie outside by chance (of five seeds one in twelve; over folds, which are the same, fewer).",
            ),
            h(
                "p",
                "No verdict: fewer than five runs (of the first seeds, none left out) or not all ten folds, a cell of which a run "
                "diverged, ENC without a term or with one more, other machines' times.",
            ),
        ],
        "gain +1.9* (+4.2)": "The mean difference from the row without the term, run by run on the same seeds or folds. The star: "
        f"p < {SIGNIFICANT} after Holm's correction, with which false claims in a whole table are as rare as in a single test; cells "
        "that have fewer runs than the table is to have, or none for some of the first seeds, have none, and count as tests. Each table is "
        "corrected by itself, so the same runs may have a star in one and none in another. In brackets: the difference of the paper's two "
        "numbers. Folds are corrected for their overlap; random splits, which overlap too, are not.",
        "without CVG": "The settings give this term no weight; tuning may choose that. With “no term” it is plain cross-entropy.",
        "with consistency": "The settings also give weight to terms that the paper does not have.",
        "7 of 10 runs": "The cell is not complete: its number may still move.",
        "diverged": "Such a run's loss became infinite or not a number. It is counted, and has no value.",
        "diagnostic": "“Best test epoch” is what choosing each run's epoch by test accuracy would have shown. It is not a result, since "
        f"nobody has test labels when choosing: it shows how much that mistake would embellish.{even}",
        "another machine": "Another processor rounds otherwise, and after some hundred epochs that can mean another best epoch: a run that "
        "is done again may differ, with ENC by several points; the mean of a cell differs by less.",
    }
    listed = [
        h("div", h("dt", name), h("dd", text))
        for name, text in entries.items()
        if used.get(name, True)
    ]
    return h("section", h("h2", "How to read it"), h("dl", listed, class_="reading"), id="reading")


def _section(outcome: ExperimentResult, source: Source) -> Html:
    experiment = outcome.experiment
    ids = {cell: f"{experiment.id}-{index}" for index, cell in enumerate(outcome.cells)}
    what = "test accuracy in %" if experiment.unit == "%" and experiment.view != "maps" else ""
    meta = (experiment.reference, what, OVER[experiment.over], count(outcome.done, "run"))
    return h(
        "section",
        h("h2", experiment.title),
        h("p", " · ".join(filter(None, meta)), class_="quiet"),
        h("p", prose(experiment.about)),
        h("p", h("code", source.reproduce(outcome), class_="command")),
        _views(outcome, ids, source),
        _on_paper(outcome),
        listing(experiment, outcome.cells, ids) if experiment.view != "maps" else None,
        [panel(outcome, cell, ids[cell], source) for cell in outcome.cells if cell.keys],
        id=experiment.id,
        class_="experiment",
    )


def _views(outcome: ExperimentResult, ids: Mapping[CellResult, str], source: Source) -> Child:
    experiment, panels = outcome.experiment, outcome.panels()
    if experiment.view == "maps":
        return maps(outcome.cells, ids, source)
    if experiment.view == "lines":
        return line_plots(experiment, panels, ids)
    if experiment.view == "bars":
        return bar_plot(experiment, outcome.cells, ids)
    tables = [
        matrix(experiment, cells, ids, f"{experiment.title}{f', {name}' if name else ''}")
        for name, cells in panels.items()
    ]
    return [line_plots(experiment, panels, ids) if experiment.x else None, tables]


def _on_paper(outcome: ExperimentResult) -> list[Html]:
    """The numbers of a figure as tables that only print has: there no mark can be asked, and no list opened."""
    if outcome.experiment.view not in ("lines", "bars"):
        return []
    panels = [
        (name, [cell for cell in cells if cell.keys]) for name, cells in outcome.panels().items()
    ]
    title = outcome.experiment.title
    return [
        means(outcome.experiment, cells, f"{title}{f', {name}' if name else ''}: mean ± std")
        for name, cells in panels
        if cells
    ]


def _absent(outcomes: Sequence[ExperimentResult], source: Source) -> Html | None:
    if not outcomes:
        return None
    entries = [
        h("li", f"{o.experiment.title}: ", h("code", source.reproduce(o), class_="command"))
        for o in outcomes
    ]
    return h(
        "section",
        h("h2", "Not run"),
        h("p", "No run of these is in the store yet."),
        h("ul", entries),
        id="not-run",
    )
