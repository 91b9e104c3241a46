"""What an experiment is: cells of a table or figure, each with its runs and the paper's number. Nothing here needs PyTorch."""

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
from everynode.experiments.run_spec import Run, Task, versions
from everynode.objective_names import remark
from everynode.presets import NoSettings, read_preset
from everynode.settings import Settings

#: What the runs of a cell differ in: seeds on one split; folds (one seed each); random splits (one seed each); nothing.
Over = Literal["seeds", "folds", "splits", "once"]
#: How the cells are shown: rows by columns; a line for every row over the columns; bars; maps of the nodes.
View = Literal["table", "lines", "bars", "maps"]
BACKBONES = ("gcn", "gat", "gcnii")
#: How the paper writes the backbones.
NAMES = {"gcn": "GCN", "gat": "GAT", "gcnii": "GCNII"}
#: Changes to settings: names and values.
Changes = tuple[tuple[str, Any], ...]
#: For ablations in which the paper does not say how deep GCNII is: 64 layers, its best, would take days on a laptop.
SHALLOW: dict[str, Changes] = {"gcn": (), "gat": (), "gcnii": (("num_layers", 8),)}
#: The graph that generated ones may stand in for.
REAL = "ogbn-arxiv"
#: The file that papers before 2022 called Cornell.
PAPERS_CORNELL = "cornell-legacy"


@dataclass(frozen=True)
class Cell:
    """One number: a setting, run over seeds, folds or splits, and what the paper printed for it."""

    row: str
    column: str
    dataset: str
    split: str
    backbone: str = "gcn"
    objective: str = "ce"
    #: The table or plot of the experiment that the cell is in, where there are several.
    panel: str = ""
    #: Changes to the preset's settings.
    changes: Changes = ()
    per_class: int | None = None
    task: Task = "train"
    #: Which entry of the runs' records is the number; dots reach into it.
    metric: str = "test_accuracy"
    #: In the paper's unit (percent for accuracies).
    published: float | None = None
    #: The row, same panel and column, with which this cell is compared, run by run.
    against: str | None = None

    def runs(
        self,
        preset: str,
        over: Over,
        count: int,
        root: Root,
        made_with: Mapping[str, str] | None = None,
    ) -> list[Run]:
        """The cell's runs, ``made_with`` these versions (None: those that are installed).

        There are none where the graph's files are missing and its digest is not known beforehand.
        """
        try:
            digest = _digest(self.dataset, self.split, root)
        except DataError:
            return []
        settings = Settings.preset(
            preset,
            graph=self.dataset,
            split=self.split,
            backbone=self.backbone,
            objective=self.objective,
            **dict(self.changes),
        )
        chosen, objective = settings.for_objective(self.objective), self.objective
        if (
            remark(chosen, objective) == "no term"
        ):  # with cross-entropy's settings it is cross-entropy's run, and is not done twice
            chosen, objective = replace(chosen, cvg_every=1), "ce"
        made = []
        for i in range(1 if over == "once" else count):
            per_class, split_seed = (
                (self.per_class or 20, i if over == "splits" else 0)
                if self.split == "random"
                else (None, None)
            )
            fold, seed = (i, 0) if over == "folds" else (0, i)
            drawn = (per_class, split_seed, False)
            run = Run(
                self.dataset,
                digest,
                self.split,
                fold,
                seed,
                Path(preset).name,
                objective,
                chosen,
                *drawn,
                self.task,
            )
            made.append(run if made_with is None else replace(run, versions=dict(made_with)))
        return made


