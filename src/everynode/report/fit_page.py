"""The page of a fit: one self-contained HTML file for whoever asks how good the predictions are and which ones to look at."""

from __future__ import annotations

import dataclasses
import platform
import shlex

import numpy as np
import torch

from everynode import __version__
from everynode.datasets import check
from everynode.evaluation.quality import Score, wilson
from everynode.report import svg
from everynode.report.cell import TERMS, confusion_table, curve_plots
from everynode.report.figures import legend
from everynode.report.fit import MAP_NODES, Fit
from everynode.report.html import Html, bar, document, h, join, listed, prose
from everynode.report.text import DASH, ENTRANTS, count, decided_by, interval, number, significant

#: Rows of the tables of nodes to look at.
UNCERTAIN, DISAGREEMENTS = 20, 30
#: The scores, in the order in which they are shown: their name, what they are, and the factor and digits with which they are written.
SCORES = {
    "accuracy": ("accuracy, %", "the share of nodes that is right", 100, 1),
    "balanced_accuracy": (
        "balanced accuracy, %",
        "the mean over the classes of the share that is found: rare ones count as much",
        100,
        1,
    ),
    "macro_f1": ("macro F1, %", "the mean over the classes of precision and recall in one", 100, 1),
    "auc": (
        "AUC, %",
        "how well probabilities rank the nodes of a class before the others; 50 is chance",
        100,
        1,
    ),
    "nll": (
        "negative log-likelihood",
        "how surprised the probabilities are by the truth; less is better",
        1,
        3,
    ),
    "ece": ("calibration error, %", "how far confidence is from accuracy; less is better", 100, 1),
}


def page(fit: Fit, *, model: str = "model", drawn: bool = False) -> str:
    """The page. The same fit, the same text.

    ``model``: where the model is, for the command that predicts. ``drawn``: the split did not come with the data.
    """
    sections = {
        "quality": ("How good it is", _quality(fit)),
        "classes": ("Class by class", _classes(fit)),
        "probabilities": ("How much the probabilities mean", _probabilities(fit)),
        "uncertain": ("Most uncertain nodes", _uncertain(fit)),
        "disagreements": ("Where prediction and label disagree", _disagreements(fit)),
        "map": ("The nodes on a map", _map(fit)),
        "data": ("What was understood of the files", _data(fit, drawn)),
        "training": ("What the terms did", _training(fit)),
        "again": ("Make it again", _again(fit, model)),
    }
    links = [h("li", h("a", title, href=f"#{name}")) for name, (title, _body) in sections.items()]
    contents = h("nav", h("p", "Contents", class_="over"), h("ol", links), aria_label="Contents")
    made = [
        h("section", h("h2", title), body, id=name, class_="experiment")
        for name, (title, body) in sections.items()
    ]
    return document(
        f"everynode: {fit.graph.name}",
        bar("fit"),
        h("div", contents, h("main", _head(fit), made, id="top"), class_="layout"),
    )


#: What the parts of predictions.csv are called here.
PARTS = {"train": "training", "val": "validation", "test": "test", "": "no part"}


def _names(fit: Fit) -> list[str]:
    return [str(name) for name in fit.predictions.classes]


def _head(fit: Fit) -> Html:
    graph, found = fit.graph, fit.predictions
    labelled = sum(name is not None for name in found.given)
    name = fit.judged.name
    score = fit.quality[name]["accuracy"]
    right = f"Of {count(len(fit.judged.nodes), f'{name} node')}, {_percent(score.value)}% are right (95% interval {_range(score)})."
    facts = {
        "nodes": f"{graph.num_nodes:,}",
        "edges": f"{graph.num_edges:,}",
        "features": f"{graph.num_features:,}",
        "classes": f"{graph.num_classes}",
        "labelled": f"{labelled:,}",
        "predicted, not labelled": f"{graph.num_nodes - labelled:,}",
        f"right on {name}": f"{_percent(score.value)}%",
        "temperature": number(fit.model.temperature_, 2),
    }
    return h(
        "section",
        h("h1", graph.name),
        h("p", right, class_="lead"),
        h("p", fit.caution),
        h("p", "Training was interrupted: the best epoch so far is shown.", class_="diagnostic")
        if fit.model.fitted_.interrupted
        else None,
        h(
            "dl",
            [h("div", h("dt", key), h("dd", value)) for key, value in facts.items()],
            class_="facts",
        ),
        class_="head",
    )


