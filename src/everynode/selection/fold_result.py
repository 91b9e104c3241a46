"""The result of one job of the portfolio, a candidate on a fold: one safetensors file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

from everynode.batches import batches_from
from everynode.models.build import build_model
from everynode.settings import Settings
from everynode.storage.atomic import write_atomically
from everynode.storage.json_text import parse_json
from everynode.training.checkpoint import HEADER
from everynode.training.result import TrainingResult

#: The name of the out-of-fold logits among the tensors; every other one is a weight.
LOGITS, WEIGHT = "held_out.logits", "network."


@dataclass(frozen=True)
class FoldResult:
    """A candidate that was trained on a fold.

    Parameters
    ----------
    card : mapping
        Everything but the tensors: the fields of the training result and ``key``, which names the
        job: candidate, preparation, fold, seed and graph.
    tensors : mapping of str to Tensor
        The weights, and the logits of the validation nodes of the fold.
    """

    card: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    @classmethod
    def of(
        cls, trained: TrainingResult, logits: Tensor, key: str, *, cut: bool, wall: float
    ) -> FoldResult:
        """Return the result of a training.

        ``cut``: the time limit ended it. ``wall``: the seconds of the whole job.
        """
        card = {
            "key": key,
            "cut": cut,
            "wall": wall,
            "num_features": trained.network.num_features,
            "classes": len(trained.classes),
            "settings": dataclasses.asdict(trained.settings),
            "fold": trained.fold,
            "seed": trained.seed,
            "best_epoch": trained.best_epoch,
            "history": trained.history,
            "metrics": trained.metrics,
            "seconds": trained.seconds,
            "batches": None if trained.batches is None else dataclasses.asdict(trained.batches),
        }
        weights = {
            WEIGHT + name: value.detach().contiguous().cpu().clone()
            for name, value in trained.network.state_dict().items()
        }
        return cls(card, {LOGITS: logits.detach().contiguous().cpu(), **weights})

    @property
    def logits(self) -> Tensor:
        """The logits of the validation nodes, float64."""
        return self.tensors[LOGITS].double()

    @property
    def seconds(self) -> float:
        """The time of the training."""
        return float(self.card["seconds"])

    @property
    def wall(self) -> float:
        """The time of the job, with everything around the training."""
        return float(self.card["wall"])

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        metadata = {HEADER: json.dumps(self.card)}
        return tensors_to_bytes(dict(self.tensors), metadata=metadata)

    @classmethod
    def from_bytes(cls, content: bytes) -> FoldResult:
        """Return the result that :meth:`to_bytes` wrote."""
        size = int.from_bytes(content[:8], "little")
        header = parse_json(content[8 : 8 + size])["__metadata__"][HEADER]
        return cls(parse_json(header), load_tensors(content))

    @classmethod
    def read(cls, path: Path, key: str) -> FoldResult | None:
        """Read the result of a job; None if the file is missing, damaged or of another job."""
        try:
            stored = cls.from_bytes(path.read_bytes())
        except (OSError, ValueError, KeyError, SafetensorError):
            return None
        return stored if stored.card.get("key") == key and not stored.card["cut"] else None

    def write(self, path: Path) -> None:
        """Write the file atomically."""
        write_atomically(path, self.to_bytes())

    def result(self, classes: tuple[Any, ...], name: str, digest: str) -> TrainingResult:
        """Return the training result with its network, ready to predict.

        Parameters
        ----------
        classes : tuple
            The classes of the graph.
        name, digest : str
            The name and the digest of the graph.
        """
        card = self.card
        settings = Settings.from_dict(card["settings"], "the portfolio")
        network = build_model(card["num_features"], card["classes"], settings)
        weights = {
            name.removeprefix(WEIGHT): value
            for name, value in self.tensors.items()
            if name.startswith(WEIGHT)
        }
        floats = [value.dtype for value in weights.values() if value.is_floating_point()]
        network.to(floats[0] if floats else torch.float32).load_state_dict(weights)
        return TrainingResult(
            network=network.eval(),
            settings=settings,
            classes=classes,
            graph_name=name,
            graph_digest=digest,
            fold=card["fold"],
            seed=card["seed"],
            best_epoch=card["best_epoch"],
            history=card["history"],
            metrics=card["metrics"],
            seconds=card["seconds"],
            batches=batches_from(card.get("batches")),
        )
