"""Experiments: the cells of a table or figure, each with its runs and the published number.

This module does not import PyTorch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from everynode.datasets.entries import STAND_IN, is_generated, is_present
from everynode.datasets.entries import find as find_graph
from everynode.datasets.files import Root
from everynode.errors import DataError, UsageError
from everynode.experiments.run_spec import Run, Task
from everynode.machine import versions
from everynode.objective_names import remark
from everynode.presets import NoSettings, read_preset
from everynode.settings import Settings

#: The factor that varies within a cell: seeds on one split; folds or random splits; or none.
Over = Literal["seeds", "folds", "splits", "once"]
#: The form of an experiment: a table, a line per row over the columns, bars, or maps of nodes.
View = Literal["table", "lines", "bars", "maps"]
BACKBONES = ("gcn", "gat", "gcnii")
#: The paper's names of the backbones.
NAMES = {"gcn": "GCN", "gat": "GAT", "gcnii": "GCNII"}
#: Changes to settings: names and values.
Changes = tuple[tuple[str, Any], ...]
#: GCNII in ablations whose depth the paper does not state. Its best, 64 layers, would take days.
SHALLOW: dict[str, Changes] = {"gcn": (), "gat": (), "gcnii": (("num_layers", 8),)}
#: The graph that a generated one can replace.
REAL = "ogbn-arxiv"
#: The presets of certain experiments only.
OWN_PRESETS = ("systems",)
#: The file that was called Cornell before 2022.
PAPERS_CORNELL = "cornell-legacy"


@dataclass(frozen=True)
class Cell:
    """One number: settings, run over seeds, folds or splits, and the published value.

    Parameters
    ----------
    row, column, panel : str
        The place in the experiment; ``panel`` names the table or plot if there are several.
    dataset, split : str
        The graph and its split.
    backbone, objective : str
        The model and the objective.
    changes : tuple of (str, value)
        Changes to the settings of the preset.
    per_class : int, optional
        Training nodes per class of a random split.
    task : str
        What its runs do, see :class:`~everynode.experiments.run_spec.Run`.
    metric : str
        The entry of the records that holds the number, with dots for nested entries.
    published : float, optional
        The paper's number, accuracies in percent.
    against : str, optional
        The row of the same panel and column for the paired comparison.
    preset : str
        The preset of its settings, which overrides the experiment's; empty: the experiment's.
    reason : str
        The reason why it is not run; empty: it is.
    mark : str
        How the published number was made, if it is not comparable.
    """

    row: str
    column: str
    dataset: str
    split: str
    backbone: str = Settings.backbone
    objective: str = "ce"
    panel: str = ""
    changes: Changes = ()
    per_class: int | None = None
    task: Task = "train"
    metric: str = "test_accuracy"
    published: float | None = None
    against: str | None = None
    preset: str = ""
    reason: str = ""
    mark: str = ""

    def runs(
        self,
        preset: str,
        over: Over,
        count: int,
        root: Root,
        made_with: Mapping[str, str] | None = None,
    ) -> list[Run]:
        """Return the cell's runs with these versions (None: the installed ones).

        There are none if the graph's files are missing and its digest is not recorded, or if there
        is a reason not to run it.
        """
        if self.reason:
            return []
        try:
            digest = _digest(self.dataset, self.split, root)
        except DataError:
            return []
        settings = Settings.preset(
            self.preset or preset,
            graph=self.dataset,
            split=self.split,
            backbone=self.backbone,
            objective=self.objective,
            **dict(self.changes),
        ).for_objective(self.objective)
        # Without a term, it would repeat the run of cross-entropy.
        no_term = remark(settings, self.objective) == "no term"
        random = self.split == "random"
        first = Run(
            self.dataset,
            digest,
            self.split,
            fold=0,
            seed=0,
            preset=Path(preset).name,
            objective="ce" if no_term else self.objective,
            settings=settings,
            per_class=(self.per_class or 20) if random else None,
            split_seed=0 if random else None,
            task=self.task,
            versions=versions() if made_with is None else dict(made_with),
        )
        repeats: list[dict[str, int]] = [
            {"fold": i}
            if over == "folds"
            else {"seed": i, **({"split_seed": i} if over == "splits" and random else {})}
            for i in range(1 if over == "once" else count)
        ]
        return [replace(first, **repeat) for repeat in repeats]  # type: ignore[arg-type]


@cache
def _digest(dataset: str, split: str, root: Root) -> str:
    return find_graph(dataset).digest(split, root)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or a further experiment about it.

    Parameters
    ----------
    id, title : str
        The name of the command line, and the heading.
    reference : str
        The number in the paper, and the label in its source.
    about : str
        Its content, and caveats for the comparison.
    over : str
        The factor that varies within a cell.
    view : str
        The form: table, lines, bars or maps.
    cells : callable
        Returns the cells.
    count : int
        Default number of seeds, folds or splits.
    x : str
        The title of the columns, for the axis of a figure.
    unit : str
        The unit of the numbers: ``%`` (accuracies), ``ms``, or none.
    digits : int
        Decimals to show.
    in_paper : bool
        Whether it is in the paper. If not, its verdicts do not count for the paper.
    presets : tuple of str, optional
        The presets that can run it; None: any.
    """

    id: str
    title: str
    reference: str
    about: str
    over: Over
    view: View
    cells: Callable[[], Sequence[Cell]]
    count: int = 10
    x: str = ""
    unit: str = "%"
    digits: int = 1
    in_paper: bool = True
    presets: tuple[str, ...] | None = None

    def is_for(self, preset: str) -> bool:
        """Whether the experiment has runs with a preset."""
        return preset not in OWN_PRESETS if self.presets is None else preset in self.presets

    def plan(
        self, preset: str, count: int | None, root: Root, made_with: Mapping[str, str] | None = None
    ) -> tuple[dict[Cell, list[Run]], dict[str, str]]:
        """Plan the runs of every cell.

        Returns
        -------
        plan : dict of Cell to list of Run
            The runs; none where the preset has no settings.
        missing : dict of str to str
            The graphs whose files are missing, and why.
        """
        plan: dict[Cell, list[Run]] = {}
        missing: dict[str, str] = {}
        for cell in self.cells():
            entry = find_graph(cell.dataset)
            if not (root.downloads and not entry.no_download) and not is_present(
                cell.dataset, cell.split, data_dir=root.folder
            ):
                missing[cell.dataset] = f"the files of {cell.dataset} are not in {root.folder}"
            try:
                plan[cell] = (
                    cell.runs(preset, self.over, count or self.count, root, made_with)
                    if self.is_for(preset)
                    else []
                )
            except NoSettings:
                plan[cell] = []
        return plan, missing

    def on_stand_in(self, graph: str) -> Experiment:
        """Return the experiment on a generated graph, without published numbers."""
        if not is_generated(graph):
            raise UsageError(
                "A stand-in is a generated graph, such as generated or generated-1000x5000. "
                f"Got {graph!r}."
            )
        if any(cell.dataset != REAL for cell in self.cells()):
            raise UsageError(
                f"--stand-in is for experiments on {REAL} only, such as arxiv; "
                f"{self.id} uses other graphs."
            )
        split = find_graph(graph).splits[0]
        moved = [
            replace(cell, column=graph, dataset=graph, split=split, published=None)
            for cell in self.cells()
        ]
        name, title = f"{self.id}-stand-in", f"Stand-in for {REAL}"
        return replace(
            self, id=name, title=title, reference=STAND_IN, about=STAND_IN, cells=lambda: moved
        )


