"""The folder of a project: its files, the roles of their columns, the journal and the rounds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from everynode.app.answers import Answers
from everynode.app.journal import Entry, Journal
from everynode.errors import DataError, UsageError
from everynode.io.formats import source_file
from everynode.storage.atomic import write_atomically
from everynode.storage.json_text import parse_json
from everynode.storage.locks import try_lock
from everynode.storage.plain_values import from_plain

#: The files of a project.
PROJECT, JOURNAL, FILES, ROUNDS = "project.json", "labels.jsonl", "files", "rounds"


@dataclass(frozen=True)
class Source:
    """The files of a graph and the roles of their columns, as in :func:`everynode.read`.

    Parameters
    ----------
    nodes, edges, labels : str, optional
        The node table, the edge table, and more labels.
    id, label, source, target, weight, split, display : str, optional
        Columns; ``none``: there is none.
    features : str
        The feature columns.
    directed : bool
        Whether edges keep their direction.
    unknown : str, optional
        What to do with edges to unknown nodes: ``refuse``, ``drop`` or ``add``.
    date_order : str, optional
        ``dmy`` or ``mdy``.
    na : tuple of str
        More words for a missing value.
    """

    nodes: str | None = None
    edges: str | None = None
    labels: str | None = None
    id: str | None = None
    label: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    split: str | None = None
    display: str | None = None
    features: str = "all"
    directed: bool = False
    unknown: str | None = None
    date_order: str | None = None
    na: tuple[str, ...] = ()

    def absolute(self) -> Source:
        """Return the source with absolute paths of files; queries and sheets keep their form."""
        changes = {}
        for name in ("nodes", "edges", "labels"):
            given = getattr(self, name)
            if given is not None:
                path = source_file(given)
                changes[name] = given.replace(str(path), str(path.resolve()), 1)
        return replace(self, **changes)

    @property
    def name(self) -> str:
        """The name of the graph: the node file, else the edge file, without ending."""
        source = self.nodes or self.edges
        return source_file(source).name.partition(".")[0] if source else "graph"


class Project:
    """A folder with everything that the application must remember.

    Parameters
    ----------
    folder : Path
        The folder. It is created.
    source : Source, optional
        The files of a new project. None: those of an earlier start, or none yet.
    model : str
        The folder of a model that the project starts with; empty without one.

    Attributes
    ----------
    folder : Path
        The folder.
    source : Source
        The files and the roles of their columns.
    model : str
        The model that the project started with.
    journal : Journal
        The journal.
    answers : Answers
        What people answered.
    """

    def __init__(self, folder: Path, source: Source | None = None, model: str = ""):
        self.folder = folder
        if folder.is_file():
            raise UsageError(f"{folder} is a file: choose a folder for --project.")
        file = folder / PROJECT
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = try_lock(folder / ".app.lock")
        if self._lock is None:
            raise UsageError(
                f"{folder} is open in another `everynode app`. Use that one (several browsers may "
                "share it), or choose another --project."
            )
        self.source, self.model = Source(), model
        if file.exists():
            self.source, self.model = self._read(file)
            if source is not None and (source.nodes, source.edges) != (
                self.source.nodes, self.source.edges,
            ):  # fmt: skip
                raise UsageError(
                    f"{folder} is a project on {self.source.nodes or self.source.edges}. Choose "
                    "another --project, or leave --nodes and --edges out to continue it."
                )
        elif source is not None or model:
            self.save(source or Source())
        self.journal = Journal(folder / JOURNAL)
        self.answers = Answers(self.journal)

    def close(self) -> None:
        """Let another process open the project."""
        if self._lock is not None:
            self._lock.release()

    @staticmethod
    def _read(file: Path) -> tuple[Source, str]:
        try:
            values = parse_json(file.read_text(encoding="utf-8"))
            return from_plain(Source, values["source"]), str(values.get("model", ""))
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise DataError(
                f"{file} cannot be read ({error}): choose another --project."
            ) from error

    def save(self, source: Source) -> None:
        """Change the files or the roles of their columns."""
        text = json.dumps({"source": asdict(source), "model": self.model}, indent=1)
        write_atomically(self.folder / PROJECT, text.encode())
        self.source = source

    def answer(self, entry: Entry) -> Entry:
        """Write an entry to the disk, then apply it."""
        entry = self.journal.append(entry)
        self.answers.add(entry)
        return entry

    def upload_path(self, name: str) -> Path:
        """Return the path of an uploaded file, inside the project whatever its name says."""
        plain = Path(name.replace("\\", "/")).name.lstrip(".") or "file"
        return self.folder / FILES / plain

    @property
    def rounds(self) -> list[Path]:
        """The folders of the finished rounds, the oldest first."""
        return [path for path in self._folders() if (path / "round.json").exists()]

    def new_round(self, files: Mapping[str, str]) -> Path:
        """Return the folder of the next round, with the files that decide its result.

        A round that was interrupted continues if these are the same.
        """
        folders = self._folders()
        if folders and not (folders[-1] / "round.json").exists():
            folder = folders[-1]
            earlier = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.*")}
            if earlier == dict(files):
                return folder
            shutil.rmtree(folder)
        else:
            number = int(folders[-1].name) + 1 if folders else 1
            folder = self.folder / ROUNDS / f"{number:04}"
        for name, text in files.items():
            write_atomically(folder / name, text.encode())
        return folder

    def _folders(self) -> list[Path]:
        parent = self.folder / ROUNDS
        return sorted(path for path in parent.glob("[0-9]*") if path.is_dir())

    def labels_csv(self, columns: Sequence[str] = ("id", "label")) -> str:
        """Return the answers as a table for ``everynode fit --labels``."""
        return self.answers.to_csv(*columns)


def read_options(source: Source, **changes: Any) -> dict[str, Any]:
    """Return the arguments of :func:`everynode.read` for a source."""
    return asdict(source) | {"name": source.name} | changes
