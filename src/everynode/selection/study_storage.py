"""Storage of tuning studies: a journal file for one machine, or a database for several."""

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
from filelock import FileLock
from optuna.exceptions import OptunaError, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy import create_engine, inspect, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from everynode.errors import DataError, UsageError
from everynode.selection.study import Study
from everynode.settings import Settings
from everynode.storage.owner import Owner, lives

optuna.logging.set_verbosity(optuna.logging.WARNING)

#: Seconds to wait for a thread whose database may not answer.
JOIN = 5.0
#: The first bytes of every Optuna journal.
BEGINNING = b'{"op_code":'


class Trials(ABC):
    """A study and its trials.

    The search space and the base settings are stored with the study. It continues with them even
    if the presets change.

    Attributes
    ----------
    where : str
        The file or database of the study, for messages.
    optuna : optuna.Study
        The trials.
    study : Study
        The search space, and the runs that judge a trial.
    lock : context manager
        Held while the next trial is drawn.
    salt : str
        Part of the sampler's seed, where processes cannot lock each other out.
    """

    where: str
    optuna: optuna.Study
    study: Study
    lock: AbstractContextManager[object]
    salt = ""

    def ended(self) -> list[FrozenTrial]:
        """Return the complete and the pruned trials."""
        return self.optuna.get_trials(
            deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED)
        )

    def best(self) -> FrozenTrial | None:
        """Return the best complete trial by the monitored metric, then by validation loss.

        A trial with fewer terms wins if it lies within one standard error, paired over the runs
        (the rule of Breiman et al. 1984): every term must earn its place.
        """
        complete = [trial for trial in self.ended() if trial.state == TrialState.COMPLETE]
        highest = max(complete, key=rank, default=None)
        if highest is None or not any(choice.get("off") for choice in self.study.space.values()):
            return highest
        num_terms = {
            trial.number: self.study.num_terms(trial.params)
            for trial in complete
            if _is_as_good(trial, highest)
        }
        fewest = min(num_terms.values())
        return max((t for t in complete if num_terms.get(t.number) == fewest), key=rank)

    @abstractmethod
    def at_work(self) -> AbstractContextManager[Callable[[Trial], object]]:
        """Return a context for running trials; it yields a function that claims a trial."""

    @abstractmethod
    def retire(self) -> None:
        """Fail the trials of processes that have died."""

    def give_back(self, number: int) -> None:
        """Fail a trial, unless it has ended already."""
        with suppress(UpdateFinishedTrialError, ValueError):  # Optuna raises one of them
            self.optuna.tell(number, state=TrialState.FAIL)

    def _begin(self, study: Study | None) -> None:
        """Store a new study; check that an existing one has the same graph."""
        if study is not None and "study" not in self.optuna.user_attrs:
            self.optuna.set_user_attr("study", dataclasses.asdict(study))
        self.study = _read(self.optuna.user_attrs["study"])
        if study is not None and study.graph_digest != self.study.graph_digest:
            raise DataError(
                f"{self.where} is a study of another graph named {study.dataset}: move it away, or "
                "choose another --out or --storage."
            )


class Journal(Trials):
    """A study in a journal file, which several processes of one machine may use at once.

    Parameters
    ----------
    path : Path
        The journal.
    study : Study, optional
        The study to create or continue; None opens an existing one.
    """

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
        except OSError as error:
            raise DataError(
                f"Cannot use {path} for a study ({error.strerror or error}): make the folder "
                "writable, or choose another --out."
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path} is not the journal of a study ({error}): move it away, or choose another "
                "--out."
            ) from error

    def _load(self, storage: JournalStorage, study: Study | None) -> optuna.Study:
        names = [stored.study_name for stored in storage.get_all_studies()]
        if not names and (study is None or self.path.stat().st_size):
            raise ValueError("it has no study")
        name = names[0] if study is None else study.name
        if names and name not in names:
            raise DataError(
                f"{self.path} is the journal of another study ({names[0]}): choose another --out."
            )
        if names:
            return optuna.load_study(study_name=name, storage=storage)
        return optuna.create_study(study_name=name, storage=storage, direction="maximize")

    @contextmanager
    def at_work(self) -> Iterator[Callable[[Trial], object]]:
        """Hold a lock, which the system releases however the process ends."""
        owner = Owner(self.path)
        try:
            yield lambda trial: trial.set_user_attr("owner", owner.name)
        finally:
            owner.close()

    def retire(self) -> None:
        """Fail the trials whose owner's lock is free. Call it with the journal's lock held."""
        for trial in self.optuna.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            owner = trial.user_attrs.get("owner")  # None if the process died before the claim
            if owner is None or not lives(self.path, owner):
                self.give_back(trial.number)