def published(*path: str) -> float | None:
    """Return a published number by its place in ``presets/published.toml``; None without one.

    >>> published("semi-supervised", "ENC-GCN", "cora")
    85.3
    """
    entry: Any = read_preset("published")
    for name in path:
        if name not in entry:
            return None
        entry = entry[name]
    return float(entry)


def paper_name(dataset: str) -> str:
    """Return the paper's name of a graph."""
    return "cornell" if dataset == PAPERS_CORNELL else dataset


def method(backbone: str, objective: str) -> str:
    """Return the paper's name of a backbone with an objective.

    >>> method("gcn", "enc"), method("gat", "ce")
    ('ENC-GCN', 'GAT')
    """
    return f"ENC-{NAMES[backbone]}" if objective == "enc" else NAMES[backbone]


def with_and_without(
    table: str, graphs: Sequence[str], split: str, backbones: Sequence[str] = BACKBONES
) -> list[Cell]:
    """Return cells for cross-entropy and ENC with every backbone on every graph."""
    return [
        Cell(
            method(backbone, objective), graph, graph, split, backbone, objective,
            published=published(table, method(backbone, objective), paper_name(graph)),
            against=method(backbone, "ce") if objective == "enc" else None,
        )
        for backbone in backbones
        for objective in ("ce", "enc")
        for graph in graphs
    ]  # fmt: skip


