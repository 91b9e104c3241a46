"""The scores on the page of a fit: metrics, classes, and the reliability of the probabilities."""

from __future__ import annotations

from everynode.evaluation.fit_summary import FitSummary
from everynode.evaluation.intervals import Score, wilson
from everynode.evaluation.metrics import LOSSES, METRICS, Metric
from everynode.report import svg
from everynode.report.confusion import confusion_table
from everynode.report.figures import figure
from everynode.report.html import Html, h, join, prose, small, table
from everynode.report.text import DASH, count, interval, number, percent

#: The page lists this many classes, and has a confusion matrix of up to this many.
LISTED, MAX_MATRIX = 100, 50
INTERVALS = (
    "The 95% intervals show how much another draw of nodes would change a score (accuracy: Wilson;"
    " balanced accuracy and F1: Wilson for each class; AUC: Newcombe for each class;"
    " log-likelihood: Student's t on its logarithm). Neighbors are not independent, so the"
    f" intervals are somewhat too narrow. {DASH}: no interval. The log-likelihood has none if all"
    " nodes are right or there are fewer than five, because the cost of an error is then unknown."
    " The calibration error has none, because it is biased upwards on few nodes."
)
RELIABILITY = (
    "Of the nodes with 80% confidence, 80% should be right: this is the dashed line. Whiskers are"
    " 95% intervals. Where a whisker misses the line, the confidence is off by more than chance."
)


def range_text(score: Score) -> str:
    """Format the interval of a score in percent."""
    return interval(100 * score.low, 100 * score.high)


def scores(fit: FitSummary) -> Html:
    """Build the table of scores of every part, with a note on their intervals."""
    rows = []
    for name, metric in METRICS.items():
        cells = [_score(quality[name], metric) for quality in fit.quality.values()]
        meaning = h("td", metric.description, class_="what")
        rows.append([h("th", metric.heading, scope="row"), *cells, meaning])
    sizes = [f"{name} ({count(len(part.nodes), 'node')})" for name, part in fit.parts.items()]
    monitor = fit.model.fitted_.settings.monitor
    order = "lowest" if monitor in LOSSES else "best"
    held_out = (
        "Validation: each label is predicted by networks that did not train on it. A network saw"
        " only part of the labels; the final predictions use all of them. "
        if fit.folds > 1
        else ""
    )
    note = f"{held_out}The selected epoch has the {order} validation `{monitor}`. {INTERVALS}"
    return join(
        h("ul", [h("li", text) for text in fit.notes]) if fit.notes else None,
        table(["", *sizes, "meaning"], rows, "Scores"),
        small(prose(note)),
    )


def _score(score: Score, metric: Metric) -> Html:
    value, low, high = (metric.factor * end for end in score)
    between = interval(low, high, metric.digits) or DASH
    return h("td", h("b", number(value, metric.digits)), h("span", between, class_="between"))


def classes(fit: FitSummary) -> Html:
    """Build the recall and precision of every class, and the confusion matrix."""
    part = fit.judged.name
    counts = fit.class_counts()
    # A stable sort keeps the order of the classes where all are shown.
    largest = counts if len(counts) <= LISTED else sorted(counts, key=lambda row: -row.true)
    rows = [
        [
            h("th", row.name, scope="row"),
            h("td", str(row.train)),
            h("td", str(row.true)),
            _share(row.right, row.true),
            _share(row.right, row.called),
            h("td", f"{row.predicted:,}"),
        ]
        for row in largest[:LISTED]
    ]
    heads = [
        "class",
        "training nodes",
        f"{part} nodes",
        "found (recall)",
        "right when predicted (precision)",
        "predictions in all",
    ]
    title = f"Each class on the {part} nodes"
    if len(counts) > LISTED:
        title = f"The {LISTED} largest of {len(counts):,} classes on the {part} nodes"
    return join(table(heads, rows, title, look="plain sortable"), _mistakes(fit))


def _mistakes(fit: FitSummary) -> Html:
    """Build the confusion matrix; with many classes, a table of the most frequent mistakes."""
    part, names = fit.judged.name, [str(name) for name in fit.predictions.classes]
    if len(names) <= MAX_MATRIX:
        return confusion_table(fit.confusion(), names, f"The {part} nodes.")
    rows = [
        [h("th", names[true], scope="row"), h("td", names[called]), h("td", f"{count:,}")]
        for true, called, count in fit.judged.confused(MAX_MATRIX)
    ]
    title = f"The most frequent mistakes on the {part} nodes"
    return table(["true class", "predicted", "nodes"], rows, title, look="plain sortable")


def _share(part: int, whole: int) -> Html:
    if not whole:
        return h("td", DASH, data_v="")
    score = wilson(part, whole)
    between = h("span", range_text(score), class_="between")
    return h("td", percent(score.value), between, data_v=f"{score.value:.6g}")


def probabilities(fit: FitSummary) -> Html:
    """Build the reliability diagram, and the effect of the temperature."""
    part, temperature = fit.judged.name, number(fit.judged.temperature, 2)
    names = {"before": "as trained", "after": f"with temperature {temperature}", "": "as trained"}
    series = {}
    for name, bins in fit.reliability().items():
        points = []
        for one in bins:
            score = wilson(round(one.accuracy * one.count), one.count)
            tip = (
                f"{percent(score.value)} of {count(one.count, 'node')} are right"
                f" ({range_text(score)})"
            )
            low, high = 100 * score.low, 100 * score.high
            points.append(svg.Point(100 * one.confidence, 100 * score.value, low, high, tip))
        series[names[name]] = points
    plot = svg.reliability(
        series,
        label=f"Reliability on the {part} nodes",
        x_label="confidence of the model, %",
        y_label="share that is right, %",
    )
    before, after = percent(fit.judged.ece_before), percent(fit.quality[part]["ece"].value)
    if fit.calibrated:
        text = (
            f"All logits are divided by one temperature, {temperature}, chosen on the validation"
            f" nodes. It changes no prediction. On the {part} nodes the calibration error goes"
            f" from {before} to {after}."
        )
    else:
        text = (
            f"The probabilities are as trained, without a temperature. On the {part} nodes the"
            f" calibration error is {before}."
        )
    text += (
        f" Calibrated probabilities would show {percent(fit.judged.ece_by_chance)} by chance on"
        f" {count(len(fit.judged.nodes), 'node')}."
    )
    return join(
        h("p", prose(text)), small(RELIABILITY), figure([*series], "line", [h("figure", plot)])
    )
