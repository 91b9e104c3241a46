"""The file of one job of the portfolio."""

import torch

from everynode.datasets import generate
from everynode.selection.fold_result import FoldResult
from everynode.settings import Settings
from everynode.training import train
from everynode.training.checkpoint import is_state


def trained():
    graph = generate(60, 150, 6, 3, seed=0)
    result = train(graph, Settings(hidden_channels=8, epochs=4).for_objective("ce"), seed=2)
    with torch.no_grad():
        logits = result.network(graph, graph.nodes("val"))
    return graph, result, FoldResult.of(result, logits, "key", cut=False, wall=1.0)


def test_a_network_comes_back_as_it_was(tmp_path):
    graph, result, stored = trained()
    stored.write(tmp_path / "job.safetensors")
    again = FoldResult.read(tmp_path / "job.safetensors", "key")
    assert torch.equal(again.logits, stored.logits)
    fitted = again.result(graph.classes, graph.name, graph.digest)
    with torch.no_grad():
        assert torch.equal(fitted.network(graph), result.network(graph))
    assert (fitted.settings, fitted.seed, fitted.history) == (result.settings, 2, result.history)
    assert is_state(tmp_path / "job.safetensors", damaged=False)  # so that the fit may remove it


def test_other_and_damaged_files_are_not_read(tmp_path):
    _, _, stored = trained()
    path = tmp_path / "job.safetensors"
    assert FoldResult.read(path, "key") is None
    stored.write(path)
    assert FoldResult.read(path, "another key") is None
    path.write_bytes(path.read_bytes()[:200])
    assert FoldResult.read(path, "key") is None


def test_a_training_that_the_time_limit_cut_is_not_continued_from(tmp_path):
    _, result, stored = trained()
    cut = FoldResult.of(result, stored.logits, "key", cut=True, wall=1.0)
    cut.write(tmp_path / "job.safetensors")
    assert FoldResult.read(tmp_path / "job.safetensors", "key") is None
