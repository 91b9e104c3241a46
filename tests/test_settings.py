"""Settings and presets: what the defaults are, what the paper says, and what is refused."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from everynode.errors import UsageError
from everynode.evaluation.metrics import MONITORS
from everynode.models.build import build_model, unused_settings
from everynode.models.names import MODELS as BACKBONES
from everynode.models.names import model_class
from everynode.objective_names import named_terms, objective_name, parse_objective
from everynode.presets import PRESETS, read_preset
from everynode.settings import TERMS, Declaration, Settings, declarations

SOURCE = Path(__file__).parents[1] / "src" / "everynode"
PAPER = read_preset("paper")
ROWS = [
    (s, g, b)
    for s, graphs in PAPER.items()
    if s not in ("base", "backbone")
    for g, table in graphs.items()
    for b in table
]


# ---------------------------------------------------------------- the declarations


def test_every_setting_is_declared_whole() -> None:
    for name, declared in declarations().items():
        assert declared.help.endswith("."), name
        assert declared.group in ("Training", "Model", "Objective", "Optimizer"), name
        assert declared.allows(getattr(Settings, name)), name
        assert not declared.of_term or declared.of_term in TERMS, name
        assert declared.option if declared.of_term else not declared.option, name
        if declared.search and not declared.search.choices:
            assert declared.allows(declared.search.low), name
            assert declared.allows(declared.search.high), name
        for value in declared.search.choices if declared.search else ():
            assert declared.allows(value), name


def test_every_term_names_a_class_with_the_options_of_its_settings() -> None:
    for name in TERMS:
        module, _, cls = declarations()[name].term.partition(":")
        term = getattr(import_module(module), cls)
        parameters = inspect.signature(term.__init__).parameters
        for setting, declared in declarations().items():
            if declared.of_term == name:
                default = parameters[declared.option].default
                assert default == getattr(Settings(), setting), setting


def defaults(code: ast.AST) -> Iterator[tuple[str, str]]:
    """The name and the default of every argument of every function, as text."""
    for function in ast.walk(code):
        if isinstance(function, ast.FunctionDef):
            a = function.args
            last = [*a.posonlyargs, *a.args][::-1]
            pairs = [
                *zip(last, a.defaults[::-1], strict=False),
                *zip(a.kwonlyargs, a.kw_defaults, strict=True),
            ]
            yield from ((arg.arg, ast.unparse(value)) for arg, value in pairs if value)


@pytest.mark.parametrize(
    "file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE))
)
def test_no_constructor_declares_the_default_of_a_setting_again(file: Path) -> None:
    """It refers to :class:`Settings`, or its None or "auto" means that something else decides."""
    for name, default in defaults(ast.parse(file.read_text(encoding="utf-8"))):
        if name in declarations():
            assert default in (f"Settings.{name}", "None", "'auto'"), name


def test_a_default_is_noticed() -> None:
    code = ast.parse("def f(a, b=1, *, c=2, d): ...\nclass A:\n    def g(self, e='x'): ...")
    assert [*defaults(code)] == [("b", "1"), ("c", "2"), ("e", "'x'")]


def outside(declared: Declaration) -> float:
    """A number just below the range of a setting."""
    low = max(declared.low, declared.above)
    return low if declared.above == low else low - 1


@pytest.mark.parametrize("name", BACKBONES)
def test_a_model_refuses_what_its_settings_refuse(name: str) -> None:
    cls = model_class(name)
    used = {*Settings().group("Model")} - unused_settings(name) - {"backbone"}
    for option in used:
        declared, default = declarations()[option], getattr(Settings, option)
        if isinstance(default, bool):
            continue
        with pytest.raises(UsageError, match=f"'{option}' of "):
            cls(num_features=8, num_classes=3, **{option: type(default)(outside(declared))})


@pytest.mark.parametrize("name", [n for n, d in declarations().items() if d.of_term])
def test_a_term_refuses_what_its_settings_refuse(name: str) -> None:
    declared, default = declarations()[name], getattr(Settings, name)
    module, _, cls = declarations()[declared.of_term].term.partition(":")
    value = "none such" if declared.choices else type(default)(outside(declared))
    message = "Unknown" if declared.choices else f"'{declared.option}' of {cls} must be"
    with pytest.raises(UsageError, match=message):
        getattr(import_module(module), cls)(1.0, **{declared.option: value})


def test_settings_are_named_not_counted() -> None:
    with pytest.raises(TypeError, match="positional"):
        Settings("gat")  # type: ignore[misc]


def test_the_defaults_are_the_default_preset() -> None:
    assert Settings.preset() == Settings.preset("default", backbone="gcn") == Settings()


def test_default_settings_that_models_share_stand_once() -> None:
    rows = read_preset("default")["backbone"]
    assert {row["like"] for row in rows.values() if "like" in row} <= set(rows)
    own = [dict(row) for row in rows.values() if set(row) != {"like"}]
    assert all(own.count(row) == 1 for row in own)
    assert Settings.preset(backbone="dirsage") == Settings.preset(
        backbone="mlp", dropout=0.3, layer_dropout=0.3
    ).replace(backbone="dirsage")


def test_the_groups_hold_every_setting_once() -> None:
    groups = [Settings().group(name) for name in ("Training", "Model", "Objective", "Optimizer")]
    names = [name for group in groups for name in group]
    assert sorted(names) == sorted(f.name for f in dataclasses.fields(Settings))


def test_the_identity_has_what_does_something_and_nothing_else() -> None:
    plain = Settings(mi=0.0, tv=0.0, cvg=0.0)
    assert plain.replace(tv_sigma=3.0, gcnii_alpha=0.7).identity() == plain.identity()
    assert plain.replace(tv=1.0, tv_sigma=3.0).identity() != plain.replace(tv=1.0).identity()
    gcnii = plain.replace(backbone="gcnii")
    assert gcnii.replace(gcnii_alpha=0.7).identity() != gcnii.identity()
    assert plain.replace(class_weight={"a": 2}).identity()["class_weight"] == (("a", 2.0),)


def test_pairs_are_kept_in_one_order_and_can_be_hashed() -> None:
    one = Settings(class_weight={"b": 1, "a": 2}, weights={"hub": 0.5})
    other = Settings(class_weight={"a": 2.0, "b": 1.0}, weights=[["hub", 0.5]])
    assert one == other
    assert hash(one) == hash(other)
    assert one.active_terms()["hub"] == 0.5


def test_whole_numbers_are_the_same_settings() -> None:
    assert repr(Settings(tv=5)) == repr(Settings(tv=5.0))


def test_the_default_preset_does_not_ask_which_graph() -> None:
    for backbone in BACKBONES:
        here = Settings.preset("default", graph="cora", split="public", backbone=backbone)
        assert here == Settings.preset(
            "default", graph="somebody's own", split="none", backbone=backbone
        )
        assert here.backbone == backbone
    assert Settings.preset(backbone="gcnii").num_layers == 8
    assert Settings.preset(backbone="gcnii").hidden_channels == Settings().hidden_channels


# ---------------------------------------------------------------- the paper

CELLS = [
    # split, graph, backbone, and what tables 12 and 13 print
    (
        "public", "cora", "gcn",
        {"lr_gnn": 1e-3, "lr": 0.01, "weight_decay_gnn": 1e-5, "weight_decay": 1e-5, "hidden_channels": 64, "dropout": 0.6, "mi": 1.0, "tv": 2.0, "cvg": 1.0},
    ),
    ("public", "citeseer", "gcn", {"lr_gnn": 1e-4, "lr": 5e-3, "hidden_channels": 256, "dropout": 0.7, "mi": 0.8, "tv": 2.0, "cvg": 1.0}),
    ("public", "citeseer", "gat", {"weight_decay_gnn": 1e-3, "hidden_channels": 256, "mi": 1.0, "tv": 2.0, "cvg": 2.0}),
    ("public", "pubmed", "gcn", {"lr_gnn": 0.01, "lr": 5e-4, "mi": 0.6}),
]  # fmt: skip


@pytest.mark.parametrize(("split", "graph", "backbone", "printed"), CELLS)
def test_the_paper_preset_has_the_printed_values(
    split: str, graph: str, backbone: str, printed: dict[str, float]
) -> None:
    s = Settings.preset("paper", graph=graph, split=split, backbone=backbone)
    assert {name: getattr(s, name) for name in printed} == printed
    assert (s.mi_lambda, s.tv_sigma, s.halves, s.layer_dropout, s.monitor) == (
        2.0,
        10.0,
        "random",
        0.0,
        "loss",
    )
    assert s.backbone == backbone


@pytest.mark.parametrize(
    ("split", "graph", "backbone"), [pytest.param(*row, id="-".join(row)) for row in ROWS]
)
def test_every_row_of_the_paper_builds(split: str, graph: str, backbone: str) -> None:
    s = Settings.preset("paper", graph=graph, split=split, backbone=backbone)
    expected = {
        **PAPER["base"],
        **PAPER["backbone"][backbone],
        **PAPER[split][graph][backbone],
        "backbone": backbone,
    }
    own = expected.pop("ce", {})
    assert {name: getattr(s, name) for name in expected} == expected
    of_cross_entropy = Settings.preset(
        "paper", graph=graph, split=split, backbone=backbone, objective="CE"
    )
    assert of_cross_entropy == dataclasses.replace(s, **own)
    assert s.mi > 0
    assert s.tv > 0
    assert s.cvg > 0
    network = build_model(3, 2, s)
    assert len(network.layers) == s.num_layers


def test_there_are_42_rows() -> None:
    assert len(ROWS) == 42


def test_random_splits_follow_the_public_table() -> None:
    for backbone in PAPER["backbone"]:
        random = Settings.preset("paper", graph="cora", split="random", backbone=backbone)
        assert random == Settings.preset("paper", graph="cora", split="public", backbone=backbone)


def test_the_same_graph_differs_by_split() -> None:
    public, full = (
        Settings.preset("paper", graph="cora", split=split, backbone="gcn")
        for split in ("public", "geom-gcn")
    )
    assert public != full


# ---------------------------------------------------------------- changes


def test_changes_go_on_top_and_none_is_no_change() -> None:
    s = Settings.preset(
        "paper", graph="cora", split="public", backbone="gcn", tv=7.0, mi=None, dropout=None
    )
    assert s.tv == 7.0
    assert s.mi == 1.0
    assert s.dropout == 0.6
    assert dataclasses.replace(s, tv=2.0) == Settings.preset(
        "paper", graph="cora", split="public", backbone="gcn"
    )
    assert Settings.preset(cvg=0.0).cvg == 0.0


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().tv = 1.0  # type: ignore[misc]


def test_a_preset_is_not_changed_by_using_it() -> None:
    before = Settings.preset("paper", graph="cora", split="public")
    Settings.preset("paper", graph="citeseer", split="public", backbone="gcnii", tv=99.0)
    assert Settings.preset("paper", graph="cora", split="public") == before


# ---------------------------------------------------------------- objectives


@pytest.mark.parametrize(
    ("objective", "on"),
    [
        ("ce", set()),
        ("enc", {"mi", "tv", "cvg", "consistency", "prior"}),
        ("consistency", {"consistency"}),
        ("prior+consistency", {"consistency", "prior"}),
        ("mi", {"mi"}),
        ("tv", {"tv"}),
        ("cvg", {"cvg"}),
        ("mi+tv", {"mi", "tv"}),
        ("tv+mi", {"mi", "tv"}),
        ("mi+cvg", {"mi", "cvg"}),
        ("CE+TV", {"tv"}),
        ("enc+preg", {"mi", "tv", "cvg", "consistency", "prior", "preg"}),
        ("preg", {"preg"}),
        ("mi+tv+cvg", {"mi", "tv", "cvg"}),
    ],
)
def test_only_the_named_terms_are_on(objective: str, on: set[str]) -> None:
    whole = Settings(consistency=1.0, prior=2.0, preg=0.5)
    s = whole.for_objective(objective)
    assert set(parse_objective(objective)) == on
    for term in TERMS:
        assert getattr(s, term) == (getattr(whole, term) if term in on else 0.0)
    assert dataclasses.replace(s, **{term: getattr(whole, term) for term in TERMS}) == whole, (
        "nothing else was touched"
    )


@pytest.mark.parametrize(
    "objective",
    [
        "ce",
        "enc",
        "ENC+consistency",
        "consistency+enc+preg",
        "tv+mi",
        "mi+tv+cvg",
        "mi+tv+cvg+consistency",
    ],
)
def test_an_objectives_name_means_what_it_said(objective: str) -> None:
    name = objective_name(objective)
    assert objective_name(name) == name
    assert named_terms(name) == named_terms(objective)
    assert parse_objective(name) == parse_objective(objective)


def test_cross_entropy_alone_has_a_weight() -> None:
    """A term may replace cross-entropy; the plain baseline beside it must still learn."""
    own = Settings(ce=0.0, soft_labels=0.05)
    assert own.for_objective("soft_labels").ce == 0.0
    assert own.for_objective("ce").ce == 1.0
    assert Settings(ce=0.5).for_objective("ce").ce == 0.5


def test_a_temperature_of_a_term_that_is_off_makes_no_other_settings() -> None:
    off = Settings(consistency=1.0, consistency_temperature=0.3).for_objective("ce")
    assert off.identity() == Settings().for_objective("ce").identity()
    enc = Settings(consistency_temperature=0.3).for_objective("enc")
    assert enc.identity() == Settings().identity()
    assert (
        Settings(consistency=1.0, consistency_temperature=0.3)
        .for_objective("consistency")
        .consistency_temperature
        == 0.3
    )


def test_enc_takes_terms_of_weight_zero_but_a_named_one_must_have_a_weight() -> None:
    assert Settings(mi=0.0).for_objective("enc").mi == 0.0
    with pytest.raises(UsageError) as refused:
        Settings().for_objective("mi+preg")
    assert (
        str(refused.value)
        == "The objective 'mi+preg' names preg, but its weight is 0: give one (preg=1.0, or --preg 1)."
    )


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: Settings.preset("papre"),
            "Unknown preset 'papre' (did you mean 'paper'?). Choose from: default, paper, tuned, authors, a file that ends in .toml.",
        ),
        (
            lambda: Settings.preset(backbone="gin"),
            f"Unknown backbone 'gin' (did you mean 'gcn'?). Choose from: {', '.join(BACKBONES)}.",
        ),
        (
            lambda: Settings.preset("paper", graph="mine", split="public"),
            "The paper has no hyper-parameters for gcn on graph 'mine' with split 'public': use --preset default.",
        ),
        (
            lambda: Settings.preset("paper", graph="texas", split="public", backbone="gat"),
            "The paper has no hyper-parameters for gat on graph 'texas' with split 'public': use --preset default.",
        ),
        (
            lambda: Settings.preset("paper", graph="texas", split="random"),
            "The paper has no hyper-parameters for gcn on graph 'texas' with split 'random': use --preset default.",
        ),
        (
            lambda: Settings.preset("paper"),
            "The paper has no hyper-parameters for gcn on graph '' with split '': use --preset default.",
        ),
        (
            lambda: Settings(num_layers=2.5),
            "The 'num_layers' of Settings must be a whole number. Got 2.5.",
        ),
        (lambda: Settings(tv="1"), "The 'tv' of Settings must be a number. Got '1'."),
        (
            lambda: Settings(normalize_features=1),
            "The 'normalize_features' of Settings must be True or False. Got 1.",
        ),
        (
            lambda: Settings(class_weight={"a": -1}),
            "The 'class_weight' of Settings must be a dict with a weight >= 0 for each name. Got {'a': -1}.",
        ),
        (
            lambda: Settings().replace(tw=1.0),
            "Unknown setting 'tw'. Choose from: " + ", ".join(declarations()) + ".",
        ),
        (lambda: Settings(epochs=0), "The 'epochs' of Settings must be >= 1. Got 0."),
        (lambda: Settings(patience=0), "The 'patience' of Settings must be >= 1. Got 0."),
        (lambda: Settings(lr_gnn=0.0), "The 'lr_gnn' of Settings must be > 0. Got 0.0."),
        (lambda: Settings(lr=-1.0), "The 'lr' of Settings must be > 0. Got -1.0."),
        (
            lambda: Settings(weight_decay_gnn=-1e-3),
            "The 'weight_decay_gnn' of Settings must be >= 0. Got -0.001.",
        ),
        (
            lambda: Settings(weight_decay=float("nan")),
            "The 'weight_decay' of Settings must be >= 0. Got nan.",
        ),
        (lambda: Settings(tv=-1.0), "The 'tv' of Settings must be >= 0. Got -1.0."),
        (lambda: Settings(preg=-1.0), "The 'preg' of Settings must be >= 0. Got -1.0."),
        (
            lambda: Settings(monitor="los"),
            f"Unknown monitor 'los' (did you mean 'loss'?). Choose from: {', '.join(MONITORS)}.",
        ),
        (
            lambda: Settings(class_weight="even"),
            "The 'class_weight' of Settings must be None, 'balanced' or a dict with a weight for each class. Got 'even'.",
        ),
        (
            lambda: Settings().for_objective("mi+prag"),
            "Unknown objective 'prag' (did you mean 'preg'?). "
            f"Choose from: enc, ce, {', '.join(TERMS)}, mi+tv (or any other sum).",
        ),
        (
            lambda: parse_objective(""),
            f"Unknown objective ''. Choose from: enc, ce, {', '.join(TERMS)}, mi+tv (or any other sum).",
        ),
    ],
)
def test_refusals(build: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        build()
    assert str(refused.value) == sentence


@pytest.mark.parametrize("name", ["base", "backbone", "public"])
def test_a_table_of_the_file_is_not_a_split(name: str) -> None:
    """``paper.toml`` holds [base] and [backbone] beside the splits: their names must not be taken for one."""
    with pytest.raises(UsageError):
        Settings.preset("paper", graph="gcn", split=name, backbone="gcn")


def test_the_presets_there_are() -> None:
    assert PRESETS == ("default", "paper", "tuned", "authors")
    assert set(PAPER["backbone"]) <= set(BACKBONES)
    assert set(read_preset("default")["backbone"]) <= set(BACKBONES)
