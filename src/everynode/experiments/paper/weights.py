"""Figure: the weights alpha, beta, gamma and lambda, one at a time."""

from everynode.experiments.experiment import Cell, Experiment
from everynode.objective_names import NOT_OF_THE_PAPER

BASE = dict.fromkeys(NOT_OF_THE_PAPER, 0.0) | {"mi": 1.0, "tv": 1.0, "cvg": 1.0, "mi_lambda": 2.0}
#: Row to setting.
LINES = {"α (MI)": "mi", "β (TV)": "tv", "γ (CVG)": "cvg", "λ": "mi_lambda"}
GRID = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)

EXPERIMENT = Experiment(
    id="weights",
    title="The weights of the terms",
    reference="Figure 5 (fig:hyperparamStudy)",
    about="ENC-GCN on Cora's ten folds: one weight varies, the others are 1 (λ is 2). The paper"
    " prints neither backbone nor grid (evenly on a logarithmic scale, it says) nor "
    "numbers.",
    over="folds",
    view="lines",
    cells=lambda: [
        Cell(
            row, f"{value:g}", "cora", "geom-gcn", "gcn", "enc",
            changes=tuple((BASE | {name: value}).items()),
        )
        for row, name in LINES.items()
        for value in GRID
    ],
    x="weight",
)  # fmt: skip
