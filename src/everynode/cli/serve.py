"""``everynode app``: look at a graph in the browser, label nodes, retrain, export."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from everynode.cli.files import Columns, Files
from everynode.errors import UsageError, require
from everynode.extras import need_extra

if TYPE_CHECKING:
    from everynode.app.project import Source

#: Files that the page offers, by their ending.
ENDINGS = (
    ".csv",
    ".tsv",
    ".parquet",
    ".jsonl",
    ".xlsx",
    ".graphml",
    ".gexf",
    ".npz",
    ".gz",
    ".txt",
)
#: At most this many of them.
OFFERED = 60


def app(
    model: Path | None = None,
    /,
    *,
    files: Files = Files(),  # noqa: B008 - frozen
    columns: Columns = Columns(),  # noqa: B008 - frozen
    split: str | None = None,
    project: Path | None = None,
    port: int | None = None,
    host: str = "127.0.0.1",
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
) -> int:
    """Open a page in the browser: see the map of a graph, label nodes, retrain, and export.

    The page is served to this computer only, at an address with a random token. Answers are on the
    disk the moment they are given; the same command continues. Needs the extra `app`.

    Parameters
    ----------
    model
        The --out of `everynode fit`, to start with its result; or a project folder, to continue it.
    split
        The column in --nodes with train, val or test. `none` ignores a split in the file.
    project
        The folder of answers and trained models. Default: runs/app-NODES.
    port
        The port of the server. Default: any free one.
    host
        The address to listen on. Any other than the default lets other computers in, which need the
        token too.
    browser
        Whether to open the browser.
    """
    need_extra("app", "everynode app")
    require(port is None or 0 < port < 2**16, "port", "app", "between 1 and 65535", port)
    from everynode.app.project import PROJECT, Project
    from everynode.app.server import serve
    from everynode.app.workspace import Workspace

    source, trained = None, ""
    if files.nodes is not None or files.edges is not None:
        source = _source(files, columns, split)
    if model is not None and (model / PROJECT).exists():
        if project is not None or source is not None:
            raise UsageError(f"{model} is a project: give it alone.")
        project = model
    elif model is not None:
        source, trained = source or _source_of_fit(model), str(model.resolve())
    folder = project or Path("runs") / f"app-{source.name if source else 'new'}"
    offered = [path for path in sorted(Path().iterdir()) if path.name.lower().endswith(ENDINGS)]
    opened = Project(folder, source, trained)
    try:
        work = Workspace(opened, [path.resolve() for path in offered[:OFFERED]])
        serve(work, host=host, port=port, browser=browser)
    finally:
        opened.close()
    return 0


def _source(files: Files, columns: Columns, split: str | None) -> Source:
    """Return the files and roles of the flags."""
    from everynode.app.project import Source

    values = asdict(files) | asdict(columns) | {"split": split}
    for unused in ("keep", "max_size"):
        values.pop(unused)
    return Source(**values).absolute()


def _source_of_fit(folder: Path) -> Source:
    """Return the files and roles that a finished fit was started with."""
    from cyclopts import App, CycloptsError

    from everynode.cli.fit import fit

    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        words = shlex.split(record["command"])[2:]
        parser = App()
        parser.default(fit)
        bound = parser.parse_args(words, print_error=False, exit_on_error=False)[1].arguments
    except (OSError, ValueError, KeyError, CycloptsError) as error:
        raise UsageError(
            f"{folder} does not say which files it was trained on: give --nodes and --edges too."
        ) from error
    split = bound["labels"].split if "labels" in bound else None
    return _source(bound.get("files", Files()), bound.get("columns", Columns()), split)
