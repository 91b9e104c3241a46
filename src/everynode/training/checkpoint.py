"""Training states and trained models on disk: safetensors and JSON, no pickles."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as load_tensors
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor, nn

from everynode import __version__
from everynode.errors import DataError
from everynode.models.build import build_model
from everynode.models.names import model_names
from everynode.settings import Settings
from everynode.storage.atomic import write_atomically
from everynode.storage.json_text import parse_json
from everynode.training.adam import Adam
from everynode.training.model_card import card_digest, check_card, check_weights
from everynode.training.random_state import random_state, set_random_state

if TYPE_CHECKING:
    from everynode.models.model import Model
    from everynode.training.loop import Training
    from everynode.training.result import TrainingResult

MODEL_FORMAT = 1
#: Keys in the metadata of a state file: everything but the tensors as JSON, and a digest.
HEADER, DIGEST = "everynode", "sha256"


class UnusableState(DataError):
    """A file is not a state of this training; the only argument is the reason."""

    def __str__(self) -> str:
        return f"{self.args[0]}: remove it (or --no-resume) to start over."


@dataclass
class TrainingState:
    """Everything a training needs to continue as if it had never stopped.

    It is stored as one safetensors file, with all but the tensors as JSON in its metadata.

    Attributes
    ----------
    tensors : dict
        Weights, best weights, optimizer moments, state of the objective, random generators.
    identity : str
        Digest of settings, fold, seed and graph.
    history, best_epoch, best_key, epoch, seconds
        Those of the :class:`~everynode.training.loop.Training`.
    step, sums
        Steps done in the current epoch, and the sums of the terms over them.
    """

    tensors: dict[str, Tensor]
    identity: str
    history: dict[str, list[float]]
    best_epoch: int
    best_key: tuple[float, float]
    epoch: int
    seconds: float
    step: int = 0
    sums: dict[str, float] = field(default_factory=dict)

    @classmethod
    def capture(cls, training: Training) -> TrainingState:
        """Return the state between two steps, including torch's random generators."""
        runner = training.runner
        tensors = random_state(training.network.device)
        parts = {
            "network": training.network.state_dict(),
            "best": training.best,
            "objective": runner.objective.state_dict(),
        }
        for part, values in parts.items():
            tensors |= {f"{part}.{name}": value for name, value in values.items()}
        for index, moments in runner.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items()}
        return cls(
            tensors={name: value.detach().contiguous().cpu() for name, value in tensors.items()},
            identity=training.identity,
            history=training.history,
            best_epoch=training.best_epoch,
            best_key=training.best_key,
            epoch=training.epoch,
            seconds=training.seconds,
            step=runner.step,
            sums=runner.sums,
        )

    def restore(self, network: Model, objective: nn.Module, optimizer: Adam) -> dict[str, Tensor]:
        """Load the state into the parts of a training; return the best weights so far."""
        parts: dict[str, dict[str, Tensor]] = {
            part: {} for part in ("network", "best", "objective", "optimizer")
        }
        for name, value in self.tensors.items():
            part, _, rest = name.partition(".")
            if part in parts:
                parts[part][rest] = value
        network.load_state_dict(parts["network"])
        objective.load_state_dict(parts["objective"])
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in parts["optimizer"].items():
            index, _, key = name.partition(".")
            moments.setdefault(int(index), {})[key] = value
        optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
        set_random_state(self.tensors, network.device)
        return parts["best"]

    def to_bytes(self) -> bytes:
        """Return the content of the state's file."""
        names = [f.name for f in dataclasses.fields(self) if f.name != "tensors"]
        header = json.dumps({name: getattr(self, name) for name in names})
        metadata = {HEADER: header, DIGEST: _digest(header, self.tensors)}
        content: bytes = tensors_to_bytes(self.tensors, metadata=metadata)
        return content

    @classmethod
    def from_bytes(cls, content: bytes) -> TrainingState:
        """Return the state that :meth:`to_bytes` wrote; ValueError if it is damaged."""
        size = int.from_bytes(content[:8], "little")
        metadata = parse_json(content[8 : 8 + size])["__metadata__"]
        return cls._checked(metadata, load_tensors(content))

    @classmethod
    def _checked(cls, metadata: dict[str, str], tensors: dict[str, Tensor]) -> TrainingState:
        if metadata[DIGEST] != _digest(metadata[HEADER], tensors):
            raise ValueError("its digest differs from its content")
        header = parse_json(metadata[HEADER])
        header["best_key"] = tuple(header["best_key"])
        return cls(tensors, **header)

    def save(self, path: Path) -> None:
        """Write the state; it replaces the previous one."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: Path, identity: str) -> TrainingState | None:
        """Read the state of this training; None without a file. Refuse the state of another."""
        if not path.exists():
            return None
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            state = cls._checked(metadata, tensors)
        except OSError as error:  # it may be temporary
            raise DataError(
                f"{path} cannot be read ({error}): "
                "try again, or remove it (or --no-resume) to start over."
            ) from error
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise UnusableState(f"{path} is not a training state of everynode ({error})") from error
        if state.identity != identity:
            raise UnusableState(
                f"{path} is the state of another training (other settings, seed, fold or graph)"
            )
        return state


def is_state(path: Path, *, damaged: bool) -> bool:
    """Return whether a file is a training state, or the remains of writing one.

    ``damaged``: count unreadable files too. Safetensors files of other programs never count.
    """
    if path.name.startswith(".") and path.name.endswith(".safetensors.lock"):
        return True
    is_named_so = re.search(r"\.safetensors((\.[0-9a-f]{16})?\.part)?$", path.name)
    if not path.is_file() or not is_named_so:
        return False
    try:
        with safe_open(path, framework="pt") as file:
            return HEADER in (file.metadata() or {})
    except SafetensorError:
        return damaged


def _digest(header: str, tensors: dict[str, Tensor]) -> str:
    """Return a SHA-256 that reveals damage: training would go on from a flipped bit unnoticed."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def save_model(
    folder: Path | str, fitted: TrainingResult, extra: dict[str, Any] | None = None
) -> None:
    """Write a model folder: ``model.safetensors`` (weights) and ``model.json`` (the card).

    Parameters
    ----------
    folder
        The folder; it is created if necessary.
    fitted
        The trained model.
    extra
        Further entries of the card.
    """
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
        "batches": None if fitted.batches is None else dataclasses.asdict(fitted.batches),
        **(extra or {}),
        "history": fitted.history,
    }
    # Encode the card before writing anything: a class name may be refused.
    card = json.loads(json.dumps(card, default=_to_python))
    content = json.dumps({**card, "digest": card_digest(card)}, indent=1).encode()
    # The card comes last and names the digest of the weights, so half a model is recognized.
    write_atomically(folder / "model.safetensors", weights)
    write_atomically(folder / "model.json", content)


