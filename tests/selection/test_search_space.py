"""What a study searches: the declared ranges, a file of the user, and settings moved into them."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.errors import DataError
from everynode.models.names import MODELS as BACKBONES
from everynode.objective_names import ENC_TERMS, parse_objective
from everynode.selection.search_space import search_space, within
from everynode.selection.study import Study
from everynode.settings import TERMS, Settings, declarations

OBJECTIVES = ["ce", "enc", *("+".join(some) for n in (1, 2) for some in combinations(TERMS, n))]
SPACE = {
    "lr": {"low": 0.001, "high": 0.1, "log": True},
    "normalize_features": {"choices": [True, False]},
}

RANGE = "needs choices, or a low below its high (above 0 with log = true)."


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
    st.floats(0, 100), st.integers(1, 80), st.sampled_from(["raw", "row", "standardized", "none"])
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


def test_only_a_term_that_is_not_named_may_be_off():
    assert all(search_space("gcn", "enc")[term]["off"] for term in ENC_TERMS)
    assert not any("off" in choice for choice in search_space("gcn", "mi+tv").values())


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
    "tv_gate": {"choices": ["raw", "standardized", "none"]},
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
