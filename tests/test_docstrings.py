"""Docstrings of classes name every argument of the constructor and every public attribute."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "everynode"
TREES = {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(SOURCE.rglob("*.py"))}
#: Every public class by its file and name. Nested ones count too.
PUBLIC = {
    f"{file.relative_to(SOURCE).as_posix()}:{node.name}": node
    for file, tree in TREES.items()
    for node in ast.walk(tree)
    if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
}
BY_NAME = {node.name: node for node in PUBLIC.values()}
#: Stands for the fields that :func:`everynode.declaration.document` writes.
GENERATED = "(generated)"


def section(text: str, title: str) -> set[str]:
    """The names that a section of a docstring describes: ``a, b : type``, then indented text."""
    match = re.search(rf"^{title}\n-+\n((?:.*\n)*?)(?=^.+\n---|\Z)", text + "\n", re.MULTILINE)
    heads = re.findall(
        r"^(\w[^:\n]*|\*\*\w+)(?: : .+)?\n(?= +\S)", match[1] if match else "", re.MULTILINE
    )
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def described(node: ast.ClassDef) -> set[str]:
    """The parameters and attributes in the docstrings of a class and of its bases."""
    text = ast.get_docstring(node) or ""
    names = section(text, "Parameters") | section(text, "Attributes")
    if GENERATED in text:
        names |= fields(node)
    for base in node.bases:
        parent = BY_NAME.get(ast.unparse(base))
        if parent is not None and parent is not node:
            names |= described(parent)
    return names


def fields(node: ast.ClassDef) -> set[str]:
    """The annotated public names in the body of a class."""
    targets = (step.target for step in node.body if isinstance(step, ast.AnnAssign))
    return {target.id for target in targets if isinstance(target, ast.Name) and target.id[0] != "_"}


def constructor(node: ast.ClassDef) -> tuple[set[str], set[str]]:
    """The arguments of ``__init__``, and the public attributes that it sets."""
    found = [f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"]
    if not found:
        return set(), set()
    a = found[0].args
    arguments = {arg.arg for arg in [*a.args[1:], *a.kwonlyargs, a.vararg, a.kwarg] if arg}
    stored = {
        target.attr
        for target in ast.walk(found[0])
        if isinstance(target, ast.Attribute)
        and isinstance(target.ctx, ast.Store)
        and ast.unparse(target.value) == "self"
    }
    return arguments, {name for name in stored if name[0] != "_"}


def gaps(node: ast.ClassDef) -> set[str]:
    """What the docstring of a class leaves out, or describes although it is no argument.

    A field of a dataclass is a parameter or an attribute. What a base class describes is not
    repeated.
    """
    arguments, stored = constructor(node)
    parameters = section(ast.get_docstring(node) or "", "Parameters")
    left_out = (arguments - parameters) | ((stored | fields(node)) - described(node))
    takes_any = any(name in arguments for name in ("options", "fields"))
    wrong = parameters - arguments if arguments and not takes_any else set()
    return left_out | {f"{name} is no argument" for name in wrong}


@pytest.mark.parametrize("place", PUBLIC)
def test_a_class_describes_its_arguments_and_attributes(place: str) -> None:
    assert not gaps(PUBLIC[place])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("class A:\n    'Text.'\n    def __init__(self, a, *, b=1): self._a = a", {"a", "b"}),
        ("class A:\n    'Text.'\n    def __init__(self): self.a, self._b = 1, 2", {"a"}),
        ("@dataclass\nclass A:\n    'Text.'\n    a: int = 0\n    _b: int = 0", {"a"}),
        ("class A(Settings):\n    'Text.'\n    dropout: float", set()),
        (
            "class A:\n    '''Text.\n\n    Parameters\n    ----------\n    a, c : int\n        Both."
            "\n    '''\n    def __init__(self, a): self.a = a",
            {"c is no argument"},
        ),
    ],
)  # fmt: skip
def test_a_gap_is_noticed(code: str, expected: set[str]) -> None:
    node = ast.parse(code).body[0]
    assert isinstance(node, ast.ClassDef)
    assert gaps(node) == expected
