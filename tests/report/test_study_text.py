"""The result of a tuning study as text for the terminal."""

from __future__ import annotations

from types import SimpleNamespace

from everynode.report.study_text import study_lines


def test_the_best_settings_have_their_importance():
    study = SimpleNamespace(
        dataset="cora", backbone="gcn", objective="enc", split="public", count=3, over="seeds",
        space={"lr": {}, "dropout": {}},
    )  # fmt: skip
    result = {
        "importance": {"lr": 0.75}, "trials": 1, "pruned": 0, "seconds": 2.0, "val_accuracy": 0.8125,
        "best_trial": 0, "parameters": {"lr": 0.012345, "dropout": 0.5},
    }  # fmt: skip
    first, second, *rest = study_lines(SimpleNamespace(study=study), result)
    assert first == "cora, gcn, enc, split public: 1 trial of 3 seeds (0 pruned), 2 s"
    assert "81.2 % (trial 0)" in second
    assert "0.01235   importance 0.75 ###############" in rest[0]
    assert "importance" not in rest[1]
