"""The names and words that the readers recognize."""

from __future__ import annotations

from everynode.cli.files import Files
from everynode.cli.fit_flags import LabelFlags
from everynode.io import column_names


def test_names_are_in_lower_case_and_name_one_role_of_a_table():
    for roles in (column_names.NODE_ROLES, column_names.EDGE_ROLES):
        names = [name for role in roles for name in column_names.USUAL_NAMES[role]]
        assert len(names) == len(set(names))
        assert names == [name.lower() for name in names]


def test_every_role_has_usual_names():
    roles = {*column_names.NODE_ROLES, *column_names.EDGE_ROLES}
    assert roles == set(column_names.USUAL_NAMES)
    assert set(column_names.REQUIRED_ROLES) < roles
    flags = {*Files.__dataclass_fields__, *LabelFlags.__dataclass_fields__}
    assert set(column_names.EDGE_ROLES) < flags


def test_a_word_is_not_both_true_and_false_or_missing():
    true, false = set(column_names.TRUE_WORDS), set(column_names.FALSE_WORDS)
    assert not true & false
    assert not (true | false) & set(column_names.MISSING_WORDS)
