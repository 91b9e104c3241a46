"""The shape of the code: who imports whom, what has a test, and what stands in one place only."""

from __future__ import annotations

import ast
import graphlib
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
FILES = sorted(SOURCE.rglob("*.py"))

#: From the bottom to the top: a room imports from rooms below it, and from itself.
ROOMS = (
    "errors", "extras", "_lazy", "console", "machine", "numerics", "progress", "storage",
    "machine_code", "dense_assembly", "dense_products", "sparse", "graph",
    "datasets", "io", "evaluation", "plugins", "declaration", "batches", "fit_options",
    "settings_of_systems", "settings", "objective_names",
    "models", "presets", "objectives", "training", "selection", "explanations",
    "estimator_settings", "estimator_inputs", "estimator_files", "estimator_refit", "estimator_decisions", "estimator_training",
    "estimator",
    "experiments", "report", "benchmarks", "app", "cli",
)  # fmt: skip
#: Lines that two places of the source may share at most.
SHARED_LINES = 9


def module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in FILES}


def statements(tree: ast.AST, *, everywhere: bool) -> Iterator[ast.stmt]:
    """Import statements that run: at the top of a module, or ``everywhere`` in it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        elif everywhere or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from statements(node, everywhere=everywhere)


def imports(file: Path, *, everywhere: bool) -> set[str]:
    """The modules of the package that a file imports."""
    result = set()
    for node in statements(ast.parse(file.read_text(encoding="utf-8")), everywhere=everywhere):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else str(node.module) for name in inner]
        result |= {name for name in names if name in MODULES}
    return result - {module_name(file), "everynode"}  # the top holds the version and lazy names


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_no_cycle_in_the_imports() -> None:
    graph = {name: imports(file, everywhere=False) for name, file in MODULES.items()}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names them


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_room_imports_only_from_rooms_below(name: str) -> None:
    if room(name) in ("", "__main__"):
        return
    height = ROOMS.index(room(name))
    above = {
        other
        for other in imports(MODULES[name], everywhere=True)
        if ROOMS.index(room(other)) > height
    }
    assert above <= UPWARDS.get(name, set()), f"{name} imports from rooms above it"


#: Imports inside a function that go up, each with its reason.
UPWARDS: dict[str, set[str]] = {
    # Settings.preset and Settings.for_objective are conveniences for whoever has settings in hand.
    "everynode.settings": {"everynode.presets", "everynode.objective_names"},
    # The names of the models are part of a declaration; the models themselves are not imported.
    "everynode.declaration": {"everynode.models.names"},
    # A plugin's classes are sorted into terms, layers and models, and must not take a used name.
    "everynode.plugins": {
        "everynode.objectives.term",
        "everynode.models.layer",
        "everynode.models.names",
        "everynode.settings",
    },
}

#: Modules without a test file of their own name, each with the place of its tests.
TESTED_ELSEWHERE: dict[str, str] = {
    # Commands are run as a user would, several in one test.
    **dict.fromkeys(
        ("everynode.cli.compare", "everynode.cli.data", "everynode.cli.train"), "test_cli.py"
    ),
    "everynode.cli.predict": "cli/test_fit.py",
    "everynode.cli.report": "cli/test_reproduce.py",
    "everynode.cli.running": "cli/test_reproduce.py",
    # Declarations of tables without code of their own; every one is planned and checked there.
    **{
        name: "experiments/test_experiment.py"
        for name in MODULES
        if name.startswith("everynode.experiments.paper.")
    },
    # The page of the application and its tabs are tested in a browser.
    **dict.fromkeys(
        (
            "everynode.app.answers_tab",
            "everynode.app.data_tab",
            "everynode.app.label_tab",
            "everynode.app.node_map",
            "everynode.app.node_panel",
            "everynode.app.page",
            "everynode.app.parts",
            "everynode.app.quality_tab",
        ),
        "app/test_browser.py",
    ),
    # The compiled twin of the fused terms is compared with them, term by term.
    "everynode.objectives.numba_kernels": "objectives/test_fused.py",
    # A protocol without code; the loop runs each of its implementations.
    "everynode.training.step_runner": "training/test_loop.py",
    # The runner of mini-batches is tested through the trainings that use it.
    "everynode.training.mini_batch.work": "training/mini_batch/test_train.py",
}


def test_every_module_has_a_test_file_of_its_name_or_a_named_reason() -> None:
    tests = Path(__file__).parent
    missing = []
    for name, file in MODULES.items():
        if file.name.startswith("__") or name in TESTED_ELSEWHERE:
            continue
        folder = tests.joinpath(*name.split(".")[1:-1])
        if not (folder / f"test_{file.name}").exists():
            missing.append(name)
    assert not missing, "add a test file, or the reason to TESTED_ELSEWHERE"
    gone = [name for name, where in TESTED_ELSEWHERE.items() if name not in MODULES]
    assert not gone
    for where in set(TESTED_ELSEWHERE.values()):
        assert (tests / where).exists(), where


def code_lines(file: Path) -> list[tuple[int, str]]:
    """The lines of code with their numbers: no comments, docstrings, imports or blank lines."""
    text = file.read_text(encoding="utf-8")
    skip: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            skip |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return [
        (number, line.strip())
        for number, line in enumerate(lines, 1)
        if number not in skip and any(character.isalnum() for character in line)
    ]


def test_no_two_places_share_ten_lines() -> None:
    places: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for file in FILES:
        lines = code_lines(file)
        for start in range(len(lines) - SHARED_LINES):
            window = lines[start : start + SHARED_LINES + 1]
            where = f"{file.relative_to(SOURCE)}:{window[0][0]}"
            places[tuple(line for _, line in window)].append(where)
    twice = [where for where in places.values() if len(where) > 1]
    assert not twice


#: Lines that a function may have at most, with its docstring.
LONGEST = 75


def test_functions_are_short() -> None:
    functions = {
        (file.name, node.name): (node.end_lineno or node.lineno) - node.lineno + 1
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    long = {place for place, lines in functions.items() if lines > LONGEST}
    assert not long