#: The files of ``experiments/paper``, in the order of the paper.
ORDER = (
    "datasets", "semi-supervised", "depth", "homophilic", "heterophilic", "arxiv",
    "labels-per-class", "mi-vs-tv", "halves", "tv-vs-preg", "weights", "run-times", "tsne",
    "readings", "systems", "systems-folds",
)  # fmt: skip


@cache
def experiments() -> dict[str, Experiment]:
    """Return all experiments by id."""
    from importlib import import_module

    return {
        name: import_module(f"everynode.experiments.paper.{name.replace('-', '_')}").EXPERIMENT
        for name in ORDER
    }


def experiments_for(preset: str) -> list[Experiment]:
    """Return the experiments of a preset."""
    return [experiment for experiment in experiments().values() if experiment.is_for(preset)]


def find(name: str) -> Experiment:
    """Return an experiment by its id."""
    from everynode.errors import unknown

    if name not in experiments():
        unknown("experiment", name, [*experiments(), "all", "list"])
    return experiments()[name]


def plan_all(
    preset: str,
    seeds: int | None,
    folds: int | None,
    root: Root,
    made_with: Mapping[str, str] | None = None,
) -> dict[Experiment, dict[Cell, list[Run]]]:
    """Plan every experiment of a preset; None: its own number of seeds, splits or folds."""
    check_counts(seeds, folds)
    return {
        e: e.plan(preset, fitting_count(e, seeds, folds, strict=False), root, made_with)[0]
        for e in experiments_for(preset)
    }


def versions_of(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the versions of most records; the installed ones in case of a tie.

    Versions are part of a run's identity, since another torch may give another result. Records
    of any version can be read.
    """
    counts = Counter(
        json.dumps(record["versions"], sort_keys=True) for record in records if "versions" in record
    )
    here = json.dumps(versions(), sort_keys=True)
    most: dict[str, str] = json.loads(
        max(counts, key=lambda text: (counts[text], text == here), default=here)
    )
    return most


def check_counts(seeds: int | None, folds: int | None) -> None:
    """Refuse impossible numbers of seeds and folds."""
    for flag, value in (("seeds", seeds), ("folds", folds)):
        if value is not None and value < 1:
            raise UsageError(f"--{flag} must be at least 1.")
    if folds is not None and folds > 10:
        raise UsageError("--folds can be at most 10: there are ten folds.")


def fitting_count(
    experiment: Experiment, seeds: int | None, folds: int | None, *, strict: bool = True
) -> int | None:
    """Return the number of runs per cell; ``strict`` refuses a flag that does not fit."""
    if strict and experiment.over == "once" and (seeds, folds) != (None, None):
        raise UsageError(f"{experiment.id} does each run once: give neither --seeds nor --folds.")
    if strict and folds is not None and experiment.over != "folds":
        raise UsageError(
            f"{experiment.id} goes over {experiment.over}, not over folds: give --seeds."
        )
    if strict and seeds is not None and experiment.over == "folds":
        raise UsageError(
            f"{experiment.id} goes over the ten folds with one seed each: give --folds."
        )
    return folds if experiment.over == "folds" else seeds
