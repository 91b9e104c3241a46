"""The journal of a tuning study: one file in which its trials are kept, and that several processes may write."""

from __future__ import annotations

import dataclasses
import os
import statistics
from pathlib import Path
from typing import IO, Any, Self

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from everynode.errors import DataError
from everynode.experiments.owner import LOCKS, lock_file
from everynode.experiments.study import Study
from everynode.settings import Settings

optuna.logging.set_verbosity(optuna.logging.WARNING)

#: How every journal of Optuna begins.
BEGINNING = b'{"op_code":'


class Journal:
    """A study in its file. Opening makes the file, unless ``study`` is None: then it has to be there.

    A study goes on with what it was begun with: its search space and its base settings are in the journal, and a later change of the
    presets does not mix two searches.
    """

    def __init__(self, path: Path, study: Study | None = None):
        self.path = path
        self.lock = _Lock(path)
        try:
            if study is None and not path.is_file():
                raise DataError(f"There is no study at {path}.")
            path.parent.mkdir(parents=True, exist_ok=True)
            with self.lock:
                storage = JournalStorage(JournalFileBackend(str(path), self.lock))
                self.optuna = self._load(storage, study)
                self.study = _read(self.optuna.user_attrs["study"])
        except DataError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} is not the journal of a study ({error}): move it away, or name another --out.") from error
        if study is not None and study.graph_digest != self.study.graph_digest:
            raise DataError(f"{path} is a study of another graph by the name {study.dataset}: move it away, or name another --out.")

    def _load(self, storage: JournalStorage, study: Study | None) -> optuna.Study:
        """The Optuna study; a new one is told what it is."""
        names = [found.study_name for found in storage.get_all_studies()]
        if not names and (study is None or self.path.stat().st_size):
            raise ValueError("there is no study in it")
        name = names[0] if study is None else study.name
        if names and name not in names:
            raise DataError(f"{self.path} is the journal of another study ({names[0]}): name another --out.")
        if names:
            opened = optuna.load_study(study_name=name, storage=storage)
        else:
            opened = optuna.create_study(study_name=name, storage=storage, direction="maximize")
        if study is not None and "study" not in opened.user_attrs:
            opened.set_user_attr("study", dataclasses.asdict(study))
        return opened

    def ended(self) -> list[FrozenTrial]:
        """The trials that count: complete, or given up because others were better."""
        return self.optuna.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))

    def best(self) -> FrozenTrial | None:
        """The complete trial of the highest mean validation accuracy; ties by validation loss."""
        return max((trial for trial in self.ended() if trial.state == TrialState.COMPLETE), key=rank, default=None)


def rank(trial: FrozenTrial) -> tuple[float, float, int]:
    """By what complete trials are compared: the higher the better."""
    assert trial.value is not None
    return trial.value, -statistics.mean(trial.user_attrs["losses"]), -trial.number


def _read(stored: dict[str, Any]) -> Study:
    return Study(**stored | {"base": Settings(**stored["base"])})


class _Lock(JournalFileOpenLock):
    """The lock of a journal, which may be taken several times over, and which the system lets go of however a process ends."""

    def __init__(self, path: Path):
        super().__init__(str(path))
        self._journal = path
        self._path = path.with_name(f"{path.name}.lock")
        self._file: IO[str] | None = None
        self._depth = 0

    def acquire(self) -> bool:
        """Wait until it is ours."""
        if self._depth == 0 and LOCKS:
            self._file = self._path.open("w")
            lock_file(self._file)
        elif self._depth == 0:
            super().acquire()
        self._depth += 1
        if self._depth == 1 and self._journal.exists():
            self._drop_torn_line()
        return True

    def release(self) -> None:
        """Let go, as often as it was taken."""
        self._depth -= 1
        if self._depth == 0 and self._file is not None:
            self._file.close()
        elif self._depth == 0:
            super().release()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _drop_torn_line(self) -> None:
        """Half a line at the end, of a process that was killed or of a full disk, would spoil the next one. Nobody is writing it now."""
        with self._journal.open("rb+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            if size and file.read() != b"\n":
                file.seek(0)
                content = file.read()
                if content.startswith(BEGINNING[:size]):  # and not somebody else's file
                    file.truncate(content.rfind(b"\n") + 1)
