"""The names of objectives: one spelling, and what a name leaves open."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.errors import UsageError
from everynode.objective_names import (
    ENC_TERMS,
    named_terms,
    objective_name,
    parse_objective,
    remark,
)
from everynode.settings import TERMS, Settings


@given(st.lists(st.sampled_from([*TERMS, "enc", "ce"]), min_size=1), st.booleans())
def test_every_spelling_of_a_sum_has_one_name(words: list[str], upper: bool) -> None:
    spelled = "+".join(words)
    spelled = spelled.upper() if upper else spelled
    name = objective_name(spelled)
    assert name == objective_name("+".join(reversed(words))) == objective_name(name)
    assert set(named_terms(name)) == set(words) & set(TERMS)
    assert set(parse_objective(name)) == set(words) & set(TERMS) | (
        set(ENC_TERMS) if "enc" in words else set()
    )


def test_an_unknown_term_is_refused_with_the_choices() -> None:
    with pytest.raises(UsageError, match=r"Unknown objective 'tvv' \(did you mean 'tv'\?\)"):
        parse_objective("mi+tvv")


def test_a_remark_names_terms_without_a_weight_and_terms_outside_the_paper() -> None:
    assert remark(Settings(prior=1.0, tv=0.0), "enc") == "without TV, with class prior"
    assert remark(Settings(prior=1.0), "enc+prior") == ""
