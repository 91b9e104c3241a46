"""Training: the loop, checkpoints, mini-batches, and many trainings at once."""

from everynode.training.checkpoint import load_model, save_model
from everynode.training.loop import evaluate, train
from everynode.training.result import TrainingResult

__all__ = ["TrainingResult", "evaluate", "load_model", "save_model", "train"]
