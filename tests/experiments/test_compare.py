"""Comparing: pairs are pairs, whatever the order of the records."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from everynode.experiments.compare import conclude


def record(objective: str, seed: int, test: float, fold: int = 0, val: float = 0.5) -> dict:
    return {"objective": objective, "seed": seed, "fold": fold, "test_accuracy": test, "val_accuracy": val}


CE, ENC = [0.70, 0.71, 0.69, 0.75], [0.72, 0.72, 0.73, 0.76]


def test_pairs_are_made_by_seed_whatever_the_order():
    records = [record("ce", s, v) for s, v in enumerate(CE)] + [record("enc", s, v, val=v) for s, v in reversed(list(enumerate(ENC)))]
    result = conclude(records, "enc")
    expected = stats.ttest_rel(ENC, CE)
    assert result.gain.p_value == pytest.approx(expected.pvalue)
    assert result.gain.mean == pytest.approx(np.mean(ENC) - np.mean(CE))
    assert result.test["ce"].mean == pytest.approx(np.mean(CE))
    assert result.val["enc"].mean == pytest.approx(np.mean(ENC))
    assert stats.ttest_rel(ENC[::-1], CE).pvalue != pytest.approx(expected.pvalue)  # a wrong pairing would show


def test_pairs_are_made_by_fold_and_corrected_for_their_overlap():
    records = [record("enc", 0, v, fold=f) for f, v in enumerate(ENC)] + [record("ce", 0, CE[f], fold=f) for f in (2, 0, 3, 1)]
    plain, corrected = conclude(records, "enc"), conclude(records, "enc", test_share=20 / 48)
    assert plain.gain.p_value == pytest.approx(stats.ttest_rel(ENC, CE).pvalue)
    assert corrected.gain.p_value > plain.gain.p_value
    assert corrected.gain.mean == plain.gain.mean


def test_a_conclusion_is_plain_json():
    records = [record(objective, 0, 0.7) for objective in ("ce", "tv")]
    found = json.loads(json.dumps(conclude(records, "tv").to_dict(), allow_nan=False))
    assert found["runs"] == records
    assert set(found["summary"]) == {"test_accuracy", "val_accuracy", "gain"}
    assert set(found["summary"]["test_accuracy"]) == {"ce", "tv"}
    assert found["summary"]["gain"]["p_value"] is None
