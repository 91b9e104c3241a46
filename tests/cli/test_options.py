"""The flags of settings, which follow from their declarations."""

from __future__ import annotations

import dataclasses
from typing import get_args

import pytest

from everynode.cli.options import (
    CandidateOptions,
    DataOptions,
    ModelOptions,
    SettingFlags,
    parse_pairs,
)
from everynode.errors import UsageError
from everynode.settings import Settings, declarations


def test_every_setting_has_a_flag_with_its_help_and_range():
    flags = {f.name: f for f in dataclasses.fields(SettingFlags)}
    assert set(flags) == set(declarations()) - {"backbone"}
    for name, flag in flags.items():
        _, parameter = get_args(flag.type)
        declared = declarations()[name]
        assert parameter.help.startswith(declared.help.removesuffix(".")), name
        if not declared.choices and not declared.pairs:
            assert declared.expected in parameter.help, name


def test_flags_change_the_preset():
    options = ModelOptions(flags=SettingFlags(tv=2.0, class_weight="balanced", num_layers=3))
    assert options.named == {"num_layers": 3, "tv": 2.0, "class_weight": "balanced"}
    settings = options.settings("my own", "public", "tv")
    assert settings == Settings(tv=2.0, class_weight="balanced", num_layers=3)


def test_pairs_are_parsed():
    flags = SettingFlags(class_weight="yes=5, no=1", weights=("a=1", "b=2"))
    assert ModelOptions(flags=flags).named == {
        "class_weight": {"yes": 5.0, "no": 1.0},
        "weights": {"a": 1.0, "b": 2.0},
    }
    assert parse_pairs("a=b=2", "--x") == {"a=b": 2.0}


@pytest.mark.parametrize("text", ["even", "a=", "=1", "a=x", "a=1,"])
def test_bad_pairs_are_refused(text):
    with pytest.raises(UsageError, match="--class-weight takes balanced, or NAME=NUMBER"):
        parse_pairs(text, "--class-weight")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "mi", "flags": {"tv": 99.0}}, "--tv has no effect: --objective mi has no"),
        ({"objective": "ce", "flags": {"tv_sigma": 3.0}}, "--tv-sigma has no effect"),
        ({"flags": {"gcnii_alpha": 0.2}}, "--gcnii-alpha has no effect with --backbone gcn"),
        ({"backbone": "mlp", "flags": {"lr_gnn": 0.2}}, "--lr-gnn has no effect with --backbone"),
        ({"backbone": "logistic", "flags": {"num_layers": 3}}, "--num-layers has no effect with"),
    ],
)
def test_a_flag_without_effect_is_refused(options, message):
    flags = SettingFlags(**options.pop("flags"))
    with pytest.raises(UsageError, match=message):
        ModelOptions(**options, flags=flags).load_plugins()


def test_a_flag_of_random_splits_needs_one():
    for flags in ({"per_class": 5}, {"split_seed": 3}, {"split": "public", "per_class": 5}):
        with pytest.raises(UsageError, match="has no effect without --split random"):
            DataOptions(**flags).load("citeseer")
    assert len(DataOptions(split="random", per_class=5).load("citeseer")[0].nodes("train")) == 30


def test_a_flag_with_an_effect_or_switched_off_is_accepted():
    ModelOptions(objective="mi", flags=SettingFlags(mi=0.2, tv=0.0)).load_plugins()
    ModelOptions(objective="enc", flags=SettingFlags(tv=0.2, tv_sigma=3.0)).load_plugins()
    ModelOptions(backbone="logistic", flags=SettingFlags(epochs=3)).load_plugins()
    CandidateOptions(flags=SettingFlags(tv=0.2, gcnii_alpha=0.2)).load_plugins()
