"""The top of the report: the counts over all tables in two sentences, and a row per experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from everynode.experiments.analysis import CellResult, ExperimentResult
from everynode.report.html import Child, Html, h, table
from everynode.report.tables import badge, kind
from everynode.report.text import DASH

#: The order of the counted verdicts.
VERDICTS = ("reproduced", "same", "better", "short", "differs")


def judged_accuracies(outcomes: Sequence[ExperimentResult]) -> list[CellResult]:
    """Return the cells with an accuracy of the paper and a verdict, without P-reg's.

    A number that appears in several tables is returned once.
    """
    judged = {
        (cell.keys, cell.cell.published): cell
        for outcome in outcomes
        for cell in (outcome.cells if outcome.experiment.in_paper else ())
        if cell.verdict and cell.cell.metric == "test_accuracy" and cell.cell.objective != "preg"
    }
    return list(judged.values())


def headline(outcomes: Sequence[ExperimentResult]) -> str:
    """Sum up all tables in two sentences."""
    reached: dict[str, list[bool]] = {"cross-entropy": [], "ENC": [], "some of ENC's terms": []}
    names = {"ce": "cross-entropy", "enc": "ENC"}
    for cell in judged_accuracies(outcomes):
        name = names.get(cell.cell.objective, "some of ENC's terms")
        reached[name].append(kind(cell.verdict) != "short")
    shares = [
        f"{sum(cells)} of {len(cells)} with {name}" for name, cells in reached.items() if cells
    ]
    sentences = [f"Accuracies of the paper that we reach: {', '.join(shares)}."] if shares else []
    if gains := _gains(outcomes):
        ahead, behind = (sum(sign * gain > 0 for gain in gains) for sign in (1, -1))
        sentences.append(
            f"In paired comparisons with cross-entropy, its terms are significantly better in"
            f" {ahead} of {len(gains)} and significantly worse in {behind}."
        )
    return " ".join(sentences)


def _gains(outcomes: Sequence[ExperimentResult]) -> list[float]:
    """Return the gains of the paper's terms over cross-entropy; 0 where not significant.

    A pair that appears in several tables counts once, as significant only if it is so in all
    of them. Random splits are left out: they overlap, so their p-values are too small.
    """
    gains: dict[tuple[tuple[str, ...], ...], float] = {}
    for outcome in outcomes:
        places = {
            (cell.cell.panel, cell.cell.row, cell.cell.column): cell for cell in outcome.cells
        }
        for cell in outcome.cells if outcome.experiment.over != "splits" else ():
            against = cell.cell.against
            if cell.gain is None or cell.p_holm is None or against is None or not _has_terms(cell):
                continue
            other = places[cell.cell.panel, against, cell.cell.column]
            if other.cell.objective == "ce":
                pair, gain = (cell.keys, other.keys), cell.gain.mean * cell.significant
                gains[pair] = min(gain, gains.get(pair, gain), key=abs)
    return list(gains.values())


def _has_terms(cell: CellResult) -> bool:
    """Whether the objective of a cell has terms of the paper; P-reg is not one of them."""
    return cell.cell.objective not in ("ce", "preg")


def overview(outcomes: Sequence[ExperimentResult]) -> Html | None:
    """Build a table with a row per experiment: its progress, verdicts and significant gains."""
    if not outcomes:
        return None
    heads = (
        "experiment",
        "runs",
        "without the paper's terms",
        "with them",
        "significant gains",
    )
    rows = []
    for outcome in outcomes:
        groups = [
            [cell for cell in outcome.cells if _has_terms(cell) is own] for own in (False, True)
        ]
        stars = _significant_gains(groups[1]) if outcome.experiment.in_paper else ""
        entries: tuple[Child, ...] = (_progress(outcome), *map(_verdicts, groups), stars)
        link = h("a", outcome.experiment.title, href=f"#{outcome.experiment.id}")
        cells = [
            h("td", entry or DASH, data_label=head, class_=None if entry else "none")
            for head, entry in zip(heads[1:], entries, strict=True)
        ]
        rows.append([h("th", link, scope="row"), *cells])
    title = "All experiments at a glance: our numbers beside the paper's"
    return h("section", table(heads, rows, title, look="plain overview"), id="overview")


def _progress(outcome: ExperimentResult) -> list[Child]:
    """Build a meter of the runs that are done, and the reason why some are missing."""
    done = sum(len(cell.keys) for cell in outcome.cells)
    planned = sum(cell.planned for cell in outcome.cells)
    share = 100 * done // planned
    bar = h("span", style=f"width:{share}%")
    meter: list[Child] = [h("span", bar, class_="meter", aria_hidden="true"), f"{share}%"]
    return meter + ([h("span", _why(outcome), class_="why")] if done < planned else [])


def _why(outcome: ExperimentResult) -> str:
    """Return the reason why an experiment is incomplete."""
    missing = [cell for cell in outcome.cells if not cell.complete]
    if all(cell.cell.task == "time" for cell in missing):
        return "not timed here"
    done = {cell.cell.dataset for cell in outcome.cells if cell.keys}
    without = list(dict.fromkeys(cell.cell.dataset for cell in missing))
    if done.isdisjoint(without):
        return f"without {', '.join(without)}"
    return f"{sum(cell.planned - len(cell.keys) for cell in missing):,} to do"


def _verdicts(cells: Sequence[CellResult]) -> list[Html | None]:
    """Count each verdict."""
    tally = Counter(kind(cell.verdict) for cell in cells if cell.verdict)
    return [badge(f"{verdict} {tally[verdict]}") for verdict in VERDICTS if tally[verdict]]


def _significant_gains(cells: Sequence[CellResult]) -> str:
    """Count the significant gains by their sign."""
    gains = [
        cell.gain.mean * cell.significant for cell in cells if cell.gain and cell.p_holm is not None
    ]
    up, down = (sum(sign * gain > 0 for gain in gains) for sign in (1, -1))
    return f"{up} up, {down} down, of {len(gains)}" if gains else ""
