"""The headline of a fit: its accuracy, the majority baseline, and whether to trust them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from everynode.evaluation.alerts import RARE_ADVICE
from everynode.evaluation.baselines import headline_metric, is_uneven
from everynode.evaluation.intervals import Score
from everynode.evaluation.metrics import LOSSES
from everynode.io.summary import counted

if TYPE_CHECKING:
    from everynode.evaluation.fit_summary import FitSummary
    from everynode.evaluation.scored_part import ClassCounts

#: The accuracy on fewer nodes is a count with an interval: a percentage would mislead.
FEW_NODES = 100


def percent(score: Score) -> str:
    """Format a score with its interval, in percent.

    >>> percent(Score(0.9, 0.596, 0.982))
    '90.0% (95% interval 59.6 to 98.2)'
    """
    return (
        f"{100 * score.value:.1f}% (95% interval {100 * score.low:.1f} to {100 * score.high:.1f})"
    )


def warning(fit: FitSummary) -> str:
    """Return the warning about label leakage, with the accuracy without the leaking columns."""
    without = fit.without_leaks
    if without is None:
        return ""
    names = ", ".join(repr(leak.column) for leak in fit.leaks)
    noun = "column" if len(fit.leaks) == 1 else "columns"
    return (
        f"Not to be trusted: label leakage in {names}. Without the {noun}, {percent(without)} are "
        "right."
    )


def weakest_class(fit: FitSummary) -> ClassCounts | None:
    """Return the class with the lowest recall; the larger one in case of a tie."""
    rows = [row for row in fit.class_counts() if row.true]
    return min(rows, key=lambda row: (row.right / row.true, -row.true), default=None)


def rarest_class(fit: FitSummary) -> ClassCounts | None:
    """Return the class with the fewest scored nodes."""
    return min((row for row in fit.class_counts() if row.true), key=lambda r: r.true, default=None)


def has_few_nodes(fit: FitSummary) -> bool:
    """Whether the accuracy rests on few nodes, too few for a percentage."""
    return len(fit.judged.nodes) < FEW_NODES


def _accuracy(fit: FitSummary) -> str:
    """Return the accuracy on the judged nodes in words; with few nodes, as a count."""
    score, nodes = fit.judged_accuracy, len(fit.judged.nodes)
    name = counted(nodes, f"{fit.judged.name} node")
    if not has_few_nodes(fit):
        return f"{percent(score)} of {name} are right"
    between = f"{100 * score.low:.1f} to {100 * score.high:.1f}%"
    return f"{round(score.value * nodes)} of only {name} are right: {between} (95% interval)"


def _more_nodes(fit: FitSummary) -> Iterator[str]:
    """Yield the accuracy on the validation nodes if the test nodes are few and these are more."""
    part = fit.parts.get("validation")
    if part is None or not has_few_nodes(fit) or len(part.nodes) <= len(fit.judged.nodes):
        return
    labels = "out-of-fold labels" if fit.folds > 1 else "validation labels"
    yield (
        f"Of {len(part.nodes):,} {labels}, {percent(fit.quality[part.name]['accuracy'])} are "
        "right. The model was chosen on these labels, so this figure may be too good."
    )


def headline(fit: FitSummary) -> tuple[str, ...]:
    """Return the sentences of the headline.

    Label leakage comes first, then the accuracy and the majority baseline. On few test nodes,
    it is a count and an interval, and the accuracy on the validation nodes follows. For uneven
    classes, the balanced accuracy and the recall of the rarest class come last. They come before
    the accuracy if the user chose a metric of the classes.
    """
    base = fit.baselines[0]
    among = "With them" if len(fit.leaks) > 1 else "With it"
    lead = f"{among}, " if fit.leaks else ""
    sentences = [warning(fit)] if fit.leaks else []
    accuracy = (
        f"{_accuracy(fit)}. The baseline, {base.name}, is right for "
        f"{100 * base.accuracy.value:.1f}%."
    )
    if headline_metric(fit) == "balanced_accuracy":
        first, *rest = _by_class(fit)
        sentences += [f"{lead}{first[0].lower() if lead else first[0]}{first[1:]}", *rest, accuracy]
        return (*sentences, *_more_nodes(fit))
    return (*sentences, f"{lead}{accuracy}", *_more_nodes(fit), *_uneven(fit))


def _by_class(fit: FitSummary) -> Iterator[str]:
    """Yield the balanced accuracy beside that of guessing, and the recall of the rarest class."""
    part, rare = fit.judged, rarest_class(fit)
    guessing = fit.baselines[0].balanced_accuracy.value
    yield (
        f"The balanced accuracy is {percent(fit.quality[part.name]['balanced_accuracy'])} on "
        f"{counted(len(part.nodes), f'{part.name} node')}. Guessing has {100 * guessing:.1f}%."
    )
    if rare is not None:
        yield f"Of {counted(rare.true, 'node')} of class {rare.name}, {rare.right} are found."


def _uneven(fit: FitSummary) -> Iterator[str]:
    """Yield the recall of the rarest class if the classes are uneven."""
    rare = rarest_class(fit)
    if not is_uneven(fit) or rare is None:
        return
    balanced = percent(fit.quality[fit.judged.name]["balanced_accuracy"])
    text = (
        f"The classes are uneven: {rare.right} of {counted(rare.true, 'node')} of class "
        f"{rare.name} are found, and the balanced accuracy is {balanced}."
    )
    told = fit.leaks or any(alert.advice == RARE_ADVICE for alert in fit.alerts)
    if not told and fit.model.fitted_.settings.monitor in ("accuracy", *LOSSES):
        text += " If this class matters, try --monitor balanced_accuracy."
    yield text
