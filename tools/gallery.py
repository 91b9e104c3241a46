"""Run the pages of docs/gallery, and keep their outputs and pictures.

    python tools/gallery.py [PAGE ...]

A ``text`` block right after a ``python`` block holds what that block printed. The pages run in a copy of examples/.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "gallery"
#: Pictures have no ground and gray letters, so that they read on light and on dark pages.
STYLE = """
import os, warnings
os.environ["MPLBACKEND"] = "agg"
warnings.filterwarnings("ignore")
import matplotlib
GREY = "#808080"
matplotlib.rcParams.update({
    "savefig.transparent": True, "savefig.dpi": 160, "text.color": GREY, "axes.labelcolor": GREY,
    "axes.edgecolor": GREY, "xtick.color": GREY, "ytick.color": GREY, "axes.titlesize": 9,
    "axes.spines.top": False, "axes.spines.right": False, "font.size": 9,
    "axes.prop_cycle": matplotlib.cycler(color=["#0f766e", "#b45309", "#6d28d9", "#0369a1", "#be123c"]),
})
"""
BLOCK = re.compile(
    r"```python\n(?P<code>.*?)```(?P<between>\n\n)?(?P<out>```text\n.*?```)?", re.DOTALL
)
END = "\x00"
#: Ten minutes in place of 18 s, so that a busy machine gives the same outputs.
PATIENT = ('effort="quick"', 'effort="quick", time_limit="10m"')


def run(page: Path, folder: Path) -> list[str]:
    """What each block of a page prints; its files are in the folder."""
    codes = [m["code"].replace(*PATIENT) for m in BLOCK.finditer(page.read_text(encoding="utf-8"))]
    program = STYLE + "".join(f"{code}\nprint({END!r})\n" for code in codes)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.split(END + "\n")[:-1]


def with_outputs(text: str, outputs: list[str]) -> str:
    """The page with the outputs in its ``text`` blocks."""
    printed = iter(outputs)

    def block(m: re.Match[str]) -> str:
        shown = next(printed).strip("\n")
        out = f"```text\n{shown}\n```" if m["out"] else ""
        return f"```python\n{m['code']}```{m['between'] or ''}{out}"

    return BLOCK.sub(block, text)


def pages(names: list[str]) -> list[Path]:
    """The named pages, or all that have code."""
    if names:
        return [GALLERY / f"{name.removesuffix('.md')}.md" for name in names]
    return [page for page in sorted(GALLERY.glob("*.md")) if page.name != "index.md"]


def main() -> None:
    for page in pages(sys.argv[1:]):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(shutil.copytree(ROOT / "examples", Path(place) / "examples"))
            text = with_outputs(page.read_text(encoding="utf-8"), run(page, folder))
            page.write_text(text, encoding="utf-8")
            for picture in folder.glob("*.png"):
                shutil.copy(picture, GALLERY)
        print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
