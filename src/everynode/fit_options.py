"""The options of a fit beyond the settings of a single run, declared once.

``NodeClassifier(settings=...)`` takes them beside the fields of :class:`everynode.Settings`, and
``everynode fit`` has a flag for each. This module does not import PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Final

from everynode.declaration import Declaration, document, plain_value, setting

#: The objective of one training that names none.
OBJECTIVE: Final = "enc"
#: The size of the portfolio, unless another one is chosen.
EFFORT: Final = "standard"


@dataclass(frozen=True)
class FitOptions:
    """The source of the settings, and the number of networks.

    Parameters
    ----------
    (generated)

    Examples
    --------
    >>> FitOptions(n_estimators=5).preset
    'default'
    >>> FitOptions(n_estimators=0)
    Traceback (most recent call last):
    everynode.errors.UsageError: The 'n_estimators' of NodeClassifier must be >= 1. Got 0.
    """

    preset: str = setting(
        "default", "Source of the settings: default, paper (its tables), tuned (by graph and"
        " objective), authors (of GCNII, for ce), or a file of `everynode tune`.", "Training",
    )  # fmt: skip
    n_estimators: int = setting(
        1, "Networks per fold, with consecutive seeds, whose probabilities are averaged. Five"
        " gained 0.5 to 1.5 points on Cora and Citeseer.", "Training", low=1,
    )  # fmt: skip

    def __post_init__(self) -> None:
        for f in fields(self):
            value = plain_value(getattr(self, f.name), f.name, f.default)
            object.__setattr__(self, f.name, value)
            f.metadata["setting"].check(f.name, value, f.default, owner="NodeClassifier")


@cache
def fit_declarations() -> dict[str, Declaration]:
    """Return the declaration of every field of :class:`FitOptions`, by name."""
    return {f.name: f.metadata["setting"] for f in fields(FitOptions)}


document(FitOptions)