@cache
def _digest(dataset: str, split: str, root: Root) -> str:
    return find_graph(dataset).digest(split, root)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or one about it."""

    id: str
    title: str
    #: Its number in the paper, and the label in the paper's source.
    reference: str
    #: One or two sentences: what it shows, and what to know when comparing.
    about: str
    over: Over
    view: View
    cells: Callable[[], Sequence[Cell]]
    #: How many seeds, folds or splits by default.
    count: int = 10
    #: What the columns are, for the axis of a figure.
    x: str = ""
    #: The unit of the numbers: ``%`` (accuracies), ``ms``, or none.
    unit: str = "%"
    #: Decimals that are shown.
    digits: int = 1
    #: Whether the paper has it; if not, its verdicts are not counted among those of the paper's numbers.
    of_the_paper: bool = True
    #: The presets that it is for; None: any.
    presets: tuple[str, ...] | None = None

    def is_for(self, preset: str) -> bool:
        """Whether it is for a preset; if not, it has no runs with it."""
        return self.presets is None or preset in self.presets

    def plan(
        self, preset: str, count: int | None, root: Root, made_with: Mapping[str, str] | None = None
    ) -> tuple[dict[Cell, list[Run]], dict[str, str]]:
        """Every cell with its runs; and the graphs whose files are not here, so that their runs cannot be done, with the reason.

        A cell for which the preset has no settings has no runs; nor has any if the experiment is not for the preset.
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
        """The same on a generated graph instead of ogbn-arxiv: without a number of the paper, and nowhere called ogbn-arxiv."""
        if not is_generated(graph):
            raise UsageError(
                f"A stand-in is a generated graph, such as generated or generated-1000x5000. Got {graph!r}."
            )
        if any(cell.dataset != REAL for cell in self.cells()):
            raise UsageError(
                f"--stand-in is for experiments on {REAL} alone, such as arxiv; {self.id} is on other graphs."
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
    """A number of the paper by its place in ``presets/published.toml``; None where the paper has none.

    >>> published("semi-supervised", "ENC-GCN", "cora")
    85.3
    """
    found: Any = read_preset("published")
    for name in path:
        if name not in found:
            return None
        found = found[name]
    return float(found)


def paper_name(dataset: str) -> str:
    """What the paper calls a graph."""
    return "cornell" if dataset == PAPERS_CORNELL else dataset


def method(backbone: str, objective: str) -> str:
    """What the paper calls a backbone trained with an objective.

    >>> method("gcn", "enc"), method("gat", "ce")
    ('ENC-GCN', 'GAT')
    """
    return f"ENC-{NAMES[backbone]}" if objective == "enc" else NAMES[backbone]


def with_and_without(
    table: str, graphs: Sequence[str], split: str, backbones: Sequence[str] = BACKBONES
) -> list[Cell]:
    """Cross-entropy and ENC for every backbone and graph, as most of the paper's tables have them."""
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


#: As in the paper, and after it what is not in it; each is a file of ``experiments/paper``.
ORDER = (
    "datasets", "semi-supervised", "depth", "homophilic", "heterophilic", "arxiv", "labels-per-class", "mi-vs-tv", "halves",
    "tv-vs-preg", "weights", "run-times", "tsne", "readings",
)  # fmt: skip


@cache
def experiments() -> dict[str, Experiment]:
    """All declarations by id."""
    from importlib import import_module

    return {
        name: import_module(f"everynode.experiments.paper.{name.replace('-', '_')}").EXPERIMENT
        for name in ORDER
    }


def experiments_for(preset: str) -> list[Experiment]:
    """Every experiment that is for a preset."""
    return [experiment for experiment in experiments().values() if experiment.is_for(preset)]


def find(name: str) -> Experiment:
    """An experiment by its id."""
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
    """Every experiment for a preset with its cells and their runs; so many seeds, random splits or folds, or as many as by default."""
    check_counts(seeds, folds)
    return {
        e: e.plan(preset, fitting_count(e, seeds, folds, strict=False), root, made_with)[0]
        for e in experiments_for(preset)
    }


def versions_of(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The versions with which most records were made; of as many, those that are installed.

    Versions are part of what a run is: another torch may get something else. But what was made with it can be read by any.
    """
    made = Counter(
        json.dumps(record["versions"], sort_keys=True) for record in records if "versions" in record
    )
    here = json.dumps(versions(), sort_keys=True)
    found: dict[str, str] = json.loads(
        max(made, key=lambda text: (made[text], text == here), default=here)
    )
    return found


def check_counts(seeds: int | None, folds: int | None) -> None:
    """Refuse numbers of seeds and folds that cannot be."""
    for flag, value in (("seeds", seeds), ("folds", folds)):
        if value is not None and value < 1:
            raise UsageError(f"--{flag} must be at least 1.")
    if folds is not None and folds > 10:
        raise UsageError("--folds can be at most 10: there are ten folds.")


def fitting_count(
    experiment: Experiment, seeds: int | None, folds: int | None, *, strict: bool = True
) -> int | None:
    """How many runs a cell has, from the flags; with ``strict`` a flag that does not fit the experiment is refused."""
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
