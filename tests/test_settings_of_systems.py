"""The settings of single systems: each belongs to one model or term, and stands after the others."""

from __future__ import annotations

from dataclasses import fields

from everynode.settings import Settings, declarations
from everynode.settings_of_systems import SystemSettings

OWN = [field.name for field in fields(SystemSettings)]


def test_they_are_settings_and_stand_last() -> None:
    assert list(declarations())[-len(OWN) :] == OWN
    assert [field.name for field in fields(Settings)] == list(declarations())
    assert Settings(lpa_steps=3).lpa_steps == 3


def test_each_does_nothing_by_default() -> None:
    declared = declarations()
    for name in OWN:
        one = declared[name]
        of_weight = one.of_term and not getattr(Settings(), one.of_term)
        assert one.of_backbones or of_weight or getattr(Settings(), name) == one.off
        assert name not in Settings().identity()
