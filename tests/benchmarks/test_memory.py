"""Peak memory is measured in a process of its own."""

import pytest

from everynode.benchmarks.memory import peak


@pytest.mark.parametrize("side", ["everynode", "stock"])
def test_the_peak_is_above_the_start(side: str) -> None:
    memory = peak(side, "generated-60x200x8x3", "gcn", "ce")
    assert 50 < memory["before_mb"] < memory["peak_mb"]
