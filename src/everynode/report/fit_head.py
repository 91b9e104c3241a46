"""The first screen of the page of a fit: how many are right, alerts, baselines, weakest class."""

from __future__ import annotations

import re

from everynode.evaluation.baselines import headline_metric
from everynode.evaluation.fit_summary import FitSummary
from everynode.evaluation.headline import weakest_class
from everynode.evaluation.intervals import Score
from everynode.report.fit_scores import range_text
from everynode.report.html import Html, facts, h, join, small, table
from everynode.report.text import number, percent

#: Nodes with at least this probability count as sure.
SURE = 0.9
#: The name of the measured model in the table of the baselines.
OWN = "this model"
#: A flag, and its value if that is quoted or the name of a choice.
FLAG = re.compile(r"(--[a-z][a-z-]*(?: '[^']*'| balanced\w*| \d+[smh]|(?<=weight) \S+)?)")


def first_screen(fit: FitSummary) -> Html:
    """Build the head of the page, for readers who want the answer; details follow below."""
    first, *more = fit.headline
    leaks, rest = bool(fit.leaks), [h("p", _with_flags(sentence)) for sentence in more]
    gain = str(fit.model.graph_gain_ or "")
    stopped = "Training was interrupted. This page shows the best epoch so far."
    return h(
        "section",
        h("h1", fit.graph.name),
        h("p", first, class_="lead distrust" if leaks else "lead"),
        [alerts(fit), rest] if leaks else [rest, alerts(fit)],
        h("p", fit.caution, " ", fit.learned),
        hints(fit),
        h("p", stopped, class_="diagnostic") if fit.model.fitted_.interrupted else None,
        _facts(fit),
        h("div", baseline_table(fit), h("p", gain) if gain else None, class_="beside"),
        class_="head",
    )


def alerts(fit: FitSummary) -> Html | None:
    """Build the list of errors and warnings, the worst first. Repeated advice appears once."""
    found = [alert for alert in fit.alerts if alert.severity != "hint"]
    if not found:
        return None
    items, last = [], {alert.advice: alert for alert in found}
    for alert in found:
        advice = h("span", _with_flags(alert.advice)) if last[alert.advice] is alert else None
        items.append(h("li", h("b", alert.text), " ", advice, class_=alert.severity))
    return h("ul", items, class_="alerts", role="alert", aria_label="Alerts")


def hints(fit: FitSummary) -> list[Html]:
    """Build a paragraph for each hint."""
    found = [alert for alert in fit.alerts if alert.severity == "hint"]
    return [h("p", "Hint: ", one.text, " ", _with_flags(one.advice)) for one in found]


def _with_flags(text: str) -> Html:
    """Build text with flags and their values as code."""
    parts = FLAG.split(text)  # text, flag, text, ...
    return join([h("code", part) if i % 2 else part for i, part in enumerate(parts)])


def _facts(fit: FitSummary) -> Html:
    """Build the numbers of the first screen."""
    found, weakest = fit.predictions, weakest_class(fit)
    unlabeled = [i for i, name in enumerate(found.label_names) if name is None]
    sure = int((found.probability[unlabeled] >= SURE).sum())
    numbers = {
        "nodes": f"{fit.graph.num_nodes:,}",
        "edges": f"{fit.graph.num_edges:,}",
        "labeled": f"{fit.graph.num_nodes - len(unlabeled):,}",
        "predicted, not labeled": f"{len(unlabeled):,}",
    }
    if unlabeled:
        numbers[f"at least {number(100 * SURE, 0)}% sure"] = percent(sure / len(unlabeled))
    if weakest is not None and weakest.right < weakest.true:
        share = f"{weakest.name} ({weakest.right} of {weakest.true} found)"
        numbers["weakest class"] = share
    return facts(numbers.items())


def baseline_table(fit: FitSummary) -> Html:
    """Build the table of the baselines, with this model on the same nodes."""
    rows, metric = [], headline_metric(fit)
    for part in dict.fromkeys(baseline.part for baseline in fit.baselines):
        rows += [
            _row(baseline.name, getattr(baseline, metric), baseline.nodes, part)
            for baseline in fit.baselines
            if baseline.part == part
        ]
        if part in fit.parts:
            nodes = len(fit.parts[part].nodes)
            rows.append(_row(OWN, fit.quality[part][metric], nodes, part))
        is_judged = part == fit.judged.name
        if is_judged and fit.without_leaks is not None and metric == "accuracy":
            name = f"without the leaking {'column' if len(fit.leaks) == 1 else 'columns'}"
            rows.append(_row(name, fit.without_leaks, len(fit.judged.nodes), part))
    heads = [
        "",
        "right" if metric == "accuracy" else "balanced accuracy",
        h("th", class_="visual"),
        "of nodes",
    ]
    note = "Columns and links are scored on labels that each network did not train on."
    several = len(fit.baselines) > 1
    built = table(heads, rows, "Against the baselines")
    return h("div", built, small(note) if several else None)


def _row(name: str, score: Score, nodes: int, part: str) -> list[Html]:
    own = "own" if name == OWN else None
    between = h("span", range_text(score), class_="between")
    bar = h("span", style=f"width:{100 * score.value:.0f}%")
    return [
        h("th", name, scope="row", class_=own),
        h("td", h("b", percent(score.value)), between),
        h(
            "td",
            h("span", bar, class_=f"meter {own or ''}".strip(), aria_hidden="true"),
            class_="visual",
        ),
        h("td", f"{nodes:,} {part}"),
    ]
