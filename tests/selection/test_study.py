"""Where a study starts, what it is called, and the runs that judge its trials."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import pytest

from everynode.errors import UsageError
from everynode.objective_names import ENC_TERMS
from everynode.presets import candidates, tuned_rows
from everynode.selection.search_space import search_space, within
from everynode.selection.study import (
    FIRST_SEED,
    Study,
    check_numbers,
    judging_runs,
    starting_points,
)
from everynode.settings import TERMS, Settings

OBJECTIVES = ["ce", "enc", *("+".join(some) for n in (1, 2) for some in combinations(TERMS, n))]
SPACE = {
    "lr": {"low": 0.001, "high": 0.1, "log": True},
    "normalize_features": {"choices": [True, False]},
}

RANGE = "needs choices, or a low below its high (above 0 with log = true)."


def make(**changes: object) -> Study:
    fields = {
        "objective": "tv",
        "over": "seeds",
        "count": 2,
        "base": Settings(hidden_channels=8, epochs=4),
        "space": SPACE,
    } | changes
    return Study("toy", "digest", "public", "gcn", **fields)


# ---------------------------------------------------------------- where it starts


def test_a_study_starts_from_what_the_presets_say():
    space = search_space("gcn", "tv")
    known = starting_points(space, "cora", "public", "gcn", "tv", [])
    assert {"default ce", "default enc", "default light-ce", "default light-enc", "paper"} <= set(
        known
    )
    assert known["default enc"]["tv"] == Settings().tv
    assert known["default ce"]["tv"] == space["tv"]["low"], (
        "as near to cross-entropy as the search for a named term goes"
    )
    assert known["default light-enc"]["lr_gnn"] > known["default enc"]["lr_gnn"]
    assert known["paper"]["lr"] == 0.01
    assert set(known["paper"]) == set(space)
    assert set(starting_points(space, "my own", "public", "gcn", "tv", [])) == {
        f"default {name}" for name in candidates()
    }
    assert (
        len(starting_points(search_space("gcn", "ce"), "my own", "public", "gcn", "ce", [])) == 2
    ), "what is the same is tried once"


def test_a_study_starts_from_what_was_found_for_other_objectives(tmp_path):
    file = tmp_path / "found.toml"
    file.write_text(
        "[public.cora.gcn.ce]\nlr = 0.02\ntv = 0.0\n[public.cora.gcn.tv]\nlr = 0.02\ntv = 0.0\n[public.cora.gat.ce]\n"
    )
    space = search_space("gcn", "tv")
    known = starting_points(space, "cora", "public", "gcn", "tv", [file])
    assert known["found.toml ce"]["lr"] == 0.02
    assert known["found.toml ce"]["tv"] == space["tv"]["low"], "as near to none as the search goes"
    assert "found.toml tv" not in known, "the same parameters are tried once"
    assert set(known) == {"found.toml ce"}, "everynode's own presets are not tried besides"
    with pytest.raises(
        UsageError,
        match="has no settings for gcnii on graph 'cora' with split 'public' to start from",
    ):
        starting_points(space, "cora", "public", "gcnii", "tv", [file])


def test_enc_starts_from_cross_entropy_itself_and_from_it_with_light_terms(tmp_path):
    file = tmp_path / "found.toml"
    file.write_text("[public.cora.gcn.ce]\nlr = 0.02\nmi = 0.0\ntv = 0.0\ncvg = 0.0\n")
    space = search_space("gcn", "enc")
    known = starting_points(space, "cora", "public", "gcn", "enc", [file])
    study = make(objective="enc", space=space)
    tried = {name: study.settings(parameters) for name, parameters in known.items()}
    weights = {
        name: (settings.mi, settings.tv, settings.cvg, settings.consistency, settings.prior)
        for name, settings in tried.items()
    }
    light = candidates()["light-enc"]
    assert weights == {
        "found.toml ce": (0.0, 0.0, 0.0, 0.0, 0.0),
        "found.toml ce, consistency": (0.0, 0.0, 0.0, 1.0, 0.0),
        "found.toml ce, consistency, class prior": (0.0, 0.0, 0.0, 1.0, 3.0),
        "found.toml ce, light enc": (light.mi, light.tv, light.cvg, 0.0, 0.0),
        "found.toml ce, light tv": (0.0, light.tv, 0.0, 0.0, 0.0),
    }
    assert {settings.lr for settings in tried.values()} == {0.02}, "all else is cross-entropy's"


def test_enc_starts_from_cross_entropys_settings_with_the_terms_that_were_found_for_enc(tmp_path):
    file = tmp_path / "found.toml"
    of_enc = "lr = 0.03\nmi = 0.7\nmi_lambda = 0.1\ntv = 0.0\ntv_gate = 'none'\ncvg = 0.2\n"
    file.write_text(
        f"[public.cora.gcn.ce]\nlr = 0.02\nmi = 0.0\ntv = 0.0\ncvg = 0.0\n[public.cora.gcn.enc]\n{of_enc}"
    )
    space = search_space("gcn", "enc")
    crossed = starting_points(space, "cora", "public", "gcn", "enc", [file])[
        "found.toml ce, terms of enc"
    ]
    found = make(objective="enc", space=space).settings(crossed)
    assert found.lr == 0.02
    assert (found.mi, found.mi_lambda, found.tv, found.tv_gate, found.cvg) == (
        0.7,
        0.1,
        0.0,
        "none",
        0.2,
    )
    assert (
        len(starting_points(search_space("gcn", "ce"), "cora", "public", "gcn", "ce", [file])) == 2
    )


@pytest.mark.parametrize(
    ("split", "graph"), [(split, graph) for split, graph, *_ in tuned_rows("authors")]
)
def test_gcnii_starts_from_what_its_authors_published(split, graph):
    space = search_space("gcnii", "enc")
    known = starting_points(space, graph, split, "gcnii", "enc", [])
    authors = Settings.preset("authors", graph=graph, split=split, backbone="gcnii", objective="ce")
    study = Study(
        graph, "digest", split, "gcnii", "enc", "seeds", 2, Settings(backbone="gcnii"), space
    )
    # By what they are: where tuning has chosen the same, a start has the name of that.
    own = within(space, authors)
    terms = {
        "mi",
        "mi_lambda",
        "tv",
        "tv_gate",
        "tv_sigma",
        "cvg",
        "consistency",
        "consistency_temperature",
        "prior",
        *(f"no_{term}" for term in ENC_TERMS),
    }
    like = [
        p
        for p in known.values()
        if {k: v for k, v in p.items() if k not in terms}
        == {k: v for k, v in own.items() if k not in terms}
    ]
    light = candidates()["light-enc"]
    weights = {(s.mi, s.tv, s.cvg) for s in map(study.settings, like)}
    assert weights >= {(0.0, 0.0, 0.0), (light.mi, light.tv, light.cvg), (0.0, light.tv, 0.0)}
    start = dataclasses.asdict(study.settings(own))
    other = {name for name, value in dataclasses.asdict(authors).items() if start[name] != value}
    assert other <= {"monitor", "hidden_channels"}, (
        "which are not searched; nothing was moved into the ranges"
    )


# ---------------------------------------------------------------- the study


def test_studies_that_differ_have_different_names():
    made = [
        make(),
        make(count=3),
        make(over="folds"),
        make(changes={"hidden_channels": 8}),
        make(changes={"hidden_channels": 16}),
    ]
    assert len({study.name for study in made}) == len(made)
    assert make(changes={"b": 1, "a": 2}).name == make(changes={"a": 2, "b": 1}).name


def test_the_runs_of_a_trial_are_none_of_those_that_are_reported():
    assert make(count=3).runs == [(0, FIRST_SEED), (0, FIRST_SEED + 1), (0, FIRST_SEED + 2)]
    assert make(over="folds").runs == [(0, FIRST_SEED), (1, FIRST_SEED)]


def test_a_trials_numbers_can_be_printed():
    settings = make(base=Settings(tv=2.0)).settings(
        {"lr": 0.0123456789, "normalize_features": True}
    )
    assert (settings.lr, settings.tv, settings.mi, settings.normalize_features) == (
        0.01235,
        2.0,
        0.0,
        True,
    )


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ((0, None, None), "--trials, --seeds and --folds must be at least 1."),
        ((5, 0, None), "--trials, --seeds and --folds must be at least 1."),
        ((5, 2, 2), "--folds takes one seed on each fold: leave out --seeds."),
    ],
)
def test_numbers_that_make_no_study_are_refused(numbers, sentence):
    with pytest.raises(UsageError) as refused:
        check_numbers(*numbers)
    assert str(refused.value) == sentence


def test_a_trial_is_judged_on_three_seeds_or_on_folds():
    assert judging_runs(None, None, 1, "Split") == ("seeds", 3)
    assert judging_runs(5, None, 1, "Split") == ("seeds", 5)
    assert judging_runs(None, 2, 10, "Split") == ("folds", 2)
    with pytest.raises(UsageError) as refused:
        judging_runs(None, 2, 1, "Split 'public' of cora")
    assert str(refused.value) == (
        "Split 'public' of cora has 1 fold(s), not 2: choose fewer --folds, or another --split."
    )
