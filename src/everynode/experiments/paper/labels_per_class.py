"""Figure: accuracy over the number of labeled nodes, each term alone and all of them."""

from everynode.experiments.experiment import BACKBONES, NAMES, SHALLOW, Cell, Experiment

#: Row to objective.
LINES = {"CE": "ce", "CE + MI": "mi", "CE + TV": "tv", "CE + CVG": "cvg", "ENC": "enc"}

EXPERIMENT = Experiment(
    id="labels-per-class",
    title="Labeled nodes per class",
    reference="Figure 2 (fig:objectivesInfluence)",
    about="Cora, random splits: 10 to 100 training nodes per class, 500 for validation, 1000 "
    "for testing (the smallest class has 180 nodes). GCNII has 8 layers. Each run has its"
    " own split. The splits are of one graph and overlap, more so with more labels. The "
    "p-values treat them as independent and are too small by an unknown factor. The paper"
    " shows 100 splits, states an average gain of 2% for ENC, and prints no other number."
    " It does not state GCNII's depth or the number of validation and test nodes.",
    over="splits",
    view="lines",
    cells=lambda: [
        Cell(
            row, str(labels), "cora", "random", backbone, objective, panel=NAMES[backbone],
            per_class=labels, changes=SHALLOW[backbone],
            against=None if objective == "ce" else "CE",
        )
        for backbone in BACKBONES
        for row, objective in LINES.items()
        for labels in range(10, 101, 10)
    ],
    x="labeled nodes per class",
)  # fmt: skip
