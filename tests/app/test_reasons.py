"""The reason for a prediction, as the panel of a node shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.test_worker import learn
from everynode.app.project import Source
from everynode.app.reasons import Reasons


def test_a_prediction_is_explained_with_the_labels_of_its_round(
    tmp_path: Path, source: Source
) -> None:
    (tmp_path / "0001").mkdir()
    (tmp_path / "0001" / "labels.csv").write_text("id,team\nn0,team1\n")
    latest = learn(tmp_path / "0001", source, answered=1)
    reasons = Reasons()
    node = int(latest.arrays["queue"][0])
    one = reasons.explain(source, latest, node)
    assert str(one.label) == latest.facts.classes[latest.predicted[node]]
    assert one.probability == pytest.approx(float(latest.certainty[node]), abs=1e-4)
    assert reasons.explain(source, latest, node) == one
    assert reasons.explain(source, latest, 0).given == "team1"