def _quality(fit: Fit) -> Html:
    rows = []
    for key, (name, what, factor, digits) in SCORES.items():
        cells = [_score(scores[key], factor, digits) for scores in fit.quality.values()]
        rows.append([h("th", name, scope="row"), *cells, h("td", what, class_="what")])
    sizes = [f"{name} ({count(len(part.nodes), 'node')})" for name, part in fit.parts.items()]
    chosen = fit.model.fitted_.settings.monitor
    best = f"lowest validation `{chosen}`" if chosen == "loss" else f"best validation `{chosen}`"
    of_folds = (
        "Validation: what the networks say of the labels that they did not learn. Each had a part of the labels only; what is given out is "
        "their average. "
        if fit.folds > 1
        else ""
    )
    note = (
        f"{of_folds}The epoch is the one with the {best}. Intervals are 95%: what another draw of nodes would change (accuracy: Wilson; "
        "balanced accuracy and F1: Wilson of each class; AUC: Newcombe of each class; log-likelihood: Student, of its logarithm). "
        f"Neighbours are not independent, so they are rather too narrow. {DASH}: none. The log-likelihood of nodes that are all right, or "
        "fewer than five, has none, because what a wrong one would cost is not known; the calibration error has none, because on few nodes "
        "it is too large."
    )
    said = h("ul", [h("li", text) for text in fit.said]) if fit.said else None
    return join(
        said,
        listed(["", *sizes, "what it is"], rows, "Scores"),
        h("p", prose(note), class_="small"),
    )


def _score(score: Score, factor: float, digits: int) -> Html:
    low, high = factor * score.low, factor * score.high
    between = interval(low, high, digits) or DASH
    return h(
        "td", h("b", number(factor * score.value, digits)), h("span", between, class_="between")
    )


def _classes(fit: Fit) -> Html:
    found, names, judged = fit.predictions, _names(fit), fit.judged
    k = len(names)
    table = (
        np.bincount(judged.labels * k + judged.probabilities.argmax(1), minlength=k * k)
        .reshape(k, k)
        .tolist()
    )
    train = np.bincount(found.labels[found.nodes("train")], minlength=k)
    everywhere = np.bincount(found.predicted, minlength=k)
    rows = []
    for c, name in enumerate(names):
        true, called, right = sum(table[c]), sum(row[c] for row in table), table[c][c]
        shares = [_share(right, true), _share(right, called)]
        rows.append(
            [
                h("th", name, scope="row"),
                h("td", str(train[c])),
                h("td", str(true)),
                *shares,
                h("td", f"{everywhere[c]:,}"),
            ]
        )
    part = judged.name
    heads = [
        "class",
        "training nodes",
        f"{part} nodes",
        "found (recall)",
        "right when said (precision)",
        "predicted in all",
    ]
    note = f"Rows are given labels of the {part} nodes, columns predictions; shades are shares of a row."
    return join(
        listed(heads, rows, f"Each class on the {part} nodes", sortable=True),
        h("h4", "Confusion matrix"),
        h("p", note, class_="small"),
        confusion_table(table, names),
    )


def _share(part: int, whole: int) -> Html:
    if not whole:
        return h("td", DASH, data_v="")
    score = wilson(part, whole)
    return h(
        "td",
        f"{_percent(score.value)}%",
        h("span", _range(score), class_="between"),
        data_v=f"{score.value:.6g}",
    )


def _probabilities(fit: Fit) -> Html:
    part = fit.judged.name
    series, names = (
        {},
        {
            "before": "as trained",
            "after": f"with temperature {number(fit.model.temperature_, 2)}",
            "": "as trained",
        },
    )
    for name, bins in fit.reliability().items():
        points = []
        for made in bins:
            score = wilson(round(made.accuracy * made.count), made.count)
            tip = f"{_percent(score.value)}% of {count(made.count, 'node')} are right ({_range(score)})"
            points.append(
                svg.Point(
                    100 * made.confidence, 100 * score.value, 100 * score.low, 100 * score.high, tip
                )
            )
        series[names[name]] = points
    plot = svg.reliability(
        series,
        label=f"Reliability on the {part} nodes",
        x_label="how sure the model is, %",
        y_label="how many are right, %",
    )
    after, before = fit.quality[part]["ece"].value, fit.judged.ece_before
    if fit.model.calibrate:
        text = (
            f"All logits are divided by one temperature, {number(fit.model.temperature_, 2)}, chosen on the validation nodes; it changes "
            f"no prediction. On the {part} nodes the calibration error goes from {_percent(before)}% to {_percent(after)}%."
        )
    else:
        text = f"Probabilities are as trained (`--no-calibrate`). On the {part} nodes the calibration error is {_percent(before)}%."
    how = (
        "Of the nodes of which the model is 80% sure, 80% should be right: that is the dashed line. Whiskers are 95% intervals; where one "
        "misses the line, confidence is off by more than chance."
    )
    figure = h(
        "div",
        legend(list(series), "line"),
        h("div", h("figure", plot), class_="plots few"),
        class_="figure",
    )
    return join(h("p", prose(text)), h("p", how, class_="small"), figure)


