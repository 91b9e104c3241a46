"""The engine that the flags of parallel runs name, and the flags that do not go together."""

from __future__ import annotations

import pytest

from everynode.cli.engine_options import EngineOptions
from everynode.errors import UsageError
from everynode.training.process_pool import run_many


def test_the_default_is_processes_on_this_machine():
    assert EngineOptions().start() is run_many
    assert EngineOptions(workers=3).workers_on("cpu") == 3
    assert EngineOptions().workers_on("cpu") is None
    assert EngineOptions().workers_on("cuda") == 1


def test_ray_gets_the_address_of_its_cluster():
    pytest.importorskip("ray")
    engine = EngineOptions(engine="ray", address="10.0.0.1:6379").start()
    assert engine.keywords == {"address": "10.0.0.1:6379"}


@pytest.mark.parametrize(
    ("flags", "device", "message"),
    [
        ({"workers": 0}, "cpu", "--workers must be at least 1. Got 0."),
        ({"workers": 2}, "cuda", "--device cuda does one run at a time: leave out --workers."),
        ({"engine": "ray"}, "cuda", "--engine ray runs on CPUs: leave out --device."),
        ({"address": "a:1"}, "cpu", "--address is for a Ray cluster: add --engine ray."),
    ],
)
def test_flags_that_do_not_go_together_are_refused(flags, device, message):
    with pytest.raises(UsageError) as refusal:
        EngineOptions(**flags).start(device)
    assert str(refusal.value) == message
