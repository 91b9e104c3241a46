"""What training does with memory: what is freed is kept within the block and given back after it, and nothing waits to be freed.

What concerns malloc runs in fresh processes, since malloc remembers.
"""

import gc
import math
import subprocess
import sys

import pytest
import torch

from everynode.batches import Batches
from everynode.datasets import generate
from everynode.settings import Settings
from everynode.training import train
from everynode.training.memory import forget_peak, peak_mb, reused_memory

linux = pytest.mark.skipif(
    sys.platform != "linux", reason="glibc's malloc, and /proc, are on Linux only"
)
#: Each check runs in a separate process, forked before anything was allocated.
CHECKS = """
import os
import resource
import sys
import traceback
from pathlib import Path
import torch
from everynode.training.memory import reused_memory

def resident_mb():
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) / 1024

def faults(times, mb=24):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        kept = [torch.ones(mb * 256 * 1024) for _ in range(4)]
        del kept
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def fewer_pages_are_touched_anew():
    outside = faults(8)
    with reused_memory():
        faults(1)
        inside = faults(8)
    assert inside < outside / 4, (inside, outside)

def memory_goes_back_afterwards():
    before = resident_mb()
    with reused_memory():
        faults(2)
        assert resident_mb() > before + 50
    assert resident_mb() < before + 40

def large_arrays_leave_no_holes():
    before = resident_mb()
    with reused_memory():
        faults(2, mb=64)
        assert resident_mb() < before + 40

torch.set_num_threads(1)
failed = False
for check in (fewer_pages_are_touched_anew, memory_goes_back_afterwards, large_arrays_leave_no_holes):
    if not (child := os.fork()):
        try:
            check()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    failed |= os.waitpid(child, 0)[1] != 0
sys.exit(failed)
"""


@linux
def test_freed_memory_is_kept_within_the_block_and_goes_back_after_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHECKS], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_an_error_inside_comes_through() -> None:
    with pytest.raises(ValueError, match="inside"), reused_memory():
        raise ValueError("inside")


@pytest.mark.parametrize("batches", [None, Batches(size=100)], ids=["whole", "batches"])
@pytest.mark.parametrize("objective", ["ce", "mi+tv+cvg", "consistency"])
@pytest.mark.parametrize("backbone", ["gcn", "gat", "gcnii"])
def test_no_array_waits_for_the_garbage_collector(
    backbone: str, objective: str, batches: Batches | None
) -> None:
    # Python frees at once what nothing refers to, but a circle only now and then; on Pubmed that was 10 MB a step, up to gigabytes.
    settings = Settings.preset(backbone=backbone, consistency=1.0, epochs=6).for_objective(
        objective
    )
    alive = list[int]()

    def count(epoch: int, row: dict[str, float]) -> None:
        alive.append(sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects()))

    graph = generate(300, 900, 32, 4)
    gc.collect()
    gc.freeze()  # what is there already need not be looked through in each epoch
    gc.disable()
    try:
        train(graph, settings, report=count, batches=batches)
    finally:
        gc.enable()
        gc.unfreeze()
    assert min(alive[3:]) <= max(alive[:3]), alive  # how many are drawn in advance varies


def test_the_peak_of_a_process() -> None:
    before = peak_mb()
    array = torch.ones(30 * 2**18)
    assert peak_mb() >= before > 10
    del array
    forget_peak()
    assert peak_mb() > 0


def test_a_system_that_does_not_tell_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_proc(*args: object, **options: object) -> str:
        raise FileNotFoundError

    before = peak_mb()
    monkeypatch.setattr("pathlib.Path.read_text", no_proc)
    if sys.platform == "linux":
        assert peak_mb() > before / 2, "in MB, as by /proc"
    monkeypatch.setitem(sys.modules, "resource", None)
    if sys.platform != "win32":
        assert math.isnan(peak_mb())
