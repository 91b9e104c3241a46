"""Comparing: pairs are pairs, whatever the order of the records."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from everynode.errors import EverynodeError
from everynode.experiments.compare import compare_records
from everynode.experiments.statistics import compare_paired


def record(objective: str, seed: int, test: float, fold: int = 0, val: float = 0.5) -> dict:
    nodes = {"train": 48, "val": 32, "test": 20}
    return {
        "objective": objective,
        "seed": seed,
        "fold": fold,
        "test_accuracy": test,
        "val_accuracy": val,
        "nodes": nodes,
    }


CE, ENC = [0.70, 0.71, 0.69, 0.75], [0.72, 0.72, 0.73, 0.76]


def test_pairs_are_made_by_seed_whatever_the_order():
    records = [record("ce", s, v) for s, v in enumerate(CE)] + [
        record("enc", s, v, val=v) for s, v in reversed(list(enumerate(ENC)))
    ]
    result = compare_records(records, "enc")
    expected = stats.ttest_rel(ENC, CE)
    assert result.gain.p_value == pytest.approx(expected.pvalue)
    assert result.gain.mean == pytest.approx(np.mean(ENC) - np.mean(CE))
    assert result.test["ce"].mean == pytest.approx(np.mean(CE))
    assert result.val["enc"].mean == pytest.approx(np.mean(ENC))
    assert stats.ttest_rel(ENC[::-1], CE).pvalue != pytest.approx(
        expected.pvalue
    )  # a wrong pairing would show


def test_pairs_are_made_by_fold_and_corrected_for_their_overlap():
    records = [record("enc", 0, v, fold=f) for f, v in enumerate(ENC)] + [
        record("ce", 0, CE[f], fold=f) for f in (2, 0, 3, 1)
    ]
    plain, corrected = (
        compare_records(records, "enc"),
        compare_records(records, "enc", over="folds"),
    )
    assert plain.gain.p_value == pytest.approx(stats.ttest_rel(ENC, CE).pvalue)
    assert corrected.gain == compare_paired(ENC, CE, test_share=20 / 48)
    assert corrected.gain.p_value > plain.gain.p_value


def test_a_seed_of_which_a_training_diverged_is_left_out():
    records = [record("ce", s, v) for s, v in enumerate(CE)] + [
        record("enc", s, v) for s, v in enumerate(ENC)
    ]
    records[1] = {"objective": "ce", "seed": 1, "fold": 0, "error": "The loss became nan."}
    result = compare_records(records, "enc")
    assert (result.diverged, len(result.records)) == (1, 8)
    left = compare_paired([ENC[0], *ENC[2:]], [CE[0], *CE[2:]])
    assert (result.gain.count, result.gain.mean, result.gain.low) == (3, left.mean, left.low)
    assert math.isnan(result.gain.p_value), "what is left was not chosen at random"
    assert result.to_dict()["diverged"] == 1
    assert result.test["enc"].count == result.test["ce"].count == 3
    with pytest.raises(EverynodeError, match="The loss became nan"):
        compare_records([records[1], records[5]], "enc")


def test_a_conclusion_is_plain_json():
    records = [record(objective, 0, 0.7) for objective in ("ce", "tv")]
    found = json.loads(json.dumps(compare_records(records, "tv").to_dict(), allow_nan=False))
    assert found["runs"] == records
    assert found["diverged"] == 0
    assert set(found["summary"]) == {"test_accuracy", "val_accuracy", "gain"}
    assert set(found["summary"]["test_accuracy"]) == {"ce", "tv"}
    assert found["summary"]["gain"]["p_value"] is None
