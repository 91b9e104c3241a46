"""The protocol of a term."""

from __future__ import annotations

from torch import nn


class Term(nn.Module):
    """One summand of an objective."""

    name = ""
    default_weight = 1.0
