"""What is kept of a run on disk: safetensors and JSON, no pickles, every file complete or absent."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as load_tensors
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor, nn

from everynode import __version__
from everynode.errors import DataError, UsageError
from everynode.models.build import build_model
from everynode.models.model import Model
from everynode.models.names import model_names
from everynode.settings import Settings
from everynode.storage.locks import alone
from everynode.training.random_state import random_state, set_random_state

if TYPE_CHECKING:
    from everynode.training.loop import Fitted, Training

MODEL_FORMAT = 1
#: Under which name the file of a training state keeps its digest.
DIGEST = "sha256"
#: How the files of SQLite begin.
DATABASE = b"SQLite format 3\0"


class UnusableState(DataError):
    """A file that is no state of the training in hand; its only argument is why."""

    def __str__(self) -> str:
        return f"{self.args[0]}: remove it (or --no-resume) to start over."


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all; a full disk is one clear sentence and loses nothing.

    A database, such as a store of runs, is never replaced; what is no file (a device, a pipe) is written to.
    """
    try:
        if not path.name or path.is_dir():
            raise UsageError(f"{path} is a folder: name a file.")
        path = path.resolve() if path.is_symlink() else path
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        if path.is_file():
            with path.open("rb") as file:
                if file.read(len(DATABASE)) == DATABASE:
                    raise UsageError(
                        f"{path} is a database, perhaps a store of runs, and is not replaced: name another file."
                    )
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(
            f".{path.name}.part"
        )  # always the same: what a kill leaves behind, the next write replaces
        with alone(temporary) as file:
            try:
                file.truncate(0)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    temporary.unlink()
                raise
    except (
        OSError,
        RuntimeError,
    ) as error:  # links in a circle are a RuntimeError until Python 3.13
        why = getattr(error, "strerror", None) or error
        raise DataError(
            f"Cannot write {path}: {why}. What was there before is untouched; free some space or write elsewhere."
        ) from error


@dataclass
class TrainingState:
    """Everything that a training needs to go on as if it had never stopped; one safetensors file, the JSON in its header."""

    tensors: dict[str, Tensor]
    #: Of which training: its settings, fold, seed and graph.
    identity: str
    history: dict[str, list[float]]
    best_epoch: int
    best_key: tuple[float, float]
    epoch: int
    seconds: float
    #: Within an epoch of several steps: how many are done, and the sums of the terms over them.
    step: int = 0
    sums: dict[str, float] = field(default_factory=dict)

    @classmethod
    def capture(cls, training: Training) -> TrainingState:
        """The state between two steps, torch's random generators included."""
        t, work = training, training.work
        tensors = random_state(next(t.network.parameters()).device)
        for part, found in {
            "network": t.network.state_dict(),
            "best": t.best,
            "objective": work.objective.state_dict(),
        }.items():
            tensors |= {f"{part}.{name}": value for name, value in found.items()}
        for index, moments in work.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{index}.{name}": value for name, value in moments.items()}
        tensors = {name: value.detach().contiguous().cpu() for name, value in tensors.items()}
        return cls(
            tensors,
            t.identity,
            t.history,
            t.best_epoch,
            t.best_key,
            t.epoch,
            t.seconds,
            work.step,
            work.sums,
        )

    def restore(
        self, network: nn.Module, objective: nn.Module, optimiser: torch.optim.Optimizer
    ) -> dict[str, Tensor]:
        """Put the state back into the parts of a training; returns the best weights so far."""
        parts: dict[str, dict[str, Tensor]] = {
            "network": {},
            "best": {},
            "objective": {},
            "optimiser": {},
        }
        for name, value in self.tensors.items():
            part, _, rest = name.partition(".")
            if part in parts:
                parts[part][rest] = value
        network.load_state_dict(parts["network"])
        objective.load_state_dict(parts["objective"])
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in parts["optimiser"].items():
            index, _, key = name.partition(".")
            moments.setdefault(int(index), {})[key] = value
        optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
        set_random_state(self.tensors, next(network.parameters()).device)
        return parts["best"]

    def save(self, path: Path) -> None:
        """Write the state, replacing the one before."""
        header = json.dumps(
            {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "tensors"}
        )
        metadata = {"everynode": header, DIGEST: _digest(header, self.tensors)}
        write_atomically(path, tensors_to_bytes(self.tensors, metadata=metadata))

    @classmethod
    def load(cls, path: Path, identity: str) -> TrainingState | None:
        """Read the state of this training back; None if there is none, and a refusal if it is another's."""
        if not path.exists():
            return None
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
                # everynode 0.16 and before kept none
                if metadata.get(DIGEST) not in (None, _digest(metadata["everynode"], tensors)):
                    raise ValueError("it is not what was written")
                header = json.loads(metadata["everynode"])
                header["best_key"] = tuple(header["best_key"])
                state = cls(tensors, **header)
        except OSError as error:  # which may pass
            raise DataError(
                f"{path} cannot be read ({error}): try again, or remove it (or --no-resume) to start over."
            ) from error
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise UnusableState(f"{path} is not a training state of everynode ({error})") from error
        if state.identity != identity:
            raise UnusableState(
                f"{path} is the state of another training (other settings, seed, fold or graph)"
            )
        return state


