"""The options of a fit beside the settings of a run."""

from __future__ import annotations

import numpy as np
import pytest

from everynode.errors import UsageError
from everynode.fit_options import FitOptions, fit_declarations
from everynode.settings import declarations


def test_values_are_stored_as_plain_numbers():
    assert FitOptions(n_estimators=np.int64(3)) == FitOptions("default", 3)


def test_wrong_values_are_refused():
    for wrong in (0, 2.0, "2", None, True):
        with pytest.raises(UsageError, match="'n_estimators' of NodeClassifier must be"):
            FitOptions(n_estimators=wrong)
    with pytest.raises(UsageError, match=r"'preset' of NodeClassifier must be text\. Got 3"):
        FitOptions(preset=3)


def test_no_name_is_declared_twice():
    assert not fit_declarations().keys() & declarations().keys()
