"""The names of objectives: ``ce``, ``enc``, the terms, and their sums. Needs no PyTorch."""

from __future__ import annotations

from everynode import plugins
from everynode.errors import unknown
from everynode.settings import TERMS, Settings

#: The terms of ``enc`` that the paper does not have, and their names in a sentence.
NOT_OF_THE_PAPER = {"consistency": "consistency", "prior": "class prior"}
#: The terms of ``enc``.
ENC_TERMS = ("mi", "tv", "cvg", *NOT_OF_THE_PAPER)


def parse_objective(objective: str) -> tuple[str, ...]:
    """Return the terms of an objective besides cross-entropy, which is always there.

    >>> parse_objective("enc"), parse_objective("ce"), parse_objective("tv+mi")
    (('mi', 'tv', 'cvg', 'consistency', 'prior'), (), ('mi', 'tv'))
    """
    named = objective.lower().split("+")
    outside = [] if {*named} <= {"ce", "enc", *TERMS} else list(plugins.terms())
    for part in named:
        if part not in ("ce", "enc", *TERMS, *outside):
            choices = ("enc", "ce", *TERMS, *outside, "mi+tv (or any other sum)")
            unknown("objective", part, choices)
    terms = {*named, *(ENC_TERMS if "enc" in named else ())}
    return tuple(term for term in (*TERMS, *outside) if term in terms)


def named_terms(objective: str) -> tuple[str, ...]:
    """Return the terms that an objective names one by one; ``enc`` names none.

    >>> named_terms("mi+tv"), named_terms("enc"), named_terms("enc+preg")
    (('mi', 'tv'), (), ('preg',))
    """
    return tuple(
        term for term in parse_objective(objective) if term in objective.lower().split("+")
    )


def plugin_weights(objective: str, weights: dict[str, float]) -> dict[str, float]:
    """Return the weight of each plugin term of an objective: the given one, or its default."""
    named = [term for term in named_terms(objective) if term not in TERMS]
    return {term: weights.get(term, plugins.terms()[term].default_weight) for term in named}


def objective_name(objective: str) -> str:
    """Return the one spelling of an objective.

    >>> objective_name("tv+mi"), objective_name("CE"), objective_name("preg+ENC")
    ('mi+tv', 'ce', 'enc+preg')
    """
    terms = named_terms(objective)
    return "+".join([*(["enc"] if "enc" in objective.lower().split("+") else []), *terms]) or "ce"


def remark(settings: Settings, objective: str) -> str:
    """Describe what the name of an objective leaves open: terms without and with a weight.

    >>> remark(Settings(cvg=0.0), "enc"), remark(Settings(), "ce")
    ('without CVG', '')
    >>> remark(Settings(mi=0.0, tv=0.0, cvg=0.0), "enc")
    'no term'
    >>> remark(Settings(consistency=1.0, mi=0.0), "enc")
    'without MI, with consistency'
    """
    terms, active = parse_objective(objective), settings.active_terms()
    if terms and not any(term in active for term in terms):
        return "no term"
    without = [t.upper() for t in terms if t not in active and t not in NOT_OF_THE_PAPER]
    extra = [
        name
        for term, name in NOT_OF_THE_PAPER.items()
        if term in terms and term in active and term not in named_terms(objective)
    ]
    parts = [("without", without), ("with", extra)]
    return ", ".join(f"{word} {', '.join(names)}" for word, names in parts if names)


def has_only_paper_terms(settings: Settings) -> bool:
    """Whether no term outside the paper has a weight."""
    return not any(getattr(settings, term) for term in NOT_OF_THE_PAPER)
