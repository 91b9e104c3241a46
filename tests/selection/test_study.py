"""What a study searches, where it starts, and what it is called."""

from __future__ import annotations

import dataclasses
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.errors import DataError, UsageError
from everynode.models.names import MODELS as BACKBONES
from everynode.objective_names import ENC_TERMS, parse_objective
from everynode.presets import candidates, tuned_rows
from everynode.selection.study import FIRST_SEED, Study, search_space, starting_points, within
from everynode.settings import TERMS, Settings, declarations

OBJECTIVES = ["ce", "enc", *("+".join(some) for n in (1, 2) for some in combinations(TERMS, n))]
SPACE = {
    "lr": {"low": 0.001, "high": 0.1, "log": True},
    "normalize_features": {"choices": [True, False]},
}

RANGE = "needs a low and a higher high (above 0 with log = true), or choices."


def make(**changes: object) -> Study:
    fields = {
        "objective": "tv",
        "over": "seeds",
        "count": 2,
        "base": Settings(hidden_channels=8, epochs=4),
        "space": SPACE,
    } | changes
    return Study("toy", "digest", "public", "gcn", **fields)


# ---------------------------------------------------------------- the search space


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_may_choose_what_cross_entropy_may_choose_and_else_only_its_own_terms(
    backbone, objective
):
    common, whole = search_space(backbone, "ce"), search_space(backbone, objective)
    assert {name: whole[name] for name in common} == common
    of_terms = {name: declared.of_term or name for name, declared in declarations().items()}
    own = {of_terms[name] for name in whole if name not in common}
    assert own == set(parse_objective(objective))


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("end", ["low", "high"])
def test_the_ends_of_every_range_are_legal_settings(backbone, end):
    space = search_space(backbone, "enc+preg")
    study = Study(
        "cora",
        "",
        "public",
        backbone,
        "enc+preg",
        "seeds",
        3,
        Settings.preset(backbone=backbone),
        space,
    )
    chosen = {
        name: choice[end] if end in choice else choice["choices"][0 if end == "low" else -1]
        for name, choice in space.items()
    }
    settings = study.settings(chosen)
    assert {name: getattr(settings, name) for name in space} == chosen


@given(
    st.floats(0, 100), st.integers(1, 80), st.sampled_from(["raw", "row", "standardised", "none"])
)
def test_whatever_a_preset_says_the_trial_is_within_the_space(tv, num_layers, gate):
    space = search_space("gcnii", "tv")
    found = within(space, Settings(backbone="gcnii", tv=tv, num_layers=num_layers, tv_gate=gate))
    assert set(found) == set(space)
    for name, choice in space.items():
        assert (
            found[name] in choice["choices"]
            if "choices" in choice
            else choice["low"] <= found[name] <= choice["high"]
        )
    assert abs(found["num_layers"] - num_layers) == min(
        abs(depth - num_layers) for depth in space["num_layers"]["choices"]
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[all]\nlrr = { low = 1.0, high = 2.0 }",
            "space.toml: 'lrr' is not a setting. Remove it from the search space.",
        ),
        ("[all]\nlr = { low = 2.0, high = 1.0 }", f"space.toml: lr {RANGE}"),
        ("[all]\nlr = { low = 2.0 }", f"space.toml: lr {RANGE}"),
        ('[all]\nlr = { low = "a", high = "b" }', f"space.toml: lr {RANGE}"),
        ("[all]\nlr = { low = 0, high = 1, log = true }", f"space.toml: lr {RANGE}"),
        (
            "[all]\nlr = { low = 1, high = 2, off = true }",
            "space.toml: lr cannot be off: only the weight of a term with a low and a high can.",
        ),
        (
            "[term.tv]\nnormalize_features = { choices = [] }",
            f"space.toml: normalize_features {RANGE}",
        ),
        ("[term.tv]\nnormalize_features = 3", f"space.toml: normalize_features {RANGE}"),
        (
            "all = 3",
            "space.toml is not a search space: it needs tables [all], [backbone.NAME] and [term.NAME].",
        ),
        (
            "[term.mi]\nmi = { low = 0.1, high = 1.0 }",
            "space.toml has nothing to search for gcn and tv: it needs [all], [backbone.gcn] or [term.*].",
        ),
    ],
)
def test_a_search_space_that_makes_no_sense_is_refused(tmp_path, monkeypatch, text, sentence):
    monkeypatch.chdir(tmp_path)
    Path("space.toml").write_text(text)
    with pytest.raises(DataError) as refused:
        search_space("gcn", "tv", Path("space.toml"))
    assert str(refused.value) == sentence


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


def test_only_a_term_that_is_not_named_may_be_off():
    assert all(search_space("gcn", "enc")[term]["off"] for term in ENC_TERMS)
    assert not any("off" in choice for choice in search_space("gcn", "mi+tv").values())


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


# ---------------------------------------------------------------- the declared ranges, spelled out

COMMON = {
    "lr_gnn": {"low": 1e-5, "high": 0.05, "log": True},
    "lr": {"low": 1e-3, "high": 0.05, "log": True},
    "weight_decay_gnn": {"low": 1e-6, "high": 0.02, "log": True},
    "weight_decay": {"low": 1e-6, "high": 0.2, "log": True},
    "dropout": {"low": 0.2, "high": 0.8},
    "layer_dropout": {"low": 0.0, "high": 0.7},
    "normalize_features": {"choices": [True, False]},
}
OF_BACKBONE = {
    "gcn": {"num_layers": {"choices": [2, 3, 4, 8]}},
    "gat": {"num_layers": {"choices": [2, 3, 4]}},
    "gcnii": {
        "num_layers": {"choices": [2, 4, 8, 16, 32, 64]},
        "gcnii_alpha": {"low": 0.05, "high": 0.6},
        "gcnii_lambda": {"low": 0.2, "high": 3.0},
    },
}
OFF = {"off": True}
OF_ENC = {
    "mi": {"low": 0.001, "high": 2.0, "log": True} | OFF,
    "mi_lambda": {"low": 0.0, "high": 2.0},
    "tv": {"low": 0.002, "high": 20.0, "log": True} | OFF,
    "tv_gate": {"choices": ["raw", "standardised", "none"]},
    "tv_sigma": {"low": 3.0, "high": 100.0, "log": True},
    "cvg": {"low": 0.0005, "high": 1.0, "log": True} | OFF,
    "consistency": {"low": 0.05, "high": 2.0, "log": True} | OFF,
    "consistency_temperature": {"low": 0.2, "high": 0.9},
    "prior": {"low": 0.1, "high": 20.0, "log": True} | OFF,
}
OF_OBJECTIVE = {
    "ce": {},
    "enc": OF_ENC,
    "tv": {
        "tv": {"low": 0.002, "high": 20.0, "log": True},
        "tv_gate": OF_ENC["tv_gate"],
        "tv_sigma": OF_ENC["tv_sigma"],
    },
}


@pytest.mark.parametrize("backbone", OF_BACKBONE)
@pytest.mark.parametrize("objective", OF_OBJECTIVE)
def test_the_declared_ranges(backbone, objective):
    expected = COMMON | OF_BACKBONE[backbone] | OF_OBJECTIVE[objective]
    assert search_space(backbone, objective) == expected


def test_p_reg_is_searched_where_it_is_named():
    assert "preg" not in search_space("gcn", "enc")
    assert search_space("gcn", "enc+preg")["preg"] == {"low": 0.01, "high": 5.0, "log": True}
