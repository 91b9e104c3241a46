"""The names of objectives: ``ce``, ``enc``, the terms, and their sums. Needs no PyTorch."""

from __future__ import annotations

from everynode import plugins
from everynode.errors import unknown
from everynode.settings import TERMS, Settings, declarations

#: The terms of ``enc``.
ENC_TERMS = tuple(name for name in TERMS if declarations()[name].enc)
#: The terms that the paper does not have, with their titles.
NOT_OF_THE_PAPER = {
    name: declarations()[name].title for name in TERMS if not declarations()[name].paper
}


def objective_parts(objective: str) -> list[str]:
    """Return the names that an objective joins by ``+``, in lower case.

    >>> objective_parts("MI+tv")
    ['mi', 'tv']
    """
    return objective.lower().split("+")


def parse_objective(objective: str) -> tuple[str, ...]:
    """Return the terms of an objective besides cross-entropy, which every objective has.

    >>> parse_objective("enc"), parse_objective("ce"), parse_objective("tv+mi")
    (('mi', 'tv', 'cvg', 'consistency', 'prior'), (), ('mi', 'tv'))
    """
    named = objective_parts(objective)
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
    parts = objective_parts(objective)
    return tuple(term for term in parse_objective(objective) if term in parts)


def plugin_weights(objective: str, weights: dict[str, float]) -> dict[str, float]:
    """Return the weight of each plugin term of an objective.

    A term that the objective names has the given weight, or its default. The other terms with a
    weight belong to ``enc``.
    """
    for term in weights:
        if term not in plugins.terms():
            unknown("term", term, (*TERMS, *plugins.terms()))
    named = [term for term in named_terms(objective) if term not in TERMS]
    chosen = dict(weights) if "enc" in objective_parts(objective) else {}
    for term in named:
        chosen[term] = weights.get(term, 0.0) or plugins.terms()[term].default_weight
    return chosen


def objective_name(objective: str) -> str:
    """Return the one spelling of an objective.

    >>> objective_name("tv+mi"), objective_name("CE"), objective_name("preg+ENC")
    ('mi+tv', 'ce', 'enc+preg')
    """
    terms = named_terms(objective)
    enc = ("enc",) if "enc" in objective_parts(objective) else ()
    return "+".join((*enc, *terms)) or "ce"


def remark(settings: Settings, objective: str) -> str:
    """Describe the terms that the name of an objective leaves open.

    >>> remark(Settings(cvg=0.0), "enc"), remark(Settings(), "ce")
    ('without CVG', '')
    >>> remark(Settings(mi=0.0, tv=0.0, cvg=0.0), "enc")
    'no term'
    >>> remark(Settings(consistency=1.0, mi=0.0), "enc")
    'without MI, with consistency'
    """
    terms, active = parse_objective(objective), settings.active_terms()
    counted = [term for term in active if term in terms or term not in TERMS]
    if terms and not counted:
        return "no term"
    titles = {name: declarations()[name].title for name in TERMS}
    without = [titles.get(t, t) for t in terms if t not in active and t not in NOT_OF_THE_PAPER]
    expected = {*named_terms(objective), *(t for t in TERMS if t not in NOT_OF_THE_PAPER)}
    extra = [titles.get(t, t) for t in counted if t not in expected]
    parts = [("without", without), ("with", extra)]
    return ", ".join(f"{word} {', '.join(names)}" for word, names in parts if names)


def has_only_paper_terms(settings: Settings) -> bool:
    """Whether only terms of the paper have a weight."""
    return all(term in TERMS and term not in NOT_OF_THE_PAPER for term in settings.active_terms())
