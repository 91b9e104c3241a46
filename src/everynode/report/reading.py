"""The guide of the report: every sign of its tables, explained."""

from __future__ import annotations

from collections.abc import Sequence

from everynode.experiments.analysis import SIGNIFICANT, ExperimentResult
from everynode.report.html import Child, Html, facts, h
from everynode.report.overview import judged_accuracies
from everynode.report.tables import badge, kind

OBJECTIVE = (
    "The paper's objective. Cross-entropy (CE) fits the labeled nodes. Mutual information (MI)"
    " asks for confident predictions and for classes of similar size. Total variation (TV) asks"
    " neighbors with similar features to agree. Cross-validating gradients (CVG) ask two halves"
    " of the labels to pull the weights in the same direction. P-reg is an older term, shown for"
    " comparison with TV."
)
MEAN = (
    "Mean and standard deviation over the runs of a cell. Validation nodes select the epoch of"
    " each run. Test accuracy is recorded after every epoch for the diagnostic below, and selects"
    " nothing."
)
INTERVAL = (
    "The 95% interval of the mean (Student's t) on these seeds or folds. The ten folds of a graph"
    " share training nodes, so other folds would vary more: the list and the panel behind a"
    " number show a second interval for other folds, widened after Nadeau and Bengio. Gains and"
    " the whiskers of figures use the wider one. Seeds and folds are never pooled."
)
GAIN = (
    "The mean difference from the row without the term, paired by seed or fold. A star means"
    f" p < {SIGNIFICANT} after Holm's correction over the table, which keeps false claims in the"
    " whole table as rare as in a single test. A cell with missing runs gets no star, but counts"
    " as a test. Each table is corrected separately, so the same runs may have a star in one"
    " table only. In brackets: the difference of the paper's two numbers. Folds are corrected"
    " for their overlap. Random splits overlap too and are not corrected."
)
ORACLE = (
    "“Best test epoch” is the accuracy if the test nodes select each run's epoch. It is an upper"
    " bound, not a result: it shows how much that mistake would flatter the numbers."
)
MACHINE = (
    "Another processor rounds differently, and after some hundred epochs this can change the best"
    " epoch. A repeated run may differ, with ENC by several points; the mean of a cell differs"
    " less."
)


def _verdict_guide() -> list[Html]:
    return [
        h(
            "p",
            badge("reproduced"),
            " The paper's number lies in our interval. The difference is in brackets. On graphs"
            " with few test nodes, intervals are wide, and this says little.",
        ),
        h(
            "p",
            badge("better by 1.2"),
            " Our whole interval lies above it. The amount is the difference of the means.",
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
            "The paper's number is treated as exact, although it is a mean of runs too. If it came"
            " from ten seeds like ours, about one cell in seven would lie outside by chance (five"
            " seeds: one in twelve; folds, which are the same ones: fewer).",
        ),
        h(
            "p",
            "No verdict: fewer than five runs, first seeds missing, fewer than ten folds, a"
            " diverged run, ENC without a term or with an extra one, or times of another machine.",
        ),
    ]


def reading(outcomes: Sequence[ExperimentResult]) -> Html:
    """Build the guide; signs that no cell has are left out."""
    cells = [cell for outcome in outcomes for cell in outcome.cells]
    short = [cell for cell in judged_accuracies(outcomes) if kind(cell.verdict) == "short"]
    never = sum(cell.short_at_any_epoch for cell in short)
    bound = (
        f" Of the {len(short)} accuracies of the paper that are not reached here, {never} stay out"
        " of reach even then."
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
        "ENC": OBJECTIVE,
        "85.3 ± 0.6": MEAN,
        "84.9 to 85.7": INTERVAL,
        "verdict": _verdict_guide(),
        "gain +1.9* (+4.2)": GAIN,
        "without CVG": "The settings give this term no weight; tuning may choose that."
        " “No term” is plain cross-entropy.",
        "with consistency": "The settings also use terms that the paper does not have.",
        "7 of 10 runs": "The cell is incomplete, and its number may still change.",
        "diverged": "The loss of the run became infinite or not a number. The run is counted and"
        " has no value.",
        "diagnostic": f"{ORACLE}{bound}",
        "another machine": MACHINE,
    }
    shown = [(name, text) for name, text in entries.items() if used.get(name, True)]
    return h("section", h("h2", "How to read it"), facts(shown, "reading"), id="reading")
