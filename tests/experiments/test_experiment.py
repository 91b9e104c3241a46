"""The declarations of the paper's tables and figures: every cell can be run, stands once, and is compared with what is there."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import typing

import pytest

from everynode.datasets import CATALOG, load
from everynode.datasets.entries import SIZES
from everynode.datasets.files import Root
from everynode.errors import UsageError
from everynode.experiments.experiment import (
    ORDER,
    Cell,
    experiments,
    find,
    fitting_count,
    paper_name,
    plan_all,
    published,
)
from everynode.experiments.paper.systems import LIGHT
from everynode.experiments.run_spec import Run
from everynode.presets import PRESETS, read_preset
from everynode.settings import Settings

NAMES = tuple(experiments())
#: What the paper leaves unsaid and ``readings`` reads otherwise.
UNSAID = {"monitor", "normalize_features", "tv_gate", "halves", "layer_dropout", "patience"}
#: Experiment to the table of published.toml that it shows.
TABLES = {
    "semi-supervised": "semi-supervised", "homophilic": "homophilic", "heterophilic": "heterophilic", "arxiv": "ogbn-arxiv",
    "tv-vs-preg": "tv-vs-preg", "run-times": "run-times", "depth": "depth",
}  # fmt: skip


@pytest.fixture
def root(tmp_path) -> Root:
    """A folder into which everything could be downloaded."""
    return Root(tmp_path, downloads=True)


def test_every_file_of_the_paper_is_an_experiment_in_the_papers_order():
    assert NAMES == ORDER
    assert all(experiment.id == name for name, experiment in experiments().items())
    assert len({experiment.reference for experiment in experiments().values()}) == len(NAMES)


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("name", NAMES)
def test_every_cell_expands_to_its_runs(name, preset, root):
    experiment = find(name)
    plan, missing = experiment.plan(preset, 3, root)
    assert list(plan) == list(experiment.cells())
    if not experiment.is_for(preset):
        assert not any(plan.values())
        return
    assert set(missing) <= {"cornell-legacy"}
    for cell, runs in plan.items():
        assert (
            len(runs) == len({run.key for run in runs}) == (1 if experiment.over == "once" else 3)
        )
        varies = {
            name
            for name in ("fold", "seed", "split_seed")
            if len({getattr(run, name) for run in runs}) > 1
        }
        assert (
            varies
            == {
                "seeds": {"seed"},
                "folds": {"fold"},
                "splits": {"seed", "split_seed"},
                "once": set(),
            }[experiment.over]
        )
        for run in runs:
            assert (run.dataset, run.split, run.objective, run.task) == (
                cell.dataset,
                cell.split,
                cell.objective,
                cell.task,
            )
            assert run.settings.backbone == cell.backbone
            assert dict(cell.changes).items() <= dataclasses.asdict(run.settings).items()
            assert (run.per_class, cell.split) == (
                cell.per_class,
                "random",
            ) or run.per_class is run.split_seed is None


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_has_a_place_of_its_own(name):
    cells = find(name).cells()
    places = [(cell.panel, cell.row, cell.column) for cell in cells]
    assert len(places) == len(set(places)) > 0


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_compared_with_a_cell_that_differs_in_the_objective_or_the_halves_alone(name):
    cells = {(cell.panel, cell.row, cell.column): cell for cell in find(name).cells()}
    for cell in cells.values():
        if cell.against is None:
            continue
        other = cells[cell.panel, cell.against, cell.column]
        assert other.against is None, "compared with what is itself compared"
        for field in ("dataset", "split", "backbone", "per_class", "task", "metric"):
            assert getattr(cell, field) == getattr(other, field)
        differ = {setting for setting, _ in set(cell.changes) ^ set(other.changes)}
        if name == "systems":
            assert differ <= {*LIGHT}
            continue
        if name == "readings":
            assert cell.objective == other.objective
            assert differ <= UNSAID
            continue
        assert differ <= {"halves", "tv_gate", "preg"}
        assert (cell.objective != other.objective) or differ == {"halves"}


@pytest.mark.parametrize("backbone", ["gcn", "gat"])
def test_the_paper_is_read_otherwise_one_choice_at_a_time_and_in_all(backbone, root):
    """Each reading is another run than ours, and no two are the same."""
    plan = find("readings").plan("paper", 1, root)[0]
    ours = Settings.preset("paper", graph="cora", split="public", backbone=backbone)
    found = {
        cell.row: runs[0].settings
        for cell, runs in plan.items()
        if (cell.backbone, cell.objective) == (backbone, "enc")
    }
    changed = {
        row: {
            field.name
            for field in dataclasses.fields(s)
            if getattr(s, field.name) != getattr(ours, field.name)
        }
        for row, s in found.items()
    }
    assert changed.pop("as chosen here") == set()
    assert changed.pop("all of these") == UNSAID
    assert sorted(map(len, changed.values())) == [1] * len(UNSAID)
    assert set().union(*changed.values()) == UNSAID
    assert found["dropout before every layer"].layer_dropout == ours.dropout
    assert found["no early stopping"].patience == ours.epochs


@pytest.mark.parametrize("preset", PRESETS)
def test_no_two_cells_of_the_readings_are_the_same_runs(preset, root):
    """Tuned settings have most of the other readings already: those cells would show the same runs under other names."""
    first = [runs[0].key for runs in find("readings").plan(preset, 1, root)[0].values() if runs]
    assert len(first) == len(set(first)) == (28 if preset == "paper" else 0)
    assert [e.id for e in plan_all(preset, None, None, root)] == [
        name for name in NAMES if find(name).presets is None or preset in find(name).presets
    ]


def test_settings_have_the_types_of_their_fields(root):
    """1 and 1.0 would be two runs."""
    types = typing.get_type_hints(Settings)
    for preset in PRESETS:
        for name in NAMES:
            for runs in find(name).plan(preset, 1, root)[0].values():
                for run in runs:
                    found = dataclasses.asdict(run.settings)
                    assert [
                        n
                        for n, value in found.items()
                        if types[n] in (int, float) and type(value) is not types[n]
                    ] == []


def test_the_same_setting_is_the_same_run_in_every_experiment(root):
    def keys(name: str, row: str, column: str, panel: str = "") -> list[str]:
        plan = find(name).plan("paper", 2, root)[0]
        return next(
            [run.key for run in runs]
            for cell, runs in plan.items()
            if (cell.panel, cell.row, cell.column) == (panel, row, column)
        )

    assert (
        keys("semi-supervised", "ENC-GCN", "cora")
        == keys("depth", "ENC-GCN", "2", "cora")
        == keys("run-times", "ENC-GCN", "accuracy")
    )
    assert keys("depth", "GCN", "8", "cora") == keys("mi-vs-tv", "CE", "8", "GCN")
    assert keys("homophilic", "GCN", "pubmed") == keys("tv-vs-preg", "GCN", "pubmed")
    assert (
        keys("run-times", "GCN", "training")
        == keys("run-times", "GCN", "inference")
        != keys("run-times", "GCN", "accuracy")
    )


# ---------------------------------------------------------------------- the paper's numbers


@pytest.mark.parametrize("name", NAMES)
def test_published_accuracies_are_percents(name):
    for cell in find(name).cells():
        if cell.published is not None and cell.metric == "test_accuracy":
            assert 15 < cell.published < 100
        if cell.published is not None and cell.metric.endswith("homophily"):
            assert 0 < cell.published < 1


def leaves(table: dict) -> list[float]:
    return [
        leaf
        for value in table.values()
        for leaf in (leaves(value) if isinstance(value, dict) else [value])
    ]


@pytest.mark.parametrize("name", TABLES)
def test_every_number_that_the_paper_prints_for_our_rows_is_in_a_cell(name):
    cells = find(name).cells()
    table = read_preset("published")[TABLES[name]]
    rows = {cell.row for cell in cells}
    ours = (
        [table[g][row] for g in table for row in rows if row in table[g]]
        if name == "depth"
        else [table[r] for r in rows if r in table]
    )
    expected = sorted(leaf for row in ours for leaf in leaves(row))
    assert sorted(cell.published for cell in cells if cell.published is not None) == expected
    assert len(expected) > len(cells) / 3


def test_the_datasets_table_has_the_papers_counts():
    cells = find("datasets").cells()
    table = read_preset("published")["datasets"]
    shown = {
        (paper_name(cell.dataset), cell.column): cell.published
        for cell in cells
        if cell.dataset != "cornell"
    }
    printed = {
        (graph, column): float(value) for graph in table for column, value in table[graph].items()
    }
    assert {place: value for place, value in printed.items() if place in shown} == {
        p: shown[p] for p in printed if p in shown
    }
    assert {graph for graph, _ in printed} == {graph for graph, _ in shown}
    assert all(cell.published is None for cell in cells if cell.dataset == "cornell")


def test_the_corrected_cornell_has_no_number_of_the_paper():
    by_graph = {
        name: [c.published for c in find("heterophilic").cells() if c.dataset == name]
        for name in ("cornell", "cornell-legacy")
    }
    assert set(by_graph["cornell"]) == {None}
    assert None not in by_graph["cornell-legacy"]


def test_what_the_paper_does_not_print_is_none():
    assert published("semi-supervised", "no such method", "cora") is None
    assert published("no such table") is None
    assert published("depth", "cora", "GCN", "3") is None


# ---------------------------------------------------------------------- graphs


@pytest.mark.parametrize(
    "name", [name for name in SIZES if name != "ogbn-arxiv"]
)  # whose files nobody has to have
def test_sizes_are_those_of_the_graphs(name, data_root):
    graph = load(name, data_dir=data_root)
    edges = graph.undirected_edges[0].shape[1]
    assert SIZES[name] == (
        graph.num_nodes,
        edges,
        int((graph.dense_features != 0).sum()),
        graph.num_classes,
    )


def test_every_graph_has_a_size():
    assert SIZES.keys() == CATALOG.keys() - {"generated"}, "and a generated one has it in its name"


@pytest.mark.parametrize("name", NAMES)
def test_missing_graphs_are_reported(name, tmp_path):
    root = Root(tmp_path / "nothing here", downloads=False)
    plan, missing = find(name).plan("paper", None, root)
    used = {(cell.dataset, cell.split) for cell in plan}
    here = {"citeseer"} if ("citeseer", "public") in used else set()  # it comes with the package
    assert set(missing) == {dataset for dataset, _ in used} - here
    assert all(graph in reason and str(root.folder) in reason for graph, reason in missing.items())
    assert not (tmp_path / "nothing here").exists()


def test_what_can_be_downloaded_is_not_missing(tmp_path):
    assert find("heterophilic").plan("paper", None, Root(tmp_path, downloads=True))[1].keys() == {
        "cornell-legacy"
    }


# ---------------------------------------------------------------------- flags


def test_a_flag_that_does_not_fit_is_refused():
    with pytest.raises(
        UsageError, match="semi-supervised goes over seeds, not over folds: give --seeds"
    ):
        fitting_count(find("semi-supervised"), None, 3)
    with pytest.raises(
        UsageError, match="homophilic goes over the ten folds with one seed each: give --folds"
    ):
        fitting_count(find("homophilic"), 3, None)
    for seeds, folds in ((3, None), (None, 3)):
        with pytest.raises(
            UsageError, match="datasets does each run once: give neither --seeds nor --folds"
        ):
            fitting_count(find("datasets"), seeds, folds)


def test_a_flag_that_fits_is_the_count_and_none_the_default():
    assert fitting_count(find("semi-supervised"), 3, None) == 3
    assert fitting_count(find("labels-per-class"), 3, None) == 3
    assert fitting_count(find("homophilic"), None, 3) == 3
    assert [
        fitting_count(find(name), None, None)
        for name in ("semi-supervised", "homophilic", "datasets")
    ] == [None] * 3


def test_for_all_experiments_at_once_each_takes_the_flag_that_fits():
    assert fitting_count(find("semi-supervised"), 3, 4, strict=False) == 3
    assert fitting_count(find("homophilic"), 3, 4, strict=False) == 4
    assert fitting_count(find("homophilic"), 3, None, strict=False) is None


def test_an_unknown_experiment_is_told_the_known_ones():
    with pytest.raises(
        UsageError,
        match=r"Unknown experiment 'dept' \(did you mean 'depth'\?\)\. Choose from: datasets, .*all, list",
    ):
        find("dept")


def test_a_random_split_is_drawn_anew_only_over_splits(root):
    cell = Cell("r", "c", "cora", "random", per_class=7)
    drawn = {
        over: [(run.split_seed, run.seed) for run in cell.runs("default", over, 3, root)]
        for over in ("splits", "seeds")
    }
    assert drawn == {"splits": [(0, 0), (1, 1), (2, 2)], "seeds": [(0, 0), (0, 1), (0, 2)]}


def test_declarations_are_found_without_their_files_being_named():
    code = "from everynode.experiments.experiment import find; print(find('tsne').title)"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "Cora's nodes in the plane\n"
    )


def test_runs_can_be_told_apart_in_a_set(root):
    runs = [run for runs in find("weights").plan("paper", 2, root)[0].values() for run in runs]
    assert isinstance(runs[0], Run)
    assert len(set(runs)) == len({run.key for run in runs}) == 50


# ---------------------------------------------------------------------- stand-ins


def test_on_a_stand_in_nothing_of_the_paper_is_left(root):
    real, moved = find("arxiv"), find("arxiv").on_stand_in("generated-300x900")
    plan, missing = moved.plan("paper", 2, root)
    assert missing == {}
    for cell, original in zip(plan, real.cells(), strict=True):
        assert (cell.dataset, cell.column, cell.split, cell.published) == (
            "generated-300x900",
            "generated-300x900",
            "stratified",
            None,
        )
        assert (cell.row, cell.backbone, cell.objective, cell.against) == (
            original.row,
            original.backbone,
            original.objective,
            original.against,
        )
        for run, run_of_real in zip(
            plan[cell], original.runs("paper", "seeds", 2, root), strict=True
        ):
            assert run.settings == run_of_real.settings, (
                "the settings are those of what it stands in for"
            )
            assert run.key != run_of_real.key
            assert "not real data" in run.describe()["stand_in"]
    assert real.id != moved.id
    assert "not real data" in moved.reference
    assert "stand_in" not in real.cells()[0].runs("paper", "seeds", 1, root)[0].describe()


@pytest.mark.parametrize(
    ("experiment", "graph", "words"),
    [
        ("arxiv", "cora", "A stand-in is a generated graph, .* Got 'cora'"),
        ("arxiv", "generated-5", "Unknown graph 'generated-5'"),
        ("datasets", "generated", "is for experiments on ogbn-arxiv only"),
        ("depth", "generated", "depth uses other graphs"),
    ],
)
def test_what_cannot_stand_in(experiment, graph, words):
    with pytest.raises(UsageError, match=words):
        find(experiment).on_stand_in(graph)


def test_an_objective_without_terms_is_cross_entropys_run(tmp_path, root):
    file = tmp_path / "mine.toml"

    def keys(tv: float) -> list[list[str]]:
        ce, weights = (
            "[public.citeseer.gcn.ce]\nmi = 0.0\ntv = 0.0\ncvg = 0.0\n",
            f"mi = 0.0\ntv = {tv}\ncvg = 0.0\ncvg_every = 4\n",
        )
        file.write_text(f"{ce}[public.citeseer.gcn.enc]\n{weights}")
        cells = [
            Cell("r", "c", "citeseer", "public", objective=objective) for objective in ("ce", "enc")
        ]
        return [[run.key for run in cell.runs(str(file), "seeds", 2, root)] for cell in cells]

    without, with_tv = keys(0.0), keys(0.1)
    assert without[0] == without[1] == with_tv[0]
    assert not set(with_tv[0]) & set(with_tv[1])
