"""The other systems of the paper's tables: each row has a number of ours or a reason."""

from __future__ import annotations

import dataclasses

import pytest

from everynode import NodeClassifier, load
from everynode.datasets.files import Root
from everynode.errors import UsageError
from everynode.experiments.analysis import analyze
from everynode.experiments.experiment import find
from everynode.experiments.paper.systems import LIGHT, UNDER_ENC
from everynode.experiments.systems import PROTOCOLS, find_system, systems
from everynode.models.build import build_model, unused_settings
from everynode.presets import read_preset
from everynode.settings import TERMS, Settings
from everynode.training import load_model

#: The tables of the paper with other systems, by the panel that shows them.
TABLES = {
    "systems": ("semi-supervised", "ogbn-arxiv"), "systems-folds": ("homophilic", "heterophilic"),
}  # fmt: skip
RUN = [name for name, system in systems().items() if "reason" not in system.entries]


@pytest.fixture
def root(tmp_path) -> Root:
    return Root(tmp_path, downloads=True)


@pytest.mark.parametrize("name", TABLES)
def test_no_row_of_a_table_is_empty(name: str, root: Root) -> None:
    """A row has runs, or the reason why not; and its published numbers stand beside it."""
    plan, missing = find(name).plan("systems", 1, root)
    for table in TABLES[name]:
        for row, numbers in read_preset("published")[table].items():
            cells = [cell for cell in plan if (cell.panel, cell.row) == (table, row)]
            assert cells, row
            assert {c.published for c in cells} - {None} == {*map(float, numbers.values())}
            for cell in cells:
                assert bool(plan[cell]) != bool(cell.reason) or cell.dataset in missing


def test_no_row_of_the_table_over_depth_is_empty() -> None:
    cells = [cell for cell in find("systems").cells() if cell.panel == "depth"]
    rows = {row for graph in read_preset("published")["depth"].values() for row in graph}
    shown = {cell.row for cell in cells}
    networks = {f"{enc}{name}" for enc in ("", "ENC-") for name in ("GCN", "GAT", "GCNII")}
    assert shown == rows - networks
    deep = [c for c in cells if c.row == "GCN (Drop)" and c.column == "cora 16"]
    assert dict(deep[0].changes)["num_layers"] == 16
    assert deep[0].published == 75.7


@pytest.mark.parametrize("name", RUN)
def test_every_system_has_settings_that_its_model_takes(name: str) -> None:
    system = find_system(name)
    read = read_preset("systems")
    for split, graph in (("public", "cora"), ("public", "citeseer"), ("geom-gcn", "texas")):
        if system.reason(split, graph):
            continue
        values = system.settings(split, graph)
        settings = Settings(backbone=system.backbone, **values).for_objective(system.objective)
        own = {*values} - {*read["base"], "lr_gnn", "weight_decay_gnn"}  # every system has these
        assert not own & unused_settings(system.backbone), "a setting without effect"
        if "num_layers" not in values or values["num_layers"] < 16:
            build_model(8, 3, settings)


#: A setting of each system that has an own one, by name; a split and a graph that it runs on.
WHERE = {
    name: next(
        place
        for place in (("public", "cora"), ("geom-gcn", "texas"), ("geom-gcn", "cora"))
        if not find_system(name).reason(*place)
    )
    for name in RUN
}
#: Settings of systems, by name and value, that a command needs to train them.
OF_SYSTEMS = ("ce", "drop_edge", "replace_edges")
SMALL = {"epochs": 2, "hidden_channels": 8, "num_layers": 2, "patience": 2}