def _to_python(value: Any) -> Any:
    """Return a NumPy number as a Python number."""
    if not hasattr(value, "item"):
        raise DataError(
            f"A {type(value).__name__} cannot be saved ({value!r}): "
            "use strings or numbers for classes and parameters."
        )
    return value.item()


def model_folder(folder: Path | str) -> Path:
    """Return the folder of the model: this one, or ``model`` in the --out of ``everynode fit``."""
    folder = Path(folder)
    if folder.is_file():
        raise DataError(
            f"{folder} is a file: give the folder of a model, or the --out of a fit or a training."
        )
    if not folder.is_dir():
        raise DataError(
            f"There is no folder {folder}: "
            "give the folder of a model, or the --out of a fit or a training."
        )
    inside = folder / "model"
    return inside if inside.is_dir() and not (folder / "model.json").exists() else folder


def load_model(folder: Path | str) -> tuple[Model, dict[str, Any]]:
    """Return the model of a folder, ready to predict, and its card.

    The folder may also be the --out of ``everynode fit``.
    """
    folder = model_folder(folder)
    card_path, weights_path = folder / "model.json", folder / "model.safetensors"
    for path in (card_path, weights_path):
        if path.exists() and not path.is_file():  # reading a pipe would block
            raise DataError(f"{path} is not a file: train again, or restore the folder.")
    try:
        card = parse_json(card_path.read_text(encoding="utf-8"))
        weights = weights_path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(
            f"{folder} is not a model folder: {Path(error.filename).name} is missing; "
            "give the --out of a training."
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(
            f"{card_path} cannot be read ({error}): train again, or restore the folder."
        ) from error
    if not isinstance(card, dict) or card.get("format") != MODEL_FORMAT:
        raise DataError(
            f"{card_path} is not a model card of format {MODEL_FORMAT}: "
            "another program or a newer version wrote it."
        )
    if hashlib.sha256(weights).hexdigest() != card.get("weights_sha256"):
        raise DataError(
            f"{weights_path} does not belong to {card_path.name} (digests differ): "
            "train again, or restore the folder."
        )
    check_card(card, card_path)
    try:
        settings = Settings.from_dict(card["settings"], str(card_path))
        if settings.backbone not in model_names():
            raise DataError(
                f"{card_path} needs the model {settings.backbone!r}, which is not installed. "
                "Load its plugin first (--plugin my_file.py)."
            )
        tensors = load_tensors(weights)
        check_weights(tensors, card, settings, weights_path)
        model = build_model(card["num_features"], len(card["classes"]), settings)
    except SafetensorError as error:
        raise DataError(f"{weights_path} holds no weights ({error}).") from error
    except DataError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{card_path} is not a complete model card ({error}): "
            "train again, or restore the folder."
        ) from error
    try:
        dtypes = [value.dtype for value in tensors.values() if value.is_floating_point()]
        model.to(dtypes[0] if dtypes else torch.float32).load_state_dict(tensors)
    except (RuntimeError, KeyError, SafetensorError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise DataError(f"{weights_path} holds the weights of another model ({reason}).") from error
    return model.eval(), card
