"""The terms of the objective, one file each (a function and a term), and ENC, their sum."""

from everynode.objectives.class_prior import ClassPrior, class_prior, estimated_shares
from everynode.objectives.consistency import Consistency, consistency
from everynode.objectives.cross_entropy import CrossEntropy, cross_entropy
from everynode.objectives.cross_validating_gradients import (
    CrossValidatingGradients,
    cross_validating_gradients,
)
from everynode.objectives.enc import ENC
from everynode.objectives.mutual_information import MutualInformation, mutual_information
from everynode.objectives.p_reg import PReg, p_reg
from everynode.objectives.term import Term
from everynode.objectives.total_variation import (
    TotalVariation,
    dirichlet_energy,
    graph_gradient,
    total_variation,
)

__all__ = [
    "ENC",
    "ClassPrior",
    "Consistency",
    "CrossEntropy",
    "CrossValidatingGradients",
    "MutualInformation",
    "PReg",
    "Term",
    "TotalVariation",
    "class_prior",
    "consistency",
    "cross_entropy",
    "cross_validating_gradients",
    "dirichlet_energy",
    "estimated_shares",
    "graph_gradient",
    "mutual_information",
    "p_reg",
    "total_variation",
]
