"""Peak memory is measured in a process of its own."""

import json

from everynode.benchmarks.memory import main, peak


def test_the_peak_is_above_the_start(capsys) -> None:
    graph = "generated-60x200x8x3"
    memory = peak("everynode", graph, "gcn", "ce")
    assert 50 < memory["before_mb"] < memory["peak_mb"]
    main("stock", graph, "gcn", "ce")  # here, because the process is the same for both sides
    memory = json.loads(capsys.readouterr().out)
    assert 50 < memory["before_mb"] <= memory["peak_mb"]