def _uncertain(fit: Fit) -> Html:
    found, names = fit.predictions, _names(fit)
    nodes = fit.uncertain(UNCERTAIN)
    degree = fit.graph.degree
    rows = []
    for i in nodes.tolist():
        first, second = found.probabilities[i].argsort()[::-1][:2]
        cells = (
            _sure(found.probabilities[i][first]),
            h("td", names[second]),
            _sure(found.probabilities[i][second]),
        )
        rows.append(
            [
                h("th", str(found.ids[i]), scope="row"),
                h("td", names[first]),
                *cells,
                h("td", significant(float(degree[i]))),
            ]
        )
    what = "without a label " if any(name is None for name in found.given) else ""
    note = f"The nodes {what}of which the model is least sure. A label for one of these teaches it the most."
    heads = [
        "node",
        "predicted",
        "probability",
        "or else",
        "probability",
        "edges" if fit.graph.weights is None else "weight of its edges",
    ]
    return join(h("p", note), listed(heads, rows, "Most uncertain nodes", sortable=True))


def _disagreements(fit: Fit) -> Html:
    found, names = fit.predictions, _names(fit)
    nodes = fit.disagreements()
    if not len(nodes):
        return h("p", "Nowhere: every given label is the predicted one.")
    rows = []
    for i in nodes[:DISAGREEMENTS].tolist():
        where = PARTS[found.part[i]]
        given = (h("td", str(found.given[i])), _sure(found.probabilities[i][found.labels[i]]))
        said = (h("td", names[found.predicted[i]]), _sure(found.probability[i]))
        rows.append([h("th", str(found.ids[i]), scope="row"), *given, *said, h("td", where)])
    shown = (
        f" The {DISAGREEMENTS} surest are shown; predictions.csv has all."
        if len(nodes) > DISAGREEMENTS
        else ""
    )
    note = (
        f"{count(len(nodes), 'labelled node')} got another prediction than their label. Where the model is sure, look at the label again, "
        f"above all of training nodes: the model has seen it and does not believe it.{shown}"
    )
    heads = ["node", "given label", "its probability", "predicted", "probability", "part"]
    return join(
        h("p", note),
        listed(heads, rows, "Where prediction and given label disagree", sortable=True),
    )


def _map(fit: Fit) -> Html:
    found, names = fit.predictions, _names(fit)
    nodes, places = fit.map()
    numbered = [f"{i} {name}" for i, name in enumerate(names)]
    positions = [[round(float(v), 2) for v in place] for place in places]
    predicted, labels = found.predicted[nodes].tolist(), found.labels[nodes].tolist()
    said = f"{count(len(nodes), 'node')} by predicted class"
    plots = [
        h(
            "figure",
            h("figcaption", "Predicted"),
            svg.scatter(positions, predicted, numbered, label=said),
        )
    ]
    known = [k for k, label in enumerate(labels) if label >= 0]
    if known:
        plot = svg.scatter(
            positions, labels, numbered, label=f"{count(len(known), 'node')} by given label"
        )
        plots.append(
            h("figure", h("figcaption", "Given labels, and the other nodes in grey"), plot)
        )
    sample = (
        f" {MAP_NODES:,} of the {fit.graph.num_nodes:,} nodes are drawn."
        if len(nodes) < fit.graph.num_nodes
        else ""
    )
    note = (
        "Nodes that the network sees alike lie close together (t-SNE of the values before the last layer). Distances between clouds mean "
        f"little. A node amid another class's cloud is worth a look.{sample}"
    )
    return join(
        h("p", note),
        h("div", legend(numbered, "dot"), h("div", plots, class_="plots"), class_="figure"),
    )


