"""Alerts: findings that limit the trust in a fit, each with the flag that helps."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from everynode.datasets.findings import feature_rows
from everynode.evaluation.baselines import BY_CLASS, majority
from everynode.evaluation.intervals import wilson
from everynode.evaluation.without_columns import feature_positions
from everynode.io.summary import counted

if TYPE_CHECKING:
    from everynode.evaluation.fit_summary import FitSummary

#: The worst first. With an "error", the headline number cannot be trusted; a "hint" costs nothing.
Severity = Literal["error", "warning", "hint"]
#: Labeled nodes without edges are reported from this share upwards.
ISOLATED = 0.2
#: Unmatched edges are reported from this share upwards.
UNMATCHED = 0.5
#: A time limit is reported if more than this share of the candidates was not trained.
UNTRIED = 0.5
#: Drift is reported if a classifier separates labeled and unlabeled nodes with this AUC. The
#: other numbers are the least and the largest number of compared nodes of each kind.
DRIFT_AUC, DRIFT_LEAST, DRIFT_MOST = 0.75, 30, 2000
LEAKS = {
    "determines": "determines the label",
    "nearly": "nearly determines the label",
    "filled": "is filled only in rows that have a label",
}
RARE_ADVICE = (
    "Choose the model for rare classes: --monitor balanced_accuracy --class-weight balanced."
)


class Alert(NamedTuple):
    """One finding about a fit.

    Attributes
    ----------
    severity : {"error", "warning", "hint"}
        With an error, do not trust the scores. A hint names something to try.
    kind : str
        A short name of the finding.
    text : str
        The finding in one sentence.
    advice : str
        The flag of ``everynode fit`` that helps.
    """

    severity: Severity
    kind: str
    text: str
    advice: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return self._asdict()


def find_alerts(fit: FitSummary) -> tuple[Alert, ...]:
    """Return the alerts of a fit, the worst first."""
    alerts = [alert for check in _CHECKS for alert in check(fit)]
    return tuple(sorted(alerts, key=lambda alert: get_args(Severity).index(alert.severity)))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _leaks(fit: FitSummary) -> Iterator[Alert]:
    for leak in fit.leaks:
        advice = (
            f"Leave it out if it is not known before the label: --features 'all,-{leak.column}'."
        )
        text = f"Label leakage: column {leak.column!r} {LEAKS[leak.kind]}."
        yield Alert("error", "leak", text, advice)


def _majority(fit: FitSummary) -> Iterator[Alert]:
    most, common = majority(fit)
    name, part, nodes = fit.predictions.classes[most], fit.judged.name, len(common)
    quality = fit.quality[part]
    if fit.model.fitted_.settings.monitor in BY_CLASS:
        chance = 1 / max(len(np.unique(fit.judged.labels)), 1)
        if quality["balanced_accuracy"].low <= chance:
            value = _percent(quality["balanced_accuracy"].value)
            yield Alert(
                "warning", "majority",
                f"No better than guessing: the balanced accuracy is {value} on "
                f"{counted(nodes, f'{part} node')}, and guessing has {_percent(chance)}.",
                "Label more nodes, or give more columns with --features.",
            )  # fmt: skip
        return
    right = fit.judged.probabilities.argmax(1) == fit.judged.labels
    gained, lost = int((right & ~common).sum()), int((common & ~right).sum())
    # Sign test: among the nodes where the two differ, clearly more than half must be gained.
    if gained + lost and wilson(gained, gained + lost).low > 0.5:
        return
    yield Alert(
        "warning", "majority",
        f"Not clearly better than the majority: {_percent(right.mean())} of "
        f"{counted(nodes, f'{part} node')} are right, and always saying '{name}' is right for "
        f"{_percent(common.mean())}.",
        RARE_ADVICE,
    )  # fmt: skip


def _classes_never_found(fit: FitSummary) -> Iterator[Alert]:
    lost = [row for row in fit.class_counts() if row.true and not row.right]
    if lost:
        each = ", ".join(f"{row.name} (0 of {row.true})" for row in lost[:5])
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        noun = "Class never found" if len(lost) == 1 else "Classes never found"
        part = fit.judged.name
        yield Alert(
            "warning", "class_never_found",
            f"{noun} among the {part} nodes: {each}{more}.", RARE_ADVICE,
        )  # fmt: skip


def _isolated_labels(fit: FitSummary) -> Iterator[Alert]:
    graph = fit.graph
    ends = graph.undirected_edges[0].cpu().numpy().ravel()
    isolated = np.bincount(ends, minlength=graph.num_nodes) == 0
    labeled = graph.labels.cpu().numpy() >= 0
    share = float(isolated[labeled].mean()) if labeled.any() else 0.0
    if share >= ISOLATED:
        number = int(isolated[labeled].sum())
        yield Alert(
            "warning", "isolated_labels",
            f"{number:,} of {counted(int(labeled.sum()), 'labeled node')} have no edge: the "
            "links teach nothing about them.",
            "Check the columns that match nodes and edges: --id, --source, --target.",
        )  # fmt: skip


def _unmatched_edges(fit: FitSummary) -> Iterator[Alert]:
    summary = fit.graph.summary
    if summary is None or summary.unmatched_edges < UNMATCHED * max(summary.edge_rows, 1):
        return
    yield Alert(
        "warning", "unmatched_edges",
        f"{summary.unmatched_edges:,} of {counted(summary.edge_rows, 'edge')} have an end that is "
        "not in the node table.",
        "Name the column of the node ids: --id; or the ends of the edges: --source, --target.",
    )  # fmt: skip


def _out_of_time(fit: FitSummary) -> Iterator[Alert]:
    board = fit.model.leaderboard_
    if board is not None and board.left_out > UNTRIED * len(board):
        yield Alert(
            "warning", "out_of_time",
            f"The time limit left {board.left_out} of {counted(len(board), 'candidate')} "
            "untrained, so a better model may have been missed.",
            "Allow more time: --time-limit 5m.",
        )  # fmt: skip


def _drift(fit: FitSummary) -> Iterator[Alert]:
    """Test for drift with a classifier that separates labeled from unlabeled nodes."""
    labeled = fit.graph.labels.cpu().numpy() >= 0
    if min(labeled.sum(), (~labeled).sum()) < DRIFT_LEAST:
        return
    area, column = _separability(fit, labeled)
    if area < DRIFT_AUC:
        return
    most = f" Column {column!r} differs most." if column else ""
    leave = f" or leave the column out: --features 'all,-{column}'" if column else ""
    yield Alert(
        "warning", "drift",
        "The labeled nodes differ from the unlabeled ones, so fewer of those may be right: "
        f"a classifier tells them apart with an AUC of {area:.2f}.{most}",
        f"Test on labels that were drawn at random (--split),{leave or ' or label more nodes'}.",
    )  # fmt: skip


def _separability(fit: FitSummary, labeled: np.ndarray) -> tuple[float, str]:
    """Return the AUC of labeled against unlabeled nodes, and the most important column."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    graph, rng = fit.graph, np.random.default_rng(0)
    nodes = np.concatenate(
        [rng.permutation(np.flatnonzero(side))[:DRIFT_MOST] for side in (labeled, ~labeled)]
    )
    leaks = feature_positions(graph, {leak.column for leak in fit.leaks})
    keep = np.setdiff1d(np.arange(graph.num_features), leaks)
    if not len(keep):
        return 0.5, ""
    x, y = feature_rows(graph)[nodes][:, keep], labeled[nodes]
    model = make_pipeline(
        MaxAbsScaler(), LogisticRegression(C=0.1, class_weight="balanced", max_iter=200)
    )
    scores = cross_val_predict(model, x, y, cv=3, method="decision_function")
    area = float(roc_auc_score(y, scores))
    if area < DRIFT_AUC or graph.feature_encoder is None:
        return area, ""
    foremost = keep[int(np.abs(model.fit(x, y)[-1].coef_[0]).argmax())]
    columns = (column.name for column in graph.feature_encoder.columns)
    return area, next((n for n in columns if foremost in feature_positions(graph, {n})), "")


def _unused_weight(fit: FitSummary) -> Iterator[Alert]:
    summary = fit.graph.summary
    if summary is not None and summary.unused_weight:
        column = summary.unused_weight
        yield Alert(
            "hint", "unused_weight",
            f"Column {column!r} of the edges holds numbers and is not used.",
            f"If a larger number means a stronger link: --weight {shlex.quote(column)} uses it.",
        )  # fmt: skip


_CHECKS: tuple[Callable[[FitSummary], Iterator[Alert]], ...] = (
    _leaks, _majority, _classes_never_found, _isolated_labels, _unmatched_edges, _drift,
    _out_of_time, _unused_weight,
)  # fmt: skip
