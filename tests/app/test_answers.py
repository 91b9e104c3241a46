"""The state that a journal adds up to."""

from __future__ import annotations

from everynode.app.answers import Answers
from everynode.app.journal import Entry


def label(person: str, node: str, name: str) -> Entry:
    return Entry("label", person, node, name)


def test_a_later_answer_replaces_the_earlier_one() -> None:
    answers = Answers([label("ann", "n1", "red"), label("ann", "n1", "blue")])
    assert answers.labels == {"n1": "blue"}
    assert answers.conflicts == {}
    assert len(answers.log) == 2  # nothing is forgotten


def test_undo_goes_back_step_by_step() -> None:
    answers = Answers(
        [label("ann", "n1", "red"), label("ann", "n1", "blue"), Entry("skip", "ann", "n2")]
    )
    assert answers.skipped("ann") == {"n2"}
    for left, labels in ((set(), {"n1": "blue"}), (set(), {"n1": "red"}), (set(), {}), (set(), {})):
        answers.add(Entry("undo", "ann"))
        assert (answers.skipped("ann"), answers.labels) == (left, labels)


def test_undo_leaves_what_others_answered_since_then() -> None:
    answers = Answers([label("ann", "n1", "red"), label("bob", "n1", "blue"), Entry("undo", "ann")])
    assert answers.labels == {"n1": "blue"}


def test_two_answers_are_a_conflict_until_they_agree() -> None:
    answers = Answers(
        [label("ann", "n1", "red"), label("bob", "n1", "blue"), label("bob", "n2", "red")]
    )
    assert answers.labels == {"n2": "red"}
    assert answers.conflicts == {"n1": {"ann": "red", "bob": "blue"}}
    assert "n1" not in answers.to_csv()
    answers.add(label("bob", "n1", "red"))
    assert answers.labels == {"n1": "red", "n2": "red"}


def test_a_settled_conflict_has_one_answer_and_can_be_undone() -> None:
    answers = Answers(
        [
            label("ann", "n1", "red"),
            label("bob", "n1", "blue"),
            Entry("settle", "eve", "n1", "blue"),
        ]
    )
    assert answers.labels == {"n1": "blue"}
    answers.add(Entry("undo", "eve"))
    assert answers.conflicts == {"n1": {"ann": "red", "bob": "blue"}}


def test_people_have_names_and_classes_keep_their_order() -> None:
    answers = Answers([
        Entry("class", "ann", label="green"), label("ann", "n1", "red"), Entry("class", "bob", label="green"),
        Entry("name", "bob", label="Bob"),
    ])  # fmt: skip
    assert answers.names == {"ann": "person 1", "bob": "Bob"}
    assert answers.all_classes(["blue"]) == ["blue", "green", "red"]


def test_the_table_names_its_columns_and_its_people() -> None:
    answers = Answers([label("ann", "n1", "a,b"), label("bob", "n1", "a,b")])
    assert answers.to_csv("key", "team").splitlines() == [
        "key,team,answered_by",
        'n1,"a,b",person 1; person 2',
    ]
    assert answers.last_action("eve") is None
    last = answers.last_action("bob")
    assert last is not None
    assert last.node == "n1"
