"""The documentation site: it builds without a warning, and every public name and option has a place."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import everynode

pytest.importorskip("sphinx", reason="needs the extra [docs]")
pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    out = tmp_path_factory.mktemp("site") / "html"
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q"]
    done = subprocess.run(
        [*command, ROOT / "docs", out], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return out


def test_every_public_name_has_a_page(site: Path) -> None:
    for name in everynode.__all__:
        page = site / "generated/api" / f"everynode.{name}.html"
        assert f'id="everynode.{name}"' in page.read_text(encoding="utf-8"), name


def test_every_command_and_option_has_a_page(site: Path) -> None:
    from everynode.cli import app

    seen = 0
    for name in app:
        if name.startswith("-"):
            continue
        page = (site / "generated/commands" / f"{name}.html").read_text(encoding="utf-8")
        shown = app.generate_docs(usage_name="everynode")
        section = re.split(rf"^## everynode {name}$", shown, flags=re.MULTILINE)[1]
        section = re.split(r"^## ", section, flags=re.MULTILINE)[0]
        for option in set(re.findall(r"^\* `([^`]*--[a-z-]+)", section, flags=re.MULTILINE)):
            assert option.split()[-1] in page, (name, option)
            seen += 1
    assert seen > 150


def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    pages = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    ids = {
        page: set(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8"))) for page in pages
    }
    for page in pages:
        for target in re.findall(r'\bhref="([^"]+)"', page.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:|//|data:", target):
                continue
            file, _, anchor = target.partition("#")
            there = (page.parent / file.split("?")[0]).resolve() if file else page
            assert there.exists(), (page.name, target)
            if anchor and there in ids:
                assert anchor in ids[there] or anchor == "", (page.name, target)


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="(?:https?:)?//[^"]+"', text)


def test_equations_are_mathml(site: Path) -> None:
    text = (site / "how/objective.html").read_text(encoding="utf-8")
    assert text.count("<math") > 15
    assert "\\frac" not in re.sub(r"<annotation.*?</annotation>", "", text)


def test_llms_txt_names_pages_of_the_site(site: Path) -> None:
    named = re.findall(r"\]\(([^)]+\.html)\)", (site / "llms.txt").read_text(encoding="utf-8"))
    assert len(named) > 20
    assert all((site / name).exists() for name in named)
