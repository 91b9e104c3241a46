"""Fixtures that several test files share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

# A shell starts background jobs with SIGINT ignored, and many tests press Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Run every test with one torch thread, for which results are reproducible; restore the number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def no_plugins_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the plugins that a test adds: they would stand in the lists of names of the next one."""
    monkeypatch.setenv("EVERYNODE_PLUGINS", os.environ.get("EVERYNODE_PLUGINS", ""))
    yield
    if plugins := sys.modules.get("everynode.plugins"):
        plugins._registered.clear()


@pytest.fixture(scope="session")
def data_root() -> Path:
    """A folder with the public graphs, from EVERYNODE_DATA; by default ../shared/datasets.

    The folder has PyG's layout. Without it, the test is skipped.
    """
    named = os.environ.get("EVERYNODE_DATA")
    default = Path(__file__).parents[1] / ".." / "shared" / "datasets"
    folder = Path(named) if named else default.resolve()
    if not folder.is_dir():
        pytest.skip("needs the public graphs: set EVERYNODE_DATA to a folder that holds them")
    return folder


def chromium() -> Any:
    """Start Chromium; the test is skipped where there is none."""
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium is not installed: pip install '.[dev]'"
    )
    chromium, path = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and path):
        pytest.skip("needs a browser: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "headless=new",
        "no-sandbox",
        "disable-dev-shm-usage",
        "disable-gpu",
        "hide-scrollbars",
    ):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(path))


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    """Chromium; the test is skipped where there is none."""
    driver = chromium()
    yield driver
    driver.quit()


@pytest.fixture
def another_driver() -> Iterator[Any]:
    """A second Chromium, with separate cookies."""
    driver = chromium()
    yield driver
    driver.quit()


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, without public graphs and with a separate cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVERYNODE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Call ``everynode ...`` in this process, which saves the imports; a traceback fails the test."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        from everynode.cli import main

        words = ["everynode", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", words)
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return subprocess.CompletedProcess(
            words, int(caught.value.code or 0), captured.out, captured.err
        )

    return run
