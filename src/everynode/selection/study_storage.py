"""Where the trials of a tuning study are kept: in a file that several processes write, or in a database that several machines reach."""

from __future__ import annotations

import dataclasses
import math
import os
import statistics
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Self

import optuna
from optuna.exceptions import OptunaError, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from everynode.errors import DataError, UsageError
from everynode.selection.study import Study
from everynode.settings import Settings
from everynode.storage.locks import file_lock
from everynode.storage.owner import Owner, lives

optuna.logging.set_verbosity(optuna.logging.WARNING)

#: Seconds that a thread is waited for which may hang in a database that does not answer.
JOIN = 5.0
#: How every journal of Optuna begins.
BEGINNING = b'{"op_code":'


class Trials(ABC):
    """A study and its trials, wherever they are kept.

    A study goes on with what it was begun with: its search space and its base settings are kept with it, and a later change of the
    presets does not mix two searches.
    """

    #: Where they are kept, for people to read.
    where: str
    optuna: optuna.Study
    study: Study
    #: Held while the next trial is drawn, where there is one.
    lock: AbstractContextManager[object]
    #: What makes the draws of processes differ that know nothing of each other's last one.
    salt = ""

    def ended(self) -> list[FrozenTrial]:
        """The trials that count: complete, or given up because others were better."""
        return self.optuna.get_trials(
            deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED)
        )

    def best(self) -> FrozenTrial | None:
        """The complete trial of the highest mean validation accuracy, ties by validation loss; unless one with fewer terms is as good.

        As good is what lies within one standard error of it, paired over the runs (the rule of Breiman et al. 1984): a term must earn
        its place. Of these the best of those with the fewest terms.
        """
        complete = [trial for trial in self.ended() if trial.state == TrialState.COMPLETE]
        highest = max(complete, key=rank, default=None)
        if highest is None or not any(choice.get("off") for choice in self.study.space.values()):
            return highest
        terms = {
            trial.number: self.study.terms(trial.params)
            for trial in complete
            if _as_good(trial, highest)
        }
        return max(
            (trial for trial in complete if terms.get(trial.number) == min(terms.values())),
            key=rank,
        )

    @abstractmethod
    def at_work(self) -> AbstractContextManager[Callable[[Trial], object]]:
        """While this process does trials; marks a trial as one of its own."""

    @abstractmethod
    def retire(self) -> None:
        """Let the trials fail whose process has died."""

    def give_back(self, number: int) -> None:
        """Let a trial fail, unless it has ended, or another process was quicker."""
        with suppress(UpdateFinishedTrialError, ValueError):  # Optuna raises either
            self.optuna.tell(number, state=TrialState.FAIL)

    def _begin(self, study: Study | None) -> None:
        """Tell a new study what it is; look whether an old one is the one that is meant."""
        if study is not None and "study" not in self.optuna.user_attrs:
            self.optuna.set_user_attr("study", dataclasses.asdict(study))
        self.study = _read(self.optuna.user_attrs["study"])
        if study is not None and study.graph_digest != self.study.graph_digest:
            raise DataError(
                f"{self.where} is a study of another graph by the name {study.dataset}: move it away, or name another place."
            )


class Journal(Trials):
    """A study in a file of its own. Opening makes the file, unless ``study`` is None: then it has to be there."""

    def __init__(self, path: Path, study: Study | None = None):
        self.path, self.where = path, str(path)
        self.lock: _Lock = _Lock(path)
        try:
            if study is None and not path.is_file():
                raise DataError(f"There is no study at {path}.")
            path.parent.mkdir(parents=True, exist_ok=True)
            with self.lock:
                self.optuna = self._load(
                    JournalStorage(JournalFileBackend(str(path), self.lock)), study
                )
                self._begin(study)
        except DataError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path} is not the journal of a study ({error}): move it away, or name another --out."
            ) from error

    def _load(self, storage: JournalStorage, study: Study | None) -> optuna.Study:
        names = [found.study_name for found in storage.get_all_studies()]
        if not names and (study is None or self.path.stat().st_size):
            raise ValueError("there is no study in it")
        name = names[0] if study is None else study.name
        if names and name not in names:
            raise DataError(
                f"{self.path} is the journal of another study ({names[0]}): name another --out."
            )
        if names:
            return optuna.load_study(study_name=name, storage=storage)
        return optuna.create_study(study_name=name, storage=storage, direction="maximize")

    @contextmanager
    def at_work(self) -> Iterator[Callable[[Trial], object]]:
        """Until the process ends, however it ends, the system holds a lock for it."""
        owner = Owner(self.path)
        try:
            yield lambda trial: trial.set_user_attr("owner", owner.name)
        finally:
            owner.close()

    def retire(self) -> None:
        """Those whose owner's lock is free. The journal's lock must be held."""
        for trial in self.optuna.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            owner = trial.user_attrs.get("owner")  # none if the process died just before it said so
            if owner is None or not lives(self.path, owner):
                self.give_back(trial.number)


