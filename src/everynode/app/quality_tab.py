"""The quality of every round, what changed, and what to take away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from everynode.app.parts import percent, table
from everynode.progress import duration

if TYPE_CHECKING:
    from everynode.app.page import Page
    from everynode.app.round import Comparison, Round


class QualityTab:
    """The rounds with their quality, and the exports.

    Parameters
    ----------
    page : Page
        The page.

    Attributes
    ----------
    page : Page
        The page.
    """

    def __init__(self, page: Page):
        self.page = page
        self._box: Any = None
        self._key: Any = None

    def draw(self) -> None:
        """Draw the tab."""
        self._box, self._key = ui.element("div").classes("screen"), None

    def refresh(self) -> None:
        """Draw the rounds."""
        work = self.page.work
        key = len(work.rounds), work.trainer.running
        if self._box is None or key == self._key:
            return
        self._key = key
        self._box.clear()
        with self._box:
            if work.round is None:
                ui.label("No training yet").classes("title")
                ui.label("Train in the tab Data; the quality appears here.").classes("quiet")
                return
            self._head(work.round)
            if comparison := work.comparison():
                self._compare(comparison)
            self._export(work.round)
            self._rounds()

    def _head(self, latest: Round) -> None:
        facts = latest.facts
        with ui.element("div").classes("card"):
            ui.label("How good it is").classes("over")
            if not facts.judged:
                ui.label("Not measured: this model keeps no held-out labels.").classes("quiet")
                return
            value, low, high = facts.accuracy
            ui.label(f"{facts.right:,} of {facts.judged:,} right").classes("number").props(
                "data-do=right"
            )
            ui.label(
                f"{percent(value)} of the held-out labels, 95 % interval {100 * low:.0f} to "
                f"{100 * high:.0f} %. Each label was predicted by networks that had not seen it. "
                "The labels that people chose to give are not a random sample: expect other "
                "shares on all nodes."
            ).classes("quiet wrap")

    def _compare(self, one: Comparison) -> None:
        with ui.element("div").classes("card"):
            ui.label("Before and after the last retraining").classes("over")
            ui.label(f"{one.before:,} before, {one.after:,} after").classes("number").props(
                "data-do=compare"
            )
            ui.label(
                f"Right among the same {one.nodes:,} labels, which both models had not seen when "
                "they predicted them."
            ).classes("quiet")
            if one.new:
                ui.label(
                    f"The model before had predicted {one.new_right:,} of the {one.new:,} new "
                    "labels right. These were mostly hard nodes."
                ).classes("quiet")

    def _export(self, latest: Round) -> None:
        ready = (latest.folder / "predictions.csv").exists()
        with ui.element("div").classes("card"):
            ui.label("Take away").classes("over")
            with ui.element("div").classes("row"):
                links = [("Labels (CSV)", "/labels.csv", "labels")]
                if ready:
                    at = f"/round/{latest.number}"
                    links += [
                        ("Predictions (CSV)", f"{at}/predictions.csv", "predictions"),
                        ("Model (ZIP)", f"{at}/model.zip", "model"),
                    ]
                for text, address, name in links:
                    ui.link(text, address).props(f"download data-do=export-{name}")
                if (latest.folder / "report.html").exists():
                    ui.link("Report", f"/round/{latest.number}/report.html", new_tab=True).props(
                        "data-do=report"
                    )
            ui.label(
                "`everynode fit --labels labels.csv` takes the labels; `everynode predict` takes "
                "the unpacked model. The report is one file to send around."
            ).classes("quiet small")

    def _rounds(self) -> None:
        rows = []
        for one in reversed(self.page.work.rounds):
            facts = one.facts
            rows.append((
                str(one.number), facts.how + (", stopped" if facts.interrupted else ""),
                f"{facts.labels:,}", f"{facts.answered:,}",
                f"{facts.right:,} of {facts.judged:,}" if facts.judged else "",
                duration(facts.seconds),
            ))  # fmt: skip
        with ui.element("div").classes("card"):
            ui.label("All rounds").classes("over")
            heads = ("round", "trained", "labels", "answers", "held-out right", "time")
            table(heads, rows)
