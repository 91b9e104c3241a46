"""The picture of a tuning study as one SVG file: its trials with the best so far, and how much each parameter mattered."""

from __future__ import annotations

from collections.abc import Mapping

from optuna.trial import TrialState

from everynode.report.html import Html, h
from everynode.report.svg import Axis, ticks
from everynode.report.text import significant
from everynode.selection.study_storage import Trials

#: The file stands alone, so it brings its style; Okabe and Ito's colours, which the colour-blind can tell apart.
STYLE = """
svg { color-scheme: light dark; background: light-dark(#fff, #14161a); font: 12px system-ui, sans-serif }
text { fill: light-dark(#1d2126, #e6e8eb) }
.quiet { fill: light-dark(#5c646e, #9aa3ad) }
.grid { stroke: light-dark(#e3e1dc, #2e333b); fill: none }
.best { stroke: light-dark(#d55e00, #f08a4b); fill: none; stroke-width: 2 }
.complete, .bar { fill: light-dark(#0072b2, #56a8e0) }
.pruned { stroke: light-dark(#5c646e, #9aa3ad); fill: none }
"""
WIDTH, LEFT, RIGHT, TOP, PLOT = 640, 120, 24, 56, 220
ROW = 20


def figure(journal: Trials, importance: Mapping[str, float]) -> str:
    """The whole file."""
    study = journal.study
    bars = sorted(importance.items(), key=lambda item: -item[1])
    height = TOP + PLOT + 60 + (36 + ROW * len(bars) if bars else 0)
    title = f"{study.dataset}, {study.backbone}, {study.objective}, split {study.split}"
    heading = h("text", title, x=16, y=24, font_size=15, font_weight=600)
    content = (heading, _trials(journal), _bars(bars, TOP + PLOT + 72) if bars else None)
    named = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria_label": title}
    svg = h(
        "svg",
        h("style", Html(STYLE)),
        *content,
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        **named,
    )
    return f"{svg}\n"


def _trials(journal: Trials) -> Html:
    """Every trial's validation accuracy in percent (of one given up: over the runs that it had), and the best complete one so far."""
    ended = sorted(journal.ended(), key=lambda trial: trial.number)
    shown = [
        (place, 100 * trial.value, trial)
        for place, trial in enumerate(ended, 1)
        if trial.value is not None
    ]
    values = sorted(value for _, value, _ in shown)
    # The worst quarter would press everything else together: it lies on the floor.
    steps = ticks(values[len(values) // 4], values[-1])
    x, y = (
        Axis(1, max(len(ended), 2), LEFT, WIDTH - RIGHT),
        Axis(steps[0], steps[-1], TOP + PLOT, TOP),
    )
    marks: list[Html] = []
    line, best = "", -1.0
    for place, value, trial in shown:
        at = {"cx": f"{x(place):.1f}", "cy": f"{y(max(value, steps[0])):.1f}"}
        pruned = trial.state == TrialState.PRUNED
        said = h("title", f"trial {trial.number}: {value:.2f} %{', given up' if pruned else ''}")
        marks.append(
            h("g", said, h("circle", r=3, class_="pruned" if pruned else "complete", **at))
        )
        if not pruned and value > best:
            line += f"H{at['cx']}V{at['cy']}" if line else f"M{at['cx']} {at['cy']}"
            best = value
    grid = "".join(f"M{LEFT} {y(step):.1f}H{WIDTH - RIGHT}" for step in steps)
    numbers = [
        h(
            "text",
            significant(step, 4),
            x=LEFT - 8,
            y=f"{y(step) + 4:.1f}",
            text_anchor="end",
            class_="quiet",
        )
        for step in steps
    ]
    whole = [
        step
        for step in ticks(1, max(len(ended), 2))
        if step.is_integer() and 1 <= step <= len(ended)
    ]
    below = [
        h(
            "text",
            f"{step:.0f}",
            x=f"{x(step):.1f}",
            y=TOP + PLOT + 18,
            text_anchor="middle",
            class_="quiet",
        )
        for step in whole
    ]
    names = [
        h(
            "text",
            "mean validation accuracy, %: complete trials (full), given up early (hollow), best so far (line)",
            x=16,
            y=44,
            class_="quiet",
        ),
        h(
            "text",
            "trial",
            x=(LEFT + WIDTH - RIGHT) // 2,
            y=TOP + PLOT + 36,
            text_anchor="middle",
            class_="quiet",
        ),
    ]
    drawn = h("path", d=f"{line}H{WIDTH - RIGHT}", class_="best") if line else None
    return h("g", h("path", d=grid, class_="grid"), numbers, below, names, marks, drawn)


def _bars(importance: list[tuple[str, float]], top: int) -> Html:
    """How much each parameter mattered, the most important first."""
    x = Axis(0, max(weight for _, weight in importance) or 1.0, LEFT, WIDTH - RIGHT - 40)
    rows = [h("text", "importance", x=16, y=top, class_="quiet")]
    for i, (name, weight) in enumerate(importance):
        y = top + 10 + ROW * i
        rows += [
            h("text", name, x=LEFT - 8, y=y + 12, text_anchor="end"),
            h(
                "rect",
                x=LEFT,
                y=y + 2,
                width=f"{x(weight) - LEFT:.1f}",
                height=ROW - 6,
                class_="bar",
            ),
            h("text", f"{weight:.2f}", x=f"{x(weight) + 6:.1f}", y=y + 12, class_="quiet"),
        ]
    return h("g", rows)
