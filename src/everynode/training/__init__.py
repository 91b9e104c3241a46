"""The training loop, races between settings, checkpoints, and many runs at once."""

from everynode.training.checkpoint import load_model, save_model
from everynode.training.loop import Fitted, evaluate, train

__all__ = ["Fitted", "evaluate", "load_model", "save_model", "train"]
