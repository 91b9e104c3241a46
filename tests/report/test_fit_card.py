"""The model card of a fit."""

from __future__ import annotations

from everynode.report.fit_card import model_card
from everynode.report.text import percent


def test_the_card_has_data_model_quality_and_limits(fit):
    card = model_card(fit, command="everynode fit --nodes x.csv")
    for heading in ("# Model card:", "## Data", "## Model", "## Quality", "## Limits"):
        assert heading in card
    assert f"{fit.graph.num_nodes} nodes" in card
    assert "`everynode fit --nodes x.csv`" in card
    assert f"| all | {percent(fit.judged_accuracy.value)} |" in card
    for one in fit.slices:
        assert f"| {one.by} {one.name}" in card
    assert "<b>" not in card
    assert model_card(fit) == model_card(fit)


def test_the_members_of_a_portfolio_are_named(portfolio):
    card = model_card(portfolio)
    for member in portfolio.model.ensemble_.members:
        assert f"{member.candidate.name} ({percent(member.weight)})" in card