class Database(Trials):
    """A study in a database that several machines reach, by a URL of Optuna's RDB storage. There may be many in one.

    Nobody can lock all machines' processes out while a trial is drawn, so two of them may draw at once: who comes too late gives the
    trial back. And no system says that a process far away has died: so a process says of its trials every ``beat`` seconds that it lives,
    and trials of which this has not been said for five times as long are retired. (Optuna's own heartbeats are not for trials that are
    asked for one by one. The machines' clocks may differ by a minute or two.)
    """

    def __init__(self, url: str, study: Study | str, beat: float = 60.0):
        """``study``: to begin or go on with; or the name of one that is there."""
        self.where = f"{study if isinstance(study, str) else study.name} in {hidden(url)}"
        self._beat = beat
        self.lock = nullcontext()
        self.salt = f" {uuid.uuid4()}"
        with _refused(hidden(url)):
            storage = _open(url)
            if isinstance(study, str):
                self.optuna = optuna.load_study(study_name=study, storage=storage)
            else:
                self.optuna = optuna.create_study(
                    study_name=study.name,
                    storage=storage,
                    direction="maximize",
                    load_if_exists=True,
                )
            self._begin(None if isinstance(study, str) else study)

    @classmethod
    def all(cls, url: str) -> list[Database]:
        """All studies of a database, which may have others that are not everynode's."""
        with _refused(hidden(url)):
            found = _open(url).get_all_studies()
        return [
            cls(url, study.study_name)
            for study in sorted(found, key=lambda s: s.study_name)
            if "study" in study.user_attrs
        ]

    @contextmanager
    def at_work(self) -> Iterator[Callable[[Trial], object]]:
        """A thread says of the trials of this process that it lives."""
        mine: list[Trial] = []
        over = threading.Event()

        def mark(trial: Trial) -> None:
            trial.set_user_attr("seen", time.time())
            mine.append(trial)

        def live() -> None:
            while not over.wait(self._beat):
                for trial in list(mine):
                    try:
                        trial.set_user_attr("seen", time.time())
                    except UpdateFinishedTrialError:
                        mine.remove(trial)
                    except (
                        StorageInternalError
                    ):  # perhaps it comes back; if not, the main thread will say so
                        pass

        thread = threading.Thread(target=live, daemon=True)
        thread.start()
        try:
            yield mark
        finally:
            over.set()
            thread.join(JOIN)
            with suppress(StorageInternalError):
                for trial in mine:  # those that have ended stay as they are
                    self.give_back(trial.number)

    def retire(self) -> None:
        """Those of which nobody has said for long that they are being done."""
        for trial in self.optuna.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            begun = (
                trial.datetime_start.timestamp() if trial.datetime_start else 0.0
            )  # if nobody has said anything of it yet
            if time.time() - trial.user_attrs.get("seen", begun) > 5.0 * self._beat:
                self.give_back(trial.number)


def is_url(place: str) -> bool:
    """Whether it names a database and not a folder."""
    return "://" in place


def hidden(url: str) -> str:
    """What may be shown of a URL: no password, wherever it stands.

    >>> hidden("postgresql://me:secret@db/studies?sslpassword=secret")
    'postgresql://db/studies'
    """
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError):
        return "this URL"
    return f"{parts.drivername}://{(parts.host or '').rpartition('@')[2]}/{parts.database or ''}"


def _open(url: str) -> RDBStorage:
    if "@" in (make_url(url).host or ""):  # before a driver repeats what stands before it
        raise ArgumentError("the password has an @ in it, which is written %40")
    options: dict[str, Any] = {
        "pool_pre_ping": True
    }  # a server that was started again has forgotten its connections
    if url.startswith("sqlite"):
        options["connect_args"] = {"timeout": 60}  # seconds, for another process to be done writing
    return RDBStorage(url, engine_kwargs=options)


@contextmanager
def _refused(where: str) -> Iterator[None]:
    """Say in one sentence what is wrong with a database."""
    try:
        yield
    except ImportError as error:
        module = error.__cause__ or error  # Optuna's own words do not name the module
        raise UsageError(
            f"{where} needs a driver that is not installed ({module}): pip install it."
        ) from error
    except (SQLAlchemyError, OptunaError, KeyError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"{where} cannot be used for studies ({reason}): give a URL as postgresql://USER@HOST/DATABASE."
        ) from error


def _as_good(trial: FrozenTrial, highest: FrozenTrial) -> bool:
    """Whether a trial is the highest, or not further below it than the standard error of their difference over the same runs."""
    behind = [
        a - b
        for a, b in zip(
            highest.user_attrs["accuracies"], trial.user_attrs["accuracies"], strict=True
        )
    ]
    if trial.number == highest.number or len(behind) < 2:
        return trial.number == highest.number
    return statistics.mean(behind) <= statistics.stdev(behind) / math.sqrt(len(behind))


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
        self._lock = file_lock(self._path)
        self._depth = 0

    def acquire(self) -> bool:
        """Wait until it is ours."""
        if self._depth == 0:
            self._lock = file_lock(self._path)  # a forked process needs its own
            self._lock.acquire()
        self._depth += 1
        if self._depth == 1 and self._journal.exists():
            self._drop_torn_line()
        return True

    def release(self) -> None:
        """Let go, as often as it was taken."""
        self._depth -= 1
        if self._depth == 0:
            self._lock.release()

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
