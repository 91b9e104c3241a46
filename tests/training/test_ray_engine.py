"""Many runs on a Ray cluster of two nodes on this machine: what one process finds, each once, also when a node is lost."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from everynode.errors import EverynodeError, UsageError
from everynode.experiments.runner import Graphs, do_runs
from everynode.experiments.store import Store
from everynode.training.ray_engine import CHANCES, run_on_ray

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'everynode[ray]'"),
    pytest.mark.skipif(sys.platform != "linux", reason="a Ray cluster on one machine, and signals"),
]


@pytest.fixture(scope="module")
def cluster():
    """Two nodes with one CPU each, bound to 127.0.0.1."""
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # or Ray, once imported, looks for it at this machine's outer address
    import ray
    from ray.cluster_utils import Cluster

    local = {"node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": 80 * 1024**2, "num_cpus": 1}
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # what is not installed on the nodes is sent to them
    made = Cluster(initialize_head=True, head_node_args=local)
    made.second = made.add_node(**local)
    yield made
    made.shutdown()


def where(job: int, shared: list[str]) -> tuple[int, str, int]:
    import ray
    import torch

    time.sleep(0.3)
    return job * len(shared), ray.get_runtime_context().get_node_id(), torch.get_num_threads()


def test_jobs_are_done_on_both_nodes(cluster):
    found = dict(run_on_ray(where, range(6), ["a", "b"], address=cluster.address))
    assert {job: value for job, (value, _, _) in found.items()} == {job: 2 * job for job in range(6)}
    assert len({node for _, node, _ in found.values()}) == 2
    assert {threads for *_, threads in found.values()} == {1}
    assert not sys.modules["ray"].is_initialized(), "the connection stayed open"