@pytest.mark.parametrize("name", RUN)
def test_a_system_works_by_name_in_every_command_and_in_python(
    name: str, call, tmp_path, monkeypatch
) -> None:
    """It trains, is saved, loaded and predicts; and is compared and tuned, by name."""
    monkeypatch.chdir(tmp_path)
    system = find_system(name)
    own = system.settings(*WHERE[name])
    terms = [term for term in system.objective.split("+") if term in TERMS]
    small = {key: SMALL[key] for key in SMALL if key not in unused_settings(system.backbone)}
    flags = {key: own[key] for key in (*OF_SYSTEMS, *terms) if key in own} | small
    words = [w for key, value in flags.items() for w in (f"--{key.replace('_', '-')}", value)]
    given = ("generated-60x120", "--backbone", system.backbone, *words, "--json", "-q")
    objective = ("--objective", system.objective)
    done = call("train", *given, *objective, "--out", "model")
    assert done.returncode == 0, done.stderr
    graph = load("generated-60x120")
    network, _ = load_model("model")
    assert network(graph).shape == (60, graph.num_classes)
    assert network(graph).isfinite().all()
    against = objective if terms else ("--objective", "mi")
    words = ("--seeds", "2", "--workers", "1")
    done = call("compare", *given, *against, *words)
    assert done.returncode == 0, done.stderr
    done = call("tune", *given, *objective, *words[2:], "--seeds", "1", "--trials", "1")
    assert done.returncode == 0, done.stderr
    classifier = NodeClassifier(
        backbone=system.backbone, objective=system.objective, settings=own | small
    )
    said = classifier.fit(graph).predict_proba(graph)
    assert said.shape == (60, graph.num_classes)
    classifier.save(tmp_path / "saved")
    assert (NodeClassifier.load(tmp_path / "saved").predict_proba(graph) == said).all()


def test_every_entry_is_whole() -> None:
    for name, system in systems().items():
        assert system.entries.get("protocol", "") in PROTOCOLS, name
        assert "reason" in system.entries or system.entries["source"], name
        assert "reason" in system.entries or system.backbone, name


def test_settings_of_a_graph_stand_over_those_of_the_system_and_of_all() -> None:
    drop_edge = find_system("DropEdge").settings("public", "cora")
    assert (drop_edge["lr"], drop_edge["hidden_channels"]) == (0.007, 128)
    assert drop_edge["lr_gnn"] == drop_edge["lr"]
    assert find_system("GCN (Drop)").settings("public", "cora") == drop_edge
    assert find_system("GCNII*").settings("public", "cora")["weight_decay_gnn"] == 0.01


def test_a_graph_without_published_settings_has_a_reason() -> None:
    system = find_system("GRAND (Feng)")
    assert system.reason("public", "cora") == ""
    assert "batch normalization" in system.reason("public", "pubmed")
    assert "no published settings" in find_system("P-reg").reason("geom-gcn", "texas")


def test_the_pairs_differ_in_the_terms_of_enc_alone(root: Root) -> None:
    plan = find("systems").plan("systems", 1, root)[0]
    cells = {cell.row: (cell, runs[0]) for cell, runs in plan.items() if cell.panel == "with ENC"}
    assert len(cells) == 2 * len(UNDER_ENC) >= 12
    for row in UNDER_ENC:
        (cell, run), (_, alone) = cells[f"{row} + ENC"], cells[row]
        assert cell.against == row
        one, other = (dataclasses.asdict(r.settings) for r in (run, alone))
        differ = {name for name in one if one[name] != other[name]}
        assert differ == {*LIGHT} - {n for n in LIGHT if other[n] == LIGHT[n]}
        assert {"mi", "tv", "cvg"} <= {*run.settings.active_terms()}


def test_a_system_is_compared_with_its_number_whatever_its_terms(root: Root) -> None:
    experiment = find("systems")
    plan = {
        cell: runs
        for cell, runs in experiment.plan("systems", 5, root)[0].items()
        if (cell.panel, cell.row, cell.column) == ("semi-supervised", "PTA", "cora")
    }
    (runs,) = plan.values()
    records = {
        run.key: {"test_accuracy": 0.8 + seed / 1000, "nodes": {"test": 1, "train": 1}}
        for seed, run in enumerate(runs)
    }
    (cell,) = analyze(experiment, "systems", plan, records).cells
    assert cell.verdict == "short by 2.8"


def test_an_unknown_system_lists_the_choices() -> None:
    with pytest.raises(UsageError, match=r"Unknown system 'APPN' \(did you mean 'APPNP'"):
        find_system("APPN")
