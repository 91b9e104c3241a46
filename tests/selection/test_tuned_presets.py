"""Tuned presets: what a study found comes back to the last digit, beside what was there before."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import shutil
import tomllib
from pathlib import Path

import pytest

from everynode.datasets.entries import CATALOG
from everynode.datasets.files import Root
from everynode.errors import DataError, UsageError
from everynode.presets import NoSettings, tuned_rows
from everynode.selection.search_space import search_space
from everynode.selection.study import FIRST_SEED, Study
from everynode.selection.study_storage import Journal
from everynode.selection.tuned_presets import command, merge, rows_of, studies, trials_csv
from everynode.selection.tuning import tune
from everynode.settings import Settings, declarations
from everynode.training import train

PLACE = {"graph": "toy", "split": "public", "backbone": "gcn"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, graph) -> Path:
    """Two small studies."""
    found = tmp_path_factory.mktemp("studies")
    for objective in ("ce", "mi+tv"):
        base = Settings(hidden_channels=4, epochs=5)
        study = Study(
            "toy",
            graph.digest,
            "public",
            "gcn",
            objective,
            "seeds",
            2,
            base,
            search_space("gcn", objective),
        )
        tune(Journal(found / "tune" / f"{study.name}.journal", study), graph, 3, workers=1)
    return found


def export(folder: Path, file: Path) -> str:
    text = merge(file, rows_of(studies(folder)))
    file.write_text(text)
    return text


def test_the_preset_is_what_the_best_trial_was(folder, tmp_path, graph):
    export(folder, tmp_path / "best.toml")
    for journal in studies(folder):
        objective, best = journal.study.objective, journal.best()
        settings = Settings.preset(str(tmp_path / "best.toml"), **PLACE, objective=objective)
        assert settings == journal.study.settings(best.params)
        assert settings == settings.for_objective(objective), "every objective has its own settings"
        fitted = [train(graph, settings, seed=FIRST_SEED + i) for i in range(2)]
        record = tuned_rows(str(tmp_path / "best.toml"))["public", "toy", "gcn", objective]["study"]
        assert record["val_accuracies"] == [f.metrics["val_accuracy"] for f in fitted]
        assert (record["trials"], record["seeds"], record["graph_digest"]) == (3, 2, graph.digest)
        assert record["searched"] == list(search_space("gcn", objective))
    assert Settings.preset(str(tmp_path / "best.toml"), **PLACE, objective="tv+mi").mi > 0, (
        "whichever way it is written"
    )


def test_all_trials_are_listed_with_what_they_got_and_which_was_chosen(folder):
    text = trials_csv(studies(folder))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert text == trials_csv(studies(folder))
    for journal in studies(folder):
        listed = [row for row in rows if row["objective"] == journal.study.objective]
        assert [int(row["trial"]) for row in listed] == [trial.number for trial in journal.ended()]
        assert [int(row["trial"]) for row in listed if row["chosen"] == "True"] == [
            journal.best().number
        ]
        for row, trial in zip(listed, journal.ended(), strict=True):
            assert json.loads(row["val_accuracies"]) == trial.user_attrs["accuracies"]
            settings = journal.study.settings(trial.params)
            assert (float(row["lr"]), float(row["tv"])) == (settings.lr, settings.tv)
    assert len(rows) == 6


def test_an_export_is_the_same_each_time(folder, tmp_path):
    text = export(folder, tmp_path / "best.toml")
    assert export(folder, tmp_path / "best.toml") == text == export(folder, tmp_path / "other.toml")
    assert not [word for word in ("202", "seconds", str(tmp_path)) if word in text], (
        "no date, no time, no path"
    )


def test_what_else_a_preset_has_stays(folder, tmp_path):
    file = tmp_path / "best.toml"
    file.write_text(
        '[geom-gcn.texas.gat."mi+cvg"]\ntv_gate = "none"\nmi = 0.25\nnum_layers = 3\n[public.toy.gcn.ce]\nhidden_channels = 9\n'
    )
    whole = tomllib.loads(export(folder, file))
    assert whole["geom-gcn"] == {
        "texas": {"gat": {"mi+cvg": {"tv_gate": "none", "mi": 0.25, "num_layers": 3}}}
    }
    assert whole["public"]["toy"]["gcn"]["ce"]["hidden_channels"] == 4, "replaced"
    assert set(whole["public"]["toy"]["gcn"]) == {"ce", "mi+tv"}


def test_two_studies_for_one_place_are_refused(folder, tmp_path, graph):
    first = studies(folder)[0]
    study = dataclasses.replace(first.study, count=1)
    other = Journal(tmp_path / "tune" / f"{study.name}.journal", study)
    tune(other, graph, 1, workers=1)
    with pytest.raises(
        DataError, match="are two studies for public toy gcn ce, and a preset takes one"
    ):
        rows_of([first, other])


def test_a_folder_without_studies_is_refused_and_one_that_has_just_begun_is_left_out(
    folder, tmp_path
):
    with pytest.raises(UsageError, match="There is no study with a complete trial in"):
        studies(tmp_path)
    first, second = studies(folder)
    Journal(tmp_path / "tune" / "a.journal", first.study)
    with pytest.raises(UsageError, match="There is no study with a complete trial in"):
        studies(tmp_path)
    shutil.copy(second.path, tmp_path / "tune")
    assert [journal.study for journal in studies(tmp_path)] == [second.study]


def test_the_command_names_everything_that_makes_the_study():
    study = Study(
        "cora",
        "",
        "random",
        "gat",
        "mi+tv",
        "folds",
        10,
        Settings(),
        {},
        changes={"per_class": 5, "tv": 2.5, "directed": True},
        starts={"default": {}, "mine.toml ce": {}, "mine.toml tv": {}},
    )
    expected = "everynode tune cora --split random --backbone gat --objective mi+tv --folds 10 --trials 7 --per-class 5 --tv 2.5 --directed "
    assert command(study, 7) == expected + "--start-from mine.toml"


# ---------------------------------------------------------------- reading presets


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[public.cora.gcn]\ntv = 1.0",
            "is not a preset of `everynode tune`: its tables must be [SPLIT.GRAPH.BACKBONE.OBJECTIVE].",
        ),
        (
            "a = 1",
            "is not a preset of `everynode tune`: its tables must be [SPLIT.GRAPH.BACKBONE.OBJECTIVE].",
        ),
        (
            "[public.cora.gcn.tv]\ntvv = 1.0",
            "unknown setting 'tvv'. Choose from: backbone, num_layers, ",
        ),
        ("[public.cora.gcn.tv]\ntv = '1'", "The 'tv' of Settings must be a number. Got '1'."),
        (
            "[public.cora.gcn.tv]\nnum_layers = 2.0",
            "The 'num_layers' of Settings must be a whole number. Got 2.0.",
        ),
        (
            "[public.cora.gcn.tv]\nnum_layers = true",
            "The 'num_layers' of Settings must be a whole number. Got True.",
        ),
        ("[public", "cannot be read as a preset"),
        ("\x00", "cannot be read as a preset"),
    ],
)
def test_a_preset_that_makes_no_sense_is_refused(tmp_path, text, sentence):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(DataError) as refused:
        Settings.preset(str(tmp_path / "p.toml"), graph="cora", split="public", objective="tv")
    assert sentence in str(refused.value)
    assert str(tmp_path / "p.toml") in str(refused.value)


def test_what_a_preset_does_not_have_is_refused_with_what_it_has(tmp_path):
    file = tmp_path / "p.toml"
    file.write_text(
        '[public.cora.gcn.ce]\n[public.cora.gcn."mi+tv"]\n[geom-gcn.cora.gat.ce]\n[geom-gcn.texas.gat.ce]\n'
    )
    with pytest.raises(NoSettings) as refused:
        Settings.preset(str(file), graph="cora", split="public", objective="tv")
    why = f"The preset {file} has no settings for gcn with objective tv on graph 'cora' with split 'public'; "
    assert (
        str(refused.value)
        == why
        + "for that graph and split it has gcn ce, gcn mi+tv. Choose from these, --preset default, or `everynode tune`."
    )
    with pytest.raises(NoSettings, match=r"it has cora \(public, geom-gcn\), texas \(geom-gcn\)\."):
        Settings.preset(str(file), graph="mine", split="public", objective="ce")
    assert Settings.preset(str(file), graph="cora", split="random", objective="ce") == Settings()
    with pytest.raises(UsageError, match="There is no preset"):
        Settings.preset("nowhere.toml", graph="cora", split="public")


# ---------------------------------------------------------------- the packaged one

PACKAGED = tuned_rows("tuned")


def test_the_packaged_rows_are_settings_of_known_graphs(tmp_path):
    root = Root(tmp_path, downloads=False)
    for (split, graph, backbone, objective), row in PACKAGED.items():
        settings = Settings.preset(
            "tuned", graph=graph, split=split, backbone=backbone, objective=objective
        )
        assert settings == settings.for_objective(objective)
        # A later default must change nothing. What may be missing does nothing where it is.
        missing = set(declarations()) - set(row) - {"backbone"}
        own = {
            name
            for name in missing
            if (d := declarations()[name]).is_of(backbone)
            and not (d.of_term and not getattr(settings, d.of_term))
        }
        assert all(getattr(settings, name) == declarations()[name].off for name in own)
        assert row["study"]["graph_digest"] == CATALOG[graph].digest(split, root)


def test_the_settings_of_gcniis_authors_are_cross_entropys_on_known_graphs():
    rows = tuned_rows("authors")
    assert {backbone for _, _, backbone, _ in rows} == {"gcnii"}
    assert {objective for *_, objective in rows} == {"ce"}
    for split, graph, backbone, objective in rows:
        settings = Settings.preset(
            "authors", graph=graph, split=split, backbone=backbone, objective=objective
        )
        assert settings == settings.for_objective("ce")
        assert split in CATALOG[graph].splits
        assert (settings.lr_gnn, settings.dropout, settings.monitor) == (
            0.01,
            settings.layer_dropout,
            "loss",
        )
    # As in semi.sh and full.sh: a guard against slips of the hand.
    numbers = ("num_layers", "hidden_channels", "dropout", "gcnii_alpha", "gcnii_lambda")
    assert [round(sum(row[name] for row in rows.values()), 6) for name in numbers] == [
        376,
        1024,
        5.3,
        2.8,
        8.0,
    ]
    assert sum(row["weight_decay_gnn"] for row in rows.values()) == pytest.approx(sum(WD_GNN))


#: Of GCNII's layers, public split first.
WD_GNN = (0.01, 0.01, 5e-4, 1e-4, 5e-6, 5e-6, 5e-4, 1e-3, 1e-4, 5e-4)


def test_no_packaged_row_had_a_larger_budget_than_cross_entropys():
    """What is compared was tuned alike: as many trials of as many runs, or more for cross-entropy where ENC was searched by hand too."""
    places = {place: row["study"] for place, row in PACKAGED.items()}
    for (*where, objective), study in places.items():
        baseline = places[*where, "ce"]
        assert (study.get("seeds"), study.get("folds")) == (
            baseline.get("seeds"),
            baseline.get("folds"),
        )
        more = baseline["trials"] - study["trials"]
        by_hand = where[:2] == ["public", "pubmed"] or where == [
            "public",
            "cora",
            "gcnii",
        ]  # docs/archive/accuracy.md, "Public split, with all terms"
        assert more == 0 or (by_hand and more > 0), (where, objective)
