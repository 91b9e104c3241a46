"""Figure: MI against TV over depth."""

from everynode.experiments.experiment import BACKBONES, NAMES, Cell, Experiment

#: Row to objective.
LINES = {"CE": "ce", "CE + MI": "mi", "CE + TV": "tv"}

EXPERIMENT = Experiment(
    id="mi-vs-tv",
    title="MI against TV over depth",
    reference="Figure 3 (fig:TVvsMI)",
    about="Cora, public split, 2 to 64 layers. The paper finds that TV keeps deep networks "
    "best, and prints no numbers. Its text says that CVG does not; there is no line for "
    "it, neither there nor here.",
    over="seeds",
    view="lines",
    cells=lambda: [
        Cell(
            row, str(num_layers), "cora", "public", backbone, objective, panel=NAMES[backbone],
            changes=(("num_layers", num_layers),),
            against=None if objective == "ce" else "CE",
        )
        for backbone in BACKBONES
        for row, objective in LINES.items()
        for num_layers in (2, 4, 8, 16, 32, 64)
    ],
    x="layers",
)  # fmt: skip
