"""Make the pictures of docs/start/app.md: label the bundled example in a real browser.

    .venv/bin/python tools/app_pictures.py

It needs Chromium with its driver. The pictures are written to docs/app/.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "app"
EXAMPLES = ROOT / "examples"
FILES = ["--nodes", "people.csv", "--edges", "links.csv", "--label", "team"]


def browser() -> Any:
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (
        "headless=new",
        "no-sandbox",
        "disable-dev-shm-usage",
        "disable-gpu",
        "hide-scrollbars",
    ):
        options.add_argument(f"--{flag}")
    return webdriver.Chrome(
        options=options, service=webdriver.ChromeService("/usr/bin/chromedriver")
    )


def show(driver: Any, width: int, height: int, *, dark: bool = False) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wishes = {
        "prefers-color-scheme": "dark" if dark else "light",
        "prefers-reduced-motion": "reduce",
    }
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    time.sleep(1)


def wait(condition: Callable[[], Any], seconds: float = 240) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if result := condition():
                return result
        except WebDriverException:
            pass
        time.sleep(0.1)
    raise SystemExit("the page did not react")


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "everynode",
            "app",
            "--no-browser",
            *FILES,
            "--project",
            f"{folder}/project",
        ]
        server = subprocess.Popen(command, cwd=EXAMPLES, stderr=subprocess.PIPE, text=True)
        assert server.stderr is not None
        address = (
            next(line for line in server.stderr if "http://" in line).partition("app: ")[2].strip()
        )
        driver = browser()
        try:
            walk(driver, address)
        finally:
            driver.quit()
            server.terminate()
            server.wait()


def walk(driver: Any, address: str) -> None:
    def do(name: str) -> Any:
        return driver.find_element("css selector", f'[data-do="{name}"]')

    def click(name: str) -> None:
        wait(lambda: do(name).click() or True)

    def trained() -> None:
        wait(lambda: not driver.find_elements("css selector", '[data-do="stop"]'))
        time.sleep(1)

    def picture(name: str) -> None:
        time.sleep(1)
        driver.save_screenshot(str(PICTURES / f"{name}.png"))

    show(driver, 1280, 674)  # what follows names folders of this machine
    driver.get(address)
    wait(lambda: do("train").is_enabled())
    picture("data")
    show(driver, 1280, 800)
    click("train")
    wait(lambda: driver.find_elements("css selector", ".node-map canvas"))
    trained()
    for key in "213421":
        before = do("name").text
        ActionChains(driver).send_keys(key).perform()
        wait(lambda before=before: before in do("saved").text)
    click("why")
    wait(lambda: do("reason").text)
    driver.find_element("css selector", ".node-map").send_keys("0")
    driver.execute_script("document.activeElement.blur()")
    picture("map")
    show(driver, 380, 800, dark=True)
    picture("phone")
    show(driver, 1280, 800)
    click("retrain")
    wait(lambda: driver.find_elements("css selector", '[data-do="stop"]'))
    trained()
    click("tab-quality")
    picture("quality")


if __name__ == "__main__":
    main()
