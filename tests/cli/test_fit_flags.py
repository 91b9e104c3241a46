"""The flags of fit; tests/cli/test_fit.py runs the command."""

from __future__ import annotations

import pytest

from everynode.cli.fit_flags import LabelFlags, OutputFlags, PortfolioFlags
from everynode.cli.options import CandidateOptions, SettingFlags
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.estimator_settings import Choices
from everynode.selection.portfolio_fit import fold_count

NAMED = CandidateOptions(backbone="gcn")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"effort": "best"}, "--effort has no effect"),
        ({"time_limit": "9s"}, "--time-limit has no effect"),
        ({"for_new_nodes": True}, "--for-new-nodes has no effect"),
    ],
)
def test_the_size_of_the_portfolio_has_no_effect_on_a_named_model(flags, message):
    PortfolioFlags(**flags).check(CandidateOptions())
    with pytest.raises(UsageError, match=message):
        PortfolioFlags(**flags).check(NAMED)


def test_a_wrong_number_of_networks_is_refused():
    with pytest.raises(UsageError, match="'n_estimators' of fit must be >= 1"):
        PortfolioFlags(n_estimators=0).check(NAMED)


def test_the_flags_become_parameters():
    model = CandidateOptions(backbone="gcn", preset="paper", flags=SettingFlags(tv=2.0))
    classifier = PortfolioFlags(n_estimators=3).classifier(
        model, LabelFlags(cv=4, seed=7), batch_size=None, workers=2, device="cpu", quiet=True
    )
    choices = Choices.of(classifier)
    assert (choices.options.preset, choices.options.n_estimators) == ("paper", 3)
    assert choices.changes == {"tv": 2.0, "backbone": "gcn"}
    assert (classifier.cv, classifier.random_state, classifier.n_jobs) == (4, 7, 2)
    assert (classifier.verbose, classifier.batch_size) == (False, None)


def test_a_portfolio_deals_its_own_number_of_folds():
    graph = generate(60, 120, 8, 3, seed=0).with_splits([])
    _, notes = LabelFlags(test_share=0).hold_out(graph, "quick", is_portfolio=True)
    assert f"in {fold_count(graph, 0, 'quick')} folds" in notes[-1]
    split, notes = LabelFlags(test_share=0, cv=1).hold_out(graph, "quick", is_portfolio=True)
    assert len(split.nodes("val")) == 12
    assert "choose the models" in notes[-1]


def test_lines_go_to_stderr_beside_json(capsys):
    OutputFlags().show("one")
    OutputFlags(json_output=True).show("two")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("one\n", "two\n")