def _data(fit: Fit, drawn: bool) -> Html:
    held_out, folds = (len(fit.model.held_out_.nodes), fit.folds) if fit.folds > 1 else (0, 0)
    report = check(fit.graph, drawn=drawn, held_out=held_out, folds=folds)
    order = sorted(report.findings, key=lambda finding: finding.level != "warning")
    findings = [h("li", finding.text, class_=finding.level) for finding in order]
    return join(
        _understood(fit),
        h("h4", "What is odd about the graph"),
        h("ul", findings, class_="findings"),
    )


def _understood(fit: Fit) -> Html | None:
    summary = fit.graph.summary
    if summary is None:
        return None
    rows = [
        [h("th", what, scope="row"), h("td", text, class_="words")] for what, text in summary.rows()
    ]
    return listed(["", "what it was taken for"], rows, "What was understood")


def _training(fit: Fit) -> Html:
    fitted = fit.model.fitted_
    settings, history, best = fitted.settings, fitted.history, fitted.best_epoch
    rows = []
    for name in (name for name in TERMS if name in history and name != "total"):
        weight = 1.0 if name == "ce" else getattr(settings, name)
        first, then = history[name][0], history[name][best]
        cells = (
            significant(weight),
            significant(first),
            significant(then),
            significant(weight * then),
        )
        rows.append([h("th", TERMS[name], scope="row"), *(h("td", text) for text in cells)])
    note = (
        f"{count(fitted.epochs, 'epoch')} in {number(fitted.seconds, 1)} s"
        + (
            f" for all {len(fit.model.networks_)} networks, of which this is the first"
            if len(fit.model.networks_) > 1
            else ""
        )
        + "; the dashed line is the epoch that validation chose. "
        "CE learns the labels; MI makes the predictions of all nodes sure and of every class; TV lets neighbours agree where their "
        "features do; CVG lets two halves of the labels pull the same way."
    )
    heads = ["term", "weight", "at first", f"at epoch {best}", "times its weight"]
    terms = listed(heads, rows, "The terms before they are weighted")
    return join(_race(fit), h("p", note), curve_plots(history, best, fit.graph.name), terms)


def _race(fit: Fit) -> Html | None:
    """How the settings that raced came off."""
    standings, monitor = fit.model.standings_, fit.model.fitted_.settings.monitor
    if len(standings) < 2:
        return None
    rows = []
    shown = "accuracy" if monitor == "loss" else monitor  # the loss has a column anyway
    for name, standing in standings.items():
        score = standing.val_accuracy if monitor == "loss" else standing.val_score
        numbers = (
            f"{_percent(score)}%" if standing.epochs else DASH,
            number(standing.val_loss, 3),
            str(standing.epochs),
        )
        called = h(
            "th",
            name,
            h("span", ENTRANTS[name], class_="between") if name in ENTRANTS else None,
            scope="row",
        )
        rows.append(
            [
                called,
                *(h("td", text) for text in numbers),
                h("td", standing.outcome, class_="words"),
            ]
        )
    note = (
        f"Several settings started side by side; those behind on the validation nodes stopped, and `{fit.model.objective_}` was left: "
        f"{decided_by(monitor)}."
    )
    if fit.model.fitted_.interrupted:
        note = f"Several settings were to race. That was interrupted, and `{fit.model.objective_}` is the best of what there is."
    return join(
        h("p", prose(note)),
        listed(["settings", f"validation {shown}", "loss", "epochs", "outcome"], rows, "The race"),
    )


def _again(fit: Fit, model: str) -> Html:
    settings = dataclasses.asdict(fit.model.fitted_.settings)
    text = "\n".join(
        f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in settings.items()
    )
    versions = f"everynode {__version__}, torch {torch.__version__}, Python {platform.python_version()}, seed {fit.model.fitted_.seed}"
    predict = f"everynode predict {shlex.quote(model)} --nodes NEW.csv --edges LINKS.csv"
    return join(
        h("p", "This page: ", h("code", fit.command, class_="command")),
        h("p", "New nodes, or another graph: ", h("code", predict, class_="command")),
        h("h4", "Settings"),
        h("pre", text, class_="settings"),
        h("p", versions, class_="small"),
    )


def _sure(p: float) -> Html:
    return h("td", f"{_percent(float(p))}%", data_v=f"{p:.6g}")


def _percent(share: float) -> str:
    return number(100 * share)


def _range(score: Score) -> str:
    return interval(100 * score.low, 100 * score.high)
