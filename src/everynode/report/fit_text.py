"""The result of ``everynode fit`` as text for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everynode.evaluation.baselines import BY_CLASS
from everynode.evaluation.metrics import LOSSES
from everynode.report.text import CANDIDATES, count, decided_by
from everynode.selection.leaderboard import Leaderboard


def fit_lines(summary: dict[str, Any], folder: Path) -> Iterator[str]:
    """Yield the lines that describe a fit.

    Parameters
    ----------
    summary : dict
        The content of fit.json (:meth:`everynode.evaluation.fit_summary.FitSummary.to_dict`).
    folder : Path
        The folder with the results.
    """
    if summary["leaderboard"]:
        yield from portfolio_lines(summary)
        yield from _result_lines(summary, folder)
        return
    monitor, objective = summary["monitor"], summary["objective"]
    seconds = f"{summary['seconds']:.1f} s"
    several = len(summary["candidates"]) > 1
    yield f"{summary['graph']}, {summary['backbone']}, {objective}, seed {summary['seed']}"
    if several:
        meaning = f" ({CANDIDATES[objective]})" if objective in CANDIDATES else ""
        yield f"  chosen       {objective}{meaning}, {decided_by(monitor)}"
        results = ", ".join(_standings(summary))
        yield f"  {'':12} validation {monitor} of the candidates: {results}"
    if summary["networks"] == 1:
        yield f"  epochs       {summary['epochs']} ({seconds}), best {summary['best_epoch']}"
    else:
        best = ", ".join(map(str, summary["best_epochs"]))
        yield f"  networks     {summary['networks']} ({seconds}), best epochs {best}"
    yield from _result_lines(summary, folder, several=several)


def portfolio_lines(summary: dict[str, Any]) -> Iterator[str]:
    """Yield the leaderboard of a portfolio, and what the graph adds."""
    board = Leaderboard.from_list(summary["leaderboard"])
    networks = count(summary["networks"], "network")
    yield (
        f"{summary['graph']}, {summary['effort']} portfolio of {count(len(board), 'candidate')}, "
        f"seed {summary['seed']}"
    )
    yield from (f"  {line}" for line in board.lines())
    members = sum(row.weight > 0 for row in board)
    chosen = f"{count(members, 'member')} with {networks}"
    yield f"  ensemble     {chosen} ({summary['seconds']:.1f} s)"
    if summary["graph_gain"] and summary["graph_gain"]["sentence"]:
        yield f"  {summary['graph_gain']['sentence']}"


def _result_lines(summary: dict[str, Any], folder: Path, *, several: bool = True) -> Iterator[str]:
    """Yield the scores, the alerts, the advice and the files."""
    monitor = summary["monitor"]
    for baseline in summary.get("baselines", ()):
        score = _score(baseline["accuracy"], "% right")
        if monitor in BY_CLASS:
            score = f"balanced accuracy {_score(baseline['balanced_accuracy'])}"
        nodes = count(baseline["nodes"], f"{baseline['part']} node")
        yield f"  baseline     {baseline['name']}: {score} ({nodes})"
    for part, scores in summary["quality"].items():
        nodes = count(scores["nodes"], "node")
        yield f"  {part:12} {_score(scores['accuracy'], '% right')} ({nodes})"
        if monitor not in ("accuracy", *LOSSES):
            yield f"  {'':12} {monitor} {_score(scores[monitor])}"
    yield from alert_lines(summary)
    yield f"  {summary['caution']}"
    if learned := summary.get("learned"):
        yield f"  {learned}"
    stuck = not any(summary["best_epochs"]) and summary["epochs"] > 1
    if stuck and not summary["interrupted"] and not summary["leaderboard"]:
        advice = "" if several else " Leave out --objective to try other candidates."
        yield (
            "  No later epoch was better than the first: these settings do not suit this graph."
            f"{advice}"
        )
    if summary["temperature"] != 1.0:
        part, scores = next(iter(summary["quality"].items()))
        change = (
            f"{scores['ece_before']:.3f} before, {scores['ece'][0]:.3f} after, "
            f"{scores['ece_by_chance']:.3f} by chance"
        )
        yield (
            f"  temperature  {summary['temperature']:.2f} (calibration error on {part}: {change})"
        )
    yield f"  predictions  {folder / 'predictions.csv'}"
    yield f"  page         {folder / 'report.html'}"
    yield f"  model        {folder / 'model'}"


def alert_lines(summary: dict[str, Any]) -> Iterator[str]:
    """Yield the headline and the alerts, each with the flag that helps."""
    yield from (f"  {sentence}" for sentence in summary.get("headline", ()))
    for alert in summary.get("alerts", ()):
        yield f"  {alert['severity'].upper():7} {alert['text']} {alert['advice']}"


def _standings(summary: dict[str, Any]) -> Iterator[str]:
    """Yield the result of each candidate, the winner first, with the loss where scores tie."""
    winner, by_loss = summary["objective"], summary["monitor"] in LOSSES
    standings = dict(sorted(summary["candidates"].items(), key=lambda item: item[0] != winner))
    texts = {}
    for name, standing in standings.items():
        score = standing["val_score"]
        if score is None:
            texts[name] = ""
        else:
            texts[name] = f" {score:.3f}" if by_loss else f" {100 * score:.1f}%"
    for name, text in texts.items():
        tied = text and not by_loss and list(texts.values()).count(text) > 1
        yield f"{name}{text}" + (f" (loss {standings[name]['val_loss']:.3f})" if tied else "")


def _score(score: list[float | None], unit: str = "") -> str:
    """Format a score and its interval in percent."""
    value, low, high = ("none" if x is None else f"{100 * x:.1f}" for x in score)
    return f"{value}{unit}" if low == "none" else f"{value}{unit}, 95% interval {low} to {high}"
