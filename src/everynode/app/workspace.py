"""One open project: its graph, its rounds and its training, shared by all browsers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everynode.app.graph_view import GraphView
from everynode.app.journal import Entry
from everynode.app.project import Project, Source
from everynode.app.reasons import Reasons
from everynode.app.round import Comparison, Round
from everynode.app.trainer import Trainer
from everynode.app.worker import suggested
from everynode.errors import EverynodeError

if TYPE_CHECKING:
    from everynode.explanations.explanation import Explanation


class Workspace:
    """The state that all browsers share.

    Parameters
    ----------
    project : Project
        The project.
    files : sequence of Path
        The files beside the user, to choose from.

    Attributes
    ----------
    project, files
        The arguments.
    view : GraphView or None
        The graph; None before it could be read.
    error : str
        Why the files cannot be read.
    tables : dict of str to list of str
        The columns of ``nodes`` and ``edges``, also if the graph cannot be built.
    reading : bool
        Whether the files are being read.
    trainer : Trainer
        The training.
    rounds : list of Round
        The finished rounds, the oldest first.
    reasons : dict of int to str
        The nodes to label, the first first, each with the reason.
    version : int
        It grows with every change of the graph, the rounds or the answers.
    """

    def __init__(self, project: Project, files: Sequence[Path] = ()):
        self.project, self.files = project, list(files)
        self.view: GraphView | None = None
        self.error = ""
        self.tables: dict[str, list[str]] = {"nodes": [], "edges": []}
        self.reading = bool(project.source.nodes or project.source.edges)
        self.trainer = Trainer(self._on_event)
        self.rounds = [Round.load(folder) for folder in project.rounds]
        self.version = 0
        self._reasons = Reasons()
        self.reasons = self.rounds[-1].queue() if self.rounds else {}

    # ------------------------------------------------------------------ files

    async def read(self, source: Source | None = None) -> None:
        """Read the files; with a ``source``, after a change of the roles."""
        if source is not None:
            self.project.save(source)
        source = self.project.source
        if source.nodes is None and source.edges is None:
            return
        self.reading, self.error = True, ""
        self.version += 1
        loop = asyncio.get_running_loop()
        try:
            self.tables = await loop.run_in_executor(None, read_columns, source)
            self.view = await loop.run_in_executor(None, GraphView.read, source)
            if not self.rounds:
                queue = await loop.run_in_executor(None, suggested, self.view.graph)
                self.reasons = dict(queue)
        except EverynodeError as error:
            self.view, self.error = None, str(error)
        finally:
            self.reading = False
            self.version += 1

    # ------------------------------------------------------------------ training

    @property
    def round(self) -> Round | None:
        """The latest round; None before the first."""
        return self.rounds[-1] if self.rounds else None

    @property
    def classes(self) -> list[str]:
        """All classes: those of the files, of people, and of the latest round."""
        view, latest = self.view, self.round
        known = list(view.classes) if view else []
        known += [] if latest is None else list(latest.facts.classes)
        return self.project.answers.all_classes(list(dict.fromkeys(known)))

    def labels(self) -> list[int]:
        """Return the label of each node as an index of ``classes``; answers replace the files."""
        assert self.view is not None
        labels: list[int] = self.view.labels.tolist()
        code = {name: place for place, name in enumerate(self.classes)}
        for node, label in self.project.answers.labels.items():
            if node in self.view.place:
                labels[self.view.place[node]] = code[label]
        return labels

    def untrained(self) -> int:
        """Return the number of answers that the latest round did not learn from."""
        latest = self.round
        if latest is None:
            return len(self.project.answers.labels)
        file = latest.folder / "answers.csv"
        learned = set(file.read_text(encoding="utf-8").splitlines()[1:]) if file.exists() else set()
        return len(set(self.project.labels_csv().splitlines()[1:]) - learned)

    async def train(self, effort: str = "quick") -> None:
        """Train a round on the labels of the files and the answers."""
        if self.view is None or self.trainer.running:
            return
        latest, answers = self.round, self.project.answers
        columns = self.view.id_column, self.view.label_column
        files = {"answers.csv": self.project.labels_csv()}
        if answers.labels and self.project.source.labels is None:
            files["labels.csv"] = answers.to_csv(*columns)
        elif answers.labels:
            files["labels.csv"] = self._all_labels(*columns)
        await self._start(files, {
            "effort": effort, "model": "", "before": str(latest.folder) if latest else "",
            "answered": len(answers.labels),
        })  # fmt: skip

    async def show_model(self) -> None:
        """Show the model that the project starts with, without a training."""
        if self.view is not None and self.project.model and not self.rounds:
            choices = {"effort": "quick", "model": self.project.model, "before": "", "answered": 0}
            await self._start({}, choices)

    async def _start(self, files: dict[str, str], choices: dict[str, Any]) -> None:
        """Start a round."""
        request = {"source": asdict(self.project.source), **choices}
        files["request.json"] = json.dumps(request, indent=1)
        await self.trainer.start(self.project.new_round(files))
        self.version += 1

    def _all_labels(self, id_column: str, label_column: str) -> str:
        """Return every label as a table: those of the files, then the answers."""
        from everynode.app.answers import Answers

        assert self.view is not None
        classes = self.classes
        pairs = zip(self.view.ids, self.labels(), strict=True)
        every = (Entry("label", "all", node, classes[code]) for node, code in pairs if code >= 0)
        return Answers(every).to_csv(id_column, label_column)

    def _on_event(self, kind: str, folder: Path) -> None:
        """Take over a new round."""
        self.version += 1
        if kind == "ready":
            self.rounds.append(Round.load(folder))
        if self.rounds:
            self.reasons = self.rounds[-1].queue()

    async def explain(self, node: int) -> Explanation | None:
        """Explain the prediction of a node; None before the first model is saved."""
        latest = self.round
        if latest is None or not (latest.folder / "model" / "model.json").exists():
            return None
        loop = asyncio.get_running_loop()
        source = self.project.source
        return await loop.run_in_executor(None, self._reasons.explain, source, latest, node)

    def comparison(self) -> Comparison | None:
        """Compare the two latest rounds; None before the second."""
        return Comparison.of(*self.rounds[-2:]) if len(self.rounds) > 1 else None

    # ------------------------------------------------------------------ answers

    def answer(self, entry: Entry) -> Entry:
        """Save an answer; when this returns, it is on the disk."""
        entry = self.project.answer(entry)
        self.version += 1
        return entry

    def queue(self, person: str, at_most: int = 50) -> list[int]:
        """Return the nodes that a person should label next.

        Nodes with an answer, and those that this person skipped, are left out.
        """
        if self.view is None:
            return []
        answers, view = self.project.answers, self.view
        taken = {view.place.get(node) for node in {*answers.labels, *answers.conflicts}}
        taken |= {view.place.get(node) for node in answers.skipped(person)}
        return [node for node in self.reasons if node not in taken][:at_most]


def read_columns(source: Source) -> dict[str, list[str]]:
    """Return the names of the columns of both tables; none of a graph file or a bad one."""
    from everynode.io.graph_files import is_graph
    from everynode.io.summary import Notes
    from everynode.io.table_files import open_table

    columns: dict[str, list[str]] = {"nodes": [], "edges": []}
    for name, file in (("nodes", source.nodes), ("edges", source.edges)):
        if file is None or is_graph(file):
            continue
        try:
            columns[name] = list(open_table(file, Notes(), expected=set()).columns)
        except EverynodeError:
            continue  # the reader of the graph says why
    return columns
