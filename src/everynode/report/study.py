"""The figure of a tuning study as one SVG file: its trials, and the importance of each setting."""

from __future__ import annotations

from collections.abc import Mapping

from optuna.trial import TrialState

from everynode.evaluation.metrics import LOSSES
from everynode.report.axes import Axis, ticks
from everynode.report.html import Html, h
from everynode.report.text import significant
from everynode.selection.study_storage import Trials

#: The file stands alone, so it brings its style. Okabe and Ito's colors suit the color-blind.
STYLE = """
svg { color-scheme: light dark; background: light-dark(#fff, #14161a);
  font: 12px system-ui, sans-serif }
text { fill: light-dark(#1d2126, #e6e8eb) }
.quiet { fill: light-dark(#5c646e, #9aa3ad) }
.grid { stroke: light-dark(#e3e1dc, #2e333b); fill: none }
.best { stroke: light-dark(#d55e00, #f08a4b); fill: none; stroke-width: 2 }
.complete, .bar { fill: light-dark(#0072b2, #56a8e0) }
.pruned { stroke: light-dark(#5c646e, #9aa3ad); fill: none }
"""
WIDTH, LEFT, RIGHT, TOP, PLOT = 640, 120, 24, 56, 220
ROW = 20
CAPTION = "mean {}, %: complete trials (full), pruned trials (hollow), best so far (line)"


def figure(journal: Trials, importance: Mapping[str, float]) -> str:
    """Return the SVG file of a study."""
    study = journal.study
    bars = sorted(importance.items(), key=lambda item: -item[1])
    height = TOP + PLOT + 60 + (36 + ROW * len(bars) if bars else 0)
    title = f"{study.dataset}, {study.backbone}, {study.objective}, split {study.split}"
    svg = h(
        "svg",
        h("style", Html(STYLE)),
        h("text", title, x=16, y=24, font_size=15, font_weight=600),
        _trials(journal),
        _bars(bars, TOP + PLOT + 72) if bars else None,
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=title,
    )
    return f"{svg}\n"


def _quiet(text: str, x: float | str, y: float | str, anchor: str | None = None) -> Html:
    return h("text", text, x=x, y=y, text_anchor=anchor, class_="quiet")


def _quantity(monitor: str) -> str:
    """Return the quantity that trials are ranked by, in words."""
    words = monitor.replace("_", " ")
    return f"exp(-validation {words})" if monitor in LOSSES else f"validation {words}"


def _trials(journal: Trials) -> Html:
    """Draw the monitored metric of every trial, and the best complete one so far.

    The value of a pruned trial is the mean over the runs that it had.
    """
    ended = sorted(journal.ended(), key=lambda trial: trial.number)
    shown = [
        (place, 100 * trial.value, trial)
        for place, trial in enumerate(ended, 1)
        if trial.value is not None
    ]
    values = sorted(value for _, value, _ in shown)
    # The worst quarter would compress everything else, so it lies on the floor.
    steps = ticks(values[len(values) // 4], values[-1])
    last = max(len(ended), 2)
    x, y = Axis(1, last, LEFT, WIDTH - RIGHT), Axis(steps[0], steps[-1], TOP + PLOT, TOP)
    marks: list[Html] = []
    line, best = "", -1.0
    for place, value, trial in shown:
        at = {"cx": f"{x(place):.1f}", "cy": f"{y(max(value, steps[0])):.1f}"}
        pruned = trial.state == TrialState.PRUNED
        tip = h("title", f"trial {trial.number}: {value:.2f} %{', pruned' if pruned else ''}")
        marks.append(h("g", tip, h("circle", r=3, class_="pruned" if pruned else "complete", **at)))
        if not pruned and value > best:
            line += f"H{at['cx']}V{at['cy']}" if line else f"M{at['cx']} {at['cy']}"
            best = value
    grid = "".join(f"M{LEFT} {y(step):.1f}H{WIDTH - RIGHT}" for step in steps)
    numbers = [_quiet(significant(v, 4), LEFT - 8, f"{y(v) + 4:.1f}", "end") for v in steps]
    whole = [step for step in ticks(1, last) if step.is_integer() and 1 <= step <= len(ended)]
    below = [_quiet(f"{v:.0f}", f"{x(v):.1f}", TOP + PLOT + 18, "middle") for v in whole]
    names = [
        _quiet(CAPTION.format(_quantity(journal.study.base.monitor)), 16, 44),
        _quiet("trial", (LEFT + WIDTH - RIGHT) // 2, TOP + PLOT + 36, "middle"),
    ]
    drawn = h("path", d=f"{line}H{WIDTH - RIGHT}", class_="best") if line else None
    return h("g", h("path", d=grid, class_="grid"), numbers, below, names, marks, drawn)


def _bars(importance: list[tuple[str, float]], top: int) -> Html:
    """Draw the importance of each setting, the most important first."""
    x = Axis(0, max(weight for _, weight in importance) or 1.0, LEFT, WIDTH - RIGHT - 40)
    rows = [_quiet("importance", 16, top)]
    for i, (name, weight) in enumerate(importance):
        y = top + 10 + ROW * i
        width = f"{x(weight) - LEFT:.1f}"
        rows += [
            h("text", name, x=LEFT - 8, y=y + 12, text_anchor="end"),
            h("rect", x=LEFT, y=y + 2, width=width, height=ROW - 6, class_="bar"),
            _quiet(f"{weight:.2f}", f"{x(weight) + 6:.1f}", y + 12),
        ]
    return h("g", rows)