def is_state(path: Path, *, damaged: bool) -> bool:
    """Whether a file is the state of a training, or, if ``damaged``, what a kill or a bad disk left of one. Others' safetensors are not."""
    if not path.is_file() or not path.name.removesuffix(".part").endswith(".safetensors"):
        return False
    try:
        with safe_open(path, framework="pt") as file:
            return "everynode" in (file.metadata() or {})
    except SafetensorError:  # cut short, damaged, or something else by that name
        return damaged


def _digest(header: str, tensors: dict[str, Tensor]) -> str:
    """By which damage to a state is seen: a flipped bit of a weight would be trained on."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def save_model(folder: Path | str, fitted: Fitted, extra: dict[str, Any] | None = None) -> None:
    """Write a model folder: ``model.safetensors`` (weights) and ``model.json`` (what they are for and how they came about)."""
    folder = Path(folder)
    weights = tensors_to_bytes(
        {name: value.contiguous().cpu() for name, value in fitted.network.state_dict().items()}
    )
    card = {
        "format": MODEL_FORMAT,
        "everynode": __version__,
        "torch": str(torch.__version__),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "num_features": fitted.network.num_features,
        "classes": list(fitted.classes),
        "settings": dataclasses.asdict(fitted.settings),
        "graph": {"name": fitted.graph_name, "digest": fitted.graph_digest},
        "fold": fitted.fold,
        "seed": fitted.seed,
        "epochs": fitted.epochs,
        "best_epoch": fitted.best_epoch,
        "metrics": fitted.metrics,
        "seconds": fitted.seconds,
        "interrupted": fitted.interrupted,
        **(extra or {}),
        "history": fitted.history,
    }
    content = json.dumps(
        card, indent=1, default=_plain
    ).encode()  # before anything is written: it may be refused
    # The card comes last and names the digest of the weights: a folder with half a model in it is told apart.
    write_atomically(folder / "model.safetensors", weights)
    write_atomically(folder / "model.json", content)


def _plain(value: Any) -> Any:
    """A NumPy number as Python's."""
    if not hasattr(value, "item"):
        raise DataError(
            f"A {type(value).__name__} cannot be saved ({value!r}): use strings or numbers for classes and parameters."
        )
    return value.item()


def model_folder(folder: Path | str) -> Path:
    """Where the model is: in this folder, or, if it is the --out of ``everynode fit``, in the folder ``model`` in it."""
    folder = Path(folder)
    if folder.is_file():
        raise DataError(
            f"{folder} is a file: give the folder of a model, or the --out of a fit or a training."
        )
    if not folder.is_dir():
        raise DataError(
            f"There is no folder {folder}: give the folder of a model, or the --out of a fit or a training."
        )
    inside = folder / "model"
    return inside if inside.is_dir() and not (folder / "model.json").exists() else folder


def load_model(folder: Path | str) -> tuple[Model, dict[str, Any]]:
    """The network of a model folder (or of the --out of ``everynode fit``), ready to predict, and its card."""
    folder = model_folder(folder)
    card_path, weights_path = folder / "model.json", folder / "model.safetensors"
    try:
        card = json.loads(card_path.read_text(encoding="utf-8"))
        weights = weights_path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(
            f"{folder} is not a model folder: {Path(error.filename).name} is missing; give the --out of a training."
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(
            f"{card_path} cannot be read ({error}): train again, or restore the folder."
        ) from error
    if not isinstance(card, dict) or card.get("format") != MODEL_FORMAT:
        raise DataError(
            f"{card_path} is not a model card of format {MODEL_FORMAT}: it was written by something else or a newer version."
        )
    if hashlib.sha256(weights).hexdigest() != card.get("weights_sha256"):
        raise DataError(
            f"{weights_path} does not belong to {card_path.name} (digests differ): train again, or restore the folder."
        )
    try:
        settings = Settings(**card["settings"])
        if settings.backbone not in model_names():
            raise DataError(
                f"{card_path} needs the model {settings.backbone!r}, which is not installed. "
                "Load its plugin first (--plugin my_file.py)."
            )
        network = build_model(card["num_features"], len(card["classes"]), settings)
    except DataError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{card_path} is not a whole model card ({error}): train again, or restore the folder."
        ) from error
    try:
        tensors = load_tensors(weights)
        dtypes = (value.dtype for value in tensors.values() if value.is_floating_point())
        dtype = next(dtypes, torch.float32)
        network.to(dtype).load_state_dict(tensors)
    except (RuntimeError, SafetensorError) as error:
        raise DataError(
            f"{weights_path} holds the weights of another network ({str(error).splitlines()[-1].strip()})."
        ) from error
    return network.eval(), card