class Database(Trials):
    """A study in a database that several machines reach; a database may hold many studies.

    No lock spans all machines, so two processes may draw the last trial at once: the later one
    gives its trial back. The death of a remote process is not reported, so each process renews its
    claims every ``beat`` seconds, and claims that are five beats old are retired. (Optuna's own
    heartbeats do not cover trials from ``ask``.) The clocks of the machines may differ by a minute
    or two.

    Parameters
    ----------
    url : str
        The URL of Optuna's RDB storage.
    study : Study or str
        The study to create or continue, or the name of an existing one.
    beat : float
        Seconds between two renewals of a claim.
    """

    def __init__(self, url: str, study: Study | str, beat: float = 60.0):
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
        """Return the studies of everynode in a database."""
        with _refused(hidden(url)):
            stored = _open(url).get_all_studies()
        return [
            cls(url, study.study_name)
            for study in sorted(stored, key=lambda s: s.study_name)
            if "study" in study.user_attrs
        ]

    @contextmanager
    def at_work(self) -> Iterator[Callable[[Trial], object]]:
        """Renew the claims of this process in a thread."""
        claimed: list[Trial] = []
        over = threading.Event()

        def mark(trial: Trial) -> None:
            trial.set_user_attr("seen", time.time())
            claimed.append(trial)

        def live() -> None:
            while not over.wait(self._beat):
                for trial in list(claimed):
                    try:
                        trial.set_user_attr("seen", time.time())
                    except UpdateFinishedTrialError:
                        claimed.remove(trial)
                    except StorageInternalError:  # if it lasts, the main thread reports it
                        pass

        thread = threading.Thread(target=live, daemon=True)
        thread.start()
        try:
            yield mark
        finally:
            over.set()
            thread.join(JOIN)
            with suppress(StorageInternalError):
                for trial in claimed:  # ended trials do not change
                    self.give_back(trial.number)

    def retire(self) -> None:
        """Fail the trials with an old claim."""
        for trial in self.optuna.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            started = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
            if time.time() - trial.user_attrs.get("seen", started) > 5.0 * self._beat:
                self.give_back(trial.number)


def is_url(place: str) -> bool:
    """Whether a place is the URL of a database."""
    return "://" in place


def hidden(url: str) -> str:
    """Return a URL without user, password and options, for messages.

    >>> hidden("postgresql://me:secret@db/studies?sslpassword=secret")
    'postgresql://db/studies'
    """
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError):
        return "this URL"
    return f"{parts.drivername}://{(parts.host or '').rpartition('@')[2]}/{parts.database or ''}"


def _open(url: str) -> RDBStorage:
    if "@" in (make_url(url).host or ""):  # the error of a driver would show the password
        raise ArgumentError("write an @ in the password as %40")
    options: dict[str, Any] = {"pool_pre_ping": True}  # reconnects after a restart of the server
    if url.startswith("sqlite"):
        # Wait up to 60 seconds for another writer. Ask for the right to write at once: SQLite
        # refuses a transaction that reads first and writes later, without waiting.
        options["connect_args"] = {"timeout": 60, "isolation_level": "IMMEDIATE"}
        _refuse_foreign_tables(url, options)
    return RDBStorage(url, engine_kwargs=options)


def _refuse_foreign_tables(url: str, options: dict[str, Any]) -> None:
    """Refuse an SQLite file with the tables of another program, before Optuna adds its tables."""
    file = make_url(url).database
    if not file or not Path(file).is_file():
        return
    engine = create_engine(url, **options)
    try:
        names = set(inspect(engine).get_table_names())
    finally:
        engine.dispose()
    if names and not {"studies", "trials", "version_info"} <= names:
        raise DataError(
            f"{file} is the database of another program (its tables: "
            f"{', '.join(sorted(names)[:5])}). Name another file in --storage."
        )


@contextmanager
def _refused(where: str) -> Iterator[None]:
    """Turn the errors of a database into one sentence."""
    try:
        yield
    except ImportError as error:
        module = error.__cause__ or error  # Optuna's own message does not name the module
        raise UsageError(
            f"{where} needs a driver that is not installed ({module}): install it with pip."
        ) from error
    except DataError:
        raise
    except (SQLAlchemyError, OptunaError, KeyError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"{where} cannot be used for studies ({reason}): give a URL such as "
            "postgresql://USER@HOST/DATABASE."
        ) from error


def _is_as_good(trial: FrozenTrial, highest: FrozenTrial) -> bool:
    """Whether a trial is within one standard error of the highest, paired over the same runs."""
    pairs = zip(highest.user_attrs["accuracies"], trial.user_attrs["accuracies"], strict=True)
    behind = [best - other for best, other in pairs]
    if trial.number == highest.number or len(behind) < 2:
        return trial.number == highest.number
    return statistics.mean(behind) <= statistics.stdev(behind) / math.sqrt(len(behind))


def rank(trial: FrozenTrial) -> tuple[float, float, int]:
    """Return the key by which complete trials are compared; higher is better."""
    assert trial.value is not None
    return trial.value, -statistics.mean(trial.user_attrs["losses"]), -trial.number


def _read(stored: dict[str, Any]) -> Study:
    return Study(**stored | {"base": Settings(**stored["base"])})


class _Lock(JournalFileOpenLock):
    """The reentrant lock of a journal, which the system releases however a process ends."""

    def __init__(self, path: Path):
        super().__init__(str(path))
        self._journal = path
        self._path = path.with_name(f"{path.name}.lock")
        self._depth = 0

    def acquire(self) -> bool:
        """Wait for the lock."""
        if self._depth == 0:
            self._lock = FileLock(self._path, thread_local=False)  # a forked process needs its own
            self._lock.acquire()
        self._depth += 1
        if self._depth == 1 and self._journal.exists():
            self._drop_torn_line()
        return True

    def release(self) -> None:
        """Release the lock once; it is free after as many releases as acquisitions."""
        self._depth -= 1
        if self._depth == 0:
            self._lock.release()
            del self._lock  # at the end of Python, its finalizer would fail

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _drop_torn_line(self) -> None:
        """Remove half a line at the end: a killed writer left it, and it would spoil the next."""
        with self._journal.open("rb+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            if size and file.read() != b"\n":
                file.seek(0)
                content = file.read()
                if content.startswith(BEGINNING[:size]):  # not a journal: leave it unchanged
                    file.truncate(content.rfind(b"\n") + 1)
