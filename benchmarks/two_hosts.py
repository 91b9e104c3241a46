"""Does training on two hosts finish, and continue after one was lost?

``everynode train`` on two network namespaces. Needs root and the ``ip`` command. The two hosts have an address each, see nothing else, and
share the file system.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import write

HOSTS = {"everynode-a": "10.77.0.1", "everynode-b": "10.77.0.2"}
TRAIN = [
    "-m",
    "everynode",
    "train",
    "citeseer",
    "--batch-size",
    "64",
    "--fan-out",
    "5",
    "--epochs",
    "150",
    "--patience",
    "150",
    "--json",
]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def start(out: Path, port: int) -> list[subprocess.Popen[str]]:
    processes = []
    for rank, host in enumerate(HOSTS):
        torchrun = [
            "-m",
            "torch.distributed.run",
            "--nnodes",
            "2",
            "--node-rank",
            str(rank),
            "--nproc-per-node",
            "1",
        ]
        where = ["--master-addr", HOSTS["everynode-a"], "--master-port", str(port)]
        words = [
            "ip",
            "netns",
            "exec",
            host,
            sys.executable,
            *torchrun,
            *where,
            *TRAIN,
            "--out",
            str(out),
        ]
        environment = {
            **os.environ,
            "GLOO_SOCKET_IFNAME": f"eth-{host[-1]}",
            "OMP_NUM_THREADS": "1",
        }
        processes.append(
            subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
            )
        )
    return processes


def end(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    said = [process.communicate(timeout=900) for process in processes]
    return [(process.returncode, *texts) for process, texts in zip(processes, said, strict=True)]


def main() -> None:
    found: dict[str, object] = {}
    try:
        for host in HOSTS:
            ip("netns", "add", host)
        ip(
            "link",
            "add",
            "eth-a",
            "netns",
            "everynode-a",
            "type",
            "veth",
            "peer",
            "name",
            "eth-b",
            "netns",
            "everynode-b",
        )
        for host, address in HOSTS.items():
            for words in (
                ["addr", "add", f"{address}/24", "dev", f"eth-{host[-1]}"],
                ["link", "set", f"eth-{host[-1]}", "up"],
            ):
                ip("-n", host, *words)
            ip("-n", host, "link", "set", "lo", "up")
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "model"
            running = start(out, 29511)
            while not (out / "training.safetensors").exists() and running[0].poll() is None:
                time.sleep(0.1)
            running[1].terminate()  # the second host is shut down
            lost = end(running)
            found["host_lost"] = {
                "exit_codes": [code for code, *_ in lost],
                "said": "Another process of this training has ended" in lost[0][2],
            }
            (code, out_0, err_0), (code_1, out_1, _) = end(start(out, 29512))
            if code:
                raise SystemExit(err_0)
            record = json.loads(out_0)
            found["again"] = {
                "exit_codes": [code, code_1], "went_on": "Going on from" in err_0, "second_host_printed": bool(out_1.strip()),
                "files": sorted(path.name for path in out.iterdir()), "epochs": record["epochs"], "processes": record["processes"],
                "val_accuracy": record["val_accuracy"], "seconds": record["seconds"],
            }  # fmt: skip
    finally:
        for host in HOSTS:
            subprocess.run(["ip", "netns", "del", host], check=False)
    print(json.dumps(found, indent=1))
    write("two-hosts", found)


if __name__ == "__main__":
    main()
