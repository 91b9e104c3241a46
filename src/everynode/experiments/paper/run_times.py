"""Table: the cost of the terms in time."""

from dataclasses import replace

from everynode.experiments.experiment import BACKBONES, NAMES, Cell, Experiment, method, published


def cells() -> list[Cell]:
    """Return cells for the time of a step, the time of a prediction, and the accuracy."""
    result: list[Cell] = []
    for objective in ("ce", "mi+tv", "enc"):
        for backbone in BACKBONES:
            row = (
                f"{NAMES[backbone]} + MI + TV"
                if objective == "mi+tv"
                else method(backbone, objective)
            )
            accuracy = Cell(
                row, "accuracy", "cora", "public", backbone, objective, changes=(("num_layers", 2),)
            )
            timed = replace(accuracy, task="time")
            result += [
                replace(timed, column="training", metric="training_ms"),
                replace(timed, column="inference", metric="inference_ms"),
                replace(accuracy, against=None if objective == "ce" else NAMES[backbone]),
            ]
    return [
        replace(cell, published=published("run-times", cell.row, cell.column)) for cell in result
    ]


EXPERIMENT = Experiment(
    id="run-times",
    title="Run-times",
    reference="Table 9 (tab:runtimes)",
    about="Training step and inference in milliseconds, accuracy in percent; Cora, two layers. "
    "The paper measured on a GPU, these are one thread of a CPU: compare the ratios, not "
    "the milliseconds. Runs are timed one after another; every record has the number of "
    "other running threads.",
    over="seeds",
    view="table",
    cells=cells,
    unit="",
    digits=2,
)
