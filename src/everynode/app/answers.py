"""What people answered: the state that the entries of a journal add up to."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from everynode.app.journal import Entry


class Done(NamedTuple):
    """An action that its person can undo.

    Attributes
    ----------
    entry : Entry
        The action.
    before : dict of str to str
        The answers to its node before the action, by person.
    """

    entry: Entry
    before: dict[str, str]


class Answers:
    """The answers of all people, and where they differ.

    A person's later answer replaces the earlier one. Two people who answer differently are in
    conflict: the node then has no label until the answers agree, or somebody settles it.

    Parameters
    ----------
    entries : iterable of Entry
        The entries of a journal.

    Attributes
    ----------
    classes : list of str
        The classes that people added, in their order.
    names : dict of str to str
        The name of each person.
    log : list of Entry
        All entries.

    Examples
    --------
    >>> answers = Answers([Entry("label", "ann", "n1", "red"), Entry("label", "bob", "n1", "blue")])
    >>> answers.labels, answers.conflicts
    ({}, {'n1': {'ann': 'red', 'bob': 'blue'}})
    >>> answers.add(Entry("undo", "bob"))
    >>> answers.labels
    {'n1': 'red'}
    """

    def __init__(self, entries: Iterable[Entry] = ()):
        self.classes: list[str] = []
        self.names: dict[str, str] = {}
        self.log: list[Entry] = []
        self._by_node: dict[str, dict[str, str]] = {}
        self._skipped: dict[str, set[str]] = {}
        self._stacks: dict[str, list[Done]] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Apply an entry."""
        self.log.append(entry)
        self.names.setdefault(entry.person, f"person {len(self.names) + 1}")
        if entry.action == "name":
            self.names[entry.person] = entry.label
        elif entry.action == "class":
            if entry.label not in self.classes:
                self.classes.append(entry.label)
        elif entry.action == "undo":
            self._undo(entry.person)
        else:
            before = dict(self._by_node.get(entry.node, {}))
            self._stacks.setdefault(entry.person, []).append(Done(entry, before))
            if entry.action == "skip":
                self._skipped.setdefault(entry.person, set()).add(entry.node)
                return
            others = {} if entry.action == "settle" else before
            self._by_node[entry.node] = others | {entry.person: entry.label}

    def _undo(self, person: str) -> None:
        """Take the person's last action back; what others answered since then stays."""
        stack = self._stacks.get(person, [])
        if not stack:
            return
        entry, before = stack.pop()
        if entry.action == "skip":
            self._skipped[person].discard(entry.node)
            return
        others = self._by_node.get(entry.node, {})
        restored = (before if entry.action == "settle" else {}) | others
        restored.pop(person, None)
        if person in before:
            restored[person] = before[person]
        self._by_node[entry.node] = restored

    def last_action(self, person: str) -> Entry | None:
        """Return the action that an undo of the person takes back; None if there is none."""
        stack = self._stacks.get(person)
        return stack[-1].entry if stack else None

    def of(self, node: str) -> dict[str, str]:
        """Return the answers to a node, by person."""
        return dict(self._by_node.get(node, {}))

    def skipped(self, person: str) -> set[str]:
        """Return the nodes that a person skipped."""
        return set(self._skipped.get(person, ()))

    @property
    def labels(self) -> dict[str, str]:
        """The label of each node on which all answers agree."""
        return {
            node: next(iter(given.values()))
            for node, given in self._by_node.items()
            if len(set(given.values())) == 1
        }

    @property
    def conflicts(self) -> dict[str, dict[str, str]]:
        """The answers to each node on which people differ, by person."""
        return {
            node: dict(given)
            for node, given in self._by_node.items()
            if len(set(given.values())) > 1
        }

    def all_classes(self, known: Sequence[str]) -> list[str]:
        """Return the ``known`` classes, then those that people added or used."""
        used = [label for given in self._by_node.values() for label in given.values()]
        return list(dict.fromkeys([*known, *self.classes, *used]))

    def to_csv(self, id_column: str = "id", label_column: str = "label") -> str:
        """Return the labels as a table for ``everynode fit --labels``.

        Nodes in conflict are left out. The last column names the people.

        >>> print(Answers([Entry("label", "ann", "n1", "red")]).to_csv())
        id,label,answered_by
        n1,red,person 1
        <BLANKLINE>
        """
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([id_column, label_column, "answered_by"])
        for node, label in self.labels.items():
            people = "; ".join(self.names[person] for person in self._by_node[node])
            writer.writerow([node, label, people])
        return file.getvalue()
