"""The page of a fit: one self-contained HTML file on the quality of its predictions."""

from __future__ import annotations

import dataclasses
import platform
import shlex

import torch

from everynode import __version__
from everynode.datasets import check
from everynode.evaluation.fit_summary import FitSummary
from everynode.report.fit_head import first_screen
from everynode.report.fit_models import models
from everynode.report.fit_nodes import disagreements, node_map
from everynode.report.fit_reasons import suspicious, uncertain_nodes
from everynode.report.fit_scores import classes, probabilities, scores
from everynode.report.fit_slices import coverage, slices
from everynode.report.fit_suggestions import label_next
from everynode.report.fit_training import training
from everynode.report.html import Html, command, document, h, join, layout, small, table
from everynode.report.text import setting_lines


def page(fit: FitSummary, *, command: str = "", model: str = "model", drawn: bool = False) -> str:
    """Return the page. The same fit gives the same text.

    Parameters
    ----------
    fit : FitSummary
        The fitted classifier and its scores.
    command : str
        The command that computed the fit.
    model : str
        The folder of the model, for the command that predicts.
    drawn : bool
        Whether the split was drawn here and did not come with the data.
    """
    wrong = suspicious(fit)
    ask = label_next(fit, model)
    sections = {
        "uncertain": ("Nodes to look at", uncertain_nodes(fit)),
        **({} if ask is None else {"label-next": ("What to label next", ask)}),
        **({} if wrong is None else {"suspicious": ("Labels that look wrong", wrong)}),
        "quality": ("How good it is", scores(fit)),
        **({"models": ("What was tried", models(fit))} if fit.model.leaderboard_ else {}),
        "classes": ("Class by class", classes(fit)),
        "slices": ("Where it fails", slices(fit)),
        "probabilities": (
            "How reliable the probabilities are",
            join(probabilities(fit), coverage(fit)),
        ),
        "disagreements": ("Where prediction and label disagree", disagreements(fit)),
        "map": ("The nodes on a map", node_map(fit)),
        "data": ("How the files were read", _data(fit, drawn)),
        "training": ("Training", training(fit)),
        "again": ("Run it again", _again(fit, command, model)),
    }
    body = [
        h("section", h("h2", title), content, id=name, class_="experiment")
        for name, (title, content) in sections.items()
    ]
    titles = {name: title for name, (title, _content) in sections.items()}
    return document(f"everynode: {fit.graph.name}", layout("fit", titles, first_screen(fit), body))


def _data(fit: FitSummary, drawn: bool) -> Html:
    """Build the reader's view of the files, and the findings about the graph."""
    held_out, folds = (len(fit.model.held_out_.nodes), fit.folds) if fit.folds > 1 else (0, 0)
    report = check(fit.graph, drawn=drawn, held_out=held_out, folds=folds)
    order = sorted(report.findings, key=lambda finding: finding.level != "warning")
    findings = [h("li", finding.text, class_=finding.level) for finding in order]
    return join(
        _columns(fit), h("h4", "Findings about the graph"), h("ul", findings, class_="findings")
    )


def _columns(fit: FitSummary) -> Html | None:
    summary = fit.graph.summary
    if summary is None:
        return None
    rows = [
        [h("th", name, scope="row"), h("td", text, class_="words")] for name, text in summary.rows()
    ]
    return table(["", "read as"], rows, "How the files were read")


def _again(fit: FitSummary, fit_command: str, model: str) -> Html:
    settings = dataclasses.asdict(fit.model.fitted_.settings)
    versions = (
        f"everynode {__version__}, torch {torch.__version__}, Python {platform.python_version()},"
        f" seed {fit.model.fitted_.seed}"
    )
    predict = f"everynode predict {shlex.quote(model)} --nodes NEW.csv --edges LINKS.csv"
    return join(
        h("p", "This page: ", command(fit_command)),
        h("p", "New nodes, or another graph: ", command(predict)),
        h("h4", "Settings"),
        h("pre", setting_lines(settings.items()), class_="settings"),
        small(versions),
    )
