"""The model card of a fit: data, quality and limits in one Markdown file."""

from __future__ import annotations

from collections.abc import Iterator

from everynode import __version__
from everynode.evaluation.fit_summary import FitSummary
from everynode.evaluation.intervals import Score
from everynode.report.fit_scores import range_text
from everynode.report.text import count, percent

#: The card lists this many slices.
LISTED = 30


def model_card(fit: FitSummary, *, command: str = "") -> str:
    """Return the card. The same fit gives the same text.

    Parameters
    ----------
    fit : FitSummary
        The fitted classifier and its scores.
    command : str
        The command that computed the fit.
    """
    return "\n".join([*_data(fit), *_model(fit, command), *_quality(fit), *_limits(fit), ""])


def _data(fit: FitSummary) -> Iterator[str]:
    graph, names = fit.graph, ", ".join(_cell(name) for name in fit.predictions.classes[:20])
    labeled = sum(name is not None for name in fit.predictions.label_names)
    yield f"# Model card: {_cell(graph.name)}"
    yield ""
    yield "## Data"
    yield ""
    yield (
        f"- {count(graph.num_nodes, 'node')}, {count(graph.num_edges, 'edge')}"
        f"{' (directed)' if graph.directed else ''}, {count(graph.num_features, 'feature')}"
    )
    more = f" and {graph.num_classes - 20} more" if graph.num_classes > 20 else ""
    classes = f"{graph.num_classes:,} {'class' if graph.num_classes == 1 else 'classes'}"
    yield f"- {count(labeled, 'label')} of {classes}: {names}{more}"
    yield f"- digest of the graph: `{graph.digest[:16]}`"
    yield from (f"- {_cell(note)}" for note in fit.notes)
    yield ""
    if graph.summary is not None:
        yield "| read as | |"
        yield "|---|---|"
        yield from (f"| {_cell(name)} | {_cell(text)} |" for name, text in graph.summary.rows())
        yield ""


def _model(fit: FitSummary, command: str) -> Iterator[str]:
    model = fit.delivered or fit.model
    yield "## Model"
    yield ""
    if model.ensemble_ is not None:
        members = model.ensemble_.members
        parts = ", ".join(f"{m.candidate.name} ({percent(m.weight)})" for m in members)
        yield f"- an ensemble of {parts}"
    else:
        settings = model.fitted_.settings
        yield f"- {settings.backbone} with the objective {model.objective_}"
    yield f"- {count(len(model.networks_), 'network')}, temperature {model.temperature_:.2f}"
    yield f"- everynode {__version__}, seed {model.fitted_.seed}"
    yield from [f"- `{command}`"] if command else []
    yield ""


def _quality(fit: FitSummary) -> Iterator[str]:
    yield "## Quality"
    yield ""
    yield from (f"- {_cell(sentence)}" for sentence in fit.headline)
    yield f"- {fit.caution}"
    yield f"- {fit.learned}"
    gain = str(fit.model.graph_gain_ or "")
    yield from [f"- {gain}"] if gain else []
    yield ""
    part = fit.judged
    yield f"| {part.name} nodes | right | 95% interval | number |"
    yield "|---|---|---|---|"
    yield _row("all", fit.judged_accuracy, len(part.nodes))
    yield from (
        _row(f"{one.by} {one.name}{' (below)' * one.low}", one.score, one.nodes)
        for one in fit.slices[:LISTED]
    )
    yield ""
    for one in fit.coverage[:1]:
        share = percent(one.score.value)
        yield f"Prediction sets contain the true class of {share} of the test nodes."
        yield ""


def _limits(fit: FitSummary) -> Iterator[str]:
    yield "## Limits"
    yield ""
    yield from (f"- {_cell(f'{alert.text} {alert.advice}')}" for alert in fit.alerts)
    low = [f"{one.by} {one.name}" for one in fit.slices if one.low]
    if low:
        yield f"- Less accurate than on average: {', '.join(map(_cell, low[:10]))}."
    untaught = [one.name for one in fit.class_counts() if one.true and not one.right]
    if untaught:
        listed = ", ".join(map(_cell, untaught[:10]))
        yield f"- Never found among the {fit.judged.name} nodes: {listed}."
    yield (
        "- The figures hold for nodes like the judged ones, in this graph. For other periods,"
        " places or groups they are unknown."
    )
    yield "- The model has not been checked for fairness beyond the slices above."
    if fit.model.ensemble_ is not None and not all(
        member.candidate.for_new_nodes for member in fit.model.ensemble_.members
    ):
        yield "- Some members cannot predict nodes outside the training graph."


def _row(name: str, score: Score, nodes: int) -> str:
    return f"| {_cell(name)} | {percent(score.value)} | {range_text(score)} | {nodes:,} |"


def _cell(text: object) -> str:
    """Return text for a cell of a Markdown table: one line, without markup.

    >>> _cell("a|b <c>")
    'a\\\\|b &lt;c>'
    """
    line = " ".join(str(text).split())
    return line.replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
